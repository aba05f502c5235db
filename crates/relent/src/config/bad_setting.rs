//! Why a setting makes no sense: told by whoever reads one, and shown at its place by whoever knows it.

use crate::{
    Invalid,
    duration::BadDuration,
    suggest::{listed, nearest},
};
use std::{fmt, format, string::String};

/// Why a setting makes no sense.
///
/// ```
/// use relent::config::{BadSetting, Draft};
///
/// let mut draft = Draft::default();
/// draft.compat = Some("selery".into());
/// let bad: BadSetting = draft.policy().unwrap_err();
/// assert!(!bad.problem.is_empty() && !bad.hint.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting {
    /// The key, where it is one of [`KEYS`](super::KEYS).
    pub key: Option<&'static str>,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub hint: String,
}

impl BadSetting {
    pub(super) fn new(problem: impl Into<String>, hint: impl Into<String>) -> BadSetting {
        BadSetting { key: None, problem: problem.into(), hint: hint.into() }
    }

    pub(super) fn at(self, key: &'static str) -> BadSetting {
        BadSetting { key: Some(key), ..self }
    }
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for BadSetting {}

impl From<Invalid> for BadSetting {
    fn from(invalid: Invalid) -> BadSetting {
        BadSetting::new(invalid.problem, invalid.hint).at(invalid.key)
    }
}

impl From<BadDuration> for BadSetting {
    fn from(bad: BadDuration) -> BadSetting {
        BadSetting::new(format!("{bad}"), bad.hint())
    }
}

impl BadSetting {
    /// A word that is none of those that would be right.
    ///
    /// ```
    /// let bad = relent::config::BadSetting::unknown("key", "adress", &["address", "port"]);
    /// assert_eq!(bad.hint, "did you mean \"address\"?");
    /// assert_eq!(relent::config::BadSetting::unknown("key", "a", &[]).hint, "there are none");
    /// ```
    pub fn unknown(what: &str, word: &str, right: &[&str]) -> BadSetting {
        let problem = format!("there is no {what} {word:?}");
        match nearest(word, right.iter().copied()) {
            Some(meant) => BadSetting::new(problem, format!("did you mean {meant:?}?")),
            None if right.is_empty() => BadSetting::new(problem, "there are none"),
            None => BadSetting::new(problem, format!("there are {}", listed(right))),
        }
    }
}
