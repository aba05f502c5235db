//! The second act: two hundred clients lose their connection at one moment and reconnect, without and with jitter.
//!
//! The service is real and so are the clients: threads that run [`Policy::retry_blocking`], sockets on loopback. The
//! service takes so many connections in a span of time and closes the others at once. What is drawn is what its
//! `accept` counted, span by span.

use super::port::Port;
use crate::{
    loopback::{self, Server, Silent},
    plot::bars,
};
use relent::{Cancel, Policy, duration::Human, wire::IdempotencyKey};
use std::{
    fmt::Write as _,
    io::{self, Read, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Clients that lose their connection.
pub(super) const CLIENTS: usize = 200;

/// The spans of time in which connections are counted.
pub(super) const SPAN: Duration = Duration::from_millis(50);

/// Connections that the service takes in a span.
pub(super) const CAPACITY: u32 = 10;

/// How long is watched.
const WATCHED: Duration = Duration::from_millis(2600);

/// How long the clients may take to be connected, all of them.
const GATHERING: Duration = Duration::from_secs(10);

/// How long one may take for that, or to come back.
const CONNECTING: Duration = Duration::from_secs(2);

const SPANS: usize = (WATCHED.as_millis() / SPAN.as_millis()) as usize;

/// What the service counted.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    /// Connections that arrived, span by span.
    arrived: [u32; SPANS],
    /// Connections that it took.
    served: u32,
    /// Connections that it closed at once.
    refused: u32,
    /// When the last client was served.
    all_served: Option<Duration>,
}

impl Counted {
    /// The most connections in one span.
    pub(super) fn peak(&self) -> u32 {
        self.arrived.iter().copied().max().unwrap_or(0)
    }

    /// The curve with its axes, and in a line what it says.
    pub(super) fn drawn(&self) -> String {
        const HEIGHT: usize = 5;
        let mut out = String::new();
        for (row, line) in bars(&self.arrived, CLIENTS as u32, HEIGHT).lines().enumerate() {
            let label = if row == 0 { CLIENTS.to_string() } else { String::new() };
            let axis = if row == 0 { '┤' } else { '│' };
            let _ = writeln!(out, "  {label:>3} {axis}{line}");
        }
        let _ = writeln!(out, "    0 └{}", "─".repeat(SPANS));
        let _ = writeln!(out, "       {}", times());
        let _ = writeln!(out, "  {}", self.told());
        out
    }

    fn told(&self) -> String {
        let Counted { served, refused, .. } = self;
        let peak = format!("peak {} in {}", self.peak(), Human(SPAN));
        match self.all_served {
            Some(after) => format!("{peak}; all {served} served after {:.1}; {refused} refused", Human(after)),
            None => format!("{peak}; {served} of {CLIENTS} served in {}; {refused} refused", Human(WATCHED)),
        }
    }
}

/// The labels of the time axis, one every half second.
fn times() -> String {
    let per_label = 500 / SPAN.as_millis() as usize;
    (0..SPANS.div_ceil(per_label))
        .map(|nth| format!("{:<per_label$}", Human(Duration::from_millis(500) * nth as u32).to_string()))
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// Lets the herd loose under a policy; `watch` is called from time to time with what has been counted so far. So many files are
/// there for connections of others.
///
/// # Errors
///
/// If loopback, files or threads are not to be had.
pub(super) fn run(
    policy: Policy,
    files: u64,
    mut watch: impl FnMut(&Counted) -> io::Result<()>,
) -> io::Result<Counted> {
    const FRAME: Duration = Duration::from_millis(100);
    let port = Port::closed()?;
    let (address, service) = (port.address(), Service::new(files));
    let server = service.clone().start(port.open()?)?;
    let (cancel, began) = (Cancel::new(), Instant::now());
    let clients = clients(address, policy, &service.word, &cancel);
    let outcome = clients.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string())).and_then(|_| {
        while service.elapsed() < WATCHED {
            service.check_gathered(began.elapsed())?;
            thread::sleep(FRAME.min(WATCHED.saturating_sub(service.elapsed())));
            watch(&service.counted())?;
        }
        Ok(())
    });
    let counted = service.counted();
    cancel.cancel();
    // Whoever is connected yet, or waits for it, is let go.
    drop(server);
    service.lock().held.clear();
    clients.into_iter().flatten().for_each(|client| drop(client.join()));
    outcome.map(|()| counted)
}

fn clients(address: SocketAddr, policy: Policy, word: &Arc<str>, cancel: &Cancel) -> io::Result<Vec<JoinHandle<()>>> {
    const STACK: usize = 128 * 1024;
    let client = |_| {
        let (word, cancel) = (word.clone(), cancel.clone());
        thread::Builder::new().stack_size(STACK).spawn(move || client(address, policy, &word, &cancel))
    };
    (0..CLIENTS).map(client).collect()
}

/// One client: connected, until the service drops it; then it comes back when its policy says.
fn client(address: SocketAddr, policy: Policy, word: &str, cancel: &Cancel) {
    let mut first = connect(address, word);
    let reconnected = policy.cancel(cancel).retry_blocking(|attempt| match (&mut first, attempt.number()) {
        (Ok(stream), 1) => is_served(stream).map(drop).and_then(|()| Err(io::ErrorKind::ConnectionReset.into())),
        _ => {
            let mut stream = connect(address, word)?;
            is_served(&mut stream).map(|()| stream)
        }
    });
    drop(reconnected);
}

/// A connection whose first is the word: any user of the machine sees the port.
fn connect(address: SocketAddr, word: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECTING)?;
    stream.write_all(word.as_bytes())?;
    Ok(stream)
}

