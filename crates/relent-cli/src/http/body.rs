//! Request bodies that can be sent again: a text from memory, a file read anew from disk for each attempt.
//!
//! What can be read only once (stdin, a pipe) is kept first, in memory up to a megabyte and on disk beyond that.

use crate::talk::Fault;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
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
}

/// How much of a pipe is kept in memory.
const IN_MEMORY: usize = 1 << 20;

/// How much of a file is read at a time.
const CHUNK: u64 = 64 << 10;

impl Body {
    /// The body that all `--data` together mean, if there are any.
    pub(super) fn resolve(data: &[String]) -> Result<Option<Body>, Fault> {
        match data {
            [] => Ok(None),
            [one] => Body::one(one).map(Some),
            several if several.iter().any(|data| data.starts_with('@')) => {
                Err(Fault::new("a file or stdin is the whole body, and there are several --data")
                    .hint("texts can be joined, files cannot"))
            }
            several => Ok(Some(Body::Text(several.join("&").into()))),
        }
    }

    fn one(data: &str) -> Result<Body, Fault> {
        match data.strip_prefix('@') {
            None => Ok(Body::Text(Bytes::copy_from_slice(data.as_bytes()))),
            Some("-") => keep(io::stdin().lock()).map_err(|error| unreadable("standard input", &error)),
            Some(path) => from_path(Path::new(path)),
        }
    }

    /// The body of one attempt.
    pub(super) fn open(&self) -> Result<reqwest::Body, Fault> {
        Ok(match self {
            Body::Text(text) => text.clone().into(),
            Body::File(path) => {
                let file = File::open(path).map_err(|error| unreadable(&path.display().to_string(), &error))?;
                reqwest::Body::wrap(Stream::of(Arc::new(file)).map_err(|error| unreadable("the data", &error))?)
            }
            Body::Kept(file) => {
                reqwest::Body::wrap(Stream::of(file.clone()).map_err(|error| unreadable("the data", &error))?)
            }
        })
    }
}

fn from_path(path: &Path) -> Result<Body, Fault> {
    let fault = |error: &io::Error| unreadable(&path.display().to_string(), error);
    let file = File::open(path).map_err(|error| fault(&error))?;
    let kind = file.metadata().map_err(|error| fault(&error))?;
    if kind.is_dir() {
        return Err(Fault::new(format!("cannot read {}: it is a folder", path.display())).hint(HINT));
    }
    if kind.is_file() {
        return Ok(Body::File(path.to_owned()));
    }
    keep(file).map_err(|error| fault(&error))
}

const HINT: &str = "--data @FILE sends a file; --data '@text' is never a text";

fn unreadable(what: &str, error: &io::Error) -> Fault {
    Fault::new(format!("cannot read {what}: {}", super::failure::plain(error))).hint(HINT)
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
    io::copy(&mut pipe, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Body::Kept(Arc::new(file)))
}

/// The data could not be read while it was sent: our side's failure, not the server's.
#[derive(Debug)]
pub(super) struct DataError(io::Error);

impl DataError {
    /// What to tell the user.
    pub(super) fn fault(&self) -> Fault {
        unreadable("the data", &self.0)
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for DataError {}

/// A file from its start to the length it had when the attempt began, a piece at a time.
struct Stream {
    file: Arc<File>,
    at: u64,
    length: u64,
}

impl Stream {
    fn of(file: Arc<File>) -> io::Result<Stream> {
        let length = file.metadata()?.len();
        Ok(Stream { file, at: 0, length })
    }

    fn left(&self) -> u64 {
        self.length.saturating_sub(self.at)
    }

    fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut piece = vec![0; self.left().min(CHUNK) as usize];
        if piece.is_empty() {
            return Ok(None);
        }
        let read = self.file.read_at(&mut piece, self.at)?;
        if read == 0 {
            return Err(io::Error::other("the data file became shorter while it was sent"));
        }
        piece.truncate(read);
        self.at += read as u64;
        Ok(Some(piece.into()))
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = DataError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, DataError>>> {
        // A file on disk answers at once; nothing else runs on this thread that it could hold up.
        Poll::Ready(self.next().transpose().map(|piece| piece.map(Frame::data).map_err(DataError)))
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
        let mut stream = Stream::of(file).unwrap();
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
    fn a_file_that_becomes_shorter_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(&[1; 100]).unwrap();
        let file = Arc::new(file);
        let mut stream = Stream::of(file.clone()).unwrap();
        file.set_len(0).unwrap();
        assert!(stream.next().is_err());
    }
}
