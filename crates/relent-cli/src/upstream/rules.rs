//! What all processes saw of an upstream, judged by its settings: may an attempt start, may a retry?
//!
//! Counts come from a store, over a window of whole seconds. Nothing of it asks a clock or a store.

use relent::{BreakerSettings, BreakerWindow, BudgetSettings, LimitSettings, UpstreamSettings};
use relent_store::{Held, Shared, SharedRate};
use std::time::Duration;

/// The part of an upstream's settings that processes can share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Retries, of all calls of a window and a floor a second.
    budget: Option<(f64, u32, Duration)>,
    breaker: Option<BreakerSettings>,
    rate: Option<SharedRate>,
}

/// How an upstream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// Attempts go.
    Closed,
    /// So many attempts may find out whether it is well again.
    HalfOpen(u64),
    /// None does.
    Open(Why),
}

/// Why none does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// So many attempts in a row have failed.
    Row(u64),
    /// So many of so many have failed in the window.
    Failures(u64, u64),
    /// The breakers of so many of so many processes are open.
    Quorum(u64, u64),
    /// Somebody holds it open.
    Hand,
}

impl Rules {
    pub(crate) fn of(settings: &UpstreamSettings) -> Rules {
        let budget = match settings.budget {
            Some(BudgetSettings::Ratio { ratio, min_per_second, window }) => Some((ratio, min_per_second, window)),
            Some(BudgetSettings::Finagle { ratio, min_per_second, ttl }) => Some((ratio, min_per_second, ttl)),
            // The others count what only one process can see: tokens, attempts under way.
            _ => None,
        };
        let rate = match settings.limit {
            Some(LimitSettings::Rate { rate, per, burst }) => {
                let gap = per.as_nanos().div_ceil(u128::from(rate.max(1)));
                Some(SharedRate { gap: Duration::from_nanos(u64::try_from(gap).unwrap_or(u64::MAX)), burst })
            }
            // What is in flight is known where it is.
            _ => None,
        };
        Rules { budget, breaker: settings.breaker, rate }
    }

    /// The rate at which all processes together may make attempts.
    pub(crate) fn rate(&self) -> Option<SharedRate> {
        self.rate
    }

    /// Over how long the budget counts, if processes share it.
    pub(crate) fn budget_window(&self) -> Option<Duration> {
        self.budget.map(|(_, _, window)| window)
    }

    /// Over how long the breaker looks back: as long as it would be open.
    pub(crate) fn breaker_window(&self) -> Option<Duration> {
        self.breaker.map(|breaker| match breaker.window {
            BreakerWindow::Time(time) if breaker.consecutive.is_none() => time.max(breaker.open_for),
            _ => breaker.open_for,
        })
    }

    /// Over how long it counts shares and failures, where that is longer than it would be open and failures in a row open it, too.
    pub(crate) fn window_of_shares(&self) -> Option<Duration> {
        let breaker =
            self.breaker.filter(|one| one.consecutive.is_some() && (one.share.is_some() || one.failures.is_some()))?;
        match breaker.window {
            BreakerWindow::Time(time) if time > breaker.open_for => Some(time),
            _ => None,
        }
    }

    /// How many retries all processes may have made in the budget's window, of which no more than an hour is counted.
    pub(crate) fn retries(&self, shared: &Shared) -> u64 {
        let Some((ratio, floor, window)) = self.budget else { return u64::MAX };
        let window = window.min(Duration::from_secs(3600));
        let calls = (ratio * shared.calls as f64).floor() as u64;
        calls.saturating_add((f64::from(floor) * window.as_secs_f64()).floor() as u64)
    }

    /// Whether another retry may be made, after those that were.
    pub(crate) fn may_retry(&self, shared: &Shared) -> bool {
        shared.retries < self.retries(shared)
    }

    /// Whether an attempt may start, by what was seen in the breaker's window.
    pub(crate) fn stand(&self, shared: &Shared) -> Stand {
        match shared.held {
            Some(Held::Open) => return Stand::Open(Why::Hand),
            Some(Held::Closed) => return Stand::Closed,
            None => {}
        }
        let Some(breaker) = self.breaker else { return Stand::Closed };
        if let Some(row) = breaker.consecutive.filter(|row| shared.run >= u64::from(*row)) {
            debug_assert!(row > 0);
            // Nobody has failed for as long as it is open: time to find out.
            return match shared.failures {
                0 => Stand::HalfOpen(breaker.probes.into()),
                _ => Stand::Open(Why::Row(shared.run)),
            };
        }
        if let Some(why) = self.too_many(shared) {
            return Stand::Open(why);
        }
        // One process alone does not decide for the others; half of them do, or who makes half of the calls.
        let is_half = shared.open * 2 >= shared.processes || shared.open_calls * 2 >= shared.calls.max(1);
        if shared.open >= 2 && is_half {
            return Stand::Open(Why::Quorum(shared.open, shared.processes));
        }
        Stand::Closed
    }

