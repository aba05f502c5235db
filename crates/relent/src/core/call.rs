//! One operation under a policy: the state machine that decides after each failure.
//!
//! It reads no clock and draws from no shared generator: `now` comes from whoever drives it, and the random number of
//! failure `k` is a function of the call's seed and `k` alone. An executor, a simulator and a test drive the same code.

use super::{
    backoff::Step,
    jitter::PackedJitter,
    policy::Policy,
    rng,
    time::{Timestamp, nanos},
    verdict::{Decision, Reason, Verdict},
};
use core::{borrow::Borrow, time::Duration};

/// One operation under a policy: its first attempt and all its retries.
///
/// ```
/// use relent::{Decision, Policy, Reason, Timestamp, Verdict};
/// use std::time::Duration;
///
/// let policy = Policy::constant(Duration::from_secs(1)).jitter(relent::Jitter::None).max_attempts(2);
/// let mut now = Timestamp::ZERO;
/// let mut call = policy.call(now, 42);
///
/// assert_eq!(call.on_failure(now, Verdict::Transient), Decision::Retry(Duration::from_secs(1)));
/// now = now + Duration::from_secs(1);
/// assert_eq!(call.on_failure(now, Verdict::Transient), Decision::GiveUp(Reason::Attempts));
/// ```
///
/// It borrows its policy, or owns it: [`into_owned`](Call::into_owned) makes one that can be kept in a struct beside it.
#[derive(Clone, Debug)]
pub struct Call<P = Policy> {
    policy: P,
    seed: u64,
    memory: u64,
    started: Timestamp,
    deadline: Timestamp,
    /// No attempt starts later than this: by `max_elapsed` and the deadline, whichever comes first.
    latest: Timestamp,
    failures: u32,
}

const _: () = assert!(size_of::<Call<&Policy>>() <= 64);

/// What a call remembers from failure to failure, apart from what its owner knows anyway (policy, seed and start).
///
/// A simulator with ten million calls keeps these and no more: [`Call::save`] takes it out, [`Policy::resume`] goes on.
/// `Saved::default()` is a call that has not failed yet, under any policy.
///
/// ```
/// use relent::{Policy, Saved, Timestamp, Verdict};
///
/// let (policy, now) = (Policy::default(), Timestamp::ZERO);
/// let mut call = policy.call(now, 7);
/// call.on_failure(now, Verdict::Transient);
/// let saved = call.save();
/// assert_eq!(saved.failures, 1);
/// let decision = policy.resume(now, 7, saved).on_failure(now, Verdict::Transient);
/// assert_eq!(decision, call.on_failure(now, Verdict::Transient));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Failures so far.
    pub failures: u32,
    /// What the policy's rule remembers from delay to delay: opaque.
    pub memory: u64,
}

impl Policy {
    /// A call under this policy, begun at `now`: the state machine that decides after each failure.
    ///
    /// `seed` must differ from call to call, or calls share their jitter.
    ///
    /// ```
    /// use relent::{Decision, Policy, Reason, Timestamp, Verdict};
    ///
    /// let policy = Policy::immediate().max_attempts(2);
    /// let mut call = policy.call(Timestamp::ZERO, 7);
    /// assert!(matches!(call.on_failure(Timestamp::ZERO, Verdict::Transient), Decision::Retry(_)));
    /// assert_eq!(call.on_failure(Timestamp::ZERO, Verdict::Transient), Decision::GiveUp(Reason::Attempts));
    /// ```
    #[inline]
    pub const fn call(&self, now: Timestamp, seed: u64) -> Call<&Policy> {
        Call::new(self, now, seed)
    }

    /// Goes on with a call that was [saved](Call::save): the same policy, start and seed, or it is another call.
    ///
    /// ```
    /// # use relent::{Policy, Timestamp, Verdict};
    /// let (policy, now) = (Policy::default(), Timestamp::ZERO);
    /// let mut call = policy.call(now, 7);
    /// call.on_failure(now, Verdict::Transient);
    /// let later = policy.resume(now, 7, call.save());
    /// assert_eq!((later.attempt(), later.failures()), (2, 1));
    /// ```
    #[inline]
    pub const fn resume(&self, started: Timestamp, seed: u64, saved: Saved) -> Call<&Policy> {
        Call::resume(self, started, seed, saved)
    }
}

/// A pushback is spread over a tenth of itself: enough that clients told the same second do not share it, little
/// enough that nobody waits much longer than told.
const PUSHBACK_SPREAD: u64 = 10;

