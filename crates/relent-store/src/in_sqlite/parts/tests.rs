use super::*;
use crate::{ErrorKind, in_sqlite::Sqlite};
use std::{
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::PathBuf,
};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn believing() -> SqliteSettings {
    SqliteSettings { any_owner: true, ..SqliteSettings::default() }
}

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files.collect();
    names.sort();
    names
}

#[test]
fn parts_are_there_before_sqlite_opens_them_where_others_may_write() {
    for (shared, are_made) in [(0o1777, true), (0o777, true), (0o1770, true), (0o755, false), (0o700, false)] {
        let folder = tempfile::tempdir().unwrap();
        mode(folder.path(), shared);
        let file = folder.path().join("state.db");
        let opened = crate::in_sqlite::opened::unread(&believing(), &file).unwrap();
        let all: &[&str] = match are_made {
            true => &["state.db", "state.db-journal", "state.db-shm", "state.db-wal"],
            false => &["state.db"],
        };
        assert_eq!(names(folder.path()), all, "{shared:o}");
        for name in all {
            let data = fs::symlink_metadata(folder.path().join(name)).unwrap();
            let of_it = (data.is_file(), data.mode() & 0o7777, data.nlink(), data.len());
            assert_eq!(of_it, (true, 0o600, 1, 0), "{shared:o}, {name}");
        }
        drop(opened);
        // It is as any store, and leaves nothing when it is closed.
        for _ in 0..2 {
            drop(believing().open(&file).unwrap());
            let again = Sqlite::open_url(&format!("sqlite:{}?owner=any&make=no", file.display())).unwrap();
            assert_eq!(names(folder.path()), ["state.db", "state.db-shm", "state.db-wal"], "{shared:o}");
            drop(again);
            assert_eq!(names(folder.path()), ["state.db"], "{shared:o}");
        }
    }
}

/// One that its group may not write to shuts out who may write to the file.
#[test]
fn parts_have_the_files_mode_whatever_the_mask_of_who_makes_them() {
    for of_file in [0o660, 0o666, 0o600, 0o640] {
        let folder = tempfile::tempdir().unwrap();
        mode(folder.path(), 0o777);
        let file = folder.path().join("state.db");
        drop(believing().open(&file).unwrap());
        mode(&file, of_file);
        drop(crate::in_sqlite::opened::unread(&believing(), &file).unwrap());
        for end in LOG {
            let data = fs::symlink_metadata(file::beside(&file, end)).unwrap();
            assert_eq!((data.mode() & 0o7777, data.len()), (of_file, 0), "{of_file:o}, {end}");
        }
    }
}

/// As containers and services have it that may give away, and not change what is somebody else's. It takes root.
#[test]
fn parts_that_are_given_to_the_files_owner_have_its_mode_and_list() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let folder = tempfile::tempdir().unwrap();
    mode(folder.path(), 0o777);
    let file = folder.path().join("state.db");
    drop(believing().open(&file).unwrap());
    if chown(&file, Some(65_534), Some(12_345)).is_err() {
        eprintln!("SKIPPED parts_that_are_given_to_the_files_owner_have_its_mode_and_list: it takes root");
        return;
    }
    let made = || {
        let without = || {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::FOWNER);
            set_capabilities(None, sets).unwrap();
            drop(crate::in_sqlite::opened::unread(&believing(), &file).unwrap());
        };
        std::thread::scope(|scope| scope.spawn(without).join().unwrap());
        [LOG[0], LOG[1]].map(|end| file::beside(&file, end))
    };
    for of_file in [0o660, 0o666, 0o640, 0o600] {
        mode(&file, of_file);
        for part in made() {
            let data = fs::metadata(&part).unwrap();
            assert_eq!((data.uid(), data.gid(), data.mode() & 0o7777), (65_534, 12_345, of_file), "{part:?}");
            fs::remove_file(part).unwrap();
        }
    }
    if let Err(error) = lists::tests::give(&file) {
        eprintln!("SKIPPED parts_that_are_given_to_the_files_owner_have_its_mode_and_list in part: {error}");
        return;
    }
    for part in made() {
        let data = fs::metadata(&part).unwrap();
        assert_eq!((data.uid(), data.gid(), lists::is_on(&part)), (65_534, 12_345, true), "{part:?}");
    }
}

