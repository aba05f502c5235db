//! Upstreams and servers: text in, settings and errors out, and back.

use super::{part::Settings, *};
use crate::{
    Admission, AdmissionSettings, AwsQuota, Breaker, BreakerQuirks, BreakerSettings, BreakerWindow, Budget,
    BudgetSettings, Hedge, HedgeSettings, Limit, LimitSettings, Order, Pacer, PacerSettings, Scope,
};
use proptest::prelude::*;
use std::{string::ToString, time::Duration, vec::Vec};

const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn upstream(keys: &str) -> UpstreamDraft {
    *Config::parse(&format!("[upstream.x]\n{keys}")).unwrap_or_else(|e| panic!("{e}")).upstream("x").unwrap()
}

fn server(keys: &str) -> ServerDraft {
    *Config::parse(&format!("[server.x]\n{keys}")).unwrap_or_else(|e| panic!("{e}")).server(Some("x")).unwrap()
}

fn budget(text: &str) -> BudgetSettings {
    upstream(&format!("budget = {text}")).budget.into_option().unwrap()
}

fn breaker(text: &str) -> BreakerSettings {
    upstream(&format!("breaker = {text}")).breaker.into_option().unwrap()
}

fn limit(text: &str) -> LimitSettings {
    upstream(&format!("limit = {text}")).limit.into_option().unwrap()
}

fn hedge(text: &str) -> HedgeSettings {
    upstream(&format!("hedge = {text}")).hedge.into_option().unwrap()
}

/// The error of an upstream's line, its place, and its hint.
#[track_caller]
fn refuses(line: &str, column: usize, problem: &str, hint: &str) {
    let error = Config::parse(&format!("[upstream.x]\n{line}")).expect_err(line);
    assert_eq!((error.problem(), error.hint()), (problem, hint), "{line}");
    assert_eq!((error.line(), error.column()), (Some(2), Some(column)), "{line}\n{error}");
}

#[test]
fn every_kind_of_budget() {
    assert_eq!(budget("{ ratio = 0.1 }"), Budget::ratio(0.1).settings());
    assert_eq!(
        budget("{ ratio = 0.2, min_per_second = 5, window = '1m' }"),
        Budget::ratio(0.2).min_per_second(5).window(60 * SEC).settings()
    );
    assert_eq!(budget("{ aws_quota = 100 }"), BudgetSettings::AwsQuota(AwsQuota { capacity: 100, ..AwsQuota::V2_1 }));
    let costs = AwsQuota { capacity: 500, cost: 1, throttling_cost: 2, timeout_cost: 3 };
    let text = "{ aws_quota = 500, cost = 1, throttling_cost = 2, timeout_cost = 3 }";
    assert_eq!(budget(text), BudgetSettings::AwsQuota(costs));
    assert_eq!(budget("{ grpc = 10, token_ratio = 0.1 }"), Budget::grpc(10, 0.1).settings());
    assert_eq!(budget("{ finagle = 0.2 }"), Budget::finagle(0.2).settings());
    assert_eq!(
        budget("{ finagle = 0.3, min_per_second = 2, ttl = '20s' }"),
        BudgetSettings::Finagle { ttl: 20 * SEC, min_per_second: 2, ratio: 0.3 }
    );
    assert_eq!(
        budget("{ in_flight = 0.3, floor = 1, sleeping = false, inclusive = true }"),
        BudgetSettings::InFlight { share: 0.3, floor: 1, sleeping: false, inclusive: true }
    );
    assert_eq!(budget("{ throttle = 2 }"), Budget::throttle(2.0).settings());
}

