//! A real Redis.

use crate::{
    any_server::{self, Kept},
    servers::{RedisServer, free_port},
};
use relent::{Limit, Policy, Upstream};
use relent_store::{
    Abandon, Any, Begin, Claim, Engine, ErrorKind, Fence, Fingerprint, Held, Key, Kind, LeaseError, Listed, MAX_VALUE,
    Nonce, OnUnknown, Owner, RecordState, Scope, Sharing, Started, Store, Stored, Version, conformance,
    in_redis::Redis,
};
use std::{
    collections::BTreeMap,
    future::poll_fn,
    io::{Read, Write},
    pin::Pin,
    task::Poll,
    time::{Duration, Instant},
};

#[tokio::test]
async fn redis_conforms() {
    let server = RedisServer::start(&[]);
    conformance::check(&Redis::open(&server.url(), "relent_").await.unwrap()).await.unwrap();
}

/// Tells a server something, and waits for its answer.
fn told(port: u16, command: &str) {
    let mut socket = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.write_all(format!("{command}\r\n").as_bytes()).unwrap();
    let mut answer = [0; 64];
    let length = socket.read(&mut answer).unwrap();
    assert_eq!(&answer[..length], b"+OK\r\n", "{command}");
}

#[tokio::test]
async fn a_cluster_of_one_is_used_and_one_of_several_is_refused() {
    let buses = [free_port(), free_port()].map(|port| port.to_string());
    let node = |bus: &String| RedisServer::start(&["--cluster-enabled", "yes", "--cluster-port", bus]);
    let [one, two] = [node(&buses[0]), node(&buses[1])];
    told(one.port, "CLUSTER ADDSLOTSRANGE 0 16383");
    let store = Store::open(&one.url()).await.unwrap();
    // It takes a moment until it believes itself.
    store.read(&Key::new("a").unwrap()).await.unwrap();
    conformance::check(store.engine()).await.unwrap();
    // Keys of many callers are on the same node, and may nevertheless not be in one script.
    crate::together::each_has_its_own_answer(&store).await;

    told(one.port, "CLUSTER DELSLOTSRANGE 8000 16383");
    told(two.port, "CLUSTER ADDSLOTSRANGE 8000 16383");
    told(two.port, "CONFIG SET cluster-require-full-coverage no");
    told(one.port, "CONFIG SET cluster-require-full-coverage no");
    told(one.port, &format!("CLUSTER MEET 127.0.0.1 {} {}", two.port, buses[1]));
    let begin = Instant::now();
    let error = loop {
        match Store::open(&one.url()).await {
            Err(error) => break error,
            Ok(_) => assert!(begin.elapsed() < Duration::from_secs(10), "the nodes do not meet"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert_eq!(error.to_string(), "the Redis server is one of 2 of a cluster, which no store is kept in");

    // Who may not ask whether it is one is told when a key is elsewhere.
    told(one.port, "ACL SETUSER blind on >x ~* &* +@all -info -cluster");
    let hasty = Policy::constant(Duration::from_millis(10)).timeout(Duration::from_millis(100));
    let blind = Store::open_with(&format!("redis://blind:x@127.0.0.1:{}/0", one.port), hasty).await.unwrap();
    let mut elsewhere = vec![];
    for nth in 0..40 {
        elsewhere.extend(blind.read(&Key::new(format!("{nth}")).unwrap()).await.err());
    }
    let what = "the Redis server says that another of its cluster has the key";
    let is_told = |error: &relent_store::Error| error.to_string() == what && error.hint_text().is_some();
    assert!(elsewhere.iter().any(is_told), "{elsewhere:?}");
}

#[tokio::test]
async fn redis_says_what_it_promises() {
    for (settings, says, cautions) in [
        (&["--appendfsync", "always"][..], "fsync always", 1),
        (&["--appendfsync", "everysec"], "up to a second or two", 1),
        (&["--appendonly", "no", "--maxmemory-policy", "allkeys-lru"], "no append-only file", 3),
    ] {
        let server = RedisServer::start(settings);
        let about = Store::open(&server.url()).await.unwrap().about().await.unwrap();
        assert!(about.durability.contains(says), "{about:?}");
        assert_eq!(about.cautions.len(), cautions, "{about:?}");
        assert!(about.skew_ms.abs() < 1000, "{about:?}");
    }
}

#[tokio::test]
async fn redis_with_a_password_lets_in_who_has_it_and_shows_it_to_nobody() {
    let server = RedisServer::start(&["--requirepass", "hunter2"]);
    for url in [server.url(), format!("redis://:wrong-hunter@127.0.0.1:{}/0", server.port)] {
        let begin = Instant::now();
        let error = Store::open(&url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert!(!format!("{error} {error:?} {:?}", error.hint_text()).contains("hunter"));
    }
    let store = Store::open(&format!("redis://:hunter2@127.0.0.1:{}/0?prefix=mine_", server.port)).await.unwrap();
    let _ = store.replace(&Key::new("a").unwrap(), Version::ABSENT, Some(b"x")).await.unwrap();
    assert!(!format!("{store:?}").contains("hunter2"));
    let Any::Redis(engine) = store.engine() else { panic!("{store:?}") };
    assert!(!format!("{engine:?}").contains("hunter2"));
}

#[tokio::test]
async fn redis_lists_names_without_values() {
    let server = RedisServer::start(&[]);
    let store = Store::open(&server.url()).await.unwrap();
    let (scope, key) = (Scope::of(["a", "b"]).unwrap(), Key::new("k").unwrap());
    store.once(&scope, &key).run(async |_| Ok::<_, String>("secret")).await.unwrap();
    let listed = store.list(Kind::Records, 10).await.unwrap();
    assert!(
        matches!(&listed[..], [Listed::Record { scope: s, key: k, bytes: 6, .. }] if (s, k) == (&scope, &key)),
        "{listed:?}"
    );
    assert!(!format!("{listed:?}").contains("secret"));
}

/// What a hand holds is held over a weekend, and what is owed for a permit a day is owed tomorrow.
#[tokio::test]
async fn what_redis_knows_of_an_upstream_outlives_the_day() {
    let server = RedisServer::start(&[]);
    let store = Store::open(&server.url()).await.unwrap();
    let daily = Upstream::new("bank").limit(Limit::rate(1).per(Duration::from_secs(24 * 3600)));
    let bank = store.share(&Key::new("bank").unwrap(), daily, Sharing::default()).await.unwrap();
    store.hold(&Key::new("bank").unwrap(), Some(Held::Open)).await.unwrap();
    bank.merge().await.unwrap();
    let keys = said(&server, &["KEYS", "*"]);
    let held = keys.lines().find(|key| said(&server, &["HGET", key, "held"]).trim() == "open").expect("it is held");
    let left: u64 = said(&server, &["PTTL", held]).trim().parse().expect("a number");
    assert!(left > 366 * 24 * 3600 * 1000, "{held}: {left} ms");
}

/// Leases and records of each kind are listed as they are, and what is only remembered is not.
#[tokio::test]
async fn what_is_packed_in_redis_is_listed() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let store = Store::open(&server.url()).await.unwrap();
    let hour = Duration::from_secs(3600);
    let begun = async |name: &str, lease: u64| {
        let begin =
            Begin { lease: Duration::from_millis(lease), ..any_server::begin(&Scope::of(["a", "b"]).unwrap(), name) };
        let Started::Started { fence, .. } = store.begin(&begin).await.unwrap() else { panic!("{name} is new") };
        Claim { scope: begin.scope, key: begin.key, fence }
    };
    let running = begun("running", 600_000).await;
    let unknown = begun("unknown", 600_000).await;
    assert_eq!(store.abandon(&unknown, Abandon::Unknown).await.unwrap(), relent_store::Kept::Kept);
    let forgotten = begun("forgotten", 600_000).await;
    assert_eq!(store.abandon(&forgotten, Abandon::Forget).await.unwrap(), relent_store::Kept::Kept);
    let (done, failed) = (begun("done", 600_000).await, begun("failed", 600_000).await);
    for (claim, stored) in [(&done, Stored::success("12345")), (&failed, Stored::failure(""))] {
        assert_eq!(store.complete(claim, &stored, hour).await.unwrap(), relent_store::Kept::Kept);
    }
    let now = store.about().await.unwrap().now.0;
    let mut listed: Vec<_> = (store.list(Kind::Records, 10).await.unwrap().into_iter())
        .map(|listed| match listed {
            Listed::Record { scope, key, state, fence, since, expires, bytes } => {
                assert!(now.abs_diff(since.0) < 60_000 && now.abs_diff(expires.0 - 3_600_000) < 60_000, "{since:?}");
                assert_eq!(scope.to_string(), "a b");
                (key.to_string(), state, fence, bytes)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    listed.sort_by(|one, other| one.0.cmp(&other.0));
    let all = [
        ("done", RecordState::Done, done.fence, 5),
        ("failed", RecordState::Failed, failed.fence, 0),
        ("running", RecordState::Running, running.fence, 0),
        ("unknown", RecordState::Unknown, unknown.fence, 0),
    ];
    assert_eq!(listed, all.map(|(name, state, fence, bytes)| (name.to_owned(), state, fence, bytes)));

    let held = store.lease(&Key::new("held").unwrap()).owner(Owner::new("here: ü")).acquire().await.unwrap();
    let free = store.lease(&Key::new("free").unwrap()).acquire().await.unwrap();
    assert_eq!(free.release().await.unwrap(), relent_store::Kept::Kept);
    match &store.list(Kind::Leases, 10).await.unwrap()[..] {
        [Listed::Lease { name, owner, fence, until }] => {
            assert_eq!((name.as_bytes(), owner.as_str(), *fence), (&b"held"[..], "here: ü", held.fence()));
            assert!(until.0 > now && until.0 < now + 60_000, "{until:?} {now}");
        }
        other => panic!("{other:?}"),
    }
}

/// What is larger than an answer may be is refused before it is sent, also without the store's own bound.
#[tokio::test]
async fn what_is_too_large_to_be_read_again_is_not_sent_to_redis() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let engine = Redis::open(&server.url(), "relent_").await.unwrap();
    let (scope, key, large) = (Scope::new("s").unwrap(), Key::new("k").unwrap(), vec![b'x'; MAX_VALUE + 1]);
    let claim = Claim { scope, key: key.clone(), fence: Fence(u64::MAX) };
    for error in [
        engine.complete(&claim, &Stored::success(&large[..]), Duration::from_secs(1)).await.map(drop).unwrap_err(),
        engine.replace(&key, Version::ABSENT, Some(&large), Nonce::random()).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
        assert!(!error.may_have_happened(), "{error:?}");
    }
    let _ = engine.replace(&key, Version::ABSENT, Some(&large[1..]), Nonce::random()).await.unwrap();
    assert_eq!(engine.read(&key).await.unwrap().value.unwrap().len(), MAX_VALUE);
    assert_eq!(commands(&server).get("set"), None, "a fence that nobody was given");
    assert_eq!(
        engine.complete(&claim, &Stored::success("x"), Duration::from_secs(1)).await,
        Ok(relent_store::Kept::Fenced)
    );
}

/// What another relent packed is not touched and not guessed at.
#[tokio::test]
async fn what_another_version_packed_in_redis_is_a_clear_error() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let store = Store::open(&server.url()).await.unwrap();
    let (scope, key) = (Scope::new("s").unwrap(), Key::new("k").unwrap());
    store.once(&scope, &key).run(async |_| Ok::<_, String>("receipt")).await.unwrap();
    let guard = store.lease(&key).acquire().await.unwrap();
    let all = "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('SETRANGE', key, 0, '2') end return 1";
    let out = std::process::Command::new("redis-cli").args(["-p", &server.port.to_string(), "EVAL", all, "0"]).output();
    assert_eq!(out.unwrap().stdout.trim_ascii(), b"1");
    let begin = Begin { on_unknown: OnUnknown::TakeOver, ..any_server::begin(&scope, "k") };
    let claim = Claim { scope, key: key.clone(), fence: guard.fence() };
    let errors = [
        store.begin(&begin).await.map(drop),
        store.complete(&claim, &Stored::success("x"), begin.keep).await.map(drop),
        store.extend(&claim, begin.keep).await.map(drop),
        store.abandon(&claim, Abandon::Forget).await.map(drop),
        store.holder(&key).await.map(drop),
        store.list(Kind::Records, 10).await.map(drop),
        store.list(Kind::Leases, 10).await.map(drop),
        match store.lease(&key).acquire().await {
            Err(LeaseError::Store(error)) => Err(error),
            other => panic!("{:?}", other.map(|guard| guard.fence())),
        },
    ];
    for error in errors.map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::TooNew, "{error:?}");
        assert_eq!(error.to_string(), "the Redis server has a record that another version of relent wrote");
        assert!(error.hint_text().unwrap().contains("?prefix="), "{error:?}");
    }
}

#[tokio::test]
async fn a_release_in_redis_that_nobody_could_hear_of_is_seen() {
    let server = RedisServer::start(&[]);
    let store = Store::open(&server.url()).await.unwrap();
    any_server::a_release_before_anything_is_heard_is_seen(&store).await;
}

#[tokio::test]
async fn a_release_in_redis_wakes_who_waits() {
    let server = RedisServer::start(&[]);
    let store = Store::open(&server.url()).await.unwrap();
    any_server::a_release_wakes_who_waits(&store).await;
}

/// What a server says to a command of one word, by `redis-cli`.
fn said(server: &RedisServer, command: &[&str]) -> String {
    let port = server.port.to_string();
    let out = std::process::Command::new("redis-cli").args(["-p", &port]).args(command).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

/// How often each command was run by the server so far, but for what asks that.
fn commands(server: &RedisServer) -> BTreeMap<String, u64> {
    let stats = said(server, &["INFO", "commandstats"]);
    let calls = stats.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().unwrap()))
    });
    calls.filter(|(name, _)| name != "info" && name != "command|docs").collect()
}

