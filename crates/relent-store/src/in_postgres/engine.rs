//! The operations, each a function of the database.

use super::{
    Postgres, VERSION, fault,
    many::Completion,
    records::kept,
    rows::{Param, get, key, scope, shared, signed, unsigned},
};
use crate::{
    Abandon, About, Acquired, Begin, Booked, Claim, Delta, Engine, Error, Fence, Held, Holder, Holding, Kept, Key,
    Kind, Lease, Listed, Nonce, Owner, RecordState, Renewed, Replaced, Scope, Shared, Started, Stored, Time, Version,
    Versioned,
    engine::polled,
    gather::together,
    pace::Asked,
    race::race,
    rules::{self, REMEMBERED},
    time::millis,
    tls::Checked,
};
use std::{pin::pin, time::Duration};
use tokio_postgres::{
    config::Host,
    types::{ToSql, Type},
};

impl Postgres {
    async fn setting(&self, name: &str) -> Result<String, Error> {
        let row = self.row("SELECT current_setting($1)", &[(&name, Type::TEXT)]).await?;
        get(&row, 0)
    }

    async fn now(&self) -> Result<Time, Error> {
        unsigned(&self.row("SELECT relent_now()", &[]).await?, 0).map(Time)
    }
}

impl Engine for Postgres {
    async fn begin(&self, begin: &Begin) -> Result<Started, Error> {
        together(self, || begin.clone(), self.begin_alone(begin)).await
    }