/// No attempt starts later than this.
const fn latest(policy: &Policy, started: Timestamp, deadline: Timestamp) -> Timestamp {
    let by_elapsed = started.plus_nanos(policy.max_elapsed).as_nanos();
    let before_end = match end(policy, started, deadline) {
        Timestamp::MAX => u64::MAX,
        end => end.as_nanos().saturating_sub(1),
    };
    Timestamp::from_nanos(if by_elapsed < before_end { by_elapsed } else { before_end })
}

/// The moment at which everything ends: the deadline, or the end of the policy's timeout.
const fn end(policy: &Policy, started: Timestamp, deadline: Timestamp) -> Timestamp {
    let by_timeout = started.plus_nanos(policy.timeout_nanos());
    if by_timeout.as_nanos() < deadline.as_nanos() { by_timeout } else { deadline }
}

impl<'a> Call<&'a Policy> {
    #[inline]
    const fn new(policy: &'a Policy, now: Timestamp, seed: u64) -> Self {
        Call::resume(policy, now, seed, Saved { failures: 0, memory: 0 })
    }

    #[inline]
    const fn resume(policy: &'a Policy, started: Timestamp, seed: u64, saved: Saved) -> Self {
        let Saved { failures, memory } = saved;
        // Before the first failure there is but one thing that can be remembered.
        let memory = if failures == 0 { policy.first_memory() } else { memory };
        let deadline = Timestamp::MAX;
        Call { policy, seed, memory, started, deadline, latest: latest(policy, started, deadline), failures }
    }

    /// The same call with a policy of its own, to be kept where the policy it was made of does not live long enough.
    ///
    /// ```
    /// use relent::{Call, Policy, Timestamp, Verdict};
    ///
    /// struct Connection {
    ///     policy: Policy,
    ///     call: Call,
    /// }
    ///
    /// let policy = Policy::default();
    /// let mut connection = Connection { policy, call: policy.call(Timestamp::ZERO, 7).into_owned() };
    /// connection.call.on_failure(Timestamp::ZERO, Verdict::Transient);
    /// assert_eq!((connection.call.attempt(), connection.policy), (2, policy));
    /// ```
    #[must_use]
    pub fn into_owned(self) -> Call<Policy> {
        let Call { policy, seed, memory, started, deadline, latest, failures } = self;
        Call { policy: *policy, seed, memory, started, deadline, latest, failures }
    }
}

impl<P: Borrow<Policy>> Call<P> {
    #[inline(always)]
    fn policy(&self) -> &Policy {
        self.policy.borrow()
    }

    /// What must be kept to go on with this call later: see [`Policy::resume`]. A deadline is not part of it.
    ///
    /// ```
    /// # use relent::{Policy, Saved, Timestamp};
    /// let policy = Policy::default();
    /// assert_eq!(policy.call(Timestamp::ZERO, 7).save().failures, Saved::default().failures);
    /// ```
    #[inline]
    pub const fn save(&self) -> Saved {
        Saved { failures: self.failures, memory: self.memory }
    }

    /// The same call with a point in time at which its answer is worth nothing any more: no attempt starts at or
    /// after it.
    ///
    /// ```
    /// use relent::{Decision, Policy, Reason, Timestamp, Verdict};
    /// use std::time::Duration;
    ///
    /// let (policy, now) = (Policy::constant(Duration::from_secs(9)).jitter(relent::Jitter::None), Timestamp::ZERO);
    /// let mut call = policy.call(now, 1).deadline_at(now + Duration::from_secs(9));
    /// assert_eq!(call.on_failure(now, Verdict::Transient), Decision::GiveUp(Reason::Elapsed));
    /// ```
    #[must_use]
    pub fn deadline_at(mut self, at: Timestamp) -> Self {
        self.deadline = at;
        self.limit();
        self
    }

    /// How long to wait before the first attempt: a random part of the policy's `spread`, zero without. The limits of
    /// time bound the range it is drawn from, so that the first attempt starts within them.
    ///
    /// ```
    /// # use relent::{Policy, Timestamp};
    /// # use std::time::Duration;
    /// let policy = Policy::default().spread(Duration::from_secs(60));
    /// let waits: Vec<Duration> = (0..1000).map(|seed| policy.call(Timestamp::ZERO, seed).spread()).collect();
    /// assert!(waits.iter().all(|wait| *wait < Duration::from_secs(60)));
    /// assert!(waits.iter().max().unwrap().as_secs() > 55);
    /// ```
    pub fn spread(&self) -> Duration {
        self.spread_over(self.policy().spread.nanos())
    }

    /// As [`spread`](Call::spread), over so many nanoseconds instead of the policy's.
    pub(crate) fn spread_over(&self, most: u64) -> Duration {
        match most {
            0 => Duration::ZERO,
            most => {
                let left = nanos(self.latest.since(self.started)).saturating_add(1);
                Duration::from_nanos(rng::scale(rng::draw(self.seed, 0), most.min(left)))
            }
        }
    }

