//! Connecting with backoff: TCP and Unix sockets.
//!
//! As APUE's `connect_retry` teaches, each attempt gets a new socket (on some systems one whose connect has failed is
//! of no more use). Names are resolved anew each time, because the address behind a name may be what changes when a
//! service comes back, and all addresses are tried before an attempt has failed. Source: Stevens, Rago, "Advanced
//! Programming in the UNIX Environment", third edition, section 16.4.
//!
//! What connects is a policy, or a [`Retrier`]: on an upstream, with a switch, or with somebody who is told.
//!
//! ```
//! use relent::{Breaker, Policy, Reason, Upstream, net};
//! use std::time::Duration;
//!
//! static DB: Upstream = Upstream::new("db").breaker(Breaker::consecutive(2).open_for(Duration::from_secs(30)));
//! const BOOT: Policy = Policy::constant(Duration::from_millis(1)).max_attempts(5);
//!
//! let err = net::connect_blocking(BOOT.on(&DB), "127.0.0.1:1").unwrap_err();
//! assert_eq!((err.reason, err.attempts), (Reason::Open, 2));
//! ```

use crate::{
    Always, Error, Policy, Retrier, Setting, Silent, SystemTimer, Verdict, Watch, duration::Human, seal::Seal,
};
use std::{
    io::{self, ErrorKind},
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    sync::{Condvar, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

/// What connects: a policy by reference, or a [`Retrier`] whose failures nobody else judges. Implemented by these; by
/// nothing else.
///
/// ```
/// use relent::{Error, Policy, Upstream, net};
/// use std::{io, net::TcpStream};
///
/// fn greet(calls: impl net::Connector) -> Result<TcpStream, Error<io::Error>> {
///     net::connect_blocking(calls, "127.0.0.1:1")
/// }
/// let (once, bank) = (Policy::immediate().max_attempts(1), Upstream::new("bank"));
/// assert!(greet(&once).is_err() && greet(once.on(&bank)).is_err());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot connect",
    note = "pass `&policy`, or what `policy.on(&upstream)`, `.notify(..)` or `.cancel(..)` make of it, without `when`"
)]
pub trait Connector {
    #[doc(hidden)]
    type Watch: Watch<io::Error>;

    #[doc(hidden)]
    type Setting: Setting;

    #[doc(hidden)]
    fn connector(self, _: Seal) -> Retrier<Always, Self::Watch, Self::Setting>;
}

impl Connector for &Policy {
    type Watch = Silent;
    type Setting = SystemTimer;

    fn connector(self, _: Seal) -> Retrier {
        self.retrier()
    }
}

impl<N: Watch<io::Error>, S: Setting> Connector for Retrier<Always, N, S> {
    type Watch = N;
    type Setting = S;

    fn connector(self, _: Seal) -> Retrier<Always, N, S> {
        self
    }
}

/// How a connector's failures are judged.
type Judged<C> = Retrier<fn(&io::Error) -> Verdict, <C as Connector>::Watch, <C as Connector>::Setting>;

fn judged<C: Connector>(connector: C) -> Judged<C> {
    connector.connector(Seal(())).when(verdict)
}

/// Connects to `host:port` on a thread; the attempt timeout bounds each attempt over all its addresses.
///
/// That holds for a name server that does not answer, too, as [`resolve`] says.
///
/// ```no_run
/// use relent::{Policy, net};
/// use std::time::Duration;
///
/// const BOOT: Policy = Policy::exponential(Duration::from_millis(100)).attempt_timeout(Duration::from_secs(2));
/// let stream = net::connect_blocking(&BOOT, "db:5432")?;
/// # Ok::<(), relent::Error<std::io::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error`] with the last attempt's error. An address that is none fails at once.
pub fn connect_blocking(connector: impl Connector, address: &str) -> Result<TcpStream, Error<io::Error>> {
    judged(connector).retry_blocking(|attempt| connect_once(address, attempt.timeout()))
}

