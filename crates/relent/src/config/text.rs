//! The text of a policy file as tables and values, with nothing said yet about what they mean.

use super::{error::ConfigError, value::Value};
use std::{borrow::Cow, format};
use toml::{
    Spanned,
    de::{DeFloat, DeInteger, DeTable, DeValue},
};

/// The most dots and brackets of a text. Each may make a table, which takes 500 times as much memory as that and a letter.
const MOST_SIGNS: usize = 100_000;

/// That the tables of a text do not take much more memory than it.
pub(super) fn is_bounded(text: &str) -> Result<(), ConfigError> {
    match text.match_indices(['.', '[', '{']).nth(MOST_SIGNS) {
        Some((at, sign)) => {
            let hint = "each may make a table; leave out what is no setting";
            Err(ConfigError::place(text, at..at + sign.len(), "the file has more than 100000 dots and brackets", hint))
        }
        None => Ok(()),
    }
}

/// The tables of a text.
pub(super) fn tables(text: &str) -> Result<Spanned<DeTable<'_>>, ConfigError> {
    is_bounded(text)?;
    DeTable::parse(text).map_err(|e| {
        let span = e.span().unwrap_or(0..0);
        ConfigError::place(text, span, e.message(), "policy files are TOML: key = \"value\" lines")
    })
}

/// A value as flags have it too.
pub(super) fn neutral<'a>(value: &'a DeValue<'_>) -> Value<'a> {
    match value {
        DeValue::String(text) => Value::Text(Cow::Borrowed(text)),
        DeValue::Integer(number) => Value::Number(integer(number)),
        DeValue::Float(number) => Value::Number(float(number)),
        DeValue::Boolean(yes) => Value::Bool(*yes),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::List(items.iter().map(|item| neutral(item.get_ref())).collect()),
        DeValue::Table(table) => Value::Table(
            table
                .iter()
                .map(|(key, value)| (Cow::Borrowed(key.get_ref().as_ref()), neutral(value.get_ref())))
                .collect(),
        ),
    }
}

/// Integers in decimal, whatever they were written in; those past 64 bits as they stand.
fn integer<'a>(number: &'a DeInteger<'_>) -> Cow<'a, str> {
    match i64::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => Cow::Owned(format!("{value}")),
        Err(_) => Cow::Borrowed(number.as_str()),
    }
}

fn float<'a>(number: &'a DeFloat<'_>) -> Cow<'a, str> {
    Cow::Borrowed(number.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_all_dots_and_brackets() {
        let dotted = format!("[policy.read]\n{} = 1\n", vec!["a"; 75].join("."));
        for (line, signs) in [(dotted.as_str(), 76), ("[[a]]\n", 2), ("a = [{a = 1}, {}]\n", 3)] {
            let text = |lines: usize| line.repeat(lines);
            assert!(is_bounded(&text(MOST_SIGNS / signs)).is_ok(), "{line}");
            let long = text(MOST_SIGNS / signs + 1);
            let error = tables(&long).unwrap_err();
            assert_eq!(error.problem(), "the file has more than 100000 dots and brackets", "{line}");
            assert_eq!(error.line(), Some(long.lines().count()), "{line}");
        }
    }
}
