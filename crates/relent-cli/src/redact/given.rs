//! What was given on the command line and in the environment, known as a whole: whatever a message quotes of it, and however that is
//! written, the secret part is hidden.
//!
//! How a text looks tells little of where a value ends that somebody wrote in the wrong place. Here that is known, so the rules can be
//! coarse ([`value`]). Names in a file that was named are known in the same way.

use super::{
    HIDDEN,
    basic::{self, secrets_of_a_user},
    chosen,
    learnt::{learn, unquoted, written},
    most::Budget,
    names::is_token,
    plain, said_again,
    table::{LONG_PIECE, Table},
    told::is_told,
    undone::{decoded, undone},
    url::passwords,
    value::as_shown,
    words::have_a_message,
};
use crate::escape::escape;
use percent_encoding::percent_decode_str;
use std::{
    borrow::Cow,
    cell::Cell,
    env, iter,
    sync::{LazyLock, OnceLock, PoisonError, RwLock},
};
use url::{Position, Url};

/// A value that is not shown as it is.
#[derive(Debug)]
struct Given {
    /// The value, as messages may write it, with what is shown in its place.
    forms: Vec<(String, String)>,
    /// What it says itself to be a secret.
    secrets: Vec<String>,
    /// What may be one, and may be a part of a script that happens to be a word of ours, too.
    others: Vec<String>,
    /// The same as it is looked for, once the value was told.
    table: OnceLock<Table>,
}

impl Given {
    /// What is shown in its place.
    fn shown(&self) -> &str {
        self.forms.first().map_or("", |(_, shown)| shown)
    }
}

/// All that is known.
#[derive(Debug, Default)]
struct Known {
    given: Vec<Given>,
    /// What is secret of it, and what was sent.
    secrets: Table,
    /// What is secret of the stores that are used, which a file may have chosen.
    of_stores: Table,
    /// What is told all the same, in small letters: hosts that are asked, and names that somebody chose.
    told: Vec<String>,
}

impl Known {
    fn add(&mut self, given: impl Iterator<Item = Given>) {
        for given in given {
            learn(&mut self.secrets, &given.secrets, given.shown());
            self.given.push(given);
        }
    }
}

/// What was given, and the names that files have since.
static GIVEN: LazyLock<RwLock<Known>> = LazyLock::new(|| {
    let arguments: Vec<String> = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let is_ours = |name: &str| name.starts_with("RELENT_") || name.to_ascii_lowercase().ends_with("_proxy");
    let variables = env::vars_os().filter(|(name, _)| is_ours(&name.to_string_lossy()));
    let values = variables.map(|(_, value)| value.to_string_lossy().into_owned());
    let mut known = of_arguments(&arguments);
    known.add(values.flat_map(|value| of(&value, false)));
    RwLock::new(known)
});

/// Looks at what was given, if it is long: who tells of something has no time for that.
pub(crate) fn get_ready() {
    const LONG: usize = 16 << 10;
    if env::args_os().map(|word| word.len()).sum::<usize>() > LONG {
        LazyLock::force(&GIVEN);
    }
}

/// A text without what was given and lets others in.
pub(crate) fn without(text: &str) -> Cow<'_, str> {
    hidden(text, &GIVEN.read().unwrap_or_else(PoisonError::into_inner))
}

/// What others sent, without the secrets that they were sent, or that were given. Nothing of it is said by relent.
pub(crate) fn without_secrets(text: &str) -> Cow<'_, str> {
    without_secrets_within(text, &mut Budget::of(text))
}

/// The same as far as something is left to look with.
pub(super) fn without_secrets_within<'a>(text: &'a str, budget: &mut Budget) -> Cow<'a, str> {
    let known = GIVEN.read().unwrap_or_else(PoisonError::into_inner);
    said_again::without_within(text, &[&known.secrets, &known.of_stores], &Table::default(), &known.told, budget)
}

