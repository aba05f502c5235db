//! A WebSocket that outlives its connections: feature `ws`, on `tokio-tungstenite`.
//!
//! A stream of messages that come and a sink for those that go, whatever becomes of the connection below: it is made after
//! the policy's [`spread`](Policy::spread), made again when it is lost, at the policy's delays, and subscribed anew each
//! time. Refused upgrades and close codes are judged ([`SocketFault::verdict`]), `Retry-After` and turns are kept, and silence is
//! found by pings.
//!
//! ```no_run
//! use relent::ws::{self, Message, Outbox};
//!
//! # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
//! let mut trades = ws::RECONNECT
//!     .websocket("ws://feed.example:9000/trades")?
//!     .subscribe(|_connection| vec![Message::text(r#"{"subscribe":"trades"}"#)])
//!     .outbox(Outbox::Repeat(1000))
//!     .open();
//! while let Some(message) = trades.next().await {
//!     println!("{}", message?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A server that restarts loses all its clients at once. Those whose connection had been well
//! ([`healthy_after`](Opening::healthy_after)) come back at random moments within a time
//! ([`rejoin_within`](Opening::rejoin_within)); a server that is still too busy may refuse the upgrade with a turn. A
//! server that accepts and drops at once is backed off from, since nothing is forgotten before a connection was well.
//!
//! A task of its own keeps the connection, so that pings are answered whoever reads; but while 256 messages stand unread,
//! nothing more is read. It ends when the [`WebSocket`] is dropped. `wss:` needs TLS: turn on one of `tokio-tungstenite`'s features for it (`rustls-tls-native-roots`, ...) in
//! your own `Cargo.toml`.

mod fault;
mod link;
mod outbox;
mod road;

pub use self::{
    fault::{CLOSE_CODES, CloseCode, SocketFault, close_verdict},
    outbox::{NotSent, Outbox},
};
pub use tokio_tungstenite::tungstenite::{self, Message, client::IntoClientRequest};

