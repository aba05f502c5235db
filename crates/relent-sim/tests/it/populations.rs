//! Several populations on one server: their figures add up, and clients who are alike do as if there were one population.

use relent::{Budget, Jitter, Policy};
use relent_sim::{
    Arrivals, Contender, Engine, Figure, Network, Outcome, Part, Population, Protection, Rate, Record, Scenario,
    Server, Service, Trouble, TroubleKind, World, Writes, simulate,
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);

fn full() -> Policy {
    Policy::exponential(100 * MS).cap(10 * SEC).unlimited_attempts()
}

fn stream(rate: f64) -> Arrivals {
    Arrivals::Open { rate: Rate::constant(rate), poisson: true, until: 40 * SEC }
}

/// Worlds for each of the engines that follow clients one by one: foreseen, waited for, and with upstreams.
fn worlds() -> Vec<(&'static str, Service, Protection)> {
    let mut herd = Service::herd(4000, 400.0);
    herd.server.queue = Some(400);
    let stall = Trouble::new(10 * SEC, 3 * SEC, TroubleKind::Stall);
    let open = Service {
        arrivals: stream(300.0),
        timeout: Some(SEC),
        writes: Some(Writes { share: 0.2, retried: false, cost: 2.0 }),
        troubles: vec![stall],
        server: Server { exponential: true, ..herd.server.clone() },
        network: Network::Exponential(20 * MS),
        ..herd.clone()
    };
    let newest = Service { server: Server { lifo: true, ..open.server.clone() }, ..open.clone() };
    let budget = Protection { budget: Some(Budget::ratio(0.2).settings()), ..Protection::default() };
    vec![
        ("herd", herd.clone(), Protection::default()),
        ("stream", open, Protection::default()),
        ("newest first", newest, Protection::default()),
        ("budgets", Service { leaving: 0.1, ..herd }, budget),
    ]
}

fn run(service: &Service, contender: Contender) -> Record {
    let scenario = Scenario::new("x", World::Service(service.clone())).contender(contender);
    let mut outcome = simulate(&scenario).expect("it is possible");
    outcome.records.remove(0)
}

fn of(shares: &[(&str, f64)], policy: Policy, protection: Protection) -> Contender {
    let populations = shares.iter().map(|(name, share)| {
        let mut population = Population::share(*name, *share, policy);
        population.protection = protection;
        population
    });
    let mut contender = Contender::new("all", policy).protected(protection);
    contender.populations = populations.collect();
    contender
}

/// Everything that is counted is counted for somebody.
fn adds_up(record: &Record, what: &str) {
    let own = &record.populations;
    assert_eq!(record.clients, own.iter().map(|own| own.clients).sum::<u64>(), "{what}");
    let of = |record: &Record, figure: Figure| record.get(figure).unwrap_or(0.0);
    for figure in [
        Figure::AttemptsPerClient,
        Figure::SuccessShare,
        Figure::GaveUpShare,
        Figure::StillTrying,
        Figure::RefusedBudget,
        Figure::RefusedOverloaded,
    ] {
        let sum: f64 = own.iter().map(|own| of(own, figure) * own.clients as f64).sum();
        let all = of(record, figure) * record.clients as f64;
        assert!((sum - all).abs() < 1e-6 * all.max(1.0), "{what}, {}: {sum} is not {all}", figure.name());
    }
    for figure in [Figure::GaveUp, Figure::Utilisation] {
        let sum: f64 = own.iter().map(|own| of(own, figure)).sum();
        let unlike_ends = figure == Figure::Utilisation && record.get(Figure::DrainS).is_some();
        assert!(unlike_ends || (sum - of(record, figure)).abs() < 1e-6, "{what}, {}: {sum}", figure.name());
    }
    let bins = |of: fn(&relent_sim::LoadBin) -> f64, record: &Record| record.plots.load.iter().map(of).sum::<f64>();
    for (name, of) in [
        ("first", (|bin| bin.first) as fn(&relent_sim::LoadBin) -> f64),
        ("retries", |bin| bin.retries),
        ("rejected", |bin| bin.rejected),
        ("connected", |bin| bin.connected),
        ("gave up", |bin| bin.gave_up),
    ] {
        let sum: f64 = own.iter().map(|own| bins(of, own)).sum();
        assert!((sum - bins(of, record)).abs() < 1e-6, "{what}: {name}");
    }
    let reasons: u64 = own.iter().flat_map(|own| own.gave_up.values()).sum();
    assert_eq!(reasons, record.gave_up.values().sum::<u64>(), "{what}");
}

