//! Where lines are broken for a terminal: between words, and so that nothing that somebody chose begins one as messages do.

use crate::{escape::in_its_characters, redact, screen};
use std::{borrow::Cow, io, os::fd::AsFd};

/// Breaks lines between words so that none is wider than `width` columns, if no word is.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    text.lines().map(|line| laid(line.split(' '), width, "\n", screen::width) + "\n").collect()
}

/// The same for one line with a name in it that somebody chose: what goes on below is set in by two more than the line, and a word that is too
/// wide is broken here, so that no part of the name begins a line.
pub(crate) fn wrap_named(line: &str, width: usize) -> String {
    if screen::widest(line) <= width {
        return format!("{line}\n");
    }
    let bare = line.trim_start_matches(' ');
    let before = &line[..(line.len() - bare.len()).min(width / 2)];
    let width = width.saturating_sub(before.len() + 2).max(2);
    let pieces = |word| {
        let (mut all, mut rest): (Vec<&str>, &str) = (Vec::new(), word);
        loop {
            // There are letters that take three.
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let (piece, behind) = rest.split_at(screen::surely_fitting(rest, width).max(first));
            all.push(piece);
            if behind.is_empty() {
                return all;
            }
            rest = behind;
        }
    };
    let all = laid(bare.split(' ').flat_map(pieces), width, &format!("\n{before}  "), screen::widest);
    format!("{before}{}\n", all.trim_end())
}

/// Words beside each other as far as there is room, and below each other where this breaks the line.
fn laid<'a>(words: impl Iterator<Item = &'a str>, width: usize, breaks: &str, width_of: fn(&str) -> usize) -> String {
    let (mut out, mut taken) = (String::new(), 0);
    for word in words {
        let more = width_of(word);
        if taken > 0 && taken + 1 + more > width {
            out.truncate(out.trim_end_matches(' ').len());
            out.push_str(breaks);
            taken = 0;
        } else if taken > 0 {
            out.push(' ');
            taken += 1;
        }
        out.push_str(word);
        taken += more;
    }
    out
}

/// A text for people in which names that somebody chose may stand anywhere: lines that look like messages are set in, and so is what a terminal
/// would take to a line of its own.
pub(crate) fn without_messages(text: &str) -> Cow<'_, str> {
    set_in(text, broken)
}

/// The same for a terminal of so many columns.
pub(crate) fn without_messages_within(text: &str, columns: usize) -> Cow<'_, str> {
    set_in(text, |text| broken_at(text, columns))
}

fn set_in(text: &str, broken: impl FnOnce(&str) -> Cow<'_, str>) -> Cow<'_, str> {
    let lines = || text.split_inclusive('\n');
    if !lines().any(is_like_a_message) {
        return broken(text);
    }
    let all: String = lines().flat_map(|line| [if is_like_a_message(line) { "  " } else { "" }, line]).collect();
    Cow::Owned(broken(&all).into_owned())
}

/// The same, unless it is JSON, which is for programs.
pub(crate) fn answer(text: &str, is_json: bool) -> Cow<'_, str> {
    if is_json { Cow::Borrowed(text) } else { without_messages(text) }
}

/// A page, a drawing or a table, which are for files, where it is a terminal that gets them.
pub(crate) fn if_shown<'a>(text: &'a str, out: impl AsFd) -> Cow<'a, str> {
    match screen::columns_of(out) {
        Some(columns) => Cow::Owned(without_messages_within(&in_its_characters(text), columns).into_owned()),
        None => Cow::Borrowed(text),
    }
}

/// A text in which relent has messages of its own: lines that a terminal would break where what follows may look like one are broken here. What
/// is there to be copied stays as it is.
pub(crate) fn broken(text: &str) -> Cow<'_, str> {
    match screen::columns_of(io::stdout()) {
        Some(columns) => broken_anywhere(text, columns),
        None => broken_at(text, screen::columns().unwrap_or(usize::MAX)),
    }
}

/// What is said on standard error, in which each line begins with words of relent's, the first perhaps with a colour. What has no end of a line is
/// drawn over, and JSON is for programs.
pub(crate) fn said(text: &str, columns: usize) -> Cow<'_, str> {
    if !text.ends_with('\n') || text.starts_with("{\"") {
        return Cow::Borrowed(text);
    }
    // Nobody else's word has a colour, which takes no room.
    let coloured = text.strip_prefix(COLOUR_BEGINS).and_then(|rest| rest.split_once('m')).and_then(|(colour, rest)| {
        let (word, behind) = rest.split_once(COLOUR_ENDS)?;
        Some((&text[..COLOUR_BEGINS.len() + colour.len() + 1], word, behind))
    });
    let Some((colour, word, behind)) = coloured else { return broken_anywhere(text, columns) };
    match broken_anywhere(&format!("{word}{behind}"), columns) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(broken) => Cow::Owned(match broken.strip_prefix(word) {
            Some(behind) => format!("{colour}{word}{COLOUR_ENDS}{behind}"),
            None => broken,
        }),
    }
}

