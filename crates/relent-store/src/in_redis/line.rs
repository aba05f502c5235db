//! The connection to the server, and when it is given up.
//!
//! A network that swallows everything tells nobody, and the client would wait on its connection for as long as the system keeps
//! it open. So where a question had no answer, and nothing was heard for a while, the next question goes over another; as it does
//! where the connection broke. It is made by a task of its own, for all who wait: whoever asks first may be left lying by his.

use super::{
    fault, nonsense,
    wire::{self, Seen},
};
use crate::{Error, ErrorKind, tls::Tls};
use redis::{
    Cmd, ConnectionAddr, ConnectionInfo, FromRedisValue, RedisConnectionInfo, RedisError, RedisResult,
    aio::{MultiplexedConnection, PubSub},
};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::AbortHandle};

/// How long nothing is heard on a connection that is not given up, though somebody asked.
const SILENCE: Duration = Duration::from_millis(250);

/// The connection that questions go over now, many at a time. It is made when one is asked.
pub(super) struct Line {
    server: Arc<Server>,
    now: Arc<Mutex<Now>>,
}

/// Where the server is, and who we are.
struct Server {
    address: ConnectionAddr,
    login: RedisConnectionInfo,
    tls: Option<Tls>,
}

#[derive(Default)]
struct Now {
    connected: Option<Connected>,
    making: Weak<Making>,
}

#[derive(Clone)]
struct Connected {
    connection: MultiplexedConnection,
    watch: Arc<Watch>,
}

/// A connection that is made. That ends with the last who waits for it.
struct Making {
    made: watch::Receiver<Option<Result<Connected, Error>>>,
    task: AbortHandle,
}

impl Drop for Making {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Making {
    fn is_over(&self) -> bool {
        self.made.borrow().is_some() || self.made.has_changed().is_err()
    }
}

/// What is known of a connection. What reads from it ends with the last who knows.
struct Watch {
    reader: AbortHandle,
    made: Instant,
    /// Since when somebody waits, and nobody has had an answer: nanoseconds since it was made, at least 1; 0 is nobody.
    silent: AtomicU64,
    seen: Arc<Seen>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Watch {
    fn age(&self) -> u64 {
        u64::try_from(self.made.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    fn asked(&self) {
        if self.silent.load(Ordering::Relaxed) == 0 {
            // Who was quicker waits longer.
            let _ = self.silent.compare_exchange(0, self.age(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn is_silent(&self) -> bool {
        let since = self.silent.load(Ordering::Relaxed);
        since > 0 && Duration::from_nanos(self.age().saturating_sub(since)) >= SILENCE
    }
}

impl Line {
    pub(super) fn new(server: &ConnectionInfo, tls: Option<Tls>) -> Line {
        let (address, login) = (server.addr().clone(), server.redis_settings().clone());
        Line { server: Arc::new(Server { address, login, tls }), now: Arc::default() }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to ask over.
    pub(super) async fn question(&self) -> Result<Question<'_>, Error> {
        let connected = self.now().connected.clone();
        let Connected { connection, watch } = match connected {
            Some(connected) => connected,
            None => self.connected().await?,
        };
        watch.asked();
        Ok(Question { connection, watch, line: self })
    }

    async fn connected(&self) -> Result<Connected, Error> {
        let making = {
            let mut now = self.now();
            if let Some(connected) = &now.connected {
                return Ok(connected.clone());
            }
            let making = now.making.upgrade();
            match making.filter(|making| !making.is_over()) {
                Some(making) => making,
                None => {
                    let making = Arc::new(self.make());
                    now.making = Arc::downgrade(&making);
                    making
                }
            }
        };
        let mut made = making.made.clone();
        let made = made.wait_for(Option::is_some).await.ok().and_then(|made| made.clone());
        made.unwrap_or_else(|| Err(Error::new(ErrorKind::Unavailable, "the runtime that was to connect has ended")))
    }

    fn make(&self) -> Making {
        let (tells, made) = watch::channel(None);
        let (server, now) = (self.server.clone(), self.now.clone());
        let task = tokio::spawn(async move {
            let connected = server.connected().await;
            if let Ok(connected) = &connected {
                let older = now.lock().unwrap_or_else(PoisonError::into_inner).connected.replace(connected.clone());
                drop(older);
            }
            tells.send_replace(Some(connected));
        });
        Making { made, task: task.abort_handle() }
    }

    /// The next question goes over another connection, unless one has taken the place of this one.
    fn give_up(&self, watch: &Arc<Watch>) {
        let mut now = self.now();
        if now.connected.as_ref().is_some_and(|now| Arc::ptr_eq(&now.watch, watch)) {
            now.connected = None;
        }
    }

    /// A connection of its own that listens, and where the messages that were taken are counted.
    pub(super) async fn listening(&self) -> Option<(PubSub, Arc<Seen>)> {
        let Server { address, login, tls } = &*self.server;
        wire::listening(address, login, tls.as_ref()).await
    }
}

impl Server {
    async fn connected(&self) -> Result<Connected, Error> {
        let seen = Arc::default();
        let (connection, reader) = wire::asking(&self.address, &self.login, self.tls.as_ref(), &seen).await?;
        let (reader, made) = (tokio::spawn(reader).abort_handle(), Instant::now());
        let watch = Arc::new(Watch { reader, made, silent: AtomicU64::new(0), seen });
        Ok(Connected { connection, watch })
    }
}

/// A question under way. One that is dropped had no answer.
pub(super) struct Question<'a> {
    connection: MultiplexedConnection,
    watch: Arc<Watch>,
    line: &'a Line,
}

impl Question<'_> {
    /// Asks. As often as is needed.
    pub(super) async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        self.watch.seen.asked.fetch_add(1, Ordering::Relaxed);
        command.query_async(&mut self.connection).await
    }

    /// What the answer means.
    pub(super) fn answered<T>(self, answer: RedisResult<T>) -> Result<T, Error> {
        let is_nonsense = self.watch.seen.is_nonsense.load(Ordering::Relaxed);
        if !answer.as_ref().is_err_and(RedisError::is_timeout) {
            self.watch.silent.store(0, Ordering::Relaxed);
            let is_broken = |err: &RedisError| err.is_io_error() || err.kind() == redis::ErrorKind::Parse;
            if is_nonsense || answer.as_ref().is_err_and(is_broken) {
                self.line.give_up(&self.watch);
            }
        }
        answer.map_err(|err| if is_nonsense { nonsense() } else { fault::of(&err) })
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.watch.is_silent() {
            self.line.give_up(&self.watch);
        }
    }
}
