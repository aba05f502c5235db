//! How much of secrets a text says, of those that begin as it does there.
//!
//! A few of them are each asked. Of many, in order, those are found that a text says most of, by going on with those alone that are the same as it so far.
//! Where secrets and a text are made so that this takes long, the rest of the text counts as said.

use super::{
    cut::{LONG_SECRET, Search},
    table::{Begins, LONG_PIECE},
};
use std::{cmp::Reverse, collections::HashMap, ops::RangeInclusive};

/// How many secrets that begin alike are each asked at each place: with more that takes long.
const MANY: usize = 32;

/// How much may still be looked at for one text, about as many bytes. What is done is counted, not its time, so that the same is found on each machine.
#[derive(Debug)]
pub(super) struct Budget {
    all: usize,
    taken: usize,
}

impl Budget {
    /// What it takes to ask one secret at one place, or to go on with some of many, besides what is compared.
    const ASK: usize = 64;
    const GO_ON: usize = 256;

    pub(super) fn of(text: &str) -> Self {
        let mut budget = Budget { all: 1 << 24, taken: 0 };
        budget.also(text);
        budget
    }

    /// Of one more text of those that are looked through together.
    pub(super) fn also(&mut self, text: &str) {
        self.all += text.len() << 11;
    }

    fn take(&mut self, bytes: usize) {
        self.taken += bytes;
    }

    fn is_none(&self) -> bool {
        self.taken >= self.all
    }

    /// How many hundredths are taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        100 * self.taken / self.all
    }
}

/// Those that begin alike: a few, the longest first, or many in order, and those of them of which a piece says enough.
enum Alike<'a> {
    Few(Vec<Search<'a>>),
    Many { all: Vec<&'a String>, long: Vec<&'a String> },
}

/// How much is found, at most, of a secret at each place of a text where it begins as one does.
pub(super) fn most<'a>(
    text: &'a str,
    begins: &[&'a Begins],
    budget: &mut Budget,
    found: impl Fn(&mut Search<'a>, usize) -> Option<(usize, usize)>,
) -> Vec<(usize, (usize, usize))> {
    let (mut known, mut places) = (HashMap::<&[u8], Alike>::new(), Vec::new());
    for (at, begin) in text.as_bytes().windows(LONG_PIECE).enumerate() {
        let mut secrets = begins.iter().filter_map(|begins| begins.get(begin)).flatten().peekable();
        if secrets.peek().is_none() {
            continue;
        }
        if budget.is_none() {
            places.push((at, (text.len() - at, 0)));
            break;
        }
        let alike = known.entry(begin).or_insert_with(|| Alike::new(text, secrets.collect(), budget));
        places.extend(alike.most(text, at, budget, &found).map(|most| (at, most)));
    }
    places
}

impl<'a> Alike<'a> {
    fn new(text: &'a str, mut all: Vec<&'a String>, budget: &mut Budget) -> Self {
        if all.len() > MANY {
            budget.take(all.len() * Budget::GO_ON);
            all.sort_unstable();
            all.dedup();
            let long = all.iter().copied().filter(|secret| secret.len() >= LONG_SECRET).collect();
            return Alike::Many { all, long };
        }
        all.sort_by_key(|secret| Reverse(secret.len()));
        let all: Vec<Search> = all.into_iter().map(|secret| Search::new(secret, text)).collect();
        budget.take(all.iter().map(Search::looked_at).sum());
        Alike::Few(all)
    }

    /// How much is found of one at a place of a text. Those that have no more than was found are not asked.
    fn most(
        &mut self,
        text: &'a str,
        at: usize,
        budget: &mut Budget,
        found: &impl Fn(&mut Search<'a>, usize) -> Option<(usize, usize)>,
    ) -> Option<(usize, usize)> {
        match self {
            Alike::Few(all) => {
                let mut most = None;
                for secret in all {
                    if most.is_some_and(|(length, _)| length >= secret.len()) {
                        break;
                    }
                    let before = secret.looked_at();
                    most = most.max(found(secret, at));
                    budget.take(Budget::ASK + secret.looked_at() - before);
                }
                most
            }
            Alike::Many { all, long } => {
                let mut of = |all: &[&'a String]| {
                    let near = near(all, &text.as_bytes()[at..], budget);
                    near.into_iter().rev().find_map(|(secret, same)| {
                        let mut secret = Search::from(secret, text, at, same);
                        budget.take(Budget::ASK + secret.looked_at());
                        found(&mut secret, at)
                    })
                };
                [all, long].into_iter().filter_map(|all| of(all)).max()
            }
        }
    }
}

/// Those of many secrets, in order, of which a text says something that it says of no other, and how much: where some end or go on otherwise than
/// it does, those, and of those that go on otherwise in many ways one of each kind, for it depends on how they do whether it is a piece.
fn near<'a>(all: &[&'a String], text: &[u8], budget: &mut Budget) -> Vec<(&'a String, usize)> {
    const KINDS: [RangeInclusive<u8>; 5] = [0..=u8::MAX, b'0'..=b'9', b'A'..=b'Z', b'a'..=b'z', 0x80..=u8::MAX];
    let (mut all, mut same, mut found) = (all, 0, Vec::new());
    while let (Some(first), Some(last)) = (all.first(), all.last()) {
        let common = same + alike(&first.as_bytes()[same..], &last.as_bytes()[same..]);
        budget.take(Budget::GO_ON + (common - same) / 8);
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
            let mut budget = Budget::of(&text);
            let near = Alike::new(&text, all.iter().collect(), &mut budget).most(&text, 0, &mut budget, &found);
            // Of one that is cut off within a sign a part of the sign is left, besides.
            assert_eq!(near.map(|(same, _)| same), each.map(|(same, _)| same), "{text} {all:?}");
            many += usize::from(each.is_some_and(|(same, _)| same > LONG_PIECE));
        }
        assert!(many > 200, "{many}");
    }
}