/// The same where the first line may not begin a line of the terminal, as behind a prompt, or a body without an end of a line: it is broken wherever it
/// looks like a message.
fn broken_anywhere(text: &str, columns: usize) -> Cow<'_, str> {
    let end = text.find('\n').map_or(text.len(), |at| at + 1);
    let (first, rest) = text.split_at(end);
    let cuts: Vec<usize> = inner_messages(first).collect();
    if cuts.is_empty() {
        return broken_at(text, columns);
    }
    let ends = cuts.iter().copied().skip(1).chain([end]);
    let pieces =
        cuts.iter().zip(ends).map(|(begin, end)| wrap_named(&format!("  {}", first[*begin..end].trim_end()), columns));
    let all: String = [wrap_named(first[..cuts[0]].trim_end(), columns)].into_iter().chain(pieces).collect();
    Cow::Owned(all + &broken_at(rest, columns))
}

/// Where in a line something looks like a message, but at its beginning.
fn inner_messages(line: &str) -> impl Iterator<Item = usize> {
    // Nothing that takes no column begins anything: so each sign is looked at a few times, however many of those there are.
    let begins = |&(at, c): &(usize, char)| !screen::is_no_column(c) && is_like_a_message(&line[at..]);
    line.char_indices().skip(1).filter(begins).map(|(at, _)| at)
}

fn broken_at(text: &str, columns: usize) -> Cow<'_, str> {
    let is_wide = |line: &str| line.len() > columns / 2 && screen::widest(line) > columns;
    let is_broken = |line: &str| is_wide(line.trim_end()) && inner_messages(line).next().is_some();
    if !text.split_inclusive('\n').any(is_broken) {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n').map(|line| match is_broken(line) {
        true => wrap_named(line.trim_end(), columns),
        false => line.to_owned(),
    });
    Cow::Owned(lines.collect())
}

/// What begins one of relent's colours.
pub(crate) const COLOUR_BEGINS: &str = "\x1b[1;";
/// What ends a colour.
pub(crate) const COLOUR_ENDS: &str = "\x1b[0m";

/// Whether a line begins as messages do, for who sees it: some of its letters may be those of another script that look alike.
fn is_like_a_message(line: &str) -> bool {
    ["error:", "hint:", "note:", "relent:", "warning:"].iter().any(|begin| {
        let mut seen = line.chars().filter(|c| !screen::is_no_column(*c)).map(looks_like);
        let mut is_any_same = false;
        begin.chars().all(|a| {
            seen.next().is_some_and(|b| {
                let is_same = a == b || matches!((a, b), ('l', 'i') | ('i', 'l' | '!'));
                is_any_same |= is_same;
                is_same || !b.is_ascii()
            })
        }) && is_any_same
    })
}

