//! A conversation with a server that is cut at any byte, either way, and in every manner: what was asked is done once when it is
//! asked again, and an error that says that it did not happen tells the truth.
//!
//! `RELENT_CUT_EVERY=1` cuts at each byte of each operation, on each engine; usually that is done where it is quick.
#![expect(clippy::print_stdout, reason = "a run says what was done")]

use crate::{
    proxy::{Fault, Proxy, Way},
    servers::{PostgresServer, RedisServer},
};
use relent_store::{
    Abandon, Acquired, Any, Begin, Claim, Delta, Engine, Error, ErrorKind, Fence, Fingerprint, Holding, Kept, Key,
    Lease, Nonce, Notice, OnUnknown, OnceError, Owner, Renewed, Replaced, Scope, Started, Store, Stored, Version,
};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const LONG: Duration = Duration::from_secs(3600);

/// How long one answer, or none, may take at most. What is cut off is known at once; nothing here waits for a time-out.
const BOUND: Duration = Duration::from_secs(2);

/// What can be asked for, and be lost on the way.
#[derive(Clone, Copy, Debug)]
enum Op {
    Begin,
    Complete,
    Abandon,
    Extend,
    Acquire,
    Renew,
    Release,
    Replace,
    FirstTime,
    Merge,
}

const OPS: [Op; 10] = [
    Op::Begin,
    Op::Complete,
    Op::Abandon,
    Op::Extend,
    Op::Acquire,
    Op::Renew,
    Op::Release,
    Op::Replace,
    Op::FirstTime,
    Op::Merge,
];

/// A server, a store that reaches it through a proxy, and one that reaches it in any case.
struct Bench {
    proxy: Proxy,
    through: Store,
    direct: Store,
    turn: u32,
}

/// One question, with names of its own.
struct Asked {
    op: Op,
    scope: Scope,
    key: Key,
    nonce: Nonce,
    fence: Fence,
}

fn begin_of(asked: &Asked, nonce: Nonce) -> Begin {
    let (scope, key, fingerprint) = (asked.scope.clone(), asked.key.clone(), Fingerprint::NONE);
    Begin { scope, key, fingerprint, nonce, lease: LONG, keep: LONG, on_unknown: OnUnknown::Tell }
}

impl Asked {
    fn claim(&self) -> Claim {
        Claim { scope: self.scope.clone(), key: self.key.clone(), fence: self.fence }
    }

    fn holding(&self) -> Holding {
        Holding { name: self.key.clone(), fence: self.fence }
    }

    fn lease(&self, nonce: Nonce) -> Lease {
        Lease { name: self.key.clone(), owner: Owner::new("cut"), nonce, ttl: LONG }
    }

    fn delta(&self, calls: u64, seq: u64) -> Delta {
        Delta {
            upstream: self.key.clone(),
            process: self.nonce,
            seq,
            window: LONG,
            calls,
            retries: 0,
            successes: calls,
            failures: 0,
            run: 0,
            is_open: false,
            is_last: false,
            reserves: 0,
            every: Duration::ZERO,
            booking: None,
        }
    }

    /// Asks for it. The answer, as far as it must be the same however often it is asked.
    async fn ask(&self, engine: &Any) -> Result<String, Error> {
        Ok(match self.op {
            Op::Begin => format!("{:?}", engine.begin(&begin_of(self, self.nonce)).await?),
            Op::Complete => {
                format!("{:?}", engine.complete(&self.claim(), &Stored::success("receipt"), LONG).await?)
            }
            Op::Abandon => format!("{:?}", engine.abandon(&self.claim(), Abandon::Unknown).await?),
            Op::Extend => format!("{:?}", engine.extend(&self.claim(), LONG).await?),
            Op::Acquire => match engine.acquire(&self.lease(self.nonce)).await? {
                Acquired::Acquired { fence, .. } => format!("acquired {fence}"),
                held => format!("{held:?}"),
            },
            Op::Renew => {
                let renewed = engine.renew(&self.holding(), LONG).await?;
                format!("renewed {}", matches!(renewed, Renewed::Until(_)))
            }
            Op::Release => format!("{:?}", engine.release(&self.holding()).await?),
            Op::Replace => {
                format!("{:?}", engine.replace(&self.key, Version::ABSENT, Some(b"x"), self.nonce).await?)
            }
            Op::FirstTime => {
                format!("first {}", engine.first_time(&self.scope, &self.key, LONG, self.nonce).await?)
            }
            Op::Merge => format!("{} calls", engine.merge(&self.delta(1, 2)).await?.calls),
        })
    }

