//! The server that is stormed: one worker, a queue, a door with relent's machines, and HTTP as far as a storm needs it.
//!
//! The worker is busy by the clock, so that timers that wake late take nothing from its capacity. The doors are those of the
//! simulator ([`relent_sim::Gate`]): the same code decides who is let in.

use super::{
    far_side::{CLIENT, FarSide},
    sight::Witness,
};
use crate::loopback::{self, NOT_FOUND, PATIENCE, Server, Silent};
use httparse::Request;
use relent::{
    Verdict,
    wire::{DIALECTS, IdempotencyKey, Pushback},
};
use relent_sim::{Gate, Knock, Protection, Seen, Server as Model};
use std::{
    collections::VecDeque,
    fmt::Write as _,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    time::{self, Instant},
};

/// Connections that may wait to be accepted: more than all clients, or the system would hold some back.
const BACKLOG: u32 = 65_535;

/// What a server is.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) capacity: f64,
    /// The most requests inside.
    pub(super) queue: u64,
    pub(super) protection: Protection,
    /// How many clients it has.
    pub(super) clients: u64,
    /// How many files there are for connections that ask nothing.
    pub(super) files: u64,
    pub(super) witness: Witness,
}

/// Servers on a thread of their own, until this is dropped.
#[derive(Debug)]
pub(super) struct Servers {
    addresses: Vec<SocketAddr>,
    word: Arc<str>,
    _server: Server,
}

impl Servers {
    /// One server a plan, each on a port of its own.
    ///
    /// # Errors
    ///
    /// There is no port, or no thread, to be had.
    pub(super) fn start(plans: Vec<Plan>) -> io::Result<Servers> {
        let runtime = crate::runtime::builder()?.build()?;
        let listeners = {
            let _inside = runtime.enter();
            plans.iter().map(|_| listen()).collect::<io::Result<Vec<_>>>()?
        };
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
        let word: Arc<str> = IdempotencyKey::random().as_str().into();
        let known = word.clone();
        let server = Server::start(runtime, move || {
            for (listener, plan) in listeners.into_iter().zip(plans) {
                let service = Arc::new(Service::new(plan, known.clone()));
                tokio::spawn(loopback::accept(listener, move |stream| serve(stream, service.clone())));
            }
        })?;
        Ok(Servers { addresses, word, _server: server })
    }

    /// One of them, as its clients call it: by a word that nobody else knows, as any user of the machine sees the ports.
    pub(super) fn far_side(&self, nth: usize) -> Option<FarSide> {
        Some(FarSide::own(*self.addresses.get(nth)?, &self.word))
    }
}

fn listen() -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(BACKLOG)
}

async fn serve(mut stream: TcpStream, service: Arc<Service>) -> io::Result<()> {
    match service.asked(&mut stream).await?.map(|asked| service.decide(asked)) {
        Some(Ok(done)) => {
            time::sleep_until(done).await;
            service.witness.see(service.witness.now(), Seen::Served);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
        }
        Some(Err(told)) => stream.write_all(refusal(told).as_bytes()).await?,
        None => return stream.write_all(NOT_FOUND).await,
    }
    // Who connected closes first, and leaves no port behind that has to wait.
    let _ = time::timeout(PATIENCE, stream.read(&mut [0])).await;
    Ok(())
}

/// What is read of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    client: u32,
    attempt: u32,
}

/// What a client of the storm asks, which knows the word; nothing of anybody else.
fn asked(request: &Request<'_, '_>, word: &str) -> Option<Asked> {
    request.path.and_then(|path| path.strip_prefix('/')).filter(|path| *path == word)?;
    let number = |name: &str| loopback::header(request, name)?.parse().ok();
    Some(Asked { client: number(CLIENT).unwrap_or(0), attempt: number("relent-attempt").unwrap_or(1).max(1) })
}

/// A refusal in the words that clients understand.
fn refusal(told: Verdict) -> String {
    // A turn is a wait for those who do not know turns.
    let said: &[Pushback] = match told {
        Verdict::Turn(turn) => &[Pushback::Turn(turn), Pushback::NotBefore(turn)],
        Verdict::After(after) => &[Pushback::NotBefore(after)],
        Verdict::Overloaded | Verdict::Permanent => &[Pushback::Never],
        _ => &[],
    };
    let mut text = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n".to_owned();
    let spoken = ["retry-after", "retry-after-ms", "relent-turn", "relent-retry"];
    for dialect in DIALECTS.iter().filter(|dialect| spoken.contains(&dialect.name)) {
        let value = said.iter().find_map(|pushback| dialect.write(*pushback));
        if let Some(value) = value.as_ref().and_then(|value| value.to_str().ok()) {
            let _ = write!(text, "{}: {value}\r\n", dialect.name);
        }
    }
    text + "\r\n"
}

