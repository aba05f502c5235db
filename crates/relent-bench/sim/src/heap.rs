//! A plain loop over a binary heap: what one writes without a library.

use crate::herd::{Done, Herd, ONE_WAY};
use std::{cmp::Reverse, collections::BinaryHeap};

pub(crate) fn run(clients: u32, seed: u64) -> Done {
    let mut herd = Herd::new(clients, seed);
    let first: Vec<Reverse<(u64, u32, u32)>> = (0..clients).map(|client| Reverse((ONE_WAY, client, 0))).collect();
    let mut heap = BinaryHeap::from(first);
    while let Some(Reverse((now, client, failures))) = heap.pop() {
        if let Some(later) = herd.arrive(now, client, failures) {
            heap.push(Reverse((now + later, client, failures + 1)));
        }
    }
    herd.result()
}
