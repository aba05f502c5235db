//! Scenario files: what is wrong with them is said where it stands; and what is right means what it says.

use relent::Policy;
use relent_sim::{Arrivals, Assertion, Engine, Figure, Scenario, Service, World, simulate};
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

/// More clients than can be served in a run are no mistake where a policy gives up.
#[test]
fn a_timeout_ends_clients_that_cannot_all_be_served() {
    let of = |limit: &str| {
        let text = format!(
            "[clients]\ncount = 1000000000\n[server]\ncapacity = 5\n[policy.one]\nmax_attempts = \"unlimited\"\n{limit}\n"
        );
        Scenario::parse(&text).map(|_| ()).map_err(|error| error.problem().to_owned())
    };
    assert!(of("").unwrap_err().starts_with("it takes "));
    assert_eq!(of("max_elapsed = \"9s\""), Ok(()));
    assert_eq!(of("timeout = \"9s\""), Ok(()));
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
    // Less than 1 ns is nothing.
    for adds in ["", "jitter = { additive = \"1ns\" }\n"] {
        let curve = format!("curve = \"immediate\"\n{adds}max_attempts = \"unlimited\"");
        let text = format!("{}[network]\nrtt = \"0s\"\n", GOOD.replace("base = \"100ms\"", &curve));
        let error = Scenario::parse(&text).expect_err("it would not end");
        assert!(error.problem().contains("retries at once, for ever"), "{error}");
    }
}

#[test]
fn a_run_that_does_not_end_says_so() {
    // All failures: nobody is ever connected.
    let text = GOOD.replace("queue = 5", "failure = 1.0").replace("base", "max_attempts = \"unlimited\"\nbase");
    let outcome =
        simulate(&Scenario::parse(&format!("limit = \"1h\"\n{text}")).expect("it is sound")).expect("it is possible");
    assert_eq!(outcome.records[0].stopped.as_deref(), Some("not over after 1h"));
    assert_eq!(outcome.records[0].get(Figure::DrainS), None, "it has not drained");
}

/// What was cut off keeps no promise that something stays below a bound.
#[test]
fn a_run_that_was_stopped_proves_nothing() {
    let text =
        GOOD.replace("queue = 5", "queue = 5\nfailure = 0.5").replace("base", "max_attempts = \"unlimited\"\nbase");
    let text = format!("limit = \"2100ms\"\n{text}\n[assert]\nmax_s = \"<= 60\"\nattempts_per_client = \">= 1\"\n");
    let scenario = Scenario::parse(&text).expect("it is sound");
    let outcome = simulate(&scenario).expect("it is possible");
    let broken: Vec<String> = outcome.broken(&scenario.asserts).iter().map(ToString::to_string).collect();
    assert_eq!(broken, ["one: max_s is not known: not over after 2.1s; promised was max_s <= 60"]);
}

/// Who loses clients is done early.
#[test]
fn a_promise_to_drain_breaks_when_clients_give_up() {
    let mut service = Service::herd(1000, 50.0);
    service.server.queue = Some(50);
    let policy = Policy::constant(Duration::from_secs(1)).max_attempts(3);
    let outcome = simulate(&Scenario::new("lossy", World::Service(service)).policy("three", policy)).unwrap();
    let drained = Assertion::at_most(Figure::DrainS, 60.0);
    let broken: Vec<String> = outcome.broken(std::slice::from_ref(&drained)).iter().map(ToString::to_string).collect();
    let gave_up = outcome.records[0].get(Figure::GaveUp).unwrap();
    let drain = outcome.records[0].get(Figure::DrainS).unwrap();
    assert!(gave_up > 100.0 && drain < 10.0);
    let said = format!("three: drain_s is {drain}, but {gave_up} clients gave up; promise gave_up too if they may");
    assert_eq!(broken, [said]);
    outcome.must(&[drained.clone(), Assertion::at_most(Figure::GaveUp, 1000.0)]);
    outcome.must(&[drained.of("another")]);
}

