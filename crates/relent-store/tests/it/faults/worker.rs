//! The process that is killed: it begins, acts and completes, takes leases, counts, and consumes messages, until it dies.

use relent::rng::draw;
use relent_store::{
    Abandon, Acquired, Begin, Claim, Engine, Fence, Fingerprint, Holding, Kept, Key, Kind, Lease, Listed, Nonce,
    OnUnknown, Owner, Renewed, Replaced, Scope, Started, Store, Stored, in_sqlite,
};
use rusqlite::{Connection, TransactionBehavior::Immediate};
use std::{
    cell::Cell,
    env, fs,
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long a claim and a lease hold.
pub(super) const LEASE: Duration = Duration::from_millis(60);
const KEEP: Duration = Duration::from_secs(3600);

/// Where a worker can be told to stand still, to be killed or stopped there.
pub(super) const POINTS: &[&str] = &[
    "before_begin",
    "after_begin",
    "after_effect",
    "after_complete",
    "before_abandon",
    "after_abandon",
    "after_read",
    "after_replace",
    "before_acquire",
    "after_acquire",
    "after_renew",
    "after_release",
    "before_first",
    "after_first",
    "seen_not_committed",
    "effect_not_committed",
    "after_commit",
];

/// What a worker does wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Right,
    /// Completes by the key alone.
    NoFence,
    /// Commits the effect of a message, and that it was seen, one after the other.
    NoTransaction,
    /// Says that it is done before the store does.
    ToldTooEarly,
}

impl Control {
    fn named(name: &str) -> Control {
        let all = [Control::NoFence, Control::NoTransaction, Control::ToldTooEarly];
        all.into_iter().find(|control| format!("{control:?}") == name).unwrap_or(Control::Right)
    }
}

/// What is done with an unknown outcome; a key says it by its first letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Conflict,
    Rerun,
    Reconcile,
}

impl Rule {
    pub(super) fn of(key: &str) -> Rule {
        match key.as_bytes().first() {
            Some(b'a') => Rule::Rerun,
            Some(b'r') => Rule::Reconcile,
            _ => Rule::Conflict,
        }
    }
}

pub(super) fn scope() -> Scope {
    Scope::of(["faults", "pay"]).unwrap()
}

pub(super) fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

pub(super) struct Worker {
    pub(super) store: Store,
    folder: PathBuf,
    shop: Connection,
    seed: u64,
    draws: Cell<u32>,
    /// The point at which it stands still, and how many times it passes there before.
    stop: (String, Cell<u32>),
    control: Control,
    /// Keys are of its generation, and of some before.
    generation: u64,
    /// Whether it now and then gives up what it began.
    abandons: bool,
}

impl Worker {
    pub(super) async fn new(url: &str, folder: &Path) -> Worker {
        let store = Store::open(url).await.unwrap();
        let mut shop = Connection::open(folder.join("shop.db")).unwrap();
        shop.busy_timeout(Duration::from_secs(10)).unwrap();
        in_sqlite::prepare(&mut shop).unwrap();
        shop.execute_batch("CREATE TABLE IF NOT EXISTS orders (message TEXT)").unwrap();
        let stop = (String::new(), Cell::new(0));
        let (folder, draws) = (folder.to_owned(), Cell::new(0));
        Worker { store, folder, shop, seed: 0, draws, stop, control: Control::Right, generation: 0, abandons: false }
    }

    fn draw(&self, below: u64) -> u64 {
        self.draws.set(self.draws.get() + 1);
        draw(self.seed, self.draws.get()) % below
    }

    /// Stands still if this is where it was told to. Goes on when it is written to, if it ever is.
    fn at(&self, point: &str) {
        let (stop, left) = &self.stop;
        if stop != point {
            return;
        }
        left.set(left.get().wrapping_sub(1));
        if left.get() == 0 {
            say("at");
            let _ = std::io::stdin().read(&mut [0]);
        }
    }

    pub(super) fn tell(&self, event: &str, name: &str, a: u64, b: u64) {
        let mut journal = fs::OpenOptions::new().append(true).create(true).open(self.folder.join("journal")).unwrap();
        journal.write_all(format!("{event} {name} {a} {b}\n").as_bytes()).unwrap();
    }

