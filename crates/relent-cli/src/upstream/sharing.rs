//! One process that shares what it knows of an upstream with all others, by a store.
//!
//! What its own upstream refuses, is refused: the store is asked only about what that lets through, and for a short time. A
//! store that is away is told of once, and then this process goes on alone; it asks again after a while. A thread asks, so
//! that a store that hangs holds up nobody, and no signal.

use super::rules::{Rules, Stand};
use crate::{
    ear::Ear,
    store::{counted, latest},
};
use relent::{Outcome, Reason, duration::Human};
use relent_store::{Booking, Delta, Engine, Error, ErrorKind, Key, Nonce, Shared, Store};
use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

/// How long a decision waits for the store.
const PATIENCE: Duration = Duration::from_secs(1);

/// No more of the call's time than this part of what is left, so that there is some for the call itself.
const PART: u32 = 3;

/// A store that is well has answered by then.
const AT_LEAST: Duration = Duration::from_millis(100);

/// How long a store that was away is not asked.
const LEFT_ALONE: Duration = Duration::from_secs(5);

/// How long a store may take to be opened, and to be told goodbye.
const AT_THE_ENDS: Duration = Duration::from_secs(3);

/// What a process shares of an upstream.
pub(crate) struct Sharing {
    rules: Rules,
    name: Key,
    process: Nonce,
    seq: u64,
    /// What happened since it was last told.
    untold: Untold,
    asks: Sender<Delta>,
    answers: Receiver<(u64, Result<Shared, Error>)>,
    /// Until when the store is left alone.
    away: Option<Instant>,
    /// The permit of the shared rate that was booked for the next attempt, and that of the one that was let through and has not begun.
    booked: Option<Permit>,
    used: Option<Permit>,
    /// The last that was booked and will not be used.
    back: Option<Permit>,
    /// When the call's time is over.
    deadline: Option<Instant>,
    /// How long a question waits at most, where the policy gives a call little time to begin attempts in.
    most: Duration,
    is_said: bool,
    remarks: Vec<String>,
    /// What hears that the call is to end.
    ear: Ear,
}

/// One of a rate that all processes share.
#[derive(Clone, Copy, Debug)]
struct Permit {
    /// When it may be used.
    due: Instant,
    /// When the next one comes, by the store's clock: after the epoch.
    next: Duration,
    /// Whether it was there at once, as one of several that are all alike.
    is_at_once: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Untold {
    successes: u64,
    failures: u64,
    run: u64,
    /// Whether this process's own breaker is open.
    is_open: bool,
}

/// What is told besides what happened.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    calls: u64,
    retries: u64,
    /// What is asked of the shared rate.
    rate: Asks,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asks {
    #[default]
    Nothing,
    /// One permit that comes within so long.
    Permit(Duration),
    /// When the next one could be had.
    Next,
    /// Takes the last one back that was booked, whoever has it.
    Back,
}

/// Whether an attempt may start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    Go,
    /// After so long: ask again then.
    Wait(Duration),
    /// Why not.
    No(Reason, String),
}

