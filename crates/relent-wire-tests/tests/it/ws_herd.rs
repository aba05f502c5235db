//! A server that restarts, and all its clients: they come back as a queue, and nothing that was sent is lost.

use crate::ws_server::{Door, Server, refusal, serve, serve_each};
use futures_util::{SinkExt, StreamExt};
use relent::{
    Jitter, Pacer, Policy, Timestamp, Turn,
    ws::{Message, Opening, Outbox},
};
use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, duplex},
    sync::mpsc::{UnboundedSender, unbounded_channel},
    task::AbortHandle,
    time::Instant,
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_tungstenite::WebSocketStream;

const MS: Duration = Duration::from_millis(1);
const KILLS: usize = 3;

/// What outlives the server.
struct World {
    begin: Instant,
    /// Upgrades that were asked for since the last restart, and those that were granted, each with its time.
    asked: Mutex<Vec<Duration>>,
    granted: Mutex<Vec<Duration>>,
    connected: AtomicUsize,
    stored: Mutex<BTreeSet<String>>,
}

impl World {
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }
}

/// Lets in as many a second as there is capacity for, and gives turns to all others.
fn door(world: &Arc<World>, capacity: f64) -> Door {
    let (pacer, world) = (Pacer::capacity(capacity), world.clone());
    let gap = Duration::from_secs_f64(1.0 / capacity);
    let next = Mutex::new(Duration::ZERO);
    Arc::new(move |attempt| {
        let now = world.now();
        world.asked.lock().unwrap().push(now);
        let mut next = next.lock().unwrap();
        // Timers are not exact: the server has a queue for fifty milliseconds of work.
        let has_room = *next <= now + 50 * MS;
        match pacer.arrive(Timestamp::ZERO + now, attempt, has_room) {
            Turn::Now => {
                *next = (*next).max(now) + gap;
                world.granted.lock().unwrap().push(now);
                Ok(())
            }
            turn => {
                let wait = turn.millis().unwrap_or(60_000).to_string();
                Err(refusal(503, &[("relent-turn", wait), ("retry-after", turn.seconds().unwrap_or(60).to_string())]))
            }
        }
    })
}

/// Stores what comes, and only then says so.
async fn talk<S: AsyncRead + AsyncWrite + Unpin>(world: Arc<World>, mut socket: WebSocketStream<S>) {
    world.connected.fetch_add(1, Ordering::SeqCst);
    let _gone = Gone(world.clone());
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() {
            let text = message.to_string();
            world.stored.lock().unwrap().insert(text.clone());
            if socket.send(Message::text(text)).await.is_err() {
                return;
            }
        }
    }
}

/// How clients reach the server.
trait Net: Clone + Send + 'static {
    /// Ends the server and all its connections when it is dropped.
    type Server;

    /// Starts it, where it was before.
    async fn start(&mut self, world: &Arc<World>, capacity: f64) -> Self::Server;

    fn open(&self, policy: Policy) -> Opening;
}

/// Real sockets, at an address that is known from the first start on.
#[derive(Clone)]
struct Loopback(String);

impl Net for Loopback {
    type Server = Server;

    async fn start(&mut self, world: &Arc<World>, capacity: f64) -> Server {
        let served = world.clone();
        let server = serve(&self.0, door(world, capacity), move |_, socket| talk(served.clone(), socket)).await;
        self.0 = server.address.to_string();
        server
    }

    fn open(&self, policy: Policy) -> Opening {
        policy.websocket(format!("ws://{}/", self.0)).unwrap()
    }
}

/// Pipes in memory, which know no time but the clock of the test.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Option<UnboundedSender<DuplexStream>>>>);

struct Aborted(AbortHandle);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Net for Memory {
    type Server = Aborted;

    async fn start(&mut self, world: &Arc<World>, capacity: f64) -> Aborted {
        let (clients, incoming) = unbounded_channel();
        *self.0.lock().unwrap() = Some(clients);
        let served = world.clone();
        let incoming = UnboundedReceiverStream::new(incoming);
        Aborted(serve_each(incoming, door(world, capacity), move |_, socket| talk(served.clone(), socket)))
    }

    fn open(&self, policy: Policy) -> Opening {
        let server = self.0.clone();
        policy.websocket("ws://memory/").unwrap().connect_by(move || {
            let (near, far) = duplex(16 << 10);
            let server = server.lock().unwrap().clone().unwrap();
            let is_there = server.send(far).map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused));
            async { is_there.map(|()| near) }
        })
    }
}

