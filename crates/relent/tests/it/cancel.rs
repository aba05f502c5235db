//! Cancellation wakes sleepers at once and never loses the last error.

use relent::{Cancel, Jitter, Policy, Reason};
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
