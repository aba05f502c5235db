//! A configuration that is read again: of every kind of machine, what did not change keeps its state, and what did is rescaled.

use relent::{
    Admission, Arrival, AwsQuota, Breaker, BreakerQuirks, BreakerSettings, BreakerState, BreakerWindow, Budget,
    BudgetSettings, Hedge, Limit, LimitAnswer, LimitSettings, Outcome, Pacer, Timestamp, Turn, Upstream, Verdict,
};
use std::time::Duration;

const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const NOW: Timestamp = Timestamp::from_nanos(1_000_000_000_000);
const FAILED: Outcome = Outcome::Failure(Verdict::Transient);

/// What is left of a budget after `use_up`, under its own settings and under others.
fn kept(of: &Budget, use_up: impl Fn(&Budget), others: &[&Budget]) -> Vec<f64> {
    use_up(of);
    let same = of.settings().budget().unwrap();
    same.adopt(of);
    let mut left = vec![of.balance(NOW), same.balance(NOW)];
    for other in others {
        other.adopt(of);
        left.push(other.balance(NOW));
    }
    left
}

fn withdraw(budget: &Budget, times: u32) {
    (0..times).for_each(|_| _ = budget.withdraw(NOW, FAILED, 0));
}

#[test]
fn budgets_of_tokens_are_scaled_by_what_they_hold() {
    let quota = |capacity| BudgetSettings::AwsQuota(AwsQuota { capacity, ..AwsQuota::V2_0 }).budget().unwrap();
    let left = kept(&quota(500), |quota| withdraw(quota, 20), &[&quota(1000), &quota(50), &Budget::aws_quota_2_1()]);
    assert_eq!(left, [400.0, 400.0, 800.0, 40.0, 400.0], "four fifths, whatever a retry costs now");
    let failures = |budget: &Budget| (0..3).for_each(|_| budget.outcome(NOW, FAILED, None));
    let left = kept(&Budget::grpc(10, 0.1), failures, &[&Budget::grpc(20, 0.1), &Budget::grpc(10, 0.5)]);
    assert_eq!(left, [7.0, 7.0, 14.0, 7.0]);
}

#[test]
fn budgets_of_shares_keep_what_they_counted() {
    let calls = |budget: &Budget| {
        (0..1000).for_each(|_| _ = budget.start(NOW, 0));
        withdraw(budget, 40);
    };
    let finagle = |ratio| Budget::finagle(ratio).min_per_second(0);
    let twice = Budget::finagle(0.1).min_per_second(0).window(20 * SEC);
    let left = kept(&finagle(0.1), calls, &[&finagle(0.2), &Budget::finagle(0.1).min_per_second(2), &twice]);
    assert_eq!(left, [60.0, 60.0, 160.0, 80.0, 120.0], "a share, a reserve of 2 a second for 10 s, twice the time");

    let ratio = |ratio| Budget::ratio(ratio).min_per_second(0);
    let left = kept(&ratio(0.1), calls, &[&ratio(0.3), &ratio(0.1).min_per_second(3), &ratio(0.1).window(20 * SEC)]);
    assert_eq!(left, [60.0, 60.0, 260.0, 90.0, 120.0]);
}

#[test]
fn a_throttle_goes_on_refusing() {
    let nothing_is_accepted = |throttle: &Budget| (0..99).for_each(|_| _ = throttle.start(NOW, u64::MAX));
    let refused = Budget::throttle(2.0);
    nothing_is_accepted(&refused);
    for other in [Budget::throttle(2.0), Budget::throttle(5.0), Budget::throttle(2.0).window(60 * SEC)] {
        other.adopt(&refused);
        assert!(other.rejection(NOW) > 0.97, "{:?}: {}", other.settings(), other.rejection(NOW));
    }
    let accepted = Budget::throttle(2.0);
    (0..100).for_each(|_| {
        accepted.start(NOW, 0);
        accepted.outcome(NOW, Outcome::Success, None);
    });
    (0..100).for_each(|_| _ = accepted.start(NOW, u64::MAX));
    let strict = Budget::throttle(1.0);
    strict.adopt(&accepted);
    assert_eq!((accepted.rejection(NOW), strict.rejection(NOW)), (0.0, 100.0 / 201.0), "by the new k");
}

