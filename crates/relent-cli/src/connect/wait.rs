//! One target, tried until it accepts or the policy gives up: what its thread does, and what it tells.

use relent::{Decision, Policy, Timestamp, Verdict};
use std::{
    io,
    sync::mpsc::Sender,
    thread,
    time::{Duration, Instant},
};

/// What a target's thread has to tell.
pub(super) struct News {
    pub(super) target: usize,
    pub(super) attempt: u32,
    pub(super) outcome: Result<(), Failure>,
}

/// An attempt that failed.
pub(super) struct Failure {
    pub(super) error: String,
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
    seed: u64,
    news: &Sender<News>,
) {
    let now = || Timestamp::ZERO + clock.started.elapsed();
    let mut call = policy.call(Timestamp::ZERO, seed);
    if let Some(limit) = clock.limit {
        call = call.deadline_at(Timestamp::ZERO + limit);
    }
    thread::sleep(call.spread());
    if !call.may_start(now()) {
        return;
    }
    loop {
        let attempt = call.attempt();
        let (outcome, delay) = match once(call.attempt_limit(now())) {
            Ok(()) => (Ok(()), None),
            Err(error) => {
                let verdict = relent::net::verdict(&error);
                let decision = call.on_failure(now(), verdict);
                let delay = match decision {
                    Decision::Retry(delay) => Some(delay),
                    Decision::GiveUp(_) => None,
                };
                (Err(Failure { error: plain(&error), verdict, decision }), delay)
            }
        };
        // When nobody listens any more, the process is about to end.
        let told = news.send(News { target: nth, attempt, outcome });
        match delay {
            Some(delay) if told.is_ok() => thread::sleep(delay),
            _ => return,
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
