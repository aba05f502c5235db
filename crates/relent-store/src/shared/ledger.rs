//! What one process counts between two merges, and what it may spend until the next.

use relent::{Allowance, Outcome, Timestamp, Withdrawal};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// One retry, in the parts in which shares of it are counted.
const RETRY: i64 = 1 << 20;

/// A budget that many processes share. A decision reads and writes a few words of this process; nothing waits. What a call earns is
/// not added up by the call, which only counts itself: who spends reckons it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// What this process could still spend if its calls had earned nothing, in parts of a retry.
    base: AtomicI64,
    /// What a call of its own earns, in parts of a retry.
    earns: i64,
    is_free: bool,
    /// Never taken out.
    calls: AtomicU64,
    /// How many of the calls were taken out.
    told: AtomicU64,
    retries: AtomicU64,
    successes: AtomicU64,
    failures: AtomicU64,
    run: AtomicU64,
}

/// What was counted since the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) calls: u64,
    pub(super) retries: u64,
    pub(super) successes: u64,
    pub(super) failures: u64,
    pub(super) run: u64,
}

impl Counted {
    pub(super) fn add(&mut self, later: Counted) {
        self.run = if later.successes > 0 { later.run } else { self.run + later.run };
        self.calls += later.calls;
        self.retries += later.retries;
        self.successes += later.successes;
        self.failures += later.failures;
    }
}

fn parts(retries: f64) -> i64 {
    // A cast saturates.
    (retries * RETRY as f64) as i64
}

impl Ledger {
    /// `ratio` of its calls may be retried; `None` is a budget without a limit, which only counts.
    pub(super) fn new(ratio: Option<f64>) -> Ledger {
        Ledger { earns: parts(ratio.unwrap_or(0.0)), is_free: ratio.is_none(), ..Ledger::default() }
    }

    /// What all calls earned.
    fn earned(&self) -> i64 {
        self.calls.load(Relaxed).cast_signed().wrapping_mul(self.earns)
    }

    /// Changes what is left; what was left before where that is nothing to change.
    fn change(&self, change: impl Fn(i64) -> Option<i64>) -> Result<i64, i64> {
        let earned = self.earned();
        let left = |base: i64| base.wrapping_add(earned);
        let changed = self.base.fetch_update(Relaxed, Relaxed, |base| Some(change(left(base))?.wrapping_sub(earned)));
        changed.map(left).map_err(left)
    }

    /// Takes what was counted out.
    pub(super) fn take(&self) -> Counted {
        let take = |word: &AtomicU64| word.swap(0, Relaxed);
        let calls = self.calls.load(Relaxed);
        // Successes before the run: a success in between shortens the run, and is told the next time.
        Counted {
            successes: take(&self.successes),
            run: take(&self.run),
            calls: calls.saturating_sub(self.told.fetch_max(calls, Relaxed)),
            retries: take(&self.retries),
            failures: take(&self.failures),
        }
    }

    /// Retries that were not taken out yet.
    pub(super) fn spent(&self) -> u64 {
        self.retries.load(Relaxed)
    }

    /// What may be spent until the next merge: this process's share of what all have left.
    pub(super) fn set(&self, share: f64) {
        let _ = self.change(|_| Some(parts(share)));
    }

    /// What may be spent while nobody can be asked, up to `most`.
    pub(super) fn add(&self, share: f64, most: f64) {
        let _ = self.change(|left| {
            let sum = left.saturating_add(parts(share)).min(parts(most));
            (sum > left).then_some(sum)
        });
    }

    /// What may be spent, in so many parts of a retry.
    pub(super) fn left_in(&self, parts: u64) -> u64 {
        // A cast saturates.
        (self.left() * parts as f64).ceil() as u64
    }

    /// What may be spent, in retries.
    pub(super) fn left(&self) -> f64 {
        self.base.load(Relaxed).wrapping_add(self.earned()) as f64 / RETRY as f64
    }
}

impl Allowance for Ledger {
    fn name(&self) -> &str {
        "shared"
    }

    fn start(&self, _: Timestamp, _: u64) -> bool {
        self.calls.fetch_add(1, Relaxed);
        true
    }

    /// Less than a whole retry is granted with that probability, so that many processes with a small share each spend what they
    /// have together.
    fn withdraw(&self, _: Timestamp, _: Outcome, draw: u64) -> Option<Withdrawal> {
        // Who draws and loses has spent it, too: else it would draw at each call, and win in the end.
        let spend = self.change(|left| match left {
            RETRY.. => Some(left - RETRY),
            1.. => Some(0),
            _ => None,
        });
        let spend = spend.is_ok_and(|left| left >= RETRY || (draw >> 44) < left as u64);
        if self.is_free || spend {
            self.retries.fetch_add(1, Relaxed);
            return Some(Withdrawal::new(1, 0));
        }
        None
    }