/// The small letter, or the colon, that a sign looks like, if it is one of those that do; of the rest of Unicode nobody says.
fn looks_like(c: char) -> char {
    match c {
        '1' | '|' => 'l',
        '0' => 'o',
        '\u{2d0}' | '\u{2d1}' | '\u{2f8}' | '\u{589}' | '\u{5c3}' | '\u{703}' | '\u{704}' | '\u{1361}' | '\u{16ec}' => {
            ':'
        }
        '\u{17d6}' | '\u{1804}' | '\u{205a}' | '\u{2982}' | '\u{a4fd}' | '\u{fe13}' | '\u{fe30}' | '\u{1d108}' => ':',
        // Mathematical letters: alphabets, one behind the other.
        '\u{1d400}'..='\u{1d6a3}' => char::from(b'a' + ((u32::from(c) - 0x1d400) % 26) as u8),
        c => redact::narrowed(c).to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_name_begins_a_line_of_a_terminal() {
        let error = "error: forged";
        for name in [
            format!("{} {error}", "a".repeat(70)),
            format!("{}{error}", "\u{6f22}".repeat(40)),
            format!("{}error:\u{a0}forged", "a".repeat(80)),
            format!("{}error:\u{a0}forged", "1\u{fe0f}".repeat(40)),
            format!("{}>error:\u{a0}forged", "\u{644}\u{627}".repeat(40)),
            // A vowel sign, which terminals draw for itself.
            format!("{}>error:\u{a0}forged", "\u{995}\u{9be}".repeat(40)),
            format!("{}>error:\u{a0}forged", "\u{1f44b}\u{1f3fd}".repeat(40)),
            format!("{} error:\u{a0}forged {}", "a b".repeat(26), "c".repeat(200)),
        ] {
            let told = wrap_named(&name, 80);
            assert!(told.lines().all(|line| screen::width(line) <= 80), "{told}");
            assert!(told.lines().skip(1).all(|line| line.starts_with("  ")), "{told}");
            let whole: String = told.chars().filter(|c| !" \n".contains(*c)).collect();
            assert_eq!(whole, name.replace(' ', ""));
        }
        assert_eq!(wrap_named("a b", 80), "a b\n");
        assert_eq!(wrap_named("  key   value from", 16), "  key   value\n    from\n");
        assert_eq!(wrap_named("a\u{17d8}b", 1), "a\n  \u{17d8}\n  b\n");
    }

    #[test]
    fn no_terminal_makes_a_message_of_what_it_breaks() {
        let name = |begin: &str, times: usize| format!("a: {}error:\u{a0}x", begin.repeat(times));
        let like_json = |begin: &str| format!("{begin}{}error: x", "a".repeat(79));
        for (line, columns) in [
            (name("a", 77), 80),
            (name("\u{3b1}", 40), 80),
            (name("b ", 40), 80),
            (name("a", 5), 4),
            // No JSON, though it looks like it.
            (like_json("{"), 80),
            (like_json("{\"a\": \""), 80),
        ] {
            let told = broken_at(&line, columns).into_owned();
            assert!(told.lines().all(|line| screen::widest(line) <= columns), "{told}");
            assert!(told.lines().count() > 1 && told.lines().skip(1).all(|line| line.starts_with("  ")), "{told}");
        }
        let long = format!("error: {}\n", "a".repeat(90));
        assert!(matches!(broken_at(&long, 80), Cow::Borrowed(_)));
        assert!(matches!(broken_at(&name("a", 60), 80), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_said_is_broken_where_it_forges_a_line_and_nowhere_else() {
        let forged = format!("{} relent: succeeded", "a ".repeat(36));
        for begin in ["error:", "\u{1b}[1;31merror:\u{1b}[0m", "< server:"] {
            let told = said(&format!("{begin} {forged}\n"), 80).into_owned();
            assert!(told.contains("\n  ") && !told.contains("\nrelent"), "{told}");
            let long = format!("{begin} {}\n", "a ".repeat(80));
            assert!(matches!(said(&long, 80), Cow::Borrowed(_)), "{begin}");
        }
        let narrow = said("\u{1b}[1;31merror:\u{1b}[0m \"--x-error:FORGED-aaaa\" is unknown\n", 8).into_owned();
        assert!(narrow.starts_with("\u{1b}[1;31merror:\u{1b}[0m\n  \"--x-\n"), "{narrow}");
        assert!(
            !said("\u{1b}[1;31merror:\u{1b}[0m x: error:FORGED\n", 3).contains("\u{1b}"),
            "no part of a colour is left"
        );
        // Something may stand in the line before it.
        let behind = said("note: 302 Found, to /aerror:full; error: x\nb error: x\n", 80).into_owned();
        assert_eq!(behind, "note: 302 Found, to /a\n  error:full;\n  error: x\nb error: x\n");
        for whole in [format!("{{\"event\":\"remark\",\"remark\":\"{forged}\"}}\n"), format!("\r\u{1b}[K{forged}")] {
            assert!(matches!(said(&whole, 80), Cow::Borrowed(_)), "{whole}");
        }
    }

    /// A server may send hundreds of kilobytes of one header: a look at all of the rest from each place would have no end.
    #[test]
    fn signs_of_no_column_are_looked_at_a_few_times() {
        for sign in ["\u{301}", "e\u{301}", "\u{301}e", "er\u{301}", "\u{4e00}\u{301}\u{301}\u{301}"] {
            let all = sign.repeat(400_000 / sign.len());
            for line in [format!("X: {all}"), format!("X: {all}error: x"), format!("error{all}")] {
                let told = without_messages_within(&line, 80);
                assert!(!told.lines().skip(1).any(is_like_a_message), "{sign}");
            }
        }
    }

    #[test]
    fn what_begins_as_messages_do_is_like_one() {
        for line in ["error: x", "hint:", "relent: attempt 1\n", "\u{fe0f}error: x", "er\u{301}r\u{200d}or: x"] {
            assert!(is_like_a_message(line), "{line}");
        }
        let alike = [
            "error\u{a789} x",
            "error\u{2236} x",
            "\u{435}rror: x",
            "\u{ff45}\u{ff52}\u{ff52}\u{ff4f}\u{ff52}\u{ff1a} x",
            "\u{1d68e}\u{1d69b}\u{1d69b}\u{1d698}\u{1d69b}\u{2d0} x",
            "\u{435}\u{433}\u{433}\u{43e}\u{433}\u{205a} x",
            "reIent: x",
            "Err0r: x",
            "re|ent: x",
        ];
        for line in alike {
            assert!(is_like_a_message(line), "{line}");
        }
        for line in
            ["", "error", "errors: 5", "  error: x", "{\"error\": 1}", "\u{6570}\u{636e}\u{5e93}: a b", "f\u{fc}nf: 5"]
        {
            assert!(!is_like_a_message(line), "{line}");
        }
        assert_eq!(without_messages("error: a\nb\nhint: c\n"), "  error: a\nb\n  hint: c\n");
        assert!(matches!(without_messages("a\nb"), Cow::Borrowed(_)));
        assert_eq!([false, true].map(|is_json| answer("error: a\n", is_json)), ["  error: a\n", "error: a\n"]);
    }
}
