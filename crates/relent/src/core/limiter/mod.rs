//! Limiters: how many attempts may be made, in a time or at a time.

mod aimd;
pub(crate) mod aws_adaptive;
mod concurrency;
mod flight;
pub(crate) mod gradient;
#[cfg(all(test, loom))]
mod models;
pub(crate) mod permit;
mod rate;
pub(crate) mod settings;

use self::{
    aimd::Aimd,
    aws_adaptive::{AwsAdaptive, AwsAdaptiveState},
    concurrency::Concurrency,
    gradient::Gradient,
    rate::Rate,
    settings::LimitSettings,
};
use super::{
    outcome::Outcome,
    time::{Timestamp, nanos},
};
use core::time::Duration;

/// How many attempts may be made on one upstream, in a time or at a time.
///
/// Made by a `const fn` and usable in a `static`; all methods take `&self` and allocate nothing.
///
/// ```
/// use relent::{LimitAnswer, Limit, Timestamp};
/// use std::time::Duration;
///
/// static LIMIT: Limit = Limit::rate(100).burst(2);
///
/// let now = Timestamp::ZERO;
/// assert_eq!(LIMIT.acquire(now), LimitAnswer::Granted);
/// assert_eq!(LIMIT.acquire(now), LimitAnswer::Granted);
/// assert_eq!(LIMIT.acquire(now), LimitAnswer::Wait(Duration::from_millis(10)));
/// ```
///
/// ```compile_fail
/// static LIMIT: relent::Limit = relent::Limit::rate(0);
/// ```
#[derive(Debug)]
pub struct Limit {
    settings: LimitSettings,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Rate(Rate),
    Concurrency(Concurrency),
    Aimd(Aimd),
    Gradient(Gradient),
    AwsAdaptive(AwsAdaptive),
}

/// What a limiter answers.
///
/// ```
/// use relent::{Limit, LimitAnswer, Timestamp};
/// use std::time::Duration;
///
/// fn attempt(limit: &Limit, now: Timestamp) -> String {
///     match limit.acquire(now) {
///         LimitAnswer::Granted => "made".to_owned(),
///         LimitAnswer::Wait(wait) => format!("asks again in {wait:?}"),
///         LimitAnswer::Queue(most) => format!("queues for up to {most:?}"),
///         LimitAnswer::Shed => "not made".to_owned(),
///     }
/// }
///
/// let limit = Limit::concurrency(1).queue(1, Duration::from_secs(1));
/// let answers = [(); 3].map(|()| attempt(&limit, Timestamp::ZERO));
/// assert_eq!(answers, ["made", "queues for up to 1s", "not made"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an attempt that was not granted must not be made"]
pub enum LimitAnswer {
    /// The attempt may be made. Its end is told by [`Limit::release`], or [`Limit::give_back`] if it never starts.
    Granted,
    /// Not now: ask again after so long.
    Wait(Duration),
    /// Not now: the caller is in the queue and may stay there for so long. It gets out by [`Limit::enter`], which is
    /// worth trying when an attempt ends, or by [`Limit::leave`].
    Queue(Duration),
    /// No.
    Shed,
}

/// Whom to wake, of those who queue.
///
/// ```
/// use relent::{Limit, LimitAnswer, LimitNext, Timestamp};
/// use std::time::Duration;
///
/// let (limit, now) = (Limit::concurrency(1).queue(9, Duration::from_secs(1)), Timestamp::ZERO);
/// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
/// assert!(matches!(limit.acquire(now), LimitAnswer::Queue(_)));
/// limit.give_back(now);
/// assert_eq!(limit.next(now), Some(LimitNext::Oldest), "nobody has waited long yet");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitNext {
    /// Who has waited longest.
    Oldest,
    /// Who came last: there has been a queue for 100 ms, so those who came first have waited too long already.
    Newest,
}