/// Names and other values that a file has, of which messages may tell. Who wrote it has no say in what is hidden of our own words, so they are
/// known as wholes only, and not at all if they are like a message. Of more than anybody writes the rest is not known: looking for it takes long.
pub(crate) fn know<'a>(names: impl Iterator<Item = &'a str>, values: impl Iterator<Item = &'a str>) {
    let whole = |given: Given| Given { secrets: vec![], others: vec![], ..given };
    let all = names.map(|name| (name, is_name(name))).chain(values.map(|value| (value, false)));
    let odd = all.filter(|(text, _)| !have_a_message(text)).filter_map(|(text, is_name)| of_value(text, is_name));
    let odd: Vec<Given> = odd.map(whole).take(MOST_OF_A_FILE).collect();
    if !odd.is_empty() {
        GIVEN.write().unwrap_or_else(PoisonError::into_inner).add(odd.into_iter());
    }
}

/// How many names and other values of a file are looked for in each message.
const MOST_OF_A_FILE: usize = 250;

/// The URL of a store that is used: whose server it is may say again what is secret of it. A password is one even if the database is called like it.
pub(crate) fn know_store(url: &str) {
    let narrow = plain::narrow(url);
    let (shown, without_secrets) = as_shown(&narrow, false);
    let hidden = with_users(hidden_parts(&narrow, &without_secrets).into_iter().map(str::to_owned));
    let passwords = with_users(passwords(url).map(str::to_owned));
    let mut known = GIVEN.write().unwrap_or_else(PoisonError::into_inner);
    for (all, shown) in [(hidden, &*shown), (passwords, "")] {
        if !all.is_empty() {
            learn(&mut known.of_stores, &all, shown);
        }
    }
}

/// What lets somebody in, and is sent: whoever gets it may say it again, or a part of it. A short name of a user stands in many messages.
pub(crate) fn know_secrets(secrets: impl Iterator<Item = String>) {
    let all = with_users(secrets);
    if !all.is_empty() {
        learn(&mut GIVEN.write().unwrap_or_else(PoisonError::into_inner).secrets, &all, "");
    }
}

/// Secrets, and what those say that are a user in base64.
fn with_users(secrets: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = secrets.collect();
    // In JSON within JSON twice.
    let readings = |secret: &String| {
        let once = unquoted(secret);
        let twice = once.as_deref().and_then(unquoted);
        [Some(secret.clone()), decoded(secret), once, twice]
    };
    let users: Vec<String> = all.iter().flat_map(readings).flatten().flat_map(|text| basic::undone(&text)).collect();
    let is_short_name = |user: &str, text: &str| text.len() < LONG_PIECE && user.starts_with(&format!("{text}:"));
    let of_users = users.iter().flat_map(|user| secrets_of_a_user(user).filter(|text| !is_short_name(user, text)));
    all.extend(of_users);
    all.retain(|secret| !secret.is_empty());
    all
}

/// Where a URL leads, which is asked: a user is often called like a host, a header names where one comes from, and whoever reads a message
/// has to know where something went wrong.
pub(crate) fn know_place(url: &Url) {
    let place = &url[Position::BeforeHost..Position::AfterPort];
    if !place.is_empty() {
        let place = format!("{}://{place}/", url.scheme()).to_lowercase();
        GIVEN.write().unwrap_or_else(PoisonError::into_inner).told.push(place);
    }
}

/// The name of a user (`ann:password`) that the path of a URL has, too, whose paths are shown: a repository is called like its owner. What may
/// be the secret itself is none.
pub(crate) fn know_name_in_a_path(user: &str, path: &str) {
    let Some((name, password)) = user.split_once(':') else { return };
    let (name_in_small, password) = (name.to_lowercase(), password.to_lowercase());
    let is_secret = password.is_empty() || name_in_small.contains(&password) || is_token(name);
    if !name.is_empty() && !is_secret && path.split('/').any(|part| part == name) {
        GIVEN.write().unwrap_or_else(PoisonError::into_inner).told.push(name_in_small);
    }
}

/// A name that somebody chose, as it is shown wherever it is.
pub(crate) fn name(text: &str) -> String {
    let narrow = plain::narrow(text);
    match as_shown(&narrow, is_name(text)).0 {
        same if same == narrow => text.to_owned(),
        shown => shown,
    }
}