fn same(one: &Record, other: &Record, what: &str) {
    for figure in Figure::ALL {
        assert_eq!(one.get(figure), other.get(figure), "{what}, {}", figure.name());
    }
    assert_eq!((&one.plots, &one.gave_up, one.recovered), (&other.plots, &other.gave_up, other.recovered), "{what}");
}

#[test]
fn populations_that_are_alike_are_one_population() {
    for (what, service, protection) in worlds() {
        let decorrelated = full().jitter(Jitter::Decorrelated).max_attempts(12).spread(SEC);
        for policy in [full().max_attempts(9), decorrelated] {
            let alone = run(&service, Contender::new("all", policy).protected(protection));
            let both = run(&service, of(&[("a", 0.8), ("b", 0.2)], policy, protection));
            same(&alone, &both, what);
            adds_up(&both, what);
            assert_eq!(both.populations[1].clients, (both.clients as f64 * 0.2).round() as u64, "{what}");
        }
    }
}

#[test]
fn nobody_and_everybody_are_shares_too() {
    let (old, new) = (full().jitter(Jitter::None).max_attempts(9), full().max_attempts(12));
    for (what, service, protection) in worlds() {
        for (share, policy) in [(0.0, old), (1.0, new)] {
            let alone = run(&service, Contender::new("all", policy).protected(protection));
            let mut rollout = of(&[("old", 1.0 - share), ("new", share)], old, protection);
            rollout.populations[1].policy = new;
            let both = run(&service, rollout);
            same(&alone, &both, what);
            let (whole, empty) = if share > 0.5 { (1, 0) } else { (0, 1) };
            assert_eq!(both.populations[whole].clients, both.clients, "{what}");
            assert_eq!(both.populations[empty].clients, 0, "{what}");
            assert_eq!(both.populations[empty].get(Figure::SuccessShare), None, "{what}: of nobody there is no share");
        }
    }
}

#[test]
fn who_differs_is_counted_apart_and_adds_up() {
    for (what, service, protection) in worlds() {
        let mut contender =
            of(&[("patient", 0.5), ("hasty", 0.3), ("far away", 0.2)], full().max_attempts(8), protection);
        contender.populations[1].policy = Policy::immediate().max_attempts(3);
        contender.populations[1].leaving = Some(0.5);
        contender.populations[1].protection = Protection::default();
        contender.populations[2].network = Some(Network::Constant(200 * MS));
        contender.populations[2].timeout = Some(5 * SEC);
        let record = run(&service, contender);
        adds_up(&record, what);
        let get = |place: usize, figure: Figure| record.populations[place].get(figure).unwrap();
        assert!(get(1, Figure::GaveUpShare) > get(0, Figure::GaveUpShare), "{what}");
        assert!(get(2, Figure::P50S) > get(1, Figure::P50S), "{what}");
        assert!(get(1, Figure::AttemptsPerClient) < 3.0, "{what}");
    }
}

#[test]
fn a_population_with_all_the_calls_of_a_stream_is_that_stream() {
    let (_, service, _) = worlds().remove(1);
    let policy = full().max_attempts(6);
    let alone = run(&service, Contender::new("all", policy));
    let own = Contender::new("all", policy).with(Population::own("all", service.arrivals.clone(), policy));
    same(&alone, &run(&service, own), "stream");
}

#[test]
fn herds_of_their_own_are_mixed_as_one_herd() {
    let (_, service, _) = worlds().remove(0);
    let herd = |clients| Arrivals::Herd { clients, window: Duration::ZERO };
    let both = Contender::new("all", full()).with(Population::own("a", herd(3000), full())).with(Population::own(
        "b",
        herd(1000),
        full(),
    ));
    same(&run(&service, Contender::new("all", full())), &run(&service, both), "herd");
}