use self::{outbox::Line, road::Road};
use crate::{Always, Error, Jitter, Judge, Policy, Retrier, Setting, Silent, SystemTimer, Timer, Watch, guard::Guard};
use futures_util::{Sink, Stream};
use std::{
    fmt,
    future::{Future, poll_fn},
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tungstenite::{handshake::client::Request, protocol::WebSocketConfig};

/// As RFC 6455 7.2.3 asks for: a random wait of up to 5 s before the first attempt, then 1, 2, 4 s and up to a minute
/// with full jitter, for ever; 10 s for each attempt.
pub const RECONNECT: Policy = Policy::exponential(Duration::from_secs(1))
    .cap(Duration::from_secs(60))
    .jitter(Jitter::Full)
    .unlimited_attempts()
    .attempt_timeout(Duration::from_secs(10))
    .spread(Duration::from_secs(5));

/// No message is larger.
const LARGEST: usize = 16 << 20;

type Subscribe = Box<dyn FnMut(u32) -> Vec<Message> + Send>;

/// How a connection is kept.
#[derive(Clone, Copy, Debug)]
struct Keeping {
    ping_every: Duration,
    pong_within: Duration,
    healthy_after: Duration,
    rejoin_within: Option<Duration>,
    config: Option<WebSocketConfig>,
}

/// A [`WebSocket`] that is not open yet: made by [`Policy::websocket`].
///
/// ```
/// # use futures_util::{SinkExt, StreamExt};
/// use relent::{Jitter, Policy, ws::{Message, Outbox}};
/// use std::time::Duration;
///
/// const FEED: Policy = Policy::exponential(Duration::from_millis(100)).jitter(Jitter::Full).max_attempts(8);
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// // At `url`, a server that says everything again.
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let url = format!("ws://{}", listener.local_addr()?);
/// # tokio::spawn(async move {
/// #     while let Ok((stream, _)) = listener.accept().await {
/// #         let mut peer = tokio_tungstenite::accept_async(stream).await.unwrap();
/// #         while let Some(Ok(message)) = peer.next().await {
/// #             let _ = if message.is_close() { peer.flush().await } else { peer.send(message).await };
/// #         }
/// #     }
/// # });
/// let mut feed = FEED
///     .websocket(url)?
///     .subscribe(|connection| vec![Message::text(format!("trades, connection {connection}"))])
///     .outbox(Outbox::Repeat(1000))
///     .ping_every(Duration::from_secs(20))
///     .pong_within(Duration::from_secs(5))
///     .healthy_after(Duration::from_secs(60))
///     .rejoin_within(Duration::from_secs(30))
///     .largest_message(64 << 10)
///     .open();
/// feed.send(Message::text("hello")).await?;
/// assert_eq!(feed.next().await.unwrap()?, Message::text("trades, connection 1"));
/// assert_eq!(feed.next().await.unwrap()?, Message::text("hello"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[must_use = "nothing is connected before `open`"]
pub struct Opening<W = Always, N = Silent, S = SystemTimer> {
    retrier: Retrier<W, N, S>,
    request: Request,
    keeping: Keeping,
    outbox: Outbox,
    subscribe: Option<Subscribe>,
    road: Road,
}

impl Policy {
    /// A WebSocket that is connected, and connected again, at this policy's times: see [`ws`](self).
    ///
    /// The request is a URL, or a request with headers of your own; each attempt has its number in `Relent-Attempt`. Where
    /// the policy has no attempt timeout, an attempt has 10 s.
    ///
    /// ```
    /// use relent::ws;
    ///
    /// assert!(ws::RECONNECT.websocket("ws://feed.example/trades").is_ok());
    /// assert!(ws::RECONNECT.websocket("not a URL").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// If the URL is none of a WebSocket.
    pub fn websocket(self, request: impl IntoClientRequest) -> Result<Opening, Box<tungstenite::Error>> {
        self.retrier().websocket(request)
    }
}

impl<W, N, S> Retrier<W, N, S> {
    /// [`Policy::websocket`] with what was added to the policy: `when` judges a [`SocketFault`], `notify` is told of it, `cancel`
    /// ends it, and each attempt to connect is a call on the upstream of [`on`](Retrier::on).
    ///
    /// ```
    /// use relent::{Verdict, ws::{self, SocketFault}};
    ///
    /// let socket = ws::RECONNECT
    ///     .when(|fault: &SocketFault| match fault {
    ///         SocketFault::Closed { code: Some(4001), .. } => Verdict::Permanent, // Our own: logged in elsewhere.
    ///         fault => fault.verdict(),
    ///     })
    ///     .websocket("ws://chat.example/room");
    /// assert!(socket.is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Policy::websocket`].
    pub fn websocket(self, request: impl IntoClientRequest) -> Result<Opening<W, N, S>, Box<tungstenite::Error>> {
        let request = request.into_client_request()?;
        if !matches!(request.uri().scheme_str(), Some("ws" | "wss")) || request.uri().host().is_none() {
            return Err(Box::new(tungstenite::error::UrlError::UnsupportedUrlScheme.into()));
        }
        let keeping = Keeping {
            ping_every: Duration::from_secs(30),
            pong_within: Duration::from_secs(10),
            healthy_after: Duration::from_secs(30),
            rejoin_within: None,
            config: Some(link::config(LARGEST)),
        };
        Ok(Opening {
            retrier: self,
            request,
            keeping,
            outbox: Outbox::default(),
            subscribe: None,
            road: Road::default(),
        })
    }
}

impl<W, N, S> Opening<W, N, S> {
    /// Messages that are sent first on every connection, before what waits in the outbox. The hook is told which connection
    /// it is; the first is 1. It runs in the task that keeps the connection, so it must not take long.
    pub fn subscribe(mut self, hook: impl FnMut(u32) -> Vec<Message> + Send + 'static) -> Self {
        self.subscribe = Some(Box::new(hook));
        self
    }

    /// What happens to messages that are sent: by default up to 256 [wait](Outbox::Queue).
    pub fn outbox(mut self, outbox: Outbox) -> Self {
        self.outbox = outbox;
        self
    }

    /// A ping is sent this often; by default every 30 s. At least a millisecond.
    pub fn ping_every(mut self, every: Duration) -> Self {
        self.keeping.ping_every = every.max(Duration::from_millis(1));
        self
    }

    /// A connection is lost if nothing at all is heard for so long after a ping; by default 10 s. It also bounds each step of a
    /// [close](WebSocket::close): a message to be written, messages to be known to have arrived, the server's answer; and how long
    /// [`flush`](WebSocket::flush) and [`send`](WebSocket::send) wait while nothing moves because messages stand unread.
    pub fn pong_within(mut self, limit: Duration) -> Self {
        self.keeping.pong_within = limit.max(Duration::from_millis(1));
        self
    }

    /// A connection that lasted for so long was well: when it is lost, failures before it are forgotten (but where it was
    /// closed with 1013), and limits of time count from then. By default 30 s.
    pub fn healthy_after(mut self, healthy: Duration) -> Self {
        self.keeping.healthy_after = healthy;
        self
    }

    /// When a connection that was well is lost, the next attempt comes at a random moment within this time, as others have
    /// lost theirs in the same moment. By default the policy's [`spread`](Policy::spread), or 5 s where it has none (RFC 6455
    /// 7.2.3); where a limit of time is shorter, within that. The larger the herd the longer: what the server can take in
    /// this time should be all of it.
    pub fn rejoin_within(mut self, time: Duration) -> Self {
        self.keeping.rejoin_within = Some(time);
        self
    }

    /// Connects by `connect`, each attempt anew, instead of by TCP and TLS as the URL says: by a Unix socket, through a proxy, with TLS
    /// of the program's own, or in memory, which under tokio's paused clock makes tests of reconnecting exact. The
    /// WebSocket's handshake is made over what it yields, with the request as it is.
    ///
    /// ```
    /// # use futures_util::{SinkExt, StreamExt};
    /// use relent::{Policy, ws::Message};
    /// use std::{io, time::Duration};
    /// use tokio::sync::mpsc;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// // A server in memory, which answers `hello`.
    /// let (clients, mut accept) = mpsc::unbounded_channel();
    /// tokio::spawn(async move {
    ///     while let Some(stream) = accept.recv().await {
    ///         let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
    ///         socket.send(Message::text("hello")).await.unwrap();
    ///     }
    /// });
    /// let connect = move || {
    ///     let (near, far) = tokio::io::duplex(4096);
    ///     let is_sent = clients.send(far).map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused));
    ///     async { is_sent.map(|()| near) }
    /// };
    /// let mut socket = Policy::exponential(Duration::from_millis(100)).websocket("ws://memory/")?.connect_by(connect).open();
    /// assert_eq!(socket.next().await.unwrap()?, Message::text("hello"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn connect_by<F, Fut, C>(mut self, connect: F) -> Self
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = io::Result<C>> + Send + 'static,
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.road = Road::own(connect);
        self
    }

    /// No message may be larger than this; by default 16 MiB. A larger one ends the connection, and is not retried.
    pub fn largest_message(mut self, bytes: usize) -> Self {
        self.keeping.config = Some(link::config(bytes));
        self
    }
}

