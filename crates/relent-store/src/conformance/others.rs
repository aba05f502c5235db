//! Rules of keys that are seen, of shared upstreams, and of keeping house.

use super::{Case, LONG, Must, SHORT, holds, name, over, same, scope};
use crate::{Booked, Booking, Delta, Engine, Held, Key, Kind, Listed, Nonce, Shared, SharedRate, Version};
use std::time::Duration;

pub(super) fn rules<E: Engine>(engine: &E) -> Vec<(&'static str, Case<'_>)> {
    vec![
        ("a key is seen for the first time once", Box::pin(first_time(engine))),
        ("what processes saw is added up once", Box::pin(merged(engine))),
        ("failures in a row are those of all", Box::pin(in_a_row(engine))),
        ("what others may spend is told, and none of one's own", Box::pin(reserved(engine))),
        ("open breakers are counted, and those who leave are not", Box::pin(votes(engine))),
        ("a rate is one for all", Box::pin(rate(engine))),
        ("what is held by hand is held for all", Box::pin(held(engine))),
        ("what expired is purged, and the rest stays", Box::pin(purged(engine))),
        ("an engine says what it promises", Box::pin(about(engine))),
    ]
}

async fn first_time<E: Engine>(engine: &E) -> Result<(), String> {
    let (scope, key, nonce) = (scope(), name("seen"), Nonce::random());
    let seen = |keep, nonce| engine.first_time(&scope, &key, keep, nonce);
    same("the first time", seen(LONG, nonce).await.must("first_time")?, true)?;
    same("the same question", seen(LONG, nonce).await.must("first_time")?, true)?;
    same("the second time", seen(LONG, Nonce::random()).await.must("first_time")?, false)?;
    let key = name("seen");
    let seen = |keep, nonce| engine.first_time(&scope, &key, keep, nonce);
    same("another key", seen(SHORT, Nonce::random()).await.must("first_time")?, true)?;
    over().await;
    same("after it was forgotten", seen(SHORT, Nonce::random()).await.must("first_time")?, true)
}

fn delta(upstream: &Key, process: Nonce, seq: u64) -> Delta {
    Delta {
        upstream: upstream.clone(),
        process,
        seq,
        window: Duration::from_secs(60),
        calls: 0,
        retries: 0,
        successes: 0,
        failures: 0,
        run: 0,
        is_open: false,
        reserves: 0,
        every: LONG,
        is_last: false,
        booking: None,
    }
}

async fn merged<E: Engine>(engine: &E) -> Result<(), String> {
    let (name, one, two) = (name("upstream"), Nonce::random(), Nonce::random());
    let first = Delta { calls: 10, retries: 2, successes: 7, failures: 3, ..delta(&name, one, 1) };
    let sums = |shared: &Shared| (shared.calls, shared.retries, shared.successes, shared.failures, shared.processes);
    let told = engine.merge(&first).await.must("merge")?;
    same("what one saw", sums(&told), (10, 2, 7, 3, 1))?;
    let told = engine.merge(&first).await.must("merge")?;
    same("what one saw, told again", sums(&told), (10, 2, 7, 3, 1))?;
    let second = Delta { calls: 1, failures: 1, run: 1, ..delta(&name, two, 1) };
    let told = engine.merge(&second).await.must("merge")?;
    same("what two saw", sums(&told), (11, 2, 7, 4, 2))?;
    let told = engine.merge(&Delta { calls: 5, ..delta(&name, one, 2) }).await.must("merge")?;
    same("what the first saw then", sums(&told), (16, 2, 7, 4, 2))
}

async fn in_a_row<E: Engine>(engine: &E) -> Result<(), String> {
    let (name, one, two) = (name("row"), Nonce::random(), Nonce::random());
    let failed = |process, seq, run| Delta { failures: run, run, ..delta(&name, process, seq) };
    let run = async |delta: Delta| engine.merge(&delta).await.must("merge").map(|shared| shared.run);
    same("after three of one", run(failed(one, 1, 3)).await?, 3)?;
    same("after two of another", run(failed(two, 1, 2)).await?, 5)?;
    let mixed = Delta { successes: 1, failures: 4, run: 1, ..delta(&name, one, 2) };
    same("after a success and one more", run(mixed).await?, 1)?;
    same("after nothing", run(delta(&name, two, 2)).await?, 1)
}

async fn reserved<E: Engine>(engine: &E) -> Result<(), String> {
    let (name, one, two) = (name("reserved"), Nonce::random(), Nonce::random());
    let tell = async |delta: Delta| engine.merge(&delta).await.must("merge").map(|shared| shared.reserved);
    let first = Delta { reserves: 2_500_000, ..delta(&name, one, 1) };
    same("what others have reserved, for the first", tell(first.clone()).await?, 0)?;
    same("for another", tell(delta(&name, two, 1)).await?, 2_500_000)?;
    let more = Delta { reserves: 3, ..delta(&name, two, 2) };
    same("for who reserves, too", tell(more).await?, 2_500_000)?;
    same("for the first, told again", tell(first).await?, 3)?;
    same("for the first, then", tell(Delta { reserves: u64::MAX, ..delta(&name, one, 2) }).await?, 3)?;
    same(
        "no more than a million retries",
        tell(Delta { reserves: 3, ..delta(&name, two, 3) }).await?,
        1_000_000_000_000,
    )?;
    tell(Delta { reserves: 5, is_last: true, ..delta(&name, one, 3) }).await?;
    same("when one has left", tell(delta(&name, two, 4)).await?, 0)
}

