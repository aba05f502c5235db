//! Scenario files: what is wrong with them is said where it stands; and what is right means what it says.

use relent_sim::{Arrivals, Engine, Scenario, World, simulate};
use std::time::Duration;

const GOOD: &str = r#"
[clients]
count = 10
[server]
capacity = 5
queue = 5
[policy.one]
base = "100ms"
"#;

#[track_caller]
fn wrong(text: &str, problem: &str, line: usize) {
    let error = Scenario::parse(text).expect_err("this is no scenario");
    assert_eq!((error.problem(), error.line()), (problem, Some(line)), "{error}");
    assert!(!error.hint().is_empty());
}

#[test]
fn each_mistake_has_its_place() {
    let with = |from: &str, to: &str| GOOD.replace(from, to);
    wrong(&with("count = 10", "count = 0"), "there are no clients", 3);
    wrong(&with("count = 10", "count = -1"), "-1 is not a whole number from 0 on", 3);
    wrong(&with("count = 10", "count = 1.5"), "1.5 is not a whole number from 0 on", 3);
    wrong(&with("capacity = 5", "capacity = -5"), "the server has no capacity", 5);
    wrong(&with("capacity = 5", "capacity = nan"), "nan is no finite number", 5);
    wrong(&with("queue = 5", "queue = 0"), "the server has no room for any request", 6);
    wrong(&with("queue = 5", "order = \"random\""), "there is no order \"random\"", 6);
    wrong(&with("queue = 5", "retry_after = \"soon\""), "there is no Retry-After \"soon\"", 6);
    wrong(&with("base = \"100ms\"", "base = \"100\""), "the duration has no unit", 8);
    wrong(&with("count = 10", "count = 10\nwindow = 5"), "a duration is expected, and this is of type integer", 4);
    wrong(&format!("{GOOD}[asert]\n"), "there is no table \"asert\"", 9);
    wrong(&format!("{GOOD}[assert]\ndrain = {{ max = 1 }}\n"), "there is no figure or policy \"drain\"", 10);
    wrong(&format!("{GOOD}[assert]\ndrain_s = 1\n"), "this is no bound", 10);
    wrong(&format!("{GOOD}[assert]\ndrain_s = {{}}\n"), "the bound bounds nothing", 10);
    wrong(&format!("{GOOD}[[run]]\npolicy = \"two\"\n"), "the file has no policy \"two\"", 10);
    wrong(&format!("{GOOD}[[trouble]]\nkind = \"stall\"\n"), "it is not said how long the trouble lasts", 9);
    wrong(&format!("{GOOD}[network]\nrtt = \"1ms\"\none_way = \"1ms\"\n"), "rtt and one_way are the same twice", 10);
    wrong(&with("count = 10", "rate = 10"), "it is not said for how long clients call", 3);
    wrong(
        &with("count = 10", "rate = 10\nfor = \"60s\"").replace("queue = 5", ""),
        "10 calls a second are more than the server's capacity, for ever and without a limit",
        3,
    );
    wrong("seeds = \"many\"", "there are no clients", 1);
}

#[test]
fn an_endless_retry_at_one_instant_is_refused() {
    let text = GOOD.replace("base = \"100ms\"", "curve = \"immediate\"\nmax_attempts = \"unlimited\"");
    let text = format!("{text}[network]\nrtt = \"0s\"\n");
    let error = Scenario::parse(&text).expect_err("it would not end");
    assert!(error.problem().contains("retries at once, for ever"), "{error}");
}

#[test]
fn a_run_that_does_not_end_says_so() {
    let patient = GOOD.replace("queue = 5", "queue = 1").replace("base", "max_attempts = \"unlimited\"\nbase");
    let text = format!("limit = \"10s\"\n{}", patient.replace("capacity = 5", "capacity = 0.1"));
    let outcome = simulate(&Scenario::parse(&text).expect("it is sound")).expect("it is possible");
    assert_eq!(outcome.records[0].stopped.as_deref(), Some("not over after 10s"));
}

#[test]
fn a_run_that_does_not_fit_is_refused_before_it_starts() {
    let text = GOOD.replace("count = 10", "count = 4_000_000_000").replace("base", "jitter = \"decorrelated\"\nbase");
    let scenario = Scenario::parse(&text).expect("it is sound").engine(Engine::Exact);
    let problem = simulate(&scenario).expect_err("160 GB are not free");
    assert!(problem.problem.contains("GiB of memory"), "{problem}");
}

#[test]
fn every_key_is_understood() {
    let text = r#"
name = "all"
title = "everything"
seeds = 3
seed = 7
engine = "exact"
limit = "1h"

[clients]
rate = [["0s", 10], ["10s", 20]]
spikes = [{ at = "5s", for = "1s", times = 3 }]
arrivals = "constant"
for = "30s"
timeout = "1s"
writes = { share = 0.2, retried = true, cost = 2 }

[network]
one_way = "5ms"
distribution = "lognormal"
sigma = 0.3

[server]
capacity = 100
workers = 2
service = "exponential"
queue = 50
order = "lifo"
drop_expired = true
latency = "1ms"
retry_after = "2s"
say_overloaded = false
failure = 0.01
rate_limit = { rate = 90, burst = 10 }

[[trouble]]
at = "10s"
for = "1s"
kind = "slow"
share = 0.2

[layers]
depth = 2
say_overloaded = true

[policy.one]
base = "100ms"

[assert]
recovered = { min = 0 }

[pictures]
hysteresis = true
"#;
    let scenario = Scenario::parse(text).expect("it is sound");
    let World::Service(service) = &scenario.world else { panic!("it is a service") };
    let Arrivals::Open { rate, poisson, until } = &service.arrivals else { panic!("it is open") };
    assert_eq!((rate.at(5.5), *poisson, *until), (46.5, false, Duration::from_secs(30)));
    assert_eq!((service.layers, service.say_overloaded, service.server.workers), (2, true, 2));
    let outcome = simulate(&scenario).expect("it is possible");
    assert_eq!((outcome.records[0].seeds, outcome.scenario.as_str()), (3, "all"));
}

/// Texts that are nearly scenarios never panic or hang.
#[test]
fn broken_texts_are_errors() {
    for cut in 0..GOOD.len() {
        let _ = Scenario::parse(&GOOD[..cut]);
        let _ = Scenario::parse(&format!("{}\u{0}{}", &GOOD[..cut], &GOOD[cut..]));
        let _ = Scenario::parse(&GOOD[cut..]);
    }
}
