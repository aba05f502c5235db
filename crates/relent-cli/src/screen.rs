//! What the terminal takes: colours, escapes, columns, characters beyond ASCII.

use std::{
    io::{self, IsTerminal},
    os::fd::AsFd,
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether stderr takes colour.
pub fn colours() -> bool {
    io::stderr().is_terminal() && is_unset("NO_COLOR") && !is_dumb()
}

/// Whether the terminal obeys no escapes, not even that which erases a line.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// The columns of the terminal: what stdout says if it is one, and no more than `COLUMNS` says where that is set.
pub fn columns() -> Option<usize> {
    said_or_asked(io::stdout())
}

/// The columns of what something is printed to, if it is a terminal: what that says, and no more than `COLUMNS`, or 80.
pub(crate) fn columns_of(out: impl AsFd) -> Option<usize> {
    let out = out.as_fd();
    out.is_terminal().then(|| said_or_asked(out).unwrap_or(USUAL))
}

/// The columns of a terminal that does not say how many it has, as one on a serial line.
const USUAL: usize = 80;

/// Who says that there are more than there are has another terminal in mind.
fn said_or_asked(out: impl AsFd) -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    let asked = rustix::termios::tcgetwinsize(out).ok().map(|size| usize::from(size.ws_col));
    match asked.filter(|columns| *columns > 0) {
        Some(has) => Some(said.map_or(has, |said| has.min(said))),
        None => said.or(asked.map(|_| USUAL)),
    }
}

/// The rows and the columns that stderr has now: 24 and 80 where it does not say.
pub fn size_of_stderr() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let said = |size: Option<u16>| size.filter(|size| *size > 0).map(usize::from);
    (said(size.map(|size| size.ws_row)).unwrap_or(24), said(size.map(|size| size.ws_col)).unwrap_or(USUAL))
}

/// As much of a line of ours, without secrets, as can be written anew on stderr: what is longer than its line could not be erased.
pub fn cut(line: &str) -> String {
    fitting(line, size_of_stderr().1 - 1).to_owned()
}

/// The columns that a text takes, at most: letters of some scripts take two, and what some terminals draw as one (vowel signs, accents,
/// letters that are joined), others draw one by one.
///
/// ```
/// use relent_cli::screen::width;
///
/// assert_eq!((width("abc"), width("字"), width("e\u{301}"), width("\u{995}\u{9be}"), width("\u{4dc0}")), (3, 2, 2, 2, 2));
/// ```
pub fn width(text: &str) -> usize {
    text.width().max(text.chars().map(drawn_alone).sum())
}

/// The columns of a sign that a terminal draws by itself.
fn drawn_alone(c: char) -> usize {
    match c {
        // At most.
        '\t' => 8,
        // Of one in the tables of some systems, of two in those of others (glibc).
        '\u{3248}'..='\u{324f}' | '\u{4dc0}'..='\u{4dff}' => 2,
        _ => c.width().unwrap_or(1).max(1),
    }
}

/// The columns that a text takes where all but ASCII takes two, as letters of many scripts do in terminals of East Asia (UAX #11: ambiguous): as
/// many as anywhere.
///
/// ```
/// use relent_cli::screen::{width, widest};
///
/// assert_eq!((width("α=1"), widest("α=1"), widest("字")), (3, 4, 2));
/// ```
pub fn widest(text: &str) -> usize {
    text.chars().map(drawn_widest).sum()
}

fn drawn_widest(c: char) -> usize {
    drawn_alone(c).max(if c.is_ascii() { 1 } else { 2 })
}

/// How many bytes of a text take so many columns everywhere.
pub(crate) fn surely_fitting(text: &str, most: usize) -> usize {
    within(text, most, |_, c| drawn_widest(c))
}

/// How many bytes of a text take so many columns, each sign those that are said of it and its place.
fn within(text: &str, most: usize, columns: impl Fn(usize, char) -> usize) -> usize {
    let mut taken = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        taken += columns(at, c);
        (taken > most).then_some(at)
    });
    end.unwrap_or(text.len())
}

/// Whether a sign takes no column: nobody sees it, or it is a part of the one before.
pub fn is_no_column(c: char) -> bool {
    c.width().unwrap_or(0) == 0
}

/// As much of a text as so many columns take.
///
/// ```
/// use relent_cli::screen::fitting;
///
/// assert_eq!((fitting("ab字d", 4), fitting("ab字d", 3), fitting("ab", 3)), ("ab字", "ab", "ab"));
/// assert_eq!(fitting("1\u{fe0f}2\u{fe0f}", 3), "1\u{fe0f}");
/// ```
pub fn fitting(text: &str, most: usize) -> &str {
    &text[..within(text, most, |at, c| {
        // What follows some signs makes pictures of them, which take two.
        if text[at + c.len_utf8()..].starts_with('\u{fe0f}') { 2 } else { drawn_alone(c) }
    })]
}

/// A name in so many columns, with a `~` where more of it was.
///
/// ```
/// use relent_cli::screen::short;
///
/// assert_eq!((short("abc", 3), short("ab字", 3)), ("abc".to_owned(), "ab~".to_owned()));
/// ```
pub fn short(name: &str, most: usize) -> String {
    match width(name) {
        width if width <= most => name.to_owned(),
        _ => format!("{}~", fitting(name, most.saturating_sub(1))),
    }
}

/// Whether stderr is a terminal on which a line can be written anew.
pub fn is_lively() -> bool {
    io::stderr().is_terminal() && unicode() && !is_dumb()
}

/// Whether the locale takes characters beyond ASCII: not where it names another character set, as `C` does.
pub fn unicode() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

fn is_unset(variable: &str) -> bool {
    std::env::var_os(variable).is_none_or(|value| value.is_empty())
}