#[tokio::test]
async fn who_waits_for_a_lease_in_redis_does_not_spin() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let store = Store::open(&server.url()).await.unwrap();
    let acquired = async || commands(&server).get("set").copied().unwrap_or(0);
    any_server::who_waits_asks_as_often_as_it_was_told(&store, 50, acquired).await;
}

#[tokio::test]
async fn who_waits_for_a_lease_in_redis_and_hears_nothing_gets_it_nevertheless() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let store = Store::open(&server.url()).await.unwrap();
    let deafen = async || said(&server, &["CLIENT", "KILL", "TYPE", "pubsub"]).trim().parse().unwrap();
    any_server::a_lost_notification_only_delays(&store, deafen).await;
}

/// As a task does that goes on with something else (`select!`), and keeps the future.
async fn polled_once<F: Future>(mut future: Pin<&mut F>) {
    assert!(poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await);
}

/// Wherever a task was when it left them lying: asking over a new connection, beginning, waiting for others who begin.
#[tokio::test]
async fn futures_in_redis_that_are_left_lying_hold_up_nobody() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let engine = Redis::open(&server.url(), "relent_").await.unwrap();
    let (key, scope) = (Key::new("k").unwrap(), Scope::new("pay").unwrap());
    let soon = Duration::from_secs(1);
    said(&server, &["CLIENT", "KILL", "TYPE", "normal"]);
    assert!(engine.read(&key).await.is_err());
    let mut lying = Box::pin(engine.read(&key));
    polled_once(lying.as_mut()).await;
    assert!(tokio::time::timeout(soon, engine.read(&key)).await.unwrap().is_ok());
    lying.await.unwrap();

    let store = Store::new(engine);
    let once = async |key: String| {
        let (key, begin) = (Key::new(key).unwrap(), Instant::now());
        store.once(&scope, &key).run(async |_| Ok::<_, String>("x")).await.unwrap();
        begin.elapsed()
    };
    for number in [1, 2, 16] {
        let mut lying: Vec<_> = (0..number).map(|nth| Box::pin(once(format!("{number} {nth} lies")))).collect();
        for one in &mut lying {
            polled_once(one.as_mut()).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        for nth in 0..5 {
            let took = once(format!("{number} {nth}")).await;
            assert!(took < soon, "{number}: {took:?}");
        }
        for one in lying {
            one.await;
        }
    }
}