/// Whether a name may be shown as one that somebody chose: a URL is none.
fn is_name(text: &str) -> bool {
    !plain::narrow(text).contains("://")
}

/// What is known of a command line. Names that somebody has chosen may have signs in them (`backup:shop`), and stand in what is secret of a
/// command (`PASSWORD=pw ./backup`).
fn of_arguments(arguments: &[String]) -> Known {
    let chosen: Vec<Option<&str>> = (0..arguments.len()).map(|nth| chosen::name(arguments, nth)).collect();
    let is_one = |name: Option<&str>| name.is_some_and(is_name);
    let mut known = Known::default();
    let all = arguments.iter().zip(&chosen).enumerate();
    known.add(all.flat_map(|(nth, (argument, chosen))| match chosen::file(arguments, nth) {
        Some(file) => of_value(file, false).into_iter().collect(),
        None => of(chosen.filter(|_| is_one(*chosen)).unwrap_or(argument), is_one(*chosen)),
    }));
    known.told.extend(chosen.into_iter().flatten().filter(|text| name(text) == *text).map(str::to_lowercase));
    known
}

/// How many bytes of what was given are looked through, at most, for what one text quotes: all arguments that a system takes, some thirty times. What
/// is done is counted, not its time, so that the same is found on each machine.
const MOST_LOOKED_THROUGH: usize = 1 << 28;

/// How many bytes of one text are looked through for values as wholes: some thousands of URLs on a command line in a message that nobody reads. Who
/// wrote that has no say in how long a signal waits for it, and what was not looked through is not shown.
const MOST_FOR_WHOLES: usize = 1 << 30;

/// What it takes to look through a value, besides its bytes.
const ASK: usize = 64;

fn hidden<'a>(text: &'a str, known: &Known) -> Cow<'a, str> {
    let all = &known.given;
    let mut out = Cow::Borrowed(text);
    // All as wholes first: a part of one may be a part of another.
    let (mut told, mut left) = (Vec::new(), MOST_FOR_WHOLES);
    for given in all {
        let mut is_told = false;
        for (form, shown) in &given.forms {
            left = left.saturating_sub(ASK + out.len());
            if left == 0 {
                // Its own words stand before what it quotes.
                let own = text.find('"').map(|quote| hidden(&text[..quote], known).into_owned());
                return Cow::Owned(own.unwrap_or_default() + HIDDEN);
            }
            if !out.contains(form) {
                continue;
            }
            // A short one that says nothing of itself is a part of many words.
            let less = match !given.secrets.is_empty() || form.len() >= LONG_PIECE {
                true => out.replace(form, shown),
                false => replace_a_word(&out, form, shown),
            };
            is_told |= less != *out;
            out = Cow::Owned(less);
        }
        told.push(is_told);
    }
    let of_told = all.iter().zip(&told).filter(|(_, is_told)| **is_told).map(|(given, _)| {
        given.table.get_or_init(|| {
            let mut table = Table::default();
            learn(&mut table, &given.others, given.shown());
            table
        })
    });
    let tables: Vec<&Table> = iter::once(&known.secrets).chain(of_told).collect();
    if let Cow::Owned(less) = said_again::without(&out, &tables, &known.of_stores, &known.told) {
        out = Cow::Owned(less);
    }
    // Of a piece, some may be hidden already. Of a value that the message tells any piece is one.
    let is_of_one = |piece: &str| {
        let undone = undone(piece).0;
        let is_said = |says: &dyn Fn(&str) -> bool| [piece, &undone].iter().any(|text| text.split(HIDDEN).all(says));
        let is_secret = is_said(&|piece| known.secrets.says(piece) || known.of_stores.says(piece))
            || tables[1..].iter().any(|table| is_said(&|piece| table.has(piece)));
        is_secret && !is_hidden(piece) && !is_told(&known.told, piece, &(0..piece.len()))
    };
    if let Some(less) = without_quoted(&out, &|piece| is_of_one(piece).then(|| HIDDEN.to_owned())) {
        out = Cow::Owned(less);
    }
    // A quotation mark alone, or one that is written out, moves the others.
    let is_short =
        |piece: &str| piece.len() >= SHORTEST_PIECE && (known.secrets.says(piece) || known.of_stores.says(piece));
    if let Some(less) = without_between(&out, &is_short) {
        out = Cow::Owned(less);
    }
    // A part of a value that reaches from what is shown into what is not. A word may be one by chance. Where so much is quoted that looking for it
    // takes long, the rest of it counts as one.
    let left = Cell::new(MOST_LOOKED_THROUGH);
    let is_hidden_of = |(form, shown): &(String, String), piece: &str| {
        left.set(left.get().saturating_sub(ASK + form.len() + shown.len()));
        left.get() == 0 || form.contains(piece) && !shown.split(HIDDEN).any(|left| left.contains(piece))
    };
    let part = |piece: &str| {
        let is_one = piece.len() >= 4 && !piece.contains(HIDDEN);
        let is_word = plain::is_word(piece);
        let mut known = all.iter().zip(&told).filter(|(_, is_told)| is_one && (**is_told || !is_word));
        let is_part = known.any(|(given, _)| given.forms.iter().any(|form| is_hidden_of(form, piece)));
        is_part.then(|| HIDDEN.to_owned())
    };
    if all.is_empty() {
        return out;
    }
    match without_quoted(&out, &part) {
        Some(less) => Cow::Owned(less),
        None => out,
    }
}

