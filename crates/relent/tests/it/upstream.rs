//! Calls on an upstream, each sentence under a paused clock.

use relent::*;
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const FIVE: Policy = Policy::constant(SEC).jitter(Jitter::None).max_attempts(5);

/// "Five failures in a row, open 30 s, then resume with backoff."
#[tokio::test(start_paused = true)]
async fn five_failures_in_a_row_then_thirty_seconds() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(5).open_for(30 * SEC));
    let err = FIVE.on(&bank).retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Attempts, 5));
    let opened = Instant::now();
    let refused = FIVE.on(&bank).retry(async |_| Ok::<_, &str>(1)).await.unwrap_err();
    assert_eq!((refused.reason, refused.attempts, refused.last), (Reason::Open, 0, None));
    assert_eq!(refused.again_in, Some(30 * SEC));
    assert_eq!(opened.elapsed(), Duration::ZERO, "fails at once");
    let patient = FIVE.on(&bank).wait_while_open();
    let answers = AtomicU32::new(0);
    let value =
        patient.retry(async |_| if answers.fetch_add(1, Ordering::SeqCst) == 0 { Err("still") } else { Ok(1) }).await;
    assert_eq!(value.unwrap(), 1);
    let took = opened.elapsed();
    assert!(took >= 60 * SEC && took <= 67 * SEC, "30 s, a probe that fails, 30 s more, each spread: {took:?}");
    assert_eq!(bank.snapshot().breaker.unwrap().state, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_is_waited_for_within_the_limits_of_the_policy() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(30 * SEC));
    let once = FIVE.max_attempts(1);
    once.on(&bank).retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    let now = Instant::now();
    for policy in [once.max_elapsed(29 * SEC), once.timeout(29 * SEC), once.max_pushback(29 * SEC)] {
        let err = policy.on(&bank).wait_while_open().retry(async |_| Ok::<_, &str>(1)).await.unwrap_err();
        assert_eq!((err.reason, err.attempts), (Reason::Open, 0));
    }
    let deadline = now.into_std() + 29 * SEC;
    let err = once.on(&bank).wait_while_open().deadline(deadline).retry(async |_| Ok::<_, &str>(1)).await.unwrap_err();
    assert_eq!((err.reason, now.elapsed()), (Reason::Open, Duration::ZERO));
}

/// "At most 10 % retries."
#[tokio::test(start_paused = true)]
async fn at_most_a_tenth_more() {
    let bank = Upstream::new("bank").budget(Budget::ratio(0.1).min_per_second(0));
    let attempts = AtomicU32::new(0);
    let mut reasons = vec![];
    for _ in 0..1000 {
        let err = FIVE.jitter(Jitter::None).on(&bank).retry(async |_| {
            attempts.fetch_add(1, Ordering::SeqCst);
            Err::<(), _>("down")
        });
        reasons.push(err.await.unwrap_err().reason);
    }
    let now = bank.snapshot();
    assert_eq!(now.calls, 1000);
    assert_eq!(now.attempts, u64::from(attempts.load(Ordering::SeqCst)));
    assert!(now.attempts <= 1100, "{now:?}");
    assert!(reasons.contains(&Reason::Budget));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_empty_gives_up_with_the_last_error() {
    let bank = Upstream::new("bank").budget(Budget::ratio(0.001).min_per_second(0));
    let err = FIVE.on(&bank).retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last), (Reason::Budget, 1, Some("down")));
    let err = FIVE.on(&bank).when(|_: &&str| false).retry(async |_| Err::<(), _>("gone")).await.unwrap_err();
    assert_eq!(err.reason, Reason::Permanent, "the policy is asked first");
    assert_eq!(bank.snapshot().refused_budget, 1);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_that_is_cancelled_is_refunded() {
    let bank = Upstream::new("bank").budget(Budget::ratio(0.0).min_per_second(1));
    let full = bank.snapshot().balance;
    for _ in 0..20 {
        let call = FIVE.on(&bank).retry(async |_| Err::<(), _>("down"));
        assert!(tokio::time::timeout(SEC / 2, call).await.is_err(), "asleep");
        assert_eq!(bank.snapshot().balance, full);
    }
    let cancel = Cancel::new();
    let call = FIVE.on(&bank).cancel(&cancel).retry(async |_| Err::<(), _>("down"));
    let (err, ()) = tokio::join!(call, async {
        tokio::time::sleep(SEC / 2).await;
        cancel.cancel();
    });
    assert_eq!(err.unwrap_err().reason, Reason::Cancelled);
    assert_eq!(bank.snapshot().balance, full);
}

