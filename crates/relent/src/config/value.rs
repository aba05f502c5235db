//! Values of policy keys as text, the same on a flag and in a file: `100ms`, `proportional=0.2`, `unlimited`.
//!
//! A flag is always [`Value::Text`]; a file has numbers, lists and tables too. Each reader takes both, so that a value
//! means the same wherever it stands and a mistake is answered with the same words.

use super::bad_setting::BadSetting;

use crate::{
    Jitter,
    duration::{BadDuration, parse_duration},
};
use std::{borrow::Cow, fmt, string::String, time::Duration, vec::Vec};

/// A value as it stands in a file or on a flag, before it is known what it should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Number(Cow<'a, str>),
    Bool(bool),
    List(Vec<Value<'a>>),
    Table(Vec<(Cow<'a, str>, Value<'a>)>),
    Date,
}

impl Value<'_> {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Number(_) => "a number",
            Value::Bool(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Date => "a date",
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value::Text(Cow::Borrowed(text))
    }
}

/// A limit that may be lifted: the word `unlimited` stands for none.
///
/// ```
/// use relent::config::{Ceiling, Config};
///
/// let config = Config::parse("[policy]\nmax_attempts = 'unlimited'\ncap = '10s'")?;
/// let draft = config.draft(None)?;
/// assert_eq!(draft.max_attempts, Some(Ceiling::Unlimited));
/// assert_eq!(draft.cap.and_then(Ceiling::into_option), Some(std::time::Duration::from_secs(10)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ceiling<T> {
    /// No limit.
    Unlimited,
    /// At most this.
    At(T),
}

impl<T> Ceiling<T> {
    /// The limit as settings keep it: `None` is no limit.
    pub fn into_option(self) -> Option<T> {
        match self {
            Ceiling::Unlimited => None,
            Ceiling::At(limit) => Some(limit),
        }
    }
}

impl<T> From<Option<T>> for Ceiling<T> {
    fn from(limit: Option<T>) -> Ceiling<T> {
        limit.map_or(Ceiling::Unlimited, Ceiling::At)
    }
}

/// The word for no limit.
pub(super) const UNLIMITED: &str = "unlimited";

/// The curves by name.
///
/// ```
/// use relent::config::CurveName;
///
/// assert_eq!(CurveName::Exponential.as_str(), "exponential");
/// assert_eq!(CurveName::ALL.len(), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CurveName {
    /// No delay.
    Immediate,
    /// The base each time.
    Constant,
    /// Grows by the step.
    Linear,
    /// Grows by the factor.
    Exponential,
    /// Grows as the Fibonacci numbers.
    Fibonacci,
    /// Random slots (IEEE 802.3).
    Slots,
    /// The delays as listed.
    List,
}

impl CurveName {
    /// Every curve.
    pub const ALL: [CurveName; 7] = [
        CurveName::Immediate,
        CurveName::Constant,
        CurveName::Linear,
        CurveName::Exponential,
        CurveName::Fibonacci,
        CurveName::Slots,
        CurveName::List,
    ];

    /// The name, as files and flags write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            CurveName::Immediate => "immediate",
            CurveName::Constant => "constant",
            CurveName::Linear => "linear",
            CurveName::Exponential => "exponential",
            CurveName::Fibonacci => "fibonacci",
            CurveName::Slots => "slots",
            CurveName::List => "list",
        }
    }
}

impl fmt::Display for CurveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

type Read<T> = Result<T, BadSetting>;

pub(super) fn text(value: &Value<'_>) -> Read<String> {
    match value {
        Value::Text(text) => Ok(text.clone().into_owned()),
        other => Err(expected("a text", other, "write it in quotes")),
    }
}

pub(super) fn flag(value: &Value<'_>) -> Read<bool> {
    match value {
        Value::Bool(yes) => Ok(*yes),
        Value::Text(text) if text == "true" => Ok(true),
        Value::Text(text) if text == "false" => Ok(false),
        other => Err(expected("true or false", other, "write it without quotes")),
    }
}

pub(super) fn curve(value: &Value<'_>) -> Read<CurveName> {
    let name = text(value)?;
    CurveName::ALL
        .into_iter()
        .find(|curve| curve.as_str() == name)
        .ok_or_else(|| BadSetting::unknown("curve", &name, &CurveName::ALL.map(CurveName::as_str)))
}

pub(super) fn duration(value: &Value<'_>) -> Read<Duration> {
    match value {
        Value::Text(text) => parse_duration(text).map_err(BadSetting::from),
        Value::Number(_) => Err(BadSetting::from(BadDuration::NoUnit)),
        other => Err(expected("a duration", other, BadDuration::Empty.hint())),
    }
}

pub(super) fn duration_limit(value: &Value<'_>) -> Read<Ceiling<Duration>> {
    if is_unlimited(value) { Ok(Ceiling::Unlimited) } else { duration(value).map(Ceiling::At) }
}

pub(super) fn attempts(value: &Value<'_>) -> Read<Ceiling<u32>> {
    const HINT: &str = "a whole number from 1, the first attempt included, or \"unlimited\"";
    if is_unlimited(value) {
        return Ok(Ceiling::Unlimited);
    }
    let digits = match value {
        Value::Number(digits) | Value::Text(digits) => digits.trim(),
        other => return Err(expected("a whole number", other, HINT)),
    };
    digits
        .parse()
        .map(Ceiling::At)
        .map_err(|_| BadSetting::new(format!("{digits:?} is not a number of attempts"), HINT))
}

pub(super) fn float(value: &Value<'_>) -> Read<f64> {
    match value {
        Value::Number(digits) | Value::Text(digits) => digits
            .trim()
            .replace('_', "")
            .parse()
            .map_err(|_| BadSetting::new(format!("{digits:?} is not a number"), "write it like 2 or 1.5")),
        other => Err(expected("a number", other, "write it like 2 or 1.5")),
    }
}