    /// Whether it has happened, as somebody else sees it, who changes nothing. `None` where that does not show.
    async fn has_happened(&self, engine: &Any) -> Option<bool> {
        match self.op {
            Op::Replace => Some(engine.read(&self.key).await.unwrap().value.is_some()),
            Op::Acquire => Some(engine.holder(&self.key).await.unwrap().is_some()),
            Op::Release => Some(engine.holder(&self.key).await.unwrap().is_none()),
            Op::Complete | Op::Abandon => match engine.begin(&begin_of(self, Nonce::random())).await.unwrap() {
                Started::Busy { .. } => Some(false),
                _ => Some(true),
            },
            Op::Merge => Some(engine.merge(&self.delta(0, 0)).await.unwrap().calls > 0),
            Op::Begin | Op::FirstTime | Op::Extend | Op::Renew => None,
        }
    }

    /// What must be so once it has been answered.
    async fn is_done(&self, engine: &Any, answer: &str) {
        match self.op {
            Op::Begin => {
                let started = engine.begin(&begin_of(self, self.nonce)).await.unwrap();
                assert_eq!(format!("{started:?}"), answer, "the same nonce has the same claim");
                let other = engine.begin(&begin_of(self, Nonce::random())).await.unwrap();
                assert!(matches!(other, Started::Busy { .. }), "{other:?}");
            }
            Op::Complete => {
                let replay = engine.begin(&begin_of(self, Nonce::random())).await.unwrap();
                assert_eq!(replay, Started::Replay(Stored::success("receipt")));
            }
            Op::Abandon => {
                let unknown = engine.begin(&begin_of(self, Nonce::random())).await.unwrap();
                assert!(matches!(unknown, Started::Unknown { .. }), "{unknown:?}");
            }
            Op::Acquire => {
                let held = engine.acquire(&self.lease(Nonce::random())).await.unwrap();
                assert!(matches!(held, Acquired::Held { .. }), "{held:?}");
                let holder = engine.holder(&self.key).await.unwrap().unwrap();
                assert_eq!(answer, format!("acquired {}", holder.fence));
            }
            Op::Replace => {
                let now = engine.read(&self.key).await.unwrap();
                assert_eq!(answer, format!("{:?}", Replaced::Replaced(now.version)));
            }
            Op::FirstTime => {
                assert!(!engine.first_time(&self.scope, &self.key, LONG, Nonce::random()).await.unwrap());
            }
            Op::Extend => assert_eq!(answer, format!("{:?}", Kept::Kept)),
            Op::Renew => assert_eq!(answer, "renewed true"),
            Op::Release => assert!(engine.holder(&self.key).await.unwrap().is_none()),
            Op::Merge => assert_eq!(answer, "1 calls"),
        }
        if matches!(self.op, Op::FirstTime) {
            assert_eq!(answer, "first true", "who asks again is the first, still");
        }
    }
}

impl Bench {
    async fn new(url: &str, server: u16) -> Bench {
        let proxy = Proxy::to(server).await;
        let through = url.replace(&format!(":{server}/"), &format!(":{}/", proxy.port));
        let (through, direct) = (Store::open(&through).await.unwrap(), Store::open(url).await.unwrap());
        Bench { proxy, through, direct, turn: 0 }
    }

    /// A question that nobody asked before, and what must be there for it.
    async fn question(&mut self, op: Op) -> Asked {
        self.turn += 1;
        // Names of one length, so that conversations have one length, too.
        let name = format!("{op:?}-{:08}", self.turn);
        let (scope, key, nonce) = (Scope::new("cuts").unwrap(), Key::new(name).unwrap(), Nonce::random());
        let mut asked = Asked { op, scope, key, nonce, fence: Fence(0) };
        let engine = self.direct.engine();
        match op {
            Op::Complete | Op::Abandon | Op::Extend => {
                let started = engine.begin(&begin_of(&asked, nonce)).await.unwrap();
                let Started::Started { fence, .. } = started else { panic!("{started:?}") };
                asked.fence = fence;
            }
            Op::Renew | Op::Release => {
                let Acquired::Acquired { fence, .. } = engine.acquire(&asked.lease(nonce)).await.unwrap() else {
                    panic!("nobody holds it")
                };
                asked.fence = fence;
            }
            _ => {}
        }
        asked
    }

