//! The text of a policy file as tables and values, with nothing said yet about what they mean.

use super::{error::ConfigError, value::Value};
use std::{borrow::Cow, format};
use toml::{
    Spanned,
    de::{DeFloat, DeInteger, DeTable, DeValue},
};

/// The tables of a text.
pub(super) fn tables(text: &str) -> Result<Spanned<DeTable<'_>>, ConfigError> {
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
