//! Secrets that a text says again, perhaps with percent signs in them.

use super::HIDDEN;
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

/// A text whose percent signs are undone, however often they were written out (`%2F`, `%252F`), and where in it each of its bytes comes from.
pub(super) fn undone(text: &str) -> (String, Vec<usize>) {
    let (mut bytes, mut places, mut at) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len() + 1), 0);
    while let Some(byte) = text.as_bytes().get(at) {
        let (byte, length) = match byte {
            b'%' => sign(&text.as_bytes()[at + 1..]),
            other => (*other, 1),
        };
        bytes.push(byte);
        places.push(at);
        at += length;
    }
    let (mut undone, mut from) = (String::with_capacity(bytes.len()), Vec::with_capacity(places.len() + 1));
    let mut rest = places.into_iter();
    for chunk in bytes.utf8_chunks() {
        undone.push_str(chunk.valid());
        from.extend(rest.by_ref().take(chunk.valid().len()));
        if let Some(place) = rest.by_ref().take(chunk.invalid().len()).min() {
            undone.push(char::REPLACEMENT_CHARACTER);
            from.extend([place; char::REPLACEMENT_CHARACTER.len_utf8()]);
        }
    }
    from.push(text.len());
    (undone, from)
}

/// The byte that a percent sign begins, and how long it is.
fn sign(behind: &[u8]) -> (u8, usize) {
    let again = behind.chunks_exact(2).take_while(|pair| *pair == b"25").count();
    let digit = |nth: usize| char::from(*behind.get(2 * again + nth)?).to_digit(16);
    match digit(0).zip(digit(1)) {
        Some((high, low)) => (u8::try_from(16 * high + low).unwrap_or(b'%'), 3 + 2 * again),
        None => (b'%', 1 + 2 * again),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, secrets: &[&str]) -> String {
        let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        without(text, secrets.iter()).into_owned()
    }

    #[test]
    fn percent_signs_are_undone_in_their_place() {
        for (text, told) in [
            ("a%2Fb%2fc", "a/b/c"),
            ("%252F%25252f", "//"),
            ("100%", "100%"),
            ("%25", "%"),
            ("%2", "%2"),
            ("%2525", "%"),
            ("%zz%C3%A4ä%ffx", "%zzää\u{fffd}x"),
            ("", ""),
        ] {
            let (undone, places) = undone(text);
            assert_eq!((undone.as_str(), undone.len() + 1), (told, places.len()));
            assert!(
                places.is_sorted() && places.iter().all(|place| text.is_char_boundary(*place) || !undone.is_ascii())
            );
        }
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