/// "Limit 100 a second at the gateway while clients retry."
#[tokio::test(start_paused = true)]
async fn a_hundred_a_second_while_clients_retry() {
    let gateway = Arc::new(Upstream::new("gateway").limit(Limit::rate(100)));
    let starts = Arc::new(Mutex::new(vec![]));
    let mut tasks = vec![];
    for _ in 0..100 {
        let (gateway, starts) = (gateway.clone(), starts.clone());
        let policy = Policy::constant(10 * MS).max_attempts(3);
        tasks.push(tokio::spawn(policy.on(gateway).retry(move |attempt| {
            starts.lock().unwrap().push(Instant::now());
            async move { if attempt.number() == 3 { Ok(()) } else { Err("busy") } }
        })));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let mut starts = starts.lock().unwrap().clone();
    starts.sort();
    assert_eq!(starts.len(), 300);
    for window in starts.windows(101) {
        assert!(window[100] - window[0] >= 995 * MS, "at most a hundred a second");
    }
    let took = *starts.last().unwrap() - starts[0];
    assert!(took < Duration::from_millis(3100), "and none is wasted: {took:?}");
    assert_eq!(gateway.snapshot().refused_shed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_bulkhead_fails_at_once() {
    let far = Upstream::new("far").limit(Limit::concurrency(1));
    let slow = FIVE.on(&far).retry(async |_| {
        tokio::time::sleep(SEC).await;
        Ok::<_, &str>(1)
    });
    let other = async {
        tokio::time::sleep(SEC / 2).await;
        FIVE.on(&far).retry(async |_| Ok::<_, &str>(2)).await.unwrap_err()
    };
    let (slow, err) = tokio::join!(slow, other);
    assert_eq!((slow.unwrap(), err.reason, err.attempts, err.again_in), (1, Reason::Shed, 0, None));
    assert_eq!(far.snapshot().limit.unwrap().in_flight, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_bounded_in_number_and_time_and_newest_first_under_overload() {
    let far = Arc::new(Upstream::new("far").limit(Limit::concurrency(1).queue(3, 2 * SEC)));
    let order = Arc::new(Mutex::new(vec![]));
    let mut tasks = vec![];
    for nth in 0..5 {
        let order = order.clone();
        tasks.push(tokio::spawn(FIVE.on(far.clone()).retry(move |_| {
            order.lock().unwrap().push(nth);
            async {
                tokio::time::sleep(SEC).await;
                Ok::<_, &str>(())
            }
        })));
        tokio::time::sleep(MS).await;
    }
    let mut reasons = vec![];
    for task in tasks {
        reasons.push(task.await.unwrap().map_err(|err| err.reason));
    }
    assert_eq!(reasons[4], Err(Reason::Shed), "bounded in number");
    assert_eq!(*order.lock().unwrap(), [0, 3, 2], "a queue of a second is overload: the newest first");
    assert_eq!(reasons[1], Err(Reason::Shed), "bounded in time");
    let limit = far.snapshot().limit.unwrap();
    assert_eq!((limit.in_flight, limit.queued), (Some(0), 0));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_queue_makes_room() {
    let far = Upstream::new("far").limit(Limit::concurrency(1).queue(1, 60 * SEC));
    let slow = FIVE.on(&far).retry(async |_| {
        tokio::time::sleep(10 * SEC).await;
        Ok::<_, &str>(1)
    });
    let others = async {
        tokio::time::sleep(SEC).await;
        let impatient = FIVE.on(&far).retry(async |_| Ok::<_, &str>(2));
        assert!(tokio::time::timeout(SEC, impatient).await.is_err());
        FIVE.on(&far).retry(async |_| Ok::<_, &str>(3)).await.unwrap()
    };
    let (slow, other) = tokio::join!(slow, others);
    assert_eq!((slow.unwrap(), other), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn timeouts_count_and_permanent_failures_do_not() {
    let far = Upstream::new("far").breaker(Breaker::consecutive(3));
    let gone = FIVE.on(&far).when(|_: &&str| Verdict::Permanent);
    for _ in 0..5 {
        assert_eq!(gone.retry(async |_| Err::<(), _>("gone")).await.unwrap_err().reason, Reason::Permanent);
    }
    let hangs = FIVE.attempt_timeout(SEC).on(&far).retry(async |_| std::future::pending::<Result<(), &str>>().await);
    let err = hangs.await.unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Open, 3), "a retry that the breaker refuses ends the call");
    assert!(err.again_in.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_last_error_is_kept_when_a_retry_is_refused() {
    let far = Upstream::new("far").breaker(Breaker::consecutive(2)).budget(Budget::ratio(0.1));
    let full = far.snapshot().balance.unwrap();
    let err = FIVE.on(&far).retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last), (Reason::Open, 2, Some("down")));
    assert_eq!(far.snapshot().balance.unwrap(), full - 1.0, "what was refused is refunded");
}

/// "Read and write with different policies on one upstream."
#[tokio::test(start_paused = true)]
async fn read_and_write_share_an_upstream() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(3)).budget(Budget::ratio(0.1));
    let read = Policy::constant(SEC).max_attempts(3);
    let write = Policy::immediate().max_attempts(1);
    read.on(&bank).retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    let err = write.on(&bank).retry(async |_| Ok::<_, &str>(1)).await.unwrap_err();
    assert_eq!(err.reason, Reason::Open, "what reads found out spares writes");
}

#[tokio::test(start_paused = true)]
async fn a_loop_tells_each_outcome_once() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(10)).limit(Limit::concurrency(1));
    let mut retry = FIVE.start().on(&bank);
    let mut left = 3;
    loop {
        retry.ready().await.unwrap();
        retry.ready().await.unwrap();
        assert_eq!(bank.snapshot().limit.unwrap().in_flight, Some(1), "asked again, it holds the same permit");
        if left == 0 {
            break retry.succeed(());
        }
        left -= 1;
        retry.back_off("down").await.unwrap();
    }
    let now = bank.snapshot();
    assert_eq!((now.calls, now.attempts, now.limit.unwrap().in_flight), (1, 4, Some(0)));
    assert_eq!(now.breaker.unwrap().failures_in_a_row, 0);
    retry.ready().await.unwrap();
    drop(retry);
    let now = bank.snapshot();
    assert_eq!((now.attempts, now.limit.unwrap().in_flight), (5, Some(0)), "dropped, it gives its permit back");
}

#[test]
fn blocking_calls_and_threads_that_queue() {
    let far = Upstream::new("far").limit(Limit::concurrency(1).queue(8, 60 * SEC)).budget(Budget::ratio(0.1));
    let most = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    FIVE.on(&far)
                        .retry_blocking(|_| {
                            assert_eq!(most.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                            std::thread::yield_now();
                            most.fetch_sub(1, Ordering::SeqCst);
                            Ok::<_, &str>(())
                        })
                        .unwrap();
                }
            });
        }
    });
    let limit = far.snapshot().limit.unwrap();
    assert_eq!((far.snapshot().attempts, limit.in_flight, limit.queued), (400, Some(0), 0));
}

