//! A real Postgres.

use crate::{
    any_server::{self, Kept},
    servers::PostgresServer,
};
use relent::Policy;
use relent_store::{
    Abandon, Begin, Claim, Engine, ErrorKind, Fingerprint, Key, Nonce, Replaced, Scope, Started, Store, Stored,
    Version, conformance, in_postgres::Postgres,
};
use std::time::{Duration, Instant};

#[tokio::test]
async fn postgres_conforms() {
    let server = PostgresServer::start();
    let engine = opened(&server).await;
    conformance::check(engine.engine()).await.unwrap();
    // Another prefix is another store.
    let key = Key::new("a").unwrap();
    let _ = engine.replace(&key, Version::ABSENT, Some(b"x")).await.unwrap();
    let other = Store::open(&format!("{}?prefix=my_", server.url())).await.unwrap();
    assert_eq!(other.read(&key).await.unwrap().value, None);
    seen_together_with_its_effects(&server.url()).await;
    completed_together_with_its_effects(&engine, &server.url()).await;
    let about = engine.about().await.unwrap();
    assert!(about.durability.contains("on the server's disk"), "{about:?}");
    assert!(about.skew_ms.abs() < 1000, "{about:?}");
}

/// Part of another test, because a server of its own takes seconds to make.
async fn seen_together_with_its_effects(url: &str) {
    use relent_store::in_postgres::{first_time, keep_last};
    let connect = || async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    };
    let (mut one, mut two) = (connect().await, connect().await);
    let (scope, key, day) = (Scope::new("orders").unwrap(), Key::new("7").unwrap(), Duration::from_secs(86_400));
    // The first rolls back: the second, which waited for it, is the first then.
    let tx = one.transaction().await.unwrap();
    assert!(first_time(&tx, &scope, &key, day).await.unwrap());
    let other = two.transaction().await.unwrap();
    let (first, ()) = tokio::join!(first_time(&other, &scope, &key, day), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        tx.rollback().await.unwrap();
    });
    assert!(first.unwrap());
    other.commit().await.unwrap();
    let tx = one.transaction().await.unwrap();
    assert!(!first_time(&tx, &scope, &key, day).await.unwrap());
    for nth in 0..5 {
        assert!(first_time(&tx, &scope, &Key::new(format!("m{nth}")).unwrap(), day).await.unwrap());
    }
    assert_eq!(keep_last(&tx, &scope, 2, 3).await.unwrap(), 3);
    assert_eq!(keep_last(&tx, &scope, 2, 3).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

/// Part of another test, as well.
async fn completed_together_with_its_effects(store: &Store, url: &str) {
    use relent_store::{Fence, Kept, in_postgres::complete};
    let connect = async || {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    };
    let client = connect().await;
    client.batch_execute("CREATE TABLE orders (n int)").await.unwrap();
    let (scope, key, day) = (Scope::new("pay").unwrap(), Key::new("7").unwrap(), Duration::from_secs(86_400));
    let done = store.once(&scope, &key).run(async |effect| {
        let mut client = connect().await;
        let tx = client.transaction().await.unwrap();
        tx.execute("INSERT INTO orders VALUES (1)", &[]).await.unwrap();
        let late = Claim { scope: scope.clone(), key: key.clone(), fence: Fence(effect.fence.0 + 1) };
        assert_eq!(complete(&tx, &late, &Stored::success("late"), day).await.unwrap(), Kept::Fenced);
        let ours = Claim { fence: effect.fence, ..late };
        assert_eq!(complete(&tx, &ours, &Stored::success("kept"), day).await.unwrap(), Kept::Kept);
        tx.commit().await.unwrap();
        Err::<&str, _>("what is committed is done, whatever comes after")
    });
    assert!(done.await.is_err());
    let done = store.once(&scope, &key).run(async |_| Ok::<_, String>("again")).await.unwrap();
    assert_eq!((done.bytes(), done.is_replayed), (&b"kept"[..], true));
    assert_eq!(client.query_one("SELECT count(*) FROM orders", &[]).await.unwrap().get::<_, i64>(0), 1);
}

/// A server that listens may still be starting: opening waits for it.
async fn opened(server: &PostgresServer) -> Store {
    Store::open(&server.url()).await.expect("the server is up")
}

#[tokio::test]
async fn tables_in_postgres_are_made_once_by_whoever_is_first() {
    let server = PostgresServer::start();
    let (url, open) = (server.url(), opened(&server));
    let (a, b, c) = tokio::join!(Store::open(&url), Store::open(&url), open);
    for store in [a.unwrap(), b.unwrap(), c] {
        assert!(store.read(&Key::new("a").unwrap()).await.is_ok());
    }
}

#[tokio::test]
async fn a_table_that_is_gone_is_named_and_tables_that_are_all_gone_are_made_anew() {
    let server = PostgresServer::start();
    let store = opened(&server).await;
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let key = Key::new("a").unwrap();
    for (what, name) in [("TABLE relent_value", "relent_value"), ("FUNCTION relent_replace", "relent_replace")] {
        client.batch_execute(&format!("DROP {what}")).await.unwrap();
        let error = store.replace(&key, Version::ABSENT, Some(b"x")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
        assert!(error.hint_text().unwrap().starts_with("`relent store migrate` says which"), "{error:?}");
        let error = Store::open(&server.url()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("'{name}' of the store is gone, and the rest is there"));
        client.batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
        assert!(Store::open(&server.url()).await.is_ok());
        // Whoever had it open goes on.
        assert!(matches!(store.replace(&key, Version::ABSENT, Some(b"x")).await.unwrap(), Replaced::Replaced(_)));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_socket_that_says_nothing_is_given_up_and_speaks_no_tls() {
    let folder = tempfile::tempdir().unwrap();
    let _silent = std::os::unix::net::UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    let host = folder.path().display().to_string().replace('/', "%2F");
    let hasty = Policy::constant(Duration::from_millis(10)).timeout(Duration::from_millis(300));
    let begin = Instant::now();
    let error = Store::open_with(&format!("postgres://app@{host}/app"), hasty).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    let begin = Instant::now();
    let error = Postgres::open_url(&format!("postgres://app@{host}/app")).await.unwrap_err();
    assert_eq!(error.to_string(), "the Postgres server did not answer in time");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    for mode in ["require", "verify-ca", "verify-full"] {
        let error = Postgres::open_url(&format!("postgres://app@{host}/app?sslmode={mode}")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    }
}

/// Many at once bring the tables of the first version to this one, and nothing of it is lost.
#[tokio::test]
async fn a_postgres_store_of_the_first_version_becomes_one_of_this() {
    let server = PostgresServer::start();
    drop(opened(&server).await);
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
    client.batch_execute(include_str!("../../src/in_postgres/schema-1.sql")).await.unwrap();
    client.batch_execute("INSERT INTO relent_value VALUES ('a', 7, '0123456789abcdef', 0, 'kept')").await.unwrap();
    let url = server.url();
    let opened = tokio::join!(Store::open(&url), Store::open(&url), Store::open(&url));
    for store in [opened.0.unwrap(), opened.1.unwrap(), opened.2.unwrap()] {
        assert_eq!(store.read(&Key::new("a").unwrap()).await.unwrap().value.as_deref(), Some(&b"kept"[..]));
        assert_eq!(store.about().await.unwrap().schema, Some(6));
    }
    conformance::check(Store::open(&url).await.unwrap().engine()).await.unwrap();
}

/// Who only wants to look leaves a database as it is.
#[tokio::test]
async fn who_only_looks_into_a_postgres_makes_and_changes_nothing() {
    let server = PostgresServer::start();
    let url = format!("{}?make=no", server.url());
    let error = Store::open(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing, "{error:?}");
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let ours = "SELECT (SELECT count(*) FROM pg_class WHERE relname LIKE 'relent%')
        + (SELECT count(*) FROM pg_proc WHERE proname LIKE 'relent%')";
    assert_eq!(client.query_one(ours, &[]).await.unwrap().get::<_, i64>(0), 0);
    drop(opened(&server).await);
    assert!(Store::open(&url).await.unwrap().read(&Key::new("a").unwrap()).await.is_ok());
    client.batch_execute("UPDATE relent_meta SET version = 3").await.unwrap();
    assert_eq!(Store::open(&url).await.unwrap_err().kind(), ErrorKind::TooOld);
    let version = client.query_one("SELECT version FROM relent_meta", &[]).await.unwrap();
    assert_eq!(version.get::<_, i32>(0), 3);
    assert_eq!(Postgres::open_url(&url.replace("=no", "=yes")).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_newer_postgres_store_is_refused_and_a_missing_database_named() {
    let server = PostgresServer::start();
    drop(opened(&server).await);
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("UPDATE relent_meta SET version = 7").await.unwrap();
    assert_eq!(Store::open(&server.url()).await.unwrap_err().kind(), ErrorKind::TooNew);
    let error = Store::open(&server.url().replace("/postgres", "/nowhere")).await.unwrap_err();
    assert_eq!((error.kind(), error.hint_text()), (ErrorKind::Refused, Some("createdb makes one")));
    for mode in ["prefer", "allow"] {
        let error = Postgres::open_url(&format!("{}?sslmode={mode}", server.url())).await.unwrap_err();
        assert_eq!(error.to_string(), format!("`sslmode={mode}` lets whoever is in between choose plain text"));
        assert!(error.hint_text().unwrap().contains("verify-full"), "{error:?}");
    }
    for bad in ["postgres://[", "postgres://a:hunter2@b:port/x"] {
        let error = Postgres::open_url(bad).await.unwrap_err();
        assert!(!format!("{error} {error:?} {:?}", error.hint_text()).contains("hunter2"), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

/// With statements that connections keep all is as without, also when somebody changes a table under them.
#[tokio::test]
async fn postgres_with_prepared_statements_conforms() {
    let (server, log) = talkative();
    drop(opened(&server).await);
    let engine = Postgres::open_url(&format!("{}?prepared=1&connections=1", server.url())).await.unwrap();
    conformance::check(&engine).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let (store, name) = (Store::new(engine), Key::new("nightly").unwrap());
    let guard = store.lease(&name).acquire().await.unwrap();
    for kind in ["varchar(64)", "text", "varchar(99)"] {
        let holder = store.holder(&name).await.unwrap().unwrap();
        assert_eq!(holder.fence, guard.fence(), "{kind}");
        client.batch_execute(&format!("ALTER TABLE relent_lease ALTER COLUMN owner TYPE {kind}")).await.unwrap();
    }
    assert_eq!(store.holder(&name).await.unwrap().unwrap().fence, guard.fence());
    // One that is prepared has a name.
    let said = std::fs::read_to_string(&log).unwrap();
    let named = |sql: &str| said.lines().filter(|line| line.contains(sql) && line.contains("execute s")).count();
    assert!(named("FROM relent_acquire(") > 0 && named("FROM relent_begin(") > 0, "{said}");
    let error = Postgres::open_url(&format!("{}?prepared=yes", server.url())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_release_in_postgres_that_nobody_could_hear_of_is_seen() {
    let server = PostgresServer::start();
    let store = opened(&server).await;
    any_server::a_release_before_anything_is_heard_is_seen(&store).await;
}

#[tokio::test]
async fn a_release_in_postgres_wakes_who_waits() {
    let server = PostgresServer::start();
    let store = opened(&server).await;
    any_server::a_release_wakes_who_waits(&store).await;
}

/// A server that writes down each statement, and where.
fn talkative() -> (PostgresServer, std::path::PathBuf) {
    let mut log = None;
    let server = PostgresServer::start_with(|folder| {
        log = Some(folder.join("said.log"));
        let folder = folder.display();
        let settings = ["logging_collector=on", "log_statement=all", "log_filename=said.log"].map(str::to_owned);
        [&settings[..], &[format!("log_directory={folder}")]].concat()
    });
    (server, log.unwrap())
}

#[tokio::test]
async fn who_waits_for_a_lease_in_postgres_does_not_spin() {
    let (server, log) = talkative();
    let store = opened(&server).await;
    // What is told a process of its own is written in the order in which it is told; this is the last word.
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let turns = std::cell::Cell::new(0);
    let acquired = async || {
        turns.set(turns.get() + 1);
        let last = format!("last word {}", turns.get());
        client.batch_execute(&format!("SELECT '{last}'")).await.unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            if said.contains(&last) {
                return said.lines().filter(|line| line.contains("FROM relent_acquire(")).count() as u64;
            }
            assert!(Instant::now() < end, "the server writes nothing down");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    any_server::who_waits_asks_as_often_as_it_was_told(&store, 20, acquired).await;
}

#[tokio::test]
async fn who_waits_for_a_lease_in_postgres_and_hears_nothing_gets_it_nevertheless() {
    let server = PostgresServer::start();
    let store = opened(&server).await;
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let deafen = async || {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN relent_freed' AND state = 'idle'";
        client.query(sql, &[]).await.unwrap().len() as u64
    };
    any_server::a_lost_notification_only_delays(&store, deafen).await;
}

#[tokio::test]
async fn a_postgres_that_is_killed_and_started_again_has_lost_nothing() {
    let mut server = PostgresServer::start();
    let store = opened(&server).await;
    let kept = Kept::new(&store).await;
    server.kill();
    // Those of its children that have a connection answer until they notice.
    while store.engine().read(kept.key()).await.is_ok() {}
    kept.is_out_of_reach(&store).await;
    // Its children notice that it is gone, and let go of what they share with the next.
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.again();
    kept.is_there(&store).await;
}

#[tokio::test]
async fn an_operation_that_nobody_waits_for_ends_at_the_postgres_server_too() {
    let server = PostgresServer::start();
    what_nobody_waits_for_ends(&server, &server.url()).await;
}

/// Where its folder is in one like `/tmp`, and root asks, it is another user's who could have been anybody.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_postgres_on_a_socket_is_asked_and_heard_as_any() {
    use std::os::unix::fs::MetadataExt;
    let server = PostgresServer::start_with(|folder| vec![format!("unix_socket_directories={}", folder.display())]);
    let port = server.url().rsplit_once(':').unwrap().1.split('/').next().unwrap().to_owned();
    let folder = server.folder().display();
    let url = format!("postgresql:///postgres?host=/nowhere&host={folder}&port={port}&user=relent&connections=4");
    let opened = Postgres::open_url(&url).await;
    let is_of_another =
        std::fs::metadata(server.folder()).unwrap().uid() != std::fs::metadata("/proc/self").unwrap().uid();
    assert_eq!(opened.is_err_and(|error| error.kind() == ErrorKind::Refused), is_of_another);
    let url = format!("{url}&owner=any");
    what_nobody_waits_for_ends(&server, &url).await;
    let store = Store::open(&url).await.unwrap();
    any_server::a_release_before_anything_is_heard_is_seen(&store).await;
    let about = store.about().await.unwrap();
    assert!(!about.cautions.iter().any(|caution| caution.contains("not encrypted")), "{about:?}");
}

async fn what_nobody_waits_for_ends(server: &PostgresServer, url: &str) {
    let store = Store::open(url).await.unwrap();
    let (mut other, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let (watcher, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let lock = other.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE relent_value IN EXCLUSIVE MODE").await.unwrap();

    // One attempt, which waits for the lock until it is given up.
    let hasty = Policy::constant(Duration::from_millis(10)).max_attempts(1).timeout(Duration::from_millis(300));
    let key = Key::new("stock").unwrap();
    let error = store.clone().patience(hasty).replace(&key, Version::ABSENT, Some(b"x")).await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_happened()), (ErrorKind::Timeout, true));

    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND wait_event_type = 'Lock'";
    let begin = Instant::now();
    while watcher.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        assert!(begin.elapsed() < Duration::from_secs(5), "the server still waits for the lock");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The server ends what takes too long by itself, where the URL asks for it.
    let sign = if url.contains('?') { '&' } else { '?' };
    let strict = Store::open(&format!("{url}{sign}options=-c%20statement_timeout%3D300ms")).await.unwrap();
    let once = Policy::constant(Duration::from_millis(10)).max_attempts(1).timeout(Duration::from_secs(20));
    let error = strict.patience(once).replace(&key, Version::ABSENT, Some(b"x")).await.unwrap_err();
    assert!(error.to_string().contains("the Postgres server ended the question"), "{error}");
    lock.rollback().await.unwrap();
    assert_eq!(store.read(&key).await.unwrap().version, Version::ABSENT, "it was not done behind our back");
    assert!(matches!(store.replace(&key, Version::ABSENT, Some(b"x")).await.unwrap(), Replaced::Replaced(_)));
}

/// How long the server takes depends on how many rows it looks for and writes. So whoever is refused learns from it nothing but the
/// answer, and nothing at all of the keys of another tenant.
#[tokio::test]
async fn the_work_of_a_refusal_in_postgres_tells_nothing() {
    let server = PostgresServer::start();
    let store = opened(&server).await;
    let (mut client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let scope = |tenant: &str| Scope::new(tenant).unwrap();
    for key in ["running", "done", "unknown"] {
        let first = Begin { fingerprint: Fingerprint::of(["pay 7"]), ..any_server::begin(&scope("a"), key) };
        let Started::Started { fence, .. } = store.begin(&first).await.unwrap() else { panic!("{key} is new") };
        let claim = Claim { scope: first.scope, key: first.key, fence };
        match key {
            "done" => drop(store.complete(&claim, &Stored::success("x".repeat(1000)), first.keep).await.unwrap()),
            "unknown" => drop(store.abandon(&claim, Abandon::Unknown).await.unwrap()),
            _ => {}
        }
    }
    // What was looked for and written so far.
    let done = async |tx: &tokio_postgres::Transaction<'_>| {
        let sql = "SELECT ARRAY[seq_scan, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del]
            FROM pg_stat_xact_user_tables WHERE relname = 'relent_once'";
        tx.query_one(sql, &[]).await.unwrap().get::<_, Vec<i64>>(0)
    };
    // The answer, and what the server did for it.
    let mut work = async |tenant: &str, key: &str, request: &str| {
        let tx = client.transaction().await.unwrap();
        let before = done(&tx).await;
        let (scope, fingerprint, nonce) = (scope(tenant), Fingerprint::of([request]), Nonce::random());
        let sql = "SELECT answer FROM relent_begin($1, $2, $3, $4, 600000, 600000, false)";
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&scope.as_bytes(), &key.as_bytes(), &&fingerprint.0[..], &&nonce.0[..]];
        let answer: String = tx.query_one(sql, &params).await.unwrap().get(0);
        let after = done(&tx).await;
        let work: Vec<i64> = after.into_iter().zip(before).map(|(after, before)| after - before).collect();
        tx.rollback().await.unwrap();
        (answer, work)
    };
    let (_, refused) = work("a", "running", "pay 8").await;
    for (key, says) in [("running", "busy"), ("done", "replay"), ("unknown", "unknown")] {
        assert_eq!(work("a", key, "pay 8").await, ("mismatch".to_owned(), refused.clone()), "{key}");
        assert_eq!(work("a", key, "pay 7").await, (says.to_owned(), refused.clone()), "{key}");
    }
    // To another tenant these are as new as any.
    let (_, anew) = work("b", "of nobody", "pay 7").await;
    assert_ne!(anew, refused);
    for key in ["running", "done", "unknown"] {
        assert_eq!(work("b", key, "pay 7").await, ("started".to_owned(), anew.clone()), "{key}");
    }
}
