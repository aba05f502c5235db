//! `relent simulate`.

use crate::binary::{Folder, Outcome, golden, relent};
use std::{process::Stdio, time::Duration};

const HERD: [&str; 10] =
    ["simulate", "herd", "--clients", "2000", "--capacity", "100", "--queue", "100", "--rtt", "10ms"];

fn herd(more: &[&str]) -> Outcome {
    relent(&[&HERD, more].concat())
}

/// The first number after `"key": ` in a JSON text.
fn number(json: &str, key: &str) -> f64 {
    let rest = json.split_once(&format!("\"{key}\": ")).expect("the key is there").1;
    let end = rest.find([',', '}']).expect("a value ends");
    rest[..end].parse().expect("the value is a number")
}

const SCENARIO: &str = "\
[clients]
count = 2000

[server]
capacity = 100
queue = 100

[policy.none]
base = \"100ms\"
cap = \"10s\"
jitter = \"none\"
max_attempts = \"unlimited\"

[policy.full]
base = \"100ms\"
cap = \"10s\"
max_attempts = \"unlimited\"

[assert.full]
drain_s = { max = 40 }
gave_up = \"<= 0\"
";

#[test]
fn the_usual_policies_side_by_side() {
    let outcome = herd(&[]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    golden("simulate-herd.txt", &outcome.stdout);
}

#[test]
fn the_table_fits_a_narrow_terminal_and_an_old_one() {
    let folder = Folder::new();
    let said = |variable: &str, value: &str| {
        let output = folder.command(&[&HERD[..], &["--seeds", "2"]].concat()).env(variable, value).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for columns in [40, 60, 80] {
        let text = said("COLUMNS", &columns.to_string());
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns), "{longest:?}\n{text}");
        assert!(text.matches("\nideal ").count() > 1 && text.contains("  busy\n"), "{text}");
    }
    golden("simulate-narrow.txt", &said("COLUMNS", "60"));
    assert!(said("LC_ALL", "C").is_ascii() && said("LANG", "de_DE.ISO-8859-1").is_ascii());
    assert!(said("LC_ALL", "C").contains("+-") && !said("LANG", "C.UTF-8").is_ascii());
    let lines = |text: &str| text.lines().map(str::len).collect::<Vec<_>>();
    assert_eq!(lines(&said("LC_ALL", "POSIX"))[2..9], lines(&said("LC_ALL", "C"))[2..9]);
}

