//! The blocking executor on a clock of the test's own.

use crate::fake::Fake;
use relent::{Jitter, Policy, Reason};
use std::{error::Error as _, io, time::Duration};

const SEC: Duration = Duration::from_secs(1);
const EXACT: Policy = Policy::exponential(SEC).jitter(Jitter::None).max_attempts(4);

#[test]
fn sleeps_the_delays_of_the_policy() {
    let fake = Fake::default();
    let err = EXACT.max_elapsed(60 * SEC).timer(&fake).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    assert_eq!(fake.slept(), [SEC, 2 * SEC, 4 * SEC]);
    assert_eq!((err.reason, err.attempts, err.elapsed), (Reason::Attempts, 4, Some(7 * SEC)));
}

#[test]
fn success_ends_it() {
    let fake = Fake::default();
    let value = EXACT.timer(&fake).retry_blocking(|a| if a.number() == 3 { Ok(42) } else { Err("down") });
    assert_eq!((value.unwrap(), fake.slept().len()), (42, 2));
}

#[test]
fn a_timeout_is_told_and_what_is_left_of_a_deadline() {
    let fake = Fake::default();
    let deadline = relent::Timestamp::ZERO + 10 * SEC;
    let mut told = vec![];
    let err = EXACT
        .attempt_timeout(6 * SEC)
        .timer(&fake)
        .deadline_at(deadline)
        .retry_blocking(|attempt| {
            told.push(attempt.timeout().unwrap());
            fake.pass(3 * SEC);
            Err::<(), _>("down")
        })
        .unwrap_err();
    assert_eq!(told, [6 * SEC, 6 * SEC, SEC]);
    assert_eq!(err.reason, Reason::Elapsed);
}

#[test]
fn a_timeout_of_the_call_is_told_as_what_is_left() {
    let fake = Fake::default();
    let policy = Policy::constant(2 * SEC).jitter(Jitter::None).timeout(10 * SEC);
    let mut told = vec![];
    let err = policy
        .timer(&fake)
        .retry_blocking(|attempt| {
            told.push(attempt.timeout().unwrap());
            fake.pass(2 * SEC);
            Err::<(), _>("down")
        })
        .unwrap_err();
    assert_eq!(told, [10 * SEC, 6 * SEC, 2 * SEC]);
    assert_eq!((err.reason, err.elapsed), (Reason::Elapsed, Some(10 * SEC)));
}

#[test]
fn what_was_not_measured_is_not_claimed() {
    let fake = Fake::default();
    let policy = Policy::constant(SEC).jitter(Jitter::None).max_attempts(2);
    let slow = |_| {
        fake.pass(10 * SEC);
        Err::<(), _>("down")
    };
    let err = policy.timer(&fake).retry_blocking(slow).unwrap_err();
    assert_eq!(err.elapsed, None);
    assert_eq!(err.to_string(), "out of attempts after 2 attempts in 11s from the first failure: down");
    assert_eq!(err.timeline().to_string(), "attempt 1 failed at 0s, then waited 1s\nattempt 2 at 1s took 10s");

    let err = policy.max_elapsed(60 * SEC).timer(&fake).retry_blocking(slow).unwrap_err();
    assert_eq!(err.to_string(), "out of attempts after 2 attempts in 21s: down");
    assert_eq!(err.timeline().to_string(), "attempt 1 at 0s took 10s, then waited 1s\nattempt 2 at 11s took 10s");
    assert_eq!((*err).to_string(), "attempts began after 0s, 11s");
}

#[test]
fn without_limits_of_time_no_clock_is_read_before_a_failure() {
    struct NoClock;
    impl relent::Timer for NoClock {
        type Sleep = std::future::Ready<()>;
        fn now(&self) -> relent::Timestamp {
            panic!("read the clock")
        }
        fn sleep(&self, _: Duration) -> Self::Sleep {
            panic!("slept")
        }
        fn seed(&self) -> u64 {
            panic!("asked for entropy")
        }
    }
    assert_eq!(EXACT.timer(NoClock).retry_blocking(|_| Ok::<_, ()>(1)).unwrap(), 1);
    let retry = EXACT.start_with(NoClock);
    assert_eq!((retry.attempt().number(), retry.elapsed()), (1, None));
}

#[test]
fn the_loop_form_keeps_the_error_and_the_reason() {
    let fake = Fake::default();
    let mut retry = EXACT.start_with(&fake);
    let mut attempts = 0;
    let err = loop {
        attempts += 1;
        if let Err(err) = retry.back_off_blocking(io::Error::from(io::ErrorKind::ConnectionRefused)) {
            break err;
        }
    };
    assert_eq!((attempts, err.attempts, fake.elapsed()), (4, 4, 7 * SEC));
    assert_eq!(err.into_last().unwrap().kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn errors_are_errors_for_anyhow_and_have_a_source() {
    fn plain() -> anyhow::Result<()> {
        Policy::immediate()
            .max_attempts(2)
            .retry_blocking(|_| Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)))?;
        Ok(())
    }
    let err = plain().unwrap_err();
    let ours = err.downcast_ref::<relent::Error<io::Error>>().unwrap();
    assert_eq!(ours.last.as_ref().unwrap().kind(), io::ErrorKind::TimedOut);

    let err = Policy::immediate()
        .max_attempts(1)
        .retry_blocking(|_| Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)))
        .map_err(relent::Error::chained)
        .unwrap_err();
    assert_eq!(err.to_string(), "out of attempts after 1 attempt");
    assert_eq!(err.source().unwrap().to_string(), "timed out");
}

#[test]
fn the_system_clock_really_waits() {
    let begin = std::time::Instant::now();
    let policy = Policy::constant(Duration::from_millis(20)).jitter(Jitter::None).max_attempts(2);
    policy.retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    assert!(begin.elapsed() >= Duration::from_millis(20));
}
