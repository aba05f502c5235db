//! What there is in the server, by the names of its keys.

use super::{
    Redis,
    answers::{number, scope_of},
    nonsense,
    packed::{OUTLINE, Outline},
};
use crate::{Delta, Error, Key, Kind, Listed, Nonce, Shared, Time, Version};
use std::time::Duration;

impl Redis {
    /// The names of keys of one kind, at most so many.
    pub(super) async fn names(&self, kind: &str, most: u32) -> Result<Vec<String>, Error> {
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

    pub(super) async fn fields(&self, name: &str, fields: &[&str]) -> Result<Vec<Option<Vec<u8>>>, Error> {
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

    pub(super) async fn listed(&self, kind: Kind, name: &str, now: Time) -> Result<Option<Listed>, Error> {
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
                    reserves: 0,
                    every: Duration::ZERO,
                    is_last: false,
                    booking: None,
                };
                let shared = Shared { reserved: 0, ..self.told(&question, true).await? };
                Ok(Some(Listed::Upstream { name, shared }))
            }
        }
    }
}
