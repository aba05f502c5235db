//! Sets of exit codes as flags give them: `1,3-5`.

use relent::config::BadSetting;
use std::{ops::RangeInclusive, str::FromStr};

/// A set of exit codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExitSet(Vec<RangeInclusive<u8>>);

impl ExitSet {
    pub(super) fn contains(&self, code: u8) -> bool {
        self.0.iter().any(|range| range.contains(&code))
    }

    /// Whether there is but one code in it.
    pub(super) fn is_one(&self) -> bool {
        matches!(&self.0[..], [range] if range.start() == range.end())
    }
}

impl FromStr for ExitSet {
    type Err = BadSetting;

    fn from_str(text: &str) -> Result<ExitSet, BadSetting> {
        text.split(',').map(range).collect::<Result<_, _>>().map(ExitSet)
    }
}

/// A value that is none, with what to write instead.
pub(super) fn bad(problem: impl ToString, hint: impl Into<String>) -> BadSetting {
    BadSetting { key: None, problem: problem.to_string(), hint: hint.into() }
}

fn range(text: &str) -> Result<RangeInclusive<u8>, BadSetting> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (code(first)?, code(last)?);
    if first > last {
        return Err(bad(format!("the range {first}-{last} is empty"), format!("write {last}-{first}")));
    }
    Ok(first..=last)
}

fn code(text: &str) -> Result<u8, BadSetting> {
    let text = text.trim();
    text.parse().map_err(|_| bad(format!("{text:?} is no exit code"), "a list of codes 0 to 255 and ranges: 1,3-5"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let set: ExitSet = "1, 3-5,255".parse().unwrap();
        let inside: Vec<u8> = (0..=255).filter(|code| set.contains(*code)).collect();
        assert_eq!(inside, [1, 3, 4, 5, 255]);
    }

    #[test]
    fn what_is_no_set_says_why() {
        let problem = |text: &str| text.parse::<ExitSet>().unwrap_err().problem;
        assert_eq!(problem(""), "\"\" is no exit code");
        assert_eq!(problem("1,"), "\"\" is no exit code");
        assert_eq!(problem("256"), "\"256\" is no exit code");
        assert_eq!(problem("-1"), "\"\" is no exit code");
        assert_eq!(problem("5-3"), "the range 5-3 is empty");
        assert_eq!(problem("one"), "\"one\" is no exit code");
    }
}
