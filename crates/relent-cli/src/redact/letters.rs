//! A text as nothing but its letters and digits: what stands between them is written in many ways (`+`, `%20`, `\u0020`, `&#32;`), and each
//! of them again by whoever quotes that (`&amp;#32;`).

use super::plain::narrowed;
use std::ops::Range;

/// How often what was written out is undone.
const MOST: usize = 8;

/// The longest number or name of a sign.
const LONGEST: usize = 32;

/// The letters and digits of ASCII in a text that is [undone](super::undone::undone), and where in it each of them stands: as it is, since
/// a secret may look as if something were written out in it, and each time that something in it is undone.
pub(super) fn letters(undone: &str) -> Vec<(String, Vec<Range<usize>>)> {
    let bytes = undone.bytes().map(|byte| if byte.is_ascii() { byte } else { OTHER }).collect();
    let mut reading = Reading { bytes, places: (0..undone.len()).map(|at| at..at + 1).collect() };
    let mut all = vec![reading.letters()];
    while let Some(next) = reading.undone().filter(|_| all.len() <= MOST) {
        all.push(next.letters());
        reading = next;
    }
    all
}

/// A text as somebody reads it, and where each of its bytes comes from.
struct Reading {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl Reading {
    fn letters(&self) -> (String, Vec<Range<usize>>) {
        let all = self.bytes.iter().zip(&self.places).filter(|(byte, _)| byte.is_ascii_alphanumeric());
        all.map(|(byte, place)| (char::from(byte.to_ascii_lowercase()), place.clone())).unzip()
    }

    /// What is written out in it read as what it stands for, if anything is.
    fn undone(&self) -> Option<Reading> {
        if !self.bytes.iter().any(|byte| BEGINS.contains(byte)) {
            return None;
        }
        let mut next =
            Reading { bytes: Vec::with_capacity(self.bytes.len()), places: Vec::with_capacity(self.bytes.len()) };
        let mut at = 0;
        while at < self.bytes.len() {
            let (byte, length) = written_out(&self.bytes[at..]).unwrap_or((self.bytes[at], 1));
            next.bytes.push(byte);
            next.places.push(self.places[at].start..self.places[at + length - 1].end);
            at += length;
        }
        (next.bytes.len() < self.bytes.len()).then_some(next)
    }
}

/// What begins something that is written out.
const BEGINS: [u8; 3] = [b'\\', b'&', b'%'];

/// The byte that a text in small letters begins with, as JSON, programs (`\u00f6`, `\U000000f6`, `\x{f6}`, `\xf6`, `\366`, `\n`) or pages (`&#246;`,
/// `&#xf6;`, `&ouml;`) write it, and how long it is there.
fn written_out(text: &[u8]) -> Option<(u8, usize)> {
    // So many digits behind so many signs, and what ends them.
    let number = |begin: usize, most: usize, radix: u32, end: &[u8]| {
        let digits = text.get(begin..)?.iter().take(most).take_while(|byte| char::from(**byte).is_digit(radix)).count();
        let behind = &text[begin + digits..];
        let code = std::str::from_utf8(&text[begin..begin + digits]).ok().filter(|digits| !digits.is_empty())?;
        let code = u32::from_str_radix(code, radix).ok().and_then(char::from_u32);
        Some((code.map_or(OTHER, sign), digits, begin + digits + if behind.starts_with(end) { end.len() } else { 0 }))
    };
    let any = |begin, most, radix, end: &[u8]| number(begin, most, radix, end).map(|(byte, _, length)| (byte, length));
    let exactly = |begin, digits, radix| {
        number(begin, digits, radix, b"").filter(|found| found.1 == digits).map(|(byte, _, length)| (byte, length))
    };
    match text {
        [b'\\', b'u' | b'x', b'{', ..] => any(3, LONGEST, 16, b"}"),
        // The capital is a small letter by now, and nobody writes the signs that these would be else.
        [b'\\', b'u', b'0', b'0', b'0', b'0' | b'1', ..] => exactly(2, 8, 16).or_else(|| exactly(2, 4, 16)),
        [b'\\' | b'%', b'u', ..] => exactly(2, 4, 16),
        [b'\\', b'x', ..] => exactly(2, 2, 16),
        [b'%', ..] => exactly(1, 2, 16),
        [b'\\', b'n' | b'r' | b't' | b'b' | b'f', ..] => Some((OTHER, 2)),
        [b'\\', ..] => any(1, 3, 8, b""),
        [b'&', b'#', b'x', ..] => any(3, LONGEST, 16, b";"),
        [b'&', b'#', ..] => any(2, LONGEST, 10, b";"),
        [b'&', b'a', b'm', b'p', b';', ..] => Some((b'&', 5)),
        // Whatever it is called, it is no letter of ASCII and no digit.
        [b'&', b'a'..=b'z', ..] => {
            let name = text[1..].iter().take(LONGEST).take_while(|byte| byte.is_ascii_alphanumeric()).count();
            (text.get(1 + name) == Some(&b';')).then_some((OTHER, name + 2))
        }
        _ => None,
    }
}

/// A character of ASCII, and wide ones as those that they look like.
fn sign(c: char) -> u8 {
    u8::try_from(narrowed(c)).ok().filter(u8::is_ascii).unwrap_or(OTHER)
}

/// What is no letter of ASCII, no digit, and begins nothing.
const OTHER: u8 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_out_is_undone() {
        for (text, told) in [
            ("a/b c+d", "abcd"),
            (r"a\/b\u00f6\u002fc\u0064\xf6\x65\303\266\146\u{67}\u{1f600}h", "abcdefgh"),
            (r"a\nb\tc\\d\'e", "abcde"),
            ("a&amp;b&#x27;c&#246;d&ouml;&#101;f&frac14;g&verticalline;h", "abcdefgh"),
            // Twice, thrice, and by several.
            ("a&amp;#47;b&amp;amp;#x63;&#38;#x26;quot;d&amp;e&amp;amp;f&amp;; g", "abcdefg"),
            (r"a\u0026quot;b\u002541c\x5cx64\\u002fe&bsol;f", "abacdef"),
            // Eight digits, one and two, many, and without an end.
            (r"a\u0000002fb\u0001f511c\x{1f511}d\53e\7f&#0000000124;g&#124 h", "abcdefgh"),
            ("aöb\u{fffd}c", "abc"),
            ("a%u002fb%u0063", "abc"),
            // What only looks like that is as it is.
            (r"a\u00g\x1\8\", "au00gx18"),
            ("a&b&#c;&#;&d", "abcd"),
            (r"\u{", "u"),
            (r"\u{110000}\ud800&#9999999999;", ""),
            ("", ""),
        ] {
            let (letters, places) = letters(text).pop().unwrap();
            assert_eq!((letters.as_str(), letters.len()), (told, places.len()), "{text}");
            assert!(places.is_sorted_by(|a, b| a.end <= b.start) && places.iter().all(|place| place.end <= text.len()));
        }
        let all: Vec<String> = letters(r"a\u0041&amp;amp;ö").into_iter().map(|(letters, _)| letters).collect();
        assert_eq!(all, ["au0041ampamp", "aaamp", "aa"]);
    }

    #[test]
    fn what_is_written_out_again_and_again_is_left_at_some_time() {
        let text = format!("a&{}#98;", "amp;".repeat(1000));
        assert_eq!(letters(&text).len(), MOST + 1);
    }
}
