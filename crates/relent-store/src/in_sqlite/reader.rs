//! Who reads beside the writer, so that an answer that is there already waits for nobody's commit.
//!
//! A write-ahead log lets one connection read while another writes; it sees what was committed when the reading began. What cannot
//! be answered so at once is left to the writer.

use super::{SqliteSettings, bounds, opened::Opened, tx::Tx};
use crate::{Clock, Error};
use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError, TryLockError,
        atomic::{AtomicU8, Ordering},
    },
};

/// For how many keys that are new in a row it is looked first whether they are done, after one that was.
const HOPE: u8 = 16;

pub(super) struct Reader {
    /// Opened when it is first needed.
    file: Mutex<Option<Opened>>,
    settings: SqliteSettings,
    path: PathBuf,
    /// How much longer it is looked first whether a key is done.
    hope: AtomicU8,
}

impl Reader {
    pub(super) fn new(settings: SqliteSettings, path: PathBuf) -> Reader {
        Reader { file: Mutex::new(None), settings, path, hope: AtomicU8::new(0) }
    }

    /// What `op` reads, on this thread; `None` where it is to be asked of the writer.
    pub(super) fn read<T>(&self, clock: &Clock, op: impl FnOnce(&Tx<'_>) -> Result<Option<T>, Error>) -> Option<T> {
        let mut slot = match self.file.try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        if slot.is_none() {
            *slot = Opened::reading(self.settings.clone(), &self.path).ok();
        }
        let file = slot.as_mut()?;
        bounds::begin(bounds::HERE);
        let answer = op(&Tx { conn: &file.conn, now: clock.read(), fences: None });
        bounds::end();
        // A file that is gone, or what went wrong, is for the writer to tell; the next time another is opened.
        if answer.is_err() || file.is_there().is_err() {
            *slot = None;
            return None;
        }
        answer.ok().flatten()
    }

    /// Lets go of the file, so that it is opened anew.
    pub(super) fn close(&self) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether it is worth looking if a key is done, before it is claimed.
    pub(super) fn has_hope(&self) -> bool {
        self.hope.load(Ordering::Relaxed) > 0
    }

    /// A key was done, or was not.
    pub(super) fn learn(&self, was_done: bool) {
        let now = self.hope.load(Ordering::Relaxed);
        let then = if was_done { HOPE } else { now.saturating_sub(1) };
        if then != now {
            self.hope.store(then, Ordering::Relaxed);
        }
    }
}
