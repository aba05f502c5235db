//! Clocks that leap, by an hour and a day, forward and back, under two processes: nothing lasts longer than it was to, no fence
//! is given twice, what is kept is kept by one, and whoever is late is told.
//!
//! SQLite is given a clock that can be set. Of Postgres, the function that tells the time is replaced. Redis's own clock cannot
//! be moved, so all that is written down moves against it, which is the same.

use crate::servers::{PostgresServer, RedisServer};
use relent_store::{
    Abandon, Acquired, Begin, Claim, Clock, Engine, Fence, Fingerprint, Holding, Kept, Key, Lease, Nonce, OnUnknown,
    Owner, Renewed, Scope, Started, Store, Stored, Time,
    in_sqlite::{Sqlite, SqliteSettings},
};
use std::{process::Command, time::Duration};

const HOUR: i64 = 3_600_000;
const LEASE: Duration = Duration::from_secs(10);
const KEEP: Duration = Duration::from_secs(3 * 86_400);

/// A store whose clock can be made to leap, for all that use it.
enum Machine {
    Sqlite(Clock),
    Redis(u16),
    Postgres(Box<tokio_postgres::Client>),
}

/// What Redis has written down, moved against its clock.
const LEAP: &str = "
local by = tonumber(ARGV[1])
for _, key in ipairs(redis.call('KEYS', 'relent_*')) do
    if string.find(key, '^relent_once:') then
        -- Since when it runs, and since when it is unknown: microseconds. All else counts on what is left.
        for _, first in ipairs({18, 66}) do
            local at = tonumber(redis.call('GETRANGE', key, first, first + 15))
            if at and at > 0 then
                redis.call('SETRANGE', key, first, string.format('%016.0f', at - by * 1000))
            end
        end
    end
    local left = redis.call('PTTL', key)
    if left > 0 then
        redis.call('PEXPIRE', key, string.format('%.0f', left - by))
    end
end
return 1";

impl Machine {
    async fn leap(&self, by: i64) {
        match self {
            Machine::Sqlite(clock) => clock.set(Time(clock.now().0.saturating_add_signed(by))),
            Machine::Redis(port) => {
                let mut command = Command::new("redis-cli");
                command.args(["-p", &port.to_string(), "EVAL", LEAP, "0", &by.to_string()]);
                let out = command.output().expect("redis-cli comes with redis");
                assert_eq!(out.stdout.trim_ascii(), b"1", "{out:?}");
            }
            Machine::Postgres(client) => {
                let moved = client.execute("UPDATE leap SET by_ms = by_ms + $1", &[&by]).await.unwrap();
                assert_eq!(moved, 1);
            }
        }
    }

    async fn postgres(url: &str) -> Machine {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = "CREATE TABLE leap (by_ms bigint); INSERT INTO leap VALUES (0);
            CREATE OR REPLACE FUNCTION relent_now() RETURNS bigint LANGUAGE sql VOLATILE AS
            'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + by_ms FROM leap'";
        client.batch_execute(sql).await.unwrap();
        Machine::Postgres(Box::new(client))
    }
}

fn scope() -> Scope {
    Scope::new("clocks").unwrap()
}

fn begin(key: &Key, on_unknown: OnUnknown) -> Begin {
    let (scope, key, fingerprint, nonce) = (scope(), key.clone(), Fingerprint::NONE, Nonce::random());
    Begin { scope, key, fingerprint, nonce, lease: LEASE, keep: KEEP, on_unknown }
}

async fn started<E: Engine>(store: &Store<E>, key: &Key, on_unknown: OnUnknown) -> Claim {
    match store.begin(&begin(key, on_unknown)).await.unwrap() {
        Started::Started { fence, .. } => Claim { scope: scope(), key: key.clone(), fence },
        other => panic!("{key}: {other:?}"),
    }
}

