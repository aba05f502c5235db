//! Retries without a delay are counted by a loop of their own where nobody watches. It must end as the other path does,
//! which every call takes that has somebody who could end it or is told.

use crate::fake::Fake;
use relent::{Attempt, Cancel, Error, Event, Policy, Reason, Timestamp, Verdict};
use std::{cell::RefCell, future::Future, time::Duration};

const SEC: Duration = Duration::from_secs(1);

/// The number of the attempt that failed, and what that meant.
type Failed = (u32, Verdict);

/// What one call did: the attempts it made, how long it slept, and how it ended.
#[derive(Debug, PartialEq)]
struct Course {
    attempts: Vec<(u32, Option<Duration>)>,
    slept: Vec<Duration>,
    end: Result<u32, End>,
}

#[derive(Debug, PartialEq)]
struct End {
    reason: Reason,
    last: Option<Failed>,
    attempts: u32,
    pushback: Option<Duration>,
}

impl End {
    fn of(err: Error<Failed>) -> End {
        End { reason: err.reason, attempts: err.attempts, pushback: err.pushback, last: err.last }
    }
}

/// All fail alike but one, which fails otherwise, or (`None`) succeeds.
#[derive(Clone, Copy, Debug)]
struct Script {
    special: u32,
    outcome: Option<Verdict>,
}

impl Script {
    fn play(self, attempt: Attempt) -> Result<u32, Failed> {
        match attempt.number() {
            number if number != self.special => Err((number, Verdict::Transient)),
            number => self.outcome.map_or(Ok(number), |verdict| Err((number, verdict))),
        }
    }
}

const OUTCOMES: [Option<Verdict>; 6] = [
    None,
    Some(Verdict::Transient),
    Some(Verdict::Permanent),
    Some(Verdict::Overloaded),
    Some(Verdict::After(SEC)),
    Some(Verdict::After(Duration::from_secs(3600))),
];

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// One call by each of the four: counted and plain, on a thread and async.
fn courses(policy: Policy, script: Script) -> [Course; 4] {
    [(true, true), (true, false), (false, true), (false, false)].map(|(is_plain, is_async)| {
        let (fake, seen, never) = (Fake::default(), RefCell::new(vec![]), Cancel::new());
        let op = |attempt: Attempt| {
            seen.borrow_mut().push((attempt.number(), attempt.timeout()));
            script.play(attempt)
        };
        let counted = policy.when(|failed: &Failed| failed.1).timer(&fake);
        let end = match (is_plain, is_async) {
            (true, true) => block_on(counted.cancel(&never).retry(async |attempt| op(attempt))),
            (true, false) => counted.cancel(&never).retry_blocking(op),
            (false, true) => block_on(counted.retry(async |attempt| op(attempt))),
            (false, false) => counted.retry_blocking(op),
        };
        Course { attempts: seen.take(), slept: fake.slept(), end: end.map_err(End::of) }
    })
}

#[test]
fn counting_ends_as_the_plain_path_does() {
    for most in 1..=11 {
        let policy = Policy::immediate().max_attempts(most);
        for special in 1..=most + 1 {
            for outcome in OUTCOMES {
                let script = Script { special, outcome };
                let [plain, plain_blocking, counted, counted_blocking] = courses(policy, script);
                assert_eq!(plain, plain_blocking, "{most} {script:?}");
                assert_eq!(counted, plain, "async, {most} {script:?}");
                assert_eq!(counted_blocking, plain, "blocking, {most} {script:?}");
            }
        }
    }
}

/// Not only the same on all paths, but right.
#[test]
fn what_a_failure_midway_means_is_heeded() {
    let policy = Policy::immediate().max_attempts(11);
    let script = |outcome| Script { special: 5, outcome };
    for course in courses(policy, script(Some(Verdict::Permanent))) {
        let last = Some((5, Verdict::Permanent));
        assert_eq!(course.end, Err(End { reason: Reason::Permanent, last, attempts: 5, pushback: None }));
    }
    for course in courses(policy, script(Some(Verdict::After(SEC)))) {
        assert_eq!(course.slept, [SEC], "only what was asked for is waited for");
        let last = Some((11, Verdict::Transient));
        assert_eq!(course.end, Err(End { reason: Reason::Attempts, last, attempts: 11, pushback: Some(SEC) }));
    }
    for course in courses(policy, script(None)) {
        let numbers: Vec<u32> = course.attempts.iter().map(|(number, _)| *number).collect();
        assert_eq!((course.end, numbers), (Ok(5), vec![1, 2, 3, 4, 5]));
    }
}

