//! Servers in trouble: stopped, full, read-only, with other passwords, busy with something else. The error is clear and comes in
//! bounded time, an operator hears of it once, nothing that was accepted is lost, and all is well by itself when it is over.

use crate::servers::{PostgresServer, RedisServer};
use relent::Policy;
use relent_store::{Error, ErrorKind, Key, Notice, Replaced, Scope, Store, UpdateError, Version};
use std::{
    future::Future,
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// How long an error may take, at a patience of a second.
const BOUND: Duration = Duration::from_secs(4);

/// How long all may take to be well again.
const RECOVERY: Duration = Duration::from_secs(8);

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

async fn put(store: &Store, name: &str) -> Result<(), Error> {
    match store.replace(&key(name), Version::ABSENT, Some(b"x")).await? {
        Replaced::Replaced(_) => Ok(()),
        conflict => panic!("{name}: {conflict:?}"),
    }
}

/// A store, and what was accepted by it.
struct Patient {
    store: Store,
    told: Arc<Mutex<Vec<Notice>>>,
    accepted: Vec<String>,
    usual: Policy,
}

impl Patient {
    async fn new(url: &str) -> Patient {
        let hasty = Policy::exponential(Duration::from_millis(20))
            .cap(Duration::from_millis(200))
            .unlimited_attempts()
            .attempt_timeout(Duration::from_millis(400))
            .timeout(Duration::from_millis(1000));
        let store = Store::open(url).await.unwrap().patience(hasty);
        let told: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let tell = told.clone();
        store.listen(move |notice| tell.lock().unwrap().push(notice.clone()));
        Patient {
            store,
            told,
            accepted: vec![],
            usual: hasty.attempt_timeout(Duration::from_secs(3)).timeout(Duration::from_secs(10)),
        }
    }

    /// Suffers from `trouble` until it is cured by `cure`.
    async fn suffers<F: Future<Output = ()>>(
        &mut self,
        what: &str,
        expected: &[ErrorKind],
        trouble: impl AsyncFnOnce(),
        cure: impl FnOnce() -> F,
    ) {
        let before = format!("before {what}");
        let patient = self.store.clone().patience(self.usual);
        put(&patient, &before).await.unwrap_or_else(|err| panic!("{before}: {err:?}"));
        self.accepted.push(before);
        self.told.lock().unwrap().clear();
        trouble().await;
        for turn in 0..2 {
            let begin = Instant::now();
            let error = put(&self.store, &format!("{what} {turn}")).await.expect_err(what);
            assert!(begin.elapsed() < BOUND, "{what}: {error:?} after {:?}", begin.elapsed());
            assert!(expected.contains(&error.kind()), "{what}: {error:?}");
            let words = format!("{error} {error:?} {:?}", error.hint_text());
            assert!(!words.contains("hunter") && words.len() > 20, "{what}: {words}");
        }
        cure().await;
        let begin = Instant::now();
        for nth in 0.. {
            // One that was given up may have happened all the same.
            let after = format!("after {what} {nth}");
            let Err(error) = put(&self.store, &after).await else {
                self.accepted.push(after);
                break;
            };
            assert!(begin.elapsed() < RECOVERY, "{what}: it does not come back: {error:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for name in &self.accepted {
            let value = self.store.read(&key(name)).await.unwrap().value;
            assert_eq!(value.as_deref(), Some(&b"x"[..]), "{what}: {name} was accepted, and is gone");
        }
        let told = self.told.lock().unwrap();
        let is_transient = |notice: &Notice| matches!(notice, Notice::Away(_) | Notice::Back);
        assert!(told.len() <= 2 && told.iter().all(is_transient), "{what}: {told:?}");
    }

    /// Goes on through trouble that is none of its callers' business.
    async fn goes_on(&mut self, what: &str, trouble: impl AsyncFn()) {
        for turn in 0..3 {
            trouble().await;
            let name = format!("{what} {turn}");
            // With about the patience that stores have by themselves.
            let store = self.store.clone().patience(self.usual);
            put(&store, &name).await.unwrap_or_else(|err| panic!("{name}: {err:?}"));
            self.accepted.push(name);
        }
    }
}

/// A server's process, stopped or going on.
fn signal(signal: &str, pids: &[u32]) {
    let sent = Command::new("kill").arg(signal).args(pids.iter().map(u32::to_string)).status().unwrap();
    assert!(sent.success());
}

fn redis_cli(port: u16, words: &[&str]) {
    let out =
        Command::new("redis-cli").args(["-p", &port.to_string()]).args(words).output().expect("it comes with redis");
    let said = String::from_utf8_lossy(&out.stdout);
    let is_well = out.status.success() && !said.starts_with("ERR") && !said.starts_with("NO");
    assert!(is_well, "{words:?}: {said} {}", String::from_utf8_lossy(&out.stderr));
}

#[tokio::test]
async fn a_redis_in_trouble_is_told_of_and_waited_for() {
    use ErrorKind::{Full, Refused, Timeout, Unavailable};
    let server = RedisServer::start(&["--busy-reply-threshold", "10"]);
    let (port, pid) = (server.port, server.pid());
    let cli = |words: &[&str]| redis_cli(port, words);
    let mut patient = Patient::new(&server.url()).await;
    patient
        .suffers("stopped", &[Timeout], async || signal("-STOP", &[pid]), || async { signal("-CONT", &[pid]) })
        .await;
    patient
        .suffers(
            "full",
            &[Full],
            async || cli(&["CONFIG", "SET", "maxmemory", "1"]),
            || async {
                cli(&["CONFIG", "SET", "maxmemory", "0"]);
            },
        )
        .await;
    patient
        .suffers(
            "a replica",
            &[Unavailable, Timeout],
            async || cli(&["REPLICAOF", "127.0.0.1", "1"]),
            || async {
                cli(&["REPLICAOF", "NO", "ONE"]);
            },
        )
        .await;
    let too_few = async || cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    patient
        .suffers("too few replicas", &[Unavailable, Timeout], too_few, || async {
            cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
        })
        .await;
    let forbidden = async || cli(&["ACL", "SETUSER", "default", "-evalsha"]);
    patient
        .suffers("forbidden", &[Refused], forbidden, || async { cli(&["ACL", "SETUSER", "default", "+evalsha"]) })
        .await;
    let locked = async || {
        cli(&["CONFIG", "SET", "requirepass", "hunter3"]);
        cli(&["-a", "hunter3", "--no-auth-warning", "CLIENT", "KILL", "TYPE", "normal"]);
    };
    patient
        .suffers("another password", &[Refused], locked, || async {
            cli(&["-a", "hunter3", "--no-auth-warning", "CONFIG", "SET", "requirepass", ""]);
        })
        .await;
    let mut busy = None;
    let script = ["-p", &port.to_string(), "EVAL", "while true do end", "0"].map(str::to_owned);
    patient
        .suffers(
            "busy",
            &[Unavailable, Timeout],
            async || {
                busy =
                    Some(Command::new("redis-cli").args(&script).stdout(std::process::Stdio::null()).spawn().unwrap());
                tokio::time::sleep(Duration::from_millis(100)).await;
            },
            || async { cli(&["SCRIPT", "KILL"]) },
        )
        .await;
    busy.unwrap().wait().unwrap();
    patient.goes_on("scripts forgotten", async || cli(&["SCRIPT", "FLUSH"])).await;
    patient.goes_on("connections closed", async || cli(&["CLIENT", "KILL", "TYPE", "normal"])).await;
}

#[tokio::test]
async fn a_postgres_in_trouble_is_told_of_and_waited_for() {
    use ErrorKind::{ReadOnly, Refused, Timeout, Unavailable};
    let server = PostgresServer::start();
    let mut patient = Patient::new(&server.url()).await;
    let (admin, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let admin = &admin;
    let others = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let run = async |sql: &str| admin.batch_execute(sql).await.unwrap();
    let end_all = async || run(&others.replace("SELECT pid", "SELECT pg_terminate_backend(pid)")).await;

    let set = "ALTER DATABASE postgres SET default_transaction_read_only = ";
    patient
        .suffers(
            "read-only",
            &[ReadOnly],
            async || {
                run(&format!("{set} on")).await;
                end_all().await;
            },
            || async {
                run("SET default_transaction_read_only = off").await;
                run(&format!("{set} off")).await;
                end_all().await;
            },
        )
        .await;

    let rows = admin.query(others, &[]).await.unwrap();
    let mut pids: Vec<u32> = rows.iter().map(|row| row.get::<_, i32>(0) as u32).collect();
    pids.push(server.pid());
    patient
        .suffers(
            "stopped",
            &[Timeout, Unavailable],
            async || signal("-STOP", &pids),
            || async { signal("-CONT", &pids) },
        )
        .await;

    let rules = server.folder().join("data/pg_hba.conf");
    let trusting = std::fs::read_to_string(&rules).unwrap();
    let changed = async |text: &str| {
        std::fs::write(&rules, text).unwrap();
        run("SELECT pg_reload_conf()").await;
        // It is read by the server's first process, when that comes to it.
        tokio::time::sleep(Duration::from_millis(200)).await;
        end_all().await;
    };
    run("ALTER ROLE relent PASSWORD 'another than hunter2'").await;
    patient
        .suffers(
            "another password",
            &[Refused],
            async || changed("host all all 127.0.0.1/32 scram-sha-256\n").await,
            || changed(&trusting),
        )
        .await;
    patient.goes_on("connections closed", end_all).await;

    // Where every transaction is serializable, or sees what was there when it began, others are quicker more often.
    for level in ["serializable", "repeatable read"] {
        run(&format!("ALTER DATABASE postgres SET default_transaction_isolation = '{level}'")).await;
        end_all().await;
        all_are_counted(&server.url(), level).await;
    }
}

/// Many change one value and begin the same things at once.
async fn all_are_counted(url: &str, level: &str) {
    let store = Store::open(url).await.unwrap();
    let policy = Policy::exponential(Duration::from_millis(2)).cap(Duration::from_millis(50)).unlimited_attempts();
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let (store, level) = (store.clone(), level.to_owned());
            tokio::spawn(async move {
                for turn in 0..10 {
                    let add = |value: Option<&[u8]>| Ok::<_, String>(vec![value.map_or(0, |value| value[0]) + 1]);
                    let added: Result<_, UpdateError<String>> = store.update(&key(&level), policy, add).await;
                    added.unwrap();
                    let (scope, once) = (Scope::new(&level).unwrap(), key(&format!("{level} {turn}")));
                    let done = store
                        .once(&scope, &once)
                        .wait(policy)
                        .run(async |effect| Ok::<_, String>(effect.fence.to_string()));
                    done.await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(60), task).await.expect("nobody turns in circles").unwrap();
    }
    assert_eq!(store.read(&key(level)).await.unwrap().value.as_deref(), Some(&[60][..]), "{level}");
}

/// A process that writes for a while is waited for; one that stands still while it writes is told of, and then it goes on.
#[tokio::test]
async fn a_sqlite_file_in_other_hands_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut patient = Patient::new(&format!("sqlite:{}", path.display())).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    let locked = |sql: &str| other.execute_batch(sql).unwrap();
    patient
        .suffers(
            "locked",
            &[ErrorKind::Contended, ErrorKind::Timeout],
            async || locked("BEGIN IMMEDIATE"),
            || async { locked("ROLLBACK") },
        )
        .await;
    let store = Store::open(&format!("sqlite:{}", path.display())).await.unwrap();
    for turn in 0..3 {
        locked("BEGIN IMMEDIATE");
        let name = format!("slow {turn}");
        let (written, ()) = tokio::join!(put(&store, &name), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            locked("COMMIT");
        });
        written.unwrap();
    }
}

/// Whoever has the file open is told, and goes on with what is put there.
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_deleted_or_replaced_is_an_error_until_there_is_one_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("state.db"), folder.path().join("other.db"));
    let open = |path: &std::path::Path| {
        let hasty = Policy::constant(Duration::from_millis(10)).timeout(Duration::from_millis(400));
        Store::new(relent_store::in_sqlite::Sqlite::open(path).unwrap()).patience(hasty)
    };
    let (store, key) = (open(&path), Key::new("a").unwrap());
    let put = async |store: &Store<relent_store::in_sqlite::Sqlite>, key: &str| {
        store.replace(&Key::new(key).unwrap(), Version::ABSENT, Some(b"x")).await
    };
    let _ = put(&store, "a").await.unwrap();
    let delete = || {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.path().join(format!("state.db{end}")));
        }
    };
    delete();
    let begin = Instant::now();
    for _ in 0..3 {
        let error = put(&store, "b").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert!(error.to_string().ends_with("state.db was deleted or replaced while it was in use"), "{error}");
        assert!(error.hint_text().unwrap().starts_with("put a copy back"), "{error:?}");
    }
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(!path.exists(), "nobody makes an empty one in its place");
    assert_eq!(store.read(&key).await.unwrap_err().kind(), ErrorKind::Unavailable, "what is gone is not read either");
    // Somebody makes one: both are on it.
    let second = open(&path);
    let _ = put(&store, "c").await.unwrap();
    assert!(second.read(&Key::new("c").unwrap()).await.unwrap().value.is_some());
    assert_eq!(store.read(&key).await.unwrap(), relent_store::Versioned::ABSENT);
    // Another is put in its place, as a copy would be.
    drop(put(&open(&other), "kept").await.unwrap());
    delete();
    std::fs::rename(&other, &path).unwrap();
    for store in [&store, &second] {
        let _ = put(store, "d").await;
        assert!(store.read(&Key::new("kept").unwrap()).await.unwrap().value.is_some());
    }
    assert!(open(&path).read(&Key::new("d").unwrap()).await.unwrap().value.is_some());
}

