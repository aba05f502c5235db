//! Layers with a policy, a timeout and a deadline each.

use relent::{Jitter, Policy};
use relent_sim::{
    Arrivals, Contender, Figure, Layer, Network, Population, Rate, Record, RetryAfter, Scenario, Server, Service,
    Trouble, TroubleKind, World, Writes, simulate,
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);

fn run(service: &Service, contender: Contender) -> Record {
    attempts_by_layer(service, contender).0
}

/// The record, and the attempts a call of each layer.
fn attempts_by_layer(service: &Service, contender: Contender) -> (Record, Vec<f64>) {
    let scenario = Scenario::new("x", World::Service(service.clone())).contender(contender);
    let mut outcome = simulate(&scenario).expect("it is possible");
    let attempts = outcome.extras.checks.iter().map(|(_, measured, _)| *measured).collect();
    (outcome.records.remove(0), attempts)
}

fn stream(rate: f64) -> Arrivals {
    Arrivals::Open { rate: Rate::constant(rate), poisson: true, until: 40 * SEC }
}

/// A client alone is a chain of one layer: the other engine says the same of it.
#[test]
fn a_chain_of_one_layer_is_the_client_alone() {
    let mut herd = Service::herd(3000, 300.0);
    herd.server.queue = Some(300);
    let open = Service {
        arrivals: stream(250.0),
        timeout: Some(SEC),
        network: Network::Exponential(20 * MS),
        server: Server { exponential: true, ..herd.server.clone() },
        writes: Some(Writes { share: 0.3, retried: false, cost: 2.0 }),
        troubles: vec![
            Trouble::new(10 * SEC, 2 * SEC, TroubleKind::Stall),
            Trouble::new(20 * SEC, SEC, TroubleKind::Losing(0.5)),
            Trouble::new(25 * SEC, SEC, TroubleKind::Failing(0.5)),
        ],
        ..herd.clone()
    };
    let told = Server { retry_after: RetryAfter::Exact, ..herd.server.clone() };
    let worlds = [("herd", herd.clone()), ("stream", open), ("told", Service { server: told, leaving: 0.1, ..herd })];
    let exponential = Policy::exponential(50 * MS).cap(2 * SEC).max_attempts(20);
    for (what, service) in worlds {
        for policy in [
            exponential,
            exponential.jitter(Jitter::Decorrelated).max_elapsed(30 * SEC),
            Policy::fibonacci(10 * MS).attempt_timeout(700 * MS).max_attempts(12).spread(SEC),
        ] {
            let alone = run(&service, Contender::new("x", policy));
            let chain = run(&service, Contender::new("x", policy).through(Layer::new("client")));
            for figure in Figure::ALL {
                assert_eq!(alone.get(figure), chain.get(figure), "{what}, {}", figure.name());
            }
            assert_eq!(alone.gave_up, chain.gave_up, "{what}");
            assert_eq!(alone.plots.load, chain.plots.load, "{what}");
        }
    }
}

fn failing() -> Service {
    let mut service = Service::herd(200, 1e6);
    service.server.failure = 1.0;
    service
}

fn chain(policy: Policy, layers: usize) -> Contender {
    let layers = (0..layers).map(|nth| Layer::new(nth.to_string()));
    layers.fold(Contender::new("chain", policy), Contender::through)
}

#[test]
fn layers_multiply_as_the_flat_ones_do_and_each_is_counted() {
    let policy = Policy::constant(10 * MS).max_attempts(4);
    for layers in 1..=4u32 {
        let (record, attempts) = attempts_by_layer(&failing(), chain(policy, layers as usize));
        let flat = run(&Service { layers, ..failing() }, Contender::new("flat", policy));
        assert_eq!(record.get(Figure::AttemptsPerClient), flat.get(Figure::AttemptsPerClient));
        let expected: Vec<f64> = (1..=layers).map(|layer| 4f64.powi(layer as i32)).collect();
        assert_eq!(attempts, expected);
    }
    // Each layer under a policy of its own: 2 x 3 x 5.
    let own = [2, 3, 5].map(|most| policy.max_attempts(most));
    let mut contender = chain(policy, 3);
    for (layer, policy) in contender.layers.iter_mut().zip(own) {
        layer.policy = Some(policy);
    }
    assert_eq!(attempts_by_layer(&failing(), contender).1, [2.0, 6.0, 30.0]);
}

