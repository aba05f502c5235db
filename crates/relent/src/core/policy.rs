//! The policy: when to try again, and when to stop. Data only, 64 bytes, `Copy`, usable in a `const`.

use super::{
    backoff::Backoff,
    call::{Call, Saved},
    curve::{Curve, Shape},
    delay::Delays,
    jitter::{Jitter, PackedJitter},
    schedule::Schedule,
    time::{Millis, Timestamp, nanos},
};
use core::{fmt, time::Duration};

/// When to try again, and when to stop.
///
/// A policy is a value: it holds no state, so one `const` serves every call of a program. What one call has been
/// through is in its [`Call`]. The builders are `const` and check what they are given, so a policy that makes no
/// sense does not compile:
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// const READ: Policy = Policy::exponential(Duration::from_millis(100))
///     .cap(Duration::from_secs(10))
///     .jitter(Jitter::Full)
///     .max_attempts(5);
/// ```
///
/// ```compile_fail
/// use relent::Policy;
/// use std::time::Duration;
///
/// const SHRINKING: Policy = Policy::exponential(Duration::from_secs(1)).factor(0.5);
/// ```
///
/// Defaults, unless a constructor says otherwise: cap 64 s (or the base, if that is longer), full jitter,
/// 8 attempts, no `max_elapsed`, no attempt timeout, `max_pushback` 2 min, no `spread`.
#[derive(Clone, Copy)]
pub struct Policy {
    pub(crate) shape: Shape,
    pub(crate) cap: u64,
    pub(crate) jitter: PackedJitter,
    pub(crate) max_elapsed: u64,
    pub(crate) max_attempts: u32,
    pub(crate) attempt_timeout: Millis,
    pub(crate) spread: Millis,
    pub(crate) max_pushback: Millis,
}

const _: () = assert!(size_of::<Policy>() <= 64);

