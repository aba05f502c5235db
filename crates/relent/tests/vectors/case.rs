//! One case: reading its fields, and comparing numbers.

use relent::compat::Random;
use serde_json::Value;
use std::time::Duration;

/// What became of a case that did not fail.
#[derive(Debug)]
pub(crate) enum Verified {
    Ran,
    /// It belongs to a protection that relent does not have yet.
    Later,
    /// Its result is defined by the platform.
    Skipped,
}

pub(crate) type Outcome = Result<Verified, String>;

/// A case of a file.
pub(crate) struct Case<'a>(pub(crate) &'a Value);

impl<'a> Case<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some()
    }

    pub(crate) fn need(&self, key: &str) -> Result<&'a Value, String> {
        self.0.get(key).ok_or_else(|| format!("no field {key:?}"))
    }

    pub(crate) fn text(&self, key: &str) -> Result<&'a str, String> {
        self.need(key)?.as_str().ok_or_else(|| format!("{key:?} is no text"))
    }

    pub(crate) fn number(&self, key: &str) -> Result<f64, String> {
        number(self.need(key)?)
    }

    /// A number, or the default where the field is absent or null.
    pub(crate) fn number_or(&self, key: &str, default: f64) -> Result<f64, String> {
        self.get(key).map_or(Ok(default), number)
    }

    pub(crate) fn whole(&self, key: &str) -> Result<i64, String> {
        self.need(key)?.as_i64().ok_or_else(|| format!("{key:?} is no whole number"))
    }

    pub(crate) fn count(&self, key: &str) -> Result<u32, String> {
        let count = self.need(key)?.as_u64().and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| format!("{key:?} is no count"))
    }

    pub(crate) fn flag(&self, key: &str) -> Result<bool, String> {
        self.need(key)?.as_bool().ok_or_else(|| format!("{key:?} is no flag"))
    }

    pub(crate) fn numbers(&self, key: &str) -> Result<Vec<f64>, String> {
        self.list(key)?.iter().map(number).collect()
    }

    pub(crate) fn wholes(&self, key: &str) -> Result<Vec<i64>, String> {
        let whole = |value: &Value| value.as_i64().ok_or_else(|| format!("{value} is no whole number"));
        self.list(key)?.iter().map(whole).collect()
    }

    pub(crate) fn list(&self, key: &str) -> Result<&'a [Value], String> {
        match self.need(key)? {
            Value::Null => Ok(&[]),
            value => value.as_array().map(Vec::as_slice).ok_or_else(|| format!("{key:?} is no list")),
        }
    }

    /// Steps: a list of numbers, one number, or a text such as `0..11`, both included, `60..` (as many as there are
    /// results), or several of them after commas.
    pub(crate) fn steps(&self, key: &str) -> Result<Vec<u32>, String> {
        let wrong = || format!("{key:?} are no steps");
        match self.need(key)? {
            Value::String(ranges) => {
                let mut steps = Vec::new();
                for range in ranges.split(',').map(str::trim) {
                    let (first, last) = range.split_once("..").unwrap_or((range, range));
                    let first: u32 = first.trim().parse().map_err(|_| wrong())?;
                    let last = match last.trim_start_matches('=').trim() {
                        "" => first + (self.results() - steps.len()).saturating_sub(1) as u32,
                        last => last.parse().map_err(|_| wrong())?,
                    };
                    steps.extend(first..=last);
                }
                Ok(steps)
            }
            Value::Array(steps) => {
                steps.iter().map(|step| step.as_u64().map(|step| step as u32).ok_or_else(wrong)).collect()
            }
            step => Ok(vec![step.as_u64().ok_or_else(wrong)? as u32]),
        }
    }

    /// How many results the case lists.
    fn results(&self) -> usize {
        let mut lists = self.0.as_object().into_iter().flatten().filter(|(key, _)| key.starts_with("out"));
        lists.find_map(|(_, list)| list.as_array()).map_or(0, Vec::len)
    }

    /// The options under a key, an empty object if there are none.
    pub(crate) fn options(&self, key: &str, known: &[&str]) -> Result<Case<'a>, String> {
        static NONE: Value = Value::Null;
        let Some(options) = self.get(key) else { return Ok(Case(&NONE)) };
        let object = options.as_object().ok_or_else(|| format!("{key:?} are no options"))?;
        match object.keys().find(|key| !known.contains(&key.as_str())) {
            Some(unknown) => Err(format!("an option that this test does not know: {unknown}")),
            None => Ok(Case(options)),
        }
    }

    /// The forced random number: `"0"`, `"0.25"`, `"0.5"`, `"max"`, another fraction, or `"1 (test-only)"`.
    pub(crate) fn forced(&self) -> Result<Random, String> {
        let Some(forced) = self.get("forced") else { return Ok(Random::Draw(0)) };
        let text = forced.as_str().map_or_else(|| forced.to_string(), str::to_owned);
        Ok(match text.split(' ').next().unwrap_or_default() {
            "0" => Random::Draw(0),
            "0.25" => Random::Draw(1 << 62),
            "0.5" => Random::Draw(1 << 63),
            "0.75" => Random::Draw(3 << 62),
            "max" => Random::Draw(u64::MAX),
            other => Random::Fraction(other.parse().map_err(|_| format!("forced {text:?}"))?),
        })
    }

    /// A case of a kind that belongs to the protections that come later.
    pub(crate) fn is_later(kind: &str) -> bool {
        let later = [
            "quota",
            "cubic",
            "clocker",
            "limiter",
            "token",
            "budget",
            "breaker",
            "throttl",
            "rejection",
            "admission",
            "concurrency",
            "bulkhead",
            "amplification",
        ];
        let kind = kind.to_ascii_lowercase();
        later.iter().any(|later| kind.contains(later))
    }
}