    /// The effect: a line in a file, unless somebody with a greater fence was there.
    fn effect(&self, name: &str, fence: Fence) -> bool {
        self.guarded(name, |lines| {
            let is_late = lines.iter().any(|(_, seen)| *seen > fence.0);
            (!is_late).then(|| format!("effect {fence}\n"))
        })
        .1
    }

    /// Whether the effect happened, and under which fence. From now on it does not happen under an older one.
    fn look(&self, name: &str, fence: Fence) -> Option<u64> {
        let lines = self.guarded(name, |_| Some(format!("guard {fence}\n"))).0;
        lines.iter().find(|(what, _)| what == "effect").map(|(_, fence)| *fence)
    }

    fn guarded(&self, name: &str, line: impl FnOnce(&[(String, u64)]) -> Option<String>) -> (Vec<(String, u64)>, bool) {
        let path = effects_of(&self.folder, name);
        let mut file = fs::OpenOptions::new().read(true).append(true).create(true).open(path).unwrap();
        file.lock().unwrap();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        let words = text.lines().filter_map(|line| line.split_once(' '));
        let lines: Vec<_> = words.map(|(what, fence)| (what.to_owned(), fence.parse().unwrap())).collect();
        let line = line(&lines);
        if let Some(line) = &line {
            file.write_all(line.as_bytes()).unwrap();
        }
        (lines, line.is_some())
    }

    /// Claims a key; `None` if it is not ours.
    pub(super) async fn begin(&self, name: &str, on_unknown: OnUnknown) -> Option<Started> {
        let nonce = Nonce::random();
        let (scope, key, fingerprint) = (scope(), key(name), Fingerprint::NONE);
        let begin = Begin { scope, key, fingerprint, nonce, lease: LEASE, keep: KEEP, on_unknown };
        self.store.begin(&begin).await.ok()
    }

    /// Does what a key stands for, once, by its rule.
    pub(super) async fn once(&self, name: &str) {
        let rule = Rule::of(name);
        self.at("before_begin");
        let on_unknown = if rule == Rule::Conflict { OnUnknown::Tell } else { OnUnknown::TakeOver };
        let Some(started) = self.begin(name, on_unknown).await else { return };
        match started {
            Started::Started { fence, unknown } => {
                self.tell("started", name, fence.0, 0);
                self.at("after_begin");
                if self.abandons && unknown.is_none() && self.draw(4) == 0 {
                    return self.abandon(name, fence).await;
                }
                let is_looked_up = unknown.is_some() && rule == Rule::Reconcile;
                let found = if is_looked_up { self.look(name, fence) } else { None };
                if found.is_none() && !self.effect(name, fence) {
                    self.tell("late", name, fence.0, 0);
                }
                self.at("after_effect");
                self.complete(name, fence, found.unwrap_or(fence.0)).await;
                self.at("after_complete");
            }
            Started::Replay(stored) => self.tell("replayed", name, number(stored.bytes()), 0),
            _ => {}
        }
    }

    async fn abandon(&self, name: &str, fence: Fence) {
        self.at("before_abandon");
        let claim = Claim { scope: scope(), key: key(name), fence };
        let _ = self.store.abandon(&claim, Abandon::Forget).await;
        self.at("after_abandon");
    }

    pub(super) async fn complete(&self, name: &str, fence: Fence, value: u64) {
        if self.control == Control::ToldTooEarly {
            self.tell("done", name, fence.0, value);
            self.at("told_too_early");
        }
        let fence_told = if self.control == Control::NoFence { self.fence_that_is_there(name).await } else { fence };
        let claim = Claim { scope: scope(), key: key(name), fence: fence_told };
        match self.store.complete(&claim, &Stored::success(value.to_string()), KEEP).await {
            Ok(Kept::Kept) => self.tell("done", name, fence.0, value),
            Ok(Kept::Fenced) => self.tell("fenced", name, fence.0, value),
            Err(_) => {}
        }
    }

    async fn fence_that_is_there(&self, name: &str) -> Fence {
        let listed = self.store.list(Kind::Records, 1000).await.unwrap();
        let fences = listed.iter().filter_map(|listed| match listed {
            Listed::Record { key: is, fence, .. } if *is == key(name) => Some(*fence),
            _ => None,
        });
        fences.max().unwrap()
    }

