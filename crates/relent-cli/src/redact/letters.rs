//! A text as nothing but its letters and digits: what stands between them is written in many ways (`+`, `%20`, `\u0020`, `&#32;`).

use super::plain::narrowed;
use std::ops::Range;

/// The letters and digits of ASCII in a text that is [undone](super::undone::undone), and where in it each of them stands: `as_written`,
/// since a secret may look as if something were written out in it, or those that are written out as others.
pub(super) fn letters(undone: &str, as_written: bool) -> (String, Vec<Range<usize>>) {
    let (mut letters, mut places, mut at) = (String::with_capacity(undone.len()), Vec::with_capacity(undone.len()), 0);
    while at < undone.len() {
        let text = &undone.as_bytes()[at..];
        let plain = (if text[0].is_ascii() { char::from(text[0]) } else { OTHER }, 1);
        let (c, length) = if as_written { plain } else { written_out(text).unwrap_or(plain) };
        if let Some(c) = narrowed(c).to_lowercase().next().filter(char::is_ascii_alphanumeric) {
            letters.push(c);
            places.push(at..at + length);
        }
        at += length;
    }
    (letters, places)
}

/// The character that a text begins with, as JSON, programs (`\u00f6`, `\xf6`, `\366`, `\n`) or pages (`&#246;`, `&#xf6;`, `&ouml;`) write it,
/// and how long it is there.
fn written_out(text: &[u8]) -> Option<(char, usize)> {
    let number = |digits: &[u8], radix: u32| {
        let text =
            std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()))?;
        let code = u32::from_str_radix(text, radix).ok()?;
        Some((char::from_u32(code).unwrap_or(OTHER), digits.len()))
    };
    // The number before a sign, which has at most eight digits.
    let until = |begin: usize, end: u8, radix: u32| {
        let digits = text.get(begin..)?.iter().take(9).position(|byte| *byte == end)?;
        let (c, length) = number(&text[begin..begin + digits], radix)?;
        Some((c, begin + length + 1))
    };
    let exactly = |begin: usize, digits: usize, radix: u32| {
        let (c, length) = number(text.get(begin..begin + digits)?, radix)?;
        Some((c, begin + length))
    };
    match text {
        [b'\\', b'u', b'{', ..] => until(3, b'}', 16),
        [b'\\' | b'%', b'u', ..] => exactly(2, 4, 16),
        [b'\\', b'x', ..] => exactly(2, 2, 16),
        [b'\\', b'n' | b'r' | b't' | b'b' | b'f', ..] => Some((OTHER, 2)),
        [b'\\', ..] => exactly(1, 3, 8),
        [b'&', b'#', b'x', ..] => until(3, b';', 16),
        [b'&', b'#', ..] => until(2, b';', 10),
        // Whatever it is called, it is no letter of ASCII and no digit.
        [b'&', b'a'..=b'z', ..] => {
            let name = text[1..].iter().take(9).position(|byte| !byte.is_ascii_alphanumeric());
            name.filter(|name| text[1 + name] == b';').map(|name| (OTHER, name + 2))
        }
        _ => None,
    }
}

/// What is no letter of ASCII, and no digit.
const OTHER: char = char::REPLACEMENT_CHARACTER;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_out_is_undone() {
        for (text, told) in [
            ("a/b c+d", "abcd"),
            (r"a\/b\u00f6\u002fc\u0064\xf6\x65\303\266\146\u{67}\u{1f600}h", "abcdefgh"),
            (r"a\nb\tc\\d\'e", "abcde"),
            ("a&amp;b&#x27;c&#246;d&ouml;&#101;f&frac14;g", "abcdefg"),
            ("aöb\u{fffd}c", "abc"),
            ("a%u002fb%u0063", "abc"),
            // What only looks like that is as it is.
            (r"a\u00g\x1\8\", "au00gx18"),
            ("a&b&#c;&#;&verylongname;d&", "abcverylongnamed"),
            (r"\u{", "u"),
            (r"\u{110000}\ud800&#9999999999;", "9999999999"),
            ("", ""),
        ] {
            let (letters, places) = letters(text, false);
            assert_eq!((letters.as_str(), letters.len()), (told, places.len()), "{text}");
            assert!(places.is_sorted_by(|a, b| a.end <= b.start) && places.iter().all(|place| place.end <= text.len()));
        }
        assert_eq!(letters(r"a\u0041&amp;ö", true).0, "au0041amp");
    }
}
