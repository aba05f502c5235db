//! A writer of JSON objects, one line each. Our events are flat and few, so this is all it takes.

use crate::escape::{is_hostile, is_line_break};
use std::fmt::Write;

/// An object under construction.
///
/// ```
/// use relent_cli::json::Object;
///
/// let line = Object::new().text("event", "retry").number("attempt", 2).option("reason", None).finish();
/// assert_eq!(line, r#"{"event":"retry","attempt":2,"reason":null}"#);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Object {
    fields: String,
}

impl Object {
    /// An object without fields.
    pub fn new() -> Object {
        Object::default()
    }

    /// A field with a text.
    pub fn text(&mut self, key: &str, value: &str) -> &mut Object {
        self.raw(key, &quoted(value))
    }

    /// A field with a whole number.
    pub fn number(&mut self, key: &str, value: u64) -> &mut Object {
        self.raw(key, &value.to_string())
    }

    /// A field with a float; those that JSON has no word for become null.
    pub fn float(&mut self, key: &str, value: f64) -> &mut Object {
        if value.is_finite() { self.raw(key, &value.to_string()) } else { self.raw(key, "null") }
    }

    /// A field that is true or false.
    pub fn flag(&mut self, key: &str, value: bool) -> &mut Object {
        self.raw(key, if value { "true" } else { "false" })
    }

    /// A field with a text or null.
    pub fn option(&mut self, key: &str, value: Option<&str>) -> &mut Object {
        match value {
            Some(value) => self.text(key, value),
            None => self.raw(key, "null"),
        }
    }

    /// A field whose value is JSON already: another object, or an [`array()`].
    pub fn raw(&mut self, key: &str, json: &str) -> &mut Object {
        if !self.fields.is_empty() {
            self.fields.push(',');
        }
        self.fields.push_str(&quoted(key));
        self.fields.push(':');
        self.fields.push_str(json);
        self
    }

    /// The object as text.
    pub fn finish(&self) -> String {
        format!("{{{}}}", self.fields)
    }
}

/// An array of values that are JSON already.
pub fn array(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// A text in quotes. Besides what JSON wants escaped, so is everything that a terminal obeys or that misleads a reader
/// ([`escape`](crate::escape)): whoever parses it gets the text as it was, and whoever prints the line is safe.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_hostile(c) || is_line_break(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\u0001é\"");
    }

    #[test]
    fn what_a_terminal_obeys_is_written_out_and_means_the_same() {
        let text = "\u{9b}2J\u{7f}\u{202e}\u{2028}\u{e0041}";
        let json = quoted(text);
        assert_eq!(json, r#""\u009b2J\u007f\u202e\u2028\udb40\udc41""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn values_of_every_kind() {
        let mut object = Object::new();
        object.flag("a", true).float("b", 1.5).float("c", f64::NAN).raw("d", &array(["1".into(), "2".into()]));
        assert_eq!(object.finish(), r#"{"a":true,"b":1.5,"c":null,"d":[1,2]}"#);
        assert_eq!(Object::new().finish(), "{}");
    }
}
