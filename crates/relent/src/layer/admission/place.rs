//! The place of a request whose head has been answered, while its body is sent: for so long, and not for ever.
//!
//! Why: a client that does not read makes its server hold the body as long as it likes. Nobody polls the body then, so it
//! cannot look at a clock: the timer's thread takes the place from it.

use super::door::Door;
use crate::{AdmissionPermit, Outcome, Sleep, SystemTimer, Timer};
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Waker},
    time::Duration,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    task::Wake,
};

/// A place that comes back when this is dropped, or when its time is over.
pub(super) struct Place(Kind);

enum Kind {
    /// No time is running yet.
    Held(AdmissionPermit<Door>, Duration),
    Timed(Arc<Timed>, #[expect(dead_code, reason = "it wakes what is beside it until it is dropped")] Sleep),
    /// There is no place to give back, or it was given back.
    Free,
}

/// What the timer's thread has in its hands.
struct Timed(Mutex<Option<AdmissionPermit<Door>>>);

impl Timed {
    fn take(&self) -> Option<AdmissionPermit<Door>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Wake for Timed {
    fn wake(self: Arc<Self>) {
        drop(self.take());
    }
}

impl Place {
    /// For at most so long, from when it is [started](Place::start) on.
    pub(super) fn new(permit: AdmissionPermit<Door>, at_most: Duration) -> Place {
        Place(Kind::Held(permit, at_most))
    }

    pub(super) fn free() -> Place {
        Place(Kind::Free)
    }

    /// From now on its time runs.
    pub(super) fn start(&mut self) {
        self.0 = match core::mem::replace(&mut self.0, Kind::Free) {
            Kind::Held(permit, at_most) if at_most < Duration::MAX => {
                let timed = Arc::new(Timed(Mutex::new(Some(permit))));
                let mut sleep = SystemTimer.sleep(at_most);
                let waker = Waker::from(timed.clone());
                match Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker)) {
                    core::task::Poll::Pending => Kind::Timed(timed, sleep),
                    core::task::Poll::Ready(()) => Kind::Free,
                }
            }
            other => other,
        };
    }

    /// The body failed.
    pub(super) fn fail(&mut self, outcome: Outcome) {
        let permit = match core::mem::replace(&mut self.0, Kind::Free) {
            Kind::Held(permit, _) => Some(permit),
            Kind::Timed(timed, _) => timed.take(),
            Kind::Free => None,
        };
        if let Some(mut permit) = permit {
            permit.failed(outcome);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Kind::Timed(timed, _) = &self.0 {
            drop(timed.take());
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Held(..) => "Held",
            Kind::Timed(..) => "Timed",
            Kind::Free => "Free",
        })
    }
}