#[test]
fn other_systems_by_name() {
    for name in Budget::COMPAT {
        assert_eq!(budget(&format!("'{name}'")), Budget::compat(name).unwrap().settings(), "{name}");
        assert_eq!(budget(&format!("{{ compat = '{name}' }}")), Budget::compat(name).unwrap().settings(), "{name}");
    }
    for name in Breaker::COMPAT {
        assert_eq!(breaker(&format!("'{name}'")), Breaker::compat(name).unwrap().settings(), "{name}");
    }
    // A kind by its name has its defaults, and a name's settings can be changed one by one.
    assert_eq!(budget("'ratio'"), Budget::ratio(0.1).settings());
    assert_eq!(budget("{ compat = 'tower', ratio = 0.5 }"), Budget::ratio(0.5).min_per_second(10).settings());
    let polly = Breaker::compat("polly").unwrap().settings();
    assert_eq!(breaker("{ compat = 'polly', open_for = '9s' }"), BreakerSettings { open_for: 9 * SEC, ..polly });
    assert_eq!(breaker("'polly,open_for=9s'"), BreakerSettings { open_for: 9 * SEC, ..polly });
}

#[test]
fn every_key_of_a_breaker() {
    let text = "{ consecutive = 5, failures = 6, share = 0.5, slow_after = '1s', slow_share = 0.4, window = '20s', \
        min_calls = 7, open_for = '30s', factor = 2, open_at_most = '10m', jitter = 0.2, probes = 3, close_after = 4, \
        reopen_share = 0.6, probe_again_after = '8s', ramp = '9s', ramp_from = 0.3, quirks = 'cockatiel' }";
    let all = BreakerSettings {
        consecutive: Some(5),
        failures: Some(6),
        share: Some(0.5),
        slow_after: Some(SEC),
        slow_share: 0.4,
        window: BreakerWindow::Time(20 * SEC),
        min_calls: Some(7),
        open_for: 30 * SEC,
        factor: 2.0,
        open_at_most: Some(600 * SEC),
        jitter: 0.2,
        probes: 3,
        close_after: 4,
        reopen_share: Some(0.6),
        probe_again_after: Some(8 * SEC),
        ramp: 9 * SEC,
        ramp_from: 0.3,
        quirks: BreakerQuirks::Cockatiel,
    };
    assert_eq!(breaker(text), all);
    assert_eq!(
        breaker("{ share = 0.5, window_calls = 100, window = '1s' }".replace(", window = '1s'", "").as_str()).window,
        BreakerWindow::Calls(100)
    );
    assert_eq!(
        breaker("{ consecutive = 5, open_for = '30s' }"),
        Breaker::consecutive(5).open_for(30 * SEC).settings(),
        "one line, as in Rust"
    );
}

#[test]
fn every_kind_of_limit() {
    assert_eq!(limit("{ rate = 100, burst = 10 }"), Limit::rate(100).burst(10).settings());
    assert_eq!(limit("{ rate = 100, per = '1m' }"), Limit::rate(100).per(60 * SEC).settings());
    assert_eq!(
        limit("{ concurrency = 20, queue = 5, longest = '2s' }"),
        Limit::concurrency(20).queue(5, 2 * SEC).settings()
    );
    let short = LimitSettings::Concurrency { limit: 20, queue: 5, longest: 100 * MS };
    assert_eq!(limit("{ concurrency = 20, queue = 5 }"), short, "a queue that nobody waits in is none");
    assert_eq!(
        limit("{ aimd = 30, min = 2, max = 90, slow_after = '1s' }"),
        LimitSettings::Aimd { start: 30, min: 2, max: 90, slow_after: SEC }
    );
    assert_eq!(limit("{ gradient = 30, max = 90 }"), LimitSettings::Gradient { start: 30, max: 90 });
    assert_eq!(limit("'aws_adaptive'"), LimitSettings::AwsAdaptive);
    assert_eq!(limit("'aimd'"), Limit::aimd(20).settings());
}

#[test]
fn hedges() {
    assert_eq!(hedge("{ after = '50ms' }"), Hedge::after(50 * MS).settings());
    assert_eq!(
        hedge("{ quantile = 0.95, at_most = 2, min_samples = 50, after = '1s' }"),
        Hedge::quantile(0.95).at_most(2).min_samples(50).or_after(SEC).settings()
    );
}