/// Scenarios that cannot be, what is said about each, and the line that is pointed at.
#[test]
fn impossible_scenarios_are_refused() {
    let with = |from: &str, to: &str| GOOD.replace(from, to);
    let server = |more: &str| with("queue = 5", &format!("queue = 5\n{more}"));
    let policy = |more: &str| with("base = \"100ms\"", more);
    let after = |more: &str| format!("{GOOD}{more}");
    let patient =
        |capacity: &str| with("capacity = 5", capacity).replace("base =", "max_attempts = \"unlimited\"\nbase =");
    let share = "is not a share between 0 and 1";
    let cases = [
        // Numbers.
        (with("count = 10", "count = 99999999999999999999"), "the number is too large", 3),
        (format!("name = \"{}\"\n{GOOD}", "n".repeat(1001)), "the text is longer than 1000 bytes", 1),
        (with("count = 10", "count = \"ten\""), "a number is expected, and this is of type string", 3),
        (with("capacity = 5", "capacity = 0"), "the server has no capacity", 5),
        (with("capacity = 5", "capacity = inf"), "inf is no finite number", 5),
        (with("capacity = 5", "capacity = 1e300"), "the server has no capacity", 5),
        (with("capacity = 5", "capacity = 1e-9"), "the time that one request takes is", 5),
        (patient("capacity = 0.0001"), "it takes 27h46m40s to serve 10 clients", 3),
        (with("queue = 5", "queue = -1"), "-1 is not a whole number from 0 on", 6),
        (server("workers = 0"), "there are no workers, or over a million", 7),
        (server("workers = 4294967296"), "4294967296 is too large", 7),
        (server("failure = 1.5"), share, 7),
        (server("failure = -0.5"), share, 7),
        (server("failure = nan"), "nan is no finite number", 7),
        (server("rate_limit = { rate = 0 }"), "the rate limit lets nothing through", 7),
        (server("rate_limit = { rate = 5, burst = 0 }"), "the rate limit's burst is zero", 7),
        (server("rate_limit = {}"), "the rate limit has no rate", 7),
        (with("count = 10", "count = 10\nwrites = { share = 2 }"), share, 4),
        (with("count = 10", "count = 10\nwrites = { cost = 0 }"), "the cost of a write is not above 0", 4),
        // Times.
        (with("count = 10", "count = 10\nwindow = \"-1s\""), "the duration is negative", 4),
        (with("count = 10", "count = 10\nwindow = \"99999d\""), "the window is 2399976h, and no run goes on longer", 4),
        (with("count = 10", "count = 10\ntimeout = \"0s\""), "the timeout is zero", 4),
        (server("latency = \"200000d\""), "the latency is 4800000h, and no run goes on longer than 24h", 7),
        (server("retry_after = \"-5s\""), "there is no Retry-After \"-5s\"", 7),
        (after("[network]\nrtt = \"-10ms\"\n"), "the duration is negative", 10),
        (after("[network]\nrtt = \"99999999d\"\n"), "the network takes for ever", 9),
        (after("[network]\nrtt = 10\n"), "a duration is expected, and this is of type integer", 10),
        (after("[network]\ndistribution = \"lognormal\"\nsigma = -1\n"), "sigma is not between 0 and 10", 11),
        (after("[network]\ndistribution = \"cauchy\"\n"), "there is no distribution \"cauchy\"", 10),
        (after("[network]\nsd = \"1ms\"\n"), "there is no key in network \"sd\"", 10),
        (format!("limit = \"0s\"\n{GOOD}"), "the limit of time is zero", 1),
        (format!("limit = \"-1s\"\n{GOOD}"), "the duration is negative", 1),
        // Trouble.
        (after("[[trouble]]\nkind = \"fire\"\nfor = \"1s\"\n"), "there is no kind of trouble \"fire\"", 10),
        (after("[[trouble]]\nkind = \"slow\"\nshare = 2\nfor = \"1s\"\n"), share, 9),
        (
            after("[[trouble]]\nkind = \"stall\"\nshare = 0.5\nfor = \"1s\"\n"),
            "there is no key in a trouble \"share\"",
            11,
        ),
        (after("[[trouble]]\nfor = \"0s\"\n"), "the trouble lasts no time", 9),
        (after("[[trouble]]\nfor = \"200000d\"\n"), "the end of the trouble is 4800000h, and no run", 9),
        // Runs.
        (format!("seeds = 0\n{GOOD}"), "there are no runs", 1),
        (format!("seeds = -1\n{GOOD}"), "-1 is not a whole number from 0 on", 1),
        (format!("seeds = 2000000\n{GOOD}"), "there are more than a million runs", 1),
        (format!("engine = \"magic\"\n{GOOD}"), "there is no engine \"magic\"", 1),
        (format!("sedds = 1\n{GOOD}"), "there is no table \"sedds\"", 1),
        (after("[[run]]\npolicy = \"one\"\n[[run]]\npolicy = \"one\"\n"), "two policies run as \"one\"", 9),
        (after("[[run]]\nname = \"x\"\n"), "a run names no policy", 9),
        (after(&"[[run]]\npolicy = \"one\"\n".repeat(1001)), "there are more than 1000 tables [[run]]", 2009),
        (after(&"[[trouble]]\nfor = \"1s\"\n".repeat(1001)), "there are more than 1000 tables [[trouble]]", 2009),
        // Tables that do not go together.
        (after("[occ]\n"), "a scenario with [occ] has no [server]", 4),
        (after("[batch]\n"), "a scenario with [batch] has no [server]", 4),
        (after("[lock]\nhold = \"1s\"\n"), "a scenario with [lock] has no [server]", 4),
        (
            after("[pictures]\nhysteresis = true\n"),
            "only calls that come in a stream have a load that can be raised",
            10,
        ),
        (after("[layers]\ndepth = 0\n"), "the layers are not between 1 and 8", 10),
        (after("[layers]\ndepth = 2\nfailure = 0.5\n"), "there is no key in layers \"failure\"", 11),
        // Policies.
        (policy("bse = \"1s\""), "there is no key \"bse\"", 8),
        (policy("base = \"-1s\""), "the duration is negative", 8),
        (policy("base = \"1s\"\ncap = \"1ms\""), "the cap is shorter than the base", 9),
        (policy("base = \"1s\"\nfactor = 0"), "the factor is less than 1 or not finite", 9),
        (policy("base = \"1s\"\nmax_attempts = 0"), "no attempt is allowed", 9),
        (policy("base = \"1s\"\njitter = { proportional = 2 }"), "the proportional jitter is not between 0 and 1", 9),
        (with("[policy.one]\nbase = \"100ms\"", ""), "there is no policy", 1),
        // Promises.
        (after("[assert]\ndrain_s = \"< 5\"\n"), "\"< 5\" is no bound", 10),
        (after("[assert]\ndrain_s = \"<= nan\"\n"), "\"<= nan\" is no bound", 10),
        (after("[assert]\ndrain_s = { min = 5, max = 1 }\n"), "no number is at least 5 and at most 1", 10),
        (after("[assert.two]\ndrain_s = \"<= 5\"\n"), "there is no figure or policy \"two\"", 9),
    ];
    check(&cases);
}

