//! `relent simulate --html` and `--svg`: the same bytes each time, and what they say.

mod in_browser;

use crate::binary::{Folder, golden, tool};
use serde_json::{Value, json};
use std::fs;

/// A herd, with and without jitter, and a constant delay.
const HERD: &str = r#"
title = "1,000 clients reconnect at once"
seeds = 3
[clients]
count = 1000
[server]
capacity = 50
queue = 50
[policy.none]
base = "100ms"
cap = "10s"
jitter = "none"
max_attempts = "unlimited"
[policy.full]
base = "100ms"
cap = "10s"
jitter = "full"
max_attempts = "unlimited"
[policy."1s <constant>"]
curve = "constant"
base = "1s"
jitter = "none"
max_attempts = "unlimited"
"#;

/// Pictures of a scenario as a whole.
const STORM: &str = r#"
[clients]
rate = 20
for = "20s"
timeout = "1s"
[server]
capacity = 50
[policy.retries]
curve = "immediate"
max_attempts = 3
"#;

fn herd() -> Folder {
    Folder::new().file("herd.toml", HERD)
}

/// Runs `relent simulate` with these arguments and `--html`, and returns what `--json` says.
#[track_caller]
fn report(folder: &Folder, args: &[&str]) -> Vec<Value> {
    let outcome =
        folder.relent(&[&["simulate"], args, &["--json", "--html", "report.html", "--svg", "plots"]].concat());
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    serde_json::from_str(&outcome.stdout).expect("it is an array")
}

#[test]
fn the_plots_are_the_same_bytes_each_time() {
    let folder = herd().file("storm.toml", STORM);
    report(&folder, &["herd.toml"]);
    for name in ["load", "connected", "waits", "cost", "attempts", "arrivals"] {
        golden(&format!("simulate-{name}.svg"), &folder.read(&format!("plots/{name}.svg")));
    }
    golden("simulate-clients-cost.svg", &folder.read("plots/clients-cost.svg"));
    golden("simulate-heat-drain.svg", &folder.read("plots/heat-drain.svg"));
    report(&folder, &["layers", "--failure", "0.9"]);
    golden("simulate-layers.svg", &folder.read("plots/layers.svg"));
    report(&folder, &["storm.toml"]);
    golden("simulate-hysteresis.svg", &folder.read("plots/hysteresis.svg"));
    golden("simulate-recovery.svg", &folder.read("plots/recovery.svg"));
}

/// What the pictures of the docs show: each is the plot of this name of this scenario, in so many runs.
const PICTURES: [(&str, &str, &str, &str); 6] = [
    ("pacer", "load", include_str!("../../../relent-sim/scenarios/pacer.toml"), "3"),
    ("storm", "load", DOCS_HERD, "1"),
    ("heat", "heat-drain", DOCS_HERD, "1"),
    ("outage", "load", DOCS_OUTAGE, "1"),
    ("recovery", "recovery", include_str!("../../../relent-sim/scenarios/storm-stays.toml"), "1"),
    ("clients", "clients-cost", include_str!("../../../relent-sim/scenarios/aws.toml"), "10"),
];

const DOCS_HERD: &str = include_str!("../../../relent-sim/scenarios/jitter.toml");

const DOCS_OUTAGE: &str = r#"
title = "450 calls a second, a server of 1,000, and an outage of ten seconds"
[clients]
rate = 450
for = "4m"
timeout = "1s"
[server]
capacity = 1000
service = "exponential"
[[trouble]]
at = "30s"
for = "10s"
kind = "stall"
[policy."1 retry"]
curve = "immediate"
max_attempts = 2
[policy."2 retries"]
curve = "immediate"
max_attempts = 3
"#;

#[test]
fn the_pictures_of_the_docs_are_those_that_are_drawn() {
    for (picture, plot, scenario, seeds) in PICTURES {
        let folder = Folder::new().file("scenario.toml", scenario);
        report(&folder, &["scenario.toml", "--seeds", seeds]);
        golden(&format!("../../../../docs/{picture}.svg"), &folder.read(&format!("plots/{plot}.svg")));
    }
}

