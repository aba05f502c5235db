//! An upstream that many processes share. Here each is a share of its own in one process, which is all the same to the store.

use relent::{Breaker, BreakerState, Policy, Reason, Upstream};
use relent_store::{Engine, Held, Key, Memory, Notice, SharedUpstream, Sharing, Store};
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