#[test]
fn every_permit_comes_back() {
    let rounds = if cfg!(debug_assertions) { 60_000 } else { 250_000 };
    let far = Upstream::new("far")
        .breaker(Breaker::share(0.99).min_calls(1000).open_for(MS).probes(3).close_after(4))
        .limit(Limit::concurrency(3))
        .budget(Budget::in_flight(0.5, 2));
    let empty = far.snapshot().balance;
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let far = &far;
            scope.spawn(move || {
                let now = Cell::new(Timestamp::from_nanos(1_000_000_000));
                for round in 0..rounds {
                    let draw = rng::draw(thread, round);
                    // The clock goes on, and back.
                    now.set(Timestamp::from_nanos(now.get().as_nanos() + draw % 1_000_000 - draw % 7 * 1000));
                    let mut call = far.call();
                    if call.ask(now.get(), draw, Duration::ZERO) != UpstreamAnswer::Go {
                        continue;
                    }
                    let failed = Outcome::Failure(Verdict::Transient);
                    match draw >> 60 {
                        0..4 => drop(call),
                        4 if draw & 31 == 0 => {
                            let panicked = catch_unwind(AssertUnwindSafe(|| {
                                let _held = call;
                                panic!("in the attempt");
                            }));
                            assert!(panicked.is_err());
                        }
                        4..9 => call.outcome(now.get(), Outcome::Success, draw),
                        _ => {
                            call.outcome(now.get(), failed, draw);
                            if call.pay(now.get(), failed, draw) && draw & 64 == 0 {
                                let _ = call.ask(now.get(), draw, Duration::ZERO);
                            }
                        }
                    }
                }
            });
        }
    });
    let _ = std::panic::take_hook();
    let now = far.snapshot();
    let limit = now.limit.unwrap();
    assert_eq!((limit.in_flight, limit.queued, now.balance), (Some(0), 0, empty));
    assert_eq!(now.breaker.unwrap().probes, 0);
    assert!(now.attempts > 10_000, "{now:?}");
}

