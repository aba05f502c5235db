//! The operations that can also be asked together with others, each asked alone.

use super::{
    FREED, Redis,
    answers::{acquired, kept, started},
    hashed,
    many::kind,
    packed::{self, digits},
};
use crate::{Acquired, Begin, Claim, Error, Holding, Kept, Lease, OnUnknown, Started, Stored};

impl Redis {
    pub(super) async fn begin_alone(&self, begin: &Begin) -> Result<Started, Error> {
        let script = &self.inner.scripts.begin;
        let mut command = script.on([&self.record(&begin.scope, &begin.key)]);
        command.arg(packed::record(begin)).arg(packed::kept(begin));
        command.arg(u8::from(begin.on_unknown == OnUnknown::TakeOver));
        started(self.run(script, &command).await?)
    }

    pub(super) async fn complete_alone(&self, claim: &Claim, stored: &Stored, keep: u64) -> Result<Kept, Error> {
        let script = &self.inner.scripts.complete;
        let mut command = script.on([&self.record(&claim.scope, &claim.key)]);
        command.arg(&digits(claim.fence.0)[..]).arg(kind(stored));
        command.arg(keep).arg(&digits(keep)[..]).arg(stored.bytes());
        self.run(script, &command).await.map(kept)
    }

    pub(super) async fn acquire_alone(&self, lease: &Lease) -> Result<Acquired, Error> {
        let script = &self.inner.scripts.acquire;
        let mut command = script.on([&self.named("lease", None, &lease.name)]);
        command.arg(packed::lease(lease)).arg(packed::remembered(lease.ttl));
        acquired(self.run(script, &command).await?, lease.ttl)
    }

    pub(super) async fn release_alone(&self, holding: &Holding) -> Result<Kept, Error> {
        let (script, hash) = (&self.inner.scripts.release, hashed(None, &holding.name));
        let mut command = script.on([&self.called("lease", &hash)]);
        command.arg(&digits(holding.fence.0)[..]).arg(self.called(FREED, &hash));
        self.run(script, &command).await.map(kept)
    }
}
