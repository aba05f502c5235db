//! A store's file in a folder of several users.

use super::{
    Place,
    hostile::{NOBODY, shared},
};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::PathBuf,
    process::{Command, Stdio},
};

/// The group of a team.
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

/// Whoever may rename a folder on the way to a store can put another in its place, and with it another store.
#[test]
fn another_user_whose_group_may_exchange_a_folder_is_told_of() {
    let place = place();
    let team = folder(&place, "team", 0, TEAM, 0o2775);
    let _ = folder(&place, "team/jobs", 65_534, 65_534, 0o755);
    let file = team.join("jobs/s.db").display().to_string();
    let run = |query: &str, flags: &[&str]| {
        let store = format!("sqlite:{file}{query}");
        said(NOBODY, &place, &[&["run", "--lease", "a", "--store", &store], flags, &["--", "true"]].concat())
    };
    let caution = format!(
        "others may write to {}, who can take the store away, or put another in its place (chmod g-w, setfacl -b)",
        team.display()
    );
    for (mode, is_told) in [(0o2775, true), (0o2755, false), (0o3775, false), (0o775, true)] {
        fs::set_permissions(&team, fs::Permissions::from_mode(mode)).unwrap();
        let heard = if is_told { format!("relent: store sqlite:{file}: {caution}\n") } else { String::new() };
        assert_eq!(run("", &[]), (true, heard), "{mode:o}");
        assert_eq!(run("?owner=any", &[]), (true, String::new()), "{mode:o}: they are believed");
        let (is_well, checked) =
            said(NOBODY, &place, &["store", "check", "--json", "--store", &format!("sqlite:{file}")]);
        assert!(is_well && checked.contains(&caution) == is_told, "{mode:o}: {checked}");
    }
    assert_eq!(run("", &["-q"]), (true, String::new()));
}
