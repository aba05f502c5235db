//! Which files are taken for a store, and which are not.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn file(state: &str, home: &str) -> Result<String, Fault> {
    let some = |text: &str| Some(OsString::from(text)).filter(|text| !text.is_empty());
    default_file(some(state), some(home)).map(|path| path.display().to_string())
}

#[test]
fn the_state_folder_is_the_users() {
    assert_eq!(file("/s", "/h").unwrap(), "/s/relent/state.db");
    assert_eq!(file("", "/h").unwrap(), "/h/.local/state/relent/state.db");
    assert_eq!(file("relative", "/h").unwrap(), "/h/.local/state/relent/state.db");
    assert_eq!(file("//s", "/h").unwrap(), "/s/relent/state.db");
    assert_eq!(file("", "////h//a/").unwrap(), "/h/a/.local/state/relent/state.db");
    assert!(file("", "").is_err() && file("s", "h").is_err());
}

#[test]
fn who_wrote_a_policy_file_does_not_say_whom_to_believe() {
    for fine in [
        "sqlite:state.db",
        "sqlite:state.db?durability=process&prefix=jobs_",
        "sqlite:a?",
        "redis://u:p@h/0?prefix=x_",
        "rediss://h",
        "memory:",
    ] {
        assert!(of_an_author(fine).is_ok(), "{fine}");
    }
    for (bad, why) in [
        ("sqlite:state.db?owner=any", "its URL says whom to believe"),
        ("sqlite:state.db?prefix=a_&owner=any", "its URL says whom to believe"),
        ("sqlite:state.db?%6Fwner=any", "its URL has a setting that is not known, or is the caller's"),
        ("sqlite:state.db?x?owner=any", "its URL has a setting that is not known, or is the caller's"),
        // Whose certificates are believed, and what is opened for that.
        ("rediss://h?sslrootcert=/ca.pem", "its URL has a setting that is not known, or is the caller's"),
        ("redis://h/0?x", "its URL has a setting that is not known, or is the caller's"),
        ("redis://:a%0d%0aset%20k%200%200%201@127.0.0.1:11211", "its URL has control characters"),
        ("sqlite:a\nb", "its URL has control characters"),
        ("postgres://h/db", "what is in a Postgres runs with the rights of whoever uses it"),
        ("postgresql:///db?host=/run/pg", "what is in a Postgres runs with the rights of whoever uses it"),
        ("postgres:", "what is in a Postgres runs with the rights of whoever uses it"),
    ] {
        let fault = of_an_author(bad).unwrap_err();
        let (told, hint) = fault.shown();
        assert!(told.ends_with(&format!("{why}, and only a policy file names it")), "{bad}: {told}");
        assert!(hint.unwrap().contains("--upstream NAME --store URL"), "{bad}");
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn why_not(file: &Path) -> String {
    prepare(file, true).unwrap_err().shown().0
}

#[test]
fn a_folder_that_others_write_to_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a/relent/state.db");
    let own = file.parent().unwrap();
    prepare(&file, true).unwrap();
    assert_eq!(mode_of(own), 0o700);
    // One that others can look into is shut: names and keys are in it.
    mode(own, 0o755);
    prepare(&file, true).unwrap();
    assert_eq!(mode_of(own), 0o700);
    mode(own, 0o777);
    assert!(why_not(&file).ends_with("others can write to it"));
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(why_not(&folder.path().join("file/relent/state.db")).contains("it cannot be made"));
}

#[test]
fn a_file_that_others_write_to_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("relent/state.db");
    prepare(&file, true).unwrap();
    fs::write(&file, "").unwrap();
    mode(&file, 0o644);
    prepare(&file, true).unwrap();
    assert_eq!(mode_of(&file), 0o600);
    mode(&file, 0o660);
    assert!(why_not(&file).ends_with("others can write to it"));
    // Nor is one by a link of the user's where others could put something beside it.
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::rename(&file, shared.join("state.db")).unwrap();
    mode(&shared.join("state.db"), 0o600);
    std::os::unix::fs::symlink(shared.join("state.db"), &file).unwrap();
    for (of_folder, is_used) in [(0o755, true), (0o1777, false)] {
        mode(&shared, of_folder);
        let found = prepare(&file, true).map_err(|fault| fault.shown().0);
        assert_eq!(found.is_ok(), is_used, "{of_folder:o}: {found:?}");
        assert!(
            is_used || found.unwrap_err().ends_with("everybody can put into its folder what it would be read from")
        );
    }
}

