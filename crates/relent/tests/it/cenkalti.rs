//! The behaviours that the test suite of cenkalti/backoff v4 asserts, on the counterparts here.

use crate::fake::Fake;
use relent::{Cancel, Failure, Jitter, Policy, Reason, rng::unit};
use std::{error::Error as _, fmt, io, time::Duration};

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);

/// TestZeroBackOff: ten delays of zero.
#[test]
fn zero_back_off() {
    let policy = Policy::immediate().unlimited_attempts();
    assert!(policy.delays(1).take(10).all(|delay| delay.is_zero()));
}

/// TestStopBackOff: stops at once.
#[test]
fn stop_back_off() {
    assert_eq!(Policy::immediate().max_attempts(1).delays(1).next(), None);
}

/// TestConstantBackOff.
#[test]
fn constant_back_off() {
    assert_eq!(Policy::constant(SEC).jitter(Jitter::None).delays(1).next(), Some(SEC));
}

/// TestBackOff: 500 ms doubled to 5 s, each within ten per cent.
#[test]
fn exponential_back_off() {
    let policy = Policy::exponential(500 * MS).cap(5500 * MS).jitter(Jitter::Proportional(0.1)).max_attempts(11);
    let expected = [500, 1000, 2000, 4000, 5000, 5000, 5000, 5000, 5000, 5000].map(|ms| ms * MS);
    for seed in 0..100 {
        for (delay, expected) in policy.delays(seed).zip(expected) {
            assert!(delay >= expected.mul_f64(0.9) && delay <= expected.mul_f64(1.1), "{delay:?}, not {expected:?}");
        }
    }
}

/// TestGetRandomizedInterval: thirds of the draw give thirds of the range 1..=3. Ours is half open, so 3 is 2.99.
#[test]
fn randomised_interval() {
    let policy = Policy::constant(Duration::from_nanos(2000)).jitter(Jitter::Proportional(0.5));
    let delay = |draw: f64| policy.delays(1).next_with((draw * (u64::MAX as f64)) as u64).unwrap().as_nanos();
    assert_eq!([delay(0.0), delay(0.25), delay(0.5), delay(0.75)], [1000, 1500, 2000, 2500]);
    assert_eq!(delay(1.0), 2999);
    assert_eq!(unit(0), 0.0);
}

/// TestGetElapsedTime. cenkalti's default has a limit of time; without one no clock is read before a failure.
#[test]
fn elapsed_time() {
    let fake = Fake::default();
    let policy = Policy::default().max_elapsed(900 * SEC);
    let retry = policy.start_with(&fake);
    fake.pass(SEC);
    assert_eq!(retry.elapsed(), Some(SEC));
}

/// TestMaxElapsedTime: long past the limit, it stops.
#[test]
fn max_elapsed_time() {
    let fake = Fake::default();
    let policy = Policy::default().max_elapsed(900 * SEC);
    let mut retry = policy.start_with(&fake);
    fake.pass(10_000 * SEC);
    assert_eq!(retry.back_off_blocking("late").unwrap_err().reason, Reason::Elapsed);
}

/// TestBackOffOverflow: growth from half of the greatest duration ends at the cap.
#[test]
fn overflow() {
    let base = Duration::from_nanos(u64::MAX / 2);
    let policy = Policy::exponential(base).factor(2.1).jitter(Jitter::None).cap(Duration::from_nanos(u64::MAX));
    let delays: Vec<_> = policy.delays(1).take(3).collect();
    assert_eq!(delays[1..], [Duration::from_nanos(u64::MAX); 2]);
}

/// TestRetry and TestRetryWithData: success on the third call, with its value.
#[test]
fn retry_with_data() {
    let fake = Fake::default();
    let value = Policy::default().timer(&fake).retry_blocking(|a| if a.number() == 3 { Ok(42) } else { Err("x") });
    assert_eq!(value.unwrap(), 42);
}

/// TestRetryContext: cancelled in the third call, which is the last; both the cause and the error are seen (issue 181).
#[test]
fn retry_context() {
    let (fake, cancel) = (Fake::default(), Cancel::new());
    let mut calls = 0;
    let err = Policy::default()
        .timer(&fake)
        .cancel(&cancel)
        .retry_blocking(|attempt| {
            calls += 1;
            if attempt.number() == 3 {
                cancel.cancel();
            }
            Err::<(), _>(format!("error ({calls})"))
        })
        .unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last.as_deref()), (Reason::Cancelled, 3, Some("error (3)")));
}

