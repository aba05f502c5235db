use super::*;
use crate::core::{
    rng::{draw, mix},
    time::Timestamp,
    verdict::Reason,
};
use std::{string::ToString, vec, vec::Vec};

const SECOND: Duration = Duration::from_secs(1);
const NONE: Duration = Duration::ZERO;

fn at(seconds: f64) -> Timestamp {
    Timestamp::ZERO + Duration::from_secs_f64(seconds)
}

fn fail(breaker: &Breaker, now: Timestamp) -> Option<BreakerChange> {
    breaker.permit(now, 0).expect("it lets attempts through").failed(now, NONE, 0)
}

fn succeed(breaker: &Breaker, now: Timestamp) -> Option<BreakerChange> {
    breaker.permit(now, 0).expect("it lets attempts through").succeeded(now, NONE, 0)
}

/// Open since `now`.
fn tripped(breaker: Breaker, now: Timestamp) -> Breaker {
    while breaker.state() == BreakerState::Closed {
        fail(&breaker, now);
    }
    breaker
}

#[test]
fn five_in_a_row_thirty_seconds() {
    static BANK: Breaker = Breaker::consecutive(5).open_for(Duration::from_secs(30));
    let now = at(1.0);
    for _ in 0..4 {
        assert_eq!(fail(&BANK, now), None);
    }
    succeed(&BANK, now);
    for _ in 0..4 {
        assert_eq!(fail(&BANK, now), None, "a success starts the row anew");
    }
    assert_eq!(BANK.snapshot(now).failures_in_a_row, 4);
    assert_eq!(fail(&BANK, now), Some(BreakerChange { from: BreakerState::Closed, to: BreakerState::Open }));
    let refused = BANK.permit(at(30.9), 0).unwrap_err();
    assert_eq!((refused.reason, refused.again), (Reason::Open, at(31.0)));
    assert_eq!(BANK.worth_asking_at(at(5.0)), at(31.0));
    let snapshot = BANK.snapshot(at(30.0));
    assert_eq!((snapshot.state, snapshot.since, snapshot.until), (BreakerState::Open, now, Some(at(31.0))));
    assert_eq!((snapshot.trips, snapshot.refused), (1, 1));

    let probe = BANK.permit(at(31.0), 0).unwrap();
    assert_eq!(
        probe.pass().unwrap().change(),
        Some(BreakerChange { from: BreakerState::Open, to: BreakerState::HalfOpen })
    );
    probe.succeeded(at(31.1), NONE, 0);
    assert_eq!(BANK.state(), BreakerState::Closed);
    assert_eq!(BANK.worth_asking_at(at(31.1)), at(31.1));
}

#[test]
fn failsafe_and_recloser_half_open_lets_no_more_through_than_its_probes() {
    let breaker = tripped(Breaker::consecutive(1).open_for(SECOND).probes(3).close_after(5), at(0.0));
    let probes: Vec<_> = (0..1000).filter_map(|_| breaker.permit(at(2.0), 0).ok()).collect();
    assert_eq!(probes.len(), 3);
    assert_eq!(breaker.snapshot(at(2.0)).probes, 3);
    for probe in probes {
        probe.succeeded(at(2.0), NONE, 0);
    }
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "three of five have succeeded");
    let more: Vec<_> = (0..1000).filter_map(|_| breaker.permit(at(2.0), 0).ok()).collect();
    assert_eq!(more.len(), 2, "no more than it takes to close");
}

