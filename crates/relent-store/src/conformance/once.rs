//! Rules of idempotency.

use super::{Case, LONG, Must, SHORT, all, holds, name, over, same, scope};
use crate::{
    Abandon, Begin, Claim, Engine, Fence, Fingerprint, Kept, Key, Nonce, OnUnknown, Scope, Started, Stored, Time,
};
use std::time::Duration;

pub(super) fn rules<E: Engine>(engine: &E) -> Vec<(&'static str, Case<'_>)> {
    vec![
        ("what is done is replayed, and not to another request", Box::pin(replayed(engine))),
        ("one who asks again with the same nonce is the same", Box::pin(same_nonce(engine))),
        ("a second one is told that the first is at it", Box::pin(busy(engine))),
        ("who goes silent leaves doubt, and is fenced when it is taken over", Box::pin(silent(engine))),
        ("one who is late and not replaced is heard", Box::pin(late(engine))),
        ("what is forgotten is as if never asked", Box::pin(forgotten(engine))),
        ("doubt can be told at once", Box::pin(doubted(engine))),
        ("what is done stays done", Box::pin(stays(engine))),
        ("what expires is begun anew, with a greater fence", Box::pin(expires(engine))),
        ("a claim holds as long as it is extended", Box::pin(extended(engine))),
        ("scopes and keys of any bytes do not meet", Box::pin(any_bytes(engine))),
        ("results of any bytes come back", Box::pin(any_results(engine))),
        ("of many at once, one starts", Box::pin(many(engine))),
        ("of many who take over at once, one does", Box::pin(many_take_over(engine))),
    ]
}

fn ask(key: &Key, lease: Duration) -> Begin {
    Begin {
        scope: scope(),
        key: key.clone(),
        fingerprint: Fingerprint::of(["request"]),
        nonce: Nonce::random(),
        lease,
        keep: LONG,
        on_unknown: OnUnknown::Tell,
    }
}

async fn started<E: Engine>(engine: &E, begin: &Begin) -> Result<(Claim, Option<Time>), String> {
    match engine.begin(begin).await.must("begin")? {
        Started::Started { fence, unknown } => {
            Ok((Claim { scope: begin.scope.clone(), key: begin.key.clone(), fence }, unknown))
        }
        other => Err(format!("begin answered {other:?}, and should have started")),
    }
}

async fn complete<E: Engine>(engine: &E, claim: &Claim, result: &str) -> Result<Kept, String> {
    engine.complete(claim, &Stored::success(result), LONG).await.must("complete")
}

async fn replayed<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = ask(&name("replayed"), LONG);
    let (claim, unknown) = started(engine, &begin).await?;
    same("what is known of a new key", unknown, None)?;
    same("complete", complete(engine, &claim, "result").await?, Kept::Kept)?;
    let again = Begin { nonce: Nonce::random(), ..begin };
    let replay = Started::Replay(Stored::success("result"));
    same("begin after it is done", engine.begin(&again).await.must("begin")?, replay)?;
    let other = Begin { fingerprint: Fingerprint::of(["another"]), ..again };
    same("another request", engine.begin(&other).await.must("begin")?, Started::Mismatch)
}

async fn same_nonce<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = ask(&name("nonce"), LONG);
    let (first, _) = started(engine, &begin).await?;
    let (second, unknown) = started(engine, &begin).await?;
    same("the fence of the same nonce", second.fence, first.fence)?;
    same("doubt of the same nonce", unknown, None)?;
    same("complete", complete(engine, &first, "result").await?, Kept::Kept)
}

async fn busy<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = ask(&name("busy"), LONG);
    let (claim, _) = started(engine, &begin).await?;
    for on_unknown in [OnUnknown::Tell, OnUnknown::TakeOver] {
        let other = Begin { nonce: Nonce::random(), on_unknown, ..begin.clone() };
        match engine.begin(&other).await.must("begin")? {
            Started::Busy { retry_after } => {
                holds("the time left is that of the lease or less", retry_after <= LONG && !retry_after.is_zero())?;
            }
            other => return Err(format!("a second one is answered {other:?}")),
        }
    }
    let other = Begin { fingerprint: Fingerprint::of(["another"]), nonce: Nonce::random(), ..begin };
    same("another request", engine.begin(&other).await.must("begin")?, Started::Mismatch)?;
    same("complete", complete(engine, &claim, "result").await?, Kept::Kept)
}

