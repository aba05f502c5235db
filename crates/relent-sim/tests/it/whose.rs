//! Advice where clients are not all alike: which population hurts which, whose change helps, and at which layer to retry.

use relent::{Budget, Jitter, LimitSettings, Policy};
use relent_sim::{
    Advice, Arrivals, Contender, Control, Effort, Figure, Harm, Layer, Network, Outcome, Part, Picture, Pictures,
    Population, Protection, Rate, Record, Remedied, Remedy, Scenario, Server, Service, Storm, Trouble, TroubleKind,
    World, advise, draw_pictures, simulate,
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);

fn advised(scenario: &Scenario) -> (Outcome, Advice) {
    let mut outcome = simulate(scenario).expect("the scenario is sound");
    advise(scenario, &mut outcome, 2, Effort::Short, &Control::default());
    let advice = outcome.advice.clone().expect("it was asked for");
    (outcome, advice)
}

fn success(record: &Record) -> f64 {
    record.get(Figure::SuccessShare).expect("calls succeed or not")
}

fn stream(rate: f64, lasts: u64) -> Arrivals {
    Arrivals::Open { rate: Rate::constant(rate), poisson: true, until: Duration::from_secs(lasts) }
}

/// Phones all day, and a batch job that begins after ten seconds and asks again all the time.
fn phones_and_batch() -> Scenario {
    let phones = Policy::exponential(200 * MS).max_attempts(3);
    let batch = Policy::constant(50 * MS).unlimited_attempts();
    let mut contender = Contender::new("both", phones)
        .with(Population::own("phones", stream(30.0, 60), phones))
        .with(Population::own("batch", Arrivals::Herd { clients: 2000, window: Duration::ZERO }, batch));
    contender.populations[0].timeout = Some(SEC);
    if let Part::Own(_, at) = &mut contender.populations[1].part {
        *at = 10 * SEC;
    }
    let service = Service {
        arrivals: Arrivals::together(&contender.populations),
        network: Network::Constant(MS),
        server: Server { capacity: Some(100.0), exponential: true, queue: Some(50), ..Server::default() },
        ..Service::herd(1, 1.0)
    };
    Scenario::new("shared", World::Service(service)).contender(contender)
}

fn harm<'a>(advice: &'a Advice, by: &str, to: &str) -> &'a Harm {
    let found = advice.harms.iter().find(|harm| harm.by == by && harm.to == to);
    found.unwrap_or_else(|| panic!("{to} without {by} was not looked at"))
}

#[test]
fn who_takes_the_server_from_others_is_found_by_leaving_it_out() {
    let scenario = phones_and_batch();
    let (outcome, advice) = advised(&scenario);
    let all = &outcome.records[0];
    let (phones, batch) = (&all.populations[0], &all.populations[1]);
    assert!(success(phones) < 0.95, "{}", success(phones));

    let hurt = harm(&advice, "batch", "phones");
    assert!(hurt.left_out && hurt.hurts(phones) && !hurt.spares(phones));
    // All but those that had only begun when the run ended.
    assert!(success(&hurt.record) > 0.998, "{}", success(&hurt.record));
    assert_eq!(hurt.record.policy, phones.policy);
    let other = harm(&advice, "phones", "batch");
    assert!(!other.spares(batch), "a batch job is not better off among others");

    // The same by hand: the same figures.
    let mut alone = scenario.clone();
    alone.contenders[0].populations.truncate(1);
    let World::Service(service) = &mut alone.world else { panic!("it is a service") };
    service.arrivals = Arrivals::together(&alone.contenders[0].populations);
    let by_hand = simulate(&alone).unwrap().records.remove(0);
    assert_eq!(by_hand.populations[0].mean, hurt.record.mean);
    let json = outcome.to_json();
    assert!(json.contains("\"harms\": [{\"of\": \"phones\", \"by\": \"batch\", \"left_out\": true, "), "{json}");
}

