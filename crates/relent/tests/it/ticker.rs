//! Ticks: the first at once, the last when the policy ends.

use crate::fake::Fake;
use futures_util::StreamExt;
use relent::{Cancel, Jitter, Policy};
use std::time::Duration;
use tokio::time::Instant;

const SEC: Duration = Duration::from_secs(1);
const EXACT: Policy = Policy::exponential(SEC).jitter(Jitter::None).max_attempts(3);

#[tokio::test(start_paused = true)]
async fn ticks_at_the_policys_times() {
    let begin = Instant::now();
    let mut ticker = EXACT.ticker();
    let mut ticks = vec![];
    while let Some(tick) = ticker.tick().await {
        ticks.push((tick.number(), begin.elapsed()));
    }
    assert_eq!(ticks, [(1, Duration::ZERO), (2, SEC), (3, 3 * SEC)]);
    assert!(ticker.tick().await.is_none(), "it stays ended");
}

#[tokio::test(start_paused = true)]
async fn is_a_stream() {
    let ticks: Vec<u32> = EXACT.ticker().map(|tick| tick.number()).collect().await;
    assert_eq!(ticks, [1, 2, 3]);
}

#[test]
fn is_an_iterator() {
    let fake = Fake::default();
    let ticks: Vec<u32> = EXACT.ticker_with(&fake).into_iter().map(|tick| tick.number()).collect();
    assert_eq!((ticks, fake.slept()), (vec![1, 2, 3], vec![SEC, 2 * SEC]));
}

#[tokio::test(start_paused = true)]
async fn ticks_are_not_queued() {
    let mut ticker = EXACT.ticker();
    ticker.tick().await;
    tokio::time::sleep(100 * SEC).await;
    let begin = Instant::now();
    ticker.tick().await;
    assert_eq!(begin.elapsed(), SEC, "the delay begins when the tick is asked for");
}

#[tokio::test(start_paused = true)]
async fn dropping_a_tick_half_way_does_not_start_its_delay_again() {
    let mut ticker = EXACT.ticker();
    ticker.tick().await;
    let begin = Instant::now();
    assert!(tokio::time::timeout(SEC / 2, ticker.tick()).await.is_err());
    ticker.tick().await;
    assert_eq!(begin.elapsed(), SEC);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_it_after_the_first_tick() {
    let cancel = Cancel::new();
    cancel.cancel();
    let mut ticker = EXACT.ticker().cancel(&cancel);
    assert_eq!(ticker.tick().await.unwrap().number(), 1);
    assert!(ticker.tick().await.is_none());
}