#[test]
fn who_says_overloaded_is_not_asked_again() {
    let mut contender = chain(Policy::constant(10 * MS).max_attempts(4), 3);
    contender.layers[2].say_overloaded = true;
    let (record, attempts) = attempts_by_layer(&failing(), contender);
    assert_eq!(attempts, [1.0, 1.0, 4.0]);
    assert_eq!(record.gave_up.get("overloaded"), Some(&200));
}

/// A server that takes 400 ms for each answer, and layers that wait for less.
fn slow() -> Service {
    let mut service = Service::herd(100, 1e6);
    service.server.capacity = None;
    service.server.latency = 400 * MS;
    service.network = Network::Constant(Duration::ZERO);
    service
}

#[test]
fn a_layer_below_goes_on_for_who_has_gone_unless_it_was_told() {
    let at_once = Policy::constant(MS).jitter(Jitter::None);
    // The client waits 250 ms, once; the layer below 100 ms for each of its attempts, of which it makes eight.
    let contender = |passes_deadline| {
        let client =
            Layer { timeout: Some(250 * MS), passes_deadline, ..Layer::new("client").under(at_once.max_attempts(1)) };
        let below = Layer { timeout: Some(100 * MS), ..Layer::new("below").under(at_once.max_attempts(8)) };
        Contender::new("x", at_once).through(client).through(below)
    };
    let (not_told, attempts) = attempts_by_layer(&slow(), contender(false));
    // The herd's clients have all given up by then: the world ends when nothing is left to happen.
    assert_eq!((attempts[0], attempts[1]), (1.0, 8.0));
    let (told, attempts) = attempts_by_layer(&slow(), contender(true));
    // At 0, 101 and 202 ms; the next would begin at 303.
    assert_eq!((attempts[0], attempts[1]), (1.0, 3.0));
    for record in [not_told, told] {
        assert_eq!(record.get(Figure::GaveUpShare), Some(1.0));
        assert_eq!(record.gave_up.get("attempts"), Some(&100));
    }
}

#[test]
fn a_deadline_ends_everything_attempts_under_way_included() {
    let policy = Policy::constant(10 * MS).jitter(Jitter::None).unlimited_attempts();
    for (deadline, timeout, attempts) in [(350, 100, 4.0), (50, 100, 1.0), (1000, 400, 1.0)] {
        let layer = Layer { timeout: Some(timeout * MS), deadline: Some(deadline * MS), ..Layer::new("client") };
        let (record, made) = attempts_by_layer(&slow(), Contender::new("x", policy).through(layer));
        let succeeds = timeout >= 400;
        assert_eq!(made, [attempts], "{deadline}");
        assert_eq!(record.get(Figure::SuccessShare), Some(if succeeds { 1.0 } else { 0.0 }), "{deadline}");
        assert_eq!(record.gave_up.get("elapsed").copied(), (!succeeds).then_some(100), "{deadline}");
    }
    // The policy's own are the same: its timeout is a deadline, its attempt timeout a timeout.
    let own = policy.attempt_timeout(100 * MS).timeout(350 * MS);
    assert_eq!(attempts_by_layer(&slow(), Contender::new("x", own).through(Layer::new("client"))).1, [4.0]);
}

