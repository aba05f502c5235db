//! Opening files that somebody named, or that happen to be there: never waiting for the other end of a named pipe, never
//! taking a terminal or a device for a file.

use crate::{
    access,
    ear::Undisturbed,
    links::{self, Place},
    size::Size,
};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::{fchown, getegid},
};
use relent::duration::Human;
use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, IsTerminal, Read, Write},
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    },
    path::Path,
    time::{Duration, Instant},
};
use tempfile::NamedTempFile;

/// What else may be meant where a file is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Or {
    /// Nothing: what is no regular file is refused.
    Nothing,
    /// A device that swallows or shows what is written, as `/dev/null` and `/dev/stderr`.
    Device,
    /// A device, or a pipe whose other end is there, as a shell's `<(command)` is.
    Pipe,
}

/// Opens a regular file for reading, at once.
///
/// # Errors
///
/// It cannot be opened, or is no regular file.
pub fn read(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(at_once()).open(path)?;
    check(file, Or::Nothing)
}

/// Opens a regular file for reading to which no link leads but such as are `believed`, however quick others exchange what is there.
///
/// # Errors
///
/// As [`read`], or a link is another's.
pub(crate) fn read_led_by(path: &Path, believed: &dyn Fn(&Metadata) -> bool) -> io::Result<File> {
    let place = links::follow(path, &|step| {
        let is_theirs = (step.data.is_symlink() && !believed(step.data)) || step.may_be_another_name();
        is_theirs.then_some("it belongs to somebody else")
    })?;
    // What has no path is found by the system.
    let Some(place) = place else { return read(path) };
    let file = OpenOptions::new().read(true).custom_flags(at_once() | nix::libc::O_NOFOLLOW).open(place.way())?;
    place.is_where_it_was(&file.metadata()?)?;
    check(file, Or::Nothing)
}

/// Opens a regular file for reading, or a pipe, as soon as somebody writes to it.
///
/// # Errors
///
/// It cannot be opened, or is neither.
pub fn read_or_pipe(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(at_once()).open(path)?;
    if !file.metadata()?.file_type().is_fifo() {
        return check(file, Or::Nothing);
    }
    // Read at once, it would end before anybody writes. What is in it already is read, though nobody writes any more.
    while poll(&mut [PollFd::new(file.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) == Err(Errno::EINTR) {}
    wait_for_more(file)
}

/// The text of a file, of a pipe, or (`-`) of standard input, of at most `most` bytes.
///
/// # Errors
///
/// It cannot be read, is something else, longer, no text, or a pipe that nobody writes to.
pub fn text(name: &str, most: u64) -> io::Result<String> {
    let bytes = match name {
        "-" => all(io::stdin().lock(), most)?,
        name => bytes(Path::new(name), most)?,
    };
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text in UTF-8"))
}

/// The bytes of a file or of a pipe, of which there may be at most `most`.
///
/// # Errors
///
/// It cannot be read, is something else, longer, or a pipe that nobody writes to.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    bytes_within(path, most, PATIENCE)
}

/// How long a pipe is read, from which all is wanted: long enough for who is asked for a password meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

fn bytes_within(path: &Path, most: u64, patience: Duration) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(at_once()).open(path)?;
    let is_pipe = file.metadata()?.file_type().is_fifo();
    let bytes = match is_pipe {
        true => all(Patient { pipe: file, patience, began: Instant::now() }, most)?,
        false => all(check(file, Or::Nothing)?, most)?,
    };
    match is_pipe && bytes.is_empty() {
        true => Err(io::Error::other("it is a pipe that nobody writes to")),
        false => Ok(bytes),
    }
}

/// A pipe that is read for so long: whoever holds it open need not ever write, or end.
struct Patient {
    pipe: File,
    patience: Duration,
    began: Instant,
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            // One that nobody has open ends here.
            match self.pipe.read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            let left = self.patience.saturating_sub(self.began.elapsed());
            let millis = PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX);
            if left.is_zero() || poll(&mut [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)], millis)? == 0 {
                let text = format!("whoever writes to the pipe has not ended within {}", Human(self.patience));
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
    }
}