#[test]
fn json_has_the_figures_by_name() {
    let outcome = herd(&["--curve", "constant", "--base", "1s", "--jitter", "none", "--json"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    assert_eq!(number(&outcome.stdout, "attempts_per_client"), 10.5);
    assert_eq!(number(&outcome.stdout, "drain_s"), 20.2);
    assert_eq!(number(&outcome.stdout, "clients"), 2000.0);
    assert!(
        outcome
            .stdout
            .starts_with("[\n  {\"scenario\": \"herd\", \"policy\": \"constant none\", \"engine\": \"exact\"")
    );
    assert!(outcome.stdout.contains("\"calls\": null"), "what has no meaning is null");
    assert!(!outcome.stdout.contains("_sd\""), "one run has no deviation");
    let several = herd(&["--jitter", "full", "--base", "100ms", "--cap", "10s", "--seeds", "3", "--json"]);
    assert!(several.stdout.contains("\"drain_s_sd\": 0."));
    assert_eq!(number(&several.stdout, "recovered"), 1.0);
}

#[test]
fn seeds_say_how_lucky_and_threads_do_not() {
    let json =
        |more: &[&str]| herd(&[&["--jitter", "full", "--base", "100ms", "--seeds", "4", "--json"], more].concat());
    let once = json(&[]);
    assert_eq!(once, json(&["--threads", "1"]));
    assert_ne!(once, json(&["--seed", "2"]));
}

#[test]
fn engines_are_named_and_forced() {
    let engine = |name| herd(&["--base", "100ms", "--cap", "10s", "--engine", name, "--json"]);
    for name in ["exact", "count", "fluid"] {
        assert!(engine(name).stdout.contains(&format!("\"engine\": \"{name}\"")), "{name}");
    }
    let refused = herd(&["--jitter", "decorrelated", "--engine", "count"]);
    assert_eq!((refused.stdout.as_str(), refused.code), ("", Some(125)));
    golden("simulate-refused.txt", &refused.stderr);
}

#[test]
fn a_scenario_of_a_file_with_promises() {
    let folder = Folder::new().file("own.toml", SCENARIO).file("broken.toml", &SCENARIO.replace("max = 40", "max = 4"));
    let kept = folder.relent(&["simulate", "own.toml", "--assert", "--csv", "out.csv"]);
    assert_eq!((kept.stderr.as_str(), kept.code), ("", Some(0)));
    golden("simulate-file.txt", &kept.stdout);
    let csv = folder.read("out.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("scenario,policy,engine,clients,seeds,attempts_per_client,"));
    assert!(lines[1].starts_with("own,none,exact,2000,1,12.80") && lines.len() == 3, "{csv}");

    let broken = folder.relent(&["simulate", "broken.toml", "--assert", "--json"]);
    assert_eq!(broken.code, Some(1));
    let drain = number(broken.stdout.split_once("\"policy\": \"full\"").expect("full ran").1, "drain_s");
    let rounded = (drain * 1e6).round() / 1e6;
    assert_eq!(broken.stderr, format!("error: full: drain_s is {rounded}, promised was drain_s <= 4\n"));
    assert_eq!(folder.relent(&["simulate", "broken.toml"]).code, Some(0), "nobody asked");
}

#[track_caller]
fn refuses(scenario: &str, stderr: &str) {
    let outcome = Folder::new().file("x.toml", scenario).relent(&["simulate", "x.toml"]);
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str(), outcome.code), ("", stderr, Some(125)));
}

#[test]
fn mistakes_are_shown_where_they_stand() {
    refuses(
        &SCENARIO.replace("capacity = 100", "capacity = 0"),
        "error: the server has no capacity\n --> x.toml:5:12\n  |\n5 | capacity = 0\n  |            ^\n\
         hint: use requests a second, such as 5000\n",
    );
    refuses(
        &SCENARIO.replace("count = 2000", "count = 0"),
        "error: there are no clients\n --> x.toml:2:9\n  |\n2 | count = 0\n  |         ^\nhint: use 1 or more\n",
    );
    refuses(
        &SCENARIO.replace("queue", "queu"),
        "error: there is no key in server \"queu\"\n --> x.toml:6:1\n  |\n6 | queu = 100\n  | ^^^^\n\
         hint: did you mean \"queue\"?\n",
    );
    refuses(
        &SCENARIO.replace("base = \"100ms\"\ncap = \"10s\"\nmax", "base = \"-1s\"\nmax"),
        "error: the duration is negative\n  --> x.toml:15:8\n   |\n15 | base = \"-1s\"\n   |        ^^^^^\n\
         hint: write it like 100ms, 1.5s, 1m30s or 2h; units are ns, us, ms, s, m, h, d\n",
    );
}

#[test]
fn impossible_worlds_by_flags() {
    let refuses = |args: &[&str], stderr: &str| {
        let outcome = relent(&[&["simulate"], args].concat());
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str(), outcome.code), ("", stderr, Some(125)));
    };
    refuses(&["herd", "--clients", "0"], "error: --clients: there are no clients\nhint: use 1 or more\n");
    refuses(
        &["herd", "--capacity", "0"],
        "error: --capacity: the server has no capacity\nhint: use requests a second, such as 5000\n",
    );
    refuses(
        &["herd", "--queue", "0"],
        "error: --queue: the server has no room for any request\nhint: leave it out for no limit\n",
    );
    refuses(
        &["layers", "--failure", "1.5"],
        "error: --failure: 1.5 is not a share between 0 and 1\nhint: 0.1 is 10 %\n",
    );
    refuses(
        &["nowhere.toml"],
        "error: cannot read the scenario \"nowhere.toml\": No such file or directory\nhint: a scenario is a TOML file: see docs/simulate-reference.md\n",
    );
}