/// Whoever laid it there can exchange it between a look and its opening. It takes root to give something away.
#[test]
fn no_part_of_a_strangers_is_used_where_others_may_write() {
    let folder = tempfile::tempdir().unwrap();
    mode(folder.path(), 0o1777);
    let file = folder.path().join("state.db");
    let laid = |end: &str| -> Option<PathBuf> {
        let part = file::beside(&file, end);
        fs::write(&part, "").unwrap();
        chown(&part, Some(65_534), None).ok().map(|()| part)
    };
    for end in [LOG, JOURNAL].concat() {
        let _ = fs::remove_file(&file);
        let Some(part) = laid(end) else {
            eprintln!("SKIPPED no_part_of_a_strangers_is_used_where_others_may_write: it takes root");
            return;
        };
        let error = believing().open(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{end}: {error}");
        assert!(error.to_string().ends_with(", a part of the store, belongs to a stranger, number 65534"), "{error}");
        // Who may write to the file may have made it.
        for of_file in [0o660, 0o606] {
            mode(&file, of_file);
            let opened = believing().open(&file);
            assert!(opened.is_ok(), "{end}, {of_file:o}: {opened:?}");
            drop(opened);
            let _ = laid(end);
        }
        mode(&file, 0o600);
        chown(&file, Some(65_534), None).unwrap();
        fs::remove_file(&part).unwrap();
        drop(crate::in_sqlite::opened::unread(&believing(), &file).unwrap());
        for end in LOG {
            let data = fs::symlink_metadata(file::beside(&file, end)).unwrap();
            assert_eq!((data.uid(), data.nlink(), data.len()), (65_534, 1, 0), "{end}: whose the file is");
        }
        assert!(believing().open(&file).is_ok(), "{end}, of the file's owner");
        let _ = fs::remove_file(&part);
    }
}

/// Whom it names may not use the store.
#[test]
fn parts_have_no_list_that_the_folder_gives_to_all_that_is_made_there() {
    for shared in [0o755, 0o777, 0o2771] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.db");
        drop(believing().open(&file).unwrap());
        mode(&file, 0o660);
        mode(folder.path(), shared);
        if let Err(error) = lists::tests::give_to_new(folder.path()) {
            eprintln!("SKIPPED parts_have_no_list_that_the_folder_gives_to_all_that_is_made_there: {error}");
            return;
        }
        let of = |end: &str| {
            let part = file::beside(&file, end);
            let list = rustix::fs::getxattr(&part, "system.posix_acl_access", &mut [0; 256][..]);
            (list.is_ok(), fs::metadata(&part).unwrap().mode() & 0o777)
        };
        let opened = crate::in_sqlite::opened::unread(&believing(), &file).unwrap();
        assert_eq!([LOG[0], LOG[1]].map(of), [(false, 0o660); 2], "{shared:o}");
        drop(opened);
        for end in LOG {
            fs::remove_file(file::beside(&file, end)).unwrap();
        }
        // SQLite has made them.
        let conn = rusqlite::Connection::open(&file).unwrap();
        let _: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!([LOG[0], LOG[1]].map(of), [(true, 0o660); 2], "{shared:o}");
        assert!(!are_well(&file, LOG, &Made(vec![])), "{shared:o}");
        drop(conn);
        let store = believing().open(&file).unwrap();
        assert_eq!([LOG[0], LOG[1]].map(of), [(false, 0o660); 2], "{shared:o}");
        drop(store);
        assert_eq!(names(folder.path()), ["state.db"], "{shared:o}");
    }
}

/// Whoever is in the folder's group, or in the caller's, may not read what is in the file. It takes root to give something away.
#[test]
fn the_log_of_a_file_of_another_group_is_for_nobody_whom_the_file_is_not_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    for (folders, of_folder) in [(0o2755, Some(54_321)), (0o755, None), (0o2711, Some(54_321))] {
        drop(believing().open(&file).unwrap());
        if chown(folder.path(), None, of_folder).and_then(|()| chown(&file, None, Some(12_345))).is_err() {
            eprintln!(
                "SKIPPED the_log_of_a_file_of_another_group_is_for_nobody_whom_the_file_is_not_for: it takes root"
            );
            return;
        }
        mode(folder.path(), folders);
        for of_file in [0o640, 0o660, 0o600, 0o644] {
            mode(&file, of_file);
            let of = |end: &str| {
                let data = fs::metadata(file::beside(&file, end)).unwrap();
                (data.gid(), data.mode() & 0o777)
            };
            let opened = crate::in_sqlite::opened::unread(&believing(), &file).unwrap();
            assert_eq!([LOG[0], LOG[1]].map(of), [(12_345, of_file); 2], "{folders:o} {of_file:o}");
            drop(opened);
            LOG.iter().for_each(|end| drop(fs::remove_file(file::beside(&file, end))));
        }
        fs::remove_file(&file).unwrap();
    }
}