const OPEN: &str = r#"
[clients]
rate = 100
for = "60s"
[server]
capacity = 200
[policy.one]
base = "100ms"
"#;

#[test]
fn impossible_streams_are_refused() {
    let rate = |rate: &str| OPEN.replace("rate = 100", rate);
    check(&[
        (rate("rate = -1"), "a rate or its time is negative or not a number", 3),
        (rate("rate = 0"), "no call would be made", 3),
        (rate("rate = 1e300"), "6e301 calls would be made", 3),
        (rate("rate = nan"), "nan is no finite number", 3),
        (rate("rate = []"), "the rate has no points", 3),
        (rate("rate = [[\"1s\"]]"), "a point of the rate is a pair", 3),
        (rate("rate = [[\"5s\", 1], [\"1s\", 2]]"), "the points of the rate are not in the order of time", 3),
        (rate("rate = 1000"), "1000 calls a second are more than the server's capacity, for ever", 3),
        (rate("rate = 100\nspikes = [{ times = -1 }]"), "a rate or its time is negative", 3),
        (rate("rate = 100\nspikes = 5"), "a table is expected", 4),
        (rate("rate = 100\ncount = 5"), "clients are a herd (count) or a stream (rate), not both", 4),
        (rate("rate = 100\nwindow = \"5s\""), "there is no key in clients \"window\"", 4),
        (OPEN.replace("60s", "0s"), "the time is zero", 4),
        (OPEN.replace("60s", "-60s"), "the duration is negative", 4),
        (OPEN.replace("60s", "30d"), "clients call for longer than the run may go on", 4),
        (format!("{OPEN}[pictures]\nheat = true\n"), "only a herd that drains has a map of base and cap", 10),
    ]);
}