    /// How many bytes a conversation has, each way, once both sides know each other.
    async fn length(&mut self, op: Op) -> [usize; 2] {
        let mut length = [0; 2];
        for _ in 0..2 {
            let asked = self.question(op).await;
            let before = [Way::Up, Way::Down].map(|way| self.proxy.passed(way));
            let answer = asked.ask(self.through.engine()).await.unwrap();
            asked.is_done(self.direct.engine(), &answer).await;
            length = [0, 1].map(|way| self.proxy.passed([Way::Up, Way::Down][way]) - before[way]);
        }
        assert!(length[0] > 20 && length[1] > 1, "{length:?}");
        length
    }

    /// Cuts one conversation after so many bytes.
    async fn cut(&mut self, op: Op, way: Way, after: usize, fault: Fault) {
        let place = format!("{op:?}, {fault:?} after {after} bytes {way:?}");
        let asked = self.question(op).await;
        self.proxy.arm(way, after, fault);
        let begin = Instant::now();
        let first = tokio::time::timeout(BOUND, asked.ask(self.through.engine())).await;
        let first = first.unwrap_or_else(|_| panic!("{place}: no answer for {BOUND:?}"));
        let was_cut = !self.proxy.disarm();
        match &first {
            Ok(_) => assert!(!was_cut || fault == Fault::HalfClosed, "{place}: {first:?}"),
            Err(error) => {
                assert!(was_cut, "{place}: {error:?}");
                assert!(error.is_transient() || fault == Fault::Nonsense, "{place}: {error:?}");
                if asked.has_happened(self.direct.engine()).await == Some(true) {
                    assert!(error.may_have_happened(), "{place}: it happened, and {error:?} says that it did not");
                }
            }
        }
        let again = self.through_again(&asked, &place).await;
        assert!(first.is_err() || first == Ok(again.clone()), "{place}: first {first:?}, then {again}");
        asked.is_done(self.direct.engine(), &again).await;
        assert!(begin.elapsed() < 2 * BOUND, "{place}: {:?}", begin.elapsed());
    }

    /// What the store's own patience makes of it: the same question, until it is answered.
    async fn through_again(&self, asked: &Asked, place: &str) -> String {
        let policy = relent::Policy::constant(Duration::from_millis(2)).max_attempts(50);
        let again = policy.when(Error::verdict).retry(async |_| asked.ask(self.through.engine()).await).await;
        again.unwrap_or_else(|err| panic!("{place}: it does not recover: {err:?}"))
    }
}

/// Each so manieth byte of `begin` and `complete`, and of the others, a manner after the other.
async fn cut_everywhere(mut bench: Bench, strides: [usize; 2]) {
    let told = std::env::var("RELENT_CUT_EVERY").ok().map(|every| [every.parse().unwrap(); 2]);
    let [often, seldom] = told.unwrap_or(strides);
    const MANNERS: [Fault; 4] = [Fault::Closed, Fault::Reset, Fault::HalfClosed, Fault::Nonsense];
    let (begin, mut cuts) = (Instant::now(), 0_usize);
    for op in OPS {
        let length = bench.length(op).await;
        for (way, length) in [(Way::Up, length[0]), (Way::Down, length[1])] {
            let stride = if matches!(op, Op::Begin | Op::Complete) { often } else { seldom };
            for after in (0..length).step_by(stride) {
                cuts += 1;
                let manner = MANNERS[cuts % 4];
                // What a client says is never nonsense.
                let manner = if way == Way::Up && manner == Fault::Nonsense { Fault::Closed } else { manner };
                bench.cut(op, way, after, manner).await;
            }
        }
    }
    println!("{cuts} cuts in {:.1?}, over {} connections", begin.elapsed(), bench.proxy.connections());
}

#[tokio::test]
async fn a_conversation_with_redis_may_be_cut_at_any_byte() {
    let server = RedisServer::start(&["--appendfsync", "no"]);
    cut_everywhere(Bench::new(&server.url(), server.port).await, [1, 1]).await;
}

