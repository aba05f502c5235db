//! The part of a body that is there already, beside the file that it will become.
//!
//! It has a random name, nobody else may read it, and it goes with the run. With `-C -` it has a name that the next run
//! finds (`.FILE.part`), and a second file beside it (`.FILE.part.from`) says what it is a part of: the validator and
//! the length without which nothing may be joined to it. Both are used only if they are regular files of the user's own,
//! the part only if nobody else can read it, and the other if nobody else can write to it.
//!
//! Where a file system lets nobody keep a part to themselves (what is made there is another user's, others can write to it, or
//! nothing can be locked), a part goes with the run, as in a folder like `/tmp`.
//!
//! The second file goes before the part changes, and comes when the part is of what it says. Only the run that holds the
//! part, and only while its name leads there, touches either.

mod name;

use self::name::beside;
use super::{
    exit, most,
    resume::Resume,
    sparse,
    target::{Target, moved, unwritable},
};
use crate::{
    access, arrived, dress,
    ear::Ear,
    escape::escape,
    links::{Place, folder_of, is_one},
    regular,
    size::Size,
    talk::{Fault, plain},
    whole_file::put,
};
use nix::fcntl::OFlag;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};
use tempfile::NamedTempFile;

/// Where a body grows.
#[derive(Debug)]
pub(super) enum Part {
    /// Under a random name that goes with the run, in the folder that the target holds open.
    Passing(NamedTempFile),
    /// Under a name that the next run finds.
    Kept(Kept),
}

/// A part that outlives the run.
#[derive(Debug)]
pub(super) struct Kept {
    file: File,
    /// Its name, and that of what is said about it, in the folder of FILE.
    name: OsString,
    about: OsString,
    place: Arc<Place>,
    source: String,
    /// What this run knows to stand in the second file.
    said: Option<String>,
}

/// A part, with what it can be gone on with.
type Found = (Kept, Option<Resume>);

/// What bounds the time and the room that a part takes before anything is asked for.
#[derive(Debug)]
pub(super) struct Bounds<'a> {
    /// Hears the signals that end the call.
    pub(super) ear: &'a Ear,
    /// When everything ends, if it does.
    pub(super) ends: Option<Instant>,
    /// The largest body, if `--max-size` says it.
    pub(super) max_size: Option<Size>,
}

impl Bounds<'_> {
    /// Whether nothing has ended the call yet.
    fn are_kept(&self) -> bool {
        self.ear.heard().is_none() && self.ends.is_none_or(|ends| Instant::now() < ends)
    }
}

impl Part {
    /// A part that goes with the run.
    pub(super) fn passing(target: &Target) -> Result<Part, Fault> {
        let part = tempfile::Builder::new()
            .prefix(&beside(target.name(), ".", "."))
            .suffix(".part")
            .tempfile_in(target.place.way_to_folder())
            .map_err(|error| unwritable(target.place.path(), &error))?;
        Ok(Part::Passing(part))
    }

    /// The file itself.
    pub(super) fn file(&mut self) -> &mut File {
        match self {
            Part::Passing(part) => part.as_file_mut(),
            Part::Kept(part) => &mut part.file,
        }
    }

    /// Puts it in place.
    pub(super) fn persist(mut self, target: &Target) -> Result<(), Fault> {
        let path = target.place.path();
        if let Err(error) = arrived::check(self.file()) {
            // What has not arrived is nothing to go on with.
            if let Part::Kept(part) = &mut self {
                let _ = part.forget();
            }
            return Err(unwritable(path, &error));
        }
        let maker = self.file().metadata().map(|data| data.uid());
        maker.and_then(|maker| target.place.takes_a_new_one(maker)).map_err(|error| unwritable(path, &error))?;
        target.dress(self.file()).map_err(|error| unwritable(path, &error))?;
        match self {
            Part::Passing(part) => put(&target.place, part),
            Part::Kept(mut part) => {
                // One that others could read by now is a part no more.
                part.forget()?;
                target.place.put(&part.way())
            }
        }
        .map_err(|error| unwritable(path, &error))
    }

    /// The file alone, which nobody will go on with; its name goes.
    pub(super) fn into_file(self) -> io::Result<File> {
        match self {
            Part::Passing(part) => Ok(part.into_file()),
            Part::Kept(part) => part.file.try_clone(),
        }
    }
}

