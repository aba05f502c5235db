//! What a process that shares an upstream knows, spends and holds, telling by telling.

use super::*;
use crate::Memory;
use relent::{Allowance, Outcome, UpstreamAnswer, Verdict};

const FAILED: Outcome = Outcome::Failure(Verdict::Transient);

/// Spends what it may, up to twenty retries: how many.
fn spend(teller: &Teller<Memory>) -> usize {
    (0..20).filter(|_| teller.ledger.withdraw(Timestamp::ZERO, FAILED, 0).is_some()).count()
}

/// What is spent until then is not in what the store says, and no less spent.
#[tokio::test]
async fn what_is_spent_while_the_store_is_asked_stays_spent() {
    let store = Store::new(Memory::new());
    let sharing = Sharing { ratio: Some(0.0), ..Sharing::default() };
    let (_, teller) = started(&store, &Key::new("bank").unwrap(), Upstream::new("bank"), sharing).await.unwrap();
    let spend = || spend(&teller);
    let delta = teller.delta(false);
    let shared = store.engine().merge(&delta).await.unwrap();
    assert_eq!(spend(), 10);
    teller.learn(&delta, &shared);
    assert_eq!(spend(), 0);
    // The answer to what was sent is lost, and it is sent again.
    let delta = teller.delta(false);
    let lost = store.engine().merge(&delta).await.unwrap();
    assert_eq!((lost.retries, teller.delta(false).seq), (10, delta.seq));
    teller.ledger.set(1.0);
    assert_eq!(spend(), 1);
    assert_eq!(teller.delta(false).seq, delta.seq);
    teller.learn(&delta, &lost);
    assert_eq!((spend(), teller.tell(false).await.unwrap().retries, spend()), (0, 11, 0));
}

/// All hold it open as long as somebody knows that they do; and nobody who has left.
#[tokio::test(start_paused = true)]
async fn what_all_hold_open_is_let_go_when_nobody_says_so_any_more() {
    let store = Store::new(Memory::new());
    let name = Key::new("bank").unwrap();
    let sharing = Sharing { in_a_row: Some(3), ..Sharing::default() };
    // It has no breaker of its own.
    let (upstream, teller) = started(&store, &name, Upstream::new("bank"), sharing).await.unwrap();
    let goes = || upstream.call().ask(SystemTimer.now(), 0, Duration::ZERO) == UpstreamAnswer::Go;
    let fail = || {
        let mut call = upstream.call();
        assert_eq!(call.ask(SystemTimer.now(), 0, Duration::ZERO), UpstreamAnswer::Go);
        call.outcome(SystemTimer.now(), FAILED, 0);
    };
    (0..3).for_each(|_| fail());
    teller.tell(false).await.unwrap();
    assert!(!goes(), "three in a row have failed");
    store.listen(|_| panic!("nobody reads what is told"));
    upstream.listen(|_| panic!("nor this"));
    teller.go_on_alone();
    assert!(goes(), "the store is away");
    teller.tell(false).await.unwrap();
    assert!(!goes(), "it is back, and knows");
    teller.let_go();
    assert!(goes(), "the process has left");
    // A hand holds until it is known to have let go.
    store.engine().hold(&name, Some(Held::Open)).await.unwrap();
    teller.tell(false).await.unwrap();
    teller.go_on_alone();
    assert!(!goes());
}

/// What was spent before, and what failed, is no less for that.
#[tokio::test(start_paused = true)]
async fn a_clock_of_the_store_that_goes_back_gives_nothing_anew() {
    let clock = crate::Clock::manual(crate::Time(1_000_000_000));
    let store = Store::new(Memory::on(clock.clone()));
    let sharing = Sharing { ratio: Some(0.0), in_a_row: Some(3), ..Sharing::default() };
    let (upstream, teller) = started(&store, &Key::new("bank").unwrap(), Upstream::new("bank"), sharing).await.unwrap();
    let spend = || spend(&teller);
    assert_eq!(spend(), 10);
    (0..3).for_each(|_| teller.ledger.outcome(Timestamp::ZERO, FAILED, None));
    for back in [0, 2000, 7000] {
        clock.set(crate::Time(1_000_000_000 - back));
        teller.tell(false).await.unwrap();
        let goes = upstream.call().ask(SystemTimer.now(), 0, Duration::ZERO) == UpstreamAnswer::Go;
        assert_eq!((spend(), goes), (0, false), "{back}");
    }
}

