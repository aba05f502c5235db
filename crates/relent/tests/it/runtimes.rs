//! What runtimes have or lack: a timer that is disabled, a clock that is paused.

use relent::{Jitter, Policy, Reason};
use std::time::{Duration, Instant};

const MILLI: Duration = Duration::from_millis(1);

/// That the feature `tokio` is on says nothing about a runtime: another crate may have turned it on.
#[test]
fn a_runtime_whose_timer_is_disabled_will_do() {
    let runtimes = [
        tokio::runtime::Builder::new_current_thread().build().unwrap(),
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap(),
    ];
    for runtime in runtimes {
        let policy =
            Policy::constant(MILLI).jitter(Jitter::None).max_attempts(3).attempt_timeout(Duration::from_secs(60));
        let err = runtime.block_on(policy.retry(async |_| Err::<(), _>("down"))).unwrap_err();
        assert_eq!((err.reason, err.attempts), (Reason::Attempts, 3));
    }
}

#[tokio::test]
async fn a_clock_that_is_not_paused_passes() {
    let begin = Instant::now();
    let policy = Policy::constant(5 * MILLI).jitter(Jitter::None).max_attempts(3);
    policy.retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    assert!(begin.elapsed() >= 10 * MILLI);
}

/// Nobody can move the clock while the only thread is blocked.
#[tokio::test(start_paused = true)]
async fn blocking_code_under_a_paused_clock_ends_by_max_elapsed() {
    let real = Instant::now();
    for (policy, least) in
        [(Policy::constant(2 * MILLI).jitter(Jitter::None), 16 * MILLI), (Policy::immediate(), 16 * MILLI)]
    {
        let policy = policy.max_attempts(u32::MAX).max_elapsed(20 * MILLI);
        let before = real.elapsed();
        let err = policy.retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
        assert_eq!(err.reason, Reason::Elapsed);
        assert!(real.elapsed() - before >= least, "{policy:?}");

        let mut retry = policy.start();
        let err = loop {
            if let Err(err) = retry.back_off_blocking("down") {
                break err;
            }
        };
        assert_eq!(err.reason, Reason::Elapsed);
    }
}

#[tokio::test(start_paused = true)]
async fn async_code_after_blocking_code_still_has_exact_delays() {
    Policy::constant(MILLI).max_attempts(2).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    let begin = tokio::time::Instant::now();
    let policy = Policy::constant(Duration::from_secs(5)).jitter(Jitter::None).max_elapsed(Duration::from_secs(12));
    let err = policy.retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    assert_eq!((err.attempts, begin.elapsed()), (3, Duration::from_secs(10)));
}
