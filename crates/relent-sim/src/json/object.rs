//! A writer of JSON objects: the bytes are the same each time.

use std::fmt::Write;

/// A number, or null.
pub(super) fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => value.to_string(),
        _ => "null".to_owned(),
    }
}

/// An object under construction, its fields in the order in which they were added.
pub(super) struct Object {
    fields: String,
}

impl Object {
    pub(super) const fn new() -> Object {
        Object { fields: String::new() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub(super) fn raw(&mut self, key: &str, value: impl std::fmt::Display) -> &mut Object {
        if !self.fields.is_empty() {
            self.fields.push_str(", ");
        }
        let _ = write!(self.fields, "{}: {value}", quoted(key));
        self
    }

    pub(super) fn number(&mut self, key: &str, value: Option<f64>) -> &mut Object {
        self.raw(key, number(value))
    }

    pub(super) fn text(&mut self, key: &str, value: &str) -> &mut Object {
        self.raw(key, quoted(value))
    }

    pub(super) fn finish(&self) -> String {
        format!("{{{}}}", self.fields)
    }
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// An array of numbers.
pub(super) fn list(values: impl IntoIterator<Item = f64>) -> String {
    array(values.into_iter().map(|value| number(Some(value))))
}

/// An array of values that are JSON already.
pub(super) fn array(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_numbers_without_meaning_are_null() {
        let mut object = Object::new();
        object.text("a\"b", "c\\\n").number("x", Some(f64::NAN)).number("y", Some(1e21)).number("z", None);
        assert_eq!(object.finish(), r#"{"a\"b": "c\\\u000a", "x": null, "y": 1000000000000000000000, "z": null}"#);
    }
}