/// What a limiter knows.
///
/// ```
/// use relent::{Limit, Timestamp};
///
/// let (limit, now) = (Limit::concurrency(3), Timestamp::ZERO);
/// let permit = limit.permit(now).unwrap();
/// let seen = limit.snapshot(now);
/// assert_eq!((seen.limit, seen.in_flight, seen.available), (Some(3.0), Some(1), 2.0));
/// # drop(permit);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitSnapshot {
    /// Attempts that may be in flight; for a rate, permits that may come at once. `None` if it does not limit now.
    pub limit: Option<f64>,
    /// Attempts in flight. `None` for rates, which do not count them.
    pub in_flight: Option<u32>,
    /// How many wait in the queue.
    pub queued: u32,
    /// Permits a second. `None` for what limits attempts in flight.
    pub rate: Option<f64>,
    /// Permits that could be had now.
    pub available: f64,
}

impl Limit {
    /// So many attempts a second, each when it is due: nothing comes at once, not at first and not after idle hours,
    /// unless a [`burst`](Limit::burst) is allowed. 1 to a million, kept to the nanosecond from permit to permit,
    /// rounded up. By the generic cell rate algorithm (ITU-T I.371); one atomic word.
    ///
    /// # Panics
    ///
    /// If the rate is not between 1 and a million. In a `const` or `static`, the panic is a compile error. The same
    /// holds for every constructor here.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::rate(100), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Wait(Duration::from_millis(10)));
    /// ```
    pub const fn rate(per_second: u32) -> Limit {
        LimitSettings::Rate { rate: per_second, per: Duration::from_secs(1), burst: 1 }.must()
    }

    /// How many permits of a [`rate`](Limit::rate) may come at once, after as many have not been used: 1 by default.
    ///
    /// # Panics
    ///
    /// If it is zero, or the limit is no rate.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// let (limit, now) = (Limit::rate(100).burst(5), Timestamp::ZERO);
    /// assert_eq!((0..100).filter(|_| limit.acquire(now) == LimitAnswer::Granted).count(), 5);
    /// ```
    pub const fn burst(self, burst: u32) -> Limit {
        match self.settings {
            LimitSettings::Rate { rate, per, .. } => LimitSettings::Rate { rate, per, burst }.must(),
            _ => panic!("only a rate has a burst"),
        }
    }

    /// The time over which a [`rate`](Limit::rate) is meant, a second by default: `Limit::rate(5).per(MINUTE)`.
    ///
    /// # Panics
    ///
    /// If it is not between 1 ms and a day, or the limit is no rate.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::rate(5).per(Duration::from_secs(60)), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Wait(Duration::from_secs(12)));
    /// ```
    pub const fn per(self, per: Duration) -> Limit {
        match self.settings {
            LimitSettings::Rate { rate, burst, .. } => LimitSettings::Rate { rate, per, burst }.must(),
            _ => panic!("only a rate is over a time"),
        }
    }

    /// So many attempts in flight: a bulkhead. Further ones are shed, or wait in a [`queue`](Limit::queue).
    ///
    /// ```
    /// # use relent::{LimitAnswer, Limit, Timestamp};
    /// let (limit, now) = (Limit::concurrency(2), Timestamp::ZERO);
    /// assert_eq!([limit.acquire(now), limit.acquire(now), limit.acquire(now)], [LimitAnswer::Granted, LimitAnswer::Granted, LimitAnswer::Shed]);
    /// limit.give_back(now);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// ```
    pub const fn concurrency(limit: u32) -> Limit {
        LimitSettings::Concurrency { limit, queue: 0, longest: Duration::ZERO }.must()
    }