#[test]
fn impossible_channels_and_chains_are_refused() {
    let slots = "[policy.p]\ncurve = \"slots\"\nbase = \"51200ns\"\n";
    let chain = "[policy.p]\nbase = \"1s\"\n[clients]\ncount = 5\n";
    check(&[
        (format!("{slots}[ethernet]\nstations = 0\n"), "there are too few stations", 5),
        (format!("{slots}[ethernet]\nstations = 200000\n"), "there are more than a hundred thousand stations", 5),
        (format!("{slots}[ethernet]\nframe_slots = 0\n"), "a frame does not occupy between 1 and 2^20 slots", 5),
        (format!("{slots}[ethernet]\nslot = \"0s\"\n"), "the slot is zero", 5),
        (format!("{slots}[ethernet]\nslot = \"2d\"\n"), "the slot is 48h, and no run goes on longer than 24h", 5),
        (format!("{slots}[ethernet]\n[clients]\ncount = 5\n"), "a scenario with [ethernet] has no [clients]", 5),
        (
            "[policy.p]\ncurve = \"immediate\"\nmax_attempts = \"unlimited\"\n[ethernet]\n".to_owned(),
            "under policy \"p\" stations that have collided do so for ever",
            1,
        ),
        ("[batch]\nn = 0\n".to_owned(), "there are no packets", 2),
        ("[batch]\nn = 100000000\n".to_owned(), "there are more than ten million packets", 2),
        ("[batch]\nwindow = [\"x\"]\n".to_owned(), "there is no window strategy \"x\"", 2),
        ("[batch]\nwindow = [\"exp=1.0000001\"]\n".to_owned(), "there is no window strategy", 2),
        ("[batch]\nwindow = [\"beb\", \"beb\"]\n".to_owned(), "beb is there twice", 2),
        ("[channel]\nstations = 0\n".to_owned(), "there are no stations", 2),
        ("[channel]\naccess = \"aloha\"\np = 0\n".to_owned(), "the probability is not above 0 and at most 1", 3),
        ("[channel]\naccess = \"aloha\"\np = 2\n".to_owned(), "the probability is not above 0 and at most 1", 3),
        ("[channel]\nwindow = 0\n".to_owned(), "the window is not between 1 and 2^20", 2),
        ("[channel]\nstages = 99\n".to_owned(), "there are more than 20 stages", 2),
        ("[channel]\nslots = 100000000000\n".to_owned(), "there are more than ten billion slots", 2),
        (format!("{chain}[layers]\ndepth = 99\n"), "the depth is not between 1 and 16", 6),
        (format!("{chain}[layers]\nfailure = 2\n"), "2 is not a share between 0 and 1", 1),
        (format!("{chain}[layers]\n[[trouble]]\nfor = \"1s\"\n"), "a scenario with [layers] has no [trouble]", 6),
        (format!("{chain}[occ]\n").replace('5', "0"), "there are no clients", 4),
        (format!("{chain}[lock]\n"), "it is not said how long the lock is held", 5),
        (format!("{chain}[lock]\nhold = \"0s\"\n"), "the lock is held for no time", 6),
        (format!("{chain}[lock]\nhold = \"200000d\"\n"), "the time that one request takes is 4800000h", 6),
    ]);
}