/// How long the server takes depends on how many commands it runs. So whoever is refused learns from it nothing but the answer, and
/// nothing at all of the keys of another tenant.
#[tokio::test]
async fn the_work_of_a_refusal_in_redis_tells_nothing() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let store = Store::open(&server.url()).await.unwrap();
    let begin = |tenant: &str, key: &str, request: &str| Begin {
        fingerprint: Fingerprint::of([request]),
        ..any_server::begin(&Scope::new(tenant).unwrap(), key)
    };
    // What begins, completes or is told so: the answer, and what the server did for it.
    let work = async |begin: Begin| {
        let before = commands(&server);
        let answer = store.begin(&begin).await.unwrap();
        let mut after = commands(&server);
        after.iter_mut().for_each(|(name, calls)| *calls -= before.get(name).copied().unwrap_or(0));
        after.retain(|_, calls| *calls > 0);
        (answer, after)
    };
    let claim = |begin: &Begin, answer: &Started| match answer {
        Started::Started { fence, .. } => Claim { scope: begin.scope.clone(), key: begin.key.clone(), fence: *fence },
        other => panic!("{other:?}"),
    };
    // The script is known from now on.
    work(begin("warm", "up", "")).await;
    for key in ["running", "done", "unknown"] {
        let first = begin("a", key, "pay 7");
        let claim = claim(&first, &work(first.clone()).await.0);
        match key {
            "done" => drop(store.complete(&claim, &Stored::success("x".repeat(100_000)), first.keep).await.unwrap()),
            "unknown" => drop(store.abandon(&claim, Abandon::Unknown).await.unwrap()),
            _ => {}
        }
    }
    let of = |list: &[(&str, u64)]| list.iter().map(|&(name, calls)| (name.to_owned(), calls)).collect();
    let refused: BTreeMap<String, u64> = of(&[("evalsha", 1), ("get", 1), ("pttl", 1), ("set", 1), ("time", 1)]);
    for key in ["running", "done", "unknown"] {
        let (answer, commands) = work(begin("a", key, "pay 8")).await;
        assert_eq!((answer, &commands), (Started::Mismatch, &refused), "{key}");
        let (answer, commands) = work(begin("a", key, "pay 7")).await;
        assert!(!matches!(answer, Started::Started { .. } | Started::Mismatch), "{key}: {answer:?}");
        assert_eq!(commands, refused, "{key}");
    }
    // To another tenant these are as new as any.
    let anew: BTreeMap<String, u64> = of(&[("evalsha", 1), ("set", 1), ("time", 1)]);
    for key in ["running", "done", "unknown", "of nobody"] {
        let (answer, commands) = work(begin("b", key, "pay 7")).await;
        assert!(matches!(answer, Started::Started { unknown: None, .. }), "{key}: {answer:?}");
        assert_eq!(commands, anew, "{key}");
    }
}

