//! How much of a secret a text says that begins as it does.

use super::HIDDEN;

/// How much of a secret a text begins with that begins as it does: all of it, or what somebody left of it who cut the text off, and
/// how long the sign is of which they left a part. `behind` is what stands behind so much of it.
pub(super) fn said<'a>(secret: &str, text: &str, behind: impl Fn(usize) -> Option<&'a str>) -> Option<(usize, usize)> {
    let same = secret.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
    if same == secret.len() {
        return Some((same, 0));
    }
    let behind = behind(same)?;
    if is_cut(behind) {
        return Some((same, 0));
    }
    let sign = behind.strip_prefix(['%', '\\'])?.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    is_cut(sign).then_some((same, behind.len() - sign.len()))
}

/// Whether a text begins with what stands behind one that somebody cut, perhaps behind a few signs of it, a quote and a bracket.
fn is_cut(text: &str) -> bool {
    const MARKS: [&str; 8] = ["...", "\u{2026}", r"\u2026", "&hellip;", "&#8230;", "&#x2026;", "truncated", HIDDEN];
    let signs = text.find(char::is_alphanumeric).unwrap_or(text.len());
    let mut places = text[..signs].char_indices().map(|(at, _)| at).chain([signs]).take(MOST_SIGNS + 1);
    places.any(|at| MARKS.iter().any(|mark| text[at..].starts_with(mark)))
}

/// The most signs that stand between what was cut and the mark.
const MOST_SIGNS: usize = 4;

/// How much of a long secret a text begins with where somebody cut it within a word, and left no mark or one that is not known: so many letters
/// and digits that nothing else has them. Of both texts either the beginning or, from there on, the end is looked at.
pub(super) fn piece(secret: &str, text: &str) -> Option<usize> {
    const LONG_SECRET: usize = 16;
    const MASK: &str = "xxxx";
    if secret.len() < LONG_SECRET {
        return None;
    }
    let same = secret.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
    let piece = secret.get(..same)?;
    let (next, behind) = (secret[same..].chars().next()?, text.get(same..)?);
    let is_within_a_word = piece.ends_with(char::is_alphanumeric) && next.is_alphanumeric();
    let is_cut = !behind.starts_with(char::is_alphanumeric) || behind.starts_with(MASK);
    let has_both = || piece.contains(|c: char| c.is_ascii_digit()) && piece.contains(char::is_alphabetic);
    (is_within_a_word && is_cut && has_both()).then_some(same)
}