#[test]
fn tower_resilience_a_dropped_probe_gives_its_place_back() {
    let breaker = tripped(Breaker::consecutive(1).open_for(SECOND), at(0.0));
    for _ in 0..1000 {
        drop(breaker.permit(at(2.0), 0).unwrap());
        assert_eq!(breaker.snapshot(at(2.0)).probes, 0);
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _permit = breaker.permit(at(2.0), 0).unwrap();
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panicked.is_err());
    succeed(&breaker, at(2.0));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn hystrix_slow_outcomes_of_an_old_state_do_not_count_in_a_new_one() {
    let breaker = Breaker::consecutive(2).open_for(SECOND);
    let slow: Vec<_> = (0..9).map(|_| breaker.permit(at(0.0), 0).unwrap()).collect();
    let mut slow = slow.into_iter();
    let breaker_ref = &breaker;
    fail(breaker_ref, at(0.0));
    fail(breaker_ref, at(0.0));
    assert_eq!(breaker.state(), BreakerState::Open);
    slow.next().unwrap().succeeded(at(0.5), NONE, 0);
    assert_eq!(breaker.state(), BreakerState::Open, "a success of before does not close");

    let probe = breaker.permit(at(1.0), 0).unwrap();
    slow.next().unwrap().succeeded(at(1.0), NONE, 0);
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "nor does it while probes are out");
    slow.next().unwrap().failed(at(1.0), NONE, 0);
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "nor does a failure open it");
    probe.succeeded(at(1.0), NONE, 0);
    for old in slow {
        old.failed(at(1.1), NONE, 0);
    }
    assert_eq!(breaker.state(), BreakerState::Closed, "nor open it again");
    assert_eq!(breaker.snapshot(at(1.1)).failures_in_a_row, 0);
}

#[test]
fn a_share_of_the_last_calls_is_exact() {
    let breaker = Breaker::share(0.5).window_calls(10).min_calls(4);
    for _ in 0..3 {
        fail(&breaker, at(0.0));
    }
    assert_eq!(breaker.state(), BreakerState::Closed, "three are no volume");
    succeed(&breaker, at(0.0));
    assert_eq!(breaker.state(), BreakerState::Open, "the success that makes the volume full shows the share");

    let breaker = Breaker::share(0.5).window_calls(100).min_calls(100);
    for k in 0..1000u32 {
        // 49 failures in any hundred.
        if k % 100 < 49 {
            fail(&breaker, at(0.0))
        } else {
            succeed(&breaker, at(0.0))
        };
    }
    let snapshot = breaker.snapshot(at(0.0));
    assert_eq!((snapshot.state, snapshot.window_calls, snapshot.window_failures), (BreakerState::Closed, 100, 49));
    for _ in 0..49 {
        fail(&breaker, at(0.0));
    }
    assert_eq!(breaker.state(), BreakerState::Closed, "49 old ones were forgotten");
    fail(&breaker, at(0.0));
    assert_eq!(breaker.state(), BreakerState::Open);
}

/// Against a list of the last calls, for every size.
#[test]
fn the_window_of_calls_is_what_a_list_would_be() {
    for (seed, most) in [(1, 1), (2, 2), (3, 31), (4, 32), (5, 33), (6, 64), (7, 100), (8, 1023), (9, 1024)] {
        let breaker = Breaker::share(1.0).or_slow(SECOND, 1.0).window_calls(most).min_calls(most);
        let mut list = vec![];
        for k in 0..3000 {
            let random = draw(seed, k);
            let (failed, slow) = (random.is_multiple_of(3), random.is_multiple_of(5));
            let took = if slow { 2 * SECOND } else { NONE };
            let Ok(permit) = breaker.permit(at(0.0), 0) else { break };
            let change = if failed { permit.failed(at(0.0), took, 0) } else { permit.succeeded(at(0.0), took, 0) };
            list.push((failed, slow));
            let last = &list[list.len().saturating_sub(most as usize)..];
            let failures = last.iter().filter(|(failed, _)| *failed).count() as u64;
            let slow = last.iter().filter(|(_, slow)| *slow).count() as u64;
            let trips = last.len() == most as usize && (failures == u64::from(most) || slow == u64::from(most));
            assert_eq!(change.is_some(), trips, "seed {seed}, call {k}");
            if !trips {
                let snapshot = breaker.snapshot(at(0.0));
                let found = (snapshot.window_calls, snapshot.window_failures, snapshot.window_slow);
                assert_eq!(found, (last.len() as u64, failures, slow), "seed {seed}, call {k}");
            }
        }
    }
}