/// As `eprintln!` does where nobody reads: the next call is let through to see how the far side is.
#[test]
fn a_listener_that_panics_takes_nothing_with_it() {
    for nth in 0..3 {
        let told = AtomicU32::new(0);
        let told: &'static AtomicU32 = Box::leak(Box::new(told));
        let bank = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(SEC)).limit(Limit::concurrency(1));
        bank.listen(move |_| assert!(told.fetch_add(1, Ordering::SeqCst) != nth, "it panics once"));
        let mut now = Timestamp::from_nanos(7);
        let attempt = |now: Timestamp, outcome: Outcome| {
            let attempt = || {
                let mut call = bank.call();
                let goes = call.ask(now, 0, Duration::ZERO) == UpstreamAnswer::Go;
                call.outcome(now, outcome, 0);
                goes
            };
            catch_unwind(AssertUnwindSafe(attempt)).unwrap_or(true)
        };
        // It opens, and lets one through to see; and it closes.
        assert!(attempt(now, Outcome::Failure(Verdict::Transient)));
        for _ in 0..3 {
            now = now + 2 * SEC;
            assert!(attempt(now, Outcome::Success), "{nth}");
        }
        let seen = bank.snapshot_at(now);
        assert_eq!(seen.breaker.map(|breaker| (breaker.state, breaker.probes)), Some((BreakerState::Closed, 0)));
        assert_eq!(seen.limit.and_then(|limit| limit.in_flight), Some(0), "{nth}");
        assert!(told.load(Ordering::SeqCst) >= 3, "{nth}");
    }
}

