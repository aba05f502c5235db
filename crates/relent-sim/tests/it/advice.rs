//! What is advised: the safe load, the smallest fatal outage, and a policy for a herd, against theory and by trying.

use relent::{Jitter, Policy, rng::mix};
use relent_sim::{
    Advice, Arrivals, Contender, Control, Cure, Effort, Engine, FatalOutage, Figure, Network, Outcome, Rate, Record,
    Remedy, RetryAfter, Safety, Scenario, Server, Service, Shape, Storm, Trouble, TroubleKind, World, advise, simulate,
};
use std::time::Duration;

const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn advised(scenario: &Scenario) -> (Outcome, Advice) {
    let mut outcome = simulate(scenario).expect("the scenario is sound");
    advise(scenario, &mut outcome, 2, Effort::Short, &Control::default());
    let advice = outcome.advice.clone().expect("it was asked for");
    (outcome, advice)
}

/// M/M/1 of 1000 a second, clients that wait a second, and an outage at 20 s.
fn storm(rho: f64, outage: Duration) -> Service {
    let lasts = 90 * SEC + 2 * outage;
    Service {
        arrivals: Arrivals::Open { rate: Rate::constant(1000.0 * rho), poisson: true, until: lasts },
        network: Network::Constant(Duration::ZERO),
        timeout: Some(SEC),
        server: Server { capacity: Some(1000.0), exponential: true, ..Server::default() },
        troubles: vec![Trouble::new(20 * SEC, outage, TroubleKind::Stall)],
        ..Service::herd(1, 1.0)
    }
}

fn at_once(retries: u32) -> Policy {
    Policy::immediate().max_attempts(retries + 1)
}

fn safety(service: Service, policy: Policy) -> (Record, Safety) {
    let scenario = Scenario::new("storm", World::Service(service)).policy("p", policy);
    let (mut outcome, mut advice) = advised(&scenario);
    (outcome.records.remove(0), advice.policies.remove(0))
}

fn outage(service: Service, policy: Policy) -> FatalOutage {
    safety(service, policy).1.fatal_outage.expect("one outage can be varied")
}

