//! "Did you mean": the nearest of the words that would have been right, or those that there are.

#[cfg(feature = "toml")]
use std::{borrow::Borrow, format, string::String};

/// The word of `among` that `word` was most likely meant to be: at most a third of its letters away from it.
#[cfg(feature = "toml")]
pub(crate) fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    let most = (word.chars().count() / 3).clamp(1, 4);
    among
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase().replace('-', "_")), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Words as a list that somebody reads: all that relent has itself, and of what a file has no more than that.
#[cfg(feature = "toml")]
pub(crate) fn listed<T: Borrow<str>>(words: &[T]) -> String {
    const MOST: usize = 50;
    let shown = words[..words.len().min(MOST)].join(", ");
    match words.len().checked_sub(MOST) {
        None | Some(0) => shown,
        Some(1) => format!("{shown} and 1 other"),
        Some(others) => format!("{shown} and {others} others"),
    }
}

/// The letters to insert, delete or replace to turn `a` into `b` (Levenshtein). Long words are not compared.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 64;
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(LONGEST).collect(), b.chars().take(LONGEST).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file may have any number of them.
    #[cfg(feature = "toml")]
    #[test]
    fn a_list_has_an_end() {
        let words: Vec<String> = (0..20_000).map(|nth| format!("a{nth}")).collect();
        assert_eq!(listed(&words[..2]), "a0, a1");
        assert!(listed(&words[..50]).ends_with("a48, a49"));
        assert!(listed(&words[..51]).ends_with("a49 and 1 other"));
        assert!(listed(&words).ends_with("a48, a49 and 19950 others"));
    }

    #[cfg(feature = "toml")]
    #[test]
    fn finds_the_nearest_and_only_near_ones() {
        let keys = ["base", "cap", "max_attempts", "max_elapsed"];
        assert_eq!(nearest("bsae", keys), None);
        assert_eq!(nearest("bas", keys), Some("base"));
        assert_eq!(nearest("max-atempts", keys), Some("max_attempts"));
        assert_eq!(nearest("MAX_ELAPSED", keys), Some("max_elapsed"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
    }

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