/// One attempt to connect to `host:port`: resolves the name, and tries all addresses, a new socket each, within `limit`
/// altogether, or as long as the system takes if there is none. What all attempts of [`connect_blocking`] are made of.
///
/// ```
/// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?.to_string();
/// relent::net::connect_once(&address, Some(std::time::Duration::from_secs(5)))?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// The error of the last address tried; [`TimedOut`](ErrorKind::TimedOut) if no time was left for any.
pub fn connect_once(address: &str, limit: Option<Duration>) -> io::Result<TcpStream> {
    let begin = Instant::now();
    let addresses = resolve(address, limit)?;
    try_each(&addresses, limit.map(|limit| limit.saturating_sub(begin.elapsed())))
}

/// The addresses of `host:port`, if they are found within `limit`, or for as long as the system looks if there is none.
///
/// A name server that is silent is asked for many seconds, and the system cannot be told to stop: so a name is looked up on a thread
/// of its own, which is left to end by itself. An address is no name, and needs none. No more than 512 names are looked up at the
/// same time: who finds no place waits for one, no longer than `limit`.
///
/// ```
/// let limit = Some(std::time::Duration::from_secs(5));
/// assert_eq!(relent::net::resolve("127.0.0.1:80", limit)?, ["127.0.0.1:80".parse().unwrap()]);
/// assert!(relent::net::resolve("no port", limit).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// That of the system, also if it has no thread for the look-up; [`TimedOut`](ErrorKind::TimedOut) if it has no address in time, or
/// 512 names are being looked up and none of them is answered.
pub fn resolve(address: &str, limit: Option<Duration>) -> io::Result<Vec<SocketAddr>> {
    match (address.parse(), limit) {
        (Ok(address), _) => Ok(vec![address]),
        (Err(_), None) => Ok(address.to_socket_addrs()?.collect()),
        (Err(_), Some(limit)) => {
            let address = address.to_owned();
            within(limit, move || Ok(address.to_socket_addrs()?.collect()))
        }
    }
}

/// The most look-ups at the same time. One that nobody answers goes on long after its attempt, and names that somebody answers for
/// must not wait for those.
const AT_ONCE: usize = 512;

/// How many are under way, and that one has ended.
static UNDER_WAY: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// A place among them.
struct Place;

impl Place {
    /// One that is free before the time is over.
    fn within(limit: Duration) -> Option<Place> {
        let (count, ended) = &UNDER_WAY;
        let count = count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ended.wait_timeout_while(count, limit, |count| *count >= AT_ONCE);
        let (mut count, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then(|| {
            *count += 1;
            Place
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *UNDER_WAY.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        UNDER_WAY.1.notify_one();
    }
}

/// What comes of it, if that is in time.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let begin = Instant::now();
    let silent = || io::Error::new(ErrorKind::TimedOut, format!("no name server answers within {}", Human(limit)));
    let full = || {
        let text = format!("{AT_ONCE} names are being looked up, and none of them is answered within {}", Human(limit));
        io::Error::new(ErrorKind::TimedOut, text)
    };
    let place = Place::within(limit).ok_or_else(full)?;
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        let found = work();
        drop(place);
        sender.send(found)
    };
    thread::Builder::new().name("relent lookup".to_owned()).spawn(work)?;
    receiver.recv_timeout(limit.saturating_sub(begin.elapsed())).map_err(|_| silent())?
}

/// Tries the addresses in turn. Each may take its share of the time left, so that one that swallows packets does not
/// leave none for those behind it.
fn try_each(addresses: &[SocketAddr], limit: Option<Duration>) -> io::Result<TcpStream> {
    let begin = Instant::now();
    let mut last = None;
    for (nth, address) in addresses.iter().enumerate() {
        let untried = u32::try_from(addresses.len() - nth).unwrap_or(u32::MAX);
        let connected = match limit.map(|limit| limit.saturating_sub(begin.elapsed()) / untried) {
            None => TcpStream::connect(address),
            Some(Duration::ZERO) => break,
            Some(left) => TcpStream::connect_timeout(address, left),
        };
        match connected.and_then(|stream| of_another(stream.local_addr(), stream.peer_addr()).map(|()| stream)) {
            Ok(stream) => return Ok(stream),
            Err(err) => last = Some(err),
        }
    }
    Err(last.unwrap_or_else(|| ErrorKind::TimedOut.into()))
}

/// TCP connects to itself (a simultaneous open, RFC 9293, section 3.5) where nobody listens and the system gives the very port out to whoever
/// asks: sooner or later, on this machine, if that is one of those (`ip_local_port_range`). Nobody accepts there.
fn of_another(local: io::Result<SocketAddr>, peer: io::Result<SocketAddr>) -> io::Result<()> {
    match (local, peer) {
        (Ok(local), Ok(peer)) if local == peer => Err(ErrorKind::ConnectionRefused.into()),
        _ => Ok(()),
    }
}

/// What an error of connecting means: an address that is none and a permission that is missing are permanent, all else
/// may pass; so may a Unix socket that does not exist yet. For `when`, in calls that do more than connect.
///
/// ```
/// use relent::{Policy, Verdict, net};
/// use std::io::{self, ErrorKind};
///
/// assert_eq!(net::verdict(&ErrorKind::ConnectionRefused.into()), Verdict::Transient);
/// assert_eq!(net::verdict(&ErrorKind::PermissionDenied.into()), Verdict::Permanent);
///
/// let greeted = Policy::default().when(net::verdict).retry_blocking(|_| Ok::<_, io::Error>("hello"));
/// assert_eq!(greeted.unwrap(), "hello");
/// ```
pub fn verdict(error: &io::Error) -> Verdict {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::PermissionDenied | ErrorKind::Unsupported => Verdict::Permanent,
        _ => Verdict::Transient,
    }
}

