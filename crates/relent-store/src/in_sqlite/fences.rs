//! Numbers that were never given before, and grow.
//!
//! The last one is in the file. Each number that is taken there is a page that is written, so a process that needs many takes
//! several at once, twice as many as the time before. It gives them only as long as the file says that nobody took others since:
//! whoever is given one later, by whatever process, has a greater one. Those that are left when a process ends are never given.

use super::fault;
use crate::{Error, Fence};
use std::cell::Cell;

/// How many are taken at once at most.
const MOST: i64 = 1024;

/// The numbers that a connection has taken, and not yet given.
#[derive(Default)]
pub(super) struct Fences {
    taken: Cell<Taken>,
}

#[derive(Clone, Copy, Default)]
struct Taken {
    next: u64,
    last: u64,
    /// How many they were.
    number: i64,
    /// Whether this transaction has seen that nobody took others since.
    is_seen: bool,
}

impl Fences {
    /// A transaction begins.
    pub(super) fn begin(&self) {
        self.taken.update(|taken| Taken { is_seen: false, ..taken });
    }

    /// A transaction came to nothing, and with it what it took; or another file has its own numbers.
    pub(super) fn forget(&self) {
        self.taken.take();
    }
}

impl Fences {
    /// A number that was taken already. `last` says what the file has as the last that was taken.
    pub(super) fn spare(&self, last: impl FnOnce() -> Result<Option<i64>, Error>) -> Result<Option<Fence>, Error> {
        let mut taken = self.taken.get();
        if taken.next > taken.last || taken.last == 0 {
            return Ok(None);
        }
        if !taken.is_seen && last()?.map(i64::cast_unsigned) != Some(taken.last) {
            self.forget();
            return Ok(None);
        }
        let fence = Fence(taken.next);
        (taken.next, taken.is_seen) = (taken.next + 1, true);
        self.taken.set(taken);
        Ok(Some(fence))
    }

    /// The first of some that are taken now: `take` takes so many in the file, and says which is the last then.
    pub(super) fn first(&self, take: impl FnOnce(i64) -> Result<Option<i64>, Error>) -> Result<Fence, Error> {
        let before = self.taken.get();
        // Whose numbers lasted needs more; with others who take some, too, they would be for nothing.
        let is_used_up = before.next > before.last;
        let number = if is_used_up { (before.number * 2).min(MOST) } else { 1 };
        let last = take(number)?.ok_or_else(|| fault::corrupt("the counter of fences is gone"))?;
        if last < number {
            return Err(fault::corrupt("the counter of fences makes no sense"));
        }
        let (next, last) = ((last - number + 1).cast_unsigned(), last.cast_unsigned());
        self.taken.set(Taken { next: next + 1, last, number, is_seen: true });
        Ok(Fence(next))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Names, tx::Tx},
        *,
    };
    use crate::time::Now;
    use rusqlite::Connection;

    struct Process {
        conn: Connection,
        fences: Fences,
        names: Names,
    }

    impl Process {
        fn new(path: &std::path::Path) -> Process {
            let (conn, names) = (Connection::open(path).unwrap(), Names::new("relent_"));
            Process { conn, fences: Fences::default(), names }
        }

        /// So many numbers in one transaction, and how it ends.
        fn take(&self, number: usize, end: &str) -> Vec<u64> {
            self.conn.execute_batch("BEGIN IMMEDIATE").unwrap();
            self.fences.begin();
            let tx = Tx { conn: &self.conn, now: Now::at(0), fences: Some(&self.fences) };
            let taken = (0..number).map(|_| tx.next(&self.names).unwrap().0).collect();
            self.conn.execute_batch(end).unwrap();
            if end == "ROLLBACK" {
                self.fences.forget();
            }
            taken
        }

        fn last(&self) -> u64 {
            let sql = "SELECT value FROM relent_meta WHERE name = 'fence'";
            self.conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as u64
        }
    }

    fn file() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        drop(super::super::Sqlite::open(&path).unwrap());
        (folder, path)
    }

    #[test]
    fn numbers_grow_whoever_takes_them_and_however_many() {
        let (_folder, path) = file();
        let processes = [(); 3].map(|()| Process::new(&path));
        let mut given = vec![];
        for turn in 0..200_usize {
            // In turns, and many by one; some transactions come to nothing.
            let process = &processes[if turn < 100 { turn % 3 } else { turn / 20 % 3 }];
            let taken = process.take(turn % 7, if turn % 5 == 3 { "ROLLBACK" } else { "COMMIT" });
            if turn % 5 != 3 {
                given.extend(taken);
            }
        }
        assert!(given.is_sorted_by(|before, after| before < after), "{given:?}");
    }

    #[test]
    fn who_needs_many_takes_many_at_once_and_who_needs_one_takes_one() {
        let (_folder, path) = file();
        let busy = Process::new(&path);
        assert_eq!(busy.take(1, "COMMIT"), [1]);
        assert_eq!(busy.last(), 1);
        assert_eq!(busy.take(5000, "COMMIT"), (2..=5001).collect::<Vec<_>>());
        let last = busy.last();
        assert!((5001..5001 + MOST.cast_unsigned()).contains(&last), "{last}");
        // What is left of them is not taken again while there is nobody else.
        assert_eq!(busy.take(10, "COMMIT").len() + usize::from(busy.last() == last), 11);
        let rare = Process::new(&path);
        assert_eq!(rare.take(1, "COMMIT"), [last + 1]);
        assert_eq!(busy.take(1, "COMMIT"), [last + 2], "what was left is not given after a greater one");
    }

    #[test]
    fn a_counter_that_makes_no_sense_is_told() {
        let (_folder, path) = file();
        let process = Process::new(&path);
        for value in ["-100", "9223372036854775807", "'abc'", "x'07'", "7.5"] {
            process
                .conn
                .execute_batch(&format!("UPDATE relent_meta SET value = {value} WHERE name = 'fence'"))
                .unwrap();
            process.conn.execute_batch("BEGIN IMMEDIATE").unwrap();
            let tx = Tx { conn: &process.conn, now: Now::at(0), fences: Some(&process.fences) };
            assert_eq!(tx.next(&process.names).unwrap_err().kind(), crate::ErrorKind::Corrupt, "{value}");
            process.conn.execute_batch("ROLLBACK").unwrap();
        }
    }
}
