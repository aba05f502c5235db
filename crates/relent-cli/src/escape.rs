//! The one way by which text that relent did not write reaches a terminal or a log: nothing in it is obeyed.
//!
//! A header's value, a name in a policy file, a line of a broken file, an argument: each may hold a sequence that moves
//! the cursor, a line break that begins a forged `error:`, or a mark that turns the reading order around. All of these
//! are written out as Rust writes them (`\n`, `\u{1b}`), and so is everything beyond ASCII where the locale has no
//! UTF-8. JSON has its own spelling of the same characters ([`json`](crate::json)).

use crate::screen;
use relent_sim::json::{is_hostile, is_line_break};
use std::{borrow::Cow, fmt::Write};

/// A text as one line of plain characters.
///
/// ```
/// use relent_cli::escape::escape;
///
/// assert_eq!(escape("read\u{1b}[2J\nerror: forged"), r"read\u{1b}[2J\nerror: forged");
/// assert_eq!(escape("lamp"), "lamp");
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    written(text, |c| is_hostile(c) || is_line_break(c))
}

/// The same for a text of several lines, whose line breaks (`\n`) are relent's own.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    written(text, |c| c != '\n' && (is_hostile(c) || is_line_break(c)))
}

/// A text that is nobody's to obey already, for a terminal whose character set may be another than UTF-8.
pub(crate) fn in_its_characters(text: &str) -> Cow<'_, str> {
    written(text, |_| false)
}

/// [`escape`] for bytes that may not be UTF-8, which then show the replacement character.
pub fn escape_bytes(bytes: &[u8]) -> String {
    escape(&String::from_utf8_lossy(bytes)).into_owned()
}

/// A word as a shell takes it.
///
/// ```
/// use relent_cli::escape::shell;
///
/// assert_eq!(shell("relent.toml#read"), "'relent.toml#read'");
/// assert_eq!(shell("it's; rm x"), r"'it'\''s; rm x'");
/// assert_eq!(shell("bank"), "bank");
/// assert_eq!(shell("=ls"), "'=ls'");
/// ```
pub fn shell(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=./,:+%@".contains(c);
    // For zsh `=ls` is the file of a command.
    match !word.is_empty() && word.chars().all(is_plain) && !word.starts_with('=') {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

fn written(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    let ascii_only = !text.is_ascii() && !screen::unicode();
    let hides = |c: char| hides(c) || (ascii_only && !c.is_ascii());
    if !text.chars().any(&hides) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' if hides(c) => out.extend(c.escape_default()),
            c if hides(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let every = ('\0'..='\u{ffff}').filter(|c| c.is_control()).collect::<String>();
        for text in [&every, "\u{1b}]0;title\u{7}", "\u{9b}2J", "a\rb", "\u{7f}", "\t"] {
            let shown = escape(text);
            assert!(shown.chars().all(|c| !c.is_control()), "{shown}");
            assert!(matches!(escape(&shown), Cow::Borrowed(_)), "twice is once");
        }
    }

    #[test]
    fn no_line_can_be_forged_and_no_reading_order_turned() {
        assert_eq!(escape("x\nerror: y\u{2028}z\u{85}"), "x\\nerror: y\\u{2028}z\\u{85}");
        for mark in [
            "\u{202e}",
            "\u{2066}",
            "\u{200f}",
            "\u{61c}",
            "\u{feff}",
            "\u{e0041}",
            "\u{200b}",
            "\u{2060}",
            "\u{180e}",
            "\u{ad}",
            "\u{34f}",
            "\u{115f}",
            "\u{206a}",
            "\u{3164}",
            "\u{ffa0}",
            "\u{fffe}",
            "\u{1ffff}",
            "\u{180b}",
            "\u{fdd0}",
            "\u{1bca0}",
            "\u{1d173}",
            "\u{e0100}",
        ] {
            assert!(escape(mark).starts_with("\\u{"), "{mark:?}");
        }
        assert_eq!(
            escape("\u{646}\u{627}\u{645}\u{647}\u{200c}\u{647}\u{627}"),
            "\u{646}\u{627}\u{645}\u{647}\u{200c}\u{647}\u{627}"
        );
    }

    #[test]
    fn lines_of_our_own_stay_lines() {
        assert_eq!(escape_lines("a\nb\r\u{1b}c\u{2029}"), "a\nb\\r\\u{1b}c\\u{2029}");
    }

    #[test]
    fn other_bytes_are_shown_as_such() {
        assert_eq!(escape_bytes(b"a\xff\x1b"), escape("a\u{fffd}\u{1b}"));
    }
}
