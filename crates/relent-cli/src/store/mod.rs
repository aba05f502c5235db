//! `relent store`: what a store promises, what is in it; and which store a command line means at all.

pub(crate) mod args;
mod check;
pub(crate) mod counted;
pub(crate) mod open;
mod owners;
pub(crate) mod place;
mod purge;
mod show;

pub(crate) use args::Args;
pub(crate) use open::fault;

use crate::{dumps, talk::Fault};
use args::What;
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

/// How long a store is waited for when the call's time is over: one that is well answers in that.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// Until when a store is waited for at the end of a call: for so long, and hardly beyond the end of the call's time.
pub(crate) fn latest(long: Duration, deadline: Option<Instant>) -> Instant {
    let now = Instant::now();
    deadline.map_or(now + long, |deadline| (now + long).min(deadline.max(now + LAST_WORDS)))
}

pub(crate) fn run(args: &Args) -> ExitCode {
    dumps::forbid();
    let (json, outcome) = match &args.what {
        What::Check(to) => (to.json, check::run(to)),
        What::Show(show) => (show.to.json, show::run(show)),
        What::Purge(purge) => (purge.to.json, purge::run(purge)),
        What::Migrate(to) => (to.json, check::migrate(to)),
    };
    outcome.unwrap_or_else(|fault: Fault| fault.tell_as(json))
}
