//! The part of a body that is there already, beside the file that it will become.
//!
//! It has a random name, nobody else may read it, and it goes with the run. With `-C -` it has a name that the next run
//! finds (`.FILE.part`), and a second file beside it (`.FILE.part.from`) says what it is a part of: the validator and
//! the length without which nothing may be joined to it. Both are used only if they are regular files of the user's own,
//! the part only if nobody else can read it, and the other if nobody else can write to it.

use super::{
    exit, most,
    resume::Resume,
    sparse,
    target::{Target, unwritable},
};
use crate::{
    access,
    ear::Ear,
    escape::escape,
    links::{Place, folder_of, is_one},
    size::Size,
    talk::{Fault, plain},
};
use nix::fcntl::OFlag;
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, OpenOptionsExt},
    },
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
}

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
        let (path, way) = (target.place.path(), target.place.way());
        target.dress(self.file()).map_err(|error| unwritable(path, &error))?;
        match self {
            Part::Passing(part) => part.persist(&way).map(drop).map_err(|error| error.error),
            Part::Kept(part) => {
                let renamed = fs::rename(part.way(), &way);
                // What it was a part of says nothing any more. One that others could read by now is a part no more, either.
                let _ = fs::remove_file(part.way_to_about());
                renamed.inspect_err(|_| {
                    let _ = fs::remove_file(part.way());
                })
            }
        }
        .map_err(|error| unwritable(path, &error))?;
        Ok(())
    }
}

impl Kept {
    /// The part that an earlier run left, or a new one; with it what it can be gone on with. `source` is the URL as it
    /// may be written down.
    pub(super) fn find(target: &Target, source: String, bounds: &Bounds<'_>) -> Result<(Kept, Option<Resume>), Fault> {
        let (name, about) = (beside(target.name(), ".", ".part"), beside(target.name(), ".", ".part.from"));
        let place = target.place.clone();
        let (file, is_new) = open(&place.beside(&name), &folder_of(place.path()).join(&name))?;
        let mut kept = Kept { file, name, about, place, source };
        let resume = if is_new { None } else { kept.remembered() };
        if resume.is_some() {
            return Ok((kept, resume));
        }
        kept.file.set_len(0).map_err(|error| unwritable(&kept.path(), &error))?;
        let resume = kept.take_over(target, bounds)?;
        Ok((kept, resume))
    }

    /// Where it is, for people.
    fn path(&self) -> PathBuf {
        folder_of(self.place.path()).join(&self.name)
    }

    fn way(&self) -> PathBuf {
        self.place.beside(&self.name)
    }

    fn way_to_about(&self) -> PathBuf {
        self.place.beside(&self.about)
    }

    /// What the part is a part of, if it was left by a download from the same place.
    fn remembered(&self) -> Option<Resume> {
        let mut text = String::new();
        open_ours(OpenOptions::new().read(true), &self.way_to_about())
            .ok()?
            .take(64 << 10)
            .read_to_string(&mut text)
            .ok()?;
        let (source, rest) = text.split_once('\n')?;
        (source == self.source).then(|| Resume::from_text(rest))?
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
    pub(super) fn is_part_of(&self, resume: Option<&Resume>) -> Result<(), Fault> {
        let about = self.way_to_about();
        let _ = fs::remove_file(&about);
        let Some(text) = resume.and_then(Resume::to_text) else { return Ok(()) };
        let made = open_ours(OpenOptions::new().write(true).create_new(true), &about);
        let written = made.and_then(|mut file| file.write_all(format!("{}\n{text}", self.source).as_bytes()));
        written.map_err(|error| unwritable(&folder_of(self.place.path()).join(&self.about), &error))
    }

    /// Whether there is something to go on with, and where.
    pub(super) fn left(&self) -> Option<(String, u64)> {
        let length = self.file.metadata().ok()?.len();
        (length > 0 && self.way_to_about().exists()).then(|| (shown(&self.path()), length))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // After `persist` there is nothing of this name, or it is another run's.
        let is_this = fs::symlink_metadata(self.way())
            .is_ok_and(|there| self.file.metadata().is_ok_and(|ours| is_one(&ours, &there)));
        if is_this && self.left().is_none() {
            let _ = fs::remove_file(self.way());
            let _ = fs::remove_file(self.way_to_about());
        }
    }
}

/// `.FILE.part`. A FILE whose name is so long that no system would take this one is cut, and known by a digest of all of it.
fn beside(name: &OsStr, before: &str, after: &str) -> OsString {
    // 255 bytes without what stands before and behind it.
    const LONGEST: usize = 240;
    let mut beside = OsString::from(before);
    match name.as_bytes() {
        bytes if bytes.len() > LONGEST => {
            let digest: String = Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            // Half a character would be none.
            let cut = String::from_utf8_lossy(&bytes[..LONGEST / 2]);
            beside.push(format!("{}~{digest}", cut.trim_end_matches('\u{fffd}')));
        }
        _ => beside.push(name),
    }
    beside.push(after);
    beside
}

/// Opens a part, or makes it, and keeps other runs out; and whether it is new.
fn open(way: &Path, path: &Path) -> Result<(File, bool), Fault> {
    let refused = |error: &io::Error| {
        Fault::new(format!("cannot use {}: {}", shown(path), plain(error))).hint("remove it, or leave out -C")
    };
    let old = match open_own(OpenOptions::new().read(true).write(true), way) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        old => Some(old.and_then(|file| Ok((file.metadata()?.mode(), file))).map_err(|error| refused(&error))?),
    };
    if let Some((mode, file)) = old {
        lock(&file, path)?;
        if mode & 0o077 == 0 {
            return Ok((file, false));
        }
        // It was to become FILE, and did not. Whoever may read it may have it open, and would read on.
        fs::remove_file(way).map_err(|error| refused(&error))?;
    }
    let made = open_own(OpenOptions::new().read(true).write(true).create_new(true), way);
    let file = made.map_err(|error| unwritable(path, &error))?;
    lock(&file, path)?;
    Ok((file, true))
}