#[test]
fn whose_change_helps_is_said_and_simulated() {
    let scenario = phones_and_batch();
    let (outcome, advice) = advised(&scenario);
    let limit = |remedied: &&Remedied| matches!(remedied.remedy, Remedy::Limit(_));
    let first = advice.remedies.iter().find(limit).expect("a limiter leaves the phones their share");
    // The phones leave 70 of 100, of which one in twenty stays free.
    assert_eq!((first.whose.as_deref(), first.remedy), (Some("batch"), Remedy::Limit(66.0)));
    let of = |record: &Record, place: usize| success(&record.populations[place]);
    for remedied in &advice.remedies {
        for place in 0..2 {
            let (before, after) = (of(&outcome.records[0], place), of(&remedied.record, place));
            assert!(after > before - 0.011, "{remedied:?} costs another population {before} -> {after}");
        }
    }
    assert!(of(&first.record, 0) > 0.99 && of(&first.record, 1) > 0.999, "{:?}", first.record.mean);

    let mut limited = scenario;
    let batch = &mut limited.contenders[0].populations[1];
    batch.processes = Some(1);
    batch.protection.limit = Some(LimitSettings::Rate { rate: 66, per: SEC, burst: 6 });
    assert_eq!(simulate(&limited).unwrap().records[0].mean, first.record.mean);
    assert!(outcome.to_json().contains("{\"whose\": \"batch\", \"change\": \"limit\", \"to\": 66"));
}

/// Whether a rollout takes from the others or gives to them is asked with as many clients: as if it had not been.
#[test]
fn a_rollout_is_compared_with_everybody_as_they_were() {
    let new = Policy::exponential(100 * MS).cap(10 * SEC).unlimited_attempts();
    let old = new.jitter(Jitter::None);
    let mut service = Service::herd(2000, 100.0);
    service.server.queue = Some(100);
    let rollout = Contender::new("rollout", old)
        .with(Population::share("old", 0.8, old))
        .with(Population::share("new", 0.2, new));
    let scenario = Scenario::new("x", World::Service(service)).contender(rollout);
    let (outcome, advice) = advised(&scenario);
    let (beside, spared) = (&outcome.records[0].populations[0], harm(&advice, "new", "old"));
    assert!(!spared.left_out && spared.spares(beside), "fewer come with each wave");

    let mut as_before = scenario.clone();
    as_before.contenders[0].populations[1].policy = old;
    assert_eq!(simulate(&as_before).unwrap().records[0].populations[0].mean, spared.record.mean);
    // One policy for all, and what the server can do, are said as for any herd.
    assert!(advice.recommended.is_some_and(|recommended| recommended.as_good.is_none()));
    let paced = advice.paced.expect("nobody has one");
    assert_eq!((paced.policy.as_str(), paced.record.populations.len()), ("rollout", 2));
    assert!(paced.record.populations.iter().all(|own| own.get(Figure::MaxAttempts) == Some(2.0)));
}

#[test]
fn populations_that_are_alike_neither_hurt_nor_spare_each_other() {
    let policy = Policy::exponential(100 * MS).cap(10 * SEC).unlimited_attempts();
    let mut service = Service::herd(2000, 100.0);
    service.server.queue = Some(100);
    let both = Contender::new("both", policy)
        .with(Population::share("a", 0.5, policy))
        .with(Population::share("b", 0.5, policy));
    let (outcome, advice) = advised(&Scenario::new("x", World::Service(service)).contender(both));
    assert_eq!(advice.harms.len(), 2);
    for harm in &advice.harms {
        let place = usize::from(harm.to == "b");
        let as_it_is = &outcome.records[0].populations[place];
        assert!(!harm.hurts(as_it_is) && !harm.spares(as_it_is), "{harm:?}");
    }
}