/// Who can rename a folder above can put another in its place between two runs.
#[test]
fn nobody_else_has_a_say_in_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (above, link) = (folder.path().join("above"), folder.path().join("link"));
    let file = above.join("state/relent/state.db");
    prepare(&file, true).unwrap();
    mode(&above, 0o777);
    assert!(why_not(&file).contains("on the way there others can write: "), "{}", why_not(&file));
    let new = above.join("new/relent/state.db");
    assert!(why_not(&new).contains("on the way there others can write: "), "{}", why_not(&new));
    assert!(!above.join("new").exists(), "nothing is left of what is refused");
    let looked = |file| prepare(file, false).map_err(|fault| fault.shown().0);
    assert!(looked(&new).unwrap_err().contains("on the way there others can write: "), "they could make it meanwhile");
    mode(&above, 0o1777);
    assert!(looked(&new).unwrap_err().ends_with("it is not there, and everybody can make it"));
    mode(&above, 0o755);
    assert_eq!((looked(&new), above.join("new").exists()), (Ok(()), false), "nothing is made to look at");
    mode(&above, 0o1777);
    prepare(&file, true).unwrap();
    // A link of one's own is followed, and the way that it leads looked at.
    std::os::unix::fs::symlink(&above, &link).unwrap();
    let linked = link.join("state/relent/state.db");
    prepare(&linked, true).unwrap();
    mode(&above, 0o777);
    assert!(why_not(&linked).contains("on the way there others can write: "));
    std::os::unix::fs::symlink("round", folder.path().join("round")).unwrap();
    assert!(prepare(&folder.path().join("round/relent/state.db"), true).is_err());
}

/// It takes root to give something away.
#[test]
fn what_belongs_to_somebody_else_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    mode(folder.path(), 0o1777);
    let file = folder.path().join("relent/state.db");
    let (link, linked) = (folder.path().join("link"), folder.path().join("link/relent/state.db"));
    prepare(&file, true).unwrap();
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    let nobody = Some(65_534);
    if std::os::unix::fs::lchown(&link, nobody, nobody).is_err() {
        eprintln!("SKIPPED what_belongs_to_somebody_else_is_not_used: it takes root");
        return;
    }
    assert!(why_not(&linked).contains("on the way there something belongs to somebody else: "));
    std::os::unix::fs::chown(file.parent().unwrap(), nobody, nobody).unwrap();
    assert!(why_not(&file).ends_with("it belongs to somebody else"));
}