#[test]
fn the_report_is_the_same_bytes_each_time_on_any_number_of_threads() {
    let (one, two) = (herd(), herd());
    report(&one, &["herd.toml"]);
    report(&two, &["herd.toml"]);
    assert!(one.read("report.html") == two.read("report.html"));
    report(&two, &["herd.toml", "--threads", "1"]);
    let page = two.read("report.html").replace(" --threads 1", "");
    assert!(one.read("report.html") == page, "the luck does not depend on the threads");
}

#[test]
fn bands_do_not_depend_on_the_threads() {
    let folder = herd();
    let plots = |threads| {
        let args = ["simulate", "herd.toml", "--json", "--plots", "--pictures", "heat,clients", "--threads", threads];
        folder.relent(&args)
    };
    let (one, three) = (plots("1"), plots("3"));
    assert_eq!((one.stderr.as_str(), one.code), ("", Some(0)));
    assert!(one == three, "the same bytes");
    let records: Vec<Value> = serde_json::from_str(&one.stdout).expect("it is an array");
    for record in &records {
        let bands = &record["plots"]["bands"];
        assert_eq!(bands["runs"], 3);
        let last = |line: &str| bands["connected"][line].as_array().and_then(|line| line.last()).cloned();
        assert_eq!((last("low"), last("high")), (Some(json!(1000)), Some(json!(1000))), "everybody gets in");
        let [low, mean, high] = ["low", "mean", "high"].map(|line| bands["attempts"][line].as_array().unwrap().clone());
        for ((low, mean), high) in low.iter().zip(&mean).zip(&high) {
            assert!(low.as_f64() <= mean.as_f64() && mean.as_f64() <= high.as_f64(), "{low} {mean} {high}");
        }
    }
}

#[test]
fn pictures_are_those_that_are_asked_for() {
    let folder = herd();
    let names = |pictures: &str| {
        let _ = fs::remove_dir_all(folder.path().join("plots"));
        report(&folder, &["herd.toml", "--seeds", "1", "--pictures", pictures]);
        let plots = fs::read_dir(folder.path().join("plots")).expect("there are plots");
        plots.map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let has = |names: &[String], name: &str| names.iter().any(|other| other.starts_with(name));
    let none = names("none");
    assert!(has(&none, "load") && !has(&none, "heat") && !has(&none, "clients") && !has(&none, "layers"), "{none:?}");
    let all = names("all");
    assert!(has(&all, "heat") && has(&all, "clients") && has(&all, "layers") && !has(&all, "recovery"), "{all:?}");
    let says = |args: &[&str], stderr: &str| {
        let outcome = folder.relent(&[&["simulate"], args].concat());
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str(), outcome.code), ("", stderr, Some(125)));
    };
    says(
        &["herd.toml", "--pictures", "heat"],
        "error: --pictures: there is nothing to draw them on\nhint: add --html FILE, --svg DIR, or --json --plots\n",
    );
    says(
        &["herd.toml", "--pictures", "hysteresis", "--html", "x.html"],
        "error: --pictures hysteresis: only calls that come in a stream have a load that can be raised\n\
         hint: --pictures all draws what there is\n",
    );
    let told = folder.relent(&[
        "simulate",
        "herd",
        "--clients",
        "100",
        "--capacity",
        "10",
        "--queue",
        "10",
        "--curve",
        "constant",
        "--base",
        "1s",
        "--pictures",
        "heat",
        "--html",
        "x.html",
    ]);
    assert_eq!(told.code, Some(0));
    assert_eq!(
        told.stderr,
        "warning: there is no picture \"heat\": no policy has a base and a cap, in a world that the fluid engine knows\n"
    );
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = herd();
    let outcome = folder.relent(&["simulate", "herd.toml", "--html", "no/such/folder.html"]);
    assert_eq!(outcome.code, Some(125));
    assert_eq!(
        outcome.stderr,
        "error: cannot write the report to no/such/folder.html: No such file or directory\n\
         hint: --html takes a file, --svg a folder, where you may write\n"
    );
}

