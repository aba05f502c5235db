//! What is retried and what is not.

use super::{Place, sh};
use crate::binary::Outcome;
use std::time::Instant;

/// How often the script ran, and the exit code.
fn attempts(flags: &[&str], script: &str) -> (usize, i32) {
    let place = Place::new();
    let flags = [&["-q", "--max-attempts", "4"], flags].concat();
    let outcome = place.sh(&flags, &format!("echo >> count; {script}"));
    (place.0.read("count").len(), outcome.code.expect("relent exits"))
}

#[test]
fn every_exit_but_those_of_a_missing_command_is_retried() {
    assert_eq!(attempts(&[], "exit 1"), (4, 1));
    assert_eq!(attempts(&[], "exit 255"), (4, 255));
    assert_eq!(attempts(&[], "exit 126"), (1, 126));
    assert_eq!(attempts(&[], "exit 127"), (1, 127));
    assert_eq!(attempts(&["--retry-on-exit", "127"], "exit 127"), (4, 127));
}

#[test]
fn a_death_by_signal_is_retried_and_exits_with_128_more() {
    assert_eq!(attempts(&[], "kill -9 $$"), (4, 137));
    assert_eq!(attempts(&["--stop-on-exit", "137"], "kill -9 $$"), (1, 137));
    sh(&["--max-attempts", "1"], "kill -SEGV $$").is(
        139,
        "",
        "relent: gave up after 1 attempt in [t]: out of attempts (killed by SIGSEGV)\n",
    );
}

/// Debian's retry looks at the first item of `-u 3,5` only.
#[test]
fn debian_retry_lists_are_read_to_their_end() {
    assert_eq!(attempts(&["--retry-on-exit", "3,5"], "exit 5"), (4, 5));
    assert_eq!(attempts(&["--retry-on-exit", "3,5"], "exit 3"), (4, 3));
    assert_eq!(attempts(&["--retry-on-exit", "3,5"], "exit 4"), (1, 4));
    assert_eq!(attempts(&["--retry-on-exit", "1,3-5"], "exit 4"), (4, 4));
    assert_eq!(attempts(&["--stop-on-exit", "3,5"], "exit 5"), (1, 5));
    assert_eq!(attempts(&["--stop-on-exit", "3,5"], "exit 4"), (4, 4));
    assert_eq!(attempts(&["--stop-on-exit", "4", "--retry-on-exit", "3-5"], "exit 4"), (1, 4));
}

#[test]
fn a_permanent_failure_says_so() {
    sh(&["--stop-on-exit", "3"], "exit 3").is(
        3,
        "",
        "relent: gave up after 1 attempt in [t]: permanent failure (exit 3)\n",
    );
}

/// Debian's retry retries a command that is not there.
#[test]
fn debian_retry_a_missing_command_is_not_retried() {
    Place::new().relent(&["run", "--", "no-such-command"]).is(
        127,
        "",
        "error: cannot find the command no-such-command\nhint: is it installed, and its folder on PATH?\n",
    );
    Place::new().relent(&["run", "--", "echo hi"]).is(
        127,
        "",
        "error: cannot find the command \"echo hi\"\nhint: is it for a shell? sh -c '...' runs a line\n",
    );
    Place::new().relent(&["run", "--", "./no/such"]).is(
        127,
        "",
        "error: cannot find the command ./no/such\nhint: there is no such file; a relative path begins in this folder\n",
    );
    Place::new().relent(&["run", "--", ""]).is(
        127,
        "",
        "error: the command has no name\nhint: is it a variable that is not set?\n",
    );
}

#[test]
fn what_cannot_be_executed_is_not_retried() {
    let place = Place::new().file("script", "#!/no/such/interpreter\n").file("text", "hello\n");
    place.relent(&["run", "--", "./text"]).is(
        126,
        "",
        "error: cannot execute ./text: permission denied\nhint: chmod +x makes a script executable\n",
    );
    let script = place.0.path().join("script");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    place.relent(&["run", "--", "./script"]).is(
        127,
        "",
        "error: cannot execute ./script: its interpreter /no/such/interpreter is not found\nhint: install it, or mend the script's first line, #!\n",
    );
    place.relent(&["run", "--json", "--", "./text"]).is(
        126,
        "",
        "{\"event\":\"attempt\",\"attempt\":1,\"exit\":126,\"what\":\"cannot execute ./text: permission denied\",\
         \"verdict\":\"permanent\",\"ran_ms\":0,\"elapsed_ms\":0,\"delay_ms\":null,\"reason\":\"permanent\"}\n\
         {\"event\":\"end\",\"outcome\":\"gave_up\",\"attempts\":1,\"exit\":126,\"elapsed_ms\":0,\
         \"reason\":\"permanent\"}\n",
    );
}

