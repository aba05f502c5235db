//! Cancellation wakes sleepers at once and never loses the last error.

use relent::{Budget, Cancel, Jitter, Limit, Policy, Reason, Upstream};
use std::{thread, time::Duration};
use tokio::time::Instant;

const SEC: Duration = Duration::from_secs(1);
const HOURLY: Policy = Policy::constant(Duration::from_secs(3600)).jitter(Jitter::None);

#[tokio::test(start_paused = true)]
async fn wakes_an_async_sleeper_at_once() {
    let (cancel, begin) = (Cancel::new(), Instant::now());
    let switch = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(5 * SEC).await;
        switch.cancel();
    });
    let err = HOURLY.cancel(&cancel).retry(async |_| Err::<(), _>("down")).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last, begin.elapsed()), (Reason::Cancelled, 1, Some("down"), 5 * SEC));
}

#[tokio::test(start_paused = true)]
async fn drops_a_running_async_attempt() {
    let (cancel, begin) = (Cancel::new(), Instant::now());
    let switch = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(5 * SEC).await;
        switch.cancel();
    });
    let call = HOURLY.cancel(&cancel).retry(async |_| std::future::pending::<Result<(), &str>>().await).await;
    let err = call.unwrap_err();
    assert_eq!((err.reason, err.last, begin.elapsed()), (Reason::Cancelled, None, 5 * SEC));
}

#[tokio::test(start_paused = true)]
async fn wakes_the_loop() {
    let cancel = Cancel::new();
    let mut retry = HOURLY.start().cancel(&cancel);
    let switch = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(5 * SEC).await;
        switch.cancel();
    });
    let err = retry.back_off("down").await.unwrap_err();
    assert_eq!((err.reason, err.last), (Reason::Cancelled, Some("down")));
}

#[test]
fn wakes_a_blocking_sleeper_at_once() {
    let cancel = Cancel::new();
    let switch = cancel.clone();
    let (sender, failed) = std::sync::mpsc::channel();
    let call = thread::spawn(move || {
        HOURLY.cancel(&cancel).retry_blocking(move |_| {
            sender.send(()).unwrap();
            Err::<(), _>("down")
        })
    });
    failed.recv().unwrap();
    switch.cancel();
    let err = call.join().unwrap().unwrap_err();
    assert_eq!((err.reason, err.last), (Reason::Cancelled, Some("down")));
}

#[test]
fn a_thrown_switch_lets_nothing_start() {
    let cancel = Cancel::new();
    cancel.cancel();
    let err = HOURLY.cancel(&cancel).retry_blocking(|_| -> Result<(), &str> { panic!("started") }).unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Cancelled, 0));
}

#[tokio::test]
async fn a_thrown_switch_lets_nothing_start_async() {
    let cancel = Cancel::new();
    cancel.cancel();
    let call = HOURLY.cancel(&cancel).retry(async |_| -> Result<(), &str> { panic!("started") }).await;
    assert_eq!(call.unwrap_err().reason, Reason::Cancelled);
}

/// An attempt that is let through is counted, and one that is cancelled is not made.
#[tokio::test(start_paused = true)]
async fn what_is_cancelled_asks_an_upstream_for_nothing() {
    let bank = Upstream::new("bank").limit(Limit::rate(1)).budget(Budget::ratio(0.1));
    let switch = Cancel::new();
    let mut first = HOURLY.start().on(&bank).cancel(&switch);
    assert!(first.ready().await.is_ok());
    let thrown = switch.clone();
    let mut waits = HOURLY.start().on(&bank).cancel(&switch);
    let throws = async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        thrown.cancel();
    };
    let (ready, ()) = tokio::join!(waits.ready(), throws);
    assert_eq!(ready.unwrap_err().0.reason, Reason::Cancelled);
    tokio::time::advance(Duration::from_secs(60)).await;
    let mut late = HOURLY.start().on(&bank).cancel(&switch);
    assert_eq!(late.ready().await.unwrap_err().0.reason, Reason::Cancelled);
    assert_eq!(late.ready_blocking().unwrap_err().0.reason, Reason::Cancelled);
    assert_eq!((bank.snapshot().attempts, bank.snapshot().calls), (1, 1));
}