impl<W, N, S> Opening<W, N, S>
where
    W: Judge<SocketFault> + Send + 'static,
    N: Watch<SocketFault> + Send + 'static,
    S: Setting + Send + Sync + 'static,
    S::Timer: Sync,
    <S::Timer as Timer>::Sleep: Send,
    S::Guard: Guard + Send,
{
    /// Starts to connect, in a task of its own.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn open(self) -> WebSocket {
        let line = Arc::new(Line::new(self.outbox));
        let Opening { retrier, request, keeping, subscribe, road, .. } = self;
        let task = tokio::spawn({
            let line = line.clone();
            async move { link::keep(retrier, request, keeping, subscribe, road, &line).await }
        });
        WebSocket { line, task: task.abort_handle() }
    }
}

impl<W, N, S> fmt::Debug for Opening<W, N, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").field("uri", self.request.uri()).field("outbox", &self.outbox).finish_non_exhaustive()
    }
}

/// A WebSocket that outlives its connections: see [`ws`](self). A `Stream` of text and binary messages, which ends when
/// the server closes with 1000, when it is [closed](WebSocket::close), or with the [`Error`] of the policy; and a `Sink`.
///
/// Dropped, it ends at once, whatever waits to be sent.
///
/// ```
/// # use futures_util::{SinkExt, StreamExt};
/// use relent::{Policy, ws::{Message, NotSent}};
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// // At `url`, a server that says everything again.
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let url = format!("ws://{}", listener.local_addr()?);
/// # tokio::spawn(async move {
/// #     while let Ok((stream, _)) = listener.accept().await {
/// #         let mut peer = tokio_tungstenite::accept_async(stream).await.unwrap();
/// #         while let Some(Ok(message)) = peer.next().await {
/// #             let _ = if message.is_close() { peer.flush().await } else { peer.send(message).await };
/// #         }
/// #     }
/// # });
/// let mut socket = Policy::exponential(Duration::from_millis(100)).websocket(url)?.open();
/// assert!(!socket.is_connected());
/// // It waits in the outbox until there is a connection.
/// socket.send(Message::text("one")).await?;
/// assert_eq!(socket.waiting(), 1);
/// assert_eq!(socket.next().await.unwrap()?, Message::text("one"));
/// assert!(socket.is_connected());
///
/// socket.try_send(Message::text("two"))?;
/// socket.flush().await?;
/// assert_eq!(socket.waiting(), 0);
/// assert_eq!(socket.next().await.unwrap()?, Message::text("two"));
///
/// socket.close().await;
/// assert_eq!(socket.send(Message::text("three")).await, Err(NotSent::Ended));
/// assert!(socket.next().await.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct WebSocket {
    line: Arc<Line>,
    task: tokio::task::AbortHandle,
}

