//! What other users, odd files and small limits can do to a run.

use super::{Place, QUICK, script_args, until};
use crate::binary::{Outcome, said_in};
use std::{
    fs::{self, OpenOptions},
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::Path,
    process::{Command, Stdio},
    thread,
};

/// Somebody who is not root.
pub(super) const NOBODY: &str = "65534";
/// Somebody else.
pub(super) const OTHER: &str = "65533";

/// The length of a body that is not kept in memory.
const LARGE: usize = 3 << 20;

/// A folder that every user can write to as in `/tmp`, with relent in it. It takes root, who can be anybody: `cargo xtask
/// test` skips the tests whose names have `another_user` where it is somebody else, and says so.
pub(super) fn shared() -> Place {
    assert!(nix::unistd::geteuid().is_root(), "only root can be another user, too: cargo xtask test --without root");
    let place = Place::new();
    for folder in [place.0.path().to_owned(), place.0.path().join("tmp")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o1777)).unwrap();
    }
    fs::copy(env!("CARGO_BIN_EXE_relent"), place.0.path().join("relent")).unwrap();
    place
}

/// relent, run by a user.
pub(super) fn by(user: &str, place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups", "./relent"]).args(args);
    command.current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp")).env_remove("RELENT_KEY");
    command.env("HOME", "/dev/null").stdin(Stdio::null());
    command
}

/// The password of the store would be in it. Where a process may be dumped its files in `/proc` are its user's, else root's.
#[cfg(target_os = "linux")]
#[test]
fn a_run_with_a_lease_is_in_no_dump_and_its_command_may_be() {
    use std::os::unix::fs::MetadataExt;
    let place = shared();
    let own = place.0.path().join("own");
    fs::create_dir(&own).unwrap();
    Command::new("chown").arg(NOBODY).arg(&own).status().unwrap();
    let store = format!("sqlite:{}", own.join("state.db").display());
    let lease = ["--store", &store, "--lease", "nightly"];
    for (flags, whose) in [(&lease[..], "0"), (&[], NOBODY)] {
        let up = own.join(format!("up-{whose}"));
        let script = format!("stat -c %u /proc/self/maps > {0}.new; mv {0}.new {0}; exec sleep 20", up.display());
        let mut relent = by(NOBODY, &place, &[&["run"], flags, &["--", "sh", "-c", &script]].concat()).spawn().unwrap();
        until("the command runs", || up.exists());
        let owner_of = |pid: &str| fs::metadata(format!("/proc/{pid}/maps")).map(|data| data.uid().to_string());
        let owner = owner_of(&relent.id().to_string());
        // Nor is who watches over the lease.
        let children = format!("/proc/{0}/task/{0}/children", relent.id());
        for child in fs::read_to_string(children).unwrap().split_whitespace() {
            let is_watchman = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap().contains("@lease-watchman");
            until("the watchman is in no dump", || !is_watchman || owner_of(child).unwrap() == "0");
        }
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(relent.id() as i32), nix::sys::signal::SIGTERM).unwrap();
        relent.wait().unwrap();
        assert_eq!((owner.unwrap().as_str(), fs::read_to_string(up).unwrap().trim()), (whose, NOBODY));
    }
}

/// Nor is who waits with a store in its policy file, which it does not ask.
#[cfg(target_os = "linux")]
#[test]
fn another_user_reads_no_dump_of_what_waits_with_a_store() {
    use std::os::unix::fs::MetadataExt;
    let place = shared();
    let own = place.0.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("policy.toml"), "[policy]\nupstream = 'a'\n[upstream.a]\nbudget = 'aws-2.1'\n").unwrap();
    let shares = "[policy]\nupstream = 'a'\n[upstream.a]\nbudget = 'aws-2.1'\nstore = 'redis://:hunter2@host/'\n";
    fs::write(own.join("shared.toml"), shares).unwrap();
    let beside = "[policy]\nupstream = 'a'\n[upstream.a]\nbudget = 'aws-2.1'\n\
                  [upstream.b]\nbudget = 'aws-2.1'\nstore = 'redis://:hunter2@host/'\n";
    fs::write(own.join("beside.toml"), beside).unwrap();
    Command::new("chown").arg("-R").arg(NOBODY).arg(&own).status().unwrap();
    for (file, whose) in [("shared.toml", "0"), ("beside.toml", "0"), ("policy.toml", NOBODY)] {
        let file = own.join(file).display().to_string();
        let waits = ["connect", "--policy", &file, "--curve", "constant", "--base", "30s", "--jitter", "none"];
        let mut command = by(NOBODY, &place, &[&waits[..], &["unix:nosuch"]].concat());
        let mut relent = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = [0; 8];
        relent.stderr.as_mut().unwrap().read_exact(&mut said).unwrap();
        let owner = fs::metadata(format!("/proc/{}/maps", relent.id())).map(|data| data.uid().to_string());
        relent.kill().unwrap();
        relent.wait().unwrap();
        assert_eq!((owner.unwrap().as_str(), &said), (whose, b"relent: "));
    }
}