#[test]
fn who_watches_is_told_of_every_retry() {
    for most in 1..=11 {
        let told = RefCell::new(vec![]);
        let policy = Policy::immediate().max_attempts(most);
        let watched =
            policy.notify(|event: &Event<'_, &str>| told.borrow_mut().push((event.attempt.number(), event.delay)));
        let expected: Vec<(u32, Duration)> = (1..most).map(|number| (number, Duration::ZERO)).collect();
        let err = watched.retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
        assert_eq!((err.reason, err.attempts, told.take()), (Reason::Attempts, most, expected.clone()));
        let watched =
            policy.notify(|event: &Event<'_, &str>| told.borrow_mut().push((event.attempt.number(), event.delay)));
        let err = block_on(watched.retry(async |_| Err::<(), _>("down"))).unwrap_err();
        assert_eq!((err.reason, err.attempts, told.take()), (Reason::Attempts, most, expected));
    }
}

#[test]
fn a_switch_ends_retries_without_delay() {
    for thrown in 1..=11 {
        let policy = Policy::immediate().max_attempts(11);
        let op = |cancel: &Cancel, attempt: Attempt| {
            if attempt.number() == thrown {
                cancel.cancel();
            }
            Err::<(), _>("down")
        };
        let cancel = Cancel::new();
        let err = policy.cancel(&cancel).retry_blocking(|attempt| op(&cancel, attempt)).unwrap_err();
        assert_eq!((err.reason, err.attempts), (Reason::Cancelled, thrown));
        let cancel = Cancel::new();
        let err = block_on(policy.cancel(&cancel).retry(async |attempt| op(&cancel, attempt))).unwrap_err();
        assert_eq!((err.reason, err.attempts), (Reason::Cancelled, thrown));
    }
}

/// Each attempt takes a second: a limit of time ends what no delay does.
#[test]
fn time_ends_retries_without_delay() {
    let policy = Policy::immediate().unlimited_attempts();
    let limits = [
        (policy.max_elapsed(5 * SEC), Timestamp::MAX, 6),
        (policy.timeout(5 * SEC), Timestamp::MAX, 5),
        (policy, Timestamp::ZERO + 5 * SEC, 5),
    ];
    for (policy, deadline, attempts) in limits {
        let fake = Fake::default();
        let op = || {
            fake.pass(SEC);
            assert!(fake.elapsed() < 100 * SEC, "it goes on for ever");
            Err::<(), _>("down")
        };
        let err = policy.timer(&fake).deadline_at(deadline).retry_blocking(|_| op()).unwrap_err();
        assert_eq!((err.reason, err.attempts), (Reason::Elapsed, attempts), "{policy:?}");
        assert_eq!(err.elapsed, Some(attempts * SEC));

        let fake = Fake::default();
        let mut retry = policy.start_with(&fake).deadline_at(deadline);
        let err = loop {
            fake.pass(SEC);
            assert!(fake.elapsed() < 100 * SEC, "it goes on for ever");
            if let Err(err) = retry.back_off_blocking("down") {
                break err;
            }
        };
        assert_eq!((err.reason, err.attempts), (Reason::Elapsed, attempts), "a loop, {policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn time_ends_async_retries_without_delay() {
    let policy = Policy::immediate().unlimited_attempts();
    for (policy, attempts) in [(policy.max_elapsed(5 * SEC), 6), (policy.timeout(5 * SEC), 5)] {
        let begin = tokio::time::Instant::now();
        let op = async |_| {
            tokio::time::sleep(SEC).await;
            assert!(begin.elapsed() < 100 * SEC, "it goes on for ever");
            Err::<(), _>("down")
        };
        let err = policy.retry(op).await.unwrap_err();
        assert_eq!((err.reason, err.attempts), (Reason::Elapsed, attempts), "{policy:?}");
        assert_eq!(begin.elapsed(), attempts * SEC);
    }
}
