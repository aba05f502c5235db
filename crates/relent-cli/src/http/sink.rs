//! Where the body goes: held back until it is complete, so that a failed attempt leaves nothing behind.
//!
//! For `-o FILE` it grows under a temporary name in the same folder and is renamed at the end. For stdout it is kept in
//! memory up to a megabyte and in a file without a name beyond that, so that a pipe never sees half a body, or two.

use crate::talk::{self, Fault};
use std::{
    fs::{self, Permissions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use tempfile::{NamedTempFile, SpooledTempFile};

/// What the flags say about where the body goes.
#[derive(Debug)]
pub(super) enum Output {
    /// To stdout.
    Stdout,
    /// To a file that is replaced when the body is complete.
    Replace {
        /// The file, links followed.
        target: PathBuf,
        /// The temporary file beside it.
        part: NamedTempFile,
    },
    /// Into something that cannot be replaced: a device, a pipe.
    Into(PathBuf),
}

/// A body that grows.
pub(super) struct Sink {
    output: Output,
    spool: SpooledTempFile,
    length: u64,
}

/// How much is kept in memory.
const IN_MEMORY: usize = 1 << 20;

impl Output {
    /// Finds out now whether the body can be written later.
    pub(super) fn prepare(path: Option<&Path>) -> Result<Output, Fault> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else { return Ok(Output::Stdout) };
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&target) {
            Ok(meta) if meta.is_dir() => Err(Fault::new(format!("cannot write to {}: it is a folder", path.display()))
                .hint("-o wants the name of a file")),
            Ok(meta) if !meta.is_file() => Ok(Output::Into(target)),
            Ok(meta) => Output::replace(target, Some(meta.permissions())),
            Err(_) => Output::replace(target, None),
        }
    }

    fn replace(target: PathBuf, permissions: Option<Permissions>) -> Result<Output, Fault> {
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let part = tempfile::Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".part")
            .permissions(permissions.unwrap_or_else(|| Permissions::from_mode(0o666)))
            .tempfile_in(folder)
            .map_err(|error| unwritable(&target, &error))?;
        Ok(Output::Replace { target, part })
    }
}

impl Sink {
    /// An empty body on its way to `output`.
    pub(super) fn new(output: Output) -> Sink {
        Sink { output, spool: SpooledTempFile::new(IN_MEMORY), length: 0 }
    }

    /// The bytes that are there.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Adds a piece.
    pub(super) fn write(&mut self, piece: &[u8]) -> Result<(), Fault> {
        let written = match &mut self.output {
            Output::Replace { part, .. } => part.write_all(piece),
            _ => self.spool.write_all(piece),
        };
        written.map_err(|error| self.fault(&error))?;
        self.length += piece.len() as u64;
        Ok(())
    }

    /// Forgets what is there.
    pub(super) fn clear(&mut self) -> Result<(), Fault> {
        let cleared = match &mut self.output {
            Output::Replace { part, .. } => part.as_file().set_len(0).and_then(|()| part.rewind()),
            _ => self.spool.set_len(0).and_then(|()| self.spool.rewind()),
        };
        cleared.map_err(|error| self.fault(&error))?;
        self.length = 0;
        Ok(())
    }

    /// The body is complete: puts it where it belongs.
    pub(super) fn finish(mut self) -> Result<(), Fault> {
        match self.output {
            Output::Stdout => to_stdout(&mut self.spool),
            Output::Replace { target, part } => {
                part.persist(&target).map(drop).map_err(|error| unwritable(&target, &error.error))
            }
            Output::Into(path) => into(&path, &mut self.spool).map_err(|error| unwritable(&path, &error)),
        }
    }

    /// A body that is no success: to stdout, whatever `-o` says.
    pub(super) fn finish_on_stdout(mut self) -> Result<(), Fault> {
        match &mut self.output {
            Output::Replace { part, .. } => to_stdout(part),
            _ => to_stdout(&mut self.spool),
        }
    }

    fn fault(&self, error: &io::Error) -> Fault {
        match &self.output {
            Output::Replace { target, .. } => unwritable(target, error),
            Output::Stdout | Output::Into(_) => unwritable(&std::env::temp_dir(), error),
        }
    }
}

fn to_stdout(body: &mut (impl Read + Seek)) -> Result<(), Fault> {
    let mut piece = vec![0; 64 << 10];
    let fault = |error: io::Error| Fault::new(format!("cannot read the body back: {}", super::failure::plain(&error)));
    body.seek(SeekFrom::Start(0)).map_err(fault)?;
    loop {
        match body.read(&mut piece).map_err(fault)? {
            0 => return Ok(()),
            read => talk::write_out(&piece[..read])?,
        }
    }
}

fn into(path: &Path, body: &mut (impl Read + Seek)) -> io::Result<()> {
    body.seek(SeekFrom::Start(0))?;
    let mut target = fs::OpenOptions::new().write(true).open(path)?;
    io::copy(body, &mut target)?;
    target.flush()
}

fn unwritable(path: &Path, error: &io::Error) -> Fault {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "make the folder first (mkdir -p)",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room, or choose another place with -o",
        _ => "choose another place with -o",
    };
    Fault::new(format!("cannot write to {}: {}", path.display(), super::failure::plain(error))).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink(path: &Path) -> Sink {
        Sink::new(Output::prepare(Some(path)).unwrap())
    }

    #[test]
    fn a_file_is_replaced_only_when_complete() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        let mut dropped = sink(&file);
        dropped.write(b"half").unwrap();
        drop(dropped);
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");

        let mut whole = sink(&file);
        whole.write(b"wrong").unwrap();
        whole.clear().unwrap();
        whole.write(b"ne").unwrap();
        whole.write(b"w").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        whole.finish().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn links_and_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut through = sink(&link);
        through.write(b"new").unwrap();
        through.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_device_is_written_into() {
        let mut null = sink(Path::new("/dev/null"));
        null.write(b"gone").unwrap();
        null.finish().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
