//! Who else decides about the file of a store: whoever owns a folder on the way there, or may write to one.
//!
//! They are believed where the URL says so (`owner=any`), and `relent store check` tells of them.

use crate::{access, links, talk::plain};
use std::{cell::RefCell, fs, io, os::unix::fs::MetadataExt, path::Path};

/// What there is to say of them.
pub(super) fn of_all(file: &Path) -> impl Iterator<Item = String> {
    of_a_folder(file).into_iter().chain(of_a_group(file))
}

/// That a folder on the way to a file is neither the caller's nor root's, or that nobody knows, for people. Folders that are not there
/// are not looked at.
fn of_a_folder(file: &Path) -> Option<String> {
    // Also those that links are in: of where these lead, their owners decide.
    let first = RefCell::new(None);
    let found = std::path::absolute(file).and_then(|file| {
        links::walk(&file, &|step| {
            let is_theirs = step.data.is_dir() && step.data.uid() != 0 && !access::is_own(step.data.uid());
            if is_theirs && first.borrow().is_none() {
                first.replace(Some(step.path.to_owned()));
            }
            None
        })
    });
    match (first.into_inner(), found) {
        (Some(folder), _) => Some(format!(
            "{} belongs to somebody else, who can take the store away, or put another in its place",
            folder.display()
        )),
        (None, Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            Some(format!("whose the folders on the way are cannot be found out: {}", plain(&error)))
        }
        (None, _) => None,
    }
}

/// That others than its owner, as a group or an access list, may write to a folder on the way to a file, and put another in the place of
/// what is in it, or may make something beside the file, since what SQLite puts there is believed as the file is; for people.
pub(super) fn of_a_group(file: &Path) -> Option<String> {
    let file = std::path::absolute(file).ok()?;
    let first = RefCell::new(None);
    // Also those that links are in, and that they lead through.
    let real = links::walk(&file, &|step| {
        let is_theirs = step.data.is_dir() && access::may_be_exchanged(step.data, step.path);
        if is_theirs && first.borrow().is_none() {
            first.replace(Some(step.path.to_owned()));
        }
        None
    });
    let real = real.ok().flatten().unwrap_or(file);
    let last = real.ancestors().skip(1).find_map(|folder| Some((folder, fs::metadata(folder).ok()?)));
    let last =
        last.filter(|(folder, data)| access::is_open_to_others(data, folder)).map(|(folder, _)| folder.to_owned());
    first.into_inner().or(last).map(|folder| {
        format!(
            "others may write to {}, who can take the store away, or put another in its place (chmod g-w, setfacl -b)",
            folder.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It takes root to give a folder to somebody.
    #[test]
    fn a_folder_of_somebody_else_on_the_way_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, file) = (folder.path().join("theirs"), folder.path().join("theirs/own/no/state.db"));
        fs::create_dir_all(theirs.join("own")).unwrap();
        assert_eq!(of_a_folder(&file), None);
        if std::os::unix::fs::chown(&theirs, Some(65_534), None).is_err() {
            eprintln!("SKIPPED a_folder_of_somebody_else_on_the_way_is_told_of: it takes root");
            return;
        }
        let told = of_a_folder(&file).unwrap();
        assert!(told.starts_with(&format!("{} belongs to somebody else", theirs.display())), "{told}");
        std::os::unix::fs::symlink(&theirs, folder.path().join("link")).unwrap();
        assert_eq!(of_a_folder(&folder.path().join("link/state.db")), Some(told));
        assert_eq!(of_a_folder(&folder.path().join("state.db")), None);
        // A link of theirs leads where they like.
        let own = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(own.path(), theirs.join("link")).unwrap();
        assert!(of_a_folder(&theirs.join("link/state.db")).is_some_and(|told| told.contains("theirs belongs")));
    }
}