#[test]
fn servers() {
    let one = server("pacer = { capacity = 5000, horizon = '60s' }\nadmission = {}");
    assert_eq!(one.pacer, Part::With(Pacer::capacity(5000.0).settings()));
    assert_eq!(one.admission, Part::With(Admission::new().settings()));
    let all = server(
        "pacer = { capacity = 1e3, measured = true, horizon = '5s', kept = 0.8, learned = true }\n\
         admission = { service_time = '20ms', max_retry_share = 0.3, pushback = '2s', order = 'retries_first', \
         scope = 'host' }",
    );
    let pacer = PacerSettings { capacity: 1000.0, measured: true, horizon: 5 * SEC, kept: 0.8, learned: true };
    assert_eq!(all.pacer, Part::With(pacer));
    let admission = AdmissionSettings {
        service_time: Some(20 * MS),
        max_retry_share: 0.3,
        pushback: 2 * SEC,
        order: Order::RetriesFirst,
        scope: Scope::Host,
    };
    assert_eq!(all.admission, Part::With(admission));
}

#[test]
fn which_server_is_meant() {
    let config = Config::parse("[server.a]\nadmission = {}\n[server.b]").unwrap();
    assert_eq!(config.servers().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(config.server(Some("c")).unwrap_err().problem, "the file has no server \"c\"");
    assert_eq!(config.server(None).unwrap_err().hint, "it has a, b");
    let own = Config::parse("[server]\npacer = { capacity = 1 }\n[server.a]").unwrap();
    assert_eq!(own.server(None).unwrap().pacer.into_option().unwrap().capacity, 1.0);
    let none = Config::parse("").unwrap();
    assert_eq!(none.server(None).unwrap_err().hint, "[server.NAME] begins it");
    let bad = Config::parse("[server.a]\npacr = { capacity = 1 }").unwrap_err();
    assert_eq!((bad.line(), bad.hint()), (Some(2), "did you mean \"pacer\"?"));
}

#[test]
fn a_scenarios_server_has_more_keys() {
    let text = "[server]\nqueue = 50\ncapacity = 3\npacer = { capacity = 50 }\n[clients]\ncount = 3";
    assert_eq!(ServerDraft::of_scenario(text).unwrap().pacer, Part::With(Pacer::capacity(50.0).settings()));
    assert_eq!(ServerDraft::of_scenario("[clients]").unwrap(), ServerDraft::default());
    assert_eq!(ServerDraft::of_scenario("[").unwrap_err().line(), Some(1));
    assert!(Config::parse_among(text, &["server", "clients"]).is_ok());
}

#[test]
fn policies_name_their_upstream() {
    let text = "[policy.read]\nupstream = 'bank'\n[policy.write]\nupstream = 'bank'\nbase = '5s'\n\
                [policy.other]\n[upstream.bank]\nbudget = { ratio = 0.1 }";
    let config = Config::parse(text).unwrap();
    assert_eq!(config.upstream_of(Some("read")), Some("bank"));
    assert_eq!(config.upstream_of(Some("write")), Some("bank"));
    assert_eq!(config.upstream_of(Some("other")), None);
    assert_eq!(config.upstream_of(None), None, "there are several");
    assert_eq!(config.policy("write").unwrap(), crate::Policy::exponential(5 * SEC));
    let unnamed = Config::parse("[policy]\nupstream = 'bank'\n[policy.a]\n[upstream.bank]").unwrap();
    assert_eq!((unnamed.upstream_of(None), unnamed.upstream_of(Some("a"))), (Some("bank"), None));

    let wrong = |text: &str| {
        let error = Config::parse(text).unwrap_err();
        (error.line().unwrap(), error.column().unwrap(), error.problem().to_string(), error.hint().to_string())
    };
    let told = |line, column, problem: &str, hint: &str| (line, column, problem.to_string(), hint.to_string());
    assert_eq!(
        wrong("[policy.a]\nupstream = 'bang'\n[upstream.bank]\n[upstream.shop]"),
        told(2, 12, "the file has no upstream \"bang\"", "did you mean \"bank\"?")
    );
    assert_eq!(
        wrong("[policy.a]\nupstream = 'x'"),
        told(2, 12, "the file has no upstream \"x\"", "[upstream.x] begins it")
    );
    assert_eq!(wrong("[policy.a]\nupstream = 5"), told(2, 12, "upstream is the name of one", "upstream = \"NAME\""));
    assert_eq!(
        wrong("[policy.a]\nupsteam = 'x'"),
        told(2, 1, "there is no key \"upsteam\"", "did you mean \"upstream\"?")
    );
    assert_eq!(
        wrong("[upstream]\nbudget = 'aws-2.1'"),
        told(2, 1, "budget stands outside of an upstream", "[upstream.NAME] begins one")
    );
    assert_eq!(wrong("upstream = 3"), told(1, 12, "upstream is a table", "[upstream.NAME] begins one"));
    assert_eq!(wrong("server = 3"), told(1, 10, "server is a table", "[server.NAME] begins one"));
}

#[test]
fn what_is_wrong_stands_where_it_is() {
    refuses("bugdet = 'sre'", 1, "there is no key of an upstream \"bugdet\"", "did you mean \"budget\"?");
    refuses("budget = 'srw'", 10, "there is no budget \"srw\"", "did you mean \"sre\"?");
    refuses("budget = 5", 10, "a budget is a table or a name, and this is a number", BudgetSettings::LIKE);
    refuses("budget = {}", 10, "nothing says how many retries the budget allows", BudgetSettings::LIKE);
    refuses("budget = ''", 10, "the budget says nothing", BudgetSettings::LIKE);
    refuses(
        "budget = { ratio = 1.5 }",
        20,
        "the ratio is not between 0 and 1",
        "0.1 allows a retry for every tenth call",
    );
    refuses(
        "budget = { ratio = nan }",
        20,
        "the ratio is not between 0 and 1",
        "0.1 allows a retry for every tenth call",
    );
    refuses("budget = { ratio = 0.1, window = '0s' }", 34, "the window is zero", "leave it out for the default");
    refuses("budget = { ratio = 0.1, window = 10 }", 34, "window: the duration has no unit", {
        crate::duration::BadDuration::NoUnit.hint()
    });
    refuses(
        "budget = { ratio = 0.1, min_per_sec = 1 }",
        25,
        "there is no key of a ratio budget \"min_per_sec\"",
        "did you mean \"min_per_second\"?",
    );
    refuses(
        "budget = { ratio = 0.1, grpc = 10 }",
        25,
        "a budget is of one kind, not ratio and grpc",
        "leave one of them out",
    );
    refuses(
        "budget = { compat = 'grpc-a6', ratio = 0.1 }",
        10,
        "this budget is of kind grpc, and ratio is another",
        "leave one of them out",
    );
    refuses("budget = { compat = 5 }", 21, "compat is a text, and this is a number", "write it in quotes");
    refuses("budget = { grpc = 0 }", 19, "the tokens are not between 1 and 1000", "gRFC A6 suggests 10");
    refuses("budget = { finagle = -1 }", 22, "the ratio is not between 0 and 1000", "Finagle's default is 0.2");
    refuses("budget = { aws_quota = 0 }", 24, "the quota is empty", "the AWS SDKs have 500 tokens");
    refuses(
        "budget = { aws_quota = 9, timeout_cost = 0 }",
        42,
        "a retry costs nothing",
        "version 2.1 takes 14 tokens, 5 after throttling",
    );
    refuses("breaker = 'poly'", 11, "there is no breaker \"poly\"", "did you mean \"polly\"?");
    refuses(
        "breaker = { open_for = '30s' }",
        11,
        "nothing trips the breaker",
        "say consecutive, failures, share or slow_after",
    );
    refuses(
        "breaker = { share = 0.5, window = '1s', window_calls = 5 }",
        41,
        "a breaker has one window, not window and window_calls",
        "leave one of them out",
    );
    refuses(
        "breaker = { consecutive = 5, open_for = '0s' }",
        41,
        "the open time is zero",
        "30s keeps attempts away for thirty seconds",
    );
    refuses("breaker = { consecutive = 5, quirks = 'pollie' }", 39, "there is no quirks \"pollie\"", {
        "there are none, gobreaker, cockatiel"
    });
    refuses("limit = {}", 9, "nothing says what is limited", LimitSettings::LIKE);
    refuses("limit = 'fast'", 9, "there is no limit \"fast\"", "there are aws_adaptive, aimd, gradient");
    refuses("limit = { rate = 0 }", 18, "the rate is not between 1 and a million", "100 is a hundred a second");
    refuses(
        "limit = { aimd = 5, rat = 3 }",
        21,
        "there is no key of an aimd limit \"rat\"",
        "there are aimd, min, max, slow_after",
    );
    refuses("limit = { aimd = 5000 }", 18, "the limit does not start between its least and its most", "20 is usual");
    refuses("hedge = { at_most = 2 }", 9, "nothing says when a hedge starts", "say after or quantile");
    refuses("hedge = 'fast'", 9, "there is no hedge \"fast\"", "there are none");
    refuses("hedge = { quantile = 95 }", 22, "the quantile is not between 0 and 1", "0.95 hedges one call in twenty");
}

/// The shown error has the line and a caret under what is wrong.
#[test]
fn the_caret_stands_under_the_value() {
    let error = Config::parse("[upstream.bank]\nbreaker = { consecutive = 5, jitter = 2.5 }").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the jitter is not between 0 and 1\n --> 2:39\n  |\n\
         2 | breaker = { consecutive = 5, jitter = 2.5 }\n  |                                       ^^^"
    );
}

