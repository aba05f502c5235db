//! The one way by which a text is cut.
//!
//! A piece of a secret is no more the secret that is known, nor is a URL one without its end. So what may have any in it is looked at as a
//! whole, and cut behind that.

use crate::{escape::escape, redact};
use std::borrow::Cow;

/// The most characters of a line, and the most lines.
const MOST: (usize, usize) = (2_000, 50);

/// The first characters of what somebody else wrote, without secrets, as one line of plain characters.
pub(crate) fn first(text: &str, most: usize) -> String {
    match cut(&redact::text(text), most) {
        (shown, true) => format!("{}...", escape(shown)),
        (shown, false) => escape(shown).into_owned(),
    }
}

/// The same in quotes.
pub(crate) fn quoted(text: &str) -> String {
    match cut(&redact::text(text), 60) {
        (shown, true) => format!("\"{}\"...", escape(shown)),
        (shown, false) => format!("\"{}\"", escape(shown)),
    }
}

/// What is told, no longer than anybody reads, and without secrets.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    match redact::text(text) {
        Cow::Borrowed(text) => fewer(text),
        Cow::Owned(text) => Cow::Owned(fewer(&text).into_owned()),
    }
}

fn fewer(text: &str) -> Cow<'_, str> {
    let is_long = |line: &str| cut(line, MOST.0).1;
    if !text.lines().any(is_long) && text.lines().nth(MOST.1).is_none() {
        return Cow::Borrowed(text);
    }
    let mut lines: Vec<String> = text.lines().take(MOST.1).map(|line| within(line, 0)).collect();
    if text.lines().nth(MOST.1).is_some() {
        lines.push("...".to_owned());
    }
    Cow::Owned(lines.join("\n"))
}

/// A line in which nothing is a secret, no longer than one that has so many characters more.
pub(crate) fn within(line: &str, more: usize) -> String {
    match cut(line, MOST.0 - more) {
        (_, true) => format!("{}...", cut(line, MOST.0 - more - 3).0),
        (line, false) => line.to_owned(),
    }
}

/// The first characters of a text, and whether there are more.
fn cut(text: &str, most: usize) -> (&str, bool) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(first(&"9".repeat(65_536), 40).len(), 43);
        assert_eq!(first("30", 40), "30");
        assert_eq!(quoted("perhaps\u{1b}"), r#""perhaps\u{1b}""#);
        assert_eq!(quoted(&"x".repeat(5000)).len(), 65);
        let told = lines(&format!("{}\n{}", "x".repeat(3000), "y\n".repeat(100))).into_owned();
        assert_eq!((told.lines().count(), told.lines().next().unwrap().len()), (51, 2000));
        assert_eq!(lines("a\nb\n"), "a\nb\n");
    }

    /// What ends behind the cut is known as what it is.
    #[test]
    fn what_is_cut_is_looked_at_before() {
        redact::know_secrets(["Zq7RtYpLm3Xc9VbNk2Wd8FgHj4Ks6QaTu5Ei1Oz0Brief".to_owned()].into_iter());
        for length in [1, 30, 50, 1_980, 2_010] {
            for said in ["Zq7RtYpLm3Xc9VbNk2Wd8FgHj4Ks6QaTu5Ei1Oz0Brief", "http://ann:Zq7RtYpLm3Xc9VbNk@host/"] {
                let text = format!("{} {said}", "x".repeat(length));
                for told in [first(&text, 60), quoted(&text), lines(&text).into_owned()] {
                    assert!(!told.contains("Zq7"), "{length}: {told}");
                }
            }
        }
    }

    /// Others choose what it is.
    #[test]
    fn long_texts_are_looked_at_once() {
        for word in ["x ", "a:", "a=", "http://", "://", "a:b@", "@", "http://a:b@h ", "password=x ", "\"", "\\", "%41"]
        {
            assert!(lines(&word.repeat(256 * 1024 / word.len())).len() <= 2_100, "{word}");
        }
    }
}