    /// Whether an attempt may still start at `now`: not after `max_elapsed`, nor at or after the deadline or the
    /// policy's timeout. For whoever woke later than asked, and for a deadline that had passed when the call began.
    ///
    /// ```
    /// use relent::{Policy, Timestamp};
    /// use std::time::Duration;
    ///
    /// let policy = Policy::default().timeout(Duration::from_secs(1));
    /// let call = policy.call(Timestamp::ZERO, 1);
    /// assert!(call.may_start(Timestamp::ZERO) && !call.may_start(Timestamp::ZERO + Duration::from_secs(1)));
    /// ```
    #[inline]
    pub fn may_start(&self, now: Timestamp) -> bool {
        // A deadline at the epoch leaves no moment before it.
        now <= self.latest && self.end() > now
    }

    /// The attempt that is under way or about to start: 1 before the first failure.
    ///
    /// ```
    /// let policy = relent::Policy::default();
    /// assert_eq!(policy.call(relent::Timestamp::ZERO, 7).attempt(), 1);
    /// ```
    pub const fn attempt(&self) -> u32 {
        self.failures.saturating_add(1)
    }

    /// Failures so far, which is the number of attempts made when the call has been given up.
    ///
    /// ```
    /// # use relent::{Policy, Timestamp, Verdict};
    /// let policy = Policy::default();
    /// let mut call = policy.call(Timestamp::ZERO, 7);
    /// call.on_failure(Timestamp::ZERO, Verdict::Transient);
    /// assert_eq!(call.failures(), 1);
    /// ```
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// The time since the call began.
    ///
    /// ```
    /// # use relent::{Policy, Timestamp};
    /// # use std::time::Duration;
    /// let (policy, second) = (Policy::default(), Duration::from_secs(1));
    /// assert_eq!(policy.call(Timestamp::ZERO, 7).elapsed(Timestamp::ZERO + second), second);
    /// ```
    pub const fn elapsed(&self, now: Timestamp) -> Duration {
        now.since(self.started)
    }

    /// How long an attempt that starts now may take: the attempt timeout, or what is left until the deadline or the end
    /// of the policy's timeout, whichever is least; `None` without any.
    ///
    /// ```
    /// # use relent::{Policy, Timestamp};
    /// # use std::time::Duration;
    /// let (now, second) = (Timestamp::ZERO, Duration::from_secs(1));
    /// let policy = Policy::default().attempt_timeout(2 * second).timeout(5 * second);
    /// let call = policy.call(now, 7);
    /// assert_eq!(call.attempt_limit(now), Some(2 * second));
    /// assert_eq!(call.attempt_limit(now + 4 * second), Some(second), "what is left of the call");
    /// assert_eq!(Policy::default().call(now, 7).attempt_limit(now), None);
    /// ```
    pub fn attempt_limit(&self, now: Timestamp) -> Option<Duration> {
        let left = self.time_left(now).map_or(u64::MAX, nanos);
        match self.policy().attempt_timeout.nanos().min(left) {
            u64::MAX => None,
            limit => Some(Duration::from_nanos(limit)),
        }
    }

    /// What is left of the call at `now`, whatever one attempt may take; `None` is no limit.
    pub(crate) fn time_left(&self, now: Timestamp) -> Option<Duration> {
        match self.end() {
            Timestamp::MAX => None,
            end => Some(end.since(now)),
        }
    }

    /// How long an attempt may still be waited for at `now`.
    pub(crate) const fn left(&self, now: Timestamp) -> Duration {
        self.latest.since(now)
    }

    fn end(&self) -> Timestamp {
        end(self.policy(), self.started, self.deadline)
    }

    /// Decides about a failure that was noticed at `now`.
    ///
    /// A verdict stops the call before a limit is looked at, and limits are looked at before a delay is drawn, so that
    /// the reason is always the first one that holds: permanent, overloaded, attempts, pushback too long, elapsed.
    ///
    /// ```
    /// # use relent::{Decision, Policy, Reason, Timestamp, Verdict};
    /// let policy = Policy::default();
    /// let mut call = policy.call(Timestamp::ZERO, 7);
    /// assert!(matches!(call.on_failure(Timestamp::ZERO, Verdict::Transient), Decision::Retry(_)));
    /// assert_eq!(call.on_failure(Timestamp::ZERO, Verdict::Permanent), Decision::GiveUp(Reason::Permanent));
    /// ```
    #[inline]
    pub fn on_failure(&mut self, now: Timestamp, verdict: Verdict) -> Decision {
        let draw = rng::draw(self.seed, self.failures.saturating_add(1));
        self.on_failure_with(now, verdict, draw)
    }

