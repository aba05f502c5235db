//! The way to the server, with an eye on what comes back: see [`Frames`].

use super::{RESPONSE, fault, frames::Frames, nonsense};
use crate::{Error, ErrorKind, tls::Tls};
use redis::{
    AsyncConnectionConfig, ConnectionAddr, RedisConnectionInfo,
    aio::{MultiplexedConnection, PubSub},
};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};

/// What is known of what goes over a connection.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whether the server sent nonsense.
    pub(super) is_nonsense: AtomicBool,
    /// How many questions were asked since the connection was made. Whoever asks counts, before it does.
    pub(super) asked: AtomicU64,
    is_made: AtomicBool,
}

/// A connection to ask over, and what reads from it.
pub(super) async fn asking(
    address: &ConnectionAddr,
    login: &RedisConnectionInfo,
    tls: Option<&Tls>,
    seen: &Arc<Seen>,
) -> Result<(MultiplexedConnection, impl Future<Output = ()> + 'static), Error> {
    let made = async {
        let stream = Watched::new(stream(address, tls).await?, seen.clone(), true);
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(RESPONSE));
        let made = MultiplexedConnection::new_with_config(login, stream, config).await;
        seen.is_made.store(true, Ordering::Relaxed);
        made.map_err(|err| if seen.is_nonsense.load(Ordering::Relaxed) { nonsense() } else { fault::of(&err) })
    };
    timeout(RESPONSE, made).await.map_err(|_| late())?
}

/// A connection of its own that listens.
pub(super) async fn listening(
    address: &ConnectionAddr,
    login: &RedisConnectionInfo,
    tls: Option<&Tls>,
) -> Option<PubSub> {
    let made = async {
        let stream = Watched::new(stream(address, tls).await.ok()?, Arc::default(), false);
        PubSub::new(login, stream).await.ok()
    };
    timeout(RESPONSE, made).await.ok()?
}

async fn stream(address: &ConnectionAddr, tls: Option<&Tls>) -> Result<Box<dyn Stream>, Error> {
    let unreachable = |err: io::Error| fault::of(&err.into());
    let tcp = async |host: &str, port: u16| {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true).map(|()| stream)
    };
    match address {
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(tcp(host, *port).await.map_err(unreachable)?)),
        ConnectionAddr::TcpTls { host, port, insecure: false, .. } => {
            let Some(tls) = tls else { return Err(unsupported()) };
            let stream = tcp(host, *port).await.map_err(unreachable)?;
            Ok(Box::new(tls.connect(host, stream).await?))
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await.map_err(unreachable)?)),
        _ => Err(unsupported()),
    }
}

fn unsupported() -> Error {
    Error::new(ErrorKind::Unsupported, "this way to a Redis server is not supported")
        .hint("redis://host, or rediss://host with a certificate that is valid")
}

fn late() -> Error {
    Error::new(ErrorKind::Unavailable, "the Redis server did not answer in time").hint("is the server reachable?")
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A stream that fails where the server sends what is no answer, is too large for one, or was not asked for.
struct Watched {
    stream: Box<dyn Stream>,
    /// What the client asks of its own when it makes the connection.
    first: Frames,
    answered: Frames,
    seen: Arc<Seen>,
    /// Whether every answer is one to a question; it is not where we listen.
    is_asking: bool,
}

impl Watched {
    fn new(stream: Box<dyn Stream>, seen: Arc<Seen>, is_asking: bool) -> Watched {
        Watched { stream, first: Frames::default(), answered: Frames::default(), seen, is_asking }
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let answer = this.answered.read(&buf.filled()[before..]);
        let asked = this.first.complete + this.seen.asked.load(Ordering::Relaxed);
        let is_unasked = this.is_asking && this.answered.complete > asked;
        if answer.is_err() || is_unasked {
            this.seen.is_nonsense.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let sent = ready!(Pin::new(&mut this.stream).poll_write(cx, buf))?;
        // What we ask is in order; what the client asks of its own is bounded as answers are.
        if !this.seen.is_made.load(Ordering::Relaxed) && this.first.read(&buf[..sent]).is_err() {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        Poll::Ready(Ok(sent))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
