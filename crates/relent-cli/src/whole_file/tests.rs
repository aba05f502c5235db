use super::*;
use crate::arrived::tests::refused_for;
use std::{
    fs::OpenOptions,
    io::Read,
    os::unix::fs::{OpenOptionsExt, chown, symlink},
};

#[test]
fn a_file_for_others_takes_the_place_of_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "longer than what comes").unwrap();
    replace(&path, b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    replace(Path::new("/dev/null"), b"new").unwrap();
    assert!(replace(folder.path(), b"new").is_err());
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(replace(&pipe, b"new").unwrap_err().to_string(), "it is a named pipe that nobody reads");
    let mut reader = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(&pipe).unwrap();
    replace(&pipe, b"new").unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "new");
}

/// The new one is there at once and as a whole, with the rights of the old; who has the old one open still reads it.
#[test]
fn what_was_there_stays_until_the_new_one_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("a"), folder.path().join("link"));
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    symlink("a", &link).unwrap();
    let mut held = File::open(&path).unwrap();
    replace(&link, b"new").unwrap();
    let mut text = String::new();
    held.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), fs::read_to_string(&path).unwrap().as_str()), ("old", "new"));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    // One with two names stays one.
    fs::hard_link(&path, folder.path().join("b")).unwrap();
    replace(&path, b"both").unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("b")).unwrap(), "both");
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a", "b", "link"]);
}

/// It takes root to give something away.
#[test]
fn a_pipe_of_somebody_else_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _held = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    replace(&pipe, b"new").unwrap();
    if chown(&pipe, Some(65_534), None).is_err() {
        eprintln!("SKIPPED a_pipe_of_somebody_else_is_not_waited_for: it takes root");
        return;
    }
    assert_eq!(replace(&pipe, b"new").unwrap_err().to_string(), "it is a named pipe of somebody else's");
}

/// Whatever the folder gives to all that is made in it.
#[test]
#[cfg(target_os = "linux")]
fn what_takes_the_place_of_a_file_is_nobody_elses_either() {
    let folder = tempfile::tempdir().unwrap();
    let (path, set_group) = (folder.path().join("a"), folder.path().join("b"));
    let lets_in = |path: &Path| (access::path_has_list(path), fs::metadata(path).unwrap().mode() & 0o7777);
    for path in [&path, &set_group] {
        fs::write(path, "old").unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o660)).unwrap();
    }
    let own = fs::metadata(&path).unwrap().gid();
    if chown(folder.path(), None, Some(65_534)).is_err() {
        eprintln!("SKIPPED what_takes_the_place_of_a_file_is_nobody_elses_either in part: it takes root");
    }
    fs::set_permissions(folder.path(), Permissions::from_mode(0o2770)).unwrap();
    replace(&set_group, b"new").unwrap();
    assert_eq!(fs::metadata(&set_group).unwrap().gid(), own);
    if let Err(error) = access::give_list_to_new(folder.path(), 7) {
        eprintln!("SKIPPED what_takes_the_place_of_a_file_is_nobody_elses_either: {error}");
        return;
    }
    fs::write(folder.path().join("new"), "").unwrap();
    assert!(lets_in(&folder.path().join("new")).0, "what is new has one");
    replace(&path, b"new").unwrap();
    assert_eq!((lets_in(&path), fs::read_to_string(&path).unwrap()), ((false, 0o660), "new".into()));
}

fn texts(folder: &Path) -> Vec<(String, u32, String)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut all: Vec<_> = entries
        .map(|entry| {
            let mode = entry.metadata().unwrap().mode() & 0o7777;
            (entry.file_name().into_string().unwrap(), mode, fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_private_file_is_as_it_was_until_it_is_written_and_nobody_elses_after() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let one = |mode, text: &str| vec![("a".to_owned(), mode, text.to_owned())];
    let new = WholeFile::private(&path).unwrap();
    assert_eq!(texts(folder.path()), []);
    new.write(b"first").unwrap();
    assert_eq!(texts(folder.path()), one(0o600, "first"));
    for mode in [0o600, 0o644, 0o640, 0o4700] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        // Two runs at once end one after the other.
        let both = [WholeFile::private(&path).unwrap(), WholeFile::private(&path).unwrap()];
        assert_eq!(texts(folder.path()), one(mode, "first"));
        for (file, text) in both.into_iter().zip(["longer than the next", "first"]) {
            file.write(text.as_bytes()).unwrap();
            assert_eq!(texts(folder.path()), one(0o600, text), "{mode:o}");
        }
    }
    // One with two names stays one.
    fs::hard_link(&path, folder.path().join("b")).unwrap();
    WholeFile::private(&path).unwrap().write(b"both").unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("b")).unwrap(), "both");
}

