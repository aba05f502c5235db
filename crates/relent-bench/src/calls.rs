//! Calls: what a library costs where nothing fails, and where everything fails at once.

use crate::harness::{Case, Group};
use relent::{Policy, Timer, Timestamp};
use std::{
    cell::Cell,
    future::{Future, Ready, ready},
    hint::black_box,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use tower::Service;

static POLICY: Policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).max_attempts(4);

const RETRIES: u32 = 100;
static JITTERED: Policy = Policy::constant(Duration::from_nanos(2)).max_attempts(RETRIES + 1);
static IMMEDIATE: Policy = Policy::immediate().max_attempts(RETRIES + 1);

/// The operation: cheap, and its outcome is not known to the compiler.
#[inline(always)]
fn succeed() -> Result<u64, u32> {
    if black_box(true) { Ok(7) } else { Err(7) }
}

#[inline(always)]
fn fail() -> Result<u64, u32> {
    if black_box(false) { Ok(7) } else { Err(7) }
}

/// Only the value is looked at: an error is large in one library and small in another, and there is none.
#[inline(always)]
fn consume<E>(result: Result<u64, E>) {
    black_box(result.is_ok());
}

/// Polls until ready: nothing here ever waits for anything but tokio's timer. A macro, since a future that is awaited is
/// not moved either.
macro_rules! finish {
    ($future:expr) => {{
        let mut future = pin!($future);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(value) = Future::poll(future.as_mut(), &mut context) {
                break value;
            }
        }
    }};
}

pub(crate) fn first_success_blocking() -> Group {
    let cases = vec![
        Case::new("floor: a direct call", || consume(succeed())),
        Case::new("relent", || consume(POLICY.retry_blocking(|_| succeed()))),
        Case::new("relent, its own loop (start)", || {
            let mut retry = POLICY.start();
            let value = loop {
                match succeed() {
                    Ok(value) => break Ok(value),
                    Err(error) => match retry.back_off_blocking(error) {
                        Ok(()) => {}
                        Err(error) => break Err(error),
                    },
                }
            };
            consume(value);
        }),
        Case::new("backon", || consume(backon::BlockingRetryable::retry(succeed, exponential()).call())),
        Case::new("backoff", || {
            consume(backoff::retry(backoff::ExponentialBackoff::default(), || {
                succeed().map_err(backoff::Error::transient)
            }));
        }),
        Case::new("retry", || {
            let delays = retry::delay::Exponential::from_millis(100).map(retry::delay::jitter).take(3);
            consume(retry::retry(delays, succeed));
        }),
        Case::new("exponential-backoff (its documented loop)", || {
            let (base, cap) = (Duration::from_millis(100), Duration::from_secs(10));
            for delay in exponential_backoff::Backoff::new(4, base, cap) {
                match (succeed(), delay) {
                    (Ok(value), _) => {
                        black_box(value);
                        return;
                    }
                    (Err(_), Some(delay)) => std::thread::sleep(delay),
                    (Err(_), None) => return,
                }
            }
        }),
    ];
    Group { name: "blocking", title: "Success at the first attempt, blocking", per: 1, cases }
}

pub(crate) fn first_success_async() -> Group {
    let strategy =
        || tokio_retry::strategy::ExponentialBackoff::from_millis(10).map(tokio_retry::strategy::jitter).take(3);
    let strategy2 =
        || tokio_retry2::strategy::ExponentialBackoff::from_millis(10).map(tokio_retry2::strategy::jitter).take(3);
    let mut service = tower::retry::Retry::new(Attempts(3), tower::service_fn(|()| async { succeed() }));
    let cases = vec![
        Case::new("floor: a direct call", || consume(finish!(async { succeed() }))),
        Case::new("relent", || consume(finish!(POLICY.retry(async |_| succeed())))),
        Case::new("backon", || {
            consume(finish!(backon::Retryable::retry(async || succeed(), exponential()).into_future()))
        }),
        Case::new("tokio-retry", move || {
            consume(finish!(tokio_retry::Retry::start(strategy(), || async { succeed() })));
        }),
        Case::new("tokio-retry2", move || {
            let operation = || async { succeed().map_err(tokio_retry2::RetryError::transient) };
            consume(finish!(tokio_retry2::Retry::spawn(strategy2(), operation)));
        }),
        Case::new("backoff", || {
            let operation = || async { succeed().map_err(backoff::Error::transient) };
            consume(finish!(backoff::future::retry(backoff::ExponentialBackoff::default(), operation)));
        }),
        Case::new("tower", move || consume(finish!(service.call(())))),
    ];
    Group { name: "async", title: "Success at the first attempt, async", per: 1, cases }
}

