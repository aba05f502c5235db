//! Which store is meant: `--store`, or else `RELENT_STORE`, or else a file in the user's state folder.
//!
//! That file is the user's alone. Its folder is made with mode 0700; neither is used if others can write to it, or if
//! somebody else could put another in its place: by a folder on the way there, or a link, that is theirs.

use crate::{
    access,
    ear::Ear,
    links::{self, Step},
    redact, regular,
    store::owners,
    talk::{self, Fault, plain},
};
use nix::libc::ENAMETOOLONG;
use percent_encoding::percent_decode_str;
use relent_store::in_sqlite::bound_memory;
pub(crate) use relent_store::in_sqlite::file_of;
use rustix::fs::Mode;
use std::{
    borrow::Cow,
    env,
    ffi::OsString,
    fs::{self, Metadata, Permissions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};
use url::Url;

/// The variable that names another store.
pub(crate) const VARIABLE: &str = "RELENT_STORE";

/// What stands for the file in the user's state folder; what is behind a `?` counts for it.
pub(super) const DEFAULT: &str = "sqlite:";

/// The URL of the store that is meant. Makes the folder of the default one.
///
/// # Errors
///
/// There is no place for the default one, or others can write to it; or another program keeps something in the file that is named.
pub(crate) fn url(given: Option<&str>) -> Result<String, Fault> {
    of_ours(any_url(given)?)
}

/// The same, if nothing is to be made, neither a folder nor a file nor tables, and none brought up to date.
///
/// # Errors
///
/// As of [`url`].
pub(crate) fn url_to_look(given: Option<&str>) -> Result<String, Fault> {
    let url = of_ours(found(given, false)?)?;
    let has_tables = file_of(&url).is_some() || is_of_postgres(&url);
    Ok(if has_tables { with(url, NO_MAKING) } else { url })
}

/// The same of a store that a policy file names, and nobody else. It is used as it is there: who wrote the file has no say in what is
/// made, and where. A store has names of theirs in it, and some files count by being there.
///
/// # Errors
///
/// As of [`url`]; and of [`of_an_author`].
pub(crate) fn of_a_file(named: &str) -> Result<String, Fault> {
    of_an_author(named)?;
    url_to_look(Some(named))
}

/// Whether the URL that a policy file names says nothing but which store is meant, and how it is kept; or the caller's environment says the same.
///
/// # Errors
///
/// It says who is to be believed; or it is a Postgres, where what is in a store is run with the rights of whoever uses it: which database that
/// is, in which order its schemas are looked through, and whom it believes is too much for an author to say.
pub(crate) fn of_an_author(named: &str) -> Result<(), Fault> {
    let refused = |what: &str| {
        let fault = Fault::new(format!("store {}: {what}, and only a policy file names it", shown(named)));
        Err(fault.hint("where that is meant, RELENT_STORE with the same URL says so; relent run takes --upstream NAME --store URL, too"))
    };
    if env::var(VARIABLE).is_ok_and(|said| said == named) {
        return Ok(());
    }
    if is_of_postgres(named) {
        return refused("what is in a Postgres runs with the rights of whoever uses it");
    }
    if percent_decode_str(named).decode_utf8_lossy().chars().any(char::is_control) {
        return refused("its URL has control characters");
    }
    let query = named.split_once('?').map_or("", |(_, query)| query);
    match query
        .split('&')
        .map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name))
        .find(|name| !name.is_empty() && !OF_AUTHORS.contains(name))
    {
        None => Ok(()),
        Some("owner") => refused("its URL says whom to believe"),
        Some(_) => refused("its URL has a setting that is not known, or is the caller's"),
    }
}

/// The settings that the URL of a policy file may have.
const OF_AUTHORS: &[&str] = &["prefix", "durability"];

