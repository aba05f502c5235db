//! Asking until it is done.

use crate::fake::Fake;
use relent::{Answer, Breaker, Budget, Cancel, Error, Failure, Jitter, Policy, Reason, Timer, Upstream, Verdict};
use std::{cell::RefCell, future::pending, time::Duration};
use tokio::time::Instant;

const SEC: Duration = Duration::from_secs(1);
/// 1, 2, 4, 8 and again 8 seconds.
const EXACT: Policy = Policy::exponential(SEC).cap(SEC.saturating_mul(8)).jitter(Jitter::None).max_attempts(20);

type Answered = Answer<&'static str, &'static str>;

/// When each question was asked, in seconds, and how it ended.
async fn asked(
    policy: Policy,
    answers: &[Result<Answered, &'static str>],
) -> (Vec<f64>, Result<&'static str, Error<&'static str>>) {
    let begin = Instant::now();
    let times = RefCell::new(vec![]);
    let mut answers = answers.iter().copied();
    let result = policy
        .poll(|question| {
            times.borrow_mut().push(begin.elapsed().as_secs_f64());
            assert_eq!(question.number() as usize, times.borrow().len(), "questions are counted from 1");
            let answer = answers.next().unwrap_or(Ok(Answer::Still));
            async move { answer }
        })
        .await;
    (times.into_inner(), result)
}

#[tokio::test(start_paused = true)]
async fn the_interval_backs_off_while_nothing_changes() {
    let still = Ok(Answer::Still);
    let (times, result) = asked(EXACT, &[still, still, still, still, still, Ok(Answer::Done("x"))]).await;
    assert_eq!(times, [0.0, 1.0, 3.0, 7.0, 15.0, 23.0]);
    assert_eq!(result.unwrap(), "x");
}

#[tokio::test(start_paused = true)]
async fn the_interval_begins_anew_when_something_changes() {
    let (still, changed) = (Ok(Answer::Still), Ok(Answer::Changed));
    let (times, _) = asked(EXACT, &[still, still, changed, still, still, changed, changed, Ok(Answer::Done(""))]).await;
    assert_eq!(times, [0.0, 1.0, 3.0, 4.0, 6.0, 10.0, 11.0, 12.0]);
}

#[tokio::test(start_paused = true)]
async fn the_far_side_may_ask_for_more_time_and_never_for_less() {
    let policy = EXACT.max_pushback(60 * SEC);
    let after = |seconds| Ok(Answer::StillAfter(seconds * SEC));
    let (times, _) =
        asked(policy, &[after(10), after(1), Ok(Answer::ChangedAfter(30 * SEC)), Ok(Answer::Done(""))]).await;
    // Without jitter there is no spread of what was told.
    assert_eq!(times, [0.0, 10.0, 12.0, 42.0]);
    let (times, result) = asked(policy, &[after(61)]).await;
    let err = result.unwrap_err();
    assert_eq!((times.len(), err.reason, err.pushback), (1, Reason::PushbackTooLong, Some(61 * SEC)));
}

#[tokio::test(start_paused = true)]
async fn what_is_told_to_many_is_spread() {
    let policy = EXACT.jitter(Jitter::Full);
    let (times, _) = asked(policy, &[Ok(Answer::StillAfter(20 * SEC)), Ok(Answer::Done(""))]).await;
    assert!((20.0..=22.01).contains(&times[1]), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn what_has_failed_ends_it_with_its_error() {
    let (times, result) = asked(EXACT, &[Ok(Answer::Still), Ok(Answer::Failed("declined"))]).await;
    let err = result.unwrap_err();
    assert_eq!((times.len(), err.reason, err.attempts, err.last), (2, Reason::Permanent, 2, Some("declined")));
}

#[tokio::test(start_paused = true)]
async fn limits_hold_whatever_changes() {
    let (times, result) = asked(EXACT.max_attempts(3), &[Ok(Answer::Changed); 9]).await;
    let err = result.unwrap_err();
    assert_eq!((times.len(), err.reason, err.attempts, err.last), (3, Reason::Attempts, 3, None));
    assert_eq!(err.timeline().attempts().count(), 3);
    let (times, result) = asked(EXACT.max_elapsed(5 * SEC), &[Ok(Answer::Changed); 9]).await;
    let err = result.unwrap_err();
    assert_eq!((times.len(), err.reason, err.elapsed), (6, Reason::Elapsed, Some(5 * SEC)));
    let (times, result) = asked(EXACT.timeout(5 * SEC), &[]).await;
    assert_eq!((times, result.unwrap_err().reason), (vec![0.0, 1.0, 3.0], Reason::Elapsed));
    let (times, _) = asked(EXACT.unlimited_attempts().max_elapsed(8000 * SEC), &[Ok(Answer::Changed); 9000]).await;
    assert_eq!(times.len(), 8001);
}

#[tokio::test(start_paused = true)]
async fn errors_of_asking_are_retried_and_forgotten_when_somebody_answers() {
    let (times, result) =
        asked(EXACT.max_attempts(4), &[Err("reset"), Ok(Answer::Still), Err("reset"), Err("down")]).await;
    let err = result.unwrap_err();
    assert_eq!((times, err.reason, err.last), (vec![0.0, 1.0, 3.0, 7.0], Reason::Attempts, Some("down")));
    let (_, result) = asked(EXACT.max_attempts(2), &[Err("reset")]).await;
    assert_eq!(result.unwrap_err().last, None, "the last question was answered");
}

#[tokio::test(start_paused = true)]
async fn when_says_what_an_error_means_and_notify_hears_of_errors_only() {
    let told = RefCell::new(vec![]);
    let mut answers = [Ok(Answer::Still), Err("busy"), Ok(Answer::Changed), Err("gone")].into_iter();
    let begin = Instant::now();
    let err = EXACT
        .when(|err: &&str| if *err == "gone" { Verdict::Permanent } else { Verdict::After(9 * SEC) })
        .notify(|event| told.borrow_mut().push(event.to_string()))
        .poll(|_| {
            let answer: Result<Answer<(), _>, _> = answers.next().unwrap();
            async move { answer }
        })
        .await
        .unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Permanent, 4));
    assert_eq!(*told.borrow(), ["attempt 2 failed: busy; next in 9s"]);
    assert_eq!(begin.elapsed(), 11 * SEC);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_hangs_is_dropped_and_asked_again() {
    let mut asked = 0;
    let done = EXACT.attempt_timeout(2 * SEC).poll(|_| {
        asked += 1;
        let hangs = asked == 1;
        async move { if hangs { pending().await } else { Ok::<_, ()>(Answer::Done(asked)) } }
    });
    let begin = Instant::now();
    assert_eq!(done.await.unwrap(), 2);
    assert_eq!(begin.elapsed(), 3 * SEC);
}

#[tokio::test(start_paused = true)]
async fn it_is_cancelled_while_it_waits_and_while_it_asks() {
    for hangs in [false, true] {
        let (cancel, begin) = (Cancel::new(), Instant::now());
        let switch = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(5 * SEC).await;
            switch.cancel();
        });
        let hourly = Policy::constant(3600 * SEC).jitter(Jitter::None).cancel(&cancel);
        let poll = hourly.poll(async |_| if hangs { pending().await } else { Ok::<Answered, &str>(Answer::Still) });
        assert_eq!(poll.await.unwrap_err().reason, Reason::Cancelled);
        assert_eq!(begin.elapsed(), 5 * SEC);
    }
}

