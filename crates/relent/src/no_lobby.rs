//! Without `std` nobody waits here or listens but by the builder: event loops keep their queue themselves.

use crate::UpstreamChange;
use core::task::Waker;

#[derive(Debug)]
pub(crate) struct Lobby;

impl Lobby {
    pub(crate) const fn new() -> Lobby {
        Lobby
    }

    pub(crate) fn tell(&self, _: &UpstreamChange<'_>) {}

    pub(crate) fn adopt(&self, _: &Lobby) {}

    pub(crate) fn enter(&self, _ticket: u64, _: &Waker) -> u64 {
        0
    }

    pub(crate) fn leave(&self, _ticket: u64) {}

    pub(crate) fn wake(&self, _newest: bool) {}
}