/// Whoever can write to the folder for temporary files can neither read a verdict nor put another in its place.
#[test]
fn another_user_shares_the_folder_for_temporary_files() {
    let place = shared();
    fs::write(place.0.path().join("secret"), "overloaded\n").unwrap();
    fs::set_permissions(place.0.path().join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let script = "echo $RELENT_VERDICT > verdict; while [ ! -e go ]; do sleep 0.02; done; exit 3";
    let mut run = by(NOBODY, &place, &["run", "--base", "1ms", "--max-attempts", "2", "--", "sh", "-c", script]);
    let child = run.stderr(Stdio::piped()).spawn().unwrap();
    until("it runs", || fs::read_to_string(place.0.path().join("verdict")).is_ok_and(|text| text.ends_with('\n')));
    let verdict = place.0.read("verdict").trim().to_owned();
    let folder = Path::new(&verdict).parent().unwrap();
    let attack = format!(
        "echo permanent > {verdict}; rm -rf {folder}; mv {folder} {folder}.away; rm -f {verdict}; \
         ln -sf {secret} {verdict}; cat {verdict}; ls {folder}; echo tried",
        folder = folder.display(),
        secret = place.0.path().join("secret").display(),
    );
    let attacker = Command::new("setpriv")
        .args(["--reuid", OTHER, "--regid", OTHER, "--clear-groups", "sh", "-c", &attack])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&attacker.stdout), "tried\n");
    fs::write(place.0.path().join("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = super::without_times(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        said,
        "relent: attempt 1 of 2: exit 3; next in [t]\n\
         relent: gave up after 2 attempts in [t]: out of attempts (exit 3)\n"
    );
    assert_eq!(place.0.read("secret"), "overloaded\n");
    place.is_clean();
}

