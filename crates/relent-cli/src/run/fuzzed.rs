//! What must hold of everything that `relent run` reads: sets of exit codes, patterns and what they look at, verdicts.

use super::{
    exit_set::ExitSet,
    patterns::{Pattern, Patterns, Search},
    said,
};
use crate::promises::is_refused;

/// A set of exit codes has those that it names.
pub fn exit_set(text: &str) {
    match text.parse::<ExitSet>() {
        Ok(set) => {
            let named = text.split([',', '-']).map(|code| code.trim().parse::<u8>().expect("it was read"));
            named.into_iter().for_each(|code| assert!(set.contains(code), "{text:?} names {code}"));
        }
        Err(bad) => is_refused(&bad),
    }
}

/// What a command wrote to `RELENT_VERDICT` is a verdict that reads as what was written, or is none.
pub fn verdict(text: &str, exit: u8) {
    if let Some(Ok(verdict)) = said::last(text, exit) {
        let again = said::last(&format!("exit {exit}: {verdict}"), exit);
        assert_eq!(again, Some(Ok(verdict)), "{text:?}");
    }
}

/// A pattern finds the same in one piece and byte by byte.
pub fn pattern(text: &str, output: &[u8]) {
    let Ok(pattern) = Pattern::new(text) else { return };
    let patterns = Patterns { retry: Some(pattern), until: None };
    let (mut whole, mut bytes) = (Search::new(&patterns), Search::new(&patterns));
    whole.feed(output);
    output.iter().for_each(|byte| bytes.feed(&[*byte]));
    assert_eq!(whole.finish(), bytes.finish(), "{text:?} in {output:?}");
}