#[test]
fn sysexits_are_known() {
    assert_eq!(attempts(&["--sysexits"], "exit 75"), (4, 75));
    for code in [64, 65, 77, 78] {
        assert_eq!(attempts(&["--sysexits"], &format!("exit {code}")), (1, code));
        assert_eq!(attempts(&[], &format!("exit {code}")), (4, code));
    }
    assert_eq!(attempts(&["--sysexits"], "exit 70"), (4, 70));
    assert_eq!(attempts(&["--sysexits", "--retry-on-exit", "64"], "exit 64"), (4, 64));
}

#[test]
fn output_can_ask_for_a_retry() {
    let flags = ["--retry-on-output", "^try (later|again)$"];
    let on = |script: &str| attempts(&flags, script);
    assert_eq!(on("echo ok"), (1, 0));
    assert_eq!(on("echo try later; exit 0"), (4, 1));
    assert_eq!(on("echo try again >&2; exit 3"), (4, 3));
    assert_eq!(on("echo syntax error; exit 3"), (1, 3));
    assert_eq!(on("echo do not try later; exit 3"), (1, 3));
    let both = ["--retry-on-output", "later", "--retry-on-exit", "3"];
    assert_eq!(attempts(&both, "exit 3"), (4, 3));
    assert_eq!(attempts(&both, "echo later; exit 4"), (4, 4));
    assert_eq!(attempts(&both, "exit 4"), (1, 4));
    sh(&["--max-attempts", "2", flags[0], flags[1]], "echo try later").is(
        1,
        "try later\n",
        "relent: attempt 1 of 2: exit 0, its output asks for a retry; next in [t]\n\
         relent: gave up after 2 attempts in [t]: out of attempts (exit 0, its output asks for a retry)\n",
    );
}

#[test]
fn output_can_be_waited_for() {
    let ready = "if [ $RELENT_ATTEMPT = 3 ]; then echo is ready; else echo not yet; fi";
    sh(&["--until-output", "ready"], ready).is(
        0,
        "is ready\n",
        "relent: attempt 1 of 8: exit 0, its output does not match yet; next in [t]\n\
         relent: attempt 2 of 8: exit 0, its output does not match yet; next in [t]\n\
         relent: succeeded after 3 attempts in [t]\n",
    );
    assert_eq!(attempts(&["--until-output", "ready"], "echo ready; exit 2"), (4, 2));
    assert_eq!(attempts(&["--until-output", "ready"], "echo ready >&2"), (1, 0));
    assert_eq!(attempts(&["--until-output", "ready"], "echo no"), (4, 1));
    assert_eq!(attempts(&["--until-output", "ready"], "printf rea; printf dy"), (1, 0));
}

#[test]
fn success_can_be_asked_for_in_a_row() {
    assert_eq!(attempts(&["--consecutive", "3"], "true"), (3, 0));
    sh(&["--consecutive", "2"], "[ $RELENT_ATTEMPT != 2 ]").is(
        0,
        "",
        "relent: attempt 1 of 8: success 1 of 2; next in [t]\n\
         relent: attempt 2 of 8: exit 1; next in [t]\n\
         relent: attempt 3 of 8: success 1 of 2; next in [t]\n\
         relent: succeeded after 4 attempts in [t]\n",
    );
    assert_eq!(attempts(&["--consecutive", "9"], "true"), (4, 1));
}

