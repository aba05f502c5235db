//! The operations, each a script.

use super::{
    Redis, hashed, nonsense,
    packed::{self, OUTLINE, Outline, digits},
    scripts::Script,
};
use crate::{
    Abandon, About, Acquired, Begin, Booked, Claim, Delta, Engine, Error, Fence, Held, Holder, Holding, Kept, Key,
    Kind, Lease, Listed, Nonce, OnUnknown, Owner, Renewed, Replaced, Scope, Shared, SharedRate, Started, Stored, Time,
    Version, Versioned,
    engine::polled,
    pace::Asked,
    race::race,
    rules::{self, REMEMBERED},
    store::check_most,
    time::millis,
};
use futures_core::Stream;
use redis::{Cmd, ErrorKind, FromRedisValue, ParsingError, RedisError, ServerErrorKind, Value};
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    time::Duration,
};

/// What releases of a lease are told on.
const FREED: &str = "freed";

type Fields = Vec<Vec<u8>>;

fn number(field: Option<&Vec<u8>>) -> Result<u64, Error> {
    let text = field.and_then(|field| std::str::from_utf8(field).ok()).ok_or_else(nonsense)?;
    text.parse().map_err(|_| nonsense())
}

fn time(field: Option<&Vec<u8>>) -> Result<Time, Error> {
    number(field).map(Time)
}

/// Of microseconds.
fn moment(field: Option<&Vec<u8>>) -> Result<Time, Error> {
    number(field).map(|micros| Time(micros / 1000))
}

fn duration(field: Option<&Vec<u8>>) -> Result<Duration, Error> {
    number(field).map(Duration::from_millis)
}

/// None for an empty field.
fn optional(field: Option<&Vec<u8>>) -> Result<Option<u64>, Error> {
    match field {
        Some(field) if !field.is_empty() => number(Some(field)).map(Some),
        _ => Ok(None),
    }
}

fn owner(field: Option<&Vec<u8>>) -> Owner {
    Owner::new(&String::from_utf8_lossy(field.map_or(&[][..], |field| field)))
}

fn scope_of(field: Option<&Vec<u8>>) -> Result<Scope, Error> {
    Scope::kept(field.map_or(&[][..], |field| field)).map_err(|_| nonsense())
}

fn kept(answer: u64) -> Kept {
    if answer == 1 { Kept::Kept } else { Kept::Fenced }
}

/// What a script answers that claims.
enum Answer {
    /// Nothing was there, and this is the fence.
    Anew(Fence),
    Fields(Fields),
}

impl FromRedisValue for Answer {
    fn from_redis_value(value: Value) -> Result<Answer, ParsingError> {
        match value {
            Value::BulkString(_) => u64::from_redis_value(value).map(|fence| Answer::Anew(Fence(fence))),
            _ => Fields::from_redis_value(value).map(Answer::Fields),
        }
    }
}

