//! The words that messages have.
//!
//! People choose words for users and passwords. To leave one of these out wherever it stands would tell it by what is missing, and of an
//! answer as common as "503 Service Unavailable" to whoever reads a log.

use std::{collections::HashSet, sync::LazyLock};

/// All words of eight letters or more in the texts of relent, of the system's errors and of the reasons of statuses, in small letters.
static ALL: LazyLock<HashSet<&str>> = LazyLock::new(|| include_str!("words.txt").lines().collect());

/// Whether a text is such a word.
pub(super) fn is_ours(text: &str) -> bool {
    ALL.contains(text.to_ascii_lowercase().as_str())
}
