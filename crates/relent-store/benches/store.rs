//! What the store costs beside the same written by hand, in one run: `cargo bench -p relent-store --bench store`.
//!
//! Each row is the median of five rounds, in which both sides take turns. Servers are started on loopback.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark stops where it cannot measure, and prints")]

#[expect(dead_code, reason = "the tests need more of it")]
#[path = "../tests/it/servers.rs"]
mod servers;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use redis::{Script, aio::MultiplexedConnection};
use relent::{Budget, Outcome, Timestamp, Upstream, Verdict};
use relent_store::{
    Acquired, Begin, Claim, Engine, Fingerprint, Holding, Key, Lease, Memory, Nonce, OnUnknown, Owner, Scope, Sharing,
    Started, Store, Stored, in_postgres::Postgres, in_redis::Redis, in_sqlite::Sqlite, layer::IdempotencyLayer,
};
use rusqlite::Connection;
use servers::{PostgresServer, RedisServer};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    hint::black_box,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio_postgres::Client;
use tower_layer::Layer;
use tower_service::Service;

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(800);
const MINUTE: Duration = Duration::from_secs(60);

static NEXT: AtomicU64 = AtomicU64::new(0);

fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// How many times a second `cycle` runs, by so many callers at once.
async fn rate<F, Fut>(callers: u32, cycle: F) -> f64
where
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let (done, begin) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (cycle, done) = (cycle.clone(), done.clone());
            tokio::spawn(async move {
                while begin.elapsed() < ROUND {
                    cycle().await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    done.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn row(work: &str, floor: Vec<f64>, ours: Vec<f64>, target: &str) {
    let (floor, ours) = (median(floor), median(ours));
    println!("| {work} | {floor:.0} | {ours:.0} | {:.2} | {target} |", ours / floor);
}

async fn claimed<E: Engine>(engine: &E) -> Claim {
    let (scope, key) = (Scope::new("bench").unwrap(), Key::new(next().to_string()).unwrap());
    let (fingerprint, nonce, on_unknown) = (Fingerprint::NONE, Nonce::random(), OnUnknown::Tell);
    let begin = Begin { scope, key, fingerprint, nonce, lease: MINUTE, keep: MINUTE, on_unknown };
    let Started::Started { fence, .. } = engine.begin(&begin).await.unwrap() else { panic!("a key of its own") };
    Claim { scope: begin.scope, key: begin.key, fence }
}

/// Begun and completed.
async fn pair<E: Engine>(engine: &E) {
    let claim = claimed(engine).await;
    let _ = engine.complete(&claim, &Stored::success("done"), MINUTE).await.unwrap();
}

/// Begun, extended and completed: three commits.
async fn cycle<E: Engine>(engine: &E) {
    let claim = claimed(engine).await;
    let _ = engine.extend(&claim, MINUTE).await.unwrap();
    let _ = engine.complete(&claim, &Stored::success("done"), MINUTE).await.unwrap();
}

/// A table of one's own, as somebody would write it who needs no more than this.
fn by_hand(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    let _: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).unwrap();
    conn.execute_batch(
        "PRAGMA synchronous = FULL; CREATE TABLE once (key BLOB PRIMARY KEY, until INTEGER, value BLOB) WITHOUT ROWID",
    )
    .unwrap();
    conn
}

/// So many cycles in three transactions.
fn raw_cycles(conn: &Connection, number: u64) {
    let first = NEXT.fetch_add(number, Ordering::Relaxed);
    for sql in [
        "INSERT INTO once VALUES (?1, 1, NULL)",
        "UPDATE once SET until = 2 WHERE key = ?1",
        "UPDATE once SET until = 3, value = x'646f6e65' WHERE key = ?1",
    ] {
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut statement = conn.prepare_cached(sql).unwrap();
        for key in first..first + number {
            statement.execute([key.to_string().as_bytes()]).unwrap();
        }
        drop(statement);
        conn.execute_batch("COMMIT").unwrap();
    }
}

fn raw_rate(conn: &Connection, number: u64) -> f64 {
    let (begin, mut done) = (Instant::now(), 0);
    while begin.elapsed() < ROUND {
        raw_cycles(conn, number);
        done += number;
    }
    done as f64 / begin.elapsed().as_secs_f64()
}

async fn sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let raw = by_hand(&folder.path().join("raw.db"));
    let engine = Sqlite::open(folder.path().join("state.db")).unwrap();
    let [mut alone_raw, mut alone, mut batched, mut many] = [(); 4].map(|()| vec![]);
    let mut costs = [Cost::default(); 2];
    for _ in 0..ROUNDS {
        alone_raw.push(raw_rate(&raw, 1));
        let one = engine.clone();
        alone.push(
            rate(1, move || {
                let one = one.clone();
                async move { cycle(&one).await }
            })
            .await,
        );
        batched.push(costs[0].round(0, async { raw_rate(&raw, 100) }).await);
        let all = engine.clone();
        let all = move || {
            let all = all.clone();
            async move { cycle(&all).await }
        };
        many.push(costs[1].of(0, 256, all).await);
    }
    row("SQLite FULL, three commits, one caller", alone_raw, alone.clone(), "0.9");
    row("SQLite FULL, three commits, 256 callers, over batches of 100 by hand", batched, many.clone(), "0.8");
    row("SQLite FULL, 256 callers over one", alone, many, "40");
    costs[0].say("three commits by hand, a hundred at a time");
    costs[1].say("three commits, 256 callers");
}

const CLAIM: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 60000)";
const DONE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('SET', KEYS[1], ARGV[2], 'PX', 60000) end";
const FREE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end";

