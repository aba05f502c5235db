//! What all processes of a machine share of a far side, by a store: a budget, a breaker, a hand on it.

use crate::binary::{Folder, Outcome, golden, relent};
use std::{
    net::TcpListener,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

const FILE: &str = "\
[policy.pay]
base = \"1ms\"
cap = \"20ms\"
max_attempts = 8
upstream = \"bank\"

[upstream.bank]
budget = { ratio = 0.1, min_per_second = 0, window = \"1h\" }
store = \"sqlite:state.db\"

[policy.send]
max_attempts = 1
upstream = \"mail\"

[upstream.mail]
limit = { rate = 3, per = \"1h\", burst = 3 }
store = \"sqlite:state.db\"

[policy.tick]
max_attempts = 1
upstream = \"clock\"

[upstream.clock]
limit = { rate = 10 }
store = \"sqlite:state.db\"

[policy.call]
curve = \"immediate\"
max_attempts = 3
upstream = \"shop\"

[upstream.shop]
breaker = { consecutive = 5, open_for = \"1h\" }
store = \"sqlite:state.db\"
";

fn folder() -> Folder {
    made(Folder::new().file("relent.toml", FILE))
}

/// With the store that the file names, which nobody makes who has it from there.
fn made(folder: Folder) -> Folder {
    let outcome = folder.relent(&["store", "migrate", "--store", "sqlite:state.db"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    folder
}

fn start(folder: &Folder, policy: &str, script: &str) -> Child {
    let mut command = folder.command(&["run", "--policy", policy, "--", "sh", "-c", script]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary was built")
}

fn wait(child: Child) -> Outcome {
    let output = child.wait_with_output().expect("it can be waited for");
    let text = |bytes| String::from_utf8(bytes).expect("relent writes UTF-8");
    Outcome { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
}

/// A log would be left beside it otherwise, which shuts out who may use the store but not read that.
#[test]
fn a_command_ends_when_the_store_is_closed() {
    let folder = folder();
    let near = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    let target = near.local_addr().expect("it has an address").to_string();
    let url = format!("http://{target}/");
    for (args, code) in [
        (&["run", "--policy", "./relent.toml#call", "--", "true"][..], 0),
        (&["run", "--policy", "./relent.toml#call", "--", "false"], 1),
        (&["run", "--policy", "./relent.toml#send", "--", "true"], 0),
        (&["connect", "--policy", "./relent.toml#send", &target], 0),
        (&["http", "--policy", "./relent.toml#send", "--attempt-timeout", "1ms", &url], 1),
    ] {
        let outcome = folder.relent(args);
        assert_eq!(outcome.code, Some(code), "{args:?}: {outcome:?}");
        let mut left: Vec<String> = folder.names().into_iter().filter(|name| name.starts_with("state.db")).collect();
        left.sort();
        assert_eq!(left, ["state.db"], "{args:?}");
    }
}

/// Alone, each would make eight attempts: 400. Together they may retry once for ten calls.
#[test]
fn fifty_runs_against_what_fails_retry_five_times_in_all() {
    let folder = folder();
    let runs: Vec<Child> = (0..50).map(|_| start(&folder, "relent.toml#pay", "echo >> attempts; exit 7")).collect();
    let mut alone = 0;
    for run in runs {
        let outcome = wait(run);
        assert_eq!(outcome.code, Some(7), "{outcome:?}");
        alone += u32::from(outcome.stderr.contains("going on alone"));
    }
    let attempts = folder.read("attempts").lines().count();
    // Who could not reach the store in time, on a machine that is very busy, goes on with its own share: none.
    assert!((50..=55).contains(&attempts), "{attempts} attempts, {alone} went alone");
}

/// What is asked before an attempt, after it and at the end is asked within the call's time.
#[test]
fn a_store_that_hangs_holds_up_no_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("the loopback is there");
    let store = format!("redis://{}", silent.local_addr().expect("it is bound"));
    let file = FILE.replace("sqlite:state.db", &store).replace("max_attempts = 8", "timeout = \"500ms\"");
    let folder = Folder::new().file("relent.toml", &file);
    for (args, code) in [
        (&["run", "--policy", "relent.toml#pay", "--", "sh", "-c", "exit 7"][..], 7),
        (&["http", "--policy", "relent.toml#pay", "[::1]:1"], 1),
    ] {
        let began = Instant::now();
        let outcome = folder.relent(args);
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(began.elapsed() < Duration::from_millis(2500), "{:?}: {outcome:?}", began.elapsed());
    }
}

/// Whoever was told to end starts nothing any more, and ends at once, however long a store is silent.
#[test]
fn a_signal_is_heard_while_a_store_is_silent() {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    let silent = TcpListener::bind("127.0.0.1:0").expect("the loopback is there");
    let far_side = TcpListener::bind("127.0.0.1:0").expect("the loopback is there");
    far_side.set_nonblocking(true).expect("it can be");
    let store = format!("redis://{}", silent.local_addr().expect("it is bound"));
    let folder = Folder::new().file("relent.toml", &FILE.replace("sqlite:state.db", &store));
    let url = far_side.local_addr().expect("it is bound").to_string();
    for args in [
        &["run", "--policy", "relent.toml#pay", "--", "touch", "ran"][..],
        &["http", "--policy", "relent.toml#pay", &url],
    ] {
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
            let mut command = folder.command(args);
            let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary was built");
            let asked = silent.accept().expect("the store is asked");
            let told = Instant::now();
            kill(Pid::from_raw(i32::try_from(run.id()).expect("it is one")), signal).expect("it is ours");
            let outcome = wait(run);
            // It would be waited for for three seconds.
            assert!(told.elapsed() < Duration::from_secs(1), "{args:?}, {signal}: {:?}, {outcome:?}", told.elapsed());
            drop(asked);
            assert_eq!(outcome.code, Some(128 + signal as i32), "{args:?}, {signal}: {outcome:?}");
            assert!(!outcome.stderr.contains("its store is away"), "{outcome:?}");
            assert_eq!(folder.names(), ["relent.toml"], "{outcome:?}");
            assert!(far_side.accept().is_err(), "nothing is sent: {outcome:?}");
        }
    }
}

#[test]
fn failures_of_some_open_the_breaker_for_all() {
    let folder = folder();
    let first = wait(start(&folder, "relent.toml#call", "exit 7"));
    assert_eq!(first.code, Some(7), "{first:?}");
    let second = wait(start(&folder, "relent.toml#call", "echo >> attempts; exit 7"));
    if [&first, &second].iter().any(|outcome| outcome.stderr.contains("going on alone: it does not answer")) {
        eprintln!(
            "SKIPPED failures_of_some_open_the_breaker_for_all: this machine is too busy for the store to answer"
        );
        return;
    }
    assert_eq!(folder.read("attempts").lines().count(), 2, "three failures before, and two more: {second:?}");
    let third = wait(start(&folder, "relent.toml#call", "touch ran"));
    assert_eq!(third.code, Some(1), "{third:?}");
    assert!(third.stderr.contains("relent: shop: 5 attempts in a row have failed, of all processes\n"), "{third:?}");
    assert!(third.stderr.contains("breaker open"), "{third:?}");
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn a_breaker_is_held_by_hand_for_all() {
    let folder = folder();
    let said = |args: &[&str]| {
        let outcome = folder.relent(&[&["upstream"], args, &["--policy", "relent.toml"]].concat());
        assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "{args:?}");
        outcome.stdout
    };
    assert_eq!(
        said(&["open", "bank"]),
        "bank is held open: no attempt is let through, until relent upstream release bank --policy relent.toml \
         (in sqlite:state.db)\n"
    );
    let in_a_store = folder.relent(&["upstream", "close", "bank", "--store", "sqlite:state.db"]).stdout;
    assert!(in_a_store.contains(", until relent upstream release bank --store sqlite:state.db (in"), "{in_a_store}");
    said(&["open", "bank"]);
    let mistyped = folder.relent(&["upstream", "open", "bnak", "--policy", "relent.toml"]);
    assert_eq!(mistyped.code, Some(125), "{mistyped:?}");
    assert!(mistyped.stderr.starts_with("error: relent.toml has no [upstream.bnak] with a store\n"), "{mistyped:?}");
    let refused = wait(start(&folder, "relent.toml#pay", "touch ran"));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("relent: bank: held open by hand\n"), "{refused:?}");
    assert!(said(&["list"]).contains("held open"));
    assert_eq!(said(&["release", "bank"]), "bank decides for itself again (in sqlite:state.db)\n");
    assert_eq!(wait(start(&folder, "relent.toml#pay", "touch ran")).code, Some(0));
    assert_eq!(
        said(&["close", "bank", "--json"]).trim(),
        r#"{"store":"sqlite:state.db","name":"bank","held":"closed"}"#
    );
    let listed: serde_json::Value = serde_json::from_str(&said(&["--json"])).unwrap();
    assert_eq!((&listed["upstreams"][0]["name"], &listed["upstreams"][0]["held"]), (&"bank".into(), &"closed".into()));
    assert_eq!(listed["upstreams"][0]["calls"], 1, "what was refused is no call");
    let watched = said(&["watch", "--times", "2", "--every", "100ms"]);
    assert_eq!(watched.lines().count(), 2, "{watched}");
    assert!(watched.lines().all(|line| line.contains(" bank calls=1 retries=0 failed=0 well=1 ")), "{watched}");
}

/// The permits of a rate are those of all processes: who comes too late is told when, who can wait does.
#[test]
fn runs_share_a_rate() {
    let folder = folder();
    for _ in 0..3 {
        assert_eq!(wait(start(&folder, "relent.toml#send", "echo >> sent")).code, Some(0));
    }
    let late = wait(start(&folder, "relent.toml#send", "echo >> sent"));
    assert_eq!(late.code, Some(1), "{late:?}");
    let why = "relent: mail: the rate of all processes, 1 each 20m, is used up; ask again in ";
    assert!(late.stderr.contains(why), "{late:?}");
    assert_eq!(folder.read("sent").lines().count(), 3);
    let listed = folder.relent(&["upstream", "--json", "--policy", "relent.toml"]).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let mail = &listed["upstreams"][0];
    assert_eq!((&mail["name"], &mail["permits"], &mail["burst"]), (&"mail".into(), &3.into(), &3.into()), "{listed}");
    let table = folder.relent(&["upstream", "--policy", "relent.toml"]).stdout;
    assert!(table.contains("  3 at 1 each 20m  "), "{table}");

    let ticks: Vec<_> = (0..6).map(|_| start(&folder, "relent.toml#tick", "date +%s%N >> ticks")).collect();
    for tick in ticks {
        let outcome = wait(tick);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
    let mut ticks: Vec<u64> = folder.read("ticks").lines().map(|tick| tick.parse().unwrap()).collect();
    ticks.sort_unstable();
    // The sixth comes half a second after the first was let through, which may have taken long to start then.
    assert!(ticks[5] - ticks[0] > 250_000_000, "{ticks:?}");
}

/// Who cannot reach the store is not held up, and says so once.
#[test]
fn without_its_store_a_run_goes_on_alone_and_says_so_once() {
    let folder = Folder::new().file("relent.toml", &FILE.replace("sqlite:state.db", "sqlite:no/such/folder.db"));
    let began = Instant::now();
    let outcome = wait(start(&folder, "relent.toml#call", "echo >> attempts; exit 7"));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(outcome.code, Some(7), "{outcome:?}");
    assert_eq!(folder.read("attempts").lines().count(), 3);
    assert_eq!(outcome.stderr.matches("shop: its store is away, going on alone: ").count(), 1, "{outcome:?}");
}

/// One that accepts and says nothing leaves time for what the run is for.
#[test]
fn a_silent_store_takes_a_part_of_the_time_alone() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let store = format!("redis://{}", silent.local_addr().unwrap());
    let folder = Folder::new().file("relent.toml", &FILE.replace("sqlite:state.db", &store));
    let policy = ["--policy", "relent.toml#call", "--", "echo", "done"];
    let own = ["run", "--timeout", "1500ms"];
    let anothers =
        ["run", "--attempt-timeout", "1500ms", "--max-attempts", "1", "--", env!("CARGO_BIN_EXE_relent"), "run"];
    for limited in [&own[..], &anothers] {
        let outcome = folder.relent(&[limited, &policy].concat());
        assert_eq!((outcome.stdout.as_str(), outcome.code), ("done\n", Some(0)), "{limited:?}: {outcome:?}");
        assert!(outcome.stderr.contains("its store is away, going on alone: it does not answer"), "{outcome:?}");
    }
}

/// Where a store is, decides what is made, opened and connected to: not by a file that nobody named.
#[test]
fn the_store_of_a_file_that_was_found_is_left_out() {
    let file = "[policy]\nmax_attempts = 2\nbase = '1ms'\nupstream = 'bank'\n\
                [upstream.bank]\nbudget = 'sre'\nstore = 'sqlite:state.db'\n";
    let folder = Folder::new().file("relent.toml", file);
    let said = "relent: the store of upstream \"bank\" in relent.toml is left out: --policy relent.toml uses it\n";
    for args in [&["run", "--", "false"][..], &["http", "[::1]:1"]] {
        let outcome = folder.relent(args);
        assert!(outcome.stderr.contains(said), "{args:?}: {}", outcome.stderr);
        assert_eq!(folder.names(), ["relent.toml"], "{args:?}");
    }
    let by_its_name = folder.relent(&["run", "--policy", "#", "--", "false"]);
    assert!(by_its_name.stderr.contains(said) && folder.names() == ["relent.toml"], "{by_its_name:?}");
    let quiet = folder.relent(&["run", "-q", "--", "false"]);
    assert_eq!((quiet.stderr.as_str(), folder.names().len()), ("", 1));
    let upstream = folder.relent(&["run", "--upstream", "bank", "--", "false"]);
    assert!(upstream.stderr.contains(said) && folder.names() == ["relent.toml"], "{upstream:?}");
    // A policy of it is used, too, which is said, or none.
    let alone = Folder::new().file("relent.toml", "[upstream.bank]\nbudget = 'sre'\nstore = 'sqlite:state.db'\n");
    let alone = made(alone);
    let used = format!("relent: upstream \"bank\" of relent.toml, found in this folder\n{said}");
    assert_eq!(alone.relent(&["run", "--upstream", "bank", "--", "true"]).stderr, used);
    assert_eq!(alone.relent(&["run", "--policy", "relent.toml", "--upstream", "bank", "--", "true"]).stderr, "");
    let is_used = |folder: &Folder| {
        let listed = folder.relent(&["upstream", "--store", "sqlite:state.db"]).stdout;
        listed.lines().any(|line| line.starts_with("bank "))
    };
    assert!(is_used(&alone));
    let folder = made(folder);
    let outcome = folder.relent(&["run", "--policy", "relent.toml", "--", "false"]);
    assert!(!outcome.stderr.contains("left out"), "{outcome:?}");
    assert!(is_used(&folder), "{outcome:?}");
    let folder = made(Folder::new().file("relent.toml", file));
    let by_variable = folder.command(&["run", "--", "false"]).env("RELENT_CONFIG", "./relent.toml").output().unwrap();
    assert!(is_used(&folder), "{by_variable:?}");
}

/// A store has the names of a file in it, and where it is made says what it is for: who wrote a file that is named, too, has no say in that.
#[test]
fn a_policy_file_makes_no_store() {
    let file = "[policy]\nmax_attempts = 2\nbase = '1ms'\nupstream = \"ssh-ed25519 AAAA eve\"\n\
                [upstream.\"ssh-ed25519 AAAA eve\"]\nbreaker = 'polly'\nstore = 'sqlite:keys'\n";
    let folder = Folder::new().file("p.toml", file);
    let makes = "; relent store migrate --store URL makes it, the policy file alone does not\n";
    let hint =
        "hint: relent store migrate makes it, and so does the first command that uses it by --store or RELENT_STORE\n";
    for (there, why) in [(false, "there is no such file"), (true, "there is no store in it: it has none of its tables")]
    {
        if there {
            std::fs::write(folder.path().join("keys"), "").unwrap();
        }
        for args in [&["run", "--policy", "p.toml", "--", "false"][..], &["http", "--policy", "p.toml", "[::1]:1"]] {
            let outcome = folder.relent(args);
            let said = format!(": its store is away, going on alone: {why}{makes}");
            assert_eq!((outcome.stderr.matches(&said).count(), outcome.code), (1, Some(1)), "{args:?}: {outcome:?}");
        }
        for hand in ["open", "close", "release"] {
            let outcome = folder.relent(&["upstream", hand, "--policy", "p.toml", "--", "ssh-ed25519 AAAA eve"]);
            assert_eq!(outcome.code, Some(125), "{hand}: {outcome:?}");
            assert!(outcome.stderr.ends_with(&format!("{why}\n{hint}")), "{hand}: {outcome:?}");
        }
        let names = if there { &["keys", "p.toml"][..] } else { &["p.toml"] };
        assert_eq!(folder.names(), names);
        assert!(!there || folder.read("keys").is_empty());
    }
    // Nor anything beside what is none, where others may write.
    let mode = |name: &str, mode| {
        let path = folder.path().join(name);
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    std::fs::write(folder.path().join("keys"), "what root has written").unwrap();
    mode("keys", 0o664);
    for (of_folder, args, code) in [
        // A store that is away ends no run.
        (0o755, &["run", "--policy", "p.toml", "--", "sleep", "0.3"][..], 0),
        (0o755, &["upstream", "--policy", "p.toml"], 125),
        (0o777, &["store", "show", "--store", "sqlite:keys?owner=any"], 125),
    ] {
        mode(".", of_folder);
        let outcome = folder.relent(args);
        assert!(outcome.stderr.contains(": the file is no store, or is damaged\n"), "{args:?}: {outcome:?}");
        assert_eq!((outcome.code, folder.names()), (Some(code), vec!["keys".into(), "p.toml".into()]), "{args:?}");
    }
    mode(".", 0o755);
    // What is no file is not opened: somebody may wait for who reads it.
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::write(folder.path().join("pipe.toml"), file.replace("sqlite:keys", "sqlite:pipe")).unwrap();
    let writer = std::process::Command::new("sh").args(["-c", "echo kept > \"$0\""]).arg(&pipe).spawn();
    let mut writer = writer.unwrap();
    for args in [&["run", "--policy", "pipe.toml", "--", "sleep", "0.3"][..], &["upstream", "--policy", "pipe.toml"]] {
        let outcome = folder.relent(args);
        assert!(outcome.stderr.contains("is no regular file"), "{args:?}: {outcome:?}");
        assert!(writer.try_wait().unwrap().is_none(), "{args:?}: it was opened");
    }
    assert_eq!(std::fs::read_to_string(&pipe).unwrap(), "kept\n");
    assert!(writer.wait().unwrap().success());
    let by_hand = folder.relent(&[
        "run",
        "--policy",
        "p.toml",
        "--store",
        "sqlite:own.db",
        "--upstream",
        "ssh-ed25519 AAAA eve",
        "--",
        "true",
    ]);
    assert_eq!((by_hand.code, folder.path().join("own.db").exists()), (Some(0), true), "{by_hand:?}");
}

/// What belongs to others would run, or be opened, with the rights of whoever names the file.
#[test]
fn a_policy_file_does_not_say_whom_to_believe() {
    let file = "[policy]\nupstream = 'bank'\n[upstream.bank]\nbudget = 'sre'\nstore = 'sqlite:state.db?owner=any'\n";
    let folder = made(Folder::new().file("p.toml", file));
    let said = "error: store sqlite:state.db?owner=any: its URL says whom to believe, and only a policy file names it\n\
                hint: where that is meant, RELENT_STORE with the same URL says so; relent run takes --upstream NAME --store URL, too\n";
    for args in [
        &["run", "--policy", "p.toml", "--", "touch", "ran"][..],
        &["http", "--policy", "p.toml", "[::1]:1"],
        &["upstream", "--policy", "p.toml"],
        &["upstream", "watch", "--policy", "p.toml"],
        &["upstream", "open", "bank", "--policy", "p.toml"],
    ] {
        let outcome = folder.relent(args);
        assert_eq!((outcome.stderr.as_str(), outcome.code), (said, Some(125)), "{args:?}");
    }
    assert_eq!(folder.names(), ["p.toml", "state.db"]);
    let by_hand =
        ["run", "--policy", "p.toml", "--upstream", "bank", "--store", "sqlite:state.db?owner=any", "--", "true"];
    assert_eq!(folder.relent(&by_hand).code, Some(0));
    for args in [&["run", "--policy", "p.toml", "--", "true"][..], &["upstream", "--policy", "p.toml"]] {
        let same = folder.command(args).env("RELENT_STORE", "sqlite:state.db?owner=any").output().unwrap();
        let another = folder.command(args).env("RELENT_STORE", "sqlite:state.db").output().unwrap();
        assert_eq!(
            (same.status.code(), another.status.code()),
            (Some(0), Some(125)),
            "{args:?}: {same:?}, {another:?}"
        );
    }
}

#[test]
fn no_breaker_is_held_in_the_store_of_a_file_that_was_found() {
    let folder = Folder::new().file("relent.toml", "[upstream.bank]\nbudget = 'sre'\nstore = 'sqlite:state.db'\n");
    let said = "error: relent.toml names a store, and nobody has named relent.toml: it was found in this folder\n\
                hint: --policy relent.toml uses it, --store URL another\n";
    for args in [&["open", "bank"][..], &["close", "bank"], &["release", "bank"], &["list"], &["watch"], &[]] {
        let outcome = folder.relent(&[&["upstream"], args].concat());
        assert_eq!((outcome.stderr.as_str(), outcome.code), (said, Some(125)), "{args:?}");
        assert_eq!(folder.names(), ["relent.toml"], "{args:?}");
    }
    let meant = made(folder).relent(&["upstream", "open", "bank", "--policy", "relent.toml"]);
    assert_eq!(meant.code, Some(0), "{meant:?}");
}

/// One call would be as many requests as the file likes, all at once.
#[test]
fn a_hedge_of_a_file_that_was_found_is_no_storm() {
    let said = "relent: the hedge, which asks for many attempts at once, of upstream \"bank\" in relent.toml is left out: \
                --policy relent.toml uses it\n";
    for (hedge, is_left_out) in [
        ("after = '1ns', at_most = 2", true),
        ("after = '50ms', at_most = 9", true),
        ("quantile = 0.5, at_most = 255", true),
        ("after = '1ms', at_most = 8", false),
        // Each retry is so many at once.
        ("after = '50ms'} #", false),
        ("after = '50ms', at_most = 8 } #many", true),
        ("after = '50ms', at_most = 3 } #many", false),
        // Three rounds of nine within a second, and two.
        ("after = '1ms', at_most = 8 } #335", true),
        ("after = '1ms', at_most = 8 } #499", true),
        ("after = '1ms', at_most = 8 } #501", false),
    ] {
        let wait =
            hedge.split_once(" #").and_then(|(_, wait)| if wait == "many" { Some(200) } else { wait.parse().ok() });
        let attempts = match wait {
            Some(wait) => format!(
                "max_attempts = 1000\ncurve = 'constant'\nbase = '{wait}ms'\njitter = 'none'\nmax_elapsed = '1ms'"
            ),
            None => "max_attempts = 2\nbase = '1ms'".to_owned(),
        };
        let file = format!("[policy]\n{attempts}\nupstream = 'bank'\n[upstream.bank]\nhedge = {{ {hedge} }}\n");
        let folder = Folder::new().file("relent.toml", &file);
        let found = folder.relent(&["http", "[::1]:1"]);
        assert_eq!(found.stderr.contains(said), is_left_out, "{hedge}: {found:?}");
        for meant in [["--policy", "relent.toml"], ["--hedge", "after=50ms"]] {
            let outcome = folder.relent(&[&["http", "[::1]:1"][..], &meant].concat());
            assert!(!outcome.stderr.contains("left out"), "{meant:?}: {outcome:?}");
        }
    }
}

/// A name may look like what it stands for.
#[test]
fn names_of_upstreams_are_told_without_passwords() {
    let file = "[policy]\nmax_attempts = 1\nupstream = 'http://ann:s3cret@h/'\n\
                [upstream.'http://ann:s3cret@h/']\nbudget = 'sre'\nhedge = { after = '50ms' }\n";
    let folder = Folder::new().file("relent.toml", file);
    for args in [
        &["explain", "--policy", "relent.toml", "--no-plot"][..],
        &["explain", "--policy", "relent.toml"],
        &["explain", "--policy", "relent.toml", "--json"],
        &["run", "--policy", "relent.toml", "-v", "--", "false"],
        &["run", "--policy", "relent.toml", "--json", "--", "false"],
        &["connect", "--policy", "relent.toml", "--json", "[::1]:1"],
        &["connect", "--policy", "relent.toml", "-v", "[::1]:1"],
    ] {
        let Outcome { stdout, stderr, .. } = folder.relent(args);
        assert!(!format!("{stdout}{stderr}").contains("s3cret"), "{args:?}: {stdout}{stderr}");
        assert!(format!("{stdout}{stderr}").contains("http://***@h/"), "{args:?}: {stdout}{stderr}");
    }
}

#[test]
fn a_store_of_flags_and_bad_ones() {
    let folder = Folder::new().file("relent.toml", "[upstream.a]\nbudget = 'sre'\n[upstream.b]\nstore = 7\n");
    let outcome = folder.relent(&["run", "--policy", "relent.toml", "--", "true"]);
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.contains("relent.toml:4:9") && outcome.stderr.contains("store = \"sqlite:state.db\""));
    let nothing = folder.relent(&["upstream", "list", "--policy", "none.toml"]);
    assert_eq!(nothing.code, Some(125), "{nothing:?}");
    let empty = Folder::new();
    assert_eq!(empty.relent(&["store", "migrate", "--store", "sqlite:a.db"]).code, Some(0));
    let none = empty.relent(&["upstream", "--store", "sqlite:a.db"]);
    assert_eq!((none.stdout.as_str(), none.code), ("no process has told sqlite:a.db of an upstream\n", Some(0)));
}

/// One that is away may come back.
#[test]
fn a_url_that_names_no_store_is_an_error_and_not_one_that_is_away() {
    let folder = folder();
    let run = |url: &str| {
        folder.relent(&["run", "--policy", "relent.toml#pay", "--upstream", "bank", "--store", url, "--", "true"])
    };
    for (url, problem) in
        [("sqlit:x", "store sqlit:***: the store's URL names no engine"), ("sqlite:x?ownr=any", "store sqlite:x?ownr=")]
    {
        let outcome = run(url);
        assert_eq!((outcome.code, outcome.stderr.contains(problem)), (Some(125), true), "{outcome:?}");
        let file = format!("[upstream.bank]\nbudget = \"sre\"\nstore = \"{url}\"\n");
        let args = ["http", "--policy", "a.toml", "--upstream", "bank", "--max-attempts", "1", "http://127.0.0.1:1"];
        let named = Folder::new().file("a.toml", &file).relent(&args);
        assert_eq!((named.code, named.stderr.contains(problem)), (Some(125), true), "{named:?}");
    }
    let away = run("redis://127.0.0.1:1");
    assert_eq!((away.code, away.stderr.contains("its store is away, going on alone")), (Some(0), true), "{away:?}");
}

#[test]
fn the_help_of_upstreams() {
    let outcome = relent(&["upstream", "--help"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    golden("upstream-help.txt", &outcome.stdout);
    for line in outcome.stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}
