//! Optimistic concurrency: writers of one row.

use super::Network;

/// Writers of one row under optimistic concurrency.
#[derive(Clone, Debug, PartialEq)]
pub struct OptimisticWriters {
    /// Writers, each with one successful write to do.
    pub clients: u64,
    /// The one-way delay of a message.
    pub network: Network,
}
