//! Asking for a lease: where its store is, and who holds it, until it is granted, or time, patience or a signal ends the wait.

use super::{
    LeaseArgs,
    args::IfHeld,
    keeper::{Keeper, News},
    times::Moment,
};
use crate::{
    json::millis,
    redact,
    run::{mark::Mark, narrator::Narrator, report::Outcome, signals::Signals, starting::Starting},
    store::{self, counted, place},
    talk::Fault,
};
use nix::sys::signal::Signal;
use relent::{Policy, Reason, duration::Human};
use relent_store::Key;
use std::time::{Duration, Instant};

/// What a lease is asked for with.
pub(in crate::run) struct Terms<'a> {
    pub(in crate::run) args: &'a LeaseArgs,
    pub(in crate::run) policy: &'a Policy,
    pub(in crate::run) seed: u64,
    pub(in crate::run) grace: Duration,
    pub(in crate::run) signal: Signal,
    /// What the command's processes are known by.
    pub(in crate::run) mark: &'a Mark,
    /// What sees to it that the watchman starts, or not at all.
    pub(in crate::run) starting: &'a Starting,
    /// Since when it is wanted.
    pub(in crate::run) since: Instant,
    /// When the time is over in which it may come.
    pub(in crate::run) until: Option<Instant>,
    /// When the call's time is over, attempts under way included.
    pub(in crate::run) deadline: Option<Instant>,
}

impl Terms<'_> {
    /// When the patience with who holds it is over, if it has an end.
    fn out_of_patience(&self) -> Option<Instant> {
        self.args.wait.and_then(|wait| self.since.checked_add(wait))
    }

    /// The same with a store that has to say that yet, asked at this time: however short the patience is, it has a moment of its own.
    fn out_of_patience_with(&self, asked: Instant) -> Option<Instant> {
        self.out_of_patience().map(|at| at.max(asked + A_MOMENT))
    }
}

/// How long a store of a busy machine may take to say whether somebody holds a lease.
const A_MOMENT: Duration = Duration::from_secs(1);

/// The store's URL; or what the run comes to if a signal or a limit of time comes before it is found.
pub(super) fn found(
    terms: &Terms<'_>,
    signals: &Signals,
    narrator: &Narrator,
) -> Result<Result<String, Outcome>, Fault> {
    let given = terms.args.store.clone();
    let until = [terms.until, terms.out_of_patience_with(Instant::now())].into_iter().flatten().min();
    if let Some(found) = place::in_time(move || place::url(given.as_deref()), until, &signals.ear())? {
        return found.map(Ok);
    }
    let fault = place::silent(terms.args.store.as_deref());
    match signals.wait(Duration::ZERO) {
        Some(signal) => Ok(Err(Outcome::Interrupted(signal))),
        None if terms.until.is_some() && terms.until == until => {
            narrator.remark(fault.shown().0);
            Ok(Err(Outcome::GaveUp(Reason::Elapsed)))
        }
        None => Err(fault),
    }
}

/// A wish that is under way.
pub(super) struct Asking<'a> {
    pub(super) name: &'a Key,
    pub(super) url: &'a str,
    pub(super) keeper: &'a Keeper,
    pub(super) narrator: &'a Narrator,
}