#[test]
fn every_world_has_its_figures() {
    let value = |args: &[&str], key: &str| number(&relent(&[&["simulate"], args, &["--json"]].concat()).stdout, key);
    assert_eq!(
        value(&["layers", "--depth", "3", "--max-attempts", "4", "--failure", "1.0"], "attempts_per_client"),
        64.0
    );
    assert_eq!(value(&["layers", "--depth", "3", "--max-attempts", "4", "--overloaded"], "attempts_per_client"), 4.0);
    let calls = value(&["aws", "--clients", "2", "--reps", "20"], "calls");
    assert_eq!(calls, 3.0);
    let collisions = value(&["ethernet", "--stations", "2", "--seeds", "4000"], "collisions");
    assert!((collisions - 1.6416).abs() < 0.05, "{collisions}");
    let attempts = value(&["batch", "--n", "256", "--window", "beb"], "attempts_per_packet");
    assert!((attempts - 9.41).abs() < 0.1, "{attempts}");
    let success = value(&["channel", "--stations", "10", "--slots", "200000"], "success_per_slot");
    assert!((success - 0.265).abs() < 0.01, "{success}");
    let storm = ["open", "--rate", "450", "--capacity", "1000", "--timeout", "1s", "--max-attempts", "2", "--outage"];
    assert_eq!(value(&[&storm[..], &["60s+10s"]].concat(), "recovered"), 1.0);
    let stays = ["open", "--rate", "600", "--max-attempts", "2", "--outage", "60s+10s", "--for", "150s"];
    assert_eq!(value(&stays, "recovered"), 0.0);
    assert_eq!(value(&stays, "goodput"), 0.0);
}

const STORM: [&str; 11] =
    ["simulate", "open", "--capacity", "1000", "--rtt", "0s", "--timeout", "1s", "--max-attempts", "2", "--outage"];

fn storm(more: &[&str]) -> Outcome {
    relent(&[&STORM, more].concat())
}

/// The paragraph about the policy, and what may help it.
fn paragraph(stdout: &str) -> &str {
    stdout.split("\n\n").find(|part| part.starts_with("immediate: ")).expect("there is a verdict").trim_end()
}

/// Advice for a stream is proven by running it.
#[test]
fn what_helps_a_storm_is_tried_and_said() {
    let stays = storm(&["20s+10s", "--rate", "600", "--for", "80s"]).stdout;
    let helps = stays.split_once("What helps, each change tried by itself\n").expect("something helps").1;
    assert!(helps.starts_with("  immediate: do not retry: "), "{helps}");
    assert!(
        helps.contains("requests into the server: ") && helps.contains("of the calls succeed instead of "),
        "{helps}"
    );
    let multiplied = relent(&["simulate", "layers", "--clients", "1000"]).stdout;
    let words = "retry at one layer only, and let the others pass on \"overloaded, do not retry\": 4 attempts a call \
                 instead of 64.";
    assert!(multiplied.contains(words), "{multiplied}");
}

/// Several policies side by side, by flags.
#[test]
fn policies_are_compared_by_flags() {
    let args = ["60s+10s", "--for", "90s", "--compare", "base=1s,jitter=none,max_attempts=3", "--compare", "celery"];
    let said = storm(&args).stdout;
    for policy in ["immediate", "base=1s,jitter=none,max_attempts=3", "celery"] {
        assert!(said.lines().any(|line| line.starts_with(policy) && line.contains('%')), "{policy}: {said}");
    }
    let bad = storm(&["60s", "--compare", "bse=1s"]);
    assert!(bad.code == Some(125) && bad.stderr.contains("--compare bse=1s: "), "{}", bad.stderr);
}