#[test]
fn the_command_can_give_its_own_verdict() {
    assert_eq!(attempts(&[], "echo permanent > $RELENT_VERDICT; exit 1"), (1, 1));
    assert_eq!(attempts(&[], "echo overloaded > $RELENT_VERDICT; exit 1"), (1, 1));
    assert_eq!(attempts(&["--stop-on-exit", "1"], "echo transient > $RELENT_VERDICT; exit 1"), (4, 1));
    assert_eq!(attempts(&[], "[ $RELENT_ATTEMPT = 1 ] && echo permanent > $RELENT_VERDICT; exit 0"), (1, 1));
    assert_eq!(attempts(&[], "[ $RELENT_ATTEMPT = 2 ] && echo permanent >> $RELENT_VERDICT; exit 1"), (2, 1));
    sh(&[], "echo overloaded > $RELENT_VERDICT; exit 1").is(
        1,
        "",
        "relent: gave up after 1 attempt in [t]: told not to retry (exit 1)\n",
    );
    sh(&["--max-attempts", "1"], "echo perhaps > $RELENT_VERDICT; exit 1").is(
        1,
        "",
        "relent: \"perhaps\" in RELENT_VERDICT is no verdict\n\
         relent: gave up after 1 attempt in [t]: out of attempts (exit 1)\n",
    );
}

/// The next attempt has done what it was for, and would do it once more.
#[test]
fn what_is_left_of_an_attempt_gives_no_verdict_on_the_next() {
    for verdict in ["transient", "permanent"] {
        let place = Place::new();
        let late = format!("trap 'echo {verdict} > $RELENT_VERDICT; exit' TERM; : > up; while :; do sleep 0.02; done");
        let script = format!(
            "echo x >> runs; [ $RELENT_ATTEMPT = 2 ] || {{ ( {late} ) 2>/dev/null & until [ -e up ]; do sleep 0.01; done; exit 1; }}"
        );
        assert_eq!(place.sh(&["-q"], &script).code, Some(0), "{verdict}");
        assert_eq!(place.0.read("runs"), "x\nx\n", "{verdict}");
    }
}

#[test]
fn after_is_waited_for_and_no_longer_than_allowed() {
    let started = Instant::now();
    let script = "[ $RELENT_ATTEMPT = 2 ] || { echo after 300ms > $RELENT_VERDICT; exit 1; }";
    assert_eq!(sh(&["-q"], script).code, Some(0));
    assert!(started.elapsed().as_millis() >= 300);
    sh(&["--max-pushback", "10s"], "echo after 11s > $RELENT_VERDICT; exit 4").is(
        4,
        "",
        "relent: gave up after 1 attempt in [t]: told to wait too long (exit 4)\n",
    );
}

/// It is told in part, and nothing in it is obeyed or let out.
#[test]
fn a_verdict_that_is_nonsense_is_cut() {
    let place = Place::new();
    for (script, told) in [
        ("head -c 4096 /dev/zero > $RELENT_VERDICT; exit 1", "relent: \"***\" in RELENT_VERDICT is no verdict"),
        ("printf 'x%.0s' $(seq 4096) > $RELENT_VERDICT; exit 1", "x\"... in RELENT_VERDICT is no verdict"),
    ] {
        let outcome = place.sh(&["--max-attempts", "1"], script);
        let said = outcome.stderr.lines().next().unwrap_or_default();
        assert!(said.ends_with(told) && said.len() < 400, "{outcome:?}");
    }
    let outcome = place.sh(&["--max-attempts", "1"], "echo 'https://ann:p w@host/' > $RELENT_VERDICT; exit 1");
    assert!(outcome.stderr.starts_with("relent: \"https://***@host/\" in RELENT_VERDICT"), "{outcome:?}");
    for secret in
        ["Authorization: Basic dXNlcjpodW50ZXIyS3g3", "--password dXNlcjpodW50ZXIyS3g3", "dXNl: dXNlcjpodW50ZXIyS3g3"]
    {
        let outcome = place.sh(&["--max-attempts", "1"], &format!("echo '{secret}' > $RELENT_VERDICT; exit 1"));
        assert!(
            outcome.stderr.contains("***\" in RELENT_VERDICT") && !outcome.stderr.contains("ZXIyS3g3"),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_command_that_removes_the_verdict_file_is_no_trouble() {
    let outcome: Outcome = sh(&["-q"], "rm -f $RELENT_VERDICT; [ $RELENT_ATTEMPT = 2 ]");
    outcome.is(0, "", "");
}
