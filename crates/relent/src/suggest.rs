//! "Did you mean": the nearest of the words that would have been right.

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