/// A share of the clients has another policy: their figures stand below those of all, and add up to them.
#[test]
fn a_rollout_is_shown_for_both_populations() {
    let herd = ["simulate", "herd", "--clients", "1000", "--capacity", "100", "--base", "100ms", "--jitter", "none"];
    let said = relent(&[&herd[..], &["--rollout", "20%=jitter=full", "--rollout", "0.5=celery"]].concat()).stdout;
    let names = [
        "exponential none",
        "20 % jitter=full",
        "20 % jitter=full: exponential none",
        "20 % jitter=full: jitter=full",
        "50 % celery",
        "50 % celery: exponential none",
        "50 % celery: celery",
    ];
    let rows: Vec<&str> =
        said.lines().skip_while(|line| !line.starts_with("ideal")).skip(1).take(names.len()).collect();
    for (name, row) in names.iter().zip(&rows) {
        assert!(row.split("  ").next() == Some(*name), "{name}: {said}");
    }
    // Keys and values change the policy that is there: it goes on for ever, as that does.
    assert!(rows[3].contains(" 100 % "), "{said}");

    let json = relent(&[&herd[..], &["--rollout", "20%=jitter=full", "--json"]].concat()).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let clients = |of: &serde_json::Value| of["clients"].as_u64().expect("a number");
    assert_eq!((clients(&json[1]), json[1]["populations"].as_array().map(Vec::len)), (1000, Some(2)));
    assert_eq!(clients(&json[1]["populations"][1]), 200);

    let folder = Folder::new();
    let page = folder.path().join("report.html");
    let args = ["--rollout", "20%=jitter=full", "--html", page.to_str().expect("a path")];
    relent(&[&herd[..], &args].concat());
    let page = std::fs::read_to_string(&page).expect("it was written");
    assert!(page.contains("20 % jitter=full: jitter=full"));

    for (spec, problem) in [
        ("20%", "it is not said what is rolled out"),
        ("120%=celery", "the share is not between 0 % and 100 %"),
        ("x=celery", "the share is not between 0 % and 100 %"),
        ("nan=celery", "the share is not between 0 % and 100 %"),
        ("20%=bse=1s", "bse"),
        ("20%=celary", "there is no profile \"celary\""),
    ] {
        let bad = relent(&[&herd[..], &["--rollout", spec]].concat());
        assert!(bad.code == Some(125) && bad.stderr.contains("--rollout "), "{}", bad.stderr);
        assert!(bad.stderr.contains(problem), "{}", bad.stderr);
    }
    let beside_nothing = relent(&["simulate", "herd", "--rollout", "20%=celery"]);
    assert!(beside_nothing.stderr.contains("there is no policy that the others have"), "{}", beside_nothing.stderr);
}

/// A run that loses calls in a rush is not healthy all along, and every call is somewhere.
#[test]
fn a_rush_that_costs_calls_is_not_health() {
    let args = ["simulate", "open", "--rate", "50", "--capacity", "100", "--queue", "50", "--max-attempts", "1"];
    let said = relent(&[&args[..], &["--spike", "20s+5s=400", "--for", "60s"]].concat()).stdout;
    assert!(!said.contains("stays healthy") && said.contains("but loses "), "{said}");
    let header = said.lines().find(|line| line.starts_with("policy ")).expect("a table");
    assert!(header.split_whitespace().nth(1) == Some("succeed"), "{header}");
}

#[test]
fn a_file_before_a_command_is_an_error() {
    let both = relent(&["simulate", "herd.toml", "herd"]);
    assert_eq!(both.code, Some(125));
    assert!(both.stderr.contains("there are two scenarios"), "{}", both.stderr);
}

