//! Where the body goes: held back until it is complete, so that a failed attempt leaves nothing behind.
//!
//! For `-o FILE` it grows under a temporary name in the same folder and is renamed at the end. For stdout it is kept in
//! memory up to a megabyte and in a file without a name beyond that, so that a pipe never sees half a body, or two.

use super::{
    most,
    part::{Bounds, Kept, Part, to_the_end},
    resume::Resume,
    target::{Found, Target, unwritable},
};
use crate::{
    arrived,
    breaks::without_messages_within,
    escape::{escape, escape_lines},
    output, screen,
    size::Size,
    talk::{self, Fault, plain},
    waits::Waits,
};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};
use tempfile::{SpooledData, SpooledTempFile};

/// What the flags say about where the body goes.
#[derive(Debug)]
pub(super) enum Output {
    /// To stdout; whether a body that is no text may go to a terminal.
    Stdout {
        /// `-o -` was given.
        anything: bool,
    },
    /// To a file that is replaced when the body is complete.
    Replace {
        /// What is there of it. It goes before its folder is closed.
        part: Part,
        /// The file.
        target: Target,
        /// How to go on with it.
        resume: Option<Box<Resume>>,
    },
    /// Into something that cannot be replaced: a device, a pipe.
    Into(File, PathBuf),
}

/// A body that grows, perhaps after a head.
pub(super) struct Sink {
    output: Output,
    spool: SpooledTempFile,
    head: u64,
    length: u64,
    most: Size,
    is_for_a_terminal: bool,
}

/// How it came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// All of it.
    Whole,
    /// Whoever read standard output went away.
    ReaderGone,
}

const STDOUT: &str = "standard output";

/// How much is kept in memory.
const IN_MEMORY: usize = 1 << 20;

impl Output {
    /// Finds out now whether the body can be written later. `goes_on` with the URL, as it may be written down, if what
    /// an earlier run left is to be used. In a folder that others may write to it is not: what is ours there, somebody else may have put together.
    pub(super) fn prepare(path: Option<&Path>, goes_on: Option<String>, bounds: &Bounds<'_>) -> Result<Output, Fault> {
        let Some(path) = path else { return Ok(Output::Stdout { anything: false }) };
        if path == Path::new("-") {
            return Ok(Output::Stdout { anything: true });
        }
        let target = match Target::find(path)? {
            Found::Special(file) => return Ok(Output::Into(file, path.to_owned())),
            Found::File(target) => target,
        };
        let kept = match goes_on {
            Some(source) if !target.is_open_to_others().map_err(|error| unwritable(path, &error))? => {
                Kept::find(&target, source, bounds)?
            }
            _ => None,
        };
        let (part, resume) = match kept {
            Some((part, resume)) => (Part::Kept(part), resume.map(Box::new)),
            None => (Part::passing(&target)?, None),
        };
        Ok(Output::Replace { target, part, resume })
    }

    /// Why a file is made anew, whatever is there of it, if it is.
    pub(super) fn begins_anew(&self) -> Option<&'static str> {
        let Output::Replace { part: Part::Passing(_), target, .. } = self else { return None };
        Some(match target.is_open_to_others() {
            Ok(false) => "what is made in this folder cannot be kept from others",
            _ => "in a folder that others may write to, what is there may be theirs",
        })
    }

    /// Whether the file's group will be another, and may do less. A file that cannot be what the old one was is an error now.
    pub(super) fn loses_its_group(&mut self) -> Result<bool, Fault> {
        let Output::Replace { target, part, .. } = self else { return Ok(false) };
        target.loses_its_group(part.file()).map_err(|error| unwritable(target.place.path(), &error))
    }

    /// How many columns the terminal has on which it is shown, which obeys what it is sent; `None` if none shows it.
    pub(super) fn columns(&self) -> Option<usize> {
        match self {
            Output::Stdout { .. } => screen::columns_of(io::stdout()),
            Output::Into(file, _) => screen::columns_of(file),
            Output::Replace { .. } => None,
        }
    }
}

impl Sink {
    /// A body on its way to `output`, which is no larger than `--max-size`, or than what the place takes where it grows.
    pub(super) fn new(mut output: Output, max_size: Option<Size>) -> Result<Sink, Fault> {
        let length = match &mut output {
            Output::Replace { target, part, .. } => {
                to_the_end(part.file()).map_err(|error| unwritable(target.place.path(), &error))?
            }
            _ => 0,
        };
        let is_for_a_terminal = !matches!(output, Output::Stdout { anything: true }) && output.columns().is_some();
        let most = max_size.unwrap_or(match output {
            Output::Replace { .. } => most::IN_A_PART,
            Output::Stdout { .. } | Output::Into(..) => most::KEPT,
        });
        Ok(Sink { output, spool: SpooledTempFile::new(IN_MEMORY), head: 0, length, most, is_for_a_terminal })
    }

