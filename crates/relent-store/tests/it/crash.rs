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

/// Pays once, and dies at `point`. The effect is a line in a file.
async fn pay(folder: &Path, point: &str) -> Result<bool, OnceError<String>> {
    if point == "before" {
        die();
    }
    let store = Store::new(Sqlite::open(folder.join("state.db")).unwrap());
    let (scope, key) = (Scope::new("pay").unwrap(), Key::new("7").unwrap());
    let once = store.once(&scope, &key).lease(LEASE);
    let effect = async |_| {
        if point == "begun" {
            die();
        }
        let mut paid = fs::OpenOptions::new().create(true).append(true).open(folder.join("paid")).unwrap();
        paid.write_all(b"paid\n").unwrap();
        if point == "paid" {
            die();
        }
        Ok("receipt")
    };
    let look = async |_since| Ok::<_, String>((effects(folder) > 0).then_some("receipt that was found"));
    let done = if point == "reconcile" { once.reconcile(look).run(effect).await? } else { once.run(effect).await? };
    if point == "completed" {
        die();
    }
    Ok(done.is_replayed)
}

fn effects(folder: &Path) -> usize {
    fs::read_to_string(folder.join("paid")).map_or(0, |paid| paid.lines().count())
}

/// The process that dies. Does nothing unless it was started by a test below.
#[tokio::test]
async fn child() {
    if let (Ok(folder), Ok(point)) = (std::env::var("RELENT_CRASH_FOLDER"), std::env::var("RELENT_CRASH_POINT")) {
        let _ = pay(Path::new(&folder), &point).await;
    }
}

fn killed(folder: &Path, point: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "crash::child", "--nocapture"]);
    child.env("RELENT_CRASH_FOLDER", folder).env("RELENT_CRASH_POINT", point);
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