#[test]
fn a_batch_comes_at_its_time_and_a_stream_ends_at_its_own() {
    let mut batch = Population::own(
        "batch",
        Arrivals::Herd { clients: 1000, window: Duration::ZERO },
        Policy::immediate().max_attempts(1),
    );
    if let Part::Own(_, at) = &mut batch.part {
        *at = 20 * SEC;
    }
    let populations = vec![Population::own("mobile", stream(50.0), full().max_attempts(3)), batch];
    let mut service =
        Service { arrivals: Arrivals::together(&populations), timeout: Some(SEC), ..Service::herd(1, 500.0) };
    service.server.queue = Some(400);
    let mut contender = Contender::new("both", full());
    contender.populations = populations;
    let record = run(&service, contender);
    adds_up(&record, "batch");
    let batch = &record.populations[1];
    // Of a thousand at once, the queue takes four hundred, less the few of the stream.
    let gave_up = batch.get(Figure::GaveUp).unwrap();
    assert!(batch.clients == 1000 && (600.0..610.0).contains(&gave_up), "{gave_up}");
    let first = batch.plots.load.iter().position(|bin| bin.first > 0.0).unwrap() as f64 * batch.plots.bin_s;
    assert!((first - 20.0).abs() < 0.1, "{first}");
    // A rush is trouble: it says how long it takes until all is well.
    assert!(record.get(Figure::RecoveryS).is_some());
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_do() {
    let herd = |clients| Arrivals::Herd { clients, window: Duration::ZERO };
    let share = |share| Population::share("a", share, full());
    let twice = vec![share(0.5), share(0.5)];
    let mut zero = share(1.0);
    zero.timeout = Some(Duration::ZERO);
    let cases: Vec<(Vec<Population>, &str)> = vec![
        (twice, "two populations are called"),
        (vec![share(0.9)], "add up to 0.9"),
        (vec![share(f64::NAN)], "not a share"),
        (vec![share(1.5)], "not a share"),
        (vec![Population::share("b", 0.5, full()), Population::own("a", herd(5), full())], "others a count or rate"),
        (vec![Population::own("a", herd(5), full())], "5 clients or calls, and the service has 4000"),
        (vec![Population::own("a", stream(100.0), full())], "and the service has 4000"),
        (vec![zero], "timeout is zero"),
        ((0..65).map(|i| Population::share(i.to_string(), 1.0 / 65.0, full())).collect(), "more than 64"),
    ];
    let (_, service, _) = worlds().remove(0);
    for (populations, problem) in cases {
        let mut contender = Contender::new("x", full());
        contender.populations = populations;
        let scenario = Scenario::new("x", World::Service(service.clone())).contender(contender);
        let error = simulate(&scenario).unwrap_err();
        assert!(error.problem.contains(problem), "{} lacks {problem}", error.problem);
        assert!(!error.hint.is_empty());
    }
    let counted =
        Scenario::new("x", World::Service(service)).contender(of(&[("a", 1.0)], full(), Protection::default()));
    let error = simulate(&counted.engine(Engine::Count)).unwrap_err();
    assert!(error.problem.contains("it does not know populations"), "{}", error.problem);
}

const WORLD: &str = r#"
    [clients]
    count = 2000
    [server]
    capacity = 200
    queue = 200
    [policy.old]
    base = "100ms"
    jitter = "none"
    max_attempts = "unlimited"
    [policy.new]
    base = "100ms"
    jitter = "full"
    max_attempts = "unlimited"
"#;

fn parsed(rest: &str) -> Outcome {
    let scenario = Scenario::parse(&format!("{WORLD}{rest}")).expect("it is a scenario");
    simulate(&scenario).expect("it is possible")
}

fn names(outcome: &Outcome) -> Vec<&str> {
    outcome.records.iter().flat_map(Record::with_populations).map(|record| record.policy.as_str()).collect()
}

#[test]
fn files_say_who_the_clients_are() {
    let rollout = parsed("[[run]]\npolicy = \"old\"\nrollout = { share = 0.25, policy = \"new\" }");
    assert_eq!(names(&rollout), ["old", "old: old", "old: new"]);
    assert_eq!(rollout.records[0].populations[1].clients, 500);

    let fixed = "[[population]]\nname = \"mobile\"\nshare = 0.75\npolicy = \"old\"\n[[population]]\nname = \"batch\"\n";
    assert_eq!(names(&parsed(fixed)), ["new", "new: mobile", "new: batch"], "who names no policy has that of the run");

    let all = format!("{fixed}policy = \"new\"");
    assert_eq!(names(&parsed(&all)), ["mobile + batch", "mobile + batch: mobile", "mobile + batch: batch"]);
    let runs =
        format!("{all}\n[[run]]\nname = \"now\"\n[[run]]\nname = \"then\"\npopulations = {{ mobile = \"new\" }}");
    let outcome = parsed(&runs);
    assert_eq!(names(&outcome), ["now", "now: mobile", "now: batch", "then", "then: mobile", "then: batch"]);
    let drains: Vec<_> = outcome.records.iter().map(|record| record.get(Figure::DrainS).unwrap()).collect();
    assert!(drains[0] > drains[1], "{drains:?}");
    let new = parsed("[[run]]\npolicy = \"new\"");
    assert_eq!(
        new.records[0].get(Figure::DrainS),
        outcome.records[1].get(Figure::DrainS),
        "all have the new policy then"
    );
}

#[test]
fn promises_and_tables_know_populations() {
    let outcome = parsed("[[run]]\nname = \"r\"\npolicy = \"old\"\nrollout = { share = 0.25, policy = \"new\" }");
    let json = outcome.to_json();
    assert!(json.contains("\"populations\": [{\"scenario\": \"\", \"policy\": \"r: old\""), "{json}");
    let csv = outcome.to_csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].ends_with(",population_of") && lines[1].ends_with(',') && lines[2].ends_with(",r"), "{csv}");

    let promised = |table: &str| {
        let text = format!(
            "{WORLD}[[run]]\nname = \"r\"\npolicy = \"old\"\nrollout = {{ share = 0.25, policy = \"new\" }}\n{table}"
        );
        let scenario = Scenario::parse(&text).unwrap();
        outcome.broken(&scenario.asserts).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(promised("[assert.\"r: new\"]\ngave_up = { max = 0 }"), [""; 0]);
    let broken = promised("[assert.\"r: new\"]\nmax_attempts = { max = 1 }");
    assert!(broken.len() == 1 && broken[0].starts_with("r: new: max_attempts is "), "{broken:?}");
    assert_eq!(promised("[assert]\nmax_attempts = { max = 1 }").len(), 1, "one that names nobody is of the whole");
}

