//! Clients who share upstreams.

use super::*;

/// A budget of the user's own, by luck, whose withdrawals are told by everything in them.
#[derive(Debug)]
struct Lucky(AtomicU64);

impl Lucky {
    fn note(&self, paid: Withdrawal, what: u64) {
        let noted = relent::rng::mix(self.0.load(Relaxed) ^ paid.mark() ^ u64::from(paid.cost()) ^ what);
        self.0.store(noted, Relaxed);
    }
}

impl Allowance for Lucky {
    fn name(&self) -> &str {
        "lucky"
    }

    fn withdraw(&self, _: Timestamp, _: Outcome, draw: u64) -> Option<Withdrawal> {
        // Some are too large for the word in which most are kept.
        let paid = Withdrawal::new((draw >> 40) as u32 >> (draw % 24), draw >> (draw % 60));
        (!draw.is_multiple_of(9)).then_some(paid)
    }

    fn retry(&self, _: Timestamp, paid: Withdrawal) {
        self.note(paid, 1);
    }

    fn outcome(&self, _: Timestamp, _: Outcome, paid: Option<Withdrawal>) {
        self.note(paid.unwrap_or(Withdrawal::new(0, 0)), 2);
    }

    fn refund(&self, _: Timestamp, paid: Withdrawal) {
        self.note(paid, 3);
    }

    fn balance(&self, _: Timestamp) -> f64 {
        0.0
    }
}

static LUCKY: Lucky = Lucky(AtomicU64::new(0));

/// Machines that clients share.
fn shared_machines() -> Vec<Protection> {
    let mut all: Vec<Protection> = machines().into_iter().filter(|machines| machines.limit.is_none()).collect();
    let breaker = BreakerSettings { probes: 3, close_after: 3, ..all[7].breaker.unwrap() };
    let share = BreakerSettings { consecutive: None, min_calls: Some(20), ..breaker };
    let in_flight = Some(Budget::in_flight(0.5, 20).settings());
    let lucky = Some(BudgetSettings::Custom(&LUCKY));
    let more = [(None, Some(share), true), (in_flight, Some(breaker), true), (lucky, None, false)];
    let more = [(lucky, Some(share), true), (lucky, Some(share), false)].into_iter().chain(more);
    let more = more.map(|(budget, breaker, wait_while_open)| Protection {
        budget,
        breaker,
        wait_while_open,
        ..Protection::default()
    });
    all.extend(more);
    all
}

/// What is in lanes and in a word of each client is all that there is, whoever shares with whom.
#[test]
fn who_shares_does_what_would_be_done_if_everything_were_kept() {
    let control = Control::default();
    let seed = crate::engine::draws::test_seed();
    let mut luck = Stream::new(seed);
    let (policies, machines) = (policies(), shared_machines());
    let (mut refused, mut compared) = (0, 0);
    for (i, service) in worlds().iter().enumerate().filter(|(_, service)| service.layers == 1) {
        for place in 0..machines.len() * 3 {
            let protection = machines[place % machines.len()];
            let contender = policies[luck.below(policies.len() as u64) as usize].clone().protected(protection);
            let processes = [1, 1, 3, 40, 100_000][luck.below(5) as usize];
            let zero = Network::Constant(Duration::ZERO);
            let network = if luck.below(5) == 0 { zero } else { Network::round_trip(MS * luck.below(30) as u32) };
            let timeout = [service.timeout, Some(SEC), Some(60 * MS)][luck.below(3) as usize];
            let mut service = Service { processes: Some(processes), network, timeout, ..service.clone() };
            service.server.retry_after =
                [RetryAfter::Silent, RetryAfter::Spread, RetryAfter::Exact][luck.below(3) as usize];
            let mut contender = contender;
            if luck.below(3) == 0 {
                let other = &policies[luck.below(policies.len() as u64) as usize];
                let share = |name, share, policy, protection| Population {
                    protection,
                    processes: Some(processes.min(7)),
                    ..Population::share(name, share, policy)
                };
                let none = Protection::default();
                let other = share("other", 0.3, other.policy, [none, machines[5]][luck.below(2) as usize]);
                contender.populations = vec![share("one", 0.7, contender.policy, protection), other];
            }
            let what = format!("world {i}, {processes} processes, {contender:?}");
            let draws = Draws::new(seed, None);
            let task = Task { service: &service, contender: &contender, draws, limit: u64::MAX, control: &control };
            let cast = Cast::new(&task);
            assert!(sharers::can_share(&cast.0), "{what}");
            let foresees = players::foresees(&task, &cast.0);
            LUCKY.0.store(0, Relaxed);
            let shared = guarded::run_as(&task, Calendar::new(), cast, Kept::Sharers);
            let noted = LUCKY.0.swap(0, Relaxed);
            let whole = guarded::run_as(&task, Calendar::new(), Cast::new(&task), Kept::All);
            // At the end of a stream some have something under way, which is given back when it is dropped; and who has a
            // budget alone may be told of it ahead of the others.
            let in_order = !service.is_open() && !foresees;
            assert!(!in_order || noted == LUCKY.0.load(Relaxed), "{what}: what was withdrawn");
            refused += shared.gave_up.get("budget").unwrap_or(&0) + shared.gave_up.get("open").unwrap_or(&0);
            compared += 1;
            same(&shared, &whole, &what);
        }
    }
    assert!(refused > 10_000 && compared > 200, "the machines did something: {refused} in {compared} runs");
}

