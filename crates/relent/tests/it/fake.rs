//! A clock that is moved by sleeping, and remembers how long it was slept.

use relent::{Timer, Timestamp};
use std::{
    cell::{Cell, RefCell},
    future::{Ready, ready},
    time::Duration,
};

#[derive(Debug, Default)]
pub(crate) struct Fake {
    now: Cell<u64>,
    slept: RefCell<Vec<Duration>>,
}

impl Fake {
    /// Lets time pass, as an operation does.
    pub(crate) fn pass(&self, time: Duration) {
        self.now.set(self.now.get() + time.as_nanos() as u64);
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.now.get())
    }

    pub(crate) fn slept(&self) -> Vec<Duration> {
        self.slept.borrow().clone()
    }
}

impl Timer for Fake {
    type Sleep = Ready<()>;

    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now.get())
    }

    fn sleep(&self, delay: Duration) -> Ready<()> {
        self.pass(delay);
        self.slept.borrow_mut().push(delay);
        ready(())
    }
}
