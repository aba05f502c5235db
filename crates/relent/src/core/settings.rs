//! What a policy says, by name, and what is checked of it: everything that makes no sense is named, with what to write.

use super::{
    curve::{Curve, Shape},
    invalid::Invalid,
    jitter::{Jitter, PackedJitter},
    policy::Policy,
    time::{Millis, nanos},
};
use core::{fmt, time::Duration};

pub(crate) const DEFAULT_BASE: Duration = Duration::from_secs(1);
const DEFAULT_CAP: Duration = Duration::from_secs(64);
const DEFAULT_ATTEMPTS: u32 = 8;
const DEFAULT_PUSHBACK: Duration = Duration::from_secs(120);

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
    /// The most one delay may be; `None` is no cap, and so is `Duration::MAX`.
    pub cap: Option<Duration>,
    /// How delays are spread.
    pub jitter: Jitter,
    /// The most attempts, the first included; `None` is no limit.
    pub max_attempts: Option<u32>,
    /// No attempt starts later than this after the call began; `None` is no limit.
    pub max_elapsed: Option<Duration>,
    /// The longest pushback waited for; `None` is no limit.
    pub max_pushback: Option<Duration>,
    /// The longest the whole call may take, attempts under way included; `None` is no limit.
    pub timeout: Option<Duration>,
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
        timeout: None,
        attempt_timeout: None,
        spread: Duration::ZERO,
    };

    /// What a policy of this curve says until it is told otherwise, the same as the constructor of that curve.
    ///
    /// A curve that grows is capped at 64 s (or its base, if that is longer) and has full jitter. Immediate, slots,
    /// lists and custom rules have neither. There are 8 attempts, unless the curve ends by itself.
    ///
    /// ```
    /// # use relent::{Curve, Jitter, Settings};
    /// # use std::time::Duration;
    /// let grows = Settings::of(Curve::Fibonacci { base: Duration::from_secs(1) });
    /// assert_eq!((grows.cap, grows.jitter), (Some(Duration::from_secs(64)), Jitter::Full));
    /// assert_eq!(Settings::of(Curve::Immediate).jitter, Jitter::None);
    /// ```
    pub const fn of(curve: Curve) -> Settings {
        let grows = Settings { curve, ..Settings::DEFAULT };
        let plain = Settings { cap: None, jitter: Jitter::None, ..grows };
        match curve {
            Curve::Slots { .. } | Curve::List { repeat: false, .. } => Settings { max_attempts: None, ..plain },
            Curve::Immediate | Curve::List { .. } | Curve::Custom(_) => plain,
            _ => match curve.base_nanos() {
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
            shape: Shape::of(self.curve, millis_or_max(self.timeout)),
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

    #[track_caller]
    pub(crate) const fn must(self) -> Policy {
        match self.policy() {
            Ok(policy) => policy,
            Err(invalid) => invalid.refuse(),
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
        if let Some(base) = self.curve.base_nanos()
            && base > cap
        {
            return invalid("cap", "the cap is shorter than the base", "raise the cap or lower the base");
        }
        if let Err(invalid) = self.check_jitter(cap) {
            return Err(invalid);
        }
        if let Some(v) = self.eventual()
            && greatest(self.jitter, v, cap) == 0
        {
            let hint = "lengthen the base or the cap, or use curve immediate if no delay is meant";
            return invalid("jitter", "every delay would be zero", hint);
        }
        if matches!(self.max_attempts, Some(0)) {
            return Err(NO_ATTEMPT);
        }
        if matches!(self.timeout, Some(Duration::ZERO)) {
            return invalid("timeout", "the timeout is zero", "leave it out for no limit");
        }
        if matches!(self.attempt_timeout, Some(Duration::ZERO)) {
            return Err(NO_TIME);
        }
        Ok(())
    }

    /// What the curve's delay is in the end, in nanoseconds; `None` where it ends or is a rule of the user's own.
    const fn eventual(&self) -> Option<u64> {
        match self.curve {
            Curve::Constant { base } => Some(nanos(base)),
            Curve::Linear { base, step } => Some(if step.is_zero() { nanos(base) } else { u64::MAX }),
            Curve::Exponential { base, factor } => Some(if factor > 1.0 { u64::MAX } else { nanos(base) }),
            Curve::Fibonacci { .. } => Some(u64::MAX),
            Curve::List { delays: [.., last], repeat: true } => Some(nanos(*last)),
            Curve::Immediate | Curve::Slots { .. } | Curve::List { .. } | Curve::Custom(_) => None,
        }
    }

    const fn check_curve(&self) -> Result<(), Invalid> {
        if let Some(0) = self.curve.base_nanos() {
            return invalid("base", "the base is zero", "use curve immediate if no delay is meant");
        }
        match self.curve {
            Curve::Exponential { factor, .. } if !(factor >= 1.0 && factor.is_finite()) => {
                invalid("factor", "the factor is less than 1 or not finite", "2 doubles the delay each time")
            }
            Curve::Slots { slot } if slot.is_zero() => {
                invalid("base", "the slot is zero", "51.2us is 10 Mb/s Ethernet")
            }
            Curve::Slots { slot } if nanos(slot) > nanos_or_max(self.cap) => {
                invalid("cap", "the cap is shorter than a slot", "raise the cap or leave it out")
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
            (Jitter::Decorrelated, curve) if curve.base_nanos().is_none() => {
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

/// The greatest delay that jitter makes of a curve's delay of at least 1.
const fn greatest(jitter: Jitter, v: u64, cap: u64) -> u64 {
    let w = if v < cap { v } else { cap };
    match jitter {
        Jitter::Full => w.saturating_sub(1),
        Jitter::Proportional(share) => {
            let within = (cap as f64 / (1.0 + share)) as u64;
            let w = if within < w { within } else { w };
            let (low, high) = ((w as f64 * (1.0 - share)) as u64, (w as f64 * (1.0 + share)) as u64);
            if high > low { high - 1 } else { low }
        }
        Jitter::None | Jitter::Equal | Jitter::Additive(_) | Jitter::Decorrelated => w,
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

pub(super) const NO_ATTEMPT: Invalid = Invalid {
    key: "max_attempts",
    problem: "no attempt is allowed",
    hint: "the first attempt counts: use 1 for no retry",
};
pub(super) const NO_TIME: Invalid =
    Invalid { key: "attempt_timeout", problem: "the attempt timeout is zero", hint: "leave it out for no limit" };

const fn invalid(key: &'static str, problem: &'static str, hint: &'static str) -> Result<(), Invalid> {
    Err(Invalid { key, problem, hint })
}

impl Policy {
    /// Everything the policy says, by name.
    ///
    /// ```
    /// # use relent::Policy;
    /// assert_eq!(Policy::default().settings().max_attempts, Some(8));
    /// ```
    pub const fn settings(&self) -> Settings {
        Settings {
            curve: self.shape.curve(),
            cap: if self.cap == u64::MAX { None } else { Some(Duration::from_nanos(self.cap)) },
            jitter: self.jitter.unpack(),
            max_attempts: if self.max_attempts == u32::MAX { None } else { Some(self.max_attempts) },
            max_elapsed: if self.max_elapsed == u64::MAX { None } else { Some(Duration::from_nanos(self.max_elapsed)) },
            max_pushback: self.max_pushback.limit(),
            timeout: self.shape.timeout().limit(),
            attempt_timeout: self.attempt_timeout.limit(),
            spread: Duration::from_nanos(self.spread.nanos()),
        }
    }

    /// No attempt starts later than this after the call began, by `max_elapsed` and `timeout`; `None` is no limit.
    pub(crate) fn latest_start(&self) -> Option<Duration> {
        let Settings { max_elapsed, timeout, .. } = self.settings();
        // None starts at the timeout itself.
        let by_timeout = timeout.map(|timeout| timeout.saturating_sub(Duration::from_nanos(1)));
        max_elapsed.into_iter().chain(by_timeout).min()
    }
}

impl PartialEq for Policy {
    fn eq(&self, other: &Policy) -> bool {
        self.settings() == other.settings()
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { curve, cap, jitter, max_attempts, max_elapsed, max_pushback, timeout, attempt_timeout, spread } =
            self.settings();
        f.debug_struct("Policy")
            .field("curve", &curve)
            .field("cap", &cap)
            .field("jitter", &jitter)
            .field("max_attempts", &max_attempts)
            .field("max_elapsed", &max_elapsed)
            .field("max_pushback", &max_pushback)
            .field("timeout", &timeout)
            .field("attempt_timeout", &attempt_timeout)
            .field("spread", &spread)
            .finish()
    }
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
            Policy::linear(Duration::from_secs(1)).step(Duration::from_secs(2)).unlimited_attempts(),
            Policy::fibonacci(Duration::from_nanos(1)).jitter(Jitter::Equal),
            Policy::slots(Duration::from_nanos(51_200)),
            Policy::list(&LIST),
            Policy::list_repeating(&LIST).max_elapsed(Duration::from_secs(60)),
            Policy::immediate().timeout(Duration::from_millis(7)),
            Policy::list(&LIST).timeout(Duration::from_secs(3600)),
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
        assert_eq!(key(Settings { timeout: Some(Duration::ZERO), ..good }), "timeout");
        assert_eq!(key(Settings { attempt_timeout: Some(Duration::ZERO), ..good }), "attempt_timeout");
    }

    #[test]
    fn a_delay_of_zero_for_ever_is_asked_for_by_name() {
        let ns = Duration::from_nanos;
        let good = Settings::default();
        static ONE: [Duration; 2] = [Duration::from_secs(1), Duration::from_nanos(1)];
        static ZEROS: [Duration; 2] = [Duration::ZERO, Duration::ZERO];
        for curve in [
            Curve::Constant { base: ns(1) },
            Curve::Linear { base: ns(1), step: ns(0) },
            Curve::Exponential { base: ns(1), factor: 1.0 },
            Curve::List { delays: &ONE, repeat: true },
        ] {
            assert_eq!(Settings { curve, ..good }.policy().unwrap_err().key, "jitter", "{curve:?}");
        }
        let capped = Settings { cap: Some(ns(1)), curve: Curve::Fibonacci { base: ns(1) }, ..good };
        assert_eq!(capped.policy().unwrap_err().key, "jitter");
        let proportional = Settings { jitter: Jitter::Proportional(0.5), ..capped };
        assert_eq!(proportional.policy().unwrap_err().key, "jitter");
        let slots = Settings { curve: Curve::Slots { slot: ns(2) }, jitter: Jitter::None, cap: Some(ns(1)), ..good };
        assert_eq!(slots.policy().unwrap_err().key, "cap");
        let zeros = Settings { curve: Curve::List { delays: &ZEROS, repeat: true }, jitter: Jitter::None, ..good };
        assert_eq!(zeros.policy().unwrap_err().key, "delays");

        for (base, jitter) in [(2, Jitter::Full), (1, Jitter::Equal), (1, Jitter::None), (2, Jitter::Proportional(1.0))]
        {
            let settings = Settings { curve: Curve::Constant { base: ns(base) }, jitter, ..good };
            let policy = settings.policy().unwrap();
            assert!(policy.max_attempts(1000).delays(1).any(|delay| !delay.is_zero()), "{base} {jitter:?}");
        }
        assert!(Policy::immediate().unlimited_attempts().delays(1).take(100).all(|delay| delay.is_zero()));
    }

    #[test]
    fn policies_and_curves_that_differ_are_not_equal() {
        let second = Duration::from_secs(1);
        let policy = Policy::exponential(second);
        for other in [policy.factor(3.0), policy.max_attempts(3), policy.timeout(second), Policy::constant(second)] {
            assert_ne!(policy, other);
        }
        assert_ne!(Curve::Linear { base: second, step: second }, Curve::Linear { base: second, step: 2 * second });
        assert_ne!(Curve::Fibonacci { base: second }, Curve::Constant { base: second });
    }

    #[test]
    fn a_long_base_raises_the_default_cap() {
        let hour = Duration::from_secs(3600);
        assert_eq!(Policy::exponential(hour).settings().cap, Some(hour));
        assert_eq!(Policy::exponential(Duration::MAX).settings().cap, None, "584 years is no cap");
    }
}
