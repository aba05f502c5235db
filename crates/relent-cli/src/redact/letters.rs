//! A text as nothing but its letters and digits: what stands between them is written in many ways (`+`, `%20`, `\u0020`, `&#32;`), and each
//! of them again by whoever quotes that (`&amp;#32;`). And a text with its signs, where it has too few others.

use super::{
    entities::{FJ, begun, named},
    plain::narrowed,
    undone::push_small,
};
use std::{iter, ops::Range};

/// How often what was written out is undone.
const MOST: usize = 8;

/// The same where what looks like a name stays.
const MOST_OF_OTHERS: usize = 3;

/// The longest number or name of a sign.
const LONGEST: usize = 32;

/// Letters and digits, and where each of their bytes comes from.
pub(super) type Letters = (String, Vec<Range<usize>>);

/// The letters and digits of a text that is [undone](super::undone::undone), and where in it each of them stands: as it is, since a secret
/// may look as if something were written out in it, and each time that something in it is undone. Of a text with others than those of
/// ASCII both are given, those alone and all, since who takes one alphabet for another makes something else of the others.
pub(super) fn letters(undone: &str) -> Vec<Letters> {
    each(undone, Reading::letters)
}

/// The same with the signs in it, but for backslashes, which stand before signs, and for what nobody can see. A plus may be a space.
pub(super) fn signs(undone: &str) -> Vec<Letters> {
    each(undone, |reading| vec![reading.signs()])
}

/// Each reading of a text, at last those in which all is undone. What looks like a name may be a part of a secret in which something else is
/// written out.
fn each(undone: &str, read: fn(&Reading) -> Vec<Letters>) -> Vec<Letters> {
    let as_it_is = || Reading {
        chars: undone.chars().collect(),
        places: undone.char_indices().map(|(at, c)| at..at + c.len_utf8()).collect(),
    };
    let reading = as_it_is();
    let mut all = read(&reading);
    let (mut undone, others) = undone_so(reading, Way::All, read);
    for way in others {
        all.extend(undone_so(as_it_is(), way, read).0);
    }
    all.append(&mut undone);
    all
}

/// Each reading of what is undone in one way, without those that are the same if all is, and the ways in which others are found.
fn undone_so(mut reading: Reading, way: Way, read: fn(&Reading) -> Vec<Letters>) -> (Vec<Letters>, Vec<Way>) {
    let (mut all, mut others) = (Vec::new(), Vec::new());
    for _ in 0..if way == Way::All { MOST } else { MOST_OF_OTHERS } {
        let Some(next) = reading.undone(way, &mut others) else { break };
        if way == Way::All || others.contains(&way) {
            all.extend(read(&next));
        }
        reading = next;
    }
    (all, others)
}

/// What is taken for something that is written out.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// All, and a name that nobody knows for that of a sign.
    All,
    /// The same but for such names.
    Known,
    /// Names as browsers know them, of which some need no semicolon.
    Browsers,
    /// Nothing that may be a word behind a sign, or a digit: no names, no `\n` and no `\3`.
    Codes,
}

/// Those in which less is.
const OTHERS: [Way; 3] = [Way::Known, Way::Browsers, Way::Codes];

/// A text as somebody reads it, and where each of its characters comes from.
struct Reading {
    chars: Vec<char>,
    places: Vec<Range<usize>>,
}

impl Reading {
    fn letters(&self) -> Vec<Letters> {
        let has_others = self.chars.iter().any(|c| !c.is_ascii() && c.is_alphanumeric());
        let others = has_others.then(|| self.those(|c| c.is_alphanumeric().then_some(c)));
        iter::once(self.those(|c| c.is_ascii_alphanumeric().then_some(c))).chain(others).collect()
    }

    fn signs(&self) -> Letters {
        self.those(|c| match c {
            '\\' | OTHER => None,
            '+' | '\u{a0}' => Some(' '),
            c => (!c.is_control()).then_some(c),
        })
    }

    /// Its characters as they are read, if they are.
    fn those(&self, read: fn(char) -> Option<char>) -> Letters {
        let (mut text, mut places) = (String::with_capacity(self.chars.len()), Vec::with_capacity(self.chars.len()));
        for (c, place) in self.chars.iter().zip(&self.places) {
            let Some(c) = read(*c) else { continue };
            push_small(&mut text, c);
            places.resize(text.len(), place.clone());
        }
        (text, places)
    }

