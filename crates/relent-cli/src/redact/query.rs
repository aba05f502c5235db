//! What follows the host of a URL: its path, its query and its fragment.

use super::{
    HIDDEN,
    names::{is_secret, is_token},
    plain::{self, up_to},
    undone::{decoded, undone},
};
use std::borrow::Cow;

/// What comes after the host. Behind the first `?` or `;` names are shown that look like words, and values that are plainly harmless; behind
/// a `#` nothing is. So nobody has to know where a value ends that was not written out, nor what is within it.
pub(super) fn parameters(text: &str) -> String {
    let Some(start) = text.find(['?', '#', ';']) else { return of_a_path(text) };
    let (query, fragment) = text[start..].split_once('#').map_or((&text[start..], None), |(a, b)| (a, Some(b)));
    let mut out = of_a_path(&text[..start]);
    if !query.is_empty() {
        let (sign, pairs) = query.split_at(1);
        for (nth, pair) in pairs.split('&').enumerate() {
            out.extend([if nth == 0 { sign } else { "&" }, &parameter(pair)]);
        }
    }
    if let Some(fragment) = fragment {
        out.extend(["#", if fragment.is_empty() || is_hidden(fragment) { fragment } else { HIDDEN }]);
    }
    out
}

/// A host and a path, in which a URL with a user may stand, or a query that is written out.
fn of_a_path(text: &str) -> String {
    let begin = text.find('/').map_or(text.len(), |slash| slash + 1);
    let (before, path) = text.split_at(begin);
    let (undone, places) = undone(path);
    let from = undone.rfind('@').filter(|at| undone[..*at].contains(':')).map_or(0, |at| places[at]);
    let is_written_out = |sign: &usize| path[places[*sign]..].starts_with('%') && places[*sign] >= from;
    let query = undone.match_indices(['?', '=']).map(|(sign, _)| sign).find(is_written_out);
    let user = if from > 0 { HIDDEN } else { "" };
    let path = up_to(path, query.map_or(path.len(), |sign| places[sign + 1])).split_off(from);
    format!("{before}{user}{}", path.split_inclusive('/').map(of_a_segment).collect::<String>())
}

/// What stands between two slashes, in which the name of a secret may stand with its value.
fn of_a_segment(segment: &str) -> String {
    let bare = segment.trim_end_matches('/');
    secret_parameters(bare, &[]) + &segment[bare.len()..]
}

/// `name=value`, as it is shown. What has no name is a value.
fn parameter(pair: &str) -> Cow<'_, str> {
    let is_name = |name: &str| !is_token(name) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    match pair.split_once('=') {
        None if pair.is_empty() || is_hidden(pair) || plain::is_harmless("", without_end(pair)) => Cow::Borrowed(pair),
        Some((name, value)) if plain::is_a_value_alone(name, value) => Cow::Borrowed(HIDDEN),
        Some((name, value)) if is_name(name) && !name.is_empty() => {
            match value.is_empty() || is_hidden(value) || plain::is_harmless(name, without_end(value)) {
                true => Cow::Borrowed(pair),
                false => Cow::Owned(format!("{name}={HIDDEN}")),
            }
        }
        _ => Cow::Borrowed(HIDDEN),
    }
}

/// Without what ends a sentence or a part of one.
fn without_end(text: &str) -> &str {
    text.trim_end_matches([':', ';', '.', ',', ')'])
}

/// Whether nothing is left of a value.
fn is_hidden(text: &str) -> bool {
    without_end(text) == HIDDEN
}

/// What stands before the name of a parameter.
pub(super) const BEFORE: [char; 5] = ['?', '&', ';', '#', ','];

/// Parameters anywhere, without the values of names that say themselves that they are secret, each up to one of these signs.
pub(super) fn secret_parameters(text: &str, ends: &[char]) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(end) = rest.find(['=', '?', '&', ';', '#', ',']) {
        let (name, behind) = rest.split_at(end);
        let value = behind.strip_prefix('=').filter(|_| is_secret(&plainly(name)));
        let length = value.map_or(0, |value| value.find(ends).unwrap_or(value.len()));
        out.extend([name, &behind[..1], if length > 0 { HIDDEN } else { "" }]);
        rest = &behind[1 + length..];
    }
    out + rest
}

/// Without percent signs, if it has any.
pub(super) fn plainly(text: &str) -> Cow<'_, str> {
    decoded(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_a_path_have_secrets_too() {
        for (given, shown) in [
            ("/a/key=S3cret,x/b", "/a/key=***/b"),
            ("h/session=S3cret", "h/session=***"),
            ("h/page=2,a%75th=S3cret&b/", "h/page=2,a%75th=***/"),
            ("/keys/dt=2026-01-02/a=b", "/keys/dt=2026-01-02/a=b"),
            ("/key=", "/key="),
            ("/key=***/b", "/key=***/b"),
        ] {
            assert_eq!(parameters(given), shown);
        }
    }

    #[test]
    fn what_says_itself_that_it_is_a_secret_is_found() {
        for (given, shown) in [
            ("/x?token=a,b;c?d#e&page=2", "/x?token=***&page=2"),
            ("/x;sid=a,b?page=2&key=c&q=d", "/x;sid=***&key=***&q=d"),
            ("/x?to%6ben=a&token=&q=a=b", "/x?to%6ben=***&token=&q=a=b"),
        ] {
            assert_eq!(secret_parameters(given, &['&']), shown);
        }
        assert_eq!(secret_parameters("a;token=b;c=d,key=e, f", &BEFORE), "a;token=***;c=d,key=***, f");
    }
}