#[test]
fn absurd_numbers_are_errors() {
    let problem = |line: &str| {
        Config::parse(&format!("[upstream.x]\n{line}")).err().map_or("none".to_string(), |e| e.problem().to_string())
    };
    assert_eq!(problem("limit = { rate = 18446744073709551616 }"), "rate: 18446744073709551616 is too large", "2^64");
    assert_eq!(problem("limit = { rate = 4294967296 }"), "rate: 4294967296 is too large");
    assert_eq!(problem("limit = { rate = -1 }"), "rate: \"-1\" is not a whole number from 0 on");
    assert_eq!(problem("limit = { rate = 1.5 }"), "rate: \"1.5\" is not a whole number from 0 on");
    assert_eq!(problem("limit = { rate = true }"), "rate is a whole number, and this is true or false");
    assert_eq!(problem("limit = { rate = 1, per = '0s' }"), "the rate is not over 1 ms to a day");
    assert_eq!(problem("limit = { rate = 1, per = '2d' }"), "the rate is not over 1 ms to a day");
    assert_eq!(problem("limit = { rate = 1, burst = 0 }"), "no permit may come at once");
    assert_eq!(problem("limit = { concurrency = 0 }"), "nothing may be in flight");
    assert_eq!(problem("limit = { concurrency = 1, queue = 1, longest = '0s' }"), "nobody may wait in the queue");
    assert_eq!(problem("budget = { throttle = inf }"), "k is less than 1 or not finite");
    assert_eq!(problem("budget = { throttle = 0.5 }"), "k is less than 1 or not finite");
    assert_eq!(problem("budget = { in_flight = -0.1 }"), "the share is not between 0 and 1");
    assert_eq!(problem("budget = { ratio = 1e400 }"), "the ratio is not between 0 and 1");
    assert_eq!(problem("budget = { ratio = 0, min_per_second = 0 }"), "the budget never allows a retry");
    assert_eq!(
        problem("budget = { ratio = 0, min_per_second = 9999999 }"),
        "more than a million retries a second are always allowed"
    );
    assert_eq!(problem("breaker = { share = 0.5, window = '1ns' }"), "the window is zero");
    assert_eq!(problem("breaker = { share = nan }"), "the share of failures is not above 0 and up to 1");
    assert_eq!(problem("breaker = { consecutive = 1, probes = 5000 }"), "the probes are not 1 to 4095");
    assert_eq!(problem("breaker = { consecutive = 1, factor = inf }"), "the factor is less than 1 or not finite");
    assert_eq!(problem("breaker = { share = 1, window_calls = 0 }"), "the window is not 1 to 1024 calls");
    assert_eq!(problem("hedge = { after = '0s' }"), "a hedge would start with the first attempt");
    assert_eq!(problem("hedge = { after = '50ms', at_most = 300 }"), "the hedges of a call are not 1 to 255");
    let server = |line: &str| Config::parse(&format!("[server.x]\n{line}")).unwrap_err().problem().to_string();
    assert_eq!(server("pacer = { capacity = 0 }"), "the capacity is not above 0 and up to 10^9 a second");
    assert_eq!(server("pacer = { capacity = nan }"), "the capacity is not above 0 and up to 10^9 a second");
    assert_eq!(
        server("pacer = { capacity = 18446744073709551616 }"),
        "the capacity is not above 0 and up to 10^9 a second"
    );
    assert_eq!(server("pacer = { horizon = '60s' }"), "the pacer has no capacity");
    assert_eq!(server("pacer = { capacity = 1, horizon = '0s' }"), "the horizon is zero: there would be no turns");
    assert_eq!(
        server("pacer = { capacity = 1, kept = 0 }"),
        "the share of turns that are kept is not above 0 and up to 1"
    );
    assert_eq!(server("admission = { max_retry_share = 0 }"), "the share of retries is not above 0 and up to 1");
    assert_eq!(server("admission = { order = 'random' }"), "there is no order \"random\"");
    assert_eq!(server("admission = 7"), "an admission is a table or a name, and this is a number");
}