impl Sharing {
    /// Starts to share, until the deadline. The store is opened by a thread, and not waited for.
    pub(crate) fn start(url: String, name: Key, rules: Rules, deadline: Option<Instant>) -> std::io::Result<Sharing> {
        let runtime = crate::runtime::builder()?.build()?;
        let (asks, taken) = channel::<Delta>();
        let (tell, answers) = channel();
        let run = move || {
            let mut store = None;
            while let Ok(delta) = taken.recv() {
                let seq = delta.seq;
                let answer = runtime.block_on(async {
                    let asked = async {
                        if store.is_none() {
                            store = Some(Store::open(&url).await?);
                        }
                        match &store {
                            Some(store) => store.engine().merge(&delta).await,
                            None => Err(Error::new(ErrorKind::Unavailable, "it is not open")),
                        }
                    };
                    let slow = |_| Err(Error::new(ErrorKind::Timeout, "it does not answer"));
                    tokio::time::timeout(AT_THE_ENDS, asked).await.unwrap_or_else(slow)
                });
                if tell.send((seq, answer)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("upstream".into()).spawn(run)?;
        let (process, untold) = (Nonce::random(), Untold::default());
        Ok(Sharing {
            rules,
            name,
            process,
            seq: 0,
            untold,
            asks,
            answers,
            away: None,
            booked: None,
            used: None,
            back: None,
            deadline,
            most: AT_THE_ENDS,
            is_said: false,
            remarks: Vec::new(),
            ear: Ear::default(),
        })
    }

    /// For a policy that begins attempts for so long alone.
    #[must_use]
    pub(crate) fn for_calls_of(mut self, max_elapsed: Option<Duration>) -> Sharing {
        self.most = max_elapsed.map_or(AT_THE_ENDS, |most| (most / PART).max(AT_LEAST));
        self
    }

    /// With what hears that the call is to end: then no store is waited for.
    #[must_use]
    pub(crate) fn hearing(mut self, ear: Ear) -> Sharing {
        self.ear = ear;
        self
    }

    /// What there is to say since this was last asked.
    pub(crate) fn take_remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// May an attempt start, as far as all others know, that would wait so long? A first attempt is a call.
    pub(crate) fn ask(&mut self, is_first: bool, within: Duration) -> Leave {
        if let Some(left) = self.booked.map(|permit| permit.due.saturating_duration_since(Instant::now()))
            && !left.is_zero()
        {
            return Leave::Wait(left);
        }
        let window = self.rules.breaker_window().unwrap_or(Duration::from_secs(10));
        // What is refused is no call, so it is looked at before it is told.
        let rate = if self.booked.is_some() { Asks::Nothing } else { Asks::Permit(within) };
        let Some(shared) = self.tell(window, Told { rate, ..Told::default() }) else { return self.go() };
        let mut stand = self.rules.stand(&shared);
        if !matches!(stand, Stand::Open(_))
            && shared.held.is_none()
            && let Some(window) = self.rules.window_of_shares()
            && let Some(why) = self.tell(window, Told::default()).and_then(|longer| self.rules.too_many(&longer))
        {
            stand = Stand::Open(why);
        }
        let probes = match stand {
            Stand::Open(why) => return self.no(Reason::Open, why.to_string()),
            Stand::HalfOpen(probes) if shared.calls >= probes => return self.no(Reason::Open, finding_out(&shared)),
            Stand::HalfOpen(probes) => Some(probes),
            Stand::Closed => None,
        };
        if self.rules.rate().is_some()
            && let Some(permit) = self.booked
        {
            let left = permit.due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Leave::Wait(left);
            }
        } else if let Some(used_up) = self.used_up(&shared) {
            return self.no(Reason::Shed, used_up);
        }
        if !is_first && probes.is_none() {
            return self.go();
        }
        let told = self.tell(window, Told { calls: 1, ..Told::default() });
        match (told, probes) {
            // Others were quicker.
            (Some(shared), Some(probes)) if shared.calls > probes => self.no(Reason::Open, finding_out(&shared)),
            _ => self.go(),
        }
    }

    /// May one attempt be made more, beside those under way, at once?
    pub(crate) fn ask_for_a_hedge(&mut self) -> bool {
        let rate = Asks::Permit(Duration::ZERO);
        let told = match self.rules.rate() {
            Some(_) => self.tell(Duration::from_secs(10), Told { rate, ..Told::default() }),
            None => None,
        };
        // The budget was asked, too, and may have taken its time.
        if self.ear.heard().is_some() {
            return false;
        }
        let Some(shared) = told else { return true };
        let is_booked = self.booked.take().is_some();
        debug_assert_eq!(is_booked, shared.booked.permits > 0);
        is_booked
    }

    /// The permit that was booked is for the attempt that begins now.
    fn go(&mut self) -> Leave {
        self.used = self.booked.take();
        Leave::Go
    }

    /// The attempt that was let through has begun: its permit is used.
    pub(crate) fn begins(&mut self) {
        self.used = None;
    }

    /// The permit that was booked is not.
    fn no(&mut self, reason: Reason, why: String) -> Leave {
        self.back = self.booked.take().or(self.back);
        Leave::No(reason, why)
    }

    /// Why the rate of all processes allows no attempt in time, if it does not.
    fn used_up(&self, shared: &Shared) -> Option<String> {
        let rate = self.rules.rate()?;
        let wait = Human(Duration::from_millis(shared.booked.wait.as_millis() as u64 + 1));
        Some(format!("the rate of all processes, {}, is used up; ask again in {wait}", counted::rate(rate)))
    }

    /// An attempt has ended. Told with whatever is told next. Whoever was answered knows that the far side is there; of what was dropped nothing is
    /// known.
    pub(crate) fn ended(&mut self, outcome: Outcome, is_open: bool) {
        if outcome.is_load() {
            (self.untold.failures, self.untold.run) = (self.untold.failures + 1, self.untold.run + 1);
        } else if outcome.is_answered() {
            (self.untold.successes, self.untold.run) = (self.untold.successes + 1, 0);
        }
        self.untold.is_open = is_open;
        self.begins();
    }

    /// May a retry be made, as far as all others know? If so it is counted.
    pub(crate) fn pay(&mut self) -> bool {
        let Some(window) = self.rules.budget_window() else { return true };
        // A retry that is refused must not count, so it is looked at before it is counted.
        let Some(shared) = self.tell(window, Told::default()) else { return true };
        if !self.rules.may_retry(&shared) {
            return false;
        }
        self.tell(window, Told { retries: 1, ..Told::default() })
            .is_none_or(|shared| shared.retries <= self.rules.retries(&shared))
    }

    /// Tells what happened, and hears what all others saw; nothing if the store does not answer in time.
    fn tell(&mut self, window: Duration, told: Told) -> Option<Shared> {
        let now = Instant::now();
        let patience = if self.seq == 0 { AT_THE_ENDS } else { PATIENCE };
        let part = self.deadline.map(|deadline| deadline.saturating_duration_since(now) / PART);
        self.tell_until(now + part.map_or(patience, |part| part.min(patience)).min(self.most), window, told)
    }

    fn tell_until(&mut self, until: Instant, window: Duration, told: Told) -> Option<Shared> {
        let Told { calls, retries, rate: asks } = told;
        if self.away.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        self.seq += 1;
        let Untold { successes, failures, run, is_open } = self.untold;
        let booking = self.rules.rate().filter(|_| asks != Asks::Nothing).map(|rate| {
            let within = if let Asks::Permit(within) = asks { Some(within) } else { None };
            let (permits, back) = (u32::from(within.is_some()), u32::from(asks == Asks::Back));
            Booking { rate, permits, within: within.unwrap_or_default(), back }
        });
        let delta = Delta {
            upstream: self.name.clone(),
            process: self.process,
            seq: self.seq,
            window: window.clamp(Duration::from_secs(1), Duration::from_secs(3600)),
            calls,
            retries,
            successes,
            failures,
            run,
            is_open,
            // A process that ends with an open breaker keeps its vote for the window: it saw what it saw.
            is_last: false,
            // Each retry is asked for.
            reserves: 0,
            every: Duration::ZERO,
            booking,
        };
        // A thread that is gone answers nothing.
        let _ = self.asks.send(delta);
        loop {
            match self.ear.wait(&self.answers, until) {
                // An answer to what was not waited for.
                Ok((seq, _)) if seq != self.seq => {}
                Ok((_, Ok(shared))) => {
                    self.untold = Untold { is_open, ..Untold::default() };
                    if std::mem::take(&mut self.is_said) {
                        self.remarks.push(format!("{}: its store is back", self.name));
                    }
                    self.away = None;
                    if shared.booked.permits > 0 {
                        let (wait, now) = (shared.booked.wait, Duration::from_millis(shared.now.0));
                        let gap = self.rules.rate().map_or(Duration::ZERO, |rate| rate.gap);
                        // What is told of one that comes at once is when the next one does.
                        let (wait, next) = match shared.booked.at_once {
                            0 => (wait, now.saturating_add(wait).saturating_add(gap)),
                            _ => (Duration::ZERO, now.saturating_add(wait)),
                        };
                        let is_at_once = shared.booked.at_once > 0;
                        self.booked = Some(Permit { due: Instant::now() + wait, next, is_at_once });
                    }
                    return Some(shared);
                }
                Ok((_, Err(error))) => return self.alone(&why(&error)),
                Err(_) => break,
            }
        }
        // What was asked may be done later: it is not told again.
        self.untold = Untold { is_open, ..Untold::default() };
        self.alone("it does not answer")
    }

    /// A permit that is not used goes back if nobody waits for a later one: who does comes when it was told to, and no sooner.
    fn give_back(&mut self, permit: Permit, until: Instant) {
        let (window, gap) = (Duration::from_secs(1), self.rules.rate().map_or(Duration::ZERO, |rate| rate.gap));
        // `None` is no answer, and zero is at once.
        let mut next_after = |asks| {
            let shared = self.tell_until(until, window, Told { rate: asks, ..Told::default() })?;
            let (now, wait) = (Duration::from_millis(shared.now.0), shared.booked.wait);
            Some(if wait.is_zero() { Duration::ZERO } else { now.saturating_add(wait) })
        };
        match next_after(Asks::Next) {
            // Nobody waits, and of what was there at once none has come due anew since.
            Some(Duration::ZERO) if permit.is_at_once && permit.due.elapsed() < gap => {
                let waits = next_after(Asks::Back).is_some_and(|next| !next.is_zero());
                // Who waits by now has booked in between.
                _ = waits.then(|| next_after(Asks::Permit(Duration::MAX)));
            }
            Some(next) if next == permit.next => {
                let is_last = next_after(Asks::Back).is_none_or(|next| next.saturating_add(gap) <= permit.next);
                // Somebody was quicker, and another would be let through beside whom.
                _ = (!is_last).then(|| next_after(Asks::Permit(Duration::MAX)));
            }
            _ => {}
        }
    }

    fn alone(&mut self, why: &str) -> Option<Shared> {
        self.away = Some(Instant::now() + LEFT_ALONE);
        // Who was told to end does not go on.
        if self.ear.heard().is_none() && !std::mem::replace(&mut self.is_said, true) {
            self.remarks.push(format!("{}: its store is away, going on alone: {why}", self.name));
        }
        None
    }
}

/// Why a store is away. One that is not there, or of an older relent, stays so until somebody does something about it.
fn why(error: &Error) -> String {
    let does = match error.kind() {
        ErrorKind::Missing => "makes it",
        ErrorKind::TooOld => "brings them up to date",
        _ => return error.to_string(),
    };
    format!("{error}; relent store migrate --store URL {does}, the policy file alone does not")
}

/// Tells what is left to tell, and ends when the store is closed: a log of SQLite's that is left shuts out others. One that is away is not
/// waited for.
impl Drop for Sharing {
    fn drop(&mut self) {
        let until = latest(AT_THE_ENDS, self.deadline);
        if let Some(permit) = self.booked.take().or(self.used.take()).or(self.back.take()) {
            self.give_back(permit, until);
        } else if self.untold.successes + self.untold.failures > 0 {
            let _ = self.tell_until(until, Duration::from_secs(1), Told::default());
        }
        // The thread ends when nobody can ask it any more.
        self.asks = channel().0;
        while self.away.is_none() && self.ear.wait(&self.answers, until).is_ok() {}
    }
}

fn finding_out(shared: &Shared) -> String {
    format!("after {} failures in a row another process finds out whether it is well again", shared.run)
}

#[cfg(test)]
mod tests;
