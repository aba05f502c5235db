//! Ticks: the first at once, the last when the policy ends.

use crate::fake::Fake;
use futures_util::StreamExt;
use relent::{Breaker, Budget, Cancel, Jitter, Limit, Policy, Reason, Ticker, Timer, Timestamp, Upstream};
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
async fn a_thrown_switch_lets_nothing_tick() {
    let cancel = Cancel::new();
    cancel.cancel();
    assert!(EXACT.ticker().cancel(&cancel).tick().await.is_none());
    assert!(EXACT.ticker().cancel(&cancel).next().await.is_none(), "as a stream");
    assert!(EXACT.ticker().cancel(&cancel).into_iter().next().is_none(), "as an iterator");
}

/// What is left of an hour's ticker after its switch was thrown five seconds into its first delay.
async fn cancelled_after<F: Future<Output = usize>>(count: impl FnOnce(Ticker) -> F) -> (usize, Duration) {
    let hourly = Policy::constant(Duration::from_secs(3600)).jitter(Jitter::None);
    let (cancel, begin) = (Cancel::new(), Instant::now());
    let switch = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(5 * SEC).await;
        switch.cancel();
    });
    let ticks = count(hourly.ticker().cancel(&cancel)).await;
    (ticks, begin.elapsed())
}

#[tokio::test(start_paused = true)]
async fn cancelling_wakes_it_from_its_delay() {
    let by_tick = cancelled_after(async |mut ticker| {
        let mut ticks = 0;
        while ticker.tick().await.is_some() {
            ticks += 1;
        }
        ticks
    });
    assert_eq!(by_tick.await, (1, 5 * SEC));
    assert_eq!(cancelled_after(|ticker| ticker.count()).await, (1, 5 * SEC), "as a stream");
}