impl Kept {
    /// The part that an earlier run left, or a new one; with it what it can be gone on with. `source` is the URL as it
    /// may be written down. `None`: nobody can keep one there.
    pub(super) fn find(target: &Target, source: String, bounds: &Bounds<'_>) -> Result<Option<Found>, Fault> {
        let (name, about) = (beside(target.name(), ".", ".part"), beside(target.name(), ".", ".part.from"));
        let place = target.place.clone();
        let (way, path) = (place.beside(&name), folder_of(place.path()).join(&name));
        let Some(file) = open(&place, &way, &path)? else { return Ok(None) };
        let mut kept = Kept { file, name, about, place, source, said: None };
        if !kept.is_private().map_err(|error| refused(&path, &error))? {
            // It was to become FILE, and did not. Whoever may read it may have it open, and would read on.
            kept.forget()?;
            fs::remove_file(&way).map_err(|error| refused(&path, &error))?;
            let Some(file) = open(&kept.place, &way, &path)? else { return Ok(None) };
            kept.file = file;
        }
        let resume = kept.remembered()?;
        if resume.is_some() {
            return Ok(Some((kept, resume)));
        }
        kept.forget()?;
        kept.file.set_len(0).map_err(|error| unwritable(&path, &error))?;
        let resume = kept.take_over(target, bounds)?;
        Ok(Some((kept, resume)))
    }

    /// Whether nobody else may read it; or, where the file system says who may, no more than any that is made there. Nobody else
    /// writes to it in any case.
    fn is_private(&self) -> io::Result<bool> {
        let mode = self.file.metadata()?.mode();
        let as_any = || dress::of_new_ones(&self.place).is_some_and(|new| (new.mode() ^ mode) & 0o077 == 0);
        Ok(mode & 0o077 == 0 || mode & 0o022 == 0 && as_any())
    }

    /// Where it is, for people.
    fn path(&self) -> PathBuf {
        folder_of(self.place.path()).join(&self.name)
    }

    fn way(&self) -> PathBuf {
        self.place.beside(&self.name)
    }

    fn path_to_about(&self) -> PathBuf {
        folder_of(self.place.path()).join(&self.about)
    }

    fn way_to_about(&self) -> PathBuf {
        self.place.beside(&self.about)
    }

    /// What the part is a part of, if it was left by a download from the same place. One without a byte is a part of nothing. Because
    /// somebody does not give back what says it, nothing is thrown away.
    fn remembered(&mut self) -> Result<Option<Resume>, Fault> {
        if self.file.metadata().is_ok_and(|data| data.len() == 0) {
            return Ok(None);
        }
        match open_ours(OpenOptions::new().read(true), &self.way_to_about()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(refused(&self.path_to_about(), &error)),
            about => Ok(about.ok().and_then(|about| self.understood(about))),
        }
    }

    fn understood(&mut self, about: File) -> Option<Resume> {
        let mut text = String::new();
        about.take(64 << 10).read_to_string(&mut text).ok()?;
        let (source, rest) = text.split_once('\n')?;
        let resume = (source == self.source).then(|| Resume::from_text(rest))??;
        self.said = Some(text);
        Some(resume)
    }

    /// A FILE that is there already is the part, since the user says so. After a signal, or too late, nobody wants it any more.
    fn take_over(&mut self, target: &Target, bounds: &Bounds<'_>) -> Result<Option<Resume>, Fault> {
        let fault = |error: &io::Error| {
            Fault::new(format!("cannot go on with {}: {}", shown(target.place.path()), plain(error)))
        };
        let Some(mut old) = target.open().map_err(|error| fault(&error))? else { return Ok(None) };
        let data = old.metadata().map_err(|error| fault(&error))?;
        if let Some(problem) = most::problem(data.len(), bounds.max_size.unwrap_or(most::IN_A_PART)) {
            let text = format!("cannot go on with {}: {problem}", shown(target.place.path()));
            return Err(Fault::new(text).hint(most::HINT).exit(exit::PERMANENT));
        }
        let copied = sparse::copy(&mut old, &mut self.file, data.len(), || bounds.are_kept());
        let is_all = copied.map_err(|error| fault(&error))?;
        Ok((is_all && data.len() > 0).then(|| Resume::of_a_file(data.mtime())))
    }

    /// Remembers what the part is a part of; without anything it cannot be gone on with.
    pub(super) fn is_part_of(&mut self, resume: Option<&Resume>) -> Result<(), Fault> {
        let text = resume.and_then(Resume::to_text).map(|text| format!("{}\n{text}", self.source));
        if text.is_some() && text == self.said {
            return Ok(());
        }
        self.forget()?;
        let Some(text) = text else { return Ok(()) };
        let made = open_ours(OpenOptions::new().write(true).create_new(true), &self.way_to_about());
        let written = made.and_then(|mut file| {
            unmasked(&file);
            file.write_all(text.as_bytes())
        });
        written.map_err(|error| unwritable(&self.path_to_about(), &error))?;
        self.said = Some(text);
        Ok(())
    }

    /// Nothing says any more what the part is a part of.
    fn forget(&mut self) -> Result<(), Fault> {
        if !leads_to(&self.way(), &self.file) {
            return Err(unwritable(&self.path(), &moved()));
        }
        match fs::remove_file(self.way_to_about()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(refused(&self.path_to_about(), &error)),
            _ => {
                self.said = None;
                Ok(())
            }
        }
    }

