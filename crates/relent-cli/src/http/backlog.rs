//! What is kept of what is written in HTTP/2 while the other side reads nothing. Who speaks it reads no more where a frame of theirs waits to be
//! written, and what the other side has said by then is to be heard all the same.

use std::{
    collections::VecDeque,
    io::IoSlice,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

/// What waits to be written, in order.
#[derive(Default)]
pub(super) struct Held(VecDeque<u8>);

/// The most of it: all that is made of a body by the time that no more is, and answers to a few hundred pings.
const MOST: usize = 256 << 10;

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is to be written first.
    pub(super) fn first(&self) -> &[u8] {
        self.0.as_slices().0
    }

    /// So much of it is written.
    pub(super) fn forget(&mut self, count: usize) {
        self.0.drain(..count);
    }

    /// Keeps as much of these as there is room for.
    pub(super) fn keep(&mut self, pieces: &[IoSlice<'_>]) -> usize {
        let before = self.0.len();
        for piece in pieces {
            let room = MOST.saturating_sub(self.0.len());
            self.0.extend(&piece[..room.min(piece.len())]);
        }
        self.0.len() - before
    }
}

/// Shut while something is held: no more is made of a body.
#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<(bool, Option<Waker>)>);

impl Gate {
    fn lock(&self) -> MutexGuard<'_, (bool, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shut(&self) {
        self.lock().0 = true;
    }

    pub(super) fn open(&self) {
        let waker = {
            let mut gate = self.lock();
            gate.0 = false;
            gate.1.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Whether it is; who asks is woken when it is opened.
    pub(super) fn is_shut(&self, context: &Context<'_>) -> bool {
        let mut gate = self.lock();
        if gate.0 {
            gate.1 = Some(context.waker().clone());
        }
        gate.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_there_is_room_for() {
        let mut held = Held::default();
        let piece = vec![7; MOST - 3];
        assert_eq!(held.keep(&[IoSlice::new(&piece), IoSlice::new(b"12345")]), MOST);
        assert_eq!(held.keep(&[IoSlice::new(b"45")]), 0);
        held.forget(MOST - 3);
        assert_eq!(held.keep(&[IoSlice::new(b"45")]), 2);
        let mut all = Vec::new();
        while !held.is_empty() {
            let count = held.first().len();
            all.extend_from_slice(held.first());
            held.forget(count);
        }
        assert_eq!(all, b"12345");
    }
}