#[tokio::test(start_paused = true)]
async fn a_herd_is_spread_before_its_first_question() {
    let mut first = vec![];
    for _ in 0..20 {
        let begin = Instant::now();
        EXACT.spread(10 * SEC).poll(async |_| Ok::<_, ()>(Answer::Done(()))).await.unwrap();
        first.push(begin.elapsed());
    }
    assert!(first.iter().any(|at| *at > 3 * SEC) && first.iter().all(|at| *at <= 10 * SEC), "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn on_an_upstream_each_question_is_a_call_and_only_errors_are_paid_for() {
    let bank = Upstream::new("bank").budget(Budget::ratio(0.1).min_per_second(0)).breaker(Breaker::consecutive(2));
    let mut asked = 0;
    let done = EXACT
        .on(&bank)
        .poll(|_| {
            asked += 1;
            let last = asked == 12;
            async move { Ok::<_, ()>(if last { Answer::Done(()) } else { Answer::Still }) }
        })
        .await;
    assert!(done.is_ok());
    let seen = bank.snapshot();
    assert_eq!((seen.calls, seen.attempts, seen.retries, seen.refused_budget), (12, 12, 0, 0));
    // The budget has been earned by questions that are over by now.
    tokio::time::sleep(60 * SEC).await;
    let err = EXACT.on(&bank).poll(async |_| Err::<Answered, _>("down")).await.unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Budget, 1));
    let err = EXACT.on(&bank).poll(async |_| Err::<Answered, _>("down")).await.unwrap_err();
    assert_eq!(err.reason, Reason::Budget);
    let err = EXACT.on(&bank).poll(async |_| Ok::<Answered, &str>(Answer::Still)).await.unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Open, 0), "two failures in a row");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_has_failed_is_no_failure_of_the_far_side() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(1));
    for _ in 0..3 {
        let err = EXACT.on(&bank).poll(async |_| Ok::<Answered, _>(Answer::Failed("declined"))).await.unwrap_err();
        assert_eq!(err.reason, Reason::Permanent);
    }
}

