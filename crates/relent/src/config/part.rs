//! Parts of upstreams and servers as text: `{ ratio = 0.1, min_per_second = 1 }` in a file, `ratio=0.1,min_per_second=1`
//! on a flag, or one word: another system's name, or a kind with its defaults.
//!
//! Both are read into the same [`Fields`], so that a part means the same wherever it stands.

use super::{bad_setting::BadSetting, error::Span, text::neutral, value::Value};
use crate::{Invalid, duration::parse_duration};
use std::{borrow::Cow, format, string::String, string::ToString, time::Duration, vec, vec::Vec};
use toml::{Spanned, de::DeValue};

/// What is wrong, and where.
pub(super) type Wrong = (Span, BadSetting);
pub(super) type Read<T> = Result<T, Wrong>;

/// What text says about one part of an upstream or a server.
///
/// ```
/// use relent::{Budget, config::{Config, Part}};
///
/// let config = Config::parse("[upstream.bank]\nbudget = 'aws-2.1'\nlimit = 'none'")?;
/// let bank = config.upstream("bank")?;
/// assert_eq!(bank.budget.into_option(), Some(Budget::aws_quota_2_1().settings()));
/// assert_eq!((bank.limit, bank.hedge), (Part::Without, Part::Unsaid));
/// assert_eq!(Part::Unsaid.or(Part::With(1)), Part::With(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Part<T> {
    /// Nothing.
    #[default]
    Unsaid,
    /// That there is none: the word `none`.
    Without,
    /// These settings.
    With(T),
}

impl<T> Part<T> {
    /// The settings, if there are any.
    pub fn into_option(self) -> Option<T> {
        match self {
            Part::With(settings) => Some(settings),
            Part::Unsaid | Part::Without => None,
        }
    }

    /// This one if it says something, else the other.
    #[must_use]
    pub fn or(self, other: Part<T>) -> Part<T> {
        match self {
            Part::Unsaid => other,
            said => said,
        }
    }
}

impl<T> From<Option<T>> for Part<T> {
    fn from(part: Option<T>) -> Part<T> {
        part.map_or(Part::Without, Part::With)
    }
}

/// Settings that text can give.
pub(super) trait Settings: Sized {
    /// What it is called, which is its key too.
    const NAME: &'static str;
    /// How to write one, for hints.
    const LIKE: &'static str;

    /// The settings of one word, and the words that there are.
    fn named(word: &str) -> Result<Self, Vec<&'static str>>;

    /// The settings of these fields, laid over those of a name.
    fn read(fields: &mut Fields<'_>, start: Option<Self>) -> Read<Self>;

    /// What makes no sense of it.
    fn check(&self) -> Result<(), Invalid>;

    /// The key that text has for what the settings call so.
    fn key_of(&self, key: &'static str) -> &'static str {
        key
    }
}

/// Reads a part of a file.
pub(super) fn of_file<T: Settings>(value: &Spanned<DeValue<'_>>) -> Read<Part<T>> {
    match value.get_ref() {
        DeValue::String(text) => of_text(text).map_err(|bad| (value.span(), bad)),
        DeValue::Table(table) => {
            let fields = table.iter().map(|(key, item)| Field {
                key: Cow::Borrowed(key.get_ref().as_ref()),
                value: neutral(item.get_ref()),
                key_at: key.span(),
                at: item.span(),
            });
            let mut list: Vec<Field<'_>> = fields.collect();
            list.sort_by_key(|field| field.key_at.start);
            of_fields(Fields { what: T::NAME, list, at: value.span(), seen: vec![] }, None)
        }
        other => {
            let problem = format!("{} {} is a table or a name, and this is {}", article(T::NAME), T::NAME, kind(other));
            Err((value.span(), BadSetting::new(problem, T::LIKE)))
        }
    }
}

/// Reads a part of a flag.
pub(super) fn of_text<T: Settings>(text: &str) -> Result<Part<T>, BadSetting> {
    let like = |problem: String| BadSetting::new(problem, T::LIKE);
    let mut name = None;
    let mut list = Vec::new();
    for (nth, item) in text.split(',').enumerate() {
        match item.split_once('=') {
            Some((key, value)) => list.push(Field {
                key: Cow::Borrowed(key.trim()),
                value: Value::Text(Cow::Borrowed(value.trim())),
                key_at: 0..0,
                at: 0..0,
            }),
            None if nth == 0 => name = Some(item.trim()),
            None => return Err(like(format!("{:?} is not KEY=VALUE", item.trim()))),
        }
    }
    match name {
        Some("") => return Err(like(format!("the {} says nothing", T::NAME))),
        Some("none") if list.is_empty() => return Ok(Part::Without),
        _ => {}
    }
    let fields = Fields { what: T::NAME, list, at: 0..0, seen: vec![] };
    of_fields(fields, name).map_err(|(_, bad)| bad)
}

fn of_fields<T: Settings>(mut fields: Fields<'_>, name: Option<&str>) -> Read<Part<T>> {
    fields.refuse_twice()?;
    let compat = match name {
        Some(name) => Some((name.to_string(), fields.at.clone())),
        None => fields.text("compat")?,
    };
    let start = match compat {
        Some((name, at)) => Some(T::named(&name).map_err(|names| (at, BadSetting::unknown(T::NAME, &name, &names)))?),
        None => None,
    };
    let settings = T::read(&mut fields, start)?;
    match settings.check() {
        Ok(()) => Ok(Part::With(settings)),
        Err(invalid) => {
            let at = fields.place(settings.key_of(invalid.key));
            Err((at, BadSetting::new(invalid.problem, invalid.hint)))
        }
    }
}

/// `a` or `an`.
pub(super) fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    neutral(value).kind()
}

/// The keys of a part, each of which is taken out once.
pub(super) struct Fields<'a> {
    what: &'static str,
    list: Vec<Field<'a>>,
    at: Span,
    /// The places of those that were taken out.
    seen: Vec<(String, Span)>,
}