/// The same folder, two users, every command that writes there: neither is in the way of the other.
#[test]
fn another_user_uses_every_command_in_the_same_folder() {
    let place = shared();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\nETag: \"v1\"\r\nConnection: close\r\n\r\n");
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&[head.as_bytes(), &vec![b'x'; LARGE]].concat());
        }
    });
    for (user, other) in [(NOBODY, OTHER), (OTHER, NOBODY)] {
        let large = ["run", "-q", "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"];
        let output = by(user, &place, &large).output().unwrap();
        assert_eq!((output.stdout.len(), output.status.code()), (3_000_000, Some(0)));
        let report = format!("report-{user}");
        let run = by(user, &place, &["run", "-q", "--report", &report, "--", "true"]).output().unwrap();
        assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
        // The report holds the command line and the key: it is its owner's.
        let read = Command::new("setpriv")
            .args(["--reuid", other, "--regid", other, "--clear-groups", "cat", &report])
            .current_dir(place.0.path())
            .output()
            .unwrap();
        assert!(read.stdout.is_empty(), "{other} reads the report of {user}");
        let output = by(user, &place, &["explain", "--no-plot"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let output = by(user, &place, &["connect", "--max-attempts", "1", "unix:nosuch"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        // Larger than what is kept in memory, to stdout and to a file that is nobody's yet.
        let file = format!("file-{user}");
        let http = |more: &[&str]| by(user, &place, &[&["http", "-q", &url], more].concat()).output().unwrap();
        assert_eq!(http(&[]).stdout.len(), LARGE);
        assert_eq!(http(&["-C", "-", "-o", &file]).status.code(), Some(0));
        assert_eq!(fs::metadata(place.0.path().join(&file)).unwrap().len(), LARGE as u64);
        let sent =
            by(user, &place, &["http", "-q", &url, "-d", "@-"]).stdin(fs::File::open("/dev/null").unwrap()).output();
        assert_eq!(sent.unwrap().status.code(), Some(0));
        let [html, svg] = ["html", "svg"].map(|kind| format!("herd-{user}.{kind}"));
        let flags = ["simulate", "herd", "--clients", "50", "--capacity", "10", "--html", &html, "--svg", &svg];
        let output = by(user, &place, &flags).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        for (command, more) in [("completions", "bash"), ("man", "run")] {
            assert_eq!(by(user, &place, &[command, more]).output().unwrap().status.code(), Some(0));
        }
    }
    for (file, flags) in [
        (format!("herd-{NOBODY}.html"), vec!["simulate", "herd", "--clients", "50", "--capacity", "10", "--html"]),
        (format!("file-{NOBODY}"), vec!["http", "-q", &url, "-o"]),
        (format!("file-{NOBODY}"), vec!["http", "-q", &url, "-C", "-", "-o"]),
    ] {
        let before = fs::read(place.0.path().join(&file)).unwrap();
        let taken = by(OTHER, &place, &[&flags[..], &[&file]].concat()).output().unwrap();
        assert_eq!(taken.status.code(), Some(125), "{flags:?}: {}", String::from_utf8_lossy(&taken.stderr));
        assert!(fs::read(place.0.path().join(&file)).unwrap() == before, "{file} is another's now");
    }
    let report = format!("report-{NOBODY}");
    let taken = by(OTHER, &place, &["run", "--report", &report, "--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&taken.stderr);
    assert!(said.starts_with(&format!("error: cannot write the report {report}: ")), "{said}");
    place.is_clean();
}

/// Who follows a hint changes nothing but what is theirs.
#[test]
fn a_report_at_a_neighbours_link_has_no_hint_that_follows_it() {
    let place = shared();
    let victim = place.0.path().join("victim");
    fs::write(&victim, "").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o644)).unwrap();
    symlink(&victim, place.0.path().join("report")).unwrap();
    Command::new("chown").args(["-h", OTHER]).arg(place.0.path().join("report")).status().unwrap();
    let refused = place.command(&["run", "--report", "report", "--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("the link belongs to somebody else") && !said.contains("chmod"), "{said}");
    assert!(said.contains("hint: --report FILE needs a file of ours"), "{said}");
}

/// What others can read is replaced; where that is not possible, it is said what is.
#[test]
fn a_report_in_a_folder_of_another_user_has_a_hint() {
    let place = shared();
    let fixed = place.0.path().join("fixed");
    fs::create_dir(&fixed).unwrap();
    fs::write(fixed.join("report"), "").unwrap();
    fs::set_permissions(fixed.join("report"), fs::Permissions::from_mode(0o644)).unwrap();
    Command::new("chown").arg(NOBODY).arg(fixed.join("report")).status().unwrap();
    let report = || by(NOBODY, &place, &["run", "--report", "fixed/report", "--", "true"]).output().unwrap();
    let refused = report();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(125), "{said}");
    assert!(said.contains("others can read it, and it cannot be replaced"), "{said}");
    assert!(said.contains("hint: chmod 600 FILE"), "{said}");
    fs::set_permissions(fixed.join("report"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(report().status.code(), Some(0));
    assert!(fs::read_to_string(fixed.join("report")).unwrap().contains("\"outcome\":\"success\""));
}

/// A group that all users have is not the user's own.
#[test]
fn a_policy_file_that_another_user_may_write_to_is_ignored() {
    let place = shared();
    let file = place.0.path().join("relent.toml");
    fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // A user whom nobody else shares a group with, as nobody may do.
    const ALONE: &str = "54321";
    // Nor does it matter which of their groups they are in now.
    for (now, group, is_used) in [("100", "100", false), (ALONE, ALONE, true), ("100", ALONE, true)] {
        fs::write(&file, "[policy]\nmax_attempts = 1\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
        Command::new("chown").arg(format!("{ALONE}:{group}")).arg(&file).status().unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", ALONE, "--regid", now, "--clear-groups", "./relent", "run", "--", "true"]);
        command.current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp")).env("HOME", "/dev/null");
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(said.contains("is ignored: others can write to it"), !is_used, "{group}: {said}");
        fs::remove_file(&file).unwrap();
    }
}

/// Whoever has a group of their own lets it write to their folders.
#[test]
fn a_policy_file_in_a_folder_that_another_user_may_write_to_is_ignored() {
    const ALONE: &str = "54321";
    let place = shared();
    let folder = place.0.path().join("own");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("relent.toml"), "[policy]\nmax_attempts = 1\n").unwrap();
    Command::new("chown").args(["-R", &format!("{ALONE}:{ALONE}")]).arg(&folder).status().unwrap();
    for (owner, group, mode, problem) in [
        (ALONE, ALONE, 0o775, None),
        (ALONE, "100", 0o755, None),
        (ALONE, "100", 0o775, Some("others can write to its folder")),
        (ALONE, "100", 0o1775, Some("others can write to its folder")),
        ("0", "0", 0o1777, Some("others can write to its folder")),
        ("0", "0", 0o777, Some("others can write to its folder")),
        (OTHER, OTHER, 0o755, Some("its folder belongs to somebody else")),
    ] {
        Command::new("chown").arg(format!("{owner}:{group}")).arg(&folder).status().unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", ALONE, "--regid", ALONE, "--clear-groups", "../relent", "run", "--", "true"]);
        command.current_dir(&folder).env("TMPDIR", place.0.path().join("tmp")).env_remove("RELENT_KEY");
        let output = command.env("HOME", "/dev/null").stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = match problem {
            Some(problem) => format!("relent: relent.toml, found in this folder, is ignored: {problem}\n"),
            None => "relent: the policy of relent.toml, found in this folder\n".to_owned(),
        };
        assert_eq!((output.status.code(), &*said), (Some(0), &*expected), "{owner}:{group} {mode:o}");
    }
    // Two names of their own are two of theirs.
    Command::new("chown").arg(format!("{ALONE}:{ALONE}")).arg(&folder).status().unwrap();
    fs::hard_link(folder.join("relent.toml"), folder.join("other.toml")).unwrap();
    for (mode, is_used) in [(0o775, true), (0o777, false)] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", ALONE, "--regid", ALONE, "--clear-groups", "../relent", "run", "--", "true"]);
        command.current_dir(&folder).env("TMPDIR", place.0.path().join("tmp")).env("HOME", "/dev/null");
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("the policy of relent.toml"), is_used, "{mode:o}: {said}");
    }
}

/// No file, and nothing that could be meant: whose folder it is, and whether it may be read, does not matter.
#[test]
fn a_folder_that_another_user_has_shut_in_the_place_of_a_policy_file_is_ignored() {
    let place = shared();
    let file = place.0.path().join("relent.toml");
    fs::create_dir(&file).unwrap();
    let said = "relent: relent.toml, found in this folder, is ignored: it is a folder, and no file\n";
    for (owner, mode) in [(OTHER, 0o000), (OTHER, 0o755), (NOBODY, 0o000), ("0", 0o700)] {
        Command::new("chown").arg(owner).arg(&file).status().unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let outcome = place.outcome(&mut by(NOBODY, &place, &["run", "--", "echo", "ran"]));
        assert_eq!((&*outcome.stdout, &*outcome.stderr, outcome.code), ("ran\n", said, Some(0)), "{owner} {mode:o}");
        let named = by(NOBODY, &place, &["run", "--policy", "#a", "--", "true"]).output().unwrap();
        let said = String::from_utf8_lossy(&named.stderr);
        assert!(said.starts_with("error: relent.toml, found in this folder, is not used: it is a folder"), "{said}");
    }
}

/// As `sudo -u` leaves somebody in a folder of root's.
#[test]
fn nothing_is_found_in_a_folder_that_another_user_has_shut() {
    let place = shared();
    let shut = place.0.path().join("shut");
    fs::create_dir(&shut).unwrap();
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o700)).unwrap();
    let relent = place.0.path().join("relent").display().to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", &relent, "run", "--", "echo", "text"]);
    command.current_dir(&shut).env("TMPDIR", place.0.path().join("tmp")).env_remove("RELENT_KEY");
    let output = command.env("HOME", "/dev/null").stdin(Stdio::null()).output().unwrap();
    assert_eq!((&*output.stdout, &*output.stderr), (&b"text\n"[..], &b""[..]));
    let named = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", &relent, "run", "--", "true"])
        .env("RELENT_CONFIG", shut.join("relent.toml"))
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&named.stderr);
    assert!(
        said.starts_with("error: cannot read the policy file ") && said.contains(": Permission denied\n"),
        "{named:?}"
    );
}

/// What it says is not known, so that nothing else can stand for it.
#[test]
fn a_policy_file_that_cannot_be_read_is_an_error_and_no_other_policy_takes_its_place() {
    let place = shared();
    let folder = place.0.path().join("roots");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.join("relent.toml");
    fs::write(&file, "[policy]\nmax_attempts = 1\n").unwrap();
    let relent = place.0.path().join("relent").display().to_string();
    let run = |flags: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", &relent, "run", "-q", "--base", "1ms"]);
        command.args(flags).args(["--", "sh", "-c", "echo x; exit 1"]).stdin(Stdio::null());
        command.current_dir(&folder).env("TMPDIR", place.0.path().join("tmp")).env("HOME", "/dev/null");
        command
    };
    let cannot = "error: cannot read the policy file ";
    for (mode, stdout, error) in [(0o600, "", cannot), (0o644, "x\n", "")] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let found = run(&[]).output().unwrap();
        let named = run(&[]).current_dir("/").env("RELENT_CONFIG", &file).output().unwrap();
        let of_it = run(&["--policy", "#"]).output().unwrap();
        for output in [found, named, of_it] {
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), stdout, "{mode:o}: {said}");
            assert!(said.starts_with(error) && said.is_empty() == error.is_empty(), "{mode:o}: {said}");
        }
    }
}