/// A text with something else in the place of what stands between quotes in it, or between spaces and the sign at the end of a phrase.
fn replace_a_word(text: &str, word: &str, other: &str) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (begin, _) in text.match_indices(word) {
        let (before, behind) = (&text[at..begin], &text[begin + word.len()..]);
        let quote = text[..begin].chars().next_back().filter(|c| QUOTES.contains(c));
        let begins = text[..begin].chars().next_back().is_none_or(char::is_whitespace);
        let ends = behind.trim_start_matches([':', ',', '.', ';', ')']);
        // A line and a column.
        let ends = if behind.starts_with(':') {
            ends.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':')
        } else {
            ends
        };
        let is_one = match quote {
            Some(quote) => behind.starts_with(quote),
            None => begins && ends.chars().next().is_none_or(char::is_whitespace),
        };
        if is_one {
            out.extend([before, other]);
            at = begin + word.len();
        }
    }
    out + &text[at..]
}

fn is_hidden(text: &str) -> bool {
    text.split(HIDDEN).all(str::is_empty)
}

/// What stands around what a message quotes.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// The shortest piece that is hidden between signs that need not be quotation marks.
const SHORTEST_PIECE: usize = 4;

/// The text without what stands between any two quotation marks that follow each other, where that is a short secret.
fn without_between(text: &str, is_secret: &dyn Fn(&str) -> bool) -> Option<String> {
    let quotes: Vec<usize> = text.match_indices(QUOTES).map(|(at, _)| at).collect();
    let (mut out, mut at) = (String::new(), 0);
    for pair in quotes.windows(2) {
        let whole = &text[pair[0] + 1..pair[1]];
        let bare = whole.trim_end_matches('\\');
        let secret = [whole, bare].into_iter().find(|piece| piece.len() < LONG_PIECE && is_secret(piece));
        if let Some(piece) = secret {
            out.extend([&text[at..=pair[0]], HIDDEN]);
            at = pair[0] + 1 + piece.len();
        }
    }
    (at > 0).then(|| out + &text[at..])
}

/// The text with something else for what it quotes, where there is something.
fn without_quoted(text: &str, instead: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let (mut out, mut rest, mut is_one) = (String::new(), text, false);
    while let Some(start) = rest.find('"') {
        let (before, quoted) = rest.split_at(start + 1);
        let mut is_written_out = false;
        // A quote within has a backslash before it.
        let end = quoted.find(|c| {
            let is_end = c == '"' && !is_written_out;
            is_written_out = c == '\\' && !is_written_out;
            is_end
        });
        let Some(end) = end else { break };
        let (piece, behind) = quoted.split_at(end);
        let other = if piece.is_empty() || piece == HIDDEN { None } else { instead(piece) };
        is_one |= other.is_some();
        out.extend([before, other.as_deref().unwrap_or(piece), "\""]);
        rest = &behind[1..];
    }
    out.push_str(rest);
    is_one.then_some(out)
}

