//! The ways of the exact engine against each other: whatever is left out or foreseen, the same comes out.

mod alone;
mod hedging;
mod sharing;
mod stopped;

use crate::{
    engine::task::Task,
    world::service::{cast::Cast, dispatch, guarded, guarded::Kept, hedged, own, players, predict, sharers, tripping},
};
use crate::{
    engine::{
        calendar::{Calendar, Heap},
        control::Control,
        draws::{Draws, Stream},
    },
    outcome::run::Run,
    scenario::{
        Arrivals, Contender, Network, Population, Protection, Rate, RateLimit, RetryAfter, Server, Service, Trouble,
        TroubleKind, Writes,
    },
};
use relent::{
    Allowance, BreakerQuirks, BreakerSettings, BreakerWindow, Budget, BudgetSettings, Hedge, Jitter, Limit, Outcome,
    Policy, Timestamp, Withdrawal,
};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);

/// Worlds that together use everything there is.
fn worlds() -> Vec<Service> {
    let herd = Service::herd(3000, 300.0);
    let server = |change: fn(&mut Server)| {
        let mut server = Server { queue: Some(300), ..herd.server.clone() };
        change(&mut server);
        server
    };
    let open = Arrivals::Open { rate: Rate::constant(250.0), poisson: true, until: 40 * SEC };
    let stall = Trouble::new(10 * SEC, 2 * SEC, TroubleKind::Stall);
    vec![
        Service { server: server(|_| ()), ..herd.clone() },
        Service { server: server(|s| s.exponential = true), network: Network::Exponential(20 * MS), ..herd.clone() },
        Service {
            server: server(|s| s.workers = 3),
            arrivals: Arrivals::Herd { clients: 3000, window: 3 * SEC },
            ..herd.clone()
        },
        Service { server: server(|s| s.queue = None), timeout: Some(SEC), ..herd.clone() },
        Service {
            server: server(|s| s.rate_limit = Some(RateLimit { rate: 200.0, burst: 7 })),
            network: Network::Normal { mean: 5 * MS, sd: 2 * MS },
            ..herd.clone()
        },
        Service {
            troubles: vec![
                Trouble::new(Duration::ZERO, SEC, TroubleKind::Refuse),
                Trouble::new(3 * SEC, SEC, TroubleKind::Slow(0.3)),
                Trouble::new(5 * SEC, SEC, TroubleKind::Failing(0.5)),
            ],
            writes: Some(Writes { share: 0.3, retried: false, cost: 2.0 }),
            ..herd.clone()
        },
        Service { arrivals: open.clone(), timeout: Some(SEC), troubles: vec![stall], ..herd.clone() },
        Service {
            arrivals: open,
            server: server(|s| s.exponential = true),
            timeout: Some(SEC),
            troubles: vec![stall],
            layers: 2,
            ..herd
        },
    ]
}

fn policies() -> Vec<Contender> {
    let exponential = Policy::exponential(50 * MS).cap(2 * SEC);
    vec![
        Contender::new("none", exponential.jitter(Jitter::None)),
        Contender::new("full", exponential.max_attempts(20)),
        Contender::new("decorrelated", exponential.jitter(Jitter::Decorrelated).max_elapsed(30 * SEC)),
        Contender::new("spread", Policy::immediate().max_attempts(3).spread(4 * SEC)),
        Contender::new("timeout", Policy::fibonacci(10 * MS).attempt_timeout(700 * MS).max_attempts(12)),
    ]
}