    /// [`on_failure`](Call::on_failure) with a draw of the caller's, which tests force.
    ///
    /// ```
    /// # use relent::{Decision, Policy, Timestamp, Verdict};
    /// # use std::time::Duration;
    /// let (policy, now) = (Policy::exponential(Duration::from_secs(1)), Timestamp::ZERO);
    /// let least = policy.call(now, 7).on_failure_with(now, Verdict::Transient, 0);
    /// assert_eq!(least, Decision::Retry(Duration::ZERO));
    /// let middle = policy.call(now, 7).on_failure_with(now, Verdict::Transient, 1 << 63);
    /// assert_eq!(middle, Decision::Retry(Duration::from_millis(500)));
    /// ```
    #[inline(always)]
    pub fn on_failure_with(&mut self, now: Timestamp, verdict: Verdict, draw: u64) -> Decision {
        match self.delay_after_failure(now, verdict, draw) {
            Ok(delay) => Decision::Retry(Duration::from_nanos(delay)),
            Err(reason) => Decision::GiveUp(reason),
        }
    }

    /// Forgets the failures: the next one is the first again, `max_elapsed` counts from `now`, and the jitter is new.
    ///
    /// ```
    /// # use relent::{Policy, Timestamp, Verdict};
    /// let policy = Policy::default();
    /// let mut call = policy.call(Timestamp::ZERO, 7);
    /// call.on_failure(Timestamp::ZERO, Verdict::Transient);
    /// call.reset(Timestamp::ZERO);
    /// assert_eq!(call.attempt(), 1);
    /// ```
    pub fn reset(&mut self, now: Timestamp) {
        self.seed = rng::draw(self.seed, u32::MAX);
        self.memory = self.policy().first_memory();
        self.failures = 0;
        self.started = now;
        self.limit();
    }

    fn limit(&mut self) {
        self.latest = latest(self.policy(), self.started, self.deadline);
    }

    #[inline(always)]
    fn delay_after_failure(&mut self, now: Timestamp, verdict: Verdict, draw: u64) -> Result<u64, Reason> {
        self.failures = self.failures.saturating_add(1);
        let pushback = match verdict {
            Verdict::Transient => None,
            Verdict::After(pushback) | Verdict::Turn(pushback) => Some(nanos(pushback)),
            Verdict::Permanent => return Err(Reason::Permanent),
            Verdict::Overloaded => return Err(Reason::Overloaded),
        };
        if self.failures >= self.policy().max_attempts && self.policy().max_attempts != u32::MAX {
            return Err(Reason::Attempts);
        }
        if let Some(pushback) = pushback
            && (pushback > self.policy().max_pushback.nanos() || self.is_too_late(now, pushback))
        {
            return Err(Reason::PushbackTooLong);
        }
        let own = self.own_delay(now, verdict, draw)?;
        let delay = match pushback {
            None => own,
            Some(turn) if matches!(verdict, Verdict::Turn(_)) => own.max(turn),
            Some(_) if self.policy().handles_pushback() => own,
            Some(pushback) => own.max(self.spread_pushback(now, pushback, draw)),
        };
        if self.is_too_late(now, delay) {
            return Err(Reason::Elapsed);
        }
        Ok(delay)
    }

    #[inline(always)]
    fn own_delay(&mut self, now: Timestamp, verdict: Verdict, draw: u64) -> Result<u64, Reason> {
        match self.policy.borrow().common_delay(&mut self.memory, draw) {
            Some(delay) => Ok(delay),
            None => self.other_delay(now, verdict, draw),
        }
    }

    fn other_delay(&mut self, now: Timestamp, verdict: Verdict, draw: u64) -> Result<u64, Reason> {
        let mut step = Step { failures: self.failures, elapsed: self.elapsed(now), verdict, draw, memory: self.memory };
        let delay = self.policy().delay(&mut step).ok_or(Reason::Attempts)?;
        self.memory = step.memory;
        Ok(delay)
    }

    /// Never earlier than told, and a little later, unless the policy wants no jitter at all or that little would be too
    /// late.
    fn spread_pushback(&self, now: Timestamp, pushback: u64, draw: u64) -> u64 {
        let later = pushback.saturating_add(rng::scale(rng::mix(draw), pushback / PUSHBACK_SPREAD));
        if self.policy().jitter == PackedJitter::NONE || self.is_too_late(now, later) { pushback } else { later }
    }

    #[inline]
    fn is_too_late(&self, now: Timestamp, delay: u64) -> bool {
        now.plus_nanos(delay) > self.latest
    }
}

#[cfg(test)]
mod tests;
