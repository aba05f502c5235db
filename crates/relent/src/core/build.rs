//! How policies are made: constructors by curve, and builders for the rest. All `const`.

use super::{
    backoff::Backoff,
    curve::{Curve, Shape},
    jitter::Jitter,
    policy::Policy,
    settings::{DEFAULT_BASE, NO_ATTEMPT, NO_TIME, Settings},
    time::{Millis, nanos},
};
use core::time::Duration;

impl Policy {
    /// Delays of `base`, `base * 2`, `base * 4` ... up to the cap. [`factor`](Policy::factor) changes the 2.
    ///
    /// # Panics
    ///
    /// If `base` is zero. In a `const`, the panic is a compile error. The same holds for every builder.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let policy = Policy::exponential(Duration::from_millis(100)).jitter(Jitter::None).max_attempts(5);
    /// let delays: Vec<_> = policy.delays(1).map(|d| d.as_millis()).collect();
    /// assert_eq!(delays, [100, 200, 400, 800]);
    /// ```
    #[track_caller]
    pub const fn exponential(base: Duration) -> Policy {
        Policy::of(Curve::Exponential { base, factor: 2.0 })
    }

    /// The same delay each time.
    ///
    /// # Panics
    ///
    /// If `base` is zero; [`Policy::immediate`] is the name of that.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let policy = Policy::constant(Duration::from_millis(100)).jitter(Jitter::None).max_attempts(4);
    /// let delays: Vec<_> = policy.delays(1).map(|d| d.as_millis()).collect();
    /// assert_eq!(delays, [100, 100, 100]);
    /// ```
    #[track_caller]
    pub const fn constant(base: Duration) -> Policy {
        Policy::of(Curve::Constant { base })
    }

    /// Delays of `base`, `base + step`, `base + 2 * step` ... up to the cap. The step is the base, unless
    /// [`step`](Policy::step) says otherwise.
    ///
    /// # Panics
    ///
    /// If `base` is zero.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let policy = Policy::linear(Duration::from_millis(100)).jitter(Jitter::None).max_attempts(4);
    /// let delays: Vec<_> = policy.delays(1).map(|d| d.as_millis()).collect();
    /// assert_eq!(delays, [100, 200, 300]);
    /// ```
    #[track_caller]
    pub const fn linear(base: Duration) -> Policy {
        Policy::of(Curve::Linear { base, step: base })
    }

    /// Delays of `base` times 1, 1, 2, 3, 5, 8 ... up to the cap.
    ///
    /// # Panics
    ///
    /// If `base` is zero.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let policy = Policy::fibonacci(Duration::from_millis(100)).jitter(Jitter::None).max_attempts(6);
    /// let delays: Vec<_> = policy.delays(1).map(|d| d.as_millis()).collect();
    /// assert_eq!(delays, [100, 100, 200, 300, 500]);
    /// ```
    #[track_caller]
    pub const fn fibonacci(base: Duration) -> Policy {
        Policy::of(Curve::Fibonacci { base })
    }

    /// No delay at all: for tests, and for failures that cost nobody anything.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let policy = Policy::immediate().max_attempts(3);
    /// let delays: Vec<_> = policy.delays(1).map(|d| d.as_millis()).collect();
    /// assert_eq!(delays, [0, 0]);
    /// ```
    pub const fn immediate() -> Policy {
        Policy::of(Curve::Immediate)
    }

    /// A random whole number of slots, `0..2^min(k,10)` after failure `k`; gives up after the 16th attempt
    /// (truncated binary exponential backoff, IEEE 802.3 clause 4.2.3.2.5). No cap, no further jitter.
    ///
    /// # Panics
    ///
    /// If `slot` is zero.
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// let ethernet = Policy::slots(Duration::from_nanos(51_200));
    /// assert_eq!(ethernet.schedule().count(), 15);
    /// assert_eq!(ethernet.schedule().last().unwrap().total.max, Duration::from_nanos(366_131_200));
    /// ```
    #[track_caller]
    pub const fn slots(slot: Duration) -> Policy {
        Policy::of(Curve::Slots { slot })
    }

