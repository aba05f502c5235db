//! What happens once.

use relent::Policy;
use relent_store::{Abandon, Engine, Key, Memory, Once, OnceError, Scope, Store, Stored};
use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

const SEC: Duration = Duration::from_secs(1);

fn names() -> (Scope, Key) {
    (Scope::new("pay").expect("a short name"), Key::new("7").expect("a short name"))
}

async fn counted<E: Engine>(once: Once<'_, E>, count: &AtomicU32) -> Result<bool, OnceError<&'static str>> {
    let done = once.run(async |_| Ok(count.fetch_add(1, Ordering::SeqCst).to_string())).await?;
    Ok(done.is_replayed)
}

#[tokio::test(start_paused = true)]
async fn of_many_at_once_one_acts_and_all_have_its_result() {
    let (store, (scope, key)) = (Store::new(Memory::new()), names());
    let count: &AtomicU32 = Box::leak(Box::default());
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (store, scope, key) = (store.clone(), scope.clone(), key.clone());
            tokio::spawn(async move {
                let wait = Policy::constant(Duration::from_millis(50)).max_attempts(100);
                let done = store.once(&scope, &key).wait(wait).run(async |_| {
                    tokio::time::sleep(SEC).await;
                    Ok::<_, String>(count.fetch_add(1, Ordering::SeqCst).to_string())
                });
                done.await.unwrap().bytes().to_vec()
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), b"0");
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_effect_keeps_its_claim() {
    let (store, (scope, key)) = (Store::new(Memory::new()), names());
    let long = store.once(&scope, &key).lease(SEC).run(async |_| {
        tokio::time::sleep(10 * SEC).await;
        Ok::<_, String>("done")
    });
    let other = async {
        tokio::time::sleep(8 * SEC).await;
        store.once(&scope, &key).rerun().run(async |_| Ok::<_, String>("twice")).await
    };
    let (long, other) = tokio::join!(long, other);
    assert_eq!(long.unwrap().bytes(), b"done");
    assert!(matches!(other, Err(OnceError::Busy { .. })), "{other:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_effect_is_unknown_until_somebody_decides() {
    let (store, (scope, key)) = (Store::new(Memory::new()), names());
    let hangs = store.once(&scope, &key).lease(SEC).run(async |_| std::future::pending::<Result<&str, String>>().await);
    assert!(tokio::time::timeout(5 * SEC, hangs).await.is_err());
    let count = AtomicU32::new(0);
    let busy = counted(store.once(&scope, &key), &count).await;
    assert!(matches!(busy, Err(OnceError::Busy { .. })), "{busy:?}");
    tokio::time::sleep(SEC).await;
    let unknown = counted(store.once(&scope, &key), &count).await;
    assert!(matches!(unknown, Err(OnceError::Unknown { .. })), "{unknown:?}");
    assert_eq!(count.load(Ordering::SeqCst), 0);
    // Looking fails: it stays unknown.
    let look = async |_| Err::<Option<&str>, _>("the bank is away");
    let failed = store.once(&scope, &key).reconcile(look).run(async |_| Ok::<_, String>("never")).await;
    assert!(matches!(failed, Err(OnceError::Unknown { .. })), "{failed:?}");
    // It turns out not to have happened.
    let look = async |_| Ok::<Option<&str>, String>(None);
    let done = store.once(&scope, &key).reconcile(look).run(async |effect| {
        assert!(effect.unknown.is_some());
        Ok::<_, String>("now")
    });
    assert_eq!(done.await.unwrap().bytes(), b"now");
    assert!(counted(store.once(&scope, &key), &count).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_forgotten_a_timeout_is_doubt_and_a_final_one_is_replayed() {
    let (store, (scope, key)) = (Store::new(Memory::new()), names());
    let failed = store.once(&scope, &key).run(async |_| Err::<&str, _>("refused")).await;
    assert!(matches!(failed, Err(OnceError::Failed(err)) if err.last == Some("refused")));
    let slow = Policy::immediate().max_attempts(1).attempt_timeout(SEC);
    let hangs =
        store.once(&scope, &key).retry(slow).run(async |_| std::future::pending::<Result<&str, String>>().await);
    assert!(matches!(hangs.await, Err(OnceError::Failed(err)) if err.timed_out == Some(SEC)));
    let unknown = store.once(&scope, &key).run(async |_| Ok::<_, String>("x")).await;
    assert!(matches!(unknown, Err(OnceError::Unknown { .. })));
    // Who was told so, and fails, knows no more of the run before.
    for leaves in [None, Some(Abandon::Forget)] {
        let once = store.once(&scope, &key).rerun();
        let once = leaves.into_iter().fold(once, |once, leaves| once.on_failure(leaves));
        let fails = once.run(async |effect| Err::<&str, _>(effect.unknown.is_some())).await;
        assert!(matches!(fails, Err(OnceError::Failed(err)) if err.last == Some(true)), "{leaves:?}");
        let unknown = store.once(&scope, &key).run(async |_| Ok::<_, String>("x")).await;
        assert!(matches!(unknown, Err(OnceError::Unknown { .. })), "{leaves:?}");
    }
    let rerun =
        store.once(&scope, &key).rerun().run(async |_| Ok::<_, String>(Stored::failure("no such account"))).await;
    assert!(rerun.unwrap().stored.is_failure());
    let replay = store.once(&scope, &key).run(async |_| Ok::<_, String>("x")).await.unwrap();
    assert_eq!((replay.is_replayed, replay.stored), (true, Stored::failure("no such account")));
}

#[tokio::test(start_paused = true)]
async fn who_sleeps_through_its_claim_is_fenced() {
    let (store, (scope, key)) = (Store::new(Memory::new()), names());
    let (go, gone) = (tokio::sync::Notify::new(), tokio::sync::Notify::new());
    // A claim whose signs of life come too late, because its thread stands still, is what two runs of one process make of it.
    let slow = async {
        store
            .once(&scope, &key)
            .lease(SEC)
            .run(async |effect| {
                let claim = relent_store::Claim { scope: scope.clone(), key: key.clone(), fence: effect.fence };
                let _ = store.abandon(&claim, Abandon::Unknown).await.unwrap();
                go.notify_one();
                gone.notified().await;
                Ok::<_, String>("late")
            })
            .await
    };
    let quick = async {
        go.notified().await;
        let done = store.once(&scope, &key).rerun().run(async |_| Ok::<_, String>("quick")).await;
        gone.notify_one();
        done
    };
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!(quick.unwrap().bytes(), b"quick");
    assert!(matches!(&slow, Err(OnceError::Fenced(Some(stored))) if stored.bytes() == b"late"), "{slow:?}");
    assert_eq!(store.fenced(), 1);
}
