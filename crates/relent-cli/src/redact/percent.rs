//! Percent signs.

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
}