#[test]
fn flags_say_the_same() {
    let set = |key: &str, value: &str| {
        let mut draft = UpstreamDraft::default();
        draft.set(key, value).map(|()| draft)
    };
    let problem = |key: &str, value: &str| set(key, value).unwrap_err().problem;
    assert_eq!(
        set("budget", "ratio=0.1,min_per_second=1"),
        Ok(upstream("budget = { ratio = 0.1, min_per_second = 1 }"))
    );
    assert_eq!(set("budget", " aws-2.1 "), Ok(upstream("budget = 'aws-2.1'")));
    assert_eq!(
        set("breaker", "consecutive=5, open_for=30s"),
        Ok(upstream("breaker = { consecutive = 5, open_for = '30s' }"))
    );
    assert_eq!(set("limit", "rate=100,burst=10"), Ok(upstream("limit = { rate = 100, burst = 10 }")));
    assert_eq!(set("hedge", "after=50ms"), Ok(upstream("hedge = { after = '50ms' }")));
    assert_eq!(
        set("budget", "in_flight=0.2,sleeping=false"),
        Ok(upstream("budget = { in_flight = 0.2, sleeping = false }"))
    );
    assert_eq!(problem("budget", "ratio=0.1,0.2"), "\"0.2\" is not KEY=VALUE");
    assert_eq!(problem("budget", "ratio=0.1,ratio=0.2"), "ratio is given twice");
    assert_eq!(problem("budget", "ratio="), "ratio: \"\" is not a number");
    assert_eq!(problem("budget", ""), "the budget says nothing");
    assert_eq!(problem("limit", "rate="), "rate: \"\" is not a whole number from 0 on");
    assert_eq!(problem("breaker", "consecutive=5,open_for=30"), "open_for: the duration has no unit");
    assert_eq!(problem("fuse", "x"), "there is no key of an upstream \"fuse\"");
    assert_eq!(set("budget", "none").unwrap().budget, Part::Without);
}

