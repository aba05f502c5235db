//! Optimistic concurrency: writers of one row, as in the AWS post on exponential backoff and jitter.

use crate::network::Network;

/// Writers of one row under optimistic concurrency.
#[derive(Clone, Debug, PartialEq)]
pub struct Occ {
    /// Writers, each with one successful write to do.
    pub clients: u64,
    /// The one-way delay of a message.
    pub network: Network,
}