impl Asking<'_> {
    /// The fence, and when it was asked for; or what the run comes to without it.
    pub(super) fn run(&self, terms: &Terms<'_>, signals: &Signals) -> Result<Result<(u64, Moment), Outcome>, Fault> {
        let (out_of_time, asked) = (terms.until, Instant::now());
        let mut holder = None;
        loop {
            let out_of_patience = match &holder {
                None => terms.out_of_patience_with(asked),
                Some(_) => terms.out_of_patience(),
            };
            let next = [out_of_time, out_of_patience].into_iter().flatten().min();
            let wait = next.map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(Instant::now()));
            let signal = signals.wait(wait);
            // Nothing that comes with a signal is worth more.
            for news in signal.is_none().then(|| self.keeper.news.try_iter()).into_iter().flatten() {
                match news {
                    News::Taken { fence, asked } => return Ok(Ok((fence, asked))),
                    News::Held { by, left } => {
                        self.waits(&by, left);
                        holder = Some((by, left));
                    }
                    News::Refused { by, left } => {
                        let outcome = self.refused(terms, &by, left);
                        self.closes(out_of_time, signals);
                        return Ok(Err(outcome));
                    }
                    News::Failed(error) => {
                        self.closes(out_of_time, signals);
                        return Err(store::fault(self.url, &error));
                    }
                    _ => {}
                }
            }
            let outcome = match () {
                () if signal.is_some() => signal.map(Outcome::Interrupted).map(Ok),
                () if out_of_time.is_some_and(|at| at <= Instant::now()) => Some(Ok(Outcome::GaveUp(Reason::Elapsed))),
                () if out_of_patience.is_some_and(|at| at <= Instant::now()) => match &holder {
                    Some((by, left)) => Some(Ok(self.refused(terms, by, *left))),
                    // Nobody is said to hold it.
                    None => Some(Err(place::silent(Some(self.url)))),
                },
                () if self.keeper.is_over() => {
                    return Err(Fault::new(format!("the lease {} was not taken", self.name)));
                }
                () => None,
            };
            if let Some(outcome) = outcome {
                let is_left = self.keeper.leave(None, out_of_time, &signals.ear());
                let store = place::shown(self.url);
                if !is_left {
                    let (name, ttl) = (self.name, Human(terms.args.ttl()));
                    self.narrator.remark(format_args!(
                        "store {store}: it does not answer; if it grants lease {name} yet, that ends by itself within {ttl}"
                    ));
                } else if outcome == Ok(Outcome::GaveUp(Reason::Elapsed)) && holder.is_none() {
                    self.narrator.remark(format_args!("store {store}: it does not answer"));
                }
                return outcome.map(Err);
            }
        }
    }

    /// Waits until the store is closed, though not for long.
    fn closes(&self, deadline: Option<Instant>, signals: &Signals) {
        self.keeper.leave(None, deadline, &signals.ear());
    }

    fn waits(&self, by: &str, left: Duration) {
        let name = self.name;
        let text = format!("waiting for lease {name}, which {by} holds ({:.0} left unless renewed)", Human(left));
        self.narrator.lease("waiting", &text, &|event| {
            event
                .text("lease", &counted::told(name, name.as_bytes()))
                .text("by", &redact::text(by))
                .number("left_ms", millis(left));
        });
    }

    fn refused(&self, terms: &Terms<'_>, by: &str, left: Duration) -> Outcome {
        let name = self.name;
        let (outcome, what) = match terms.args.held() {
            IfHeld::Skip => (Outcome::Skipped, "skipped"),
            IfHeld::Wait | IfHeld::Fail => (Outcome::Held, "not run"),
        };
        let who = if by.is_empty() { "somebody else" } else { by };
        let text = format!("{what}: {who} holds lease {name} ({:.0} left unless renewed)", Human(left));
        self.narrator.lease(outcome.name(), &text, &|event| {
            event
                .text("lease", &counted::told(name, name.as_bytes()))
                .text("by", &redact::text(by))
                .number("left_ms", millis(left));
        });
        outcome
    }

    pub(super) fn is_held(&self, fence: u64) -> String {
        format!("lease {}: held, fence {fence}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        run::lease::{
            keeper::{self, Wish},
            times::Times,
            waiting::Delays,
        },
        talk::TalkArgs,
    };
    use clap::Parser;
    use nix::{
        poll::{PollFd, PollFlags, PollTimeout, poll},
        sys::signal::raise,
    };
    use std::os::fd::AsFd;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        lease: LeaseArgs,
        #[command(flatten)]
        talk: TalkArgs,
    }

    /// What comes of asking with these flags for a lease that is free and was wanted so long ago, after something was done as soon as there
    /// are news; and whether there was more of them.
    fn asked(flags: &[&str], ago: Duration, then: impl FnOnce(&Signals)) -> (Result<(u64, Moment), Outcome>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("state.db").display());
        let signals = Signals::catch().unwrap();
        let flags = ["relent", "--lease", "nightly", "-q"].iter().chain(flags);
        let Flags { lease: args, talk } = Flags::parse_from(flags);
        let (policy, name) = (Policy::default(), args.name.clone().unwrap());
        let narrator = Narrator::new(talk, None, &policy, Instant::now());
        let times = Times { ttl: args.ttl(), grace: Duration::ZERO };
        let delays = Delays::new(&policy, times.ttl, 7);
        let wish = Wish { url: url.clone(), name: name.clone(), times, held: args.held(), delays };
        let keeper = Keeper::start(wish, signals.waker().unwrap()).unwrap();
        let asking = Asking { name: &name, url: &url, keeper: &keeper, narrator: &narrator };
        let terms = Terms {
            args: &args,
            policy: &policy,
            seed: 7,
            grace: Duration::ZERO,
            signal: Signal::SIGTERM,
            mark: &Mark::new(),
            starting: &Starting::new(|| false),
            since: Instant::now().checked_sub(ago).unwrap(),
            until: None,
            deadline: None,
        };
        then(&signals);
        let came = asking.run(&terms, &signals).unwrap();
        keeper.order(keeper::Order::End(None));
        (came, keeper.news.iter().next().is_some())
    }

    /// However close they come: nobody hears the signal later, if it is taken for nothing.
    #[test]
    fn a_lease_that_comes_with_a_signal_is_not_taken() {
        let (came, is_more) = asked(&[], Duration::ZERO, |signals| {
            // It is granted.
            poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE).unwrap();
            raise(Signal::SIGTERM).unwrap();
        });
        assert_eq!(came, Err(Outcome::Interrupted(Signal::SIGTERM)));
        assert!(!is_more, "and let go");
    }

    /// On a busy machine all that comes before takes its time.
    #[test]
    fn a_store_that_is_asked_late_is_heard() {
        let (came, _) = asked(&["--lease-wait", "0s"], Duration::from_secs(10), |_| {});
        assert_eq!(came.map(|(fence, _)| fence), Ok(1));
    }
}
