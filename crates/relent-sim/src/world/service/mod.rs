//! Clients that call a server: the exact engines.
//!
//! [`predict`] serves every queue in which the fate of a request is known when it arrives (first come, first served):
//! one event an attempt, also for clients who each have a budget, a breaker or a rate of their own, [`players`]. [`dispatch`]
//! serves the others (newest first, dropping expired work) with an event for each thing that happens. [`guarded`] is the first
//! of them for clients that share budgets, breakers and limits, or hedge, whom it keeps in one of two ways: [`sharers`], or
//! everything of everybody, [`held`].

pub(crate) mod cast;
pub(crate) mod chain;
mod chances;
pub(crate) mod clients;
pub(crate) mod dispatch;
pub(crate) mod door;
mod flights;
pub(crate) mod gate;
pub(crate) mod guarded;
mod held;
pub(crate) mod manners;
mod players;
mod predict;
mod sharers;
mod starts;
pub(crate) mod work;

use crate::{
    engine::{calendar::Calendar, task::Task},
    outcome::run::Run,
    scenario::Service,
};

/// One run: by [`predict`] where that can be foreseen, else by [`dispatch`].
pub(crate) fn run(task: &Task<'_>) -> Run {
    if !task.contender.layers.is_empty() {
        return chain::run(task);
    }
    if task.contender.has_upstream() {
        return guarded::run(task, Calendar::new());
    }
    if needs_dispatch(task.service) { dispatch::run(task) } else { predict::run(task, Calendar::new()) }
}

/// Whether the fate of a request depends on what comes after it.
pub(crate) const fn needs_dispatch(service: &Service) -> bool {
    service.server.capacity.is_some() && (service.server.lifo || service.server.drop_expired)
}

#[cfg(test)]
mod tests {
    use crate::{
        engine::task::Task,
        world::service::{cast::Cast, dispatch, guarded, guarded::Kept, players, predict, sharers},
    };
    use crate::{
        engine::{
            calendar::{Calendar, Heap},
            control::Control,
            draws::{Draws, Stream},
        },
        outcome::run::Run,
        scenario::{
            Arrivals, Contender, Network, Population, Protection, Rate, RateLimit, RetryAfter, Server, Service,
            Trouble, TroubleKind, Writes,
        },
    };
    use relent::{
        Allowance, BreakerQuirks, BreakerSettings, BreakerWindow, Budget, BudgetSettings, Jitter, Limit, Outcome,
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
            Service {
                server: server(|s| s.exponential = true),
                network: Network::Exponential(20 * MS),
                ..herd.clone()
            },
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
                let task = |contender| Task {
                    service,
                    contender,
                    draws: Draws::new(7, None),
                    limit: u64::MAX,
                    control: &control,
                };
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
        let like_cockatiel = BreakerSettings {
            quirks: BreakerQuirks::Cockatiel,
            share: Some(0.3),
            consecutive: None,
            window,
            ..breaker
        };
        let rate = Some(Limit::rate(1).burst(2).settings());
        vec![
            Protection { budget, ..none },
            Protection {
                budget: Some(BudgetSettings::Ratio { ratio: 0.5, min_per_second: 9, window: 10 * SEC }),
                ..none
            },
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
        let seed = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        println!("RELENT_SEED={seed}");
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
        let seed = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        println!("RELENT_SEED={seed}");
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
}
