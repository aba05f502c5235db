//! The way to the server, with an eye on what comes back: see [`Frames`].

use super::{RESPONSE, fault, frames::Frames, nonsense};
use crate::{Error, ErrorKind, peer, tls::Tls};
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
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
    time::timeout,
};

/// What is known of what goes over a connection.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whether the server sent nonsense.
    pub(super) is_nonsense: AtomicBool,
    /// How many questions were asked since the connection was made; where we listen, how many messages were taken. Whoever asks
    /// counts, before it does.
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
        let stream = Watched::new(a_redis(address, login, tls).await?, seen.clone());
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(RESPONSE));
        let made = MultiplexedConnection::new_with_config(login, stream, config).await;
        seen.is_made.store(true, Ordering::Relaxed);
        made.map_err(|err| if seen.is_nonsense.load(Ordering::Relaxed) { nonsense() } else { fault::of(&err) })
    };
    timeout(RESPONSE, made).await.map_err(|_| late())?
}

/// How many messages may wait until they are taken: the client keeps all of them. More than are told at once.
const MAX_UNTAKEN: u64 = 16_384;

/// How many bytes each may have. It names a channel.
const MAX_MESSAGE: u64 = 4096;

/// A connection of its own that listens, and where the messages that were taken are counted.
pub(super) async fn listening(
    address: &ConnectionAddr,
    login: &RedisConnectionInfo,
    tls: Option<&Tls>,
) -> Option<(PubSub, Arc<Seen>)> {
    let seen = Arc::<Seen>::default();
    let made = async {
        let answered = Frames::of_at_most(MAX_MESSAGE);
        let stream = a_redis(address, login, tls).await.ok()?;
        let stream = Watched { answered, unasked: MAX_UNTAKEN, ..Watched::new(stream, seen.clone()) };
        PubSub::new(login, stream).await.ok()
    };
    Some((timeout(RESPONSE, made).await.ok()??, seen))
}

/// Whether a Redis answers so who has not said yet who they are: that it is there, or in capitals why it does nothing for them. What takes lines
/// for commands has other words for them, but for POP3, whose errors begin so.
fn is_of_a_redis(line: &[u8]) -> bool {
    line == b"+PONG\r\n" || matches!(line, [b'-', first, .., b'\n'] if first.is_ascii_uppercase())
}

/// The longest line of an error: those of a Redis that takes no writes, or lets nobody in, have up to a thousand bytes.
const LONGEST_LINE: usize = 4096;

/// A way to what answers as a Redis does. Anybody else is told no user and no password: who has written them would have lines of theirs
/// said to a server that takes such for commands.
async fn a_redis(
    address: &ConnectionAddr,
    login: &RedisConnectionInfo,
    tls: Option<&Tls>,
) -> Result<Box<dyn Stream>, Error> {
    let mut stream = stream(address, tls).await?;
    if login.username().is_none() && login.password().is_none() {
        return Ok(stream);
    }
    let asked = async {
        stream.write_all(b"*1\r\n$4\r\nPING\r\n").await?;
        stream.flush().await?;
        let mut line = vec![];
        while !line.ends_with(b"\n") && line.len() < LONGEST_LINE {
            line.push(stream.read_u8().await?);
        }
        Ok(line)
    };
    let line: Vec<u8> = asked.await.map_err(|err: io::Error| fault::of(&err.into()))?;
    match is_of_a_redis(&line) {
        true => Ok(stream),
        false => Err(Error::new(ErrorKind::Corrupt, "what answers there is no Redis server")),
    }
}

async fn stream(address: &ConnectionAddr, tls: Option<&Tls>) -> Result<Box<dyn Stream>, Error> {
    let unreachable = |err: io::Error| fault::of(&err.into());
    let tcp = async |host: &str, port: u16| {
        let stream = TcpStream::connect((host, port)).await?;
        // TCP connects to itself where nobody listens and the system gives out the very port.
        if stream.local_addr()? == stream.peer_addr()? {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
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
        ConnectionAddr::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path).await.map_err(unreachable)?;
            peer::check(&stream, path)
                .map_err(|refused| refused.hint("a folder of the server's own is for its socket"))?;
            Ok(Box::new(stream))
        }
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
    /// How many more there may be than were asked for.
    unasked: u64,
}

impl Watched {
    fn new(stream: Box<dyn Stream>, seen: Arc<Seen>) -> Watched {
        Watched { stream, first: Frames::default(), answered: Frames::default(), seen, unasked: 0 }
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let answer = this.answered.read(&buf.filled()[before..]);
        let asked = this.first.complete + this.seen.asked.load(Ordering::Relaxed);
        let is_unasked = this.answered.complete > asked + this.unasked;
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// As many as they like, if they are taken.
    #[tokio::test]
    async fn messages_that_nobody_takes_are_few_and_short() {
        let seen = Arc::<Seen>::default();
        let (ours, mut theirs) = duplex(1024);
        let answered = Frames::of_at_most(16);
        let mut stream = Watched { answered, unasked: 2, ..Watched::new(Box::new(ours), seen.clone()) };
        let mut heard = async |sent: &[u8]| {
            theirs.write_all(sent).await.unwrap();
            stream.read(&mut [0; 64]).await.map_err(|err| err.kind())
        };
        for _ in 0..1000 {
            assert_eq!(heard(b"+a\r\n+b\r\n").await, Ok(8));
            seen.asked.fetch_add(2, Ordering::Relaxed);
        }
        assert_eq!(heard(b"+a\r\n+b\r\n").await, Ok(8));
        assert_eq!(heard(b"$10\r\n").await, Ok(5), "it is too many when it is whole");
        assert_eq!(heard(b"0123456789\r\n").await, Err(io::ErrorKind::InvalidData));
        assert!(seen.is_nonsense.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_nonsense() {
        let (ours, mut theirs) = duplex(1024);
        let answered = Frames::of_at_most(16);
        let mut stream = Watched { answered, unasked: 2, ..Watched::new(Box::new(ours), Arc::default()) };
        theirs.write_all(b"$17\r\n").await.unwrap();
        assert_eq!(stream.read(&mut [0; 64]).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
