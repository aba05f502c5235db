//! The second act: two hundred clients lose their connection at one moment and reconnect, without and with jitter.
//!
//! The service is real and so are the clients: threads that run [`Policy::retry_blocking`], sockets on loopback. The
//! service takes so many connections in a span of time and closes the others at once. What is drawn is what its
//! `accept` counted, span by span.

use super::port::Port;
use crate::plot::bars;
use relent::{Cancel, Policy, duration::Human};
use std::{
    fmt::Write as _,
    io::{self, Read, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Clients that lose their connection.
pub(super) const CLIENTS: usize = 200;

/// The spans of time in which connections are counted.
pub(super) const SPAN: Duration = Duration::from_millis(50);

/// Connections that the service takes in a span.
pub(super) const CAPACITY: u32 = 10;

/// How long is watched.
const WATCHED: Duration = Duration::from_millis(2600);

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

/// Lets the herd loose under a policy; `watch` is called from time to time with what has been counted so far.
///
/// # Errors
///
/// If loopback or threads are not to be had.
pub(super) fn run(policy: Policy, mut watch: impl FnMut(&Counted) -> io::Result<()>) -> io::Result<Counted> {
    const FRAME: Duration = Duration::from_millis(100);
    let port = Port::closed()?;
    let (address, service) = (port.address(), Service::new());
    let server = service.clone().start(port.open()?)?;
    let cancel = Cancel::new();
    let clients = clients(address, policy, &cancel);
    let outcome = clients.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string())).and_then(|_| {
        while service.elapsed() < WATCHED {
            thread::sleep(FRAME.min(WATCHED.saturating_sub(service.elapsed())));
            watch(&service.counted())?;
        }
        Ok(())
    });
    let counted = service.counted();
    cancel.cancel();
    service.over.store(true, Ordering::Relaxed);
    // The server waits in accept; one more connection lets it see that it is over.
    let _ = TcpStream::connect(address);
    let _ = server.join();
    clients.into_iter().flatten().for_each(|client| drop(client.join()));
    outcome.map(|()| counted)
}

fn clients(address: SocketAddr, policy: Policy, cancel: &Cancel) -> io::Result<Vec<JoinHandle<()>>> {
    const STACK: usize = 128 * 1024;
    let client = |_| {
        let cancel = cancel.clone();
        thread::Builder::new().stack_size(STACK).spawn(move || client(address, policy, &cancel))
    };
    (0..CLIENTS).map(client).collect()
}

/// One client: connected, until the service drops it; then it comes back when its policy says.
fn client(address: SocketAddr, policy: Policy, cancel: &Cancel) {
    let mut first = TcpStream::connect(address);
    let reconnected = policy.cancel(cancel).retry_blocking(|attempt| match (&mut first, attempt.number()) {
        (Ok(stream), 1) => is_served(stream).map(drop).and_then(|()| Err(io::ErrorKind::ConnectionReset.into())),
        _ => {
            let mut stream = TcpStream::connect(address)?;
            is_served(&mut stream).map(|()| stream)
        }
    });
    drop(reconnected);
}

/// Waits for a word of the service; without one, the connection was closed.
fn is_served(stream: &mut TcpStream) -> io::Result<()> {
    stream.read_exact(&mut [0])
}

/// The service: who it holds, and what it counted.
#[derive(Clone)]
struct Service {
    over: Arc<AtomicBool>,
    state: Arc<Mutex<State>>,
}

struct State {
    /// The clients that were connected before the moment at which all were dropped, and after it those it serves.
    held: Vec<TcpStream>,
    /// That moment.
    dropped: Option<Instant>,
    taken: [u32; SPANS],
    counted: Counted,
}

impl Service {
    fn new() -> Service {
        let counted = Counted { arrived: [0; SPANS], served: 0, refused: 0, all_served: None };
        let state = State { held: Vec::new(), dropped: None, taken: [0; SPANS], counted };
        Service { over: Arc::default(), state: Arc::new(Mutex::new(state)) }
    }

    fn start(self, listener: TcpListener) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().spawn(move || {
            for stream in listener.incoming() {
                if self.over.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(stream) = stream {
                    self.lock().arrive(stream);
                }
            }
        })
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
    fn arrive(&mut self, mut stream: TcpStream) {
        let Some(dropped) = self.dropped else {
            self.held.push(stream);
            if self.held.len() == CLIENTS {
                self.held.clear();
                self.dropped = Some(Instant::now());
            }
            return;
        };
        let span = (dropped.elapsed().as_millis() / SPAN.as_millis()) as usize;
        let Some(arrived) = self.counted.arrived.get_mut(span) else { return };
        *arrived += 1;
        if self.taken[span] == CAPACITY {
            self.counted.refused += 1;
            return;
        }
        self.taken[span] += 1;
        self.counted.served += 1;
        let _ = stream.write_all(b".");
        self.held.push(stream);
        if self.held.len() == CLIENTS {
            self.counted.all_served = Some(dropped.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