/// Whose group it cannot be, it is for no group.
#[test]
fn a_part_that_does_not_get_the_files_group_is_for_no_other() {
    use rustix::{
        fs::{Mode, OFlags, open},
        thread::{CapabilitySet, capabilities, set_capabilities},
    };
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part");
    fs::write(&part, "").unwrap();
    let mut of_file = rustix::fs::stat(&part).unwrap();
    let of_part = of_file.st_gid;
    of_file.st_gid = 12_345;
    let mut given = move |mode: u32, of_part: u32| {
        of_file.st_mode = mode;
        let part = open(&part, OFlags::PATH, Mode::empty()).unwrap();
        give_group(&part, of_part, &of_file).as_raw_mode()
    };
    let without = move || {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::CHOWN);
        set_capabilities(None, sets).unwrap();
        let modes = [
            (0o640, 0o600),
            (0o660, 0o600),
            (0o644, 0o644),
            (0o664, 0o644),
            (0o666, 0o666),
            (0o604, 0o600),
            (0o646, 0o644),
        ];
        for (mode, left) in modes {
            assert_eq!((given(mode, of_part), given(mode, 12_345)), (left, mode), "{mode:o}");
        }
    };
    std::thread::scope(|scope| scope.spawn(without).join().unwrap());
}

/// SQLite takes whatever has the name for its log, and would give it to the file's owner and group, and what is empty the file's mode.
#[test]
fn what_others_have_given_the_logs_name_is_given_to_nobody() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("state.db");
    drop(believing().open(&file).unwrap());
    mode(folder.path(), 0o770);
    if chown(folder.path(), None, Some(12_345)).and_then(|()| chown(&file, None, Some(12_345))).is_err() {
        eprintln!("SKIPPED what_others_have_given_the_logs_name_is_given_to_nobody: it takes root");
        return;
    }
    mode(&file, 0o660);
    for end in [LOG, JOURNAL].concat() {
        let (path, part) = (home.path().join("private"), file::beside(&file, end));
        fs::write(&path, "private").unwrap();
        chown(&path, None, Some(54_321)).unwrap();
        mode(&path, 0o640);
        let private = fs::File::open(&path).unwrap();
        fs::rename(path, &part).unwrap();
        let store = believing().open(&file);
        let data = private.metadata().unwrap();
        assert_eq!((data.gid(), data.mode() & 0o777), (54_321, 0o640), "{end}: {store:?}");
        drop(store);
        let _ = fs::remove_file(part);
    }
}

/// SQLite makes it anew where somebody has closed the file, and removed it, after it was made. It takes root to give something away.
#[test]
fn a_log_that_sqlite_has_made_anew_is_made_by_us_when_nobody_else_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    drop(believing().open(&file).unwrap());
    mode(folder.path(), 0o770);
    if chown(&file, Some(65_534), Some(12_345)).is_err() {
        eprintln!("SKIPPED a_log_that_sqlite_has_made_anew_is_made_by_us_when_nobody_else_has_it: it takes root");
        return;
    }
    mode(&file, 0o660);
    let of = |end: &str| {
        let data = fs::metadata(file::beside(&file, end)).unwrap();
        (data.uid(), data.gid(), data.mode() & 0o777)
    };
    let made_by_sqlite = || {
        let conn = rusqlite::Connection::open(&file).unwrap();
        let read = || conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        let _: i64 = crate::in_sqlite::rights::kept(read);
        conn
    };
    let conn = made_by_sqlite();
    assert!(!are_well(&file, LOG, &Made(vec![])));
    // Who has it open keeps it.
    drop(believing().open(&file).unwrap());
    assert_eq!([LOG[0], LOG[1]].map(|end| of(end).0), [0; 2]);
    // What was left, and nobody has open, is made anew.
    let kept = LOG.iter().map(|end| (file::beside(&file, end), fs::read(file::beside(&file, end)).unwrap()));
    let kept: Vec<(PathBuf, Vec<u8>)> = kept.collect();
    drop(conn);
    kept.iter().for_each(|(part, bytes)| fs::write(part, bytes).unwrap());
    let store = believing().open(&file).unwrap();
    assert_eq!([LOG[0], LOG[1]].map(of), [(65_534, 12_345, 0o660); 2]);
    drop(store);
}

/// As on file systems that make none without a name.
#[test]
fn a_part_that_is_made_by_its_name_is_dressed_as_well() {
    use rustix::fs::{Mode, OFlags, open};
    let folder = tempfile::tempdir().unwrap();
    let opened = open(folder.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    for make in [place, place_by_name] {
        let dress = |there: &OwnedFd, of_part: &Stat| {
            assert_eq!((of_part.st_mode & 0o777, of_part.st_size), (0o600, 0));
            rustix::fs::chmodat(
                rustix::fs::CWD,
                lists::by_number(there),
                Mode::from_raw_mode(0o640),
                rustix::fs::AtFlags::empty(),
            )
            .unwrap();
        };
        let there = make(&opened, OsStr::new("part"), &dress).unwrap();
        let path = folder.path().join("part");
        assert_eq!((file::id_of(&there), fs::metadata(&path).unwrap().mode() & 0o777), (file::id(&path), 0o640));
        assert!(make(&opened, OsStr::new("part"), &dress).is_none(), "there is one");
        fs::remove_file(path).unwrap();
    }
}
