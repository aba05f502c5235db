//! What is told of a call, whoever is told.

#[cfg(feature = "metrics")]
use std::sync::Arc;

/// How a call ended, for those who are told.
pub(super) struct End {
    pub(super) outcome: &'static str,
    /// Empty but for failures.
    pub(super) reason: &'static str,
    pub(super) attempts: u32,
}

/// Whose call it is.
#[cfg(feature = "metrics")]
pub(super) struct Names {
    pub(super) policy: &'static str,
    /// Empty if there is none.
    pub(super) upstream: Arc<str>,
}
