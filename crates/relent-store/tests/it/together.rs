//! Many callers who ask a server together: each has the answer that it would have alone, and its own trouble.

use super::{
    any_server,
    servers::{PostgresServer, RedisServer},
};
use relent_store::{Any, Begin, Claim, Kept, Key, Scope, Started, Store, Stored, in_postgres, in_redis};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

const HOUR: Duration = Duration::from_secs(3600);

fn begin(key: &str) -> Begin {
    any_server::begin(&Scope::new("together").unwrap(), key)
}

/// Four hundred callers, four for each key: one starts, and its result is what comes of the key. Each has its own.
pub(crate) async fn each_has_its_own_answer(store: &Store<Any>) {
    let mut callers = JoinSet::new();
    for nth in 0..400_u32 {
        let (store, key) = (store.clone(), (nth % 100).to_string());
        callers.spawn(async move {
            let begin = begin(&key);
            match store.begin(&begin).await.unwrap() {
                Started::Started { fence, unknown: None } => {
                    let claim = Claim { scope: begin.scope, key: begin.key, fence };
                    let stored = if nth % 3 == 0 { Stored::failure(&key) } else { Stored::success(&key) };
                    assert_eq!(store.complete(&claim, &stored, HOUR).await.unwrap(), Kept::Kept);
                    // Told again, it is the same.
                    assert_eq!(store.complete(&claim, &Stored::success("else"), HOUR).await.unwrap(), Kept::Kept);
                    Some((key, stored, fence))
                }
                Started::Busy { .. } => None,
                Started::Replay(stored) => {
                    assert_eq!(stored.bytes(), key.as_bytes());
                    None
                }
                other => panic!("{other:?}"),
            }
        });
    }
    let mut done = HashMap::new();
    while let Some(ended) = callers.join_next().await {
        if let Some((key, stored, fence)) = ended.unwrap() {
            assert_eq!(done.insert(key, (stored, fence)), None, "started once");
        }
    }
    assert_eq!(done.len(), 100);
    // A claim of another, and one that nobody has: each is told so, whoever asks beside it.
    let mut callers = JoinSet::new();
    for (key, (stored, fence)) in done {
        let store = store.clone();
        callers.spawn(async move {
            let Begin { scope, key: name, .. } = begin(&key);
            let mut claim = Claim { scope, key: name, fence };
            claim.fence.0 += 1;
            assert_eq!(store.complete(&claim, &Stored::success("late"), HOUR).await.unwrap(), Kept::Fenced);
            assert_eq!(store.begin(&begin(&key)).await.unwrap(), Started::Replay(stored));
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
}

/// The same question twice, as it is asked when an answer was lost: once alone, and once among others.
async fn asked_again_it_is_the_same(store: &Store<Any>) {
    let mut callers = JoinSet::new();
    for nth in 0..50 {
        let store = store.clone();
        callers.spawn(async move {
            let begin = begin(&format!("again {nth}"));
            let twice = tokio::join!(store.begin(&begin), store.begin(&begin));
            assert_eq!(twice.0.unwrap(), twice.1.unwrap());
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_ask_redis_together_have_each_their_own_answer() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let store = Store::open(&server.url()).await.unwrap();
    each_has_its_own_answer(&store).await;
    asked_again_it_is_the_same(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_ask_postgres_together_have_each_their_own_answer() {
    let server = PostgresServer::start();
    let store = Store::open(&server.url()).await.unwrap();
    each_has_its_own_answer(&store).await;
    asked_again_it_is_the_same(&store).await;
}

/// How many scripts a Redis server has run.
fn scripts(server: &RedisServer) -> u64 {
    let port = server.port.to_string();
    let out = std::process::Command::new("redis-cli").args(["-p", &port, "INFO", "commandstats"]).output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    let calls = said.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next());
    calls.unwrap().parse().unwrap()
}

#[tokio::test]
async fn who_holds_up_redis_is_asked_less_often_by_many() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let store = Store::new(in_redis::Redis::open(&server.url(), "relent_").await.unwrap());
    let mut callers = JoinSet::new();
    for nth in 0..200 {
        let store = store.clone();
        callers.spawn(async move {
            let guard = store.lease(&Key::new(format!("lease {nth}")).unwrap()).acquire().await.unwrap();
            let (fence, kept) = (guard.fence(), guard.release().await.unwrap());
            assert_eq!(kept, Kept::Kept);
            fence
        });
    }
    while let Some(ended) = callers.join_next().await {
        assert!(ended.unwrap().0 > 0);
    }
    let scripts = scripts(&server);
    assert!((4..100).contains(&scripts), "{scripts} scripts for 400 questions");
}

/// What one of them cannot have is an error of its own.
#[tokio::test]
async fn a_record_that_redis_cannot_use_is_the_trouble_of_one_alone() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let store = Store::open(&server.url()).await.unwrap();
    let Started::Started { .. } = store.begin(&begin("bad")).await.unwrap() else { panic!("it is new") };
    let all = "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('SETRANGE', key, 0, '2') end return 1";
    let out = std::process::Command::new("redis-cli").args(["-p", &server.port.to_string(), "EVAL", all, "0"]).output();
    assert_eq!(out.unwrap().stdout.trim_ascii(), b"1");
    let names = (0..50).map(|nth| if nth == 25 { "bad".to_owned() } else { format!("good {nth}") });
    let begins: Vec<Begin> = names.map(|name| begin(&name)).collect();
    let mut callers = JoinSet::new();
    for begin in begins {
        let store = store.clone();
        callers.spawn(async move { (begin.key.to_string(), store.begin(&begin).await) });
    }
    while let Some(ended) = callers.join_next().await {
        match ended.unwrap() {
            (name, Err(error)) => assert_eq!((&*name, error.kind()), ("bad", relent_store::ErrorKind::TooNew)),
            (name, Ok(started)) => assert!(name != "bad" && matches!(started, Started::Started { .. }), "{name}"),
        }
    }
}

/// Somebody is at a row for longer than the others wait: a transaction of a user's own, which keeps what came of its claim.
#[tokio::test]
async fn a_row_of_postgres_that_somebody_is_at_holds_up_nobody_else() {
    let server = PostgresServer::start();
    let store = Store::open(&server.url()).await.unwrap();
    let first = begin("held");
    let Started::Started { fence, .. } = store.begin(&first).await.unwrap() else { panic!("it is new") };
    let claim = Claim { scope: first.scope, key: first.key, fence };
    let (mut client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let tx = client.transaction().await.unwrap();
    assert_eq!(in_postgres::complete(&tx, &claim, &"receipt".into(), HOUR).await.unwrap(), Kept::Kept);
    let asked = Instant::now();
    let mut callers = JoinSet::new();
    for nth in 0..60 {
        let (store, name) = (store.clone(), if nth == 0 || nth == 30 { "held".into() } else { format!("free {nth}") });
        callers.spawn(async move { (name == "held", store.begin(&begin(&name)).await.unwrap()) });
    }
    for _ in 0..58 {
        let (is_held, started) = callers.join_next().await.unwrap().unwrap();
        assert!(!is_held && matches!(started, Started::Started { .. }), "{started:?}");
    }
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    tx.commit().await.unwrap();
    while let Some(ended) = callers.join_next().await {
        assert_eq!(ended.unwrap(), (true, Started::Replay("receipt".into())));
    }
}
