//! The words that messages have.
//!
//! People choose words for users and passwords. To leave one of these out wherever it stands would tell it by what is missing, and of an
//! answer as common as "503 Service Unavailable" to whoever reads a log. The same holds of two or three, however they are put together; of
//! more, as in a pass phrase, no message is made.

use super::plain::is_short_amount;
use std::{collections::HashSet, sync::LazyLock};

/// All words of three letters or more in the texts of relent, of the system's errors and of the reasons of statuses, in small letters, and
/// shorter ones that stand between them.
static ALL: LazyLock<HashSet<&str>> = LazyLock::new(|| include_str!("words.txt").lines().chain(SHORT).collect());

const SHORT: [&str; 17] =
    ["an", "as", "at", "be", "by", "do", "if", "in", "is", "it", "no", "of", "on", "or", "so", "to", "up"];

/// The longest text that is looked at, and the longest word.
const LONGEST: (usize, usize) = (64, 24);

/// The most words.
const MOST: usize = 3;

/// Whether the letters of a text are a few such words, one behind the other, and it has nothing beside them but signs.
pub(super) fn are_ours(text: &str) -> bool {
    if text.len() > 2 * LONGEST.0 || text.contains(|c: char| c.is_ascii_digit() || !c.is_ascii()) {
        return false;
    }
    let letters: String = text.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect();
    if letters.is_empty() || letters.len() > LONGEST.0 {
        return false;
    }
    // How few words can end here.
    let mut ends = vec![0];
    for end in 1..=letters.len() {
        let begins = end.saturating_sub(LONGEST.1)..end;
        let before = begins.filter(|begin| ALL.contains(&letters[*begin..end])).map(|begin| ends[begin]);
        ends.push(before.min().map_or(usize::MAX, |words: usize| words.saturating_add(1)));
    }
    ends[letters.len()] <= MOST
}

/// The most signs of a word with those of a sentence around it.
const A_WORD: usize = 64;

/// Whether a text begins as messages go on behind a name (`No such file`, `Is a directory`, `up after 1 attempt`, `3 attempts`): with such a word and, if
/// there is a second, with another one or an amount, or with how many attempts there were.
pub(super) fn begin_a_message(text: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || "\"'".contains(c);
    // No word is longer, and the end of what is none may be far away: this is asked of each setting.
    let word = |text: &str| text.char_indices().take(A_WORD).find(|(_, c)| ends(*c)).map(|(end, _)| end);
    let Some(end) = word(text).or((text.len() < A_WORD).then_some(text.len())) else { return false };
    let (first, behind) = text.split_at(end);
    // A quote at the first is a part of a value.
    let Some(behind) = behind.strip_prefix(char::is_whitespace) else {
        return behind.is_empty() && is_ours(bare(first));
    };
    let Some(end) = word(behind).or((behind.len() < A_WORD).then_some(behind.len())) else { return false };
    let second = bare(&behind[..end]);
    match first.bytes().all(|byte| byte.is_ascii_digit()) {
        true => is_short_amount(first) && ["attempt", "attempts"].contains(&second),
        false => is_ours(bare(first)) && (second == "a" || is_ours(second) || is_short_amount(second)),
    }
}

/// Whether two such words stand in a row in a text, as in every message, or one beside an amount.
pub(super) fn have_a_message(text: &str) -> bool {
    !within_messages(text).is_empty()
}

/// Where the spaces stand between such two.
pub(super) fn within_messages(text: &str) -> Vec<usize> {
    let (mut found, mut at, mut before) = (Vec::new(), 0, (false, false));
    for word in text.split(' ') {
        let now = (is_ours(bare(word)), is_short_amount(bare(word)));
        if (before.0 && (now.0 || now.1)) || (before.1 && now.0) {
            found.push(at - 1);
        }
        before = now;
        at += word.len() + 1;
    }
    found
}

/// Whether it is one of them.
fn is_ours(word: &str) -> bool {
    word.len() <= LONGEST.1 && ALL.contains(word.to_ascii_lowercase().as_str())
}

/// A word without the signs of a sentence around it.
fn bare(word: &str) -> &str {
    word.trim_start_matches('(').trim_end_matches([',', ';', ':', '.', ')'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_two_of_its_words_in_a_row() {
        for text in ["x belongs to y", "gave up", "7: 1 attempt.", "x (exit 1)", "at once, who"] {
            assert!(have_a_message(text), "{text}");
        }
        for text in ["hunter2", "belongs", "x belongs y", "1 2", "1 x", "gave-up", "the  file", ""] {
            assert!(!have_a_message(text), "{text}");
        }
    }

    #[test]
    fn a_message_begins_with_two_of_its_words() {
        for text in [
            "No such file",
            "held, fence 41",
            "up after 1 attempt",
            "open; ask",
            "released",
            "attempt 1: x",
            "not found\" x",
            "Is a directory",
            "Not a directory",
            "3 attempts, 1 retry",
            "1 attempt: exit 1",
        ] {
            assert!(begin_a_message(text), "{text}");
        }
        for text in [
            "hunter2 was refused",
            "is hunter2",
            "1234 is wrong",
            "12345 attempts",
            "3",
            "3x attempts",
            "a hunter2",
            "\"No such\"",
            "not-found7",
            "",
            " no such",
            "open'is'hunter2Zx",
            "open\"is\"hunter2Zx",
            "open' is",
            "open 'is'",
        ] {
            assert!(!begin_a_message(text), "{text}");
        }
    }

    #[test]
    fn words_are_known_however_they_are_put_together() {
        for text in ["unavailable", "NotFound", "bad_gateway", "connection refused", "out-of-attempts", "PostgreSQL"] {
            assert!(are_ours(text), "{text}");
        }
        for text in [
            "",
            "12345678",
            "hunter2",
            "correct horse battery",
            "open-window-behind-machine",
            "postgres1",
            "Wörter",
            &"not".repeat(50),
        ] {
            assert!(!are_ours(text), "{text}");
        }
    }
}