/// Whoever joins, leaves, calls, spends and tells meanwhile, and where answers are lost: what was spent and what may be spent without
/// telling is no more than all may spend.
#[tokio::test]
async fn nobody_holds_what_another_may_spend() {
    let seeds = std::env::var("RELENT_SEED").map_or(0..300, |seed| seed.parse().map(|seed| seed..seed + 1).unwrap());
    for seed in seeds {
        let store = Store::new(Memory::on(crate::Clock::manual(crate::Time(1_000_000_000))));
        let name = Key::new("bank").unwrap();
        let ratio = [0.0, 0.125][(seed % 2) as usize];
        let sharing = Sharing { ratio: Some(ratio), min_per_second: 1, ..Sharing::default() };
        let (mut tellers, mut calls, mut spent, mut nth) = (Vec::new(), 0_u32, 0_u32, 0);
        let left = |tellers: &[Arc<Teller<Memory>>], calls, spent| {
            let held: f64 = tellers.iter().map(|teller| teller.ledger.left().max(0.0)).sum();
            f64::from(calls).mul_add(ratio, 10.0) - f64::from(spent) - held
        };
        let mut most = |sides: u64| {
            nth += 1;
            rng::scale(rng::draw(seed, nth), sides)
        };
        for _ in 0..200 {
            let which = most(tellers.len().max(1) as u64) as usize;
            match (tellers.get(which), most(20)) {
                (None, _) | (_, 0 | 1) => {
                    tellers.push(started(&store, &name, Upstream::new("bank"), sharing).await.unwrap().1);
                }
                (Some(_), 2) => {
                    tellers.swap_remove(which).tell(true).await.unwrap();
                }
                (Some(teller), 3..10) => drop(teller.tell(false).await.unwrap()),
                (Some(teller), 10..12) => drop(store.engine().merge(&teller.delta(false)).await.unwrap()),
                (Some(teller), 12..16) => {
                    calls += 3;
                    (0..3).for_each(|_| assert!(teller.ledger.start(Timestamp::ZERO, 0)));
                }
                (Some(teller), _) => {
                    while teller.ledger.left() >= 1.0 && most(8) > 0 {
                        spent += u32::from(teller.ledger.withdraw(Timestamp::ZERO, FAILED, 0).is_some());
                    }
                }
            }
            let left = left(&tellers, calls, spent);
            assert!(left > -0.01, "seed {seed}: {left}");
        }
        for teller in (0..6).flat_map(|_| &tellers) {
            teller.tell(false).await.unwrap();
        }
        let left = left(&tellers, calls, spent);
        assert!(tellers.is_empty() || left < 0.01, "seed {seed}: {left} is nobody's");
    }
}

/// A process that was killed says no goodbye.
#[tokio::test]
async fn who_has_ended_holds_nothing_for_long() {
    let clock = crate::Clock::manual(crate::Time(1_000_000_000));
    let store = Store::new(Memory::on(clock.clone()));
    let name = Key::new("bank").unwrap();
    let sharing = Sharing { ratio: Some(0.0), ..Sharing::default() };
    let dead = started(&store, &name, Upstream::new("bank"), sharing).await.unwrap();
    let (_, teller) = started(&store, &name, Upstream::new("bank"), sharing).await.unwrap();
    for (millis, left) in [(0, 0.0), (2000, 0.0), (2001, 5.0)] {
        clock.set(crate::Time(1_000_000_000 + millis));
        teller.tell(false).await.unwrap();
        assert_eq!(teller.ledger.left(), left, "{millis}");
    }
    drop(dead);
}

/// Neither what all hold nor its end takes it back.
#[tokio::test(start_paused = true)]
async fn what_the_program_holds_by_hand_is_its_own_to_let_go() {
    let store = Store::new(Memory::new());
    let name = Key::new("bank").unwrap();
    let (upstream, teller) = started(&store, &name, Upstream::new("bank"), Sharing::default()).await.unwrap();
    let state = || upstream.its_breaker().unwrap().state();
    upstream.hold_closed();
    for held in [Some(Held::Open), None] {
        store.hold(&name, held).await.unwrap();
        teller.tell(false).await.unwrap();
        assert_eq!(state(), BreakerState::HeldClosed, "{held:?}");
    }
    upstream.release();
    store.hold(&name, Some(Held::Open)).await.unwrap();
    teller.tell(false).await.unwrap();
    assert_eq!(state(), BreakerState::HeldOpen);
    // What the program does then is its own.
    upstream.hold_closed();
    store.hold(&name, None).await.unwrap();
    teller.tell(false).await.unwrap();
    assert_eq!(state(), BreakerState::HeldClosed);
    upstream.release();
    store.hold(&name, Some(Held::Open)).await.unwrap();
    teller.tell(false).await.unwrap();
    assert_eq!(state(), BreakerState::HeldOpen);
    teller.leaves();
    assert_eq!(state(), BreakerState::Closed);
}