    fn outcome(&self, _: Timestamp, outcome: Outcome, _: Option<Withdrawal>) {
        if outcome.is_answered() {
            // To write what is there already would take the word from who reads it.
            if self.run.load(Relaxed) != 0 {
                self.run.store(0, Relaxed);
            }
            self.successes.fetch_add(1, Relaxed);
        } else if outcome.is_load() {
            self.failures.fetch_add(1, Relaxed);
            self.run.fetch_add(1, Relaxed);
        }
    }

    fn refund(&self, _: Timestamp, _: Withdrawal) {
        self.base.fetch_add(RETRY, Relaxed);
        // Counted already, perhaps told already: the next interval counts one less.
        let _ = self.retries.fetch_update(Relaxed, Relaxed, |retries| retries.checked_sub(1));
    }

    fn balance(&self, _: Timestamp) -> f64 {
        if self.is_free { f64::INFINITY } else { self.left().max(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::{Verdict, rng};

    const FAILED: Outcome = Outcome::Failure(Verdict::Transient);
    const NOW: Timestamp = Timestamp::ZERO;

    #[test]
    fn a_share_of_its_calls_may_be_retried_before_anybody_was_asked() {
        let ledger = Ledger::new(Some(0.125));
        for _ in 0..80 {
            assert!(ledger.start(NOW, 0));
        }
        assert_eq!((0..80).filter(|_| ledger.withdraw(NOW, FAILED, 0).is_some()).count(), 10);
        assert_eq!(ledger.take(), Counted { calls: 80, retries: 10, ..Counted::default() });
        assert_eq!(ledger.take(), Counted::default());
    }

    /// What a call earns is neither lost nor earned twice, whatever is set meanwhile.
    #[test]
    fn calls_earn_on_top_of_what_was_set_and_only_what_came_after() {
        let ledger = Ledger::new(Some(0.25));
        let calls = |number| (0..number).for_each(|_| assert!(ledger.start(NOW, 0)));
        calls(1000);
        ledger.set(3.0);
        assert_eq!(ledger.left(), 3.0);
        calls(8);
        assert_eq!(ledger.left(), 5.0);
        assert_eq!((0..10).filter(|_| ledger.withdraw(NOW, FAILED, 0).is_some()).count(), 5);
        // More was spent by all than there was: that is paid for first.
        ledger.set(-2.0);
        assert_eq!(ledger.balance(NOW), 0.0);
        calls(8);
        assert_eq!((ledger.left(), ledger.withdraw(NOW, FAILED, 0)), (0.0, None));
        calls(4);
        assert!(ledger.withdraw(NOW, FAILED, 0).is_some());
        ledger.add(0.5, 1.0);
        ledger.add(5.0, 1.0);
        assert_eq!(ledger.left(), 1.0);
        assert_eq!((ledger.take().calls, ledger.take().calls), (1020, 0));
    }

    #[test]
    fn many_with_a_tenth_of_a_retry_each_spend_a_tenth_together() {
        let seed = 7;
        let granted = (0..10_000).filter(|k| {
            let ledger = Ledger::new(Some(0.0));
            ledger.set(0.1);
            ledger.withdraw(NOW, FAILED, rng::draw(seed, *k)).is_some()
        });
        let granted = granted.count();
        assert!((850..1150).contains(&granted), "{granted}");
    }

    #[test]
    fn the_run_is_that_since_the_last_success() {
        let ledger = Ledger::new(None);
        for outcome in
            [FAILED, FAILED, Outcome::Success, FAILED, Outcome::Dropped, Outcome::Failure(Verdict::Permanent), FAILED]
        {
            ledger.outcome(NOW, outcome, None);
        }
        assert_eq!(ledger.take(), Counted { successes: 2, failures: 4, run: 1, ..Counted::default() });
        let mut sum = Counted { successes: 1, failures: 2, run: 2, ..Counted::default() };
        sum.add(Counted { failures: 3, run: 3, ..Counted::default() });
        assert_eq!(sum.run, 5);
        sum.add(Counted { successes: 1, run: 1, ..Counted::default() });
        assert_eq!(sum.run, 1);
    }

    #[test]
    fn a_refund_can_be_spent_again() {
        let ledger = Ledger::new(Some(0.0));
        ledger.set(1.0);
        let paid = ledger.withdraw(NOW, FAILED, 0).unwrap();
        assert_eq!(ledger.withdraw(NOW, FAILED, 0), None);
        ledger.refund(NOW, paid);
        assert!(ledger.withdraw(NOW, FAILED, 0).is_some());
        assert_eq!(ledger.take().retries, 1);
    }
}
