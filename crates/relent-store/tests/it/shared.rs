//! An upstream that many processes share. Here each is a share of its own in one process, which is all the same to the store.

use relent::{Breaker, BreakerState, Limit, Policy, Reason, Upstream};
use relent_store::{Engine, Held, Key, Memory, Notice, SharedRate, SharedUpstream, Sharing, Store};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const SEC: Duration = Duration::from_secs(1);
const TRIES: Policy = Policy::immediate().max_attempts(4);

fn name() -> Key {
    Key::new("bank").unwrap()
}

async fn shared<E: Engine>(store: &Store<E>, breaker: Option<Breaker>, sharing: Sharing) -> SharedUpstream<E> {
    let upstream = Upstream::new("bank");
    let upstream = breaker.into_iter().fold(upstream, Upstream::breaker);
    store.share(&name(), upstream, sharing).await.unwrap()
}

async fn call<E: Engine>(bank: &SharedUpstream<E>, is_up: bool) -> Result<(), Reason> {
    let answer = TRIES.on(Arc::clone(bank)).retry(async |_| if is_up { Ok(()) } else { Err("down") }).await;
    answer.map_err(|err| err.reason)
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_one_for_all() {
    let store = Store::new(Memory::new());
    let sharing = Sharing { min_per_second: 0, ..Sharing::default() };
    let mut banks = vec![];
    for _ in 0..10 {
        banks.push(shared(&store, None, sharing).await);
    }
    for _ in 0..100 {
        for bank in &banks {
            let _ = call(bank, false).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (mut calls, mut retries) = (0, 0);
    for bank in &banks {
        let seen = bank.snapshot();
        (calls, retries) = (calls + seen.calls, retries + seen.retries);
    }
    assert_eq!(calls, 1000);
    assert!((60..=115).contains(&retries), "a tenth of the calls of all: {retries}");
}

/// A fleet that is started in an outage, or that an outage finds rested: ten retries are ten, but for what is drawn.
#[tokio::test(start_paused = true)]
async fn many_that_start_or_fail_in_one_moment_spend_one_budget() {
    let sharing = Sharing { ratio: Some(0.0), ..Sharing::default() };
    for (number, is_rested) in [(1, false), (10, false), (50, false), (1, true), (10, true)] {
        let store = Store::new(Memory::new());
        let mut banks = vec![];
        for _ in 0..number {
            banks.push(shared(&store, None, sharing).await);
        }
        tokio::time::sleep(if is_rested { SEC } else { Duration::ZERO }).await;
        for _ in 0..100 {
            for bank in &banks {
                let _ = call(bank, false).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let retries: u64 = banks.iter().map(|bank| bank.snapshot().retries).sum();
        // Five standard deviations of ten that are drawn for, one by one, and nothing where nobody draws.
        let most = if number == 1 { 10 } else { 25 };
        assert!((5..=most).contains(&retries), "{number}, {is_rested}: {retries}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quorum_opens_the_breaker_for_all_and_its_end_closes_it() {
    let store = Store::new(Memory::new());
    let breaker = || Some(Breaker::consecutive(3).open_for(5 * SEC));
    let mut banks = vec![];
    for _ in 0..4 {
        banks.push(shared(&store, breaker(), Sharing::default()).await);
    }
    let state = |nth: usize, banks: &[SharedUpstream<Memory>]| banks[nth].snapshot().breaker.unwrap().state;
    for _ in 0..3 {
        let _ = call(&banks[0], false).await;
    }
    tokio::time::sleep(SEC).await;
    assert_eq!(state(0, &banks), BreakerState::Open);
    assert_eq!(state(3, &banks), BreakerState::Closed, "one of four is no quorum");
    for _ in 0..3 {
        let _ = call(&banks[1], false).await;
    }
    tokio::time::sleep(SEC).await;
    assert_eq!(state(3, &banks), BreakerState::HeldOpen);
    assert_eq!(call(&banks[3], true).await, Err(Reason::Open));
    // The voters' own probes find that it is over.
    tokio::time::sleep(5 * SEC).await;
    for _ in 0..5 {
        for bank in &banks[..2] {
            let _ = call(bank, true).await;
        }
    }
    tokio::time::sleep(SEC).await;
    assert_eq!(state(3, &banks), BreakerState::Closed);
    assert_eq!(call(&banks[3], true).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn processes_too_short_for_a_breaker_have_one_together() {
    let store = Store::new(Memory::new());
    let sharing =
        Sharing { in_a_row: Some(5), window: 10 * SEC, ratio: Some(0.0), min_per_second: 0, ..Sharing::default() };
    let mut refused = 0;
    for _ in 0..20 {
        let bank = shared(&store, Some(Breaker::consecutive(1000)), sharing).await;
        refused += u32::from(call(&bank, false).await == Err(Reason::Open));
        bank.leave().await.unwrap();
    }
    assert_eq!(refused, 15, "five went there, and no more");
    tokio::time::sleep(11 * SEC).await;
    let bank = shared(&store, Some(Breaker::consecutive(1000)), sharing).await;
    assert_eq!(call(&bank, true).await, Ok(()), "after a while one looks whether it is over");
    bank.leave().await.unwrap();
    let bank = shared(&store, Some(Breaker::consecutive(1000)), sharing).await;
    assert_eq!(bank.known().run, 0);
}

/// Calls on some of the shares, as fast as they are let through, for so long. When each went.
async fn flood<E: Engine>(banks: &[&SharedUpstream<E>], long: Duration) -> Vec<Duration> {
    let begin = tokio::time::Instant::now();
    let went: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let mut callers = tokio::task::JoinSet::new();
    for bank in banks {
        let (bank, went) = (Arc::clone(bank), went.clone());
        callers.spawn(async move {
            while begin.elapsed() < long {
                let call = Policy::immediate().max_attempts(1).on(bank.clone()).retry(async |_| {
                    went.lock().unwrap().push(begin.elapsed());
                    Ok::<_, String>(())
                });
                call.await.unwrap();
            }
        });
    }
    while callers.join_next().await.is_some() {}
    let mut went = std::mem::take(&mut *went.lock().unwrap());
    went.retain(|at| *at < long);
    went.sort();
    went
}

/// The most that went in any time so long.
fn most_in(went: &[Duration], long: Duration) -> usize {
    let ends = went.iter().enumerate().map(|(nth, at)| went[nth..].iter().take_while(|to| **to < *at + long).count());
    ends.max().unwrap_or(0)
}

async fn paced<E: Engine>(store: &Store<E>, sharing: Sharing) -> SharedUpstream<E> {
    let upstream = Upstream::new("bank").limit(Limit::rate(100).burst(5));
    store.share(&name(), upstream, sharing).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_one_for_all() {
    let store = Store::new(Memory::new());
    let mut banks = vec![];
    for _ in 0..10 {
        banks.push(paced(&store, Sharing::default()).await);
    }
    let all: Vec<_> = banks.iter().collect();
    let went = flood(&all, 20 * SEC).await;
    assert!((1900..=2005).contains(&went.len()), "a hundred a second: {}", went.len());
    let most = most_in(&went, SEC);
    assert!(most <= 100 + 5 + 20, "{most} in a second, and what was booked for two intervals");
    // One alone has all of it, though the others are there.
    let went = flood(&all[..1], 10 * SEC).await;
    assert!((900..=1005).contains(&went.len()), "{}", went.len());
    let known = banks[3].merge().await.unwrap();
    assert_eq!(known.rate, Some(SharedRate { gap: Duration::from_millis(10), burst: 5 }));
    assert!((900..=1005).contains(&known.permits), "{known:?}");
    // And each has its part.
    let parts = [flood(&all[..5], 10 * SEC), flood(&all[5..], 10 * SEC)].map(Box::pin);
    let [one, two] = parts;
    let (one, two) = tokio::join!(one, two);
    assert!(one.len() > 300 && two.len() > 300 && one.len() + two.len() <= 1010, "{} {}", one.len(), two.len());
    // A rate that is not shared is each one's own.
    let alone = Sharing { rate: false, ..Sharing::default() };
    let own = [paced(&store, alone).await, paced(&store, alone).await];
    let went = flood(&own.iter().collect::<Vec<_>>(), 10 * SEC).await;
    assert!((1900..=2020).contains(&went.len()), "{}", went.len());
}

#[tokio::test(start_paused = true)]
async fn who_was_idle_waits_some_milliseconds_and_who_leaves_gives_back() {
    let store = Store::new(Memory::new());
    let (bank, other) = (paced(&store, Sharing::default()).await, paced(&store, Sharing::default()).await);
    tokio::time::sleep(5 * SEC).await;
    let begin = tokio::time::Instant::now();
    assert_eq!(call(&bank, true).await, Ok(()));
    assert!(begin.elapsed() <= Duration::from_millis(20), "{:?}", begin.elapsed());
    // A hundred a second are worth a minute's wait here, and no more than what the policy says.
    let hasty = Policy::immediate().max_attempts(1).max_elapsed(Duration::from_millis(30));
    let minute = Upstream::new("bank").limit(Limit::rate(1).per(60 * SEC));
    let slow = store.share(&Key::new("slow").unwrap(), minute, Sharing::default()).await.unwrap();
    assert_eq!(call(&slow, true).await, Ok(()));
    tokio::time::sleep(SEC).await;
    // It is asked for at once, and then it is known to take a minute.
    let mut refused = 0;
    for _ in 0..3 {
        let begin = tokio::time::Instant::now();
        let answer = hasty.on(Arc::clone(&slow)).retry(async |_| Ok::<_, String>(())).await;
        refused += u32::from(answer.is_err_and(|err| err.reason == Reason::Shed));
        assert!(begin.elapsed() <= Duration::from_millis(40), "{:?}", begin.elapsed());
    }
    assert_eq!(refused, 3);
    let before = other.merge().await.unwrap().permits;
    bank.leave().await.unwrap();
    assert!(other.merge().await.unwrap().permits <= before);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_by_hand_is_held_everywhere() {
    let store = Store::new(Memory::new());
    let bank = shared(&store, Some(Breaker::consecutive(3)), Sharing::default()).await;
    for (held, state) in [
        (Some(Held::Open), BreakerState::HeldOpen),
        (Some(Held::Closed), BreakerState::HeldClosed),
        (None, BreakerState::Closed),
    ] {
        store.hold(&name(), held).await.unwrap();
        tokio::time::sleep(SEC).await;
        assert_eq!(bank.snapshot().breaker.unwrap().state, state);
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn when_the_store_is_away_each_goes_on_alone_and_says_so_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = Store::new(relent_store::in_sqlite::Sqlite::open(&path).unwrap());
    let told: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let tell = told.clone();
    store.listen(move |notice| tell.lock().unwrap().push(notice.clone()));
    let sharing = Sharing { every: Duration::from_millis(20), ..Sharing::default() };
    let bank = shared(&store, None, sharing).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begin = std::time::Instant::now();
    for _ in 0..100 {
        let _ = call(&bank, true).await;
    }
    assert!(begin.elapsed() < SEC, "nothing waits: {:?}", begin.elapsed());
    while told.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(3 * SEC).await;
    other.execute_batch("ROLLBACK").unwrap();
    tokio::time::sleep(SEC).await;
    assert_eq!(*told.lock().unwrap(), [Notice::Alone("bank".into()), Notice::Together("bank".into())]);
    assert_eq!(bank.merge().await.unwrap().calls, 100, "nothing that was counted is lost");
}