const DEFAULT_BASE: Duration = Duration::from_secs(1);
const DEFAULT_CAP: Duration = Duration::from_secs(64);
const DEFAULT_ATTEMPTS: u32 = 8;
const DEFAULT_PUSHBACK: Duration = Duration::from_secs(120);

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
    pub const fn constant(base: Duration) -> Policy {
        Policy::of(Curve::Constant { base })
    }

    /// Delays of `base`, `base + step`, `base + 2 * step` ... up to the cap.
    ///
    /// # Panics
    ///
    /// If `base` is zero.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let policy = Policy::linear(Duration::from_millis(100), Duration::from_millis(50)).jitter(Jitter::None).max_attempts(4);
    /// let delays: Vec<_> = policy.delays(1).map(|d| d.as_millis()).collect();
    /// assert_eq!(delays, [100, 150, 200]);
    /// ```
    pub const fn linear(base: Duration, step: Duration) -> Policy {
        Policy::of(Curve::Linear { base, step })
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
    pub const fn list_repeating(delays: &'static [Duration]) -> Policy {
        Policy::of(Curve::List { delays, repeat: true })
    }

    /// Delays by a rule of the user's own. No cap, no further jitter; 8 attempts unless told otherwise.
    pub const fn custom(rule: &'static dyn Backoff) -> Policy {
        Policy::of(Curve::Custom(rule))
    }

    const fn of(curve: Curve) -> Policy {
        Settings::of(curve).must()
    }

    /// The multiplier of an exponential curve, at least 1.
    ///
    /// # Panics
    ///
    /// If the curve is not exponential, or the factor is less than 1 or not finite.
    pub const fn factor(self, factor: f64) -> Policy {
        match self.shape {
            Shape::Exponential { base, .. } => {
                let base = Duration::from_nanos(base);
                Settings { curve: Curve::Exponential { base, factor }, ..self.settings() }.must()
            }
            _ => panic!("only an exponential curve has a factor"),
        }
    }

    /// The most one delay may be, jitter included. Jitter keeps its width at the cap: see [`Jitter`].
    ///
    /// # Panics
    ///
    /// If the cap is zero, shorter than the base, or leaves no room for additive jitter.
    pub const fn cap(self, cap: Duration) -> Policy {
        Settings { cap: Some(cap), ..self.settings() }.must()
    }

    /// How delays are spread.
    ///
    /// # Panics
    ///
    /// If a proportional share is not between 0 and 1, if additive jitter does not fit under the cap, if slots (which
    /// are random themselves) get any, or if decorrelated jitter has no base to start from.
    pub const fn jitter(self, jitter: Jitter) -> Policy {
        Settings { jitter, ..self.settings() }.must()
    }

    /// The most attempts of one call, the first included: at least 1. `u32::MAX` means no limit.
    ///
    /// # Panics
    ///
    /// If it is zero.
    pub const fn max_attempts(self, most: u32) -> Policy {
        Settings { max_attempts: Some(most), ..self.settings() }.must()
    }

    /// No limit on attempts. Something else should end the call: `max_elapsed`, a deadline, cancellation.
    pub const fn unlimited_attempts(self) -> Policy {
        Settings { max_attempts: None, ..self.settings() }.must()
    }

    /// No attempt starts later than this after the call began. A call gives up as soon as its next attempt would.
    pub const fn max_elapsed(self, most: Duration) -> Policy {
        Settings { max_elapsed: Some(most), ..self.settings() }.must()
    }

    /// The longest pushback that is waited for; told to wait longer, a call gives up at once. Default 2 min.
    /// Kept to the millisecond, rounded up; 49.7 days and more is no limit.
    pub const fn max_pushback(self, most: Duration) -> Policy {
        Settings { max_pushback: Some(most), ..self.settings() }.must()
    }

    /// The longest one attempt may take. Async executors drop the attempt then and retry; blocking ones cannot stop
    /// an attempt and only tell it ([`Attempt::timeout`](crate::Attempt)).
    /// Kept to the millisecond, rounded up; 49.7 days and more is no limit.
    ///
    /// # Panics
    ///
    /// If it is zero.
    pub const fn attempt_timeout(self, most: Duration) -> Policy {
        Settings { attempt_timeout: Some(most), ..self.settings() }.must()
    }

    /// A random wait, from zero to this, before the *first* attempt: for a herd that starts at one moment.
    /// Kept to the millisecond, rounded up, and up to 49.7 days.
    pub const fn spread(self, most: Duration) -> Policy {
        Settings { spread: most, ..self.settings() }.must()
    }

    /// Whether it matters when a call began.
    pub(crate) const fn is_timed(&self) -> bool {
        self.max_elapsed != u64::MAX
            || self.attempt_timeout.nanos() != u64::MAX
            || matches!(self.shape, Shape::Custom(_))
    }

    pub(crate) const fn has_spread(&self) -> bool {
        self.spread.nanos() != 0
    }

    /// Everything the policy says, by name.
    pub const fn settings(&self) -> Settings {
        Settings {
            curve: self.shape.curve(),
            cap: if self.cap == u64::MAX { None } else { Some(Duration::from_nanos(self.cap)) },
            jitter: self.jitter.unpack(),
            max_attempts: if self.max_attempts == u32::MAX { None } else { Some(self.max_attempts) },
            max_elapsed: if self.max_elapsed == u64::MAX { None } else { Some(Duration::from_nanos(self.max_elapsed)) },
            max_pushback: self.max_pushback.limit(),
            attempt_timeout: self.attempt_timeout.limit(),
            spread: Duration::from_nanos(self.spread.nanos()),
        }
    }

    /// A call under this policy, begun at `now`: the state machine that decides after each failure.
    ///
    /// `seed` must differ from call to call, or calls share their jitter.
    #[inline]
    pub const fn call(&self, now: Timestamp, seed: u64) -> Call<'_> {
        Call::new(self, now, seed)
    }

    /// Goes on with a call that was [saved](Call::save): the same policy, start and seed, or it is another call.
    #[inline]
    pub const fn resume(&self, started: Timestamp, seed: u64, saved: Saved) -> Call<'_> {
        Call::resume(self, started, seed, saved)
    }

    /// The delays of one call that fails at once each time, up to `max_attempts`; endless without.
    /// Limits of time are the caller's.
    ///
    /// ```
    /// use relent::{Jitter, Policy};
    /// use std::time::Duration;
    ///
    /// let policy = Policy::exponential(Duration::from_millis(100)).jitter(Jitter::None).max_attempts(4);
    /// let delays: Vec<_> = policy.delays(1).map(|d| d.as_millis()).collect();
    /// assert_eq!(delays, [100, 200, 400]);
    /// ```
    #[inline]
    pub const fn delays(&self, seed: u64) -> Delays<'_> {
        Delays::new(self, seed)
    }

    /// The table of the policy: per attempt the least, mean and greatest delay before it, and their running sums.
    /// Endless if attempts are not limited.
    ///
    /// ```
    /// for row in relent::Policy::default().schedule() {
    ///     println!("attempt {}: {:?} to {:?}", row.attempt, row.delay.min, row.delay.max);
    /// }
    /// ```
    pub fn schedule(&self) -> Schedule<'_> {
        Schedule::new(self)
    }
}

