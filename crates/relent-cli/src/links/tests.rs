use super::*;
use crate::whole_file::{self, WholeFile};
use std::{
    os::{
        fd::AsRawFd,
        unix::fs::{PermissionsExt, chown, lchown, symlink},
    },
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

#[test]
fn a_way_is_followed_as_the_system_does() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/file"), "").unwrap();
    symlink("a/../a/b", root.join("short")).unwrap();
    symlink(root.join("short/new"), root.join("dangling")).unwrap();
    symlink("round", root.join("round")).unwrap();
    let to = |path: &str| to_write(&root.join(path)).map(|place| place.unwrap().path);
    let at = |path: &Path| to_write(path).map(|place| place.map(|place| place.path));
    assert_eq!(to("short/file").unwrap(), root.join("a/b/file"));
    assert_eq!(to("short/./../b/file").unwrap(), root.join("a/b/file"));
    assert_eq!(to("dangling").unwrap(), root.join("a/b/new"));
    assert_eq!(to("new").unwrap(), root.join("new"));
    assert_eq!(to("no/new").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(to("round").unwrap_err().to_string(), "too many links lead to it");
    for same in ["/dev/null", "Cargo.toml", "./src/../Cargo.toml"] {
        assert_eq!(at(Path::new(same)).unwrap(), Some(PathBuf::from(same)));
    }
    for no_path in ["/dev/stdout", "/proc/self/fd/1", "/proc/self/comm"] {
        assert_eq!(at(Path::new(no_path)).unwrap(), None);
    }
    assert_eq!(to("new/").unwrap_err().raw_os_error(), Some(nix::libc::EISDIR));
    assert_eq!(to("short/file/").unwrap_err().raw_os_error(), Some(nix::libc::ENOTDIR));
    assert!(to("short/").is_ok());
    let above = to_write(Path::new("/proc/self/cwd/../relent-cli/Cargo.toml")).unwrap().unwrap();
    assert!(is_one(above.found().unwrap(), &fs::metadata("Cargo.toml").unwrap()));
    let behind = Path::new("/proc/self/cwd/src/../Cargo.toml");
    assert_eq!(at(behind).unwrap(), Some(behind.to_owned()));
    assert_eq!(at(Path::new("/proc/self/cwd/no/new")).unwrap_err().kind(), io::ErrorKind::NotFound);
}

/// As when somebody moves it, or what is above it.
#[test]
fn a_working_folder_that_is_not_where_it_was_is_none() {
    let folder = tempfile::tempdir().unwrap();
    assert!(way_here(folder.path(), false, &|_| None).is_ok());
    let error = way_here(&folder.path().join("gone/here"), false, &|_| None).unwrap_err();
    assert_eq!((error.kind(), error.raw_os_error()), (io::ErrorKind::NotFound, None), "{error}");
}

/// It takes root to give something away. No setting of the system has to protect links.
#[test]
fn what_a_neighbour_left_in_a_shared_folder_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let (own, at) = (tempfile::tempdir().unwrap(), |name: &str| folder.path().join(name));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let victim = own.path().join("victim");
    fs::write(&victim, "old").unwrap();
    fs::write(at("theirs"), "theirs").unwrap();
    for (name, target) in [("link", &victim), ("folder", &own.path().to_owned()), ("nowhere", &own.path().join("x"))] {
        symlink(target, at(name)).unwrap();
        if lchown(at(name), Some(65_534), Some(65_534)).is_err() {
            eprintln!("SKIPPED what_a_neighbour_left_in_a_shared_folder_is_not_written_to: it takes root");
            return;
        }
    }
    chown(at("theirs"), Some(65_534), Some(65_534)).unwrap();
    for name in ["link", "folder/victim", "nowhere", "theirs"] {
        let refused = to_write(&at(name)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{name}: {refused}");
        assert!(WholeFile::private(&at(name)).and_then(|file| file.write(b"new")).is_err(), "{name}");
        assert!(whole_file::replace(&at(name), b"new").is_err(), "{name}");
    }
    assert!(made(&at("folder/new/er")).is_err());
    // Whoever owns a folder makes links in it that the system follows for everybody.
    fs::create_dir(at("pics")).unwrap();
    symlink(&victim, at("pics/plot.svg")).unwrap();
    chown(at("pics"), Some(65_534), Some(65_534)).unwrap();
    assert!(to_write(&at("pics/plot.svg")).is_err() && to_write(&at("pics/new.svg")).is_err());
    assert!(made(&at("pics")).is_err() && made(&at("pics/new")).is_err());
    assert!(whole_file::replace(&at("pics/plot.svg"), b"new").is_err());
    assert!(made(&at("new/er")).is_ok() && made(&at("new/../new/er/est")).is_ok() && at("new/er/est").is_dir());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
    assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "theirs");
    assert!(!own.path().join("x").exists());
    // Nor by the way of a process.
    let behind = |name: &str| Path::new("/proc/self/root").join(at(name).strip_prefix("/").unwrap());
    for name in ["link", "folder/victim", "nowhere", "theirs"] {
        assert!(to_write(&behind(name)).is_err(), "{name}");
    }
    assert_eq!(to_write(&behind("new")).unwrap().unwrap().path, behind("new"));
    // A link of one's own, and one in a folder that is not shared, is followed.
    symlink(&victim, at("mine")).unwrap();
    assert!(to_write(&at("mine")).is_ok());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(to_write(&at("link")).is_ok());
}

