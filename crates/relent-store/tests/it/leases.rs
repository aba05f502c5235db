//! Who holds what, and for how long.

use relent::{Cancel, Jitter, Policy};
use relent_store::{Clock, Kept, Key, LeaseError, Memory, Notice, Store};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const SEC: Duration = Duration::from_secs(1);

fn name() -> Key {
    Key::new("nightly").expect("a short name")
}

#[tokio::test(start_paused = true)]
async fn a_guard_renews_itself_and_a_waiter_follows_at_once() {
    let store = Store::new(Memory::new());
    let guard = store.lease(&name()).ttl(3 * SEC).acquire().await.unwrap();
    let first = guard.fence();
    tokio::time::sleep(60 * SEC).await;
    assert!(!guard.is_lost());
    assert!(matches!(store.lease(&name()).acquire().await, Err(LeaseError::Held { .. })));
    let patient = Policy::constant(3600 * SEC).max_attempts(3);
    let begin = tokio::time::Instant::now();
    let (next, ()) = tokio::join!(store.lease(&name()).wait(patient).acquire(), async {
        tokio::time::sleep(SEC).await;
        drop(guard);
    });
    assert!(next.unwrap().fence() > first);
    assert!(begin.elapsed() < 2 * SEC, "{:?}", begin.elapsed());
}

/// A release that is heard makes those look who wait, and none of them gives up for it.
#[tokio::test(start_paused = true)]
async fn many_who_wait_have_it_one_after_the_other() {
    let store = Store::new(Memory::new());
    // Eight attempts in half a minute and more.
    let policy = Policy::constant(5 * SEC).jitter(Jitter::None).max_attempts(8);
    let each = |_| {
        let store = store.clone();
        tokio::spawn(async move {
            let guard = store.lease(&name()).wait(policy).acquire().await.map_err(|err| err.to_string())?;
            tokio::time::sleep(SEC / 2).await;
            guard.release().await.map_err(|err| err.to_string())
        })
    };
    let all: Vec<_> = (0..40).map(each).collect();
    for one in all {
        assert_eq!(one.await.unwrap().map(drop), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_can_be_cancelled_and_ends_by_its_policy() {
    let store = Store::new(Memory::new());
    let guard = store.lease(&name()).acquire().await.unwrap();
    let cancel = Cancel::new();
    let waiting = store.lease(&name()).wait(Policy::constant(SEC).unlimited_attempts()).cancel(&cancel).acquire();
    let (waited, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(10 * SEC).await;
        cancel.cancel();
    });
    assert_eq!(waited.err(), Some(LeaseError::Cancelled));
    let waited = store.lease(&name()).wait(Policy::constant(SEC).max_attempts(3)).acquire().await;
    assert!(matches!(waited, Err(LeaseError::Held { .. })));
    assert_eq!(guard.release().await.unwrap(), Kept::Kept);
}

/// The holder's clock goes on while it gets no answer; the store's stands still, so that nobody else could take it.
#[tokio::test(start_paused = true)]
async fn a_guard_that_cannot_renew_knows_it_before_the_lease_ends() {
    let clock = Clock::manual(relent_store::Time(1_000_000));
    let store = Store::new(Memory::on(clock.clone()));
    let told: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let tell = told.clone();
    store.listen(move |notice| tell.lock().unwrap().push(notice.clone()));
    let guard = store.lease(&name()).ttl(10 * SEC).acquire().await.unwrap();
    // On the store's clock the lease has ended: the next renewal is refused.
    clock.advance(11 * SEC);
    let begin = tokio::time::Instant::now();
    guard.lost().cancelled().await;
    assert!(begin.elapsed() < 9 * SEC, "{:?}", begin.elapsed());
    assert!(guard.is_lost());
    tokio::task::yield_now().await;
    assert!(told.lock().unwrap().contains(&Notice::LeaseLost("nightly".into())));
}