    /// A queue before a [`concurrency`](Limit::concurrency): so many may wait, each at most so long.
    ///
    /// ```
    /// # use relent::{LimitAnswer, Limit, LimitNext, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1).queue(1, Duration::from_secs(1)), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Queue(Duration::from_secs(1)));
    /// assert_eq!(limit.acquire(now), LimitAnswer::Shed);
    /// limit.give_back(now);
    /// assert_eq!(limit.next(now), Some(LimitNext::Oldest));
    /// assert!(limit.enter());
    /// ```
    ///
    /// # Panics
    ///
    /// If the limit is no concurrency, or nobody may wait.
    pub const fn queue(self, most: u32, longest: Duration) -> Limit {
        match self.settings {
            LimitSettings::Concurrency { limit, .. } => {
                LimitSettings::Concurrency { limit, queue: most, longest }.must()
            }
            _ => panic!("only a concurrency has a queue"),
        }
    }

    /// Attempts in flight, with a limit that finds itself: up by one for each round of successes while half of it is
    /// in use, down by a tenth for a failure under load or a success that took too long, once a round. Between 1 and
    /// 1000 unless told otherwise. Source: Chiu and Jain, 1989; Netflix concurrency-limits.
    ///
    /// ```
    /// # use relent::{Limit, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::aimd(20), Timestamp::from_nanos(1_000_000_000));
    /// limit.permit(now).unwrap().end(now, Outcome::TimedOut, Duration::from_millis(5));
    /// assert_eq!(limit.snapshot(now).limit, Some(18.0));
    /// ```
    pub const fn aimd(start: u32) -> Limit {
        LimitSettings::Aimd { start, min: 1, max: 1000, slow_after: Duration::MAX }.must()
    }

    /// The least and the most that a limit of [`aimd`](Limit::aimd) can become.
    ///
    /// # Panics
    ///
    /// If the limit does not start between them, is another kind of limit, or `min` is zero.
    ///
    /// ```
    /// # use relent::{Limit, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::aimd(20).between(19, 100), Timestamp::from_nanos(1_000_000_000));
    /// limit.permit(now).unwrap().end(now, Outcome::TimedOut, Duration::from_millis(5));
    /// assert_eq!(limit.snapshot(now).limit, Some(19.0), "18 without a least");
    /// ```
    pub const fn between(self, min: u32, max: u32) -> Limit {
        match self.settings {
            LimitSettings::Aimd { start, slow_after, .. } => LimitSettings::Aimd { start, min, max, slow_after }.must(),
            _ => panic!("only an aimd has a least and a most"),
        }
    }

    /// Successes that take longer count as failures, for [`aimd`](Limit::aimd). No limit by default.
    ///
    /// # Panics
    ///
    /// If it is zero, or another kind of limit.
    ///
    /// ```
    /// # use relent::{Limit, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let limit = Limit::aimd(20).slow_after(Duration::from_secs(1));
    /// let now = Timestamp::from_nanos(1_000_000_000);
    /// limit.permit(now).unwrap().end(now, Outcome::Success, Duration::from_secs(2));
    /// assert_eq!(limit.snapshot(now).limit, Some(18.0));
    /// ```
    pub const fn slow_after(self, slow_after: Duration) -> Limit {
        match self.settings {
            LimitSettings::Aimd { start, min, max, .. } => LimitSettings::Aimd { start, min, max, slow_after }.must(),
            _ => panic!("only an aimd knows slow successes"),
        }
    }

    /// Attempts in flight, with a limit led by latency: Envoy's gradient, `min_rtt * 1.25 / rtt` between 0.5 and 2, each
    /// 100 ms, 3 to 1000, times the share that did not fail. The latency without load is measured at first and each
    /// minute, over 50 answers at a limit of 3; `start` is the limit after the first measurement.
    ///
    /// ```
    /// # use relent::{Limit, Timestamp};
    /// static LIMIT: Limit = Limit::gradient(20);
    /// assert_eq!(LIMIT.snapshot(Timestamp::ZERO).limit, Some(3.0), "measuring");
    /// ```
    pub const fn gradient(start: u32) -> Limit {
        LimitSettings::Gradient { start, max: 1000 }.must()
    }