#[test]
fn flags_lie_over_the_file_part_by_part() {
    let file = upstream("budget = 'sre'\nbreaker = 'polly'\nlimit = 'aimd'");
    let mut flags = UpstreamDraft::default();
    flags.set("budget", "ratio=0.1").unwrap();
    flags.set("breaker", "none").unwrap();
    let both = flags.over(file);
    assert_eq!(both.budget, Part::With(Budget::ratio(0.1).settings()));
    assert_eq!((both.breaker, both.breaker.into_option()), (Part::Without, None));
    assert_eq!((both.limit, both.hedge), (file.limit, Part::Unsaid));
}

#[test]
fn written_with_every_key() {
    assert_eq!(
        upstream(
            "budget = { ratio = 0.1 }\nbreaker = { consecutive = 5, open_for = '30s' }\nlimit = { rate = 100 }\n\
                  hedge = { after = '50ms' }"
        )
        .to_string(),
        "budget = { ratio = 0.1, min_per_second = 1, window = \"10s\" }\n\
         breaker = { consecutive = 5, slow_share = 0.5, window = \"10s\", open_for = \"30s\", factor = 1, jitter = 0, \
         probes = 1, close_after = 1, ramp = \"0s\", ramp_from = 0.1 }\n\
         limit = { rate = 100, per = \"1s\", burst = 1 }\n\
         hedge = { after = \"50ms\", at_most = 1, min_samples = 100 }\n"
    );
}