/// Exponential, base 1 s, factor 2, cap 64 s, full jitter, 8 attempts.
impl Default for Policy {
    fn default() -> Policy {
        const DEFAULT: Policy = Policy::exponential(DEFAULT_BASE);
        DEFAULT
    }
}

impl PartialEq for Policy {
    fn eq(&self, other: &Policy) -> bool {
        self.settings() == other.settings()
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { curve, cap, jitter, max_attempts, max_elapsed, max_pushback, attempt_timeout, spread } =
            self.settings();
        f.debug_struct("Policy")
            .field("curve", &curve)
            .field("cap", &cap)
            .field("jitter", &jitter)
            .field("max_attempts", &max_attempts)
            .field("max_elapsed", &max_elapsed)
            .field("max_pushback", &max_pushback)
            .field("attempt_timeout", &attempt_timeout)
            .field("spread", &spread)
            .finish()
    }
}

/// Everything a [`Policy`] says, by name: what text is parsed into, and what `explain` prints.
///
/// ```
/// use relent::{Policy, Settings};
/// use std::time::Duration;
///
/// let settings = Settings { max_attempts: Some(3), ..Settings::default() };
/// assert_eq!(settings.policy().unwrap(), Policy::default().max_attempts(3));
///
/// let bad = Settings { cap: Some(Duration::from_millis(1)), ..Settings::default() };
/// assert_eq!(bad.policy().unwrap_err().key, "cap");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How the delay grows.
    pub curve: Curve,
    /// The most one delay may be; `None` is no cap.
    pub cap: Option<Duration>,
    /// How delays are spread.
    pub jitter: Jitter,
    /// The most attempts, the first included; `None` is no limit.
    pub max_attempts: Option<u32>,
    /// No attempt starts later than this after the call began; `None` is no limit.
    pub max_elapsed: Option<Duration>,
    /// The longest pushback waited for; `None` is no limit.
    pub max_pushback: Option<Duration>,
    /// The longest one attempt may take; `None` is no limit.
    pub attempt_timeout: Option<Duration>,
    /// The longest random wait before the first attempt.
    pub spread: Duration,
}

impl Settings {
    const DEFAULT: Settings = Settings {
        curve: Curve::Exponential { base: DEFAULT_BASE, factor: 2.0 },
        cap: Some(DEFAULT_CAP),
        jitter: Jitter::Full,
        max_attempts: Some(DEFAULT_ATTEMPTS),
        max_elapsed: None,
        max_pushback: Some(DEFAULT_PUSHBACK),
        attempt_timeout: None,
        spread: Duration::ZERO,
    };