#[test]
fn files_that_make_no_sense_are_refused_at_their_place() {
    let wrong = |rest: &str| {
        let error = Scenario::parse(&format!("{WORLD}{rest}")).unwrap_err();
        assert!(error.line().is_some(), "{error:?}");
        format!("{error}")
    };
    for (rest, problem) in [
        ("[[run]]\npolicy = \"old\"\nrollout = { policy = \"new\" }", "how far the rollout is"),
        ("[[run]]\npolicy = \"old\"\nrollout = { share = 0.2 }", "what is rolled out"),
        ("[[run]]\npolicy = \"old\"\nrollout = { share = 0.2, policy = \"old\" }", "is what is there already"),
        ("[[run]]\npolicy = \"old\"\nrollout = { share = 2, policy = \"new\" }", "is not a share"),
        ("[[run]]\npolicy = \"old\"\nrollout = { share = 0.2, policy = \"nwe\" }", "nwe"),
        ("[[run]]\npolicy = \"old\"\nrollout = { share = 0.2, policy = \"new\", more = 1 }", "more"),
        ("[[population]]\nshare = 0.5", "has no name"),
        ("[[population]]\nname = \"a\"\nshre = 0.5", "shre"),
        ("[[population]]\nname = \"a\"\nshare = 0.5\ncount = 5", "not both"),
        ("[[population]]\nname = \"a\"\n[[population]]\nname = \"b\"", "say nothing of their share"),
        ("[[population]]\nname = \"a\"\nshare = 0.7\n[[population]]\nname = \"b\"\nshare = 0.7", "add up to 1.4"),
        ("[[population]]\nname = \"a\"\nshare = 1.7\n[[population]]\nname = \"b\"", "is not a share"),
        ("[[population]]\nname = \"a\"\ncount = 5", "and so have the clients"),
        ("[[population]]\nname = \"a\"\npolicy = \"nobody\"", "nobody"),
        ("[[population]]\nname = \"a\"\nupstream = false", "has the policy of each run"),
        ("[[population]]\nname = \"a\"\n[[run]]\npolicy = \"new\"\npopulations = { b = \"old\" }", "b"),
        ("[[population]]\nname = \"a\"\n[layers]\ndepth = 2", "without layers"),
        ("[[population]]\nname = \"a\"\n[pictures]\nheat = true", "there are populations"),
    ] {
        let error = wrong(rest);
        assert!(error.contains(problem), "{rest}: {error}");
    }
}
