//! How much of a secret a text says that begins as it does.

use super::HIDDEN;
use std::{iter, ops::Range};

/// From which length on a piece of a secret is one.
pub(super) const LONG_SECRET: usize = 16;

/// A secret as it is looked for in a text, from its beginning to its end. Where it repeats itself, it stands at many places that reach into
/// each other: what is known of one is not compared again, so that a text costs its own length alone.
#[derive(Debug)]
pub(super) struct Search<'a> {
    secret: &'a str,
    text: &'a str,
    /// How much of its beginning stands in it again at each of its own places, as far as the text is long.
    again: Vec<usize>,
    /// From which length on a piece of it has both letters and digits.
    both: usize,
    /// Where it stands in the text, or its beginning does: the last place that was found by comparing.
    seen: Range<usize>,
    /// How many bytes of it were looked at.
    looked_at: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(secret: &'a str, text: &'a str) -> Self {
        let most = secret.len().min(text.len());
        let begin = &secret.as_bytes()[..most];
        let (mut again, mut seen) = (vec![most], 0..0);
        for at in 1..most {
            again.push(same(begin, &again, begin, at, &mut seen).0);
        }
        Search { secret, text, again, both: both(secret, most), seen: 0..0, looked_at: most }
    }

    /// One of which it is known how much of it stands at one place, where alone it is asked.
    pub(super) fn from(secret: &'a str, text: &'a str, at: usize, same: usize) -> Self {
        // Of one that is there whole no piece is looked for, and of a long one its beginning has both, or hardly any piece has.
        let looked_at = if same == secret.len() { 0 } else { same.min(256) };
        let both = if looked_at == 0 { usize::MAX } else { both(secret, looked_at) };
        Search { secret, text, again: vec![secret.len()], both, seen: at..at + same, looked_at }
    }

    pub(super) fn len(&self) -> usize {
        self.secret.len()
    }

    pub(super) fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// How much of it stands at a place of the text, which is not before the last one.
    fn same(&mut self, at: usize) -> usize {
        let (same, compared) = same(self.secret.as_bytes(), &self.again, self.text.as_bytes(), at, &mut self.seen);
        self.looked_at += compared;
        same
    }

    /// How much of it the text says from a place on where it begins as the secret does: all of it, or what somebody left of it who cut the
    /// text off, and how long the sign is of which they left a part. `behind` is what stands behind so much of it.
    pub(super) fn said<'b>(&mut self, at: usize, behind: impl Fn(usize) -> Option<&'b str>) -> Option<(usize, usize)> {
        let same = self.same(at);
        if same == self.secret.len() {
            return Some((same, 0));
        }
        let behind = behind(same)?;
        if is_cut(behind) {
            return Some((same, 0));
        }
        let sign = behind.strip_prefix(['%', '\\'])?;
        let digits = sign.bytes().take(MOST_DIGITS).take_while(u8::is_ascii_hexdigit).count();
        is_cut(&sign[digits..]).then_some((same, 1 + digits))
    }

    /// How much of it, if it is long, the text says from a place on where somebody cut it within a word, and left no mark or one that is not
    /// known: so many letters and digits that nothing else has them. Of both texts either the beginning or, from there on, the end is
    /// looked at.
    pub(super) fn piece(&mut self, at: usize) -> Option<usize> {
        const MASK: &str = "xxxx";
        if self.secret.len() < LONG_SECRET {
            return None;
        }
        let same = self.same(at);
        let (piece, rest) = self.secret.split_at_checked(same)?;
        let (next, behind) = (rest.chars().next()?, self.text.get(at + same..)?);
        let is_within_a_word = piece.ends_with(char::is_alphanumeric) && next.is_alphanumeric();
        let is_cut = !behind.starts_with(char::is_alphanumeric) || behind.starts_with(MASK);
        (is_within_a_word && is_cut && same >= self.both).then_some(same)
    }
}

/// From which length on a piece of a secret has both letters and digits, as far as it is looked at.
fn both(secret: &str, most: usize) -> usize {
    let digit = secret.as_bytes()[..most].iter().position(u8::is_ascii_digit);
    let letter = secret.char_indices().take_while(|(at, _)| *at < most).find(|(_, c)| c.is_alphabetic());
    digit.zip(letter).map_or(usize::MAX, |(digit, (letter, _))| digit.max(letter) + 1)
}

/// How much of a secret stands at a place of a text, if so much of it stands in it `again` and it was `seen` at a place before, and how much was
/// compared. Nothing that was seen is compared again.
fn same(secret: &[u8], again: &[usize], text: &[u8], at: usize, seen: &mut Range<usize>) -> (usize, usize) {
    let known = if seen.contains(&at) { again[at - seen.start].min(seen.end - at) } else { 0 };
    if at + known < seen.end {
        return (known, 0);
    }
    let more = secret[known..].iter().zip(&text[at + known..]).take_while(|(one, other)| one == other).count();
    *seen = at..at + known + more;
    (known + more, more)
}

/// Whether a text begins with what stands behind one that somebody cut, perhaps behind a few signs of it, a quote and a bracket.
fn is_cut(text: &str) -> bool {
    const MARKS: [&str; 8] = ["...", "\u{2026}", r"\u2026", "&hellip;", "&#8230;", "&#x2026;", "truncated", HIDDEN];
    let mut places =
        iter::successors(Some(text), |text| text.strip_prefix(|c: char| !c.is_alphanumeric())).take(MOST_SIGNS + 1);
    places.any(|text| MARKS.iter().any(|mark| text.starts_with(mark)))
}

/// The most signs that stand between what was cut and the mark.
const MOST_SIGNS: usize = 4;

/// The most digits of a sign of which a part is left.
const MOST_DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts and secrets of a few signs, which repeat themselves in every way.
    #[test]
    fn as_much_is_the_same_as_is_compared() {
        let sign = |number: usize, nth: usize| if number >> nth & 1 == 1 { 'b' } else { 'a' };
        let all: Vec<String> = (1..=8)
            .flat_map(|length| (0..1 << length).map(move |n| (0..length).map(|nth| sign(n, nth)).collect()))
            .collect();
        for secret in &all {
            for text in all.iter().filter(|text| text.len() >= 6) {
                let (mut every, mut some) = (Search::new(secret, text), Search::new(secret, text));
                for at in 0..text.len() {
                    let before = every.seen.end;
                    let same = secret.bytes().zip(text[at..].bytes()).take_while(|(one, other)| one == other).count();
                    assert_eq!(every.same(at), same, "{secret} {text} {at}");
                    assert_eq!(every.same(at), same, "{secret} {text} {at}");
                    assert!(at % 3 == 0 || some.same(at) == same, "{secret} {text} {at}");
                    // What is compared is what it goes on by.
                    assert!(every.seen.end >= before, "{secret} {text} {at}");
                }
            }
        }
    }
}
