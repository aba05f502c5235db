//! A text as those read it who make a URL or a name of it.

use super::plain::narrowed;

/// A text with its percent signs undone, however often they were written out (`%2F`, `%252F`), in small letters, wide signs as others, and
/// without tabs and ends of lines; and where in it each of its bytes comes from.
pub(super) fn undone(text: &str) -> (String, Vec<usize>) {
    read(text, bytes(text))
}

/// The same with its percent signs as they are, and each time that one of those is undone which is written out itself (`%25`).
pub(super) fn in_small(text: &str) -> Vec<(String, Vec<usize>)> {
    const MOST: usize = 4;
    let mut reading = (text.as_bytes().to_vec(), (0..text.len()).collect::<Vec<_>>());
    let mut all = vec![read(text, reading.clone())];
    while all.len() <= MOST
        && let Some(next) = once_less(&reading)
    {
        all.push(read(text, next.clone()));
        reading = next;
    }
    all
}

/// The same with what is written out undone once and in one way: as in a URL, as in a form, as in JSON.
pub(super) fn once(text: &str) -> Vec<(String, Vec<usize>)> {
    [percent_once(text, '+'), percent_once(text, ' '), json_once(text)].map(|reading| read(text, reading)).into()
}

/// What percent signs stand for, and what a plus does.
fn percent_once(text: &str, plus: char) -> (Vec<u8>, Vec<usize>) {
    let (bytes, mut less, mut from, mut at) = (text.as_bytes(), Vec::new(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let digit = |nth: usize| char::from(*bytes.get(at + nth)?).to_digit(16);
        let (byte, length) = match (byte, digit(1).zip(digit(2))) {
            (b'%', Some((high, low))) => ((16 * high + low) as u8, 3),
            (b'+', _) => (plus as u8, 1),
            (other, _) => (*other, 1),
        };
        less.push(byte);
        from.push(at);
        at += length;
    }
    (less, from)
}

/// What backslashes stand before in JSON (RFC 8259, 7).
fn json_once(text: &str) -> (Vec<u8>, Vec<usize>) {
    let (mut less, mut from, mut at) = (Vec::new(), Vec::new(), 0);
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
    };
    while let Some(c) = text[at..].chars().next() {
        let units: Vec<u16> = [unit(at), unit(at + 6)].into_iter().map_while(|unit| unit).collect();
        let (c, length) = match (c, text[at + c.len_utf8()..].chars().next()) {
            ('\\', Some(sign @ ('"' | '\\' | '/'))) => (sign, 2),
            ('\\', Some('b')) => ('\u{8}', 2),
            ('\\', Some('f')) => ('\u{c}', 2),
            ('\\', Some('n' | 'r' | 't')) => ('\n', 2),
            ('\\', _) if !units.is_empty() => match char::decode_utf16(units.iter().copied()).next() {
                Some(Ok(c)) => (c, 6 * c.len_utf16()),
                _ => (char::REPLACEMENT_CHARACTER, 6),
            },
            (c, _) => (c, c.len_utf8()),
        };
        less.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        from.resize(less.len(), at);
        at += length;
    }
    (less, from)
}

/// Bytes, and where they come from, with a percent sign for each that is written out; `None` if none is.
fn once_less((bytes, from): &(Vec<u8>, Vec<usize>)) -> Option<(Vec<u8>, Vec<usize>)> {
    let (mut less, mut places, mut at) = (Vec::with_capacity(bytes.len()), Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        less.push(bytes[at]);
        places.push(from[at]);
        at += if bytes[at..].starts_with(b"%25") { 3 } else { 1 };
    }
    (less.len() < bytes.len()).then_some((less, places))
}

fn read(text: &str, (bytes, from): (Vec<u8>, Vec<usize>)) -> (String, Vec<usize>) {
    let (mut undone, mut places, mut at) = (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1), 0);
    for chunk in bytes.utf8_chunks() {
        let bad = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        for (begin, c) in chunk.valid().char_indices().chain(bad.map(|c| (chunk.valid().len(), c))) {
            if !['\t', '\r', '\n'].contains(&c) {
                push_small(&mut undone, narrowed(c));
            }
            places.resize(undone.len(), from[at + begin]);
        }
        at += chunk.valid().len() + chunk.invalid().len();
    }
    places.push(text.len());
    (undone, places)
}