pub(crate) fn unknown(what: &str) -> Outcome {
    if Case::is_later(what) { Ok(Verified::Later) } else { Err(format!("a case that this test does not know: {what}")) }
}

fn number(value: &Value) -> Result<f64, String> {
    match value {
        Value::String(text) if text == "NaN" => Ok(f64::NAN),
        Value::String(text) if text == "Infinity" => Ok(f64::INFINITY),
        Value::String(text) if text == "-Infinity" => Ok(f64::NEG_INFINITY),
        value => value.as_f64().ok_or_else(|| format!("{value} is no number")),
    }
}

/// Bit for bit.
pub(crate) fn same(expected: &[f64], found: &[f64]) -> Outcome {
    compare(expected, found, |e, f| e == f || (e.is_nan() && f.is_nan()))
}

/// Within a relative distance, for what goes through powers and hyperbolic tangents.
pub(crate) fn close(expected: &[f64], found: &[f64], relative: f64) -> Outcome {
    compare(expected, found, |e, f| e == f || (e - f).abs() <= relative * e.abs())
}

/// Within an absolute distance, or what a float that large can tell apart.
pub(crate) fn within(expected: &[f64], found: &[f64], distance: f64) -> Outcome {
    compare(expected, found, |e, f| (e - f).abs() <= distance || (e - f).abs() <= f64::EPSILON * e.abs())
}

pub(crate) fn compare(expected: &[f64], found: &[f64], equal: impl Fn(f64, f64) -> bool) -> Outcome {
    if expected.len() != found.len() {
        return Err(format!("expected {} values, found {}", expected.len(), found.len()));
    }
    match expected.iter().zip(found).position(|(e, f)| !equal(*e, *f)) {
        Some(at) => Err(format!("value {at}: expected {:?}, found {:?}", expected[at], found[at])),
        None => Ok(Verified::Ran),
    }
}

pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, found: T) -> Outcome {
    if expected == found { Ok(Verified::Ran) } else { Err(format!("{what}: expected {expected:?}, found {found:?}")) }
}

/// A name and its arguments: `of(500,0.5): a remark` is `("of", ["500", "0.5"])`.
pub(crate) fn call_of(text: &str) -> (&str, Vec<&str>) {
    let Some((name, rest)) = text.split_once('(') else { return (text.trim(), Vec::new()) };
    let arguments = rest.split_once(')').map_or(rest, |(arguments, _)| arguments);
    (name.trim(), arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty()).collect())
}

/// `100ms`, `1.5s`, or plain nanoseconds such as `1e9`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(nanos) = text.parse::<f64>() {
        return Ok(Duration::from_nanos(nanos as u64));
    }
    relent::duration::parse_duration(text).map_err(|e| format!("{text:?}: {e}"))
}

pub(crate) fn nanos(text: &str) -> Result<i64, String> {
    Ok(duration(text)?.as_nanos() as i64)
}
