//! One target, tried until it accepts or the policy gives up: what its thread does, and what it tells.

use crate::{
    guard::{Answer, Guard, Told, may_start, patience},
    talk::WORTH_TELLING,
};
use relent::{Decision, Outcome, Policy, Reason, Timestamp, Verdict};
use std::{
    io,
    sync::mpsc::SyncSender,
    thread,
    time::{Duration, Instant},
};

/// What a target's thread has to tell.
pub(super) struct News {
    pub(super) target: usize,
    pub(super) attempt: u32,
    pub(super) outcome: Heard,
    /// What there is to say of the upstream.
    pub(super) remark: Option<String>,
    /// What that has counted so far.
    pub(super) told: Option<Told>,
}

/// What became of an attempt.
pub(super) enum Heard {
    /// The target accepts.
    Accepts,
    /// It failed, or was not let through.
    Failed(Failure),
    /// It is put off, by the spread of the policy or by the upstream.
    PutOff(Duration),
}

/// An attempt that failed, or that was not let through.
pub(super) struct Failure {
    /// Nothing if no attempt was made.
    pub(super) error: Option<String>,
    pub(super) verdict: Verdict,
    pub(super) decision: Decision,
}

/// When it began, and how long all of it may take.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) started: Instant,
    pub(super) limit: Option<Duration>,
}

/// Tries one target until it accepts or the policy gives up.
pub(super) fn wait(
    policy: &Policy,
    once: &dyn Fn(Option<Duration>) -> io::Result<()>,
    nth: usize,
    clock: Clock,
    (seed, mut guard): (u64, Guard),
    news: &SyncSender<News>,
) {
    let now = || Timestamp::ZERO + clock.started.elapsed();
    let mut call = policy.call(Timestamp::ZERO, seed);
    if let Some(limit) = clock.limit {
        call = call.deadline_at(Timestamp::ZERO + limit);
    }
    let put_off = |attempt: u32, delay: Duration| {
        if delay >= WORTH_TELLING {
            let outcome = Heard::PutOff(delay);
            let _ = news.send(News { target: nth, attempt, outcome, remark: None, told: None });
        }
        thread::sleep(delay);
    };
    put_off(1, call.spread());
    loop {
        let attempt = call.attempt();
        let pause = |delay| put_off(attempt, delay);
        // Whoever was stopped, or had too much to do, wakes later than asked.
        let is_in_time = || if may_start(&call, now()) { Ok(()) } else { Err((Reason::Elapsed, None)) };
        let admitted = admitted(&mut guard, policy, clock, &pause, &is_in_time).and_then(|()| is_in_time());
        if let Err((reason, remark)) = admitted {
            let refused = Failure { error: None, verdict: Verdict::Transient, decision: Decision::GiveUp(reason) };
            let (attempt, told) = (attempt - 1, guard.told(now()));
            // What it gives back goes before the process may end.
            drop(guard);
            let _ = news.send(News { target: nth, attempt, outcome: Heard::Failed(refused), remark, told });
            return;
        }
        guard.begins();
        let (outcome, delay, remark) = match once(call.attempt_limit(now())) {
            Ok(()) => {
                guard.ended(now(), Outcome::Success);
                (Heard::Accepts, None, None)
            }
            Err(error) => {
                let verdict = relent::net::verdict(&error);
                let told = match error.kind() {
                    io::ErrorKind::TimedOut => Outcome::TimedOut,
                    _ => Outcome::Failure(verdict),
                };
                guard.ended(now(), told);
                let mut decision = call.on_failure(now(), verdict);
                let mut remark = None;
                if matches!(decision, Decision::Retry(_)) && !guard.pay(now(), told) {
                    decision = Decision::GiveUp(Reason::Budget);
                    remark = Some(guard.out_of_budget());
                }
                let delay = match decision {
                    Decision::Retry(delay) => Some(delay),
                    Decision::GiveUp(_) => None,
                };
                (Heard::Failed(Failure { error: Some(plain(&error)), verdict, decision }), delay, remark)
            }
        };
        // When nobody listens any more, the process is about to end.
        let heard = news.send(News { target: nth, attempt, outcome, remark, told: guard.told(now()) });
        match delay {
            Some(delay) if heard.is_ok() => thread::sleep(delay),
            _ => return,
        }
    }
}

/// Waits until the upstream lets the next attempt through; why not, if it does not.
fn admitted(
    guard: &mut Guard,
    policy: &Policy,
    clock: Clock,
    pause: &dyn Fn(Duration),
    is_in_time: &dyn Fn() -> Result<(), (Reason, Option<String>)>,
) -> Result<(), (Reason, Option<String>)> {
    loop {
        is_in_time()?;
        let elapsed = clock.started.elapsed();
        let left = clock.limit.map(|limit| limit.saturating_sub(elapsed));
        match guard.ask(Timestamp::ZERO + elapsed, patience(policy, elapsed, left)) {
            Answer::Go => {
                guard.starts(Timestamp::ZERO + clock.started.elapsed());
                return Ok(());
            }
            Answer::Wait(delay) => pause(delay),
            Answer::No(reason, why) => return Err((reason, Some(why))),
        }
    }
}

/// What is wrong, without the number that only the system knows.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None if error.kind() == io::ErrorKind::TimedOut => "timed out".to_owned(),
        None => text.to_owned(),
    }
}
