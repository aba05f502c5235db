//! State in one file, for all processes of one machine: the engine to begin with.
//!
//! What is accepted has been written to the disk (WAL, `synchronous = FULL`), many operations in one commit. With
//! [`Durability::Process`] it is only handed to the operating system: it outlives the process, and a power loss takes the last
//! of it. Network file systems are not supported, because their locks are not to be relied on.
//!
//! Who can write to the file decides what was done already and who holds a lease, so one that belongs to another user, or that
//! everybody can write to, is refused unless [`SqliteSettings::any_owner`] is set. Its tables must be those that relent makes:
//! views, triggers and columns of another's are refused, too, and values and work have bounds whatever is in it.

mod bounds;
mod complete;
mod dedupe;
mod engine;
mod fault;
mod fences;
mod file;
#[cfg(test)]
mod hostile;
mod journal;
#[cfg(target_os = "linux")]
mod lists;
mod names;
mod opened;
mod parts;
mod reader;
mod records;
mod rights;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod tx;
mod writer;

pub use self::{
    complete::complete,
    dedupe::{first_time, keep_last, prepare},
};
use self::{names::Names, opened::Opened, reader::Reader, writer::Writer};
use crate::{Clock, Error, ErrorKind};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A store in a file. A clone is the same store; opening the file again, here or in another process, is another on the same
/// state.
///
/// When the last clone is dropped the file is closed, and what is being written is waited for, so that nothing of it is left beside the file:
/// no operation takes more than two seconds, but for a disk that is slow.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("state.db");
/// use relent_store::{Key, Scope, Store, in_sqlite::Sqlite};
///
/// let (scope, key) = (Scope::new("mail")?, Key::new("7")?);
/// let store = Store::new(Sqlite::open(&path)?);
/// let sent = store.once(&scope, &key).run(async |_| Ok::<_, String>("sent")).await.unwrap();
/// drop(store);
///
/// let again = Store::new(Sqlite::open(&path)?).once(&scope, &key).run(async |_| Ok::<_, String>("again")).await.unwrap();
/// assert_eq!((again.bytes(), again.is_replayed), (&b"sent"[..], true));
/// # Ok::<_, relent_store::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

struct Inner {
    writer: Writer,
    reader: Arc<Reader>,
    names: Arc<Names>,
    clock: Clock,
    durability: Durability,
    path: PathBuf,
    cautions: Vec<&'static str>,
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

/// What an accepted operation has outlived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The machine: it is on the disk. `synchronous = FULL`.
    #[default]
    Machine,
    /// The process: the operating system has it. `synchronous = NORMAL`: a power loss may take the last moments, and leaves
    /// the file whole.
    Process,
}

/// How a file is opened.
///
/// ```
/// use relent_store::in_sqlite::{Durability, SqliteSettings};
///
/// let settings = SqliteSettings { durability: Durability::Process, ..SqliteSettings::default() };
/// # let folder = tempfile::tempdir().unwrap();
/// let store = settings.open(&folder.path().join("state.db"))?;
/// # Ok::<_, relent_store::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteSettings {
    /// What an accepted operation has outlived.
    pub durability: Durability,
    /// What the tables' names begin with: `relent_` by default. One to 32 small letters, digits and underscores, a letter
    /// first.
    pub prefix: String,
    /// The clock: [`Clock::system`] by default, which all processes of the machine share.
    pub clock: Clock,
    /// Whether a file is used although it belongs to another user than this process's and root, or everybody can write to it:
    /// `false` by default. Whoever can write to it decides what was done already. Known on Unix only.
    pub any_owner: bool,
    /// Whether a path with a link in it is refused, whoever's it is: `false` by default. For who knows of no link on the way, and would
    /// follow none that comes meanwhile. With [`any_owner`](SqliteSettings::any_owner), so is a file with another name.
    pub no_links: bool,
    /// Whether the database of another program is refused, which has tables and none of a store's: `false` by default. Else ours are put
    /// beside them.
    pub no_others: bool,
    /// Whether nothing is made and nothing brought up to date: `false` by default. For who only wants to look: a file that is not there, has
    /// no tables of a store's or those of an older relent, is an error, and stays as it is.
    pub no_making: bool,
}

impl Default for SqliteSettings {
    fn default() -> SqliteSettings {
        SqliteSettings {
            durability: Durability::Machine,
            prefix: "relent_".into(),
            clock: Clock::system(),
            any_owner: false,
            no_links: false,
            no_others: false,
            no_making: false,
        }
    }
}

impl SqliteSettings {
    /// Opens a file, or makes it, readable and writable by its user alone, with the tables of this version.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooNew`] for tables of a newer relent, [`ErrorKind::Missing`] and [`ErrorKind::TooOld`] where nothing was to be
    /// made ([`no_making`](SqliteSettings::no_making)), [`ErrorKind::Corrupt`] for what is no SQLite file, or has other tables
    /// under our names, [`ErrorKind::Refused`] and [`ErrorKind::ReadOnly`] where the system does not let us, and `Refused` for a
    /// file that is not to be believed or used: see [`any_owner`](SqliteSettings::any_owner) and what follows it.
    pub fn open(self, path: &Path) -> Result<Sqlite, Error> {
        crate::settings::check_prefix(&self.prefix)?;
        let (opened, cautions) = Opened::new(self.clone(), path)?;
        let reader = Arc::new(Reader::new(self.clone(), path.to_owned()));
        let SqliteSettings { durability, prefix, clock, .. } = self;
        let (writer, names) = (Writer::new(opened, reader.clone(), clock.clone())?, Arc::new(Names::new(&prefix)));
        Ok(Sqlite { inner: Arc::new(Inner { writer, reader, names, clock, durability, path: path.into(), cautions }) })
    }
}

