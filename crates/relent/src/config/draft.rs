//! A draft: what text says about a policy, key by key, before the rest takes its defaults.
//!
//! Flags lie over a file, and a file over a profile, so what was *not* said has to be told from what was. A
//! [`Policy`] cannot do that, and need not.

use super::{
    bad_setting::BadSetting,
    value::{self, Ceiling, CurveName, Value},
};
use crate::{Curve, Jitter, Policy, Settings};
use std::{
    collections::BTreeSet,
    string::String,
    sync::{Mutex, PoisonError},
    time::Duration,
    vec::Vec,
};

/// The keys of a policy that were given; every other takes its default.
///
/// ```
/// use relent::{Policy, config::Draft};
/// use std::time::Duration;
///
/// let mut file = Draft::default();
/// file.set("base", "100ms")?;
/// file.set("max_attempts", "5")?;
/// let mut flags = Draft::default();
/// flags.set("max_attempts", "2")?;
///
/// let policy = flags.over(file).policy()?;
/// assert_eq!(policy, Policy::exponential(Duration::from_millis(100)).max_attempts(2));
/// # Ok::<(), relent::config::BadSetting>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Draft {
    /// The profile to start from.
    pub compat: Option<String>,
    /// How the delay grows.
    pub curve: Option<CurveName>,
    /// The first delay; of slots, their length.
    pub base: Option<Duration>,
    /// The multiplier of an exponential curve.
    pub factor: Option<f64>,
    /// What each failure adds to a linear curve.
    pub step: Option<Duration>,
    /// The delays of a list.
    pub delays: Option<Vec<Duration>>,
    /// Whether the last delay of a list repeats.
    pub repeat: Option<bool>,
    /// The most one delay may be.
    pub cap: Option<Ceiling<Duration>>,
    /// How delays are spread.
    pub jitter: Option<Jitter>,
    /// The most attempts, the first included.
    pub max_attempts: Option<Ceiling<u32>>,
    /// No attempt starts later than this after the call began.
    pub max_elapsed: Option<Ceiling<Duration>>,
    /// The longest pushback waited for.
    pub max_pushback: Option<Ceiling<Duration>>,
    /// The longest the whole call may take, its attempts included: what is under way then is ended.
    pub timeout: Option<Ceiling<Duration>>,
    /// The longest one attempt may take.
    pub attempt_timeout: Option<Ceiling<Duration>>,
    /// The longest random wait before the first attempt.
    pub spread: Option<Duration>,
}

/// The keys of a policy, in the order files are written.
pub const KEYS: [&str; 15] = [
    "compat",
    "curve",
    "base",
    "factor",
    "step",
    "delays",
    "repeat",
    "cap",
    "jitter",
    "max_attempts",
    "max_elapsed",
    "max_pushback",
    "timeout",
    "attempt_timeout",
    "spread",
];

