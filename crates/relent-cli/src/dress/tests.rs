use super::*;
use crate::links;
use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{OpenOptionsExt, chown},
    path::{Path, PathBuf},
    thread,
};

/// A folder for one, of that user's. `None`, which is said: it takes root.
pub(crate) fn share(test: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let share = folder.path().join("share");
    fs::create_dir(&share).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    if chown(&share, Some(65_534), None).is_err() {
        eprintln!("SKIPPED {test}: it takes root");
        return None;
    }
    Some((folder, share))
}

/// Does something as on a share where whatever is made belongs to user 65534: all that this thread makes does. It takes root.
pub(crate) fn on_a_share<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let of_the_share = move || {
        nix::unistd::setfsuid(65_534.into());
        work()
    };
    thread::spawn(of_the_share).join().unwrap()
}

fn place(path: &Path) -> Place {
    links::to_write(path).unwrap().unwrap()
}

fn dressed(path: &Path) -> (bool, u32) {
    let dress = Dress::of(&place(path)).unwrap();
    let new = path.with_extension("new");
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).unwrap();
    dress.put_on(&file).unwrap();
    fs::remove_file(new).unwrap();
    (access::has_list(&file), file.metadata().unwrap().mode() & 0o777)
}

/// A new file gets a list from its folder.
#[test]
fn what_replaces_a_file_has_no_list_of_its_folder_nor_has_a_new_one_in_a_folder_like_tmp() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old");
    fs::write(&old, "old").unwrap();
    fs::set_permissions(&old, Permissions::from_mode(0o660)).unwrap();
    if let Err(error) = access::give_list_to_new(folder.path(), 7) {
        eprintln!(
            "SKIPPED what_replaces_a_file_has_no_list_of_its_folder_nor_has_a_new_one_in_a_folder_like_tmp: {error}"
        );
        return;
    }
    let of_new_ones = 0o666 & !access::mask();
    assert_eq!(dressed(&old), (false, 0o660));
    // As the system makes one there: of all but the owner it is the list that says.
    let made = folder.path().join("made");
    File::create(&made).unwrap();
    let as_made = fs::metadata(&made).unwrap().mode() & 0o777;
    assert_ne!(as_made, of_new_ones);
    assert_eq!(dressed(&folder.path().join("none")), (true, as_made));
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(dressed(&folder.path().join("none")), (false, of_new_ones));
}

/// Who shuts a file while it is downloaded anew has shut what comes in its place.
#[test]
fn what_was_shut_meanwhile_stays_shut() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
    fs::write(&old, "old").unwrap();
    let mode = |mode| fs::set_permissions(&old, Permissions::from_mode(mode)).unwrap();
    mode(0o664);
    let dress = Dress::of(&place(&old)).unwrap();
    let file = File::create(&new).unwrap();
    for (now, dressed) in [(0o600, 0o600), (0o640, 0o640), (0o666, 0o664), (0o460, 0o660)] {
        mode(now);
        dress.no_more_than(&old).put_on(&file).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, dressed, "{now:o}");
    }
    mode(0o664);
    if chown(&old, None, Some(12_345)).is_ok() {
        dress.no_more_than(&old).put_on(&file).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600, "it is another group's");
    }
    fs::remove_file(&old).unwrap();
    dress.no_more_than(&old).put_on(&file).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o664);
}

/// The list kept the group from more than reading; its mask is not the group's.
#[test]
fn what_an_access_list_allows_is_not_the_groups() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
    assert_eq!(dressed(&file).1, 0o664);
    if let Err(error) = access::give_list(&file, 6) {
        eprintln!("SKIPPED what_an_access_list_allows_is_not_the_groups: {error}");
        return;
    }
    assert_eq!(dressed(&file).1, 0o704);
    access::give_list(&file, 0).unwrap();
    assert_eq!(dressed(&file).1, 0o700, "who is named is shut out");
}

#[test]
fn what_a_share_says_of_a_new_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
    fs::write(&old, "old").unwrap();
    let (dress, of_new) = (Dress::of(&place(&old)).unwrap(), Dress::of(&place(&new)).unwrap());
    let file = File::create(&new).unwrap();
    fs::set_permissions(&new, Permissions::from_mode(0o770)).unwrap();
    let owner = file.metadata().unwrap().uid();
    if chown(&new, Some(65_533), None).is_err() {
        eprintln!("SKIPPED what_a_share_says_of_a_new_file_stays: it takes root");
        return;
    }
    let file = on_a_share(move || {
        of_new.put_on(&file).unwrap();
        assert!(dress.put_on(&file).is_err(), "it cannot be the owner's of the old one");
        file
    });
    assert_eq!((file.metadata().unwrap().mode() & 0o777, owner), (0o770, 0));
}

