//! The engine that forgets when its process ends: for tests, and for one process.

use crate::{
    Abandon, About, Acquired, Begin, Claim, Clock, Delta, Engine, Error, ErrorKind, Fence, Held, Holder, Holding, Kept,
    Key, Kind, Lease, Listed, Nonce, Renewed, Replaced, Scope, Shared, Started, Stored, Version, Versioned,
    race::race,
    rules::{self, Change, LeaseRow, REMEMBERED, Record, SeenRow, UpstreamRows, ValueRow},
    time::Now,
};
use relent::{SystemTimer, Timer};
use std::{
    collections::BTreeMap,
    future::{Future, ready},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// How many things are kept unless it is said otherwise.
const MOST: usize = 1_000_000;

/// All state in this process. A clone is the same store.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use relent_store::{Key, Memory, Store, Versioned};
///
/// let store = Store::new(Memory::new());
/// let key = Key::new("greeting").unwrap();
/// assert_eq!(store.read(&key).await.unwrap(), Versioned::ABSENT);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Memory {
    state: Arc<Mutex<State>>,
    freed: Arc<Notify>,
    clock: Clock,
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    fence: u64,
    records: BTreeMap<(Scope, Key), Record>,
    leases: BTreeMap<Key, LeaseRow>,
    values: BTreeMap<Key, ValueRow>,
    seen: BTreeMap<(Scope, Key), SeenRow>,
    upstreams: BTreeMap<Key, UpstreamRows>,
}

impl Memory {
    /// An empty store on a clock that never leaps; tokio's, where that is paused.
    pub fn new() -> Memory {
        Memory::on(Clock::monotonic())
    }

    /// An empty store on this clock.
    ///
    /// ```
    /// use relent_store::{Clock, Memory, Time};
    /// let memory = Memory::on(Clock::manual(Time(0)));
    /// ```
    pub fn on(clock: Clock) -> Memory {
        Memory { state: Arc::default(), freed: Arc::default(), clock, most: MOST }
    }

    /// Keeps at most so many records, leases, values and keys, a million unless told: more is refused as
    /// [`ErrorKind::Full`] when what expired makes no room.
    #[must_use]
    pub fn at_most(mut self, most: usize) -> Memory {
        self.most = most;
        self
    }

    /// One operation, alone.
    fn alone<T>(&self, op: impl FnOnce(&mut State, Now) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.read();
        op(&mut state, now)
    }

    /// One operation that may need room.
    fn growing<T>(&self, op: impl FnOnce(&mut State, Now) -> T) -> Result<T, Error> {
        self.alone(|state, now| {
            if state.len() >= self.most {
                state.purge(now, usize::MAX);
                if state.len() >= self.most {
                    return Err(Error::new(
                        ErrorKind::Full,
                        format!("the store holds {} things, and no more", self.most),
                    )
                    .hint("allow more by `Memory::at_most`, or keep them for a shorter time"));
                }
            }
            Ok(op(state, now))
        })
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

fn apply<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, change: Change<V>) {
    match change {
        Change::Nothing => {}
        Change::Write(row) => {
            map.insert(key, row);
        }
        Change::Remove => {
            map.remove(&key);
        }
    }
}

fn next(fence: &mut u64) -> Result<Fence, Error> {
    *fence += 1;
    Ok(Fence(*fence))
}

impl State {
    fn len(&self) -> usize {
        self.records.len() + self.leases.len() + self.values.len() + self.seen.len()
    }

    fn purge(&mut self, now: Now, most: usize) -> u64 {
        let mut left = most;
        let mut gone = |is_old: bool| {
            let goes = is_old && left > 0;
            left -= usize::from(goes);
            goes
        };
        let is_past = |from, until| now.left(from, until).is_zero();
        self.records.retain(|_, record| !gone(record.is_expired(now)));
        self.seen.retain(|_, seen| !gone(is_past(seen.from, seen.expires)));
        self.leases.retain(|_, lease| !gone(is_past(lease.from, lease.until.after(REMEMBERED))));
        self.values.retain(|_, row| !gone(row.value.is_none() && is_past(row.written, row.written.after(REMEMBERED))));
        (most - left) as u64
    }

    fn begin(&mut self, now: Now, begin: &Begin) -> Result<Started, Error> {
        let key = (begin.scope.clone(), begin.key.clone());
        let record = self.records.get(&key).cloned();
        let (change, started) = rules::begin(record, now, begin, || next(&mut self.fence))?;
        apply(&mut self.records, key, change);
        Ok(started)
    }

    fn claimed(&mut self, claim: &Claim, op: impl FnOnce(Option<Record>) -> (Change<Record>, Kept)) -> Kept {
        let key = (claim.scope.clone(), claim.key.clone());
        let (change, kept) = op(self.records.get(&key).cloned());
        apply(&mut self.records, key, change);
        kept
    }

    fn lease<T>(&mut self, name: &Key, op: impl FnOnce(Option<LeaseRow>) -> (Change<LeaseRow>, T)) -> T {
        let (change, answer) = op(self.leases.get(name).cloned());
        apply(&mut self.leases, name.clone(), change);
        answer
    }