#[tokio::test]
async fn a_conversation_with_postgres_may_be_cut_at_any_byte() {
    let server = PostgresServer::start();
    cut_everywhere(Bench::new(&server.url(), server.port).await, [7, 61]).await;
}

/// Answers that come byte by byte, and late, are answers.
async fn slices_and_delays(mut bench: Bench) {
    for (is_sliced, delay) in [(true, 0), (false, 30), (true, 10)] {
        bench.proxy.slice(is_sliced);
        bench.proxy.delay(Duration::from_millis(delay));
        for op in OPS {
            let asked = bench.question(op).await;
            let answer = asked.ask(bench.through.engine()).await.unwrap();
            asked.is_done(bench.direct.engine(), &answer).await;
        }
    }
}

#[tokio::test]
async fn redis_may_be_slow_and_answer_in_slices() {
    let server = RedisServer::start(&[]);
    slices_and_delays(Bench::new(&server.url(), server.port).await).await;
}

#[tokio::test]
async fn postgres_may_be_slow_and_answer_in_slices() {
    let server = PostgresServer::start();
    slices_and_delays(Bench::new(&server.url(), server.port).await).await;
}

/// A network that swallows everything and tells nobody: an error in bounded time, few connections, one word to the operator, and
/// all is well by itself when it is over, though the old connections never are.
async fn a_black_hole(bench: Bench) {
    let hasty = relent::Policy::constant(Duration::from_millis(20))
        .unlimited_attempts()
        .attempt_timeout(Duration::from_millis(300))
        .timeout(Duration::from_secs(1));
    let store = bench.through.clone().patience(hasty);
    let told: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let tell = told.clone();
    store.listen(move |notice| tell.lock().unwrap().push(notice.clone()));
    let key = Key::new("hole").unwrap();
    let before = bench.proxy.connections();

    bench.proxy.silence(true);
    let begin = Instant::now();
    let lost = store.replace(&key, Version::ABSENT, Some(b"x")).await.unwrap_err();
    assert!(lost.is_transient() && lost.may_have_happened(), "{lost:?}");
    assert!(begin.elapsed() < Duration::from_millis(1500), "{:?}", begin.elapsed());
    // Many at once wait no longer than one, and do not storm.
    let asking: Vec<_> = (0..50)
        .map(|_| {
            let (store, key) = (store.clone(), key.clone());
            tokio::spawn(async move { store.read(&key).await.unwrap_err() })
        })
        .collect();
    for asked in asking {
        let error = asked.await.unwrap();
        assert!(error.is_transient(), "{error:?}");
    }
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    let more = bench.proxy.connections() - before;
    assert!(more < 200, "{more} connections to a network that is away");

    bench.proxy.silence(false);
    let begin = Instant::now();
    while let Err(error) = store.read(&key).await {
        assert!(begin.elapsed() < Duration::from_secs(8), "it does not come back: {error:?}");
    }
    let now = store.read(&key).await.unwrap().version;
    assert_eq!(now, Version::ABSENT, "what was swallowed was not done");
    let told = told.lock().unwrap();
    assert!(matches!(&told[..], [Notice::Away(_), Notice::Back]), "{told:?}");
}

#[tokio::test]
async fn a_network_that_swallows_what_goes_to_redis_is_told_of_and_forgotten() {
    let server = RedisServer::start(&[]);
    a_black_hole(Bench::new(&server.url(), server.port).await).await;
}

#[tokio::test]
async fn a_network_that_swallows_what_goes_to_postgres_is_told_of_and_forgotten() {
    let server = PostgresServer::start();
    a_black_hole(Bench::new(&server.url(), server.port).await).await;
}

