//! The async executor under tokio's paused clock, where every time is exact.

use relent::{Cause, Failure, Jitter, Policy, Reason, Verdict};
use std::{
    cell::{Cell, RefCell},
    time::Duration,
};
use tokio::time::Instant;

const SEC: Duration = Duration::from_secs(1);
const EXACT: Policy = Policy::exponential(SEC).jitter(Jitter::None).max_attempts(4);

#[tokio::test(start_paused = true)]
async fn attempts_start_exactly_when_the_delay_is_over() {
    let begin = Instant::now();
    let starts = RefCell::new(vec![]);
    let err = EXACT
        .max_elapsed(60 * SEC)
        .retry(async |attempt| {
            starts.borrow_mut().push((attempt.number(), begin.elapsed()));
            Err::<(), _>("down")
        })
        .await
        .unwrap_err();
    assert_eq!(*starts.borrow(), [(1, Duration::ZERO), (2, SEC), (3, 3 * SEC), (4, 7 * SEC)]);
    assert_eq!((err.reason, err.attempts, err.elapsed, err.last), (Reason::Attempts, 4, Some(7 * SEC), Some("down")));
}

#[tokio::test(start_paused = true)]
async fn the_closure_itself_is_called_after_the_delay() {
    // `backoff` 0.4.0 calls it before: [0, 0, 1 h].
    let begin = Instant::now();
    let mut calls = vec![];
    let _ = EXACT
        .retry(|_| {
            calls.push(begin.elapsed());
            async { Err::<(), _>("down") }
        })
        .await;
    assert_eq!(calls, [Duration::ZERO, SEC, 3 * SEC, 7 * SEC]);
}

