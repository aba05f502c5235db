//! What is asked of every engine.

use crate::{MINUTE, next};
use relent_store::{
    Acquired, Begin, Claim, Engine, Fingerprint, Holding, Key, Lease, Nonce, OnUnknown, Owner, Scope, Started, Stored,
};

async fn claimed<E: Engine>(engine: &E) -> Claim {
    let (scope, key) = (Scope::new("bench").unwrap(), Key::new(next().to_string()).unwrap());
    let (fingerprint, nonce, on_unknown) = (Fingerprint::NONE, Nonce::random(), OnUnknown::Tell);
    let begin = Begin { scope, key, fingerprint, nonce, lease: MINUTE, keep: MINUTE, on_unknown };
    let Started::Started { fence, .. } = engine.begin(&begin).await.unwrap() else { panic!("a key of its own") };
    Claim { scope: begin.scope, key: begin.key, fence }
}

/// Begun and completed.
pub(crate) async fn pair<E: Engine>(engine: &E) {
    let claim = claimed(engine).await;
    let _ = engine.complete(&claim, &Stored::success("done"), MINUTE).await.unwrap();
}

/// Begun, extended and completed: three commits.
pub(crate) async fn cycle<E: Engine>(engine: &E) {
    let claim = claimed(engine).await;
    let _ = engine.extend(&claim, MINUTE).await.unwrap();
    let _ = engine.complete(&claim, &Stored::success("done"), MINUTE).await.unwrap();
}

pub(crate) async fn leased<E: Engine>(engine: &E) {
    let name = Key::new(next().to_string()).unwrap();
    let lease = Lease { name: name.clone(), owner: Owner::new("bench"), nonce: Nonce::random(), ttl: MINUTE };
    let Acquired::Acquired { fence, .. } = engine.acquire(&lease).await.unwrap() else { panic!("a name of its own") };
    let _ = engine.release(&Holding { name, fence }).await.unwrap();
}