async fn raw_pair(mut connection: MultiplexedConnection, scripts: Arc<[Script; 2]>) {
    let (key, nonce) = (format!("raw:{}", next()), Nonce::random().0);
    let _: redis::Value = scripts[0].key(&key).arg(&nonce[..]).invoke_async(&mut connection).await.unwrap();
    let _: redis::Value = scripts[1].key(&key).arg(&nonce[..]).arg("done").invoke_async(&mut connection).await.unwrap();
}

async fn leased<E: Engine>(engine: &E) {
    let name = Key::new(next().to_string()).unwrap();
    let lease = Lease { name: name.clone(), owner: Owner::new("bench"), nonce: Nonce::random(), ttl: MINUTE };
    let Acquired::Acquired { fence, .. } = engine.acquire(&lease).await.unwrap() else { panic!("a name of its own") };
    let _ = engine.release(&Holding { name, fence }).await.unwrap();
}

/// What a process and its children have had of the processors so far, in microseconds: other work on the machine makes no
/// difference to it.
fn spent(pid: &str) -> f64 {
    let children = std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let stat = stat(entry.file_name().to_str()?);
        (stat.get(1).map(String::as_str) == Some(pid)).then(|| ticks(&stat[11..13]))
    });
    let own = stat(pid);
    // Children that have ended are counted by their parent.
    (own.get(11..15).map_or(0.0, ticks) + children.sum::<f64>()) * 10_000.0
}

/// What the system says of a process, behind its name, which may hold anything: state, parent, and so on.
fn stat(pid: &str) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Hundredths of seconds, its own and the kernel's for it.
fn ticks(fields: &[String]) -> f64 {
    fields.iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
}

/// How often a second, and what one of it costs in microseconds of processors, here and at the server.
#[derive(Clone, Copy, Default)]
struct Cost {
    number: f64,
    here: f64,
    there: f64,
}

impl Cost {
    /// Adds a round of so many callers to it.
    async fn of<F, Fut>(&mut self, server: u32, callers: u32, cycle: F) -> f64
    where
        F: Fn() -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + Send,
    {
        self.round(server, rate(callers, cycle)).await
    }

    /// Adds a round of something else to it. No server is 0.
    async fn round(&mut self, server: u32, round: impl Future<Output = f64>) -> f64 {
        let (here, there) = (ticks(&stat("self")[11..13]) * 10_000.0, spent(&server.to_string()));
        let begin = Instant::now();
        let rate = round.await;
        self.number += rate * begin.elapsed().as_secs_f64();
        self.here += ticks(&stat("self")[11..13]) * 10_000.0 - here;
        self.there += spent(&server.to_string()) - there;
        rate
    }

    fn say(self, what: &str) {
        let (here, there) = (self.here / self.number, self.there / self.number);
        println!("  {what}: {here:.1} us here, {there:.1} us at the server, {:.1} us both", here + there);
    }
}

