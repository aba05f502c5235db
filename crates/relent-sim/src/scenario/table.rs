//! Reading TOML tables key by key, with the place of what is wrong.

use relent::{
    config::{BadSetting, ConfigError},
    duration::parse_duration,
};
use std::{cell::RefCell, collections::BTreeSet, ops::Range, time::Duration};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A table of a scenario file. Keys that are read are noted, so that the others can be complained about.
pub(super) struct Table<'a> {
    text: &'a str,
    name: String,
    table: &'a DeTable<'a>,
    read: RefCell<BTreeSet<&'static str>>,
}

/// The most runs and troubles, and the most of all else that nobody has so many of.
pub(super) const MOST_OF_A_LIST: usize = 1000;

/// The most characters of a text: each run has its names, and so has each row of what comes of it.
pub(super) const MOST_OF_A_TEXT: usize = 1000;

pub(super) type Result<T> = std::result::Result<T, Box<ConfigError>>;

impl<'a> Table<'a> {
    pub(super) fn new(text: &'a str, name: &str, table: &'a DeTable<'a>) -> Table<'a> {
        Table { text, name: name.to_owned(), table, read: RefCell::default() }
    }

    /// The text of the file.
    pub(super) const fn source(&self) -> &'a str {
        self.text
    }

    pub(super) fn wrong(
        &self,
        span: Range<usize>,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> Box<ConfigError> {
        Box::new(ConfigError::place(self.text, span, problem, hint))
    }

    pub(super) fn value(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.read.borrow_mut().insert(key);
        self.table.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The place of a key's value, for complaints that come later.
    pub(super) fn span(&self, key: &str) -> Range<usize> {
        self.table.get(key).map_or(0..0, Spanned::span)
    }

    fn expected<T>(&self, value: &Spanned<DeValue<'_>>, what: &str, hint: &str) -> Result<T> {
        let found = value.get_ref().type_str();
        Err(self.wrong(value.span(), format!("{what} is expected, and this is of type {found}"), hint))
    }

    pub(super) fn number(&self, key: &'static str) -> Result<Option<f64>> {
        self.value(key).map(|value| self.number_of(value)).transpose()
    }

    pub(super) fn number_of(&self, value: &Spanned<DeValue<'_>>) -> Result<f64> {
        let text = match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
            DeValue::Float(number) => number.as_str().replace('_', ""),
            _ => return self.expected(value, "a number", "such as 0.5 or 5000"),
        };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(self.wrong(value.span(), format!("{text} is no finite number"), "such as 0.5 or 5000")),
        }
    }

    pub(super) fn whole(&self, key: &'static str) -> Result<Option<u64>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let number = self.number_of(value)?;
        if number >= 2f64.powi(53) {
            return Err(self.wrong(value.span(), "the number is too large", "use at most 9007199254740991"));
        }
        if number < 0.0 || number.fract() != 0.0 {
            return Err(self.wrong(
                value.span(),
                format!("{number} is not a whole number from 0 on"),
                "such as 100000",
            ));
        }
        Ok(Some(number as u64))
    }