fn all(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it is longer than {}", Size(most)))),
        false => Ok(bytes),
    }
}

/// A file, a pipe or a terminal: something that ends. Of devices only `/dev/null` does.
///
/// # Errors
///
/// It is another device.
pub fn ends(file: File) -> io::Result<File> {
    let data = file.metadata()?;
    let kind = data.file_type();
    let is_null = || fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == data.rdev());
    match kind.is_block_device() || (kind.is_char_device() && !file.is_terminal() && !is_null()) {
        true => Err(io::Error::other("it is a device, and no file")),
        false => Ok(file),
    }
}

/// From here on, reading and writing wait for who is at the other end.
fn wait_for_more(file: File) -> io::Result<File> {
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok(file)
}

/// Opens a file for writing, at once, and empties it; a new one only its owner can read and write. One that belongs to
/// somebody else stays as it is.
///
/// # Errors
///
/// It cannot be opened, is somebody else's, or is no regular file and nothing else that was allowed.
pub fn write_private(path: &Path, or: Or) -> io::Result<File> {
    let file = check(to_write(path, OpenOptions::new().write(true).create(true).mode(0o600))?, or)?;
    let data = file.metadata()?;
    if data.is_file() {
        if !access::is_own(data.uid()) {
            return Err(io::Error::other("it belongs to somebody else"));
        }
        file.set_len(0)?;
    }
    Ok(file)
}

/// Opens a file of one's own that is there, in a folder of one's own that is shut to others, to write behind what it holds.
///
/// # Errors
///
/// It is not there, somebody else's or something else, or somebody else has a say in where it is; or a link leads there.
pub fn append(path: &Path) -> io::Result<File> {
    let refused = || io::Error::other("others have a say in where it is");
    let place = links::to_write(path)?.filter(|place| place.path() == path).ok_or_else(refused)?;
    let folder = place.folder()?;
    let flags = at_once() | nix::libc::O_NOFOLLOW;
    let file = OpenOptions::new().append(true).custom_flags(flags).open(place.way())?;
    let data = file.metadata()?;
    place.is_where_it_was(&data)?;
    let is_shut = access::is_own(folder.uid()) && folder.mode() & 0o077 == 0;
    match is_shut && data.is_file() && access::is_own(data.uid()) && data.nlink() == 1 {
        true => Ok(file),
        false => Err(refused()),
    }
}

/// Puts a new, empty file in the place of one of our own, so that nobody has it open; only its owner can read and write it.
/// `None`: where that one is has no path.
///
/// # Errors
///
/// It is another file by now, or its folder takes no new one.
pub fn in_place_of(path: &Path, old: &Metadata) -> io::Result<Option<File>> {
    let Some(place) = links::to_write(path)? else { return Ok(None) };
    place.is_where_it_was(old)?;
    let _undisturbed = Undisturbed::begin();
    let replaced = new_in(&place).and_then(|new| new.persist(place.way()).map_err(|error| error.error));
    let new = replaced.map_err(|error| {
        let text = format!("others can read it, and it cannot be replaced: {}", crate::talk::plain(&error));
        io::Error::new(error.kind(), text)
    })?;
    Ok(Some(new))
}

/// A new file in the folder of a place, to take that one's.
fn new_in(place: &Place) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".relent-").tempfile_in(place.way_to_folder())
}

/// Writes a file that others may read, in place of what it held; a device, or a pipe that is read, gets it as it is.
///
/// # Errors
///
/// It cannot be written, or is something else.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = wait_for_more(check(to_write(path, OpenOptions::new().write(true).create(true))?, Or::Pipe)?)?;
    let data = file.metadata()?;
    if data.is_file() {
        if data.mode() & SPECIAL != 0 {
            return Err(io::Error::other("it is a program that runs with another's rights (setuid or setgid)"));
        }
        if beside(path, &data, bytes)? {
            return Ok(());
        }
        file.set_len(0)?;
    }
    file.write_all(bytes)
}

