//! The rules that every engine keeps: by two processes at once on one store, and in orders that chance decides.

use crate::servers::{PostgresServer, RedisServer};
use relent::rng::mix;
use relent_store::{
    Abandon, About, Acquired, Begin, Claim, Delta, Engine, Error, Held, Holder, Holding, Kept, Key, Kind, Lease,
    Listed, Memory, Nonce, Renewed, Replaced, Scope, Shared, Started, Store, Stored, Version, Versioned, conformance,
};
use std::{
    env,
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The store that a child tries.
const URL: &str = "RELENT_TEST_CONFORMS";

const SAID: &str = "it keeps all rules";

/// One of the two processes; nothing where nobody has asked for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(url) = env::var(URL) else { return };
    let store = Store::open(&url).await.unwrap();
    for _ in 0..3 {
        conformance::check(store.engine()).await.unwrap();
    }
    println!("{SAID}");
}

fn by_two_processes_at_once(url: &str) {
    let start = |()| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "conformity::child", "--nocapture"]).env(URL, url);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for child in [(); 2].map(start) {
        let outcome = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert!(said.contains(SAID), "{said}{}", String::from_utf8_lossy(&outcome.stderr));
    }
}

#[test]
fn two_processes_at_once_keep_the_rules_of_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    by_two_processes_at_once(&format!("sqlite:{}", folder.path().join("state.db").display()));
}

#[test]
fn two_processes_at_once_keep_the_rules_of_redis() {
    let server = RedisServer::start(&[]);
    by_two_processes_at_once(&server.url());
}

#[test]
fn two_processes_at_once_keep_the_rules_of_postgres() {
    let server = PostgresServer::start();
    by_two_processes_at_once(&server.url());
}

/// An engine whose operations, and the answers to them, take their time by chance, so that they come in another order for each
/// seed.
struct Shaken {
    engine: Memory,
    chance: AtomicU64,
}

impl Shaken {
    async fn shake(&self) {
        let chance = mix(self.chance.fetch_add(1, Ordering::Relaxed));
        for _ in 0..chance % 4 {
            tokio::task::yield_now().await;
        }
        if chance >> 60 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Each operation, shaken before and after.
macro_rules! shaken {
    ($(fn $name:ident($($of:ident: $what:ty),*) -> $answer:ty;)*) => {
        impl Engine for Shaken {
            $(async fn $name(&self, $($of: $what),*) -> $answer {
                self.shake().await;
                let answer = self.engine.$name($($of),*).await;
                self.shake().await;
                answer
            })*
        }
    };
}

shaken! {
    fn begin(begin: &Begin) -> Result<Started, Error>;
    fn complete(claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error>;
    fn abandon(claim: &Claim, why: Abandon) -> Result<Kept, Error>;
    fn extend(claim: &Claim, lease: Duration) -> Result<Kept, Error>;
    fn acquire(lease: &Lease) -> Result<Acquired, Error>;
    fn renew(holding: &Holding, ttl: Duration) -> Result<Renewed, Error>;
    fn release(holding: &Holding) -> Result<Kept, Error>;
    fn holder(name: &Key) -> Result<Option<Holder>, Error>;
    fn read(key: &Key) -> Result<Versioned, Error>;
    fn replace(key: &Key, version: Version, value: Option<&[u8]>, nonce: Nonce) -> Result<Replaced, Error>;
    fn first_time(scope: &Scope, key: &Key, keep: Duration, nonce: Nonce) -> Result<bool, Error>;
    fn merge(delta: &Delta) -> Result<Shared, Error>;
    fn hold(upstream: &Key, held: Option<Held>) -> Result<(), Error>;
    fn purge(most: u32) -> Result<u64, Error>;
    fn list(kind: Kind, most: u32) -> Result<Vec<Listed>, Error>;
    fn about() -> Result<About, Error>;
    fn freed(name: &Key, most: Duration) -> ();
}

#[tokio::test(start_paused = true)]
async fn rules_are_kept_in_whatever_order_operations_come() {
    let seed = env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("RELENT_SEED={seed}");
    for round in 0..200_u64 {
        let engine = Shaken { engine: Memory::new(), chance: AtomicU64::new(mix(seed ^ round << 32)) };
        let kept = conformance::check(&engine).await;
        assert!(kept.is_ok(), "round {round}: {}", kept.unwrap_err());
    }
}
