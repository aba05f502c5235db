//! What holds for every budget, whatever happens to it.
//!
//! A failing case prints its seed; `RELENT_SEED` replays it.

use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};
use relent::{Budget, BudgetSettings, Outcome, Timestamp, Verdict, Withdrawal, rng::draw, rng::scale};
use std::{collections::VecDeque, sync::Mutex, thread, time::Duration};

const FAILED: Outcome = Outcome::Failure(Verdict::Transient);
const SLOTS: u64 = 24;

pub(crate) fn seed() -> Option<u64> {
    std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok())
}

pub(crate) fn check<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let rng_seed = seed().map_or(RngSeed::Random, RngSeed::Fixed);
    let config = Config { cases: 500, failure_persistence: None, rng_seed, ..Config::default() };
    println!("seed: {:?}", config.rng_seed);
    if let Err(failure) = TestRunner::new(config).run(&strategy, test) {
        panic!("{failure}");
    }
}

/// A step of a trace: let time pass (or step back), then do something.
#[derive(Clone, Copy, Debug)]
struct Step {
    nanos: i64,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Calls(u8),
    Retries(u8),
    Refund,
}

fn step() -> impl Strategy<Value = Step> {
    let nanos = prop_oneof![
        4 => Just(0),
        4 => 0..3_000_000_000_i64,
        1 => 0..40_000_000_000_i64,
        1 => -20_000_000_000..0_i64,
        1 => Just(3600 * 24 * 365 * 1_000_000_000),
    ];
    let what = prop_oneof![(1..40_u8).prop_map(What::Calls), (1..20_u8).prop_map(What::Retries), Just(What::Refund),];
    (nanos, what).prop_map(|(nanos, what)| Step { nanos, what })
}

/// Remembers everything, and counts it all each time.
struct Naive {
    billionths: u128,
    per_second: u128,
    window: u64,
    calls: VecDeque<u64>,
    retries: Vec<(u64, Withdrawal)>,
}

impl Naive {
    fn allowed(&self, calls: usize) -> u128 {
        self.billionths * calls as u128 + self.per_second * u128::from(self.window)
    }

    /// Whether the window that ends now, longer by a slot for retries and shorter by one for calls, has room.
    fn has_room(&self, now: u64, slack: u64) -> bool {
        let after = |times: &mut dyn Iterator<Item = u64>, length: u64| {
            times.filter(|at| now < length || *at > now - length).count()
        };
        let calls = after(&mut self.calls.iter().copied(), self.window - slack);
        let retries = after(&mut self.retries.iter().map(|(at, _)| *at), self.window + slack);
        (retries as u128 + 1) * 1_000_000_000 <= self.allowed(calls)
    }
}

/// The sentence of the documentation, both ways: what is granted is within the window that ends there, exactly; and what
/// is refused would not have fitted into a window that differs by a slot.
#[test]
fn a_ratio_is_kept_in_every_window_and_used_up_to_a_slot() {
    let settings =
        (0..=1000_u32, 0..4_u32, 1..20_u64).prop_filter("never a retry", |(share, floor, _)| share + floor > 0);
    check((settings, prop::collection::vec(step(), 1..40), any::<u32>()), |((share, floor, seconds), steps, start)| {
        let window = seconds * SLOTS * 40_000_000;
        let budget = BudgetSettings::Ratio {
            ratio: f64::from(share) / 1000.0,
            min_per_second: floor,
            window: Duration::from_nanos(window),
        };
        let budget = budget.budget().unwrap();
        let mut naive = Naive {
            billionths: u128::from(share) * 1_000_000,
            per_second: u128::from(floor),
            window,
            calls: VecDeque::new(),
            retries: Vec::new(),
        };
        let (mut told, mut latest) = (u64::from(start) * 1000, 0);
        for Step { nanos, what } in steps {
            told = told.saturating_add_signed(nanos);
            // Time is the latest that anybody told.
            latest = told.max(latest);
            let now = Timestamp::from_nanos(told);
            match what {
                What::Calls(many) => {
                    for _ in 0..many {
                        prop_assert!(budget.start(now, 0));
                        naive.calls.push_back(latest);
                    }
                }
                What::Retries(many) => {
                    for _ in 0..many {
                        let granted = budget.withdraw(now, FAILED, 0);
                        if granted.is_some() {
                            prop_assert!(naive.has_room(latest, 0), "over-granted at {latest}");
                        } else {
                            prop_assert!(!naive.has_room(latest, window / SLOTS), "refused for nothing at {latest}");
                        }
                        naive.retries.extend(granted.map(|paid| (latest, paid)));
                    }
                }
                What::Refund => {
                    if let Some((_, paid)) = naive.retries.pop() {
                        budget.refund(now, paid);
                    }
                }
            }
            prop_assert!(budget.balance(now) >= 0.0, "no debt");
        }
        Ok(())
    });
}