#[test]
fn what_is_in_flight_of_a_budget_stays_there_and_lands_with_an_upstream() {
    let two_fly = |budget: &Budget| withdraw(budget, 2);
    let left = kept(&Budget::in_flight(0.0, 3), two_fly, &[&Budget::in_flight(0.0, 5), &Budget::in_flight(0.0, 1)]);
    assert_eq!(left, [1.0, 1.0, 3.0, 0.0]);
    let old = Upstream::new("bank").budget(Budget::in_flight(0.0, 3));
    withdraw(old.its_budget().unwrap(), 2);
    let new = Upstream::new("bank").budget(Budget::in_flight(0.0, 3)).adopt(&old, NOW);
    assert_eq!(new.snapshot_at(NOW).balance, Some(3.0), "what flies ends on the old one");
}

#[test]
fn another_kind_of_budget_or_limit_starts_afresh() {
    let budgets = || [Budget::ratio(0.1), Budget::aws_quota_2_1(), Budget::grpc(10, 0.1), Budget::in_flight(0.2, 3)];
    for (at, old) in budgets().iter().enumerate() {
        withdraw(old, 2);
        (0..2).for_each(|_| old.outcome(NOW, FAILED, None));
        for (other, new) in budgets().into_iter().enumerate().filter(|(other, _)| *other != at) {
            let fresh = new.balance(NOW);
            new.adopt(old);
            assert_eq!(new.balance(NOW), fresh, "{at} {other}");
        }
    }
    let limits = || [Limit::rate(10), Limit::concurrency(5), Limit::aimd(20), Limit::gradient(20)];
    for (at, old) in limits().iter().enumerate() {
        assert_eq!(old.acquire(NOW), LimitAnswer::Granted);
        for (other, new) in limits().into_iter().enumerate().filter(|(other, _)| *other != at) {
            let fresh = new.snapshot(NOW);
            new.adopt(old, NOW);
            assert_eq!(new.snapshot(NOW), fresh, "{at} {other}");
        }
    }
}

#[test]
fn rates_keep_the_permits_that_were_used() {
    let old = Limit::rate(10).burst(10);
    (0..6).for_each(|_| assert_eq!(old.acquire(NOW), LimitAnswer::Granted));
    let available = |new: &Limit| {
        new.adopt(&old, NOW);
        new.snapshot(NOW).available
    };
    assert_eq!(available(&Limit::rate(10).burst(10)), 4.0);
    assert_eq!(available(&Limit::rate(10).per(60 * SEC).burst(10)), 4.0, "six are used, however long one takes now");
    let small = Limit::rate(10).burst(2);
    assert_eq!(available(&small), 0.0);
    assert_eq!(
        small.acquire(NOW),
        LimitAnswer::Wait(500 * MS),
        "six are used of two: five must come back for the next"
    );
    assert_eq!(available(&Limit::rate(1000).burst(10)), 4.0);
}

#[test]
fn limits_that_find_themselves_stay_where_they_were() {
    let answer = |limit: &Limit, now, outcome, took| limit.permit(now).unwrap().end(now, outcome, took);
    let old = Limit::aimd(100);
    answer(&old, NOW, Outcome::TimedOut, MS);
    assert_eq!(old.snapshot(NOW).limit, Some(90.0));
    let limit_of = |new: &Limit| {
        new.adopt(&old, NOW);
        new.snapshot(NOW).limit.unwrap()
    };
    assert_eq!(limit_of(&Limit::aimd(20)), 90.0, "where it starts says nothing any more");
    assert_eq!(limit_of(&Limit::aimd(20).between(1, 50)), 50.0);
    assert_eq!(limit_of(&Limit::aimd(200).between(95, 300)), 95.0);
    let same = Limit::aimd(100);
    same.adopt(&old, NOW);
    answer(&same, NOW + MS, Outcome::TimedOut, 10 * MS);
    assert_eq!(same.snapshot(NOW).limit, Some(90.0), "it began before the cut, which is known");
}

/// Runs a gradient at a latency, with nothing else in flight; says when it ended.
fn run(limit: &Limit, mut now: Timestamp, answers: u32, took: Duration) -> Timestamp {
    for _ in 0..answers {
        let permit = limit.permit(now).unwrap();
        now = now + took;
        permit.end(now, Outcome::Success, took);
    }
    now
}

