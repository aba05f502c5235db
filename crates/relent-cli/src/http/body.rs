//! Request bodies that can be sent again: a text from memory, a file read anew from disk for each attempt.
//!
//! What can be read only once (stdin, a pipe) is kept first, in memory up to a megabyte and on disk beyond that.

use crate::{arrived, escape::escape, output, regular, size::Size, talk::Fault, waits::Waits};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::{
    collections::VecDeque,
    fmt,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, mpsc},
    task::{Context, Poll},
    thread,
    time::Duration,
};

/// A body that can be sent any number of times.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// A text, in memory.
    Text(Bytes),
    /// A file, which is opened anew for each attempt.
    File(PathBuf),
    /// What came from a pipe, kept in a file without a name.
    Kept(Arc<File>),
    /// A form: texts and files in turn.
    Form(Arc<[Piece]>),
}

/// A piece of a body.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// A text, in memory.
    Text(Bytes),
    /// A file, which is opened anew for each attempt.
    File(PathBuf),
}

/// How much of a pipe is kept in memory.
const IN_MEMORY: usize = 1 << 20;

/// How much of a body is sent at a time.
const CHUNK: u64 = 64 << 10;

/// How much is kept on disk of what can be read only once.
const MOST: u64 = 64 << 30;

/// How much a file of the system's that is made as it is read has at most, as those in `/proc`.
const OF_SYSTEM: u64 = 64 << 20;

/// What such a file says at most that it has: nothing, or, in `/sys`, a page.
const OF_MADE: u64 = 64 << 10;

impl Body {
    /// The body that all `--data` together mean, if there are any. What has to be read now must end within `limit`.
    pub(super) fn resolve(data: &[String], limit: Option<Duration>) -> Result<Option<Body>, Fault> {
        match data {
            [] => Ok(None),
            [one] => Body::one(one, limit).map(Some),
            several if several.iter().any(|data| data.starts_with('@')) => {
                Err(Fault::new("a file or stdin is the whole body, and there are several --data")
                    .hint("texts can be joined, files cannot"))
            }
            several => Ok(Some(Body::Text(several.join("&").into()))),
        }
    }

    fn one(data: &str, limit: Option<Duration>) -> Result<Body, Fault> {
        match data.strip_prefix('@') {
            None => Ok(Body::Text(Bytes::copy_from_slice(data.as_bytes()))),
            Some("-") => within(limit, "standard input".into(), || keep(Waits(output::input()?))),
            Some(path) => {
                // Something empty stands in the place of one that is closed.
                if ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].contains(&path) {
                    output::input().map_err(|error| unreadable(path, &error))?;
                }
                from_path(Path::new(path), limit)
            }
        }
    }

    /// The body of one attempt, unless there is nothing in what was opened for it.
    pub(super) fn open(&self, unread: &Unread) -> Result<Option<reqwest::Body>, Fault> {
        let text = |text: &Bytes| Ok(Source::Text(text.clone()));
        let file = |path: &PathBuf| {
            let opened = regular::read(path).and_then(|file| Source::file(Arc::new(file)));
            opened.map_err(|error| unreadable(&path.to_string_lossy(), &error))
        };
        let sources: Result<VecDeque<Source>, Fault> = match self {
            Body::Text(whole) => [text(whole)].into_iter().collect(),
            Body::File(path) => [file(path)].into_iter().collect(),
            Body::Kept(kept) => {
                [Source::file(kept.clone()).map_err(|error| unreadable("the data", &error))].into_iter().collect()
            }
            Body::Form(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Text(piece) => text(piece),
                    Piece::File(path) => file(path),
                })
                .collect(),
        };
        let stream = Stream { sources: sources?, unread: unread.clone() };
        Ok((stream.left() > 0).then(|| reqwest::Body::wrap(stream)))
    }
}

