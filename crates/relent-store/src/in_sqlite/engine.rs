//! The operations, each a transaction.

use super::{
    Durability, Inner, Sqlite,
    names::Names,
    rows::{key, scope, signed, time, unsigned},
    schema,
    tx::Tx,
};
use crate::{
    Abandon, About, Acquired, Begin, Claim, Clock, Delta, Engine, Error, Fence, Held, Holder, Holding, Kept, Key, Kind,
    Lease, Listed, Nonce, Owner, Renewed, Replaced, Scope, Shared, Started, Stored, Version, Versioned,
    engine::polled,
    rules::{self, Change, LeaseRow, REMEMBERED},
};
use std::{sync::Arc, time::Duration};

impl Sqlite {
    async fn run<T: Send + 'static>(
        &self,
        op: impl Fn(&Tx<'_>, &Names) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let names = self.inner.names.clone();
        self.inner.writer.run(move |tx| op(tx, &names)).await
    }

    /// What is answered by reading alone, at once; else by the writer.
    async fn read_or_run<T: Send + 'static>(
        &self,
        op: impl Fn(&Tx<'_>, &Names) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let Inner { reader, names, clock, .. } = &*self.inner;
        match reader.read(clock, |tx| op(tx, names).map(Some)) {
            Some(answer) => Ok(answer),
            None => self.run(op).await,
        }
    }

    async fn held<T: Send + 'static>(
        &self,
        name: &Key,
        op: impl Fn(&Tx<'_>, Option<LeaseRow>) -> (Change<LeaseRow>, T) + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let name = name.clone();
        self.run(move |tx, names| {
            let (change, answer) = op(tx, tx.lease(names, &name)?);
            tx.change_lease(names, &name, change)?;
            Ok(answer)
        })
        .await
    }
}

impl Engine for Sqlite {
    async fn begin(&self, begin: &Begin) -> Result<Started, Error> {
        let Inner { reader, names, clock, .. } = &*self.inner;
        if reader.has_hope() {
            let done = reader.read(clock, |tx| {
                let record = tx.record(names, &begin.scope, &begin.key)?;
                // What would be written is not for here.
                Ok(match rules::begin(record, tx.now, begin, || Err(())) {
                    Ok((Change::Nothing, replay @ Started::Replay(_))) => Some(replay),
                    _ => None,
                })
            });
            if let Some(done) = done {
                reader.learn(true);
                return Ok(done);
            }
        }
        let begin = begin.clone();
        let started = self.run(move |tx, names| tx.begin(names, &begin)).await?;
        reader.learn(matches!(started, Started::Replay(_)));
        Ok(started)
    }