/// Three attempts around three are no nine, wherever the folder for temporary files is.
#[test]
fn what_a_run_inside_says_is_heard_in_a_folder_of_another_user() {
    let place = shared();
    let tmp = place.0.path().join("theirs");
    fs::create_dir(&tmp).unwrap();
    Command::new("chown").arg(NOBODY).arg(&tmp).status().unwrap();
    let relent = env!("CARGO_BIN_EXE_relent");
    let inner = format!("{relent} run -q --max-attempts 3 --base 1ms -- sh -c 'echo x; exit 1'");
    let mut command =
        place.command(&["run", "-q", "--max-attempts", "3", "--base", "1ms", "--stream", "--", "sh", "-c", &inner]);
    let output = command.env("TMPDIR", &tmp).output().unwrap();
    // The run inside passes on the output of its last attempt.
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1, "{output:?}");
}

/// What belongs to another user is refused before it is touched.
#[test]
fn a_report_does_not_empty_the_file_of_another_user() {
    let place = shared();
    let notes = place.0.path().join("notes");
    fs::write(&notes, "precious").unwrap();
    Command::new("chown").arg(NOBODY).arg(&notes).status().unwrap();
    let outcome = place.relent(&["run", "--report", "notes", "--", "true"]);
    assert_eq!(outcome.code, Some(125), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("it belongs to somebody else"), "{}", outcome.stderr);
    assert_eq!(place.0.read("notes"), "precious");
}