/// One server: its door, and who is inside.
#[derive(Debug)]
struct Service {
    word: Arc<str>,
    queue: u64,
    /// How long a request takes.
    work: Duration,
    witness: Witness,
    inside: Mutex<Inside>,
    silent: Silent,
}

#[derive(Debug)]
struct Inside {
    gate: Option<Gate>,
    /// When those inside will be done, the next first; in the herd's time.
    done: VecDeque<Duration>,
}

impl Service {
    fn new(plan: Plan, word: Arc<str>) -> Service {
        let model = Model { capacity: Some(plan.capacity), queue: Some(plan.queue), ..Model::default() };
        let inside = Inside { gate: Gate::new(&plan.protection, &model), done: VecDeque::new() };
        Service {
            word,
            queue: plan.queue,
            work: Duration::try_from_secs_f64(1.0 / plan.capacity).unwrap_or(Duration::ZERO),
            witness: plan.witness,
            inside: Mutex::new(inside),
            silent: Silent::new(plan.clients, plan.files),
        }
    }

    /// What a connection asks, within the time that there is for it.
    async fn asked(&self, stream: &mut TcpStream) -> io::Result<Option<Asked>> {
        self.silent.hear(loopback::read(stream, |request| asked(request, &self.word))).await
    }

    /// When the request will be done, or what its client is told instead.
    fn decide(&self, asked: Asked) -> Result<Instant, Verdict> {
        let now = self.witness.now();
        self.witness.see(now, Seen::Arrived { client: asked.client, failures: asked.attempt - 1 });
        let admitted = self.inside.lock().unwrap_or_else(PoisonError::into_inner).admit(self, now, asked.attempt);
        match admitted {
            Ok(done) => Ok((self.witness.begins + done).into()),
            Err(told) => {
                self.witness.see(now, Seen::Refused(told));
                Err(told)
            }
        }
    }
}

impl Inside {
    fn admit(&mut self, service: &Service, now: Duration, attempt: u32) -> Result<Duration, Verdict> {
        while self.done.front().is_some_and(|done| *done <= now) {
            self.done.pop_front();
        }
        let inside = self.done.len() as u64;
        let is_let_in = match &mut self.gate {
            None => inside < service.queue,
            Some(gate) => {
                let knock = Knock { inside, room: service.queue, has_token: true, attempt, left: u64::MAX };
                gate.decide(nanos(now), knock)
            }
        };
        if !is_let_in {
            return Err(self.gate.as_mut().and_then(Gate::told).unwrap_or(Verdict::Transient));
        }
        let done = self.done.back().copied().unwrap_or(now).max(now) + service.work;
        self.done.push_back(done);
        if let Some(gate) = &mut self.gate {
            gate.entered(nanos(now), nanos(service.work), nanos(done));
        }
        Ok(done)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{super::sight::What, *};
    use httparse::Status;
    use relent::PacerSettings;
    use std::{
        io::{ErrorKind, Read as _, Write as _},
        sync::mpsc::channel,
        thread,
    };

    fn service(capacity: f64, queue: u64, protection: Protection) -> Service {
        let (news, _) = channel();
        let witness = Witness { herd: 0, begins: std::time::Instant::now(), news };
        Service::new(Plan { capacity, queue, protection, clients: 1, files: u64::MAX, witness }, "word".into())
    }

    #[test]
    fn the_worker_is_busy_by_the_clock_and_the_queue_is_full_when_it_is() {
        let service = service(10.0, 2, Protection::default());
        let mut inside = service.inside.lock().unwrap();
        let ms = Duration::from_millis;
        assert_eq!(inside.admit(&service, ms(0), 1), Ok(ms(100)));
        assert_eq!(inside.admit(&service, ms(0), 1), Ok(ms(200)));
        assert_eq!(inside.admit(&service, ms(99), 1), Err(Verdict::Transient));
        assert_eq!(inside.admit(&service, ms(100), 2), Ok(ms(300)));
        assert_eq!(inside.admit(&service, ms(1000), 1), Ok(ms(1100)), "an idle worker begins at once");
    }

    #[test]
    fn refused_clients_are_told_their_turn_in_all_words() {
        let pacer = Some(PacerSettings { capacity: 10.0, ..PacerSettings::default() });
        let service = service(10.0, 1, Protection { pacer, ..Protection::default() });
        let mut inside = service.inside.lock().unwrap();
        assert!(inside.admit(&service, Duration::ZERO, 1).is_ok());
        let told = inside.admit(&service, Duration::ZERO, 1).unwrap_err();
        let Verdict::Turn(turn) = told else { panic!("{told:?}") };
        let text = refusal(told);
        assert!(text.contains(&format!("relent-turn: {}\r\n", turn.as_millis())), "{text}");
        assert!(text.contains("retry-after: 1\r\n") && text.ends_with("\r\n\r\n"), "{text}");
        assert!(refusal(Verdict::Overloaded).contains("relent-retry: no\r\n"));
        assert_eq!(refusal(Verdict::Transient).lines().count(), 4);
    }

    /// Any user of the machine can call it.
    #[test]
    fn who_is_not_of_the_storm_is_told_nothing_and_not_counted() {
        let (news, seen) = channel();
        let witness = Witness { herd: 0, begins: std::time::Instant::now(), news };
        let plan = Plan { capacity: 1e9, queue: 1, protection: Protection::default(), clients: 1, files: 1, witness };
        let servers = Servers::start(vec![plan]).unwrap();
        let mut stranger = std::net::TcpStream::connect(servers.addresses[0]).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\nStorm-Client: 4294967280\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        stranger.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"HTTP/1.1 404");
        let runtime = crate::runtime::builder().unwrap().build().unwrap();
        runtime.block_on(servers.far_side(0).unwrap().call(7, 1, || {})).unwrap();
        let first = seen.try_iter().next().unwrap();
        assert!(matches!(first.what, What::Seen(Seen::Arrived { client: 7, failures: 0 })), "{first:?}");
    }