/// It would be told as what there is now.
#[tokio::test]
async fn an_answer_that_comes_after_a_later_one_is_nothing_new() {
    let store = Store::new(Memory::new());
    let sharing = Sharing { ratio: Some(0.0), ..Sharing::default() };
    let (_, teller) = started(&store, &Key::new("bank").unwrap(), Upstream::new("bank"), sharing).await.unwrap();
    let spend = || spend(&teller);
    let delta = teller.delta(false);
    let early = store.engine().merge(&delta).await.unwrap();
    assert_eq!(spend(), 10);
    teller.tell(false).await.unwrap();
    teller.tell(false).await.unwrap();
    teller.learn(&delta, &early);
    assert_eq!((spend(), teller.known().retries), (0, 10));
}

/// Of four processes two have seen failures, and have nothing to call after that.
#[tokio::test(start_paused = true)]
async fn who_calls_nobody_holds_nobody_up() {
    let store = Store::new(Memory::new());
    let name = Key::new("bank").unwrap();
    let breaker = || Breaker::consecutive(3).open_for(Duration::from_secs(15));
    // However long failures are counted.
    let sharing = Sharing { window: Duration::from_secs(3600), ..Sharing::default() };
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(started(&store, &name, Upstream::new("bank").breaker(breaker()), sharing).await.unwrap());
    }
    for (upstream, _) in &all[..2] {
        for _ in 0..3 {
            let mut call = upstream.call();
            assert_eq!(call.ask(SystemTimer.now(), 0, Duration::ZERO), UpstreamAnswer::Go);
            call.outcome(SystemTimer.now(), FAILED, 0);
        }
    }
    for (seconds, state) in [(1, BreakerState::HeldOpen), (24, BreakerState::HeldOpen), (6, BreakerState::Closed)] {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        for _ in 0..2 {
            for (_, teller) in &all {
                teller.tell(false).await.unwrap();
            }
        }
        assert_eq!(all[3].0.its_breaker().unwrap().state(), state, "{seconds}");
    }
}

/// An answer may be under way when it leaves.
#[tokio::test]
async fn who_has_left_hears_nothing_any_more() {
    let store = Store::new(Memory::new());
    let name = Key::new("bank").unwrap();
    let (upstream, teller) = started(&store, &name, Upstream::new("bank"), Sharing::default()).await.unwrap();
    store.hold(&name, Some(Held::Open)).await.unwrap();
    let delta = teller.delta(false);
    let shared = store.engine().merge(&delta).await.unwrap();
    teller.leaves();
    teller.learn(&delta, &shared);
    assert_eq!(upstream.its_breaker().unwrap().state(), BreakerState::Closed);
}

/// Seconds that come again are counted once.
#[tokio::test]
async fn a_clock_of_the_store_that_goes_back_counts_no_call_twice() {
    let clock = crate::Clock::manual(crate::Time(1_000_000_000));
    let store = Store::new(Memory::on(clock.clone()));
    let name = Key::new("bank").unwrap();
    let (_, teller) = started(&store, &name, Upstream::new("bank"), Sharing::default()).await.unwrap();
    let mut most = 0;
    for second in [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5] {
        clock.set(crate::Time(1_000_000_000 + second * 1000));
        (0..10).for_each(|_| assert!(teller.ledger.start(Timestamp::ZERO, 0)));
        most = most.max(teller.tell(false).await.unwrap().calls);
    }
    // The second to which it went back has the calls of both times.
    assert_eq!(most, 70);
}

/// However long it takes to learn that nobody answers.
#[tokio::test(start_paused = true)]
async fn who_is_alone_earns_its_share_of_the_time_that_passes() {
    let store = Store::new(Memory::new());
    let sharing = Sharing { ratio: Some(0.0), min_per_second: 5, window: Duration::from_secs(1), ..Sharing::default() };
    let (_, teller) = started(&store, &Key::new("bank").unwrap(), Upstream::new("bank"), sharing).await.unwrap();
    let spend = || spend(&teller);
    assert_eq!(spend(), 5);
    for (millis, earned) in [(200, 1), (2600, 5), (1000, 5), (400, 2)] {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        teller.go_on_alone();
        assert_eq!(spend(), earned, "{millis}");
    }
}