#[test]
fn a_share_of_the_last_time_forgets() {
    let breaker = Breaker::share(0.1).window(10 * SECOND).min_calls(30);
    for k in 0..27 {
        succeed(&breaker, at(f64::from(k) * 0.1));
    }
    fail(&breaker, at(2.8));
    fail(&breaker, at(2.9));
    assert_eq!(breaker.state(), BreakerState::Closed);
    fail(&breaker, at(3.0));
    assert_eq!(breaker.state(), BreakerState::Open, "3 of 30 is a tenth");

    let breaker = Breaker::failures(3).window(10 * SECOND);
    fail(&breaker, at(0.0));
    fail(&breaker, at(5.0));
    fail(&breaker, at(10.5));
    assert_eq!(breaker.state(), BreakerState::Closed, "the first is ten seconds ago");
    assert_eq!(breaker.snapshot(at(10.5)).window_failures, 2);
    assert_eq!(breaker.snapshot(at(100.0)).window_failures, 0, "a snapshot forgets too");
    fail(&breaker, at(365.0 * 86400.0));
    assert_eq!(breaker.snapshot(at(365.0 * 86400.0)).window_failures, 1, "after a year there is no loop");
}

#[test]
fn slow_calls_trip_too() {
    let breaker = Breaker::slow(SECOND, 0.5).min_calls(4);
    for took in [NONE, SECOND, 2 * SECOND] {
        breaker.permit(at(0.0), 0).unwrap().succeeded(at(0.0), took, 0);
    }
    assert_eq!(breaker.snapshot(at(0.0)).window_slow, 1, "slow is longer than the limit");
    breaker.permit(at(0.0), 0).unwrap().succeeded(at(0.0), 2 * SECOND, 0);
    assert_eq!(breaker.state(), BreakerState::Open);

    let both = Breaker::consecutive(3).or_share(0.5).or_slow(SECOND, 0.5).or_failures(7);
    for _ in 0..3 {
        fail(&both, at(0.0));
    }
    assert_eq!(both.state(), BreakerState::Open, "any of them");
}

#[test]
fn the_open_time_grows_is_spread_and_is_forgotten() {
    let breaker =
        Breaker::consecutive(1).open_for(SECOND).factor(2.0).open_at_most(Duration::from_secs(10)).jitter(0.25);
    let mut now = at(0.0);
    let mut open = vec![];
    for _ in 0..6 {
        let permit = breaker.permit(now, 0).unwrap();
        permit.failed(now, NONE, 0);
        let until = breaker.snapshot(now).until.unwrap();
        open.push(until.since(now).as_secs_f64());
        now = until;
    }
    assert_eq!(open, [1.0, 2.0, 4.0, 8.0, 8.0, 8.0], "with room for the jitter under the most");
    let longest = breaker.open_time(9, u64::MAX).as_secs_f64();
    assert!(longest > 9.99 && longest <= 10.0, "{longest}");
    for level in 0..9 {
        for k in 0..100 {
            assert!(breaker.open_time(level, draw(3, k)) >= breaker.open_time(level, 0));
        }
    }

    succeed(&breaker, now);
    let soon = now + Duration::from_secs(9);
    fail(&breaker, soon);
    assert_eq!(breaker.snapshot(soon).until, Some(soon + Duration::from_secs(8)), "not forgotten yet");
    let probed = soon + Duration::from_secs(8);
    succeed(&breaker, probed);
    let late = probed + Duration::from_secs(10);
    fail(&breaker, late);
    assert_eq!(breaker.snapshot(late).until, Some(late + SECOND), "closed for as long as the longest open time");
}

#[test]
fn ten_thousand_breakers_do_not_probe_together() {
    let breaker = Breaker::consecutive(1).open_for(Duration::from_secs(30)).jitter(0.2);
    let mut a_second = [0u32; 40];
    for client in 0..10_000 {
        a_second[breaker.open_time(0, mix(client)).as_secs() as usize] += 1;
    }
    let most = a_second.iter().max().unwrap();
    assert!(*most < 1_800, "{most} of 10,000 in one second of six");
}

