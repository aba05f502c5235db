//! Secrets that a text says again.

use super::{HIDDEN, undone::undone};
use std::{borrow::Cow, collections::HashMap, ops::Range};

/// From which length on a secret, or a piece of one, is looked for anywhere. A shorter one is a part of many words: what is missing of them
/// would tell it.
pub(super) const LONG_PIECE: usize = 8;

/// A text without these secrets, which are [`undone`], as the text is before it is looked at. It is looked at once, however many they are.
pub(super) fn without<'a, 'b>(text: &'a str, secrets: impl Iterator<Item = &'b String>) -> Cow<'a, str> {
    let mut begins: HashMap<&[u8], Vec<&String>> = HashMap::new();
    for secret in secrets.filter(|secret| secret.trim().len() >= LONG_PIECE) {
        begins.entry(&secret.as_bytes()[..LONG_PIECE]).or_default().push(secret);
    }
    if begins.is_empty() {
        return Cow::Borrowed(text);
    }
    let (undone, places) = undone(text);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, begin) in undone.as_bytes().windows(LONG_PIECE).enumerate() {
        let secrets = begins.get(begin).into_iter().flatten();
        let found = secrets.filter_map(|secret| said(secret, &undone[at..]));
        ranges.extend(found.map(|length| places[at]..places[at + length]));
    }
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
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

/// How much of a secret a text begins with that begins as it does: all of it, or what somebody left of it who cut the text off.
fn said(secret: &str, text: &str) -> Option<usize> {
    let same = secret.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
    if same == secret.len() {
        return Some(same);
    }
    let behind = text.get(same..)?;
    // A sign may be cut, too, and a quote stand between.
    let sign = behind
        .strip_prefix(['%', '\\'])
        .map_or(behind, |rest| rest.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    let end = sign.trim_start_matches(['"', '\'', '`', ')', ']', ' ']);
    CUT.iter().any(|mark| end.starts_with(mark)).then_some(same + behind.len() - sign.len())
}

/// What stands behind a text that somebody cut.
const CUT: [&str; 3] = ["...", "\u{2026}", "[truncated"];

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, secrets: &[&str]) -> String {
        let secrets: Vec<String> = secrets.iter().map(|secret| undone(secret).0).collect();
        without(text, secrets.iter()).into_owned()
    }

    #[test]
    fn a_secret_is_hidden_however_it_stands_there() {
        let secret = "hunter2/ä+x";
        for said in [
            "hunter2%2F%C3%A4%2Bx",
            "hunter2%2fä+x",
            "%68unter2%252F%25c3%25A4+%78",
            "Hunter2/Ä+X",
            "ｈunt\te\nr2／ä＋%58",
            secret,
        ] {
            assert_eq!(told(&format!("/x/ä%2F{said}%2F%ff"), &[secret]), "/x/ä%2F***%2F%ff", "{said}");
        }
        // One may have such signs itself, or be a part of another.
        assert_eq!(told("a%41b%42c%43d%44 a%2541", &["a%41b%42c%43d%44"]), "*** a%2541");
        assert_eq!(told("hunter2known, hunter2known2", &["hunter2known", "hunter2known2", "ter2known2"]), "***, ***");
        assert_eq!(told("a shorter short", &["short", " shorter"]), "a shorter short");
    }

    /// Whoever cut it did not know that it is one.
    #[test]
    fn the_beginning_of_a_secret_is_hidden_where_it_was_cut() {
        for (text, shown) in [
            ("hunter2long...", "***..."),
            ("hunter2%2Flon%4...", "***..."),
            ("\"hunter2/l\"...", "\"***\"..."),
            ("hunter2/longer\u{2026}", "***\u{2026}"),
            ("hunter2...", "hunter2..."),
            ("hunter2/l and ...", "hunter2/l and ..."),
            ("ähunter2/ä...", "ä***..."),
        ] {
            assert_eq!(told(text, &["hunter2/longer/ä", "hunter2long/longer", "hunter2/äö"]), shown);
        }
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
