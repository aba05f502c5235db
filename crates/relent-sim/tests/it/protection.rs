//! Budgets, breakers, limits, hedges, admission and the pacer in the simulator: what PROTECTION promises, with numbers.

use relent::{
    AdmissionSettings, BreakerSettings, BudgetSettings, HedgeSettings, Jitter, LimitSettings, PacerSettings, Policy,
};
use relent_sim::{
    Arrivals, Contender, Figure, Network, Newcomers, Outcome, Protection, Rate, Record, Scenario, Server, Service,
    Trouble, TroubleKind, World, simulate,
};
use std::time::Duration;

const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// HERD-1, a tenth of the size: the figures do not depend on it.
const CLIENTS: u64 = 10_000;
const CAPACITY: f64 = 500.0;

fn herd() -> Service {
    let mut service = Service::herd(CLIENTS, CAPACITY);
    service.server.queue = Some(CAPACITY as u64);
    service
}

fn told() -> Policy {
    Policy::immediate().unlimited_attempts()
}

fn pacer() -> PacerSettings {
    PacerSettings { capacity: CAPACITY, horizon: 120 * SEC, ..PacerSettings::default() }
}

fn run(service: Service, contenders: impl IntoIterator<Item = Contender>) -> Outcome {
    let scenario = Scenario::new("protection", World::Service(service));
    simulate(&contenders.into_iter().fold(scenario, Scenario::contender)).expect("the scenario is possible")
}

fn one(service: Service, contender: Contender) -> Record {
    run(service, [contender]).records.remove(0)
}

fn get(record: &Record, figure: Figure) -> f64 {
    record.get(figure).unwrap_or_else(|| panic!("{} has no {}", record.policy, figure.name()))
}

#[test]
fn a_paced_herd_is_drained_at_once_with_one_refusal_each() {
    let record = one(herd(), Contender::new("paced", told()).paced(pacer()));
    assert!(get(&record, Figure::DrainOverIdeal) <= 1.01, "{:?}", record.get(Figure::DrainOverIdeal));
    assert!(get(&record, Figure::AttemptsPerClient) <= 1.96);
    assert_eq!(get(&record, Figure::RefusedTurn), get(&record, Figure::AttemptsPerClient) - 1.0);
    assert_eq!(get(&record, Figure::MaxAttempts), 2.0);
    // Whoever has their own backoff keeps it where it is longer than the turn: a few of the first.
    let backoff = Policy::exponential(100 * MS).cap(10 * SEC).unlimited_attempts();
    let record = one(herd(), Contender::new("paced", backoff).paced(pacer()));
    assert!(get(&record, Figure::DrainOverIdeal) <= 1.01 && get(&record, Figure::AttemptsPerClient) <= 1.96);
}

#[test]
fn turns_are_denser_by_the_share_that_is_kept() {
    for leaving in [0.2, 0.5] {
        let service = || Service { leaving, ..herd() };
        let kept = PacerSettings { kept: 1.0 - leaving, ..pacer() };
        let known = one(service(), Contender::new("known", told()).paced(kept));
        assert!(get(&known, Figure::DrainOverIdeal) <= 1.02, "{leaving}: {:?}", known.get(Figure::DrainOverIdeal));
        let unknown = one(service(), Contender::new("unknown", told()).paced(pacer()));
        assert!(get(&unknown, Figure::DrainOverIdeal) > 1.15, "slots that nobody uses are wasted");
        assert_eq!(known.gave_up.keys().copied().collect::<Vec<_>>(), ["cancelled"]);
    }
}

