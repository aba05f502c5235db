//! Those who call while a herd comes back.

use std::time::Duration;

/// New clients who call while a herd comes back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Newcomers {
    /// How many a second, at random.
    pub rate: f64,
    /// For how long they come.
    pub until: Duration,
}