/// Adds a letter as small ones, of which some are others or more once they were capitals, as ß is SS.
pub(super) fn push_small(text: &mut String, c: char) {
    match c.is_ascii() {
        true => text.push(c.to_ascii_lowercase()),
        false => text.extend(c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)),
    }
}

/// A text with its percent signs undone, however often they were written out, and otherwise as it is; `None` if it has none.
pub(super) fn decoded(text: &str) -> Option<String> {
    text.contains('%').then(|| String::from_utf8_lossy(&bytes(text).0).into_owned())
}

/// The bytes of a text with its percent signs undone, and where in it each of them comes from.
fn bytes(text: &str) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut from, mut at) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()), 0);
    while let Some(byte) = text.as_bytes().get(at) {
        let (byte, length) = match byte {
            b'%' => sign(&text.as_bytes()[at + 1..]),
            other => (*other, 1),
        };
        bytes.push(byte);
        from.push(at);
        at += length;
    }
    (bytes, from)
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

    #[test]
    fn what_is_not_undone_is_read_alike() {
        assert_eq!(in_small("A%2F\tÄ%C3"), [("a%2fä%c3".to_owned(), vec![0, 1, 2, 3, 5, 5, 7, 8, 9, 10])]);
        let all: Vec<String> = in_small("a%252F%2525").into_iter().map(|(text, _)| text).collect();
        assert_eq!(all, ["a%252f%2525", "a%2f%25", "a%2f%"]);
        assert_eq!(in_small(&"%25".repeat(9)).len(), 2);
        assert_eq!(in_small(&format!("%{}", "25".repeat(9))).len(), 5, "at some time it is left");
    }

    #[test]
    fn what_is_written_out_is_undone_once() {
        for (text, url, form, json) in [
            (r"Pa%2B4%255C+x", "pa+4%5c+x", "pa+4%5c x", "pa%2b4%255c+x"),
            (r#"a\\b\/\"\u003C\u00E4\ud83d\uDC34\ud83dz\"#, "", "", "a\\b/\"<ä\u{1f434}\u{fffd}z\\"),
            (r"\u12 \u{41} \é \\u0041 \x41", "", "", r"\u12 \u{41} \é \u0041 \x41"),
            (r"a\tb\nc\b\f", "", "", "abc\u{8}\u{c}"),
            ("%é%2é%", "%é%2é%", "%é%2é%", "%é%2é%"),
        ] {
            let all = once(text);
            let like = |given: &str| if given.is_empty() { undone(text).0 } else { given.to_owned() };
            assert_eq!(
                all.iter().map(|(text, _)| text.clone()).collect::<Vec<_>>(),
                [like(url), like(form), json.to_owned()]
            );
            assert!(all.iter().all(|(read, places)| read.len() + 1 == places.len() && places.is_sorted()));
        }
    }

    #[test]
    fn signs_are_undone_in_their_place() {
        for (text, told) in [
            ("a%2Fb%2fc", "a/b/c"),
            ("%252F%25252f", "//"),
            ("100%", "100%"),
            ("%25", "%"),
            ("%2", "%2"),
            ("%2525", "%"),
            ("%zz%C3%A4ä%ffx", "%zzää\u{fffd}x"),
            ("A\t\u{212a}Ｂ＠%41%09\n", "akb@a"),
            ("ßẞ\u{17f}\u{fb01}ςİ", "sssssfiσi\u{307}"),
            ("", ""),
        ] {
            let (undone, places) = undone(text);
            assert_eq!((undone.as_str(), undone.len() + 1), (told, places.len()));
            assert!(
                places.is_sorted() && places.iter().all(|place| text.is_char_boundary(*place) || !undone.is_ascii())
            );
        }
    }
}