/// What counts first attempts and retries is told of retries ahead of time, but not before all first attempts.
#[test]
fn what_a_budget_counts_is_counted_in_order() {
    let control = Control::default();
    let seed = crate::engine::draws::test_seed();
    let mut luck = Stream::new(seed);
    let exponential = Policy::exponential(50 * MS).cap(2 * SEC);
    let policies = [
        exponential.unlimited_attempts(),
        exponential.jitter(Jitter::None).max_attempts(20),
        Policy::immediate().max_attempts(9).spread(SEC),
    ];
    let (mut refused, mut allowed) = (0, 0);
    for _ in 0..40 {
        let mut one_of = |numbers: &[u32]| numbers[luck.below(numbers.len() as u64) as usize];
        let window = MS * one_of(&[0, 0, 700]);
        let mut service = Service::herd(2000, 300.0);
        service.arrivals = Arrivals::Herd { clients: 2000, window };
        service.network = Network::round_trip(MS * one_of(&[0, 10, 31]));
        service.processes = Some(u64::from(one_of(&[1, 1, 3, 40])));
        service.server.queue = Some(u64::from(one_of(&[1, 100])));
        service.server.workers = one_of(&[1, 3]);
        let budget = BudgetSettings::Ratio {
            ratio: f64::from(one_of(&[1, 5, 10])) / 10.0,
            min_per_second: one_of(&[1, 30, 1000]),
            window: SEC * one_of(&[1, 10]),
        };
        let policy = policies[one_of(&[0, 1, 2]) as usize];
        let contender = Contender::new("counts", policy);
        let contender = contender.protected(Protection { budget: Some(budget), ..Protection::default() });
        let what = format!("{service:?} {contender:?}");
        let draws = Draws::new(seed, None);
        let task = Task { service: &service, contender: &contender, draws, limit: u64::MAX, control: &control };
        let run = |kept| guarded::run_as(&task, Calendar::new(), Cast::new(&task), kept);
        let shared = run(Kept::Sharers);
        same(&shared, &run(Kept::All), &what);
        refused += shared.gave_up.get("budget").unwrap_or(&0);
        allowed += 2000 - shared.gave_up.get("budget").unwrap_or(&0);
    }
    assert!(refused > 10_000 && allowed > 10_000, "{refused} were refused, {allowed} were not");
}