/// Waits for a word of the service; without one, the connection was closed.
fn is_served(stream: &mut TcpStream) -> io::Result<()> {
    stream.read_exact(&mut [0])
}

/// The service: who it holds, and what it counted.
#[derive(Clone)]
struct Service {
    /// By which its clients are known.
    word: Arc<str>,
    silent: Arc<Silent>,
    state: Arc<Mutex<State>>,
}

struct State {
    /// The clients that are connected before the moment at which all are dropped.
    held: Vec<tokio::net::TcpStream>,
    /// That moment.
    dropped: Option<Instant>,
    taken: [u32; SPANS],
    counted: Counted,
}

impl Service {
    fn new(files: u64) -> Service {
        let counted = Counted { arrived: [0; SPANS], served: 0, refused: 0, all_served: None };
        let state = State { held: Vec::new(), dropped: None, taken: [0; SPANS], counted };
        let (word, silent) = (IdempotencyKey::random().as_str().into(), Silent::new(CLIENTS as u64, files));
        Service { word, silent: Arc::new(silent), state: Arc::new(Mutex::new(state)) }
    }

    fn start(self, listener: TcpListener) -> io::Result<Server> {
        let runtime = crate::runtime::builder()?.build()?;
        let listener = loopback::listener(&runtime, listener)?;
        Server::start(runtime, move || {
            tokio::spawn(loopback::accept(listener, move |stream| self.clone().serve(stream)));
        })
    }

    async fn serve(self, mut stream: tokio::net::TcpStream) -> io::Result<()> {
        let mut said = vec![0; self.word.len()];
        self.silent.hear(stream.read_exact(&mut said)).await?;
        if said != self.word.as_bytes() {
            return Ok(());
        }
        let served = self.lock().arrive(stream);
        match served {
            Some(mut stream) => stream.write_all(b".").await,
            None => Ok(()),
        }
    }

    /// Whether the clients have come together, or have yet to: somebody may keep them from it.
    fn check_gathered(&self, since: Duration) -> io::Result<()> {
        let state = self.lock();
        if state.dropped.is_some() || since < GATHERING {
            return Ok(());
        }
        let (few, within) = (state.held.len(), Human(GATHERING));
        Err(io::Error::other(format!("of {CLIENTS} clients only {few} were connected within {within}")))
    }

    /// The time since all clients were dropped.
    fn elapsed(&self) -> Duration {
        self.lock().dropped.map_or(Duration::ZERO, |dropped| dropped.elapsed())
    }

    fn counted(&self) -> Counted {
        self.lock().counted.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts one that arrives, and gives it back if it is served; else it is held, or closed.
    fn arrive(&mut self, stream: tokio::net::TcpStream) -> Option<tokio::net::TcpStream> {
        let Some(dropped) = self.dropped else {
            self.held.push(stream);
            if self.held.len() == CLIENTS {
                self.held.clear();
                self.dropped = Some(Instant::now());
            }
            return None;
        };
        let span = (dropped.elapsed().as_millis() / SPAN.as_millis()) as usize;
        *self.counted.arrived.get_mut(span)? += 1;
        if self.taken[span] == CAPACITY {
            self.counted.refused += 1;
            return None;
        }
        self.taken[span] += 1;
        self.counted.served += 1;
        if self.counted.served == CLIENTS as u32 {
            self.counted.all_served = Some(dropped.elapsed());
        }
        Some(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many connect that are none of it: they are not counted, and a herd that does not come together is not waited for.
    #[test]
    fn who_does_not_know_the_word_is_no_client() {
        let port = Port::closed().unwrap();
        let (address, service) = (port.address(), Service::new(7));
        let server = service.clone().start(port.open().unwrap()).unwrap();
        let others: Vec<_> =
            (0..CLIENTS + 50).map(|_| connect(address, &"x".repeat(service.word.len())).unwrap()).collect();
        let silent: Vec<_> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
        let _own = connect(address, &service.word).unwrap();
        let began = Instant::now();
        let is_kept = |stream: &&TcpStream| {
            stream.set_nonblocking(true).unwrap();
            (&**stream).read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        while others.iter().any(|other| is_kept(&other)) || silent.iter().filter(is_kept).count() > 7 {
            assert!(began.elapsed() < Duration::from_secs(5), "they are kept");
            thread::sleep(Duration::from_millis(5));
        }
        while service.lock().held.is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(service.lock().held.len() == 1 && service.elapsed().is_zero());
        assert!(service.check_gathered(GATHERING / 2).is_ok());
        let late = service.check_gathered(GATHERING).unwrap_err().to_string();
        assert_eq!(late, "of 200 clients only 1 were connected within 10s");
        drop(server);
    }

    #[test]
    fn the_curve_and_what_it_says() {
        let mut counted = Counted { arrived: [0; SPANS], served: 40, refused: 560, all_served: None };
        counted.arrived[10] = 200;
        counted.arrived[30] = 100;
        assert_eq!(
            counted.drawn(),
            "  200 ┤          █
      │          █
      │          █                   ▄
      │          █                   █
      │          █                   █
    0 └────────────────────────────────────────────────────
       0s        500ms     1s        1.5s      2s        2.5s
  peak 200 in 50ms; 40 of 200 served in 2.6s; 560 refused
"
        );
        let served = Counted { served: 200, all_served: Some(Duration::from_millis(1234)), ..counted };
        assert!(served.drawn().ends_with("\n  peak 200 in 50ms; all 200 served after 1.2s; 560 refused\n"));
    }
}
