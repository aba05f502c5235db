//! Users before an `@`.

use super::{
    AT, HIDDEN,
    plain::{self, up_to},
};

/// A value whose last `@` is that of a user, if there is one, wherever it stands.
pub(super) fn without_user(value: &str, begin: usize, behind: impl Fn(&str) -> String) -> Option<String> {
    let at = value.rfind(AT).filter(|at| *at >= begin)?;
    Some(match behind_a_user(value, begin, at) {
        Behind::All(at) => format!("{}{HIDDEN}{}", &value[..begin], behind(&value[at..])),
        Behind::Nothing => format!("{}{HIDDEN}", &value[..begin]),
        Behind::Setting(end) => up_to(value, end),
    })
}

/// Where a user ends whose `@` somebody has written out, as a script does that encodes too much, or a page: no host has one. `text` begins with the
/// user, and has no `@` itself.
pub(super) fn written_out(text: &str) -> Option<usize> {
    let is_end = |(at, c): &(usize, char)| matches!(c, '/' | '?') || *c == '#' && !text[..*at].ends_with('&');
    let place = &text[..text.char_indices().find(is_end).map_or(text.len(), |(at, _)| at)];
    let is_one = |at: &usize| {
        let sign = &place[*at..];
        let once = sign.strip_prefix('%').is_some_and(|code| code.trim_start_matches("25").starts_with("40"));
        let begins = |way: &&str| sign.get(..way.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(way));
        let number = sign.strip_prefix("&#").map(|number| (number.trim_start_matches(['x', 'X']), number));
        let is_number = number.is_some_and(|(hex, number)| {
            let code = if hex.len() < number.len() { "40" } else { "64" };
            hex.trim_start_matches('0').starts_with(code)
        });
        once || is_number || ["%u0040", "&commat", "\\u0040", "\\x40"].iter().any(begins)
    };
    place.match_indices(['%', '&', '\\']).map(|(at, _)| at).filter(|at| *at > 0).rev().find(is_one)
}

/// What of a value with an `@` is no secret.
pub(super) enum Behind {
    /// The host and what follows, from an `@` on.
    All(usize),
    /// Nothing: the `@` may be a part of a password, or may not.
    Nothing,
    /// The name of a setting, up to there: the `@` is in its value.
    Setting(usize),
}

/// What stands behind a user, if `at` is the last `@`: a password may have one as well, of a parameter or a setting.
pub(super) fn behind_a_user(value: &str, begin: usize, at: usize) -> Behind {
    if begin > 0 {
        let query = value[begin..at].find(['?', '#', ';']).filter(|sign| value[begin + sign..at].contains('='));
        return match query.map(|sign| value[begin..begin + sign].rfind(AT)) {
            None => Behind::All(at),
            Some(Some(first)) => Behind::All(begin + first),
            Some(None) => Behind::Nothing,
        };
    }
    let plain = plain::shown(value);
    let is_set = (ends_with_a_name(&value[..plain]) && !ends_with_a_token(&value[..at]))
        || (value[..plain].ends_with(':') && value[plain..].starts_with(' '));
    let named = plain::secret(value, false).filter(|end| *end <= at);
    match named.into_iter().chain((is_set && plain <= at).then_some(plain)).min() {
        Some(end) if end <= plain && !value[..end].contains(AT) => Behind::Setting(end),
        None if !value[..at].contains(AT) && is_user(&value[..at]) => Behind::All(at),
        _ => Behind::Nothing,
    }
}

/// Whether a text ends with the name of a setting or of a variable, and its `=`.
fn ends_with_a_name(text: &str) -> bool {
    let Some(text) = text.strip_suffix('=') else { return false };
    let word = text.rsplit(|c: char| !plain::is_of_a_word(c)).next().unwrap_or_default();
    let is_of = |is_one: fn(&char) -> bool| word.chars().all(|c| is_one(&c) || "_-.0123456789".contains(c));
    is_of(char::is_ascii_lowercase) || is_of(char::is_ascii_uppercase)
}

/// Whether a text ends like what is in base32 or base64, up to the `=` that fill it up.
fn ends_with_a_token(text: &str) -> bool {
    let word = text.rsplit(|c: char| !plain::is_of_a_word(c) && c != '=').next().unwrap_or_default();
    word.ends_with('=') && word.len() >= 12 && word.len().is_multiple_of(4)
}

/// Whether a user and a password stand there, and nothing that may be a part of something else.
fn is_user(text: &str) -> bool {
    let (name, password) = text.split_once(':').unwrap_or((text, ""));
    let is_name = |c: char| c.is_alphanumeric() || "_.+-~\\/, *".contains(c);
    name.chars().all(is_name) && !password.contains(['=', '{', '}', '<', '>', '"', '\'', '|'])
}