/// Writes a new file, which takes the place of one of our own when it is whole: what was there outlasts a disk that is full. Not
/// done, if it would be another file to somebody: with another name, an access list, or in a folder that takes no new one.
fn beside(path: &Path, old: &Metadata, bytes: &[u8]) -> io::Result<bool> {
    let Some(place) = links::to_write(path)? else { return Ok(false) };
    let is_ours = access::is_own(old.uid()) && old.gid() == getegid().as_raw() && old.nlink() == 1;
    if !is_ours || old.len() == 0 || access::path_has_list(&place.way()) {
        return Ok(false);
    }
    let _undisturbed = Undisturbed::begin();
    let Ok(mut new) = new_in(&place) else { return Ok(false) };
    new.write_all(bytes)?;
    access::take_list(new.as_file())?;
    fchown(new.as_file(), None, Some(old.gid().into()))?;
    new.as_file().set_permissions(old.permissions())?;
    place.is_where_it_was(old)?;
    new.persist(place.way()).map_err(|error| error.error)?;
    Ok(true)
}

/// Opens what a path leads to, and follows nothing that a neighbour could have put there, before or meanwhile.
fn to_write(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // What has no path of its own, as `/dev/stdout`, is found by the system.
    let Some(place) = links::to_write(path)? else {
        return options.custom_flags(at_once()).open(path).map_err(unread);
    };
    let file = options.custom_flags(at_once() | nix::libc::O_NOFOLLOW).open(place.way()).map_err(unread)?;
    let data = file.metadata()?;
    place.is_where_it_was(&data)?;
    let is_shared = access::is_shared(&place.folder()?, &place.way_to_folder());
    // Where links are not protected, anybody may have given a file of ours this name.
    if data.is_file() && data.nlink() > 1 && is_shared {
        return Err(io::Error::other("it has another name elsewhere, in a folder that others may write to"));
    }
    // Whoever holds it open need not ever read.
    if data.file_type().is_fifo() && !access::is_own(data.uid()) && data.uid() != 0 {
        return Err(io::Error::other("it is a named pipe of somebody else's"));
    }
    Ok(file)
}

/// The bits of a file that lend its rights to whoever runs it.
const SPECIAL: u32 = 0o6000;

/// Why a named pipe cannot be opened for writing.
fn unread(error: io::Error) -> io::Error {
    use nix::errno::Errno::ENXIO;
    match error.raw_os_error().map(Errno::from_raw) {
        Some(ENXIO) => io::Error::other("it is a named pipe that nobody reads"),
        _ => error,
    }
}

fn at_once() -> i32 {
    nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY
}

