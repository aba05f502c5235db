//! Budgets and limiters: what a call and a retry cost, alone and with another thread on the same object.

use crate::{
    harness::{Case, Group},
    rival,
};
use governor::{Quota, RateLimiter};
use relent::{Budget, Limit, LimitAnswer, Outcome, Timestamp, Verdict};
use std::{
    hint::black_box,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::*},
    },
    time::Duration,
};
use tower::retry::budget::{Budget as _, TpsBudget};

const FAILED: Outcome = Outcome::Failure(Verdict::Transient);

static FLOOR: AtomicU64 = AtomicU64::new(0);
static RATIO: Budget = Budget::ratio(0.1);
static AWS: Budget = Budget::aws_quota_2_1();
static GRPC: Budget = Budget::grpc(100, 0.1);
static IN_FLIGHT: Budget = Budget::in_flight(0.2, 3);
static THROTTLE: Budget = Budget::throttle(2.0);
static RATE: Limit = Limit::rate(1_000_000).burst(1_000_000_000);
static CONCURRENCY: Limit = Limit::concurrency(100);
static AIMD: Limit = Limit::aimd(100);
static AWS_ADAPTIVE: Limit = Limit::aws_adaptive();

/// The least there is: one word read, checked and changed.
fn floor() {
    let mut old = FLOOR.load(Relaxed);
    while let Err(other) = FLOOR.compare_exchange_weak(old, old.wrapping_add(1), AcqRel, Relaxed) {
        old = other;
    }
}

/// A name, and one operation on something shared, at a time.
type Once = (&'static str, Arc<dyn Fn(Timestamp) + Send + Sync>);

fn cases() -> Vec<Once> {
    let tower = Arc::new(TpsBudget::new(Duration::from_secs(10), 1, 0.1));
    let tower2 = tower.clone();
    let aws = Arc::new(tokio::sync::Semaphore::new(500));
    let quota = Quota::per_second(NonZeroU32::MAX).allow_burst(NonZeroU32::MAX);
    let governor = Arc::new(RateLimiter::direct(quota));
    vec![
        ("floor (compare-exchange)", Arc::new(|_| floor())),
        ("relent ratio: a call", Arc::new(|now| _ = black_box(RATIO.start(now, 0)))),
        ("relent ratio: a retry, granted or not", Arc::new(|now| _ = black_box(RATIO.withdraw(now, FAILED, 0)))),
        ("tower TpsBudget: a call", Arc::new(move |_| tower.deposit())),
        ("tower TpsBudget: a retry, granted or not", Arc::new(move |_| _ = black_box(tower2.withdraw()))),
        (
            "relent aws quota: a retry and its success",
            Arc::new(|now| {
                let paid = black_box(AWS.withdraw(now, FAILED, 0));
                AWS.outcome(now, Outcome::Success, paid);
            }),
        ),
        (
            // Its bucket is private; this is what it is made of, without its refill.
            "aws-smithy-runtime's semaphore: the same",
            Arc::new(move |_| _ = black_box(aws.try_acquire_many(14))),
        ),
        ("relent grpc: a success", Arc::new(|now| GRPC.outcome(now, Outcome::Success, None))),
        (
            "relent in flight: a call and its end",
            Arc::new(|now| {
                black_box(IN_FLIGHT.start(now, 0));
                IN_FLIGHT.outcome(now, Outcome::Success, None);
            }),
        ),
        ("relent throttle: a call", Arc::new(|now| _ = black_box(THROTTLE.start(now, u64::MAX)))),
        (
            "relent rate: a permit",
            Arc::new(|_| assert_eq!(RATE.acquire(black_box(Timestamp::MAX)), LimitAnswer::Granted)),
        ),
        ("governor: a permit (reads the clock too)", Arc::new(move |_| _ = black_box(governor.check()))),
        (
            "relent concurrency: a permit and its end",
            Arc::new(|now| {
                if CONCURRENCY.acquire(now) == LimitAnswer::Granted {
                    CONCURRENCY.release(now, Outcome::Success, Duration::ZERO);
                }
            }),
        ),
        (
            "relent aimd: a permit and its end",
            Arc::new(|now| {
                if AIMD.acquire(now) == LimitAnswer::Granted {
                    AIMD.release(now, Outcome::Success, Duration::ZERO);
                }
            }),
        ),
        (
            "relent aws adaptive: a permit and its end",
            Arc::new(|now| {
                if AWS_ADAPTIVE.acquire(now) == LimitAnswer::Granted {
                    AWS_ADAPTIVE.release(now, Outcome::Success, Duration::ZERO);
                }
            }),
        ),
    ]
}

/// A microsecond later each time: who counts over a window would be full at some time, and then counts no more.
fn ticking(once: &Arc<dyn Fn(Timestamp) + Send + Sync>) -> impl FnMut() + Send + 'static {
    let (once, mut nanos) = (once.clone(), 1_000_000_000);
    move || {
        nanos += 1000;
        once(Timestamp::from_nanos(black_box(nanos)));
    }
}

/// Alone.
pub(crate) fn alone() -> Group {
    let cases = cases().into_iter().map(|(name, once)| Case::new(name, ticking(&once))).collect();
    Group { name: "budget", title: "Budgets and limiters, one thread", per: 1, cases }
}

/// Two threads on one object.
pub(crate) fn two_threads() -> Group {
    let cases = cases().into_iter().map(|(name, once)| rival::beside(name, || ticking(&once))).collect();
    let title = "Budgets and limiters, while a second thread does the same on the same object";
    Group { name: "budget-two-threads", title, per: 1, cases }
}