async fn acquire<E: Engine>(store: &Store<E>, name: &Key) -> Acquired {
    let lease = Lease { name: name.clone(), owner: Owner::new("clocks"), nonce: Nonce::random(), ttl: LEASE };
    store.engine().acquire(&lease).await.unwrap()
}

async fn held<E: Engine>(store: &Store<E>, name: &Key) -> Fence {
    match acquire(store, name).await {
        Acquired::Acquired { fence, .. } => fence,
        other => panic!("{name}: {other:?}"),
    }
}

/// Two processes, `a` and `b`, on a machine whose clock leaps.
async fn leaps<E: Engine>(a: &Store<E>, b: &Store<E>, machine: &Machine) {
    for (turn, by) in [HOUR, 24 * HOUR].into_iter().enumerate() {
        let key = |name: &str| Key::new(format!("{name}-{turn}")).unwrap();
        back(a, b, machine, by, key).await;
        forward(a, b, machine, by, key).await;
        fences_grow(a, b, machine, by, key).await;
    }
}

/// Back: who holds something keeps it, and for no longer than it was to be.
async fn back<E: Engine>(a: &Store<E>, b: &Store<E>, machine: &Machine, by: i64, key: impl Fn(&str) -> Key) {
    let (name, done, seen) = (key("back"), key("back-done"), key("back-seen"));
    let kept = started(a, &done, OnUnknown::Tell).await;
    assert_eq!(a.complete(&kept, &Stored::success("receipt"), KEEP).await.unwrap(), Kept::Kept);
    assert!(a.first_time(&scope(), &seen, KEEP).await.unwrap());
    let claim = started(a, &name, OnUnknown::Tell).await;
    let fence = held(a, &name).await;
    let silent = key("back-silent");
    let (unheard, unheard_fence) = (started(a, &silent, OnUnknown::Tell).await, held(a, &silent).await);
    machine.leap(-by).await;
    // Whoever looks sees to it that it ends in time, though its holder is not heard of any more.
    assert!(matches!(b.begin(&begin(&silent, OnUnknown::TakeOver)).await.unwrap(), Started::Busy { .. }));
    assert!(matches!(acquire(b, &silent).await, Acquired::Held { .. }));
    match b.begin(&begin(&name, OnUnknown::TakeOver)).await.unwrap() {
        Started::Busy { retry_after } => assert!(retry_after <= LEASE, "{retry_after:?}"),
        other => panic!("taken from who holds it: {other:?}"),
    }
    match acquire(b, &name).await {
        Acquired::Held { left, .. } => assert!(left <= LEASE, "{left:?}"),
        other => panic!("taken from who holds it: {other:?}"),
    }
    // What was kept is there, and is kept for no longer.
    assert!(matches!(b.begin(&begin(&done, OnUnknown::Tell)).await.unwrap(), Started::Replay(_)));
    assert!(!b.first_time(&scope(), &seen, KEEP).await.unwrap());
    // Who holds it goes on.
    assert_eq!(a.extend(&claim, LEASE).await.unwrap(), Kept::Kept);
    let holding = Holding { name: name.clone(), fence };
    assert!(matches!(a.engine().renew(&holding, LEASE).await.unwrap(), Renewed::Until(_)));
    // And who does not, has lost it after its time on the new clock.
    machine.leap(LEASE.as_millis() as i64 + 1).await;
    assert!(started(b, &silent, OnUnknown::TakeOver).await.fence > unheard.fence);
    assert!(held(b, &silent).await > unheard_fence);
    let next = started(b, &name, OnUnknown::TakeOver).await;
    assert!(next.fence > claim.fence);
    assert_eq!(a.complete(&claim, &Stored::success("late"), KEEP).await.unwrap(), Kept::Fenced);
    assert_eq!(b.complete(&next, &Stored::success("next"), KEEP).await.unwrap(), Kept::Kept);
    assert!(held(b, &name).await > fence);
    assert_eq!(a.engine().renew(&holding, LEASE).await.unwrap(), Renewed::Fenced);
    machine.leap(by).await;
}