    /// These delays in turn; the call gives up when the list ends. No cap, no jitter, no other limit of attempts.
    ///
    /// # Panics
    ///
    /// If the list is empty.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// const POLICY: Policy = Policy::list(&[Duration::from_secs(15), Duration::from_secs(30)]);
    /// let delays: Vec<_> = POLICY.delays(1).map(|d| d.as_millis()).collect();
    /// assert_eq!(delays, [15_000, 30_000]);
    /// ```
    ///
    /// A policy lives as long as the program, and so must its list. One that is only known when the program runs is
    /// leaked, once:
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// let configured = vec![Duration::from_secs(1), Duration::from_secs(5)];
    /// let policy = Policy::list(configured.leak());
    /// assert_eq!(policy.schedule().count(), 2);
    /// ```
    #[track_caller]
    pub const fn list(delays: &'static [Duration]) -> Policy {
        Policy::of(Curve::List { delays, repeat: false })
    }

    /// These delays in turn, then the last one for ever, up to 8 attempts unless told otherwise. No cap, no jitter.
    ///
    /// # Panics
    ///
    /// If the list is empty or its last delay is zero.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// const POLICY: Policy = Policy::list_repeating(&[Duration::from_secs(1), Duration::from_secs(5)]).max_attempts(5);
    /// let delays: Vec<_> = POLICY.delays(1).map(|d| d.as_millis()).collect();
    /// assert_eq!(delays, [1000, 5000, 5000, 5000]);
    /// ```
    #[track_caller]
    pub const fn list_repeating(delays: &'static [Duration]) -> Policy {
        Policy::of(Curve::List { delays, repeat: true })
    }

    /// Delays by a rule of the user's own. No cap, no further jitter; 8 attempts unless told otherwise.
    ///
    /// ```
    /// # use relent::{Policy, compat::{Formula, Growth}};
    /// static RULE: Formula = Formula { growth: Growth::Power { factor: 3.0 }, ..Formula::SECONDS };
    /// const POLICY: Policy = Policy::custom(&RULE).max_attempts(4);
    /// let delays: Vec<u64> = POLICY.delays(1).map(|delay| delay.as_secs()).collect();
    /// assert_eq!(delays, [1, 3, 9]);
    /// ```
    pub const fn custom(rule: &'static dyn Backoff) -> Policy {
        Policy::of(Curve::Custom(rule))
    }

    #[track_caller]
    const fn of(curve: Curve) -> Policy {
        Settings::of(curve).must()
    }

    /// The multiplier of an exponential curve, at least 1.
    ///
    /// # Panics
    ///
    /// If the curve is not exponential, or the factor is less than 1 or not finite.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let policy = Policy::exponential(Duration::from_secs(1)).factor(3.0).jitter(Jitter::None).max_attempts(4);
    /// let delays: Vec<u64> = policy.delays(1).map(|delay| delay.as_secs()).collect();
    /// assert_eq!(delays, [1, 3, 9]);
    /// ```
    #[track_caller]
    pub const fn factor(self, factor: f64) -> Policy {
        match self.shape {
            Shape::Exponential { base, .. } => {
                let base = Duration::from_nanos(base);
                Settings { curve: Curve::Exponential { base, factor }, ..self.settings() }.must()
            }
            _ => panic!("only an exponential curve has a factor"),
        }
    }

    /// What each further failure adds to the delays of a linear curve. Zero is a constant curve.
    ///
    /// # Panics
    ///
    /// If the curve is not linear.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let ms = Duration::from_millis;
    /// let policy = Policy::linear(ms(100)).step(ms(50)).jitter(Jitter::None).max_attempts(4);
    /// assert_eq!(policy.delays(1).collect::<Vec<_>>(), [ms(100), ms(150), ms(200)]);
    /// ```
    #[track_caller]
    pub const fn step(self, step: Duration) -> Policy {
        match self.shape {
            Shape::Linear { base, .. } => {
                let base = Duration::from_nanos(base);
                Settings { curve: Curve::Linear { base, step }, ..self.settings() }.must()
            }
            _ => panic!("only a linear curve has a step"),
        }
    }

