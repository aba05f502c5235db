//! How a limit is made: its kind, and what more it is told.

use super::{
    Kind, Limit, aimd::Aimd, aws_adaptive::AwsAdaptive, concurrency::Concurrency, gradient::Gradient, permits::Permits,
    rate::Rate, settings::LimitSettings,
};
use crate::core::{invalid::Invalid, time::nanos};
use core::time::Duration;

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
    /// ```compile_fail
    /// const NO: relent::Limit = relent::Limit::rate(0);
    /// ```
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::rate(100), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Wait(Duration::from_millis(10)));
    /// ```
    #[track_caller]
    pub const fn rate(per_second: u32) -> Limit {
        LimitSettings::Rate { rate: per_second, per: Duration::from_secs(1), burst: 1 }.must()
    }

    /// How many permits of a [`rate`](Limit::rate) may come at once, after as many have not been used: 1 by default.
    ///
    /// # Panics
    ///
    /// If it is zero, or the limit is no rate.
    ///
    /// ```compile_fail
    /// const NO: relent::Limit = relent::Limit::rate(100).burst(0);
    /// ```
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// let (limit, now) = (Limit::rate(100).burst(5), Timestamp::ZERO);
    /// assert_eq!((0..100).filter(|_| limit.acquire(now) == LimitAnswer::Granted).count(), 5);
    /// ```
    #[must_use]
    #[track_caller]
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
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Limit = relent::Limit::rate(100).per(Duration::ZERO);
    /// ```
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::rate(5).per(Duration::from_secs(60)), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Wait(Duration::from_secs(12)));
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn per(self, per: Duration) -> Limit {
        match self.settings {
            LimitSettings::Rate { rate, burst, .. } => LimitSettings::Rate { rate, per, burst }.must(),
            _ => panic!("only a rate is over a time"),
        }
    }

    /// A [`rate`](Limit::rate) whose permits somebody else grants: what it says is kept by [`Permits`], and only told here.
    /// Said last: [`burst`](Limit::burst) and [`per`](Limit::per) make a limit that counts for itself.
    ///
    /// # Panics
    ///
    /// If the limit is no rate.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Permits, Timestamp};
    /// # use std::time::Duration;
    /// #[derive(Debug)]
    /// struct Nobody;
    ///
    /// impl Permits for Nobody {
    ///     fn book(&self, _: Timestamp, _: Duration) -> Result<Duration, Duration> {
    ///         Err(Duration::from_secs(1))
    ///     }
    ///     fn give_back(&self, _: Timestamp) {}
    ///     fn available(&self, _: Timestamp) -> u64 {
    ///         0
    ///     }
    /// }
    ///
    /// let limit = Limit::rate(100).granted_by(&Nobody);
    /// assert_eq!(limit.acquire(Timestamp::ZERO), LimitAnswer::Wait(Duration::from_secs(1)));
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn granted_by(self, rule: &'static dyn Permits) -> Limit {
        match self.settings {
            settings @ LimitSettings::Rate { .. } => Limit { settings, kind: Kind::Granted(rule) },
            _ => panic!("only the permits of a rate can be granted by somebody else"),
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
    ///
    /// ```compile_fail
    /// const NO: relent::Limit = relent::Limit::concurrency(0);
    /// ```
    #[track_caller]
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
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Limit = relent::Limit::concurrency(20).queue(5, Duration::ZERO);
    /// ```
    #[must_use]
    #[track_caller]
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
    ///
    /// ```compile_fail
    /// const NO: relent::Limit = relent::Limit::aimd(0);
    /// ```
    #[track_caller]
    pub const fn aimd(start: u32) -> Limit {
        LimitSettings::Aimd { start, min: 1, max: 1000, slow_after: Duration::MAX }.must()
    }

    /// The least and the most that a limit of [`aimd`](Limit::aimd) can become.
    ///
    /// # Panics
    ///
    /// If the limit does not start between them, is another kind of limit, or `min` is zero.
    ///
    /// ```compile_fail
    /// const NO: relent::Limit = relent::Limit::aimd(20).between(30, 10);
    /// ```
    ///
    /// ```
    /// # use relent::{Limit, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::aimd(20).between(19, 100), Timestamp::from_nanos(1_000_000_000));
    /// limit.permit(now).unwrap().end(now, Outcome::TimedOut, Duration::from_millis(5));
    /// assert_eq!(limit.snapshot(now).limit, Some(19.0), "18 without a least");
    /// ```
    #[must_use]
    #[track_caller]
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
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Limit = relent::Limit::aimd(20).slow_after(Duration::ZERO);
    /// ```
    ///
    /// ```
    /// # use relent::{Limit, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let limit = Limit::aimd(20).slow_after(Duration::from_secs(1));
    /// let now = Timestamp::from_nanos(1_000_000_000);
    /// limit.permit(now).unwrap().end(now, Outcome::Success, Duration::from_secs(2));
    /// assert_eq!(limit.snapshot(now).limit, Some(18.0));
    /// ```
    #[must_use]
    #[track_caller]
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
    ///
    /// ```compile_fail
    /// const NO: relent::Limit = relent::Limit::gradient(2);
    /// ```
    #[track_caller]
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
}

impl LimitSettings {
    /// The limit of these settings, with nothing in flight.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the setting that makes no sense, why, and what to write instead.
    pub const fn limit(self) -> Result<Limit, Invalid> {
        if let Some(invalid) = self.problem() {
            return Err(invalid);
        }
        let kind = match self {
            LimitSettings::Rate { rate, per, burst } => Kind::Rate(Rate::new(rate, nanos(per), burst)),
            LimitSettings::Concurrency { limit, queue, longest } => {
                Kind::Concurrency(Concurrency::new(limit, queue, longest))
            }
            LimitSettings::Aimd { start, min, max, slow_after } => Kind::Aimd(Aimd::new(start, min, max, slow_after)),
            LimitSettings::Gradient { start, max } => Kind::Gradient(Gradient::new(start, max)),
            LimitSettings::AwsAdaptive => Kind::AwsAdaptive(AwsAdaptive::new()),
        };
        Ok(Limit { settings: self, kind })
    }

    #[track_caller]
    pub(super) const fn must(self) -> Limit {
        if let Some(invalid) = self.problem() {
            invalid.refuse();
        }
        match self.limit() {
            Ok(limit) => limit,
            Err(_) => unreachable!(),
        }
    }
}