#[tokio::test(start_paused = true)]
async fn listeners_are_told_of_changes() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(vec![]);
    fn tell(change: &UpstreamChange<'_>) {
        TOLD.lock().unwrap().push(change.to_string());
    }
    static BANK: Upstream = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(SEC)).listener(&tell);
    let once = FIVE.max_attempts(1);
    once.on(&BANK).retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    tokio::time::sleep(2 * SEC).await;
    once.on(&BANK).retry(async |_| Ok::<_, &str>(1)).await.unwrap();
    BANK.hold_open();
    BANK.release();
    let told =
        ["closed -> open", "open -> half-open", "half-open -> closed", "closed -> held open", "held open -> closed"];
    assert_eq!(*TOLD.lock().unwrap(), told.map(|told| format!("bank: {told}")));
}

/// A search that is slow at first and quick when it is asked again.
async fn search(attempt: Attempt, slow: Duration) -> Result<u32, &'static str> {
    tokio::time::sleep(if attempt.number() == 1 { slow } else { 20 * MS }).await;
    Ok(attempt.number())
}

#[tokio::test(start_paused = true)]
async fn a_hedge_wins_and_the_other_is_dropped() {
    let far = Upstream::new("far")
        .hedge(Hedge::after(50 * MS))
        .budget(Budget::ratio(0.1))
        .breaker(Breaker::consecutive(1))
        .limit(Limit::concurrency(2));
    let begin = Instant::now();
    let full = far.snapshot().balance.unwrap();
    assert_eq!(FIVE.on(&far).hedged().retry(async |attempt| search(attempt, SEC).await).await.unwrap(), 2);
    assert_eq!(begin.elapsed(), 70 * MS);
    let now = far.snapshot();
    assert_eq!((now.calls, now.attempts, now.hedges, now.retries), (1, 2, 1, 0));
    assert_eq!(now.limit.unwrap().in_flight, Some(0), "the loser gave its permit back");
    assert_eq!(now.balance.unwrap(), full - 1.0, "paid from the budget");
    let unmarked = FIVE.on(&far).retry(async |attempt| search(attempt, SEC).await).await;
    assert_eq!((unmarked.unwrap(), far.snapshot().hedges), (1, 1), "only what is safe to run twice");
}

#[tokio::test(start_paused = true)]
async fn no_hedge_without_budget_or_room() {
    for far in [
        Upstream::new("poor").hedge(Hedge::after(50 * MS)).budget(Budget::ratio(0.001).min_per_second(0)),
        Upstream::new("full").hedge(Hedge::after(50 * MS)).limit(Limit::concurrency(1)),
    ] {
        let begin = Instant::now();
        assert_eq!(FIVE.on(&far).hedged().retry(async |attempt| search(attempt, SEC).await).await.unwrap(), 1);
        assert_eq!((begin.elapsed(), far.snapshot().hedges), (SEC, 0), "{}", far.name());
    }
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_starts_the_next_and_a_permanent_one_ends_all() {
    let far = Upstream::new("far").hedge(Hedge::after(10 * SEC).at_most(2));
    let begin = Instant::now();
    let once = FIVE.on(&far).hedged();
    let value = once.retry(async |attempt| if attempt.number() < 3 { Err("down") } else { Ok(3) }).await;
    assert_eq!((value.unwrap(), begin.elapsed()), (3, Duration::ZERO), "at once");
    let far = Upstream::new("far").hedge(Hedge::after(50 * MS)).limit(Limit::concurrency(2));
    let err = FIVE.on(&far).hedged().when(|err: &&str| *err != "gone").retry(async |attempt| {
        tokio::time::sleep(if attempt.number() == 1 { SEC } else { MS }).await;
        Err::<(), _>(if attempt.number() == 1 { "down" } else { "gone" })
    });
    let err = err.await.unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last), (Reason::Permanent, 2, Some("gone")));
    assert_eq!(begin.elapsed(), 51 * MS);
    assert_eq!(far.snapshot().limit.unwrap().in_flight, Some(0));
}