/// The longest list of delays; longer ones belong into a curve.
const MOST_DELAYS: usize = 1000;

pub(super) fn delays(value: &Value<'_>) -> Read<Vec<Duration>> {
    let delays: Vec<Duration> = match value {
        Value::List(items) => items.iter().map(duration).collect::<Result<_, _>>()?,
        Value::Text(text) => text.split(',').map(|item| duration(&item.into())).collect::<Result<_, _>>()?,
        other => return Err(expected("a list of durations", other, "write it like [\"15s\", \"30s\", \"3m\"]")),
    };
    match delays.len() {
        0..=MOST_DELAYS => Ok(delays),
        count => Err(BadSetting::new(format!("the list has {count} delays"), "a list may have up to 1000")),
    }
}

const JITTERS: [&str; 6] = ["none", "full", "equal", "proportional", "additive", "decorrelated"];

/// A jitter: `"full"`, `"proportional=0.2"` or `{ proportional = 0.2 }`.
pub(super) fn jitter(value: &Value<'_>) -> Read<Jitter> {
    match value {
        Value::Text(text) => match text.split_once('=') {
            Some((name, amount)) => jitter_of(name.trim(), Some(&amount.trim().into())),
            None => jitter_of(text.trim(), None),
        },
        Value::Table(entries) => match entries.as_slice() {
            [(name, amount)] => jitter_of(name, Some(amount)),
            _ => Err(BadSetting::new("a jitter is one of its names, with its amount", AMOUNTS)),
        },
        other => Err(expected("a jitter", other, AMOUNTS)),
    }
}

const AMOUNTS: &str = "\"full\", { proportional = 0.2 } and { additive = \"1s\" } are jitters; \
                       on a flag full, proportional=0.2 and additive=1s";

fn jitter_of(name: &str, amount: Option<&Value<'_>>) -> Read<Jitter> {
    match (name, amount) {
        ("none", None) => Ok(Jitter::None),
        ("full", None) => Ok(Jitter::Full),
        ("equal", None) => Ok(Jitter::Equal),
        ("decorrelated", None) => Ok(Jitter::Decorrelated),
        ("proportional", Some(share)) => float(share).map(Jitter::Proportional),
        ("additive", Some(most)) => duration(most).map(Jitter::Additive),
        ("proportional", None) => Err(BadSetting::new("proportional jitter needs its share", AMOUNTS)),
        ("additive", None) => Err(BadSetting::new("additive jitter needs its longest addition", AMOUNTS)),
        (name, Some(_)) if JITTERS.contains(&name) => {
            Err(BadSetting::new(format!("jitter {name} takes no amount"), format!("write only {name}")))
        }
        (name, _) => Err(BadSetting::unknown("jitter", name, &JITTERS)),
    }
}

fn is_unlimited(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(text) if text == UNLIMITED)
}

fn expected(what: &str, found: &Value<'_>, hint: &str) -> BadSetting {
    match found {
        Value::Text(text) => BadSetting::new(format!("{text:?} is not {what}"), hint),
        other => BadSetting::new(format!("{what} is expected, and this is {}", other.kind()), hint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitters_from_flags_and_tables() {
        assert_eq!(jitter(&"full".into()), Ok(Jitter::Full));
        assert_eq!(jitter(&"proportional=0.2".into()), Ok(Jitter::Proportional(0.2)));
        assert_eq!(jitter(&"additive = 1s".into()), Ok(Jitter::Additive(Duration::from_secs(1))));
        let table = Value::Table(vec![("proportional".into(), Value::Number("0.2".into()))]);
        assert_eq!(jitter(&table), Ok(Jitter::Proportional(0.2)));
    }

    #[test]
    fn what_is_no_jitter_says_why() {
        let problem = |text: &str| jitter(&text.into()).unwrap_err().problem;
        assert_eq!(problem("ful"), "there is no jitter \"ful\"");
        assert_eq!(problem("full=1"), "jitter full takes no amount");
        assert_eq!(problem("proportional"), "proportional jitter needs its share");
        assert_eq!(problem("additive"), "additive jitter needs its longest addition");
        assert_eq!(problem("additive=1"), "the duration has no unit");
        assert_eq!(problem("proportional=a lot"), "\"a lot\" is not a number");
        assert_eq!(jitter(&"ful".into()).unwrap_err().hint, "did you mean \"full\"?");
    }

    #[test]
    fn limits_and_numbers() {
        assert_eq!(attempts(&"unlimited".into()), Ok(Ceiling::Unlimited));
        assert_eq!(attempts(&"5".into()), Ok(Ceiling::At(5)));
        assert_eq!(attempts(&"-5".into()).unwrap_err().problem, "\"-5\" is not a number of attempts");
        assert_eq!(attempts(&"4294967296".into()).unwrap_err().problem, "\"4294967296\" is not a number of attempts");
        assert_eq!(duration_limit(&"unlimited".into()), Ok(Ceiling::Unlimited));
        assert_eq!(duration(&Value::Number("15".into())).unwrap_err().problem, "the duration has no unit");
        assert_eq!(
            duration(&Value::Bool(true)).unwrap_err().problem,
            "a duration is expected, and this is true or false"
        );
        assert_eq!(float(&Value::Number("1_000.5".into())), Ok(1000.5));
    }

    #[test]
    fn lists_have_an_end() {
        assert_eq!(delays(&"1s,2s".into()), Ok(vec![Duration::from_secs(1), Duration::from_secs(2)]));
        let many = Value::List(vec![Value::from("1s"); 1001]);
        assert_eq!(delays(&many).unwrap_err().problem, "the list has 1001 delays");
    }
}