/// What is hidden of an argument: of itself, and of its value if it is a flag with one. What only begins like a flag, as the key in a file
/// of keys does, is told of up to its first `=`.
fn of(argument: &str, is_name: bool) -> Vec<Given> {
    let mut values = vec![argument];
    match argument.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") => values.extend([flag, value]),
        // Letters of others may stand before it, as in `-kLoFILE`. What is longer names no file.
        _ if argument.starts_with('-') && argument.len() > LONGEST_NAME => values.extend(argument.get(2..)),
        _ if argument.starts_with('-') && !argument.starts_with("--") => {
            let letters = argument[1..].bytes().take_while(u8::is_ascii_alphabetic).count().min(MOST_LETTERS);
            values.extend((2..=1 + letters).filter_map(|at| argument.get(at..)));
        }
        _ => {}
    }
    // As `-d @FILE` has it, or `-o=FILE`.
    values.extend(values.clone().into_iter().filter_map(|value| value.strip_prefix(['@', '='])));
    // Of a store's URL the file is told of, without its settings.
    let files = values.clone().into_iter().filter_map(|value| value.strip_prefix("sqlite:"));
    values.extend(files.filter_map(|file| file.split('?').next()));
    values.into_iter().filter_map(|value| of_value(value, is_name)).collect()
}

/// The longest name of a file that systems know, and the letters before it.
const LONGEST_NAME: usize = 4096 + MOST_LETTERS;

/// The most letters of flags in a row.
const MOST_LETTERS: usize = 9;

fn of_value(value: &str, is_name: bool) -> Option<Given> {
    let narrow = plain::narrow(value);
    let (shown, without_secrets) = as_shown(&narrow, is_name);
    if shown == narrow {
        return None;
    }
    // Who reads URLs undoes what is written out, and makes hosts small.
    let decoded = percent_decode_str(&narrow).decode_utf8_lossy().into_owned();
    let small = decoded.to_lowercase();
    let mut forms: Vec<(String, String)> = Vec::new();
    for form in [value, &narrow, &decoded, &small].into_iter().flat_map(written) {
        if !forms.iter().any(|(known, _)| *known == form) {
            forms.push((form, shown.clone()));
        }
    }
    // The form that Rust writes is shown so, too.
    forms.iter_mut().for_each(|(form, shown)| {
        if form.contains('\\') {
            *shown = escape(shown).escape_debug().to_string();
        }
    });
    let missing = |shown: &str| hidden_parts(&narrow, shown).into_iter().map(str::to_owned).collect();
    let (secrets, others) = (missing(&without_secrets), missing(&shown));
    Some(Given { forms, secrets, others, table: OnceLock::new() })
}

/// The parts of a value that are hidden where it is shown so.
pub(super) fn hidden_parts<'a>(value: &'a str, shown: &str) -> Vec<&'a str> {
    if shown == value {
        return vec![];
    }
    // What is left of it stands there as it was.
    let mut pieces = shown.split(HIDDEN).peekable();
    let (mut hidden, mut at) = (Vec::new(), pieces.next().map_or(0, str::len));
    while let (Some(piece), Some(left)) = (pieces.next(), value.get(at..)) {
        // The last of them ends it, and may stand in a secret as well.
        let next = if pieces.peek().is_none() { left.rfind(piece) } else { left.find(piece) };
        let Some(next) = next.filter(|_| !piece.is_empty()) else {
            hidden.push(left);
            break;
        };
        hidden.push(&left[..next]);
        at += next + piece.len();
    }
    hidden.retain(|part| !part.is_empty());
    hidden
}

#[cfg(test)]
mod tests;