    /// Whether a file waits for it, to be replaced.
    pub(super) fn is_for_a_file(&self) -> bool {
        matches!(self.output, Output::Replace { .. })
    }

    /// How to go on with what an earlier run left.
    pub(super) fn take_resume(&mut self) -> Option<Resume> {
        match &mut self.output {
            Output::Replace { resume, .. } => resume.take().map(|resume| *resume),
            _ => None,
        }
    }

    /// The largest body that it takes.
    pub(super) fn most(&self) -> Size {
        self.most
    }

    /// The bytes of the body that are there.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Adds a piece of the body.
    pub(super) fn write(&mut self, piece: &[u8]) -> Result<(), Fault> {
        if self.is_for_a_terminal && piece.contains(&0) {
            return Err(match &self.output {
                Output::Into(_, path) => no_text(&escape(&path.to_string_lossy())),
                _ => no_text(STDOUT),
            });
        }
        self.add(piece)?;
        self.length += piece.len() as u64;
        Ok(())
    }

    /// Adds a piece of what stands before the body.
    pub(super) fn write_head(&mut self, piece: &[u8]) -> Result<(), Fault> {
        self.add(piece)?;
        self.head += piece.len() as u64;
        Ok(())
    }

    fn add(&mut self, piece: &[u8]) -> Result<(), Fault> {
        let written = match &mut self.output {
            Output::Replace { part, .. } => part.file().write_all(piece),
            _ => self.spool.write_all(piece),
        };
        written.map_err(|error| self.fault(&error))
    }

    /// Forgets what is there.
    pub(super) fn clear(&mut self) -> Result<(), Fault> {
        self.is_part_of(None)?;
        let cleared = match &mut self.output {
            Output::Replace { part, .. } => part.file().set_len(0).and_then(|()| part.file().rewind()),
            _ => self.spool.set_len(0).and_then(|()| self.spool.rewind()),
        };
        cleared.map_err(|error| self.fault(&error))?;
        (self.head, self.length) = (0, 0);
        Ok(())
    }

    /// Forgets what follows so much of it.
    pub(super) fn cut(&mut self, length: u64) -> Result<(), Fault> {
        let cut = match &mut self.output {
            Output::Replace { part, .. } => {
                part.file().set_len(length).and_then(|()| to_the_end(part.file()).map(drop))
            }
            _ => self.spool.set_len(length).and_then(|()| self.spool.seek(SeekFrom::Start(length)).map(drop)),
        };
        cut.map_err(|error| self.fault(&error))?;
        self.length = length;
        Ok(())
    }

    /// The body that grows is a part of this, which a later run may go on with.
    pub(super) fn is_part_of(&mut self, resume: Option<&Resume>) -> Result<(), Fault> {
        match &mut self.output {
            Output::Replace { part: Part::Kept(part), .. } => part.is_part_of(resume),
            _ => Ok(()),
        }
    }

    /// Where the next run finds what is there, and how much that is.
    pub(super) fn left(&self) -> Option<(String, u64)> {
        match &self.output {
            Output::Replace { part: Part::Kept(part), .. } => part.left(),
            _ => None,
        }
    }

    /// The body is complete: puts it where it belongs.
    pub(super) fn finish(self) -> Result<Written, Fault> {
        let whole = self.head + self.length;
        match self.output {
            Output::Stdout { .. } => to_stdout(&mut read_back(self.spool, whole)?, None),
            Output::Replace { target, part, .. } => part.persist(&target).map(|()| Written::Whole),
            Output::Into(file, path) => into(&file, &mut read_back(self.spool, whole)?)
                .map(|()| Written::Whole)
                .map_err(|error| unwritable(&path, &error)),
        }
    }

    /// A body that is no success: what writes it to stdout, whatever `-o` says. That may wait for ever, and leaves nothing behind
    /// if it does. What was meant for a file may be no text for a terminal.
    pub(super) fn for_stdout(self) -> Result<impl FnOnce() -> Result<Written, Fault> + Send, Fault> {
        let was_for_a_file = !matches!(self.output, Output::Stdout { .. });
        let (head, whole) = (self.head, self.head + self.length);
        let mut body = match self.output {
            Output::Replace { target, part, .. } => {
                let file = part.into_file().and_then(|file| arrived::is_kept(&file, whole).map(|()| file));
                Box::new(file.map_err(|error| unwritable(target.place.path(), &error))?)
            }
            Output::Stdout { .. } | Output::Into(..) => read_back(self.spool, whole)?,
        };
        Ok(move || {
            let head = screen::columns_of(io::stdout()).filter(|_| was_for_a_file).map(|columns| (head, columns));
            to_stdout(&mut body, head)
        })
    }

