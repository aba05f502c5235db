//! How an attempt went, and how its command ended.

use super::{group::Group, patterns::Found, said::Said, spool::Spool};
use crate::program::CannotRun;
use nix::sys::signal::Signal;
use std::{
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    time::{Duration, Instant},
};

/// How an attempt went.
pub(super) struct Ended {
    pub(super) how: How,
    /// How its command ended, where nobody read all of its output in time.
    pub(super) unread: Option<How>,
    /// How long it ran, until it ended or was told to.
    pub(super) ran: Duration,
    /// Its standard output, unless that was passed on.
    pub(super) output: Spool,
    pub(super) found: Found,
    /// What it wrote to `RELENT_VERDICT`.
    pub(super) said: Said,
    /// Whether the runs around were told that nothing is to be begun anew: until it is known what becomes of its end, they may end us.
    pub(super) stands: bool,
    /// Whether nobody reads what it writes.
    pub(super) nobody_reads: bool,
    /// Whether there can be no other attempt, since some of its output is out already.
    pub(super) went_out: bool,
    /// Whether something that it has left would write there yet.
    pub(super) is_held: bool,
    /// Until when something that it has left may finish what it writes where relent does, if it may.
    pub(super) finishes: Option<Instant>,
    /// The signal that came to relent, and was passed on.
    pub(super) interrupted: Option<Signal>,
    /// Whether that is a hangup, and the command has succeeded all the same: it is not run again, and nothing of it is cut.
    pub(super) outlives_a_hangup: bool,
    /// Its processes, to end what is left of them; none if it could not be started.
    pub(super) group: Option<Group>,
}

impl Ended {
    /// A command that could not be started.
    pub(super) fn without_start(how: How) -> Ended {
        Ended {
            how,
            unread: None,
            ran: Duration::ZERO,
            output: Spool::default(),
            found: Found::default(),
            said: Said::default(),
            stands: false,
            nobody_reads: false,
            went_out: false,
            is_held: false,
            finishes: None,
            interrupted: None,
            outlives_a_hangup: false,
            group: None,
        }
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    Exited(u8),
    /// By this signal.
    Died(i32),
    TimedOut,
    /// It was told to end since its lease could not be kept, or may have been.
    LeaseLost,
    CannotRun(CannotRun),
}

impl How {
    /// The exit code that says so.
    pub(super) fn code(&self) -> u8 {
        match self {
            How::Exited(code) => *code,
            How::Died(signal) => died_by(*signal),
            How::TimedOut => 124,
            How::LeaseLost => NOT_NOW,
            How::CannotRun(CannotRun { not_found: false, .. }) => 126,
            How::CannotRun(CannotRun { not_found: true, .. }) => 127,
        }
    }

    /// A command that has the terminal gets Ctrl-C in our place; its death by it is meant for us too.
    pub(super) fn typed(&self) -> Option<Signal> {
        [Signal::SIGINT, Signal::SIGQUIT].into_iter().find(|signal| self.code() == died_by(*signal as i32))
    }

    pub(super) fn of(status: ExitStatus) -> How {
        match (status.code(), status.signal()) {
            (Some(code), _) => How::Exited(code as u8),
            (None, signal) => How::Died(signal.unwrap_or(0)),
        }
    }
}

/// EX_TEMPFAIL of sysexits.h: it may go better the next time.
pub(super) const NOT_NOW: u8 = 75;

/// The exit code of a death by signal.
pub(super) fn died_by(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