/// In a folder where others could have brought it, and hold it open, as in any other.
#[test]
fn who_has_a_file_open_that_others_can_read_reads_nothing_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    for (folders, mode, is_private) in [
        (0o700, 0o644, true),
        (0o700, 0o640, true),
        (0o1777, 0o644, true),
        (0o1777, 0o640, true),
        (0o1777, 0o604, true),
        (0o1777, 0o600, false),
        (0o1777, 0o644, false),
        (0o1777, 0o666, false),
        (0o1777, 0o660, false),
    ] {
        fs::set_permissions(folder.path(), Permissions::from_mode(folders)).unwrap();
        for old in ["old", ""] {
            fs::write(&path, old).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let mut held = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            match is_private {
                true => WholeFile::private(&path).unwrap().write(b"new").unwrap(),
                false => replace(&path, b"new").unwrap(),
            }
            let mut text = String::new();
            held.read_to_string(&mut text).unwrap();
            held.write_all(b"forged").unwrap();
            let case = format!("{folders:o} {mode:o} {is_private}");
            assert_eq!((text.as_str(), fs::read_to_string(&path).unwrap().as_str()), (old, "new"), "{case}");
            let now = fs::metadata(&path).unwrap().mode() & 0o777;
            assert_eq!(now, if is_private { 0o600 } else { mode & !access::mask() }, "{case}");
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn what_is_no_file_gets_it_as_it_comes_or_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let refused = |path: &Path| WholeFile::private(path).unwrap_err().to_string();
    assert_eq!(refused(&pipe), "it is a named pipe that nobody reads");
    let _held = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    assert_eq!(refused(&pipe), "it is a named pipe, and no file");
    let socket = folder.path().join("socket");
    let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(refused(&socket), "it is a socket, and no file");
    assert!(refused(folder.path()).contains("directory"), "{}", refused(folder.path()));
    assert!(refused(&folder.path().join("none/a")).starts_with("No such file"));
    WholeFile::private(Path::new("/dev/null")).unwrap().write(b"text").unwrap();
}

/// A neighbour's may have come there meanwhile.
#[test]
fn what_is_not_ours_under_the_name_of_a_new_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (path, theirs) = (folder.path().join("a"), folder.path().join("theirs"));
    // A file takes the place of no folder.
    fs::create_dir(&path).unwrap();
    for (is_theirs, is_left) in [(true, true), (false, false)] {
        let place = links::to_write(&path).unwrap().unwrap();
        let new = NamedTempFile::new_in(folder.path()).unwrap();
        let own = new.path().to_owned();
        if is_theirs {
            fs::write(&theirs, "theirs").unwrap();
            fs::rename(&theirs, &own).unwrap();
        }
        put(&place, new).unwrap_err();
        assert_eq!(own.exists(), is_left);
    }
}

/// What this process has open is written to, though it is a pipe, and for as long as somebody reads that.
#[test]
#[cfg(target_os = "linux")]
fn what_is_open_here_is_written_to_where_it_stands() {
    use std::os::fd::AsRawFd;
    let (mut reader, writer) = io::pipe().unwrap();
    rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).expect("as the caller opens it");
    let way = format!("/dev/fd/{}", writer.as_raw_fd());
    WholeFile::private(Path::new(&way)).unwrap().write(b"text").unwrap();
    let mut text = [0; 4];
    reader.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"text");
    let unread = WholeFile::private(Path::new(&way)).unwrap().write(&[b'x'; 1 << 20]);
    assert_eq!(unread.unwrap_err().to_string(), "nobody reads it");
}

/// Of a file in which others have a say nothing is left that was no longer whole: it keeps its group, and what it held if there is no room.
#[test]
fn a_file_of_a_group_is_replaced_and_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
    if chown(&path, Some(65_534), Some(12_345)).is_err() {
        eprintln!("SKIPPED a_file_of_a_group_is_replaced_and_keeps_it: it takes root");
        return;
    }
    let mut held = File::open(&path).unwrap();
    replace(&path, b"new").unwrap();
    let (mut text, data) = (String::new(), fs::metadata(&path).unwrap());
    held.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), fs::read_to_string(&path).unwrap().as_str()), ("old", "new"));
    assert_eq!((data.uid(), data.gid(), data.mode() & 0o7777), (65_534, 12_345, 0o664));
}

