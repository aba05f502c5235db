//! Opening files that somebody named, or that happen to be there: never waiting for the other end of a named pipe, never
//! taking a terminal or a device for a file.

use crate::{
    access,
    at_once::AtOnce,
    links::{self, Place, Step},
    output,
    size::Size,
    waits::{self, Waits},
};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use relent::duration::Human;
use std::{
    fs::{self, File, FileType, OpenOptions},
    io::{self, IsTerminal, Read},
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    },
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

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
    check(read_anything(path)?, Or::Nothing)
}

/// Opens a regular file for reading, if there is nothing to say against what is met on the way there, however quick others exchange that.
///
/// # Errors
///
/// As [`read`], or there was something to say. What is no regular file, is the kernel's, or was not there yet, is not opened.
pub(crate) fn read_unless(path: &Path, objects: &dyn Fn(&Step<'_>) -> Option<&'static str>) -> io::Result<File> {
    let place = links::follow(path, objects)?;
    // What has no path is found by the system.
    let Some(place) = place else {
        is_kept(path)?;
        return read(path);
    };
    is_meant(place.found().ok_or(Errno::ENOENT)?.file_type(), Or::Nothing)?;
    is_kept(&place.way())?;
    let file = open(OpenOptions::new().read(true), nix::libc::O_NOFOLLOW, &place.way())?;
    place.is_where_it_was(&file.metadata()?)?;
    check(file, Or::Nothing)
}

/// Opens a regular file for reading, or a pipe, as soon as somebody writes to it.
///
/// # Errors
///
/// It cannot be opened, or is neither.
pub(crate) fn read_or_pipe(path: &Path) -> io::Result<Waits<File>> {
    let file = read_anything(path)?;
    match file.metadata()?.file_type().is_fifo() {
        true => as_it_comes(file),
        false => check(file, Or::Nothing).map(Waits),
    }
}

/// Opens whatever it is for reading, at once.
///
/// # Errors
///
/// It cannot be opened.
pub(crate) fn read_anything(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), 0, path)
}

/// What was opened at once, to be read as it comes: a pipe as soon as somebody writes to it, a file or a terminal. Of devices only
/// `/dev/null` ends.
///
/// # Errors
///
/// It is another device.
pub(crate) fn as_it_comes(file: File) -> io::Result<Waits<File>> {
    let data = file.metadata()?;
    let kind = data.file_type();
    let is_null = || fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == data.rdev());
    if kind.is_block_device() || (kind.is_char_device() && !file.is_terminal() && !is_null()) {
        return Err(io::Error::other("it is a device, and no file"));
    }
    // Read at once, it would end before anybody writes. What is in it already is read, though nobody writes any more.
    while kind.is_fifo()
        && poll(&mut [PollFd::new(file.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) == Err(Errno::EINTR)
    {}
    wait_for_more(file).map(Waits)
}

/// The text of a file, of a pipe, or (`-`) of standard input, of at most `most` bytes.
///
/// # Errors
///
/// It cannot be read, is something else, longer, no text, or a pipe that nobody writes to.
pub fn text(name: &str, most: u64) -> io::Result<String> {
    let bytes = match name {
        "-" => standard_input(most)?,
        name => bytes(Path::new(name), most)?,
    };
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text in UTF-8"))
}

/// What standard input has, of at most `most` bytes.
///
/// # Errors
///
/// It cannot be read, has more, or is a pipe that does not end.
pub(crate) fn standard_input(most: u64) -> io::Result<Vec<u8>> {
    let bytes = of_standard_input(output::input()?, most, PATIENCE)?;
    waits::has_ended(io::stdin()).map(|()| bytes)
}

/// The bytes of a file or of a pipe, of which there may be at most `most`.
///
/// # Errors
///
/// It cannot be read, is something else, longer, or a pipe that nobody writes to.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    bytes_within(path, most, PATIENCE)
}

/// Whoever types has time.
fn of_standard_input(file: File, most: u64, patience: Duration) -> io::Result<Vec<u8>> {
    match file.is_terminal() {
        true => all(Waits(file), most),
        false => all(Patient { pipe: AtOnce::new(file), patience, began: Instant::now(), is_at_once: false }, most),
    }
}

/// How long a pipe is read, from which all is wanted: long enough for who is asked for a password meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

fn bytes_within(path: &Path, most: u64, patience: Duration) -> io::Result<Vec<u8>> {
    let file = read_anything(path)?;
    let is_pipe = file.metadata()?.file_type().is_fifo();
    let bytes = match is_pipe {
        true => all(Patient { pipe: AtOnce::new(file), patience, began: Instant::now(), is_at_once: true }, most)?,
        false => all(check(file, Or::Nothing)?, most)?,
    };
    match is_pipe && bytes.is_empty() {
        true => Err(io::Error::other("it is a pipe that nobody writes to")),
        false => Ok(bytes),
    }
}