    fn list(&self, now: Now, kind: Kind, most: usize) -> Vec<Listed> {
        match kind {
            Kind::Records => {
                let live = self.records.iter().filter(|(_, record)| !record.is_expired(now));
                live.take(most).map(|((scope, key), record)| record.listed(scope.clone(), key.clone(), now)).collect()
            }
            Kind::Leases => {
                let held = self.leases.iter().filter(|(_, row)| rules::holder(Some((*row).clone()), now).is_some());
                held.take(most)
                    .map(|(name, row)| Listed::Lease {
                        name: name.clone(),
                        owner: row.owner.clone(),
                        fence: row.fence,
                        until: row.until,
                    })
                    .collect()
            }
            Kind::Values => {
                let there = self.values.iter().filter_map(|(key, row)| Some((key, row.version, row.value.as_ref()?)));
                there
                    .take(most)
                    .map(|(key, version, value)| Listed::Value { key: key.clone(), version, bytes: value.len() as u64 })
                    .collect()
            }
            Kind::Seen => {
                let live = self.seen.iter().filter(|(_, row)| !now.left(row.from, row.expires).is_zero());
                live.take(most)
                    .map(|((scope, key), row)| Listed::Seen {
                        scope: scope.clone(),
                        key: key.clone(),
                        expires: row.expires,
                    })
                    .collect()
            }
            Kind::Upstreams => {
                let all = self.upstreams.iter().take(most);
                all.map(|(name, rows)| Listed::Upstream { name: name.clone(), shared: rows.shared(now.time, None, 10) })
                    .collect()
            }
        }
    }
}

impl Engine for Memory {
    fn begin(&self, begin: &Begin) -> impl Future<Output = Result<Started, Error>> + Send {
        ready(self.growing(|state, now| state.begin(now, begin)).flatten())
    }

    fn complete(
        &self,
        claim: &Claim,
        stored: &Stored,
        keep: Duration,
    ) -> impl Future<Output = Result<Kept, Error>> + Send {
        ready(Ok(self.alone(|state, now| state.claimed(claim, |row| rules::complete(row, now, claim, stored, keep)))))
    }

    fn abandon(&self, claim: &Claim, why: Abandon) -> impl Future<Output = Result<Kept, Error>> + Send {
        ready(Ok(self.alone(|state, now| state.claimed(claim, |row| rules::abandon(row, now, claim, why)))))
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> impl Future<Output = Result<Kept, Error>> + Send {
        ready(Ok(self.alone(|state, now| state.claimed(claim, |row| rules::extend(row, now, claim, lease)))))
    }

    fn acquire(&self, lease: &Lease) -> impl Future<Output = Result<Acquired, Error>> + Send {
        ready(
            self.growing(|state, now| {
                let row = state.leases.get(&lease.name).cloned();
                let (change, acquired) = rules::acquire(row, now, lease, || next(&mut state.fence))?;
                apply(&mut state.leases, lease.name.clone(), change);
                Ok(acquired)
            })
            .flatten(),
        )
    }

    fn renew(&self, holding: &Holding, ttl: Duration) -> impl Future<Output = Result<Renewed, Error>> + Send {
        ready(Ok(self.alone(|state, now| state.lease(&holding.name, |row| rules::renew(row, now, holding.fence, ttl)))))
    }

    fn release(&self, holding: &Holding) -> impl Future<Output = Result<Kept, Error>> + Send {
        let kept = self.alone(|state, now| state.lease(&holding.name, |row| rules::release(row, now, holding.fence)));
        self.freed.notify_waiters();
        ready(Ok(kept))
    }

    fn holder(&self, name: &Key) -> impl Future<Output = Result<Option<Holder>, Error>> + Send {
        ready(Ok(self.alone(|state, now| rules::holder(state.leases.get(name).cloned(), now))))
    }

    fn read(&self, key: &Key) -> impl Future<Output = Result<Versioned, Error>> + Send {
        ready(Ok(self.alone(|state, _| rules::versioned(state.values.get(key).cloned()))))
    }

    fn replace(
        &self,
        key: &Key,
        version: Version,
        value: Option<&[u8]>,
        nonce: Nonce,
    ) -> impl Future<Output = Result<Replaced, Error>> + Send {
        ready(
            self.growing(|state, now| {
                let row = state.values.get(key).cloned();
                let (change, answer) = rules::replace(row, now, version, value, nonce, || next(&mut state.fence))?;
                apply(&mut state.values, key.clone(), change);
                Ok(answer)
            })
            .flatten(),
        )
    }

    fn first_time(
        &self,
        scope: &Scope,
        key: &Key,
        keep: Duration,
        nonce: Nonce,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        ready(self.growing(|state, now| {
            let name = (scope.clone(), key.clone());
            let (change, first) = rules::first_time(state.seen.get(&name).copied(), now, keep, nonce);
            apply(&mut state.seen, name, change);
            first
        }))
    }

    fn merge(&self, delta: &Delta) -> impl Future<Output = Result<Shared, Error>> + Send {
        ready(
            self.growing(|state, now| {
                state.upstreams.entry(delta.upstream.clone()).or_default().merge(now.time, delta)
            }),
        )
    }

    fn hold(&self, upstream: &Key, held: Option<Held>) -> impl Future<Output = Result<(), Error>> + Send {
        ready(self.growing(|state, _| state.upstreams.entry(upstream.clone()).or_default().held = held))
    }

    fn purge(&self, most: u32) -> impl Future<Output = Result<u64, Error>> + Send {
        ready(Ok(self.alone(|state, now| state.purge(now, most as usize))))
    }

    fn list(&self, kind: Kind, most: u32) -> impl Future<Output = Result<Vec<Listed>, Error>> + Send {
        ready(Ok(self.alone(|state, now| state.list(now, kind, most as usize))))
    }

    fn about(&self) -> impl Future<Output = Result<About, Error>> + Send {
        let durability = "Nothing outlives this process.";
        ready(Ok(About::new("memory", env!("CARGO_PKG_VERSION"), durability, self.clock.now())))
    }

    async fn freed(&self, _: &Key, most: Duration) {
        // Whether it was released or the time has passed, the waiter asks again.
        race(pin!(self.freed.notified()), pin!(SystemTimer.sleep(most))).await;
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.clock)
    }
}
