//! Rules of versions.

use super::{Case, Must, all, holds, name, same};
use crate::{Engine, Error, Key, Nonce, Replaced, Version, Versioned};

pub(super) fn rules<E: Engine>(engine: &E) -> Vec<(&'static str, Case<'_>)> {
    vec![
        ("a value is replaced at its version, and at no other", Box::pin(replaced(engine))),
        ("a replacement that is asked for again is the same", Box::pin(asked_again(engine))),
        ("a removed value's versions do not come back", Box::pin(removed(engine))),
        ("of many at once, none is lost", Box::pin(many(engine))),
    ]
}

async fn put<E: Engine>(engine: &E, key: &Key, version: Version, value: Option<&[u8]>) -> Result<Replaced, String> {
    engine.replace(key, version, value, Nonce::random()).await.must("replace")
}

async fn must_put<E: Engine>(engine: &E, key: &Key, version: Version, value: Option<&[u8]>) -> Result<Version, String> {
    match put(engine, key, version, value).await? {
        Replaced::Replaced(new) => Ok(new),
        other => Err(format!("replace at {version:?} answered {other:?}")),
    }
}

async fn replaced<E: Engine>(engine: &E) -> Result<(), String> {
    let key = name("value");
    same("what is not there", engine.read(&key).await.must("read")?, Versioned::ABSENT)?;
    let first = must_put(engine, &key, Version::ABSENT, Some(b"one")).await?;
    holds("a version is not that of nothing", first > Version::ABSENT)?;
    let there = Versioned { version: first, value: Some((*b"one").into()) };
    same("what is there", engine.read(&key).await.must("read")?, there.clone())?;
    for wrong in [Version::ABSENT, Version(first.0 + 1), Version(first.0.wrapping_sub(1)), Version(u64::MAX >> 1)] {
        same("at a wrong version", put(engine, &key, wrong, Some(b"no")).await?, Replaced::Conflict(there.clone()))?;
    }
    let all_bytes: Vec<u8> = (0..=255).collect();
    let second = must_put(engine, &key, first, Some(&all_bytes)).await?;
    holds("the version grows", second > first)?;
    let there = Versioned { version: second, value: Some(all_bytes.into()) };
    holds("what is there then", engine.read(&key).await.must("read")? == there)?;
    let third = must_put(engine, &key, second, Some(b"")).await?;
    let there = Versioned { version: third, value: Some((*b"").into()) };
    same("an empty value is a value", engine.read(&key).await.must("read")?, there)?;
    must_put(engine, &key, third, None).await.map(drop)
}

async fn asked_again<E: Engine>(engine: &E) -> Result<(), String> {
    let (key, nonce) = (name("again"), Nonce::random());
    let first = engine.replace(&key, Version::ABSENT, Some(b"one"), nonce).await.must("replace")?;
    let again = engine.replace(&key, Version::ABSENT, Some(b"one"), nonce).await.must("replace")?;
    same("the answer to the same question", again, first.clone())?;
    let Replaced::Replaced(version) = first else { return Err(format!("replace answered {first:?}")) };
    same("the version", engine.read(&key).await.must("read")?.version, version)?;
    let nonce = Nonce::random();
    let gone = engine.replace(&key, version, None, nonce).await.must("replace")?;
    same("a removal, asked for again", engine.replace(&key, version, None, nonce).await.must("replace")?, gone)
}

async fn removed<E: Engine>(engine: &E) -> Result<(), String> {
    let key = name("removed");
    let first = must_put(engine, &key, Version::ABSENT, Some(b"one")).await?;
    let gone = must_put(engine, &key, first, None).await?;
    let there = engine.read(&key).await.must("read")?;
    same("the value of what was removed", there.value, None)?;
    holds("at the version it was removed with, or none", [gone, Version::ABSENT].contains(&there.version))?;
    let Replaced::Conflict(_) = put(engine, &key, first, Some(b"old")).await? else {
        return Err("a value was replaced at a version from before it was removed".into());
    };
    let second = must_put(engine, &key, Version::ABSENT, Some(b"two")).await?;
    holds("versions go on growing", second > first)?;
    must_put(engine, &key, second, None).await.map(drop)
}

async fn many<E: Engine>(engine: &E) -> Result<(), String> {
    let key = &name("many");
    let add = || async move {
        loop {
            let Versioned { version, value } = engine.read(key).await?;
            let next = value.map_or(0, |value| value.first().copied().unwrap_or(0)) + 1;
            if let Replaced::Replaced(_) = engine.replace(key, version, Some(&[next]), Nonce::random()).await? {
                return Ok(());
            }
        }
    };
    for answer in all::<Result<(), Error>>((0..16).map(|_| Box::pin(add()) as _).collect()).await {
        answer.must("adding")?;
    }
    let Versioned { version, value } = engine.read(key).await.must("read")?;
    same("the sum of sixteen", value.as_deref(), Some(&[16][..]))?;
    must_put(engine, key, version, None).await.map(drop)
}