#[track_caller]
fn check(cases: &[(String, &str, usize)]) {
    let mut wrong = Vec::new();
    for (text, problem, line) in cases {
        match Scenario::parse(text) {
            Ok(_) => wrong.push(format!("{problem}: it is taken for a scenario\n{text}")),
            Err(error) if error.hint().is_empty() => wrong.push(format!("{error}: no hint")),
            Err(error) if !error.problem().contains(problem) || error.line() != Some(*line) => {
                wrong.push(format!("{error}\n    instead of {problem:?} in line {line}"));
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_run_that_does_not_fit_is_refused_before_it_starts() {
    let text = GOOD.replace("count = 10", "count = 4_000_000_000").replace("base", "jitter = \"decorrelated\"\nbase");
    let scenario = Scenario::parse(&text).expect("it is sound").engine(Engine::Exact);
    let problem = simulate(&scenario).expect_err("160 GB are not free");
    assert!(problem.problem.contains("GiB of memory"), "{problem}");
    assert_eq!(problem.hint, "use the count or fluid engine, fewer clients, or fewer threads");
    let chosen = simulate(&Scenario { engine: None, ..scenario }).expect_err("no other engine knows what it remembers");
    assert_eq!(chosen.hint, "use fewer clients, or fewer threads");
    // A stream is kept by the tenth of a second, whether or not anybody comes: 110 GB.
    let text = GOOD
        .replace("count = 10", "rate = 0.000_001\nfor = \"38000h\"")
        .replace("[clients]", "limit = \"40000h\"\n[clients]");
    let long = simulate(&Scenario::parse(&text).expect("it is sound")).expect_err("so much is not free");
    assert!(long.problem.contains("GiB of memory"), "{long}");
    assert_eq!(long.hint, "use a lower rate, a shorter time, or fewer threads");
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

/// Only the layer next to the server is told when to come back; one above it, whose call failed, was not.
#[test]
fn layers_do_not_pass_on_what_the_server_said() {
    let text = r#"
[clients]
count = 500
[server]
capacity = 5
queue = 5
retry_after = "100s"
[layers]
depth = 2
[policy.one]
base = "100ms"
max_attempts = 3
max_pushback = "1s"
[policy.two]
base = "100ms"
max_attempts = 3
max_elapsed = "1s"
"#;
    for (from, to) in [("", ""), ("queue = 5", "queue = 5\norder = \"lifo\"")] {
        let scenario = Scenario::parse(&text.replacen(from, to, 1)).expect("it is sound");
        let outcome = simulate(&scenario).expect("it is possible");
        assert!(outcome.records.iter().all(|record| record.stopped.is_none()), "{from}");
    }
}

/// The server works on what nobody waits for any more: a queue without a limit would grow without one.
#[test]
fn a_queue_that_grows_for_ever_is_noticed() {
    let text = r#"
limit = "1h"
[clients]
count = 20_000
timeout = "1ms"
[server]
capacity = 10
order = "lifo"
[network]
rtt = "0s"
[policy.one]
curve = "constant"
base = "1ms"
jitter = "none"
max_attempts = "unlimited"
"#;
    let outcome = simulate(&Scenario::parse(text).expect("it is sound")).expect("it is possible");
    assert_eq!(outcome.records[0].stopped.as_deref(), Some("more than 10000000 requests are inside the server"));
}

/// A time that is finer than a millisecond is kept: 1.5 ms, doubled eight times, and the service of 10 ms.
#[test]
fn times_finer_than_a_millisecond_are_kept() {
    let drain = |base: &str| {
        let text = format!(
            "[clients]\ncount = 2\n[server]\ncapacity = 100\nqueue = 1\n[network]\nrtt = \"0s\"\n\
             [[trouble]]\nat = \"0s\"\nfor = \"300ms\"\nkind = \"refuse\"\n\
             [policy.p]\nbase = \"{base}\"\njitter = \"none\"\nmax_attempts = 20\n"
        );
        let outcome = simulate(&Scenario::parse(&text).expect("it is a scenario")).expect("it is possible");
        outcome.records[0].get(Figure::DrainS).expect("they are served")
    };
    // The ninth attempts find one place; who has none comes again after 511 times the base, and is served within 10 ms.
    let drained = drain("1500us");
    assert!((drained - (0.001_5 * 511.0 + 0.01)).abs() < 1e-6, "{drained}");
}

/// `rtt` is the mean, there and back, whatever the distribution, and 10 ms where nothing is said.
#[test]
fn rtt_is_the_mean_of_every_distribution() {
    let mean = |network: &str| {
        let scenario = Scenario::parse(&format!("{GOOD}\n{network}")).expect("it is a scenario");
        let World::Service(service) = scenario.world else { panic!("it is a service") };
        2.0 * service.network.mean_ns() / 1e6
    };
    for shape in ["constant", "exponential", "lognormal"] {
        let rtt = mean(&format!("[network]\nrtt = \"40ms\"\ndistribution = \"{shape}\""));
        assert!((rtt - 40.0).abs() < 0.001, "{shape}: {rtt}");
    }
    assert_eq!((mean(""), mean("[network]\none_way = \"20ms\"")), (10.0, 40.0));
}

/// What is left of the speed in a brown-out is called speed; the old name still means it.
#[test]
fn a_slow_trouble_says_which_speed_is_left() {
    let slow = |key: &str| {
        let text = format!("{GOOD}\n[[trouble]]\nat = \"0s\"\nfor = \"2s\"\nkind = \"slow\"\n{key} = 0.25\n");
        let World::Service(service) = Scenario::parse(&text).expect("it is a scenario").world else {
            panic!("it is a service")
        };
        service.troubles
    };
    assert_eq!(slow("speed"), slow("share"));
    assert_eq!(slow("speed")[0].kind, relent_sim::TroubleKind::Slow(0.25));
}

/// Who retries at once and is told to wait does wait: it is no endless loop at one instant.
#[test]
fn who_retries_at_once_and_is_told_to_wait_comes_to_an_end() {
    let text = GOOD.replace("queue = 5", "queue = 1\nretry_after = \"100ms\"");
    let text = text.replace("base = \"100ms\"", "curve = \"immediate\"\nmax_attempts = \"unlimited\"");
    let scenario = Scenario::parse(&format!("{text}[network]\nrtt = \"0s\"\n")).expect("it is possible");
    let record = simulate(&scenario).expect("it ends").records.remove(0);
    assert_eq!((record.stopped.as_deref(), record.get(Figure::SuccessShare)), (None, Some(1.0)));
}

/// More attempts than a byte counts are counted.
#[test]
fn the_count_engine_knows_limits_above_256() {
    let text =
        GOOD.replace("count = 10", "count = 20000").replace("capacity = 5\nqueue = 5", "capacity = 50\nqueue = 1");
    let policy = "base = \"1s\"\ncurve = \"constant\"\njitter = \"full\"\nmax_attempts = 300\n";
    let scenario = |engine: Engine| {
        let text = format!("engine = \"{engine}\"\n{}", text.replace("base = \"100ms\"", policy));
        simulate(&Scenario::parse(&text).expect("it is a scenario")).expect("it is possible").records.remove(0)
    };
    let [counted, exact] = [Engine::Count, Engine::Exact].map(scenario);
    assert!(exact.get(Figure::MaxAttempts) > Some(256.0), "{:?}", exact.get(Figure::MaxAttempts));
    let attempts = [&counted, &exact].map(|record| record.get(Figure::AttemptsPerClient).expect("they try"));
    assert!((attempts[0] / attempts[1] - 1.0).abs() < 0.01, "{attempts:?}");
}
