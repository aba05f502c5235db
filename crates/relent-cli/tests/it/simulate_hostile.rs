//! `relent simulate` with files that mean no good.

use crate::binary::{Folder, Outcome, shown_on, tool};
use std::fs;

/// Names of a scenario are shown and written, and obeyed nowhere.
#[test]
fn names_of_a_scenario_are_not_obeyed() {
    let policies = r#"[policy."p\u001b]0;x\u009b\u202e"]
base = "1s"
[policy."=1+1"]
base = "1s"
"#;
    let head = r#"name = "n\u001b[2J"
title = "t\u001b[2J\nerror: forged"
"#;
    let herd = "[clients]\ncount = 20\n[server]\ncapacity = 5\nqueue = 5\n";
    let open = "[clients]\nrate = 60\nfor = \"90s\"\ntimeout = \"1s\"\n[server]\ncapacity = 100\n[[trouble]]\nat = \"20s\"\nfor = \"5s\"\nkind = \"stall\"\n";
    for world in [herd, open] {
        let folder = Folder::new().file("a.toml", &format!("{head}{world}{policies}"));
        let args = ["simulate", "a.toml", "-v", "--csv", "a.csv", "--html", "a.html", "--svg", "plots"];
        let Outcome { stdout, stderr, code } = folder.relent(&args);
        assert_eq!(code, Some(0), "{stderr}");
        let files = fs::read_dir(folder.path().join("plots")).expect("it was made").map_while(Result::ok);
        let plots = files.map(|file| fs::read_to_string(file.path()).expect("SVG is text"));
        let json = folder.relent(&["simulate", "a.toml", "--json", "--plots"]).stdout;
        for text in [stdout, stderr, json, folder.read("a.csv"), folder.read("a.html")].into_iter().chain(plots) {
            let obeyed = |c: char| (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || c == '\u{202e}';
            assert!(!text.contains(obeyed), "{:?}", text.lines().find(|line| line.contains(obeyed)));
            assert!(!text.starts_with("error:") && !text.contains("\nerror:"), "{text}");
        }
    }
}

/// A name that is too long for a line goes on below, and does not begin one there.
#[test]
fn a_part_of_a_name_begins_no_line() {
    let name = "payments as agreed upon, all of them, error: the store is corrupt, run relent store migrate now";
    let world = "seeds = 1\n[clients]\nrate = 60\nfor = '9s'\ntimeout = '1s'\n[server]\ncapacity = 100\n[[trouble]]\nat = '3s'\nfor = '1s'\n\
                 kind = 'stall'\n";
    let policy = format!("[policy.\"{name}\"]\nbase = '1s'\nmax_attempts = 5\n");
    let upstream = format!("upstream = \"{name}\"\n[upstream.\"{name}\"]\nbudget = {{ ratio = 0.1 }}\n");
    let folder = Folder::new()
        .file("s.toml", &format!("title = '{name}'\n{world}{policy}[policy.other]\nbase = '2s'\n"))
        .file("hedge.toml", &hedge(name))
        .file("p.toml", &(policy + &upstream));
    for args in [
        &["simulate", "s.toml", "--advice", "never"][..],
        &["simulate", "s.toml"],
        &["simulate", "hedge.toml"],
        &["explain", "--policy", "p.toml", "--load", "1000"],
    ] {
        let step = if args.contains(&"hedge.toml") { 23 } else { 1 };
        for columns in (24..90).step_by(step) {
            let mut command = folder.command(args);
            let output = command.env("COLUMNS", columns.to_string()).output().expect("it is built");
            let told = String::from_utf8(output.stdout).expect("it is text");
            let begins = |line: &str| (0..line.len()).step_by(columns).any(|at| line[at..].starts_with("error:"));
            let begun = told.lines().filter(|line| line.is_ascii()).find(|line| begins(line));
            assert!(told.contains("payments as") && begun.is_none(), "{columns}: {begun:?} in {told}");
        }
    }
}

/// Calls whose tail a hedge cuts, in one run: there is a before and an after.
fn hedge(name: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../relent-sim/scenarios/hedge.toml");
    let text = fs::read_to_string(path).expect("it is shipped");
    text.replace("seeds = 3", "seeds = 1").replace("name = \"hedged\"", &format!("name = \"hedged {name}\""))
}

/// A title or a name may be all of a message.
#[test]
fn what_is_like_a_message_is_set_in() {
    let names = "title = \"error: cannot write a page\"\nseeds = 1\n[clients]\ncount = 20\n[server]\ncapacity = 50\n\
                 [policy.\"error: forged\"]\nbase = '1s'\n[policy.\"hint: run: x\"]\nbase = '1s'\n";
    let folder = Folder::new().file("s.toml", names);
    let told = folder.relent(&["simulate", "s.toml"]).stdout;
    for begin in ["  error: cannot write a page\n", "\n  error: forged\n", "\n  hint: run: x\n", "\n  error: forged "] {
        assert!(told.contains(begin), "{begin:?}: {told}");
    }
    let is_one = |line: &str| ["error:", "hint:"].iter().any(|begin| line.starts_with(begin));
    assert!(!told.lines().any(is_one), "{told}");
    assert!(folder.relent(&["simulate", "s.toml", "--json"]).stdout.contains("\"error: forged\""));
    let opened = folder.relent(&["upstream", "open", "error: x", "--store", "sqlite:s.db"]);
    assert_eq!(opened.code, Some(0), "{}", opened.stderr);
    for list in [&["upstream", "list"][..], &["store", "show", "upstreams"]] {
        let listed = folder.relent(&[list, &["--store", "sqlite:s.db"]].concat()).stdout;
        assert!(listed.contains("  error: x ") && !listed.lines().any(is_one), "{list:?}: {listed}");
    }
}

/// A row is a line of a terminal where that is what a file is.
#[test]
fn no_row_on_a_terminal_is_like_a_message() {
    let text = "name = \"error: forged\"\nseeds = 1\n[clients]\ncount = 20\n[server]\ncapacity = 50\n[policy.a]\nbase = '1s'\n";
    let folder = Folder::new().file("s.toml", text);
    let mut command = folder.command(&["simulate", "s.toml", "--csv", "/proc/self/fd/2"]);
    command.stdout(std::process::Stdio::null());
    let (shown, code) = shown_on(None, |terminal| command.stderr(terminal));
    assert!(code == Some(0) && shown.contains("forged,a,exact,20,"), "{code:?}: {shown}");
    assert!(!shown.lines().any(|line| line.starts_with("error:")), "{shown}");
}

/// A name of a file may be any bytes.
#[test]
#[cfg(target_os = "linux")]
fn names_that_are_no_text_are_written_to() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let folder = Folder::new();
    let (page, plots) = (OsStr::from_bytes(b"\xfe.html"), OsStr::from_bytes(b"\xfe"));
    let flags = ["simulate", "herd", "--clients", "20", "--capacity", "5", "--queue", "5", "--pictures", "none"];
    let mut command = folder.command(&flags);
    let output = command.arg("--html").arg(page).arg("--svg").arg(plots).output().expect("it is built");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let written = fs::read_to_string(folder.path().join(page)).expect("it was written");
    assert!(written.contains("--html '\u{fffd}.html'"), "the command says what can be said of it");
    assert!(folder.path().join(plots).join("load.svg").exists());
}