#[tokio::test(start_paused = true)]
async fn watchers_are_told_the_delay_that_comes() {
    // tokio-retry2 tells the sum of the delays that have passed.
    let told = RefCell::new(vec![]);
    let _ = EXACT
        .notify(|event| {
            told.borrow_mut().push((event.attempt.number(), event.delay, event.elapsed, event.error.to_string()))
        })
        .retry(async |_| {
            tokio::time::sleep(10 * SEC).await;
            Err::<(), _>("down")
        })
        .await;
    let down = || "down".to_owned();
    assert_eq!(
        *told.borrow(),
        [(1, SEC, 10 * SEC, down()), (2, 2 * SEC, 21 * SEC, down()), (3, 4 * SEC, 33 * SEC, down())]
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_dropped_and_retried() {
    let begin = Instant::now();
    let told = RefCell::new(vec![]);
    let policy = EXACT.attempt_timeout(5 * SEC);
    let value = policy
        .notify(|event: &relent::Event<'_, &str>| {
            assert!(matches!(event.error, Cause::TimedOut(limit) if limit == 5 * SEC));
            told.borrow_mut().push(event.to_string());
        })
        .retry(async |attempt| {
            assert_eq!(attempt.timeout(), Some(5 * SEC));
            if attempt.number() == 1 {
                tokio::time::sleep(3600 * SEC).await;
            }
            Ok(attempt.number())
        })
        .await
        .unwrap();
    assert_eq!((value, begin.elapsed()), (2, 6 * SEC));
    assert_eq!(*told.borrow(), ["attempt 1 failed: timed out after 5s; next in 1s"]);
}

#[tokio::test(start_paused = true)]
async fn a_last_attempt_that_times_out_says_so_and_keeps_the_error_before() {
    let err = EXACT
        .max_attempts(2)
        .attempt_timeout(5 * SEC)
        .retry(async |attempt| match attempt.number() {
            1 => Err::<(), _>("refused"),
            _ => std::future::pending().await,
        })
        .await
        .unwrap_err();
    assert_eq!(err.to_string(), "out of attempts after 2 attempts in 6s: timed out after 5s");
    assert_eq!((err.last, err.timed_out), (Some("refused"), Some(5 * SEC)));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_ends_everything_at_its_moment() {
    let begin = Instant::now();
    let policy = EXACT.timeout(10 * SEC).attempt_timeout(4 * SEC);
    let mut told = vec![];
    let err = policy
        .retry(|attempt| {
            told.push(attempt.timeout().unwrap());
            std::future::pending::<Result<(), &str>>()
        })
        .await
        .unwrap_err();
    assert_eq!(told, [4 * SEC, 4 * SEC], "the third would begin at 11 s");
    assert_eq!((err.reason, err.attempts, begin.elapsed()), (Reason::Elapsed, 2, 9 * SEC));

    let begin = Instant::now();
    let call = EXACT.timeout(2 * SEC).retry(async |attempt| {
        if attempt.number() == 1 {
            return Err("down");
        }
        std::future::pending::<Result<(), &str>>().await
    });
    let err = call.await.unwrap_err();
    assert_eq!((err.reason, err.timed_out, begin.elapsed()), (Reason::Elapsed, Some(SEC), 2 * SEC));
    assert_eq!(err.to_string(), "out of time after 2 attempts in 2s: timed out after 1s");
    assert_eq!(err.last, Some("down"));
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_that_cannot_end_in_time() {
    let begin = Instant::now();
    let err = EXACT.max_elapsed(2 * SEC).retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Elapsed, 2));
    assert_eq!(begin.elapsed(), SEC, "gives up when the third could not start, not after waiting for it");
}

#[tokio::test(start_paused = true)]
async fn max_elapsed_counts_from_the_beginning_of_the_first_attempt() {
    // backon counts sleep only: with a limit of 20 ms and attempts of 50 ms it ran for a second.
    let err = EXACT
        .max_elapsed(10 * SEC)
        .retry(async |_| {
            tokio::time::sleep(9 * SEC).await;
            Err::<(), _>("down")
        })
        .await
        .unwrap_err();
    assert_eq!((err.reason, err.attempts, err.elapsed), (Reason::Elapsed, 2, Some(19 * SEC)));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_bounds_attempts_and_delays() {
    let begin = Instant::now();
    let err = EXACT
        .retrier()
        .deadline(begin.into_std() + 5 * SEC)
        .retry(async |attempt| {
            if attempt.number() == 3 {
                assert_eq!(attempt.timeout(), Some(2 * SEC));
                tokio::time::sleep(3600 * SEC).await;
            }
            Err::<(), _>("down")
        })
        .await
        .unwrap_err();
    assert_eq!((err.reason, err.attempts, begin.elapsed()), (Reason::Elapsed, 3, 5 * SEC));
}

#[tokio::test(start_paused = true)]
async fn a_pushback_is_kept_and_a_long_one_ends_the_call_at_once() {
    let begin = Instant::now();
    let pushed = |after| {
        move |attempt: relent::Attempt| async move {
            if attempt.number() == 1 { Err(Failure::after("busy", after)) } else { Ok(()) }
        }
    };
    EXACT.when(Failure::verdict).retry(pushed(60 * SEC)).await.unwrap();
    assert_eq!(begin.elapsed(), 60 * SEC);

    // got and axios-retry take thirty days for "at once".
    let begin = Instant::now();
    let err = EXACT.when(Failure::verdict).retry(pushed(30 * 24 * 3600 * SEC)).await.unwrap_err();
    assert_eq!(
        (err.reason, err.pushback, begin.elapsed()),
        (Reason::PushbackTooLong, Some(30 * 24 * 3600 * SEC), Duration::ZERO)
    );
    assert_eq!(err.to_string(), "told to wait too long (720h) after 1 attempt: busy");
}

#[tokio::test(start_paused = true)]
async fn overloaded_ends_the_call_and_every_call_around_it() {
    let calls = Cell::new(0);
    let err = EXACT
        .retry(async |_| {
            EXACT
                .when(|_: &&str| Verdict::Overloaded)
                .retry(async |_| {
                    calls.set(calls.get() + 1);
                    Err::<(), _>("overloaded")
                })
                .await
        })
        .await
        .unwrap_err();
    assert_eq!((err.attempts, calls.get()), (1, 1));
    assert_eq!(err.last.unwrap().reason, Reason::Overloaded);
}

#[tokio::test(start_paused = true)]
async fn a_spread_comes_before_the_first_attempt() {
    let policy = EXACT.spread(100 * SEC);
    let mut waits = vec![];
    for _ in 0..50 {
        let begin = Instant::now();
        policy.retry(async |_| Ok::<_, ()>(())).await.unwrap();
        waits.push(begin.elapsed());
    }
    assert!(waits.iter().all(|wait| *wait <= 100 * SEC));
    assert!(waits.iter().any(|wait| *wait > 50 * SEC) && waits.iter().any(|wait| *wait < 50 * SEC), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn the_loop_resets_when_told_and_when_healthy() {
    let mut retry = EXACT.start().reset_after(60 * SEC);
    let begin = Instant::now();
    retry.back_off("refused").await.unwrap();
    retry.back_off("refused").await.unwrap();
    assert_eq!((retry.attempt().number(), begin.elapsed()), (3, 3 * SEC));

    tokio::time::sleep(59 * SEC).await;
    retry.back_off("lost after 59 s").await.unwrap();
    assert_eq!(retry.attempt().number(), 4, "59 s is not healthy yet");

    tokio::time::sleep(60 * SEC).await;
    retry.back_off("lost after 60 s").await.unwrap();
    assert_eq!(retry.attempt().number(), 2);

    retry.reset();
    assert_eq!(retry.attempt().number(), 1);
}

/// What was well for longer than any limit is not over for that.
#[tokio::test(start_paused = true)]
async fn limits_of_time_count_from_the_end_of_what_was_well() {
    for policy in [EXACT.max_elapsed(30 * SEC), EXACT.timeout(30 * SEC)] {
        let mut retry = policy.start().reset_after(10 * SEC);
        for _ in 0..3 {
            tokio::time::sleep(3600 * SEC).await;
            let lost = Instant::now();
            retry.back_off("lost").await.unwrap();
            retry.back_off("refused").await.unwrap();
            assert_eq!((retry.attempt().number(), lost.elapsed()), (3, 3 * SEC));
        }
        let lost = Instant::now();
        while retry.back_off("refused").await.is_ok() {}
        assert!(lost.elapsed() <= 30 * SEC, "{:?}", lost.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn the_loop_takes_verdicts() {
    let mut retry = EXACT.start();
    let begin = Instant::now();
    retry.back_off_as("busy", Verdict::After(30 * SEC)).await.unwrap();
    assert_eq!(begin.elapsed(), 30 * SEC);
    let err = retry.back_off_as("gone", false).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last), (Reason::Permanent, 2, Some("gone")));
}

#[tokio::test(start_paused = true)]
async fn errors_tell_the_story_of_the_attempts() {
    let err = EXACT
        .max_attempts(3)
        .max_elapsed(3600 * SEC)
        .retry(async |_| {
            tokio::time::sleep(SEC / 2).await;
            Err::<(), _>("down")
        })
        .await
        .unwrap_err();
    assert_eq!(
        err.timeline().to_string(),
        "attempt 1 at 0s took 500ms, then waited 1s\n\
         attempt 2 at 1.5s took 500ms, then waited 2s\n\
         attempt 3 at 4s took 500ms"
    );
}

#[tokio::test(start_paused = true)]
async fn a_million_retries_without_delay_neither_recurse_nor_wait() {
    // tokio-retry recurses once a retry: 10^6 of them end the process.
    let policy = Policy::immediate().unlimited_attempts();
    let n = policy.retry(async |a| if a.number() < 1_000_000 { Err(()) } else { Ok(a.number()) }).await.unwrap();
    assert_eq!(n, 1_000_000);
}

#[tokio::test(start_paused = true)]
async fn huge_delays_do_not_panic() {
    // tokio-retry, backon and backoff overflow here.
    let policy = Policy::constant(Duration::MAX).max_elapsed(Duration::MAX).max_pushback(Duration::MAX);
    let call = policy.retry(async |_| Err::<(), _>("down"));
    assert!(tokio::time::timeout(3600 * SEC, call).await.is_err(), "still waiting");
    let pushed = EXACT.when(|_: &&str| Verdict::After(Duration::MAX));
    let call = pushed.retry_blocking(|_| Err::<(), _>("down"));
    assert_eq!(call.unwrap_err().reason, Reason::PushbackTooLong);
}

#[tokio::test(start_paused = true)]
async fn futures_own_what_they_need_and_can_be_spawned() {
    let spawned = tokio::spawn(EXACT.when(|_: &&str| true).retry(async |_| Ok(1)));
    let kept = Policy::immediate().max_attempts(2).retry(async |_| Err::<(), _>("down"));
    assert_eq!((spawned.await.unwrap().unwrap(), kept.await.unwrap_err().attempts), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn hooks_may_change_what_they_hold() {
    let (mut judged, mut told) = (0, vec![]);
    let err = EXACT
        .when(|_: &&str| {
            judged += 1;
            judged < 3
        })
        .notify(|event| told.push(event.attempt.number()))
        .retry(async |_| Err::<(), _>("down"))
        .await
        .unwrap_err();
    assert_eq!((err.attempts, judged, told), (3, 3, vec![1, 2]));
}

#[tokio::test(start_paused = true)]
async fn what_is_over_before_it_begins_starts_nothing() {
    let attempts = Cell::new(0);
    let op = async |_: relent::Attempt| {
        attempts.set(attempts.get() + 1);
        Ok::<(), &str>(())
    };
    let past = EXACT.deadline(Instant::now().into_std()).retry(op).await.unwrap_err();
    assert_eq!((past.reason, past.attempts, past.last), (Reason::Elapsed, 0, None));
    let cancel = relent::Cancel::new();
    cancel.cancel();
    let thrown = EXACT.cancel(&cancel).retry(op).await.unwrap_err();
    assert_eq!((thrown.reason, thrown.to_string()), (Reason::Cancelled, "cancelled before the first attempt".into()));
    let thrown = EXACT.cancel(&cancel).retry_blocking(|_| Ok::<(), &str>(())).unwrap_err();
    assert_eq!((thrown.reason, thrown.attempts, attempts.get()), (Reason::Cancelled, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_has_made_the_attempt_that_was_under_way() {
    let cancel = relent::Cancel::new();
    let call = tokio::spawn(EXACT.cancel(&cancel).retry(async |attempt| {
        if attempt.number() == 2 {
            return std::future::pending().await;
        }
        Err::<(), _>("down")
    }));
    tokio::time::sleep(5 * SEC).await;
    cancel.cancel();
    let err = call.await.unwrap().unwrap_err();
    assert_eq!((err.reason, err.attempts, err.elapsed), (Reason::Cancelled, 2, Some(5 * SEC)));
    assert_eq!(err.timeline().to_string(), "attempt 1 at 0s took 0s, then waited 1s\nattempt 2 at 1s took 4s");
}

#[tokio::test(start_paused = true)]
async fn a_spread_does_not_pass_a_limit() {
    for _ in 0..50 {
        let begin = Instant::now();
        EXACT.spread(100 * SEC).max_elapsed(SEC).retry(async |_| Ok::<(), ()>(())).await.unwrap();
        assert!(begin.elapsed() <= SEC);
    }
}

/// A timer that oversleeps, as all do that are not paused.
#[test]
fn who_wakes_after_the_deadline_starts_nothing() {
    struct Late(crate::fake::Fake);
    impl relent::Timer for Late {
        type Sleep = std::future::Ready<()>;
        fn now(&self) -> relent::Timestamp {
            self.0.now()
        }
        fn sleep(&self, delay: Duration) -> Self::Sleep {
            self.0.sleep(delay + SEC)
        }
    }
    let late = Late(crate::fake::Fake::default());
    let policy = Policy::constant(SEC).jitter(Jitter::None).timeout(2 * SEC);
    let err = policy.timer(&late).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last), (Reason::Elapsed, 1, Some("down")));
}

#[test]
fn futures_are_small_and_hold_the_operation_once() {
    let small = EXACT.retry(async |_| Ok::<u64, u32>(7));
    assert!(size_of_val(&small) <= 240, "{}", size_of_val(&small));
    let kilobyte = [1u8; 1024];
    let large = EXACT.retry(move |_| {
        let first = kilobyte[0];
        async move { Ok::<u8, u32>(first) }
    });
    assert!(size_of_val(&large) <= 1024 + 240, "{}", size_of_val(&large));
    let waiting = EXACT.retry(async |_| {
        let kilobyte = [1u8; 1024];
        tokio::task::yield_now().await;
        Ok::<u8, u32>(kilobyte[1])
    });
    assert!(size_of_val(&waiting) <= 1024 + 300, "{}", size_of_val(&waiting));
}