#[test]
fn a_storm_gets_a_verdict_and_the_reasons() {
    let heals = storm(&["60s+10s", "--rate", "450"]);
    assert_eq!((heals.stderr.as_str(), heals.code), ("", Some(0)));
    golden("simulate-open.txt", &heals.stdout);
    // Several runs, a storm that stays, and one that would heal if the run went on.
    let stays = storm(&["20s+10s", "--rate", "600", "--for", "80s", "--seeds", "3"]);
    let verdict = paragraph(&stays.stdout);
    assert_eq!(
        verdict,
        "immediate: stays in the storm (0 of 3 runs; 95 %: 0 % to 56 %)\n  \
         Safe load: up to 500 calls a second, 50 % of the capacity, since a call is up to 2 attempts; 600 come, so a \
         storm that has begun does not end by itself.\n  \
         Smallest fatal outage: 1.33s (one of 1.29s is survived; by theory 1.33s)."
    );
    let early = storm(&["20s+10s", "--rate", "480", "--for", "60s"]);
    let verdict = paragraph(&early.stdout);
    assert!(verdict.starts_with("immediate: is still in the storm when the run ends\n"), "{verdict}");
    assert!(
        verdict.contains("By theory the storm ends 3m23s after the outage: a longer run would show it."),
        "{verdict}"
    );
}

#[test]
fn cures_are_named_where_theory_has_no_say() {
    let last = |more: &[&str]| {
        let flags = ["simulate", "open", "--capacity", "1000", "--timeout", "1s", "--max-attempts", "2", "--outage"];
        let outcome = relent(&[&flags[..], &["20s+5s", "--rate", "800", "--for", "60s"], more].concat());
        paragraph(&outcome.stdout).to_owned()
    };
    let short = last(&["--queue", "500"]);
    assert!(short.contains("the queue holds less work than clients wait for"), "{short}");
    let newest = last(&["--order", "lifo"]);
    assert!(
        newest.starts_with("immediate: recovers ") && newest.contains("the newest request is served first"),
        "{newest}"
    );
    let late = last(&["--rtt", "2s"]);
    assert_eq!(
        late,
        "immediate: cannot succeed\n  The way to the server and back takes longer than clients wait for an answer."
    );
    let too_much = storm(&["20s+5s", "--rate", "1100", "--for", "60s"]).stdout;
    assert!(too_much.contains("immediate: is overloaded: more calls come than the server can do\n"), "{too_much}");
}

/// The keys of the first object, in order.
fn keys(json: &str) -> Vec<String> {
    let all: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(json).expect("it is an array");
    let mut keys: Vec<(usize, String)> =
        all[0].keys().map(|key| (json.find(&format!("\"{key}\": ")).expect("it is there"), key.clone())).collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, key)| key).collect()
}

#[test]
fn json_has_the_advice_by_name() {
    let storm = storm(&["20s+10s", "--rate", "600", "--for", "80s", "--json"]).stdout;
    golden("simulate-keys.txt", &(keys(&storm).join("\n") + "\n"));
    assert_eq!([number(&storm, "safe_load"), number(&storm, "safe_load_per_s")], [0.5, 500.0]);
    assert_eq!(number(&storm, "offered_load"), 0.6);
    let (fatal, survived) = (number(&storm, "fatal_outage_s"), number(&storm, "survived_outage_s"));
    assert!(survived < fatal && fatal < 1.5, "{survived} {fatal}");
    assert!((number(&storm, "fatal_outage_by_theory_s") - 4.0 / 3.0).abs() < 1e-6);
    assert!(storm.contains("\"recommended\": null"));

    let herd = herd(&["--jitter", "full", "--base", "100ms", "--json"]).stdout;
    let parsed: serde_json::Value = serde_json::from_str(&herd).expect("it is JSON");
    assert_eq!(parsed.as_array().map(Vec::len), Some(1), "one object a policy that was given");
    assert_eq!(parsed[0]["safe_load"], serde_json::Value::Null);
    let recommended = &parsed[0]["recommended"];
    assert_eq!((&recommended["spread_s"], &recommended["queue_room"]), (&21.into(), &90.into()));
    // The flags do what the figures say.
    let flags: Vec<&str> = recommended["flags"].as_str().expect("a text").split(' ').collect();
    let pasted = self::herd(&[&flags[..], &["--json"]].concat()).stdout;
    for figure in ["attempts_per_client", "drain_s", "peak_1s"] {
        assert_eq!(Some(number(&pasted, figure)), recommended[figure].as_f64(), "{figure}");
    }
}