impl Redis {
    /// Runs a script by a command that is made of it. A server that was restarted is told the script again.
    async fn run<T: FromRedisValue>(&self, script: &Script, command: &Cmd) -> Result<T, Error> {
        let mut question = self.inner.line.question().await?;
        let mut answer = question.ask(command).await;
        if answer.as_ref().is_err_and(|err: &RedisError| err.kind() == ErrorKind::Server(ServerErrorKind::NoScript)) {
            answer = match question.ask::<String>(&script.told()).await {
                Ok(_) => question.ask(command).await,
                Err(err) => Err(err),
            };
        }
        question.answered(answer)
    }

    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        let mut question = self.inner.line.question().await?;
        let answer = question.ask(command).await;
        question.answered(answer)
    }

    fn record(&self, scope: &Scope, key: &Key) -> String {
        self.named("once", Some(scope), key)
    }

    fn channel(&self, name: &Key) -> String {
        self.named(FREED, None, name)
    }

    fn upstream(&self, name: &Key) -> [String; 4] {
        let upstream = self.named("upstream", None, name);
        let (seconds, processes) = (format!("{upstream}:seconds"), format!("{upstream}:processes"));
        let permits = format!("{upstream}:permits");
        [upstream, seconds, processes, permits]
    }

    async fn told(&self, delta: &Delta, is_question: bool) -> Result<Shared, Error> {
        let keys = self.upstream(&delta.upstream);
        let mut script = self.inner.scripts.merge.on(keys.each_ref().map(String::as_str));
        script.arg(delta.upstream.as_bytes()).arg(&delta.process.0[..]).arg(delta.seq).arg(rules::window(delta));
        for count in [delta.calls, delta.retries, delta.successes, delta.failures, delta.run] {
            script.arg(count);
        }
        for flag in [delta.is_open, delta.is_last, is_question] {
            script.arg(u8::from(flag));
        }
        if let Some(Asked { gap, burst, ahead, permits, within, back }) = delta.booking.as_ref().map(Asked::of) {
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
        Ok(Shared {
            calls: field(0)?,
            retries: field(1)?,
            successes: field(2)?,
            failures: field(3)?,
            run: field(4)?,
            processes: field(5)?,
            open: field(6)?,
            open_calls: field(7)?,
            held,
            rate,
            permits: field(12)?,
            booked: Booked { permits: small(13)?, at_once: small(14)?, wait: Duration::from_nanos(field(15)?) },
            now: time(answer.get(9))?,
        })
    }

    /// The names of keys of one kind, at most so many.
    async fn names(&self, kind: &str, most: u32) -> Result<Vec<String>, Error> {
        let (pattern, mut names, mut cursor) = (format!("{}{kind}:*}}", self.inner.prefix), vec![], 0u64);
        // Two braces and a hash in hexadecimal digits stand for the star.
        let longest = pattern.len() + 66;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(500);
            let (next, found): (u64, Vec<String>) = self.ask(&scan).await?;
            if found.iter().any(|name| name.len() > longest) {
                return Err(nonsense());
            }
            names.extend(found);
            cursor = next;
            if cursor == 0 || names.len() >= most as usize {
                break;
            }
        }
        names.sort();
        names.dedup();
        names.truncate(most as usize);
        Ok(names)
    }

    async fn fields(&self, name: &str, fields: &[&str]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.ask(redis::cmd("HMGET").arg(name).arg(fields)).await
    }

    async fn length_of_value(&self, name: &str) -> Result<u64, Error> {
        self.ask(redis::cmd("HSTRLEN").arg(name).arg("value")).await
    }

    /// What there is of a record or lease, if it is there still.
    async fn outline(&self, name: &str, now: Time) -> Result<Option<Outline>, Error> {
        let script = &self.inner.scripts.outline;
        let mut command = script.on([name]);
        command.arg(OUTLINE);
        let (head, length, left): (Vec<u8>, u64, i64) = self.run(script, &command).await?;
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        Ok((!head.is_empty()).then_some(Outline { head, length, left, now }))
    }

    async fn listed(&self, kind: Kind, name: &str, now: Time) -> Result<Option<Listed>, Error> {
        let key_of = |field: &Option<Vec<u8>>| Key::new(field.as_deref().unwrap_or_default()).ok();
        match kind {
            Kind::Records => self.outline(name, now).await?.map_or(Ok(None), |outline| outline.record()),
            Kind::Leases => self.outline(name, now).await?.map_or(Ok(None), |outline| outline.lease()),
            Kind::Values => {
                let row = self.fields(name, &["key", "version"]).await?;
                let [key, version] = &row[..] else { return Err(nonsense()) };
                let Some(key) = key_of(key) else { return Ok(None) };
                let is_there: bool = self.ask(redis::cmd("HEXISTS").arg(name).arg("value")).await?;
                let bytes = self.length_of_value(name).await?;
                let version = Version(number(version.as_ref())?);
                Ok(is_there.then_some(Listed::Value { key, version, bytes }))
            }
            Kind::Seen => {
                let row = self.fields(name, &["scope", "key"]).await?;
                let [scope, key] = &row[..] else { return Err(nonsense()) };
                let Some(key) = key_of(key) else { return Ok(None) };
                let left: i64 = self.ask(redis::cmd("PTTL").arg(name)).await?;
                let expires = now.after(Duration::from_millis(u64::try_from(left).unwrap_or(0)));
                Ok(Some(Listed::Seen { scope: scope_of(scope.as_ref())?, key, expires }))
            }
            Kind::Upstreams => {
                let row = self.fields(name, &["name"]).await?;
                let Some(name) = row.first().and_then(key_of) else { return Ok(None) };
                let question = Delta {
                    upstream: name.clone(),
                    process: Nonce([0; 16]),
                    seq: 0,
                    window: Duration::from_secs(10),
                    calls: 0,
                    retries: 0,
                    successes: 0,
                    failures: 0,
                    run: 0,
                    is_open: false,
                    is_last: false,
                    booking: None,
                };
                let shared = self.told(&question, true).await?;
                Ok(Some(Listed::Upstream { name, shared }))
            }
        }
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
        let script = &self.inner.scripts.begin;
        let mut command = script.on([&self.record(&begin.scope, &begin.key)]);
        command.arg(packed::record(begin)).arg(packed::kept(begin));
        command.arg(u8::from(begin.on_unknown == OnUnknown::TakeOver));
        let answer = match self.run(script, &command).await? {
            Answer::Anew(fence) => return Ok(Started::Started { fence, unknown: None }),
            Answer::Fields(answer) => answer,
        };
        let first = answer.get(1);
        match answer.first().map(Vec::as_slice) {
            Some(b"started") => {
                let unknown = moment(answer.get(2))?;
                Ok(Started::Started { fence: Fence(number(first)?), unknown: Some(unknown).filter(|at| at.0 > 0) })
            }
            Some(b"mismatch") => Ok(Started::Mismatch),
            Some(b"replay") => {
                let value = answer.get(2).ok_or_else(nonsense)?;
                let is_failure = first.is_some_and(|state| state == b"f");
                Ok(Started::Replay(if is_failure { Stored::failure(value) } else { Stored::success(value) }))
            }
            Some(b"busy") => Ok(Started::Busy { retry_after: duration(first)? }),
            Some(b"unknown") => Ok(Started::Unknown { since: moment(first)? }),
            _ => Err(nonsense()),
        }
    }

    async fn complete(&self, claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error> {
        check_most(stored.bytes())?;
        let (script, keep) = (&self.inner.scripts.complete, millis(keep).max(1));
        let mut command = script.on([&self.record(&claim.scope, &claim.key)]);
        command.arg(&digits(claim.fence.0)[..]).arg(if stored.is_failure() { "f" } else { "s" });
        command.arg(keep).arg(&digits(keep)[..]).arg(stored.bytes());
        self.run(script, &command).await.map(kept)
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
        let script = &self.inner.scripts.acquire;
        let mut command = script.on([&self.named("lease", None, &lease.name)]);
        command.arg(packed::lease(lease)).arg(packed::remembered(lease.ttl));
        let answer = match self.run(script, &command).await? {
            Answer::Anew(fence) => {
                return Ok(Acquired::Acquired { fence, until: Time(fence.0 / 1000).after(lease.ttl) });
            }
            Answer::Fields(answer) => answer,
        };
        let (first, second) = (answer.get(1), answer.get(2));
        match answer.first().map(Vec::as_slice) {
            Some(b"acquired") => Ok(Acquired::Acquired { fence: Fence(number(first)?), until: time(second)? }),
            Some(b"held") => Ok(Acquired::Held { by: owner(first), left: duration(second)? }),
            _ => Err(nonsense()),
        }
    }

    async fn renew(&self, holding: &Holding, ttl: Duration) -> Result<Renewed, Error> {
        let script = &self.inner.scripts.renew;
        let mut command = script.on([&self.named("lease", None, &holding.name)]);
        command.arg(&digits(holding.fence.0)[..]).arg(packed::spans(ttl)).arg(packed::remembered(ttl));
        let until: Vec<u8> = self.run(script, &command).await?;
        Ok(optional(Some(&until))?.map_or(Renewed::Fenced, |until| Renewed::Until(Time(until))))
    }

    async fn release(&self, holding: &Holding) -> Result<Kept, Error> {
        let (script, hash) = (&self.inner.scripts.release, hashed(None, &holding.name));
        let mut command = script.on([&self.called("lease", &hash)]);
        command.arg(&digits(holding.fence.0)[..]).arg(self.called(FREED, &hash));
        self.run(script, &command).await.map(kept)
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
        let told = async {
            let heard = async {
                let mut heard = self.inner.line.listening().await?;
                heard.subscribe(self.channel(name)).await.ok()?;
                let mut messages = heard.into_on_message();
                poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await
            };
            // Whoever cannot listen waits.
            if heard.await.is_none() {
                std::future::pending::<()>().await;
            }
        };
        race(pin!(polled(most)), pin!(told)).await;
    }
}