/// A pipe that is read for so long: whoever holds it open need not ever write, or end.
struct Patient {
    pipe: AtOnce,
    patience: Duration,
    began: Instant,
    /// Whether it was opened here, so that reading does not wait for who writes.
    is_at_once: bool,
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut may_read = self.is_at_once;
        loop {
            // One that nobody has open ends here.
            match may_read.then(|| self.pipe.read(into)) {
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                Some(read) => return read,
                None => {}
            }
            may_read = true;
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

/// From here on, reading and writing wait for who is at the other end.
fn wait_for_more(file: File) -> io::Result<File> {
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok(file)
}

/// Opens a file of one's own that is there, in a folder of one's own that is shut to others, to write behind what it holds.
///
/// # Errors
///
/// It is not there, somebody else's or something else, or others have a say in what is in its folder; or a link leads there.
pub fn append(path: &Path) -> io::Result<File> {
    let refused = || io::Error::other("others have a say in where it is");
    // Whoever moves the folder can put none but our own in its place.
    let place = links::follow(path, &|_| None)?.filter(|place| place.path() == path).ok_or_else(refused)?;
    let folder = place.folder()?;
    let file = open(OpenOptions::new().append(true), nix::libc::O_NOFOLLOW, &place.way())?;
    let data = file.metadata()?;
    place.is_where_it_was(&data)?;
    let is_shut = access::is_own(folder.uid()) && folder.mode() & 0o077 == 0;
    match is_shut && data.is_file() && access::is_own(data.uid()) && data.nlink() == 1 {
        true => Ok(file),
        false => Err(refused()),
    }
}

/// Opens what the system finds behind a path for writing, at once.
///
/// # Errors
///
/// It cannot be opened, or is a named pipe that nobody reads.
pub(crate) fn to_write(path: &Path) -> io::Result<File> {
    let is_pipe = || fs::metadata(path).is_ok_and(|data| data.file_type().is_fifo());
    open(OpenOptions::new().write(true), 0, path).map_err(|error| unread(error, is_pipe))
}

/// Opens what was found in a place for writing, at once, and nothing that a neighbour has put there since.
///
/// # Errors
///
/// It cannot be opened, is another by now, or is a named pipe that nobody reads, or of somebody else's.
pub(crate) fn to_write_in(place: &Place) -> io::Result<File> {
    if let Some(found) = place.found().filter(|found| found.file_type().is_socket()) {
        is_meant(found.file_type(), Or::Pipe)?;
    }
    let file = open(OpenOptions::new().write(true), nix::libc::O_NOFOLLOW, &place.way());
    let is_pipe = || place.found().is_some_and(|found| found.file_type().is_fifo());
    let file = file.map_err(|error| unread(error, is_pipe))?;
    let data = file.metadata()?;
    place.is_where_it_was(&data)?;
    // Whoever holds it open need not ever read.
    if data.file_type().is_fifo() && !access::is_own(data.uid()) && data.uid() != 0 {
        return Err(io::Error::other("it is a named pipe of somebody else's"));
    }
    Ok(file)
}

/// Why a named pipe cannot be opened for writing.
fn unread(error: io::Error, is_pipe: impl Fn() -> bool) -> io::Error {
    use nix::errno::Errno::ENXIO;
    match error.raw_os_error().map(Errno::from_raw) {
        Some(ENXIO) if is_pipe() => io::Error::other("it is a named pipe that nobody reads"),
        _ => error,
    }
}

/// How long it may take whoever holds leases of files (`fcntl(2)`), as servers of shares do for their clients, to give them back: of all
/// files together that are asked for in a minute, since nothing else is heard meanwhile.
const GIVEN_BACK: Duration = Duration::from_secs(2);

/// When the last minute began, and how long was waited since.
static WAITED: Mutex<Option<(Instant, Duration)>> = Mutex::new(None);

/// Waits a moment for a lease to be given back, if there is time for that.
fn may_wait() -> bool {
    const MOMENT: Duration = Duration::from_millis(10);
    let mut waited = WAITED.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let (since, so_far) = waited
        .filter(|(since, _)| now.duration_since(*since) < Duration::from_secs(60))
        .unwrap_or((now, Duration::ZERO));
    let is_time = so_far < GIVEN_BACK;
    if is_time {
        thread::sleep(MOMENT);
        *waited = Some((since, so_far + now.elapsed()));
    }
    is_time
}

/// Opens at once whatever it is. Of a file of which somebody holds a lease that asks for it; it is opened when they have given that back.
///
/// # Errors
///
/// It cannot be opened.
pub(crate) fn open(options: &mut OpenOptions, flags: i32, path: &Path) -> io::Result<File> {
    options.custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY | flags);
    loop {
        let opened = options.open(path);
        let is_lent = opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            && fs::metadata(path).is_ok_and(|data| data.is_file());
        if !is_lent || !may_wait() {
            return opened;
        }
    }
}

pub(crate) fn check(file: File, or: Or) -> io::Result<File> {
    is_meant(file.metadata()?.file_type(), or)?;
    Ok(file)
}

/// That a file is one that keeps what is in it: of others what is read is gone for who would have read it.
fn is_kept(path: &Path) -> io::Result<()> {
    if links::is_of_the_kernel(path) { Err(io::Error::other("it is a file of the system's")) } else { Ok(()) }
}

fn is_meant(kind: FileType, or: Or) -> io::Result<()> {
    let what = match () {
        () if kind.is_file() || (kind.is_char_device() && or != Or::Nothing) => return Ok(()),
        () if kind.is_fifo() && or == Or::Pipe => return Ok(()),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::other(format!("it is {what}, and no file")))
}

#[cfg(test)]
pub(crate) mod tests;
