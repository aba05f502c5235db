//! Which store is meant: `--store`, or else `RELENT_STORE`, or else a file in the user's state folder.
//!
//! That file is the user's alone: its folder is made with mode 0700, and one that others can write to is not used.

use crate::{
    redact,
    talk::{Fault, plain},
};
use nix::unistd::geteuid;
use std::{
    borrow::Cow,
    env,
    ffi::OsString,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

/// The variable that names another store.
pub(crate) const VARIABLE: &str = "RELENT_STORE";

/// What stands for the file in the user's state folder; what is behind a `?` counts for it.
const DEFAULT: &str = "sqlite:";

/// The URL of the store that is meant. Makes the folder of the default one.
///
/// # Errors
///
/// There is no place for the default one, or others can write to it.
pub(crate) fn url(given: Option<&str>) -> Result<String, Fault> {
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
    let url = named.unwrap_or_else(|| DEFAULT.to_owned());
    let Some(query) = url.strip_prefix(DEFAULT).filter(|rest| rest.is_empty() || rest.starts_with('?')) else {
        return Ok(url);
    };
    let file = default_file(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"))?;
    prepare(file.parent().unwrap_or(Path::new("/")))?;
    match file.to_str().filter(|file| !file.contains('?')) {
        Some(file) => Ok(format!("{DEFAULT}{file}{query}")),
        None => Err(Fault::new("the path of your state folder cannot be a part of a URL")
            .hint("name another place: --store sqlite:FILE")),
    }
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
    Ok(state.ok_or_else(no_place)?.join("relent/state.db"))
}

/// Makes the folder, for its user alone, or says why the one that is there cannot be believed.
fn prepare(folder: &Path) -> Result<(), Fault> {
    let other = |problem: &str| {
        Fault::new(format!("the folder {} of your store: {problem}", folder.display()))
            .hint(format!("name another place: --store sqlite:FILE, or {VARIABLE}=sqlite:FILE"))
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| other(&format!("it cannot be made: {}", plain(&error))))?;
    let seen: io::Result<fs::Metadata> = fs::metadata(folder);
    let data = seen.map_err(|error| other(&plain(&error)))?;
    match data.mode() {
        _ if data.uid() != geteuid().as_raw() => Err(other("it belongs to somebody else")),
        mode if mode & 0o022 != 0 => Err(other("others can write to it")),
        _ => Ok(()),
    }
}

/// A store's URL as it is shown: without what lets others in.
pub(crate) fn shown(url: &str) -> Cow<'_, str> {
    match url.starts_with("sqlite:") || url.starts_with("memory:") {
        true => Cow::Borrowed(url),
        false => Cow::Owned(redact::url(url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(state: &str, home: &str) -> Result<String, Fault> {
        let some = |text: &str| Some(OsString::from(text)).filter(|text| !text.is_empty());
        default_file(some(state), some(home)).map(|path| path.display().to_string())
    }

    #[test]
    fn the_state_folder_is_the_users() {
        assert_eq!(file("/s", "/h").unwrap(), "/s/relent/state.db");
        assert_eq!(file("", "/h").unwrap(), "/h/.local/state/relent/state.db");
        assert_eq!(file("relative", "/h").unwrap(), "/h/.local/state/relent/state.db");
        assert!(file("", "").is_err() && file("s", "h").is_err());
    }

    #[test]
    fn a_folder_that_others_write_to_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("a/relent");
        prepare(&own).unwrap();
        assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(prepare(&own).is_err());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(prepare(&folder.path().join("file/relent")).is_err());
    }

    #[test]
    fn credentials_are_not_shown() {
        assert_eq!(shown("postgres://ann:pw@host/db?sslmode=off"), "postgres://***@host/db?sslmode=off");
        assert_eq!(shown("redis://:pw@host:6379/0"), "redis://***@host:6379/0");
        assert_eq!(shown("postgres://host/db?password=pw"), "postgres://host/db?password=***");
        assert_eq!(shown("sqlite:/home/a@b/state.db"), "sqlite:/home/a@b/state.db");
        assert!(!shown("redis:pw@host").contains("pw"));
    }
}
