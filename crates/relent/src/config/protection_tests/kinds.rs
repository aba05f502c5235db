//! Each kind of part and each key: what is written is what is meant.

use super::*;

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

    refused(
        "[policy.a]\nupstream = 'bang'\n[upstream.bank]\n[upstream.shop]",
        (2, 12),
        "the file has no upstream \"bang\"",
        "did you mean \"bank\"?",
    );
    refused("[policy.a]\nupstream = 'x'", (2, 12), "the file has no upstream \"x\"", "[upstream.x] begins it");
    refused(
        "[policy.a]\nupstream = 'x y'",
        (2, 12),
        "the file has no upstream \"x y\"",
        "[upstream.\"x y\"] begins it",
    );
    refused("[policy.a]\nupstream = 5", (2, 12), "upstream is the name of one", "upstream = \"NAME\"");
    refused("[policy.a]\nupsteam = 'x'", (2, 1), "there is no key \"upsteam\"", "did you mean \"upstream\"?");
    refused(
        "[upstream]\nbudget = 'aws-2.1'",
        (2, 1),
        "\"budget\" stands outside of an upstream",
        "[upstream.NAME] begins one",
    );
    refused("upstream = 3", (1, 12), "upstream is a table", "[upstream.NAME] begins one");
    refused("server = 3", (1, 10), "server is a table", "[server.NAME] begins one");
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
