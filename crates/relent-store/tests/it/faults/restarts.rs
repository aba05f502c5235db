//! Servers that are killed and started again while many work on them: what is lost, beside what is promised.

use crate::servers::{PostgresServer, RedisServer};
use relent::Policy;
use relent_store::{Key, Kind, Notice, OnceError, Scope, Store};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

const KILLS: u32 = 3;

/// How many ask at a time. Each thing is asked for by four.
const CALLERS: u32 = 12;

/// What came of it.
#[derive(Debug, Default)]
struct Left {
    /// Told to be done.
    accepted: BTreeSet<String>,
    /// Told to be done, and not there.
    lost: usize,
    /// Done more than once.
    twice: usize,
    /// Calls that were told of an error.
    errors: Vec<String>,
    notices: usize,
    /// The longest that a call took.
    longest: Duration,
}

#[derive(Default)]
struct Seen {
    accepted: BTreeSet<String>,
    effects: BTreeMap<String, u32>,
    errors: Vec<String>,
    longest: Duration,
}

/// Kills the server and starts it again, by `again`, a few times, while many ask for things to be done once.
async fn under_load(url: &str, mut again: impl FnMut()) -> Left {
    let store = Store::open(url).await.unwrap();
    let told = Arc::new(AtomicU32::new(0));
    let tell = told.clone();
    store.listen(move |notice| {
        if matches!(notice, Notice::Away(_) | Notice::Back) {
            tell.fetch_add(1, Ordering::SeqCst);
        }
    });
    let (seen, next, is_over) =
        (Arc::new(Mutex::new(Seen::default())), Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (store, seen, next, is_over) = (store.clone(), seen.clone(), next.clone(), is_over.clone());
            tokio::spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    call(store.clone(), next.fetch_add(1, Ordering::SeqCst) / 4, seen.clone()).await;
                }
            })
        })
        .collect();
    for turn in 0..=KILLS {
        // Killed when some work was done since the last time, which is soon, unless the machine has much else to do.
        let (before, end) = (seen.lock().unwrap().accepted.len(), Instant::now() + Duration::from_secs(20));
        while seen.lock().unwrap().accepted.len() < before + 20 && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if turn < KILLS {
            tokio::task::block_in_place(&mut again);
        }
    }
    is_over.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.unwrap();
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let mut left = Left { notices: told.load(Ordering::SeqCst) as usize, longest: seen.longest, ..Left::default() };
    let end = Instant::now() + Duration::from_secs(30);
    let listed = loop {
        match store.list(Kind::Records, 1_000_000).await {
            Ok(listed) => break listed,
            Err(error) => assert!(Instant::now() < end, "it does not come back: {error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let there: BTreeSet<String> = listed.into_iter().map(name_of).collect();
    left.lost = seen.accepted.difference(&there).count();
    left.twice = seen.effects.values().filter(|times| **times > 1).count();
    (left.accepted, left.errors) = (seen.accepted, seen.errors);
    left
}

fn name_of(listed: relent_store::Listed) -> String {
    match listed {
        relent_store::Listed::Record { key, .. } => key.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn call(store: Store, nth: u32, seen: Arc<Mutex<Seen>>) {
    let wait =
        Policy::exponential(Duration::from_millis(5)).cap(Duration::from_millis(100)).timeout(Duration::from_secs(20));
    let (scope, name) = (Scope::new("restarts").unwrap(), format!("k{nth}"));
    let key = Key::new(&name).unwrap();
    let begin = Instant::now();
    let done = store.once(&scope, &key).wait(wait.unlimited_attempts()).run(async |_| {
        *seen.lock().unwrap().effects.entry(name.clone()).or_default() += 1;
        Ok::<_, String>("done".to_owned())
    });
    let done = done.await;
    let mut seen = seen.lock().unwrap();
    seen.longest = seen.longest.max(begin.elapsed());
    match done {
        Ok(_) => drop(seen.accepted.insert(name)),
        // An honest answer: it was done, and may not be known.
        Err(OnceError::NotKept { .. } | OnceError::Unknown { .. } | OnceError::Busy { .. }) => {}
        // All callers together ask a store that is away ten times a second; whose turn does not come is told.
        Err(OnceError::Store(error)) if error.is_transient() => {}
        Err(err) => seen.errors.push(format!("{name}: {err:?}")),
    }
}

fn say(what: &str, left: &Left) {
    let Left { accepted, lost, twice, errors, notices, longest } = left;
    let accepted = accepted.len();
    println!(
        "{what}: {KILLS} kills, {accepted} accepted, {lost} lost, {twice} done twice, {notices} notices, longest {longest:.1?}"
    );
    assert!(accepted > 20, "{accepted} accepted: {errors:?}");
    // Who is told that he was fenced knows that somebody else did it, too: that is honest where something was lost, be it a
    // beginning that somebody made anew.
    assert!(*lost > 0 || *twice > 0 || errors.is_empty(), "{errors:#?}");
    assert!(errors.iter().all(|error| error.contains("Fenced")), "{errors:#?}");
    // Away and back for each, and again where a server that has much to do comes back only for some at first.
    assert!(*notices <= 6 * KILLS as usize, "{notices} notices");
    assert!(*longest < Duration::from_secs(25), "{longest:?}");
}

async fn redis_under_load(settings: &[&str]) -> Left {
    let mut server = RedisServer::start(settings);
    let url = server.url();
    let left = under_load(&url, || {
        server.kill();
        std::thread::sleep(Duration::from_millis(150));
        server.again();
    });
    let left = left.await;
    say(&settings.join(" "), &left);
    left
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_killed_under_load_loses_what_it_says() {
    let always = redis_under_load(&["--appendfsync", "always"]).await;
    assert_eq!((always.lost, always.twice), (0, 0), "{always:?}");
    // Its process is killed, not its machine: what the system was given is there, but for what waited for a sync.
    let everysec = redis_under_load(&["--appendfsync", "everysec"]).await;
    assert!(everysec.lost <= everysec.accepted.len() / 2, "{everysec:?}");
    // Without a file all is lost, and is seen to be lost.
    let none = redis_under_load(&["--appendonly", "no"]).await;
    assert!(none.lost > 20, "{none:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_killed_under_load_loses_nothing() {
    let mut server = PostgresServer::start();
    let url = server.url();
    let left = under_load(&url, || {
        server.kill();
        server.again();
    });
    let left = left.await;
    say("postgres", &left);
    assert_eq!((left.lost, left.twice), (0, 0), "{left:?}");
}