    /// What a policy of this curve says until it is told otherwise, the same as the constructor of that curve.
    ///
    /// A curve that grows is capped at 64 s (or its base, if that is longer) and has full jitter. Immediate, slots,
    /// lists and custom rules have neither. There are 8 attempts, unless the curve ends by itself.
    pub const fn of(curve: Curve) -> Settings {
        let grows = Settings { curve, ..Settings::DEFAULT };
        let plain = Settings { cap: None, jitter: Jitter::None, ..grows };
        match curve {
            Curve::Slots { .. } | Curve::List { repeat: false, .. } => Settings { max_attempts: None, ..plain },
            Curve::Immediate | Curve::List { .. } | Curve::Custom(_) => plain,
            _ => match Shape::of(curve).base() {
                Some(base) if base > nanos(DEFAULT_CAP) => Settings { cap: Some(Duration::from_nanos(base)), ..grows },
                _ => grows,
            },
        }
    }

    /// The policy of these settings.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the setting that makes no sense, why, and what to write instead.
    pub const fn policy(self) -> Result<Policy, Invalid> {
        if let Err(invalid) = self.check() {
            return Err(invalid);
        }
        Ok(Policy {
            shape: Shape::of(self.curve),
            cap: nanos_or_max(self.cap),
            jitter: PackedJitter::pack(self.jitter),
            max_elapsed: nanos_or_max(self.max_elapsed),
            max_attempts: match self.max_attempts {
                Some(most) => most,
                None => u32::MAX,
            },
            attempt_timeout: millis_or_max(self.attempt_timeout),
            spread: Millis::ceil(self.spread),
            max_pushback: millis_or_max(self.max_pushback),
        })
    }

    const fn must(self) -> Policy {
        match self.policy() {
            Ok(policy) => policy,
            Err(invalid) => panic!("{}", invalid.problem),
        }
    }

    const fn check(&self) -> Result<(), Invalid> {
        if let Err(invalid) = self.check_curve() {
            return Err(invalid);
        }
        let cap = nanos_or_max(self.cap);
        if cap == 0 {
            return invalid("cap", "the cap is zero", "leave it out for the default, or use curve immediate");
        }
        if let Some(base) = Shape::of(self.curve).base()
            && base > cap
        {
            return invalid("cap", "the cap is shorter than the base", "raise the cap or lower the base");
        }
        if let Err(invalid) = self.check_jitter(cap) {
            return Err(invalid);
        }
        if matches!(self.max_attempts, Some(0)) {
            return invalid("max_attempts", "no attempt is allowed", "the first attempt counts: use 1 for no retry");
        }
        if matches!(self.attempt_timeout, Some(Duration::ZERO)) {
            return invalid("attempt_timeout", "the attempt timeout is zero", "leave it out for no limit");
        }
        Ok(())
    }

    const fn check_curve(&self) -> Result<(), Invalid> {
        if let Some(0) = Shape::of(self.curve).base() {
            return invalid("base", "the base is zero", "use curve immediate if no delay is meant");
        }
        match self.curve {
            Curve::Exponential { factor, .. } if !(factor >= 1.0 && factor.is_finite()) => {
                invalid("factor", "the factor is less than 1 or not finite", "2 doubles the delay each time")
            }
            Curve::Slots { slot } if slot.is_zero() => {
                invalid("base", "the slot is zero", "51.2us is 10 Mb/s Ethernet")
            }
            Curve::List { delays: [], .. } => {
                invalid("delays", "the list of delays is empty", "give at least one delay")
            }
            Curve::List { delays: [.., Duration::ZERO], repeat: true } => {
                invalid("delays", "the delay that repeats is zero", "end the list with the delay to repeat")
            }
            _ => Ok(()),
        }
    }