#[test]
fn a_gradient_keeps_its_latency_and_its_limit_within_the_new_bounds() {
    let old = Limit::gradient(100);
    // Fifty answers measure the latency, and for almost a minute the limit rises.
    let now = run(&old, NOW, 5_000, 10 * MS);
    let (found, rtt) = (old.snapshot(now).limit.unwrap(), old.min_rtt());
    assert!(found > 200.0 && rtt == Some(10 * MS), "{found} {rtt:?}");
    let same = Limit::gradient(100);
    same.adopt(&old, now);
    assert_eq!((same.snapshot(now).limit, same.min_rtt()), (Some(found), rtt));
    let less = || LimitSettings::Gradient { start: 20, max: 40 }.limit().unwrap();
    let smaller = less();
    smaller.adopt(&old, now);
    assert_eq!((smaller.snapshot(now).limit, smaller.min_rtt()), (Some(40.0), rtt));

    // A minute after the first measurement it measures again, at 3, and what comes back then is within bounds, too.
    let now = run(&old, now, 1_200, 10 * MS);
    let mut now = run(&old, now, 1, 10 * MS);
    while old.snapshot(now).limit != Some(3.0) {
        now = run(&old, now, 1, 10 * MS);
    }
    let measuring = less();
    measuring.adopt(&old, now);
    assert_eq!(measuring.snapshot(now).limit, Some(3.0), "goes on measuring");
    let now = run(&measuring, now, 50, 10 * MS);
    assert_eq!(measuring.snapshot(now).limit, Some(40.0));
}

#[test]
fn the_rate_that_aws_adaptive_found_is_kept() {
    let old = Limit::aws_adaptive();
    let mut now = NOW;
    for k in 0..200 {
        now = now + 10 * MS;
        old.release(now, if k == 150 { Outcome::Failure(Verdict::After(SEC)) } else { Outcome::Success }, MS);
    }
    let new = Limit::aws_adaptive();
    new.adopt(&old, now);
    let state = new.aws_state(now).unwrap();
    assert!(state.enabled && state.bucket.fill_rate > 1.0, "{state:?}");
    assert_eq!(new.aws_state(now), old.aws_state(now));
}

fn fail(breaker: &Breaker, at: Timestamp) {
    _ = breaker.permit(at, 0).unwrap().failed(at, Duration::ZERO, 0);
}

fn succeed(breaker: &Breaker, at: Timestamp) {
    _ = breaker.permit(at, 0).unwrap().succeeded(at, Duration::ZERO, 0);
}

#[test]
fn a_breaker_keeps_each_state_its_trips_and_its_window() {
    let five = || Breaker::consecutive(5).open_for(10 * SEC).factor(2.0);
    let old = five();
    (0..4).for_each(|_| fail(&old, NOW));
    let less = Breaker::consecutive(3).adopt(&old);
    assert_eq!((less.state(), less.snapshot(NOW).failures_in_a_row), (BreakerState::Closed, 4));
    fail(&less, NOW);
    assert_eq!(less.state(), BreakerState::Open, "the fifth is more than three");
    fail(&old, NOW);
    let probe = old.permit(NOW + 10 * SEC, 0).unwrap();
    probe.failed(NOW + 10 * SEC, Duration::ZERO, 0);
    let again = five().adopt(&old);
    let seen = again.snapshot(NOW);
    assert_eq!((seen.state, seen.trips, seen.until), (BreakerState::Open, 2, Some(NOW + 30 * SEC)));
    let probe = again.permit(NOW + 30 * SEC, 0).unwrap();
    probe.failed(NOW + 30 * SEC, Duration::ZERO, 0);
    assert_eq!(again.snapshot(NOW).until, Some(NOW + 70 * SEC), "the third trip, by the trips of the old one");

    let ramp = |time| Breaker::consecutive(1).open_for(SEC).ramp(time);
    let old = ramp(10 * SEC);
    fail(&old, NOW);
    succeed(&old, NOW + SEC);
    let (same, none) = (ramp(10 * SEC).adopt(&old), ramp(Duration::ZERO).adopt(&old));
    let half = NOW + 6 * SEC;
    assert!(same.permit(half, u64::MAX).is_err() && same.permit(half, 0).is_ok(), "half-way up");
    assert!(none.permit(half, u64::MAX).is_ok(), "without a ramp there is nothing to climb");
    assert_eq!(none.state(), BreakerState::Closed);
}

