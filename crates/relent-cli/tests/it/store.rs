//! `relent store`: what a store promises and what is in it, and what is said when there is none.

use crate::binary::{Folder, Outcome, golden, relent, shown_on, tool};
use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const STATE: [&str; 2] = ["--store", "sqlite:state.db"];

fn store(folder: &Folder, args: &[&str]) -> Outcome {
    folder.relent(&[&["store"], args, &STATE].concat())
}

/// A folder with a store in which a lease was taken once, and another is held.
fn with_leases() -> Folder {
    let folder = Folder::new();
    for args in [&["--lease", "once"][..], &["--lease", "secret\x1b[2Jjob", "--lease-at-least", "1h"]] {
        let outcome = folder.relent(&[&["run"], args, &STATE, &["--", "true"]].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
    folder
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn check_says_what_is_promised_in_plain_words() {
    let folder = with_leases();
    let outcome = store(&folder, &["check"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    for line in [
        "store     sqlite:state.db\n",
        "engine    sqlite 3.",
        ", tables of version ",
        "promises  What is accepted is on the disk, and outlives a power loss (WAL, synchronous = FULL).\n",
        "caution   One machine only: ",
        "clock     2",
        "answers   a question in ",
    ] {
        assert!(outcome.stdout.contains(line), "{line:?} is not in {}", outcome.stdout);
    }
    let hasty = folder.relent(&["store", "check", "--store", "sqlite:state.db?durability=process"]);
    assert!(hasty.stdout.contains("a power loss takes the last moments"), "{}", hasty.stdout);
    let machine = json(&store(&folder, &["check", "--json"]).stdout);
    assert_eq!((&machine["engine"], &machine["store"]), (&"sqlite".into(), &"sqlite:state.db".into()));
    assert!(machine["cautions"].is_array() && machine["skew_ms"].is_i64() && machine["write_us"].is_u64());
}

#[test]
fn show_counts_and_lists_without_values() {
    let folder = with_leases();
    let all = store(&folder, &["show"]);
    assert_eq!((all.stderr.as_str(), all.code), ("", Some(0)));
    assert!(
        all.stdout.starts_with("leases     1\nrecords    0\nvalues     0\nseen       0\nupstreams  0\n\n"),
        "{all:?}"
    );
    assert!(all.stdout.contains(r"secret\x1b[2Jjob  held by ") && all.stdout.contains(", fence 2, "), "{all:?}");
    assert!(!all.stdout.contains('\x1b'), "{all:?}");
    assert_eq!(store(&folder, &["show", "records"]).stdout, "");
    let machine = json(&store(&folder, &["show", "leases", "--json"]).stdout);
    assert_eq!((machine["leases"].as_array().unwrap().len(), &machine["leases"][0]["fence"]), (1, &2.into()));
}

/// Somebody takes a URL for the name, its user included.
#[test]
fn names_are_told_without_secrets_to_machines_too() {
    let folder = Folder::new();
    let name = "http://ann:hunter2@host/?token=hunter3";
    let run = ["run", "-q", "--lease", name, "--lease-at-least", "1h", "--store", "sqlite:state.db", "--", "true"];
    assert_eq!(folder.relent(&run).code, Some(0));
    let held = folder.relent(&["upstream", "open", name, "--json", "--store", "sqlite:state.db"]);
    let listed: [&[&str]; 4] =
        [&["store", "show", "--json"], &["store", "show", "leases"], &["upstream", "--json"], &["upstream"]];
    let told = listed.map(|args| folder.relent(&[args, &STATE].concat()));
    let watched = folder.relent(&["upstream", "watch", "--times", "1", "--store", "sqlite:state.db"]);
    for outcome in told.iter().chain([&held, &watched]) {
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains("http://***@host/?token=***"), "{outcome:?}");
        assert!(!outcome.stdout.contains("hunter") && !outcome.stderr.contains("hunter"), "{outcome:?}");
    }
}

/// Where the line begins nobody knows: a name of the right length would begin a row of the terminal.
#[test]
fn no_name_forges_a_line_of_a_terminal_behind_a_prompt() {
    let folder = Folder::new();
    let name = format!("{}error: FORGED", "a".repeat(30));
    let args = ["run", "--lease", &name, "--lease-at-least", "1h", "--store", "sqlite:state.db", "--", "true"];
    assert_eq!(folder.relent(&args).code, Some(0));
    let size = nix::pty::Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let mut command = tool("sh");
    command.args(["-c", "printf '%050d' 0; exec \"$0\" store show leases --store sqlite:state.db"]);
    command.arg(env!("CARGO_BIN_EXE_relent")).current_dir(folder.path()).stderr(Stdio::null());
    let (shown, code) = shown_on(Some(&size), |terminal| command.stdout(terminal));
    assert_eq!(code, Some(0), "{shown:?}");
    let begins = format!("{}{}\r\n  error: FORGED  held by ", "0".repeat(50), "a".repeat(30));
    assert!(shown.starts_with(&begins), "{shown:?}");
    assert_eq!(store(&folder, &["show", "leases"]).stdout.lines().count(), 1, "no terminal breaks it");
}

#[test]
fn what_is_cut_is_said() {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        let args = ["run", "--lease", name, "--lease-at-least", "1h", "--store", "sqlite:state.db", "--", "true"];
        assert_eq!(folder.relent(&args).code, Some(0));
    }
    let two = store(&folder, &["show", "leases", "--limit", "2"]).stdout;
    assert_eq!(two.lines().count(), 3, "{two}");
    assert!(two.ends_with("and more; --limit shows more than 2\n"), "{two}");
    assert!(store(&folder, &["show", "--limit", "2"]).stdout.starts_with("leases     2+\n"));
}

#[test]
fn purge_and_migrate_say_what_they_did() {
    let folder = Folder::new();
    let made = store(&folder, &["migrate"]);
    assert!(made.stdout.starts_with("sqlite:state.db: its tables are up to date, version "), "{made:?}");
    assert_eq!(store(&folder, &["purge"]).stdout, "removed 0 that had expired\n");
    assert_eq!(json(&store(&folder, &["purge", "--json"]).stdout)["removed"], 0);
    assert!(json(&store(&folder, &["migrate", "--json"]).stdout)["schema"].is_u64());
}

/// As a container has a file of its host: the log would be beside the mounted one, and who has it elsewhere would hold the same lease.
#[test]
fn a_file_that_is_mounted_by_itself_is_no_store() {
    let folder = Folder::new().file("state.db", "").file("relent/state.db", "");
    let path = |name: &str| folder.path().join(name);
    for (name, mode) in [("relent", 0o700), ("relent/state.db", 0o600), ("state.db", 0o600)] {
        fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(folder.relent(&["store", "migrate", "--store", "sqlite:host.db"]).code, Some(0));
    symlink("state.db", path("linked")).unwrap();
    let mounted = |args: &[&str]| {
        let mut command = Command::new("unshare");
        let line = "mount --bind host.db state.db && mount --bind host.db relent/state.db || exit 99; exec \"$@\"";
        command.args(["-m", "sh", "-c", line, "sh", env!("CARGO_BIN_EXE_relent")]).args(args);
        command.env("XDG_STATE_HOME", folder.path()).env_remove("RELENT_STORE").current_dir(folder.path());
        let output = command.output().expect("there is unshare");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Outcome { stdout: text(&output.stdout), stderr: text(&output.stderr), code: output.status.code() }
    };
    let run = ["run", "-q", "--lease", "a", "--", "echo", "ran"];
    for url in ["sqlite:state.db", "sqlite:state.db?owner=any", "sqlite:linked", ""] {
        let store = ["--store", url];
        let store = if url.is_empty() { &store[..0] } else { &store };
        let commands: [&[&str]; 5] =
            [&["store", "check"], &["store", "show"], &["store", "purge"], &["store", "migrate"], &run[..4]];
        for command in commands {
            let rest: &[&str] = if command[0] == "run" { &run[4..] } else { &[] };
            let outcome = mounted(&[command, store, rest].concat());
            if outcome.code == Some(99) || outcome.stderr.contains("unshare:") {
                eprintln!("SKIPPED a_file_that_is_mounted_by_itself_is_no_store: it takes root");
                return;
            }
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(125), ""), "{url} {command:?}: {outcome:?}");
            assert!(outcome.stderr.contains("state.db is mounted by itself\nhint: "), "{url} {command:?}: {outcome:?}");
            assert!(outcome.stderr.ends_with(": mount its folder instead\n"), "{url} {command:?}: {outcome:?}");
        }
    }
    assert_eq!(folder.names(), ["host.db", "linked", "relent", "state.db"], "nothing is left beside it");
}

/// A copy by links (`cp -al`) makes a second name of the file; nothing is wrong until somebody opens that.
#[test]
fn a_second_name_of_the_file_is_told_by_check() {
    let folder = with_leases();
    fs::hard_link(folder.path().join("state.db"), folder.path().join("copy.db")).unwrap();
    let outcome = store(&folder, &["check"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    assert!(outcome.stdout.contains("\ncaution   The file has a second name: "), "{}", outcome.stdout);
    // Besides what else there is to say of it.
    fs::set_permissions(folder.path().join("state.db"), Permissions::from_mode(0o660)).unwrap();
    let said = store(&folder, &["check"]).stdout;
    let tells = |what: &str| said.lines().any(|line| line.starts_with("caution") && line.contains(what));
    assert!(tells("The file has a second name: ") && tells("group can write to it"), "{said}");
    let run = folder.relent(&["run", "--lease", "a", "--store", "sqlite:state.db", "--", "echo", "ran"]);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("ran\n", "", Some(0)));
}

/// Each is told within its time, with what to do, and changes nothing.
#[test]
fn stores_that_cannot_be_used_say_why() {
    let folder = Folder::new().file("text.db", &"no store ".repeat(1000));
    assert_eq!(store(&folder, &["migrate"]).code, Some(0));
    let said = |url: &str| {
        let began = Instant::now();
        let outcome = folder.relent(&["store", "check", "--timeout", "2s", "--store", url]);
        assert!(began.elapsed() < Duration::from_secs(12), "{url} took {:?}", began.elapsed());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(125), ""), "{outcome:?}");
        assert!(outcome.stderr.starts_with("error: store ") && outcome.stderr.contains("\nhint: "), "{outcome:?}");
        outcome.stderr
    };
    assert!(said("sqlite:none.db").contains("there is no such file\nhint: relent store migrate makes it, and so"));
    assert!(!folder.path().join("none.db").exists());
    fs::write(folder.path().join("flag"), "1").unwrap();
    assert!(said("sqlite:flag").contains("the file is no store, or is damaged"));
    let leases = ["run", "--lease", "x", "--store", "sqlite:flag", "--", "true"];
    assert_eq!(
        (folder.relent(&leases).code, folder.read("flag").as_str()),
        (Some(125), "1"),
        "SQLite takes it for empty"
    );
    assert!(said("sqlite:text.db").contains("the file is no store, or is damaged"));
    assert!(said("bolt://ann:pw@host/db").contains("bolt://***@host/db: the store's URL names no engine"));

    let lock = rusqlite::Connection::open(folder.path().join("state.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = said("sqlite:state.db");
    assert!(locked.contains("another process has locked the store") || locked.contains("did not answer within"));
    drop(lock);

    let newer = rusqlite::Connection::open(folder.path().join("state.db")).unwrap();
    newer.execute("UPDATE relent_meta SET value = 9999 WHERE name = 'version'", []).unwrap();
    drop(newer);
    assert!(said("sqlite:state.db").contains("tables of version 9999"));

    let json_error = folder.relent(&["store", "check", "--json", "--store", "sqlite:none.db"]);
    assert_eq!(json(&json_error.stderr)["code"], 125);
}

/// Who only looks makes nothing, neither a folder nor a file nor tables, and brings none up to date.
#[test]
fn who_only_looks_changes_nothing() {
    let folder = with_leases().file("empty.db", "");
    drop(rusqlite::Connection::open(folder.path().join("bare.db")).unwrap().execute_batch("VACUUM"));
    fs::copy(folder.path().join("state.db"), folder.path().join("old.db")).unwrap();
    let old = rusqlite::Connection::open(folder.path().join("old.db")).unwrap();
    old.execute_batch("UPDATE relent_meta SET value = 2 WHERE name = 'version'").unwrap();
    old.execute_batch("ALTER TABLE relent_once DROP COLUMN ends").unwrap();
    old.execute_batch("ALTER TABLE relent_upstream_process DROP COLUMN reserves; PRAGMA journal_mode = DELETE")
        .unwrap();
    drop(old);
    let looks: [&[&str]; 6] = [
        &["store", "check"],
        &["store", "show"],
        &["store", "show", "leases"],
        &["store", "purge"],
        &["upstream"],
        &["upstream", "watch", "--times=1"],
    ];
    let makes =
        "hint: relent store migrate makes it, and so does the first command that uses it by --store or RELENT_STORE\n";
    let none = format!("there is no store in it: it has none of its tables\n{makes}");
    for look in looks {
        for (file, why) in [
            ("none.db", format!("there is no such file\n{makes}")),
            ("empty.db", none.clone()),
            ("bare.db", none.clone()),
            (
                "old.db",
                "the store has tables of version 2, and this relent works with those of version 4\n\
                hint: relent store migrate brings them up to date, and so does the first command that uses it by --store or RELENT_STORE\n"
                    .into(),
            ),
        ] {
            let before = fs::read(folder.path().join(file)).ok();
            let outcome = folder.relent(&[look, &["--store", &format!("sqlite:{file}")]].concat());
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(125), ""), "{look:?} {file}: {outcome:?}");
            assert_eq!(outcome.stderr, format!("error: store sqlite:{file}: {why}"), "{look:?}");
            assert!(fs::read(folder.path().join(file)).ok() == before, "{look:?} {file}");
        }
        let mut command = folder.command(look);
        command.env("XDG_STATE_HOME", folder.path().join("state")).env_remove("RELENT_STORE");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{look:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("state/relent/state.db: there is no such file"));
        assert!(!folder.path().join("state").exists(), "{look:?}");
    }
    // Who uses it, or says so, brings it up to date.
    let used = folder.relent(&["run", "--lease", "x", "--store", "sqlite:old.db", "--", "true"]);
    assert_eq!(used.code, Some(0), "{used:?}");
    assert_eq!(folder.relent(&["store", "migrate", "--store", "sqlite:empty.db"]).code, Some(0));
    for file in ["old.db", "empty.db"] {
        let shown = folder.relent(&["store", "show", "--store", &format!("sqlite:{file}")]);
        assert_eq!((shown.stderr.as_str(), shown.code), ("", Some(0)));
    }
}

/// Whoever names a file may have named the wrong one.
#[test]
fn the_database_of_another_program_gets_no_tables_without_a_word() {
    let folder = Folder::new().file("p.toml", "[policy]\n[upstream.x]\nbudget = 'sre'\n");
    let theirs = rusqlite::Connection::open(folder.path().join("theirs.db")).unwrap();
    theirs.execute_batch("CREATE TABLE places (url TEXT); INSERT INTO places VALUES ('x')").unwrap();
    drop(theirs);
    let before = fs::read(folder.path().join("theirs.db")).unwrap();
    let to = ["--store", "sqlite:theirs.db"];
    let run = ["run", "--lease", "x", "--store", "sqlite:theirs.db", "--", "true"];
    let shared = ["run", "--policy", "p.toml", "--upstream", "x", "--store", "sqlite:theirs.db", "--", "true"];
    let asks: [&[&str]; 7] = [
        &["store", "check"],
        &["store", "show"],
        &["store", "purge"],
        &["upstream"],
        &["upstream", "open", "x"],
        &run[..],
        &shared[..],
    ];
    for ask in asks {
        let outcome = folder.relent(&if ask[0] == "run" { ask.to_vec() } else { [ask, &to].concat() });
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(125), ""), "{ask:?}: {outcome:?}");
        let said = "error: store sqlite:theirs.db: it is the database of another program\nhint: name a file of its own; \
                    relent store migrate with the same --store puts relent's tables beside the others\n";
        assert_eq!(outcome.stderr, said, "{ask:?}");
        assert!(fs::read(folder.path().join("theirs.db")).unwrap() == before, "{ask:?}");
    }
    // A database that is empty is nobody's.
    drop(rusqlite::Connection::open(folder.path().join("empty.db")).unwrap().execute_batch("VACUUM"));
    assert_eq!(folder.relent(&["store", "migrate", "--store", "sqlite:empty.db"]).code, Some(0));
    // Who says so has both in one file.
    assert_eq!(folder.relent(&[&["store", "migrate"], &to[..]].concat()).code, Some(0));
    assert_eq!(folder.relent(&run).code, Some(0));
    let url = "sqlite:theirs.db?prefix=other_";
    assert_eq!(folder.relent(&["store", "check", "--store", url]).code, Some(125), "those of another prefix are none");
}

