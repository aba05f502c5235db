//! Listens to the threads of all targets, says what they tell, and knows when enough of them accept.

use super::{
    Args,
    wait::{Failure, Heard, News},
};
use crate::{
    guard::Told,
    json::{Object, millis},
    redact, stderr, talk,
};
use relent::{Decision, Policy, Reason, Verdict, duration::Human};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::Write,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

/// Listens to the threads, and says what they tell.
pub(super) struct Teller<'a> {
    pub(super) args: &'a Args,
    pub(super) policy: &'a Policy,
    pub(super) started: Instant,
    pub(super) limit: Option<Duration>,
    /// What the upstream of each target has counted.
    pub(super) told: RefCell<BTreeMap<usize, Told>>,
}

impl Teller<'_> {
    /// The last target that was needed, or why there are not enough.
    pub(super) fn listen(&self, news: &Receiver<News>) -> Result<usize, Reason> {
        let mut missing = if self.args.any { 1 } else { self.args.targets.len() };
        let mut hopeful = self.args.targets.len();
        loop {
            let News { target, attempt, outcome, remark, told } = self.next(news)?;
            if let Some(told) = told {
                self.told.borrow_mut().insert(target, told);
            }
            if let Some(remark) = remark {
                self.remark(target, &remark);
            }
            match outcome {
                Heard::PutOff(delay) => self.put_off(target, attempt, delay),
                Heard::Accepts => {
                    self.accepts(target, attempt);
                    missing -= 1;
                    if missing == 0 {
                        return Ok(target);
                    }
                }
                Heard::Failed(failure) => {
                    self.failed(target, attempt, &failure);
                    if let Decision::GiveUp(reason) = failure.decision {
                        hopeful -= 1;
                        if !self.args.any || hopeful == 0 {
                            return Err(reason);
                        }
                    }
                }
            }
        }
    }

    /// The next news. Resolvers have no timeout: when the last moment at which an attempt can end has passed, they are
    /// not waited for.
    fn next(&self, news: &Receiver<News>) -> Result<News, Reason> {
        let settings = self.policy.settings();
        let last = settings.max_elapsed.zip(settings.attempt_timeout);
        let last = last.map(|(most, attempt)| most.saturating_add(attempt).saturating_add(Duration::from_millis(100)));
        let received = match last.into_iter().chain(self.limit).min() {
            None => news.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(last) => match last.saturating_sub(self.started.elapsed()) {
                // What has come meanwhile is too late, however slowly it is read what was said before.
                Duration::ZERO => Err(RecvTimeoutError::Timeout),
                left => news.recv_timeout(left),
            },
        };
        received.map_err(|_| {
            if !self.args.talk.json {
                self.say(&format!("gave up in {:.1}: {}", Human(self.started.elapsed()), Reason::Elapsed));
            }
            Reason::Elapsed
        })
    }

    /// With `--verbose`: the policy.
    pub(super) fn begins(&self, seed: u64) {
        if self.args.talk.verbose && !self.args.talk.json {
            let _ = writeln!(stderr::open(), "{}", talk::policy(*self.policy, seed));
        }
    }

    /// An attempt is put off.
    fn put_off(&self, target: usize, attempt: u32, delay: Duration) {
        let target = self.args.targets[target].to_string();
        if self.args.talk.json {
            let mut event = Object::new();
            event.text("event", "waiting").text("target", &redact::text(&target)).number("attempt", attempt.into());
            return self.event(event.number("left_ms", millis(delay)).number("elapsed_ms", self.elapsed_ms()));
        }
        let most = self.policy.settings().max_attempts.map_or_else(String::new, |most| format!(" of {most}"));
        self.say(&format!("{target}: attempt {attempt}{most} in {:.1}", Human(delay)));
    }

    fn accepts(&self, target: usize, attempts: u32) {
        let target = self.args.targets[target].to_string();
        if self.args.talk.json {
            let mut event = Object::new();
            event
                .text("event", if self.args.invert { "gone" } else { "accepts" })
                .text("target", &redact::text(&target))
                .number("attempts", attempts.into());
            return self.event(event.number("elapsed_ms", self.elapsed_ms()));
        }
        if attempts > 1 || self.args.talk.verbose {
            let plural = if attempts == 1 { "" } else { "s" };
            let elapsed = Human(self.started.elapsed());
            let is = if self.args.invert { "is gone" } else { "accepts" };
            self.say(&format!("{target}: {is} after {attempts} attempt{plural} in {elapsed:.1}"));
        }
    }

    /// What there is to say of the upstream of a target.
    fn remark(&self, target: usize, remark: &str) {
        let target = self.args.targets[target].to_string();
        match self.args.talk.json {
            true => self.event(
                Object::new()
                    .text("event", "remark")
                    .text("target", &redact::text(&target))
                    .text("remark", &redact::text(remark)),
            ),
            false => self.say(&format!("{target}: {remark}")),
        }
    }

    fn failed(&self, target: usize, attempt: u32, failure: &Failure) {
        let target = self.args.targets[target].to_string();
        let error = failure.error.as_deref();
        let (delay, reason) = match failure.decision {
            Decision::Retry(delay) => (Some(delay), None),
            Decision::GiveUp(reason) => (None, Some(reason)),
        };
        if self.args.talk.json {
            let Some(error) = error else { return };
            let verdict = if failure.verdict == Verdict::Permanent { "permanent" } else { "transient" };
            let mut event = Object::new();
            event.text("event", "attempt").text("target", &redact::text(&target)).number("attempt", attempt.into());
            event.text("error", &talk::told(error)).text("verdict", verdict).number("elapsed_ms", self.elapsed_ms());
            event.raw("delay_ms", &delay.map_or("null".to_owned(), |delay| delay.as_millis().to_string()));
            return self.event(event.option("reason", reason.map(|reason| reason.as_str())));
        }
        let of_most = talk::of_most(attempt, self.policy.settings().max_attempts);
        match (delay, reason) {
            (Some(delay), _) => {
                let error = error.unwrap_or_default();
                self.say(&format!("{target}: attempt {of_most}: {error}; next in {:.1}", Human(delay)));
            }
            (None, reason) => {
                let reason = reason.map(|reason| reason.to_string()).unwrap_or_default();
                let (plural, elapsed) = (if attempt == 1 { "" } else { "s" }, Human(self.started.elapsed()));
                let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
                self.say(&format!(
                    "{target}: gave up after {attempt} attempt{plural} in {elapsed:.1}: {reason}{error}"
                ));
            }
        }
    }

    /// With `--verbose`: what the upstreams counted. For machines always.
    fn upstreams(&self) {
        for (target, told) in &*self.told.borrow() {
            let target = self.args.targets[*target].to_string();
            match self.args.talk.json {
                true if !self.args.talk.quiet => {
                    let _ = writeln!(stderr::open(), "{}", told.to_json(Some(&target)));
                }
                false if self.args.talk.verbose => self.say(&format!("{target}: {told}")),
                _ => {}
            }
        }
    }

    pub(super) fn end(&self, reason: Option<Reason>, exit: u8) {
        self.upstreams();
        if self.args.talk.json {
            let outcome = if reason.is_none() { "success" } else { "gave_up" };
            let mut event = Object::new();
            event.text("event", "end").text("outcome", outcome).number("exit", exit.into());
            event.number("elapsed_ms", self.elapsed_ms());
            self.event(event.option("reason", reason.map(|reason| reason.as_str())));
        }
    }

    fn elapsed_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }

    fn event(&self, event: &Object) {
        if !self.args.talk.quiet {
            let _ = writeln!(stderr::open(), "{}", event.finish());
        }
    }

    fn say(&self, text: &str) {
        if !self.args.talk.quiet {
            let _ = writeln!(stderr::open(), "relent: {}", talk::message(text));
        }
    }
}
