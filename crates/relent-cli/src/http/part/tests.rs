use super::*;
use crate::{arrived::tests::refused, http::target};
use std::{
    ffi::OsStr,
    fs::Permissions,
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, chown, symlink},
    },
};

fn target(path: &Path) -> Target {
    match Target::find(path).unwrap() {
        target::Found::File(target) => target,
        target::Found::Special(_) => panic!("it is a file"),
    }
}

fn bounds(ear: &Ear) -> Bounds<'_> {
    Bounds { ear, ends: None, max_size: None }
}

fn found(target: &Target, source: &str) -> Result<Found, String> {
    let found = Kept::find(target, source.into(), &bounds(&Ear::default())).map_err(|fault| fault.shown().0)?;
    Ok(found.expect("it can be kept from others"))
}

/// What `-C -` begins with, once something has happened meanwhile.
fn taken_over(path: &Path, meanwhile: impl FnOnce()) -> Result<String, String> {
    let target = target(path);
    meanwhile();
    let (mut part, _) = found(&target, "source")?;
    let mut text = String::new();
    part.file.rewind().and_then(|()| part.file.read_to_string(&mut text)).unwrap();
    Ok(text)
}

/// What stands beside it would have a name that is too long, and in other letters than UTF-8's, too.
#[test]
fn a_file_may_have_the_longest_name() {
    let folder = tempfile::tempdir().unwrap();
    let latin_1 = [&[0xe9; 60][..], &[b'a'; 195]].concat();
    for (name, cut) in [
        (&latin_1[..], 64),
        ("\u{e9}".repeat(125).as_bytes(), 64),
        ("a\u{20ac}".repeat(63).as_bytes(), 64),
        ("aa\u{20ac}".repeat(50).as_bytes(), 62),
    ] {
        let beside = beside(OsStr::from_bytes(name), ".", ".part");
        let wanted = [b".", &name[..cut], b"~"].concat();
        assert!(beside.as_bytes().starts_with(&wanted) && beside.len() < 143, "{beside:?}");
        let target = target(&folder.path().join(OsStr::from_bytes(name)));
        assert!(Part::passing(&target).is_ok(), "{beside:?}");
    }
    let halved = beside(OsStr::new(&("a".to_owned() + &"\u{e9}".repeat(122))), ".", ".part");
    assert!(halved.to_str().unwrap().starts_with(&format!(".a{}~", "\u{e9}".repeat(31))), "no half of a character");
    for last in ["x", "y"] {
        let file = folder.path().join("a".repeat(254) + last);
        let target = target(&file);
        let Part::Passing(passing) = Part::passing(&target).unwrap() else { panic!("it goes with the run") };
        assert!(passing.path().exists());
        let (mut kept, _) = found(&target, "source").unwrap();
        kept.file.write_all(last.as_bytes()).unwrap();
        kept.is_part_of(Resume::from_text("\"v1\"\n10\n\n").as_ref()).unwrap();
    }
    for last in ["x", "y"] {
        let target = target(&folder.path().join("a".repeat(254) + last));
        let (mut kept, resume) = found(&target, "source").unwrap();
        let mut text = String::new();
        kept.file.rewind().and_then(|()| kept.file.read_to_string(&mut text)).unwrap();
        assert!(resume.is_some() && text == last, "{text}: each has a part of its own");
    }
    assert_eq!(beside("ä".repeat(127).as_ref(), ".", ".part").len(), 1 + 64 + 17 + 5);
    // Where a name has 143 bytes at most.
    for length in [128, 129, 143] {
        let name = "x".repeat(length);
        let (passing, about) = (beside(name.as_ref(), ".", "."), beside(name.as_ref(), ".", ".part.from"));
        assert!(passing.len() + "XXXXXX.part".len() <= 143 && about.len() <= 143, "{passing:?}");
        assert_eq!(about.to_str().unwrap().contains(&name), length == 128);
    }
}