    const fn check_jitter(&self, cap: u64) -> Result<(), Invalid> {
        match (self.jitter, self.curve) {
            (Jitter::None, _) => Ok(()),
            (_, Curve::Slots { .. }) => invalid("jitter", "slots are random themselves", "use jitter none"),
            (Jitter::Decorrelated, curve) if Shape::of(curve).base().is_none() => {
                invalid("jitter", "decorrelated jitter needs a base to start from", "use an exponential curve")
            }
            (Jitter::Proportional(share), _) if !(share >= 0.0 && share <= 1.0) => {
                invalid("jitter", "the proportional jitter is not between 0 and 1", "0.2 is plus or minus 20 %")
            }
            (Jitter::Additive(most), _) if nanos(most) >= cap => {
                invalid("jitter", "the additive jitter does not fit under the cap", "raise the cap or lower the jitter")
            }
            _ => Ok(()),
        }
    }
}

/// The settings of [`Policy::default`].
impl Default for Settings {
    fn default() -> Settings {
        Settings::DEFAULT
    }
}

const fn nanos_or_max(limit: Option<Duration>) -> u64 {
    match limit {
        Some(limit) => nanos(limit),
        None => u64::MAX,
    }
}

const fn millis_or_max(limit: Option<Duration>) -> Millis {
    match limit {
        Some(limit) => Millis::ceil(limit),
        None => Millis::UNLIMITED,
    }
}

/// Why [`Settings`] make no policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The setting, by the name it has in policy files.
    pub key: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
    /// What to do.
    pub hint: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.problem)
    }
}

impl core::error::Error for Invalid {}

const fn invalid(key: &'static str, problem: &'static str, hint: &'static str) -> Result<(), Invalid> {
    Err(Invalid { key, problem, hint })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_make_the_policy_they_came_from() {
        static LIST: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(30)];
        for policy in [
            Policy::default(),
            Policy::immediate(),
            Policy::constant(Duration::from_secs(90)),
            Policy::linear(Duration::from_secs(1), Duration::from_secs(2)).unlimited_attempts(),
            Policy::fibonacci(Duration::from_nanos(1)).jitter(Jitter::Equal),
            Policy::slots(Duration::from_nanos(51_200)),
            Policy::list(&LIST),
            Policy::list_repeating(&LIST).max_elapsed(Duration::from_secs(60)),
            Policy::exponential(Duration::from_millis(1)).factor(1.5).jitter(Jitter::Proportional(0.2)),
        ] {
            assert_eq!(policy.settings().policy().unwrap(), policy);
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let key = |settings: Settings| settings.policy().unwrap_err().key;
        let good = Settings::default();
        let second = Duration::from_secs(1);
        assert_eq!(key(Settings { curve: Curve::Constant { base: Duration::ZERO }, ..good }), "base");
        for factor in [0.99, 0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(key(Settings { curve: Curve::Exponential { base: second, factor }, ..good }), "factor");
        }
        for share in [-0.1, 1.1, f64::NAN] {
            assert_eq!(key(Settings { jitter: Jitter::Proportional(share), ..good }), "jitter");
        }
        assert_eq!(key(Settings { jitter: Jitter::Additive(Duration::from_secs(64)), ..good }), "jitter");
        assert_eq!(key(Settings { curve: Curve::List { delays: &[], repeat: false }, ..good }), "delays");
        assert_eq!(key(Settings { curve: Curve::Slots { slot: second }, ..good }), "jitter");
        assert_eq!(key(Settings { jitter: Jitter::Decorrelated, curve: Curve::Immediate, ..good }), "jitter");
        assert_eq!(key(Settings { cap: Some(Duration::ZERO), ..good }), "cap");
        assert_eq!(key(Settings { cap: Some(Duration::from_millis(999)), ..good }), "cap");
        assert_eq!(key(Settings { max_attempts: Some(0), ..good }), "max_attempts");
        assert_eq!(key(Settings { attempt_timeout: Some(Duration::ZERO), ..good }), "attempt_timeout");
    }

    #[test]
    fn a_long_base_raises_the_default_cap() {
        let hour = Duration::from_secs(3600);
        assert_eq!(Policy::exponential(hour).settings().cap, Some(hour));
        assert_eq!(Policy::exponential(Duration::MAX).settings().cap, None, "584 years is no cap");
    }
}