    /// What is written out in it read as what it stands for, if anything is. Adds those other ways in which something of it is read otherwise.
    fn undone(&self, way: Way, others: &mut Vec<Way>) -> Option<Reading> {
        if !self.chars.iter().any(|c| BEGINS.contains(c)) {
            return None;
        }
        let mut next =
            Reading { chars: Vec::with_capacity(self.chars.len()), places: Vec::with_capacity(self.chars.len()) };
        let mut at = 0;
        while at < self.chars.len() {
            let text = &self.chars[at..];
            let read = written_out(text, way);
            let may_be_another =
                matches!(text, ['&', 'a'..='z', ..] | ['\\', 'n' | 'r' | 't' | 'b' | 'f' | '0'..='7', ..]);
            if may_be_another && others.len() < OTHERS.len() {
                let all = if way == Way::All { read } else { written_out(text, Way::All) };
                let is_new = |other: &Way| !others.contains(other) && written_out(text, *other) != all;
                let new: Vec<Way> = OTHERS.into_iter().filter(is_new).collect();
                others.extend(new);
            }
            let (c, length) = read.unwrap_or((text[0], 1));
            let mut place = self.places[at].start..self.places[at + length - 1].end;
            // Each of two letters begins and ends something.
            let c = if c == FJ && length > 1 {
                next.chars.push('f');
                next.places.push(place.clone());
                place.start = place.end;
                'j'
            } else {
                c
            };
            next.chars.push(c);
            next.places.push(place);
            at += length;
        }
        (next.chars.len() < self.chars.len()).then_some(next)
    }
}

/// What begins something that is written out.
const BEGINS: [char; 3] = ['\\', '&', '%'];

/// The character that a text in small letters begins with, as JSON, programs (`\u00f6`, `\U000000f6`, `\x{f6}`, `\xf6`, `\366`, `\n`) or pages (`&#246;`,
/// `&#xf6;`, `&ouml;`) write it, and how long it is there.
fn written_out(text: &[char], way: Way) -> Option<(char, usize)> {
    // So many digits behind so many signs, and what ends them.
    let number = |begin: usize, most: usize, radix: u32, end: &[char]| {
        let digits = || text[begin..].iter().take(most).map_while(|c| c.to_digit(radix));
        let (code, length) =
            (digits().try_fold(0_u32, |code, digit| code.checked_mul(radix)?.checked_add(digit)), digits().count());
        let behind = begin + length;
        let c = code.and_then(char::from_u32).map_or(OTHER, narrowed);
        (length > 0).then_some((c, length, behind + if text[behind..].starts_with(end) { end.len() } else { 0 }))
    };
    let any = |begin, most, radix, end: &[char]| number(begin, most, radix, end).map(|(c, _, length)| (c, length));
    let exactly = |begin, digits, radix| {
        number(begin, digits, radix, &[]).filter(|found| found.1 == digits).map(|(c, _, length)| (c, length))
    };
    match text {
        ['\\', 'u' | 'x', '{', ..] => any(3, LONGEST, 16, &['}']),
        // In two halves.
        ['\\' | '%', 'u', 'd', '8'..='9' | 'a' | 'b', ..] => halves(text).or_else(|| exactly(2, 4, 16)),
        // The capital is a small letter by now, and nobody writes the signs that these would be else.
        ['\\', 'u', '0', '0', '0', '0'..='3', ..] => exactly(2, 8, 16).or_else(|| exactly(2, 4, 16)),
        ['\\' | '%', 'u', ..] => exactly(2, 4, 16),
        ['\\', 'x', ..] => exactly(2, 2, 16),
        ['%', ..] => exactly(1, 2, 16),
        ['\\', 'n' | 'r' | 't' | 'b' | 'f', ..] => (way != Way::Codes).then_some((OTHER, 2)),
        ['\\', ..] => any(1, 3, 8, &[]).filter(|_| way != Way::Codes),
        ['&', '#', 'x', ..] => any(3, LONGEST, 16, &[';']),
        ['&', '#', ..] => any(2, LONGEST, 10, &[';']),
        ['&', 'a'..='z', ..] if way != Way::Codes => {
            let length = text[1..].iter().take(LONGEST).take_while(|c| c.is_ascii_alphanumeric()).count();
            let name = &text[1..=length];
            let has_end = text.get(1 + length) == Some(&';');
            match has_end.then(|| named(name)).flatten() {
                Some(c) => Some((c, length + 2)),
                None if way == Way::Browsers => begun(name).map(|(c, length)| (c, length + 1)),
                // Whatever else it is called, it is no letter of ASCII and no digit.
                None => (way == Way::All && has_end).then_some((OTHER, length + 2)),
            }
        }
        _ => None,
    }
}