/// Until it is in place, and if it never is.
#[test]
fn a_part_is_for_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let (file, part) = (folder.path().join("file"), folder.path().join(".file.part"));
    let target = target(&file);
    let find = || found(&target, "source").unwrap();
    let (mut kept, _) = find();
    kept.file.write_all(b"whole").unwrap();
    kept.is_part_of(Resume::from_text("\"v1\"\n10\n\n").as_ref()).unwrap();
    // A neighbour's folder is in its place by now.
    fs::create_dir(&file).unwrap();
    assert!(Part::Kept(kept).persist(&target).is_err());
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert!(!part.exists() && !folder.path().join(".file.part.from").exists(), "who has it open reads nothing more");
    // One that was left in between.
    for left in [0o644, 0o664] {
        fs::write(&part, "left").unwrap();
        fs::set_permissions(&part, Permissions::from_mode(left)).unwrap();
        let held = File::open(&part).unwrap();
        let (mut kept, resume) = find();
        kept.file.write_all(b"next").unwrap();
        assert!(resume.is_none() && mode(&part) == 0o600, "{left:o}");
        assert!(
            !is_one(&held.metadata().unwrap(), &fs::metadata(&part).unwrap()),
            "{left:o}: who has it open reads on"
        );
    }
    // What says what it is a part of is not another's word.
    fs::write(folder.path().join(".file.part.from"), "source\n\"v1\"\n10\n\n").unwrap();
    fs::set_permissions(folder.path().join(".file.part.from"), Permissions::from_mode(0o666)).unwrap();
    fs::write(&part, "part").unwrap();
    fs::set_permissions(&part, Permissions::from_mode(0o600)).unwrap();
    fs::remove_dir(&file).unwrap();
    assert!(find().1.is_none());
}

/// Who held it has made FILE of it, removed it, or begun anew, between the moment when another run opened it and that when it could be had.
#[test]
fn only_what_has_its_name_yet_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let (file, part) = (folder.path().join("file"), folder.path().join(".file.part"));
    let target = target(&file);
    let held = |opened: &File| hold(opened, &part, &part).map_err(|fault| fault.shown().0);
    let meanwhile: [&dyn Fn(); 4] = [
        &|| fs::rename(&part, &file).unwrap(),
        &|| fs::remove_file(&part).unwrap(),
        &|| {
            fs::rename(&part, &file).unwrap();
            fs::write(&part, "next").unwrap();
        },
        &|| {},
    ];
    for (nth, meanwhile) in meanwhile.iter().enumerate() {
        let opened = open(&target.place, &part, &part).map_err(|fault| fault.shown().0).unwrap().unwrap();
        let late = open_own(OpenOptions::new().read(true).write(true), &part).unwrap();
        assert_eq!(held(&late), Err(format!("another relent is writing {}", part.display())), "{nth}");
        meanwhile();
        drop(opened);
        assert_eq!(held(&late), Ok(if nth == 3 { Held::Alone } else { Held::Elsewhere }), "{nth}");
        drop(late);
        let _ = (fs::remove_file(&part), fs::remove_file(&file));
    }
    // One that has got a second name is not the part alone.
    let late = open(&target.place, &part, &part).map_err(|fault| fault.shown().0).unwrap().unwrap();
    fs::hard_link(&part, &file).unwrap();
    assert!(held(&late).is_err());
}

/// A cleaner has removed a part that was being written, and another run has begun anew.
#[test]
fn a_part_of_another_run_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (file, part) = (folder.path().join("file"), folder.path().join(".file.part"));
    let target = target(&file);
    let find = |source: &str| found(&target, source).unwrap();
    let resume = |tag| Resume::from_text(&format!("\"{tag}\"\n10\n\n"));
    let (mut first, _) = find("first");
    first.is_part_of(resume("v1").as_ref()).unwrap();
    first.file.write_all(b"first").unwrap();
    assert!(first.left().is_some());
    fs::remove_file(&part).unwrap();
    assert_eq!(first.left(), None, "the next run finds nothing");
    let (mut second, _) = find("second");
    second.is_part_of(resume("v2").as_ref()).unwrap();
    second.file.write_all(b"sec").unwrap();
    assert!(first.is_part_of(resume("v3").as_ref()).is_err());
    assert!(Part::Kept(first).persist(&target).is_err());
    assert!(!file.exists(), "half of it");
    drop(second);
    assert_eq!(fs::read_to_string(&part).unwrap(), "sec");
    assert_eq!(find("second").1, resume("v2"));
}

