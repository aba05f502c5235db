//! One setting of a policy, and where it came from.

use std::fmt;

/// One setting and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, as the place it came from writes it.
    pub key: &'static str,
    /// Its value, as people read it.
    pub value: String,
    /// A flag, a line of a file, or `default`.
    pub from: String,
}

impl Setting {
    pub(super) fn new(key: &'static str, value: impl fmt::Display, from: impl fmt::Display) -> Setting {
        Setting { key, value: value.to_string(), from: from.to_string() }
    }

    pub(super) fn default(key: &'static str, value: impl fmt::Display) -> Setting {
        Setting::new(key, value, "default")
    }
}