    /// The most one delay may be, jitter included. Jitter keeps its width at the cap: see [`Jitter`].
    ///
    /// `Duration::MAX` means unlimited: no cap, as `None` does in [`Settings::cap`](crate::Settings::cap). So does whatever is
    /// longer than 584 years, the most that 64 bits of nanoseconds can count, at which delays end in any case.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let growing = Policy::exponential(Duration::from_secs(1)).jitter(Jitter::None);
    /// let longest = |policy: Policy| policy.max_attempts(9).delays(1).max().unwrap().as_secs();
    /// assert_eq!(longest(growing), 64);
    /// assert_eq!(longest(growing.cap(Duration::from_secs(10))), 10);
    /// assert_eq!(longest(growing.cap(Duration::MAX)), 128);
    /// ```
    ///
    /// # Panics
    ///
    /// If the cap is zero, shorter than the base, or leaves no room for additive jitter.
    #[track_caller]
    pub const fn cap(self, cap: Duration) -> Policy {
        Settings { cap: Some(cap), ..self.settings() }.must()
    }

    /// How delays are spread.
    ///
    /// # Panics
    ///
    /// If a proportional share is not between 0 and 1, if additive jitter does not fit under the cap, if slots (which
    /// are random themselves) get any, or if decorrelated jitter has no base to start from.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let policy = Policy::constant(Duration::from_secs(10)).jitter(Jitter::Proportional(0.2));
    /// let delay = policy.schedule().next().unwrap().delay;
    /// assert_eq!((delay.min.as_secs(), delay.max.as_secs()), (8, 12));
    /// ```
    #[track_caller]
    pub const fn jitter(self, jitter: Jitter) -> Policy {
        Settings { jitter, ..self.settings() }.must()
    }

    /// The most attempts of one call, the first included: at least 1. `u32::MAX` means no limit.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// ```
    /// # use relent::Policy;
    /// const POLICY: Policy = Policy::immediate().max_attempts(3);
    /// let err = POLICY.retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    /// assert_eq!(err.attempts, 3);
    /// ```
    #[inline]
    #[track_caller]
    pub const fn max_attempts(self, most: u32) -> Policy {
        if most == 0 {
            NO_ATTEMPT.refuse();
        }
        Policy { max_attempts: most, ..self }
    }

    /// No limit on attempts. Something else should end the call: `max_elapsed`, a deadline, cancellation.
    ///
    /// ```
    /// # use relent::Policy;
    /// use std::time::Duration;
    ///
    /// let policy = Policy::exponential(Duration::from_secs(1)).unlimited_attempts().max_elapsed(Duration::from_secs(3600));
    /// assert_eq!(policy.settings().max_attempts, None);
    /// ```
    #[inline]
    pub const fn unlimited_attempts(self) -> Policy {
        Policy { max_attempts: u32::MAX, ..self }
    }

    /// No attempt starts later than this after the call began. A call gives up as soon as its next attempt would.
    /// Nothing is cut: an attempt that has started in time may end when it likes. [`timeout`](Policy::timeout) cuts.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let sec = Duration::from_secs(1);
    /// let policy = Policy::constant(2 * sec).jitter(Jitter::None).max_elapsed(5 * sec);
    /// # let begin = relent::Timestamp::ZERO;
    /// let mut call = policy.call(begin, 1);
    /// assert_eq!(call.on_failure(begin + 3 * sec, true.into()), relent::Decision::Retry(2 * sec));
    /// assert_eq!(call.on_failure(begin + 6 * sec, true.into()), relent::Decision::GiveUp(relent::Reason::Elapsed));
    /// ```
    #[inline]
    pub const fn max_elapsed(self, most: Duration) -> Policy {
        Policy { max_elapsed: nanos(most), ..self }
    }

