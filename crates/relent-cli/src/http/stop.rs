//! Why there is no further attempt.

use super::exit;
use relent::{Reason, wire};

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// The policy, or the far side, said so.
    GaveUp(Reason),
    /// The request must not be sent twice.
    Unsafe(wire::Replay),
}

impl Stop {
    /// What to exit with.
    pub(super) const fn exit(self) -> u8 {
        match self {
            Stop::GaveUp(reason) => exit::of(reason),
            Stop::Unsafe(_) => exit::UNSAFE,
        }
    }
}
