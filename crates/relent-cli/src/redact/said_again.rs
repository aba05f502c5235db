//! Secrets that a text says again, perhaps with percent signs in them.

use super::{HIDDEN, percent::undone};
use std::{borrow::Cow, ops::Range};

/// From which length on a secret, or a piece of one, is looked for anywhere. A shorter one is a part of many words: what is missing of them
/// would tell it.
pub(super) const LONG_PIECE: usize = 8;

/// A text without these secrets, whether it has them as they are or written out. It is looked at once.
pub(super) fn without<'a, 'b>(text: &'a str, secrets: impl Iterator<Item = &'b String>) -> Cow<'a, str> {
    let undone = text.contains('%').then(|| undone(text));
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for secret in secrets.filter(|secret| secret.trim().len() >= LONG_PIECE) {
        let range = |(begin, _): (usize, &str)| begin..begin + secret.len();
        ranges.extend(text.match_indices(secret.as_str()).map(range));
        if let Some((undone, places)) = &undone {
            let found = undone.match_indices(secret.as_str()).map(range);
            ranges.extend(found.map(|Range { start, end }| places[start]..places[end]));
        }
    }
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for Range { start, end } in ranges {
        // One may begin within another.
        if start >= at {
            out.extend([&text[at..start], HIDDEN]);
        }
        at = at.max(end);
    }
    Cow::Owned(out + &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, secrets: &[&str]) -> String {
        let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        without(text, secrets.iter()).into_owned()
    }

    #[test]
    fn a_secret_is_hidden_where_it_stands_written_out() {
        let secret = "hunter2/ä+x";
        for said in ["hunter2%2F%C3%A4%2Bx", "hunter2%2fä+x", "%68unter2%252F%25c3%25A4+%78", secret] {
            assert_eq!(told(&format!("/x/ä%2F{said}%2F%ff"), &[secret]), "/x/ä%2F***%2F%ff", "{said}");
        }
        // One may have such signs itself, or be a part of another.
        assert_eq!(told("a%41b%42c%43d a%2541", &["a%41b%42c%43d"]), "*** a%2541");
        assert_eq!(told("hunter2known, hunter2known2", &["hunter2known", "hunter2known2", "ter2known2"]), "***, ***");
        assert_eq!(told("a shorter short", &["short", " shorter"]), "a shorter short");
    }

    /// Whoever answers chooses what is looked at.
    #[test]
    fn long_texts_are_looked_at_once() {
        for word in ["%", "%25", "%2", "a%41", "%ff", "ä", "hunter2known"] {
            let text = word.repeat((1 << 20) / word.len());
            assert!(!told(&text, &["hunter2known"; 4]).is_empty());
        }
    }
}