async fn silent<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = ask(&name("silent"), SHORT);
    let (old, _) = started(engine, &begin).await?;
    over().await;
    let tell = Begin { nonce: Nonce::random(), lease: LONG, ..begin.clone() };
    let Started::Unknown { since } = engine.begin(&tell).await.must("begin")? else {
        return Err("a claim that went silent is not unknown".into());
    };
    let Started::Unknown { since: again } = engine.begin(&begin).await.must("begin")? else {
        return Err("it is not unknown to who went silent".into());
    };
    same("since when it is unknown", again, since)?;

    let take = Begin { on_unknown: OnUnknown::TakeOver, lease: SHORT, ..tell.clone() };
    let (second, unknown) = started(engine, &take).await?;
    same("what is told to who takes over", unknown, Some(since))?;
    holds("the fence grows", second.fence > old.fence)?;
    same("complete with the old fence", complete(engine, &old, "old").await?, Kept::Fenced)?;
    same("extend with the old fence", engine.extend(&old, LONG).await.must("extend")?, Kept::Fenced)?;
    for why in [Abandon::Forget, Abandon::Unknown] {
        same("abandon with the old fence", engine.abandon(&old, why).await.must("abandon")?, Kept::Fenced)?;
    }

    over().await;
    let take = Begin { nonce: Nonce::random(), lease: LONG, ..take };
    let (third, unknown) = started(engine, &take).await?;
    same("since when, after a second one went silent", unknown, Some(since))?;
    holds("the fence grows again", third.fence > second.fence)?;
    same("complete with the middle fence", complete(engine, &second, "middle").await?, Kept::Fenced)?;
    same("complete with the last fence", complete(engine, &third, "last").await?, Kept::Kept)?;
    same("what is kept", engine.begin(&tell).await.must("begin")?, Started::Replay(Stored::success("last")))?;
    same("complete with the old fence, at last", complete(engine, &old, "old").await?, Kept::Fenced)
}

async fn late<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = ask(&name("late"), SHORT);
    let (claim, _) = started(engine, &begin).await?;
    over().await;
    same("extend of a claim that ended", engine.extend(&claim, LONG).await.must("extend")?, Kept::Fenced)?;
    same("complete of a claim that ended", complete(engine, &claim, "late").await?, Kept::Kept)?;
    same("what is kept", engine.begin(&begin).await.must("begin")?, Started::Replay(Stored::success("late")))
}

async fn forgotten<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = ask(&name("forgotten"), LONG);
    let (old, _) = started(engine, &begin).await?;
    same("abandon", engine.abandon(&old, Abandon::Forget).await.must("abandon")?, Kept::Kept)?;
    same("complete of what was forgotten", complete(engine, &old, "old").await?, Kept::Fenced)?;
    let begin = Begin { fingerprint: Fingerprint::of(["another"]), nonce: Nonce::random(), ..begin };
    let (new, unknown) = started(engine, &begin).await?;
    same("doubt", unknown, None)?;
    holds("the fence grows", new.fence > old.fence)?;
    same("complete of what was forgotten and begun", complete(engine, &old, "old").await?, Kept::Fenced)?;
    same("forget", engine.abandon(&new, Abandon::Forget).await.must("abandon")?, Kept::Kept)
}

async fn doubted<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = ask(&name("doubted"), LONG);
    let (old, _) = started(engine, &begin).await?;
    same("abandon", engine.abandon(&old, Abandon::Unknown).await.must("abandon")?, Kept::Kept)?;
    let begin = Begin { nonce: Nonce::random(), ..begin };
    let Started::Unknown { since } = engine.begin(&begin).await.must("begin")? else {
        return Err("what was given up in doubt is not unknown".into());
    };
    let take = Begin { on_unknown: OnUnknown::TakeOver, ..begin };
    let (new, unknown) = started(engine, &take).await?;
    same("what is told to who takes over", unknown, Some(since))?;
    same("forget", engine.abandon(&new, Abandon::Forget).await.must("abandon")?, Kept::Kept)
}

async fn stays<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = ask(&name("stays"), LONG);
    let (claim, _) = started(engine, &begin).await?;
    same("complete", complete(engine, &claim, "first").await?, Kept::Kept)?;
    same("complete again", complete(engine, &claim, "second").await?, Kept::Kept)?;
    for why in [Abandon::Forget, Abandon::Unknown] {
        same("abandon of what is done", engine.abandon(&claim, why).await.must("abandon")?, Kept::Kept)?;
    }
    same("extend of what is done", engine.extend(&claim, LONG).await.must("extend")?, Kept::Kept)?;
    same("what is kept", engine.begin(&begin).await.must("begin")?, Started::Replay(Stored::success("first")))
}

async fn expires<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = Begin { keep: SHORT, ..ask(&name("expires"), SHORT) };
    let (first, _) = started(engine, &begin).await?;
    over().await;
    // It is completed in time however slow the machine is: a claim is kept as long as its lease.
    let again = Begin { nonce: Nonce::random(), lease: LONG, ..begin };
    let (second, unknown) = started(engine, &again).await?;
    same("doubt about what expired", unknown, None)?;
    holds("the fence grows", second.fence > first.fence)?;
    let kept = engine.complete(&second, &Stored::success("short"), SHORT).await.must("complete")?;
    same("complete", kept, Kept::Kept)?;
    over().await;
    let last = Begin { fingerprint: Fingerprint::of(["another"]), nonce: Nonce::random(), ..again };
    let (third, _) = started(engine, &last).await?;
    holds("the fence grows over what was done and expired", third.fence > second.fence)?;
    let stays = Begin { nonce: Nonce::random(), ..last };
    match engine.begin(&stays).await.must("begin")? {
        Started::Busy { .. } => {}
        other => return Err(format!("a claim is kept as long as its lease, and not {other:?}")),
    }
    same("forget", engine.abandon(&third, Abandon::Forget).await.must("abandon")?, Kept::Kept)
}

