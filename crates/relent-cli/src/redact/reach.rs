//! How far a text is looked at: what is longer could keep whoever tells of it looking, while nothing else is heard.

use super::HIDDEN;
use std::borrow::Cow;

/// The longest text that is looked at, in bytes: twice what servers take of all headers together, and eight times what is told of anything.
pub(super) const LONGEST: usize = 16 << 10;

/// What is shown of a text, and nothing of its words behind that.
pub(super) fn within<'a>(text: &'a str, shown: impl FnOnce(&'a str) -> Cow<'a, str>) -> Cow<'a, str> {
    if text.len() <= LONGEST {
        return shown(text);
    }
    // What comes of it may be looked at once more.
    let end = (0..=LONGEST - HIDDEN.len()).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (words, behind) = text.split_at(end);
    let rest = behind.split(char::is_whitespace).next().unwrap_or_default();
    // Without its end a word is not what it was, unless that has nothing in it by which what stands before it is read.
    let words = match rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        true => words,
        false => words.trim_end_matches(|c: char| !c.is_whitespace()),
    };
    Cow::Owned(shown(words).into_owned() + HIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{header, server, text, title, url, value, without_given, without_secrets};

    #[test]
    fn nothing_is_shown_of_words_behind_that() {
        let most = "a".repeat(LONGEST);
        assert_eq!(within(&most, Cow::Borrowed), most);
        let cut = within(&(most.clone() + "a"), Cow::Borrowed).into_owned();
        assert_eq!(
            (cut.len(), cut.ends_with("a***"), within(&cut, Cow::Borrowed)),
            (LONGEST, true, Cow::Borrowed(&*cut))
        );
        assert_eq!(within(&(most.clone() + "@"), Cow::Borrowed), HIDDEN);
        let words = format!("it is at http://ann:hunter2{most}@host/ now");
        for shown in [text(&words), header("Via", &words), without_given(&words), without_secrets(&words)] {
            assert_eq!(shown, "it is at ***");
        }
        for shown in [url(&words), server(&words), value(&words), title(&words)] {
            assert!(!shown.contains("hunter2") && shown.len() < 20, "{shown}");
        }
        assert_eq!(within(&format!("a\u{a0}{most}@"), Cow::Borrowed), "a\u{a0}***");
        assert_eq!(within(&"\u{e4} ".repeat(LONGEST), Cow::Borrowed), "\u{e4} ".repeat((LONGEST - 3) / 3) + HIDDEN);
    }
}