/// What a process has open or stands in has a way there, about which is asked as about any. It takes root to give something away.
#[test]
#[cfg(target_os = "linux")]
fn behind_a_link_of_a_process_the_way_there_is_asked_about() {
    let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let [sub, deep] = ["sub", "sub/deep"].map(|name| folder.path().join(name));
    fs::create_dir_all(&deep).unwrap();
    fs::write(own.path().join("victim"), "old").unwrap();
    symlink(own.path().join("victim"), sub.join("x")).unwrap();
    let [at_sub, at_deep] = [&sub, &deep].map(|folder| File::open(folder).unwrap());
    let ways = |open: &File, rest: &str| {
        let number = open.as_raw_fd();
        ["/proc/self/fd", "/dev/fd", "/proc/thread-self/fd"].map(|fds| PathBuf::from(format!("{fds}/{number}/{rest}")))
    };
    let all = || ways(&at_sub, "x").into_iter().chain(ways(&at_deep, "../x")).chain(ways(&at_sub, "new"));
    for way in all() {
        assert_eq!(to_write(&way).unwrap().unwrap().path.exists(), !way.ends_with("new"), "{}", way.display());
    }
    if lchown(&sub, Some(65_534), Some(65_534)).is_err() {
        eprintln!("SKIPPED behind_a_link_of_a_process_the_way_there_is_asked_about: it takes root");
        return;
    }
    for way in all() {
        let refused = to_write(&way).unwrap_err().to_string();
        assert!(refused.starts_with("the folder belongs to somebody else"), "{}: {refused}", way.display());
    }
    for way in ways(&at_sub, "made/here") {
        assert!(made(&way).is_err() && !sub.join("made").exists(), "{}", way.display());
    }
    lchown(&sub, Some(0), Some(0)).unwrap();
    made(&ways(&at_sub, "made/here")[0]).unwrap();
    assert!(sub.join("made/here").is_dir());
    fs::remove_dir(&deep).unwrap();
    for way in ways(&at_deep, "new") {
        assert!(to_write(&way).unwrap_err().to_string().contains("has no path here"));
    }
}

fn made(folder: &Path) -> io::Result<()> {
    make_folders(folder, Mode::from_raw_mode(0o700), &to_write)
}

/// A folder is the neighbour's own, and the link in it: the system follows that, since the folder's owner made it.
#[test]
fn a_link_of_who_owns_a_shared_folder_is_not_written_through() {
    let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let (link, victim) = (shared.join("link"), own.path().join("victim"));
    fs::write(&victim, "old").unwrap();
    symlink(&victim, &link).unwrap();
    let nobody = Some(65_534);
    if lchown(&link, nobody, nobody).is_err() {
        eprintln!("SKIPPED a_link_of_who_owns_a_shared_folder_is_not_written_through: it takes root");
        return;
    }
    chown(&shared, nobody, nobody).unwrap();
    assert!(WholeFile::private(&link).and_then(|file| file.write(b"new")).is_err());
    assert!(whole_file::replace(&link, b"new").is_err());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
    assert!(to_write(&shared.join("new")).is_ok());
}

/// Whoever owns a folder like `/tmp` moves there what belongs to others, too, and into the place of what was made a moment ago.
#[test]
fn a_folder_that_took_the_place_of_a_new_one_is_opened_up_for_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let [shared, other] = ["shared", "other"].map(|name| folder.path().join(name));
    fs::create_dir(&other).unwrap();
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let most = |mode| {
        fs::set_permissions(&other, fs::Permissions::from_mode(mode)).unwrap();
        most_of(&File::open(&other).unwrap(), &fs::metadata(&shared).unwrap()).unwrap()
    };
    assert_eq!(most(0o700), 0o777, "nobody else moves what is ours");
    if chown(&shared, Some(65_534), Some(65_534)).is_err() {
        eprintln!("SKIPPED a_folder_that_took_the_place_of_a_new_one_is_opened_up_for_nobody: it takes root");
        return;
    }
    assert_eq!([0o700, 0o750, 0o755, 0o2770].map(most), [0o700, 0o750, 0o755, 0o770]);
    let new = shared.join("new");
    make_folders(&new, Mode::from_raw_mode(0o777), &to_write).unwrap();
    assert_eq!(fs::metadata(&new).unwrap().mode() & 0o7777, 0o777 & !access::mask());
    #[cfg(target_os = "linux")]
    match access::give_list(&other, 7) {
        // What stands in the group's place is the most for all whom the list names then.
        Ok(()) => assert_eq!(most(0o770), 0o700),
        Err(error) => eprintln!("SKIPPED a folder with a list: the temporary folder takes none: {error}"),
    }
}