/// Looks for a store on a thread that is left alone when it is too late, or a moment after a signal: a file system that is silent, as one
/// of a server's may be, holds up neither. `None`: it was not found by then.
///
/// # Errors
///
/// There is no thread.
pub(crate) fn in_time<T: Send + 'static>(
    look: impl FnOnce() -> T + Send + 'static,
    until: Option<Instant>,
    ear: &Ear,
) -> Result<Option<T>, Fault> {
    let (tell, told) = mpsc::channel();
    let begun = thread::Builder::new().name("look".into()).spawn(move || tell.send(look()));
    begun.map_err(|error| Fault::new(format!("cannot look for the store: {}", plain(&error))))?;
    let now = Instant::now();
    // One that is well is found in that.
    let until = until.map_or(now + FOR_EVER, |until| until.max(now + AT_ONCE));
    Ok(ear.wait(&told, until).ok())
}

/// What to say of a store that was not found in time.
pub(crate) fn silent(given: Option<&str>) -> Fault {
    Fault::new(format!("store {}: it does not answer", shown(given.unwrap_or(DEFAULT))))
}

/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);

/// A store's URL, if it is not that of a file in which another program keeps something.
fn of_ours(url: String) -> Result<String, Fault> {
    match is_of_others(&url) {
        true => Err(Fault::new(format!("store {}: it is the database of another program", shown(&url))).hint(
            "name a file of its own; relent store migrate with the same --store puts relent's tables beside the others",
        )),
        false if file_of(&url).is_some() => Ok(with(url, NO_OTHERS)),
        false => Ok(url),
    }
}

/// What SQLite may take of memory, whatever a file says: one of the largest values, and what it keeps of a file's pages. The system's allocator makes up
/// to four times as much of it, where it is for many short names.
const MOST_MEMORY: u64 = 32 << 20;

/// What a file's URL ends with that is to be refused as the database of another program whenever it is opened. It is not shown.
const NO_OTHERS: &str = "others=no";

/// What a URL ends with by which nothing is to be made or brought up to date. It is not shown.
const NO_MAKING: &str = "make=no";

fn is_of_postgres(url: &str) -> bool {
    url.starts_with("postgres:") || url.starts_with("postgresql:")
}

/// A URL with one setting more.
fn with(url: String, setting: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{setting}")
}

/// Whether it is the database of another program, as far as that is known at once: asked on a thread that is left alone if what
/// somebody has put beside the file takes long to read, or if it is locked. Whoever opens it is told later, then.
fn is_of_others(url: &str) -> bool {
    let ((tell, told), asked) = (mpsc::channel(), url.to_owned());
    let is_theirs = move || tell.send(relent_store::in_sqlite::is_of_others(&asked).unwrap_or_default());
    file_of(url).is_some()
        && thread::Builder::new().name("look".into()).spawn(is_theirs).is_ok()
        && told.recv_timeout(AT_ONCE).unwrap_or_default()
}

/// How long it is looked what is in a file, and asked whoever answers at once.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(200);

/// What a file's URL ends with once all links on the way were looked at, and followed: none that comes meanwhile is. It is not shown.
const NO_LINKS: &str = "links=no";

/// The same as [`url`], also if it is the database of another program.
pub(crate) fn any_url(given: Option<&str>) -> Result<String, Fault> {
    found(given, true)
}

/// The URL of the store that is meant, as it was named.
fn named(given: Option<&str>) -> Result<String, Fault> {
    let named = match given {
        Some(url) => Some(url.to_owned()),
        None => match env::var(VARIABLE) {
            Ok(url) => Some(url).filter(|url| !url.is_empty()),
            Err(env::VarError::NotPresent) => None,
            Err(env::VarError::NotUnicode(_)) => {
                return Err(Fault::new(format!("{VARIABLE} is no UTF-8 text")).hint(format!("{VARIABLE}=sqlite:FILE")));
            }
        },
    };
    Ok(named.unwrap_or_else(|| DEFAULT.to_owned()))
}

/// What counts for the default store, if that is named.
fn of_the_default(url: &str) -> Option<&str> {
    url.strip_prefix(DEFAULT).filter(|rest| rest.is_empty() || rest.starts_with('?'))
}

