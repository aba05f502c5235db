//! How much of secrets a text says, of those that begin as it does there.
//!
//! A few of them are each asked. Of many, in order, those are found that a text says most of, by going on with those alone that are the same as it so far.

use super::{
    cut::{LONG_SECRET, Search},
    table::{Begins, LONG_PIECE},
};
use std::{cmp::Reverse, collections::HashMap, ops::RangeInclusive};

/// How many secrets that begin alike are each asked at each place: with more that takes long.
const MANY: usize = 32;

/// Many secrets in order, and those of them of which a piece says enough.
struct Many<'a> {
    all: Vec<&'a String>,
    long: Vec<&'a String>,
}

/// How much is found, at most, of a secret at each place of a text where it begins as one does. Of a few, the longest are asked first, and those
/// that have no more than was found are not.
pub(super) fn most<'a>(
    text: &'a str,
    begins: &[&'a Begins],
    found: impl Fn(&mut Search<'a>, usize) -> Option<(usize, usize)>,
) -> Vec<(usize, (usize, usize))> {
    let mut all = HashMap::<&[u8], Result<Vec<Search>, Many>>::new();
    let found = |(at, begin)| {
        let mut secrets = begins.iter().filter_map(|begins| begins.get(begin)).flatten().peekable();
        secrets.peek()?;
        let all = all.entry(begin).or_insert_with(|| {
            let mut all: Vec<&String> = secrets.collect();
            if all.len() > MANY {
                all.sort_unstable();
                all.dedup();
                let long = all.iter().copied().filter(|secret| secret.len() >= LONG_SECRET).collect();
                return Err(Many { all, long });
            }
            all.sort_by_key(|secret| Reverse(secret.len()));
            Ok(all.into_iter().map(|secret| Search::new(secret, text)).collect())
        });
        let all = match all {
            Ok(all) => all,
            Err(many) => return Some((at, many.most(text, at, &found)?)),
        };
        let mut most = None;
        for secret in all {
            if most.is_some_and(|(length, _)| length >= secret.len()) {
                break;
            }
            most = most.max(found(secret, at));
        }
        Some((at, most?))
    };
    text.as_bytes().windows(LONG_PIECE).enumerate().filter_map(found).collect()
}

impl<'a> Many<'a> {
    /// How much is found of one at a place of a text.
    fn most(
        &self,
        text: &'a str,
        at: usize,
        found: &impl Fn(&mut Search<'a>, usize) -> Option<(usize, usize)>,
    ) -> Option<(usize, usize)> {
        let of = |all| {
            let near = near(all, &text.as_bytes()[at..]);
            near.into_iter().rev().find_map(|(secret, same)| found(&mut Search::from(secret, text, at, same), at))
        };
        [&self.all, &self.long].into_iter().filter_map(|all| of(all)).max()
    }
}

/// Those of many secrets, in order, of which a text says something that it says of no other, and how much: where some end or go on otherwise than
/// it does, those, and of those that go on otherwise in many ways one of each kind, for it depends on how they do whether it is a piece.
fn near<'a>(all: &[&'a String], text: &[u8]) -> Vec<(&'a String, usize)> {
    const KINDS: [RangeInclusive<u8>; 5] = [0..=u8::MAX, b'0'..=b'9', b'A'..=b'Z', b'a'..=b'z', 0x80..=u8::MAX];
    let (mut all, mut same, mut found) = (all, 0, Vec::new());
    while let (Some(first), Some(last)) = (all.first(), all.last()) {
        let common = same + alike(&first.as_bytes()[same..], &last.as_bytes()[same..]);
        same += alike(&first.as_bytes()[same..common], &text[same..]);
        if same < common {
            found.push((*last, same));
            break;
        }
        let next = |secret: &str| secret.as_bytes().get(same).copied();
        let up_to = |byte: u8| all.partition_point(|secret| next(secret).is_none_or(|next| next <= byte));
        let before = |byte: u8| all.partition_point(|secret| next(secret).is_none_or(|next| next < byte));
        let goes_on = text.get(same).copied();
        for kind in KINDS {
            let those = &all[before(*kind.start())..up_to(*kind.end())];
            let ends = those.first().into_iter().chain(those.last());
            found.extend(ends.filter(|secret| next(secret) != goes_on).map(|secret| (*secret, same)));
        }
        // It is found before those of which it is the beginning.
        if first.len() == same {
            found.push((*first, same));
        }
        let Some(byte) = goes_on else { break };
        all = &all[before(byte)..up_to(byte)];
    }
    found
}

/// How long the beginning is that two texts have in common.
fn alike(one: &[u8], other: &[u8]) -> usize {
    const PIECE: usize = 64;
    let pieces = one.chunks_exact(PIECE).zip(other.chunks_exact(PIECE));
    let begin = PIECE * pieces.take_while(|(one, other)| one == other).count();
    begin + one[begin..].iter().zip(&other[begin..]).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever secrets there are and whatever a text says.
    #[test]
    fn of_many_as_much_is_found_as_of_each() {
        let mut seed = 7_u32;
        let mut number = move |most: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % most
        };
        let kinds = ["a", "b", "1", ".", "%", "x", "xxxx", "...", "\u{e4}", "\u{f6}", "Z", "***"];
        let mut many = 0;
        for _ in 0..2000 {
            let mut made = |begin: &str, most| {
                let most = 1 + number(most);
                begin.to_owned() + &(0..most).map(|_| kinds[number(kinds.len())]).collect::<String>()
            };
            let mut all: Vec<String> = (0..60).map(|_| made("a1a1a1a1", 6)).collect();
            let others: Vec<String> = all.iter().take(30).map(|secret| made(secret, 10)).collect();
            all.extend(others);
            all.sort_unstable();
            all.dedup();
            let text = made(&all[all.len() / 2].clone(), 8);
            let found = |secret: &mut Search, at| {
                let behind = |same| text.get(at + same..);
                secret.said(at, behind).or_else(|| Some((secret.piece(at)?, 0)))
            };
            let each = all.iter().filter_map(|secret| found(&mut Search::new(secret, &text), 0)).max();
            let all: Vec<&String> = all.iter().collect();
            let long = all.iter().copied().filter(|secret| secret.len() >= LONG_SECRET).collect();
            let near = Many { all: all.clone(), long }.most(&text, 0, &found);
            // Of one that is cut off within a sign a part of the sign is left, besides.
            assert_eq!(near.map(|(same, _)| same), each.map(|(same, _)| same), "{text} {all:?}");
            many += usize::from(each.is_some_and(|(same, _)| same > LONG_PIECE));
        }
        assert!(many > 200, "{many}");
    }
}
