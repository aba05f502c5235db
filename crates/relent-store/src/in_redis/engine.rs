//! The operations, each a script.

use super::{
    FREED, Redis,
    answers::{Fields, duration, kept, number, optional, owner, time},
    hashed,
    line::Question,
    many::{self, Acquiring, Beginning, Completing, Releasing},
    nonsense,
    packed::{self, digits},
    scripts::Script,
};
use crate::{
    Abandon, About, Acquired, Begin, Booked, Claim, Delta, Engine, Error, Fence, Held, Holder, Holding, Kept, Key,
    Kind, Lease, Listed, Nonce, OnUnknown, Renewed, Replaced, Scope, Shared, SharedRate, Started, Stored, Time,
    Version, Versioned,
    engine::polled,
    gather::together,
    pace::Asked,
    race::race,
    rules::{self, REMEMBERED},
    store::check_most,
    time::millis,
};
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind};
use std::{pin::pin, time::Duration};

impl Redis {
    /// Runs a script by a command that is made of it.
    pub(super) async fn run<T: FromRedisValue>(&self, script: &Script, command: &Cmd) -> Result<T, Error> {
        let (question, answer) = self.asked(script, command).await?;
        question.answered(answer)
    }

    /// A script that was run, and what came back. A server that was restarted is told the script again.
    pub(super) async fn asked<T: FromRedisValue>(
        &self,
        script: &Script,
        command: &Cmd,
    ) -> Result<(Question<'_>, RedisResult<T>), Error> {
        let mut question = self.inner.line.question().await?;
        let mut answer = question.ask(command).await;
        if answer.as_ref().is_err_and(|err: &RedisError| err.kind() == ErrorKind::Server(ServerErrorKind::NoScript)) {
            answer = match question.ask::<String>(&script.told()).await {
                Ok(_) => question.ask(command).await,
                Err(err) => Err(err),
            };
        }
        Ok((question, answer))
    }

    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        let mut question = self.inner.line.question().await?;
        let answer = question.ask(command).await;
        question.answered(answer)
    }

    pub(super) fn record(&self, scope: &Scope, key: &Key) -> String {
        self.named("once", Some(scope), key)
    }

    fn upstream(&self, name: &Key) -> [String; 4] {
        let upstream = self.named("upstream", None, name);
        let (seconds, processes) = (format!("{upstream}:seconds"), format!("{upstream}:processes"));
        let permits = format!("{upstream}:permits");
        [upstream, seconds, processes, permits]
    }

    pub(super) async fn told(&self, delta: &Delta, is_question: bool) -> Result<Shared, Error> {
        let keys = self.upstream(&delta.upstream);
        let mut script = self.inner.scripts.merge.on(keys.each_ref().map(String::as_str));
        script.arg(delta.upstream.as_bytes()).arg(&delta.process.0[..]).arg(delta.seq).arg(rules::window(delta));
        for count in [delta.calls, delta.retries, delta.successes, delta.failures, delta.run] {
            script.arg(count);
        }
        for flag in [delta.is_open, delta.is_last, is_question] {
            script.arg(u8::from(flag));
        }
        script.arg(rules::reserves(delta)).arg(rules::reserved_for(delta));
        let asked = delta.booking.as_ref().map(Asked::of);
        if let Some(Asked { gap, burst, ahead, permits, within, back }) = asked {
            script.arg(gap).arg(burst).arg(ahead).arg(permits).arg(within).arg(back);
        }
        let answer: Fields = self.run(&self.inner.scripts.merge, &script).await?;
        let field = |nth: usize| number(answer.get(nth));
        let held = match answer.get(8).map(Vec::as_slice) {
            Some(b"open") => Some(Held::Open),
            Some(b"closed") => Some(Held::Closed),
            _ => None,
        };
        let small = |nth: usize| field(nth).and_then(|number| u32::try_from(number).map_err(|_| nonsense()));
        let rate = match optional(answer.get(10))? {
            Some(gap) => Some(SharedRate { gap: Duration::from_nanos(gap), burst: small(11)? }),
            None => None,
        };
        let booked = Booked { permits: small(13)?, at_once: small(14)?, wait: Duration::from_nanos(field(15)?) };
        let booked = asked.map_or(Some(Booked::default()), |asked| asked.granted(booked)).ok_or_else(nonsense)?;
        Ok(Shared {
            calls: field(0)?,
            retries: field(1)?,
            successes: field(2)?,
            failures: field(3)?,
            run: field(4)?,
            processes: field(5)?,
            open: field(6)?,
            open_calls: field(7)?,
            reserved: field(16)?,
            held,
            rate,
            permits: field(12)?,
            booked,
            now: time(answer.get(9))?,
        })
    }

    pub(super) async fn now(&self) -> Result<Time, Error> {
        let (seconds, micros): (u64, u64) = self.ask(&redis::cmd("TIME")).await?;
        Ok(Time(seconds.saturating_mul(1000).saturating_add(micros / 1000)))
    }

    /// A setting of the server; `None` where we may not ask.
    async fn setting(&self, name: &str) -> Option<String> {
        let answer: Result<Vec<String>, Error> = self.ask(redis::cmd("CONFIG").arg("GET").arg(name)).await;
        answer.ok()?.into_iter().nth(1)
    }
}