/// Half of each herd leaves, and nobody told the pacer.
#[test]
fn the_third_herd_finds_the_share_learned() {
    let (herd, apart, capacity) = (60_000.0, 60.0, 2000.0);
    let lines = (0..3).flat_map(|nth| {
        let at = f64::from(nth) * apart;
        [(at, herd), (at + 1.0, herd), (at + 1.0, 0.0), (at + apart, 0.0)]
    });
    let mut service = Service::herd(1, capacity);
    service.server.queue = Some(capacity as u64);
    service.arrivals =
        Arrivals::Open { rate: Rate::lines(lines.collect()), poisson: false, until: Duration::from_secs(180) };
    service.leaving = 0.5;
    let learned = PacerSettings { capacity, learned: true, ..pacer() };
    let record = one(service, Contender::new("learned", told()).paced(learned));
    let over = |nth: usize| {
        let bins = &record.plots.load;
        let of = |at: f64| (at / record.plots.bin_s).round() as usize;
        let herd = &bins[of(nth as f64 * apart)..of((nth as f64 + 1.0) * apart - 1.0).min(bins.len())];
        let served: f64 = herd.iter().map(|bin| bin.connected).sum();
        let last = herd.iter().rposition(|bin| bin.connected > 0.0).unwrap() as f64;
        last * record.plots.bin_s / (served / capacity)
    };
    let took = [0, 1, 2].map(over);
    eprintln!("learned: {took:?}, bins of {} s", record.plots.bin_s);
    assert!(took[2] <= 1.05, "{took:?}");
    assert!(took[0] > 1.3, "the first cannot know: {took:?}");
}

#[test]
fn newcomers_wait_their_turn_and_nobody_is_refused_often() {
    let newcomers = Some(Newcomers { rate: CAPACITY / 2.0, until: 60 * SEC });
    let outcome = run(Service { newcomers, ..herd() }, [Contender::new("paced", told()).paced(pacer())]);
    let record = &outcome.records[0];
    let ideal = outcome.ideal.unwrap().figure(Figure::DrainS).unwrap();
    assert!((ideal - 40.0).abs() < 0.1, "N / (C - C / 2) is 40 s, not {ideal}");
    eprintln!("newcomers: {:?} {:?}", record.get(Figure::DrainOverIdeal), record.get(Figure::MaxAttempts));
    assert!(get(record, Figure::DrainOverIdeal) <= 1.02, "{:?}", record.get(Figure::DrainOverIdeal));
    assert!(get(record, Figure::MaxAttempts) <= 3.0, "refused twice at most");
}

/// Over a network that shuffles, the queue has to have room for those who come early.
#[test]
fn room_in_the_queue_smooths_a_network_that_shuffles() {
    let figures = [5, 20, 50, 500].map(|room| {
        let mut service = herd();
        service.server.queue = Some(room);
        service.network = Network::LogNormal { median: 20 * MS, sigma: 0.5 };
        let record = one(service, Contender::new("paced", told()).paced(pacer()));
        (room, get(&record, Figure::AttemptsPerClient), get(&record, Figure::DrainOverIdeal))
    });
    eprintln!("lognormal, by room: {figures:?}");
    assert!(figures.windows(2).all(|pair| pair[1].1 < pair[0].1), "more room, fewer refusals: {figures:?}");
    assert!(figures[3].1 <= 1.96 && figures[3].2 <= 1.02, "{figures:?}");
}

#[test]
fn whole_seconds_come_in_lumps_that_a_second_of_room_takes() {
    let seconds = Protection { pacer: Some(pacer()), whole_seconds: true, ..Protection::default() };
    let figures = [50, 500, 1000].map(|room| {
        let mut service = herd();
        service.server.queue = Some(room);
        let record = one(service, Contender::new("seconds", told()).protected(seconds));
        let peak = get(&record, Figure::Peak1Ms);
        (room, get(&record, Figure::AttemptsPerClient), get(&record, Figure::DrainOverIdeal), peak)
    });
    eprintln!("whole seconds, by room: {figures:?}");
    assert!(figures[2].1 < 2.1 && figures[2].2 < 1.05, "{figures:?}");
}