struct Field<'a> {
    key: Cow<'a, str>,
    value: Value<'a>,
    key_at: Span,
    at: Span,
}

impl<'a> Fields<'a> {
    pub(super) fn wrong(&self, problem: impl Into<String>, hint: impl Into<String>) -> Wrong {
        (self.at.clone(), BadSetting::new(problem, hint))
    }

    /// A flag may say a key twice, a file may not: TOML forbids it.
    fn refuse_twice(&self) -> Read<()> {
        for (nth, field) in self.list.iter().enumerate() {
            if self.list[..nth].iter().any(|before| before.key == field.key) {
                return Err((
                    field.key_at.clone(),
                    BadSetting::new(format!("{} is given twice", field.key), "leave one of them out"),
                ));
            }
        }
        Ok(())
    }

    /// The place of a value that was read, or of the part.
    fn place(&self, key: &str) -> Span {
        self.seen.iter().find(|(seen, _)| seen == key).map_or_else(|| self.at.clone(), |(_, at)| at.clone())
    }

    /// Which of these keys are there, in the order of the part, with their places.
    pub(super) fn among(&self, keys: &[&'static str]) -> Vec<(&'static str, Span)> {
        let known = |field: &Field<'_>| keys.iter().copied().find(|key| *key == field.key);
        self.list.iter().filter_map(|field| Some((known(field)?, field.key_at.clone()))).collect()
    }

    fn take(&mut self, key: &str) -> Option<(Value<'a>, Span)> {
        let nth = self.list.iter().position(|field| field.key == key)?;
        let field = self.list.remove(nth);
        self.seen.push((key.to_string(), field.at.clone()));
        Some((field.value, field.at))
    }

    fn text(&mut self, key: &str) -> Read<Option<(String, Span)>> {
        match self.take(key) {
            None => Ok(None),
            Some((Value::Text(text), at)) => Ok(Some((text.into_owned(), at))),
            Some((other, at)) => Err((at, expected(key, "a text", &other, "write it in quotes"))),
        }
    }

    pub(super) fn float(&mut self, key: &str) -> Read<Option<f64>> {
        const HINT: &str = "write it like 2 or 0.1";
        let Some((value, at)) = self.take(key) else { return Ok(None) };
        let Some(digits) = digits(&value) else { return Err((at, expected(key, "a number", &value, HINT))) };
        match digits.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err((at, BadSetting::new(format!("{key}: {digits:?} is not a number"), HINT))),
        }
    }

