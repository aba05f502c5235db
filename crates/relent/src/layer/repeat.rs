//! What a layer needs to know of a request that it may send more than once.

use super::{Said, Terms, TimeLeft, faults::Fate};
use crate::{Policy, Verdict};
use http::StatusCode;
use std::{any::Any, future::Future, sync::Arc};

/// A request that a layer may send more than once, to services that answer with `R`.
///
/// Implemented for `http::Request`, for `reqwest::Request`, and for numbers, texts, bytes, `Arc`s and pairs of these. A type
/// of the program's own says how it is copied; everything else has a default.
///
/// ```
/// use relent::layer::Repeat;
///
/// #[derive(Clone)]
/// struct Order {
///     id: u64,
///     pays: bool,
/// }
///
/// impl<R> Repeat<R> for Order {
///     fn again(&self) -> Option<Order> {
///         Some(self.clone())
///     }
///
///     fn is_idempotent(&self) -> bool {
///         !self.pays
///     }
/// }
/// # let order = Order { id: 7, pays: true };
/// # assert_eq!((order.id, Repeat::<()>::is_idempotent(&order)), (7, false));
/// ```
#[diagnostic::on_unimplemented(
    message = "a layer cannot send `{Self}` more than once, or not to a service that answers with `{R}`",
    note = "requests of your own: `impl<R> Repeat<R> for {Self}`",
    note = "an `http::Request` whose body is not `Clone`: `.layer().replay(..)`"
)]
pub trait Repeat<R>: Sized + Send + 'static {
    /// A copy, to be sent again. Asked before the first attempt, which takes the request with it, and before every retry that
    /// is not the last. `None` says that it cannot be sent twice.
    fn again(&self) -> Option<Self>;

    /// Whether sending it twice is the same as sending it once. If not, it is not sent again once it may have been carried
    /// out, and it is not hedged. By default it is.
    fn is_idempotent(&self) -> bool {
        true
    }

    /// How many bytes must be kept to send it again: what is larger than [`body_limit`](super::RetryLayer::body_limit) is sent
    /// once. By default none.
    fn size(&self) -> u64 {
        0
    }

    /// Whether it is here as a whole, so that two attempts may send it at a time. By default it is.
    fn is_whole(&self) -> bool {
        true
    }

    /// Whether an answer that is a failure says that the request was not carried out. By default it does not.
    fn is_refused_by_answers(&self) -> bool {
        false
    }

    /// The policy for this request, instead of the layer's.
    fn policy(&self, terms: &Terms) -> Option<Policy> {
        let _ = terms;
        None
    }

    /// Until when its answer is of use, if it knows.
    fn time_left(&self) -> Option<TimeLeft> {
        None
    }

    /// Says in the request which attempt it is, and what else is known of its call.
    fn announce(&mut self, said: &Said) {
        let _ = said;
    }

    /// What an answer means; `None` is a success, as every answer is by default.
    fn verdict(answer: &R, terms: &Terms) -> Option<Verdict> {
        let _ = (answer, terms);
        None
    }

    /// The status of an answer, for people.
    fn status(answer: &R) -> Option<StatusCode> {
        let _ = answer;
        None
    }

    /// What a service's error means where nobody says it by [`when`](crate::Retrier::when), and whether the request left; `None`
    /// if nothing is known of it.
    #[doc(hidden)]
    fn fate(error: &dyn Any, terms: &Terms) -> Option<Fate> {
        let _ = (error, terms);
        None
    }

    /// Writes into an answer what became of its call: `attempts=2; reason=budget`.
    fn record(answer: &mut R, record: &str) {
        let _ = (answer, record);
    }

    /// Marks an answer as one that a policy gave up on, for the layers around this one.
    #[doc(hidden)]
    fn give_up(answer: &mut R) {
        let _ = answer;
    }

    /// Takes care of an answer that nobody will see, because the request is sent again: reads what little is left of it, so that its
    /// connection can be used again. By default it is dropped.
    fn drain(answer: R) -> impl Future<Output = ()> + Send {
        drop(answer);
        std::future::ready(())
    }

    /// The copy was not needed.
    #[doc(hidden)]
    fn recycle(self) {}
}

macro_rules! cloned {
    ($($type:ty),*) => {$(
        impl<R> Repeat<R> for $type {
            fn again(&self) -> Option<Self> {
                Some(self.clone())
            }
        }
    )*};
}

cloned!((), bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);
cloned!(&'static str, &'static [u8], String, Vec<u8>, bytes::Bytes);

impl<R, T: Send + Sync + ?Sized + 'static> Repeat<R> for Arc<T> {
    fn again(&self) -> Option<Self> {
        Some(self.clone())
    }
}

/// Idempotent if both are.
impl<R, A: Repeat<R>, B: Repeat<R>> Repeat<R> for (A, B) {
    fn again(&self) -> Option<Self> {
        Some((self.0.again()?, self.1.again()?))
    }

    fn is_idempotent(&self) -> bool {
        self.0.is_idempotent() && self.1.is_idempotent()
    }

    fn size(&self) -> u64 {
        self.0.size().saturating_add(self.1.size())
    }
}
