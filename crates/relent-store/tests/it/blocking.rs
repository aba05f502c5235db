//! Programs without a runtime: leases, shares and once on threads, on every engine.

use crate::servers::{PostgresServer, RedisServer};
use relent::{Limit, Policy, Upstream};
use relent_store::{
    Engine, Hosted, Kept, Key, LeaseError, Memory, NoRuntime, Notice, Scope, SharedRate, Sharing, Store, conformance,
    in_sqlite::Sqlite,
};
use std::{
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

const MS: Duration = Duration::from_millis(1);

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

/// A lease, a share and a once, as a program without a runtime uses them.
fn all_forms<E: NoRuntime>(store: &Store<E>) {
    assert!(tokio::runtime::Handle::try_current().is_err(), "there is no runtime here");
    let nightly = key("nightly");
    let first = store.lease(&nightly).ttl(500 * MS).acquire_blocking().unwrap();
    let fence = first.fence();
    // Longer than it holds: it is renewed.
    thread::sleep(600 * MS);
    assert!(!first.is_lost());
    let refused = store.lease(&nightly).acquire_blocking();
    assert!(matches!(refused, Err(LeaseError::Held { .. })), "{refused:?}");
    // Whoever waits has it when it is released, and not before.
    thread::scope(|threads| {
        let patient = Policy::constant(5 * MS).unlimited_attempts();
        let waiting = threads.spawn(move || store.lease(&key("nightly")).wait(patient).acquire_blocking().unwrap());
        thread::sleep(30 * MS);
        assert!(!waiting.is_finished());
        drop(first);
        let second = waiting.join().unwrap();
        assert!(second.fence() > fence);
        assert_eq!(second.release().unwrap(), Kept::Kept);
    });
    assert_eq!(store.lease(&nightly).acquire_blocking().unwrap().release().unwrap(), Kept::Kept);

    let bank = || store.share_blocking(&key("bank"), Upstream::new("bank").limit(Limit::rate(50)), Sharing::default());
    let banks = [bank().unwrap(), bank().unwrap()];
    let begin = Instant::now();
    thread::scope(|threads| {
        for bank in &banks {
            threads.spawn(move || {
                for _ in 0..10 {
                    let call = Policy::immediate().max_attempts(1).on(Arc::clone(bank));
                    assert_eq!(call.retry_blocking(|_| Ok::<_, String>(1)).unwrap(), 1);
                }
            });
        }
    });
    // Twenty at fifty a second; what was booked for an interval may come early.
    assert!(begin.elapsed() > 250 * MS, "{:?}", begin.elapsed());
    let known = banks[0].merge().unwrap();
    assert_eq!(known.rate, Some(SharedRate { gap: 20 * MS, burst: 1 }));
    let [one, two] = banks;
    one.leave().unwrap();
    let left = two.leave().unwrap();
    assert_eq!((left.calls, left.processes), (20, 0));

    let (scope, order) = (Scope::new("pay").unwrap(), key("7"));
    for turn in 0..3 {
        let done = store.once(&scope, &order).run_blocking(|_| Ok::<_, String>("receipt")).unwrap();
        assert_eq!((done.bytes(), done.is_replayed), (&b"receipt"[..], turn > 0));
    }
}

#[test]
fn a_program_without_a_runtime_has_all_forms_in_memory_and_on_sqlite() {
    all_forms(&Store::new(Memory::new()));
    let folder = tempfile::tempdir().unwrap();
    all_forms(&Store::new(Sqlite::open(folder.path().join("state.db")).unwrap()));
}

fn conforms<E: Engine>(engine: &E) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(conformance::check(engine)).unwrap();
}

#[test]
fn a_program_without_a_runtime_has_all_forms_on_postgres() {
    let server = PostgresServer::start();
    let store = Store::open_hosted(&server.url()).unwrap();
    all_forms(&store);
    conforms(store.engine());
}

#[test]
fn a_program_without_a_runtime_has_all_forms_on_redis_and_hears_when_it_is_lost() {
    let mut server = RedisServer::start(&[]);
    let store = Store::open_hosted(&server.url()).unwrap();
    all_forms(&store);
    conforms(store.engine());
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let tell = told.clone();
    store.listen(move |notice| {
        if let Notice::LeaseLost(name) = notice {
            tell.lock().unwrap().push(name.clone());
        }
    });
    let lease = store.lease(&key("nightly")).ttl(600 * MS).acquire_blocking().unwrap();
    server.kill();
    let begin = Instant::now();
    assert!(lease.lost().wait(Duration::from_secs(10)), "it is lost when it cannot be renewed");
    assert!(begin.elapsed() < 600 * MS, "{:?}", begin.elapsed());
    let hasty = Policy::constant(10 * MS).timeout(300 * MS);
    let begin = Instant::now();
    assert!(store.clone().patience(hasty).blocking().read(&key("a")).unwrap_err().is_transient());
    assert!(begin.elapsed() < 2000 * MS, "{:?}", begin.elapsed());
    while told.lock().unwrap().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(10));
        thread::sleep(MS);
    }
    assert_eq!(*told.lock().unwrap(), ["nightly"]);
    // Whatever was opened there ends with the last who has it.
    drop(lease);
    drop(store);
}

#[test]
fn a_url_that_makes_no_sense_is_an_error_here_too() {
    assert!(Store::<Hosted>::open_hosted("mongodb://a").is_err());
}