/// What SQLite puts beside a file is as good as the file.
#[test]
fn no_file_is_used_where_everybody_can_put_another_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let why = |file: &str| alone(&at(file), false).unwrap_err().to_string();
    fs::create_dir_all(at("own/er")).unwrap();
    std::os::unix::fs::symlink("state.db", at("own/link")).unwrap();
    for shared in [0o1777, 0o777, 0o1773] {
        mode(folder.path(), shared);
        assert!(why("state.db").starts_with("everybody can put into its folder"), "{shared:o}");
        assert_eq!(why("no/state.db"), "its folder is not there, and everybody can make it", "{shared:o}");
        let far = alone(&at("own/no/such/state.db"), false);
        assert_eq!(far.is_ok(), shared != 0o777, "{shared:o}: who could make the folder: {far:?}");
        assert!(alone(&at("no/state.db"), true).is_err(), "{shared:o}: its folder would be anybody's");
        fs::write(at("state.db"), "").unwrap();
        assert!(why("state.db").starts_with("everybody can put into its folder"), "{shared:o}: a file of one's own");
        fs::remove_file(at("state.db")).unwrap();
        assert!(alone(&at("state.db"), true).is_ok(), "{shared:o}: they are believed");
        assert!(url(Some(&format!("sqlite:{}", at("state.db").display()))).is_err());
        assert!(url(Some(&format!("sqlite:{}?owner=any&prefix=a_", at("state.db").display()))).is_ok());
    }
    // A folder of one's own in it is one's own, unless others can move it away.
    for (shared, is_used) in [(0o1777, true), (0o755, true), (0o770, true), (0o777, false)] {
        mode(folder.path(), shared);
        for file in ["own/state.db", "own/link", "own/er/../state.db"] {
            assert_eq!(alone(&at(file), false).is_ok(), is_used, "{shared:o} {file}");
        }
    }
    assert!(why("own/er/state.db").starts_with("somebody else can exchange what is on the way there"));
    // It takes root to give something away.
    mode(folder.path(), 0o1777);
    if std::os::unix::fs::chown(at("own"), Some(65_534), None).is_ok() {
        assert!(why("own/state.db").starts_with("the folder belongs to somebody else, in a folder that others"));
        assert!(alone(&at("own/state.db"), true).is_err(), "links in it would be followed");
        mode(folder.path(), 0o755);
        assert!(why("own/state.db").starts_with("somebody else can put into its folder what"));
        assert_eq!(why("own/no/state.db"), "its folder is not there, and somebody else can make it");
        assert!(alone(&at("own/state.db"), true).is_ok(), "they are believed");
    } else {
        eprintln!("SKIPPED a folder of somebody else: it takes root");
    }
}

/// Whoever can put another link in the place of one decides where it leads.
#[test]
fn no_file_is_used_behind_a_link_that_everybody_can_exchange() {
    let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(own.path(), at("link")).unwrap();
    std::os::unix::fs::symlink(own.path().join("state.db"), at("file")).unwrap();
    for (shared, is_used) in [(0o755, true), (0o1777, true), (0o777, false)] {
        mode(folder.path(), shared);
        for file in ["link/state.db", "file"] {
            assert_eq!(alone(&at(file), false).is_ok(), is_used, "{shared:o} {file}");
        }
    }
}

/// A folder like `/tmp` of a group is one for all in it.
#[test]
fn no_file_is_used_where_a_group_can_put_another_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    if std::os::unix::fs::chown(folder.path(), None, Some(65_534)).is_err() {
        eprintln!("SKIPPED no_file_is_used_where_a_group_can_put_another_beside_it: it takes root");
        return;
    }
    for (shared, is_used) in
        [(0o1770, false), (0o3775, false), (0o1750, true), (0o770, false), (0o2775, false), (0o755, true)]
    {
        mode(folder.path(), shared);
        assert_eq!(alone(&file, false).is_ok(), is_used, "{shared:o}");
        assert!(alone(&file, true).is_ok(), "{shared:o}");
    }
}