impl Engine for Redis {
    async fn begin(&self, begin: &Begin) -> Result<Started, Error> {
        let question = || Beginning {
            name: self.record(&begin.scope, &begin.key),
            packed: packed::record(begin),
            keep: packed::kept(begin),
            takes_over: begin.on_unknown == OnUnknown::TakeOver,
        };
        together(self, question, self.begin_alone(begin)).await
    }

    async fn complete(&self, claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error> {
        check_most(stored.bytes())?;
        let keep = millis(keep).max(1);
        let alone = self.complete_alone(claim, stored, keep);
        if !many::is_small(stored) {
            return alone.await;
        }
        let name = || self.record(&claim.scope, &claim.key);
        together(self, || Completing { name: name(), fence: claim.fence, stored: stored.clone(), keep }, alone).await
    }

    async fn abandon(&self, claim: &Claim, why: Abandon) -> Result<Kept, Error> {
        let script = &self.inner.scripts.abandon;
        let mut command = script.on([&self.record(&claim.scope, &claim.key)]);
        command.arg(&digits(claim.fence.0)[..]).arg(u8::from(why == Abandon::Forget)).arg(millis(REMEMBERED));
        self.run(script, &command).await.map(kept)
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Kept, Error> {
        let script = &self.inner.scripts.extend;
        let mut command = script.on([&self.record(&claim.scope, &claim.key)]);
        command.arg(&digits(claim.fence.0)[..]).arg(millis(lease).max(1));
        self.run(script, &command).await.map(kept)
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, Error> {
        let question = || Acquiring {
            name: self.named("lease", None, &lease.name),
            packed: packed::lease(lease),
            keep: packed::remembered(lease.ttl),
            ttl: lease.ttl,
        };
        together(self, question, self.acquire_alone(lease)).await
    }

    async fn renew(&self, holding: &Holding, ttl: Duration) -> Result<Renewed, Error> {
        let script = &self.inner.scripts.renew;
        let mut command = script.on([&self.named("lease", None, &holding.name)]);
        command.arg(&digits(holding.fence.0)[..]).arg(packed::spans(ttl)).arg(packed::remembered(ttl));
        let until: Vec<u8> = self.run(script, &command).await?;
        Ok(optional(Some(&until))?.map_or(Renewed::Fenced, |until| Renewed::Until(Time(until))))
    }

    async fn release(&self, holding: &Holding) -> Result<Kept, Error> {
        let question = || {
            let hash = hashed(None, &holding.name);
            let (name, channel) = (self.called("lease", &hash), self.called(FREED, &hash));
            Releasing { name, fence: holding.fence, channel }
        };
        together(self, question, self.release_alone(holding)).await
    }

    async fn holder(&self, name: &Key) -> Result<Option<Holder>, Error> {
        let script = &self.inner.scripts.holder;
        let answer: Fields = self.run(script, &script.on([&self.named("lease", None, name)])).await?;
        if answer.is_empty() {
            return Ok(None);
        }
        let (fence, left) = (Fence(number(answer.get(1))?), duration(answer.get(2))?);
        Ok(Some(Holder { owner: owner(answer.first()), fence, left }))
    }

    async fn read(&self, key: &Key) -> Result<Versioned, Error> {
        let row = self.fields(&self.named("value", None, key), &["version", "value"]).await?;
        let [version, value] = &row[..] else { return Err(nonsense()) };
        let version = Version(optional(version.as_ref())?.unwrap_or(0));
        Ok(Versioned { version, value: value.as_deref().map(Into::into) })
    }

    async fn replace(
        &self,
        key: &Key,
        version: Version,
        value: Option<&[u8]>,
        nonce: Nonce,
    ) -> Result<Replaced, Error> {
        check_most(value.unwrap_or_default())?;
        let mut script = self.inner.scripts.replace.on([&self.named("value", None, key)]);
        script.arg(version.0).arg(&nonce.0[..]).arg(u8::from(value.is_some())).arg(value.unwrap_or_default());
        script.arg(key.as_bytes()).arg(millis(REMEMBERED));
        let answer: Fields = self.run(&self.inner.scripts.replace, &script).await?;
        let version = Version(number(answer.get(1))?);
        match answer.first().map(Vec::as_slice) {
            Some(b"replaced") => Ok(Replaced::Replaced(version)),
            Some(b"conflict") => {
                let is_there = answer.get(2).is_some_and(|there| there == b"1");
                let value = answer.get(3).filter(|_| is_there).map(|value| value.as_slice().into());
                Ok(Replaced::Conflict(Versioned { version, value }))
            }
            _ => Err(nonsense()),
        }
    }

    async fn first_time(&self, scope: &Scope, key: &Key, keep: Duration, nonce: Nonce) -> Result<bool, Error> {
        let mut script = self.inner.scripts.first_time.on([&self.named("seen", Some(scope), key)]);
        script.arg(&nonce.0[..]).arg(millis(keep)).arg(scope.as_bytes()).arg(key.as_bytes());
        self.run::<u64>(&self.inner.scripts.first_time, &script).await.map(|first| first == 1)
    }

    async fn merge(&self, delta: &Delta) -> Result<Shared, Error> {
        self.told(delta, false).await
    }

    async fn hold(&self, upstream: &Key, held: Option<Held>) -> Result<(), Error> {
        let [name, ..] = self.upstream(upstream);
        let held = match held {
            Some(Held::Open) => "open",
            Some(Held::Closed) => "closed",
            None => "",
        };
        let mut script = self.inner.scripts.hold.on([&name]);
        script.arg(upstream.as_bytes()).arg(held);
        self.run::<u64>(&self.inner.scripts.hold, &script).await.map(drop)
    }

    /// The server removes what expires by itself.
    async fn purge(&self, _: u32) -> Result<u64, Error> {
        self.now().await.map(|_| 0)
    }

    async fn list(&self, kind: Kind, most: u32) -> Result<Vec<Listed>, Error> {
        let name = match kind {
            Kind::Records => "once",
            Kind::Leases => "lease",
            Kind::Values => "value",
            Kind::Seen => "seen",
            Kind::Upstreams => "upstream",
        };
        let now = self.now().await?;
        let mut listed = vec![];
        for name in self.names(name, most).await? {
            // What expired between the two questions is not there.
            listed.extend(self.listed(kind, &name, now).await?);
        }
        Ok(listed)
    }

    async fn about(&self) -> Result<About, Error> {
        let info: String = self.ask(&redis::cmd("INFO")).await?;
        let said = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_default().trim()
        };
        let (appends, fsync) = (said("aof_enabled") == "1", self.setting("appendfsync").await);
        let durability = match (appends, fsync.as_deref()) {
            (true, Some("always")) => "What is accepted is on the server's disk (append-only file, fsync always).",
            (true, Some("everysec")) => {
                "A crash of the server's machine takes up to a second or two of what was accepted (append-only file, fsync every second)."
            }
            (true, Some(_)) => {
                "A crash of the server's machine takes what its system had not written yet (append-only file, no fsync)."
            }
            (true, None) => "The server has an append-only file, and does not say how often it is synced.",
            (false, _) => "A crash of the server takes all since its last snapshot: it has no append-only file.",
        };
        let mut about = About::new("redis", said("redis_version"), durability, self.now().await?);
        if !appends {
            about.cautions.push("Without `appendonly yes` what was accepted is forgotten when the server ends.".into());
        }
        match self.setting("maxmemory-policy").await.as_deref() {
            Some("noeviction") => {}
            None => about.cautions.push("The server does not say whether it evicts keys (maxmemory-policy).".into()),
            Some(policy) => {
                about.cautions.push(format!("Keys may be evicted (maxmemory-policy {policy}): use noeviction."))
            }
        }
        about.cautions.push(
            "A failover to a replica may lose what was accepted last, and accept the same key again: replication is asynchronous."
                .into(),
        );
        Ok(about)
    }

    async fn freed(&self, name: &Key, most: Duration) {
        race(pin!(polled(most)), pin!(self.told_of(name))).await;
    }
}