fn from_path(path: &Path, limit: Option<Duration>) -> Result<Body, Fault> {
    let name = path.to_string_lossy().into_owned();
    let fault = |error: &io::Error| unreadable(&name, error);
    // What it is is asked of what was opened: others may put something else there at any time.
    let file = regular::read_anything(path).map_err(|error| fault(&error))?;
    let data = file.metadata().map_err(|error| fault(&error))?;
    if data.is_dir() {
        return Err(Fault::new(format!("cannot read {}: it is a folder", escape(&name))).hint(HINT));
    }
    if !data.is_file() {
        return within(limit, name, move || keep(regular::as_it_comes(file)?));
    }
    match Piece::of_file(path, &file) {
        Ok(Piece::Text(text)) => Ok(Body::Text(text)),
        Ok(Piece::File(path)) => Ok(Body::File(path)),
        Err(error) => Err(fault(&error)),
    }
}

impl Piece {
    /// What is sent of a regular file that was opened: it, anew for each attempt, or what is in it now, if it is one of the system's that
    /// is made as it is read, whose length nobody knows.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is one of the system's that is longer than they are.
    pub(super) fn of_file(path: &Path, file: &File) -> io::Result<Piece> {
        let length = file.metadata()?.len();
        let mut text = Vec::new();
        if length <= OF_MADE {
            file.take(OF_SYSTEM + 1).read_to_end(&mut text)?;
        }
        // One that has another length by now is no such file, and is being written.
        if length > OF_MADE || text.len() as u64 == length || file.metadata()?.len() != length {
            return Ok(Piece::File(path.to_owned()));
        }
        match text.len() as u64 > OF_SYSTEM {
            true => Err(io::Error::other(format!("it is longer than {}", Size(OF_SYSTEM)))),
            false => Ok(Piece::Text(text.into())),
        }
    }
}

/// Reads what others write, for as long as there is time: nobody may ever write to a pipe.
fn within(
    limit: Option<Duration>,
    name: String,
    read: impl FnOnce() -> io::Result<Body> + Send + 'static,
) -> Result<Body, Fault> {
    let Some(limit) = limit else { return read().map_err(|error| unreadable(&name, &error)) };
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let _ = sender.send(read());
    };
    thread::Builder::new().spawn(read).map_err(|error| unreadable(&name, &error))?;
    match receiver.recv_timeout(limit) {
        Ok(read) => read.map_err(|error| unreadable(&name, &error)),
        Err(_) => Err(Fault::new(format!(
            "out of time: {} has not ended within {:.1}",
            escape(&name),
            relent::duration::Human(limit)
        ))
        .exit(124)),
    }
}

const HINT: &str = "--data @FILE sends a file; --data '@text' is never a text";

fn unreadable(what: &str, error: &io::Error) -> Fault {
    Fault::new(format!("cannot read {}: {}", escape(what), crate::talk::plain(error))).hint(HINT).by(error)
}

/// Reads what can be read only once.
fn keep(mut pipe: impl Read) -> io::Result<Body> {
    let mut memory = Vec::new();
    pipe.by_ref().take(IN_MEMORY as u64 + 1).read_to_end(&mut memory)?;
    if memory.len() <= IN_MEMORY {
        return Ok(Body::Text(memory.into()));
    }
    let mut file = tempfile::tempfile()?;
    file.write_all(&memory)?;
    let more = io::copy(&mut pipe.by_ref().take(MOST - memory.len() as u64), &mut file)?;
    if pipe.read(&mut [0])? > 0 {
        return Err(io::Error::other(format!("it is longer than {}", Size(MOST))));
    }
    arrived::is_kept(&file, memory.len() as u64 + more)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Body::Kept(Arc::new(file)))
}

/// The data could not be read while it was sent: our side's failure, not the server's.
#[derive(Debug)]
struct DataError(io::Error);

/// Keeps that, since a client may make something else of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(Arc<Mutex<Option<Fault>>>);