#[cfg(all(feature = "net", not(loom)))]
pub use with_tokio::*;

#[cfg(all(feature = "net", not(loom)))]
mod with_tokio {
    use super::{Connector, judged, of_another};
    use crate::Error;
    use std::io;

    /// Connects to `host:port` on a tokio runtime (feature `net`). All addresses of the name are tried in each attempt.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the attempt that is under way and closes its socket; there is nothing else to lose.
    ///
    /// ```no_run
    /// # async fn doc() -> Result<(), relent::Error<std::io::Error>> {
    /// use relent::{Policy, net};
    /// use std::time::Duration;
    ///
    /// const BOOT: Policy = Policy::exponential(Duration::from_millis(100)).attempt_timeout(Duration::from_secs(2));
    /// let stream = net::connect(&BOOT, "db:5432").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`] with the last attempt's error. An address that is none fails at once.
    pub async fn connect(connector: impl Connector, address: &str) -> Result<tokio::net::TcpStream, Error<io::Error>> {
        let connect = async |_| {
            let stream = tokio::net::TcpStream::connect(address).await?;
            of_another(stream.local_addr(), stream.peer_addr())?;
            Ok(stream)
        };
        judged(connector).retry(connect).await
    }

    /// Connects to a Unix socket on a tokio runtime (feature `net`). A socket file that does not exist yet is waited for.
    ///
    /// ```no_run
    /// # async fn doc() -> Result<(), relent::Error<std::io::Error>> {
    /// let stream = relent::net::connect_unix(&relent::Policy::default(), "/run/app.sock").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the attempt that is under way and closes its socket; there is nothing else to lose.
    ///
    /// # Errors
    ///
    /// [`Error`] with the last attempt's error. A permission that is missing fails at once.
    #[cfg(unix)]
    pub async fn connect_unix(
        connector: impl Connector,
        path: impl AsRef<std::path::Path>,
    ) -> Result<tokio::net::UnixStream, Error<io::Error>> {
        let path = path.as_ref();
        judged(connector).retry(|_| tokio::net::UnixStream::connect(path)).await
    }
}