fn stream(rate: f64, seconds: u64) -> Service {
    let mut service = Service::herd(1, CAPACITY);
    service.arrivals =
        Arrivals::Open { rate: Rate::constant(rate), poisson: true, until: Duration::from_secs(seconds) };
    service.timeout = Some(SEC);
    service
}

#[test]
fn at_ten_times_its_capacity_a_server_keeps_its_goodput() {
    let mut service = stream(10.0 * CAPACITY, 40);
    service.server.queue = Some(CAPACITY as u64 / 2);
    let protection = Protection {
        pacer: Some(PacerSettings { horizon: 10 * SEC, ..pacer() }),
        admission: Some(AdmissionSettings::default()),
        ..Protection::default()
    };
    let policy = Policy::exponential(100 * MS).max_attempts(4);
    let record = one(service, Contender::new("protected", policy).protected(protection));
    assert!(get(&record, Figure::Goodput) >= 0.95 * CAPACITY, "{:?}", record.get(Figure::Goodput));
    assert!(get(&record, Figure::RefusedOverloaded) > 0.5, "there is no turn for most");
    eprintln!("ten times: {:?}", record.get(Figure::Goodput));
}

#[test]
fn a_measured_capacity_is_found() {
    let measured = PacerSettings { capacity: CAPACITY / 4.0, measured: true, ..pacer() };
    // A herd that comes in one instant has its turns before anything can be measured.
    let service = || {
        let arrivals = Arrivals::Herd { clients: CLIENTS, window: 10 * SEC };
        Service { arrivals, ..herd() }
    };
    let record = one(service(), Contender::new("measured", told()).paced(measured));
    eprintln!("measured: {:?} {:?}", record.get(Figure::DrainOverIdeal), record.get(Figure::AttemptsPerClient));
    let by_hand = PacerSettings { measured: false, ..measured };
    let by_hand = one(service(), Contender::new("by hand", told()).paced(by_hand));
    let (found, by_hand) = (get(&record, Figure::DrainOverIdeal), get(&by_hand, Figure::DrainOverIdeal));
    assert!(found < 0.6 * by_hand, "{found} {by_hand}");
}

const TENTH: BudgetSettings = BudgetSettings::Ratio { ratio: 0.1, min_per_second: 1, window: Duration::from_secs(10) };

fn budget() -> Protection {
    Protection { budget: Some(TENTH), ..Protection::default() }
}

#[test]
fn a_tenth_is_a_tenth_when_everything_fails() {
    let mut service = stream(1000.0, 40);
    service.server = Server { failure: 1.0, latency: 10 * MS, ..Server::default() };
    let policy = Policy::immediate().max_attempts(4);
    let outcome = run(service, [Contender::new("alone", policy), Contender::new("budget", policy).protected(budget())]);
    let [alone, budget] = [0, 1].map(|i| get(&outcome.records[i], Figure::Amplification));
    assert!(alone > 3.9, "{alone}");
    let floor = 1.0 / 1000.0;
    assert!((1.08..=1.1 + floor).contains(&budget), "{budget}");
    let record = &outcome.records[1];
    assert!(get(record, Figure::RefusedBudget) > 0.85, "most calls end there");
    assert_eq!(record.gave_up.keys().copied().collect::<Vec<_>>(), ["attempts", "budget"]);
}

#[test]
fn a_storm_that_stays_heals_with_a_budget() {
    let mut service = stream(0.6 * CAPACITY, 150);
    service.server.exponential = true;
    service.troubles = vec![Trouble::new(20 * SEC, 10 * SEC, TroubleKind::Stall)];
    let policy = Policy::immediate().max_attempts(4);
    let outcome = run(service, [Contender::new("alone", policy), Contender::new("budget", policy).protected(budget())]);
    let recovered = [0, 1].map(|i| outcome.records[i].recovered.unwrap().yes);
    assert_eq!(recovered, [0, 1]);
    assert!(get(&outcome.records[0], Figure::WastedWork) > 0.5);
    eprintln!("heals after {:?} s", outcome.records[1].get(Figure::RecoveryS));
}