#[tokio::test]
async fn a_redis_that_is_killed_and_started_again_has_lost_nothing() {
    let mut server = RedisServer::start(&[]);
    let store = Store::open(&server.url()).await.unwrap();
    let kept = Kept::new(&store).await;
    server.kill();
    kept.is_out_of_reach(&store).await;
    let (answer, ()) = tokio::join!(store.read(kept.key()), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.again();
    });
    assert!(answer.is_ok(), "who asks meanwhile is answered: {answer:?}");
    kept.is_there(&store).await;
}

/// What a power loss leaves of an append-only file that is not synced at each commit: its beginning. What was accepted last is
/// gone, nothing before it; and who claims again what is gone has a greater fence than who had it.
#[tokio::test]
async fn an_append_only_file_that_lost_its_end_has_what_came_before() {
    // With `everysec` a server on a slow disk holds back more than we take away here.
    let mut server = RedisServer::start(&["--appendfsync", "no"]);
    let (scope, keys) = (Scope::new("s").unwrap(), (0..30).map(|nth| Key::new(format!("{nth}")).unwrap()));
    let keys: Vec<Key> = keys.collect();
    let begin = |key: &Key| Begin { key: key.clone(), ..any_server::begin(&scope, "k") };
    let mut fences = vec![];
    {
        let store = Store::open(&server.url()).await.unwrap();
        for key in &keys {
            let Started::Started { fence, .. } = store.begin(&begin(key)).await.unwrap() else { panic!() };
            fences.push(fence);
        }
    }
    server.kill();
    let files = std::fs::read_dir(server.folder().join("appendonlydir")).unwrap();
    let file =
        files.map(|file| file.unwrap().path()).find(|file| file.to_string_lossy().ends_with(".incr.aof")).unwrap();
    let (whole, mut kept) = (std::fs::read(&file).unwrap(), vec![]);
    for cut in [whole.len(), whole.len() - 1, whole.len() * 3 / 4, whole.len() / 2 + 7, whole.len() / 9] {
        std::fs::write(&file, &whole[..cut]).unwrap();
        server.again();
        let store = Store::open(&server.url()).await.unwrap();
        let listed: Vec<Key> = (store.list(Kind::Records, 100).await.unwrap().into_iter())
            .map(|listed| match listed {
                Listed::Record { key, .. } => key,
                other => panic!("{other:?}"),
            })
            .collect();
        let there: Vec<bool> = keys.iter().map(|key| listed.contains(key)).collect();
        let first = there.iter().take_while(|is| **is).count();
        assert!(there[first..].iter().all(|is| !is), "{cut}: {there:?}");
        kept.push(first);
        if let Some(gone) = keys.get(first) {
            let Started::Started { fence, unknown: None } = store.begin(&begin(gone)).await.unwrap() else { panic!() };
            assert!(fence > fences[first], "{cut}: {fence} after {}", fences[first]);
        }
        drop(store);
        server.kill();
    }
    assert!(kept[0] == 30 && kept[1] == 29 && kept.is_sorted_by(|more, less| more > less), "{kept:?}");
}

#[tokio::test]
async fn what_is_no_redis_is_told_in_bounded_time() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = tokio::io::AsyncWriteExt::write_all(&mut socket, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let hasty = Policy::constant(Duration::from_millis(20)).timeout(Duration::from_secs(1));
    let begin = Instant::now();
    let error = Store::open_with(&format!("redis://127.0.0.1:{port}/0"), hasty).await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(3), "{error:?} {:?}", begin.elapsed());
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://127.0.0.1:{}/0", silent.local_addr().unwrap().port());
    let begin = Instant::now();
    let error = Store::open_with(&url, hasty).await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(3), "{error:?} {:?}", begin.elapsed());
    assert!(!matches!(LeaseError::Store(error), LeaseError::Cancelled));
}