/// Probes that the old one let through tell it what came of them, and nobody tells the new one.
#[test]
fn a_breaker_that_probes_lets_others_probe() {
    let breaker = || Breaker::consecutive(1).open_for(SEC);
    let old = breaker();
    fail(&old, NOW);
    let _never_told = old.permit(NOW + SEC, 0).unwrap();
    let new = breaker().probe_again_after(5 * SEC).adopt(&old);
    let lost = new.permit(NOW + 2 * SEC, 0).unwrap();
    assert!(new.permit(NOW + 3 * SEC, 0).is_err(), "one at a time");
    assert!(new.permit(NOW + 60 * SEC, 0).is_ok(), "a probe that is lost is not waited for");
    std::mem::forget(lost);
}

/// Windows of other layouts hold other things in the same cells.
#[test]
fn a_window_is_kept_only_where_it_means_the_same() {
    let settings = |window, slow_after, quirks| BreakerSettings {
        share: Some(0.5),
        window,
        slow_after,
        quirks,
        min_calls: Some(10),
        ..BreakerSettings::default()
    };
    let tens = BreakerWindow::Time(10 * SEC);
    for quirks in [BreakerQuirks::None, BreakerQuirks::Gobreaker, BreakerQuirks::Cockatiel] {
        // At every place of a ring of 32 slices.
        for start in 0..32 {
            let old = settings(tens, None, quirks).breaker().unwrap();
            let mut now = NOW;
            for _ in 0..start {
                now = now + 2 * SEC;
                succeed(&old, now);
            }
            (0..50).for_each(|_| succeed(&old, now));
            let same = settings(tens, None, quirks).breaker().unwrap().adopt(&old);
            assert_eq!(same.snapshot(now), old.snapshot(now), "{quirks:?} {start}");
            let slow = settings(tens, Some(SEC), quirks).breaker().unwrap().adopt(&old);
            fail(&slow, now);
            let seen = slow.snapshot(now);
            let kept = seen.window_calls > 1;
            assert_eq!(
                (seen.state, seen.window_failures),
                (BreakerState::Closed, 1),
                "{quirks:?} {start}: a success is none"
            );
            assert_eq!(kept, quirks != BreakerQuirks::Cockatiel, "its slices are longer where slow calls count, too");
        }
    }
    let calls = |most| settings(BreakerWindow::Calls(most), None, BreakerQuirks::None).breaker().unwrap();
    let old = calls(100);
    (0..10).for_each(|_| succeed(&old, NOW));
    assert_eq!(calls(100).adopt(&old).snapshot(NOW).window_calls, 10);
    assert_eq!(calls(50).adopt(&old).snapshot(NOW).window_calls, 0);
}

#[test]
fn a_hedge_takes_the_quantile_that_is_asked_for_now() {
    let learned = || {
        let old = Hedge::quantile(0.5);
        (1..=200).for_each(|k| old.observe(k * MS));
        old
    };
    let near = |found: Option<Duration>, expected: Duration| {
        let found = found.unwrap();
        assert!(found >= expected && found <= expected.mul_f64(1.07), "{found:?} for {expected:?}");
    };
    near(learned().delay(), 100 * MS);
    near(Hedge::quantile(0.5).adopt(learned()).delay(), 100 * MS);
    near(Hedge::quantile(0.95).adopt(learned()).delay(), 190 * MS);
    assert_eq!(Hedge::quantile(0.95).min_samples(201).adopt(learned()).delay(), None, "200 are not enough any more");
    assert_eq!(Hedge::after(SEC).adopt(learned()).delay(), Some(SEC));
    let old = Upstream::new("search").hedge(learned());
    let new = Upstream::new("search").hedge(Hedge::quantile(0.95)).adopt(&old, NOW);
    near(new.its_hedge().unwrap().delay(), 190 * MS);
}

#[test]
fn turns_that_were_promised_are_kept_at_another_capacity() {
    let old = Pacer::capacity(10.0);
    (0..10).for_each(|_| _ = old.turn(NOW));
    assert_eq!(Pacer::capacity(10.0).adopt(&old).turn(NOW), Some(1100 * MS));
    assert_eq!(Pacer::capacity(1000.0).adopt(&old).turn(NOW), Some(1001 * MS), "after those that were promised");
    let short = Pacer::capacity(10.0).horizon(SEC).adopt(&old);
    assert_eq!(short.arrive(NOW, 1, false), Turn::Overloaded, "beyond the new horizon");
}

