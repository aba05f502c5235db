//! A network that fails: a proxy on loopback between a store and its server.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::WriteHalf},
    sync::watch,
    task::JoinHandle,
};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// What happens to a connection after so many more bytes one way. What comes next is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is closed, both ways.
    Closed,
    /// It is reset: what is under way is thrown away.
    Reset,
    /// Nothing comes through any more, and nobody is told.
    Silent,
    /// This way is closed; the other goes on.
    HalfClosed,
    /// What is no answer of any server comes instead.
    Nonsense,
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    way: Way,
    left: usize,
    fault: Fault,
}

/// What a proxy does to all its connections, and what it saw.
struct Wire {
    /// Used up by the connection that it happens to.
    armed: Mutex<Option<Armed>>,
    passed: [AtomicUsize; 2],
    /// Bytes are passed on one at a time.
    is_sliced: AtomicBool,
    delay: Mutex<Duration>,
    /// Connections are taken, and nothing else, until this is false.
    is_silent: watch::Sender<bool>,
    connections: AtomicU64,
}

/// A proxy, which ends when this is dropped.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    wire: Arc<Wire>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    /// A proxy to this port of loopback, which does no harm yet.
    pub(crate) async fn to(server: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let wire = Arc::new(Wire {
            armed: Mutex::new(None),
            passed: Default::default(),
            is_sliced: AtomicBool::new(false),
            delay: Mutex::new(Duration::ZERO),
            is_silent: watch::Sender::new(false),
            connections: AtomicU64::new(0),
        });
        let task = tokio::spawn({
            let wire = wire.clone();
            async move {
                loop {
                    let (client, _) = listener.accept().await.unwrap();
                    wire.connections.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(carry(wire.clone(), client, server));
                }
            }
        });
        Proxy { port, wire, task }
    }

    /// After so many more bytes this way, on whichever connection, this happens to it, once.
    pub(crate) fn arm(&self, way: Way, after: usize, fault: Fault) {
        *self.wire.armed.lock().unwrap() = Some(Armed { way, left: after, fault });
    }

    /// Whether what was armed has not happened; it does not happen any more.
    pub(crate) fn disarm(&self) -> bool {
        self.wire.armed.lock().unwrap().take().is_some()
    }

    /// How many bytes have gone this way, of all connections.
    pub(crate) fn passed(&self, way: Way) -> usize {
        self.wire.passed[way as usize].load(Ordering::SeqCst)
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> u64 {
        self.wire.connections.load(Ordering::SeqCst)
    }

    /// Each piece waits so long, both ways.
    pub(crate) fn delay(&self, delay: Duration) {
        *self.wire.delay.lock().unwrap() = delay;
    }

    /// Bytes come one at a time, or as they come.
    pub(crate) fn slice(&self, is_sliced: bool) {
        self.wire.is_sliced.store(is_sliced, Ordering::SeqCst);
    }

    /// All connections, those to come, too, stay open, and nothing comes through; or what is there comes through again on
    /// those that are new.
    pub(crate) fn silence(&self, is_silent: bool) {
        self.wire.is_silent.send_replace(is_silent);
    }
}

/// What becomes of a connection.
enum Next {
    GoesOn,
    Ends(Fault),
}

/// One connection, to its end.
async fn carry(wire: Arc<Wire>, mut client: TcpStream, server: u16) {
    let mut silent = wire.is_silent.subscribe();
    // One that is made while nothing comes through never wakes up.
    if *silent.borrow() {
        return std::future::pending().await;
    }
    let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let end = {
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.split(), server.split());
        let (mut above, mut below) = ([0; 8192], [0; 8192]);
        let mut is_open = [true, true];
        loop {
            let next = tokio::select! {
                read = from_client.read(&mut above), if is_open[Way::Up as usize] => {
                    let read = read.unwrap_or(0);
                    is_open[Way::Up as usize] = read > 0;
                    pass(&wire, Way::Up, &above[..read], &mut to_server).await
                }
                read = from_server.read(&mut below), if is_open[Way::Down as usize] => {
                    let read = read.unwrap_or(0);
                    is_open[Way::Down as usize] = read > 0;
                    pass(&wire, Way::Down, &below[..read], &mut to_client).await
                }
                () = falls_silent(&mut silent) => Next::Ends(Fault::Silent),
                else => Next::Ends(Fault::Closed),
            };
            if let Next::Ends(fault) = next {
                break fault;
            }
        }
    };
    match end {
        // Both are held for ever.
        Fault::Silent => std::future::pending().await,
        Fault::Reset => drop((client.set_zero_linger(), server.set_zero_linger())),
        Fault::Closed | Fault::HalfClosed | Fault::Nonsense => {}
    }
}

async fn falls_silent(silent: &mut watch::Receiver<bool>) {
    if silent.wait_for(|is_silent| *is_silent).await.is_err() {
        std::future::pending().await
    }
}

/// Passes these bytes on, as far as they come.
async fn pass(wire: &Wire, way: Way, bytes: &[u8], to: &mut WriteHalf<'_>) -> Next {
    let delay = *wire.delay.lock().unwrap();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    if bytes.is_empty() {
        let _ = to.shutdown().await;
        return Next::GoesOn;
    }
    let fault = {
        let mut armed = wire.armed.lock().unwrap();
        match &mut *armed {
            Some(Armed { way: is, left, fault }) if *is == way && *left < bytes.len() => {
                let happens = (*fault, *left);
                *armed = None;
                Some(happens)
            }
            Some(armed) if armed.way == way => {
                armed.left -= bytes.len();
                None
            }
            _ => None,
        }
    };
    let bytes = &bytes[..fault.map_or(bytes.len(), |(_, left)| left)];
    wire.passed[way as usize].fetch_add(bytes.len(), Ordering::SeqCst);
    let size = if wire.is_sliced.load(Ordering::SeqCst) { 1 } else { 8192 };
    for piece in bytes.chunks(size) {
        if to.write_all(piece).await.is_err() {
            return Next::Ends(Fault::Closed);
        }
    }
    match fault {
        None => Next::GoesOn,
        Some((Fault::HalfClosed, _)) => {
            let _ = to.shutdown().await;
            Next::GoesOn
        }
        Some((fault, _)) => {
            if fault == Fault::Nonsense {
                let _ = to.write_all(b"\x00\xff\x15 nonsense\r\n\r\n").await;
            }
            Next::Ends(fault)
        }
    }
}