    fn fault(&self, error: &io::Error) -> Fault {
        match &self.output {
            Output::Replace { target, .. } => unwritable(target.place.path(), error),
            Output::Stdout { .. } | Output::Into(..) => unwritable(&tempfile::env::temp_dir(), error),
        }
    }
}

/// What was kept, in memory or in a file.
trait Grown: Read + Seek + Send {}

impl<T: Read + Seek + Send> Grown for T {}

/// What was kept of a body, if all of its length is there.
fn read_back(spool: SpooledTempFile, length: u64) -> Result<Box<dyn Grown>, Fault> {
    match spool.into_inner() {
        SpooledData::InMemory(memory) => Ok(Box::new(memory)),
        SpooledData::OnDisk(file) => match arrived::is_kept(&file, length) {
            Ok(()) => Ok(Box::new(file)),
            Err(error) => Err(unwritable(&tempfile::env::temp_dir(), &error)),
        },
    }
}

/// Why a body is not shown.
fn no_text(what: &str) -> Fault {
    Fault::new(format!("the body is no text, and {what} is a terminal"))
        .hint("-o FILE keeps it, -o - shows it all the same")
}

/// Writes all of it to stdout. For a terminal that was not expected, the length of the `head` is told: nothing in that is
/// obeyed, and a body that is no text is not shown.
fn to_stdout(body: &mut (impl Read + Seek), head: Option<(u64, usize)>) -> Result<Written, Fault> {
    let mut piece = vec![0; 64 << 10];
    let fault = |error: io::Error| Fault::new(format!("cannot read the body back: {}", plain(&error)));
    body.seek(SeekFrom::Start(0)).map_err(fault)?;
    if let Some((length, columns)) = head {
        let mut head = Vec::new();
        body.by_ref().take(length).read_to_end(&mut head).map_err(fault)?;
        loop {
            match body.read(&mut piece).map_err(fault)? {
                0 => break,
                read if piece[..read].contains(&0) => return Err(no_text(STDOUT)),
                _ => {}
            }
        }
        body.seek(SeekFrom::Start(length)).map_err(fault)?;
        let head = String::from_utf8_lossy(&head);
        if print(without_messages_within(&escape_lines(&head), columns).as_bytes())? == Written::ReaderGone {
            return Ok(Written::ReaderGone);
        }
    }
    loop {
        match body.read(&mut piece).map_err(fault)? {
            0 => return output::has_arrived().map(|()| Written::Whole).map_err(|error| talk::unwritten(&error)),
            read => match print(&piece[..read])? {
                Written::Whole => {}
                gone => return Ok(gone),
            },
        }
    }
}

/// Writes to stdout.
pub(super) fn print(data: &[u8]) -> Result<Written, Fault> {
    if data.is_empty() {
        return Ok(Written::Whole);
    }
    match output::write(data) {
        Ok(()) => Ok(Written::Whole),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Written::ReaderGone),
        Err(error) => Err(talk::unwritten(&error)),
    }
}

fn into(target: &File, body: &mut (impl Read + Seek)) -> io::Result<()> {
    body.seek(SeekFrom::Start(0))?;
    io::copy(body, &mut Waits(target))?;
    arrived::check(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ear::Ear;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    fn output(path: &Path) -> Output {
        let bounds = Bounds { ear: &Ear::default(), ends: None, max_size: None };
        Output::prepare(Some(path), None, &bounds).unwrap()
    }

    fn sink(path: &Path) -> Sink {
        Sink::new(output(path), None).unwrap()
    }

    /// What grows in the folder for temporary files is no file of the user's, whatever `-o` says.
    #[test]
    fn the_largest_body_is_what_the_place_takes_where_it_grows() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let all = || [output(&file), output(Path::new("/dev/null")), Output::Stdout { anything: false }];
        let most = |max_size| all().map(|output| Sink::new(output, max_size).unwrap().most().0);
        assert_eq!(most(None), [64 << 30, 1 << 30, 1 << 30]);
        assert_eq!(most(Some(Size(2 << 30))), [2 << 30; 3]);
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

    /// Its file system took all of it, and says only at the end that there was no room.
    #[test]
    fn what_is_written_into_or_to_standard_output_has_arrived_or_is_an_error() {
        let into = sink(Path::new("/dev/null"));
        let to_stdout = Sink::new(Output::Stdout { anything: false }, None).unwrap();
        for (sink, what) in [(into, "/dev/null"), (to_stdout, STDOUT)] {
            let fault = arrived::tests::refused(|| sink.finish()).unwrap_err().shown().0;
            assert_eq!(fault, format!("cannot write to {what}: quota exceeded"));
        }
    }

    #[test]
    fn a_device_is_written_into() {
        let mut null = sink(Path::new("/dev/null"));
        null.write(b"gone").unwrap();
        null.finish().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
