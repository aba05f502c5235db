//! Servers that are away for a while, and many who wait for them.

use crate::servers::{PostgresServer, RedisServer};
use relent_store::{Key, Notice, Replaced, Scope, Store, Version};
use std::{
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

/// How many wait.
const CALLERS: usize = 300;

/// For how long the server is away: longer than an attempt is waited for, and less than a store's patience.
const AWAY: Duration = Duration::from_secs(3);

/// How long it may take after that until all are answered.
const SOON: Duration = Duration::from_secs(3);

/// What was kept, where something was.
type Answer = Result<Option<(Key, Version)>, String>;

/// A process, stopped or going on.
fn signal(signal: &str, pids: &[u32]) {
    let sent = Command::new("kill").arg(signal).args(pids.iter().map(u32::to_string)).status().unwrap();
    assert!(sent.success());
}

/// Half of them keep a value, the others pay once. Two thirds come at once, the rest while the server is away.
fn callers(store: &Store) -> Vec<JoinHandle<Answer>> {
    let call = |nth: usize| {
        let store = store.clone();
        async move {
            tokio::time::sleep(AWAY.mul_f64(2.7 * nth.saturating_sub(CALLERS * 2 / 3) as f64 / CALLERS as f64)).await;
            let key = Key::new(format!("caller {nth}")).unwrap();
            if nth.is_multiple_of(2) {
                let kept = store.replace(&key, Version::ABSENT, Some(b"x")).await;
                return match kept.map_err(|err| format!("{nth}: {err:?}"))? {
                    Replaced::Replaced(version) => Ok(Some((key, version))),
                    conflict => Err(format!("{nth}: {conflict:?}")),
                };
            }
            let once = store.once(&Scope::new("pay").unwrap(), &key).run(async |_| Ok::<_, String>("paid")).await;
            once.map(|_| None).map_err(|err| format!("{nth}: {err:?}"))
        }
    };
    (0..CALLERS).map(call).map(tokio::spawn).collect()
}

/// All of them come through an outage that is shorter than their patience, soon after it, and the operator hears nothing that is not so.
async fn all_come_through(url: &str, away: impl AsyncFnOnce(), back: impl AsyncFnOnce()) {
    let store = Store::open(url).await.unwrap();
    let told = Arc::new(Mutex::new(vec![]));
    let tells = told.clone();
    store.listen(move |notice: &Notice| tells.lock().unwrap().push(notice.clone()));
    away().await;
    let begun = Instant::now();
    let calls = callers(&store);
    tokio::time::sleep(AWAY).await;
    back().await;
    let back = Instant::now();
    let (mut kept, mut lost) = (vec![], vec![]);
    for call in calls {
        match call.await.unwrap() {
            Ok(version) => kept.extend(version),
            Err(error) => lost.push(error),
        }
    }
    assert_eq!(lost, Vec::<String>::new(), "{} of {CALLERS} gave up after {:?}", lost.len(), begun.elapsed());
    assert!(back.elapsed() < SOON, "{:?}", back.elapsed());
    assert_eq!(*told.lock().unwrap(), [], "nobody gave up");
    for (key, version) in kept {
        assert_eq!(store.read(&key).await.unwrap().version, version, "{key:?} was changed once");
    }
}

/// How many questions a Redis was asked, and over how many connections.
fn asked(server: &RedisServer) -> (u64, u64) {
    let port = server.port.to_string();
    let out = Command::new("redis-cli").args(["-p", &port, "INFO", "everything"]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let number = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        rest.split([',', '\r']).next().unwrap().parse::<u64>().unwrap()
    };
    (number("cmdstat_evalsha:calls="), number("total_connections_received:"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_wait_for_a_redis_that_stands_still_are_answered() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let pid = server.pid();
    all_come_through(&server.url(), async || signal("-STOP", &[pid]), async || signal("-CONT", &[pid])).await;
    // Each asks before anybody knows, and when the server is back; half of them twice.
    let (questions, connections) = asked(&server);
    assert!(questions < CALLERS as u64 * 3 && connections < 50, "{questions} over {connections}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_wait_for_a_redis_that_is_started_again_are_answered() {
    let server = Mutex::new(RedisServer::start(&["--appendfsync", "no"]));
    let url = server.lock().unwrap().url();
    all_come_through(&url, async || server.lock().unwrap().kill(), async || server.lock().unwrap().again()).await;
    let (questions, connections) = asked(&server.lock().unwrap());
    assert!(questions < CALLERS as u64 * 2 && connections < 20, "{questions} over {connections}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_wait_for_a_postgres_that_stands_still_are_answered() {
    let server = PostgresServer::start();
    let pids = || {
        let children = Command::new("pgrep").args(["-P", &server.pid().to_string()]).output().unwrap();
        let text = String::from_utf8(children.stdout).unwrap();
        let mut pids: Vec<u32> = text.lines().map(|pid| pid.parse().unwrap()).collect();
        pids.push(server.pid());
        pids
    };
    let stopped = Mutex::new(vec![]);
    let stop = async || {
        *stopped.lock().unwrap() = pids();
        signal("-STOP", &stopped.lock().unwrap());
    };
    all_come_through(&server.url(), stop, async || signal("-CONT", &stopped.lock().unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_wait_for_a_postgres_that_is_started_again_are_answered() {
    // A crash of its process takes nothing that its system has; it starts sooner so.
    let server = Mutex::new(PostgresServer::start_with(|_| vec!["fsync=off".into()]));
    let url = server.lock().unwrap().url();
    all_come_through(&url, async || server.lock().unwrap().kill(), async || server.lock().unwrap().again()).await;
}