/// What came while the body did is a neighbour's, whose folder may be another's by then.
#[test]
fn nobodys_file_and_no_other_folder_is_taken() {
    let whole = tempfile::tempdir().unwrap();
    let folder = whole.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("file");
    let persisted = |meanwhile: &dyn Fn()| {
        let target = target(&file);
        let (mut kept, _) = found(&target, "source").unwrap();
        kept.file.write_all(b"whole").unwrap();
        meanwhile();
        Part::Kept(kept).persist(&target).map_err(|fault| fault.shown().0)
    };
    let refused = |why: &str| Err(format!("cannot write to {}: {why}", file.display()));
    let elsewhere = whole.path().join("elsewhere");
    let anew = || {
        fs::rename(&folder, &elsewhere).unwrap();
        fs::create_dir(&folder).unwrap();
    };
    assert_eq!(persisted(&anew), refused("its folder is being moved"));
    assert!(!file.exists() && !elsewhere.join("file").exists());
    assert_eq!(persisted(&|| fs::remove_dir_all(&folder).unwrap()), refused("No such file or directory"));
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
    let twice = || {
        fs::write(elsewhere.join("other"), "theirs").unwrap();
        fs::hard_link(elsewhere.join("other"), &file).unwrap();
    };
    assert_eq!(persisted(&twice), refused("it has another name elsewhere, in a folder that others may write to"));
    assert_eq!(fs::read_to_string(elsewhere.join("other")).unwrap(), "theirs");
    fs::remove_file(&file).unwrap();
    // Another run of ours may have been there.
    assert_eq!(persisted(&|| fs::write(&file, "own").unwrap()), Ok(()));
    fs::remove_file(&file).unwrap();
    let theirs = || {
        fs::write(&file, "theirs").unwrap();
        let _ = chown(&file, Some(65_534), None);
    };
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED nobodys_file_and_no_other_folder_is_taken, the file of another user: it takes root");
        return;
    }
    for mode in [0o1777, 0o775, 0o700] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        let _ = fs::remove_file(&file);
        assert_eq!(persisted(&theirs), refused("it is being moved"), "{mode:o}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
    }
    // It was there already, and is theirs afterwards, too.
    assert_eq!(persisted(&|| fs::remove_file(&file).map(|()| theirs()).unwrap()), Ok(()));
    assert_eq!(fs::metadata(&file).unwrap().uid(), 65_534);
    assert!(fs::read_to_string(&file).unwrap().ends_with("whole"), "it is gone on with");
}

/// As a neighbour may put there who waits for the moment.
#[test]
fn only_what_was_looked_at_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let (file, secret) = (folder.path().join("file"), folder.path().join("secret"));
    fs::write(&secret, "secret").unwrap();
    assert_eq!(taken_over(&file, || symlink(&secret, &file).unwrap()), Ok(String::new()));
    fs::remove_file(&file).unwrap();
    assert_eq!(taken_over(&file, || fs::write(&file, "theirs").unwrap()), Ok(String::new()));
    fs::write(&file, "own").unwrap();
    assert_eq!(taken_over(&file, || {}), Ok("own".into()));
    let refused = |why: &str| Err(format!("cannot go on with {}: {why}", file.display()));
    let exchanged = || {
        fs::remove_file(&file).unwrap();
        symlink(&secret, &file).unwrap();
    };
    assert_eq!(taken_over(&file, exchanged), refused("Too many levels of symbolic links"));
    fs::remove_file(&file).unwrap();
    fs::write(&file, "own").unwrap();
    assert_eq!(taken_over(&file, || fs::rename(&secret, &file).unwrap()), refused("it is being moved"));
}

/// Before anything is asked for, too.
#[test]
fn what_is_copied_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "own").unwrap();
    let target = target(&file);
    let (deaf, told) = (Ear::default(), Ear::default());
    told.hear(nix::sys::signal::Signal::SIGTERM);
    let found = |bounds: &Bounds<'_>| Kept::find(&target, "source".into(), bounds).map_err(|fault| fault.shown().0);
    for (ear, ends, copied) in [(&deaf, None, 3), (&told, None, 0), (&deaf, Some(Instant::now()), 0)] {
        let (kept, resume) = found(&Bounds { ends, ..bounds(ear) }).unwrap().unwrap();
        assert_eq!((kept.file.metadata().unwrap().len(), resume.is_some()), (copied, copied > 0));
    }
    assert!(found(&Bounds { max_size: Some(Size(3)), ..bounds(&deaf) }).is_ok());
    let refused = format!("cannot go on with {}: the body is larger than the --max-size of 2B", file.display());
    assert_eq!(found(&Bounds { max_size: Some(Size(2)), ..bounds(&deaf) }).err(), Some(refused));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left of it");
}