/// The URL of the store that is meant. If it may, makes the folder of the default one.
fn found(given: Option<&str>, is_made: bool) -> Result<String, Fault> {
    let url = named(given)?;
    if file_of(&url).is_some() {
        // Where there is no memory for that, whoever opens it says so.
        let _ = bound_memory(MOST_MEMORY);
    }
    // Whose server it is may say it again.
    redact::know_store(&url);
    if let Ok(url) = Url::parse(&url) {
        redact::know_place(&url);
    }
    let Some(query) = of_the_default(&url) else {
        let Some(file) = file_of(&url) else { return Ok(url) };
        let real = alone(file, believes_all(&url)).map_err(|error| {
            Fault::new(format!("store {}: {}", shown(&url), plain(&error))).hint(talk::hint(&error, way_out(&error)))
        })?;
        let query = url.find('?').map_or("", |at| &url[at..]);
        return match url_of(&real, query) {
            Some(url) => Ok(with(url, NO_LINKS)),
            None => {
                Err(Fault::new("the path that a link leads to cannot be a part of a URL").hint("name another place"))
            }
        };
    };
    let file = default_file(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"))?;
    prepare(&file, is_made)?;
    match url_of(&file, query) {
        Some(url) => Ok(url),
        None => Err(Fault::new("the path of your state folder cannot be a part of a URL")
            .hint("name another place: --store sqlite:FILE")),
    }
}

/// The URL of a file that was looked at. `None`: whoever reads it would open something else.
fn url_of(file: &Path, query: &str) -> Option<String> {
    let url = format!("{DEFAULT}{}{query}", file.to_str()?);
    // By the letter: as paths, `//a` and `/a` are equal.
    let is_read_back = file_of(&url).is_some_and(|read| read.as_os_str() == file.as_os_str());
    is_read_back.then_some(url)
}

/// The file of those who name none: `$XDG_STATE_HOME/relent/state.db`, or `~/.local/state/relent/state.db`.
fn default_file(state: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, Fault> {
    // A relative one is to be ignored, says the XDG Base Directory Specification.
    let absolute = |folder: Option<OsString>| folder.map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = absolute(state).or_else(|| Some(absolute(home)?.join(".local/state")));
    let no_place = || {
        Fault::new("no store is named, and neither XDG_STATE_HOME nor HOME says where yours is")
            .hint(format!("--store sqlite:FILE, or {VARIABLE}=sqlite:FILE"))
    };
    // Part by part, since in a URL two slashes at the beginning do not count.
    Ok(state.ok_or_else(no_place)?.join("relent/state.db").components().collect())
}

/// Makes the folder of the file, if it may, for its user alone, or says why what is there cannot be believed.
fn prepare(file: &Path, is_made: bool) -> Result<(), Fault> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let refused = |what: &str, path: &Path, problem: &str| {
        Fault::new(format!("the {what} {} of your store: {problem}", path.display()))
            .hint(format!("name another place: --store sqlite:FILE, or {VARIABLE}=sqlite:FILE"))
    };
    // Nothing is made in what is not believed.
    let first_to_make = folder.ancestors().take_while(|part| fs::symlink_metadata(part).is_err()).last();
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    if let Some(error) = first_to_make.and_then(|first| walk(first).err()).filter(is_refused) {
        return Err(refused("folder", folder, &plain(&error)));
    }
    // Where there is none, there is nothing to look at, unless somebody else can put one there meanwhile.
    if let Some(first) = first_to_make.filter(|_| !is_made) {
        walk(first).map_err(|error| refused("folder", folder, &plain(&error)))?;
        let there = first.parent().unwrap_or(Path::new("/"));
        let who = fs::metadata(there).ok().and_then(|data| who_may_write(&data, there));
        return match who {
            Some(who) => Err(refused("folder", folder, &format!("it is not there, and {who} can make it"))),
            None => Ok(()),
        };
    }
    let made = links::make_folders(folder, Mode::from_raw_mode(0o700), &follow);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => refused("folder", folder, &plain(&error)),
        _ => refused("folder", folder, &format!("it cannot be made: {}", plain(&error))),
    })?;
    own(folder, 0o700).map_err(|problem| refused("folder", folder, &problem))?;
    if fs::symlink_metadata(file).is_ok() {
        // A link leads to where SQLite keeps what lies beside it.
        let real = way(file).map_err(|problem| refused("file", file, &problem))?;
        let beside = real.parent().unwrap_or(Path::new("/"));
        if let Some(who) = fs::metadata(beside).ok().and_then(|data| who_may_write(&data, beside)) {
            return Err(refused("file", file, &format!("{who} {WRITTEN}")));
        }
        own(file, 0o600).map_err(|problem| refused("file", file, &problem))?;
    }
    Ok(())
}