#[test]
fn half_open_can_go_by_a_share() {
    let make =
        || tripped(Breaker::consecutive(1).open_for(SECOND).probes(10).close_after(10).reopen_share(0.5), at(0.0));
    for (failures, state) in [(4, BreakerState::Closed), (5, BreakerState::Open)] {
        let breaker = make();
        for k in 0..10 {
            assert_ne!(breaker.state(), BreakerState::Closed, "all ten are waited for");
            if k < failures {
                fail(&breaker, at(1.0))
            } else {
                succeed(&breaker, at(1.0))
            };
        }
        assert_eq!(breaker.state(), state, "{failures} of 10");
    }
}

#[test]
fn probes_that_never_come_back_can_be_replaced() {
    let breaker = tripped(Breaker::consecutive(1).open_for(SECOND).probe_again_after(5 * SECOND), at(0.0));
    let lost = breaker.permit(at(1.0), 0).unwrap();
    assert_eq!(breaker.permit(at(5.9), 0).unwrap_err().again, at(6.0));
    let probe = breaker.permit(at(6.0), 0).unwrap();
    lost.failed(at(6.0), NONE, 0);
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "what was counted as lost says nothing more");
    probe.succeeded(at(6.1), NONE, 0);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn the_ramp_lets_a_rising_share_through() {
    let breaker = tripped(Breaker::consecutive(2).open_for(SECOND).ramp(10 * SECOND).ramp_from(0.2), at(0.0));
    succeed(&breaker, at(1.0));
    assert_eq!(breaker.state(), BreakerState::Ramp);
    let share = |now: f64| (0..10_000).filter(|&k| breaker.permit(at(now), draw(7, k)).is_ok()).count() as f64 / 1e4;
    for (now, expected) in [(1.0, 0.2), (3.5, 0.4), (6.0, 0.6), (9.75, 0.9)] {
        let share = share(now);
        assert!((share - expected).abs() < 0.02, "{share} let through at {now} s, not {expected}");
    }
    let refused = breaker.permit(at(1.0), u64::MAX / 5 * 3).unwrap_err();
    assert_eq!(refused.reason, Reason::Open);
    assert!(breaker.permit(refused.again, u64::MAX / 5 * 3).is_ok(), "asked again then, with this draw, it is let in");
    fail(&breaker, at(5.0));
    assert_eq!(share(11.0), 1.0);
    assert_eq!(breaker.state(), BreakerState::Closed);
    fail(&breaker, at(11.0));
    assert_eq!(breaker.state(), BreakerState::Open, "what the ramp has counted goes on counting");
}

#[test]
fn held_by_hand() {
    let breaker = Breaker::consecutive(1).open_for(SECOND);
    let before = breaker.permit(at(0.0), 0).unwrap();
    breaker.hold_open(at(0.0));
    assert_eq!(breaker.permit(at(1e6), 0).unwrap_err().again, Timestamp::MAX);
    assert_eq!(breaker.worth_asking_at(at(1.0)), Timestamp::MAX);
    breaker.hold_closed(at(1.0));
    before.failed(at(1.0), NONE, 0);
    for _ in 0..9 {
        assert_eq!(fail(&breaker, at(1.0)), None, "nothing is counted");
    }
    assert_eq!(breaker.state().to_string(), "held closed");
    breaker.release(at(2.0));
    assert_eq!((breaker.state(), breaker.snapshot(at(2.0)).since), (BreakerState::Closed, at(2.0)));
    assert!(fail(&breaker, at(2.0)).is_some());
}

#[test]
fn a_clock_that_goes_back_shortens_nothing() {
    let breaker = tripped(Breaker::consecutive(1).open_for(30 * SECOND), at(100.0));
    assert!(breaker.permit(at(0.0), 0).is_err());
    assert!(breaker.permit(at(129.9), 0).is_err());
    let probe = breaker.permit(at(130.0), 0).unwrap();
    probe.failed(at(10.0), NONE, 0);
    assert_eq!(breaker.snapshot(at(0.0)).until, Some(at(160.0)), "open from when it was last known to be later");
    let window = Breaker::failures(2).window(10 * SECOND);
    fail(&window, at(100.0));
    fail(&window, at(1.0));
    assert_eq!(window.state(), BreakerState::Open);
}