    /// Whether too many attempts of the window have failed, or too great a share of them.
    pub(crate) fn too_many(&self, shared: &Shared) -> Option<Why> {
        let breaker = self.breaker?;
        let attempts = shared.successes + shared.failures;
        let enough = attempts >= u64::from(breaker.min_calls.unwrap_or(20));
        let share = breaker.share.is_some_and(|share| enough && shared.failures as f64 >= share * attempts as f64);
        let failures = breaker.failures.is_some_and(|most| shared.failures >= u64::from(most));
        (share || failures).then_some(Why::Failures(shared.failures, attempts))
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Why::Row(row) => write!(f, "{row} attempts in a row have failed, of all processes"),
            Why::Failures(failures, all) => write!(f, "{failures} of {all} attempts have failed, of all processes"),
            Why::Quorum(open, all) => write!(f, "the breakers of {open} of {all} processes are open"),
            Why::Hand => f.write_str("held open by hand"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::config::UpstreamDraft;

    fn rules(budget: &str, breaker: &str) -> Rules {
        let mut draft = UpstreamDraft::default();
        draft.set("budget", budget).unwrap();
        draft.set("breaker", breaker).unwrap();
        Rules::of(&draft.settings())
    }

    fn seen(calls: u64, retries: u64, successes: u64, failures: u64, run: u64) -> Shared {
        Shared { calls, retries, successes, failures, run, ..Shared::default() }
    }

    #[test]
    fn retries_are_a_share_of_calls_and_a_floor() {
        let rules = rules("ratio=0.1,min_per_second=1,window=10s", "none");
        assert_eq!(rules.retries(&seen(0, 0, 0, 0, 0)), 10);
        assert_eq!(rules.retries(&seen(109, 0, 0, 0, 0)), 20);
        assert!(rules.may_retry(&seen(50, 14, 0, 0, 0)) && !rules.may_retry(&seen(50, 15, 0, 0, 0)));
    }

    #[test]
    fn budgets_that_cannot_be_shared_are_each_processs_own() {
        assert!(rules("grpc-a6", "none").may_retry(&seen(0, u64::MAX - 1, 0, 0, 0)));
        assert_eq!(rules("grpc-a6", "none").budget_window(), None);
    }

    #[test]
    fn failures_in_a_row_open_for_a_time_and_then_some_find_out() {
        let rules = rules("none", "consecutive=5,open_for=30s,probes=2");
        assert_eq!(rules.breaker_window(), Some(Duration::from_secs(30)));
        assert_eq!(rules.stand(&seen(9, 0, 0, 4, 4)), Stand::Closed);
        assert_eq!(rules.stand(&seen(9, 0, 0, 5, 5)), Stand::Open(Why::Row(5)));
        assert_eq!(rules.stand(&seen(0, 0, 0, 0, 5)), Stand::HalfOpen(2));
    }

    #[test]
    fn what_opens_it_together_has_each_its_own_window() {
        let times =
            |breaker: &str| (rules("none", breaker).breaker_window(), rules("none", breaker).window_of_shares());
        let secs = |secs| Some(Duration::from_secs(secs));
        assert_eq!(times("failures=3,window=60s,open_for=2s"), (secs(60), None));
        assert_eq!(times("consecutive=9,failures=3,window=60s,open_for=2s"), (secs(2), secs(60)));
        assert_eq!(times("consecutive=9,failures=3,window=60s,open_for=90s"), (secs(90), None));
        assert_eq!(times("consecutive=9,open_for=2s"), (secs(2), None));
    }

    #[test]
    fn shares_want_enough_attempts() {
        let rules = rules("none", "share=0.5,min_calls=20");
        assert_eq!(rules.stand(&seen(19, 0, 0, 19, 19)), Stand::Closed);
        assert_eq!(rules.stand(&seen(20, 0, 10, 10, 1)), Stand::Open(Why::Failures(10, 20)));
        assert_eq!(rules.stand(&seen(20, 0, 11, 9, 1)), Stand::Closed);
    }

    #[test]
    fn half_of_the_processes_decide_and_one_alone_does_not() {
        let rules = rules("none", "consecutive=5");
        let votes = |open, processes| Shared { open, processes, ..Shared::default() };
        assert_eq!(rules.stand(&votes(1, 1)), Stand::Closed);
        assert_eq!(rules.stand(&votes(1, 2)), Stand::Closed);
        assert_eq!(rules.stand(&votes(2, 3)), Stand::Open(Why::Quorum(2, 3)));
        assert_eq!(rules.stand(&votes(2, 5)), Stand::Closed);
        let callers = Shared { calls: 10, open_calls: 6, ..votes(2, 5) };
        assert_eq!(rules.stand(&callers), Stand::Open(Why::Quorum(2, 5)), "they make most of the calls");
    }

    #[test]
    fn a_hand_wins() {
        let rules = rules("none", "consecutive=5");
        let held = |held| Shared { held: Some(held), ..seen(9, 0, 0, 9, 9) };
        assert_eq!(rules.stand(&held(Held::Closed)), Stand::Closed);
        assert_eq!(rules.stand(&held(Held::Open)), Stand::Open(Why::Hand));
        let nothing = Rules::of(&UpstreamDraft::default().settings());
        assert_eq!(nothing.stand(&held(Held::Open)), Stand::Open(Why::Hand), "even without a breaker");
    }
}
