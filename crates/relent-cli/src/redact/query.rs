//! What follows the host of a URL: its path, its query and its fragment.

use super::{
    HIDDEN,
    names::{is_secret, is_token},
    plain::{self, up_to},
    undone::undone,
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
    format!("{before}{user}{}", up_to(path, query.map_or(path.len(), |sign| places[sign + 1])).split_off(from))
}

/// `name=value`, as it is shown. What has no name is a value.
fn parameter(pair: &str) -> Cow<'_, str> {
    let is_name = |name: &str| !is_token(name) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    match pair.split_once('=') {
        None if pair.is_empty() || is_hidden(pair) || plain::is_harmless("", without_end(pair)) => Cow::Borrowed(pair),
        // What ends so may be in base64.
        Some((name, "" | "="))
            if name.len() > 32 || name.contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase()) =>
        {
            Cow::Borrowed(HIDDEN)
        }
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

/// Parameters anywhere, without the values of names that say themselves that they are secret.
pub(super) fn secret_parameters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(['?', '&', ';', '#', ',']) {
        let pair = piece.trim_end_matches(['?', '&', ';', '#', ',']);
        match pair.split_once('=') {
            Some((name, value)) if is_secret(name) && !value.is_empty() => {
                out.extend([name, "=", HIDDEN, &piece[pair.len()..]]);
            }
            _ => out.push_str(piece),
        }
    }
    out
}
