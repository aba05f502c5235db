//! Budgets and limiters: what a call and a retry cost, alone and with another thread on the same object.

use crate::harness::{Case, Group, Settings};
use governor::{Quota, RateLimiter};
use relent::{Budget, Limit, LimitAnswer, Outcome, Timestamp, Verdict};
use std::{
    hint::black_box,
    num::NonZeroU32,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};
use tower::retry::budget::{Budget as _, TpsBudget};

const FAILED: Outcome = Outcome::Failure(Verdict::Transient);
const NOW: Timestamp = Timestamp::from_nanos(1_000_000_000);

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

/// A name, and one operation on something shared.
type Once = (&'static str, Arc<dyn Fn() + Send + Sync>);

fn cases() -> Vec<Once> {
    let tower = Arc::new(TpsBudget::new(Duration::from_secs(10), 1, 0.1));
    let tower2 = tower.clone();
    let aws = Arc::new(tokio::sync::Semaphore::new(500));
    let quota = Quota::per_second(NonZeroU32::MAX).allow_burst(NonZeroU32::MAX);
    let governor = Arc::new(RateLimiter::direct(quota));
    vec![
        ("floor (compare-exchange)", Arc::new(floor)),
        ("relent ratio: a call", Arc::new(|| _ = black_box(RATIO.start(black_box(NOW), 0)))),
        (
            "relent ratio: a retry, granted or not",
            Arc::new(|| _ = black_box(RATIO.withdraw(black_box(NOW), FAILED, 0))),
        ),
        ("tower TpsBudget: a call", Arc::new(move || tower.deposit())),
        ("tower TpsBudget: a retry, granted or not", Arc::new(move || _ = black_box(tower2.withdraw()))),
        (
            "relent aws quota: a retry and its success",
            Arc::new(|| {
                let paid = black_box(AWS.withdraw(black_box(NOW), FAILED, 0));
                AWS.outcome(NOW, Outcome::Success, paid);
            }),
        ),
        (
            // Its bucket is private; this is what it is made of, without its refill.
            "aws-smithy-runtime's semaphore: the same",
            Arc::new(move || _ = black_box(aws.try_acquire_many(14))),
        ),
        ("relent grpc: a success", Arc::new(|| GRPC.outcome(black_box(NOW), Outcome::Success, None))),
        (
            "relent in flight: a call and its end",
            Arc::new(|| {
                black_box(IN_FLIGHT.start(black_box(NOW), 0));
                IN_FLIGHT.outcome(NOW, Outcome::Success, None);
            }),
        ),
        ("relent throttle: a call", Arc::new(|| _ = black_box(THROTTLE.start(black_box(NOW), u64::MAX)))),
        (
            "relent rate: a permit",
            Arc::new(|| assert_eq!(RATE.acquire(black_box(Timestamp::MAX)), LimitAnswer::Granted)),
        ),
        ("governor: a permit (reads the clock too)", Arc::new(move || _ = black_box(governor.check()))),
        (
            "relent concurrency: a permit and its end",
            Arc::new(|| {
                if CONCURRENCY.acquire(black_box(NOW)) == LimitAnswer::Granted {
                    CONCURRENCY.release(NOW, Outcome::Success, Duration::ZERO);
                }
            }),
        ),
        (
            "relent aimd: a permit and its end",
            Arc::new(|| {
                if AIMD.acquire(black_box(NOW)) == LimitAnswer::Granted {
                    AIMD.release(NOW, Outcome::Success, Duration::ZERO);
                }
            }),
        ),
        (
            "relent aws adaptive: a permit and its end",
            Arc::new(|| {
                if AWS_ADAPTIVE.acquire(black_box(NOW)) == LimitAnswer::Granted {
                    AWS_ADAPTIVE.release(NOW, Outcome::Success, Duration::ZERO);
                }
            }),
        ),
    ]
}

/// Alone.
pub(crate) fn alone() -> Group {
    let cases = cases().into_iter().map(|(name, once)| Case::new(name, move || once())).collect();
    Group { name: "budget", title: "Budgets and limiters, one thread", per: 1, cases }
}

/// Two threads on one object: nanoseconds between two operations of one thread.
pub(crate) fn together(settings: Settings) {
    let rounds = if settings.quick { 3 } else { 15 };
    if !settings.json {
        println!("## Budgets and limiters, two threads on one object\n\n| what | ns |\n|---|---:|");
    }
    for (name, once) in cases() {
        let mut samples: Vec<f64> = (0..rounds).map(|_| contended(&once)).collect();
        samples.sort_by(f64::total_cmp);
        let nanos = samples[samples.len() / 2];
        if settings.json {
            println!("{}", serde_json::json!({"name": format!("budget-together/{name}"), "nanoseconds": nanos}));
        } else {
            println!("| {name} | {nanos:.2} |");
        }
    }
}

fn contended(once: &Arc<dyn Fn() + Send + Sync>) -> f64 {
    const TIMES: u32 = 200_000;
    let (start, stop) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
    let other = {
        let (once, start, stop) = (once.clone(), start.clone(), stop.clone());
        thread::spawn(move || {
            start.wait();
            while !stop.load(Relaxed) {
                once();
            }
        })
    };
    start.wait();
    let began = Instant::now();
    (0..TIMES).for_each(|_| once());
    let took = began.elapsed();
    stop.store(true, Relaxed);
    other.join().expect("it does not panic");
    took.as_nanos() as f64 / f64::from(TIMES)
}