/// Sees to it that only its user can read and write what is there, or says why not.
fn own(path: &Path, mode: u32) -> Result<(), String> {
    let path = way(path)?;
    let data = fs::metadata(&path).map_err(|error| plain(&error))?;
    match data.mode() {
        _ if !access::is_own(data.uid()) => Err("it belongs to somebody else".into()),
        now if now & 0o022 != 0 => Err("others can write to it".into()),
        now if now & 0o077 == 0 => Ok(()),
        _ => fs::set_permissions(&path, Permissions::from_mode(mode)).map_err(|error| plain(&error)),
    }
}

/// Where a path leads, if nobody else has a say in that.
fn way(path: &Path) -> Result<PathBuf, String> {
    let real = walk(path).map_err(|error| plain(&error))?;
    Ok(real.unwrap_or_else(|| path.to_owned()))
}

fn walk(path: &Path) -> io::Result<Option<PathBuf>> {
    Ok(follow(path)?.map(|place| place.path().to_owned()))
}

fn follow(path: &Path) -> io::Result<Option<links::Place>> {
    links::follow(path, &|step| match step.is_last && !step.data.is_symlink() {
        true => None,
        false if step.may_be_another_name() => Some("on the way there is a link that has another name elsewhere"),
        false => believed(step.data, step.path).err(),
    })
}

/// Whether what is on the way, a folder or a link, is the user's or root's, and nobody else can put another there.
///
/// In a sticky folder others can make something, and move nothing. A group that is the user's own may write, as it may to
/// all that is theirs.
fn believed(data: &Metadata, path: &Path) -> Result<(), &'static str> {
    match data.uid() {
        owner if is_others(owner) => Err("on the way there something belongs to somebody else"),
        _ if !data.is_symlink() && access::may_be_exchanged(data, path) => Err("on the way there others can write"),
        _ => Ok(()),
    }
}

/// The longest path that a system follows, in bytes (`PATH_MAX` of Linux).
const LONGEST: usize = 4096;

/// Where a path leads, if nobody but the caller and root decides what SQLite opens there. Where a folder is not there yet, that is the path
/// itself, if nobody else could make it.
///
/// That is more than the file: a log or a journal beside it is believed, too, is opened by its name and made anew time and again. Where anybody else may
/// make or move something, no look at it lasts. Who has just to be believed (`owner=any`) may do that; no link of theirs
/// is followed even then.
///
/// # Errors
///
/// Others decide, too, or that cannot be found out, as while somebody moves what is on the way.
fn alone(file: &Path, believes_all: bool) -> io::Result<PathBuf> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let whole = std::path::absolute(file)?;
    // No system goes so far, and each part of it would be asked for.
    if whole.as_os_str().len() > LONGEST {
        return Err(io::Error::from_raw_os_error(ENAMETOOLONG));
    }
    // Before it is opened somebody else could make the folders that are not there.
    let is_far = whole.parent().is_some_and(|folder| fs::metadata(folder).is_err());
    let there = whole.ancestors().find(|part| fs::symlink_metadata(part).is_ok()).filter(|_| is_far);
    let real = match leads_to(there.unwrap_or(&whole), believes_all)? {
        Some(real) if is_far || !is_made_as_it_is_read(&real)? => real,
        _ => return refused("it is a file of the system's, and no store"),
    };
    let folder = if is_far { &*real } else { real.parent().unwrap_or(&real) };
    let data = fs::metadata(folder)?;
    match who_may_write(&data, folder).filter(|_| !believes_all || is_far) {
        Some(who) if is_far => refused(&format!("its folder is not there, and {who} can make it")),
        Some(who) => refused(&format!("{who} {WRITTEN}")),
        None if is_far || real == whole => Ok(file.to_owned()),
        None => Ok(real),
    }
}

/// Who else may put something into a folder.
fn who_may_write(data: &Metadata, folder: &Path) -> Option<&'static str> {
    match data.uid() {
        _ if data.mode() & 0o002 != 0 => Some("everybody"),
        owner if is_others(owner) => Some("somebody else"),
        _ => access::is_open_to_others(data, folder).then_some("others"),
    }
}

