//! Settings as text, and back.

use super::*;
use proptest::prelude::*;

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
        (1u32..=1_000_000, time(), 1u32..).prop_map(|(rate, per, burst)| {
            // No more than come due in a century.
            let most = 3_155_760_000.0 * f64::from(rate) / per.as_secs_f64().max(1e-9);
            LimitSettings::Rate { rate, per, burst: burst.min((most * 0.99) as u32).max(1) }
        }),
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
