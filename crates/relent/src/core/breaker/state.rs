//! The state of a breaker in one word, so that every decision is one load and every change one compare-exchange.

use core::fmt;

/// What a breaker does with attempts.
///
/// ```
/// use relent::{Breaker, BreakerState};
///
/// let breaker = Breaker::consecutive(5);
/// assert_eq!(breaker.state(), BreakerState::Closed);
/// assert_eq!(BreakerState::HalfOpen.as_str(), "half_open");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerState {
    /// All are let through.
    Closed,
    /// None is let through until the open time is over.
    Open,
    /// A few are let through, as probes.
    HalfOpen,
    /// The probes succeeded, and the share that is let through rises.
    Ramp,
    /// Held open by hand: none is let through.
    HeldOpen,
    /// Held closed by hand: all are let through and nothing is counted.
    HeldClosed,
}

impl BreakerState {
    /// The state as one word, as metrics, logs and JSON write it: `"half_open"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half_open",
            BreakerState::Ramp => "ramp",
            BreakerState::HeldOpen => "held_open",
            BreakerState::HeldClosed => "held_closed",
        }
    }
}

/// The state as people say it: `half-open`.
impl fmt::Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BreakerState::HalfOpen => "half-open",
            BreakerState::HeldOpen => "held open",
            BreakerState::HeldClosed => "held closed",
            other => other.as_str(),
        })
    }
}

/// State, generation and counts, packed: 3 bits of state, 1 that says that a change is being written down,
/// 24 of generation, 36 of counts.
///
/// The counts of a closed breaker are its consecutive failures; those of a half-open one are three of 12 bits:
/// probes in flight, probes that succeeded, probes that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed(pub(super) u64);

/// The most probes: what 12 bits hold.
pub(super) const MOST_PROBES: u32 = (1 << 12) - 1;

const GENERATION_AT: u32 = 36;
const GENERATIONS: u64 = (1 << 24) - 1;
const BUSY: u64 = 1 << 60;
const STATE_AT: u32 = 61;
const COUNTS: u64 = (1 << GENERATION_AT) - 1;

/// What became of the probes of a half-open breaker so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Probes {
    pub(super) in_flight: u32,
    pub(super) succeeded: u32,
    pub(super) failed: u32,
}

impl Probes {
    pub(super) const fn pack(self) -> u64 {
        self.in_flight as u64 | (self.succeeded as u64) << 12 | (self.failed as u64) << 24
    }
}

impl Packed {
    pub(super) const fn new(state: BreakerState, generation: u32, counts: u64) -> Packed {
        let state = match state {
            BreakerState::Closed => 0,
            BreakerState::Open => 1,
            BreakerState::HalfOpen => 2,
            BreakerState::Ramp => 3,
            BreakerState::HeldOpen => 4,
            BreakerState::HeldClosed => 5,
        };
        Packed(state << STATE_AT | (generation as u64 & GENERATIONS) << GENERATION_AT | counts & COUNTS)
    }

    #[inline]
    pub(super) const fn state(self) -> BreakerState {
        match self.0 >> STATE_AT {
            0 => BreakerState::Closed,
            1 => BreakerState::Open,
            2 => BreakerState::HalfOpen,
            3 => BreakerState::Ramp,
            4 => BreakerState::HeldOpen,
            _ => BreakerState::HeldClosed,
        }
    }

    #[inline]
    pub(super) const fn is_closed(self) -> bool {
        self.0 >> STATE_AT == 0
    }

    #[inline]
    pub(super) const fn generation(self) -> u32 {
        (self.0 >> GENERATION_AT & GENERATIONS) as u32
    }

    /// Somebody is writing down a change to this state. Who finds it so changes nothing.
    #[inline]
    pub(super) const fn is_busy(self) -> bool {
        self.0 & BUSY != 0
    }

    pub(super) const fn busy(self) -> Packed {
        Packed(self.0 | BUSY)
    }

    /// Closed or in a ramp: failures in a row.
    #[inline]
    pub(super) const fn failures(self) -> u64 {
        self.0 & COUNTS
    }

    pub(super) const fn with_failures(self, failures: u64) -> Packed {
        let failures = if failures > COUNTS { COUNTS } else { failures };
        Packed(self.0 & !COUNTS | failures)
    }

    pub(super) const fn probes(self) -> Probes {
        const MASK: u64 = MOST_PROBES as u64;
        Probes {
            in_flight: (self.0 & MASK) as u32,
            succeeded: (self.0 >> 12 & MASK) as u32,
            failed: (self.0 >> 24 & MASK) as u32,
        }
    }

    pub(super) const fn with_probes(self, probes: Probes) -> Packed {
        Packed(self.0 & !COUNTS | probes.pack())
    }

    /// The same generation and counts in another state.
    pub(super) const fn become_closed(self) -> Packed {
        Packed::new(BreakerState::Closed, self.generation(), self.failures())
    }
}
