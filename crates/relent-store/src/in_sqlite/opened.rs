//! A connection to the file, and whether that is still the file that its path names.
//!
//! A file that is deleted or replaced while it is open can be written to as before, and nobody would ever read it: what was
//! accepted would be lost. So it is looked at after each commit, before anybody is told. Where it is gone, what is at its path
//! then is opened; where nothing is, nothing is made, because an empty store would say of everything that it never happened.
//!
//! The same goes for the log and the index that SQLite keeps beside it: who opens the file anew would make others, and know
//! nothing of what is in the old ones. The last who closes the file writes what the log has into it, though its name is gone, and
//! removes both names; so each lets go of it, and opens it again when neither names what it did.

use super::{Durability, SqliteSettings, bounds, fault, fences::Fences, file, journal, parts, rights, schema};
use crate::{Error, ErrorKind, settings::missing};
use rusqlite::{Connection, OpenFlags};
use std::{
    cell::Cell,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// A connection, how it was made, and to which file.
pub(super) struct Opened {
    pub(super) conn: Connection,
    pub(super) fences: Fences,
    settings: SqliteSettings,
    path: PathBuf,
    id: Option<file::Id>,
    beside: [Beside; 2],
    gone: Cell<Gone>,
}

/// What SQLite keeps beside a file as long as somebody has it open.
struct Beside {
    path: PathBuf,
    id: Option<file::Id>,
}

/// What was taken away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gone {
    Nothing,
    File,
    /// The log, or its index: which of them.
    Beside(usize),
}

impl Opened {
    /// Opens the file, or makes it if it may; what is to be said of others who can write to it or read it.
    pub(super) fn new(settings: SqliteSettings, path: &Path) -> Result<(Opened, Vec<&'static str>), Error> {
        let cautions = match settings.no_making {
            true if std::fs::metadata(path).is_err_and(|err| err.kind() == io::ErrorKind::NotFound) => {
                return Err(missing("there is no such file"));
            }
            true => file::look(path, &settings)?,
            false => file::prepare(path, &settings)?,
        };
        // A relative path names another file when the process goes to another folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let conn = looked_at(&settings, &path)?;
        Ok((Opened::of(conn, settings, path), cautions))
    }

    /// Another connection to a file that is there already, for reading alone.
    pub(super) fn reading(settings: SqliteSettings, path: &Path) -> Result<Opened, Error> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        file::look(&path, &settings)?;
        let conn = looked_at(&settings, &path)?;
        conn.pragma_update(None, "query_only", true).map_err(fault::of)?;
        conn.busy_timeout(Duration::ZERO).map_err(fault::of)?;
        Ok(Opened::of(conn, settings, path))
    }

    fn of(conn: Connection, settings: SqliteSettings, path: PathBuf) -> Opened {
        let id = file::id(&path);
        let real = file::real(&path, &settings).unwrap_or_else(|_| path.clone());
        let beside = ["-wal", "-shm"].map(|end| Beside::of(&real, end));
        Opened { conn, fences: Fences::default(), settings, path, id, beside, gone: Cell::new(Gone::Nothing) }
    }

    /// Whether what is written now will be where its path says.
    ///
    /// # Errors
    ///
    /// It will not.
    pub(super) fn look(&self) -> Result<(), Error> {
        if self.id.is_none() {
            return Ok(());
        }
        if file::id(&self.path) != self.id {
            self.gone.set(Gone::File);
            return Err(file::gone(&self.path));
        }
        if let Some(nth) = self.beside.iter().position(|beside| file::id(&beside.path) != beside.id) {
            self.gone.set(Gone::Beside(nth));
            return Err(file::part_gone(&self.beside[nth].path));
        }
        Ok(())
    }

    /// Whether what was written is where its path says. What is not, is not accepted.
    ///
    /// # Errors
    ///
    /// It is not.
    pub(super) fn is_there(&self) -> Result<(), Error> {
        self.look().map_err(Error::maybe_happened)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.get() != Gone::Nothing
    }

    /// Opens what is there now, if something was gone. Makes nothing. Whether the connection is another.
    pub(super) fn again(&mut self) -> Result<bool, Error> {
        match self.gone.get() {
            Gone::Nothing => return Ok(false),
            Gone::File => {}
            Gone::Beside(nth) => {
                // To let go of the file, which is saved by that if nobody else has it.
                self.conn = Connection::open_in_memory().map_err(fault::of)?;
                if self.beside.iter().any(Beside::is_there) {
                    return Err(file::part_gone(&self.beside[nth].path));
                }
            }
        }
        if file::id(&self.path).is_none() {
            return Err(file::gone(&self.path));
        }
        file::look(&self.path, &self.settings)?;
        let (settings, path) = (self.settings.clone(), self.path.clone());
        *self = Opened::of(looked_at(&settings, &path)?, settings, path);
        Ok(true)
    }
}

