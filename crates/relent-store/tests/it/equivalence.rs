//! Any sequence of operations has the same answers on every engine as in memory, which is the model.

use crate::servers::{PostgresServer, RedisServer};
use proptest::{prelude::*, test_runner::TestRunner};
use relent_store::{
    Abandon, Acquired, Any, Begin, Booked, Booking, Claim, Clock, Delta, Engine, Fence, Fingerprint, Holding, Kept,
    Key, Lease, Memory, Nonce, OnUnknown, Owner, Renewed, Replaced, Scope, SharedRate, Started, Stored, Time, Version,
    Versioned,
    in_sqlite::{Durability, SqliteSettings},
};
use std::time::Duration;

/// Numbers that choose: which key, which nonce, which of the claims so far.
#[derive(Clone, Debug)]
enum Op {
    Begin { key: u8, nonce: u8, request: u8, takes_over: bool, is_short: bool },
    Complete { claim: usize, is_failure: bool },
    Abandon { claim: usize, forgets: bool },
    Extend { claim: usize },
    Acquire { name: u8, nonce: u8, is_short: bool },
    Renew { holding: usize },
    Release { holding: usize },
    Holder { name: u8 },
    Read { key: u8 },
    Replace { key: u8, version: usize, nonce: u8, removes: bool },
    FirstTime { key: u8, nonce: u8 },
    Book { process: u8, seq: u8, permits: u8, back: u8, gaps: u8 },
    Wait { seconds: u8 },
}

fn op() -> impl Strategy<Value = Op> {
    let (small, nonce, which) = (0u8..2, 0u8..3, 0usize..6);
    prop_oneof![
        4 => (small.clone(), nonce.clone(), 0u8..6, any::<bool>(), any::<bool>()).prop_map(
            |(key, nonce, request, takes_over, is_short)| Op::Begin { key, nonce, request, takes_over, is_short }
        ),
        2 => (which.clone(), any::<bool>()).prop_map(|(claim, is_failure)| Op::Complete { claim, is_failure }),
        2 => (which.clone(), any::<bool>()).prop_map(|(claim, forgets)| Op::Abandon { claim, forgets }),
        1 => which.clone().prop_map(|claim| Op::Extend { claim }),
        3 => (small.clone(), nonce.clone(), any::<bool>())
            .prop_map(|(name, nonce, is_short)| Op::Acquire { name, nonce, is_short }),
        1 => which.clone().prop_map(|holding| Op::Renew { holding }),
        2 => which.clone().prop_map(|holding| Op::Release { holding }),
        1 => small.clone().prop_map(|name| Op::Holder { name }),
        1 => small.clone().prop_map(|key| Op::Read { key }),
        3 => (small.clone(), which, nonce.clone(), any::<bool>())
            .prop_map(|(key, version, nonce, removes)| Op::Replace { key, version, nonce, removes }),
        1 => (small, nonce.clone()).prop_map(|(key, nonce)| Op::FirstTime { key, nonce }),
        3 => (nonce, 1u8..40, 0u8..9, 0u8..4, 0u8..3)
            .prop_map(|(process, seq, permits, back, gaps)| Op::Book { process, seq, permits, back, gaps }),
        1 => (0u8..30).prop_map(|seconds| Op::Wait { seconds }),
    ]
}

const LONG: Duration = Duration::from_secs(3600);

/// Which number it is, in the order in which they were first met: engines count in their own ways.
fn rank<T: PartialEq>(seen: &mut Vec<T>, it: T) -> usize {
    seen.iter().position(|seen| *seen == it).unwrap_or_else(|| {
        seen.push(it);
        seen.len() - 1
    })
}

