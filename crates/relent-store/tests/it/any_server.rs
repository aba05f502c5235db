//! What holds of every server that keeps a store.

use relent::{Jitter, Policy};
use relent_store::{
    Any, Begin, Engine, Fingerprint, Key, LeaseError, Nonce, OnUnknown, Replaced, Scope, Store, Version,
};
use std::time::{Duration, Instant};

/// A key that somebody begins, for an hour.
pub(crate) fn begin(scope: &Scope, key: &str) -> Begin {
    let hour = Duration::from_secs(3600);
    Begin {
        scope: scope.clone(),
        key: Key::new(key).unwrap(),
        fingerprint: Fingerprint::NONE,
        nonce: Nonce::random(),
        lease: hour,
        keep: hour,
        on_unknown: OnUnknown::Tell,
    }
}

/// A notification shortens a wait of twenty seconds.
pub(crate) async fn a_release_wakes_who_waits(store: &Store<Any>) {
    let name = Key::new("nightly").unwrap();
    let guard = store.lease(&name).acquire().await.unwrap();
    let begin = Instant::now();
    let patient = Policy::constant(Duration::from_secs(20)).jitter(Jitter::None).max_attempts(3);
    let (next, ()) = tokio::join!(store.lease(&name).wait(patient).acquire(), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(guard);
    });
    drop(next.unwrap());
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

/// A release that came before whoever waits could hear of it is seen: what has nobody is waited for in vain no longer than that takes.
pub(crate) async fn a_release_before_anything_is_heard_is_seen(store: &Store<Any>) {
    let names = ["nightly", "weekly", "nightly"].map(|name| Key::new(name).unwrap());
    for name in &names {
        let guard = store.lease(name).acquire().await.unwrap();
        // While somebody has it, there is nothing to be told.
        let short = Duration::from_millis(400);
        let begin = Instant::now();
        store.engine().freed(name, short).await;
        assert!(begin.elapsed() >= short, "{:?}", begin.elapsed());
        assert_eq!(guard.release().await.unwrap(), relent_store::Kept::Kept);
        let begin = Instant::now();
        store.engine().freed(name, Duration::from_secs(20)).await;
        assert!(begin.elapsed() < Duration::from_secs(5), "{name:?}: {:?}", begin.elapsed());
    }
}

/// So many wait for a lease that somebody has, and look for it four times a second: how often `acquired` says that the server was
/// asked for it meanwhile is what they were told to, and not once more.
pub(crate) async fn who_waits_asks_as_often_as_it_was_told(
    store: &Store<Any>,
    waiters: u64,
    acquired: impl AsyncFn() -> u64,
) {
    let name = Key::new("nightly").unwrap();
    let guard = store.lease(&name).ttl(Duration::from_secs(60)).acquire().await.unwrap();
    let before = acquired().await;
    let quarterly = Policy::constant(Duration::from_millis(250)).jitter(Jitter::None).max_attempts(5);
    let waiting: Vec<_> = (0..waiters)
        .map(|_| {
            let (store, name) = (store.clone(), name.clone());
            tokio::spawn(async move { store.lease(&name).wait(quarterly).acquire().await.map(drop) })
        })
        .collect();
    for waiter in waiting {
        assert!(matches!(waiter.await.unwrap(), Err(LeaseError::Held { .. })));
    }
    assert_eq!(acquired().await - before, waiters * 5);
    drop(guard);
}

/// Whoever is cut off from what tells of releases finds out by itself. `deafen` cuts off all who listen, and says how many.
pub(crate) async fn a_lost_notification_only_delays(store: &Store<Any>, deafen: impl AsyncFn() -> u64) {
    let name = Key::new("nightly").unwrap();
    let guard = store.lease(&name).acquire().await.unwrap();
    let patient = Policy::constant(Duration::from_millis(1500)).jitter(Jitter::None).max_attempts(4);
    let begin = Instant::now();
    let (next, ()) = tokio::join!(store.lease(&name).wait(patient).acquire(), async {
        while deafen().await == 0 {
            assert!(begin.elapsed() < Duration::from_secs(1), "nobody listens");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Whoever began to listen has looked whether it is free by then.
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(guard.release().await.unwrap(), relent_store::Kept::Kept);
    });
    drop(next.unwrap());
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(1500) && took < Duration::from_secs(5), "{took:?}");
}

/// Twenty values, and the versions that they were given.
pub(crate) struct Kept(Vec<(Key, Version)>);

impl Kept {
    pub(crate) async fn new(store: &Store<Any>) -> Kept {
        let mut kept = vec![];
        for nth in 0..20 {
            let key = Key::new(format!("{nth}")).unwrap();
            let Replaced::Replaced(version) = store.replace(&key, Version::ABSENT, Some(b"x")).await.unwrap() else {
                panic!("{key:?} is there already")
            };
            kept.push((key, version));
        }
        Kept(kept)
    }

    /// One of the keys.
    pub(crate) fn key(&self) -> &Key {
        &self.0[0].0
    }

    /// Who asks a server that is gone is told so in bounded time.
    pub(crate) async fn is_out_of_reach(&self, store: &Store<Any>) {
        let hasty = Policy::constant(Duration::from_millis(20)).timeout(Duration::from_millis(500));
        let begin = Instant::now();
        let error = store.clone().patience(hasty).read(self.key()).await.unwrap_err();
        assert!(error.is_transient() && begin.elapsed() < Duration::from_secs(3), "{error:?} {:?}", begin.elapsed());
    }

    pub(crate) async fn is_there(&self, store: &Store<Any>) {
        for (key, version) in &self.0 {
            assert_eq!(store.read(key).await.unwrap().version, *version, "{key:?}");
        }
    }
}
