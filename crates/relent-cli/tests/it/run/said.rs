//! What relent says while it runs: for people, for machines, in a report.

use super::{Place, QUICK, sh, without_times};

#[test]
fn verbose_says_the_policy_and_each_start() {
    sh(&["-v"], "[ $RELENT_ATTEMPT = 2 ]").is(
        0,
        "",
        "relent: policy curve=\"exponential\" base=\"1ms\" factor=2 cap=\"1m4s\" jitter=\"full\" max_attempts=8 \
         max_elapsed=\"unlimited\" max_pushback=\"2m\" attempt_timeout=\"unlimited\" spread=\"0s\" seed=7\n\
         relent: attempt 1 of 8\n\
         relent: attempt 1 of 8: exit 1; next in [t]\n\
         relent: attempt 2 of 8\n\
         relent: succeeded after 2 attempts in [t]\n",
    );
}

#[test]
fn quiet_says_nothing_but_errors() {
    sh(&["-q", "--max-attempts", "2"], "exit 3").is(3, "", "");
    sh(&["-q", "--json", "--max-attempts", "2"], "exit 3").is(3, "", "");
    sh(&["--quiet", "--cap", "1ns"], ":").is(
        125,
        "",
        "error: --cap: the cap is shorter than the base\nhint: raise the cap or lower the base\n",
    );
}

#[test]
fn attempts_without_limit_are_not_counted_against_one() {
    sh(&["--max-attempts", "unlimited"], "[ $RELENT_ATTEMPT = 2 ]").is(
        0,
        "",
        "relent: attempt 1: exit 1; next in [t]\nrelent: succeeded after 2 attempts in [t]\n",
    );
}

#[test]
fn no_delay_is_now() {
    sh(&["--curve", "immediate", "--max-attempts", "2"], "exit 1");
    let place = Place::new();
    place.relent(&["run", "--curve", "immediate", "--", "sh", "-c", "[ $RELENT_ATTEMPT = 2 ]"]).is(
        0,
        "",
        "relent: attempt 1 of 8: exit 1; next now\nrelent: succeeded after 2 attempts in [t]\n",
    );
}

#[test]
fn events_are_one_object_a_line() {
    sh(&["--json", "--max-attempts", "2"], "exit 3").is(
        3,
        "",
        "{\"event\":\"attempt\",\"attempt\":1,\"exit\":3,\"what\":\"exit 3\",\"verdict\":\"transient\",\"ran_ms\":0,\
         \"elapsed_ms\":0,\"delay_ms\":0,\"reason\":null}\n\
         {\"event\":\"attempt\",\"attempt\":2,\"exit\":3,\"what\":\"exit 3\",\"verdict\":\"transient\",\"ran_ms\":0,\
         \"elapsed_ms\":0,\"delay_ms\":null,\"reason\":\"attempts\"}\n\
         {\"event\":\"end\",\"outcome\":\"gave_up\",\"attempts\":2,\"exit\":3,\"elapsed_ms\":0,\
         \"reason\":\"attempts\"}\n",
    );
    sh(&["--json"], "exit 0").is(
        0,
        "",
        "{\"event\":\"end\",\"outcome\":\"success\",\"attempts\":1,\"exit\":0,\"elapsed_ms\":0,\"reason\":null}\n",
    );
    sh(&["--json", "-v"], "echo nonsense > $RELENT_VERDICT").is(
        0,
        "",
        "{\"event\":\"start\",\"attempt\":1,\"elapsed_ms\":0}\n\
         {\"event\":\"remark\",\"remark\":\"\\\"nonsense\\\" in RELENT_VERDICT is no verdict\"}\n\
         {\"event\":\"end\",\"outcome\":\"success\",\"attempts\":1,\"exit\":0,\"elapsed_ms\":0,\"reason\":null}\n",
    );
    sh(&["--json", "--cap", "1ns"], ":").is(
        125,
        "",
        "{\"event\":\"error\",\"error\":\"--cap: the cap is shorter than the base\",\
         \"hint\":\"raise the cap or lower the base\",\"code\":125}\n",
    );
}