/// What an engine answers. Times only where there is a clock that can be moved.
async fn answers<E: Engine>(engine: &E, clock: Option<&Clock>, run: Nonce, ops: &[Op]) -> Vec<String> {
    let key_of = |nth: u8| Key::new([&run.0[..], &[nth]].concat()).unwrap();
    let nonce_of = |nth: u8| Nonce([nth; 16]);
    let scope = Scope::new("model").unwrap();
    let lease = |is_short: bool| if is_short && clock.is_some() { Duration::from_secs(10) } else { LONG };
    let (mut fences, mut claims, mut holdings, mut versions): (Vec<Fence>, Vec<Claim>, Vec<Holding>, Vec<Version>) =
        Default::default();
    versions.push(Version::ABSENT);
    let time = |time: Duration| clock.map(|_| time);
    let mut told = vec![];
    for op in ops {
        told.push(match *op {
            Op::Begin { key, nonce, request, takes_over, is_short } => {
                let begin = Begin {
                    scope: scope.clone(),
                    key: key_of(key),
                    fingerprint: Fingerprint([u8::from(request == 0); 32]),
                    nonce: nonce_of(nonce),
                    lease: lease(is_short),
                    keep: 2 * lease(is_short),
                    on_unknown: if takes_over { OnUnknown::TakeOver } else { OnUnknown::Tell },
                };
                match engine.begin(&begin).await.unwrap() {
                    Started::Started { fence, unknown } => {
                        claims.push(Claim { scope: scope.clone(), key: key_of(key), fence });
                        format!("started {} {:?}", rank(&mut fences, fence), unknown.is_some())
                    }
                    Started::Busy { retry_after } => format!("busy {:?}", time(retry_after)),
                    Started::Unknown { since } => format!("unknown {:?}", clock.map(|_| since)),
                    other => format!("{other:?}"),
                }
            }
            Op::Complete { claim, is_failure } if !claims.is_empty() => {
                let stored = if is_failure { Stored::failure("no") } else { Stored::success("yes") };
                let kept: Kept = engine.complete(&claims[claim % claims.len()], &stored, LONG).await.unwrap();
                format!("{kept:?}")
            }
            Op::Abandon { claim, forgets } if !claims.is_empty() => {
                let why = if forgets { Abandon::Forget } else { Abandon::Unknown };
                format!("{:?}", engine.abandon(&claims[claim % claims.len()], why).await.unwrap())
            }
            Op::Extend { claim } if !claims.is_empty() => {
                format!("{:?}", engine.extend(&claims[claim % claims.len()], LONG).await.unwrap())
            }
            Op::Acquire { name, nonce, is_short } => {
                let (owner, nonce) = (Owner::new(&nonce.to_string()), nonce_of(nonce));
                let lease = Lease { name: key_of(name), owner, nonce, ttl: lease(is_short) };
                match engine.acquire(&lease).await.unwrap() {
                    Acquired::Acquired { fence, .. } => {
                        holdings.push(Holding { name: key_of(name), fence });
                        format!("acquired {}", rank(&mut fences, fence))
                    }
                    Acquired::Held { by, left } => format!("held {by:?} {:?}", time(left)),
                }
            }
            Op::Renew { holding } if !holdings.is_empty() => {
                let renewed = engine.renew(&holdings[holding % holdings.len()], LONG).await.unwrap();
                format!("{:?}", matches!(renewed, Renewed::Until(_)))
            }
            Op::Release { holding } if !holdings.is_empty() => {
                format!("{:?}", engine.release(&holdings[holding % holdings.len()]).await.unwrap())
            }
            Op::Holder { name } => {
                let holder = engine.holder(&key_of(name)).await.unwrap();
                format!("{:?}", holder.map(|holder| (holder.owner, rank(&mut fences, holder.fence), time(holder.left))))
            }
            Op::Read { key } => {
                let Versioned { version, value } = engine.read(&key_of(key)).await.unwrap();
                format!("{} {value:?}", rank(&mut versions, version))
            }
            Op::Replace { key, version, nonce, removes } => {
                let (version, value) = (versions[version % versions.len()], (!removes).then_some([key, nonce]));
                let value = value.as_ref().map(|value| &value[..]);
                match engine.replace(&key_of(key), version, value, nonce_of(nonce)).await.unwrap() {
                    Replaced::Replaced(version) => format!("replaced {}", rank(&mut versions, version)),
                    Replaced::Conflict(Versioned { version, value }) => {
                        format!("conflict {} {value:?}", rank(&mut versions, version))
                    }
                }
            }
            Op::FirstTime { key, nonce } => {
                format!("{}", engine.first_time(&scope, &key_of(key), LONG, nonce_of(nonce)).await.unwrap())
            }
            Op::Book { process, seq, permits, back, gaps } => {
                // Where the clock cannot be moved, no permit comes by itself while the test runs.
                let rate = SharedRate { gap: if clock.is_some() { Duration::from_secs(7) } else { LONG }, burst: 4 };
                let (permits, within, back) = (permits.into(), rate.gap * u32::from(gaps) * 3 / 2, back.into());
                let delta = Delta {
                    upstream: key_of(0),
                    process: nonce_of(process),
                    seq: seq.into(),
                    window: Duration::from_secs(3600),
                    calls: seq.into(),
                    retries: 1,
                    successes: u64::from(seq % 3),
                    failures: 2,
                    run: 1,
                    is_open: seq % 5 == 0,
                    is_last: seq % 7 == 6,
                    every: if clock.is_some() { Duration::from_secs((seq % 4).into()) } else { LONG },
                    reserves: u64::from(permits).pow(u32::from(seq % 20)),
                    booking: Some(Booking { rate, permits, within, back }),
                };
                let told = engine.merge(&delta).await.unwrap();
                let counts = (told.calls, told.retries, told.successes, told.failures, told.run, told.reserved);
                // What comes back in another second than it was booked in is not taken off.
                let permits = clock.map(|_| told.permits);
                let Booked { permits: booked, at_once, wait } = told.booked;
                format!("{counts:?} {} {} {permits:?} {booked} {at_once} {:?}", told.processes, told.open, time(wait))
            }
            Op::Wait { seconds } => {
                if let Some(clock) = clock {
                    clock.advance(Duration::from_secs(seconds.into()));
                }
                String::new()
            }
            _ => String::new(),
        });
    }
    told
}