#[track_caller]
fn comes_back(draft: UpstreamDraft) {
    assert_eq!(upstream(&draft.to_string()), draft, "{draft}");
}

#[test]
fn what_is_named_comes_back_as_it_was() {
    for name in Budget::COMPAT {
        comes_back(upstream(&format!("budget = '{name}'")));
    }
    for name in Breaker::COMPAT {
        comes_back(upstream(&format!("breaker = '{name}'")));
    }
    for limit in ["'aws_adaptive'", "'aimd'", "'gradient'"] {
        comes_back(upstream(&format!("limit = {limit}")));
    }
    comes_back(UpstreamDraft { budget: Part::Without, ..UpstreamDraft::default() });
}

fn any_budget() -> impl Strategy<Value = BudgetSettings> {
    let time = (1u64..86_400_000).prop_map(Duration::from_millis);
    prop_oneof![
        (0.0..=1.0, 1u32..1_000_000, time.clone()).prop_map(|(ratio, min_per_second, window)| BudgetSettings::Ratio {
            ratio,
            min_per_second,
            window
        }),
        (1u32.., 1u32.., 1u32.., 1u32..).prop_map(|(capacity, cost, throttling_cost, timeout_cost)| {
            BudgetSettings::AwsQuota(AwsQuota { capacity, cost, throttling_cost, timeout_cost })
        }),
        (1u32..=1000, 0.001..1000.0)
            .prop_map(|(max_tokens, token_ratio)| BudgetSettings::Grpc { max_tokens, token_ratio }),
        (1000u64..60_000, 0u32..1_000_000, 0.0..1000.0).prop_map(|(ttl, min_per_second, ratio)| {
            BudgetSettings::Finagle { ttl: Duration::from_millis(ttl), min_per_second, ratio }
        }),
        (0.0..=1.0, any::<u32>(), any::<bool>(), any::<bool>()).prop_map(|(share, floor, sleeping, inclusive)| {
            BudgetSettings::InFlight { share, floor, sleeping, inclusive }
        }),
        (1.0..1e9, time, 0.0..=1.0).prop_map(|(k, window, at_most)| BudgetSettings::Throttle { k, window, at_most }),
    ]
}

