//! When a breaker trips, and how long it stays open each time.

use relent::{BreakerSettings, BreakerWindow, duration::Human};
use std::time::Duration;

/// Trips that are shown.
const TRIPS: u32 = 8;

/// The failures in a row that trip it from closed; `None` if only slow calls do.
pub(super) fn failures(settings: &BreakerSettings) -> Option<u32> {
    let by_share = settings.share.map(|_| {
        let most = match settings.window {
            BreakerWindow::Calls(calls) => calls,
            BreakerWindow::Time(_) => u32::MAX,
        };
        settings.min_calls.unwrap_or(20).min(most)
    });
    settings.consecutive.into_iter().chain(settings.failures).chain(by_share).min()
}

/// How long it is open at the first, second and each later trip, least and most by jitter; as many as differ.
pub(super) fn times(settings: &BreakerSettings) -> Vec<(Duration, Duration)> {
    let Ok(breaker) = settings.breaker() else { return Vec::new() };
    let mut times = Vec::new();
    for level in 0..TRIPS {
        let pair = (breaker.open_time(level, 0), breaker.open_time(level, u64::MAX));
        if times.last() == Some(&pair) {
            break;
        }
        times.push(pair);
    }
    times
}

/// What trips it, in words.
pub(super) fn trips(settings: &BreakerSettings) -> String {
    let mut ways = Vec::new();
    if let Some(count) = settings.consecutive {
        ways.push(format!("after {count} failures in a row"));
    }
    let window = match settings.window {
        BreakerWindow::Calls(calls) => format!("the last {calls} calls"),
        BreakerWindow::Time(Duration::MAX) => "all calls".to_owned(),
        BreakerWindow::Time(time) => format!("the last {}", Human(time)),
    };
    if let Some(count) = settings.failures {
        ways.push(format!("after {count} failures in {window}"));
    }
    let percent = |share: f64| super::figure(share * 100.0);
    if let Some(share) = settings.share {
        ways.push(format!("when {} % of {window} have failed", percent(share)));
    }
    if let Some(slow) = settings.slow_after {
        let share = percent(settings.slow_share);
        ways.push(format!("when {share} % of {window} took longer than {}", Human(slow)));
    }
    if (settings.share.is_some() || settings.slow_after.is_some())
        && let Some(least) = settings.min_calls
    {
        ways.push(format!("a share counts from {least} calls on"));
    }
    ways.join(", or ").replace(", or a share", "; a share")
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::{Breaker, Timestamp};

    const SEC: Duration = Duration::from_secs(1);

    #[test]
    fn the_machine_trips_where_it_is_said() {
        let shares = Breaker::share(0.5).min_calls(30).settings();
        let calls = Breaker::share(0.5).window_calls(10).settings();
        for settings in [Breaker::consecutive(5).settings(), Breaker::failures(7).settings(), shares, calls] {
            let breaker = settings.breaker().unwrap();
            let now = Timestamp::from_nanos(1);
            let mut failed = 0;
            while let Ok(permit) = breaker.permit(now, 0) {
                permit.failed(now, Duration::ZERO, 0);
                failed += 1;
                assert!(failed < 1_000, "{settings:?}");
            }
            assert_eq!(failures(&settings), Some(failed), "{settings:?}");
        }
        assert_eq!(failures(&Breaker::slow(SEC, 0.5).settings()), None);
    }

    #[test]
    fn open_times_grow_to_their_most() {
        let growing = Breaker::consecutive(5).open_for(10 * SEC).factor(2.0).open_at_most(60 * SEC).settings();
        let seconds: Vec<u64> = times(&growing).iter().map(|(least, _)| least.as_secs()).collect();
        assert_eq!(seconds, [10, 20, 40, 60]);
        let jittered = Breaker::consecutive(5).open_for(30 * SEC).jitter(0.2).settings();
        assert_eq!(times(&jittered).len(), 1);
        let (least, most) = times(&jittered)[0];
        assert_eq!((least, most.as_secs_f64().round()), (30 * SEC, 36.0));
    }

    #[test]
    fn what_trips_it_in_words() {
        assert_eq!(trips(&Breaker::consecutive(5).settings()), "after 5 failures in a row");
        assert_eq!(
            trips(&Breaker::compat("polly").unwrap().settings()),
            "when 10 % of the last 30s have failed; a share counts from 100 calls on"
        );
        assert_eq!(
            trips(&Breaker::slow(SEC, 0.5).or_consecutive(3).window_calls(9).settings()),
            "after 3 failures in a row, or when 50 % of the last 9 calls took longer than 1s"
        );
    }
}