fn everywhere(check: impl Fn(&Task<'_>, &str)) {
    let control = Control::default();
    for (i, service) in worlds().iter().enumerate() {
        for contender in &policies() {
            let task = Task { service, contender, draws: Draws::new(7, None), limit: u64::MAX, control: &control };
            check(&task, &format!("world {i}, {}", contender.name));
        }
    }
}

fn same(a: &Run, b: &Run, what: &str) {
    assert_eq!(a.figures, b.figures, "{what}");
    assert_eq!((&a.plots, &a.gave_up, a.recovered), (&b.plots, &b.gave_up, b.recovered), "{what}");
}

#[test]
fn the_ring_gives_what_a_binary_heap_gives() {
    everywhere(|task, what| {
        same(&predict::run(task, Calendar::new()), &predict::run(task, Heap::default()), what);
    });
}

/// Two ways to the same end: fates foreseen at the arrival, and an event for everything that happens.
#[test]
fn foreseeing_is_the_same_as_waiting() {
    everywhere(|task, what| {
        let (foreseen, waited) = (predict::run(task, Calendar::new()), dispatch::run(task));
        use crate::scenario::Figure::*;
        for figure in [AttemptsPerClient, GaveUp, SuccessShare, DrainS, P50S, P99S, Peak1Ms, Peak1S, GoodputShare] {
            assert_eq!(foreseen.figures.get(figure), waited.figures.get(figure), "{what} {}", figure.name());
        }
    });
}

/// An upstream that refuses nothing changes nothing.
#[test]
fn a_budget_for_everything_is_no_budget() {
    let control = Control::default();
    let budget = BudgetSettings::Ratio { ratio: 1.0, min_per_second: 1_000_000, window: SEC };
    for (i, service) in worlds().iter().enumerate().filter(|(_, service)| service.layers == 1) {
        for contender in policies() {
            let what = format!("world {i}, {}", contender.name);
            let task =
                |contender| Task { service, contender, draws: Draws::new(7, None), limit: u64::MAX, control: &control };
            let alone = predict::run(&task(&contender), Calendar::new());
            let mut guarded = contender.clone();
            guarded.protection.budget = Some(budget);
            let ring = guarded::run(&task(&guarded), Calendar::new());
            same(&ring, &guarded::run(&task(&guarded), Heap::default()), &what);
            use crate::scenario::Figure::*;
            for figure in [AttemptsPerClient, GaveUp, SuccessShare, DrainS, P50S, P99S, Peak1Ms, Peak1S] {
                assert_eq!(alone.figures.get(figure), ring.figures.get(figure), "{what} {}", figure.name());
            }
        }
    }
}

/// Machines that clients have, each for itself.
fn machines() -> Vec<Protection> {
    let none = Protection::default();
    let budget = Some(BudgetSettings::Ratio { ratio: 0.1, min_per_second: 1, window: 10 * SEC });
    let breaker = BreakerSettings {
        consecutive: Some(3),
        open_for: 2 * SEC,
        jitter: 0.5,
        factor: 1.5,
        ..BreakerSettings::default()
    };
    let share = BreakerSettings { share: Some(0.5), min_calls: Some(2), ramp: SEC, ..breaker };
    let calls = BreakerSettings {
        consecutive: None,
        failures: Some(3),
        window: BreakerWindow::Calls(40),
        jitter: 0.0,
        ..breaker
    };
    let slow = BreakerSettings { slow_after: Some(300 * MS), min_calls: Some(1), slow_share: 0.3, ..breaker };
    let window = BreakerWindow::Time(4 * SEC);
    let like_gobreaker = BreakerSettings { quirks: BreakerQuirks::Gobreaker, window, ..breaker };
    let like_cockatiel =
        BreakerSettings { quirks: BreakerQuirks::Cockatiel, share: Some(0.3), consecutive: None, window, ..breaker };
    let rate = Some(Limit::rate(1).burst(2).settings());
    vec![
        Protection { budget, ..none },
        Protection { budget: Some(BudgetSettings::Ratio { ratio: 0.5, min_per_second: 9, window: 10 * SEC }), ..none },
        Protection { budget: Some(Budget::aws_quota_2_1().settings()), ..none },
        Protection { budget: Some(Budget::grpc(10, 0.5).settings()), ..none },
        Protection { budget: Some(Budget::throttle(2.0).settings()), ..none },
        Protection { breaker: Some(breaker), ..none },
        Protection { budget, breaker: Some(breaker), wait_while_open: true, ..none },
        Protection { budget, breaker: Some(share), wait_while_open: true, ..none },
        Protection { limit: rate, ..none },
        Protection { limit: rate, breaker: Some(breaker), wait_while_open: true, ..none },
        Protection { limit: rate, budget, breaker: Some(share), ..none },
        Protection { limit: rate, budget: Some(Budget::throttle(2.0).settings()), ..none },
        Protection { breaker: Some(calls), wait_while_open: true, ..none },
        Protection { breaker: Some(slow), wait_while_open: true, ..none },
        Protection { breaker: Some(like_gobreaker), wait_while_open: true, ..none },
        Protection { breaker: Some(like_cockatiel), budget: Some(Budget::finagle(0.5).settings()), ..none },
    ]
}

#[test]
fn pushbacks_are_obeyed() {
    let control = Control::default();
    let mut service = Service::herd(1000, 100.0);
    service.server.queue = Some(100);
    let attempts = |retry_after| {
        let contender = Contender::new("told", Policy::immediate().unlimited_attempts()).told(retry_after);
        let task = Task {
            service: &service,
            contender: &contender,
            draws: Draws::new(1, None),
            limit: u64::MAX,
            control: &control,
        };
        predict::run(&task, Calendar::new()).figures.get(crate::scenario::Figure::AttemptsPerClient).unwrap()
    };
    assert_eq!(attempts(RetryAfter::Exact), 1.9);
    assert!(attempts(RetryAfter::Spread) < 2.2);
    assert_eq!(attempts(RetryAfter::Fixed(SEC)), 5.5, "ten waves");
}