    /// The longest pushback that is waited for; told to wait longer, a call gives up at once. Default 2 min.
    /// Kept to the millisecond, rounded up; 49.7 days and more is no limit.
    ///
    /// ```
    /// # use relent::{Policy, Reason, Verdict};
    /// # use std::time::Duration;
    /// let policy = Policy::default().max_pushback(Duration::from_secs(10));
    /// let told = policy.when(|_: &&str| Verdict::After(Duration::from_secs(60)));
    /// let err = told.retry_blocking(|_| Err::<(), _>("busy")).unwrap_err();
    /// assert_eq!((err.reason, err.attempts), (Reason::PushbackTooLong, 1));
    /// ```
    #[inline]
    pub const fn max_pushback(self, most: Duration) -> Policy {
        Policy { max_pushback: Millis::ceil(most), ..self }
    }

    /// The longest the whole call may take, counted from its beginning: the deadline that it brings along. It ends
    /// everything at that moment, the attempt under way included. Async executors drop that attempt; blocking ones
    /// cannot, and tell each attempt how much is left ([`Attempt::timeout`](crate::Attempt::timeout)). No attempt
    /// starts at or after it, and a call gives up as soon as its next attempt would.
    /// Kept to the millisecond, rounded up; 49.7 days and more is no limit.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// ```
    /// # use relent::{Policy, Reason};
    /// # use std::time::Duration;
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let sec = Duration::from_secs(1);
    /// let policy = Policy::constant(sec).timeout(10 * sec);
    /// let err = policy.retry(async |_| Ok::<(), ()>(tokio::time::sleep(3600 * sec).await)).await.unwrap_err();
    /// assert_eq!((err.reason, err.timed_out), (Reason::Elapsed, Some(10 * sec)));
    /// # });
    /// ```
    #[track_caller]
    pub const fn timeout(self, most: Duration) -> Policy {
        Settings { timeout: Some(most), ..self.settings() }.must()
    }

    /// The longest one attempt may take. Async executors drop the attempt then and retry; blocking ones cannot stop
    /// an attempt and only tell it ([`Attempt::timeout`](crate::Attempt)).
    /// Kept to the millisecond, rounded up; 49.7 days and more is no limit.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let policy = Policy::immediate().max_attempts(2).attempt_timeout(Duration::from_secs(3));
    /// let err = policy.retry(async |_| std::future::pending::<Result<(), &str>>().await).await.unwrap_err();
    /// assert_eq!((err.attempts, err.timed_out, err.last), (2, Some(Duration::from_secs(3)), None));
    /// # });
    /// ```
    #[inline]
    #[track_caller]
    pub const fn attempt_timeout(self, most: Duration) -> Policy {
        if most.is_zero() {
            NO_TIME.refuse();
        }
        Policy { attempt_timeout: Millis::ceil(most), ..self }
    }

    /// A random wait, from zero to this, before the *first* attempt: for a herd that starts at one moment. A limit of
    /// time that is shorter bounds the wait, which stays as random within it.
    /// Kept to the millisecond, rounded up, and up to 49.7 days.
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// let boot = Policy::default().spread(Duration::from_secs(20));
    /// let wait = boot.call(relent::Timestamp::ZERO, 7).spread();
    /// assert!(wait < Duration::from_secs(20));
    /// ```
    #[inline]
    pub const fn spread(self, most: Duration) -> Policy {
        Policy { spread: Millis::ceil(most), ..self }
    }
}

/// Exponential, base 1 s, factor 2, cap 64 s, full jitter, 8 attempts.
impl Default for Policy {
    fn default() -> Policy {
        const DEFAULT: Policy = Policy::exponential(DEFAULT_BASE);
        DEFAULT
    }
}
