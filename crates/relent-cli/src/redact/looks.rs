//! What looks like a URL or a setting in a text of which nothing is known.

use super::{
    AT, HIDDEN,
    names::is_token,
    query::parameters,
    settings::settings,
    url::{is_url, url},
    users::without_user,
};
use std::borrow::Cow;

/// A text of which nothing is known, without what looks like a secret in it.
pub(super) fn as_it_looks(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        // A password may have an `@` in it.
        return match settings(text) {
            Cow::Borrowed(text) => users(text),
            Cow::Owned(text) => Cow::Owned(users(&text).into_owned()),
        };
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(slashes) = rest.find("://") {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let begin = rest[..slashes].trim_end_matches(is_name).len();
        out.push_str(&users(&rest[..begin]));
        let (end, user) = extent(&rest[begin..]);
        let (whole, after) = rest[begin..].split_at(end);
        match user {
            Some(_) => out.push_str(&without_user(whole, slashes - begin + 3, parameters).unwrap_or_default()),
            None => out.push_str(&url(whole)),
        }
        rest = after;
    }
    out.push_str(&users(rest));
    Cow::Owned(settings(&out).into_owned())
}

/// Hides what stands before the `@` in words like `ann:pw@host`: a URL that was given without its scheme. A space may stand before
/// the sign; what is quoted within a word is a part of it. Tokens are hidden, too: what a service marks as one, or `Bearer` does.
fn users(text: &str) -> Cow<'_, str> {
    let is_user = |before: &str| {
        let Some((_, password)) = before.split_once(':') else { return false };
        let rest = password.trim_start_matches(['/', '\\']);
        let is_url = rest.len() < password.len() && rest.contains(':') && !rest.contains(['/', '\\']);
        // One backslash is none of a URL's, but Rust's before a quote.
        let is_written_out = password.starts_with('\\') && !password.starts_with("\\\\");
        !password.is_empty() && (rest.len() == password.len() || is_url || is_written_out)
    };
    let is_one_of_a_bearer = |word: &str, last: &str| {
        last.eq_ignore_ascii_case("bearer") && word.len() >= 8 && word.contains(|c: char| c.is_ascii_digit())
    };
    let mut out = String::new();
    let (mut rest, mut last) = (text, "");
    while let Some(start) = rest.find(|c| !is_end(c)) {
        let (before, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(char::is_whitespace).unwrap_or(word.len()));
        out.push_str(before);
        match word.rfind(AT) {
            Some(at) if is_user(&word[..at]) => out.extend([HIDDEN, &word[at..]]),
            None if after.trim_start().starts_with(AT) && is_user(word) => out.push_str(HIDDEN),
            _ if is_token(word) || is_one_of_a_bearer(word, last) => out.push_str(HIDDEN),
            _ => out.push_str(word),
        }
        (rest, last) = (after, word);
    }
    out.push_str(rest);
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// What ends a URL in a text, as a rule.
fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '|')
}

/// How far the URL goes that a text begins with, and where the `@` is that stands beyond what looks like its end.
fn extent(text: &str) -> (usize, Option<usize>) {
    let end = text.find(is_end).unwrap_or(text.len());
    // No host has what a password may have before its first space.
    let is_cut = !is_url(&text[..end]);
    let others = text[end..].find("://").map_or(text.len(), |next| end + next);
    let ends = text[end..others].match_indices(AT).map(|(at, _)| end + at);
    // A word of ours may begin with the sign, as `-H @FILE`.
    let of_a_user = |at: &usize| is_cut || !text[..*at].ends_with(char::is_whitespace);
    // What Rust writes out has backslashes, and a user may have them, too: no host of ours has.
    let written_out = || text[..end].rfind(AT).filter(|at| text[..*at].contains('\\'));
    match ends.rev().find(of_a_user).or_else(written_out) {
        Some(at) => (text[at..].find(is_end).map_or(text.len(), |end| at + end), Some(at)),
        None => (end, None),
    }
}