/// SQLite writes to a log that has no name any more as before, and who comes later sees nothing of it. Whoever is alone lets go of
/// the file, which saves what was accepted, and goes on; where others have it, nothing more is accepted until they let go.
#[cfg(unix)]
#[tokio::test]
async fn a_log_that_is_deleted_alone_loses_nothing() {
    for end in ["-wal", "-shm"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let open = || {
            let hasty = Policy::constant(Duration::from_millis(10)).timeout(Duration::from_millis(400));
            Store::new(relent_store::in_sqlite::Sqlite::open(&path).unwrap()).patience(hasty)
        };
        let put = async |store: &Store<relent_store::in_sqlite::Sqlite>, key: &str| {
            store.replace(&Key::new(key).unwrap(), Version::ABSENT, Some(b"x")).await
        };
        let has = async |store: &Store<relent_store::in_sqlite::Sqlite>, key: &str| {
            store.read(&Key::new(key).unwrap()).await.unwrap().value.is_some()
        };
        let delete = || std::fs::remove_file(folder.path().join(format!("state.db{end}"))).unwrap();
        let store = open();
        let _ = put(&store, "a").await.unwrap();
        assert!(has(&store, "a").await);
        delete();
        let _ = put(&store, "b").await.unwrap();
        assert!(has(&store, "a").await && has(&store, "b").await, "{end}");
        // Another has it open, too.
        let second = open();
        let _ = put(&second, "c").await.unwrap();
        delete();
        let error = put(&store, "d").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert!(error.to_string().contains(&format!("state.db{end}, a part of the store, was deleted")), "{error}");
        assert!(error.hint_text().unwrap().starts_with("end who else uses the store"), "{error:?}");
        // Who comes meanwhile is told, too, where there is another log.
        if end == "-wal" {
            let error = relent_store::in_sqlite::Sqlite::open(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
            assert!(error.hint_text().unwrap().starts_with("was it deleted?"), "{error:?}");
        }
        // It hears of it, too, lets go, and is alone then.
        let _ = put(&second, "e").await.unwrap();
        let _ = put(&store, "f").await.unwrap();
        for key in ["a", "b", "c", "e", "f"] {
            assert!(has(&store, key).await && has(&second, key).await && has(&open(), key).await, "{end} {key}");
        }
        assert!(!has(&store, "d").await);
        drop((store, second));
        let check: String = rusqlite::Connection::open(&path)
            .unwrap()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok", "{end}");
    }
}