/// As on a share. It takes root to be somebody else.
#[test]
fn what_cannot_be_given_to_its_owner_stays_for_nobody_else() {
    let Some((_folder, share)) = share("what_cannot_be_given_to_its_owner_stays_for_nobody_else") else { return };
    let old = share.join("old");
    fs::write(&old, "old").unwrap();
    fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
    let dress = Dress::of(&place(&old)).unwrap();
    let new = share.join("new");
    let (dressed, made, file) = on_a_share(move || {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).unwrap();
        let made = file.metadata().unwrap();
        // A change that comes now is one of another time.
        thread::sleep(std::time::Duration::from_millis(20));
        (dress.put_on(&file), made, file)
    });
    assert!(dressed.is_err());
    let data = file.metadata().unwrap();
    assert_eq!((data.uid(), data.mode() & 0o777), (65_534, 0o600));
    let changed = |data: &Metadata| (data.ctime(), data.ctime_nsec());
    assert_eq!(changed(&data), changed(&made), "it was for nobody else meanwhile");
}

/// Who may give files away and not change those of others can dress one only before it is its owner's. It takes root to give that up.
#[test]
fn who_may_give_away_and_not_change_what_is_others_gives_it_dressed() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let test = "who_may_give_away_and_not_change_what_is_others_gives_it_dressed";
    let Some((_folder, share)) = share(test) else { return };
    let of_user = |name: &str, mode| {
        let old = share.join(name);
        fs::write(&old, "old").unwrap();
        chown(&old, Some(65_534), None).unwrap();
        fs::set_permissions(&old, Permissions::from_mode(mode)).unwrap();
        Dress::of(&place(&old)).unwrap()
    };
    let dresses = [of_user("all", 0o666), of_user("group", 0o664), of_user("read", 0o644)];
    let new = share.join("new");
    let dressed = thread::spawn(move || {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::FOWNER);
        set_capabilities(None, sets).unwrap();
        dresses.map(|dress| {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).unwrap();
            let is_well = dress.put_on(&file).is_ok();
            fs::remove_file(&new).unwrap();
            let now = file.metadata().unwrap();
            (is_well, now.uid(), now.mode() & 0o777)
        })
    });
    assert_eq!(dressed.join().unwrap(), [0o666, 0o664, 0o644].map(|mode| (true, 65_534, mode)));
}

/// As where gvfs or ntfs-3g has what is mounted; on a share of another system's, and `/sdcard`, to change them is forbidden.
#[test]
fn where_there_are_no_permissions_none_are_given_and_that_is_no_error() {
    let own = nix::unistd::geteuid().as_raw();
    let of_a_list = |error: Errno, owner| as_far_as_it_is_ours(Err(error.into()), owner).is_ok();
    assert!(unless_it_is_not_let(Ok(())).is_ok() && as_far_as_it_is_ours(Ok(()), own).is_ok());
    for (error, is_let) in [
        (Errno::EOPNOTSUPP, true),
        (Errno::ENOSYS, true),
        (Errno::EPERM, true),
        (Errno::EACCES, true),
        (Errno::EIO, false),
    ] {
        assert_eq!(
            (unless_it_is_not_let(Err(error.into())).is_ok(), of_a_list(error, own + 1)),
            (is_let, is_let),
            "{error}"
        );
        assert!(!of_a_list(error, own), "{error}: others could read ours");
    }
}

/// Nobody changes the permissions of what can only be added to. It takes root to make it that.
#[test]
fn what_keeps_its_permissions_is_as_it_was_made() {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
    let folder = tempfile::tempdir().unwrap();
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.path().join("new")).unwrap();
    let add = |is: bool| {
        let mut flags = ioctl_getflags(&file)?;
        flags.set(IFlags::APPEND, is);
        ioctl_setflags(&file, flags)
    };
    if let Err(error) = add(true) {
        eprintln!("SKIPPED what_keeps_its_permissions_is_as_it_was_made: it takes root: {error}");
        return;
    }
    let dress = Dress { mode: 0o644, of: None, has_no_list: false };
    let dressed = dress.put_on(&file);
    add(false).unwrap();
    assert!(!dressed.unwrap());
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    assert!(dress.put_on(&file).unwrap());
}

#[test]
fn what_a_share_gives_to_another_is_as_ones_own_there() {
    let Some((_folder, share)) = share("what_a_share_gives_to_another_is_as_ones_own_there") else { return };
    for (mode, is) in [(0o700, true), (0o1777, false)] {
        fs::set_permissions(&share, Permissions::from_mode(mode)).unwrap();
        let place = place(&share.join("file"));
        let owners = on_a_share(move || [65_534, 65_533].map(|owner| is_as_own(&place, owner)));
        assert_eq!(owners, [is, false], "{mode:o}");
    }
}

/// It takes root to give something away.
#[test]
fn what_belongs_to_another_is_not_as_ones_own_where_new_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(is_as_own(&place(&file), fs::metadata(&file).unwrap().uid()));
    if chown(&file, Some(65_534), None).is_err() {
        eprintln!("SKIPPED what_belongs_to_another_is_not_as_ones_own_where_new_files_are: it takes root");
        return;
    }
    assert!(!is_as_own(&place(&file), 65_534));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
