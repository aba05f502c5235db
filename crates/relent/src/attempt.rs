//! What an operation is told about the attempt it is running.

use core::time::Duration;

/// One run of the operation, as the operation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    number: u32,
    timeout: Option<Duration>,
}

impl Attempt {
    #[inline]
    pub(crate) const fn new(number: u32, timeout: Option<Duration>) -> Attempt {
        Attempt { number, timeout }
    }

    /// Which attempt of the call this is; the first is 1.
    #[inline]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether this attempt is a retry, which is every one but the first.
    #[inline]
    pub const fn is_retry(&self) -> bool {
        self.number > 1
    }

    /// How long this attempt may take: the policy's attempt timeout or what is left until the deadline, whichever is
    /// less; `None` without either. Async executors enforce it; in blocking ones it is for the operation to obey.
    #[inline]
    pub const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}