/// Forward: what was held is over for all who do not know better; whoever held it is told, and cannot write over the next.
async fn forward<E: Engine>(a: &Store<E>, b: &Store<E>, machine: &Machine, by: i64, key: impl Fn(&str) -> Key) {
    let (name, done) = (key("forward"), key("forward-done"));
    let kept = started(a, &done, OnUnknown::Tell).await;
    assert_eq!(a.complete(&kept, &Stored::success("receipt"), KEEP).await.unwrap(), Kept::Kept);
    let claim = started(a, &name, OnUnknown::Tell).await;
    let holding = Holding { name: name.clone(), fence: held(a, &name).await };
    machine.leap(by).await;
    assert!(matches!(b.begin(&begin(&name, OnUnknown::Tell)).await.unwrap(), Started::Unknown { .. }));
    assert_eq!(a.extend(&claim, LEASE).await.unwrap(), Kept::Fenced, "it is told that it has lost it");
    assert_eq!(a.engine().renew(&holding, LEASE).await.unwrap(), Renewed::Fenced);
    let next = started(b, &name, OnUnknown::TakeOver).await;
    assert!(next.fence > claim.fence && held(b, &name).await > holding.fence);
    assert_eq!(a.complete(&claim, &Stored::success("late"), KEEP).await.unwrap(), Kept::Fenced);
    assert_eq!(b.complete(&next, &Stored::success("next"), KEEP).await.unwrap(), Kept::Kept);
    // What is kept for longer than the leap is there.
    assert!(matches!(b.begin(&begin(&done, OnUnknown::Tell)).await.unwrap(), Started::Replay(_)));
}

/// Fences of one key grow, whatever the clock did, also over what was forgotten.
async fn fences_grow<E: Engine>(a: &Store<E>, b: &Store<E>, machine: &Machine, by: i64, key: impl Fn(&str) -> Key) {
    let (name, mut claims, mut leases) = (key("fences"), vec![], vec![]);
    for leap in [-by, by, -by, -by, by, by] {
        let claim = started(a, &name, OnUnknown::TakeOver).await;
        claims.push(claim.fence);
        assert_eq!(a.abandon(&claim, Abandon::Forget).await.unwrap(), Kept::Kept);
        assert_eq!(a.complete(&claim, &Stored::success("late"), KEEP).await.unwrap(), Kept::Fenced);
        let holding = Holding { name: name.clone(), fence: held(b, &name).await };
        leases.push(holding.fence);
        assert_eq!(b.engine().release(&holding).await.unwrap(), Kept::Kept);
        machine.leap(leap).await;
    }
    for fences in [claims, leases] {
        assert!(fences.is_sorted_by(|before, after| before < after), "{fences:?}");
    }
}

fn in_file(folder: &tempfile::TempDir, clock: &Clock) -> Store<Sqlite> {
    let settings = SqliteSettings { clock: clock.clone(), ..SqliteSettings::default() };
    Store::new(settings.open(&folder.path().join("state.db")).unwrap())
}

#[tokio::test]
async fn a_clock_under_sqlite_leaps() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::manual(Time(1_800_000_000_000)));
    leaps(&in_file(&folder, &clock), &in_file(&folder, &clock), &Machine::Sqlite(clock)).await;
}

#[tokio::test]
async fn a_clock_under_redis_leaps() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    let (a, b) = (Store::open(&server.url()).await.unwrap(), Store::open(&server.url()).await.unwrap());
    leaps(&a, &b, &Machine::Redis(server.port)).await;
}