fn same<E: Engine>(engine: &E, clock: Option<&Clock>, runtime: &tokio::runtime::Runtime, cases: u32) {
    let start = Time(1_800_000_000_000);
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() });
    let tried = runner.run(&prop::collection::vec(op(), 1..60), |ops| {
        runtime.block_on(async {
            let model = Clock::manual(clock.map_or(start, Clock::now));
            let run = Nonce::random();
            let expected = answers(&Memory::on(model.clone()), clock.map(|_| &model), run, &ops).await;
            prop_assert_eq!(answers(engine, clock, run, &ops).await, expected);
            Ok(())
        })
    });
    tried.unwrap_or_else(|err| panic!("{err}"));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn sqlite_answers_as_memory_does() {
    let (folder, clock, runtime) = (tempfile::tempdir().unwrap(), Clock::manual(Time(1_800_000_000_000)), runtime());
    let settings =
        SqliteSettings { durability: Durability::Process, clock: clock.clone(), ..SqliteSettings::default() };
    let engine = settings.open(&folder.path().join("state.db")).unwrap();
    same(&engine, Some(&clock), &runtime, 150);
}

#[test]
fn redis_answers_as_memory_does() {
    let (server, runtime) = (RedisServer::start(&["--appendfsync", "no"]), runtime());
    same(&runtime.block_on(Any::open(&server.url())).unwrap(), None, &runtime, 100);
}

#[test]
fn postgres_answers_as_memory_does() {
    let (server, runtime) = (PostgresServer::start(), runtime());
    let store = runtime.block_on(relent_store::Store::open(&server.url())).unwrap();
    same(store.engine(), None, &runtime, 60);
}