impl Beside {
    fn of(path: &Path, end: &str) -> Beside {
        let path = file::beside(path, end);
        Beside { id: file::id(&path), path }
    }

    fn is_there(&self) -> bool {
        self.id.is_some() && file::id(&self.path) == self.id
    }
}

/// Whether a file that is there has tables, and none of ours. Reads alone. Where nobody is at it, it is read as it lies there, and SQLite
/// makes nothing beside it; else it waits for a second if somebody has locked it.
pub(super) fn is_of_others(settings: &SqliteSettings, path: &Path) -> Result<bool, Error> {
    file::look(path, settings)?;
    let ask = |conn: &mut Connection| {
        conn.busy_timeout(Duration::from_secs(1)).map_err(fault::of)?;
        bounds::set(conn)?;
        let is_theirs = schema::is_of_others(conn, &settings.prefix);
        bounds::end();
        is_theirs
    };
    if !parts::is_in_use(path, settings) {
        let asked = as_it_lies(settings, path).and_then(|mut conn| ask(&mut conn));
        // Who has come meanwhile may have changed what was read.
        if !parts::is_in_use(path, settings) {
            return asked;
        }
    }
    open(settings, path, OpenFlags::SQLITE_OPEN_READ_ONLY)?
        .read(|conn| rights::kept(|| ask(conn)))
        .map(|(_, is_theirs)| is_theirs)
}

/// A file that nobody is at, opened as one that nobody changes: with no lock, and nothing beside it.
fn as_it_lies(settings: &SqliteSettings, path: &Path) -> Result<Connection, Error> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut url = String::from("file://");
    for &byte in whole.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => url.push(char::from(byte)),
            byte => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url.push_str("?immutable=1");
    let conn = connection(settings, Path::new(&url), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?;
    file::look(path, settings)?;
    Ok(conn)
}

/// A connection to a file that was looked at, and is looked at again: what is beside it may have come meanwhile.
fn looked_at(settings: &SqliteSettings, path: &Path) -> Result<Connection, Error> {
    let conn = as_soon_as_given(|| connect(settings, path)).map_err(|error| match error.kind() {
        // Nothing but names was read.
        ErrorKind::Invalid => fault::no_store(),
        _ => error,
    })?;
    file::look(path, settings)?;
    Ok(conn)
}

/// Somebody else may have made the log anew, root, too, and not given it to the file's owner and group yet: that is waited for, wherever
/// the file is.
fn as_soon_as_given<T>(mut connect: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 0..TRIES {
        match connect() {
            Err(error) if matches!(error.kind(), ErrorKind::Refused | ErrorKind::ReadOnly) => std::thread::sleep(SOON),
            connected => return connected,
        }
    }
    connect()
}

/// How often a file that cannot be opened is tried again.
const TRIES: u32 = 5;

/// After how long.
const SOON: Duration = Duration::from_millis(10);

/// For how long a log of ours that is not for all who may write to the file is waited for to go: who asks for a lease waits not much longer for an
/// answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// A file of which nothing is read yet.
pub(super) struct Unread {
    pub(super) conn: Connection,
    journal: Option<journal::Taken>,
    /// What was made beside it, where others could put something in its place.
    made: Option<parts::Made>,
}

/// Opens a file, and looks at it once more before something is read. What SQLite will open beside it is there then, if
/// somebody else could put something in its place.
fn open(settings: &SqliteSettings, path: &Path, how: OpenFlags) -> Result<Unread, Error> {
    parts::shut_nobody_out(path, settings)?;
    let real = file::real(path, settings).unwrap_or_else(|_| path.to_owned());
    let made = make(settings, path, parts::LOG)?;
    let journal = if is_to_stay_empty(settings, &real) { None } else { journal::take(&real)? };
    let conn = connection(settings, path, how)?;
    file::look(path, settings)?;
    Ok(Unread { conn, journal, made })
}

impl Unread {
    /// What comes of reading it.
    fn read<T>(self, read: impl FnOnce(&mut Connection) -> Result<T, Error>) -> Result<(Connection, T), Error> {
        let Unread { mut conn, journal, .. } = self;
        let read = read(&mut conn);
        if let Some(journal) = journal.filter(|_| is_logged(&conn).unwrap_or(false)) {
            journal.give_back();
        }
        Ok((conn, read?))
    }
}