    pub(super) fn whole(&mut self, key: &str) -> Read<Option<u32>> {
        const HINT: &str = "write it like 5";
        let Some((value, at)) = self.take(key) else { return Ok(None) };
        let Some(digits) = digits(&value) else { return Err((at, expected(key, "a whole number", &value, HINT))) };
        match digits.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err((at, BadSetting::new(format!("{key}: {digits} is too large"), "use at most 4294967295")))
            }
            Err(_) => Err((at, BadSetting::new(format!("{key}: {digits:?} is not a whole number from 0 on"), HINT))),
        }
    }

    pub(super) fn duration(&mut self, key: &str) -> Read<Option<Duration>> {
        let Some((value, at)) = self.take(key) else { return Ok(None) };
        let bad = |bad: crate::duration::BadDuration| BadSetting::new(format!("{key}: {bad}"), bad.hint());
        let read = match &value {
            Value::Text(text) => parse_duration(text).map_err(bad),
            Value::Number(_) => Err(bad(crate::duration::BadDuration::NoUnit)),
            other => Err(expected(key, "a duration", other, "write it like \"100ms\" or \"30s\"")),
        };
        read.map(Some).map_err(|bad| (at, bad))
    }

    pub(super) fn flag(&mut self, key: &str) -> Read<Option<bool>> {
        match self.take(key) {
            None => Ok(None),
            Some((Value::Bool(yes), _)) => Ok(Some(yes)),
            Some((Value::Text(text), _)) if text == "true" => Ok(Some(true)),
            Some((Value::Text(text), _)) if text == "false" => Ok(Some(false)),
            Some((other, at)) => Err((at, expected(key, "true or false", &other, "write it without quotes"))),
        }
    }

    /// One of these words.
    pub(super) fn word<T: Copy>(&mut self, key: &str, words: &[(&'static str, T)]) -> Read<Option<T>> {
        let Some((word, at)) = self.text(key)? else { return Ok(None) };
        match words.iter().find(|(name, _)| *name == word) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
                Err((at, BadSetting::unknown(key, &word, &names)))
            }
        }
    }

    /// A duration, or the word `unlimited` for one without end.
    pub(super) fn duration_or_ever(&mut self, key: &str) -> Read<Option<Duration>> {
        let is_ever = |field: &Field<'_>| field.key == key && field.value == Value::from(super::value::UNLIMITED);
        if self.list.iter().any(is_ever) {
            self.take(key);
            return Ok(Some(Duration::MAX));
        }
        self.duration(key)
    }

    /// Complains about what is left. `of` names what has these keys: `a ratio budget`.
    pub(super) fn finish(&self, of: &str, keys: &[&str]) -> Read<()> {
        self.knows(of, keys, |_| false)
    }

    /// Where nothing says of which kind a part is: whether each of its keys is one of some kind.
    pub(super) fn of_some_kind(
        &self,
        of: &str,
        kinds: &[&'static str],
        keys: fn(&str) -> &'static [&'static str],
    ) -> Read<()> {
        let mut all: Vec<&str> = vec![];
        for key in kinds.iter().flat_map(|kind| keys(kind)).filter(|key| **key != "compat") {
            if !all.contains(key) {
                all.push(key);
            }
        }
        self.knows(of, &all, |key| key == "compat" || all.contains(&key))
    }

    fn knows(&self, of: &str, keys: &[&str], is_known: impl Fn(&str) -> bool) -> Read<()> {
        match self.list.iter().find(|field| !is_known(&field.key)) {
            None => Ok(()),
            Some(field) => Err((field.key_at.clone(), BadSetting::unknown(&format!("key of {of}"), &field.key, keys))),
        }
    }

    /// The kind that the key of its number names; `None` if none of them is there.
    pub(super) fn kind(&self, kinds: &[&'static str]) -> Read<Option<&'static str>> {
        match self.among(kinds)[..] {
            [] => Ok(None),
            [(kind, _)] => Ok(Some(kind)),
            [(one, _), (other, ref at), ..] => {
                let problem = format!("{} {} is of one kind, not {one} and {other}", article(self.what), self.what);
                Err((at.clone(), BadSetting::new(problem, "leave one of them out")))
            }
        }
    }
}

fn digits(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Number(digits) | Value::Text(digits) => Some(digits.trim().replace('_', "")),
        _ => None,
    }
}

fn expected(key: &str, what: &str, found: &Value<'_>, hint: &str) -> BadSetting {
    match found {
        Value::Text(text) => BadSetting::new(format!("{key}: {text:?} is not {what}"), hint),
        other => BadSetting::new(format!("{key} is {what}, and this is {}", other.kind()), hint),
    }
}

/// A part as files write it: `{ ratio = 0.1, window = "10s" }`.
pub(super) struct Written(Vec<String>);

impl Written {
    pub(super) fn new() -> Written {
        Written(Vec::new())
    }

    fn item(mut self, key: &str, value: impl ToString) -> Written {
        self.0.push(format!("{key} = {}", value.to_string()));
        self
    }

    pub(super) fn number(self, key: &str, number: f64) -> Written {
        self.item(key, super::write::float(number))
    }

    pub(super) fn whole(self, key: &str, number: u32) -> Written {
        self.item(key, number)
    }

    pub(super) fn flag(self, key: &str, flag: bool) -> Written {
        self.item(key, flag)
    }

    pub(super) fn word(self, key: &str, word: &str) -> Written {
        self.item(key, super::write::quoted(word))
    }

    pub(super) fn duration(self, key: &str, duration: Duration) -> Written {
        match duration {
            Duration::MAX => self.word(key, super::value::UNLIMITED),
            duration => self.item(key, super::write::duration(duration)),
        }
    }

    pub(super) fn maybe<T>(self, value: Option<T>, write: impl FnOnce(Written, T) -> Written) -> Written {
        match value {
            Some(value) => write(self, value),
            None => self,
        }
    }

    pub(super) fn end(self) -> String {
        format!("{{ {} }}", self.0.join(", "))
    }
}
