//! What a crash leaves: a process of its own is killed at each point, and the next one looks. The table of `docs/stores.md`, by
//! name.

use relent_store::{Key, OnceError, Scope, Store, in_sqlite::Sqlite};
use std::{fs, io::Write, path::Path, process::Command, time::Duration};

const LEASE: Duration = Duration::from_millis(300);

/// Ends this process as `kill -9` would: nothing is flushed, nothing dropped.
fn die() -> ! {
    let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
    unreachable!("it is dead");
}

/// Pays order 7 once, and dies at `point`.
async fn pay(folder: &Path, point: &str) -> Result<bool, OnceError<String>> {
    pay_order(folder, "7", point).await
}

/// Pays once, and dies at `point`. The effect is a line in a file.
async fn pay_order(folder: &Path, order: &str, point: &str) -> Result<bool, OnceError<String>> {
    if point == "before" {
        die();
    }
    let store = Store::new(Sqlite::open(folder.join("state.db")).unwrap());
    let (scope, key) = (Scope::new("pay").unwrap(), Key::new(order).unwrap());
    let once = store.once(&scope, &key).lease(LEASE);
    let effect = async |_| {
        if point == "begun" {
            die();
        }
        let mut paid = fs::OpenOptions::new().create(true).append(true).open(folder.join("paid")).unwrap();
        paid.write_all(format!("paid {order}\n").as_bytes()).unwrap();
        if point == "paid" {
            die();
        }
        Ok("receipt")
    };
    let look = async |_since| Ok::<_, String>((effects_of(folder, order) > 0).then_some("receipt that was found"));
    let done = if point == "reconcile" { once.reconcile(look).run(effect).await? } else { once.run(effect).await? };
    if point == "completed" {
        die();
    }
    Ok(done.is_replayed)
}

fn effects(folder: &Path) -> usize {
    effects_of(folder, "7")
}

fn effects_of(folder: &Path, order: &str) -> usize {
    let line = format!("paid {order}");
    fs::read_to_string(folder.join("paid")).map_or(0, |paid| paid.lines().filter(|paid| **paid == line).count())
}

/// The process that dies. Does nothing unless it was started by a test below.
#[tokio::test]
async fn child() {
    if let (Ok(folder), Ok(point)) = (std::env::var("RELENT_CRASH_FOLDER"), std::env::var("RELENT_CRASH_POINT")) {
        let order = std::env::var("RELENT_CRASH_ORDER").unwrap_or_else(|_| "7".into());
        let _ = pay_order(Path::new(&folder), &order, &point).await;
    }
}

fn killed(folder: &Path, point: &str) {
    killed_by(Command::new(std::env::current_exe().unwrap()), folder, "7", point);
}

fn killed_by(mut child: Command, folder: &Path, order: &str, point: &str) {
    child.args(["--exact", "crash::child", "--nocapture"]);
    child.env("RELENT_CRASH_FOLDER", folder).env("RELENT_CRASH_POINT", point).env("RELENT_CRASH_ORDER", order);
    let ended = child.output().unwrap();
    assert!(!ended.status.success(), "it was to be killed at {point}");
}

#[tokio::test]
async fn killed_before_begin_is_as_if_never_asked() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path(), "before");
    assert!(!pay(folder.path(), "").await.unwrap());
    assert_eq!(effects(folder.path()), 1);
}

#[tokio::test]
async fn killed_after_begin_is_busy_then_unknown() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path(), "begun");
    // Busy while the lease lasts; the machine may be slow enough that it is over.
    let soon = pay(folder.path(), "").await;
    assert!(matches!(soon, Err(OnceError::Busy { .. } | OnceError::Unknown { .. })), "{soon:?}");
    tokio::time::sleep(LEASE).await;
    let later = pay(folder.path(), "").await;
    assert!(matches!(later, Err(OnceError::Unknown { .. })), "{later:?}");
    assert_eq!(effects(folder.path()), 0);
    assert!(!pay(folder.path(), "reconcile").await.unwrap(), "it looked, and did it");
    assert_eq!(effects(folder.path()), 1);
}

#[tokio::test]
async fn killed_between_effect_and_complete_is_unknown_and_reconciled() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path(), "paid");
    tokio::time::sleep(LEASE).await;
    let later = pay(folder.path(), "").await;
    assert!(matches!(later, Err(OnceError::Unknown { .. })), "{later:?}");
    assert!(pay(folder.path(), "reconcile").await.unwrap(), "it looked, and found it");
    assert!(pay(folder.path(), "").await.unwrap());
    assert_eq!(effects(folder.path()), 1);
}

#[tokio::test]
async fn killed_after_complete_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path(), "completed");
    assert!(pay(folder.path(), "").await.unwrap());
    assert_eq!(effects(folder.path()), 1);
}

/// The length of the write-ahead log, which ends where the next commit goes: a commit is made that is longer than what others
/// left unfinished there.
async fn log_end(store: &Store<Sqlite>, folder: &Path) -> u64 {
    let length = || fs::metadata(folder.join("state.db-wal")).unwrap().len();
    let (before, key) = (length(), Key::new("fill").unwrap());
    while length() <= before {
        let version = store.read(&key).await.unwrap().version;
        let _ = store.replace(&key, version, Some(&[1; 3000])).await.unwrap();
    }
    length()
}

/// The system kills a process whose file grows beyond a length: so it dies after any byte of what `complete` writes. It is done, and
/// then replayed, or nobody knows; never anything between.
#[tokio::test]
async fn killed_inside_complete_is_wholly_there_or_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // As long as it is open, nobody tidies up the log, which is longer than other files by then.
    let store = Store::new(Sqlite::open(folder.join("state.db")).unwrap());
    for nth in 0..20 {
        let key = Key::new(format!("before-{nth}")).unwrap();
        let _ = store.replace(&key, relent_store::Version::ABSENT, Some(&[1; 3000])).await.unwrap();
    }
    let mut lengths = vec![];
    for point in ["paid", "completed"] {
        let start = log_end(&store, folder).await;
        killed_by(Command::new(std::env::current_exe().unwrap()), folder, point, point);
        lengths.push(fs::metadata(folder.join("state.db-wal")).unwrap().len() - start);
    }
    let [begin, both] = lengths[..] else { panic!() };
    assert!(begin > 0 && both > begin, "{lengths:?}");
    let cuts: Vec<u64> = (0..24).map(|nth| begin + (both - begin) * nth / 23 + nth % 3).collect();
    for cut in &cuts {
        let most = log_end(&store, folder).await + cut;
        let mut child = Command::new("prlimit");
        child.args(["--core=0", &format!("--fsize={most}")]).arg(std::env::current_exe().unwrap());
        killed_by(child, folder, &cut.to_string(), "completed");
    }
    tokio::time::sleep(LEASE).await;
    let (mut there, mut unknown) = (0, 0);
    for order in cuts.iter().map(u64::to_string) {
        match pay_order(folder, &order, "").await {
            Ok(is_replayed) => {
                assert!(is_replayed, "{order} was paid again");
                there += 1;
            }
            Err(OnceError::Unknown { .. }) => {
                unknown += 1;
                assert!(pay_order(folder, &order, "reconcile").await.unwrap(), "{order}: it looked, and found it");
            }
            Err(err) => panic!("{order}: {err:?}"),
        }
        assert_eq!(effects_of(folder, &order), 1, "{order}");
        assert!(pay_order(folder, &order, "").await.unwrap());
    }
    assert!(there > 0 && unknown > 10, "{there} were there, {unknown} were unknown");
}
