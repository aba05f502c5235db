use super::*;
use crate::{Engine, Key, Nonce, Store, Version, conformance};
use rusqlite::Connection;
use std::{fs, time::Duration};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[tokio::test]
async fn sqlite_conforms() {
    let folder = folder();
    conformance::check(&Sqlite::open(folder.path().join("state.db")).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_share_commits() {
    let folder = folder();
    let store = Store::new(Sqlite::open(folder.path().join("state.db")).unwrap());
    let tasks: Vec<_> = (0..64u32)
        .map(|nth| {
            let store = store.clone();
            tokio::spawn(async move {
                for turn in 0..10u32 {
                    let key = Key::new(format!("{nth}-{turn}")).unwrap();
                    let answer = store.replace(&key, Version::ABSENT, Some(b"x")).await.unwrap();
                    assert!(matches!(answer, crate::Replaced::Replaced(_)), "{answer:?}");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.list(crate::Kind::Values, 10_000).await.unwrap().len(), 640);
}

/// What gathers while somebody else writes is carried by a few commits, and not by one each.
#[tokio::test]
async fn what_gathers_while_somebody_writes_is_committed_together() {
    const FRAME: u64 = 4096 + 24;
    let folder = folder();
    let path = folder.path().join("state.db");
    let store = Sqlite::open(&path).unwrap();
    let log = || fs::metadata(folder.path().join("state.db-wal")).unwrap().len();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = log();
    let tasks: Vec<_> = (0..200)
        .map(|nth| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = Key::new(format!("{nth}")).unwrap();
                let answer = store.replace(&key, Version::ABSENT, Some(b"x"), Nonce::random()).await.unwrap();
                assert!(matches!(answer, crate::Replaced::Replaced(_)), "{answer:?}");
            })
        })
        .collect();
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
    other.execute_batch("ROLLBACK").unwrap();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.list(crate::Kind::Values, 1000).await.unwrap().len(), 200);
    let frames = (log() - before).div_ceil(FRAME);
    assert!(frames < 40, "200 operations in {frames} pages");
}

/// Also while a thread writes: a process that ends then leaves no log that others might not read.
#[tokio::test]
async fn who_lets_go_of_a_store_as_the_last_has_closed_the_file() {
    let folder = folder();
    let path = folder.path().join("state.db");
    let store = Sqlite::open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let clone = store.clone();
    let asks = tokio::spawn(async move {
        let _ = clone.replace(&Key::new("7").unwrap(), Version::ABSENT, Some(b"x"), Nonce::random()).await;
    });
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
    asks.abort();
    assert!(asks.await.unwrap_err().is_cancelled());
    drop(other);
    drop(store);
    let left = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["state.db"]);
}

#[tokio::test]
async fn who_goes_away_before_it_began_has_not_asked() {
    let folder = folder();
    let store = Sqlite::open(folder.path().join("state.db")).unwrap();
    let key = Key::new("a").unwrap();
    {
        let mut asked = Box::pin(store.replace(&key, Version::ABSENT, Some(b"x"), Nonce::random()));
        assert!(
            Future::poll(asked.as_mut(), &mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending()
        );
    }
    assert_eq!(store.read(&key).await.unwrap(), crate::Versioned::ABSENT);
}

#[test]
fn a_newer_file_is_refused_and_an_empty_one_is_made() {
    let folder = folder();
    let path = folder.path().join("state.db");
    drop(Sqlite::open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    conn.execute("UPDATE relent_meta SET value = 99 WHERE name = 'version'", []).unwrap();
    let error = Sqlite::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
    assert_eq!(error.to_string(), "the store has tables of version 99, and this relent knows 4");
}

/// A file of the first version becomes one of this, and keeps what is in it; who has it open goes on.
#[tokio::test]
async fn a_file_of_the_first_version_becomes_one_of_this() {
    let folder = folder();
    let path = folder.path().join("state.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(schema::STEPS[0]).unwrap();
    old.execute_batch("UPDATE relent_meta SET value = 1 WHERE name = 'version'").unwrap();
    let put = "INSERT INTO relent_value VALUES (?, 7, x'00112233445566778899aabbccddeeff', 0, x'6b657074')";
    old.execute(put, [b"a"]).unwrap();
    let store = Store::new(Sqlite::open(&path).unwrap());
    assert_eq!(store.read(&Key::new("a").unwrap()).await.unwrap().value.as_deref(), Some(&b"kept"[..]));
    assert_eq!(store.about().await.unwrap().schema, Some(4));
    old.execute(put, [b"b"]).unwrap();
    assert!(store.read(&Key::new("b").unwrap()).await.unwrap().value.is_some());
    conformance::check(store.engine()).await.unwrap();
}

/// A file of the second version: what was done and begun there is done and begun.
#[tokio::test]
async fn records_of_the_second_version_go_on() {
    let folder = folder();
    let path = folder.path().join("state.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(&schema::STEPS[..2].concat()).unwrap();
    old.execute_batch("UPDATE relent_meta SET value = 2 WHERE name = 'version'; UPDATE relent_meta SET value = 7 WHERE name = 'fence'")
        .unwrap();
    let (scope, fingerprint) = (crate::Scope::new("pay").unwrap(), crate::Fingerprint::NONE);
    let now = Clock::system().now();
    let put = "INSERT INTO relent_once VALUES (?, ?, ?, ?, zeroblob(16), ?, ?, ?, ?, NULL, ?, ?)";
    let later = now.after(Duration::from_secs(60)).0 as i64;
    for (key, fence, failed, value) in [("done", 6, Some(false), Some(b"receipt")), ("begun", 7, None, None)] {
        let row = rusqlite::params![
            scope.as_bytes(),
            key.as_bytes(),
            fingerprint.0,
            fence,
            now.0 as i64,
            now.0 as i64,
            later,
            later,
            failed,
            value
        ];
        old.execute(put, row).unwrap();
    }
    let store = Store::new(Sqlite::open(&path).unwrap());
    let once =
        async |key: &str| store.once(&scope, &Key::new(key).unwrap()).run(async |_| Ok::<_, String>("new")).await;
    assert_eq!(once("done").await.unwrap().bytes(), b"receipt");
    assert!(matches!(once("begun").await, Err(crate::OnceError::Busy { .. })));
    let claim = crate::Claim { scope: scope.clone(), key: Key::new("begun").unwrap(), fence: crate::Fence(7) };
    assert_eq!(store.complete(&claim, &"mine".into(), Duration::from_secs(60)).await.unwrap(), crate::Kept::Kept);
    assert_eq!(once("begun").await.unwrap().bytes(), b"mine");
}

async fn claimed(store: &Sqlite, key: &str, keep: Duration) -> crate::Claim {
    let (scope, key) = (crate::Scope::new("pay").unwrap(), Key::new(key).unwrap());
    let begin = crate::Begin {
        scope: scope.clone(),
        key: key.clone(),
        fingerprint: crate::Fingerprint::NONE,
        nonce: Nonce::random(),
        lease: Duration::from_secs(10),
        keep,
        on_unknown: crate::OnUnknown::Tell,
    };
    let crate::Started::Started { fence, .. } = store.begin(&begin).await.unwrap() else { panic!("{key:?} is new") };
    crate::Claim { scope, key, fence }
}

/// A record is removed when it ends, wherever it is looked for first: kept a little longer than it was begun for, much longer, or
/// shorter.
#[tokio::test]
async fn what_was_kept_is_removed_when_it_ends_and_not_before() {
    let folder = folder();
    let clock = Clock::manual(crate::Time(1_000_000_000));
    let settings = SqliteSettings { clock: clock.clone(), ..SqliteSettings::default() };
    let store = settings.open(&folder.path().join("state.db")).unwrap();
    let keep = Duration::from_secs(3600);
    for after in [0, 1, 599, 600, 601, 3600 * 24 * 7] {
        let claim = claimed(&store, &format!("later-{after}"), keep).await;
        let ends = keep + Duration::from_secs(after);
        let begun = clock.now();
        assert_eq!(store.complete(&claim, &"done".into(), ends).await.unwrap(), crate::Kept::Kept);
        clock.set(begun.after(ends - Duration::from_millis(1)));
        assert_eq!(store.purge(10).await.unwrap(), 0, "{after}");
        assert_eq!(store.list(crate::Kind::Records, 10).await.unwrap().len(), 1, "{after}");
        clock.set(begun.after(ends));
        assert_eq!(store.purge(10).await.unwrap(), 1, "{after}");
        // One that is kept for less is found by when it ends, and not by when it was to.
        let claim = claimed(&store, &format!("sooner-{after}"), ends + keep).await;
        assert_eq!(store.complete(&claim, &"done".into(), ends).await.unwrap(), crate::Kept::Kept);
        clock.advance(ends);
        assert_eq!(store.purge(10).await.unwrap(), 1, "{after}");
        // One that is extended beyond what it was begun for.
        let claim = claimed(&store, &format!("extended-{after}"), Duration::from_secs(5)).await;
        assert_eq!(store.extend(&claim, Duration::from_secs(60)).await.unwrap(), crate::Kept::Kept);
        clock.advance(Duration::from_secs(59));
        assert_eq!(store.purge(10).await.unwrap(), 0, "{after}");
        clock.advance(Duration::from_secs(1));
        assert_eq!(store.purge(10).await.unwrap(), 1, "{after}");
    }
}

/// What a commit costs is the pages that it writes: one for what is extended or completed, one more for what is new, which is found
/// by when it expires, too.
#[tokio::test]
async fn an_operation_writes_no_more_pages_than_it_must() {
    const FRAME: u64 = 4096 + 24;
    let folder = folder();
    let path = folder.path().join("state.db");
    let store = Sqlite::open(&path).unwrap();
    let log = || fs::metadata(folder.path().join("state.db-wal")).unwrap().len();
    let minute = Duration::from_secs(60);
    // A few numbers are at hand then.
    for nth in 0..8 {
        claimed(&store, &nth.to_string(), minute).await;
    }
    let before = log();
    let claim = claimed(&store, "8", minute).await;
    assert_eq!(log() - before, 2 * FRAME);
    assert_eq!(store.extend(&claim, minute / 2).await.unwrap(), crate::Kept::Kept);
    assert_eq!(log() - before, 3 * FRAME);
    // Beyond what it was begun for, too.
    assert_eq!(store.extend(&claim, 2 * minute).await.unwrap(), crate::Kept::Kept);
    assert_eq!(log() - before, 4 * FRAME);
    assert_eq!(store.complete(&claim, &"done".into(), minute).await.unwrap(), crate::Kept::Kept);
    assert_eq!(log() - before, 5 * FRAME);
    // What changes nothing writes nothing.
    assert_eq!(store.complete(&claim, &"again".into(), minute).await.unwrap(), crate::Kept::Kept);
    assert_eq!(log() - before, 5 * FRAME);
}

/// What is there already is read while another process holds the file for writing.
#[tokio::test]
async fn what_is_there_is_read_while_somebody_writes() {
    let folder = folder();
    let path = folder.path().join("state.db");
    let hasty = relent::Policy::constant(Duration::from_millis(10)).timeout(Duration::from_millis(300));
    let store = Store::new(Sqlite::open(&path).unwrap()).patience(hasty);
    let (scope, key) = (crate::Scope::new("pay").unwrap(), Key::new("a").unwrap());
    let pay = async || store.once(&scope, &key).run(async |_| Ok::<_, String>("receipt")).await;
    assert!(!pay().await.unwrap().is_replayed);
    assert!(pay().await.unwrap().is_replayed);
    let _ = store.replace(&key, Version::ABSENT, Some(b"x")).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for _ in 0..3 {
        assert_eq!(pay().await.unwrap().bytes(), b"receipt");
        assert_eq!(store.read(&key).await.unwrap().value.as_deref(), Some(&b"x"[..]));
        assert_eq!(store.holder(&key).await.unwrap(), None);
        // What is written waits, and may happen when nobody waits for it any more.
        let error = store.replace(&Key::new("locked").unwrap(), Version::ABSENT, Some(b"y")).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
    }
    other.execute_batch("ROLLBACK").unwrap();
    // What was written is read at once, by whoever wrote it and by others.
    let second = Store::new(Sqlite::open(&path).unwrap());
    for nth in 0..50u8 {
        let version = store.read(&key).await.unwrap().version;
        let answer = store.replace(&key, version, Some(&[nth])).await.unwrap();
        assert!(matches!(answer, crate::Replaced::Replaced(_)), "{answer:?}");
        for store in [&store, &second] {
            assert_eq!(store.read(&key).await.unwrap().value.as_deref(), Some(&[nth][..]));
        }
    }
    let other = Key::new("b").unwrap();
    assert!(!store.once(&scope, &other).run(async |_| Ok::<_, String>("new")).await.unwrap().is_replayed);
}

#[test]
fn what_is_no_store_is_said_to_be_none() {
    let folder = folder();
    let path = folder.path().join("text");
    fs::write(
        &path,
        "a text that is longer than the head of a database and is none, as anybody can see who looks at it",
    )
    .unwrap();
    assert_eq!(Sqlite::open(&path).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(Sqlite::open(folder.path().join("no/such/folder")).unwrap_err().kind(), ErrorKind::Refused);
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_its_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("state.db");
    let store = Store::new(Sqlite::open(&path).unwrap());
    let _ = store.replace(&Key::new("a").unwrap(), Version::ABSENT, Some(b"secret")).await.unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
    }
}

#[test]
fn urls_say_what_is_wrong_with_them() {
    let folder = folder();
    let path = folder.path().join("state.db");
    let open = |rest: &str| Sqlite::open_url(&format!("sqlite:{}{rest}", path.display()));
    assert_eq!(open("?durability=process&prefix=my_").unwrap().inner.durability, Durability::Process);
    assert!(Sqlite::open_url(&format!("sqlite://{}", path.display())).is_ok());
    for (rest, says) in [
        ("?durability=maybe", "the store's URL has a setting 'durability' that makes no sense"),
        ("?speed=11", "the store's URL has a setting that is not known"),
        ("?hunter2", "the store's URL has a setting that is not known"),
        ("?prefix=a;b", "the prefix of names has characters that it must not have, or too many"),
    ] {
        assert_eq!(open(rest).unwrap_err().to_string(), says);
    }
    assert_eq!(Sqlite::open_url("sqlite:").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn every_statement_is_one() {
    let folder = folder();
    let path = folder.path().join("state.db");
    drop(SqliteSettings { prefix: "my_".into(), ..SqliteSettings::default() }.open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    for sql in Names::new("my_").all() {
        assert!(!sql.contains("relent_"), "{sql}");
        conn.prepare(sql).unwrap_or_else(|err| panic!("{sql}: {err}"));
    }
}

#[test]
fn effects_and_what_was_seen_are_committed_together_or_not_at_all() {
    use rusqlite::TransactionBehavior::Immediate;
    let folder = folder();
    let mut db = Connection::open(folder.path().join("shop.db")).unwrap();
    db.execute_batch("CREATE TABLE orders (n INTEGER)").unwrap();
    prepare(&mut db).unwrap();
    prepare(&mut db).unwrap();
    let (scope, key) = (crate::Scope::new("orders").unwrap(), Key::new("7").unwrap());
    let day = Duration::from_secs(86_400);
    let tx = db.transaction_with_behavior(Immediate).unwrap();
    assert!(first_time(&tx, &scope, &key, day).unwrap());
    tx.execute("INSERT INTO orders VALUES (1)", []).unwrap();
    // The process dies here: nothing happened, and the message is new.
    tx.rollback().unwrap();
    for turn in 0..3 {
        let tx = db.transaction_with_behavior(Immediate).unwrap();
        let first = first_time(&tx, &scope, &key, day).unwrap();
        assert_eq!(first, turn == 0);
        if first {
            tx.execute("INSERT INTO orders VALUES (1)", []).unwrap();
        }
        tx.commit().unwrap();
    }
    assert_eq!(db.query_row("SELECT COUNT(*) FROM orders", [], |row| row.get::<_, u32>(0)).unwrap(), 1);
    // Retention by time: what is over is new again. By number: the last of a scope stay.
    let tx = db.transaction_with_behavior(Immediate).unwrap();
    let short = Key::new("short").unwrap();
    assert!(first_time(&tx, &scope, &short, Duration::ZERO).unwrap());
    assert!(first_time(&tx, &scope, &short, day).unwrap());
    assert!(!first_time(&tx, &scope, &short, day).unwrap());
    for nth in 0..10 {
        assert!(first_time(&tx, &scope, &Key::new(format!("m{nth}")).unwrap(), day).unwrap());
    }
    assert_eq!(keep_last(&tx, &scope, 4, 100).unwrap(), 8);
    assert_eq!(keep_last(&tx, &scope, 4, 100).unwrap(), 0);
    tx.commit().unwrap();
}

/// What is in the log is in the database, and where there is none nothing is made to read it.
#[test]
fn whose_a_database_is_is_found_while_it_is_used_and_when_it_is_not() {
    let folder = folder();
    let path = folder.path().join("a%3f b#c&d=e+\u{fc}.db");
    let url = format!("sqlite:{}", path.display());
    let app = Connection::open(&path).unwrap();
    app.execute_batch("PRAGMA journal_mode = WAL; VACUUM").unwrap();
    assert!(!is_of_others(&url).unwrap(), "it is empty");
    app.execute_batch("CREATE TABLE places (url TEXT)").unwrap();
    assert!(is_of_others(&url).unwrap(), "its table is in the log");
    drop(app);
    assert!(is_of_others(&url).unwrap());
    assert!(is_of_others(&format!("{url}?links=no")).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is beside it");
}