/// Nothing may be opened any more, or its disk has become one for reading only: what was said counts.
#[test]
fn a_verdict_that_cannot_be_opened_any_more_is_heard() {
    let place = Place::new();
    let run = ["run", "-q", "--max-attempts", "3", "--base", "1ms", "--stdin", "null", "--", "sh", "-c"];
    let said = "echo >> ran; echo permanent > $RELENT_VERDICT";
    for by in ["prlimit --pid $PPID --nofile=3:4096", "mount -o remount,ro tmp"] {
        let _ = fs::remove_file(place.0.path().join("ran"));
        let of_a_disk = "mkdir -p tmp; mount -t tmpfs none tmp; exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", of_a_disk, "sh", env!("CARGO_BIN_EXE_relent")]);
        command.args(run).arg(format!("{said}; {by}; exit 3")).current_dir(place.0.path());
        let outcome = place.outcome(command.env("TMPDIR", place.0.path().join("tmp")).stdin(Stdio::null()));
        assert_eq!((outcome.code, place.0.read("ran").as_str()), (Some(3), "\n"), "{by}: {}", outcome.stderr);
    }
}

/// Where nothing can be said of what must not be done twice, nothing is done until it can.
#[test]
fn an_attempt_whose_verdict_has_no_room_is_one_that_failed() {
    let place = Place::new();
    let fill = "for i in $(seq 3 101); do mkdir ${RELENT_VERDICT%2}$i; done";
    let script = format!(
        "echo $RELENT_ATTEMPT >> ran; [ $RELENT_ATTEMPT -gt 1 ] || {{ {fill}; echo $RELENT_VERDICT > name; }}; exit 3"
    );
    let mut command = place.command(&script_args(&["--max-attempts", "3", "--base", "1ms"], &script));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("attempt 2 of 3: cannot create a file in"), "{said}");
    assert_eq!((output.status.code(), place.0.read("ran").as_str()), (Some(3), "1\n3\n"), "{said}");
    let name = place.0.read("name");
    fs::remove_dir_all(Path::new(name.trim()).parent().unwrap()).unwrap();
}