async fn in_redis() {
    let server = RedisServer::start(&["--appendonly", "no"]);
    let connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let engine = Redis::open(&server.url(), "relent_").await.unwrap();
    let [mut raw, mut ours, mut raw_leases, mut leases] = [(); 4].map(|()| vec![]);
    let mut costs = [Cost::default(); 4];
    let pid = server.pid();
    let scripts = |second| Arc::new([Script::new(CLAIM), Script::new(second)]);
    for _ in 0..ROUNDS {
        for (nth, second, rates) in [(0, DONE, &mut raw), (1, FREE, &mut raw_leases)] {
            let (connection, scripts) = (connection.clone(), scripts(second));
            rates.push(costs[nth].of(pid, 64, move || raw_pair(connection.clone(), scripts.clone())).await);
        }
        let one = engine.clone();
        let cycle = move || {
            let one = one.clone();
            async move { pair(&one).await }
        };
        ours.push(costs[2].of(pid, 64, cycle).await);
        let one = engine.clone();
        let cycle = move || {
            let one = one.clone();
            async move { leased(&one).await }
        };
        leases.push(costs[3].of(pid, 64, cycle).await);
    }
    row("Redis, begin and complete, 64 callers", raw, ours, "0.9");
    row("Redis, lease and release, 64 callers", raw_leases, leases, "0.9");
    for (nth, what) in
        ["claim by hand", "lease by hand", "begin and complete", "lease and release"].into_iter().enumerate()
    {
        costs[nth].say(what);
    }
}

/// A pair by hand, in two statements that are prepared.
async fn raw_pairs(client: &Client) -> f64 {
    let claim = "INSERT INTO once VALUES ($1, $2, NULL) ON CONFLICT DO NOTHING RETURNING 1";
    let claim = client.prepare(claim).await.unwrap();
    let complete = client.prepare("UPDATE once SET value = $3 WHERE key = $1 AND nonce = $2").await.unwrap();
    let (begin, mut done) = (Instant::now(), 0.0);
    while begin.elapsed() < ROUND {
        let (key, nonce) = (next().to_string(), Nonce::random().0);
        let (key, nonce, value) = (key.as_bytes(), &nonce[..], &b"done"[..]);
        client.query(&claim, &[&key, &nonce]).await.unwrap();
        client.execute(&complete, &[&key, &nonce, &value]).await.unwrap();
        done += 1.0;
    }
    done / begin.elapsed().as_secs_f64()
}

/// A hundred pairs at a time by hand, in two statements that are prepared.
async fn raw_batches(client: &Client) -> f64 {
    let claim = "INSERT INTO once SELECT key, nonce FROM unnest($1::bytea[], $2::bytea[]) AS a (key, nonce)
        ON CONFLICT DO NOTHING RETURNING key";
    let claim = client.prepare(claim).await.unwrap();
    let complete = "UPDATE once o SET value = a.value FROM unnest($1::bytea[], $2::bytea[], $3::bytea[])
        AS a (key, nonce, value) WHERE o.key = a.key AND o.nonce = a.nonce";
    let complete = client.prepare(complete).await.unwrap();
    let (begin, mut done) = (Instant::now(), 0.0);
    while begin.elapsed() < ROUND {
        let keys: Vec<Vec<u8>> = (0..100).map(|_| next().to_string().into_bytes()).collect();
        let nonces: Vec<Vec<u8>> = (0..100).map(|_| Nonce::random().0.to_vec()).collect();
        let values = vec![&b"done"[..]; 100];
        client.query(&claim, &[&keys, &nonces]).await.unwrap();
        client.execute(&complete, &[&keys, &nonces, &values]).await.unwrap();
        done += 100.0;
    }
    done / begin.elapsed().as_secs_f64()
}

/// How many pairs a second eight of them do, each on a connection of its own.
async fn by_eight(url: &str, is_batch: bool) -> f64 {
    let mut tasks = vec![];
    for _ in 0..8 {
        let url = url.to_owned();
        tasks.push(tokio::spawn(async move {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            if is_batch { raw_batches(&client).await } else { raw_pairs(&client).await }
        }));
    }
    let mut sum = 0.0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}

async fn in_postgres() {
    let server = PostgresServer::start();
    // A server that listens may still be starting: this waits for it.
    drop(Store::open(&server.url()).await.unwrap());
    let engine = Postgres::open_url(&server.url()).await.unwrap();
    let (setup, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    setup.batch_execute("CREATE TABLE once (key bytea PRIMARY KEY, nonce bytea, value bytea)").await.unwrap();
    let [mut ones, mut alone, mut raw, mut ours, mut batches, mut many] = [(); 6].map(|()| vec![]);
    let (pid, mut costs) = (server.pid(), [Cost::default(); 6]);
    for _ in 0..ROUNDS {
        for (callers, rates) in [(1, &mut alone), (8, &mut ours), (800, &mut many)] {
            match callers {
                1 => ones.push(costs[0].round(pid, raw_pairs(&setup)).await),
                8 => raw.push(costs[2].round(pid, by_eight(&server.url(), false)).await),
                _ => batches.push(costs[4].round(pid, by_eight(&server.url(), true)).await),
            }
            let one = engine.clone();
            let cycle = move || {
                let one = one.clone();
                async move { pair(&one).await }
            };
            let cost = &mut costs[if callers == 1 {
                1
            } else if callers == 8 {
                3
            } else {
                5
            }];
            rates.push(cost.of(pid, callers, cycle).await);
        }
    }
    row("Postgres, begin and complete, one caller", ones, alone, "");
    row("Postgres, begin and complete, 8 callers", raw, ours, "0.8");
    row("Postgres, begin and complete, 800 callers, over 8 workers with batches of 100 by hand", batches, many, "0.8");
    for (cost, what) in costs.into_iter().zip([
        "one pair by hand",
        "one caller",
        "8 pairs by hand",
        "8 callers",
        "pairs by hand, a hundred at a time",
        "800 callers",
    ]) {
        cost.say(what);
    }
}

/// A service that answers at once.
#[derive(Clone)]
struct Echo;

impl<B> Service<Request<B>> for Echo {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(Full::new(Bytes::from_static(b"receipt")))))
    }
}