#[test]
fn the_ways_between_layers_take_their_time() {
    let once = Policy::constant(MS).max_attempts(1);
    let far = Layer { rtt: 60 * MS, ..Layer::new("client") };
    let near = Layer { rtt: 20 * MS, ..Layer::new("gateway") };
    let contender = Contender::new("x", once).through(far).through(near).through(Layer::new("service"));
    let record = run(&slow(), contender);
    assert_eq!(record.get(Figure::DrainS), Some(0.480));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let policy = Policy::constant(10 * MS).max_attempts(4);
    let zero = Layer { timeout: Some(Duration::ZERO), ..Layer::new("client") };
    let losing = Trouble::new(SEC, SEC, TroubleKind::Losing(0.5));
    let twice = Contender::new("x", policy).through(Layer::new("a")).through(Layer::new("a"));
    let cases = [
        (failing(), twice, "two layers are called"),
        (failing(), chain(policy, 9), "more than 8 layers"),
        (failing(), Contender::new("x", policy).through(zero), "is zero"),
        (Service { layers: 2, ..failing() }, chain(policy, 2), "without [layers]"),
        (failing(), chain(policy, 2).with(Population::share("all", 1.0, policy)), "without [layers], populations"),
        (Service { troubles: vec![losing], timeout: Some(SEC), ..failing() }, chain(policy, 2), "for ever"),
    ];
    for (service, contender, problem) in cases {
        let error = simulate(&Scenario::new("x", World::Service(service)).contender(contender)).expect_err(problem);
        assert!(error.problem.contains(problem), "{}", error.problem);
    }
}

const WORLD: &str = r#"
    [clients]
    count = 50
    [server]
    capacity = 1000
    failure = 1.0
    [policy.twice]
    base = "1ms"
    max_attempts = 2
    [policy.thrice]
    base = "1ms"
    max_attempts = 3
"#;

#[test]
fn files_say_what_the_layers_are() {
    let attempts = |rest: &str| {
        let outcome =
            simulate(&Scenario::parse(&format!("{WORLD}{rest}")).expect("it is a scenario")).expect("it runs");
        let of =
            |record: &Record| (record.policy.clone(), record.get(Figure::AttemptsPerClient).expect("it is counted"));
        outcome.records.iter().map(of).collect::<Vec<_>>()
    };
    let layers = "[[layer]]\nname = \"client\"\n[[layer]]\nname = \"gateway\"\npolicy = \"thrice\"\nrtt = \"1ms\"\n";
    assert_eq!(attempts(layers), [("twice".to_owned(), 6.0)], "who names no policy has that of the run");
    let run = "[[run]]\nname = \"a\"\npolicy = \"twice\"\n[[run]]\nname = \"b\"\npolicy = \"thrice\"\n\
               layers = { gateway = { policy = \"twice\", say_overloaded = true } }";
    assert_eq!(attempts(&format!("{layers}{run}")), [("a".to_owned(), 6.0), ("b".to_owned(), 2.0)]);

    for (rest, problem) in [
        ("[[layer]]\ntimeout = \"1s\"", "has no name"),
        ("[[layer]]\nname = \"a\"\ntimeout = \"0s\"", "the timeout is zero"),
        ("[[layer]]\nname = \"a\"\ntimout = \"1s\"", "timout"),
        ("[[layer]]\nname = \"a\"\npolicy = \"trice\"", "trice"),
        ("[[layer]]\nname = \"a\"\n[layers]\ndepth = 2", "without [layers]"),
        ("[[layer]]\nname = \"a\"\n[[run]]\npolicy = \"twice\"\nlayers = { b = { timeout = \"1s\" } }", "layer"),
        ("[[layer]]\nname = \"a\"\n[pictures]\nhysteresis = true", "hysteresis"),
    ] {
        let error = Scenario::parse(&format!("{WORLD}{rest}")).expect_err(problem);
        assert!(error.line().is_some() && error.to_string().contains(problem), "{rest}: {error}");
    }
}

/// Callers that give up leave behind what the layers below go on with: that has an end, too.
#[test]
fn calls_that_nobody_waits_for_are_noticed() {
    let layer = |name: &str| format!("[[layer]]\nname = \"{name}\"\ntimeout = \"5ms\"\nrtt = \"1ms\"\n");
    let text = format!(
        "[clients]\ncount = 20_000\n[network]\nrtt = \"1ms\"\n[server]\nlatency = \"1000s\"\n[policy.one]\n\
         curve = \"constant\"\nbase = \"5ms\"\njitter = \"none\"\nmax_attempts = 100\n{}{}{}",
        layer("client"),
        layer("gateway"),
        layer("shop")
    );
    let outcome = simulate(&Scenario::parse(&text).expect("it is sound")).expect("it is possible");
    let why = "more than 1000000 calls and answers are under way between layers";
    assert_eq!(outcome.records[0].stopped.as_deref(), Some(why));
}