    /// The AWS SDKs' adaptive mode, exactly: no limit before the far side first throttles; then a rate that is cut to 0.7
    /// and grows back by CUBIC, at least 0.5 a second and at most twice the measured rate of answers.
    ///
    /// ```
    /// # use relent::{LimitAnswer, Limit, Outcome, Timestamp, Verdict};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::aws_adaptive(), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// limit.release(now, Outcome::Failure(Verdict::After(Duration::ZERO)), Duration::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Wait(Duration::from_nanos(2_000_000_001)));
    /// ```
    pub const fn aws_adaptive() -> Limit {
        LimitSettings::AwsAdaptive.must()
    }

    /// Everything the limit says, by name.
    ///
    /// ```
    /// # use relent::{Limit, LimitSettings};
    /// assert!(matches!(Limit::rate(100).settings(), LimitSettings::Rate { rate: 100, burst: 1, .. }));
    /// ```
    pub const fn settings(&self) -> LimitSettings {
        self.settings
    }

    /// The kind, as policy files name it: `rate`, `concurrency`, `aimd`, `gradient`, `aws_adaptive`.
    ///
    /// ```
    /// # use relent::Limit;
    /// assert_eq!(Limit::aimd(20).name(), "aimd");
    /// ```
    pub const fn name(&self) -> &'static str {
        match self.kind {
            Kind::Rate(_) => "rate",
            Kind::Concurrency(_) => "concurrency",
            Kind::Aimd(_) => "aimd",
            Kind::Gradient(_) => "gradient",
            Kind::AwsAdaptive(_) => "aws_adaptive",
        }
    }

    /// Asks for leave for one attempt. [`permit`](Limit::permit) is the same as a guard.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Shed);
    /// limit.release(now, Outcome::Success, Duration::from_millis(3));
    /// ```
    #[inline]
    pub fn acquire(&self, now: Timestamp) -> LimitAnswer {
        match &self.kind {
            Kind::Rate(kind) => kind.acquire(now),
            Kind::Concurrency(kind) => kind.acquire(now),
            Kind::Aimd(kind) => kind.acquire(),
            Kind::Gradient(kind) => kind.acquire(),
            Kind::AwsAdaptive(kind) => kind.acquire(now),
        }
    }

    /// Takes the next permit if it can be had within so long, and says when: who books does not have to ask again, and
    /// those who wait go in the order they came. What is booked and not used is [given back](Limit::give_back). Only a
    /// [`rate`](Limit::rate) knows its future; the others book what they would grant at once.
    ///
    /// ```
    /// # use relent::{Limit, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::rate(10), Timestamp::ZERO);
    /// let within = Duration::from_millis(150);
    /// assert_eq!(limit.book(now, within), Some(Duration::ZERO));
    /// assert_eq!(limit.book(now, within), Some(Duration::from_millis(100)));
    /// assert_eq!(limit.book(now, within), None, "it would be 200 ms");
    /// ```
    pub fn book(&self, now: Timestamp, within: Duration) -> Option<Duration> {
        match &self.kind {
            Kind::Rate(kind) => kind.book(now, nanos(within)).ok().map(Duration::from_nanos),
            _ => match self.acquire(now) {
                LimitAnswer::Granted => Some(Duration::ZERO),
                LimitAnswer::Queue(_) => {
                    self.leave();
                    None
                }
                LimitAnswer::Wait(_) | LimitAnswer::Shed => None,
            },
        }
    }

    /// An attempt that was granted ended; `latency` is how long it took. A [dropped](Outcome::Dropped) one makes room
    /// and counts as neither success nor failure; the permit of a rate is used up, because the far side saw the attempt.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// limit.release(now, Outcome::Success, Duration::from_millis(3));
    /// assert_eq!(limit.snapshot(now).in_flight, Some(0));
    /// ```
    #[inline]
    pub fn release(&self, now: Timestamp, outcome: Outcome, latency: Duration) {
        match &self.kind {
            Kind::Rate(_) => {}
            Kind::Concurrency(kind) => kind.release(),
            Kind::Aimd(kind) => kind.release(now, outcome, latency),
            Kind::Gradient(kind) => kind.release(now, outcome, latency),
            Kind::AwsAdaptive(kind) => kind.release(now, outcome),
        }
    }

    /// An attempt that was granted will never start: as if it had not been granted.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// let (limit, now) = (Limit::rate(100), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// limit.give_back(now); // The caller was cancelled before it sent anything.
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// ```
    #[inline]
    pub fn give_back(&self, now: Timestamp) {
        match &self.kind {
            Kind::Rate(kind) => kind.give_back(),
            Kind::Concurrency(kind) => kind.release(),
            Kind::Aimd(kind) => kind.flight.release(),
            Kind::Gradient(kind) => kind.flight.release(),
            Kind::AwsAdaptive(kind) => kind.give_back(now),
        }
    }

    /// From the queue into flight, if there is room; otherwise the caller stays in the queue.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1).queue(1, Duration::from_secs(1)), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert!(matches!(limit.acquire(now), LimitAnswer::Queue(_)));
    /// assert!(!limit.enter(), "no room yet");
    /// limit.give_back(now);
    /// assert!(limit.enter());
    /// ```
    pub fn enter(&self) -> bool {
        match &self.kind {
            Kind::Concurrency(kind) => kind.enter(),
            _ => false,
        }
    }

    /// Out of the queue: too long, or cancelled.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1).queue(1, Duration::from_secs(1)), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert!(matches!(limit.acquire(now), LimitAnswer::Queue(_)));
    /// limit.leave(); // It waited for as long as it could.
    /// assert_eq!(limit.snapshot(now).queued, 0);
    /// ```
    pub fn leave(&self) {
        if let Kind::Concurrency(kind) = &self.kind {
            kind.leave();
        }
    }

    /// Whom of the queue to wake now; `None` if nobody waits or there is no room.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, LimitNext, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1).queue(1, Duration::from_secs(1)), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert!(matches!(limit.acquire(now), LimitAnswer::Queue(_)));
    /// assert_eq!(limit.next(now), None, "no room");
    /// limit.give_back(now);
    /// assert_eq!(limit.next(now), Some(LimitNext::Oldest));
    /// ```
    pub fn next(&self, now: Timestamp) -> Option<LimitNext> {
        match &self.kind {
            Kind::Concurrency(kind) => kind.next(now),
            _ => None,
        }
    }

    /// What the limiter knows now.
    ///
    /// ```
    /// # use relent::{Limit, Timestamp};
    /// let seen = Limit::rate(100).burst(10).snapshot(Timestamp::ZERO);
    /// assert_eq!((seen.rate, seen.available), (Some(100.0), 10.0));
    /// ```
    pub fn snapshot(&self, now: Timestamp) -> LimitSnapshot {
        let flight = |flight: &flight::Flight| {
            let limit = flight.limit() as f64 / flight::FINE as f64;
            in_flight(limit, flight.in_flight(), 0)
        };
        match &self.kind {
            Kind::Rate(kind) => LimitSnapshot {
                limit: Some((kind.ahead / kind.gap + 1) as f64),
                in_flight: None,
                queued: 0,
                rate: Some(1e9 / kind.gap as f64),
                available: kind.available(now) as f64,
            },
            Kind::Concurrency(kind) => {
                let LimitSettings::Concurrency { limit, .. } = self.settings else { unreachable!() };
                in_flight(f64::from(limit), kind.in_flight(), kind.queued())
            }
            Kind::Aimd(kind) => flight(&kind.flight),
            Kind::Gradient(kind) => flight(&kind.flight),
            Kind::AwsAdaptive(kind) => {
                let AwsAdaptiveState { enabled, bucket, .. } = kind.state(now);
                LimitSnapshot {
                    limit: enabled.then_some(bucket.max_capacity),
                    in_flight: None,
                    queued: 0,
                    rate: enabled.then_some(bucket.fill_rate),
                    available: if enabled { bucket.capacity } else { f64::INFINITY },
                }
            }
        }
    }

    /// What an [`aws_adaptive`](Limit::aws_adaptive) limit knows; `None` for other limits.
    ///
    /// ```
    /// # use relent::{Limit, Timestamp};
    /// let now = Timestamp::ZERO;
    /// assert!(!Limit::aws_adaptive().aws_state(now).unwrap().enabled, "nothing was throttled yet");
    /// assert_eq!(Limit::rate(100).aws_state(now), None);
    /// ```
    pub fn aws_state(&self, now: Timestamp) -> Option<AwsAdaptiveState> {
        match &self.kind {
            Kind::AwsAdaptive(kind) => Some(kind.state(now)),
            _ => None,
        }
    }

    /// The latency without load that a [`gradient`](Limit::gradient) limit has measured; `None` before, and for others.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, mut now, took) = (Limit::gradient(20), Timestamp::ZERO, Duration::from_millis(10));
    /// assert_eq!(limit.min_rtt(), None);
    /// while limit.min_rtt().is_none() {
    ///     assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    ///     now = now + took;
    ///     limit.release(now, Outcome::Success, took);
    /// }
    /// assert_eq!(limit.min_rtt(), Some(took));
    /// ```
    pub fn min_rtt(&self) -> Option<Duration> {
        match &self.kind {
            Kind::Gradient(kind) => Some(kind.min_rtt()).filter(|rtt| !rtt.is_zero()),
            _ => None,
        }
    }

    /// Takes over the state of another limit, when a configuration is loaded anew: what is in flight stays in flight, a
    /// limit that was found is kept within the new bounds, and of a rate so much of the burst stays used. A limit of
    /// another kind is not taken over. `old` should not be in use any more.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// let (old, now) = (Limit::concurrency(2), Timestamp::ZERO);
    /// assert_eq!(old.acquire(now), LimitAnswer::Granted);
    /// let new = Limit::concurrency(10);
    /// new.adopt(&old, now);
    /// assert_eq!(new.snapshot(now).in_flight, Some(1));
    /// ```
    pub fn adopt(&self, old: &Limit, now: Timestamp) {
        match (&self.kind, &old.kind) {
            (Kind::Rate(new), Kind::Rate(old)) => new.adopt(old, now),
            (Kind::Concurrency(new), Kind::Concurrency(old)) => new.adopt(old),
            (Kind::Aimd(new), Kind::Aimd(old)) => new.adopt(old),
            (Kind::Gradient(new), Kind::Gradient(old)) => new.adopt(old),
            (Kind::AwsAdaptive(new), Kind::AwsAdaptive(old)) => new.adopt(old),
            _ => {}
        }
    }

    /// What was taken over as being in flight gives its permits back to another limit, so it is not in flight here.
    pub(crate) fn land(&self) {
        match &self.kind {
            Kind::Concurrency(kind) => kind.reset(),
            Kind::Aimd(kind) => kind.flight.land(),
            Kind::Gradient(kind) => kind.flight.land(),
            Kind::Rate(_) | Kind::AwsAdaptive(_) => {}
        }
    }

    /// As if nothing had happened yet, and nothing were in flight.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// let (limit, now) = (Limit::concurrency(1), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// limit.reset(now);
    /// assert_eq!(limit.snapshot(now).in_flight, Some(0));
    /// ```
    pub fn reset(&self, now: Timestamp) {
        match &self.kind {
            Kind::Rate(kind) => kind.reset(),
            Kind::Concurrency(kind) => kind.reset(),
            Kind::Aimd(kind) => kind.reset(),
            Kind::Gradient(kind) => kind.reset(),
            Kind::AwsAdaptive(kind) => kind.reset(now),
        }
    }
}

fn in_flight(limit: f64, flying: u32, queued: u32) -> LimitSnapshot {
    let available = (limit - f64::from(flying)).max(0.0);
    LimitSnapshot { limit: Some(limit), in_flight: Some(flying), queued, rate: None, available }
}
