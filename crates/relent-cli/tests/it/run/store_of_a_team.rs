//! A store's file in a folder of several users.

use super::{
    Place,
    hostile::{NOBODY, shared},
    until,
};
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Who is with [`NOBODY`] in a team.
const MATE: &str = "65532";
/// The group of both.
const TEAM: u32 = 65_533;

/// A folder that nobody but root writes to, with relent in it.
fn place() -> Place {
    let place = shared();
    fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// A folder in it.
fn folder(place: &Place, name: &str, owner: u32, group: u32, mode: u32) -> PathBuf {
    let folder = place.0.path().join(name);
    fs::create_dir(&folder).unwrap();
    chown(&folder, Some(owner), Some(group)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    folder
}

/// relent, run by a user who is in the team, too.
fn by(user: &str, place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--groups", &TEAM.to_string(), "./relent"]).args(args);
    command.current_dir(place.0.path()).env("HOME", "/dev/null").stdin(Stdio::null());
    command
}

/// What was said by relent, and whether it went well.
fn said(user: &str, place: &Place, args: &[&str]) -> (bool, String) {
    let output = by(user, place, args).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.success(), said.concat())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Opens a store. When that is closed as the last, what a run left beside it is gone.
fn opened(file: &Path) -> rusqlite::Connection {
    let conn = rusqlite::Connection::open(file).unwrap();
    conn.execute("UPDATE relent_meta SET value = value", []).unwrap();
    conn
}

const HINT: &str = "name a file in a folder that only you and root can write to and move, as mktemp -d makes one; ?owner=any believes all, as in a team, or a sandbox where nobody else is known";

/// A run under a lease of this store's, for that user.
fn run_with(user: &str, place: &Place, url: &str) -> (bool, String) {
    said(user, place, &["run", "--lease", "a", "--store", url, "--", "true"])
}

/// Whoever may rename a folder on the way to a store can put another in its place, and with it another store, or a folder of ours.
#[test]
fn another_user_whose_group_may_exchange_a_folder_is_believed_where_that_is_said() {
    let place = place();
    let team = folder(&place, "team", 0, TEAM, 0o2775);
    let _ = folder(&place, "team/jobs", 65_534, 65_534, 0o755);
    let url = format!("sqlite:{}", team.join("jobs/s.db").display());
    let why = format!("somebody else can exchange what is on the way there: {}", team.join("jobs").display());
    let refused = format!("error: store {url}: {why}\nhint: {HINT}\n");
    for (mode, is_refused) in [(0o2775, true), (0o2755, false), (0o3775, false), (0o775, true)] {
        fs::set_permissions(&team, fs::Permissions::from_mode(mode)).unwrap();
        let heard = if is_refused { refused.clone() } else { String::new() };
        assert_eq!(run_with(NOBODY, &place, &url), (!is_refused, heard), "{mode:o}");
        let believed = format!("{url}?owner=any");
        assert_eq!(run_with(NOBODY, &place, &believed), (true, String::new()), "{mode:o}: they are believed");
        let (is_well, checked) = said(NOBODY, &place, &["store", "check", "--json", "--store", &url]);
        assert_eq!((is_well, checked.contains(&why)), (!is_refused, is_refused), "{mode:o}: {checked}");
    }
}

/// Who may write to the folder of the file gives the names of what SQLite reads and makes there to what they like: what the caller has there
/// for itself, too.
#[test]
fn another_user_who_may_write_to_the_folder_is_believed_where_that_is_said() {
    let place = place();
    let team = folder(&place, "team", 65_534, TEAM, 0o2775);
    let url = format!("sqlite:{}", team.join("s.db").display());
    let believed = format!("{url}?owner=any");
    for (owner, user, mode, who) in [
        (65_534, NOBODY, 0o2775, Some("others")),
        (65_534, NOBODY, 0o1775, Some("others")),
        (65_534, NOBODY, 0o755, None),
        (65_534, "0", 0o755, Some("somebody else")),
        (0, "0", 0o775, Some("others")),
        (65_532, NOBODY, 0o2775, Some("somebody else")),
        (65_534, NOBODY, 0o777, Some("everybody")),
    ] {
        chown(&team, Some(owner), Some(TEAM)).unwrap();
        fs::set_permissions(&team, fs::Permissions::from_mode(mode)).unwrap();
        let names_before = names(&team);
        let Some(who) = who else {
            assert_eq!(run_with(user, &place, &url), (true, String::new()), "{owner} {user} {mode:o}");
            continue;
        };
        let why = format!("{who} can put into its folder what it would be read from");
        let refused = format!("error: store {url}: {why}\nhint: {HINT}\n");
        assert_eq!(run_with(user, &place, &url), (false, refused), "{owner} {user} {mode:o}");
        let (is_well, checked) = said(user, &place, &["store", "check", "--json", "--store", &url]);
        assert!(!is_well && checked.contains(&why), "{checked}");
        assert_eq!(names(&team), names_before, "nothing was made");
    }
    chown(&team, Some(0), Some(TEAM)).unwrap();
    fs::set_permissions(&team, fs::Permissions::from_mode(0o2775)).unwrap();
    assert_eq!(run_with(NOBODY, &place, &believed), (true, String::new()), "they are believed");
    let caution = format!(
        "others may write to {}, who can take the store away, or put another in its place (chmod g-w, setfacl -b)",
        team.display()
    );
    let (is_well, checked) = said(NOBODY, &place, &["store", "check", "--json", "--store", &believed]);
    assert!(is_well && checked.contains(&caution), "{checked}");
}

/// What SQLite makes beside a file belongs to who has it open, and stays when that is somebody who may only read it.
#[test]
fn who_only_reads_a_store_of_another_user_shuts_nobody_out() {
    let place = place();
    let team = folder(&place, "team", 65_534, TEAM, 0o2775);
    let file = team.join("s.db");
    let theirs = format!("sqlite:{}?owner=any", file.display());
    let run = ["run", "-q", "--lease", "a", "--store", &theirs, "--", "true"];
    assert_eq!(said(NOBODY, &place, &run), (true, String::new()));
    let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    let run_theirs = ["run", "-q", "--lease", "b", "--store", &theirs, "--", "true"];
    let looks: [&[&str]; 4] = [&["store", "show"], &["store", "check"], &["upstream"], &["store", "migrate"]];
    let why = format!(
        "error: store {theirs}: the store's file {} cannot be written, and who only reads it would leave files beside it \
         that shut out who may write\nhint: chmod u+w FILE, or ask as who may write to it\n",
        file.display()
    );
    for (user, of_file) in [(MATE, 0o644), (NOBODY, 0o444)] {
        drop(opened(&file));
        mode(of_file);
        let asks = looks.map(|look| [look, &["--store", &theirs]].concat());
        for ask in asks.iter().map(Vec::as_slice).chain([&run_theirs[..]]) {
            assert_eq!(said(user, &place, ask), (false, why.clone()), "{user} {ask:?}");
            assert_eq!(names(&team), ["s.db"], "{user} {ask:?}");
        }
        mode(0o644);
        assert_eq!(said(NOBODY, &place, &run), (true, String::new()), "after {user}");
    }
    drop(opened(&file));
    // Where nothing can be made, nothing is in anybody's way. What somebody has open is read.
    fs::set_permissions(&team, fs::Permissions::from_mode(0o755)).unwrap();
    let (is_well, told) = said(MATE, &place, &["store", "show", "--store", &theirs]);
    assert!(!is_well && told.contains("the store cannot be written"), "{told}");
    let held = opened(&file);
    let (is_well, told) = said(MATE, &place, &["store", "show", "--store", &theirs]);
    assert!(is_well && told.starts_with("leases     0\n"), "{told}");
    drop(held);
    assert_eq!(names(&team), ["s.db"]);
}

/// Also in a folder that gives its group to nothing that is made in it.
#[test]
fn who_may_write_to_a_store_of_another_user_shuts_nobody_out() {
    let place = place();
    let team = folder(&place, "team", 65_534, TEAM, 0o770);
    let (file, up, ok) = (team.join("s.db"), team.join("up"), team.join("ok"));
    let url = format!("sqlite:{}?owner=any", file.display());
    let run = ["run", "-q", "--lease", "a", "--store", &url, "--", "true"];
    assert_eq!(said(NOBODY, &place, &run), (true, String::new()));
    drop(opened(&file));
    chown(&file, None, Some(TEAM)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
    let wait = format!("touch {}; until test -e {}; do sleep 0.01; done", up.display(), ok.display());
    let holds = ["run", "-q", "--lease", "b", "--store", &url, "--", "sh", "-c", &wait];
    let mut held = by(MATE, &place, &holds).spawn().unwrap();
    until("it has the store open", || up.exists());
    let told = said(NOBODY, &place, &run);
    fs::write(ok, "").unwrap();
    assert!(held.wait().unwrap().success());
    assert_eq!(told, (true, String::new()));
}

/// As `setfacl -m u:65532:rwx` gives it.
fn shared_by_a_list(path: &Path, rights: u16) -> rustix::io::Result<()> {
    let entries =
        [(1, rights, u32::MAX), (2, rights, 65_532), (4, 0, u32::MAX), (16, rights, u32::MAX), (32, 0, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, who) in entries {
        list.extend(u16::to_le_bytes(tag).into_iter().chain(u16::to_le_bytes(rights)).chain(who.to_le_bytes()));
    }
    rustix::fs::setxattr(path, "system.posix_acl_access", &list, rustix::fs::XattrFlags::empty())
}

/// What somebody makes beside a file whom its access list names is for its owner, too, and for the others who are named.
#[test]
fn who_may_write_to_a_store_of_another_user_by_a_list_shuts_nobody_out() {
    let place = place();
    let own = folder(&place, "own", 65_534, 65_534, 0o700);
    let (file, log) = (own.join("s.db"), own.join("s.db-wal"));
    let url = format!("sqlite:{}?owner=any", file.display());
    let (is_made, told) = said(NOBODY, &place, &["store", "migrate", "--store", &url]);
    assert!(is_made, "{told}");
    if let Err(error) = shared_by_a_list(&own, 7).and_then(|()| shared_by_a_list(&file, 6)) {
        eprintln!(
            "SKIPPED who_may_write_to_a_store_of_another_user_by_a_list_shuts_nobody_out: the folder takes none: {error}"
        );
        return;
    }
    let run = ["run", "-q", "--lease", "a", "--store", &url, "--", "true"];
    for (holder, other, owner) in [(MATE, NOBODY, 65_532), (NOBODY, MATE, 65_534)] {
        let (up, ok) = ["up", "ok"].map(|name| place.0.path().join("tmp").join(format!("{name}-{holder}"))).into();
        let wait = format!("touch {}; until test -e {}; do sleep 0.01; done", up.display(), ok.display());
        let holds = ["run", "-q", "--lease", "b", "--store", &url, "--", "sh", "-c", &wait];
        let mut held = by(holder, &place, &holds).spawn().unwrap();
        until("it has the store open", || up.exists());
        let of_log = fs::metadata(&log).unwrap();
        let told = said(other, &place, &run);
        fs::write(ok, "").unwrap();
        assert!(held.wait().unwrap().success());
        assert_eq!(told, (true, String::new()), "{other}");
        assert_eq!((of_log.uid(), of_log.mode() & 0o007), (owner, 0), "for nobody else");
    }
}

/// Whoever was shut out by what is left of a run that was killed shuts out nobody by trying.
#[test]
fn who_cannot_open_a_store_of_another_user_shuts_nobody_out() {
    let place = place();
    let team = folder(&place, "team", 65_534, TEAM, 0o2770);
    let (file, log, index) = (team.join("s.db"), team.join("s.db-wal"), team.join("s.db-shm"));
    let url = format!("sqlite:{}?owner=any", file.display());
    let run = ["run", "-q", "--lease", "a", "--store", &url, "--", "true"];
    assert_eq!(said(NOBODY, &place, &run), (true, String::new()));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
    drop(opened(&file));
    fs::write(&log, "what is no log").unwrap();
    chown(&log, Some(65_534), Some(TEAM)).unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
    let masked = by(MATE, &place, &run);
    let mut tries = Command::new("sh");
    tries.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(masked.get_program()).args(masked.get_args());
    let tried = tries.current_dir(place.0.path()).env("HOME", "/dev/null").output().unwrap();
    assert_eq!(tried.status.code(), Some(125), "{tried:?}");
    let left = fs::symlink_metadata(&index).unwrap();
    assert_eq!((left.uid(), left.gid(), left.mode() & 0o777), (65_532, TEAM, 0o660), "if anything is left");
    for user in [NOBODY, MATE] {
        assert_eq!(said(user, &place, &run), (true, String::new()), "{user}");
    }
}

/// A database in the other way of SQLite to write, which takes two files beside it even to be read.
#[test]
fn nothing_is_left_beside_the_database_of_a_program_of_another_user() {
    let place = place();
    let team = folder(&place, "team", 65_534, TEAM, 0o2775);
    let file = team.join("app.db");
    let app = rusqlite::Connection::open(&file).unwrap();
    app.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE places (url TEXT)").unwrap();
    drop(app);
    let url = format!("sqlite:{}?owner=any", file.display());
    for (user, owner, mode) in
        [(MATE, 65_534, 0o644), (MATE, 65_534, 0o664), (NOBODY, 65_534, 0o600), ("0", 65_534, 0o600)]
    {
        chown(&file, Some(owner), Some(TEAM)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let before = fs::read(&file).unwrap();
        for ask in [&["store", "check", "--store", &url][..], &["run", "--lease", "a", "--store", &url, "--", "true"]] {
            let (is_well, told) = said(user, &place, ask);
            assert!(!is_well && told.contains("it is the database of another program"), "{user} {ask:?}: {told}");
            assert_eq!((names(&team), fs::read(&file).unwrap() == before), (vec!["app.db".to_owned()], true), "{user}");
        }
    }
}