#[tokio::test]
async fn a_clock_under_postgres_leaps() {
    let server = PostgresServer::start();
    let (a, b) = (Store::open(&server.url()).await.unwrap(), Store::open(&server.url()).await.unwrap());
    let machine = Machine::postgres(&server.url()).await;
    leaps(&a, &b, &machine).await;
    // And the store says by how much it differs from the machine that asks.
    let before = a.about().await.unwrap().skew_ms;
    machine.leap(-HOUR).await;
    let skew = a.about().await.unwrap().skew_ms - before;
    assert!((skew + HOUR).abs() < 10_000, "{skew}");
}

/// On SQLite the clock is each process's own. Where they differ nevertheless, who is late is fenced, and nothing is kept twice.
#[tokio::test]
async fn two_processes_on_sqlite_whose_clocks_differ_do_not_both_complete() {
    for by in [-24 * HOUR, -HOUR, -20_000, 20_000, HOUR, 24 * HOUR] {
        let folder = tempfile::tempdir().unwrap();
        let here = Clock::manual(Clock::system().now());
        let there = Clock::manual(Time(here.now().0.saturating_add_signed(by)));
        let (a, b) = (in_file(&folder, &here), in_file(&folder, &there));
        let skew = b.about().await.unwrap().skew_ms;
        assert!((skew - by).abs() < 10_000, "{skew}");
        let key = |turn: u32| Key::new(format!("{by}-{turn}")).unwrap();
        for turn in 0..20 {
            let first = started(&a, &key(turn), OnUnknown::TakeOver).await;
            // Whoever comes with the other clock waits, or takes over.
            let mut second = None;
            for _ in 0..4 {
                match b.begin(&begin(&key(turn), OnUnknown::TakeOver)).await.unwrap() {
                    Started::Started { fence, unknown } => {
                        assert!(unknown.is_some() && fence > first.fence, "{by}");
                        second = Some(Claim { fence, ..first.clone() });
                        break;
                    }
                    Started::Busy { retry_after } => assert!(retry_after <= LEASE, "{by}: {retry_after:?}"),
                    other => panic!("{by}: {other:?}"),
                }
                [&here, &there].into_iter().for_each(|clock| clock.advance(Duration::from_secs(3)));
            }
            let by_first = a.complete(&first, &Stored::success("first"), KEEP).await.unwrap();
            let by_second = match &second {
                Some(second) => b.complete(second, &Stored::success("second"), KEEP).await.unwrap(),
                None => Kept::Fenced,
            };
            assert_ne!(by_first, by_second, "{by}: {second:?}");
            let replayed = Stored::success(if by_first == Kept::Kept { "first" } else { "second" });
            for store in [&a, &b] {
                let again = store.begin(&begin(&key(turn), OnUnknown::Tell)).await.unwrap();
                assert_eq!(again, Started::Replay(replayed.clone()), "{by}");
            }
        }
    }
}

/// A claim that was given up leaves its fence behind on Redis, too, whose fences are otherwise made of the time: as if the clock
/// had been ahead when it was made.
#[tokio::test]
async fn a_fence_of_redis_grows_over_what_was_forgotten_before_its_clock_leapt_back() {
    let server = RedisServer::start(&[]);
    let (store, key) = (Store::open(&server.url()).await.unwrap(), Key::new("7").unwrap());
    let claim = started(&store, &key, OnUnknown::Tell).await;
    assert_eq!(store.abandon(&claim, Abandon::Forget).await.unwrap(), Kept::Kept);
    let ahead = claim.fence.0 + HOUR as u64 * 1000;
    let script =
        "for _, key in ipairs(redis.call('KEYS', 'relent_once:*')) do redis.call('SETRANGE', key, 2, ARGV[1]) end";
    let mut command = Command::new("redis-cli");
    command.args(["-p", &server.port.to_string(), "EVAL", script, "0", &ahead.to_string()]);
    assert!(command.status().unwrap().success());
    assert_eq!(started(&store, &key, OnUnknown::Tell).await.fence, Fence(ahead + 1));
    assert!(store.list(relent_store::Kind::Records, 10).await.unwrap().len() == 1);
}