fn check(file: File, or: Or) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    let what = match () {
        () if kind.is_file() || (kind.is_char_device() && or != Or::Nothing) => return Ok(file),
        () if kind.is_fifo() && or == Or::Pipe => return Ok(file),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::other(format!("it is {what}, and no file")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::fs::PermissionsExt, thread};

    #[test]
    fn devices_without_an_end_are_no_input() {
        for (path, answer) in [("/dev/null", true), ("/dev/zero", false), ("/dev/urandom", false)] {
            assert_eq!(ends(File::open(path).unwrap()).is_ok(), answer, "{path}");
        }
        assert!(ends(tempfile::tempfile().unwrap()).is_ok());
    }

    #[test]
    fn what_is_read_whole_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "12345").unwrap();
        assert_eq!(bytes(&path, 5).unwrap(), b"12345");
        assert_eq!(bytes(&path, 4).unwrap_err().to_string(), "it is longer than 4B");
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(text(path.to_str().unwrap(), 4).unwrap_err().to_string(), "it is no text in UTF-8");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(bytes(&pipe, 9).unwrap_err().to_string(), "it is a pipe that nobody writes to");
        assert_eq!(text("/dev/zero", 9).unwrap_err().to_string(), "it is a device, and no file");
    }

    #[test]
    fn special_files_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(&pipe).unwrap_err().to_string(), "it is a named pipe, and no file");
        let unread = write_private(&pipe, Or::Device).unwrap_err().to_string();
        assert_eq!(unread, "it is a named pipe that nobody reads");
        assert_eq!(read(folder.path()).unwrap_err().to_string(), "it is a folder, and no file");
        assert_eq!(read(Path::new("/dev/null")).unwrap_err().to_string(), "it is a device, and no file");
        assert!(write_private(Path::new("/dev/null"), Or::Device).is_ok());
        assert!(write_private(Path::new("/dev/null"), Or::Nothing).is_err());
    }

    #[test]
    fn a_file_for_others_takes_the_place_of_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "longer than what comes").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        replace(Path::new("/dev/null"), b"new").unwrap();
        assert!(replace(folder.path(), b"new").is_err());
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(replace(&pipe, b"new").unwrap_err().to_string(), "it is a named pipe that nobody reads");
        let mut reader = OpenOptions::new().read(true).custom_flags(at_once()).open(&pipe).unwrap();
        replace(&pipe, b"new").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "new");
        assert!(read_or_pipe(Path::new("/dev/zero")).is_err());
    }

    /// The new one is there at once and as a whole, with the rights of the old; who has the old one open still reads it.
    #[test]
    fn what_was_there_stays_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("a", &link).unwrap();
        let mut held = read(&path).unwrap();
        replace(&link, b"new").unwrap();
        let mut text = String::new();
        held.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), fs::read_to_string(&path).unwrap().as_str()), ("old", "new"));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        // One with two names stays one.
        fs::hard_link(&path, folder.path().join("b")).unwrap();
        replace(&path, b"both").unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("b")).unwrap(), "both");
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "b", "link"]);
    }

    /// Where links are not protected anybody gives one of ours another name.
    #[test]
    fn a_link_with_another_name_leads_to_nothing_that_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, other] = ["file", "link", "other"].map(|name| folder.path().join(name));
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let is_read = |mode: u32| {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            read_led_by(&link, &|_| true).is_ok()
        };
        assert!(is_read(0o755) && is_read(0o1777));
        fs::hard_link(&link, &other).unwrap();
        assert!(fs::symlink_metadata(&other).unwrap().is_symlink());
        assert!(is_read(0o755) && !is_read(0o1777) && !is_read(0o777));
        fs::remove_file(&other).unwrap();
        assert!(is_read(0o1777));
        fs::hard_link(&file, &other).unwrap();
        assert!(is_read(0o755) && !is_read(0o1777) && !is_read(0o777), "nor does a file with another name");
    }

    /// It takes root to give something away.
    #[test]
    fn a_pipe_of_somebody_else_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _held = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        replace(&pipe, b"new").unwrap();
        if std::os::unix::fs::chown(&pipe, Some(65_534), None).is_err() {
            eprintln!("SKIPPED a_pipe_of_somebody_else_is_not_waited_for: it takes root");
            return;
        }
        assert_eq!(replace(&pipe, b"new").unwrap_err().to_string(), "it is a named pipe of somebody else's");
    }

    #[test]
    fn behind_what_a_file_holds_is_written_where_it_is_ones_own() {
        let folder = tempfile::tempdir_in(std::env::temp_dir().canonicalize().unwrap()).unwrap();
        let [path, link, other] = ["a", "link", "b"].map(|name| folder.path().join(name));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(append(&path).unwrap_err().kind(), io::ErrorKind::NotFound, "none is made");
        fs::write(&path, "old ").unwrap();
        append(&path).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old new");
        for no_file in [Path::new("/dev/null"), folder.path()] {
            assert!(append(no_file).is_err());
        }
        fs::hard_link(&path, &other).unwrap();
        assert!(append(&path).is_err() && append(&other).is_err());
        fs::remove_file(&other).unwrap();
        std::os::unix::fs::symlink("a", &link).unwrap();
        std::os::unix::fs::symlink(".", folder.path().join("here")).unwrap();
        assert!(append(&link).is_err() && append(&folder.path().join("here/a")).is_err(), "nor by a link");
        for (mode, is_written) in [(0o755, false), (0o1777, false), (0o770, false), (0o700, true)] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(append(&path).is_ok(), is_written, "{mode:o}");
        }
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
            eprintln!("SKIPPED behind_what_a_file_holds_is_written_where_it_is_ones_own in part: it takes root");
            return;
        }
        assert!(append(&path).is_err());
    }

    /// Whatever the folder gives to all that is made in it.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_takes_the_place_of_a_file_is_nobody_elses_either() {
        let folder = tempfile::tempdir().unwrap();
        let (path, set_group) = (folder.path().join("a"), folder.path().join("b"));
        let lets_in = |path: &Path| (access::path_has_list(path), fs::metadata(path).unwrap().mode() & 0o7777);
        for path in [&path, &set_group] {
            fs::write(path, "old").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o660)).unwrap();
        }
        let own = fs::metadata(&path).unwrap().gid();
        if std::os::unix::fs::chown(folder.path(), None, Some(65_534)).is_err() {
            eprintln!("SKIPPED what_takes_the_place_of_a_file_is_nobody_elses_either in part: it takes root");
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o2770)).unwrap();
        replace(&set_group, b"new").unwrap();
        assert_eq!(fs::metadata(&set_group).unwrap().gid(), own);
        if let Err(error) = access::give_list_to_new(folder.path(), 7) {
            eprintln!("SKIPPED what_takes_the_place_of_a_file_is_nobody_elses_either: {error}");
            return;
        }
        fs::write(folder.path().join("new"), "").unwrap();
        assert!(lets_in(&folder.path().join("new")).0, "what is new has one");
        replace(&path, b"new").unwrap();
        assert_eq!((lets_in(&path), fs::read_to_string(&path).unwrap()), ((false, 0o660), "new".into()));
    }

    #[test]
    fn what_is_in_a_pipe_is_read_though_nobody_writes_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _held = OpenOptions::new().read(true).custom_flags(at_once()).open(&pipe).unwrap();
        fs::write(&pipe, "text").unwrap();
        let mut text = String::new();
        read_or_pipe(&pipe).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }

    /// A file of the system's that says nothing yet, as the kernel's log does, is an error and not waited for.
    #[test]
    fn only_pipes_are_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
        fs::write(&file, "").unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let flags = fcntl(read_or_pipe(&file).unwrap(), FcntlArg::F_GETFL).unwrap();
        assert!(OFlag::from_bits_truncate(flags).contains(OFlag::O_NONBLOCK));
        // Nobody has it open yet, and whoever does later writes later still.
        let writes = thread::spawn({
            let pipe = pipe.clone();
            move || {
                thread::sleep(Duration::from_millis(50));
                let mut writer = OpenOptions::new().write(true).open(pipe).unwrap();
                thread::sleep(Duration::from_millis(50));
                writer.write_all(b"text").unwrap();
            }
        });
        let mut text = String::new();
        read_or_pipe(&pipe).unwrap().read_to_string(&mut text).unwrap();
        writes.join().unwrap();
        assert_eq!(text, "text");
    }

    #[test]
    fn a_pipe_that_somebody_holds_open_is_not_read_without_end() {
        const SHORT: Duration = Duration::from_millis(20);
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut held = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let refused = bytes_within(&pipe, 100, SHORT).unwrap_err();
        assert_eq!(refused.to_string(), "whoever writes to the pipe has not ended within 20ms");
        held.write_all(b"a: b").unwrap();
        assert_eq!(bytes_within(&pipe, 100, SHORT).unwrap_err().kind(), io::ErrorKind::TimedOut);
        held.write_all(b"a: b").unwrap();
        assert_eq!(bytes_within(&pipe, 3, SHORT).unwrap_err().to_string(), "it is longer than 3B");
    }

    #[test]
    fn a_new_file_is_private_and_an_old_one_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let new = write_private(&path, Or::Nothing).unwrap();
        assert_eq!(new.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "longer than before").unwrap();
        write_private(&path, Or::Nothing).unwrap();
        let mut text = String::new();
        read(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "");
    }
}
