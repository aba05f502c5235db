//! Wrong flags: each has a message, a hint, the exit code 125, and nothing is run.

use super::Place;

#[track_caller]
fn refused(args: &[&str], problem: &str, hint: &str) {
    let place = Place::new();
    let args = [&["run"], args, &["--", "touch", "ran"]].concat();
    place.relent(&args).is(125, "", &format!("error: {problem}\nhint: {hint}\n"));
    assert!(!place.has("ran"));
}

const DURATION: &str = "write it like 100ms, 1.5s, 1m30s or 2h; units are ns, us, ms, s, m, h, d";

#[test]
fn no_command() {
    let nothing = "error: no command given\nhint: relent run [FLAGS] -- COMMAND [ARG]...\n";
    Place::new().relent(&["run"]).is(125, "", nothing);
    Place::new().relent(&["run", "--base", "1s", "--"]).is(125, "", nothing);
}

#[test]
fn unknown_flags() {
    refused(&["--bse", "1s"], "unexpected argument '--bse' found", "a similar argument exists: '--base'");
    refused(&["-x"], "unexpected argument '-x' found", "see relent run --help");
    refused(
        &["--max-time", "3s"],
        "unexpected argument '--max-time' found",
        "here it is --timeout (which ends everything then)",
    );
    refused(
        &["--retries=3"],
        "unexpected argument '--retries' found",
        "here it is --max-attempts (which counts the first attempt too)",
    );
}

#[test]
fn flags_of_the_command_are_its_own() {
    Place::new().relent(&["run", "echo", "--base", "-x"]).is(0, "--base -x\n", "");
    Place::new().relent(&["run", "--", "echo", "--", "-x"]).is(0, "-- -x\n", "");
}

#[test]
fn durations() {
    for flag in [
        "base",
        "step",
        "cap",
        "max-elapsed",
        "max-pushback",
        "attempt-timeout",
        "spread",
        "grace",
        "heartbeat",
        "reset-after",
    ] {
        let flag = format!("--{flag}");
        let problem = |value: &str, why: &str| format!("invalid value '{value}' for '{flag} <DURATION>': {why}");
        refused(&[&flag, "15"], &problem("15", "the duration has no unit"), DURATION);
        refused(&[&flag, "1 parsec"], &problem("1 parsec", "the duration has an unknown unit"), DURATION);
        refused(&[&format!("{flag}=-1s")], &problem("-1s", "the duration is negative"), DURATION);
    }
    for flag in ["heartbeat", "reset-after"] {
        refused(
            &[&format!("--{flag}"), "0s"],
            &format!("invalid value '0s' for '--{flag} <DURATION>': the duration is zero"),
            "leave the flag out, or give it something like 30s",
        );
    }
}

#[test]
fn policies_that_make_no_sense() {
    refused(&["--base", "0"], "--base: the base is zero", "use curve immediate if no delay is meant");
    refused(&["--factor", "0.5"], "--factor: the factor is less than 1 or not finite", "2 doubles the delay each time");
    refused(&["--factor", "NaN"], "--factor: the factor is less than 1 or not finite", "2 doubles the delay each time");
    refused(
        &["--max-attempts", "0"],
        "--max-attempts: no attempt is allowed",
        "the first attempt counts: use 1 for no retry",
    );
    refused(
        &["--attempt-timeout", "0s"],
        "--attempt-timeout: the attempt timeout is zero",
        "leave it out for no limit",
    );
    refused(&["--step", "1s"], "--step: curve exponential has no step", "step goes with curve linear");
    refused(&["--curve", "list"], "--curve: a list needs its delays", "delays = [\"15s\", \"30s\", \"3m\"]");
    refused(
        &["--jitter", "proportional=2"],
        "--jitter: the proportional jitter is not between 0 and 1",
        "0.2 is plus or minus 20 %",
    );
    refused(
        &["--jitter", "additive=2m"],
        "--jitter: the additive jitter does not fit under the cap",
        "raise the cap or lower the jitter",
    );
}

#[test]
fn values_of_the_policy() {
    const ATTEMPTS: &str = "a whole number from 1, the first attempt included, or \"unlimited\"";
    for value in ["-1", "many", "1.5", "4294967296"] {
        let problem =
            format!("invalid value '{value}' for '--max-attempts <NUMBER>': {value:?} is not a number of attempts");
        refused(&["--max-attempts", value], &problem, ATTEMPTS);
    }
    refused(
        &["--jitter", "ful"],
        "invalid value 'ful' for '--jitter <JITTER>': there is no jitter \"ful\"",
        "did you mean \"full\"?",
    );
    refused(
        &["--factor", "two"],
        "invalid value 'two' for '--factor <NUMBER>': \"two\" is not a number",
        "write it like 2 or 1.5",
    );
    let place = Place::new();
    let outcome = place.relent(&["run", "--curve", "exponental", "--", "true"]);
    assert_eq!(outcome.code, Some(125));
    assert!(
        outcome.stderr.starts_with("error: invalid value 'exponental' for '--curve <CURVE>'"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.ends_with("\nhint: a similar value exists: 'exponential'\n"), "{}", outcome.stderr);
    let outcome = place.relent(&["run", "--compat", "no-such-system-at-all", "--", "true"]);
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.starts_with("error: --compat: there is no profile \"no-such-system-at-all\"\nhint: "));
}

#[test]
fn rules() {
    for flag in ["--retry-on-exit", "--stop-on-exit"] {
        let problem = |value: &str, why: &str| format!("invalid value '{value}' for '{flag} <CODES>': {why}");
        let hint = "a list of codes 0 to 255 and ranges: 1,3-5";
        refused(&[flag, "256"], &problem("256", "\"256\" is no exit code"), hint);
        refused(&[flag, "1,,2"], &problem("1,,2", "\"\" is no exit code"), hint);
        refused(&[flag, "5-3"], &problem("5-3", "the range 5-3 is empty"), "write 3-5");
    }
    for flag in ["--retry-on-output", "--until-output"] {
        refused(
            &[flag, "("],
            &format!("invalid value '(' for '{flag} <REGEX>': unclosed group"),
            "it is matched against each line, and knows no look-around",
        );
    }
    refused(
        &["--consecutive", "0"],
        "invalid value '0' for '--consecutive <NUMBER>': 0 is not in 1..=4294967295",
        "see relent run --help",
    );
    refused(
        &["--stdin", "tape"],
        "invalid value 'tape' for '--stdin <MODE>' [possible values: replay, inherit, null]",
        "see relent run --help",
    );
}

#[test]
fn files_that_cannot_be_written() {
    refused(
        &["--report", "no/such/folder/report"],
        "cannot write the report no/such/folder/report: No such file or directory",
        "--report FILE needs a file of ours that can be written, in a folder that is there",
    );
    let place = Place::new();
    let mut command = place.command(&["run", "--", "true"]);
    let folder = place.0.path().join("none");
    place.outcome(command.env("TMPDIR", &folder)).is(
        125,
        "",
        &format!(
            "error: cannot create a file in {}: No such file or directory\n\
             hint: name a folder that can be written in TMPDIR\n",
            folder.display()
        ),
    );
}

/// Repetitions of repetitions are refused before they fill the memory.
#[test]
fn patterns_that_are_too_large() {
    for pattern in ["(((((a{1000}){1000}){1000})))", "(\\w{1000}){1000}", "x{1000}{1000}{1000}"] {
        let outcome = Place::new().relent(&["run", "--until-output", pattern, "--", "true"]);
        assert_eq!(outcome.code, Some(125), "{pattern}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("the pattern is larger than 8MiB"), "{pattern}: {}", outcome.stderr);
    }
}
