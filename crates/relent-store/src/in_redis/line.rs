//! The connection to the server, and when it is given up.
//!
//! A network that swallows everything tells nobody, and the client would wait on its connection for as long as the system keeps
//! it open. So where a question had no answer, and nothing was heard for a while, the next question goes over another.

use redis::{
    Client, Cmd, Pipeline, RedisFuture, RedisResult, Value,
    aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig},
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long nothing is heard on a connection that is not given up, though somebody asked.
const SILENCE: Duration = Duration::from_millis(250);

/// The connection that questions go over now.
pub(super) struct Line {
    client: Client,
    config: ConnectionManagerConfig,
    now: Mutex<Arc<Connected>>,
}

struct Connected {
    /// Many operations at a time go over it; it connects again when it breaks.
    manager: ConnectionManager,
    made: Instant,
    /// Since when somebody waits, and nobody has had an answer: nanoseconds since it was made, at least 1; 0 is nobody.
    silent: AtomicU64,
}

impl Connected {
    fn new(manager: ConnectionManager) -> Arc<Connected> {
        Arc::new(Connected { manager, made: Instant::now(), silent: AtomicU64::new(0) })
    }

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
    pub(super) async fn connect(client: Client, config: ConnectionManagerConfig) -> RedisResult<Line> {
        let manager = ConnectionManager::new_with_config(client.clone(), config.clone()).await?;
        Ok(Line { client, config, now: Mutex::new(Connected::new(manager)) })
    }

    /// What to ask over.
    pub(super) fn connection(self: &Arc<Line>) -> Connection {
        let connected = self.now.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Connection { manager: connected.manager.clone(), connected, line: self.clone() }
    }

    /// Another takes the place of this one, unless one has. It connects when it is first asked.
    fn give_up(&self, connected: &Arc<Connected>) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&now, connected)
            && let Ok(next) = ConnectionManager::new_lazy_with_config(self.client.clone(), self.config.clone())
        {
            *now = Connected::new(next);
        }
    }
}

/// A connection that notices when nothing is heard.
pub(super) struct Connection {
    manager: ConnectionManager,
    connected: Arc<Connected>,
    line: Arc<Line>,
}

/// A question under way. One that is dropped had no answer.
struct Asked<'a> {
    connected: &'a Arc<Connected>,
    line: &'a Line,
}

impl Asked<'_> {
    fn answered<T>(&self, answer: RedisResult<T>) -> RedisResult<T> {
        // What broke says so, and is connected again.
        if !answer.as_ref().is_err_and(redis::RedisError::is_timeout) {
            self.connected.silent.store(0, Ordering::Relaxed);
        }
        answer
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.connected.is_silent() {
            self.line.give_up(self.connected);
        }
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let Connection { manager, connected, line } = self;
        Box::pin(async move {
            connected.asked();
            let asked = Asked { connected, line };
            let answer = manager.req_packed_command(cmd).await;
            asked.answered(answer)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        cmd: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let Connection { manager, connected, line } = self;
        Box::pin(async move {
            connected.asked();
            let asked = Asked { connected, line };
            let answer = manager.req_packed_commands(cmd, offset, count).await;
            asked.answered(answer)
        })
    }

    fn get_db(&self) -> i64 {
        self.manager.get_db()
    }
}