const WRITTEN: &str = "can put into its folder what it would be read from";

/// Where a path leads, if nobody else has a say in that; of who is to be believed only links do not.
fn leads_to(path: &Path, believes_all: bool) -> io::Result<Option<PathBuf>> {
    let real = links::to_write(path)?.map(|place| place.path().to_owned());
    if !believes_all && links::walk(path, &of_others)? != real {
        return Err(io::Error::other("it is being moved"));
    }
    match &real {
        // What a process has as its root may have other folders by the same names, and others at any time.
        Some(real) if real.ancestors().skip(1).any(links::has_processes) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is found through what a process has, which decides what is there",
        )),
        Some(found) if found != path && leads_to(found, believes_all)?.as_ref() != Some(found) => {
            Err(io::Error::other("it is being moved"))
        }
        _ => Ok(real),
    }
}

/// Whether others can exchange what is met on the way to a store, or nobody knows whose it is. SQLite finds what lies beside the file by
/// its path, again and again, and makes it: by another folder that they would decide where.
fn of_others(step: &Step<'_>) -> Option<&'static str> {
    let (owner, path) = (step.data.uid(), step.path.parent().unwrap_or(step.path));
    // In a folder like `/tmp` they move only what is theirs.
    let is_theirs = || is_others(owner) && !access::is_same(owner, step.folder.uid());
    let can_move =
        || access::may_be_exchanged(step.folder, path) || access::is_shared(step.folder, path) && is_theirs();
    match step.data.is_dir() || step.data.is_symlink() {
        true if is_others(step.folder.uid()) || can_move() => Some(EXCHANGED),
        false if !access::is_known(owner) => Some("it belongs to a user whom nobody knows here"),
        _ => None,
    }
}

const EXCHANGED: &str = "somebody else can exchange what is on the way there";

/// What to do about a file that is refused.
fn way_out(error: &io::Error) -> &'static str {
    let why = error.to_string();
    match why.starts_with(EXCHANGED) || why.ends_with(WRITTEN) {
        true => {
            "name a file in a folder that only you and root can write to and move, as mktemp -d makes one; ?owner=any believes all, as in a team, or a sandbox where nobody else is known"
        }
        false => "name a file in a folder of your own, which mktemp -d makes, too",
    }
}

/// Whether somebody else than the caller and root has this number.
fn is_others(owner: u32) -> bool {
    owner != 0 && !access::is_own(owner)
}

/// Whether a file is the kernel's; or something is in one of length 0, or may be later: such a one may be waited for without end.
fn is_made_as_it_is_read(file: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(file) {
        Ok(data) if data.is_file() && links::is_of_the_kernel(file) => return Ok(true),
        Ok(data) if data.is_file() && data.len() == 0 => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => return Ok(false),
    }
    match regular::read(file).and_then(|mut file| file.read(&mut [0])) {
        Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::InvalidInput].contains(&error.kind()) => Ok(true),
        read => Ok(read? > 0),
    }
}

/// What there is to say of who else decides about the store that was given so and found there, and is believed (`owner=any`). Asked of the path
/// as it was named: whoever has a say in where a link on the way leads decides, too.
pub(super) fn cautions(given: Option<&str>, url: &str) -> Vec<String> {
    let named = named(given).ok().filter(|named| of_the_default(named).is_none());
    let file = file_of(named.as_deref().unwrap_or(url));
    file.into_iter().flat_map(owners::of_all).collect()
}

/// Whether the URL of a file says that whoever can write to it is believed.
fn believes_all(url: &str) -> bool {
    url.split_once('?').is_some_and(|(_, query)| query.split('&').any(|pair| pair == "owner=any"))
}

/// A store's URL as it is shown: without what lets others in.
pub(crate) fn shown(url: &str) -> Cow<'_, str> {
    let plain = [NO_MAKING, NO_OTHERS, NO_LINKS]
        .iter()
        .fold(url, |url, ours| url.strip_suffix(ours).map_or(url, |url| url.strip_suffix(['?', '&']).unwrap_or(url)));
    Cow::Owned(redact::server(plain))
}

#[cfg(test)]
mod tests;