    /// Whether there is something to go on with, and where.
    pub(super) fn left(&self) -> Option<(String, u64)> {
        let length = self.file.metadata().ok()?.len();
        let is_known = self.said.is_some() && self.way_to_about().exists() && leads_to(&self.way(), &self.file);
        if length == 0 || !is_known {
            return None;
        }
        if arrived::check(&self.file).is_err() {
            // Some systems say that once.
            let _ = fs::remove_file(self.way_to_about());
            return None;
        }
        Some((shown(&self.path()), length))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // After `persist` there is nothing of this name, or it is another run's.
        if self.left().is_none() && self.forget().is_ok() {
            let _ = fs::remove_file(self.way());
        }
    }
}

/// How often what is gone when it could be had is looked for again.
const TRIES: usize = 16;

/// Opens a part, or makes it, and keeps other runs out. `None`: it cannot be kept from others.
fn open(place: &Place, way: &Path, path: &Path) -> Result<Option<File>, Fault> {
    for _ in 0..TRIES {
        let (file, is_new) = match open_own(OpenOptions::new().read(true).write(true), way) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match make(way) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => (made.map_err(|error| unwritable(path, &error))?, true),
            },
            Err(_) if is_of_a_share(place, way) => return Ok(None),
            there => (there.map_err(|error| refused(path, &error))?, false),
        };
        let held = match is_new && !is_kept_from_others(&file) {
            true => Held::Never,
            false => hold(&file, way, path)?,
        };
        match held {
            Held::Alone => return Ok(Some(file)),
            Held::Elsewhere => {}
            Held::Never => {
                // What was made is not left to be in the way of the next run.
                if is_new && leads_to(way, &file) {
                    fs::remove_file(way).map_err(|error| unwritable(path, &error))?;
                }
                return Ok(None);
            }
        }
    }
    Err(busy(path))
}

/// Whether what is there is another user's, as all that is made there is: nobody can keep one for themselves.
fn is_of_a_share(place: &Place, way: &Path) -> bool {
    fs::symlink_metadata(way)
        .is_ok_and(|data| data.is_file() && !access::is_own(data.uid()) && dress::is_as_own(place, data.uid()))
}

/// Makes one, which its owner can open again, whatever the mask is.
fn make(way: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).custom_flags(flags.bits()).open(way)?;
    unmasked(&file);
    Ok(file)
}

fn unmasked(file: &File) {
    if file.metadata().is_ok_and(|data| data.mode() & 0o600 != 0o600) {
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
}

/// Whether what was just made is the caller's, and nobody else can write to it. Some shares say that themselves.
fn is_kept_from_others(file: &File) -> bool {
    is_ours_alone(file).is_ok() && file.metadata().is_ok_and(|data| data.mode() & 0o022 == 0)
}

/// What became of a part that was opened.
#[derive(Debug, PartialEq)]
enum Held {
    /// It is this run's.
    Alone,
    /// Who held it until now has made FILE of it, or removed it.
    Elsewhere,
    /// Nothing can be locked there.
    Never,
}

/// Keeps other runs out of what was opened under this name.
fn hold(file: &File, way: &Path, path: &Path) -> Result<Held, Fault> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if !leads_to(way, file) => Ok(Held::Elsewhere),
        Ok(()) => is_ours_alone(file).map(|()| Held::Alone).map_err(|error| refused(path, &error)),
        Err(Errno::WOULDBLOCK) => Err(busy(path)),
        Err(_) => Ok(Held::Never),
    }
}

fn leads_to(way: &Path, file: &File) -> bool {
    fs::symlink_metadata(way).is_ok_and(|there| file.metadata().is_ok_and(|data| is_one(&data, &there)))
}

fn busy(path: &Path) -> Fault {
    Fault::new(format!("another relent is writing {}", shown(path)))
        .hint("wait for it, or choose another place with -o")
}

fn refused(path: &Path, error: &io::Error) -> Fault {
    Fault::new(format!("cannot use {}: {}", shown(path), plain(error))).hint("remove it, or leave out -C")
}

/// Opens a file without following a link or waiting for anybody, and refuses what others can write.
fn open_ours(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = open_own(options, path)?;
    match file.metadata()?.mode() & 0o022 {
        0 => Ok(file),
        _ => Err(io::Error::other("others can write to it")),
    }
}

/// The same, but for what others may do with it.
fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = regular::open(options.mode(0o600), OFlag::O_NOFOLLOW.bits(), path)?;
    is_ours_alone(&file).map(|()| file)
}

fn is_ours_alone(file: &File) -> io::Result<()> {
    let data = file.metadata()?;
    // One that has lost its name meanwhile is nobody else's either.
    let is_ours = data.is_file() && access::is_own(data.uid()) && data.nlink() <= 1;
    if is_ours { Ok(()) } else { Err(io::Error::other("it is no regular file of yours alone")) }
}

/// Goes to the end, from where it grows.
pub(super) fn to_the_end(file: &mut File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests;
