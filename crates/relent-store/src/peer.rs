//! Who is at the other end of a socket of this machine.
//!
//! Where everybody may make something, as in `/tmp`, anybody can wait in the place of a server that is not up, or not yet: who asks there would
//! tell them the password, and believe their answers. The system knows whose process it is.

use crate::{Error, ErrorKind, numbers};
use rustix::process::geteuid;
use std::{
    ffi::OsString,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};
use tokio::net::UnixStream;

/// Whether who listens at the other end of a connection to this socket is the caller, root, or whoever owns the folder that it is in. It is to
/// be asked before anything is sent.
///
/// # Errors
///
/// [`ErrorKind::Refused`]: it is somebody else. [`ErrorKind::Unavailable`]: nobody is there any more.
pub(crate) fn check(stream: &UnixStream, socket: &Path) -> Result<(), Error> {
    let unavailable = |_| Error::new(ErrorKind::Unavailable, "nobody listens on the store's socket any more");
    let peer = stream.peer_cred().map_err(unavailable)?.uid();
    if is_believed(peer, socket.parent().unwrap_or(Path::new("/"))) {
        return Ok(());
    }
    let what = format!("on the store's socket another user listens, number {peer}, who does not own its folder");
    Err(Error::new(ErrorKind::Refused, what))
}

fn is_believed(peer: u32, folder: &Path) -> bool {
    let ours = geteuid().as_raw();
    peer == 0
        || (numbers::is_known("uid", peer)
            && (peer == ours || owner(folder, ours).is_ok_and(|owner| owner == Some(peer))))
}

/// Who owns the folder that a path leads to, if nobody can have put there another who owns no folder on the way.
fn owner(folder: &Path, ours: u32) -> io::Result<Option<u32>> {
    /// As many links as the system follows.
    const MOST: u32 = 40;
    let parts = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|part: Component<'_>| part.as_os_str().to_owned()).collect()
    };
    let (mut here, mut left, mut links) = (PathBuf::from("/"), parts(&std::path::absolute(folder)?), 0);
    while let Some(part) = left.pop() {
        let next = match part.to_str() {
            Some("..") => here.parent().unwrap_or(Path::new("/")).to_owned(),
            _ => here.join(part),
        };
        let data = fs::symlink_metadata(&next)?;
        if !here.starts_with(&next) && may_be_another(&fs::metadata(&here)?, &data, ours) {
            return Ok(None);
        }
        if !data.is_symlink() {
            here = next;
            continue;
        }
        links += 1;
        if links > MOST {
            return Ok(None);
        }
        left.extend(parts(&fs::read_link(next)?));
    }
    fs::metadata(here).map(|data| Some(data.uid()))
}

/// Whether anybody may have made what is in a folder: where others can write, only what is the caller's, root's or the folder's owner's stays
/// where it is, and that if it is like `/tmp`.
fn may_be_another(folder: &Metadata, data: &Metadata, ours: u32) -> bool {
    let is_sticky = folder.mode() & 0o1000 != 0;
    let is_theirs = ![0, ours, folder.uid()].contains(&data.uid()) || !numbers::is_known("uid", data.uid());
    folder.mode() & 0o022 != 0 && (!is_sticky || is_theirs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::Permissions,
        os::unix::fs::{PermissionsExt, chown, symlink},
    };

    const OTHER: u32 = 65534;

    #[test]
    fn another_user_is_believed_in_a_folder_of_its_own_alone() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str, owner: u32, mode: u32| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            chown(&path, Some(owner), None).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        let (shared, open) = (make("shared", 0, 0o1777), make("open", 0, 0o777));
        let own = make("own", OTHER, 0o2775);
        symlink(&own, place.path().join("link")).unwrap();
        symlink(&own, shared.join("roots")).unwrap();
        symlink("../own", shared.join("theirs")).unwrap();
        std::os::unix::fs::lchown(shared.join("theirs"), Some(OTHER), None).unwrap();
        symlink("loop", place.path().join("loop")).unwrap();
        let nested =
            [make("shared/made", OTHER, 0o755), make("shared/given", 0, 0o755), make("open/made", OTHER, 0o755)];
        for (folder, is) in [
            (own.clone(), true),
            (place.path().join("link"), true),
            (shared.join("roots"), true),
            (shared.join("../own/."), true),
            (shared.clone(), false),
            (open, false),
            (shared.join("theirs"), false),
            (nested[0].clone(), false),
            (nested[1].clone(), false),
            (nested[2].clone(), false),
            (place.path().join("loop"), false),
            (place.path().join("none"), false),
        ] {
            assert_eq!(is_believed(OTHER, &folder), is, "{}", folder.display());
            assert!(is_believed(0, &folder) && !is_believed(OTHER - 1, &folder));
        }
        chown(&nested[1], Some(OTHER), None).unwrap();
        assert!(!is_believed(OTHER, &nested[1]), "whose it is, not who made it");
    }
}