fn safe_share(safety: &Safety) -> f64 {
    match safety.storm {
        Some(Storm::Above(safe)) => safe.share,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_smallest_fatal_outage_is_between_what_heals_and_what_stays() {
    let found = outage(storm(0.6, 10 * SEC), at_once(3));
    let (survived, fatal) = (found.survived.unwrap(), found.fatal.unwrap());
    assert!(SEC <= survived && survived < fatal && fatal <= 1500 * MS, "{found:?}");
    assert!(fatal - survived <= fatal / 20 + MS, "{found:?}");
    assert_eq!(found.theory.map(|theory| theory.as_millis()), Some(1333));
    assert!(!found.too_dear);
}

/// The other way round: a short outage is survived; how long could it be?
#[test]
fn it_is_found_from_below_too() {
    let found = outage(storm(0.6, SEC), at_once(3));
    assert!(found.survived.unwrap() >= SEC, "{found:?}");
    assert!((1200 * MS..1500 * MS).contains(&found.fatal.unwrap()), "{found:?}");
}

#[test]
fn theory_and_trial_agree() {
    for (retries, rho) in [(1, 0.6), (1, 0.8), (2, 0.5), (2, 0.7), (3, 0.4), (3, 0.5)] {
        let found = outage(storm(rho, 8 * SEC), at_once(retries));
        let (fatal, theory) = (found.fatal.unwrap().as_secs_f64(), found.theory.unwrap().as_secs_f64());
        assert!((fatal / theory - 1.0).abs() < 0.15, "{retries} {rho}: {fatal} is not {theory}");
    }
}

#[test]
fn vulnerable_is_who_is_above_one_over_the_attempts() {
    for retries in 1..4 {
        let share = 1.0 / f64::from(retries + 1);
        let (record, below) = safety(storm(share * 0.8, 4 * SEC), at_once(retries));
        assert!((safe_share(&below) - share).abs() < 1e-12);
        assert_eq!(record.recovered.unwrap().share(), 1.0, "{retries}");
        let found = below.fatal_outage.unwrap();
        assert_eq!((found.survived, found.fatal), (Some(4 * SEC), None), "{retries}");

        let (record, above) = safety(storm(share * 1.25, 8 * SEC), at_once(retries));
        assert_eq!(record.recovered.unwrap().share(), 0.0, "{retries}");
        assert!(above.fatal_outage.unwrap().fatal.is_some(), "{retries}");
    }
    let (_, none) = safety(storm(0.9, 4 * SEC), at_once(0));
    assert_eq!((safe_share(&none), none.fatal_outage.unwrap().fatal), (1.0, None), "without retries it always heals");
}

/// What theory promises for loads between is kept by the world within 15 %.
#[test]
fn recovery_takes_as_long_as_theory_says() {
    let backoff = |retries: u32| Policy::exponential(SEC).max_attempts(retries + 1);
    for (rho, policy) in
        [(0.4, at_once(1)), (0.27, at_once(2)), (0.2, at_once(3)), (0.38, backoff(1)), (0.2, backoff(3))]
    {
        let (record, safety) = safety(storm(rho, 10 * SEC), policy);
        let (took, theory) = (record.get(Figure::RecoveryS).unwrap(), safety.recovery_by_theory_s.unwrap());
        assert!((took / theory - 1.0).abs() < 0.15, "{rho} {policy:?}: {took} is not {theory}");
    }
    let (_, slow) = safety(storm(0.2, 10 * SEC), Policy::exponential(10 * SEC).max_attempts(4));
    assert_eq!(slow.recovery_by_theory_s, None, "retries come when the outage is long over");
}

#[test]
fn what_cures_storms_is_named_and_does() {
    let with = |change: fn(&mut Server)| {
        let mut service = storm(0.9, 5 * SEC);
        change(&mut service.server);
        safety(service, at_once(3))
    };
    for (change, cure) in [
        ((|server| server.queue = Some(500)) as fn(&mut Server), Cure::ShortQueue),
        (|server| server.lifo = true, Cure::NewestFirst),
    ] {
        let (record, safety) = with(change);
        assert_eq!(safety.storm, Some(Storm::Never(cure)));
        assert_eq!(record.recovered.unwrap().share(), 1.0, "{cure:?}");
        assert_eq!(safety.fatal_outage.unwrap().fatal, None);
    }
    let (record, safety) = with(|server| server.queue = Some(2000));
    assert!(matches!(safety.storm, Some(Storm::Above(_))), "a queue longer than the patience is no cure");
    assert_eq!(record.recovered.unwrap().share(), 0.0);
    assert!(safety.fatal_outage.unwrap().fatal.is_some());
}

#[test]
fn a_world_that_theory_does_not_know_is_tried_all_the_same() {
    let mut dropping = storm(0.9, 5 * SEC);
    dropping.server.drop_expired = true;
    let (_, dropping) = safety(dropping, at_once(3));
    assert_eq!(dropping.storm, None);
    assert!(dropping.fatal_outage.unwrap().fatal.is_some());
    let mut slow = storm(0.6, 20 * SEC);
    slow.troubles[0].kind = TroubleKind::Slow(0.4);
    let slow = outage(slow, at_once(3));
    // The queue grows by 0.2 s a second, so it takes about five to reach the clients' patience.
    assert!((3 * SEC..7 * SEC).contains(&slow.fatal.unwrap()), "{slow:?}");
    assert_eq!(slow.theory, None);
}

#[test]
fn more_than_can_be_done_is_nobodys_outage() {
    let (record, safety) = safety(storm(1.2, SEC), at_once(1));
    assert_eq!((record.recovered.unwrap().yes, safety.load, safety.fatal_outage), (0, Some(1.2), None));
    let (_, endless) = self::safety(storm(0.5, SEC), Policy::exponential(SEC).unlimited_attempts());
    assert_eq!(safe_share(&endless), 0.0, "no load is safe where attempts are not limited");
}

#[test]
fn advice_depends_neither_on_threads_nor_on_when_it_is_asked() {
    let scenario = Scenario::new("storm", World::Service(storm(0.6, 5 * SEC)))
        .policy("three", at_once(2))
        .policy("four", at_once(3))
        .policy("backoff", Policy::exponential(SEC).max_attempts(4));
    let outcome = simulate(&scenario).unwrap();
    let on = |threads: usize| {
        let mut outcome = outcome.clone();
        advise(&scenario, &mut outcome, threads, Effort::Short, &Control::default());
        outcome
    };
    let one = on(1);
    assert_eq!(one, on(3));
    assert_eq!(one.records, outcome.records, "advice changes no figure");
}

#[test]
fn whoever_interrupts_gets_what_is_known() {
    let scenario = Scenario::new("storm", World::Service(storm(0.6, 5 * SEC))).policy("p", at_once(3));
    let mut outcome = simulate(&scenario).unwrap();
    let control = Control::default();
    control.stop();
    advise(&scenario, &mut outcome, 2, Effort::Any, &control);
    assert!(outcome.interrupted);
    let safety = &outcome.advice.unwrap().policies[0];
    assert_eq!((safe_share(safety), safety.fatal_outage), (0.25, None));
}

/// 20 s of work for the server, which has room for one.
fn herd(clients: u64) -> Service {
    let mut service = Service::herd(clients, clients as f64 / 20.0);
    service.server.queue = Some(clients / 20);
    service
}

fn usual() -> Vec<Contender> {
    let exponential = Policy::exponential(100 * MS).cap(10 * SEC).unlimited_attempts();
    vec![
        Contender::new("none", exponential.jitter(Jitter::None)),
        Contender::new("full", exponential.jitter(Jitter::Full)),
        Contender::new("constant", Policy::constant(SEC).jitter(Jitter::None).unlimited_attempts()),
    ]
}

fn reconnect(service: Service) -> Scenario {
    let mut scenario = Scenario::new("herd", World::Service(service)).seeds(2);
    scenario.contenders = usual();
    scenario
}

fn get(record: &Record, figure: Figure) -> f64 {
    record.get(figure).unwrap_or_else(|| panic!("{}", figure.name()))
}

#[test]
fn a_herd_drains_as_fast_as_it_can_with_one_attempt_each() {
    for clients in [2000, 20_000, 100_000] {
        let (_, advice) = advised(&reconnect(herd(clients)));
        let recommended = advice.recommended.expect("all that matters is known");
        let record = &recommended.record;
        assert!(get(record, Figure::AttemptsPerClient) <= 1.01, "{clients}");
        assert!(get(record, Figure::DrainOverIdeal) <= 1.06, "{clients}: {}", get(record, Figure::DrainOverIdeal));
        assert!(get(record, Figure::PeakOverCapacity) < 3.0, "{clients}");
        assert_eq!((recommended.shape, recommended.margin, &recommended.as_good), (Shape::Steady, 0.05, &None));
        assert_eq!(recommended.queue_room, (2.0 * (clients as f64).sqrt()).ceil() as u64);
        assert_eq!(record.engine, Engine::Exact);
    }
    let mut counted = reconnect(herd(100_000));
    counted.engine = Some(Engine::Count);
    let (_, advice) = advised(&counted);
    let record = advice.recommended.unwrap().record;
    assert_eq!(record.engine, Engine::Count, "by the engine of the others");
    assert!(get(&record, Figure::AttemptsPerClient) <= 1.01 && get(&record, Figure::DrainOverIdeal) <= 1.06);
}

#[test]
fn after_an_outage_of_any_length_they_come_back_no_faster_than_they_can_be_taken() {
    for outage in [SEC, 7 * SEC, 30 * SEC, 100 * SEC] {
        for kind in [TroubleKind::Refuse, TroubleKind::Stall] {
            let mut service = herd(20_000);
            service.troubles.push(Trouble::new(Duration::ZERO, outage, kind));
            let (_, advice) = advised(&reconnect(service));
            let recommended = advice.recommended.unwrap();
            let (record, period) = (&recommended.record, recommended.policy.settings().spread.as_secs_f64());
            let waited = outage.as_secs_f64();
            let (attempts, drain) = (get(record, Figure::AttemptsPerClient), get(record, Figure::DrainS));
            if recommended.shape == Shape::Growing {
                // A short outage may be cheaper to ride out; then neither more nor later than this.
                assert!(outage == SEC && attempts < 1.2 && drain < 23.0, "{outage:?} {kind:?}: {attempts} {drain}");
                continue;
            }
            assert!(attempts <= 1.01 + waited / period, "{outage:?} {kind:?}: {attempts}");
            // The jitter of 2 % adds up from period to period.
            assert!(drain <= waited + 1.06 * period, "{outage:?} {kind:?}: {drain}");
        }
    }
}

#[test]
fn a_short_queue_wants_a_longer_time() {
    let margin = |queue: u64| {
        let mut service = herd(100_000);
        service.server.queue = Some(queue);
        let mut scenario = reconnect(service);
        scenario.contenders = vec![usual().remove(1)];
        let recommended = advised(&scenario).1.recommended.unwrap();
        let attempts = get(&recommended.record, Figure::AttemptsPerClient);
        assert!(attempts < if queue > 10 { 1.01 } else { 1.5 }, "{queue}: {attempts}");
        (recommended.margin, recommended.queue_too_short)
    };
    assert_eq!([5000, 200, 100].map(margin), [(0.05, false), (0.05, false), (0.1, false)]);
    assert!(margin(3).1);
}

#[test]
fn clients_that_come_slowly_need_no_spread() {
    let mut service = herd(2000);
    service.arrivals = Arrivals::Herd { clients: 2000, window: 30 * SEC };
    let recommended = advised(&reconnect(service)).1.recommended.unwrap();
    assert_eq!(recommended.policy.settings().spread, Duration::ZERO);
    assert_eq!(recommended.as_good.as_deref(), Some("none"), "whatever they do is as good");
}

#[test]
fn nothing_is_recommended_where_the_server_is_unknown() {
    let mut service = Service::herd(1000, 1.0);
    service.server.capacity = None;
    let (outcome, advice) = advised(&reconnect(service));
    assert_eq!(advice.recommended, None);
    assert!(outcome.to_json().contains("\"recommended\": null"));
    let slow = Service::herd(1_000_000, 0.2);
    let mut scenario = Scenario::new("slow", World::Service(slow)).policy("once", Policy::default().max_attempts(1));
    scenario.limit = 10 * SEC;
    assert_eq!(advised(&scenario).1.recommended, None, "two months are no advice");
}

/// Whatever the herd, what is recommended takes no more attempts and no more time than any policy of the scenario, or it
/// says which policy is as good. (It is up to 5 % slower than what uses the capacity to the last percent.)
#[test]
fn no_policy_does_better() {
    let seed = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_121);
    println!("RELENT_SEED={seed}");
    let mut as_good = 0;
    for case in 0..24u64 {
        let draw = |what: u64, most: u64| mix(seed ^ mix(case << 8 | what)) % most;
        let clients = 500 + draw(0, 1500);
        let capacity = clients as f64 / (2 + draw(1, 30)) as f64;
        let mut service = Service::herd(clients, capacity);
        service.server.queue = (draw(2, 4) > 0).then(|| 1 + draw(3, clients / 4));
        service.server.exponential = draw(4, 2) == 0;
        service.server.workers = 1 + draw(5, 3) as u32;
        service.timeout = (draw(6, 3) == 0).then(|| Duration::from_millis(500 + draw(7, 5000)));
        if draw(8, 2) == 0 {
            let kind = if draw(9, 2) == 0 { TroubleKind::Refuse } else { TroubleKind::Stall };
            let lasts = Duration::from_millis(draw(10, 20_000));
            service.troubles.push(Trouble::new(Duration::ZERO, lasts, kind));
        }
        let mut scenario = reconnect(service.clone());
        scenario.seeds = 1;
        scenario.limit = 900 * SEC;
        scenario.contenders.push(Contender::new("decorrelated", {
            Policy::exponential(100 * MS).cap(10 * SEC).jitter(Jitter::Decorrelated).unlimited_attempts()
        }));
        scenario.contenders.push(Contender::new("told", usual()[1].policy).told(RetryAfter::Exact));
        let (outcome, advice) = advised(&scenario);
        let recommended = advice.recommended.unwrap_or_else(|| panic!("case {case}: {service:?}"));
        let sum = |record: &Record| get(record, Figure::AttemptsPerClient) + get(record, Figure::DrainOverIdeal);
        let ours = sum(&recommended.record);
        as_good += u32::from(recommended.as_good.is_some());
        for record in outcome.records.iter().filter(|record| record.recovered.unwrap().yes == 1) {
            let theirs = sum(record);
            assert!(
                ours <= theirs + 0.12 || recommended.as_good.is_some(),
                "case {case}: {} has {theirs}, recommended {ours}\n{service:?}\n{}",
                record.policy,
                recommended.flags()
            );
        }
    }
    assert!(as_good < 6, "{as_good} of 24 herds could not be improved");
}

/// What is printed can be pasted: it is the policy that was simulated.
#[test]
fn what_is_recommended_can_be_pasted() {
    for clients in [2000, 20] {
        let recommended = advised(&reconnect(herd(clients))).1.recommended.unwrap();
        let text = format!(
            "seeds = 2\n[clients]\ncount = {clients}\n[server]\ncapacity = {}\nqueue = {}\n[network]\nrtt = \"10ms\"\n{}",
            clients / 20,
            clients / 20,
            recommended.toml()
        );
        let scenario = Scenario::parse(&text).expect("the text is a policy");
        assert_eq!(scenario.contenders[0].policy, recommended.policy);
        let record = simulate(&scenario).unwrap().records.remove(0);
        assert_eq!((record.mean, record.sd), (recommended.record.mean, recommended.record.sd));
    }
}

/// What a pacer at the server buys is what its own simulation gives: hardly two attempts, and no time that is not needed.
#[test]
fn a_pacer_is_tried_with_the_clients_as_they_are() {
    let (outcome, advice) = advised(&reconnect(herd(20_000)));
    let paced = advice.paced.expect("nobody has one");
    // Who does best alone: constant delays waste attempts, and no jitter wastes time.
    assert_eq!((paced.policy.as_str(), paced.record.policy.as_str()), ("full", "full + pacer"));
    assert_eq!((paced.pacer.capacity, paced.pacer.horizon, paced.max_pushback), (1000.0, 60 * SEC, None));
    assert!(get(&paced.record, Figure::AttemptsPerClient) < 2.0, "{:?}", paced.record.mean);
    assert!(get(&paced.record, Figure::DrainOverIdeal) < 1.01, "{:?}", paced.record.mean);

    // The same by hand, and as it is pasted: the same figures.
    let mut scenario = reconnect(herd(20_000));
    scenario.contenders = vec![usual().remove(1).told_turns(paced.pacer)];
    let (by_hand, none) = advised(&scenario);
    assert_eq!((by_hand.records[0].mean, none.paced), (paced.record.mean, None), "who has one is told of no other");
    let text = format!(
        "seeds = 2\n[clients]\ncount = 20_000\n[network]\nrtt = \"10ms\"\n{}\ncapacity = 1000\nqueue = 1000\n\
         [policy.full]\nbase = \"100ms\"\ncap = \"10s\"\nmax_attempts = \"unlimited\"\n",
        paced.toml()
    );
    let pasted = simulate(&Scenario::parse(&text).expect("the text is a pacer")).unwrap();
    assert_eq!(pasted.records[0].mean, paced.record.mean);
    let json = outcome.to_json();
    assert!(json.contains("\"paced\": {\"toml\": \"[server]\\npacer = { capacity = 1000,"), "{json}");
}

#[test]
fn a_pacer_is_not_told_of_where_it_says_nothing_to_anybody() {
    let paced = |change: &dyn Fn(&mut Scenario, &mut Service)| {
        let mut scenario = reconnect(herd(2000));
        let World::Service(mut service) = scenario.world.clone() else { panic!("it is a service") };
        change(&mut scenario, &mut service);
        scenario.world = World::Service(service);
        advised(&scenario).1.paced
    };
    assert!(paced(&|_, _| ()).is_some());
    assert_eq!(paced(&|_, service| service.server.queue = None), None, "nobody is refused");
    assert_eq!(paced(&|_, service| service.server.capacity = None), None, "nobody knows how fast");
    assert_eq!(paced(&|_, service| service.server.retry_after = RetryAfter::Exact), None, "they are told already");
    assert_eq!(paced(&|scenario, _| scenario.engine = Some(Engine::Fluid)), None, "no counting knows whose turn it is");
    let spread = |scenario: &mut Scenario, _: &mut Service| {
        let spread = usual().remove(1).policy.spread(25 * SEC);
        scenario.contenders = vec![Contender::new("spread", spread)];
    };
    assert_eq!(paced(&spread), None, "who is hardly refused gains nothing");

    // Most give up after eight attempts; with turns none does. Some must wait for longer than they would.
    let limited = |scenario: &mut Scenario, service: &mut Service| {
        *service = Service { arrivals: Arrivals::Herd { clients: 20_000, window: Duration::ZERO }, ..service.clone() };
        scenario.contenders = vec![Contender::new("usual", Policy::default())];
    };
    let found = paced(&limited).expect("it helps");
    assert_eq!((get(&found.record, Figure::GaveUp), found.max_pushback), (0.0, Some(400 * SEC)));
}

/// A budget, a breaker and a pacer are tried like any other change: what they buy is what their own simulation gives.
#[test]
fn machines_are_among_what_is_tried() {
    let success = |record: &Record| get(record, Figure::SuccessShare);
    let scenario = Scenario::new("storm", World::Service(storm(0.6, 5 * SEC))).policy("p", at_once(3));
    let (outcome, advice) = advised(&scenario);
    let before = success(&outcome.records[0]);
    assert!(before < 0.5, "{before}");
    let budget = advice.remedies.iter().find(|remedied| matches!(remedied.remedy, Remedy::Budget(_)));
    let budget = budget.expect("retries are what keeps the storm alive");
    assert_eq!(budget.remedy, Remedy::Budget(0.1));
    assert!(success(&budget.record) > before + 0.3, "{}", success(&budget.record));
    for remedied in &advice.remedies {
        assert!(success(&remedied.record) > before, "{:?}", remedied.remedy);
    }
    assert!(outcome.to_json().contains("\"change\": \"budget\", \"to\": 0.1"), "{}", outcome.to_json());

    // The same by hand: the same figures.
    let mut protected = scenario.clone();
    protected.contenders[0].protection.budget = Some(relent::Budget::ratio(0.1).settings());
    assert_eq!(simulate(&protected).unwrap().records[0].mean, budget.record.mean);
    // Who is never refused is told no time to come back.
    assert!(!advice.remedies.iter().any(|remedied| matches!(remedied.remedy, Remedy::Pacer(_))));
}

/// What is proposed may be more than what it is made of takes.
#[test]
fn a_server_with_more_than_a_pacer_knows_is_advised_all_the_same() {
    for (capacity, writes) in [("1e12", ""), ("5000", "writes = { share = 1, cost = 1e-9 }")] {
        let text = format!(
            "[clients]\nrate = 100\nfor = \"10s\"\ntimeout = \"24h\"\n{writes}\n[network]\nrtt = \"10s\"\n[server]\n\
             capacity = {capacity}\nqueue = 10\n[[trouble]]\nat = \"10ms\"\nfor = \"10s\"\nkind = \"refuse\"\n\
             [policy.a]\nmax_attempts = 2\n"
        );
        let (_, advice) = advised(&Scenario::parse(&text).expect("it is sound"));
        assert!(!advice.remedies.iter().any(|remedied| matches!(remedied.remedy, Remedy::Pacer(_))), "{capacity}");
    }
}
