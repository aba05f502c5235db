//! The delays themselves: exponential from 100 ms, doubling, up to 10 s, full jitter (or the nearest a library has).

use crate::harness::{Case, Group};
use relent::{
    Policy, Timestamp, Verdict,
    rng::{GAMMA, mix, scale},
};
use std::{hint::black_box, time::Duration};

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(10);
const EIGHT: u32 = 8;

static ENDLESS: Policy = Policy::exponential(BASE).cap(CAP).unlimited_attempts();
static NINE_ATTEMPTS: Policy = Policy::exponential(BASE).cap(CAP).max_attempts(EIGHT + 1);

/// What every library has to do at least: draw, and multiply.
#[derive(Clone, Copy)]
struct Floor(u64);

impl Floor {
    fn next(&mut self, width: u64) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        scale(mix(self.0), width)
    }
}

/// One delay after another, at the cap, where clients of a long outage are.
pub(crate) fn next_delay() -> Group {
    let mut floor = Floor(1);
    let mut relent = ENDLESS.delays(1);
    let mut call = ENDLESS.call(Timestamp::ZERO, 1);
    let mut backon = backon_builder().without_max_times();
    let mut backon = backon::BackoffBuilder::build(std::mem::take(&mut backon));
    let mut tokio_retry = tokio_retry();
    let mut tokio_retry2 = tokio_retry2();
    let mut backoff = backoff();
    let tower_maker = tower_maker();
    let mut tower = { tower::retry::backoff::MakeBackoff::make_backoff(&mut tower_maker.clone()) };
    let mut exponential = exponential_backoff::Backoff::new(u32::MAX, BASE, CAP).into_iter();
    let policies = retry_policies(u32::MAX);
    let started = std::time::SystemTime::now();
    let mut retry = retry();
    let cases = vec![
        Case::new("floor", move || _ = black_box(floor.next(black_box(10_000_000_000)))),
        Case::new("relent", move || _ = black_box(relent.next())),
        Case::new("relent, with its limits (Call::on_failure)", move || {
            _ = black_box(call.on_failure(Timestamp::ZERO, Verdict::Transient));
        }),
        Case::new("backon", move || _ = black_box(backon.next())),
        Case::new("tokio-retry", move || _ = black_box(tokio_retry.next())),
        Case::new("tokio-retry2", move || _ = black_box(tokio_retry2.next())),
        Case::new("backoff", move || _ = black_box(backoff::backoff::Backoff::next_backoff(&mut backoff))),
        Case::new("tower (makes the timer too)", move || {
            _ = black_box(tower::retry::backoff::Backoff::next_backoff(&mut tower));
        }),
        Case::new("exponential-backoff", move || _ = black_box(exponential.next())),
        Case::new("retry-policies (reads the clock too)", move || {
            _ = black_box(retry_policies::RetryPolicy::should_retry(&policies, started, black_box(20)));
        }),
        Case::new("retry", move || _ = black_box(retry.next())),
    ];
    Group { name: "delay", title: "Next delay: exponential, cap, full jitter", per: 1, cases }
}

/// A call from its start: per delay.
pub(crate) fn start_and_take_eight() -> Group {
    let mut seed = 0u64;
    let mut seeds = move || {
        seed = seed.wrapping_add(GAMMA);
        seed
    };
    let mut more_seeds = seeds;
    let mut floor_seeds = seeds;
    let tower_maker = tower_maker();
    let started = std::time::SystemTime::now();
    let cases = vec![
        Case::new("floor", move || {
            let mut floor = Floor(floor_seeds());
            let mut width = black_box(100_000_000u64);
            for _ in 0..EIGHT {
                black_box(floor.next(width));
                width = (width * 2).min(10_000_000_000);
            }
        }),
        Case::new("relent", move || take(NINE_ATTEMPTS.delays(seeds()))),
        Case::new("relent, with its limits (Call::on_failure)", move || {
            let mut call = NINE_ATTEMPTS.call(Timestamp::ZERO, more_seeds());
            for _ in 0..EIGHT {
                black_box(call.on_failure(Timestamp::ZERO, Verdict::Transient));
            }
        }),
        Case::new("backon", || take(backon::BackoffBuilder::build(backon_builder()))),
        Case::new("tokio-retry", || take(tokio_retry())),
        Case::new("tokio-retry2", || take(tokio_retry2())),
        Case::new("backoff", || {
            let mut backoff = backoff();
            for _ in 0..EIGHT {
                black_box(backoff::backoff::Backoff::next_backoff(&mut backoff));
            }
        }),
        Case::new("tower (makes the timer too)", move || {
            let mut tower = tower::retry::backoff::MakeBackoff::make_backoff(&mut tower_maker.clone());
            for _ in 0..EIGHT {
                _ = black_box(tower::retry::backoff::Backoff::next_backoff(&mut tower));
            }
        }),
        Case::new("exponential-backoff", || {
            let backoff = exponential_backoff::Backoff::new(EIGHT + 1, BASE, CAP);
            for delay in backoff.into_iter().take(EIGHT as usize) {
                black_box(delay);
            }
        }),
        Case::new("retry-policies (reads the clock too)", move || {
            let policies = retry_policies(EIGHT);
            for past in 0..EIGHT {
                black_box(retry_policies::RetryPolicy::should_retry(&policies, started, past));
            }
        }),
        Case::new("retry", || take(retry())),
    ];
    Group { name: "start", title: "Start a call and take 8 delays, per delay", per: EIGHT, cases }
}

#[inline(always)]
fn take(delays: impl Iterator<Item = Duration>) {
    for delay in delays.take(EIGHT as usize) {
        black_box(delay);
    }
}

fn backon_builder() -> backon::ExponentialBuilder {
    backon::ExponentialBuilder::new()
        .with_min_delay(BASE)
        .with_max_delay(CAP)
        .with_max_times(EIGHT as usize)
        .with_jitter()
}

fn tokio_retry() -> impl Iterator<Item = Duration> {
    let delays = tokio_retry::strategy::ExponentialBackoff::from_millis(2).factor(50).max_delay(CAP);
    delays.map(tokio_retry::strategy::jitter)
}

fn tokio_retry2() -> impl Iterator<Item = Duration> {
    let delays = tokio_retry2::strategy::ExponentialBackoff::from_millis(2).factor(50).max_delay(CAP);
    delays.map(tokio_retry2::strategy::jitter)
}

fn backoff() -> backoff::ExponentialBackoff {
    backoff::ExponentialBackoffBuilder::new()
        .with_initial_interval(BASE)
        .with_multiplier(2.0)
        .with_max_interval(CAP)
        .with_max_elapsed_time(None)
        .build()
}

fn tower_maker() -> tower::retry::backoff::ExponentialBackoffMaker {
    let random = tower::util::rng::HasherRng::default();
    tower::retry::backoff::ExponentialBackoffMaker::new(BASE, CAP, 1.0, random).expect("the parameters are good")
}

fn retry_policies(retries: u32) -> retry_policies::policies::ExponentialBackoff {
    retry_policies::policies::ExponentialBackoff::builder()
        .retry_bounds(BASE, CAP)
        .jitter(retry_policies::Jitter::Full)
        .build_with_max_retries(retries)
}

fn retry() -> impl Iterator<Item = Duration> {
    let delays = retry::delay::Exponential::from_millis_with_factor(100, 2.0);
    delays.map(|delay| retry::delay::jitter(delay.min(CAP)))
}
