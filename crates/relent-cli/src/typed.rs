//! Words in what a message proposes for typing.

use crate::{
    escape::{escape, shell},
    redact,
};
use std::borrow::Cow;

/// Such a word, as a shell takes it. What is hidden or written out of a message afterwards could open its
/// quotes, and would be another word: where there is such a thing, nothing is proposed but `NAME`.
///
/// ```
/// use relent_cli::typed::typed;
///
/// assert_eq!(typed("it's; rm x"), r"'it'\''s; rm x'");
/// assert_eq!(typed("password=\\'; touch x"), "NAME");
/// assert_eq!(typed("h\u{a0}x"), "NAME");
/// ```
pub fn typed(word: &str) -> Cow<'_, str> {
    const LONGEST: usize = 200;
    let quoted = shell(word);
    let told = format!("-- {quoted} or");
    // Some messages write out more.
    let is_seen = |c: char| c.escape_debug().len() == 1 || "'\"\\".contains(c);
    let is_same =
        word.chars().all(is_seen) && quoted.len() <= LONGEST && redact::text(&told) == told && escape(&told) == told;
    // Beside it others may stand.
    if is_same && redact::name(word) == word { quoted } else { Cow::Borrowed("NAME") }
}
