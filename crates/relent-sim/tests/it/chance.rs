//! Valid scenarios by chance: nothing panics, every call is accounted for, no policy makes more attempts than it may, and the
//! number of threads changes nothing.

use relent::{Breaker, Budget, Jitter, Limit, Pacer, Policy, rng::mix};
use relent_sim::{
    Arrivals, Contender, Control, Figure, Network, Outcome, Protection, Rate, RateLimit, Record, RetryAfter, Scenario,
    Service, Trouble, TroubleKind, World, Writes, simulate_with,
};
use std::{fmt::Debug, time::Duration};

const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const CASES: u64 = 120;

/// Luck of one case.
struct Luck {
    state: u64,
}

impl Luck {
    fn below(&mut self, most: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state) % most
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn share(&mut self) -> f64 {
        self.below(101) as f64 / 100.0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

fn service(luck: &mut Luck) -> Service {
    let clients = 1 + luck.below(600);
    let mut service = Service::herd(clients, 1.0 + (clients / (1 + luck.below(30))) as f64);
    if luck.one_in(2) {
        let until = (5 + luck.below(30) as u32) * SEC;
        let rate = Rate::constant(1.0 + luck.below(80) as f64);
        service.arrivals = Arrivals::Open { rate, poisson: luck.one_in(2), until };
    } else if luck.one_in(3) {
        service.arrivals = Arrivals::Herd { clients, window: luck.below(10) as u32 * SEC };
    }
    service.network = luck.pick(&[
        Network::Constant(Duration::ZERO),
        Network::round_trip(20 * MS),
        Network::Exponential(30 * MS),
        Network::Normal { mean: 5 * MS, sd: 2 * MS },
    ]);
    service.timeout = luck.pick(&[None, Some(300 * MS), Some(2 * SEC)]);
    let server = &mut service.server;
    server.queue = luck.one_in(2).then(|| 1 + luck.below(200));
    server.exponential = luck.one_in(2);
    server.workers = 1 + luck.below(4) as u32;
    (server.lifo, server.drop_expired) = (luck.one_in(4), luck.one_in(4));
    server.failure = if luck.one_in(3) { luck.share() } else { 0.0 };
    server.refuse_for_good = luck.one_in(8);
    server.rate_limit =
        luck.one_in(6).then(|| RateLimit { rate: 5.0 + luck.below(200) as f64, burst: 1 + luck.below(20) });
    server.retry_after =
        luck.pick(&[RetryAfter::Silent, RetryAfter::Fixed(SEC), RetryAfter::Spread, RetryAfter::Exact]);
    if luck.one_in(4) {
        service.writes = Some(Writes { share: luck.share(), retried: luck.one_in(2), cost: 2.0 });
    }
    for _ in 0..luck.below(3) {
        let share = luck.share();
        let kind = luck.pick(&[
            TroubleKind::Stall,
            TroubleKind::Refuse,
            TroubleKind::Slow(share),
            TroubleKind::Failing(share),
            TroubleKind::Losing(share),
        ]);
        let (at, lasts) = (luck.below(10_000) as u32 * MS, (1 + luck.below(5_000)) as u32 * MS);
        service.troubles.push(Trouble::new(at, lasts, kind));
    }
    // Who loses a request and waits for ever waits for ever.
    if service.troubles.iter().any(|trouble| matches!(trouble.kind, TroubleKind::Losing(_))) {
        service.timeout = service.timeout.or(Some(SEC));
    }
    service.leaving = if luck.one_in(6) { luck.share() } else { 0.0 };
    if luck.one_in(5) {
        (service.layers, service.say_overloaded) = (2 + luck.below(2) as u32, luck.one_in(2));
    }
    service
}

fn contender(luck: &mut Luck, name: &str, service: &Service) -> Contender {
    let base = (1 + luck.below(2_000)) as u32 * MS;
    let policy = luck.pick(&[
        Policy::exponential(base),
        Policy::exponential(base).cap(base * 4),
        Policy::constant(base),
        Policy::linear(base),
        Policy::fibonacci(base),
        Policy::slots(MS),
        Policy::immediate(),
        Policy::list_repeating(&[MS, SEC]),
    ]);
    let grows = policy.settings().jitter == Jitter::Full;
    let jitter =
        luck.pick(&[Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Proportional(0.2), Jitter::Decorrelated]);
    let policy = if grows { policy.jitter(jitter) } else { policy };
    let policy = policy.max_attempts(1 + luck.below(6) as u32);
    let policy = if luck.one_in(3) { policy.max_elapsed((1 + luck.below(20) as u32) * SEC) } else { policy };
    let policy = if luck.one_in(4) { policy.attempt_timeout((100 + luck.below(2_000) as u32) * MS) } else { policy };
    let policy = if luck.one_in(5) { policy.spread((1 + luck.below(10) as u32) * SEC) } else { policy };
    let mut protection = Protection::default();
    let is_plain = service.layers == 1 && !service.server.lifo && !service.server.drop_expired;
    if is_plain && luck.one_in(2) {
        protection.budget = luck.one_in(2).then(|| Budget::ratio(0.1).settings());
        protection.breaker = luck.one_in(2).then(|| Breaker::consecutive(5).open_for(2 * SEC).settings());
        protection.limit = luck.one_in(3).then(|| Limit::concurrency(1 + luck.below(50) as u32).settings());
        protection.wait_while_open = protection.breaker.is_some() && luck.one_in(2);
    }
    if luck.one_in(4) {
        protection.pacer = Some(Pacer::capacity(10.0 + luck.below(100) as f64).settings());
    }
    Contender::new(name, policy).protected(protection)
}

fn scenario(case: u64, seed: u64) -> Scenario {
    let mut luck = Luck { state: mix(seed ^ mix(case)) };
    let service = service(&mut luck);
    let mut scenario = Scenario::new(format!("case {case}"), World::Service(service.clone())).seeds(2);
    scenario.first_seed = luck.below(1 << 40);
    scenario.limit = 120 * SEC;
    for name in ["a", "b"] {
        scenario = scenario.contender(contender(&mut luck, name, &service));
    }
    scenario
}

fn share(record: &Record, figure: Figure) -> f64 {
    record.get(figure).unwrap_or(0.0)
}

fn holds(scenario: &Scenario, outcome: &Outcome, what: &dyn Debug) {
    let World::Service(service) = &scenario.world else { unreachable!() };
    for (record, contender) in outcome.records.iter().zip(&scenario.contenders) {
        let fates =
            [Figure::SuccessShare, Figure::GaveUpShare, Figure::StillTrying].map(|figure| share(record, figure));
        let all: f64 = fates.iter().sum();
        assert!(fates.iter().all(|fate| (0.0..=1.0).contains(fate)), "{fates:?} {what:?}");
        assert!(record.clients == 0 || (all - 1.0).abs() < 1e-9, "{all} of the calls: {fates:?} {what:?}");
        let most = contender.policy.settings().max_attempts.unwrap_or(u32::MAX);
        let most = f64::from(most).powi(service.layers as i32);
        assert!(share(record, Figure::AttemptsPerClient) <= most + 1e-9, "more than {most} attempts: {what:?}");
        for figure in Figure::ALL {
            let value = record.get(figure).unwrap_or(0.0);
            assert!(value.is_finite() && value >= 0.0, "{} is {value}: {what:?}", figure.name());
        }
    }
}

#[test]
fn whatever_is_valid_runs_and_adds_up() {
    let seed = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_122);
    println!("RELENT_SEED={seed}");
    let mut refused = Vec::new();
    for case in 0..CASES {
        let scenario = scenario(case, seed);
        let on = |threads: usize| simulate_with(&scenario, threads, &Control::default());
        match on(1) {
            Err(problem) => refused.push(format!("case {case}: {}: {}", problem.key, problem.problem)),
            Ok(outcome) => {
                holds(&scenario, &outcome, &(seed, &scenario));
                assert_eq!(on(3).as_ref(), Ok(&outcome), "on three threads: {scenario:?}");
            }
        }
    }
    assert!(refused.len() as u64 <= CASES / 10, "the generator makes what is refused: {refused:#?}");
}