fn lock(file: &File, path: &Path) -> Result<(), Fault> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        Fault::new(format!("another relent is writing {}", shown(path)))
            .hint("wait for it, or choose another place with -o")
    })
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
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = options.mode(0o600).custom_flags(flags.bits()).open(path)?;
    let data = file.metadata()?;
    let is_ours = data.is_file() && access::is_own(data.uid()) && data.nlink() == 1;
    if is_ours { Ok(file) } else { Err(io::Error::other("it is no regular file of yours alone")) }
}

/// Goes to the end, from where it grows.
pub(super) fn to_the_end(file: &mut File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::target::Found;
    use std::{
        fs::Permissions,
        os::unix::fs::{PermissionsExt, symlink},
    };

    fn target(path: &Path) -> Target {
        match Target::find(path).unwrap() {
            Found::File(target) => target,
            Found::Special(_) => panic!("it is a file"),
        }
    }

    fn bounds(ear: &Ear) -> Bounds<'_> {
        Bounds { ear, ends: None, max_size: None }
    }

    /// What `-C -` begins with, once something has happened meanwhile.
    fn taken_over(path: &Path, meanwhile: impl FnOnce()) -> Result<String, String> {
        let target = target(path);
        meanwhile();
        let (mut part, _) =
            Kept::find(&target, "source".into(), &bounds(&Ear::default())).map_err(|fault| fault.shown().0)?;
        let mut text = String::new();
        part.file.rewind().and_then(|()| part.file.read_to_string(&mut text)).unwrap();
        Ok(text)
    }

    /// What stands beside it would have a name that is too long.
    #[test]
    fn a_file_may_have_the_longest_name() {
        let folder = tempfile::tempdir().unwrap();
        for last in ["x", "y"] {
            let file = folder.path().join("a".repeat(254) + last);
            let target = target(&file);
            let Part::Passing(passing) = Part::passing(&target).unwrap() else { panic!("it goes with the run") };
            assert!(passing.path().exists());
            let (mut kept, _) = Kept::find(&target, "source".into(), &bounds(&Ear::default()))
                .map_err(|fault| fault.shown().0)
                .unwrap();
            kept.file.write_all(last.as_bytes()).unwrap();
            kept.is_part_of(Resume::from_text("\"v1\"\n10\n\n").as_ref()).unwrap();
        }
        for last in ["x", "y"] {
            let target = target(&folder.path().join("a".repeat(254) + last));
            let (mut kept, resume) = Kept::find(&target, "source".into(), &bounds(&Ear::default()))
                .map_err(|fault| fault.shown().0)
                .unwrap();
            let mut text = String::new();
            kept.file.rewind().and_then(|()| kept.file.read_to_string(&mut text)).unwrap();
            assert!(resume.is_some() && text == last, "{text}: each has a part of its own");
        }
        assert_eq!(beside("ä".repeat(127).as_ref(), ".", ".part").len(), 1 + 120 + 17 + 5);
        assert_eq!(beside("x".repeat(240).as_ref(), ".", ".part.from").len(), 251);
    }

    /// Until it is in place, and if it never is.
    #[test]
    fn a_part_is_for_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let (file, part) = (folder.path().join("file"), folder.path().join(".file.part"));
        let target = target(&file);
        let find =
            || Kept::find(&target, "source".into(), &bounds(&Ear::default())).map_err(|fault| fault.shown().0).unwrap();
        let (mut kept, _) = find();
        kept.file.write_all(b"whole").unwrap();
        kept.is_part_of(Resume::from_text("\"v1\"\n10\n\n").as_ref()).unwrap();
        // A neighbour's folder is in its place by now.
        fs::create_dir(&file).unwrap();
        assert!(Part::Kept(kept).persist(&target).is_err());
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert!(
            !part.exists() && !folder.path().join(".file.part.from").exists(),
            "who has it open reads nothing more"
        );
        // One that was left in between.
        for left in [0o644, 0o664] {
            fs::write(&part, "left").unwrap();
            fs::set_permissions(&part, Permissions::from_mode(left)).unwrap();
            let held = File::open(&part).unwrap();
            let (mut kept, resume) = find();
            kept.file.write_all(b"next").unwrap();
            assert!(resume.is_none() && mode(&part) == 0o600, "{left:o}");
            assert!(
                !is_one(&held.metadata().unwrap(), &fs::metadata(&part).unwrap()),
                "{left:o}: who has it open reads on"
            );
        }
        // What says what it is a part of is not another's word.
        fs::write(folder.path().join(".file.part.from"), "source\n\"v1\"\n10\n\n").unwrap();
        fs::set_permissions(folder.path().join(".file.part.from"), Permissions::from_mode(0o666)).unwrap();
        fs::write(&part, "part").unwrap();
        fs::set_permissions(&part, Permissions::from_mode(0o600)).unwrap();
        fs::remove_dir(&file).unwrap();
        assert!(find().1.is_none());
    }

    /// As a neighbour may put there who waits for the moment.
    #[test]
    fn only_what_was_looked_at_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let (file, secret) = (folder.path().join("file"), folder.path().join("secret"));
        fs::write(&secret, "secret").unwrap();
        assert_eq!(taken_over(&file, || symlink(&secret, &file).unwrap()), Ok(String::new()));
        fs::remove_file(&file).unwrap();
        assert_eq!(taken_over(&file, || fs::write(&file, "theirs").unwrap()), Ok(String::new()));
        fs::write(&file, "own").unwrap();
        assert_eq!(taken_over(&file, || {}), Ok("own".into()));
        let refused = |why: &str| Err(format!("cannot go on with {}: {why}", file.display()));
        let exchanged = || {
            fs::remove_file(&file).unwrap();
            symlink(&secret, &file).unwrap();
        };
        assert_eq!(taken_over(&file, exchanged), refused("Too many levels of symbolic links"));
        fs::remove_file(&file).unwrap();
        fs::write(&file, "own").unwrap();
        assert_eq!(taken_over(&file, || fs::rename(&secret, &file).unwrap()), refused("it is being moved"));
    }

    /// Before anything is asked for, too.
    #[test]
    fn what_is_copied_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "own").unwrap();
        let target = target(&file);
        let (deaf, told) = (Ear::default(), Ear::default());
        told.hear(nix::sys::signal::Signal::SIGTERM);
        let found = |bounds: &Bounds<'_>| Kept::find(&target, "source".into(), bounds).map_err(|fault| fault.shown().0);
        for (ear, ends, copied) in [(&deaf, None, 3), (&told, None, 0), (&deaf, Some(Instant::now()), 0)] {
            let (kept, resume) = found(&Bounds { ends, ..bounds(ear) }).unwrap();
            assert_eq!((kept.file.metadata().unwrap().len(), resume.is_some()), (copied, copied > 0));
        }
        assert!(found(&Bounds { max_size: Some(Size(3)), ..bounds(&deaf) }).is_ok());
        let refused = format!("cannot go on with {}: the body is larger than the --max-size of 2B", file.display());
        assert_eq!(found(&Bounds { max_size: Some(Size(2)), ..bounds(&deaf) }).err(), Some(refused));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left of it");
    }
}
