//! State that does not fit into one word: a few of them behind a gate, which is held for a few nanoseconds.

use super::word::{Word, pause};

/// How often a thread looks again at a gate that another one holds. Who holds it does some ten loads and stores, so
/// this ends only if the holder was put to sleep by the system in the middle of them. Nobody waits for that.
pub(crate) const PATIENCE: u32 = if cfg!(loom) { 2 } else { 10_000 };

/// A few words that change together: a gate, which is held for a few nanoseconds.
#[derive(Debug)]
pub(crate) struct Cells<const N: usize> {
    gate: Word,
    cells: [Word; N],
}

impl<const N: usize> Cells<N> {
    pub(crate) const fn new() -> Cells<N> {
        Cells { gate: Word::new(0), cells: [const { Word::new(0) }; N] }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        with(&self.gate);
        self.cells.iter().for_each(with);
    }

    /// Lets `change` see and change all words at once. `None` if another thread holds the gate for too long, which
    /// means that it was put to sleep while it held it. `change` must not panic.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut [u64; N]) -> R) -> Option<R> {
        let mut patience = PATIENCE;
        while self.gate.exchange(0, 1).is_err() {
            patience = patience.checked_sub(1)?;
            pause();
        }
        let mut values = [0; N];
        for (value, cell) in values.iter_mut().zip(&self.cells) {
            *value = cell.get();
        }
        let result = change(&mut values);
        for (value, cell) in values.into_iter().zip(&self.cells) {
            cell.set(value);
        }
        self.gate.set(0);
        Some(result)
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{model, sync::Arc, thread};

    #[test]
    fn cells_change_together() {
        model(|| {
            let cells = Arc::new(Cells::<2>::new());
            // Loom makes its atomics at their first use, which must be before a second thread starts.
            cells.with(|_| ());
            let other = cells.clone();
            let step = |values: &mut [u64; 2]| {
                assert_eq!(values[0], values[1]);
                values[0] += 1;
                values[1] += 1;
            };
            let other = thread::spawn(move || other.with(step).is_some());
            let mine = cells.with(step).is_some();
            let done = u64::from(mine) + u64::from(other.join().unwrap());
            cells.with(|values| assert_eq!(*values, [done, done]));
        });
    }
}