#[test]
fn a_long_wait_has_a_heartbeat() {
    let flags = ["--base", "900ms", "--jitter", "none", "--heartbeat", "250ms"];
    let beats = |flags: &[&str], beat: &str| {
        let outcome = sh(flags, "[ $RELENT_ATTEMPT = 2 ]");
        // A machine under load may be late for a beat.
        let count = outcome.stderr.matches(beat).count();
        assert!((1..=3).contains(&count), "{outcome:?}");
        outcome.stderr.replace(beat, "")
    };
    assert_eq!(
        beats(&flags, "relent: still waiting, attempt 2 of 8 in [t]\n"),
        "relent: attempt 1 of 8: exit 1; next in [t]\nrelent: succeeded after 2 attempts in [t]\n"
    );
    let event = "{\"event\":\"waiting\",\"attempt\":2,\"left_ms\":0,\"elapsed_ms\":0}\n";
    assert!(!beats(&[&flags[..], &["--json"]].concat(), event).contains("waiting"));
}

fn report(flags: &[&str], script: &str) -> String {
    let place = Place::new();
    let args = [&QUICK[..], &["-q", "--report", "report.json"], flags, &["--", "sh", "-c", script]].concat();
    place.outcome(place.command(&args).env("RELENT_KEY", "k"));
    without_times(&place.0.read("report.json"))
}

#[test]
fn the_report_has_every_attempt_and_wait_and_the_reason() {
    assert_eq!(
        report(&[], "[ $RELENT_ATTEMPT = 2 ]"),
        "{\"command\":[\"sh\",\"-c\",\"[ $RELENT_ATTEMPT = 2 ]\"],\"key\":\"k\",\"outcome\":\"success\",\
         \"reason\":null,\"exit\":0,\"attempts\":2,\"elapsed_ms\":0,\"history\":[\
         {\"attempt\":1,\"exit\":1,\"what\":\"exit 1\",\"verdict\":\"transient\",\"started_ms\":0,\"ran_ms\":0,\
         \"delay_ms\":0,\"reason\":null},\
         {\"attempt\":2,\"exit\":0,\"what\":\"success 1 of 1\",\"verdict\":\"success\",\"started_ms\":0,\"ran_ms\":0,\
         \"delay_ms\":null,\"reason\":null}]}\n"
    );
    assert_eq!(
        report(&[], "echo after 1h > $RELENT_VERDICT; exit 2"),
        "{\"command\":[\"sh\",\"-c\",\"echo after [t] > $RELENT_VERDICT; exit 2\"],\"key\":\"k\",\
         \"outcome\":\"gave_up\",\"reason\":\"pushback_too_long\",\"exit\":2,\"attempts\":1,\"elapsed_ms\":0,\
         \"history\":[{\"attempt\":1,\"exit\":2,\"what\":\"exit 2\",\"verdict\":\"after [t]\",\"started_ms\":0,\
         \"ran_ms\":0,\"delay_ms\":null,\"reason\":\"pushback_too_long\"}]}\n"
    );
}

#[test]
fn a_command_that_does_not_wait_for_what_it_starts_is_told_of() {
    let place = Place::new();
    let said =
        "relent: setsid ends at once, with 0, whatever becomes of what it starts: setsid --wait waits for that\n";
    place.relent(&["run", "--", "setsid", "true"]).is(0, "", said);
    place.relent(&["run", "--max-attempts", "1", "-q", "--", "setsid", "-w", "sh", "-c", "exit 3"]).is(3, "", "");
}

/// Whatever makes a failure of a success: somebody may be at what may not be done twice.
#[test]
fn what_somebody_is_at_is_not_begun_anew_whatever_makes_the_failure() {
    let script = "echo x >> ran; echo state: pending; echo \"exit 1-255 by 1.7-a: permanent\" >> \"$RELENT_VERDICT\"";
    for flags in [&["--until-output", "done"][..], &["--retry-on-output", "pending"], &["--consecutive", "2"]] {
        for (last, times) in [("", 1), ("; echo \"exit 1-255 by 1.7-a: taken back\" >> \"$RELENT_VERDICT\"", 2)] {
            let place = Place::new();
            let script = format!("{script}{last}");
            let base = ["run", "-q", "--base", "1ms", "--max-attempts", "2"];
            place.relent(&[&base[..], flags, &["--", "sh", "-c", &script]].concat());
            let ran = std::fs::read_to_string(place.0.path().join("ran")).unwrap();
            assert_eq!(ran.lines().count(), times, "{flags:?} {last}");
        }
    }
}