/// However quick the neighbour is.
#[test]
fn a_link_that_comes_and_goes_leads_to_no_store() {
    let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (file, hidden, victim) = (folder.path().join("state.db"), own.path().join("link"), own.path().join("victim"));
    fs::write(&victim, "").unwrap();
    std::os::unix::fs::symlink(&victim, &hidden).unwrap();
    let nobody = Some(65_534);
    let is_theirs = std::os::unix::fs::lchown(&hidden, nobody, nobody).is_ok();
    if !is_theirs {
        eprintln!("SKIPPED a_link_that_comes_and_goes_leads_to_no_store in part: it takes root");
    }
    for (shared, query, times) in [(0o777, "", 500), (0o1777, "?owner=any", 100)] {
        mode(folder.path(), shared);
        let named = format!("sqlite:{}{query}", file.display());
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    let _ = fs::rename(&hidden, &file).and_then(|()| fs::rename(&file, &hidden));
                }
            });
            for _ in 0..times {
                match url(Some(&named)) {
                    Ok(url) if is_theirs && !query.is_empty() => drop(relent_store::in_sqlite::Sqlite::open_url(&url)),
                    Ok(url) => assert!(!query.is_empty(), "{url}"),
                    Err(_) => {}
                }
                ["", "-wal", "-shm"].iter().for_each(|end| {
                    let path = PathBuf::from(format!("{}{end}", file.display()));
                    let _ = (!path.is_symlink()).then(|| fs::remove_file(path));
                });
            }
            is_over.store(true, Relaxed);
        });
        assert_eq!(fs::read(&victim).unwrap(), b"", "{query}");
    }
}

#[test]
fn what_is_opened_is_where_the_links_led() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("own")).unwrap();
    std::os::unix::fs::symlink("own", root.join("link")).unwrap();
    let [own, link] = ["own", "link"].map(|name| format!("sqlite:{}/state.db", root.join(name).display()));
    for given in [&own, &link] {
        let opened = url(Some(given)).unwrap_or_default();
        assert_eq!((&*opened, &*shown(&opened)), (&*format!("{own}?links=no&others=no"), own.as_str()));
    }
    let query = any_url(Some(&format!("{link}?prefix=a_"))).unwrap_or_default();
    assert_eq!((&*query, &*shown(&query)), (&*format!("{own}?prefix=a_&links=no"), &*format!("{own}?prefix=a_")));
    assert_eq!(any_url(Some("sqlite:Cargo.db")).unwrap_or_default(), "sqlite:Cargo.db?links=no");
    assert!(relent_store::in_sqlite::Sqlite::open_url(&query).is_ok() && root.join("own/state.db").is_file());
}

