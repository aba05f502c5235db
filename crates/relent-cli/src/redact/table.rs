//! The secrets that are known, as they are looked for.

use super::{
    letters::{letters, signs},
    plain::is_short_amount,
    words::are_ours,
};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::OnceLock,
};

/// From which length on a secret, or a piece of one, is looked for anywhere. A shorter one is a part of many words: what is missing of them
/// would tell it.
pub(super) const LONG_PIECE: usize = 8;

/// Texts by their first bytes.
#[derive(Debug, Default)]
pub(super) struct Begins {
    pub(super) all: HashMap<[u8; LONG_PIECE], BTreeSet<String>>,
    /// The very first of them, since hardly any place of a text begins with one.
    first: BTreeSet<u8>,
}

impl Begins {
    fn put(&mut self, text: String) {
        self.first.extend(text.bytes().next());
        self.all.entry(row(text.as_bytes())).or_default().insert(text);
    }

    /// Those that begin as so many bytes do.
    pub(super) fn get(&self, begin: &[u8]) -> Option<&BTreeSet<String>> {
        self.first.contains(&begin[0]).then(|| self.all.get(begin)).flatten()
    }
}

/// Secrets as they are looked for. It is made when they are known, so that a text costs its own length alone, however many they are.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Those that are long enough.
    pub(super) begins: Begins,
    /// The letters and digits of those that have enough of them: who says one again writes the rest in many ways.
    pub(super) letters: Begins,
    /// All with their signs, as they are read: fewer letters would stand in many words, and a word ends at a sign.
    pub(super) signs: Begins,
    /// The long ones from their end on.
    pub(super) ends: Begins,
    /// The same as they are read.
    pub(super) sign_ends: Begins,
    /// Whether one of them has a sign, as it was sent, by which others are written out: percent signs, backslashes.
    pub(super) has_written_out: bool,
    /// Those that hold all of them.
    wholes: Vec<String>,
    /// What stands in these anywhere, so many bytes in a row, in order.
    rows: OnceLock<Vec<[u8; LONG_PIECE]>>,
    /// What is too short to be looked for anywhere, and is hidden where a message quotes nothing else.
    short: OnceLock<HashSet<[u8; LONG_PIECE]>>,
}

impl Table {
    /// Adds secrets, which are [`undone`], and those of which they are parts.
    pub(super) fn add(&mut self, secrets: impl IntoIterator<Item = String>, wholes: impl IntoIterator<Item = String>) {
        let is_looked_for = |secret: &String| secret.trim().len() >= LONG_PIECE && !are_ours(secret);
        for secret in secrets.into_iter().filter(is_looked_for) {
            for (letters, _) in letters(&secret).into_iter().filter(|(letters, _)| is_looked_for(letters)) {
                self.letters.put(letters);
            }
            // A plus or two that end one are read as spaces.
            let is_long = |text: &String| text.len() >= LONG_PIECE && text.trim().len() + 2 >= LONG_PIECE;
            for (signs, _) in signs(&secret).into_iter().filter(|(text, _)| is_long(text) && !are_ours(text)) {
                self.sign_ends.put(reversed(&signs));
                self.signs.put(signs);
            }
            self.has_written_out |= secret.contains(['%', '\\']);
            self.ends.put(reversed(&secret));
            self.begins.put(secret);
        }
        self.wholes.extend(wholes);
        self.rows = OnceLock::new();
        self.short = OnceLock::new();
    }

    /// Whether a text is a part of a secret: all that stands in a row in it stands so in one.
    pub(super) fn has(&self, text: &str) -> bool {
        let rows = self.rows.get_or_init(|| {
            let all = self.wholes.iter().map(String::as_bytes);
            let mut rows: Vec<_> = all.flat_map(|whole| (0..whole.len()).map(|at| row(&whole[at..]))).collect();
            rows.sort_unstable();
            rows.dedup();
            rows
        });
        let is_there = |part: &[u8]| {
            let at = rows.partition_point(|row| row[..] < *part);
            rows.get(at).is_some_and(|row| row.starts_with(part))
        };
        match text.len() <= LONG_PIECE {
            true => is_there(text.as_bytes()),
            false => text.as_bytes().windows(LONG_PIECE).all(is_there),
        }
    }