/// An answer that is lost leaves what was asked: whoever asked finds it when he asks again; others are told that somebody is at
/// it, and that nobody knows once his time is over.
async fn a_lost_answer(mut bench: Bench) {
    for op in [Op::Begin, Op::Complete, Op::Abandon, Op::Replace] {
        bench.length(op).await;
    }
    // Somebody changes the value before it is asked for again: what was replaced then is known to nobody, and no conflict.
    let slow = bench
        .through
        .clone()
        .patience(relent::Policy::constant(Duration::from_millis(500)).jitter(relent::Jitter::None).max_attempts(9));
    let stock = Key::new("stock").unwrap();
    let theirs = async {
        while bench.direct.read(&stock).await.unwrap().value.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let sold = bench.direct.update(&stock, relent::Policy::immediate(), |_| Ok::<_, String>(b"6".to_vec()));
        sold.await.unwrap()
    };
    bench.proxy.arm(Way::Down, 0, Fault::Closed);
    let (mine, theirs) = tokio::join!(slow.replace(&stock, Version::ABSENT, Some(b"7")), theirs);
    let error = mine.unwrap_err();
    assert_eq!((error.kind(), error.may_have_happened()), (ErrorKind::Contended, true), "{error:?}");
    let now = slow.replace(&stock, Version::ABSENT, Some(b"7")).await.unwrap();
    assert_eq!(now, Replaced::Conflict(theirs), "where no answer was lost");
    let lease = Duration::from_millis(300);
    let (scope, key) = (Scope::new("lost").unwrap(), Key::new("7").unwrap());
    let begin = |nonce| Begin {
        scope: scope.clone(),
        key: key.clone(),
        fingerprint: Fingerprint::NONE,
        nonce,
        lease,
        keep: LONG,
        on_unknown: OnUnknown::Tell,
    };
    let mine = Nonce::random();
    bench.proxy.arm(Way::Down, 0, Fault::Closed);
    let lost = bench.through.engine().begin(&begin(mine)).await.unwrap_err();
    assert!(lost.may_have_happened(), "{lost:?}");
    let other = bench.direct.begin(&begin(Nonce::random())).await.unwrap();
    assert!(matches!(other, Started::Busy { .. }), "{other:?}");
    assert!(matches!(bench.through.begin(&begin(mine)).await.unwrap(), Started::Started { unknown: None, .. }));
    // He asks no more.
    tokio::time::sleep(lease + Duration::from_millis(20)).await;
    let other = bench.direct.begin(&begin(Nonce::random())).await.unwrap();
    assert!(matches!(other, Started::Unknown { .. }), "{other:?}");

    // The answer to `complete` is lost. Who has patience does not notice; who has none says that it was done and may not be kept,
    // and it is kept nevertheless.
    let hasty = relent::Policy::immediate().max_attempts(1).timeout(Duration::from_secs(2));
    for (name, store) in [("patient", bench.through.clone()), ("hasty", bench.through.clone().patience(hasty))] {
        let key = Key::new(name).unwrap();
        let done = store.once(&scope, &key).run(async |_| {
            bench.proxy.arm(Way::Down, 0, Fault::Reset);
            Ok::<_, String>("receipt")
        });
        match done.await {
            Ok(done) => assert!(name == "patient" && !done.is_replayed, "{name}: {done:?}"),
            Err(OnceError::NotKept { stored, error }) => {
                assert_eq!((name, stored.bytes()), ("hasty", &b"receipt"[..]));
                assert!(error.may_have_happened(), "{error:?}");
            }
            Err(err) => panic!("{name}: {err:?}"),
        }
        let again = bench.direct.once(&scope, &key).run(async |_| Ok::<_, String>("again")).await.unwrap();
        assert_eq!((again.bytes(), again.is_replayed), (&b"receipt"[..], true), "{name}");
    }

    // `complete` itself is lost: nobody knows, and that is said at once, not after the lease.
    let key = Key::new("gone").unwrap();
    let hasty = bench.through.clone().patience(hasty);
    let gone = hasty.once(&scope, &key).run(async |_| {
        bench.proxy.arm(Way::Up, 5, Fault::Closed);
        Ok::<_, String>("receipt")
    });
    assert!(matches!(gone.await, Err(OnceError::NotKept { .. })));
    let again = bench.direct.once(&scope, &key).run(async |_| Ok::<_, String>("again")).await;
    assert!(matches!(again, Err(OnceError::Unknown { .. } | OnceError::Busy { .. })), "{again:?}");
}

#[tokio::test]
async fn a_lost_answer_of_redis_is_busy_then_unknown() {
    let server = RedisServer::start(&[]);
    a_lost_answer(Bench::new(&server.url(), server.port).await).await;
}

#[tokio::test]
async fn a_lost_answer_of_postgres_is_busy_then_unknown() {
    let server = PostgresServer::start();
    a_lost_answer(Bench::new(&server.url(), server.port).await).await;
}
