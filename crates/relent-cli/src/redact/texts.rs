//! Texts that may hold URLs, or what somebody wrote in the place of one.

use super::{
    AT, HIDDEN, given, plain,
    query::parameters,
    settings::settings,
    url::{is_url, url},
    users::without_user,
};
use std::borrow::Cow;

/// A text that may hold URLs and settings, such as the message of a library, or what somebody wrote in the wrong place.
///
/// A password may hold what ends a URL elsewhere, a space or a quote. So a later `@` counts for the URL before it, unless a
/// word begins with it: too much is hidden rather than too little. What was given on the command line is known as a whole, and
/// hidden as such.
///
/// ```
/// use relent_cli::redact::text;
///
/// assert_eq!(text("no way to http://ann:pw@host/"), "no way to http://***@host/");
/// assert_eq!(text("invalid value 'http://ann:p w@host/'"), "invalid value 'http://***@host/'");
/// assert_eq!(text("host=db password=pw"), "host=db password=***");
/// ```
pub fn text(text: &str) -> Cow<'_, str> {
    match plain::narrow(text) {
        Cow::Borrowed(text) => with_signs(text),
        Cow::Owned(narrow) => match with_signs(&narrow) {
            same if same == narrow => with_signs(text),
            other => Cow::Owned(other.into_owned()),
        },
    }
}

/// The same, if there are no wide signs in it.
fn with_signs(text: &str) -> Cow<'_, str> {
    match given::without(text) {
        Cow::Borrowed(text) => as_it_looks(text),
        Cow::Owned(text) => Cow::Owned(as_it_looks(&text).into_owned()),
    }
}

/// The same for a text of which nothing is known.
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
/// the sign; what is quoted within a word is a part of it.
pub(super) fn users(text: &str) -> Cow<'_, str> {
    let is_user = |before: &str| {
        let Some((_, password)) = before.split_once(':') else { return false };
        let rest = password.trim_start_matches(['/', '\\']);
        let is_url = rest.len() < password.len() && rest.contains(':') && !rest.contains(['/', '\\']);
        // One backslash is none of a URL's, but Rust's before a quote.
        let is_written_out = password.starts_with('\\') && !password.starts_with("\\\\");
        !password.is_empty() && (rest.len() == password.len() || is_url || is_written_out)
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c| !is_end(c)) {
        let (before, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(char::is_whitespace).unwrap_or(word.len()));
        out.push_str(before);
        match word.rfind(AT) {
            Some(at) if is_user(&word[..at]) => out.extend([HIDDEN, &word[at..]]),
            None if after.trim_start().starts_with(AT) && is_user(word) => out.push_str(HIDDEN),
            _ => out.push_str(word),
        }
        rest = after;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::header;

    #[test]
    fn urls_inside_of_other_texts_are_found() {
        assert_eq!(header("Location", "https://ann:pw@host/?code=1"), "https://***@host/?code=***");
        assert_eq!(header("Location", "/back?code=1&page=2"), "/back?code=***&page=2");
        assert_eq!(header("Link", "<http://host/?token=1>; rel=\"next\""), "<http://host/?token=***>; rel=\"next\"");
        assert_eq!(text("a\nhttp://ann:pw@host/ b"), "a\nhttp://***@host/ b");
        assert_eq!(text(""), "");
    }

    /// Where something else was wanted than a URL, nobody has said where it ends.
    #[test]
    fn a_password_may_hold_what_ends_a_url() {
        for inside in
            ["p w", "p\"w", "p'w", "p|w", "p<w", "p>w", "p`w", "7 w", "7/w x", "p@ w", "p w@x", "p://w", "", "p "]
        {
            let given = format!("invalid value 'redis://ann:{inside}@host:6379/0' for '--flag'");
            assert_eq!(text(&given), "invalid value 'redis://***@host:6379/0' for '--flag'", "{given}");
        }
        assert_eq!(text(r#""redis://ann:p\"w@h/" is no size"#), r#""redis://***@h/" is no size"#);
        for inside in ["\"pw\"", "`pw`", "<pw>", "'pw'", "|pw|", "\tpw", "p\\w", "\npw\n"] {
            let given = format!("cannot read {:?}: gone", format!("http://ann:{inside}@h"));
            assert_eq!(text(&given), "cannot read \"http://***@h\": gone", "{given}");
            let given = format!("cannot read {:?}: gone", format!("ann:{inside}@h"));
            assert_eq!(text(&given), "cannot read \"***@h\": gone", "{given}");
        }
        assert_eq!(text("cannot read 'ann:pw @h'"), "cannot read '*** @h'");
        assert_eq!(url("redis://ann:p\\w@h/"), "redis://***@h/");
        for (given, shown) in [
            ("there is no profile \"ann:pw@host\"", "there is no profile \"***@host\""),
            ("cannot read /x/ann:pw@host: gone", "cannot read ***@host: gone"),
            ("http://host/ and ann:pw@host", "http://***@host"),
            ("RELENT_CONFIG=https:\\\\ann:pw@h: no", "***@h: no"),
            ("the value 'https:///ann:pw@db/x' is", "the value 'https:///***@db/x' is"),
            ("ann:pw@host and http://host/", "***@host and http://host/"),
        ] {
            assert_eq!(text(given), shown);
        }
        // What no user is, stays.
        for same in [
            "https://host/x; -H @FILE takes it from a file",
            "https://host/@scope/package: 404",
            "write it like https://example.com/path",
            "\"http://host:8080/\" and 'https://other/' are two",
            "store sqlite:/home/ann@example.org/state.db: it is locked",
            "git@example.org:relent.git, ann@example.org: and @FILE",
        ] {
            assert_eq!(text(same), same);
        }
    }
}
