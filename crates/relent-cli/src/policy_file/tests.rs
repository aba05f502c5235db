use super::*;

/// However quick the neighbour is who may exchange it, since the folder is theirs.
#[test]
fn a_link_that_comes_and_goes_is_not_believed() {
    use std::{
        fs,
        os::unix::fs::{lchown, symlink},
        sync::atomic::{AtomicBool, Ordering::Relaxed},
    };
    let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, secret) = (folder.path().join(FILE), own.path().join("secret"));
    let (link, ours) = (own.path().join("link"), own.path().join("ours"));
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, &link).unwrap();
    if lchown(&link, Some(65_534), Some(65_534)).is_err() {
        eprintln!("SKIPPED a_link_that_comes_and_goes_is_not_believed: it takes root");
        return;
    }
    fs::write(&path, "ours").unwrap();
    let place = Place { path: path.clone(), is_here: true };
    let is_over = AtomicBool::new(false);
    let (mut believed, mut tries) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                fs::hard_link(&path, &ours).unwrap();
                fs::rename(&link, &path).unwrap();
                fs::rename(&path, &link).unwrap();
                fs::rename(&ours, &path).unwrap();
            }
        });
        // Whoever exchanges it may have to wait for a processor while nothing is there.
        while tries < 5_000 || believed == 0 && tries < 5_000_000 {
            tries += 1;
            if let Ok(Some(file)) = believable(&place) {
                let text = text_of(file, LONGEST).unwrap();
                believed += u32::from(text == "ours");
                assert!(text == "ours" || is_over.swap(true, Relaxed), "{text}");
            }
        }
        is_over.store(true, Relaxed);
    });
    assert!(believed > 0);
}

/// However quick they are, what a neighbour puts there is none that could be meant and cannot be read.
#[test]
fn what_a_neighbour_puts_there_and_takes_away_is_no_error() {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, lchown, symlink},
        sync::atomic::{AtomicBool, Ordering::Relaxed},
    };
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    let (path, link) = (folder.path().join(FILE), folder.path().join("link"));
    symlink("/etc/passwd", &link).unwrap();
    if lchown(&link, Some(65_534), Some(65_534)).is_err() {
        eprintln!("SKIPPED what_a_neighbour_puts_there_and_takes_away_is_no_error: it takes root");
        return;
    }
    let place = Place { path: path.clone(), is_here: true };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                fs::rename(&link, &path).unwrap();
                fs::rename(&path, &link).unwrap();
            }
        });
        for _ in 0..400_000 {
            let found = believable(&place);
            let is_well = matches!(found, Ok(None) | Err(Problem::Strange(_)));
            assert!(is_well || is_over.swap(true, Relaxed), "{found:?}");
        }
        is_over.store(true, Relaxed);
    });
}

#[test]
fn words_of_the_file_are_left_out() {
    assert_eq!(without_quotes("there is no key \"root:x:0\" here"), "there is no key \"...\" here");
    assert_eq!(without_quotes("no quotes"), "no quotes");
    assert_eq!(without_quotes("an \"unended"), "an \"...");
    assert_eq!(without_quotes(&format!("{:?} is {:?}", "a\"b\\", "c")), "\"...\" is \"...\"");
}

/// As where what is mounted does not answer any more. Nothing that could be meant was found.
#[test]
fn where_nothing_can_be_looked_for_none_is_used_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file").join(FILE);
    std::fs::write(folder.path().join("file"), "").unwrap();
    let of = |is_here| found_in(&Place { path: path.clone(), is_here }, Beside::Nothing);
    let file = of(true).map_err(|fault| fault.shown().0).unwrap();
    assert_eq!(file.remarks, [format!("no {} is used: Not a directory", path.display())]);
    assert!(file.draft == Draft::default() && file.origin.is_none());
    assert!(of(false).is_err());
}