/// A file that stays the one that it is, as it has a second name, is written over, but only where that can be done.
#[test]
fn what_cannot_be_written_over_stays() {
    let folder = herd().file("table.csv", "the old one\n");
    fs::hard_link(folder.path().join("table.csv"), folder.path().join("second.csv")).unwrap();
    for limit in [0, 1] {
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec relent simulate herd.toml --csv table.csv");
        let output = tool("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains("table.csv: File too large"), "{said}");
        assert_eq!(folder.read("second.csv"), "the old one\n");
    }
}

/// What to do stands on the page without any script, and each policy's card says how safe it is.
#[test]
fn the_page_says_what_to_do() {
    let folder = herd();
    let records = report(&folder, &["herd.toml"]);
    let page = folder.read("report.html");
    let advice =
        page.split_once("id=\"recommended\"").expect("it is there").1.split_once("</section>").expect("it ends").0;
    assert!(advice.contains("Spread the first attempts over 22s"), "{advice}");
    assert!(advice.contains(records[0]["recommended"]["flags"].as_str().expect("a text")), "{advice}");
    assert!(advice.contains("[policy.recommended]\ncurve = &quot;constant&quot;"), "{advice}");

    let server = page.split_once("id=\"paced\"").expect("it is there").1.split_once("</section>").expect("it ends").0;
    assert!(server.contains("Simulated with the clients of &quot;full&quot;: 1.95 attempts a client"), "{server}");
    assert!(server.contains("[server]\npacer = { capacity = 50, horizon = &quot;1m&quot; }"), "{server}");
    assert_eq!(records[0]["paced"]["clients_of"], "full");

    let storm =
        ["open", "--rate", "60", "--capacity", "100", "--max-attempts", "2", "--outage", "20s+10s", "--for", "60s"];
    report(&folder, &storm);
    let page = folder.read("report.html");
    assert!(!page.contains("id=\"recommended\"") && !page.contains("id=\"paced\""));
    for words in ["stays in the storm", "Safe load: up to 50 calls a second", "Smallest fatal outage: "] {
        assert!(page.contains(words), "{words}");
    }
}

/// A fifth of the clients has got another policy; and layers between clients and a server that is down.
const ROLLOUT: &str = r#"
[clients]
count = 1000
[server]
capacity = 50
queue = 50
[policy.old]
base = "100ms"
cap = "10s"
jitter = "none"
max_attempts = "unlimited"
[policy.new]
base = "100ms"
cap = "10s"
max_attempts = "unlimited"
[[run]]
name = "rollout"
policy = "old"
rollout = { share = 0.2, policy = "new" }
"#;

const CHAIN: &str = r#"
[clients]
count = 100
[server]
capacity = 1000
failure = 1
[policy.retries]
base = "10ms"
max_attempts = 3
[[layer]]
name = "client"
deadline = "3s"
passes_deadline = true
[[layer]]
name = "gateway"
"#;

#[test]
fn the_page_and_the_terminal_tell_populations_and_layers() {
    let folder = Folder::new().file("rollout.toml", ROLLOUT).file("chain.toml", CHAIN);
    report(&folder, &["rollout.toml"]);
    let page = folder.read("report.html");
    let section = |page: &str, id: &str| {
        let rest = page.split_once(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("there is no {id}")).1;
        rest.split_once("</section>").expect("it ends").0.to_owned()
    };
    let harms = section(&page, "harms");
    assert!(harms.contains("rollout: old is better off for new. If new did as old does, "), "{harms}");
    assert!(page.contains("old: exponential 100ms * 2 up to 10s, no jitter, attempts unlimited; new: exponential"));
    assert!(section(&page, "missing").contains("There is no picture of base and cap: "));
    let said = folder.relent(&["simulate", "rollout.toml"]).stdout;
    assert!(said.contains("\nWhat populations do to each other, each changed by itself\n  rollout: "), "{said}");
    assert!(said.contains("\nrollout + pacer: old ") && said.contains("\nrollout + pacer: new "), "{said}");

    report(&folder, &["chain.toml"]);
    let page = folder.read("report.html");
    assert!(page.contains("Between the clients and the server: client &gt; gateway."), "{page}");
    assert!(
        page.contains("client: exponential 10ms * 2 up to 1m4s, full jitter, 3 attempts, 3s for a call, and tells")
    );
    assert!(section(&page, "missing").contains("layers with policies of their own have no one number of attempts"));
    let helps = section(&page, "helps");
    assert!(
        helps.contains("retry at client only, and make one attempt everywhere else: 3 attempts a call instead of 9.")
    );
    assert!(helps.contains("src=\"data:image/svg+xml,"), "it is drawn");
}