/// TestRetryPermanent: what is permanent is not retried, wrapped or not; nil and plain errors are as ever.
#[test]
fn permanent() {
    let run = |first: fn() -> Result<i32, Failure<io::Error>>| {
        let fake = Fake::default();
        let mut calls = 0;
        let result = Policy::default().max_attempts(3).timer(&fake).when(Failure::verdict).retry_blocking(|_| {
            calls += 1;
            first()
        });
        (calls, result.map_err(|err| err.reason))
    };
    assert_eq!(run(|| Ok(1)), (1, Ok(1)));
    assert_eq!(run(|| Err(io::Error::from(io::ErrorKind::UnexpectedEof))?), (3, Err(Reason::Attempts)));
    let permanent = || Err(Failure::permanent(io::Error::from(io::ErrorKind::UnexpectedEof)));
    assert_eq!(run(permanent), (1, Err(Reason::Permanent)));
}

/// TestPermanent: Error, Unwrap, Is and As. The wrapper shows as what it wraps, and gives it back (also with one
/// attempt, where v5 returned the wrapper: issue 177).
#[test]
fn permanent_shows_and_gives_back_what_it_wraps() {
    let failure = Failure::permanent(io::Error::from(io::ErrorKind::UnexpectedEof));
    assert_eq!(failure.to_string(), "unexpected end of file");
    assert!(failure.source().unwrap().downcast_ref::<io::Error>().is_some());
    let err = Policy::default()
        .max_attempts(1)
        .when(Failure::verdict)
        .retry_blocking(|_| Err::<(), _>(Failure::permanent(io::Error::from(io::ErrorKind::UnexpectedEof))))
        .unwrap_err();
    assert_eq!(err.last.unwrap().error.kind(), io::ErrorKind::UnexpectedEof);
}

/// TestTicker and TestTickerContext: three ticks until success. There one that is cancelled already still ticks once; here
/// a switch that is thrown starts nothing.
#[test]
fn ticker() {
    let fake = Fake::default();
    let policy = Policy::default();
    assert_eq!(policy.ticker_with(&fake).into_iter().take_while(|tick| tick.number() < 3).count(), 2);

    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(policy.ticker_with(&fake).cancel(&cancel).into_iter().count(), 0);
}

/// TestTickerDefaultTimer: without a timer given there is one.
#[test]
fn default_timer() {
    let policy = Policy::constant(MS).max_attempts(2);
    assert_eq!(policy.ticker().into_iter().count(), 2);
}

/// TestMaxTries: exactly so many retries, then stop, and after a reset again.
#[test]
fn max_tries() {
    for max_attempts in 17..30 {
        let fake = Fake::default();
        let policy = Policy::immediate().max_attempts(max_attempts + 1);
        let mut retry = policy.start_with(&fake);
        for _ in 0..max_attempts {
            retry.back_off_blocking("down").unwrap();
        }
        for _ in 0..7 {
            assert_eq!(retry.back_off_blocking("down").unwrap_err().reason, Reason::Attempts);
        }
        retry.reset();
        retry.back_off_blocking("down").unwrap();
    }
}

/// TestRetryNotify: not called for the failure that ends the call.
#[test]
fn notify() {
    #[derive(Debug)]
    struct Nth(u32);
    impl fmt::Display for Nth {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "error ({})", self.0)
        }
    }
    let fake = Fake::default();
    let told = std::cell::RefCell::new(vec![]);
    let _ = Policy::default()
        .max_attempts(3)
        .timer(&fake)
        .notify(|event| told.borrow_mut().push(event.error.to_string()))
        .retry_blocking(|attempt| Err::<(), _>(Nth(attempt.number())));
    assert_eq!(*told.borrow(), ["error (1)", "error (2)"]);
}

/// TestMaxRetriesZero: called once.
#[test]
fn no_retries() {
    let mut calls = 0;
    let _ = Policy::default().max_attempts(1).retry_blocking(|_| {
        calls += 1;
        Err::<(), _>("down")
    });
    assert_eq!(calls, 1);
}