    pub(super) fn small(&self, key: &'static str) -> Result<Option<u32>> {
        match self.whole(key)? {
            Some(number) => match u32::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.wrong(self.span(key), format!("{number} is too large"), "use at most 4294967295")),
            },
            None => Ok(None),
        }
    }

    pub(super) fn flag(&self, key: &'static str) -> Result<Option<bool>> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => match value.get_ref() {
                DeValue::Boolean(yes) => Ok(Some(*yes)),
                _ => self.expected(value, "true or false", "without quotes"),
            },
        }
    }

    pub(super) fn text(&self, key: &'static str) -> Result<Option<&'a str>> {
        self.value(key).map(|value| self.text_of(value)).transpose()
    }

    pub(super) fn text_of(&self, value: &'a Spanned<DeValue<'a>>) -> Result<&'a str> {
        match value.get_ref() {
            DeValue::String(text) if text.len() > MOST_OF_A_TEXT => {
                Err(self.wrong(value.span(), "the text is longer than 1000 bytes", "say it in fewer words"))
            }
            DeValue::String(text) => Ok(text),
            _ => self.expected(value, "a text", "in quotes"),
        }
    }

    pub(super) fn duration(&self, key: &'static str) -> Result<Option<Duration>> {
        self.value(key).map(|value| self.duration_of(value)).transpose()
    }

    pub(super) fn duration_of(&self, value: &'a Spanned<DeValue<'a>>) -> Result<Duration> {
        let DeValue::String(text) = value.get_ref() else {
            return self.expected(value, "a duration", "such as \"100ms\" or \"1m30s\"");
        };
        parse_duration(text).map_err(|bad| self.wrong(value.span(), bad.to_string(), bad.hint()))
    }

    /// One of these words.
    pub(super) fn word<T: Copy>(
        &self,
        key: &'static str,
        what: &str,
        words: &[(&'static str, T)],
    ) -> Result<Option<T>> {
        let Some(word) = self.text(key)? else { return Ok(None) };
        match words.iter().find(|(name, _)| *name == word) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
                let bad = BadSetting::unknown(what, word, &names);
                Err(self.wrong(self.span(key), bad.problem, bad.hint))
            }
        }
    }

    pub(super) fn table(&self, key: &'static str) -> Result<Option<Table<'a>>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        self.table_of(key, value).map(Some)
    }

    pub(super) fn table_of(&self, name: &str, value: &'a Spanned<DeValue<'a>>) -> Result<Table<'a>> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(Table::new(self.text, name, table)),
            _ => self.expected(value, "a table", "[NAME] begins one, or { key = value }"),
        }
    }

    /// The items of a list; a value that is no list is a list of one.
    pub(super) fn list(&self, key: &'static str) -> Vec<&'a Spanned<DeValue<'a>>> {
        match self.value(key) {
            None => Vec::new(),
            Some(value) => match value.get_ref() {
                DeValue::Array(items) => items.iter().collect(),
                _ => vec![value],
            },
        }
    }

    /// The items of a [`list`](Table::list) that has not more than so many of `what`: others multiply what is made of it.
    pub(super) fn bounded_list(
        &self,
        key: &'static str,
        most: usize,
        what: &str,
    ) -> Result<Vec<&'a Spanned<DeValue<'a>>>> {
        let list = self.list(key);
        match list.get(most) {
            Some(value) => Err(self.too_many(value.span(), most, what)),
            None => Ok(list),
        }
    }

    /// That there are more than so many of something.
    pub(super) fn too_many(&self, span: Range<usize>, most: usize, what: &str) -> Box<ConfigError> {
        let problem = format!("there are more than {most} {what}");
        self.wrong(span, problem, "fewer say as much, or put the others into a file of their own")
    }

    /// All keys and values, in the order of the file.
    pub(super) fn entries(&self) -> Vec<(&'a str, &'a Spanned<DeValue<'a>>, Range<usize>)> {
        let mut entries: Vec<_> =
            self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), value, key.span())).collect();
        entries.sort_by_key(|(_, value, key)| key.start.max(value.span().start));
        entries
    }

    /// Complains about keys that nobody has read.
    pub(super) fn finish(self) -> Result<()> {
        let read: Vec<&str> = self.read.borrow().iter().copied().collect();
        self.known(&read)
    }

    /// Complains about keys that are none of these: before it is said that another one is missing.
    pub(super) fn known(&self, keys: &[&str]) -> Result<()> {
        for (key, _, span) in self.entries() {
            if !keys.contains(&key) {
                let bad = BadSetting::unknown(&format!("key in {}", self.name), key, keys);
                return Err(self.wrong(span, bad.problem, bad.hint));
            }
        }
        Ok(())
    }
}