#[tokio::test(start_paused = true)]
async fn hedged_questions_are_calls_of_their_own() {
    use relent::Hedge;
    let far = Upstream::new("far").hedge(Hedge::after(SEC / 10)).budget(Budget::ratio(0.0).min_per_second(10));
    let mut asked = 0;
    let done = EXACT
        .on(&far)
        .hedged()
        .poll(|_| {
            asked += 1;
            let nth = asked;
            async move {
                tokio::time::sleep(if nth == 1 { 60 * SEC } else { SEC / 100 }).await;
                Ok::<_, ()>(if nth < 4 { Answer::Still } else { Answer::Done(nth) })
            }
        })
        .await;
    assert_eq!(done.unwrap(), 4);
    let seen = far.snapshot();
    assert_eq!((seen.calls, seen.hedges, seen.retries), (3, 1, 0));
}

#[test]
fn on_a_thread_and_on_a_clock_of_ones_own() {
    let fake = Fake::default();
    let mut answers = [Ok(Answer::Still), Err("reset"), Ok(Answer::Changed), Ok(Answer::Done(7))].into_iter();
    let done = EXACT.timer(&fake).poll_blocking(|_| answers.next().unwrap());
    assert_eq!((done.unwrap(), fake.slept()), (7, vec![SEC, 2 * SEC, SEC]));
    let err = EXACT.timer(&fake).poll_blocking(|_| Ok::<Answer<(), _>, _>(Answer::Failed("declined"))).unwrap_err();
    assert_eq!((err.reason, err.last), (Reason::Permanent, Some("declined")));
    let err = EXACT.max_attempts(1).poll_blocking(|_| Ok::<Answer<(), &str>, _>(Answer::Still)).unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last), (Reason::Attempts, 1, None));
}

#[tokio::test(start_paused = true)]
async fn a_loop_of_ones_own_polls_too() {
    let begin = Instant::now();
    let mut poll = EXACT.start();
    assert_eq!(poll.heed::<(), ()>(Answer::Still).await.unwrap(), None);
    poll.back_off("reset").await.unwrap();
    assert_eq!((begin.elapsed(), poll.attempt().number()), (3 * SEC, 3));
    poll.heed::<(), ()>(Answer::Changed).await.unwrap();
    assert_eq!((begin.elapsed(), poll.attempt().number()), (4 * SEC, 4));
    assert_eq!(poll.heed::<_, ()>(Answer::Done(5)).await.unwrap(), Some(5));
    let mut few = EXACT.max_attempts(2);
    few = few.cap(SEC);
    let mut poll = few.start();
    poll.heed::<(), ()>(Answer::Changed).await.unwrap();
    assert_eq!(poll.heed::<(), ()>(Answer::Changed).await.unwrap_err().reason, Reason::Attempts);
    assert_eq!(few.start().heed::<(), _>(Answer::Failed("declined")).await.unwrap_err().last, Some("declined"));
}

#[test]
fn a_loop_on_a_thread_and_on_an_upstream() {
    let (fake, bank) = (Fake::default(), Upstream::new("bank").budget(Budget::ratio(0.1).min_per_second(0)));
    let mut poll = EXACT.start_with(&fake).on(&bank);
    poll.ready_blocking().unwrap();
    for _ in 0..4 {
        assert_eq!(poll.heed_blocking::<(), ()>(Answer::Still).unwrap(), None);
    }
    assert_eq!(poll.heed_blocking::<_, ()>(Answer::Done(1)).unwrap(), Some(1));
    let seen = bank.snapshot_at(fake.now());
    assert_eq!((seen.calls, seen.retries), (5, 0));
    assert_eq!(fake.slept(), [SEC, 2 * SEC, 4 * SEC, 8 * SEC]);
}

#[tokio::test(start_paused = true)]
async fn it_is_spawned_and_a_verdict_is_heeded() {
    let task =
        tokio::spawn(EXACT.when(Failure::verdict).poll(async |_| Err::<Answer<(), _>, _>(Failure::permanent("gone"))));
    assert_eq!(task.await.unwrap().unwrap_err().attempts, 1);
}