fn any_breaker() -> impl Strategy<Value = BreakerSettings> {
    let time = || (10u64..1 << 60).prop_map(Duration::from_nanos);
    let window = prop_oneof![time().prop_map(BreakerWindow::Time), (1u32..=1024).prop_map(BreakerWindow::Calls)];
    let quirks = prop::sample::select(vec![BreakerQuirks::None, BreakerQuirks::Gobreaker, BreakerQuirks::Cockatiel]);
    let trips = (1u32.., prop::option::of(0.001..=1.0), prop::option::of(time()), 0.001..=1.0, window);
    let open = (time(), 1.0..1e6, any::<bool>(), 0.0..=1.0);
    let half = (1u32..4096, 1u32..4096, prop::option::of(0.001..=1.0), prop::option::of(time()));
    (trips, open, half, time(), 0.0..=1.0, quirks).prop_map(|(trips, open, half, ramp, ramp_from, quirks)| {
        BreakerSettings {
            consecutive: Some(trips.0),
            failures: None,
            share: trips.1,
            slow_after: trips.2,
            slow_share: trips.3,
            window: trips.4,
            min_calls: Some(1),
            open_for: open.0,
            factor: open.1,
            open_at_most: open.2.then_some(Duration::MAX),
            jitter: open.3,
            probes: half.0,
            close_after: half.1,
            reopen_share: half.2,
            probe_again_after: half.3,
            ramp,
            ramp_from,
            quirks,
        }
    })
}

fn any_limit() -> impl Strategy<Value = LimitSettings> {
    let time = || (1u64..86_400_000).prop_map(Duration::from_millis);
    prop_oneof![
        (1u32..=1_000_000, time(), 1u32..).prop_map(|(rate, per, burst)| LimitSettings::Rate { rate, per, burst }),
        (1u32..=1_000_000, any::<u32>(), time()).prop_map(|(limit, queue, longest)| LimitSettings::Concurrency {
            limit,
            queue,
            longest
        }),
        (1u32..100, 100u32..=200, 200u32..=1_000_000, time())
            .prop_map(|(min, start, max, slow_after)| LimitSettings::Aimd { start, min, max, slow_after }),
        (3u32..100, 100u32..=1_000_000).prop_map(|(start, max)| LimitSettings::Gradient { start, max }),
        Just(LimitSettings::AwsAdaptive),
    ]
}

fn any_hedge() -> impl Strategy<Value = HedgeSettings> {
    let after = (1u64..).prop_map(Duration::from_nanos);
    (after, prop::option::of(0.001..0.999), 1u32..=255, 1u32..=2048).prop_map(
        |(after, quantile, at_most, min_samples)| HedgeSettings { after: Some(after), quantile, at_most, min_samples },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_is_written_is_read_the_same(
        budget in any_budget(), breaker in any_breaker(), limit in any_limit(), hedge in any_hedge(),
    ) {
        let with = UpstreamDraft {
            budget: Part::With(budget),
            breaker: Part::With(breaker),
            limit: Part::With(limit),
            hedge: Part::With(hedge),
        };
        comes_back(with);
    }

    #[test]
    fn servers_too(
        capacity in 0.001..1e9, horizon in 1u64.., kept in 0.001..=1.0, flags in any::<(bool, bool)>(),
        service_time in prop::option::of(1u64..), share in 0.001..=1.0, order in 0usize..3, host in any::<bool>(),
    ) {
        let nanos = Duration::from_nanos;
        let draft = ServerDraft {
            pacer: Part::With(PacerSettings {
                capacity, horizon: nanos(horizon), kept, measured: flags.0, learned: flags.1,
            }),
            admission: Part::With(AdmissionSettings {
                service_time: service_time.map(nanos),
                max_retry_share: share,
                pushback: nanos(horizon / 2),
                order: [Order::AsTheyCome, Order::RetriesFirst, Order::FirstAttemptsFirst][order],
                scope: if host { Scope::Host } else { Scope::Service },
            }),
        };
        prop_assert_eq!(server(&draft.to_string()), draft);
    }

    /// Whatever stands there, it is settings or an error with a hint.
    #[test]
    fn no_text_panics(text in "(budget|breaker|limit|hedge)?[a-z_=,{}' .0-9-]{0,40}") {
        for key in UPSTREAM_KEYS {
            let mut draft = UpstreamDraft::default();
            if let Err(bad) = draft.set(key, &text) {
                prop_assert!(!bad.problem.is_empty() && !bad.hint.is_empty());
            }
        }
        if let Err(error) = Config::parse(&format!("[upstream.x]\n{text}\n[server.y]\n{text}")) {
            prop_assert!(!error.hint().is_empty());
        }
    }
}