    async fn complete(&self, claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error> {
        let alone = self.complete_alone(claim, stored, keep);
        if !Completion::is_small(stored) {
            return alone.await;
        }
        together(self, || Completion { claim: claim.clone(), stored: stored.clone(), keep }, alone).await
    }

    async fn abandon(&self, claim: &Claim, why: Abandon) -> Result<Kept, Error> {
        let forgets = why == Abandon::Forget;
        self.claimed("SELECT relent_abandon($1, $2, $3, $4)", claim, &[(&forgets, Type::BOOL)]).await
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Kept, Error> {
        let lease = signed(millis(lease));
        self.claimed("SELECT relent_extend($1, $2, $3, $4)", claim, &[(&lease, Type::INT8)]).await
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, Error> {
        let (name, owner, nonce) = (lease.name.as_bytes(), lease.owner.as_str(), &lease.nonce.0[..]);
        let ttl = signed(millis(lease.ttl));
        // A text of Postgres holds all characters but one.
        let owner = owner.replace('\0', " ");
        let sql = "SELECT answer, number, also, holder FROM relent_acquire($1, $2, $3, $4)";
        let params: [Param<'_>; 4] =
            [(&name, Type::BYTEA), (&owner, Type::TEXT), (&nonce, Type::BYTEA), (&ttl, Type::INT8)];
        let row = self.row(sql, &params).await?;
        match get(&row, 0)? {
            "acquired" => Ok(Acquired::Acquired { fence: Fence(unsigned(&row, 1)?), until: Time(unsigned(&row, 2)?) }),
            "held" => {
                let left = Duration::from_millis(unsigned(&row, 1)?);
                Ok(Acquired::Held { by: Owner::new(get(&row, 3)?), left })
            }
            _ => Err(fault::nonsense()),
        }
    }

    async fn renew(&self, holding: &Holding, ttl: Duration) -> Result<Renewed, Error> {
        let (name, fence, ttl) = (holding.name.as_bytes(), signed(holding.fence.0), signed(millis(ttl)));
        let params: [Param<'_>; 3] = [(&name, Type::BYTEA), (&fence, Type::INT8), (&ttl, Type::INT8)];
        let row = self.row("SELECT relent_renew($1, $2, $3)", &params).await?;
        let until: Option<i64> = get(&row, 0)?;
        Ok(until.map_or(Renewed::Fenced, |until| Renewed::Until(Time(u64::try_from(until).unwrap_or(0)))))
    }

    async fn release(&self, holding: &Holding) -> Result<Kept, Error> {
        let (name, fence) = (holding.name.as_bytes(), signed(holding.fence.0));
        let row = self.row("SELECT relent_release($1, $2)", &[(&name, Type::BYTEA), (&fence, Type::INT8)]).await?;
        get(&row, 0).map(kept)
    }

    async fn holder(&self, name: &Key) -> Result<Option<Holder>, Error> {
        let name = name.as_bytes();
        let sql = "SELECT owner, fence, left_ms FROM (SELECT owner, fence, relent_left(relent_now(), from_ms, until_ms)
            AS left_ms FROM relent_lease WHERE name = $1) AS held WHERE left_ms > 0";
        let Some(row) = self.rows(sql, &[(&name, Type::BYTEA)]).await?.pop() else { return Ok(None) };
        let (fence, left) = (Fence(unsigned(&row, 1)?), Duration::from_millis(unsigned(&row, 2)?));
        Ok(Some(Holder { owner: Owner::new(get(&row, 0)?), fence, left }))
    }

    async fn read(&self, key: &Key) -> Result<Versioned, Error> {
        let key = key.as_bytes();
        let sql = "SELECT version, value FROM relent_value WHERE key = $1";
        let Some(row) = self.rows(sql, &[(&key, Type::BYTEA)]).await?.pop() else { return Ok(Versioned::ABSENT) };
        let value: Option<&[u8]> = get(&row, 1)?;
        Ok(Versioned { version: Version(unsigned(&row, 0)?), value: value.map(Into::into) })
    }

    async fn replace(
        &self,
        key: &Key,
        version: Version,
        value: Option<&[u8]>,
        nonce: Nonce,
    ) -> Result<Replaced, Error> {
        let (key, version, nonce) = (key.as_bytes(), signed(version.0), &nonce.0[..]);
        let sql = "SELECT answer, number, there FROM relent_replace($1, $2, $3, $4)";
        let params: [Param<'_>; 4] =
            [(&key, Type::BYTEA), (&version, Type::INT8), (&nonce, Type::BYTEA), (&value, Type::BYTEA)];
        let row = self.row(sql, &params).await?;
        let version = Version(unsigned(&row, 1)?);
        match get(&row, 0)? {
            "replaced" => Ok(Replaced::Replaced(version)),
            "conflict" => {
                let value: Option<&[u8]> = get(&row, 2)?;
                Ok(Replaced::Conflict(Versioned { version, value: value.map(Into::into) }))
            }
            _ => Err(fault::nonsense()),
        }
    }

    async fn first_time(&self, scope: &Scope, key: &Key, keep: Duration, nonce: Nonce) -> Result<bool, Error> {
        let (scope, key, nonce, keep) = (scope.as_bytes(), key.as_bytes(), &nonce.0[..], signed(millis(keep)));
        let params: [Param<'_>; 4] =
            [(&scope, Type::BYTEA), (&key, Type::BYTEA), (&nonce, Type::BYTEA), (&keep, Type::INT8)];
        get(&self.row("SELECT relent_first_time($1, $2, $3, $4)", &params).await?, 0)
    }

    async fn merge(&self, delta: &Delta) -> Result<Shared, Error> {
        let (name, process) = (delta.upstream.as_bytes(), &delta.process.0[..]);
        let numbers =
            [delta.seq, rules::window(delta), delta.calls, delta.retries, delta.successes, delta.failures, delta.run]
                .map(signed);
        let mut params: Vec<Param<'_>> = vec![(&name, Type::BYTEA), (&process, Type::BYTEA)];
        params.extend(numbers.iter().map(|number| (number as &(dyn ToSql + Sync), Type::INT8)));
        params.extend([(&delta.is_open as &(dyn ToSql + Sync), Type::BOOL), (&delta.is_last, Type::BOOL)]);
        let asked = delta.booking.as_ref().map(Asked::of);
        let booking = asked.map(|Asked { gap, burst, ahead, permits, within, back }| {
            [gap, burst.into(), ahead, permits.into(), within, back.into()].map(signed)
        });
        let booking: [Option<i64>; 6] = booking.map_or([None; 6], |numbers| numbers.map(Some));
        params.extend(booking.iter().map(|number| (number as &(dyn ToSql + Sync), Type::INT8)));
        let reserves = [rules::reserves(delta), rules::reserved_for(delta)].map(signed);
        params.extend(reserves.iter().map(|number| (number as &(dyn ToSql + Sync), Type::INT8)));
        let sql =
            "SELECT * FROM relent_merge_and_reserve($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
            $16, $17, $18, $19)";
        let row = self.row(sql, &params).await?;
        let small = |column| u32::try_from(unsigned(&row, column)?).map_err(|_| fault::nonsense());
        let booked =
            Booked { permits: small(13)?, at_once: small(14)?, wait: Duration::from_nanos(unsigned(&row, 15)?) };
        let booked =
            asked.map_or(Some(Booked::default()), |asked| asked.granted(booked)).ok_or_else(fault::nonsense)?;
        Ok(Shared { booked, reserved: unsigned(&row, 16)?, ..shared(&row, 0)? })
    }

    async fn hold(&self, upstream: &Key, held: Option<Held>) -> Result<(), Error> {
        let (name, held) = (upstream.as_bytes(), held.map(|held| held == Held::Open));
        let sql = "INSERT INTO relent_upstream AS u VALUES ($1, 0, $2)
            ON CONFLICT (name) DO UPDATE SET held = excluded.held";
        self.rows(sql, &[(&name, Type::BYTEA), (&held, Type::BOOL)]).await.map(drop)
    }

    async fn purge(&self, most: u32) -> Result<u64, Error> {
        let (most, remembered) = (i64::from(most), signed(millis(REMEMBERED)));
        let params: [Param<'_>; 2] = [(&most, Type::INT8), (&remembered, Type::INT8)];
        unsigned(&self.row("SELECT relent_purge($1, $2)", &params).await?, 0)
    }

    async fn list(&self, kind: Kind, most: u32) -> Result<Vec<Listed>, Error> {
        let most = i64::from(most);
        let sql = match kind {
            Kind::Records => {
                "SELECT scope, key, fence, from_ms, expires, failed, coalesce(length(value), 0)::bigint,
                relent_left(relent_now(), from_ms, until_ms) FROM relent_once
                WHERE relent_left(relent_now(), from_ms, expires) > 0 OR until_ms > relent_now()
                ORDER BY scope, key LIMIT $1"
            }
            Kind::Leases => {
                "SELECT name, owner, fence, until_ms FROM relent_lease
                WHERE relent_left(relent_now(), from_ms, until_ms) > 0 ORDER BY name LIMIT $1"
            }
            Kind::Values => {
                "SELECT key, version, length(value)::bigint FROM relent_value WHERE value IS NOT NULL
                ORDER BY key LIMIT $1"
            }
            Kind::Seen => {
                "SELECT scope, key, expires FROM relent_seen WHERE expires > relent_now() ORDER BY scope, key LIMIT $1"
            }
            Kind::Upstreams => {
                "SELECT u.name, told.*, rate.* FROM relent_upstream u, relent_shared(u.name, relent_now(), 10) told,
                relent_rate(u.name, relent_now(), 10) rate ORDER BY u.name LIMIT $1"
            }
        };
        let rows = self.rows(sql, &[(&most, Type::INT8)]).await?;
        let listed = rows.iter().map(|row| match kind {
            Kind::Records => {
                let state = match get::<Option<bool>>(row, 5)? {
                    Some(true) => RecordState::Failed,
                    Some(false) => RecordState::Done,
                    None if unsigned(row, 7)? == 0 => RecordState::Unknown,
                    None => RecordState::Running,
                };
                let (fence, since) = (Fence(unsigned(row, 2)?), Time(unsigned(row, 3)?));
                let (expires, bytes_kept) = (Time(unsigned(row, 4)?), unsigned(row, 6)?);
                let scope = scope(row, 0)?;
                Ok(Listed::Record { scope, key: key(row, 1)?, state, fence, since, expires, bytes: bytes_kept })
            }
            Kind::Leases => {
                let (fence, until) = (Fence(unsigned(row, 2)?), Time(unsigned(row, 3)?));
                Ok(Listed::Lease { name: key(row, 0)?, owner: Owner::new(get(row, 1)?), fence, until })
            }
            Kind::Values => {
                let version = Version(unsigned(row, 1)?);
                Ok(Listed::Value { key: key(row, 0)?, version, bytes: unsigned(row, 2)? })
            }
            Kind::Seen => {
                let expires = Time(unsigned(row, 2)?);
                Ok(Listed::Seen { scope: scope(row, 0)?, key: key(row, 1)?, expires })
            }
            Kind::Upstreams => Ok(Listed::Upstream { name: key(row, 0)?, shared: shared(row, 1)? }),
        });
        listed.collect()
    }

    async fn about(&self) -> Result<About, Error> {
        let commits = self.setting("synchronous_commit").await?;
        let syncs = self.setting("fsync").await? == "on";
        let durability = match (syncs, commits.as_str()) {
            (false, _) => "A crash of the server's machine may destroy everything (fsync = off).",
            (true, "off") => {
                "A crash of the server takes the last moments of what was accepted (synchronous_commit = off)."
            }
            (true, "local") => {
                "What is accepted is on the server's disk, and not yet with its replicas (synchronous_commit = local)."
            }
            (true, _) => "What is accepted is on the server's disk, and with its synchronous replicas, if it has any.",
        };
        let mut about = About::new("postgres", self.setting("server_version").await?, durability, self.now().await?);
        about.schema = Some(VERSION as u32);
        if !syncs {
            about.cautions.push("Set fsync = on.".into());
        }
        if commits == "off" {
            about.cautions.push("Set synchronous_commit = on, for this user at least.".into());
        }
        let is_near = |host: &Host| match host {
            Host::Tcp(host) => host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback()),
            Host::Unix(_) => true,
        };
        if !self.inner.config.get_hosts().iter().all(is_near) {
            let caution = match self.inner.wire.checked {
                None => "What goes to the server and back is not encrypted: `?sslmode=verify-full`.",
                Some(Checked::Nothing) => "Who answers is not asked for a certificate: `?sslmode=verify-full`.",
                Some(_) => "",
            };
            about.cautions.extend(Some(caution.to_owned()).filter(|caution| !caution.is_empty()));
        }
        about.cautions.extend(self.found().await?.open.map(|schema| {
            format!(
                "Others may make functions in the schema {schema}, and ones that fit better than Postgres' own would run as this user: \
                REVOKE CREATE ON SCHEMA, or a schema of one's own; `owner=NAME` in the store's URL believes one role more."
            )
        }));
        about.cautions.push("A failover to an asynchronous replica may lose what was accepted last.".into());
        Ok(about)
    }

    async fn freed(&self, name: &Key, most: Duration) {
        race(pin!(polled(most)), pin!(self.told_of(name))).await;
    }
}
