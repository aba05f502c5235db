//! A writer of JSON: objects whose fields stand in the order in which they were added, so that the bytes are the same
//! each time. It is the only one in the workspace.

use std::fmt::{Display, Write};

/// An object under construction.
///
/// ```
/// use relent_sim::json::Object;
///
/// let line = Object::new().text("event", "retry").number("attempt", 2).option("reason", None).finish();
/// assert_eq!(line, r#"{"event":"retry","attempt":2,"reason":null}"#);
/// assert_eq!(Object::spaced().float("drain_s", 1.5).flag("over", true).finish(), r#"{"drain_s": 1.5, "over": true}"#);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Object {
    fields: String,
    spaced: bool,
}

impl Object {
    /// An object without fields, to be written without spaces.
    pub const fn new() -> Object {
        Object { fields: String::new(), spaced: false }
    }

    /// An object without fields, to be written with a space after each colon and comma.
    pub const fn spaced() -> Object {
        Object { fields: String::new(), spaced: true }
    }

    /// Whether no field has been added.
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// A field with a text.
    pub fn text(&mut self, key: &str, value: &str) -> &mut Object {
        self.value(key, quoted(value))
    }

    /// A field with a whole number.
    pub fn number(&mut self, key: &str, value: u64) -> &mut Object {
        self.value(key, value)
    }

    /// A field with a number; null for none, and for those that JSON has no word for.
    pub fn float(&mut self, key: &str, value: impl Into<Option<f64>>) -> &mut Object {
        self.value(key, number(value.into()))
    }

    /// A field that is true or false.
    pub fn flag(&mut self, key: &str, value: bool) -> &mut Object {
        self.value(key, value)
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
        self.value(key, json)
    }

    /// A field whose value reads as JSON: a number, or what [`raw`](Object::raw) takes.
    pub fn value(&mut self, key: &str, json: impl Display) -> &mut Object {
        let (comma, colon) = if self.spaced { (", ", ": ") } else { (",", ":") };
        if !self.fields.is_empty() {
            self.fields.push_str(comma);
        }
        let _ = write!(self.fields, "{}{colon}{json}", quoted(key));
        self
    }

    /// The object as text.
    pub fn finish(&self) -> String {
        format!("{{{}}}", self.fields)
    }
}

/// A number, or null.
pub fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| "null".to_owned(), |value| value.to_string())
}

/// An array of numbers; those that JSON has no word for are null.
pub fn list(values: impl IntoIterator<Item = f64>) -> String {
    array(values.into_iter().map(|value| number(Some(value))))
}

/// An array of values that are JSON already.
pub fn array(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// A text in quotes. Besides what JSON wants escaped, so is everything that a terminal obeys or that misleads a reader:
/// whoever parses it gets the text as it was, and whoever prints the line is safe.
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

/// Whether a terminal or a reader may be misled by the character: C0, DEL, C1, marks of the reading order, the invisible
/// tags that repeat ASCII, and what nobody sees and makes two texts look like one (Unicode's `Default_Ignorable_Code_Point`).
/// Words of some languages have joiners in them, and pictures have one that asks for colour. Line breaks are asked for apart.
pub fn is_hostile(c: char) -> bool {
    let marks_order =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_invisible = matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0e}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    // The last two of each plane are no characters, and neither are some others.
    let is_none = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    (c.is_control() && c != '\n') || marks_order || is_invisible || is_none
}

/// Whether a reader of lines may see the character as the end of one.
pub fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\u0001é\"");
    }

    #[test]
    fn values_of_every_kind() {
        let mut object = Object::new();
        object.flag("a", true).float("b", 1.5).float("c", f64::NAN).raw("d", &array(["1".into(), "2".into()]));
        assert_eq!(object.finish(), r#"{"a":true,"b":1.5,"c":null,"d":[1,2]}"#);
        assert_eq!(Object::new().finish(), "{}");
        let mut spaced = Object::spaced();
        spaced.float("y", Some(1e21)).float("z", None);
        assert_eq!(spaced.finish(), r#"{"y": 1000000000000000000000, "z": null}"#);
    }
}