#[test]
fn who_wants_no_advice_gets_none() {
    let quiet = herd(&["--advice", "never"]).stdout;
    assert!(!quiet.contains("recommended") && !quiet.contains("What to do"), "{quiet}");
    let json = storm(&["20s+10s", "--rate", "600", "--for", "60s", "--json", "--advice", "never"]).stdout;
    assert!(json.contains("\"safe_load\": null") && json.contains("\"recovered\": 0"), "{json}");
}

/// A checker's view of the shared channels: what is measured beside what theory says.
#[test]
fn channels_stand_beside_their_theory() {
    let json = |args: &[&str]| relent(&[&["simulate"], args, &["--json"]].concat()).stdout;
    let dcf = json(&["channel", "--stations", "10", "--window", "32", "--stages", "5"]);
    for (name, expected) in [("tau", 0.037305), ("collision", 0.28977), ("throughput", 0.7579)] {
        let check = dcf.split_once(&format!("\"{name}\": {{")).expect("the check is there").1;
        assert!((number(check, "measured") / expected - 1.0).abs() < 0.01, "{name}: {check}");
        assert!((number(check, "expected") / expected - 1.0).abs() < 1e-4, "{name}: {check}");
    }
    let capture = json(&["ethernet", "--stations", "2", "--capture", "--frame-slots", "64", "--seeds", "2000"]);
    let wins = capture.split_once("\"capture_wins_c2\": {").expect("the check is there").1;
    assert!((number(wins, "measured") - 0.625).abs() < 0.05, "{wins}");
    assert_eq!(number(wins, "expected"), 0.625);
}

/// A spike alone is enough where retries sustain the storm.
#[test]
fn a_spike_begins_a_storm() {
    let value = |args: &[&str], key: &str| number(&relent(&[&["simulate"], args, &["--json"]].concat()).stdout, key);
    let calm = ["open", "--rate", "9.3", "--capacity", "10", "--queue", "100", "--timeout", "4s", "--for", "400s"];
    let storm = [&calm[..], &["--spike", "120s+5s=30", "--max-attempts", "4"]].concat();
    assert_eq!(value(&storm, "recovered"), 0.0);
    assert!((value(&storm, "load") - 4.0).abs() < 0.1);
    let healed =
        ["open", "--rate", "7", "--capacity", "10", "--timeout", "4s", "--for", "400s", "--spike", "120s+5s=30"];
    assert_eq!(value(&[&healed[..], &["--max-attempts", "1"]].concat(), "recovered"), 1.0);
}