/// What is done again and again while a neighbour, however quick, exchanges what is there.
fn in_spite_of(exchange: impl Fn() + Sync, work: impl Fn()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                exchange();
            }
        });
        (0..2_000).for_each(|_| work());
        is_over.store(true, Relaxed);
    });
}

/// A shared folder in one of ours, in it a neighbour's link to a victim that is ours.
fn trap(what: &str, victim: &Path) -> Option<(tempfile::TempDir, PathBuf)> {
    let own = tempfile::tempdir().unwrap();
    let folder = own.path().join("shared");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
    symlink(victim, folder.join("hidden")).unwrap();
    if lchown(folder.join("hidden"), Some(65_534), Some(65_534)).is_err() {
        eprintln!("SKIPPED {what}: it takes root");
        return None;
    }
    Some((own, folder))
}

#[test]
fn no_folder_is_made_through_a_link_that_comes_and_goes() {
    let victim = tempfile::tempdir().unwrap();
    let what = "no_folder_is_made_through_a_link_that_comes_and_goes";
    let Some((_own, folder)) = trap(what, victim.path()) else { return };
    let (link, hidden) = (folder.join("there"), folder.join("hidden"));
    let exchange = || {
        // Where a folder was made it stands in the link's way.
        let _ = fs::remove_dir(link.join("new")).and_then(|()| fs::remove_dir(&link));
        if fs::rename(&hidden, &link).is_ok() {
            fs::rename(&link, &hidden).unwrap();
        }
    };
    in_spite_of(exchange, || drop(made(&link.join("new"))));
    assert_eq!(fs::read_dir(victim.path()).unwrap().count(), 0);
}

#[test]
fn a_link_that_comes_and_goes_is_not_written_through() {
    let own = tempfile::tempdir().unwrap();
    let victim = own.path().join("victim");
    fs::write(&victim, "old").unwrap();
    let what = "a_link_that_comes_and_goes_is_not_written_through";
    let Some((_own, folder)) = trap(what, &victim) else { return };
    let (report, hidden) = (folder.join("report"), folder.join("hidden"));
    let exchange = || {
        fs::rename(&hidden, &report).unwrap();
        fs::rename(&report, &hidden).unwrap();
        let _ = fs::remove_file(&report);
    };
    in_spite_of(exchange, || {
        let _ = whole_file::replace(&report, b"new");
        let _ = WholeFile::private(&report).and_then(|file| file.write(b"new"));
    });
    assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
}

/// Who owns a sticky folder can move what is in it, however quickly.
#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_becomes_a_link_is_not_written_through() {
    use rustix::fs::{RenameFlags, renameat_with};
    let victim = tempfile::tempdir().unwrap();
    fs::write(victim.path().join("out"), "old").unwrap();
    let what = "a_folder_that_becomes_a_link_is_not_written_through";
    let Some((_own, folder)) = trap(what, victim.path()) else { return };
    let (sub, hidden) = (folder.join("sub"), folder.join("hidden"));
    fs::create_dir(&sub).unwrap();
    chown(&folder, Some(65_534), Some(65_534)).unwrap();
    // A folder of ours there, which its owner exchanges, is written to while it is one.
    let exchange = || renameat_with(CWD, &hidden, CWD, &sub, RenameFlags::EXCHANGE).unwrap();
    let is_written = AtomicBool::new(false);
    let write = || {
        let out = sub.join("out");
        let is_replaced = whole_file::replace(&out, b"new").is_ok();
        let is_private = WholeFile::private(&out).and_then(|file| file.write(b"new")).is_ok();
        let is_made = made(&sub.join("new")).is_ok();
        is_written.fetch_or(is_replaced || is_private || is_made, Relaxed);
    };
    in_spite_of(exchange, write);
    assert!(is_written.swap(false, Relaxed), "it was never a folder");
    // One of theirs is not.
    for theirs in [&sub, &hidden] {
        lchown(theirs, Some(65_534), Some(65_534)).unwrap();
    }
    write();
    in_spite_of(exchange, write);
    assert!(!is_written.load(Relaxed));
    assert_eq!(fs::read_to_string(victim.path().join("out")).unwrap(), "old");
    assert_eq!(fs::read_dir(victim.path()).unwrap().count(), 1);
}