    /// Whether a text says so much of a secret that nothing is left of it where a message quotes it: one that is short, what stands between
    /// signs in one, or a long piece. Words of ours are none.
    pub(super) fn says(&self, text: &str) -> bool {
        if text.len() >= LONG_PIECE {
            return !are_ours(text) && self.has(text);
        }
        let short = self.short.get_or_init(|| {
            let wholes = self.wholes.iter().map(String::as_str).filter(|whole| whole.len() < LONG_PIECE);
            let parts = self.wholes.iter().flat_map(|whole| short_parts(whole));
            wholes.chain(parts).map(|text| row(text.as_bytes())).collect()
        });
        text.is_empty() || short.contains(&row(text.as_bytes()))
    }
}

/// The parts of a secret that are no words of ours and no amounts, from where letters, digits or signs begin or end up to where they do. Any
/// other short piece stands in a long secret by chance.
fn short_parts(secret: &str) -> impl Iterator<Item = &str> {
    const LEAST: usize = 4;
    let kind = |c: char| (c.is_alphabetic(), c.is_numeric());
    let is_end = |c: char, next: char| kind(c) != kind(next) || !c.is_alphanumeric();
    let pairs = secret.char_indices().zip(secret.chars().skip(1));
    let mut ends = vec![0];
    ends.extend(pairs.filter(|((_, c), next)| is_end(*c, *next)).map(|((at, c), _)| at + c.len_utf8()));
    ends.push(secret.len());
    let pairs = ends.clone().into_iter().enumerate().flat_map(move |(nth, begin)| {
        let ends: Vec<usize> = ends[nth..].iter().copied().take_while(|end| end - begin < LONG_PIECE).collect();
        ends.into_iter().filter(move |end| end - begin >= LEAST).map(move |end| begin..end)
    });
    pairs.map(|place| &secret[place]).filter(|part| !are_ours(part) && !is_short_amount(part))
}

/// The first bytes of a text, filled up where it has fewer.
fn row(text: &[u8]) -> [u8; LONG_PIECE] {
    let mut row = [0; LONG_PIECE];
    row.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
    row
}

/// A text from its end on.
pub(super) fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::undone::undone;

    fn table(secrets: &[&str]) -> Table {
        let secrets: Vec<String> = secrets.iter().map(|secret| undone(secret).0).collect();
        let mut table = Table::default();
        table.add(secrets.clone(), secrets);
        table
    }

    #[test]
    fn a_part_of_a_secret_is_known() {
        let table = table(&["hunter2longer", "pw"]);
        for part in ["h", "r", "2longer", "hunter2l", "hunter2longer", "unter2longe", "pw", "w"] {
            assert!(table.has(part), "{part}");
        }
        for other in ["x", "hunter2x", "2longerx", "hunter2longerx", "xhunter2longer", "pwh", "hunterlonger"] {
            assert!(!table.has(other), "{other}");
        }
        assert!(!Table::default().has("a"));
    }

    /// Any short text stands somewhere in a long secret.
    #[test]
    fn a_short_text_says_a_secret_only_if_it_is_one_or_stands_between_signs_in_it() {
        let token = table(&["QK1sPz2mTfullW0sexponential9", "p1/hay5x/30s.next-hor2se7", "pw", "full7"]);
        for said in ["pw", "full7", "hay5x", "hay5", "p1/hay", "hor2se", "QK1sPz2mTf", "w0sexponen"] {
            assert!(token.says(&said.to_lowercase()), "{said}");
        }
        for word in
            ["p", "1s", "2m", "full", "exponential", "30s", "next", "ayx5", "hor", "ay5x", "p1", "Tful", "q", "0", "w"]
        {
            assert!(!token.says(&word.to_lowercase()), "{word}");
        }
    }
}
