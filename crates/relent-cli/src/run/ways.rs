//! How processes are ended: by what, in which time, and what is said of it.

use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// How often it is looked whether those that were told to end have ended.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// After this long it is said that somebody is waited for.
pub(super) const SAY_AFTER: Duration = Duration::from_secs(1);

/// How to end what is left.
#[derive(Clone, Copy)]
pub(super) struct Ways<'a> {
    /// What it is told first.
    pub(super) first: Signal,
    /// How long it has from then on.
    pub(super) grace: Duration,
    /// When it has to be gone, whatever the grace, as far as is known now: a lease may be lost meanwhile.
    pub(super) latest: &'a dyn Fn() -> Option<Instant>,
    /// Where it is said what takes long, or cannot be.
    pub(super) say: &'a dyn Fn(&str),
}

impl Ways<'_> {
    /// Says that the command is waited for, until it is killed.
    pub(super) fn say_waiting(&self, kill_at: Option<Instant>) {
        let left = kill_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        let left = relent::duration::Human(left);
        (self.say)(&format!("waiting for the command, which was told to end; killed in {left:.0}"));
    }
}