/// Who is put off while a breaker is shut would have asked in vain, and what was sent before it tripped tells it nothing.
#[test]
fn who_only_trips_breakers_does_what_would_be_done_if_everything_were_kept() {
    let control = Control::default();
    let seed = crate::engine::draws::test_seed();
    let mut luck = Stream::new(seed);
    let exponential = Policy::exponential(50 * MS).cap(2 * SEC);
    let policies = [
        exponential.max_attempts(60),
        exponential.jitter(Jitter::Decorrelated).max_elapsed(20 * SEC),
        exponential.jitter(Jitter::None).max_attempts(20).max_pushback(SEC),
        Policy::immediate().max_attempts(30).spread(SEC),
    ];
    let (mut refused, mut connected, mut attempts) = (0, 0, 0.0);
    for _ in 0..160 {
        let mut one_of = |numbers: &[u32]| numbers[luck.below(numbers.len() as u64) as usize];
        let mut service = Service::herd(300, f64::from(one_of(&[10, 30, 100])));
        service.arrivals = Arrivals::Herd { clients: 300, window: MS * one_of(&[0, 0, 700]) };
        service.network = Network::round_trip(MS * one_of(&[0, 10, 31]));
        service.processes = Some(u64::from(one_of(&[1, 1, 3, 40])));
        service.server.queue = Some(u64::from(one_of(&[1, 15, 130])));
        service.server.workers = one_of(&[1, 3]);
        let window = [BreakerWindow::Time(MS * one_of(&[300, 10_000])), BreakerWindow::Calls(one_of(&[20, 60]))]
            [one_of(&[0, 0, 1]) as usize];
        let quirks = [BreakerQuirks::None, BreakerQuirks::Gobreaker, BreakerQuirks::Cockatiel];
        let close_after = one_of(&[1, 1, 3]);
        let breaker = BreakerSettings {
            consecutive: [Some(5), None][one_of(&[0, 1]) as usize],
            share: Some(f64::from(one_of(&[3, 5, 9])) / 10.0),
            min_calls: [None, Some(3)][one_of(&[0, 1]) as usize],
            slow_after: [None, Some(900 * MS)][one_of(&[0, 0, 1]) as usize],
            open_for: MS * one_of(&[20, 300, 1000]),
            factor: f64::from(one_of(&[10, 10, 15])) / 10.0,
            jitter: f64::from(one_of(&[0, 0, 5])) / 10.0,
            probes: one_of(&[1, 1, 4]),
            close_after,
            reopen_share: [None, Some(0.5)][one_of(&[0, 0, 1]) as usize],
            probe_again_after: [None, Some(5 * MS)][one_of(&[0, 0, 1]) as usize],
            quirks: quirks[one_of(&[0, 0, 0, 1, 2]) as usize],
            window,
            ..BreakerSettings::default()
        };
        let wait_while_open = one_of(&[0, 1, 1, 1]) == 1;
        let protection = Protection { breaker: Some(breaker), wait_while_open, ..Protection::default() };
        let contender = Contender::new("trips", policies[one_of(&[0, 1, 2, 3]) as usize]).protected(protection);
        let what = format!("{service:?} {contender:?}");
        let draws = Draws::new(seed, None);
        let day = 86_400_000_000_000;
        let task = Task { service: &service, contender: &contender, draws, limit: day, control: &control };
        let (cast, starts) = Cast::new(&task);
        assert!(tripping::only_trip(&task, &cast, &starts), "{what}");
        let run = |kept| guarded::run_as(&task, Calendar::new(), Cast::new(&task), kept);
        let brief = run(Kept::Trippers);
        same(&brief, &run(Kept::All), &what);
        same(&brief, &guarded::run_as(&task, Heap::default(), (cast, starts), Kept::Trippers), &what);
        refused += brief.gave_up.get("open").unwrap_or(&0);
        connected += 300 - brief.gave_up.values().sum::<u64>();
        attempts += brief.figures.get(crate::scenario::Figure::AttemptsPerClient).unwrap_or(0.0) / 160.0;
    }
    assert!(refused > 1_500 && connected > 10_000, "{refused} were refused, {connected} were not");
    assert!(attempts > 1.5, "{attempts} attempts a client");
}