/// A file with another name somewhere is not the one that relent made for the verdict.
#[test]
fn a_verdict_that_is_a_link_to_another_file_empties_nothing() {
    let place = Place::new();
    fs::write(place.0.path().join("kept"), "permanent").unwrap();
    let script = "rm $RELENT_VERDICT; ln kept $RELENT_VERDICT; exit 3";
    let outcome = place.relent(&["run", "--max-attempts", "1", "--", "sh", "-c", script]);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert_eq!(place.0.read("kept"), "permanent");
}

/// The run that it is for may have ended: then the name of its file is anybody's.
#[test]
fn a_verdict_is_written_to_a_file_of_ones_own_alone() {
    let place = Place::new();
    let folder = place.0.path().canonicalize().unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let written = |name: &str| {
        let path = folder.join(name);
        let mut command = place.command(&["run", "-q", "--max-attempts", "1", "--", "sh", "-c", "exit 3"]);
        assert_eq!(command.env("RELENT_VERDICT", path).status().unwrap().code(), Some(3));
        place.0.read("kept")
    };
    fs::write(place.0.path().join("kept"), "").unwrap();
    // Before it writes out what it has it says more, which it takes back then.
    let said = written("kept");
    let lines = said_in(&place.0.path().join("kept"));
    assert_eq!(lines, ["exit 1-255: permanent", "exit 3: permanent", "exit 1-255: taken back"]);
    fs::hard_link(place.0.path().join("kept"), place.0.path().join("other")).unwrap();
    assert_eq!(written("other"), said, "nothing more");
    fs::remove_file(place.0.path().join("other")).unwrap();
    symlink("kept", place.0.path().join("link")).unwrap();
    assert_eq!(written("link"), said, "nor through a link");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(written("kept"), said, "nor where others can see it");
}

/// A link that another user has put where something will be written is not followed to a file of ours, whether the system
/// protects links or not.
#[test]
fn nothing_is_written_through_a_link_of_another_user() {
    let place = shared();
    fs::write(place.0.path().join("mine"), "kept").unwrap();
    let link = place.0.path().join("report");
    symlink(place.0.path().join("mine"), &link).unwrap();
    Command::new("chown").args(["-h", NOBODY]).arg(&link).status().unwrap();
    let folder = place.0.path().join("folder");
    symlink(place.0.path().join("own"), &folder).unwrap();
    fs::create_dir(place.0.path().join("own")).unwrap();
    Command::new("chown").args(["-h", NOBODY]).arg(&folder).status().unwrap();
    let pipe = place.0.path().join("pipe");
    Command::new("mkfifo").args(["-m", "666"]).arg(&pipe).status().unwrap();
    Command::new("chown").arg(NOBODY).arg(&pipe).status().unwrap();
    let _reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let given = |mode: u32, group: u32| {
        chown(place.0.path(), None, Some(group)).unwrap();
        fs::set_permissions(place.0.path(), fs::Permissions::from_mode(mode)).unwrap();
    };
    // For everybody, and for a group.
    for (mode, group) in [(0o1777, 0), (0o1770, 65_533), (0o3775, 65_533)] {
        given(mode, group);
        for args in [
            &["run", "--report", "report", "--", "true"][..],
            &["run", "--report", "folder/new", "--", "true"],
            &["explain", "--svg", "pipe"],
            &["simulate", "herd", "--clients", "10", "--svg", "folder/a/b"],
            &["http", "-o", "folder/new", "http://[::1]:1/"],
            &["http", "-C", "-", "-o", "folder/new", "http://[::1]:1/"],
            &["http", "-o", "pipe", "http://[::1]:1/"],
            &["explain", "--svg", "report"],
            &["simulate", "herd", "--clients", "10", "--html", "report"],
            &["simulate", "herd", "--clients", "10", "--csv", "report"],
            &["simulate", "herd", "--clients", "10", "--svg", "folder"],
            &["http", "-o", "report", "http://[::1]:1/"],
            &["store", "migrate", "--store", "sqlite:report"],
        ] {
            let outcome = place.relent(args);
            assert_eq!(outcome.code, Some(125), "{args:?}: {}", outcome.stderr);
            assert!(outcome.stderr.contains("a folder that others may write to"), "{args:?}: {}", outcome.stderr);
            assert_eq!(place.0.read("mine"), "kept", "{args:?}");
        }
    }
    given(0o1755, 0);
    assert_eq!(place.relent(&["explain", "--svg", "report"]).code, Some(0));
    assert_ne!(place.0.read("mine"), "kept", "where nobody else makes links they are followed");
    assert_eq!(fs::read_dir(place.0.path().join("own")).unwrap().count(), 0);
}