/// The last to fail need not be the one that was told something; what has passed meanwhile is not waited for again.
#[tokio::test(start_paused = true)]
async fn who_was_told_to_wait_waits_whichever_attempt_fails_last() {
    let far = Upstream::new("far").hedge(Hedge::after(50 * MS));
    let told = |err: &&str| if *err == "busy" { Verdict::After(60 * SEC) } else { Verdict::Transient };
    for last in [Some(SEC), None] {
        let begin = Instant::now();
        let call = FIVE.jitter(Jitter::None).attempt_timeout(2 * SEC).on(&far).hedged().when(told);
        let third = call.retry(async |attempt| {
            let (takes, fails) = match attempt.number() {
                1 => (Some(500 * MS), "busy"),
                2 => (last, "down"),
                _ => return Ok(begin.elapsed()),
            };
            match takes {
                Some(takes) => tokio::time::sleep(takes).await,
                None => std::future::pending().await,
            }
            Err(fails)
        });
        assert_eq!(third.await.unwrap(), 60 * SEC + 500 * MS, "{last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn hedges_stay_within_the_attempts_of_the_policy() {
    let far = Arc::new(Upstream::new("far").hedge(Hedge::after(50 * MS).at_most(9)));
    let hangs = FIVE.max_attempts(3).attempt_timeout(SEC).on(far.clone()).hedged();
    let err = tokio::spawn(hangs.retry(async |_| std::future::pending::<Result<(), &str>>().await))
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!((err.reason, err.attempts, far.snapshot().attempts), (Reason::Attempts, 3, 3));
}

proptest::proptest! {
    /// Whatever the order of asks, outcomes, payments, drops and steps of the clock: no attempt of an open breaker, no more in
    /// flight than there is room for, no more retries than were paid for, and everything comes back.
    #[test]
    fn any_order_of_things_keeps_the_rules(steps in proptest::collection::vec((0..4_usize, 0..7_u8, 0..3_000_000_000_u64), 1..200)) {
        let far = Upstream::new("far")
            .breaker(Breaker::consecutive(3).open_for(SEC))
            .limit(Limit::concurrency(2))
            .budget(Budget::ratio(0.1).min_per_second(0));
        let mut now = Timestamp::from_nanos(1_000_000_000_000);
        // A call that was told a later time goes on from there: for it, the clock does not go back.
        let mut latest = now;
        let mut calls: Vec<_> = (0..4).map(|_| far.call()).collect();
        let failed = Outcome::Failure(Verdict::Transient);
        for (which, what, amount) in steps {
            let call = &mut calls[which];
            match what {
                0 | 1 => {
                    let was_open_until = far.snapshot_at(now).breaker.unwrap().until;
                    let under_way = call.is_under_way();
                    let answer = call.ask(now, amount, Duration::ZERO);
                    if !under_way && was_open_until.is_some_and(|until| latest < until) {
                        proptest::prop_assert!(matches!(answer, UpstreamAnswer::Refused(_)), "open means no attempt");
                    }
                }
                2 => call.outcome(now, failed, amount),
                3 => call.outcome(now, Outcome::Success, amount),
                4 => { call.pay(now, failed, amount); }
                5 => *call = far.call(),
                _ => now = Timestamp::from_nanos(now.as_nanos() + amount - 1_000_000_000),
            }
            latest = latest.max(now);
            let seen = far.snapshot_at(now);
            let flying = calls.iter().filter(|call| call.is_under_way()).count();
            proptest::prop_assert_eq!(seen.limit.unwrap().in_flight, Some(flying as u32));
            proptest::prop_assert!(flying <= 2);
            proptest::prop_assert!(seen.retries * 10 <= seen.calls, "a tenth, paid or forgotten");
            proptest::prop_assert!(seen.attempts <= seen.calls + seen.retries);
        }
        drop(calls);
        let seen = far.snapshot_at(now);
        proptest::prop_assert_eq!(seen.limit.unwrap().in_flight, Some(0));
        proptest::prop_assert_eq!(seen.breaker.unwrap().probes, 0);
    }
}