/// A character that UTF-16 has two halves for, each written out.
fn halves(text: &[char]) -> Option<(char, usize)> {
    const HALF: usize = 6;
    let half = |text: &[char]| {
        let digits: String = text.get(2..HALF).filter(|_| text[..2] == [text[0], 'u'])?.iter().collect();
        u16::from_str_radix(&digits, 16).ok()
    };
    let (high, rest) = (half(text)?, text.get(HALF..)?);
    // Each again.
    let signs = rest.iter().take_while(|c| **c == text[0]).count();
    let again = signs.checked_sub(1)?;
    let c = char::decode_utf16([high, half(&rest[again..])?]).next()?.ok()?;
    Some((narrowed(c), 2 * HALF + again))
}

/// What is no letter, no digit, and begins nothing.
const OTHER: char = '\0';

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::undone;

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
            let (letters, places) = letters(text).into_iter().rfind(|(letters, _)| letters.is_ascii()).unwrap();
            assert_eq!((letters.as_str(), letters.len()), (told, places.len()), "{text}");
            assert!(places.is_sorted_by(|a, b| a.end <= b.start) && places.iter().all(|place| place.end <= text.len()));
        }
        let all: Vec<String> = letters(r"a\u0041&amp;amp;ö").into_iter().map(|(letters, _)| letters).collect();
        assert_eq!(all, ["au0041ampamp", "au0041ampampö", "aaampamp", "aaampampö", "aaamp", "aaampö", "aa", "aaö"]);
    }

    #[test]
    fn signs_stay_what_they_are() {
        for text in [
            "k7&m!<2$/\"p9% {x}",
            "k7&amp;m!&lt;2&dollar;&sol;&quot;p9&percnt;&nbsp;&lcub;x&rcub;",
            "k7&amp;amp;m&#33;&amp;lt;2$/&#34;p9%+{x}",
            r#"k7\u0026m!\u003c2$\/\"p9%\u0020{x}"#,
            r#"k7\\u0026m!\\u003c2$\\\/\\\"p9% {x}"#,
            "k7\u{0}&m!&lt;2$&bsol;/\"p9% {x}",
        ] {
            let all = signs(text);
            let (signs, places) = all.last().unwrap();
            assert_eq!((signs.as_str(), signs.len()), ("k7&m!<2$/\"p9% {x}", places.len()), "{text}");
        }
        let all: Vec<String> = signs("ö&lt;é").into_iter().map(|(signs, _)| signs).collect();
        assert_eq!(all, ["ö&lt;é", "ö<é"]);
    }

    /// All that JSON, programs and pages write out of it.
    #[test]
    fn letters_of_other_scripts_are_letters() {
        for text in [
            "пароль, 20/24 wört",
            r"\u043f\u0430\u0440\u043e\u043b\u044c, 20\/24 w\xf6rt",
            r"\u041F\u0410\u0420\u041E\u041B\u042C2024w\xd6RT",
            r"\u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}2024w\u{f6}rt",
            "&#1087;&#1072;&#x440;&#x43E;&amp;#1083;&#1100;2024w&#246;rt",
            "%u043f%u0430%u0440%u043e%u043b%u044c2024w%u00f6rt",
        ] {
            let all = letters(&undone::undone(text).0);
            let (letters, places) = all.last().unwrap();
            assert_eq!((letters.as_str(), letters.len()), ("пароль2024wört", places.len()), "{text}");
            assert!(all.iter().any(|(letters, _)| letters == "2024wrt"), "{text}");
        }
        assert_eq!(letters("abc").len(), 1);
    }

    /// As PHP writes all that has a name.
    #[test]
    fn letters_with_names_are_letters() {
        for (text, told) in [
            ("p&auml;ssw&ouml;rt&eacute;", "pässwörté"),
            ("gr&uuml;&szlig;e-1x&eacute;", "grüsse1xé"),
            ("&amp;Uuml;n&iuml;&ccedil;od&eacute;1", "ünïçodé1"),
            ("za&zdot;&oacute;&lstrok;&cacute;7xQ1", "zażółć7xq1"),
            ("Dvo&rcaron;&aacute;k-&Scaron;&ccaron;7", "dvořákšč7"),
            ("&pi;&sigmaf;&omega;&frac12;", "πσω½"),
        ] {
            let all = letters(&undone::undone(text).0);
            assert!(all.iter().any(|(letters, _)| letters == told), "{text}: {all:?}");
        }
        let all = signs("&euro;5&pound;7&sect;9x&yen;");
        assert_eq!(all.last().unwrap().0, "\u{20ac}5\u{a3}7\u{a7}9x\u{a5}");
    }

    /// As old pages have them, which browsers read.
    #[test]
    fn names_without_their_end_are_read_as_browsers_do() {
        for (text, told) in [
            ("M&uumlller9Stra&szlige7", "müller9strasse7"),
            ("K9&ampa7h&ampWm4", "k9&a7h&wm4"),
            ("K9&lta7&GTh&quotWm&amp#52;", "k9<a7>h\"wm4"),
            ("&notit;5&frac12x&copy", "¬it;5½x©"),
            ("a&fjlig;ord7", "afjord7"),
            ("M&uuml;ller&notx", "müller¬x"),
        ] {
            let all = signs(&undone::undone(text).0);
            assert!(all.iter().any(|(signs, _)| signs == told), "{text}: {all:?}");
        }
        let all = letters("5&fjlig;7");
        assert_eq!(all.last(), Some(&("5fj7".to_owned(), vec![0..1, 1..8, 8..8, 8..9])));
    }

    /// A secret may have a word behind a sign, and a server may write out the rest of it.
    #[test]
    fn what_looks_like_a_name_may_be_a_part_of_a_secret() {
        for (text, told) in [
            (r"Sch\u00f6n&Regen9;", "schön&regen9;"),
            (r"sid=Sch\xf6n&amp9; path", "sid=schön&amp9; path"),
            (r"2\u00f6q=&k41dg;", "2öq=&k41dg;"),
            ("Sch&#246;n&Regen9;", "schön&regen9;"),
            ("Sch&ouml;n&Regen9;", "schön&regen9;"),
            (r"Sch\u00f6n&lt;9&not", "schön&lt;9&not"),
            ("k&ouml;x&amp;Regen9;", "köx&regen9;"),
            (r"C:\\3t44hKn\u00e9ttkYR", "c:3t44hknéttkyr"),
            (r"C:\\n44hKn\u00e9ttkYR", "c:n44hknéttkyr"),
        ] {
            let all = signs(&undone::undone(text).0);
            assert!(all.iter().any(|(signs, _)| signs == told), "{text}: {all:?}");
        }
        // Where there is no such thing, there is nothing more to read.
        for (text, readings) in [
            (r"a\u00f6b\u00e9", 2),
            ("a&lt;b&gt;&#246;", 3),
            ("a&lt;b&gt;c", 2),
            ("a&b&c;d", 2),
            ("&uumlaut;&", 3),
            ("a&b&c", 1),
            ("a&#1&", 2),
        ] {
            assert_eq!(signs(text).len(), readings, "{text}: {:?}", signs(text));
        }
    }

    /// Of pictures and rare letters JSON and browsers write two halves, and Python all eight digits.
    #[test]
    fn signs_beyond_the_first_plane_are_read_too() {
        for text in [
            "\u{1f434}\u{2000b}x7",
            r"\ud83d\udc34\ud840\udc0bx7",
            r"\\ud83d\\udc34\ud840\udc0bx7",
            "%ud83d%udc34%ud840%udc0bx7",
            r"\U0001f434\U0002000bx7",
            "&#128052;&#x2000b;x7",
        ] {
            let all = signs(&undone::undone(text).0);
            let (signs, places) = all.last().unwrap();
            assert_eq!((signs.as_str(), signs.len()), ("\u{1f434}\u{2000b}x7", places.len()), "{text}");
        }
        for text in [r"\ud83dx", r"\ud83d\u0041", r"\ud83d%udc34", r"\ud83d\udc3", r"\ud83d", r"\udc34\ud83d"] {
            assert!(!signs(text).last().unwrap().0.contains('\u{1f434}'), "{text}");
        }
    }

    #[test]
    fn what_is_written_out_again_and_again_is_left_at_some_time() {
        let text = format!("a&{}#98;", "amp;".repeat(1000));
        assert_eq!(letters(&text).len(), MOST + 1);
        let text =
            format!("\\u00f6&{}regen;&{}notx\\3&{}#92;u0041", "amp;".repeat(99), "amp".repeat(99), "#38;".repeat(99));
        assert!(letters(&text).len() <= 2 * (1 + MOST + OTHERS.len() * MOST_OF_OTHERS));
    }
}