fn connection(settings: &SqliteSettings, name: &Path, how: OpenFlags) -> Result<Connection, Error> {
    let links = if settings.no_links { OpenFlags::SQLITE_OPEN_NOFOLLOW } else { OpenFlags::empty() };
    Connection::open_with_flags(name, how | links | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(fault::of)
}

/// Whether the file is written to by a log.
fn is_logged(conn: &Connection) -> Result<bool, Error> {
    let ask = || conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(fault::of);
    rights::kept(ask).map(|mode: String| mode == "wal")
}

/// A file that SQLite has opened, and has not read.
#[cfg(all(test, target_os = "linux"))]
pub(super) fn unread(settings: &SqliteSettings, path: &Path) -> Result<Unread, Error> {
    file::prepare(path, settings)?;
    open(settings, path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Makes these parts, where others could, if they could.
fn make(settings: &SqliteSettings, path: &Path, ends: &[&str]) -> Result<Option<parts::Made>, Error> {
    // What cannot be found is told by who looks at it.
    let real = file::real(path, settings).unwrap_or_else(|_| path.to_owned());
    if is_to_stay_empty(settings, &real) { Ok(None) } else { parts::make(&real, ends) }
}

/// Whether there is nothing in a file, and is to be nothing beside it.
fn is_to_stay_empty(settings: &SqliteSettings, real: &Path) -> bool {
    settings.no_making && std::fs::metadata(real).is_ok_and(|data| data.len() == 0)
}

/// That a file is what it was opened for.
fn refuse_others(settings: &SqliteSettings, conn: &Connection) -> Result<(), Error> {
    if settings.no_others && schema::is_of_others(conn, &settings.prefix)? {
        return Err(Error::new(ErrorKind::Refused, "it is the database of another program").hint(
            "name a file of its own; relent store migrate with the same --store puts relent's tables beside the others",
        ));
    }
    if settings.no_making { schema::must_be_there(conn, &settings.prefix) } else { Ok(()) }
}

/// The same before anything is made beside a file that nobody is at, where others may write: there it would be left.
fn refuse_as_it_lies(settings: &SqliteSettings, path: &Path) -> Result<(), Error> {
    let is_empty = std::fs::metadata(path).is_ok_and(|data| data.len() == 0);
    if is_empty || parts::is_in_use(path, settings) || make(settings, path, &[])?.is_none() {
        return Ok(());
    }
    let refused = as_it_lies(settings, path).and_then(|mut conn| {
        bounds::set(&mut conn)?;
        let refused = refuse_others(settings, &conn);
        bounds::end();
        refused
    });
    if parts::is_in_use(path, settings) { Ok(()) } else { refused }
}

/// Sees to it that a file is written to by a log: how it is written to.
fn log(settings: &SqliteSettings, path: &Path, conn: &mut Connection) -> Result<String, Error> {
    // While it is set up, the default is good enough; then the writer has its own way to wait.
    conn.busy_timeout(Duration::from_secs(5)).map_err(fault::of)?;
    bounds::set(conn)?;
    rights::kept(|| refuse_others(settings, conn))?;
    if make(settings, path, &[])?.is_some() && !is_logged(conn)? {
        make(settings, path, parts::JOURNAL)?;
        file::look(path, settings)?;
    }
    let set = || conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(fault::of);
    rights::kept(set)
}

fn connect(settings: &SqliteSettings, path: &Path) -> Result<Connection, Error> {
    refuse_as_it_lies(settings, path)?;
    let began = Instant::now();
    let (mut conn, mode) = loop {
        let mut unread = open(settings, path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let made = unread.made.take();
        let (conn, mode) = unread.read(|conn| log(settings, path, conn))?;
        let real = file::real(path, settings).unwrap_or_else(|_| path.to_owned());
        if began.elapsed() > PATIENCE || made.is_none_or(|made| parts::are_well(&real, parts::LOG, &made)) {
            break (conn, mode);
        }
        // SQLite removes them where nobody else has them open.
        drop(conn);
        std::thread::sleep(SOON);
    };
    if mode != "wal" {
        let what = format!("the file's journal is '{mode}', and cannot be made a write-ahead log");
        return Err(Error::new(ErrorKind::Unsupported, what).hint("is it on a network file system?"));
    }
    let synchronous = if settings.durability == Durability::Machine { "FULL" } else { "NORMAL" };
    conn.pragma_update(None, "synchronous", synchronous).map_err(fault::of)?;
    conn.set_prepared_statement_cache_capacity(64);
    schema::migrate(&mut conn, &settings.prefix)?;
    bounds::opened(&conn)?;
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_yet_is_tried_again_and_what_is_damaged_is_not() {
        for (kind, times) in [(ErrorKind::Refused, 6), (ErrorKind::ReadOnly, 6), (ErrorKind::Corrupt, 1)] {
            let mut tried = 0;
            let mut tries = |good: u32| {
                tried += 1;
                if tried == good { Ok(()) } else { Err(Error::new(kind, "it cannot be opened")) }
            };
            assert_eq!(as_soon_as_given(|| tries(times)).map_err(|error| error.kind()), Ok(()), "{kind:?}");
            assert_eq!(as_soon_as_given(|| tries(u32::MAX)).map_err(|error| error.kind()), Err(kind));
            assert_eq!(tried, 2 * times);
        }
    }
}
