//! Servers of relent's own on loopback, for a storm and for the demo. Any user of the machine sees their ports and may connect, so
//! they hear of their own clients by a word that nobody else knows, and keep few of those who say nothing.

use httparse::{Request, Status};
use std::{
    io::{self, ErrorKind},
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    sync::oneshot,
    time::{self, Instant},
};

/// The longest head of a request.
const LONGEST: usize = 8 * 1024;

/// How long a connection may take to ask, and to go away.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take to ask where more have not asked than there are clients: some are somebody else's, who would use up our files.
const GLANCE: Duration = Duration::from_millis(50);

/// How many of those there may be besides the clients, if there are files for them.
pub(crate) const OTHERS: u64 = 64;

/// What serves on a thread of its own, until this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Calls this on the thread; the tasks that it spawns end with the server, and their connections with them.
    ///
    /// # Errors
    ///
    /// There is no thread to be had.
    pub(crate) fn start(runtime: Runtime, tasks: impl FnOnce() + Send + 'static) -> io::Result<Server> {
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("server".to_owned()).spawn(move || {
            runtime.block_on(async {
                tasks();
                let _ = stopped.await;
            });
        })?;
        Ok(Server { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Accepts for ever. Each connection is a task.
pub(crate) async fn accept<S>(listener: TcpListener, serve: impl Fn(TcpStream) -> S)
where
    S: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream))),
            // Out of files for a moment, or the client has gone away already.
            Err(_) => time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Connections that have not asked yet.
#[derive(Debug)]
pub(crate) struct Silent {
    now: AtomicU64,
    /// From how many on that is too many.
    most: u64,
}

impl Silent {
    /// Of a server of so many clients, where there are so many files for connections that ask nothing.
    pub(crate) fn new(clients: u64, files: u64) -> Silent {
        Silent { now: AtomicU64::new(0), most: clients.saturating_add(OTHERS).min(files) }
    }

    /// What a connection asks, within the time that there is for it.
    pub(crate) async fn hear<T>(&self, asking: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        self.now.fetch_add(1, Ordering::Relaxed);
        let (mut asking, end) = (pin!(asking), Instant::now() + PATIENCE);
        let asked = loop {
            match time::timeout(GLANCE, asking.as_mut()).await {
                Ok(asked) => break asked,
                Err(_) if Instant::now() < end && self.now.load(Ordering::Relaxed) <= self.most => {}
                Err(late) => break Err(late.into()),
            }
        };
        self.now.fetch_sub(1, Ordering::Relaxed);
        asked
    }
}

/// What is understood of the head of a request.
pub(crate) async fn read<T>(stream: &mut TcpStream, understand: impl Fn(&Request<'_, '_>) -> T) -> io::Result<T> {
    let mut head = Vec::with_capacity(512);
    loop {
        if stream.read_buf(&mut head).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if let Status::Complete(asked) = parse(&head, &understand)? {
            return Ok(asked);
        }
        if head.len() > LONGEST {
            return Err(ErrorKind::InvalidData.into());
        }
    }
}

/// The same of what has come so far.
pub(crate) fn parse<T>(head: &[u8], understand: impl Fn(&Request<'_, '_>) -> T) -> io::Result<Status<T>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = Request::new(&mut headers);
    let status = request.parse(head).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
    Ok(if status.is_partial() { Status::Partial } else { Status::Complete(understand(&request)) })
}

/// The value of a header.
pub(crate) fn header<'a>(request: &Request<'_, 'a>, name: &str) -> Option<&'a str> {
    let header = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(header.value).ok().map(str::trim)
}

/// For who is not of ours.
pub(crate) const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A listener as the tasks of a runtime need it.
///
/// # Errors
///
/// The system has nothing left to wait for it with.
pub(crate) fn listener(runtime: &Runtime, listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    let _inside = runtime.enter();
    TcpListener::from_std(listener)
}