impl Unread {
    /// What to tell the user, if the data could not be read.
    pub(super) fn take(&self) -> Option<Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, error: io::Error) -> DataError {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(unreadable("the data", &error));
        DataError(error)
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for DataError {}

/// What is read in turn, a piece at a time.
struct Stream {
    sources: VecDeque<Source>,
    unread: Unread,
}

/// One thing to read from.
enum Source {
    Text(Bytes),
    /// A file from its start to the length it had when the attempt began.
    File {
        file: Arc<File>,
        at: u64,
        length: u64,
    },
}

impl Source {
    fn file(file: Arc<File>) -> io::Result<Source> {
        let length = file.metadata()?.len();
        // A file of the system's that is made as it is read has no length; one that is filled at this moment has one by then.
        if length == 0 && file.read_at(&mut [0], 0)? > 0 && file.metadata()?.len() == 0 {
            return Err(io::Error::other("it has no length by now, and is made as it is read"));
        }
        Ok(Source::File { file, at: 0, length })
    }

    fn left(&self) -> u64 {
        match self {
            Source::Text(text) => text.len() as u64,
            Source::File { at, length, .. } => length.saturating_sub(*at),
        }
    }

    /// The next piece; empty at the end.
    fn next(&mut self) -> io::Result<Bytes> {
        let left = self.left();
        match self {
            Source::Text(text) => Ok(text.split_to(left.min(CHUNK) as usize)),
            Source::File { file, at, .. } => {
                let mut piece = vec![0; left.min(CHUNK) as usize];
                let read = file.read_at(&mut piece, *at)?;
                if read == 0 && left > 0 {
                    return Err(io::Error::other("the data file became shorter while it was sent"));
                }
                piece.truncate(read);
                *at += read as u64;
                Ok(piece.into())
            }
        }
    }
}

impl Stream {
    fn left(&self) -> u64 {
        self.sources.iter().map(Source::left).fold(0, u64::saturating_add)
    }

    fn next(&mut self) -> io::Result<Option<Bytes>> {
        while let Some(source) = self.sources.front_mut() {
            if source.left() > 0 {
                return source.next().map(Some);
            }
            self.sources.pop_front();
        }
        Ok(None)
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = DataError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, DataError>>> {
        // A file on disk answers at once; nothing else runs on this thread that it could hold up.
        let next = self.next().map_err(|error| self.unread.put(error));
        Poll::Ready(next.transpose().map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: Arc<File>) -> Vec<u8> {
        let mut stream = Stream { sources: [Source::file(file).unwrap()].into(), unread: Unread::default() };
        let mut all = Vec::new();
        while let Some(piece) = stream.next().unwrap() {
            assert!(piece.len() as u64 <= CHUNK);
            all.extend_from_slice(&piece);
        }
        assert_eq!(stream.left(), 0);
        all
    }

    #[test]
    fn a_small_pipe_is_kept_in_memory_and_a_large_one_on_disk() {
        assert!(matches!(keep(&b"small"[..]).unwrap(), Body::Text(text) if text == "small"));
        let large: Vec<u8> = (0..IN_MEMORY + 100_000).map(|i| (i % 251) as u8).collect();
        let Body::Kept(file) = keep(&large[..]).unwrap() else { panic!("kept in memory") };
        assert!(read(file.clone()) == large, "the first attempt");
        assert!(read(file) == large, "the second attempt");
    }

    #[test]
    fn what_is_not_kept_is_not_sent() {
        let large = vec![1; IN_MEMORY + 100_000];
        assert!(arrived::tests::refused(|| keep(&large[..])).is_err());
    }

    /// Whatever was there when somebody looked, and is there by now.
    #[test]
    fn what_was_opened_says_whether_it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (folder.path().join("data"), Path::new("/nowhere"));
        let hole = File::create_new(&path).unwrap();
        let is_file =
            |file: &File| matches!(Piece::of_file(elsewhere, file).unwrap(), Piece::File(path) if path == elsewhere);
        assert!(is_file(&File::open(&path).unwrap()), "there is nothing in it");
        hole.set_len(OF_SYSTEM + 1).unwrap();
        let mut opened = File::open(&path).unwrap();
        assert!(is_file(&opened) && opened.stream_position().unwrap() == 0, "nothing of it is read");
        if cfg!(target_os = "linux") {
            let version = std::fs::read("/proc/version").unwrap();
            let kept = Piece::of_file(elsewhere, &File::open("/proc/version").unwrap()).unwrap();
            assert!(matches!(kept, Piece::Text(text) if text == version));
        }
    }

    #[test]
    fn a_file_that_becomes_shorter_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(&[1; 100]).unwrap();
        let file = Arc::new(file);
        let mut stream = Stream { sources: [Source::file(file.clone()).unwrap()].into(), unread: Unread::default() };
        file.set_len(0).unwrap();
        assert!(stream.next().is_err());
    }
}