async fn layer() {
    let folder = tempfile::tempdir().unwrap();
    let layer = IdempotencyLayer::new(Store::new(Sqlite::open(folder.path().join("state.db")).unwrap()));
    let mut with = layer.layer(Echo);
    let mut bare = Echo;
    let (mut plain, mut through, mut replays) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let number = 300_000;
        let begin = Instant::now();
        for _ in 0..number {
            let _ = black_box(bare.call(Request::get("/").body(Full::<Bytes>::default()).unwrap()).await);
        }
        plain.push(begin.elapsed().as_nanos() as f64 / f64::from(number));
        let begin = Instant::now();
        for _ in 0..number {
            let _ = black_box(with.call(Request::get("/").body(Full::<Bytes>::default()).unwrap()).await);
        }
        through.push(begin.elapsed().as_nanos() as f64 / f64::from(number));
        let begin = Instant::now();
        for _ in 0..2000 {
            let request =
                Request::post("/pay").header("idempotency-key", "\"7\"").body(Full::<Bytes>::default()).unwrap();
            let _ = black_box(with.call(request).await);
        }
        replays.push(begin.elapsed().as_nanos() as f64 / 2000.0);
    }
    let (plain, through) = (median(plain), median(through));
    println!("\n| layer | ns | target |\n|---|---:|---:|");
    println!("| a request without a key, besides the service | {:.0} | 50 |", through - plain);
    println!("| a replay from SQLite | {:.0} | 100000 |", median(replays));
}

/// What a decision of a shared budget costs beside one that is not shared, in nanoseconds: a call that begins, and a retry.
async fn shared() {
    let store = Store::new(Memory::new());
    let together = store.share(&Key::new("bench").unwrap(), Upstream::new("bench"), Sharing::default()).await.unwrap();
    let (together, alone) = (together.its_budget().unwrap(), Budget::ratio(0.1));
    let [mut of_alone, mut of_shared] = [(); 2].map(|()| [vec![], vec![]]);
    for _ in 0..ROUNDS {
        for (budget, [calls, retries]) in [(&alone, &mut of_alone), (together, &mut of_shared)] {
            calls.push(nanos(|| _ = black_box(budget.start(black_box(Timestamp::ZERO), 0))));
            let failed = Outcome::Failure(Verdict::Transient);
            retries.push(nanos(|| _ = black_box(budget.withdraw(black_box(Timestamp::ZERO), failed, 0))));
        }
    }
    println!("\n| a decision | alone, ns | shared, ns | target |\n|---|---:|---:|---:|");
    for (work, (alone, shared)) in
        ["a call begins", "a retry, granted or not"].into_iter().zip(of_alone.into_iter().zip(of_shared))
    {
        println!("| {work} | {:.1} | {:.1} | 10 |", median(alone), median(shared));
    }
}

/// How long one of many takes.
fn nanos(work: impl Fn()) -> f64 {
    let (begin, number) = (Instant::now(), 10_000_000);
    for _ in 0..number {
        work();
    }
    begin.elapsed().as_nanos() as f64 / f64::from(number)
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        println!("| work | by hand, 1/s | relent-store, 1/s | ratio | target |\n|---|---:|---:|---:|---:|");
        for (name, wanted) in [("sqlite", 0), ("redis", 1), ("postgres", 2), ("layer", 3), ("shared", 4)] {
            let chosen: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
            if !chosen.is_empty() && !chosen.iter().any(|one| one == name) {
                continue;
            }
            match wanted {
                0 => sqlite().await,
                1 => in_redis().await,
                2 => in_postgres().await,
                3 => layer().await,
                _ => shared().await,
            }
        }
    });
}
