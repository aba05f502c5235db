//! Clients who each have an upstream of their own, played by one.

use super::*;

/// What is kept of a client and its upstream is all by which they differ from the others.
#[test]
fn one_who_plays_all_clients_does_what_each_would_do() {
    let control = Control::default();
    let mut refused = 0;
    for (i, service) in worlds().iter().enumerate().filter(|(_, service)| service.layers == 1) {
        let service = Service { processes: Some(1_000_000), ..service.clone() };
        let policies = policies().into_iter().cycle().skip(i);
        for (contender, protection) in policies.zip(machines().into_iter().cycle()).take(32) {
            let what = format!("world {i}, {}: {protection:?}", contender.name);
            let contender = contender.protected(protection);
            let draws = Draws::new(7, None);
            let task = Task { service: &service, contender: &contender, draws, limit: u64::MAX, control: &control };
            let cast = Cast::new(&task);
            if !players::can_be_played(&task, &cast.0) {
                continue;
            }
            let played = guarded::run_as(&task, Calendar::new(), cast, Kept::Players);
            let each = guarded::run_as(&task, Calendar::new(), Cast::new(&task), Kept::All);
            refused += played.gave_up.get("budget").unwrap_or(&0) + played.gave_up.get("open").unwrap_or(&0);
            same(&played, &each, &what);
        }
    }
    assert!(refused > 10_000, "the machines did something: {refused}");
}

/// In a plain world of clients who are all alike, what can come of a budget, a breaker or a rate is all that it ever decides by.
#[test]
fn a_few_words_decide_as_the_machines_of_the_core_do() {
    let control = Control::default();
    let seed = crate::engine::draws::test_seed();
    let mut luck = Stream::new(seed);
    let exponential = Policy::exponential(50 * MS).cap(2 * SEC);
    let policies = [
        exponential.max_attempts(60),
        exponential.jitter(Jitter::None).max_attempts(40),
        exponential.jitter(Jitter::Decorrelated).max_elapsed(40 * SEC).unlimited_attempts(),
        Policy::constant(3 * SEC).max_pushback(SEC).max_attempts(30),
        Policy::immediate().max_attempts(9).spread(SEC),
    ];
    let (mut refused, mut connected, mut kinds) = (0, 0, [0; 6]);
    for round in 0..240 {
        let mut one_of = |numbers: &[u32]| numbers[luck.below(numbers.len() as u64) as usize];
        let mut service = Service::herd(600, f64::from(one_of(&[10, 30, 60])));
        service.arrivals = Arrivals::Herd { clients: 600, window: MS * one_of(&[0, 0, 700]) };
        service.network = Network::round_trip(MS * one_of(&[0, 10, 31]));
        service.server.queue = Some(u64::from(one_of(&[1, 30])));
        service.processes = Some(600);
        let budget = BudgetSettings::Ratio {
            ratio: f64::from(one_of(&[0, 1, 9])) / 10.0,
            min_per_second: one_of(&[1, 2]),
            window: MS * one_of(&[500, 1000, 5000, 7000]),
        };
        let time = BreakerWindow::Time(MS * one_of(&[300, 2000, 10_000]));
        let breaker = BreakerSettings {
            open_for: MS * one_of(&[1, 300, 2000]),
            factor: f64::from(one_of(&[10, 10, 15, 40])) / 10.0,
            jitter: f64::from(one_of(&[0, 5, 10])) / 10.0,
            open_at_most: [None, Some(6 * SEC)][one_of(&[0, 1]) as usize],
            close_after: one_of(&[1, 3]),
            ramp: MS * one_of(&[0, 900]),
            window: [time, BreakerWindow::Calls(one_of(&[20, 40]))][one_of(&[0, 0, 1]) as usize],
            ..BreakerSettings::default()
        };
        let window = BreakerSettings {
            share: [None, Some(0.4), Some(1.0)][one_of(&[0, 1, 2]) as usize],
            failures: [Some(4), Some(11)][one_of(&[0, 1]) as usize],
            min_calls: [None, Some(2), Some(7)][one_of(&[0, 1, 2]) as usize],
            consecutive: [None, None, Some(6)][one_of(&[0, 1, 2]) as usize],
            ..breaker
        };
        let row = BreakerSettings { consecutive: Some(one_of(&[1, 3, 5])), ..breaker };
        let limit = Limit::rate(one_of(&[1, 2, 7])).per(MS * one_of(&[300, 1000, 4000])).burst(one_of(&[1, 2, 5]));
        let (budget, row, window) = (Some(budget), Some(row), Some(window));
        let (budget, breaker, limit) = match round % 6 {
            0 => (budget, None, None),
            1 => (None, row, None),
            2 => (None, window, None),
            3 => (budget, row, None),
            4 => (budget, window, None),
            _ => (None, None, Some(limit.settings())),
        };
        let wait_while_open = one_of(&[0, 1, 1]) == 1;
        let protection = Protection { budget, breaker, limit, wait_while_open, ..Protection::default() };
        let policy = policies[one_of(&[0, 1, 2, 3, 4]) as usize];
        let contender = Contender::new("own", policy).protected(protection);
        let what = format!("{service:?} {contender:?}");
        let draws = Draws::new(seed, None);
        let day = 86_400_000_000_000;
        let task = Task { service: &service, contender: &contender, draws, limit: day, control: &control };
        let cast = Cast::new(&task);
        let role = cast.0.only().expect("one population");
        let kit = own::Kit::of(role, &players::upstream_of_one(role), task.limit);
        if let Some(kit) = &kit {
            kinds[kit.kind()] += 1;
        }
        let brief = guarded::run_as(&task, Calendar::new(), cast, Kept::Own);
        same(&brief, &guarded::run_as(&task, Calendar::new(), Cast::new(&task), Kept::All), &what);
        let of_machines = ["budget", "open", "shed"].map(|reason| brief.gave_up.get(reason).unwrap_or(&0));
        refused += of_machines.into_iter().sum::<u64>();
        connected += 600 - brief.gave_up.values().sum::<u64>();
    }
    assert!(kinds.iter().all(|runs| *runs > 10), "runs of each kind: {kinds:?}");
    assert!(refused > 10_000 && connected > 10_000, "{refused} were refused, {connected} were not");
}