#[test]
fn shares_are_exact() {
    for percent in 1..=100 {
        let budget = Budget::ratio(f64::from(percent) / 100.0).min_per_second(0);
        let granted = (0..1000).filter(|_| budget.start(Timestamp::ZERO, 0)).count();
        assert_eq!(granted, 1000);
        let granted = (0..2000).filter(|_| budget.withdraw(Timestamp::ZERO, FAILED, 0).is_some()).count();
        assert_eq!(granted, percent as usize * 10, "{percent} %");
    }
}

/// tower's budget loops over every window that was missed: 1.8 s after a year.
#[test]
fn a_year_of_idleness_costs_nothing_and_saves_nothing_up() {
    let budget = Budget::ratio(0.5);
    let mut now = Timestamp::from_nanos(1);
    for year in 0..50 {
        (0..100).for_each(|_| _ = budget.start(now, 0));
        let granted = (0..1000).filter(|_| budget.withdraw(now, FAILED, 0).is_some()).count();
        assert_eq!(granted, 60, "year {year}");
        now = now + Duration::from_secs(3600 * 24 * 365);
    }
}

fn any_budget() -> impl Strategy<Value = BudgetSettings> {
    let float = || prop_oneof![0.0..=1.0, any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), Just(-0.0), Just(2.0)];
    let time = || prop_oneof![any::<u64>().prop_map(Duration::from_nanos), (0..100_u64).prop_map(Duration::from_secs)];
    let quota = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    prop_oneof![
        (float(), any::<u32>(), time()).prop_map(|(ratio, min_per_second, window)| BudgetSettings::Ratio {
            ratio,
            min_per_second,
            window
        }),
        quota.prop_map(|(capacity, cost, throttling_cost, timeout_cost)| {
            BudgetSettings::AwsQuota(relent::AwsQuota { capacity, cost, throttling_cost, timeout_cost })
        }),
        (0..1002_u32, float()).prop_map(|(max_tokens, token_ratio)| BudgetSettings::Grpc { max_tokens, token_ratio }),
        (time(), any::<u32>(), float()).prop_map(|(ttl, min_per_second, ratio)| BudgetSettings::Finagle {
            ttl,
            min_per_second,
            ratio
        }),
        (float(), any::<u32>(), any::<bool>(), any::<bool>()).prop_map(|(share, floor, sleeping, inclusive)| {
            BudgetSettings::InFlight { share, floor, sleeping, inclusive }
        }),
        (float(), time(), float()).prop_map(|(k, window, at_most)| BudgetSettings::Throttle { k, window, at_most }),
    ]
}

#[test]
fn nothing_panics_whatever_is_asked_for() {
    check((any_budget(), any_budget(), any::<u64>()), |(settings, other, seed)| {
        let Ok(budget) = settings.budget() else {
            let invalid = settings.budget().unwrap_err();
            prop_assert!(!invalid.key.is_empty() && !invalid.problem.is_empty() && !invalid.hint.is_empty());
            return Ok(());
        };
        let mut paid = Vec::new();
        for k in 0..200 {
            let now = match draw(seed, 3 * k) % 8 {
                0 => Timestamp::MAX,
                1 => Timestamp::ZERO,
                _ => Timestamp::from_nanos(draw(seed, 3 * k + 1)),
            };
            let random = draw(seed, 3 * k + 2);
            match random % 7 {
                0 | 1 => _ = budget.start(now, random),
                2 | 3 => paid.extend(budget.withdraw(now, FAILED, random)),
                4 => budget.outcome(now, Outcome::Success, paid.pop()),
                5 => _ = paid.pop().map(|paid| budget.refund(now, paid)),
                _ => budget.outcome(now, Outcome::TimedOut, None),
            }
            prop_assert!(budget.balance(now).is_finite());
        }
        if let Ok(other) = other.budget() {
            other.adopt(&budget);
            prop_assert!(other.balance(Timestamp::MAX).is_finite());
        }
        budget.reset(Timestamp::from_nanos(seed));
        Ok(())
    });
}