#[test]
fn cancelling_wakes_an_iterator_on_its_thread() {
    let cancel = Cancel::new();
    let hourly = Policy::constant(Duration::from_secs(3600)).jitter(Jitter::None);
    let mut ticks = hourly.ticker().cancel(&cancel).into_iter();
    assert!(ticks.next().is_some());
    let switch = cancel.clone();
    let other = std::thread::spawn(move || switch.cancel());
    assert!(ticks.next().is_none() && ticks.next().is_none());
    other.join().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_ticker_that_was_cancelled_stays_ended() {
    let cancel = Cancel::new();
    let mut ticker = EXACT.ticker().cancel(&cancel);
    assert_eq!(ticker.tick().await.unwrap().number(), 1);
    cancel.cancel();
    assert!(ticker.tick().await.is_none() && ticker.tick().await.is_none());
}

#[test]
fn it_outlives_the_policy_it_was_made_from_and_goes_where_it_is_wanted() {
    fn poller() -> Ticker {
        let policy = Policy::immediate().max_attempts(3);
        policy.ticker()
    }
    let ticker = poller();
    let ticks = std::thread::spawn(move || ticker.into_iter().count());
    assert_eq!(ticks.join().unwrap(), 3);
}

/// Sleeps two seconds longer than it is told.
#[derive(Default)]
struct Oversleeper(Fake);

impl Timer for Oversleeper {
    type Sleep = std::future::Ready<()>;

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn sleep(&self, delay: Duration) -> Self::Sleep {
        self.0.sleep(delay + 2 * SEC)
    }
}

#[tokio::test]
async fn whoever_oversleeps_the_end_does_not_tick_again() {
    let policy = Policy::constant(SEC).jitter(Jitter::None);
    for (policy, ticks) in
        [(policy.max_elapsed(2 * SEC), 1), (policy.timeout(3 * SEC), 1), (policy.max_elapsed(3 * SEC), 2)]
    {
        let late = Oversleeper::default();
        let mut ticker = policy.ticker_with(&late);
        let mut ticked = 0;
        while ticker.tick().await.is_some() {
            ticked += 1;
        }
        assert_eq!(ticked, ticks, "{policy:?}");
        assert!(ticker.tick().await.is_none(), "it stays ended");
        let late = Oversleeper::default();
        assert_eq!(policy.ticker_with(&late).into_iter().count(), ticks, "on a thread, {policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_spaces_ticks_out() {
    let (gateway, begin) = (Upstream::new("gateway").limit(Limit::rate(1)), Instant::now());
    let mut ticker = Policy::immediate().max_attempts(3).ticker().on(&gateway);
    let mut ticks = vec![];
    while let Some(tick) = ticker.tick().await {
        ticks.push((ticker.succeed(tick).number(), begin.elapsed()));
    }
    assert_eq!(ticks, [(1, Duration::ZERO), (2, SEC), (3, 2 * SEC)]);
    assert_eq!((gateway.snapshot().calls, gateway.snapshot().retries), (3, 0));
    assert_eq!(ticker.reason(), Some(Reason::Attempts));
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_ends_it_before_its_first_tick() {
    let down = Upstream::new("down").breaker(Breaker::consecutive(1));
    down.hold_open();
    let mut ticker = EXACT.ticker().on(&down);
    assert!(ticker.tick().await.is_none());
    assert_eq!(ticker.reason(), Some(Reason::Open));
    assert!(EXACT.ticker().on(&down).next().await.is_none(), "as a stream");
    let mut ticks = EXACT.ticker().on(&down).into_iter();
    assert!(ticks.next().is_none() && ticks.reason() == Some(Reason::Open), "as an iterator");
    assert_eq!(down.snapshot().attempts, 0);
}

/// Half of gRPC's ten tokens may go: the fifth failure is the last.
#[tokio::test(start_paused = true)]
async fn ticks_that_failed_are_paid_from_the_budget() {
    let bank = Upstream::new("bank").budget(Budget::grpc(10, 0.1));
    let mut ticker = Policy::immediate().max_attempts(9).ticker().on(&bank);
    let mut ticks = 0;
    while ticker.tick().await.is_some() {
        ticks += 1;
    }
    assert_eq!((ticks, ticker.reason()), (5, Some(Reason::Budget)));
    let mut ticks = Policy::immediate().max_attempts(9).ticker().on(&bank).into_iter();
    while let Some(tick) = ticks.next() {
        ticks.succeed(tick);
    }
    assert_eq!(ticks.reason(), Some(Reason::Attempts), "what succeeds is no retry");
}

#[tokio::test(start_paused = true)]
async fn a_full_upstream_is_queued_for_and_its_place_comes_back() {
    let narrow = Upstream::new("narrow").limit(Limit::concurrency(1).queue(4, 10 * SEC));
    let mut holder = EXACT.ticker().on(&narrow);
    assert!(holder.tick().await.is_some());
    let mut waiting = EXACT.ticker().on(&narrow);
    assert!(tokio::time::timeout(SEC, waiting.tick()).await.is_err(), "it is full");
    let begin = Instant::now();
    let (tick, ()) = tokio::join!(waiting.tick(), async {
        tokio::time::sleep(2 * SEC).await;
        drop(holder);
    });
    assert_eq!((tick.map(|tick| tick.number()), begin.elapsed()), (Some(1), 2 * SEC), "woken, not timed out");
    let mut late = EXACT.ticker().on(&narrow);
    assert!(late.tick().await.is_none());
    assert_eq!(late.reason(), Some(Reason::Shed), "nobody gave it room in time");
    drop((waiting, late));
    assert_eq!(narrow.snapshot().limit.unwrap().in_flight, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_thrown_switch_takes_it_out_of_the_queue() {
    let narrow = Upstream::new("narrow").limit(Limit::concurrency(1).queue(4, 1000 * SEC));
    let mut holder = EXACT.ticker().on(&narrow);
    assert!(holder.tick().await.is_some());
    let (cancel, begin) = (Cancel::new(), Instant::now());
    let mut waiting = EXACT.ticker().on(&narrow).cancel(&cancel);
    let (tick, ()) = tokio::join!(waiting.tick(), async {
        tokio::time::sleep(SEC).await;
        cancel.cancel();
    });
    assert!(tick.is_none() && begin.elapsed() == SEC);
    assert_eq!((waiting.reason(), narrow.snapshot().limit.unwrap().queued), (Some(Reason::Cancelled), 0));
}
