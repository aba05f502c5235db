//! The scenarios that are shipped: each is read, runs, and keeps its promises.

use relent_sim::{Control, Figure, Outcome, Scenario, draw_pictures, simulate};
use std::path::Path;

fn run(name: &str, change: impl FnOnce(&mut Scenario)) -> (Scenario, Outcome) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    let mut scenario = Scenario::load(&path).expect("the scenario is sound");
    scenario.seeds = scenario.seeds.min(2);
    change(&mut scenario);
    let outcome = simulate(&scenario).expect("the scenario is possible");
    outcome.must(&scenario.asserts);
    assert!(outcome.records.iter().all(|record| record.stopped.is_none()), "{name}");
    (scenario, outcome)
}

fn names(outcome: &Outcome) -> Vec<&str> {
    outcome.records.iter().map(|record| record.policy.as_str()).collect()
}

#[test]
fn herd() {
    let (_, outcome) = run("herd.toml", |scenario| scenario.seeds = 1);
    assert_eq!(names(&outcome), ["none", "+-20%", "full", "equal", "decorrelated", "exact Retry-After"]);
    assert_eq!(outcome.records[5].get(Figure::AttemptsPerClient), Some(1.95));
}

/// The picture of the README.
#[test]
fn jitter() {
    let (_, outcome) = run("jitter.toml", |_| ());
    assert_eq!(names(&outcome), ["without jitter", "with full jitter"]);
    assert_eq!(outcome.records[0].get(Figure::DrainS), Some(163.39));
}

#[test]
fn aws() {
    let (_, outcome) = run("aws.toml", |scenario| scenario.seeds = 20);
    assert_eq!(names(&outcome), ["none", "exponential", "full", "equal", "decorrelated"]);
    let preset = simulate(&relent_sim::presets::aws(100).seeds(20)).expect("the preset is sound");
    assert_eq!(outcome.records, preset.records, "the file is the preset");
}

#[test]
fn layers() {
    let (scenario, mut outcome) = run("layers.toml", |_| ());
    assert_eq!(draw_pictures(&scenario, &mut outcome, 1, &Control::default()), []);
    let matrix = outcome.extras.layers.expect("the scenario asks for it");
    assert_eq!(matrix.amplification[2][3], 64.0);
}

#[test]
fn others() {
    for name in ["ethernet.toml", "lock.toml", "rate-limit.toml", "storm-heals.toml", "storm-stays.toml"] {
        let (_, outcome) = run(name, |_| ());
        assert!(outcome.records.len() >= 3, "{name}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    assert_eq!(folder.read_dir().expect("the folder is there").count(), 19, "a new scenario wants a test");
}

/// A fifth of the clients has the new policy: it does better, and so do the others.
#[test]
fn rollout() {
    let (_, outcome) = run("rollout.toml", |_| ());
    assert_eq!(names(&outcome), ["old", "20 % new", "new"]);
    let [old, fifth, new] = &outcome.records[..] else { panic!("there are three") };
    let [stayed, went] = &fifth.populations[..] else { panic!("there are two populations") };
    assert_eq!((stayed.clients, went.clients), (40_000, 10_000));
    let get = |record: &relent_sim::Record, figure| record.get(figure).expect("it has a meaning");
    assert!(get(went, Figure::P99S) < get(stayed, Figure::P99S) / 3.0);
    assert!(get(stayed, Figure::DrainS) < get(old, Figure::DrainS) - 15.0);
    assert!(get(new, Figure::DrainS) < get(fifth, Figure::DrainS));
}

/// Layers whose timeouts do not fit work for clients who have gone, unless they are told how long those wait.
#[test]
fn deadlines() {
    let (_, outcome) = run("deadlines.toml", |_| ());
    assert_eq!(names(&outcome), ["nobody is told", "deadlines are passed on", "only the client retries"]);
    let get = |place: usize, figure| outcome.records[place].get(figure).expect("it is counted");
    assert!(get(1, Figure::AttemptsPerClient) < get(0, Figure::AttemptsPerClient));
    assert!(get(1, Figure::SuccessShare) > get(0, Figure::SuccessShare));
}

#[test]
fn mobile_and_batch() {
    let (_, outcome) = run("mobile-and-batch.toml", |_| ());
    assert_eq!(names(&outcome), ["batch at once", "batch with a limiter"]);
    let lost =
        |place: usize| outcome.records[place].populations[0].get(Figure::WastedPerClient).expect("it is counted");
    assert!(lost(0) > 0.2 && lost(1) < 0.01, "{} {}", lost(0), lost(1));
}

/// The examples of the documentation are scenarios.
#[test]
fn the_page_tells_the_truth() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulate-reference.md"));
    let page = page.expect("the page is there");
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 6);
    let whole = Scenario::parse(blocks[0]).expect("the long example is a scenario");
    assert_eq!((whole.contenders.len(), whole.asserts.len()), (1, 4));
    let rest = "[server]\ncapacity = 500\n[policy]\nbase = \"1s\"";
    Scenario::parse(&format!("{}\n{rest}", blocks[1])).expect("the short example is the clients of one");
    let policies = ["old", "new", "phones"].map(|name| format!("[policy.{name}]\nbase = \"1s\"\n")).concat();
    let server = format!("[server]\ncapacity = 500\n{policies}");
    for (block, clients) in [(2, "[clients]\ncount = 10\n"), (3, ""), (4, "[clients]\ncount = 10\n")] {
        let text = format!("{clients}{server}{}", blocks[block]);
        let scenario = Scenario::parse(&text).expect("the examples of populations are some");
        assert!(scenario.contenders.iter().all(|contender| contender.populations.len() == 2), "{text}");
    }
    let chain = Scenario::parse(&format!("[clients]\ncount = 10\n{server}{}", blocks[5]));
    assert_eq!(chain.expect("the example of layers is a scenario").contenders[0].layers.len(), 2);
}

/// The scenarios of the machines that protect the far side.
#[test]
fn protected() {
    for name in [
        "admission.toml",
        "pacer.toml",
        "budget-heals.toml",
        "breaker.toml",
        "hedge.toml",
        "layers-overloaded.toml",
        "limit.toml",
    ] {
        let (scenario, _) = run(name, |scenario| scenario.seeds = 1);
        assert!(!scenario.asserts.is_empty(), "{name}");
    }
}