impl Draft {
    /// Sets a key to the value that a flag would give it: `set("jitter", "proportional=0.2")`.
    ///
    /// # Errors
    ///
    /// The key is not one of [`KEYS`], or the value is none for it.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), BadSetting> {
        self.read(key, &value.into())
    }

    pub(super) fn read(&mut self, key: &str, value: &Value<'_>) -> Result<(), BadSetting> {
        self.store(key, value).map_err(|bad| BadSetting { key: bad.key.or_else(|| known(key)), ..bad })
    }

    fn store(&mut self, key: &str, value: &Value<'_>) -> Result<(), BadSetting> {
        match key {
            "compat" => self.compat = Some(value::text(value)?),
            "curve" => self.curve = Some(value::curve(value)?),
            "base" => self.base = Some(value::duration(value)?),
            "factor" => self.factor = Some(value::float(value)?),
            "step" => self.step = Some(value::duration(value)?),
            "delays" => self.delays = Some(value::delays(value)?),
            "repeat" => self.repeat = Some(value::flag(value)?),
            "cap" => self.cap = Some(value::duration_limit(value)?),
            "jitter" => self.jitter = Some(value::jitter(value)?),
            "max_attempts" => self.max_attempts = Some(value::attempts(value)?),
            "max_elapsed" => self.max_elapsed = Some(value::duration_limit(value)?),
            "max_pushback" => self.max_pushback = Some(value::duration_limit(value)?),
            "timeout" => self.timeout = Some(value::duration_limit(value)?),
            "attempt_timeout" => self.attempt_timeout = Some(value::duration_limit(value)?),
            "spread" => self.spread = Some(value::duration(value)?),
            _ => return Err(BadSetting::unknown("key", key, &KEYS)),
        }
        Ok(())
    }

    /// This draft laid over another: a key given here wins. A curve or profile given here takes the place of the
    /// other's with all that shapes it (base, factor, step, delays, and also cap and jitter where a profile comes
    /// or goes); a base and a cap are kept from curve to curve.
    #[must_use]
    pub fn over(self, mut under: Draft) -> Draft {
        under.make_room_for(&self);
        Draft {
            compat: self.compat.or(under.compat),
            curve: self.curve.or(under.curve),
            base: self.base.or(under.base),
            factor: self.factor.or(under.factor),
            step: self.step.or(under.step),
            delays: self.delays.or(under.delays),
            repeat: self.repeat.or(under.repeat),
            cap: self.cap.or(under.cap),
            jitter: self.jitter.or(under.jitter),
            max_attempts: self.max_attempts.or(under.max_attempts),
            max_elapsed: self.max_elapsed.or(under.max_elapsed),
            max_pushback: self.max_pushback.or(under.max_pushback),
            timeout: self.timeout.or(under.timeout),
            attempt_timeout: self.attempt_timeout.or(under.attempt_timeout),
            spread: self.spread.or(under.spread),
        }
    }

    fn make_room_for(&mut self, over: &Draft) {
        let changes_profile = match (&over.compat, &self.compat) {
            (Some(theirs), ours) => ours.as_ref() != Some(theirs),
            (None, Some(_)) => over.shape_key().is_some(),
            (None, None) => false,
        };
        if changes_profile {
            *self = Draft {
                max_attempts: self.max_attempts,
                max_elapsed: self.max_elapsed,
                max_pushback: self.max_pushback,
                timeout: self.timeout,
                attempt_timeout: self.attempt_timeout,
                spread: self.spread,
                ..Draft::default()
            };
        }
        let curve = over.curve.or(over.delays.as_ref().map(|_| CurveName::List));
        if curve.is_some_and(|curve| curve != self.curve_name()) {
            *self = Draft { curve: None, factor: None, step: None, delays: None, repeat: None, ..self.clone() };
            if matches!(curve, Some(CurveName::Immediate | CurveName::List)) {
                self.base = None;
            }
        }
    }

    fn curve_name(&self) -> CurveName {
        let unsaid = if self.delays.is_some() { CurveName::List } else { CurveName::Exponential };
        self.curve.unwrap_or(unsaid)
    }

    /// The first key given that says what the curve looks like.
    fn shape_key(&self) -> Option<&'static str> {
        let keys = [
            ("curve", self.curve.is_some()),
            ("base", self.base.is_some()),
            ("factor", self.factor.is_some()),
            ("step", self.step.is_some()),
            ("delays", self.delays.is_some()),
            ("repeat", self.repeat.is_some()),
        ];
        keys.into_iter().find_map(|(key, given)| given.then_some(key))
    }

    /// The settings: what was given, and the defaults of its curve for the rest.
    ///
    /// # Errors
    ///
    /// A key that does not go with the curve, or a profile that is not known.
    ///
    /// ```
    /// # use relent::config::{CurveName, Draft};
    /// # use std::time::Duration;
    /// let mut draft = Draft::default();
    /// (draft.curve, draft.base) = (Some(CurveName::Constant), Some(Duration::from_secs(5)));
    /// assert_eq!(draft.settings()?.max_attempts, Some(8), "the default of every curve that does not end by itself");
    /// # Ok::<(), relent::config::BadSetting>(())
    /// ```
    pub fn settings(&self) -> Result<Settings, BadSetting> {
        let start = match &self.compat {
            Some(name) => self.profile(name)?,
            None => Settings::of(self.full_curve()?),
        };
        Ok(Settings {
            curve: start.curve,
            cap: self.cap.map_or(start.cap, Ceiling::into_option),
            jitter: self.jitter.unwrap_or(start.jitter),
            max_attempts: self.max_attempts.map_or(start.max_attempts, Ceiling::into_option),
            max_elapsed: self.max_elapsed.map_or(start.max_elapsed, Ceiling::into_option),
            max_pushback: self.max_pushback.map_or(start.max_pushback, Ceiling::into_option),
            timeout: self.timeout.map_or(start.timeout, Ceiling::into_option),
            attempt_timeout: self.attempt_timeout.map_or(start.attempt_timeout, Ceiling::into_option),
            spread: self.spread.unwrap_or(start.spread),
        })
    }

    /// The policy of the settings.
    ///
    /// # Errors
    ///
    /// As [`settings`](Draft::settings), and settings that make no sense together, such as a cap below the base.
    pub fn policy(&self) -> Result<Policy, BadSetting> {
        Ok(self.settings()?.policy()?)
    }

    fn profile(&self, name: &str) -> Result<Settings, BadSetting> {
        if let Some(key) = self.shape_key() {
            let problem = format!("the profile {name:?} has a curve of its own");
            return Err(BadSetting::new(problem, format!("leave out either compat or {key}")).at(key));
        }
        super::profile::settings(name)
    }

    fn full_curve(&self) -> Result<Curve, BadSetting> {
        use CurveName::*;
        let curve = self.curve_name();
        self.check_keys(curve)?;
        let base = self.base.unwrap_or(Duration::from_secs(1));
        Ok(match curve {
            Immediate => Curve::Immediate,
            Constant => Curve::Constant { base },
            Linear => Curve::Linear { base, step: self.step.unwrap_or(base) },
            Exponential => Curve::Exponential { base, factor: self.factor.unwrap_or(2.0) },
            Fibonacci => Curve::Fibonacci { base },
            Slots => Curve::Slots { slot: self.base.unwrap_or(Duration::from_nanos(51_200)) },
            List => {
                let delays = intern(self.delays.clone().ok_or_else(|| {
                    BadSetting::new("a list needs its delays", "delays = [\"15s\", \"30s\", \"3m\"]").at("curve")
                })?);
                Curve::List { delays, repeat: self.repeat.unwrap_or(false) }
            }
        })
    }

    fn check_keys(&self, curve: CurveName) -> Result<(), BadSetting> {
        use CurveName::*;
        let wrong = |key, only: &str| {
            Err(BadSetting::new(format!("curve {curve} has no {key}"), format!("{key} goes with {only}")).at(key))
        };
        match curve {
            Immediate | List if self.base.is_some() => wrong("base", "the curves that grow"),
            _ if self.factor.is_some() && curve != Exponential => wrong("factor", "curve exponential"),
            _ if self.step.is_some() && curve != Linear => wrong("step", "curve linear"),
            _ if self.delays.is_some() && curve != List => wrong("delays", "curve list"),
            _ if self.repeat.is_some() && curve != List => wrong("repeat", "curve list"),
            _ => Ok(()),
        }
    }
}

fn known(key: &str) -> Option<&'static str> {
    KEYS.into_iter().find(|known| *known == key)
}

/// A list of delays for ever. A policy is `Copy` and borrows its list, so a list read from text is leaked: each
/// different one once per process, however often it is read.
fn intern(delays: Vec<Duration>) -> &'static [Duration] {
    static LISTS: Mutex<BTreeSet<&'static [Duration]>> = Mutex::new(BTreeSet::new());
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lists.get(delays.as_slice()) {
        return known;
    }
    let delays: &'static [Duration] = delays.leak();
    lists.insert(delays);
    delays
}