/// Three layers that each retry, above a server that stalls for four seconds.
fn chain() -> Scenario {
    let service = Service {
        arrivals: stream(20.0, 40),
        network: Network::Constant(MS),
        server: Server { capacity: Some(100.0), exponential: true, ..Server::default() },
        troubles: vec![Trouble::new(10 * SEC, 4 * SEC, TroubleKind::Stall)],
        ..Service::herd(1, 1.0)
    };
    let layer = |name: &str| Layer { timeout: Some(SEC), ..Layer::new(name) };
    let client = Layer { deadline: Some(3 * SEC), ..layer("client") };
    let policy = Policy::exponential(100 * MS).max_attempts(3);
    let chain = Contender::new("chain", policy).through(client).through(layer("gateway")).through(layer("service"));
    Scenario::new("chain", World::Service(service)).contender(chain)
}

#[test]
fn at_which_layer_to_retry_is_tried_for_each() {
    let scenario = chain();
    let (outcome, advice) = advised(&scenario);
    let before = &outcome.records[0];
    assert!(success(before) < 0.7, "{}", success(before));
    let found = |whose: Option<&str>, remedy: Remedy| {
        let own = advice.remedies.iter().find(|own| own.whose.as_deref() == whose && own.remedy == remedy);
        &own.unwrap_or_else(|| panic!("{whose:?} {remedy:?} helps: {:?}", advice.remedies)).record
    };
    for (name, place) in [("client", 0), ("gateway", 1), ("service", 2)] {
        let mut only = scenario.clone();
        for (nth, layer) in only.contenders[0].layers.iter_mut().enumerate() {
            layer.policy = (nth != place).then_some(scenario.contenders[0].policy.max_attempts(1));
        }
        let record = found(Some(name), Remedy::OneLayer);
        assert_eq!(simulate(&only).unwrap().records[0].mean, record.mean, "{name}");
        assert!(success(record) > success(before), "{name}: {}", success(record));
        assert!(record.get(Figure::AttemptsPerClient) < Some(3.0), "{name}");
    }
    // Who is in the middle goes on for a client that has given up.
    assert!(success(found(Some("client"), Remedy::OneLayer)) > success(before) + 0.3);
    let mut told = scenario;
    told.contenders[0].layers.iter_mut().for_each(|layer| layer.passes_deadline = true);
    assert_eq!(simulate(&told).unwrap().records[0].mean, found(None, Remedy::Deadlines).mean);
    let fatal = advice.policies[0].fatal_outage.expect("one outage can be varied").fatal;
    assert!(fatal.is_some_and(|fatal| fatal < 4 * SEC), "{fatal:?}");
    assert_eq!(advice.policies[0].storm, None, "theory does not know layers with policies of their own");
}

/// A herd behind layers: where all fails, calls are multiplied, and one layer that retries is enough.
#[test]
fn a_herd_behind_layers_is_told_where_to_retry() {
    let mut service = Service::herd(100, 1e6);
    service.server.failure = 1.0;
    let policy = Policy::constant(10 * MS).max_attempts(4);
    let chain = Contender::new("chain", policy).through(Layer::new("client")).through(Layer::new("gateway"));
    let (outcome, advice) = advised(&Scenario::new("x", World::Service(service)).contender(chain));
    assert_eq!(outcome.records[0].get(Figure::AttemptsPerClient), Some(16.0));
    let attempts = |own: &Remedied| own.record.get(Figure::AttemptsPerClient).unwrap();
    assert_eq!(advice.remedies.iter().map(attempts).collect::<Vec<_>>(), [4.0; 3], "{:?}", advice.remedies);
    assert_eq!(advice.recommended, None);
}

