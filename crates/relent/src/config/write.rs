//! Policies out as text: every key spelled out, so that a file means the same under later defaults too; `timeout`, which
//! no default sets, where there is one.

use super::{
    draft::Draft,
    value::{Ceiling, CurveName, UNLIMITED},
};
use crate::{Curve, Jitter, Policy, duration::Human};
use std::{
    fmt,
    string::{String, ToString},
    time::Duration,
    vec::Vec,
};

/// Everything the policy says, each key given (`timeout` only if there is one).
///
/// A rule of the user's own ([`Policy::custom`]) becomes its name under `compat`; only rules that `relent` has a
/// profile of can be read back.
impl From<Policy> for Draft {
    fn from(policy: Policy) -> Draft {
        let settings = policy.settings();
        Draft {
            cap: Some(settings.cap.into()),
            jitter: Some(settings.jitter),
            max_attempts: Some(settings.max_attempts.into()),
            max_elapsed: Some(settings.max_elapsed.into()),
            max_pushback: Some(settings.max_pushback.into()),
            timeout: settings.timeout.map(Ceiling::At),
            attempt_timeout: Some(settings.attempt_timeout.into()),
            spread: Some(settings.spread),
            ..shape(settings.curve)
        }
    }
}

fn shape(curve: Curve) -> Draft {
    use CurveName::*;
    let named = |name, base| Draft { curve: Some(name), base, ..Draft::default() };
    match curve {
        Curve::Immediate => named(Immediate, None),
        Curve::Constant { base } => named(Constant, Some(base)),
        Curve::Linear { base, step } => Draft { step: Some(step), ..named(Linear, Some(base)) },
        Curve::Exponential { base, factor } => Draft { factor: Some(factor), ..named(Exponential, Some(base)) },
        Curve::Fibonacci { base } => named(Fibonacci, Some(base)),
        Curve::Slots { slot } => named(Slots, Some(slot)),
        Curve::List { delays, repeat } => {
            Draft { delays: Some(delays.to_vec()), repeat: Some(repeat), ..named(List, None) }
        }
        Curve::Custom(rule) => Draft { compat: Some(rule.name().to_string()), ..Draft::default() },
    }
}

/// The given keys as lines of a policy file, without a header.
///
/// ```
/// use relent::{Policy, config::Draft};
/// use std::time::Duration;
///
/// let text = Draft::from(Policy::constant(Duration::from_secs(5))).to_string();
/// assert!(text.starts_with("curve = \"constant\"\nbase = \"5s\"\ncap = \"1m4s\"\njitter = \"full\"\nmax_attempts = 8\n"));
/// ```
impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "compat", self.compat.as_deref().map(quoted))?;
        line(f, "curve", self.curve.map(|curve| quoted(curve.as_str())))?;
        line(f, "base", self.base.map(duration))?;
        line(f, "factor", self.factor.map(float))?;
        line(f, "step", self.step.map(duration))?;
        line(f, "delays", self.delays.as_deref().map(list))?;
        line(f, "repeat", self.repeat.map(|repeat| repeat.to_string()))?;
        line(f, "cap", self.cap.map(duration_limit))?;
        line(f, "jitter", self.jitter.map(jitter))?;
        line(f, "max_attempts", self.max_attempts.map(|most| limit(most, |most| most.to_string())))?;
        line(f, "max_elapsed", self.max_elapsed.map(duration_limit))?;
        line(f, "max_pushback", self.max_pushback.map(duration_limit))?;
        line(f, "timeout", self.timeout.map(duration_limit))?;
        line(f, "attempt_timeout", self.attempt_timeout.map(duration_limit))?;
        line(f, "spread", self.spread.map(duration))
    }
}

fn line(f: &mut fmt::Formatter<'_>, key: &str, value: Option<String>) -> fmt::Result {
    match value {
        Some(value) => writeln!(f, "{key} = {value}"),
        None => Ok(()),
    }
}

fn limit<T>(limit: Ceiling<T>, show: impl Fn(T) -> String) -> String {
    match limit {
        Ceiling::Unlimited => quoted(UNLIMITED),
        Ceiling::At(at) => show(at),
    }
}

fn duration_limit(at: Ceiling<Duration>) -> String {
    limit(at, duration)
}

pub(super) fn duration(duration: Duration) -> String {
    quoted(&Human(duration).to_string())
}

fn list(delays: &[Duration]) -> String {
    let delays: Vec<String> = delays.iter().copied().map(duration).collect();
    format!("[{}]", delays.join(", "))
}

fn jitter(jitter: Jitter) -> String {
    match jitter {
        Jitter::None => quoted("none"),
        Jitter::Full => quoted("full"),
        Jitter::Equal => quoted("equal"),
        Jitter::Decorrelated => quoted("decorrelated"),
        Jitter::Proportional(share) => format!("{{ proportional = {} }}", float(share)),
        Jitter::Additive(most) => format!("{{ additive = {} }}", duration(most)),
    }
}

/// The shortest digits that read back as the same float. Whole numbers are written as such.
pub(super) fn float(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value:?}") }
}

/// A basic string of TOML.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