impl WebSocket {
    /// The next message; `None` when it has ended.
    ///
    /// # Cancel safety
    ///
    /// No message is lost if the future is dropped.
    ///
    /// # Errors
    ///
    /// Once, when the policy gave up.
    pub async fn next(&mut self) -> Option<Result<Message, Error<SocketFault>>> {
        poll_fn(|cx| self.line.poll_next(cx)).await
    }

    /// Puts a message into the outbox, and waits while that is full.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the message is not sent.
    ///
    /// # Errors
    ///
    /// [`NotSent::Away`] from an outbox that refuses, [`NotSent::Ended`]; [`NotSent::Unread`] if nothing has moved for
    /// [`pong_within`](Opening::pong_within) because messages stand unread.
    pub async fn send(&mut self, message: Message) -> Result<(), NotSent> {
        poll_fn(|cx| self.line.poll_ready(cx)).await?;
        self.line.send(message)
    }

    /// Puts a message into the outbox, if there is room.
    ///
    /// # Errors
    ///
    /// As [`send`](WebSocket::send), and [`NotSent::Full`].
    pub fn try_send(&self, message: Message) -> Result<(), NotSent> {
        self.line.send(message)
    }

    /// Waits until the outbox is empty: everything is written, and with [`Outbox::Repeat`] everything has arrived.
    ///
    /// # Errors
    ///
    /// [`NotSent::Ended`] if that will not be; [`NotSent::Unread`] if nothing has moved for
    /// [`pong_within`](Opening::pong_within) because messages stand unread.
    pub async fn flush(&mut self) -> Result<(), NotSent> {
        poll_fn(|cx| self.line.poll_flush(cx)).await
    }

    /// Sends what is in the outbox, closes with 1000, and waits for the server's answer. While there is no connection, one
    /// is made for what is left in the outbox, at the policy's times; if that is empty, it ends at once. A connection on which
    /// nothing moves for [`pong_within`](Opening::pong_within) is lost.
    ///
    /// What comes meanwhile can still be read, but where 256 messages stand unread it is let go.
    pub async fn close(&mut self) {
        poll_fn(|cx| self.line.poll_close(cx)).await;
    }

    /// Whether there is a connection now.
    pub fn is_connected(&self) -> bool {
        self.line.is_connected()
    }

    /// How many messages are in the outbox: not written yet, and with [`Outbox::Repeat`] not known to have arrived.
    pub fn waiting(&self) -> usize {
        self.line.waiting()
    }
}

impl Drop for WebSocket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (is_connected, waiting) = (self.is_connected(), self.waiting());
        f.debug_struct("WebSocket")
            .field("is_connected", &is_connected)
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}

impl Stream for WebSocket {
    type Item = Result<Message, Error<SocketFault>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.line.poll_next(cx)
    }
}

impl Sink<Message> for WebSocket {
    type Error = NotSent;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), NotSent>> {
        self.line.poll_ready(cx)
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), NotSent> {
        self.line.send(message)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), NotSent>> {
        self.line.poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), NotSent>> {
        self.line.poll_close(cx).map(Ok)
    }
}