/// Its file system took all of it, and says only at the end that there was no room.
#[test]
fn what_has_not_arrived_takes_no_place_and_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    let names = || fs::read_dir(folder.path()).unwrap().count();
    let kept = || {
        let (mut kept, _) = found(&target(&path), "source").unwrap();
        kept.file.write_all(b"new").unwrap();
        kept.is_part_of(Resume::from_text("\"v1\"\n10\n\n").as_ref()).unwrap();
        kept
    };
    for is_kept in [false, true] {
        let target = target(&path);
        let part = if is_kept { Part::Kept(kept()) } else { Part::passing(&target).unwrap() };
        let fault = refused(|| part.persist(&target)).unwrap_err().shown().0;
        assert!(fault.starts_with("cannot write to ") && fault.ends_with(": quota exceeded"), "{fault}");
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("old", 1));
    }
    let broken_off = kept();
    assert_eq!(refused(|| broken_off.left()), None);
    // A system may say it once.
    drop(broken_off);
    assert_eq!(names(), 1);
    drop(kept());
    assert_eq!(names(), 3, "what has arrived is gone on with");
}

/// On a share whose files all belong to one user, one is nobody's to go on with, and in nobody's way; nor is one that another program left.
#[test]
#[cfg(target_os = "linux")]
fn a_part_that_a_share_gives_to_another_is_not_left() {
    let Some((_folder, share)) = dress::tests::share("a_part_that_a_share_gives_to_another_is_not_left") else {
        return;
    };
    let (target, part) = (Arc::new(target(&share.join("file"))), share.join(".file.part"));
    for (left, is_shut) in [(None, false), (Some(65_534), false), (Some(65_534), true), (Some(65_533), false)] {
        if let Some(owner) = left {
            fs::write(&part, "left").unwrap();
            fs::set_permissions(&part, Permissions::from_mode(if is_shut { 0o200 } else { 0o666 })).unwrap();
            chown(&part, Some(owner), None).unwrap();
        }
        let target = target.clone();
        let is_kept = dress::tests::on_a_share(move || {
            let kept = Kept::find(&target, "source".into(), &bounds(&Ear::default()));
            kept.map(|kept| kept.is_some()).map_err(|fault| fault.shown().0)
        });
        assert_eq!(is_kept.is_err(), left == Some(65_533), "{left:?}: {is_kept:?}");
        assert!(!is_kept.unwrap_or_default());
        assert_eq!(fs::remove_file(&part).is_ok(), left.is_some());
        assert_eq!(fs::read_dir(&share).unwrap().count(), 0);
    }
}

/// Nothing is loaded twice because somebody, as a server of shares for its client, has it open.
#[test]
#[cfg(target_os = "linux")]
fn a_part_that_somebody_holds_a_lease_of_is_gone_on_with_when_they_have_given_it_back() {
    use crate::regular::tests::while_lent;
    let folder = tempfile::tempdir().unwrap();
    let target = target(&folder.path().join("file"));
    let resume = Resume::from_text("\"v1\"\n10\n\n");
    let (mut kept, _) = found(&target, "source").unwrap();
    kept.file.write_all(b"part").unwrap();
    kept.is_part_of(resume.as_ref()).unwrap();
    drop(kept);
    for (name, kind) in [(".file.part", "0"), (".file.part", "1"), (".file.part.from", "1")] {
        let again = || found(&target, "source").map(|(kept, resume)| (kept.file.metadata().unwrap().len(), resume));
        let Some(again) = while_lent(&folder.path().join(name), kind, again) else {
            eprintln!(
                "SKIPPED a_part_that_somebody_holds_a_lease_of_is_gone_on_with_when_they_have_given_it_back: there are no leases"
            );
            return;
        };
        assert_eq!(again, Ok((4, resume.clone())), "{name} {kind}");
    }
}