/// Connects to a Unix socket on a thread. A socket file that does not exist yet is waited for. The attempt timeout is not
/// kept: a Unix socket connects at once, or its server's queue is full.
///
/// ```no_run
/// let stream = relent::net::connect_unix_blocking(&relent::Policy::default(), "/run/app.sock")?;
/// # Ok::<(), relent::Error<std::io::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error`] with the last attempt's error. A permission that is missing fails at once.
#[cfg(unix)]
pub fn connect_unix_blocking(
    connector: impl Connector,
    path: impl AsRef<std::path::Path>,
) -> Result<std::os::unix::net::UnixStream, Error<io::Error>> {
    let path = path.as_ref();
    judged(connector).retry_blocking(|_| std::os::unix::net::UnixStream::connect(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// As where the system gives out the port that nobody listens on.
    #[cfg(all(feature = "net", not(loom)))]
    #[test]
    fn nobody_accepts_where_tcp_has_connected_to_itself() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let itself = socket.local_addr().unwrap();
            socket.connect(itself).await.unwrap()
        });
        let kind = of_another(stream.local_addr(), stream.peer_addr()).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::ConnectionRefused);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(of_another(stream.local_addr(), stream.peer_addr()).is_ok());
    }

    /// A listener whose queue of connections is full drops further packets, as a dead host does.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_address_that_swallows_packets_leaves_time_for_the_next() {
        let (full, good) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let (full, good) = (full.local_addr().map(|at| (full, at)).unwrap(), good.local_addr().unwrap());
        let mut queue = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&full.1, Duration::from_millis(20)) {
            queue.push(stream);
            assert!(queue.len() < 10_000, "the queue never fills");
        }
        let begin = Instant::now();
        let connected = try_each(&[full.1, good], Some(Duration::from_millis(200)));
        assert_eq!(connected.unwrap().peer_addr().unwrap(), good);
        assert!(begin.elapsed() < Duration::from_millis(190), "{:?}", begin.elapsed());
        let timed_out = try_each(&[full.1], Some(Duration::from_millis(20)));
        assert_eq!(timed_out.unwrap_err().kind(), ErrorKind::TimedOut);
    }
    /// A name server that never answers, as far as can be seen from here.
    #[test]
    fn a_lookup_that_never_ends_is_left_behind() {
        let (_open, silence) = mpsc::channel::<()>();
        let late = within(Duration::from_millis(5), move || silence.recv().map_err(io::Error::other));
        let late = late.unwrap_err();
        assert_eq!(
            (late.kind(), late.to_string().as_str()),
            (ErrorKind::TimedOut, "no name server answers within 5ms")
        );
        let long = Duration::from_secs(60);
        assert_eq!(within(long, || Ok(7)).unwrap(), 7);
        let limit = Some(long);
        let (open, silence) = mpsc::channel::<()>();
        let silence = std::sync::Arc::new(Mutex::new(silence));
        let said = (0..AT_ONCE + 8).map(|_| {
            let silence = silence.clone();
            let silent = move || silence.lock().unwrap().recv().map_err(io::Error::other);
            let error = within(Duration::ZERO, silent).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            error.to_string()
        });
        let said: Vec<String> = said.collect();
        assert_eq!(said[0], "no name server answers within 0s");
        assert_eq!(said[AT_ONCE + 7], "512 names are being looked up, and none of them is answered within 0s");
        assert!(*UNDER_WAY.0.lock().unwrap() <= AT_ONCE);
        // Those that were left behind end, and make room for whom there was none.
        drop(open);
        assert_eq!(within(long, || Ok(7)).unwrap(), 7);
        let local = resolve("localhost:80", limit).unwrap();
        assert!(local.iter().all(|at| at.ip().is_loopback() && at.port() == 80) && !local.is_empty(), "{local:?}");
        assert_eq!(resolve("localhost:80", None).unwrap(), local);
        for limit in [None, limit] {
            assert!(resolve("localhost", limit).is_err());
            let port = connect_once("127.0.0.1:99999", limit).unwrap_err();
            assert_eq!(port.kind(), ErrorKind::InvalidInput, "{port}");
        }
    }
}