/// What was looked at is one file, and so is what a URL of it names, however often it is read.
#[test]
fn what_is_opened_is_what_was_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("own/er")).unwrap();
    let absolute = root.to_str().unwrap().trim_start_matches('/');
    for rest in ["own/state.db", "own/./state.db", "own/er/../state.db", "own//state.db", "no/such/state.db"] {
        for slashes in 0..=5 {
            let given = format!("sqlite:{}{absolute}/{rest}", "/".repeat(slashes));
            let named = file_of(&given).unwrap();
            let is_absolute = ![0, 2].contains(&slashes);
            assert_eq!(named.is_absolute(), is_absolute, "{given}");
            assert!(!named.as_os_str().as_encoded_bytes().starts_with(b"//"), "{given}: {named:?}");
            // Relative to the working folder there is none.
            let looked = alone(named, false).unwrap();
            let url = any_url(Some(&given)).unwrap();
            assert_eq!(file_of(&url).unwrap().as_os_str(), looked.as_os_str(), "{given}");
            assert_eq!(any_url(Some(&shown(&url))).unwrap_or_default(), url, "{given}");
            let opened = relent_store::in_sqlite::Sqlite::open_url(&url);
            match is_absolute && rest.starts_with("own") {
                true => assert!(opened.is_ok() && root.join("own/state.db").is_file(), "{given}: {opened:?}"),
                false => assert!(opened.is_err(), "{given}: {opened:?}"),
            }
            let _ = fs::remove_file(root.join("own/state.db"));
        }
    }
    for text in ["//srv/state.db", "/srv/a?b", "", "//"] {
        assert_eq!(url_of(Path::new(text), "?prefix=a_"), None, "{text}: another file would be read");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_of_the_systems_is_no_store() {
    let why = alone(Path::new("/proc/version"), true).unwrap_err().to_string();
    assert_eq!(why, "it is a file of the system's, and no store");
    // Those that have a length, too, and before they are opened: for some that does something.
    for file in ["/sys/kernel/uevent_seqnum", "/sys/fs/cgroup/cgroup.procs", "/proc/self/comm"].map(Path::new) {
        assert!(!file.exists() || links::is_of_the_kernel(file), "{file:?}");
        assert!(!file.exists() || alone(file, true).is_err(), "{file:?}");
    }
    let empty = tempfile::NamedTempFile::new().unwrap();
    assert!(!links::is_of_the_kernel(empty.path()) && !links::is_of_the_kernel(Path::new("/dev/shm")));
    assert!(alone(empty.path(), true).is_ok(), "a file of nothing is one");
}

#[test]
fn credentials_are_not_shown() {
    assert_eq!(shown("postgres://ann:pw@host/db?sslmode=off"), "postgres://***@host/db?sslmode=off");
    assert_eq!(shown("redis://:pw@host:6379/0"), "redis://***@host:6379/0");
    assert_eq!(shown("postgres://host/db?password=pw"), "postgres://host/db?password=***");
    assert_eq!(shown("sqlite:/home/a@b/state.db"), "sqlite:/home/a@b/state.db");
    assert_eq!(shown("sqlite:/s.db?prefix=a_&owner=any"), "sqlite:/s.db?prefix=a_&owner=any");
    assert_eq!(shown("sqlite:s.db?key=pw"), "sqlite:s.db?key=***");
    assert_eq!(shown("sqlite:s.db?pw"), "sqlite:s.db?***");
    assert_eq!(shown("redis://:p?w@h/0"), "redis://***@h/0");
    assert!(!shown("redis:pw@host").contains("pw"));
}

/// As that of a server that is gone.
#[test]
fn a_file_system_that_is_silent_holds_up_no_signal_and_no_limit_of_time() {
    let (heard, deaf, now) = (Ear::default(), Ear::default(), Instant::now());
    let soon = now.checked_add(Duration::from_millis(1));
    let (speak, hears) = mpsc::channel::<()>();
    let (hears, held) = (std::sync::Arc::new(std::sync::Mutex::new(hears)), Instant::now() + Duration::from_secs(60));
    let silent = || {
        let hears = hears.clone();
        move || hears.lock().unwrap().recv().is_ok()
    };
    assert_eq!(in_time(silent(), soon, &deaf).unwrap(), None);
    heard.hear(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(in_time(silent(), None, &heard).unwrap(), None);
    assert!(Instant::now() < held);
    drop(speak);
    assert_eq!(in_time(|| 7, None, &deaf).unwrap(), Some(7));
    assert_eq!(in_time(|| 7, Some(now), &deaf).unwrap(), Some(7), "who answers at once is heard");
}

/// Each of its parts would be asked for, and it can be nowhere.
#[test]
fn a_path_that_is_longer_than_any_is_no_store() {
    let long = |times| alone(Path::new(&"/a".repeat(times)), false).map_err(|error| error.raw_os_error());
    assert!(long(LONGEST / 2).is_ok());
    assert_eq!(long(LONGEST / 2 + 1), Err(Some(ENAMETOOLONG)));
    assert_eq!(long(LONGEST << 8), Err(Some(ENAMETOOLONG)));
}

/// Who has a say in where a link leads decides what is opened, wherever that led when it was looked at.
#[test]
fn whoever_can_turn_a_link_on_the_way_has_no_say_in_what_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["own", "ours"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    std::os::unix::fs::symlink("../own/state.db", root.join("ours/link.db")).unwrap();
    std::os::unix::fs::symlink("../own", root.join("ours/link")).unwrap();
    if std::os::unix::fs::chown(root.join("ours"), None, Some(65_533)).is_err() {
        eprintln!("SKIPPED whoever_can_turn_a_link_on_the_way_has_no_say_in_what_is_opened: it takes root");
        return;
    }
    for (mode, is_told) in [(0o755, false), (0o775, true)] {
        fs::set_permissions(root.join("ours"), Permissions::from_mode(mode)).unwrap();
        for name in ["ours/link.db", "ours/link/state.db"] {
            let given = format!("sqlite:{}", root.join(name).display());
            let found = url(Some(&given)).map_err(|fault| fault.shown().0);
            assert_eq!(found.is_err(), is_told, "{name}");
            let believed = url(Some(&format!("{given}?owner=any"))).unwrap();
            assert!(believed.contains("/own/state.db"), "{believed}");
            match found {
                Ok(url) => assert!(url.contains("/own/state.db"), "{url}"),
                Err(why) => assert!(why.contains("somebody else can exchange what is on the way there"), "{why}"),
            }
            let is_theirs =
                |caution: &String| caution.contains("others may write to") && caution.contains("/ours, who");
            assert_eq!(cautions(Some(&given), &believed).iter().any(is_theirs), is_told, "{name}");
        }
    }
}

/// What is looked at there need not be what is found by its path here.
#[test]
#[cfg(target_os = "linux")]
fn no_store_is_found_through_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let own = std::process::id();
    let through = |way: &str| PathBuf::from(format!("/proc/{way}{}/state.db", root.display()));
    std::os::unix::fs::symlink(format!("/proc/{own}/root{}", root.display()), root.join("link")).unwrap();
    for path in
        [through(&format!("{own}/root")), through("self/root"), through("1/../self/root"), root.join("link/state.db")]
    {
        for believes_all in [false, true] {
            let found = alone(&path, believes_all);
            let is_here = found.as_ref().is_ok_and(|found| *found == root.join("state.db"));
            assert!(found.is_err() || is_here, "{path:?}: {found:?}");
        }
    }
    let why = alone(&through("self/root"), true).unwrap_err().to_string();
    assert!(why.starts_with("it is found through what a process has"), "{why}");
}

/// SQLite finds what lies beside the file by its path: by another folder in the place of one there, it would be made elsewhere.
#[test]
fn whoever_can_exchange_a_folder_on_the_way_has_no_say_in_where_something_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (above, file) = (root.join("above"), root.join("above/own/state.db"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    if std::os::unix::fs::chown(&above, None, Some(65_533)).is_err() {
        eprintln!(
            "SKIPPED whoever_can_exchange_a_folder_on_the_way_has_no_say_in_where_something_is_made: it takes root"
        );
        return;
    }
    for (owner, mode, of_below, is_used) in [
        (0, 0o755, 0, true),
        (0, 0o775, 0, false),
        (0, 0o2770, 0, false),
        // In a folder like `/tmp` only what is theirs.
        (0, 0o3770, 0, true),
        (0, 0o3770, 65_534, false),
        (0, 0o1777, 65_534, false),
        (65_534, 0o755, 0, false),
        (65_534, 0o1755, 0, false),
        // What lies beside the file is found there by its name.
        (0, 0o755, 65_534, false),
    ] {
        std::os::unix::fs::chown(&above, Some(owner), None).unwrap();
        std::os::unix::fs::chown(file.parent().unwrap(), Some(of_below), None).unwrap();
        fs::set_permissions(&above, Permissions::from_mode(mode)).unwrap();
        let found = alone(&file, false).map_err(|error| error.to_string());
        assert_eq!(found.is_ok(), is_used, "{owner} {mode:o} {of_below}: {found:?}");
        let is_like_tmp = mode & 0o1000 != 0 && of_below != 0;
        assert_eq!(alone(&file, true).is_ok(), !is_like_tmp, "{owner} {mode:o} {of_below}: they are believed");
        let is_anybodys = owner != 0 || mode & 0o022 != 0;
        assert_eq!(alone(&above.join("no/such/state.db"), false).is_err(), is_anybodys, "{owner} {mode:o}");
    }
}
