//! The server of the model, for real: one worker, a queue, and a word for those who find it full.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    runtime,
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    time::{Instant, sleep_until},
};

/// The answer to a request that was served.
pub(crate) const SERVED: u8 = b'.';

/// The answer to a request that found the server full.
const REFUSED: u8 = b'!';

/// Connections that may wait to be accepted: more than all clients, or the system would hold some back.
const BACKLOG: u32 = 4096;

/// What the server did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) served: u64,
    pub(crate) refused: u64,
}

/// A server on a thread of its own.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<io::Result<Counts>>,
}

impl Server {
    /// A server that holds at most `queue` requests and serves one after the other, each in `service`.
    pub(crate) fn start(queue: usize, service: Duration) -> io::Result<Server> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            let socket = TcpSocket::new_v4()?;
            socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
            socket.listen(BACKLOG)?
        };
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().spawn(move || {
            runtime.block_on(async {
                let (requests, waiting) = unbounded_channel();
                let door = Arc::new(Door { queue, inside: AtomicUsize::new(0), refused: AtomicU64::new(0) });
                let worker = tokio::spawn(work(waiting, service, door.clone()));
                tokio::select! {
                    failed = accept(listener, &door, requests) => failed?,
                    _ = stopped => {}
                }
                let served = worker.await.map_err(io::Error::other)?;
                Ok(Counts { served, refused: door.refused.load(Ordering::Relaxed) })
            })
        })?;
        Ok(Server { address, stop, thread })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it when all that it was asked has been answered.
    pub(crate) fn stop(self) -> io::Result<Counts> {
        // If it has stopped already, joining says why.
        let _ = self.stop.send(());
        self.thread.join().map_err(|_| io::Error::other("the server panicked"))?
    }
}

/// Who gets in.
#[derive(Debug)]
struct Door {
    queue: usize,
    /// Requests that wait or are being served.
    inside: AtomicUsize,
    refused: AtomicU64,
}

/// A request that was let in, and when.
type Request = (TcpStream, Instant);

async fn accept(listener: TcpListener, door: &Arc<Door>, requests: UnboundedSender<Request>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(receive(stream, door.clone(), requests.clone()));
    }
}

async fn receive(mut stream: TcpStream, door: Arc<Door>, requests: UnboundedSender<Request>) -> io::Result<()> {
    stream.read_u8().await?;
    let admitted = door
        .inside
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |inside| (inside < door.queue).then_some(inside + 1));
    if admitted.is_ok() {
        return requests.send((stream, Instant::now())).map_err(io::Error::other);
    }
    door.refused.fetch_add(1, Ordering::Relaxed);
    stream.write_all(&[REFUSED]).await
}

/// Serves one request after the other; the number served when no more can come. The worker is busy by the clock, so that
/// a timer that wakes late does not take from the capacity.
async fn work(mut waiting: UnboundedReceiver<Request>, service: Duration, door: Arc<Door>) -> u64 {
    let mut served = 0;
    let mut free_at = Instant::now();
    while let Some((mut stream, arrived)) = waiting.recv().await {
        free_at = free_at.max(arrived) + service;
        if free_at > Instant::now() {
            sleep_until(free_at).await;
        }
        door.inside.fetch_sub(1, Ordering::Relaxed);
        // A client that went away is counted on its own side.
        let _ = stream.write_all(&[SERVED]).await;
        served += 1;
    }
    served
}