/// A policy without machines is advised as if there were no other with them; of one with a budget only trying tells.
#[test]
fn machines_do_not_keep_others_from_being_advised() {
    let service = Service {
        arrivals: stream(60.0, 40),
        timeout: Some(SEC),
        server: Server { capacity: Some(100.0), exponential: true, ..Server::default() },
        troubles: vec![Trouble::new(10 * SEC, 5 * SEC, TroubleKind::Stall)],
        ..Service::herd(1, 1.0)
    };
    let policy = Policy::immediate().max_attempts(4);
    let budget = Protection { budget: Some(Budget::ratio(0.1).settings()), ..Protection::default() };
    let scenario = Scenario::new("x", World::Service(service))
        .policy("plain", policy)
        .contender(Contender::new("budget", policy).protected(budget));
    let (outcome, advice) = advised(&scenario);
    assert!(matches!(advice.policies[0].storm, Some(Storm::Above(_))) && advice.policies[1].storm.is_none());
    let fatal = |place: usize| advice.policies[place].fatal_outage.and_then(|outage| outage.fatal);
    assert!(fatal(0).is_some_and(|fatal| fatal < 5 * SEC));
    assert!(fatal(1) > fatal(0) || fatal(1).is_none(), "{:?}", advice.policies);
    assert_eq!(outcome.records[1].recovered.unwrap().yes, 1);
    assert!(advice.remedies.iter().any(|own| own.policy == "plain"));
}

/// A load can be raised for populations that share the clients, and for layers; what is drawn for two that are alike is
/// what is drawn for one.
#[test]
fn pictures_are_drawn_where_they_mean_something() {
    let policy = Policy::immediate().max_attempts(3);
    let service = Service {
        arrivals: stream(20.0, 20),
        timeout: Some(SEC),
        server: Server { capacity: Some(50.0), ..Server::default() },
        ..Service::herd(1, 1.0)
    };
    let wanted = Pictures::NONE.with(Picture::Hysteresis, true).with(Picture::Recovery, true);
    let drawn = |contender: Contender, service: Service| {
        let mut scenario = Scenario::new("x", World::Service(service)).contender(contender);
        scenario.pictures = wanted;
        let mut outcome = simulate(&scenario).unwrap();
        assert_eq!(draw_pictures(&scenario, &mut outcome, 2, &Control::default()), []);
        outcome.extras
    };
    let alone = drawn(Contender::new("p", policy), service.clone());
    let shared =
        Contender::new("p", policy).with(Population::share("a", 0.5, policy)).with(Population::share("b", 0.5, policy));
    assert_eq!(drawn(shared.clone(), service.clone()).hysteresis, alone.hysteresis);
    let client = Layer { timeout: Some(SEC), ..Layer::new("client") };
    let chain = Contender::new("p", policy).through(client);
    let of_chain = drawn(chain.clone(), Service { timeout: None, ..service.clone() });
    assert_eq!(of_chain.hysteresis, alone.hysteresis, "a chain of the client alone");
    let times = |extras: &relent_sim::Extras| {
        extras.recovery[0].points.iter().map(|point| (point.rho, point.recovery_s)).collect::<Vec<_>>()
    };
    let (chain_times, alone_times) = (times(&of_chain), times(&alone));
    // Near the threshold there are more points where theory knows it, and beyond it fewer.
    let both = chain_times
        .iter()
        .filter_map(|(rho, time)| alone_times.iter().find(|(other, _)| other == rho).map(|(_, other)| (time, other)));
    let both: Vec<_> = both.collect();
    assert!(both.len() > 5 && both.iter().all(|(chain, alone)| chain == alone), "{chain_times:?} {alone_times:?}");

    // What would mean nothing is refused, with why.
    let refused = |contender: Contender, world: Service, picture: Picture| {
        let mut scenario = Scenario::new("x", World::Service(world)).contender(contender);
        scenario.pictures = Pictures::NONE.with(picture, true);
        simulate(&scenario).unwrap_err().problem
    };
    let herd = Service::herd(100, 10.0);
    assert!(refused(chain.clone(), herd.clone(), Picture::Layers).contains("no one number of attempts"));
    assert!(refused(shared, herd, Picture::Heat).contains("is of one policy"));
    let own = phones_and_batch();
    let World::Service(world) = own.world else { panic!("it is a service") };
    assert!(refused(own.contenders[0].clone(), world, Picture::Recovery).contains("no one load"));
}