#[test]
fn a_reload_keeps_what_did_not_change() {
    let old = Breaker::consecutive(3).or_share(0.5).open_for(30 * SECOND);
    fail(&old, at(0.0));
    fail(&old, at(0.0));
    let new = Breaker::consecutive(4).or_share(0.5).open_for(10 * SECOND).adopt(&old);
    let snapshot = new.snapshot(at(0.0));
    assert_eq!((snapshot.failures_in_a_row, snapshot.window_calls), (2, 2));
    let other_window = Breaker::consecutive(4).or_share(0.5).window_calls(100).adopt(&old);
    assert_eq!(other_window.snapshot(at(0.0)).window_calls, 0);

    fail(&old, at(1.0));
    let sooner = Breaker::consecutive(3).open_for(10 * SECOND).adopt(&old);
    assert_eq!(sooner.snapshot(at(1.0)).until, Some(at(11.0)));
    let later = Breaker::consecutive(3).open_for(60 * SECOND).adopt(&old);
    assert_eq!(later.snapshot(at(1.0)).until, Some(at(31.0)), "what was promised is kept");
    let probe = old.permit(at(31.0), 0).unwrap();
    let probing = Breaker::consecutive(3).adopt(&old);
    assert!(probing.permit(at(31.0), 0).is_ok(), "a place that the old one has given cannot come back to the new one");
    drop(probe);
}

#[test]
fn what_makes_no_sense_is_named() {
    let good = BreakerSettings { consecutive: Some(5), ..BreakerSettings::default() };
    let key = |settings: BreakerSettings| settings.breaker().unwrap_err().key;
    assert_eq!(key(BreakerSettings::default()), "breaker");
    assert_eq!(key(BreakerSettings { consecutive: Some(0), ..good }), "consecutive");
    assert_eq!(key(BreakerSettings { failures: Some(0), ..good }), "failures");
    for share in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(key(BreakerSettings { share: Some(share), ..good }), "share");
        assert_eq!(key(BreakerSettings { slow_share: share, ..good }), "slow_share");
        assert_eq!(key(BreakerSettings { reopen_share: Some(share), ..good }), "reopen_share");
    }
    for share in [-0.1, 1.1, f64::NAN] {
        assert_eq!(key(BreakerSettings { jitter: share, ..good }), "jitter");
        assert_eq!(key(BreakerSettings { ramp_from: share, ..good }), "ramp_from");
    }
    for factor in [0.9, f64::NAN, f64::INFINITY] {
        assert_eq!(key(BreakerSettings { factor, ..good }), "factor");
    }
    assert_eq!(key(BreakerSettings { slow_after: Some(NONE), ..good }), "slow_after");
    assert_eq!(key(BreakerSettings { window: BreakerWindow::Calls(0), ..good }), "window_calls");
    assert_eq!(key(BreakerSettings { window: BreakerWindow::Calls(1025), ..good }), "window_calls");
    assert_eq!(key(BreakerSettings { window: BreakerWindow::Time(NONE), ..good }), "window");
    assert_eq!(key(BreakerSettings { min_calls: Some(0), ..good }), "min_calls");
    let few = BreakerWindow::Calls(5);
    assert_eq!(key(BreakerSettings { window: few, min_calls: Some(6), ..good }), "min_calls");
    assert_eq!(key(BreakerSettings { window: few, failures: Some(6), ..good }), "failures");
    assert_eq!(key(BreakerSettings { open_for: NONE, ..good }), "open_for");
    assert_eq!(key(BreakerSettings { open_at_most: Some(SECOND), ..good }), "open_at_most");
    for count in [0, 4096, u32::MAX] {
        assert_eq!(key(BreakerSettings { probes: count, ..good }), "probes");
        assert_eq!(key(BreakerSettings { close_after: count, ..good }), "close_after");
    }
    assert_eq!(key(BreakerSettings { probe_again_after: Some(NONE), ..good }), "probe_again_after");
    let invalid = BreakerSettings { share: Some(51.0), ..good }.breaker().unwrap_err();
    assert_eq!(invalid.to_string(), "the share of failures is not above 0 and up to 1");
}
