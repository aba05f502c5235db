//! What a run of a service is made of.

use super::{control::Control, draws::Draws};
use crate::scenario::{Contender, Service};

/// What a run is made of.
pub(crate) struct Task<'a> {
    pub(crate) service: &'a Service,
    pub(crate) contender: &'a Contender,
    pub(crate) draws: Draws,
    /// The end of the world, in nanoseconds.
    pub(crate) limit: u64,
    pub(crate) control: &'a Control,
}