/// A folder of a neighbour's is theirs by whatever path it is named, and a name of theirs for a file of ours is no name of ours.
#[test]
fn nothing_is_written_where_a_neighbour_has_a_say() {
    let place = shared();
    let at = |name: &str| place.0.path().join(name);
    fs::create_dir(at("own")).unwrap();
    fs::set_permissions(at("own"), fs::Permissions::from_mode(0o700)).unwrap();
    let victim = at("own/victim");
    fs::write(&victim, "old").unwrap();
    fs::create_dir(at("theirs")).unwrap();
    symlink(&victim, at("theirs/report")).unwrap();
    assert!(
        Command::new("chown")
            .args(["-h", NOBODY])
            .args([at("theirs"), at("theirs/report")])
            .status()
            .unwrap()
            .success()
    );
    fs::hard_link(&victim, at("hard")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
        }
    });
    for (folder, args) in [
        ("theirs", &["run", "--report", "report", "--", "true"][..]),
        ("theirs", &["run", "--report", "./report", "--", "true"]),
        ("own", &["run", "--report", "../theirs/report", "--", "true"]),
        ("theirs", &["http", "-q", "-o", "report", &url]),
        ("", &["run", "--report", "hard", "--", "true"]),
        ("", &["explain", "--base", "1s", "--svg", "hard"]),
        ("own", &["run", "--report", "../hard", "--", "true"]),
    ] {
        let output = place.command(args).current_dir(at(folder)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{folder} {args:?}: {said}");
        assert!(said.contains("in a folder that others may write to"), "{folder} {args:?}: {said}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "old", "{folder} {args:?}");
    }
    // A folder of one's own may have files with several names.
    fs::hard_link(&victim, at("own/second")).unwrap();
    fs::remove_file(at("hard")).unwrap();
    let output = place.command(&["run", "--report", "second", "--", "true"]).current_dir(at("own")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn too_many_open_files_may_pass() {
    let place = Place::new();
    let relent = env!("CARGO_BIN_EXE_relent");
    let seen = (12..60).map(|limit| {
        let line = format!("ulimit -n {limit}; exec {relent} {} --max-attempts 2 -- true", QUICK.join(" "));
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
        place.outcome(command.stdin(Stdio::null()))
    });
    let mut codes = Vec::new();
    for Outcome { stderr, code, .. } in seen {
        codes.push(code);
        match code {
            Some(126) => {
                let problems =
                    ["cannot execute", "cannot create a file in"].map(|what| format!("attempt 1 of 2: {what}"));
                assert!(problems.iter().any(|problem| stderr.contains(problem)), "{stderr}");
                assert!(stderr.contains("hint: ulimit -n says how many files may be open"), "{stderr}");
            }
            Some(125) => assert!(stderr.starts_with("error: cannot "), "{stderr}"),
            code => assert_eq!((code, stderr.as_str()), (Some(0), "")),
        }
    }
    codes.dedup();
    assert_eq!(codes, [Some(125), Some(126), Some(0)]);
}

/// Names that somebody chose are one line of an error, whatever is in them.
#[test]
fn no_error_can_be_forged_by_a_name() {
    let bad = "a\nerror: \u{1b}[2J\u{202e}b";
    for args in [
        &["run", "--", bad][..],
        &["run", "--report", &format!("{bad}/x"), "--", "true"],
        &["run", "--policy", bad, "--", "true"],
        &["run", "--policy", &format!("{bad}#x"), "--", "true"],
        &["run", "--retry-on-exit", bad, "--", "true"],
        &["run", "--base", bad, "--", "true"],
        &["connect", bad],
        &["connect", "--cacert", bad, "tls://localhost:1"],
        &["explain", "--systemd", bad],
        &["explain", "--compare", bad],
        &["explain", "--compat", bad],
        &["explain", "--envoy", bad],
        &[&*format!("--{bad}")],
    ] {
        let Outcome { stdout, stderr, code } = Place::new().relent(args);
        assert_eq!(stdout, "", "{args:?}");
        assert!(matches!(code, Some(125..=127)), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{args:?}: {stderr}");
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!stderr.chars().any(obeyed), "{args:?}: {stderr}");
    }
    let place = Place::new().file(
        "named.toml",
        "[policy.p]\nupstream = \"a\\u001b[2J\\nerror: x\\u202e\"\n[upstream.\"a\\u001b[2J\\nerror: x\\u202e\"]\nbudget = { ratio = 0.1 }\n",
    );
    for command in [&["http", "http://[::1]:1/"][..], &["connect", "[::1]:1"], &["run", "--", "false"]] {
        let args =
            [&command[..1], &["-v", "--max-attempts", "2", "--base", "1ms", "--policy", "named.toml#p"], &command[1..]];
        let stderr = place.relent(&args.concat()).stderr;
        assert!(stderr.contains(r"a\u{1b}[2J\nerror: x\u{202e}"), "{command:?}: {stderr}");
        assert!(!stderr.contains(['\u{1b}', '\u{202e}']) && !stderr.contains("\nerror: x"), "{command:?}: {stderr}");
    }
    let place = Place::new().file("broken.toml", "[policy\n");
    fs::rename(place.0.path().join("broken.toml"), place.0.path().join(bad)).unwrap();
    let stderr = place.relent(&["run", "--policy", bad, "--", "true"]).stderr;
    assert_eq!(stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{stderr}");
    let mut command = place.command(&["run", "--", "true"]);
    let stderr = place.outcome(command.env("RELENT_CONFIG", "no\nerror: x")).stderr;
    assert_eq!(stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{stderr}");
}

/// Whatever descriptors are closed at the start, the command gets what it should and nothing is mixed up. What it says to
/// nobody is an error.
#[test]
fn closed_descriptors_are_empty_ones() {
    let place = Place::new();
    let relent = env!("CARGO_BIN_EXE_relent");
    for (closed, stdout, code) in [("<&-", "1\n", 0), (">&-", "", 125), ("2>&-", "1\n", 0), ("<&- >&- 2>&-", "", 125)] {
        let line = format!("exec {relent} run -q -- sh -c 'cat; echo 1; echo 2 >&2' {closed}");
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
        let outcome = place.outcome(command.stdin(Stdio::null()));
        assert_eq!((outcome.stdout.as_str(), outcome.code), (stdout, Some(code)), "{closed}: {}", outcome.stderr);
    }
}

/// A line of a megabyte is not told as a whole.
#[test]
fn a_broken_file_is_told_in_short() {
    let list = format!("[policy]\ndelays = [{}]\ndelays = 1\n", "\"1s\",".repeat(150_000));
    let names = format!("{}=1\n", "a.".repeat(200_000) + "a");
    let policies: String = (0..20_000).map(|nth| format!("[policy.p{nth}]\nmax_attempts = 2\n")).collect();
    for text in [list, names, policies] {
        let place = Place::new().file("p.toml", &text);
        for name in ["p.toml", "p.toml#none"] {
            let said = place.relent(&["run", "--policy", name, "--", "true"]).stderr;
            assert!(said.len() < 9_000, "{} bytes", said.len());
        }
    }
}
