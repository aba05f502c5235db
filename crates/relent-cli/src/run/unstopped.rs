//! A thread that the terminal does not stop.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Without the signal that stops who writes to a terminal of others (`stty tostop`), or takes it.
#[derive(Debug)]
pub(super) struct Unstopped(SigSet);

impl Unstopped {
    /// For this thread, from now on.
    pub(super) fn now() -> Unstopped {
        let mut held = SigSet::empty();
        held.add(Signal::SIGTTOU);
        Unstopped(held.thread_swap_mask(SigmaskHow::SIG_BLOCK).unwrap_or_else(|_| SigSet::empty()))
    }
}

impl Drop for Unstopped {
    fn drop(&mut self) {
        let _ = self.0.thread_set_mask();
    }
}