#[test]
fn an_admission_keeps_what_it_learned_and_its_parts() {
    let door = |most| Admission::new().limit(Limit::concurrency(most)).pacer(Pacer::capacity(10.0));
    let old = door(1);
    old.completed(40 * MS);
    let inside = old.permit(NOW, &Arrival::default()).unwrap();
    let refused = (0..3).filter(|_| old.permit(NOW, &Arrival { attempt: 2, ..Arrival::default() }).is_err()).count();
    assert_eq!(refused, 3);
    let new = door(2).adopt(&old, NOW);
    let (before, after) = (old.snapshot(NOW), new.snapshot(NOW));
    assert_eq!((after.accepted, after.turns), (before.accepted, 3));
    assert_eq!((after.offered, after.service_time), (before.offered, Some(40 * MS)));
    assert_eq!(after.offered.of(2), 3);
    assert_eq!(after.pacer, before.pacer, "turns that were promised stay promised");
    assert_eq!(after.limit.unwrap().in_flight, Some(0), "who is inside leaves the old one");
    drop(inside);
    assert_eq!(old.snapshot(NOW).limit.unwrap().in_flight, Some(0));
    let hopeless = Arrival { left: Some(20 * MS), ..Arrival::default() };
    assert!(new.permit(NOW, &hopeless).is_err(), "an answer is known to take 40 ms");
}

/// What was learned by a limit that finds itself, and a clock that goes back, too.
#[test]
fn an_admission_keeps_the_limit_that_was_found() {
    let later = NOW + 60 * SEC;
    let old = Admission::new().limit(Limit::aimd(10));
    let mut inside: Vec<_> = (0..10).map(|_| old.permit(later, &Arrival::default()).unwrap()).collect();
    inside.iter_mut().for_each(|permit| permit.answered(later, Outcome::Success));
    inside.truncate(1);
    let found = old.snapshot(later).limit.unwrap().limit;
    assert!(found > Some(10.0), "{found:?}");
    let new = Admission::new().limit(Limit::aimd(10)).adopt(&old, later);
    let seen = new.snapshot(NOW);
    assert_eq!((seen.limit.unwrap().limit, seen.limit.unwrap().in_flight), (found, Some(0)));
    assert_eq!(seen.offered.of(1), 10, "the newest are those of the latest clock");
}

#[test]
fn an_upstream_keeps_the_limit_that_was_found() {
    for limit in [|| Limit::aimd(10), || Limit::gradient(10)] {
        let old = Upstream::new("bank").limit(limit());
        let its = |bank: &Upstream| bank.its_limit().unwrap().snapshot(NOW);
        let mut taken: Vec<_> = (0..10).filter_map(|_| old.its_limit().unwrap().permit(NOW).ok()).collect();
        taken.drain(1..).for_each(|permit| permit.end(NOW + MS, Outcome::TimedOut, MS));
        assert_eq!(its(&old).in_flight, Some(1));
        let new = Upstream::new("bank").limit(limit()).adopt(&old, NOW);
        assert_eq!((its(&new).limit, its(&new).in_flight), (its(&old).limit, Some(0)));
    }
}

#[test]
fn an_upstream_keeps_its_counts_and_who_listens() {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    };
    let old = Upstream::new("bank").budget(Budget::ratio(0.1)).breaker(Breaker::consecutive(1));
    let heard = Arc::new(AtomicU32::new(0));
    let ears = heard.clone();
    old.listen(move |_| _ = ears.fetch_add(1, SeqCst));
    for _ in 0..5 {
        assert!(old.call().go_at_once(NOW));
    }
    let new = Upstream::new("bank").limit(Limit::rate(1000)).breaker(Breaker::consecutive(1)).adopt(&old, NOW);
    assert_eq!(new.snapshot_at(NOW).calls, 5, "counted in another place where there is a budget");
    assert!(new.hold_open_at(NOW));
    assert_eq!(heard.load(SeqCst), 1);
    let again = Upstream::new("bank").budget(Budget::ratio(0.1)).adopt(&new, NOW);
    assert_eq!(again.snapshot_at(NOW).calls, 5);
    let poor = Upstream::new("bank").budget(Budget::aws_quota_2_1());
    while poor.its_budget().unwrap().withdraw(NOW, FAILED, 0).is_some() {}
    let still = Upstream::new("bank").budget(Budget::aws_quota_2_1()).adopt(&poor, NOW);
    assert!(still.its_budget().unwrap().balance(NOW) < 14.0, "what was spent stays spent");
}
