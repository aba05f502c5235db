//! What a call of the user's own loop has been through, apart from what it runs in.

use crate::{Call, Decision, Policy, Reason, Saved, Timeline, Timestamp, Verdict, cancel::Cancel, rng::draw};
use core::time::Duration;

/// What a call has been through.
#[derive(Debug)]
pub(super) struct State {
    pub(super) started: Timestamp,
    /// Whether the clock was read when the call began, or was reset.
    pub(super) knows_start: bool,
    pub(super) seed: u64,
    pub(super) saved: Saved,
    pub(super) deadline: Timestamp,
    pub(super) timeline: Timeline,
    /// When the attempt that is under way started, if anybody looked at the clock.
    pub(super) attempt_started: Option<Timestamp>,
    /// When the last attempt failed, as far as it matters.
    pub(super) failed_at: Timestamp,
    pub(super) healthy: Duration,
    pub(super) pushback: Option<Duration>,
    /// How long the last attempt was given, if it was dropped at its timeout.
    pub(super) timed_out: Option<Duration>,
    pub(super) cancel: Option<Cancel>,
    /// Whether it matters what time it is, even where nothing is waited for.
    pub(super) is_timed: bool,
    /// Whether the call has its seed, and a beginning if nobody needed to know that before.
    pub(super) has_begun: bool,
    pub(super) retries_given_up: bool,
    /// When it is worth asking an upstream again that has refused.
    pub(super) again: Option<Timestamp>,
    /// Draws for the upstream so far.
    pub(super) draws: u32,
    /// Attempts before something changed, from which on delays count anew: see [`Answer::Changed`](crate::Answer).
    pub(super) before_change: u32,
}

impl State {
    pub(super) fn new(began: Option<Timestamp>) -> State {
        let now = began.unwrap_or_default();
        State {
            started: now,
            knows_start: began.is_some(),
            seed: 0,
            saved: Saved::default(),
            deadline: Timestamp::MAX,
            timeline: Timeline::new(now),
            attempt_started: began,
            failed_at: now,
            healthy: Duration::MAX,
            pushback: None,
            timed_out: None,
            cancel: None,
            is_timed: began.is_some(),
            has_begun: false,
            retries_given_up: false,
            again: None,
            draws: 0,
            before_change: 0,
        }
    }

    /// Attempts that have ended.
    pub(super) const fn made(&self) -> u32 {
        self.before_change.saturating_add(self.saved.failures)
    }

    pub(super) fn call<'p>(&self, policy: &'p Policy) -> Call<&'p Policy> {
        policy.resume(self.started, self.seed, self.saved).deadline_at(self.deadline)
    }

    pub(super) fn begin_at(&mut self, now: Timestamp, is_the_start: bool) {
        self.started = now;
        self.timeline.begin(now);
        self.attempt_started = is_the_start.then_some(now);
        self.knows_start = is_the_start;
        self.failed_at = now;
    }

    /// The failures are forgotten, and the jitter is new.
    pub(super) fn forget(&mut self, now: Timestamp) {
        self.begin_curve_anew();
        self.before_change = 0;
        self.timeline = Timeline::new(now);
        self.begin_at(now, true);
    }

    /// The next delay is the first again, and the jitter is new. No limit is lifted.
    pub(super) fn begin_curve_anew(&mut self) {
        self.before_change = self.made();
        self.seed = draw(self.seed, u32::MAX);
        self.saved = Saved::default();
    }

    /// Whether there is no more to tell of the call than that one attempt failed.
    pub(super) fn has_little_to_tell(&self) -> bool {
        self.saved.failures == 1 && !self.has_begun && !self.knows_start && self.pushback.is_none()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(Cancel::is_cancelled)
    }

    /// Counts an attempt that ended at `failed_at`, and asks the policy.
    pub(super) fn decide(&mut self, policy: &Policy, verdict: Verdict) -> Decision {
        self.pushback = verdict.pushback().or(self.pushback);
        let mut call = self.call(policy);
        let decision = call.on_failure(self.failed_at, verdict);
        self.saved = call.save();
        self.timeline.catch_up(self.made().saturating_sub(1));
        self.timeline.push(self.attempt_started, self.failed_at);
        match decision {
            // Of attempts before a change the call does not know.
            Decision::Retry(_) | Decision::GiveUp(Reason::PushbackTooLong | Reason::Elapsed)
                if self.made() >= policy.max_attempts && policy.max_attempts != u32::MAX =>
            {
                Decision::GiveUp(Reason::Attempts)
            }
            decision => decision,
        }
    }
}
