//! What must hold of everything that is said about what others wrote. Only fuzzing and its kept inputs ask.

use crate::{escape::escape, talk::Fault};
use relent::config::BadSetting;

/// A word that no input has by chance, in the place of a password.
pub(crate) const PASSWORD: &str = "hunter2hunter2";

/// Nothing that a terminal obeys, and no second line.
pub(crate) fn is_plain(text: &str) {
    let obeyed = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.chars().any(obeyed), "{text:?} is obeyed");
}

/// A fault is one line that nobody can forge, with a hint of another, for people and for machines.
pub(crate) fn is_told(fault: &Fault) {
    let (problem, hint) = fault.shown();
    assert!(!problem.is_empty(), "{fault:?} says nothing");
    is_plain(&problem);
    hint.iter().for_each(|hint| is_plain(hint));
    is_plain(&fault.to_json());
}

/// A setting that was refused says why and what to write instead.
pub(crate) fn is_refused(bad: &BadSetting) {
    assert!(!bad.problem.is_empty() && !bad.hint.is_empty(), "{bad:?}");
    is_plain(&escape(&bad.problem));
    is_plain(&escape(&bad.hint));
}