impl Sqlite {
    /// Opens a file with default settings: see [`SqliteSettings::open`].
    ///
    /// # Errors
    ///
    /// As [`SqliteSettings::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Sqlite, Error> {
        SqliteSettings::default().open(path.as_ref())
    }

    /// Opens what a URL names: `sqlite:state.db?durability=process&prefix=relent_&owner=any&links=no&others=no&make=no`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a URL that makes no sense; else as [`SqliteSettings::open`].
    pub fn open_url(url: &str) -> Result<Sqlite, Error> {
        let (settings, path) = of_url(url)?;
        settings.open(path)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }
}

/// The file that a URL names, if it names one: what [`Sqlite::open_url`] opens, for who wants to look at it before.
///
/// `sqlite:///home/a` is what many write for `/home/a`, and some write a slash more. It begins with one in any case, so that
/// `sqlite:` and this path name the same file again.
///
/// ```
/// use relent_store::in_sqlite::file_of;
/// use std::path::Path;
///
/// for url in ["sqlite:/srv/state.db", "sqlite:///srv/state.db?prefix=a_", "sqlite:////srv/state.db"] {
///     assert_eq!(file_of(url), Some(Path::new("/srv/state.db")));
/// }
/// assert_eq!(file_of("sqlite:state.db"), Some(Path::new("state.db")));
/// assert_eq!(file_of("sqlite://state.db"), Some(Path::new("state.db")));
/// assert_eq!(file_of("memory:"), None);
/// ```
pub fn file_of(url: &str) -> Option<&Path> {
    let rest = url.strip_prefix("sqlite:")?;
    let path = rest.split_once('?').map_or(rest, |(path, _)| path);
    let path = path.strip_prefix("//").unwrap_or(path);
    // Two slashes would be taken off by whoever reads them in a URL once more.
    let more = path.bytes().take_while(|&byte| byte == b'/').count().saturating_sub(1);
    Some(&path[more..]).filter(|path| !path.is_empty()).map(Path::new)
}

/// Whether the URL of a file makes sense.
pub(crate) fn check(url: &str) -> Result<(), Error> {
    of_url(url).map(drop)
}

/// What the URL of a file says.
fn of_url(url: &str) -> Result<(SqliteSettings, &Path), Error> {
    let Some(path) = file_of(url).filter(|path| *path != Path::new(":memory:")) else {
        return Err(Error::new(ErrorKind::Invalid, "the store's URL names no file").hint("sqlite:state.db, or memory:"));
    };
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut settings = SqliteSettings::default();
    for (name, value) in crate::settings::pairs(query) {
        match (name, value) {
            ("prefix", prefix) => settings.prefix = prefix.into(),
            ("durability", "machine") => settings.durability = Durability::Machine,
            ("durability", "process") => settings.durability = Durability::Process,
            ("owner", "any") => settings.any_owner = true,
            ("links", "no") => settings.no_links = true,
            ("others", "no") => settings.no_others = true,
            ("make", "no") => settings.no_making = true,
            _ => {
                let known = "prefix=NAME_, durability=machine|process, owner=any, links=no, others=no, make=no";
                return Err(crate::settings::unknown(name, known));
            }
        }
    }
    Ok((settings, path))
}

/// Bounds the memory that SQLite may take in this process, in bytes, for all connections together and until it ends: for a program of its
/// own that opens files which others wrote. What a file says of its tables is taken apart before anything can be asked about it, and takes a
/// hundred times as much memory as disk. What would need more fails ([`ErrorKind::Unavailable`]), and is not done. 16 times
/// [`MAX_VALUE`](crate::MAX_VALUE) are plenty. A bound that is there already can be made smaller only.
///
/// ```
/// relent_store::in_sqlite::bound_memory(256 << 20)?;
/// # Ok::<_, relent_store::Error>(())
/// ```
///
/// # Errors
///
/// SQLite has no memory even for that.
pub fn bound_memory(most: u64) -> Result<(), Error> {
    bounds::memory(most)
}

/// Whether the file that a URL names is the database of another program: it has tables, and none of a store's. To open it would put
/// those beside the others, as somebody may want who keeps both in one transaction; whoever only named a file may have named the wrong
/// one. Makes and changes nothing, unless somebody is at it: then what SQLite needs beside it is made if it is not there. A file that is
/// not there is nobody's.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let url = format!("sqlite:{}", folder.path().join("state.db").display());
/// use relent_store::in_sqlite::{Sqlite, is_of_others};
///
/// assert!(!is_of_others(&url)?);
/// Sqlite::open_url(&url)?;
/// assert!(!is_of_others(&url)?);
/// # Ok::<_, relent_store::Error>(())
/// ```
///
/// # Errors
///
/// The URL makes no sense, or the file cannot be read as a database within a second.
pub fn is_of_others(url: &str) -> Result<bool, Error> {
    let (settings, path) = of_url(url)?;
    crate::settings::check_prefix(&settings.prefix)?;
    match std::fs::metadata(path) {
        Ok(data) if data.len() > 0 => opened::is_of_others(&settings, path),
        _ => Ok(false),
    }
}