struct Gone(Arc<World>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long something took, and how late timers were meanwhile: the sum and the worst, on a machine with other work on it.
#[derive(Clone, Copy, Debug, Default)]
struct Waited {
    took: Duration,
    late: Duration,
    worst: Duration,
}

async fn until(world: &World, connected: usize, limit: Duration) -> Waited {
    let begin = Instant::now();
    let mut waited = Waited::default();
    while world.connected.load(Ordering::SeqCst) != connected {
        let now = world.connected.load(Ordering::SeqCst);
        assert!(begin.elapsed() < limit, "{now} of {connected} are connected after {limit:?}");
        let asleep = Instant::now();
        tokio::time::sleep(5 * MS).await;
        // A timer of tokio's rounds up to the next millisecond.
        let late = asleep.elapsed().saturating_sub(6 * MS);
        (waited.late, waited.worst) = (waited.late + late, waited.worst.max(late));
    }
    Waited { took: begin.elapsed(), ..waited }
}

/// The most in any bucket of 50 ms that begins a second or more after the restart.
fn most_in_50_ms(times: &[Duration], restart: Duration) -> usize {
    let mut buckets = std::collections::BTreeMap::new();
    for time in times.iter().filter(|time| **time >= restart + 1000 * MS) {
        *buckets.entry(time.as_millis() / 50).or_insert(0) += 1;
    }
    buckets.into_values().max().unwrap_or(0)
}

struct Figures {
    /// How long each return took, and the most upgrades asked for in 50 ms after the first second of each.
    returns: Vec<(Waited, usize)>,
    asked: usize,
}

/// Kills the server three times under so many clients that never stop to send.
async fn storm(mut net: impl Net, clients: usize, capacity: f64) -> Figures {
    let policy = Policy::exponential(50 * MS).cap(400 * MS).jitter(Jitter::Full).unlimited_attempts();
    let world = Arc::new(World {
        begin: Instant::now(),
        asked: Mutex::default(),
        granted: Mutex::default(),
        connected: AtomicUsize::new(0),
        stored: Mutex::default(),
    });
    let ideal = Duration::from_secs_f64(clients as f64 / capacity);
    let mut server = net.start(&world, capacity).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let mut socket = net
                .open(policy.spread(200 * MS))
                .outbox(Outbox::Repeat(100))
                .healthy_after(100 * MS)
                .ping_every(Duration::from_secs(20))
                .pong_within(Duration::from_secs(20))
                .open();
            let is_over = is_over.clone();
            tokio::spawn(async move {
                let (mut sent, mut acknowledged) = (vec![], vec![]);
                // Seven hundred messages a second in all, however many there are.
                let mut tick = tokio::time::interval(Duration::from_secs_f64(clients as f64 / 700.0));
                while !is_over.load(Ordering::SeqCst) {
                    tokio::select! {
                        message = socket.next() => acknowledged.push(message.unwrap().unwrap().to_string()),
                        _ = tick.tick() => {
                            let message = format!("{client}.{}", sent.len());
                            socket.send(Message::text(message.as_str())).await.unwrap();
                            sent.push(message);
                        }
                    }
                }
                // Whoever flushes reads no more, so what is acknowledged now is not counted.
                socket.flush().await.unwrap();
                (sent, acknowledged)
            })
        })
        .collect();
    let limit = ideal * 3 + Duration::from_secs(10);
    until(&world, clients, limit).await;
    let (mut returns, mut asked) = (vec![], 0);
    for _ in 0..KILLS {
        tokio::time::sleep(150 * MS).await;
        drop(server);
        until(&world, 0, limit).await;
        tokio::time::sleep(100 * MS).await;
        world.asked.lock().unwrap().clear();
        let restart = world.now();
        server = net.start(&world, capacity).await;
        let took = until(&world, clients, limit).await;
        let times = world.asked.lock().unwrap().clone();
        asked += times.len();
        returns.push((took, most_in_50_ms(&times, restart)));
    }
    tokio::time::sleep(200 * MS).await;
    is_over.store(true, Ordering::SeqCst);
    let mut messages = 0;
    for task in tasks {
        let (sent, acknowledged) = tokio::time::timeout(limit, task).await.unwrap().unwrap();
        let stored = world.stored.lock().unwrap();
        messages += sent.len();
        for message in acknowledged.iter().chain(&sent) {
            assert!(stored.contains(message), "{message} is lost");
        }
    }
    assert!(messages > clients, "they did send: {messages}");
    Figures { returns, asked }
}

fn check(figures: &Figures, clients: usize, capacity: f64) {
    let ideal = Duration::from_secs_f64(clients as f64 / capacity);
    eprintln!("ideal {ideal:?}, {} in 50 ms; {:?}; {} asked", capacity * 0.05, figures.returns, figures.asked);
    for (Waited { took, late, worst }, most) in &figures.returns {
        // The first of them come after a part of the time in which they rejoin.
        let limit = ideal.mul_f64(1.1) + 100 * MS + *late;
        assert!(*took <= limit, "all back after {took:?}, ideal {ideal:?}, timers late by {late:?} in all");
        // A turn is kept to the millisecond by timers that are not late; some fall on this side of a bucket's edge.
        let limit = capacity * (0.05 + worst.as_secs_f64()) * 2.0 + 2.0;
        assert!(*most as f64 <= limit, "{most} in 50 ms, {limit} at most with timers late by {worst:?}");
    }
    // The first who comes finds room, all others are refused once, and few for a second time.
    assert!(figures.asked <= KILLS * clients * 5 / 2, "{} upgrades for {clients} clients", figures.asked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_herd_comes_back_as_a_queue_and_nothing_is_lost() {
    let (clients, capacity) = (150, 100.0);
    check(&storm(Loopback("127.0.0.1:0".to_owned()), clients, capacity).await, clients, capacity);
}

/// By a clock that waits for everybody, so that nothing is late and every bound is what it says.
#[tokio::test(start_paused = true)]
async fn a_thousand_clients_come_back_as_a_queue() {
    let (clients, capacity) = (1000, 400.0);
    let ideal = Duration::from_secs_f64(clients as f64 / capacity);
    let figures = storm(Memory::default(), clients, capacity).await;
    eprintln!("ideal {ideal:?}; {:?}; {} asked", figures.returns, figures.asked);
    for (Waited { took, .. }, most) in &figures.returns {
        assert!(*took <= ideal.mul_f64(1.1), "all back after {took:?}, ideal {ideal:?}");
        assert!(*most as f64 <= capacity * 0.05, "{most} in 50 ms after the first second");
    }
    assert!(figures.asked <= KILLS * clients * 2, "{} upgrades for {clients} clients: one refusal each", figures.asked);
}