async fn votes<E: Engine>(engine: &E) -> Result<(), String> {
    let (name, one, two) = (name("votes"), Nonce::random(), Nonce::random());
    engine.merge(&Delta { calls: 30, ..delta(&name, one, 1) }).await.must("merge")?;
    let told = engine.merge(&Delta { calls: 10, is_open: true, ..delta(&name, two, 1) }).await.must("merge")?;
    same("who is there, and open", (told.processes, told.open), (2, 1))?;
    holds("calls of those that are open", (9..=10).contains(&told.open_calls))?;
    let told = engine.merge(&Delta { is_last: true, ..delta(&name, two, 2) }).await.must("merge")?;
    same("when one has left", (told.processes, told.open, told.calls), (1, 0, 40))
}

async fn rate<E: Engine>(engine: &E) -> Result<(), String> {
    let (name, one, two) = (name("rate"), Nonce::random(), Nonce::random());
    let rate = SharedRate { gap: LONG, burst: 3 };
    let asks = |process, seq, permits, within, back| {
        let booking = Some(Booking { rate, permits, within, back });
        Delta { booking, ..delta(&name, process, seq) }
    };
    let tell = async |delta: Delta| engine.merge(&delta).await.must("merge");
    let first = asks(one, 1, 5, Duration::ZERO, 0);
    let told = tell(first.clone()).await?;
    same("what comes at once", (told.booked.permits, told.booked.at_once), (3, 3))?;
    holds("the next comes later", told.booked.wait > LONG / 2 && told.booked.wait <= LONG)?;
    same("the rate", (told.rate, told.permits), (Some(rate), 3))?;
    let told = tell(first).await?;
    same("the same again", (told.booked.permits, told.permits), (0, 3))?;
    let told = tell(asks(two, 1, 5, Duration::ZERO, 0)).await?;
    same("for another", told.booked.permits, 0)?;
    holds("it has to wait", told.booked.wait > LONG / 2 && told.booked.wait <= LONG)?;
    let told = tell(asks(one, 2, 0, Duration::ZERO, 2)).await?;
    same("for who gives back", told.booked.permits, 0)?;
    let told = tell(asks(two, 2, 5, Duration::ZERO, 0)).await?;
    same("what came back", (told.booked.permits, told.booked.at_once), (2, 2))?;
    let told = tell(asks(two, 3, 9, LONG * 5 / 2, 0)).await?;
    same("what comes later", (told.booked.permits, told.booked.at_once), (2, 0))?;
    holds("the first of them", told.booked.wait > LONG / 2 && told.booked.wait <= LONG)?;
    let told = tell(delta(&name, one, 3)).await?;
    same("who asks for nothing", (told.booked, told.rate), (Booked::default(), Some(rate)))?;
    let most = SharedRate { gap: Duration::MAX, burst: u32::MAX };
    let booking = Some(Booking { rate: most, permits: u32::MAX, within: Duration::MAX, back: u32::MAX });
    let told = tell(Delta { booking, ..delta(&name, one, 4) }).await?;
    holds("no booking is too much", told.booked.at_once <= told.booked.permits)?;
    let least = SharedRate { gap: Duration::ZERO, burst: 0 };
    let booking = Some(Booking { rate: least, permits: 0, within: Duration::ZERO, back: 0 });
    let told = tell(Delta { booking, ..delta(&name, one, 5) }).await?;
    same("nothing of nothing", told.booked.permits, 0)
}

async fn held<E: Engine>(engine: &E) -> Result<(), String> {
    let (name, one) = (name("held"), Nonce::random());
    for (nth, by_hand) in [Some(Held::Open), Some(Held::Closed), None].into_iter().enumerate() {
        engine.hold(&name, by_hand).await.must("hold")?;
        let told = engine.merge(&delta(&name, one, nth as u64 + 1)).await.must("merge")?;
        same("what is held", told.held, by_hand)?;
    }
    Ok(())
}

async fn purged<E: Engine>(engine: &E) -> Result<(), String> {
    let (scope, kept) = (scope(), name("purged"));
    engine.first_time(&scope, &kept, LONG, Nonce::random()).await.must("first_time")?;
    for _ in 0..5 {
        engine.first_time(&scope, &name("purged"), SHORT, Nonce::random()).await.must("first_time")?;
    }
    let value = engine.replace(&kept, Version::ABSENT, Some(b"here"), Nonce::random()).await.must("replace")?;
    over().await;
    let mut left = 10_000;
    while engine.purge(2).await.must("purge")? > 0 {
        left -= 1;
        if left == 0 {
            return Err("purge never comes to an end".into());
        }
    }
    let seen = engine.first_time(&scope, &kept, LONG, Nonce::random()).await.must("first_time")?;
    same("whether what was not to go is new", seen, false)?;
    let listed = engine.list(Kind::Values, u32::MAX >> 1).await.must("list")?;
    let is_there = listed.iter().any(|listed| matches!(listed, Listed::Value { key, bytes: 4, .. } if *key == kept));
    holds("a value is listed", is_there)?;
    let crate::Replaced::Replaced(version) = value else { return Err(format!("replace answered {value:?}")) };
    let _ = engine.replace(&kept, version, None, Nonce::random()).await.must("replace")?;
    for kind in [Kind::Records, Kind::Leases, Kind::Seen, Kind::Upstreams] {
        let listed = engine.list(kind, 3).await.must("list")?;
        holds("no more is listed than was asked for", listed.len() <= 3)?;
    }
    Ok(())
}

async fn about<E: Engine>(engine: &E) -> Result<(), String> {
    let about = engine.about().await.must("about")?;
    holds("it has a name and says something", !about.engine.is_empty() && !about.durability.is_empty())
}