    async fn count(&self, name: &str) {
        let Ok(old) = self.store.read(&key(name)).await else { return };
        self.at("after_read");
        let new = old.value.as_deref().map_or(0, number) + 1;
        self.tell("adding", name, new, 0);
        let replaced = self.store.replace(&key(name), old.version, Some(new.to_string().as_bytes())).await;
        if let Ok(Replaced::Replaced(_)) = replaced {
            self.tell("added", name, new, 0);
        }
        self.at("after_replace");
    }

    async fn hold(&self, name: &str) {
        self.at("before_acquire");
        let lease = Lease { name: key(name), owner: Owner::here(), nonce: Nonce::random(), ttl: LEASE };
        let Ok(Acquired::Acquired { fence, .. }) = self.store.engine().acquire(&lease).await else { return };
        self.tell("held", name, fence.0, 0);
        self.at("after_acquire");
        let holding = Holding { name: key(name), fence };
        if let Ok(Renewed::Fenced) = self.store.engine().renew(&holding, LEASE).await {
            self.tell("fenced", name, fence.0, 0);
        }
        self.at("after_renew");
        let _ = self.store.engine().release(&holding).await;
        self.at("after_release");
    }

    async fn first(&self, name: &str) {
        self.at("before_first");
        if let Ok(true) = self.store.first_time(&scope(), &key(name), KEEP).await {
            self.tell("first", name, 0, 0);
        }
        self.at("after_first");
    }

    /// A message, its effect and that it was seen: in one transaction.
    pub(super) fn consume(&self, message: &str) {
        if self.control == Control::NoTransaction {
            self.order(&self.shop, message);
            self.at("effect_without_seen");
        }
        let tx = rusqlite::Transaction::new_unchecked(&self.shop, Immediate).unwrap();
        let first = in_sqlite::first_time(&tx, &scope(), &key(message), KEEP).unwrap();
        self.at("seen_not_committed");
        if first && self.control != Control::NoTransaction {
            self.order(&tx, message);
            self.at("effect_not_committed");
        }
        tx.commit().unwrap();
        self.tell("consumed", message, 0, 0);
        self.at("after_commit");
    }

    fn order(&self, connection: &Connection, message: &str) {
        let _ = connection.execute("INSERT INTO orders VALUES (?)", [message]).unwrap();
    }

    /// How many effects a message has had.
    pub(super) fn orders(&self, message: &str) -> u32 {
        let sql = "SELECT COUNT(*) FROM orders WHERE message = ?";
        self.shop.query_row(sql, [message], |row| row.get(0)).unwrap()
    }

    async fn work(&self) {
        // Whom nobody kills ends by itself.
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            let number = self.generation.saturating_sub(self.draw(12));
            match self.draw(8) {
                0..=3 => {
                    let rule = ["a", "c", "r"][self.draw(3) as usize];
                    self.once(&format!("{rule}{number}")).await;
                }
                4 => self.count(&format!("n{}", self.draw(3))).await,
                5 => self.hold(&format!("l{}", self.draw(2))).await,
                6 => self.first(&format!("f{number}")).await,
                _ => self.consume(&format!("m{number}")),
            }
        }
    }
}

pub(super) fn number(bytes: &[u8]) -> u64 {
    std::str::from_utf8(bytes).unwrap().parse().unwrap()
}

pub(super) fn effects_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("effects-{name}"))
}

pub(super) fn say(what: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "relent-fault {what}");
    let _ = out.flush();
}

/// The process that suffers. Does nothing unless a test started it.
#[tokio::test]
async fn child() {
    let Ok(folder) = env::var("RELENT_FAULT_FOLDER") else { return };
    let var = |name: &str| env::var(format!("RELENT_FAULT_{name}")).unwrap_or_default();
    let mut worker = Worker::new(&var("URL"), Path::new(&folder)).await;
    worker.seed = var("WORKER_SEED").parse().unwrap();
    worker.generation = var("GENERATION").parse().unwrap();
    worker.stop = (var("POINT"), Cell::new(var("NTH").parse().unwrap()));
    worker.control = Control::named(&var("CONTROL"));
    worker.abandons = var("ONLY").is_empty();
    say("ready");
    match var("ONLY").as_str() {
        "" => worker.work().await,
        message if message.starts_with('m') => worker.consume(message),
        name => worker.once(name).await,
    }
}