#[test]
fn breakers_that_open_together_probe_apart() {
    let mut service = Service::herd(10_000, 2000.0);
    service.server.queue = Some(2000);
    service.troubles = vec![Trouble::new(Duration::ZERO, 20 * SEC, TroubleKind::Refuse)];
    let policy = Policy::constant(SEC).jitter(Jitter::None).unlimited_attempts();
    let with = |jitter: f64| Protection {
        breaker: Some(BreakerSettings {
            consecutive: Some(5),
            open_for: 30 * SEC,
            open_at_most: Some(60 * SEC),
            jitter,
            ..BreakerSettings::default()
        }),
        wait_while_open: true,
        ..Protection::default()
    };
    let outcome = run(
        service,
        [
            Contender::new("alone", policy),
            Contender::new("in step", policy).protected(with(0.0)),
            Contender::new("jitter", policy).protected(with(1.0)),
        ],
    );
    let attempts = [0, 1, 2].map(|i| get(&outcome.records[i], Figure::AttemptsPerClient));
    let after = |i: usize| {
        let plots = &outcome.records[i].plots;
        let from = (10.0 / plots.bin_s) as usize;
        plots.load[from..].iter().map(|bin| bin.first + bin.retries).fold(0.0, f64::max) / plots.bin_s
    };
    eprintln!("breakers: attempts {attempts:?}, then at most a second {:?}", [0, 1, 2].map(after));
    assert!(attempts[1] < attempts[0] / 2.0 && attempts[2] < attempts[0] / 2.0, "{attempts:?}");
    assert!(after(2) < after(1) / 2.0, "{:?}", [1, 2].map(after));
    assert!(outcome.records.iter().all(|record| get(record, Figure::SuccessShare) == 1.0));
}

#[test]
fn hedges_cut_the_tail_of_a_network_and_cost_what_the_budget_allows() {
    let mut service = stream(100.0, 100);
    service.network = Network::LogNormal { median: 10 * MS, sigma: 1.2 };
    let policy = Policy::immediate().max_attempts(2);
    let hedge = |budget| Protection {
        hedge: Some(HedgeSettings { after: Some(80 * MS), ..HedgeSettings::default() }),
        budget,
        ..Protection::default()
    };
    let outcome = run(
        service,
        [
            Contender::new("alone", policy),
            Contender::new("hedged", policy).protected(hedge(None)),
            Contender::new("within a budget", policy).protected(hedge(Some(TENTH))),
        ],
    );
    let p99 = [0, 1, 2].map(|i| get(&outcome.records[i], Figure::P99S));
    let load = [0, 1, 2].map(|i| get(&outcome.records[i], Figure::AttemptsPerClient));
    eprintln!("hedges: p99 {p99:?}, attempts {load:?}");
    assert!(p99[1] < 0.7 * p99[0], "{p99:?}");
    assert!(load[2] <= 1.0 + 0.1 + 0.01 + 0.001, "{load:?}");
    assert!(load[1] < 1.2);
}

#[test]
fn a_limit_at_the_client_paces_its_attempts() {
    let mut service = stream(200.0, 20);
    service.timeout = None;
    let policy = Policy::immediate().max_attempts(4);
    let rate = LimitSettings::Rate { rate: 100, per: SEC, burst: 10 };
    let limit = Protection { limit: Some(rate), ..Protection::default() };
    let record = one(service.clone(), Contender::new("limit", policy.max_pushback(SEC)).protected(limit));
    assert!(get(&record, Figure::Peak1S) <= 111.0, "{:?}", record.get(Figure::Peak1S));
    assert!(get(&record, Figure::RefusedShed) > 0.3, "{:?}", record.get(Figure::RefusedShed));
    let bulkhead = LimitSettings::Concurrency { limit: 1, queue: 5, longest: SEC };
    let limit = Protection { limit: Some(bulkhead), ..Protection::default() };
    let record = one(service, Contender::new("bulkhead", policy).protected(limit));
    assert!(get(&record, Figure::SuccessShare) < 0.9 && get(&record, Figure::SuccessShare) > 0.2);
    assert_eq!(record.gave_up.keys().copied().collect::<Vec<_>>(), ["shed"]);
}

