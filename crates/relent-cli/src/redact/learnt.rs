//! What is looked for of what is hidden.

use super::{
    parts::{bare, parts},
    signed::{is_of_the_request, of_the_request, others},
    table::{LONG_PIECE, Table},
    undone::{decoded, in_small, undone},
};
use crate::escape::escape;
use std::{collections::BTreeSet, iter};

/// Adds to what is looked for what is hidden of what somebody gets, where this is shown: they may say it again, or a part of it, as it is
/// or with its percent signs undone. What stands in what is shown as well is no secret, as a database that is called like its user, and
/// neither is what a signed request says of itself.
pub(super) fn learn(table: &mut Table, hidden: &[String], shown: &str) {
    let (mut all, mut wholes) = (Vec::new(), Vec::new());
    for text in hidden {
        // Of a header it is what stands behind a space, of which nobody who says it again knows.
        let text = text.trim();
        let (decoded, unquoted) = (decoded(text), unquoted(text));
        for text in iter::once(text).chain(decoded.as_deref()).chain(unquoted.as_deref()) {
            let said = of_the_request(text);
            let is_said = |part: &str| is_of_the_request(text, &said, part);
            let is_secret = |part: &&str| !shown.contains(*part) && !is_said(part) && !is_said(bare(part));
            all.extend(parts(text).into_iter().filter(is_secret).flat_map(written));
        }
        let signed = decoded.iter().find(|text| !of_the_request(text).is_empty()).map_or(text, String::as_str);
        wholes.extend(others(signed, &of_the_request(signed)).into_iter().flat_map(written));
    }
    table.add(all_undone(all.into_iter()), all_undone(wholes.into_iter()));
}

/// A text without the backslashes that JSON writes before some signs, if there are any.
pub(super) fn unquoted(text: &str) -> Option<String> {
    let (mut out, mut is_written_out) = (String::with_capacity(text.len()), false);
    for c in text.chars() {
        is_written_out = c == '\\' && !is_written_out;
        if !is_written_out {
            out.push(c);
        }
    }
    (out.len() < text.len()).then_some(out)
}

/// Texts as a text is when they are looked for in it, and one with percent signs as it is, too: a piece may end within one, and who says it
/// again may not write it out, or have undone some that were written out several times.
fn all_undone(texts: impl Iterator<Item = String>) -> BTreeSet<String> {
    let with_signs = |text: String| {
        let readings = in_small(&text).into_iter().map(|(text, _)| text).filter(|text| text.contains('%'));
        let is_long = |(nth, text): &(usize, String)| *nth == 0 || text.len() >= LONG_PIECE;
        let readings = readings.enumerate().filter(is_long).map(|(_, text)| text);
        iter::once(undone(&text).0).chain(readings).collect::<Vec<_>>()
    };
    texts.flat_map(with_signs).filter(|text| !text.is_empty()).collect()
}

/// A text as messages write it: as it is, or as Rust or a terminal has it.
pub(super) fn written(text: &str) -> Vec<String> {
    let debug = format!("{text:?}");
    let mut all = vec![text.to_owned()];
    // The last is how keys of a store are shown.
    let others = [
        debug[1..debug.len() - 1].to_owned(),
        text.escape_debug().to_string(),
        escape(text).into_owned(),
        text.as_bytes().escape_ascii().to_string(),
    ];
    for other in others {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::said_again;

    /// With what is undone in them they are too short to be looked for, or end with what may be a space.
    #[test]
    fn what_is_long_enough_as_it_was_sent_is_known_so() {
        for (sent, said) in [
            ("a1%2Fb2%3D9", "a1%2Fb2%3D9"),
            ("a1%2Fb2%3D9", "A1%2fB2%3d9"),
            ("sid=a1%2Fb2%3D9", "a1%2Fb2%3D9"),
            ("a1%2Fb2%3D9", "a1%252Fb2%25253D9"),
            ("K%25x9%25Q", "K%25x9%25Q"),
            ("sid=K%25x9%25Q7", "K%2525x9%2525Q7"),
            ("a%25C3%25A4b1%25C3%25B6", "a%C3%A4b1%C3%B6"),
            ("Winter++", r"Winter\u002B\u002B"),
            ("+Winte7+", "&plus;Winte7&#43;"),
            ("Winter7+", r"Winter7\u002B"),
            ("Winter7+", "Winter7&#x2b;"),
            ("+Winter7", r"\u002BWinter7"),
        ] {
            let mut table = Table::default();
            learn(&mut table, &[sent.to_owned()], "");
            let text = format!("key \"{said}\" is unknown");
            let told = said_again::without(&text, &[&table], &Table::default(), &[]).into_owned();
            assert_eq!(told, "key \"***\" is unknown", "{sent}");
        }
    }

    /// Who gets a value undoes what is written out in it, and takes it apart then.
    #[test]
    fn what_is_written_out_is_known_in_parts() {
        for sent in [
            "Hunter2Longer",
            "s%3AHunter2Longer.Sig12%2Bx",
            "s%253AHunter2Longer.Sig12%252Bx",
            "%7B%22user%22%3A%22ann%22%2C%22token%22%3A%22Hunter2Longer%22%7D",
            "{\"user\":\"ann\",\"token\":\"Hunter2Longer\"}",
            "{\"a\":\"b\\\"c\",\"token\":\"Hunter2\\u004conger\"}",
            "12%7CHunter2Longer%7Cabcdefgh",
            "ann%3AHunter2Longer",
            "a=1&b=Hunter2Longer&c=2",
        ] {
            let mut table = Table::default();
            learn(&mut table, &[sent.to_owned()], "");
            let told =
                said_again::without("key Hunter2Longer is unknown", &[&table], &Table::default(), &[]).into_owned();
            assert_eq!(told, "key *** is unknown", "{sent}");
        }
    }
}
