//! What all subcommands share: help, version, completions, the manual page, and the answer to a wrong command line.

use crate::binary::{Outcome, golden, relent, tool};
use std::{fs, io::Write, path::Path, process::Stdio};

const SUBCOMMANDS: [&str; 4] = ["run", "connect", "explain", "http"];

#[test]
fn help_of_run() {
    let Outcome { stdout, stderr, code } = relent(&["run", "--help"]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    golden("run-help.txt", &stdout);
}

#[test]
fn help_fits_a_terminal() {
    for args in [
        &["--help"][..],
        &["run", "--help"],
        &["http", "--help"],
        &["connect", "--help"],
        &["explain", "--help"],
        &["simulate", "--help"],
        &["simulate", "herd", "--help"],
        &["simulate", "open", "--help"],
        &["simulate", "layers", "--help"],
        &["help", "policy"],
        &["help", "upstream"],
    ] {
        let help = relent(args).stdout;
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{args:?}: {line}");
        }
        assert!(help.lines().count() <= 80, "{args:?} is longer than two screens");
        assert!(help.is_ascii(), "{args:?}");
    }
}

/// `-h` has the flags, `--help` what else there is to know.
#[test]
fn a_short_help_has_the_flags() {
    for command in ["run", "http", "connect", "explain", "simulate"] {
        let (short, long) = (relent(&[command, "-h"]).stdout, relent(&[command, "--help"]).stdout);
        let flags = |help: &str| help.lines().filter(|line| line.trim_start().starts_with("-")).count();
        assert!(flags(&short) > 5 && flags(&short) == flags(&long), "{short}");
        assert!(!short.contains("Exit codes:") && short.ends_with("there is to know.\n"), "{short}");
        assert!(short.lines().count() <= 62 && short.lines().count() < long.lines().count(), "{short}");
    }
}

/// What is retried is one list, the same in every command that makes calls.
#[test]
fn what_is_retried_is_one_list() {
    let list = |command: &str| {
        let help = relent(&[command, "--help"]).stdout;
        let (_, list) = help.split_once("What is retried, unless flags say otherwise ").expect(command);
        list.lines().take(5).map(|line| format!("{line}\n")).collect::<String>()
    };
    let run = list("run");
    assert_eq!((list("http"), list("connect")), (run.clone(), run.clone()));
    for (command, flag) in [("run", "--retry-on-exit"), ("run", "--until-output"), ("http", "--stop-on-status")] {
        assert!(run.contains(flag) && relent(&[command, "-h"]).stdout.contains(flag), "{flag}");
    }
}

/// The help of a command has the flags that are wanted often; all of them are one command away, and complete.
#[test]
fn the_policy_flags_have_a_page_of_their_own() {
    let run = relent(&["run", "--help"]).stdout;
    assert!(run.contains("relent help policy") && run.contains("--timeout") && !run.contains("--factor"), "{run}");
    let outcome = relent(&["help", "policy"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    golden("policy-help.txt", &outcome.stdout);
    let bash = relent(&["completions", "bash"]).stdout;
    assert!(bash.contains("--factor") && bash.contains("resilience4j"), "{bash}");
}

#[test]
fn without_a_subcommand_the_help_is_shown_and_nothing_is_done() {
    let Outcome { stdout, stderr, code } = relent(&[]);
    assert_eq!((stdout.as_str(), code), ("", Some(125)));
    assert_eq!(stderr, relent(&["--help"]).stdout);
}

/// Anybody may have made a link, or called `execve`.
#[test]
fn a_help_begins_with_the_name_that_relent_has() {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_relent"));
    let output = command.arg0("x\x1b[2J\nerror: forged").arg("--help").output().expect("it is built");
    let help = String::from_utf8(output.stdout).expect("relent writes UTF-8");
    assert!(help.contains("Usage: relent <COMMAND>") && !help.contains('\x1b'), "{help:?}");
}

#[test]
fn version() {
    let version = format!("relent {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(relent(&["--version"]), Outcome { stdout: version, stderr: String::new(), code: Some(0) });
}

#[test]
fn a_wrong_command_line_is_answered_with_a_hint() {
    let said = |args: &[&str]| {
        let Outcome { stdout, stderr, code } = relent(args);
        assert_eq!((stdout.as_str(), code), ("", Some(125)));
        stderr
    };
    assert_eq!(said(&["demoo"]), "error: unrecognized subcommand 'demoo'\nhint: a similar subcommand exists: 'demo'\n");
    assert_eq!(said(&["--base", "1s"]), "error: unexpected argument '--base' found\nhint: see relent --help\n");
    assert_eq!(
        said(&["completions", "ksh93"]),
        "error: invalid value 'ksh93' for '<SHELL>' [possible values: bash, zsh, fish]\n\
         hint: see relent completions --help\n"
    );
    assert_eq!(
        said(&["completions"]),
        "error: the following required arguments were not provided: <SHELL>\nhint: see relent completions --help\n"
    );
    assert!(said(&["man", "tape"]).starts_with("error: there is no subcommand \"tape\"\nhint: there are run, "));
}

#[test]
fn completions_know_every_flag_and_the_shells_take_them() {
    for shell in ["bash", "zsh", "fish"] {
        let script = relent(&["completions", shell]).stdout;
        for word in ["attempt-timeout", "retry-on-exit", "until-output", "replay", "completions"] {
            assert!(script.contains(word), "{shell} misses {word}");
        }
    }
    let mut bash = tool("bash").arg("-n").stdin(Stdio::piped()).spawn().expect("bash is part of Debian");
    let script = relent(&["completions", "bash"]).stdout;
    bash.stdin.take().expect("it is piped").write_all(script.as_bytes()).expect("bash reads it");
    assert!(bash.wait().expect("bash was started").success());
}

#[test]
fn there_is_a_manual_page_for_each_subcommand() {
    let page = relent(&["man"]).stdout;
    for subcommand in SUBCOMMANDS {
        assert!(page.contains(&format!("relent\\-{subcommand}(1)")), "{subcommand}");
        let page = relent(&["man", subcommand]).stdout;
        assert!(page.contains(&format!(".TH relent-{subcommand} 1")), "{page}");
        assert!(page.contains(".SH NAME") && page.contains("Examples:"), "{page}");
    }
    assert!(relent(&["man", "run"]).stdout.contains("\\-\\-retry\\-on\\-exit"));
}

/// Commands know the voice and the policy flags; none of them knows the table that they stand in.
#[test]
fn nobody_below_knows_the_table_of_commands() {
    fn look(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("the sources are there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                look(&path, found);
            } else if fs::read_to_string(&path).expect("sources are text").replace("relent_cli::", "").contains("cli::")
            {
                found.push(path.display().to_string());
            }
        }
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    look(&source, &mut found);
    found.retain(|path| !path.ends_with("lib.rs"));
    assert!(found.is_empty(), "{found:?}");
}