/// Nobody but its user can have written it, whatever the umask is.
#[test]
fn a_read_only_store_is_told_of() {
    let folder = with_leases();
    // Root may write anything: then this cannot be tried.
    let path = folder.path().join("state.db");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    if fs::OpenOptions::new().write(true).open(&path).is_ok() {
        eprintln!("SKIPPED a_read_only_store_is_told_of: this user may write read-only files");
        return;
    }
    let outcome = store(&folder, &["check"]);
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("cannot be written") || outcome.stderr.contains("cannot be opened"), "{outcome:?}");
}

#[test]
fn the_help_of_stores() {
    let outcome = relent(&["store", "--help"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    golden("store-help.txt", &outcome.stdout);
    for what in ["check", "show", "purge", "migrate"] {
        let help = relent(&["store", what, "--help"]).stdout;
        assert!(help.contains("--store <URL>") && help.contains("--json"), "{help}");
        assert!(relent(&["man", "store"]).stdout.contains(what));
    }
    for line in outcome.stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

/// Whatever it is that lacks one.
#[test]
fn who_may_open_no_more_files_is_told_so() {
    let folder = Folder::new();
    let mut told = 0;
    for most in 12..40 {
        let script = format!(
            "ulimit -n {most}; exec relent run -q --max-attempts 1 --lease a --lease-held fail --store sqlite:s.db -- true"
        );
        let output = tool("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let lacks = said.contains("Too many open files") || said.contains("cannot be opened");
        assert!(!lacks || !said.contains("hint: ") || said.contains("ulimit -n"), "{most}: {said}");
        told += u32::from(lacks && said.contains("ulimit -n"));
    }
    assert!(told > 0, "there is no number that is too small");
}