/// One that others may have brought has the group of theirs.
#[test]
fn a_group_that_no_new_file_gets_may_do_no_more_than_everybody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    for (group, mode, now) in [(12_345, 0o660, 0o600), (12_345, 0o664, 0o644), (12_346, 0o640, 0o640)] {
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        if chown(folder.path(), None, Some(12_346)).and_then(|()| chown(&path, None, Some(group))).is_err() {
            eprintln!("SKIPPED a_group_that_no_new_file_gets_may_do_no_more_than_everybody: it takes root");
            return;
        }
        fs::set_permissions(folder.path(), Permissions::from_mode(0o3777)).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, now & !access::mask() | now & 0o600, "{mode:o}");
    }
}

/// A file that cannot be replaced is written over, and emptied before nobody knows what it is.
#[test]
fn what_stays_the_file_that_it_is_is_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["a", "b"].map(|name| folder.path().join(name));
    fs::write(&path, "longer than what comes").unwrap();
    fs::hard_link(&path, &other).unwrap();
    replace(&path, b"new").unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "new");
    replace(&path, b"longer than before").unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "longer than before");
    replace(&path, b"").unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "");
}

/// What somebody has put there since then, where nothing was, or a file, is theirs.
#[test]
fn nothing_that_came_meanwhile_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let of_somebody = |file: &Path| chown(file, Some(65_534), None).is_ok();
    for there in [None, Some("old")] {
        if let Some(old) = there {
            fs::write(&path, old).unwrap();
        }
        let new = WholeFile::private(&path).unwrap();
        let _ = fs::remove_file(&path);
        fs::create_dir(&path).unwrap();
        assert!(new.write(b"new").is_err());
        fs::remove_dir(&path).unwrap();
        if let Some(old) = there {
            fs::write(&path, old).unwrap();
        }
        let new = WholeFile::private(&path).unwrap();
        let _ = fs::remove_file(&path);
        fs::write(&path, "theirs").unwrap();
        if !of_somebody(&path) {
            eprintln!("SKIPPED nothing_that_came_meanwhile_is_overwritten in part: it takes root");
            return;
        }
        assert_eq!(new.write(b"new").unwrap_err().to_string(), "it is being moved");
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        fs::remove_file(&path).unwrap();
    }
}

/// Its file system took all of it, and says only at the end that there was no room.
#[test]
fn what_has_not_arrived_takes_the_place_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["a", "b"].map(|name| folder.path().join(name));
    let is_refused = |write: &dyn Fn() -> io::Result<()>| {
        for why in [io::ErrorKind::QuotaExceeded, io::ErrorKind::StaleNetworkFileHandle] {
            assert_eq!(refused_for(why, write).unwrap_err().kind(), why);
        }
    };
    let private = || WholeFile::private(&path)?.write(b"new");
    let public = || replace(&path, b"new");
    for write in [&private as &dyn Fn() -> _, &public] {
        is_refused(write);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    fs::write(&path, "old").unwrap();
    for write in [&private as &dyn Fn() -> _, &public] {
        is_refused(write);
        assert_eq!((texts(folder.path()).len(), fs::read_to_string(&path).unwrap()), (1, "old".into()));
    }
    // What stays the file that it is is neither the old nor the new one.
    fs::hard_link(&path, &other).unwrap();
    is_refused(&public);
    assert_eq!(fs::read_to_string(&other).unwrap(), "");
}

/// On a share whose files all belong to one user, that is nobody else.
#[test]
#[cfg(target_os = "linux")]
fn a_report_on_a_share_is_written_again() {
    let Some((_folder, share)) = dress::tests::share("a_report_on_a_share_is_written_again") else { return };
    let path = share.join("a");
    for text in ["first", "second"] {
        let path = path.clone();
        dress::tests::on_a_share(move || WholeFile::private(&path).unwrap().write(text.as_bytes()).unwrap());
        assert_eq!(texts(&share), [("a".to_owned(), 0o600, text.to_owned())]);
    }
    assert_eq!(fs::metadata(&path).unwrap().uid(), 65_534);
}

/// A signal has been heard: nothing else ends it then.
#[test]
fn after_a_signal_nobody_is_waited_for_who_does_not_read_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _held = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let refused = replace_after(true, &pipe, &[0; 1 << 20]).unwrap_err();
    assert_eq!((refused.kind(), refused.to_string()), (io::ErrorKind::TimedOut, "nobody reads it".into()));
    let file = folder.path().join("file");
    replace_after(true, &file, b"whole").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"whole");
}