/// Half a million operations on each of two threads, at one moment: what is granted is what one thread would have been.
#[test]
fn threads_are_granted_no_more_than_one_thread_would_be() {
    static BUDGET: Budget = Budget::ratio(0.51).min_per_second(0);
    let now = Timestamp::from_nanos(5);
    let work = move |seed: u64| {
        let (mut calls, mut net, mut held) = (0_i64, 0_i64, Vec::new());
        for k in 0..500_000 {
            match scale(draw(seed, k), 20) {
                0..8 => {
                    BUDGET.start(now, 0);
                    calls += 1;
                }
                8..19 => {
                    let paid = BUDGET.withdraw(now, FAILED, 0);
                    net += i64::from(paid.is_some());
                    held.extend(paid);
                }
                _ => {
                    if let Some(paid) = held.pop() {
                        BUDGET.refund(now, paid);
                        net -= 1;
                    }
                }
            }
        }
        (calls, net)
    };
    let seed = seed().unwrap_or(7);
    let other = thread::spawn(move || work(seed + 1));
    let (mine, theirs) = (work(seed), other.join().unwrap());
    let (calls, mut net) = (mine.0 + theirs.0, mine.1 + theirs.1);
    assert!(net * 100 <= calls * 51, "{net} retries of {calls} calls");
    net += (0..1_000_000).filter(|_| BUDGET.withdraw(now, FAILED, 0).is_some()).count() as i64;
    assert_eq!(net, calls * 51 / 100, "and nothing was lost");
}

/// The same while slots turn, with clocks that differ: each window is within its share, by what the threads wrote down.
#[test]
fn threads_whose_clocks_differ_keep_every_window() {
    let budget = Budget::ratio(0.1).min_per_second(0).window(Duration::from_millis(24));
    let log: Mutex<Vec<(u64, bool)>> = Mutex::new(Vec::new());
    let work = |seed: u64| {
        let mut now = 0;
        let mut mine = Vec::new();
        for k in 0..100_000 {
            now += scale(draw(seed, k), 2_000);
            let at = Timestamp::from_nanos(now);
            if draw(seed, k).is_multiple_of(4) {
                budget.start(at, 0);
                mine.push((now, false));
            } else if budget.withdraw(at, FAILED, 0).is_some() {
                mine.push((now, true));
            }
        }
        log.lock().unwrap().extend(mine);
    };
    thread::scope(|scope| {
        scope.spawn(|| work(1));
        scope.spawn(|| work(2));
    });
    let log = log.into_inner().unwrap();
    let retries = log.iter().filter(|(_, retry)| *retry).count();
    let calls = log.len() - retries;
    assert!(retries * 10 <= calls, "{retries} of {calls}");
    assert!(retries * 20 >= calls, "{retries} of {calls}: most of what is allowed is granted");
}

#[test]
fn a_withdrawal_is_refunded_where_it_was_made() {
    let budget = Budget::ratio(0.1).min_per_second(1);
    let now = Timestamp::from_nanos(3_000_000_000);
    let paid: Vec<Withdrawal> = (0..20).filter_map(|_| budget.withdraw(now, FAILED, 0)).collect();
    assert_eq!((paid.len(), budget.balance(now)), (10, 0.0));
    let later = now + Duration::from_secs(6);
    budget.refund(later, paid[0]);
    assert_eq!(budget.balance(later), 1.0);
    let much_later = now + Duration::from_secs(600);
    budget.refund(much_later, paid[1]);
    assert_eq!(budget.balance(much_later), 10.0, "the window had forgotten it");
}

/// But of a throttle, which counts what was wanted.
#[test]
fn what_is_refunded_is_as_if_it_had_never_been_withdrawn() {
    let now = Timestamp::from_nanos(3_000_000_000);
    for budget in [
        Budget::ratio(0.2),
        Budget::aws_quota_2_0(),
        Budget::aws_quota_2_1(),
        Budget::grpc(10, 0.1),
        Budget::finagle(0.2).min_per_second(1),
        Budget::in_flight(0.2, 3),
    ] {
        let before = budget.balance(now);
        let paid: Vec<Withdrawal> = (0..3).filter_map(|_| budget.withdraw(now, FAILED, 0)).collect();
        assert_eq!(paid.len(), 3, "{}", budget.name());
        paid.into_iter().for_each(|paid| budget.refund(now, paid));
        assert_eq!(budget.balance(now), before, "{}", budget.name());
    }
}

#[test]
fn the_quota_gives_back_what_the_last_retry_cost() {
    let (budget, now) = (Budget::aws_quota_2_1(), Timestamp::ZERO);
    let _first = budget.withdraw(now, FAILED, 0);
    let second = budget.withdraw(now, Outcome::Failure(Verdict::After(Duration::ZERO)), 0);
    assert_eq!(budget.balance(now), 481.0);
    budget.outcome(now, Outcome::Success, second);
    assert_eq!(budget.balance(now), 486.0);
}