#[test]
fn the_longest_wait_stands_beside_the_median() {
    let fairness = |contender: Contender| get(&one(herd(), contender), Figure::Fairness);
    let paced = fairness(Contender::new("paced", told()).paced(pacer()));
    let full = fairness(Contender::new("full", Policy::exponential(100 * MS).cap(10 * SEC).unlimited_attempts()));
    assert!((1.9..2.1).contains(&paced) && full > paced, "{paced} {full}");
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let problem = |service: Service, protection: Protection| {
        let contender = Contender::new("x", told()).protected(protection);
        simulate(&Scenario::new("bad", World::Service(service)).contender(contender)).unwrap_err()
    };
    let pacer = Protection { pacer: Some(PacerSettings { capacity: f64::NAN, ..pacer() }), ..Protection::default() };
    assert_eq!(problem(herd(), pacer).key, "server.pacer");
    assert_eq!(problem(Service { layers: 3, ..herd() }, budget()).key, "layers.depth");
    let mut lifo = herd();
    lifo.server.lifo = true;
    assert_eq!(problem(lifo, budget()).key, "server.order");
    assert_eq!(problem(Service { leaving: 1.5, ..herd() }, Protection::default()).key, "clients.leaving");
    let newcomers = Some(Newcomers { rate: 0.0, until: SEC });
    assert_eq!(problem(Service { newcomers, ..herd() }, Protection::default()).key, "clients.newcomers");
}

#[test]
fn files_say_it_in_the_words_of_policy_files() {
    let text = r#"
        [clients]
        count = 1000
        clients_per_process = 10
        leaving = 0.2
        newcomers = { rate = 20, for = "30s" }
        [server]
        capacity = 50
        queue = 50
        pacer = { capacity = 50, horizon = "60s", kept = 0.8 }
        admission = { max_retry_share = 0.9 }
        [upstream.bank]
        budget = { ratio = 0.1 }
        breaker = { consecutive = 5, open_for = "30s" }
        [policy.full]
        base = "100ms"
        upstream = "bank"
        [[run]]
        policy = "full"
        [[run]]
        policy = "full"
        name = "alone"
        pacer = false
        admission = false
        upstream = false
    "#;
    let scenario = Scenario::parse(text).expect("the scenario is sound");
    let World::Service(service) = &scenario.world else { panic!("it is a service") };
    assert_eq!((service.processes(), service.leaving), (100, 0.2));
    assert_eq!(service.newcomers, Some(Newcomers { rate: 20.0, until: 30 * SEC }));
    let [full, alone] = [0, 1].map(|i| scenario.contenders[i].protection);
    assert_eq!(full.pacer.map(|pacer| (pacer.capacity, pacer.kept)), Some((50.0, 0.8)));
    assert!(full.admission.is_some() && full.budget.is_some() && full.breaker.is_some() && full.limit.is_none());
    assert!(!alone.is_any());
    let wrong = |from: &str, to: &str| {
        let error = Scenario::parse(&text.replace(from, to)).unwrap_err();
        (error.line(), error.hint().to_owned())
    };
    assert_eq!(wrong("leaving = 0.2", "leaving = 2").0, Some(5));
    assert_eq!(wrong("kept = 0.8", "kept = 8").0, Some(10));
    assert_eq!(wrong("upstream = \"bank\"", "upstream = \"bang\""), (Some(17), "did you mean \"bank\"?".to_owned()));
    assert_eq!(wrong("upstream = false", "upstream = \"bang\"").0, Some(25));
    assert_eq!(wrong("clients_per_process = 10", "clients_per_process = 0").0, Some(4));
}