    /// Whoever holds connections open would use up the files of the storm, and make its figures false.
    #[test]
    fn of_those_who_say_nothing_few_are_kept() {
        for (files, kept) in [(u64::MAX, 65), (7, 7)] {
            let (news, _seen) = channel();
            let witness = Witness { herd: 0, begins: std::time::Instant::now(), news };
            let plan = Plan { capacity: 1e9, queue: 1, protection: Protection::default(), clients: 1, files, witness };
            let servers = Servers::start(vec![plan]).unwrap();
            let connect = |_| std::net::TcpStream::connect(servers.addresses[0]).unwrap();
            let idle: Vec<_> = (0..300).map(connect).collect();
            let begun = std::time::Instant::now();
            let is_closed = |stream: &std::net::TcpStream| {
                stream.set_nonblocking(true).unwrap();
                !matches!((&*stream).read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
            };
            while idle.iter().filter(|stream| !is_closed(stream)).count() > kept {
                assert!(begun.elapsed() < Duration::from_secs(5), "they are kept");
                thread::sleep(Duration::from_millis(5));
            }
            let runtime = crate::runtime::builder().unwrap().build().unwrap();
            runtime.block_on(servers.far_side(0).unwrap().call(7, 1, || {})).unwrap();
        }
    }

    #[test]
    fn a_request_says_who_asks_and_how_often_it_has() {
        let head = b"GET /word HTTP/1.1\r\nHost: a\r\nRelent-Attempt: 3\r\nStorm-Client: 7\r\n\r\n";
        let parse = |head: &[u8]| loopback::parse(head, |request| asked(request, "word"));
        let asked = |head: &[u8]| parse(head).unwrap();
        assert_eq!(asked(head), Status::Complete(Some(Asked { client: 7, attempt: 3 })));
        assert_eq!(asked(&head[..30]), Status::Partial);
        let once = Status::Complete(Some(Asked { client: 0, attempt: 1 }));
        assert_eq!(asked(b"GET /word HTTP/1.1\r\nRelent-Attempt: x\r\n\r\n"), once);
        for path in ["/", "word", "/wor", "/words", "/word/", "*"] {
            let head = format!("GET {path} HTTP/1.1\r\nStorm-Client: 7\r\n\r\n");
            assert_eq!(asked(head.as_bytes()), Status::Complete(None), "{path}");
        }
        assert!(parse(b"\x00\x01\x02 nonsense\r\n\r\n").is_err());
    }
}
