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