    async fn complete(&self, claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error> {
        let (claim, stored) = (claim.clone(), stored.clone());
        self.run(move |tx, names| tx.complete(names, &claim, &stored, keep)).await
    }

    async fn abandon(&self, claim: &Claim, why: Abandon) -> Result<Kept, Error> {
        let claim = claim.clone();
        self.run(move |tx, names| tx.claimed(names, &claim, |record| rules::abandon(record, tx.now, &claim, why))).await
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Kept, Error> {
        let claim = claim.clone();
        self.run(move |tx, names| tx.extend(names, &claim, lease)).await
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, Error> {
        let lease = lease.clone();
        self.run(move |tx, names| {
            let row = tx.lease(names, &lease.name)?;
            let (change, acquired) = rules::acquire(row, tx.now, &lease, || tx.next(names))?;
            tx.change_lease(names, &lease.name, change)?;
            Ok(acquired)
        })
        .await
    }

    async fn renew(&self, holding: &Holding, ttl: Duration) -> Result<Renewed, Error> {
        let fence = holding.fence;
        self.held(&holding.name, move |tx, row| rules::renew(row, tx.now, fence, ttl)).await
    }

    async fn release(&self, holding: &Holding) -> Result<Kept, Error> {
        let fence = holding.fence;
        self.held(&holding.name, move |tx, row| rules::release(row, tx.now, fence)).await
    }

    async fn holder(&self, name: &Key) -> Result<Option<Holder>, Error> {
        let name = name.clone();
        self.read_or_run(move |tx, names| Ok(rules::holder(tx.lease(names, &name)?, tx.now))).await
    }

    async fn read(&self, key: &Key) -> Result<Versioned, Error> {
        let key = key.clone();
        self.read_or_run(move |tx, names| Ok(rules::versioned(tx.value(names, &key)?))).await
    }

    async fn replace(
        &self,
        key: &Key,
        version: Version,
        value: Option<&[u8]>,
        nonce: Nonce,
    ) -> Result<Replaced, Error> {
        let (key, value): (_, Option<Arc<[u8]>>) = (key.clone(), value.map(Into::into));
        self.run(move |tx, names| {
            let row = tx.value(names, &key)?;
            let (change, replaced) = rules::replace(row, tx.now, version, value.as_deref(), nonce, || tx.next(names))?;
            tx.change_value(names, &key, change)?;
            Ok(replaced)
        })
        .await
    }

    async fn first_time(&self, scope: &Scope, key: &Key, keep: Duration, nonce: Nonce) -> Result<bool, Error> {
        let (scope, key) = (scope.clone(), key.clone());
        self.run(move |tx, names| {
            let (change, first) = rules::first_time(tx.seen(names, &scope, &key)?, tx.now, keep, nonce);
            tx.change_seen(names, &scope, &key, change)?;
            Ok(first)
        })
        .await
    }

    async fn merge(&self, delta: &Delta) -> Result<Shared, Error> {
        let delta = delta.clone();
        self.run(move |tx, names| tx.merge(names, &delta)).await
    }

    async fn hold(&self, upstream: &Key, held: Option<Held>) -> Result<(), Error> {
        let (upstream, held) = (upstream.clone(), held.map(|held| held == Held::Open));
        self.run(move |tx, names| tx.write(&names.put_held, (upstream.as_bytes(), held)).map(drop)).await
    }

    async fn purge(&self, most: u32) -> Result<u64, Error> {
        self.run(move |tx, names| tx.purge(names, most)).await
    }

    async fn list(&self, kind: Kind, most: u32) -> Result<Vec<Listed>, Error> {
        self.run(move |tx, names| tx.list(names, kind, most)).await
    }

    async fn about(&self) -> Result<About, Error> {
        let durability = match self.inner.durability {
            Durability::Machine => {
                "What is accepted is on the disk, and outlives a power loss (WAL, synchronous = FULL)."
            }
            Durability::Process => {
                "What is accepted outlives the process; a power loss takes the last moments (WAL, synchronous = NORMAL)."
            }
        };
        let version = rusqlite::version();
        let mut about = About::new("sqlite", version, durability, self.inner.clock.now());
        about.schema = Some(schema::VERSION);
        about.cautions.push("One machine only: on a network file system, locks are not to be relied on.".into());
        about.cautions.extend(self.inner.cautions.iter().copied().map(str::to_owned));
        Ok(about)
    }

    async fn freed(&self, _: &Key, most: Duration) {
        polled(most).await;
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.inner.clock)
    }
}

impl Tx<'_> {
    fn purge(&self, names: &Names, most: u32) -> Result<u64, Error> {
        let now = self.now.surely_past();
        let past = signed(now.0);
        let remembered = signed(now.0.saturating_sub(REMEMBERED.as_millis() as u64));
        let mut gone = 0;
        let old = self.all(&names.old_once, (past, most), |row| Ok((scope(row, 0)?, key(row, 1)?)))?;
        for (scope, key) in old {
            // The clock may have leapt: whether it has expired is not for the index to say.
            if self.record(names, &scope, &key)?.is_some_and(|record| record.is_expired(self.now)) {
                self.change_record(names, &scope, &key, Change::Remove)?;
                gone += 1;
            }
        }
        for (sql, before) in [(&names.old_seen, past), (&names.old_leases, remembered), (&names.old_values, remembered)]
        {
            let left = u64::from(most).saturating_sub(gone);
            gone += self.write(sql, (before, signed(left)))? as u64;
        }
        Ok(gone)
    }

    fn list(&self, names: &Names, kind: Kind, most: u32) -> Result<Vec<Listed>, Error> {
        let now = signed(self.now.time.0);
        match kind {
            Kind::Records => {
                let keys = self.all(&names.list_once, [most], |row| Ok((scope(row, 0)?, key(row, 1)?)))?;
                let mut listed = Vec::new();
                for (scope, key) in keys {
                    let record = self.record(names, &scope, &key)?;
                    let Some(record) = record.filter(|record| !record.is_expired(self.now)) else { continue };
                    listed.push(record.listed(scope, key, self.now));
                }
                Ok(listed)
            }
            Kind::Leases => self.all(&names.list_leases, (now, most), |row| {
                let (name, owner) = (key(row, 0)?, Owner::new(row.get_ref(1)?.as_str()?));
                Ok(Listed::Lease { name, owner, fence: Fence(unsigned(row, 2)?), until: time(row, 3)? })
            }),
            Kind::Values => self.all(&names.list_values, [most], |row| {
                Ok(Listed::Value { key: key(row, 0)?, version: Version(unsigned(row, 1)?), bytes: unsigned(row, 2)? })
            }),
            Kind::Seen => self.all(&names.list_seen, (now, most), |row| {
                Ok(Listed::Seen { scope: scope(row, 0)?, key: key(row, 1)?, expires: time(row, 2)? })
            }),
            Kind::Upstreams => {
                let upstreams = self.all(&names.list_upstreams, [most], |row| key(row, 0))?;
                let listed = upstreams.into_iter().map(|name| {
                    let shared = self.shared(names, &name, None, 10)?;
                    Ok(Listed::Upstream { name, shared })
                });
                listed.collect()
            }
        }
    }
}
