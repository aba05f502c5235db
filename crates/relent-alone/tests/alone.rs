//! What must hold whatever features are on.

use relent::{Decision, Jitter, Policy, Reason, Timer, Timestamp, Verdict};
use std::{
    cell::Cell,
    future::{Ready, ready},
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

const EXACT: Policy = Policy::exponential(Duration::from_secs(1)).jitter(Jitter::None).max_attempts(3);

/// A clock that is moved by sleeping.
#[derive(Default)]
struct Fake(Cell<Duration>);

impl Timer for Fake {
    type Sleep = Ready<()>;

    fn now(&self) -> Timestamp {
        Timestamp::ZERO + self.0.get()
    }

    fn sleep(&self, delay: Duration) -> Ready<()> {
        self.0.set(self.0.get() + delay);
        ready(())
    }
}

/// Runs a future that never has to wait.
fn now_or_never<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn the_machine_decides() {
    let mut call = EXACT.call(Timestamp::ZERO, 7);
    assert_eq!(call.on_failure(Timestamp::ZERO, Verdict::Transient), Decision::Retry(Duration::from_secs(1)));
    assert_eq!(call.on_failure(Timestamp::ZERO, Verdict::Transient), Decision::Retry(Duration::from_secs(2)));
    assert_eq!(call.on_failure(Timestamp::ZERO, Verdict::Transient), Decision::GiveUp(Reason::Attempts));
}

#[test]
fn closures_and_loops_run_on_a_timer_that_is_brought() {
    let fake = Fake::default();
    let err = now_or_never(EXACT.timer(&fake).retry(async |_| Err::<(), _>("down"))).unwrap_err();
    assert_eq!((err.reason, err.attempts, fake.0.get()), (Reason::Attempts, 3, Duration::from_secs(3)));

    let mut retry = EXACT.start_with(&fake);
    assert!(now_or_never(retry.back_off("down")).is_ok());
    assert_eq!(fake.0.get(), Duration::from_secs(4));
}

#[test]
fn an_attempt_is_dropped_at_its_timeout() {
    let fake = Fake::default();
    let policy = EXACT.attempt_timeout(Duration::from_secs(5));
    let never = async |_| std::future::pending::<Result<(), &str>>().await;
    let err = now_or_never(policy.timer(&fake).retry(never)).unwrap_err();
    assert_eq!((err.attempts, fake.0.get()), (3, Duration::from_secs(18)));
}

#[cfg(feature = "std")]
#[test]
fn threads_sleep_and_are_cancelled() {
    let policy = Policy::constant(Duration::from_millis(1)).jitter(Jitter::None).max_attempts(3);
    let begin = std::time::Instant::now();
    assert_eq!(policy.retry_blocking(|_| Err::<(), _>("down")).unwrap_err().attempts, 3);
    assert!(begin.elapsed() >= Duration::from_millis(2));
    assert_eq!(policy.ticker().into_iter().count(), 3);

    let cancel = relent::Cancel::new();
    cancel.cancel();
    let err = policy.cancel(&cancel).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Cancelled, 0));
}

/// With the feature `tokio` a paused clock is obeyed; without, time passes.
#[cfg(feature = "std")]
#[test]
fn on_a_runtime() {
    let policy = Policy::constant(Duration::from_millis(20)).jitter(Jitter::None).max_attempts(2);
    let paused = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    paused.block_on(async {
        let (real, clock) = (std::time::Instant::now(), tokio::time::Instant::now());
        policy.retry(async |_| Err::<(), _>("down")).await.unwrap_err();
        if cfg!(feature = "tokio") {
            assert_eq!(clock.elapsed(), Duration::from_millis(20));
        } else {
            assert!(real.elapsed() >= Duration::from_millis(20));
        }
    });
}

#[cfg(feature = "stream")]
#[test]
fn a_ticker_is_a_stream() {
    use futures_core::Stream;
    let fake = Fake::default();
    let mut ticker = pin!(EXACT.ticker_with(&fake));
    let mut context = Context::from_waker(Waker::noop());
    let mut numbers = Vec::new();
    while let Poll::Ready(Some(tick)) = ticker.as_mut().poll_next(&mut context) {
        numbers.push(tick.number());
    }
    assert_eq!(numbers, [1, 2, 3]);
}

#[cfg(feature = "net")]
#[test]
fn sockets_connect() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(relent::net::connect(&EXACT, &address)).unwrap();
}

#[cfg(feature = "http")]
#[test]
fn a_response_has_a_verdict() {
    let headers = http::HeaderMap::new();
    let verdict = relent::wire::verdict(http::StatusCode::SERVICE_UNAVAILABLE, &headers, Duration::ZERO);
    assert_eq!(verdict, Some(Verdict::Transient));
}

#[cfg(feature = "toml")]
#[test]
fn a_policy_is_read_by_its_keys() {
    let mut draft = relent::config::Draft::default();
    draft.set("max_attempts", "3").unwrap();
    assert_eq!(draft.settings().unwrap().max_attempts, Some(3));
}
