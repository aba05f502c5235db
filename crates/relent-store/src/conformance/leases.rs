//! Rules of leases.

use super::{Case, LONG, Must, SHORT, all, holds, name, over, same};
use crate::{Acquired, Engine, Fence, Holding, Kept, Key, Lease, Nonce, Owner, Renewed};
use std::time::Duration;

pub(super) fn rules<E: Engine>(engine: &E) -> Vec<(&'static str, Case<'_>)> {
    vec![
        ("one holds a name, and the next has a greater fence", Box::pin(one_holds(engine))),
        ("a holder who asks again is the same", Box::pin(asks_again(engine))),
        ("a lease that ended cannot be renewed, and passes on", Box::pin(ended(engine))),
        ("a renewed lease holds on", Box::pin(renewed(engine))),
        ("of many at once, one holds", Box::pin(many(engine))),
    ]
}

fn ask(name: &Key, owner: &str, ttl: Duration) -> Lease {
    Lease { name: name.clone(), owner: Owner::new(owner), nonce: Nonce::random(), ttl }
}

async fn take<E: Engine>(engine: &E, lease: &Lease) -> Result<Holding, String> {
    match engine.acquire(lease).await.must("acquire")? {
        Acquired::Acquired { fence, .. } => Ok(Holding { name: lease.name.clone(), fence }),
        other => Err(format!("acquire answered {other:?}, and should have taken it")),
    }
}

async fn one_holds<E: Engine>(engine: &E) -> Result<(), String> {
    let name = name("lease");
    same("who holds what is free", engine.holder(&name).await.must("holder")?, None)?;
    let first = take(engine, &ask(&name, "first", LONG)).await?;
    match engine.acquire(&ask(&name, "second", LONG)).await.must("acquire")? {
        Acquired::Held { by, left } => {
            same("who holds it", by.as_str(), "first")?;
            holds("how long", left <= LONG && !left.is_zero())?;
        }
        other => return Err(format!("a second one is answered {other:?}")),
    }
    let Some(holder) = engine.holder(&name).await.must("holder")? else { return Err("nobody holds it".into()) };
    same("the fence of the holder", holder.fence, first.fence)?;
    same("its owner", holder.owner.as_str(), "first")?;

    same("release", engine.release(&first).await.must("release")?, Kept::Kept)?;
    same("release again", engine.release(&first).await.must("release")?, Kept::Kept)?;
    same("renewal of what was released", engine.renew(&first, LONG).await.must("renew")?, Renewed::Fenced)?;
    same("who holds what was released", engine.holder(&name).await.must("holder")?, None)?;

    let second = take(engine, &ask(&name, "second", LONG)).await?;
    holds("the fence grows", second.fence > first.fence)?;
    same("release with the old fence", engine.release(&first).await.must("release")?, Kept::Fenced)?;
    same("renewal with the old fence", engine.renew(&first, LONG).await.must("renew")?, Renewed::Fenced)?;
    let held = engine.holder(&name).await.must("holder")?.map(|holder| holder.fence);
    same("who holds it now", held, Some(second.fence))?;
    let wrong = Holding { name, fence: Fence(second.fence.0 + 1) };
    same(
        "renewal with a fence that was never given",
        engine.renew(&wrong, LONG).await.must("renew")?,
        Renewed::Fenced,
    )?;
    same("release", engine.release(&second).await.must("release")?, Kept::Kept)
}

async fn asks_again<E: Engine>(engine: &E) -> Result<(), String> {
    let lease = ask(&name("again"), "one", LONG);
    let (first, second) = (take(engine, &lease).await?, take(engine, &lease).await?);
    same("the fence of the same nonce", second.fence, first.fence)?;
    same("release", engine.release(&first).await.must("release")?, Kept::Kept)?;
    let third = take(engine, &lease).await?;
    holds("the fence grows after a release, whoever it is", third.fence > first.fence)?;
    same("release", engine.release(&third).await.must("release")?, Kept::Kept)
}

async fn ended<E: Engine>(engine: &E) -> Result<(), String> {
    let name = name("ended");
    let first = take(engine, &ask(&name, "first", SHORT)).await?;
    over().await;
    same("who holds what ended", engine.holder(&name).await.must("holder")?, None)?;
    same("renewal of what ended", engine.renew(&first, LONG).await.must("renew")?, Renewed::Fenced)?;
    let second = take(engine, &ask(&name, "second", LONG)).await?;
    holds("the fence grows", second.fence > first.fence)?;
    same("release of what passed on", engine.release(&first).await.must("release")?, Kept::Fenced)?;
    same("release", engine.release(&second).await.must("release")?, Kept::Kept)
}

async fn renewed<E: Engine>(engine: &E) -> Result<(), String> {
    let name = name("renewed");
    let first = take(engine, &ask(&name, "first", Duration::from_millis(1500))).await?;
    match engine.renew(&first, LONG).await.must("renew")? {
        Renewed::Until(_) => {}
        Renewed::Fenced => return Err("a holder could not renew".into()),
    }
    relent::Timer::sleep(&relent::SystemTimer, Duration::from_millis(1600)).await;
    match engine.acquire(&ask(&name, "second", LONG)).await.must("acquire")? {
        Acquired::Held { .. } => {}
        other => return Err(format!("a renewed lease is {other:?}")),
    }
    same("release", engine.release(&first).await.must("release")?, Kept::Kept)
}

async fn many<E: Engine>(engine: &E) -> Result<(), String> {
    let name = name("many");
    let leases: Vec<Lease> = (0..32).map(|nth| ask(&name, &nth.to_string(), LONG)).collect();
    let asked = leases.iter().map(|lease| Box::pin(engine.acquire(lease)) as _).collect();
    let mut taken = vec![];
    for answer in all::<Result<Acquired, crate::Error>>(asked).await {
        if let Acquired::Acquired { fence, .. } = answer.must("acquire")? {
            taken.push(fence);
        }
    }
    same("how many hold it", taken.len(), 1)?;
    let holding = Holding { name, fence: taken[0] };
    same("release", engine.release(&holding).await.must("release")?, Kept::Kept)
}