/// A link of ours may have got its place from anybody, where the system lets them.
/// Whenever it comes: between the last look and the change there is none of anybody else's that would be lost.
#[test]
fn what_a_neighbour_has_put_there_meanwhile_stays() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let (at, new) = (folder.path().join("at"), folder.path().join("new"));
    let put = |before: &dyn Fn(), meanwhile: &dyn Fn()| {
        before();
        let place = to_write(&at).unwrap().unwrap();
        meanwhile();
        fs::write(&new, "new").unwrap();
        let put = place.put(&new).map_err(|error| error.to_string());
        (put, fs::read_to_string(&at).ok(), fs::read_to_string(&new).ok())
    };
    let is_new = (Ok(()), Some("new".to_owned()), None);
    let gone = || fs::remove_file(&at).unwrap();
    let own = || fs::write(&at, "own").unwrap();
    assert_eq!(put(&|| {}, &|| {}), is_new);
    assert_eq!(put(&|| {}, &|| {}), is_new, "what was there");
    assert_eq!(put(&|| {}, &gone), is_new, "what was there is gone");
    assert_eq!(put(&gone, &own), is_new, "another run of ours");
    let moved =
        |theirs: Option<&str>| (Err("it is being moved".to_owned()), theirs.map(str::to_owned), Some("new".to_owned()));
    let is_folder = || {
        gone();
        fs::create_dir(&at).unwrap();
    };
    assert_eq!(put(&|| {}, &is_folder), moved(None));
    assert!(at.is_dir());
    fs::remove_dir(&at).unwrap();
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED what_a_neighbour_has_put_there_meanwhile_stays, a file of another user's: it takes root");
        return;
    }
    let theirs = || {
        fs::write(&at, "theirs").unwrap();
        chown(&at, Some(65_534), None).unwrap();
    };
    assert_eq!(put(&|| {}, &theirs), moved(Some("theirs")));
    assert_eq!(fs::metadata(&at).unwrap().uid(), 65_534);
}

#[test]
fn a_link_with_two_names_is_not_followed_in_a_shared_folder() {
    let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = own.path().join("link");
    symlink("victim", &link).unwrap();
    fs::hard_link(&link, folder.path().join("out")).unwrap();
    let out = folder.path().join("out");
    assert!(to_write(&out).is_ok());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let text = to_write(&out).unwrap_err().to_string();
    assert!(text.starts_with("the link has another name elsewhere"), "{text}");
    fs::remove_file(&link).unwrap();
    assert!(to_write(&out).is_ok());
}

/// A folder that is made gets a list from the one that it is made in, and hands it on.
#[test]
#[cfg(target_os = "linux")]
fn what_is_made_in_a_shared_folder_has_no_list_of_its_owners() {
    let folder = tempfile::tempdir().unwrap();
    if let Err(error) = access::give_list_to_new(folder.path(), 7) {
        eprintln!("SKIPPED what_is_made_in_a_shared_folder_has_no_list_of_its_owners: {error}");
        return;
    }
    for (mode, has_list) in [(0o1777, false), (0o755, true)] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let (plots, page) =
            (folder.path().join(format!("plots-{mode:o}")), folder.path().join(format!("page-{mode:o}")));
        made(&plots.join("deeper")).unwrap();
        let [plot, deep] = ["plot", "deeper/plot"].map(|name| plots.join(name));
        for file in [&plot, &deep, &page] {
            whole_file::replace(file, b"new").unwrap();
        }
        for path in [&plots, &plots.join("deeper"), &plot, &deep, &page] {
            assert_eq!(access::path_has_list(path), has_list, "{mode:o} {}", path.display());
        }
        if !has_list {
            let mode_of = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
            let mask = access::mask();
            assert_eq!([&plots, &plot, &page].map(|path| mode_of(path)), [0o700, 0o666, 0o666].map(|all| all & !mask));
        }
    }
}

/// On a share whose files all belong to one user, that one was not quicker.
#[test]
#[cfg(target_os = "linux")]
fn folders_are_made_on_a_share() {
    let Some((_folder, share)) = crate::dress::tests::share("folders_are_made_on_a_share") else { return };
    for (mode, is_made) in [(0o755, true), (0o1777, false)] {
        fs::set_permissions(&share, fs::Permissions::from_mode(mode)).unwrap();
        let plots = share.join(format!("plots-{mode:o}/deeper"));
        let made = crate::dress::tests::on_a_share(move || made(&plots).map_err(|error| error.to_string()));
        assert_eq!(made.is_ok(), is_made, "{mode:o}: {made:?}");
    }
}
