//! The door behind which the permits of a rate are counted by somebody else.

use super::answer::LimitAnswer;
use crate::core::time::Timestamp;
use core::{fmt, panic::RefUnwindSafe, time::Duration};

/// Who grants the permits of a [rate](crate::Limit::rate) in its place: a store that many processes share, for instance.
///
/// Asked by many threads at once, through `&self`, before each attempt: an answer must not wait for anything.
///
/// ```
/// use relent::{Limit, LimitAnswer, Permits, Timestamp};
/// use std::{sync::atomic::{AtomicU64, Ordering::Relaxed}, time::Duration};
///
/// /// Permits that somebody puts here.
/// #[derive(Debug)]
/// struct Box(AtomicU64);
///
/// impl Permits for Box {
///     fn book(&self, _: Timestamp, _: Duration) -> Result<Duration, Duration> {
///         let taken = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
///         taken.map(|_| Duration::ZERO).map_err(|_| Duration::from_millis(10))
///     }
///     fn give_back(&self, _: Timestamp) {
///         self.0.fetch_add(1, Relaxed);
///     }
///     fn available(&self, _: Timestamp) -> u64 {
///         self.0.load(Relaxed)
///     }
/// }
///
/// static TWO: Box = Box(AtomicU64::new(2));
/// static LIMIT: Limit = Limit::rate(100).granted_by(&TWO);
/// let answers = [(); 3].map(|()| LIMIT.acquire(Timestamp::ZERO));
/// assert_eq!(answers, [LimitAnswer::Granted, LimitAnswer::Granted, LimitAnswer::Wait(Duration::from_millis(10))]);
/// ```
pub trait Permits: fmt::Debug + Send + Sync + RefUnwindSafe {
    /// Takes a permit that may be used within so long, and says when.
    ///
    /// # Errors
    ///
    /// There is none; after how long it is worth asking again.
    fn book(&self, now: Timestamp, within: Duration) -> Result<Duration, Duration>;

    /// A permit that was booked will not be used. `due` is when it could have been: those who have booked others were told when theirs are, so it is
    /// for nobody sooner.
    fn give_back(&self, due: Timestamp);

    /// How many permits could be had at once.
    fn available(&self, now: Timestamp) -> u64;
}

pub(super) fn acquire(rule: &dyn Permits, now: Timestamp) -> LimitAnswer {
    match rule.book(now, Duration::ZERO) {
        Ok(_) => LimitAnswer::Granted,
        // Zero would be asked again without end.
        Err(wait) => LimitAnswer::Wait(wait.max(Duration::from_micros(1))),
    }
}
