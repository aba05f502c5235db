//! A systemd unit, and the drop-ins beside it (`UNIT.d/*.conf`) in the order in which they hold, as in systemd.
//!
//! Nobody has named the drop-ins, so they and their folder must belong to who owns the unit, to the caller or to root, and nobody else may
//! put others there; what does not, or cannot be read, is told of.

use crate::{
    access,
    links::Step,
    output, regular,
    talk::{Fault, HushArgs, plain},
    waits::Waits,
};
use std::{
    ffi::OsString,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// More than any unit is long.
const LONGEST: u64 = 1 << 20;

/// The most files that add to a unit.
const MOST: usize = 500;

/// Of how many ignored files each is told of.
const MOST_TOLD: usize = 10;

/// A file's name and text.
pub(super) type Named = (String, String);

/// Reads a unit (`-`: the standard input) and its drop-ins.
///
/// # Errors
///
/// The unit cannot be read, or it and what adds to it are too long or too many.
pub(super) fn read(path: &Path, hush: HushArgs) -> Result<(Named, Vec<Named>), Fault> {
    if path.as_os_str() == "-" {
        let name = "the standard input";
        let input = output::input().map_err(|error| unreadable(name, &error))?;
        let text = text(name, Waits(input), &mut { LONGEST })?;
        return Ok((("unit".to_owned(), text), Vec::new()));
    }
    let shown = path.display().to_string();
    let cannot = |error: io::Error| {
        Fault::new(format!("cannot read the unit {shown}: {}", plain(&error)))
            .hint("give the path of the file, or pipe `systemctl cat NAME` into --systemd -")
    };
    let named = regular::read_or_pipe(path).map_err(cannot)?;
    let owner = named.0.metadata().map_err(cannot)?.uid();
    let is_believed =
        |data: &Metadata| data.uid() == 0 || access::is_same(data.uid(), owner) || access::is_own(data.uid());
    let mut left = LONGEST;
    let unit = text(&shown, named, &mut left)?;
    let mut drop_ins = Vec::new();
    for path in beside(path, &is_believed, hush)
        .ok_or_else(|| Fault::new(format!("the unit {shown} has more than {MOST} drop-ins")))?
    {
        match open(&path, &is_believed) {
            Ok(file) => {
                let shown = path.display().to_string();
                let text = text(&shown, file, &mut left)?;
                drop_ins.push((shown, text));
            }
            Err(error) => hush.note(ignored("drop-in", &path, &error)),
        }
    }
    let name = path.file_name().map_or(shown, |name| name.to_string_lossy().into_owned());
    Ok(((name, unit), drop_ins))
}

/// The paths of the drop-ins, in order; what else lies there is told of. `None`: there are too many.
fn beside(unit: &Path, is_believed: &dyn Fn(&Metadata) -> bool, hush: HushArgs) -> Option<Vec<PathBuf>> {
    let mut folder = OsString::from(unit);
    folder.push(".d");
    let problem = fs::metadata(&folder).ok().and_then(|data| match is_believed(&data) {
        false => Some(not_ours()),
        true => access::is_open_to_others(&data, Path::new(&folder)).then(|| denied("others can write to it")),
    });
    if let Some(problem) = problem {
        hush.note(ignored("folder", Path::new(&folder), &problem));
        return Some(Vec::new());
    }
    let (mut paths, mut others, mut more) = (Vec::new(), Vec::new(), 0);
    for path in fs::read_dir(&folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_none_or(|extension| extension != "conf") {
            continue;
        }
        match open(&path, is_believed) {
            Ok(_) => paths.push(path),
            Err(error) if others.len() < MOST_TOLD => others.push(ignored("drop-in", &path, &error)),
            Err(_) => more += 1,
        }
        if paths.len() > MOST {
            return None;
        }
    }
    paths.sort();
    others.sort();
    others.into_iter().for_each(|other| hush.note(other));
    if more > 0 {
        hush.note(format!("so are {more} more in {}", folder.display()));
    }
    Some(paths)
}

/// Opens a drop-in, if it is to be believed.
fn open(path: &Path, is_believed: &dyn Fn(&Metadata) -> bool) -> io::Result<File> {
    let objects = |step: &Step<'_>| step.is_strange(is_believed).or_else(|| step.is_exchangeable(is_believed));
    let file = regular::read_unless(path, &objects)?;
    if is_believed(&file.metadata()?) { Ok(file) } else { Err(not_ours()) }
}

fn not_ours() -> io::Error {
    denied("it belongs to somebody else")
}

fn denied(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn ignored(what: &str, path: &Path, why: &io::Error) -> String {
    format!("the {what} {} is ignored: {}", path.display(), plain(why))
}

fn unreadable(name: &str, error: &io::Error) -> Fault {
    Fault::new(format!("cannot read the unit {name}: {}", plain(error)))
}

/// Reads no more than is `left` for the unit and all that is added to it.
fn text(name: &str, from: impl Read, left: &mut u64) -> Result<String, Fault> {
    let mut text = String::new();
    let read = from.take(*left + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(name, &error))?;
    *left = left.checked_sub(text.len() as u64).ok_or_else(|| {
        let added = if *left < LONGEST { ", with those before it," } else { "" };
        Fault::new(format!("the unit {name}{added} is longer than 1 MiB"))
    })?;
    Ok(text)
}