#[test]
fn retries_in_flight_come_back_however_they_end() {
    for sleeping in [true, false] {
        let (budget, now) = (Budget::in_flight(0.2, 3).count_sleeping(sleeping), Timestamp::ZERO);
        let mut paid: Vec<Withdrawal> = Vec::new();
        for _ in 0..100 {
            let Some(one) = budget.withdraw(now, FAILED, 0) else { break };
            budget.retry(now, one);
            paid.push(one);
        }
        assert_eq!((paid.len(), budget.balance(now)), (3, 0.0));
        for (one, outcome) in paid.into_iter().zip([Outcome::Dropped, FAILED, Outcome::Success]) {
            budget.outcome(now, outcome, Some(one));
        }
        assert_eq!(budget.balance(now), 3.0);
        let one = budget.withdraw(now, FAILED, 0).unwrap();
        budget.refund(now, one);
        assert_eq!(budget.balance(now), 3.0);
    }
}

#[test]
fn a_throttle_lets_through_as_much_as_is_accepted_and_the_same_again() {
    let budget = Budget::throttle(2.0);
    let (mut through, mut accepted) = (0_u32, 0_u32);
    for k in 0..200_000_u32 {
        let now = Timestamp::from_nanos(u64::from(k) * 10_000_000);
        if !budget.start(now, draw(3, k)) {
            continue;
        }
        through += 1;
        // The far side does ten a second of the hundred that are wanted.
        if accepted <= k / 10 {
            accepted += 1;
            budget.outcome(now, Outcome::Success, None);
        } else {
            budget.outcome(now, Outcome::Failure(Verdict::Overloaded), None);
        }
    }
    let ratio = f64::from(through) / f64::from(accepted);
    assert!((1.8..2.3).contains(&ratio), "{through} let through, {accepted} accepted");
    assert!(accepted > 19_000, "{accepted} of 20,000: nothing that could be done is refused");
}

#[test]
fn a_new_window_keeps_the_share_of_the_old_one() {
    let now = Timestamp::from_nanos(1_000_000_000_000);
    let old = Budget::ratio(0.1).min_per_second(0);
    (0..1000).for_each(|_| _ = old.start(now, 0));
    (0..40).for_each(|_| _ = old.withdraw(now, FAILED, 0));
    let same = Budget::ratio(0.2).min_per_second(0);
    same.adopt(&old);
    assert_eq!(same.balance(now), 160.0);
    let half = Budget::ratio(0.1).min_per_second(0).window(Duration::from_secs(5));
    half.adopt(&old);
    assert!((29.0..=30.0).contains(&half.balance(now)), "rounded against the retries");
    let other = Budget::aws_quota_2_0();
    other.adopt(&old);
    assert_eq!(other.balance(now), 500.0, "another kind starts afresh");
}

#[test]
fn state_is_small() {
    // What every call changes has a line of the cache to itself.
    assert!(size_of::<Budget>() <= 512, "{}", size_of::<Budget>());
    assert!(size_of::<relent::Limit>() <= 192, "{}", size_of::<relent::Limit>());
}

#[test]
fn what_makes_no_sense_is_named() {
    let key = |settings: BudgetSettings| settings.budget().unwrap_err().key;
    let (second, ratio) = (Duration::from_secs(1), |ratio| BudgetSettings::Ratio {
        ratio,
        min_per_second: 1,
        window: Duration::from_secs(1),
    });
    for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(key(ratio(share)), "ratio");
        assert_eq!(key(BudgetSettings::InFlight { share, floor: 3, sleeping: true, inclusive: false }), "in_flight");
    }
    for window in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        assert_eq!(key(BudgetSettings::Ratio { ratio: 0.1, min_per_second: 1, window }), "window");
        assert_eq!(key(BudgetSettings::Throttle { k: 2.0, window, at_most: 1.0 }), "window");
        assert_eq!(key(BudgetSettings::Finagle { ttl: window, min_per_second: 1, ratio: 0.1 }), "ttl");
    }
    assert_eq!(key(BudgetSettings::Ratio { ratio: 0.1, min_per_second: u32::MAX, window: second }), "min_per_second");
    assert_eq!(key(BudgetSettings::Ratio { ratio: 0.0, min_per_second: 0, window: second }), "ratio");
    for k in [0.0, 0.99, f64::NAN, f64::INFINITY] {
        assert_eq!(key(BudgetSettings::Throttle { k, window: second, at_most: 1.0 }), "throttle");
    }
    assert_eq!(key(BudgetSettings::Grpc { max_tokens: 0, token_ratio: 0.1 }), "max_tokens");
    assert_eq!(key(BudgetSettings::Grpc { max_tokens: 10, token_ratio: 0.0 }), "token_ratio");
}
