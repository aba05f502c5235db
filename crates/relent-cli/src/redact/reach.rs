//! How far a text is looked at: what is longer could keep whoever tells of it looking, while nothing else is heard.

use super::HIDDEN;
use std::{
    borrow::Cow,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The longest text that is looked at, in bytes: twice what servers take of all headers together, and eight times what is told of anything.
pub(super) const LONGEST: usize = 16 << 10;

/// How much of that is not shown at least, in bytes: a secret may begin there, which is not known as one without its end.
const MARGIN: usize = 1 << 10;

/// How much longer a secret may be as somebody writes it (`\u00e4` for two bytes, `%41` for one).
const WRITTEN: usize = 6;

/// How long the longest secret is that is known.
static LONGEST_SECRET: AtomicUsize = AtomicUsize::new(0);

/// A secret of so many bytes is known from now on.
pub(super) fn is_known(bytes: usize) {
    LONGEST_SECRET.fetch_max(bytes, Ordering::Relaxed);
}

/// What is shown of a text, and nothing of its words behind that.
pub(super) fn within<'a>(text: &'a str, shown: impl FnOnce(&'a str) -> Cow<'a, str>) -> Cow<'a, str> {
    if text.len() <= LONGEST {
        return shown(text);
    }
    let (words, behind) = text.split_at(boundary(text, LONGEST));
    let rest = behind.split(char::is_whitespace).next().unwrap_or_default();
    // Without its end a word is not what it was, unless that has nothing in it by which what stands before it is read.
    let words = match rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        true => words,
        false => words.trim_end_matches(|c: char| !c.is_whitespace()),
    };
    let shown = shown(words);
    let margin = LONGEST_SECRET.load(Ordering::Relaxed).saturating_mul(WRITTEN).max(MARGIN);
    let shown = &shown[..boundary(&shown, shown.len().min(LONGEST).saturating_sub(margin))];
    Cow::Owned(shown.to_owned() + HIDDEN)
}

/// Where a sign begins, there or before.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{header, know_secrets, server, text, title, url, value, without_given, without_secrets};

    #[test]
    fn nothing_is_shown_of_words_behind_that() {
        let most = "a".repeat(LONGEST);
        let hidden = |text: &str| {
            let shown = within(text, Cow::Borrowed).into_owned();
            assert_eq!(within(&shown, Cow::Borrowed), shown, "it is looked at once more");
            shown
        };
        assert_eq!(within(&most, Cow::Borrowed), most);
        assert_eq!(hidden(&(most.clone() + "a")), "a".repeat(LONGEST - MARGIN) + HIDDEN);
        assert_eq!(hidden(&(most.clone() + "@")), HIDDEN);
        assert_eq!(hidden(&"\u{e4} ".repeat(LONGEST)).len(), LONGEST - MARGIN + 2);
        let words = format!("{} it is at http://ann:hunter2{most}@host/ now", "a".repeat(MARGIN));
        for shown in [text(&words), header("Via", &words), without_given(&words), without_secrets(&words)] {
            assert_eq!(shown, format!("{}***", "a".repeat(10)));
        }
        for shown in [url(&words), server(&words), value(&words), title(&words)] {
            assert!(!shown.contains("hunter2") && shown.len() < 20, "{shown}");
        }
        // Whatever stands where it is cut off.
        for secret in ["hunter2K", "its three words7", "\u{e4}\u{f6}\u{fc}9hunter"] {
            know_secrets([secret.to_owned()].into_iter());
            for before in (0..24).step_by(3).flat_map(|less| [LONGEST - less, LONGEST - MARGIN - less]) {
                let words = format!("{}@ {secret} and more", "a".repeat(before));
                assert!(!text(&words).contains(&secret[..4]), "{before}");
            }
        }
        let secret: String = (0..1200).map(|nth| format!("k{nth}=v{nth}; ")).collect();
        know_secrets([secret.clone()].into_iter());
        for before in [0, LONGEST - 9000, LONGEST - 900] {
            let words = format!("{}@ {secret} and more {}", "a".repeat(before), "a".repeat(LONGEST));
            assert!(!text(&words).contains("=v"), "{before}");
        }
    }
}