async fn extended<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = ask(&name("extended"), Duration::from_millis(1500));
    let (claim, _) = started(engine, &begin).await?;
    same("extend", engine.extend(&claim, LONG).await.must("extend")?, Kept::Kept)?;
    relent::Timer::sleep(&relent::SystemTimer, Duration::from_millis(1600)).await;
    let other = Begin { nonce: Nonce::random(), ..begin };
    match engine.begin(&other).await.must("begin")? {
        Started::Busy { retry_after } => holds("what is left", retry_after > Duration::from_millis(1500))?,
        other => return Err(format!("a claim that was extended is {other:?}")),
    }
    same("extend to a shorter time", engine.extend(&claim, SHORT).await.must("extend")?, Kept::Kept)?;
    over().await;
    same("extend when it is over", engine.extend(&claim, LONG).await.must("extend")?, Kept::Fenced)
}

async fn any_bytes<E: Engine>(engine: &E) -> Result<(), String> {
    let nonce = Nonce::random().0;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let hostile: [&[u8]; 8] =
        [b"'; DROP TABLE relent_once; --", b"}{a}", b"\0", b"\xff\xfe", b"a\r\nDEL x", b"*", b"%", &all_bytes[..200]];
    let mut claims: Vec<(Claim, Begin)> = vec![];
    for bytes in hostile {
        let key = Key::new([&nonce[..8], bytes].concat()).map_err(|err| err.to_string())?;
        for scope in [Scope::of([&nonce[..], bytes]), Scope::of([[&nonce[..], bytes].concat()])] {
            let scope = scope.map_err(|err| err.to_string())?;
            let begin = Begin { scope, ..ask(&key, LONG) };
            claims.push((started(engine, &begin).await?.0, begin));
        }
    }
    for (nth, (claim, _)) in claims.iter().enumerate() {
        same("complete", complete(engine, claim, &nth.to_string()).await?, Kept::Kept)?;
    }
    for (nth, (_, begin)) in claims.iter().enumerate() {
        let replay = Started::Replay(Stored::success(nth.to_string()));
        same("what is kept", engine.begin(begin).await.must("begin")?, replay)?;
    }
    Ok(())
}

async fn any_results<E: Engine>(engine: &E) -> Result<(), String> {
    let all_bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let results = [Stored::success([]), Stored::failure([]), Stored::failure("no"), Stored::success(all_bytes)];
    for result in results {
        let begin = ask(&name("results"), LONG);
        let (claim, _) = started(engine, &begin).await?;
        same("complete", engine.complete(&claim, &result, LONG).await.must("complete")?, Kept::Kept)?;
        let kept = engine.begin(&begin).await.must("begin")?;
        holds("what comes back is what was kept", kept == Started::Replay(result))?;
    }
    Ok(())
}

async fn many<E: Engine>(engine: &E) -> Result<(), String> {
    let key = name("many");
    let answers = ask_all(engine, (0..32).map(|_| ask(&key, LONG)).collect()).await?;
    let fences: Vec<Fence> = answers.iter().filter_map(fence).collect();
    same("how many start", fences.len(), 1)?;
    let rest = answers.iter().filter(|answer| matches!(answer, Started::Busy { .. })).count();
    same("how many are told that it is busy", rest, 31)
}

async fn many_take_over<E: Engine>(engine: &E) -> Result<(), String> {
    let begin = ask(&name("takeover"), SHORT);
    started(engine, &begin).await?;
    over().await;
    let ask = || Begin { nonce: Nonce::random(), lease: LONG, on_unknown: OnUnknown::TakeOver, ..begin.clone() };
    let answers = ask_all(engine, (0..32).map(|_| ask()).collect()).await?;
    same("how many take over", answers.iter().filter_map(fence).count(), 1)
}

fn fence(started: &Started) -> Option<Fence> {
    match started {
        Started::Started { fence, .. } => Some(*fence),
        _ => None,
    }
}

async fn ask_all<E: Engine>(engine: &E, begins: Vec<Begin>) -> Result<Vec<Started>, String> {
    let asked = begins.iter().map(|begin| Box::pin(engine.begin(begin)) as _).collect();
    all::<Result<Started, crate::Error>>(asked).await.into_iter().map(|answer| answer.must("begin")).collect()
}