pub(crate) fn hundred_retries() -> Group {
    let cases = vec![
        Case::new("floor: a bare loop", || {
            let mut attempts = 0u32;
            while fail().is_err() && attempts < RETRIES {
                attempts += 1;
            }
            black_box(attempts);
        }),
        Case::new("relent, blocking", || consume(IMMEDIATE.retry_blocking(|_| fail()))),
        Case::new("relent, async", || consume(finish!(IMMEDIATE.retry(async |_| fail())))),
        Case::new("relent, blocking, a clock of the program's own", || {
            consume(IMMEDIATE.timer(Still).retry_blocking(|_| fail()));
        }),
        Case::new("relent, async, jitter, a sleeper that does not sleep", || {
            let retrier = JITTERED.timer(Still);
            consume(finish!(retrier.retry(async |_| fail())));
        }),
        Case::new("backon, blocking, a sleeper that does not sleep", || {
            consume(backon::BlockingRetryable::retry(fail, constant()).sleep(|_| ()).call());
        }),
        Case::new("backon, async, a sleeper that does not sleep", || {
            let retry = backon::Retryable::retry(async || fail(), constant()).sleep(|_| ready(()));
            consume(finish!(retry.into_future()));
        }),
        Case::new("backon, async, jitter, a sleeper that does not sleep", || {
            let retry = backon::Retryable::retry(async || fail(), constant().with_jitter()).sleep(|_| ready(()));
            consume(finish!(retry.into_future()));
        }),
        Case::new("retry, blocking", || {
            consume(retry::retry(retry::delay::NoDelay.take(RETRIES as usize), fail));
        }),
        Case::new("backoff, blocking", || {
            let left = Cell::new(RETRIES);
            let operation = || match left.get() {
                0 => fail().map_err(backoff::Error::permanent),
                more => {
                    left.set(more - 1);
                    fail().map_err(backoff::Error::transient)
                }
            };
            consume(backoff::retry(backoff::backoff::Zero {}, operation));
        }),
        Case::slow("tokio-retry, through tokio's timer", || {
            // A runtime cannot be entered twice on a thread.
            let thread = std::thread::spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
                let delays = tokio_retry::strategy::FixedInterval::from_millis(0).take(RETRIES as usize);
                let call = async { tokio_retry::Retry::start(delays, || async { fail() }).await };
                runtime.expect("a runtime can be made").block_on(call)
            });
            consume(thread.join().expect("the call does not panic"));
        }),
    ];
    Group { name: "zero", title: "100 retries without delay, per attempt", per: RETRIES + 1, cases }
}

pub(crate) fn giving_up() -> Group {
    let cases = vec![
        Case::new("floor: a direct call", || consume(fail())),
        Case::new("relent, blocking", || consume(POLICY.max_attempts(1).retry_blocking(|_| fail()))),
        Case::new("relent, async", || consume(finish!(POLICY.max_attempts(1).retry(async |_| fail())))),
        Case::new("relent, blocking, permanent", || consume(POLICY.when(|_: &u32| false).retry_blocking(|_| fail()))),
        Case::new("relent, async, permanent", || {
            consume(finish!(POLICY.when(|_: &u32| false).retry(async |_| fail())));
        }),
        Case::new("backon, blocking", || {
            consume(backon::BlockingRetryable::retry(fail, exponential().with_max_times(0)).call());
        }),
        Case::new("backon, async", || {
            consume(finish!(backon::Retryable::retry(async || fail(), exponential().with_max_times(0)).into_future()));
        }),
        Case::new("backon, blocking, permanent", || {
            consume(backon::BlockingRetryable::retry(fail, exponential()).when(|_| false).call());
        }),
    ];
    Group { name: "give-up", title: "Giving up after one attempt", per: 1, cases }
}

fn exponential() -> backon::ExponentialBuilder {
    backon::ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(10))
        .with_max_times(3)
        .with_jitter()
}

fn constant() -> backon::ConstantBuilder {
    backon::ConstantBuilder::new().with_delay(Duration::ZERO).with_max_times(RETRIES as usize)
}

/// A clock that stands still, and a sleeper that does not sleep.
struct Still;

impl Timer for Still {
    type Sleep = Ready<()>;

    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }

    fn sleep(&self, _: Duration) -> Ready<()> {
        ready(())
    }
}

/// A policy for tower: so many retries, at once.
#[derive(Clone)]
pub(crate) struct Attempts(pub(crate) u32);

impl<Req: Clone, Res, E> tower::retry::Policy<Req, Res, E> for Attempts {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Req, result: &mut Result<Res, E>) -> Option<Ready<()>> {
        if result.is_ok() || self.0 == 0 {
            return None;
        }
        self.0 -= 1;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        Some(request.clone())
    }
}