/// What is wrong with the whole is shown as it was read: by then the file may be another, without end, or one that is waited for.
#[test]
fn a_scenario_is_read_once() {
    let folder = Folder::new();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("the folder is writable");
    let text = "engine = \"exact\"\n[clients]\ncount = 4000000000\n[server]\ncapacity = 5\n[policy.a]\n";
    let writer = std::thread::spawn(move || fs::write(pipe, text));
    let outcome = folder.relent(&["simulate", "pipe"]);
    writer.join().unwrap().unwrap();
    assert_eq!(outcome.code, Some(125), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--> pipe:3:9\n") && outcome.stderr.contains("count = ***"), "{}", outcome.stderr);
}

/// What is named as a place to write is opened at once, and a device is no scenario.
#[test]
fn pipes_hang_nobody() {
    let folder = Folder::new();
    nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("the folder is writable");
    for args in [
        &["simulate", "/dev/zero"][..],
        &["simulate", "herd", "--clients", "5", "--capacity", "5", "--html", "pipe"],
        &["simulate", "herd", "--clients", "5", "--capacity", "5", "--csv", "pipe"],
    ] {
        let outcome = folder.relent(args);
        assert_eq!(outcome.code, Some(125), "{args:?}: {}", outcome.stderr);
    }
}

/// Pictures go up to the capacity, however far below it the scenario is.
#[test]
fn pictures_that_take_more_memory_than_there_is_are_left_out() {
    let scenario = "seeds = 1\n[clients]\nrate = 10\nfor = '60s'\ntimeout = '1s'\n[server]\ncapacity = 1000000\n\
        [policy.p]\nbase = '1s'\nmax_attempts = 2\n[pictures]\nrecovery = true\nhysteresis = true\n";
    let folder = Folder::new().file("s.toml", scenario);
    let script = "ulimit -v 1500000; exec relent simulate --advice never --html page.html s.toml >/dev/null";
    let output = tool("sh").args(["-c", script]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for picture in ["recovery", "hysteresis"] {
        let why =
            "the server has no capacity with which a load could be compared, or it takes more memory than is free";
        assert!(said.contains(&format!("warning: there is no picture \"{picture}\": {why}\n")), "{said}");
    }
    assert!(folder.read("page.html").ends_with("</html>\n"));
}
