//! Every place that a call took on an upstream comes back, however the call ends, with threads that run at once.

use relent::{rng::draw, *};
use std::{
    future::{Future, pending},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

/// Nothing waits: a refusal ends the call, and a retry comes at once.
const TWICE: Policy = Policy::immediate().max_attempts(2);
const IN_FLIGHT: u32 = 7;

static FAR: Upstream = Upstream::new("far")
    .breaker(Breaker::consecutive(40).open_for(Duration::from_micros(50)).probes(2))
    .limit(Limit::concurrency(IN_FLIGHT))
    .budget(Budget::in_flight(0.5, 2));

/// Polls once, which starts the attempt, and drops it.
fn abandon<T>(call: impl Future<Output = T>) -> bool {
    pin!(call).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

/// A million calls on four threads: answered, refused, dropped while they run or between two attempts, cancelled from
/// outside, ended by a panic in the operation or in what judges its errors.
#[test]
fn come_back_after_a_million_drops_panics_and_cancellations() {
    let seed = crate::budgets::seed().unwrap_or(7);
    println!("seed {seed}");
    let [answered, dropped, cancelled, panicked] = [const { AtomicU64::new(0) }; 4];
    let (highest, flying) = (AtomicU64::new(0), AtomicU64::new(0));
    let enter = || highest.fetch_max(flying.fetch_add(1, Relaxed) + 1, Relaxed);
    let leave = || flying.fetch_sub(1, Relaxed);
    let work = |seed: u64| {
        for k in 0..250_000 {
            match draw(seed, k) % 8 {
                0 => {
                    let call = TWICE.on(&FAR).retry(async |_| pending::<Result<(), &str>>().await);
                    dropped.fetch_add(u64::from(abandon(call)), Relaxed);
                }
                1 => {
                    // It fails, and is dropped in its second attempt.
                    let call = TWICE.on(&FAR).retry(async |attempt| match attempt.number() {
                        1 => Err("down"),
                        _ => pending::<Result<(), &str>>().await,
                    });
                    dropped.fetch_add(u64::from(abandon(call)), Relaxed);
                }
                2 => {
                    let cancel = Cancel::new();
                    let mut call =
                        pin!(TWICE.cancel(&cancel).on(&FAR).retry(async |_| pending::<Result<(), &str>>().await));
                    let mut context = Context::from_waker(Waker::noop());
                    if call.as_mut().poll(&mut context).is_pending() {
                        cancel.cancel();
                        let Poll::Ready(Err(err)) = call.poll(&mut context) else { panic!("it was cancelled") };
                        assert_eq!(err.reason, Reason::Cancelled);
                        cancelled.fetch_add(1, Relaxed);
                    }
                }
                3 => {
                    let call =
                        || TWICE.on(&FAR).retry_blocking(|_| -> Result<(), &str> { resume_unwind(Box::new(())) });
                    panicked.fetch_add(u64::from(catch_unwind(AssertUnwindSafe(call)).is_err()), Relaxed);
                }
                4 => {
                    let judged = TWICE.on(&FAR).when(|_: &&str| -> bool { resume_unwind(Box::new(())) });
                    let call = || judged.retry_blocking(|_| Err::<(), _>("down"));
                    panicked.fetch_add(u64::from(catch_unwind(AssertUnwindSafe(call)).is_err()), Relaxed);
                }
                5 => {
                    let call = TWICE.on(&FAR).retry_blocking(|_| Err::<(), _>("down"));
                    assert!(call.is_err());
                }
                _ => {
                    let call = TWICE.on(&FAR).retry_blocking(|_| {
                        enter();
                        leave();
                        Ok::<_, &str>(())
                    });
                    answered.fetch_add(u64::from(call.is_ok()), Relaxed);
                }
            }
        }
    };
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || work(seed + thread));
        }
    });
    for (what, count) in
        [("answered", &answered), ("dropped", &dropped), ("cancelled", &cancelled), ("panicked", &panicked)]
    {
        assert!(count.load(Relaxed) > 10_000, "{what}: {}", count.load(Relaxed));
    }
    assert!(highest.into_inner() <= u64::from(IN_FLIGHT));
    let seen = FAR.snapshot();
    assert_eq!(seen.calls, 1_000_000);
    assert_eq!(seen.limit.unwrap().in_flight, Some(0));
    assert_eq!(seen.breaker.unwrap().probes, 0);
    // What a budget counts in flight is back, too: it lets as many retry as one that nobody has used.
    assert_eq!(seen.balance, Upstream::new("new").budget(Budget::in_flight(0.5, 2)).snapshot().balance);
}