/// Impossible and absurd worlds: an error and a hint at once, whatever the flag.
#[test]
fn absurd_flags_are_refused_at_once() {
    let cases: [(&str, &str); 43] = [
        ("herd --clients -1", "invalid value '-1' for '--clients <NUMBER>': a whole number is expected"),
        ("herd --clients nan", "invalid value 'nan' for '--clients <NUMBER>'"),
        ("herd --clients 1e17", "--clients: there are more clients than can be counted"),
        ("herd --clients 1e9", "--clients: it takes 55h33m20s to serve 1000000000 clients, and no run goes on longer"),
        ("herd --clients 4e9 --capacity 1e9 --engine exact", "--clients: this needs"),
        ("herd --capacity -5", "--capacity: the server has no capacity"),
        ("herd --capacity inf", "invalid value 'inf' for '--capacity <PER_SECOND>'"),
        ("herd --capacity 1e-300", "--capacity: the time that one request takes is"),
        ("herd --queue -1", "invalid value '-1' for '--queue <NUMBER>'"),
        ("herd --workers 0", "--workers: there are no workers, or over a million"),
        ("herd --rtt -1s", "invalid value '-1s' for '--rtt <DURATION>': the duration is negative"),
        ("herd --rtt 99999999999d", "--rtt: the network takes for ever"),
        ("herd --window 200000d", "--window: the window is 4800000h, and no run goes on longer than 24h"),
        ("herd --outage -1s+5s", "invalid value '-1s+5s' for '--outage <[AT+]FOR>': the duration is negative"),
        ("herd --outage 200000d", "--outage: the end of the trouble is 4800000h, and no run"),
        ("herd --outage 0s", "--outage: the trouble lasts no time"),
        ("herd --timeout 0s", "--timeout: the timeout is zero"),
        ("herd --limit 0s", "--limit: the limit of time is zero"),
        ("herd --limit -1s", "invalid value '-1s' for '--limit <DURATION>': the duration is negative"),
        ("herd --seeds 0", "invalid value '0' for '--seeds <NUMBER>'"),
        ("herd --seeds -3", "invalid value '-3' for '--seeds <NUMBER>'"),
        ("herd --seeds 2000000", "--seeds: there are more than a million runs"),
        ("herd --cap 1ms --base 1s", "--cap: the cap is shorter than the base"),
        ("herd --jitter proportional=2", "--jitter: the proportional jitter is not between 0 and 1"),
        ("herd --engine fluid --jitter decorrelated", "--engine: the fluid engine cannot model policy"),
        ("open --rate 0", "--rate: no call would be made"),
        ("open --rate -5", "--rate: a rate or its time is negative or not a number"),
        ("open --rate 1e15", "--rate: 1e17 calls would be made"),
        ("open --rate 5 --for 30d", "--for: clients call for longer than the run may go on"),
        ("open --spike 5s+1s", "invalid value '5s+1s' for '--spike <AT+FOR=PER_SECOND>'"),
        ("open --spike 5s+1s=-4", "--rate: a rate or its time is negative or not a number"),
        ("open --rtt 0s --max-attempts unlimited", "policy \"immediate\" retries at once, for ever"),
        ("aws --clients 1e9", "--clients: this needs"),
        ("layers --calls 0", "--calls: there are no calls"),
        ("layers --failure -1", "--failure: -1 is not a share between 0 and 1"),
        ("layers --depth 100", "--depth: the depth is not between 1 and 16"),
        ("ethernet --stations 1e9", "--stations: there are more than a hundred thousand stations"),
        ("ethernet --frame-slots 0", "--frame-slots: a frame does not occupy between 1 and 2^20 slots"),
        (
            "ethernet --curve immediate --max-attempts unlimited",
            "under policy \"immediate\" stations that have collided",
        ),
        ("batch --n 1e12", "--n: there are more than ten million packets"),
        ("batch --window exp=1.0000001", "invalid value 'exp=1.0000001' for '--window <STRATEGY>'"),
        ("channel --aloha 2", "--aloha: the probability is not above 0 and at most 1"),
        ("channel --slots 1e17", "--slots: there are more than ten billion slots"),
    ];
    let mut wrong = Vec::new();
    for (flags, problem) in cases {
        let args: Vec<&str> = flags.split(' ').collect();
        let outcome = relent(&[&["simulate"], &args[..]].concat());
        let expected = format!("error: {problem}");
        let told = outcome.stderr.starts_with(&expected) && outcome.stderr.contains("\nhint: ");
        if !told || outcome.code != Some(125) || !outcome.stdout.is_empty() {
            wrong.push(format!("{flags}: {:?}\n{}", outcome.code, outcome.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is found out after the file was read is still shown where it stands.
#[test]
fn an_engine_of_a_file_is_refused_where_it_stands() {
    let slow = "[[trouble]]\nat = \"5s\"\nfor = \"1s\"\nkind = \"slow\"\n[assert";
    let text = format!("engine = \"count\"\n{}", SCENARIO.replace("[assert", slow));
    let folder = Folder::new().file("s.toml", &text);
    let outcome = folder.relent(&["simulate", "s.toml"]);
    assert!(outcome.stderr.contains(" --> s.toml:1:10\n"), "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("error: the count engine cannot model policy"), "{}", outcome.stderr);
    let by_flag = folder.relent(&["simulate", "s.toml", "--engine", "fluid"]);
    assert!(by_flag.stderr.starts_with("error: --engine: the fluid engine"), "{}", by_flag.stderr);
}

/// Nor in what is advised.
#[test]
fn a_name_begins_no_line() {
    let text = "[clients]\ncount = 5\n[server]\ncapacity = 5000\n[policy.\"p\\nerror: forged\"]\nbase = \"1s\"\n";
    let folder = Folder::new().file("s.toml", text);
    let outcome = folder.relent(&["simulate", "s.toml", "--advice", "always"]);
    let all = outcome.stdout + &outcome.stderr;
    assert!(all.contains("What to do") && all.contains(r"p\nerror: forged"), "{all}");
    assert!(!all.lines().any(|line| line.trim_start().starts_with("error: forged")), "{all}");
}

#[test]
fn ctrl_c_writes_what_is_done() {
    let folder = Folder::new();
    let files = ["--json", "--csv", "x.csv", "--html", "x.html", "--svg", "plots"];
    let args = ["simulate", "herd", "--clients", "10000", "--capacity", "500", "--seeds", "100000"];
    let mut command = folder.command(&[&args[..], &files].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // How long it has been on a processor, in hundredths of a second: after the name, which is in parentheses, the
    // twelfth field.
    let worked = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat[stat.rfind(')').unwrap()..].split_whitespace().nth(12).unwrap().parse::<u32>().unwrap()
    };
    // Enough work for some runs of each policy, and far too little for all, however busy the machine is.
    while worked() < 100 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "note: interrupted: this is what was done\n");

    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let records = json.as_array().unwrap();
    let runs: Vec<u64> = records.iter().map(|record| record["seeds"].as_u64().unwrap()).collect();
    assert_eq!(runs.len(), 7, "{runs:?}");
    assert!(runs.iter().all(|seeds| (1..100_000).contains(seeds)), "{runs:?}");
    assert_eq!(folder.names(), ["plots", "x.csv", "x.html"]);
    assert_eq!(folder.read("x.csv").lines().count(), 8);
    assert!(folder.read("x.html").contains("This run was interrupted"));
    assert!(folder.read("plots/load.svg").starts_with("<svg"));
}

/// A curve that ends by itself says so, and theory knows it; a later flag wins over an earlier one.
#[test]
fn a_curve_that_ends_says_so() {
    let flags = ["simulate", "layers", "--calls", "10", "--curve", "list", "--delays", "1s,2s", "--max-attempts"];
    let outcome = relent(&[&flags[..], &["10"]].concat());
    assert!(outcome.stdout.contains("27.0000, by theory 27.0000\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("\nlist none: its delays end after 3 attempts\n"), "{}", outcome.stdout);
    let outcome = relent(&[&flags[..], &["2"]].concat());
    assert!(!outcome.stdout.contains("delays end"), "{}", outcome.stdout);
    let [twice, once] = [&["--rtt", "1s", "--rtt", "2ms"][..], &["--rtt", "2ms"]].map(herd);
    assert_eq!((twice.stdout, twice.code), (once.stdout, Some(0)), "{}", twice.stderr);
}
