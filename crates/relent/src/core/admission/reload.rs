//! An admission whose configuration was read again.

use super::Admission;
use crate::core::{time::Timestamp, word::Word};

impl Admission {
    /// Goes on where `old` was, for a configuration that was read again: what it has learned and counted, the state of its limit
    /// (see [`Limit::adopt`](crate::Limit::adopt)) and of its pacer ([`Pacer::adopt`](crate::Pacer::adopt)).
    ///
    /// Requests under way belong to `old` and give their places back there, so this one starts with none in flight; who
    /// waits in the queue of `old` goes on waiting there. Until they have ended, both together may hold more than the limit.
    ///
    /// ```
    /// use relent::{Admission, Limit, Timestamp};
    /// use std::time::Duration;
    ///
    /// let (old, now) = (Admission::new().limit(Limit::concurrency(20)), Timestamp::ZERO);
    /// old.completed(Duration::from_millis(40));
    /// let new = Admission::new().limit(Limit::concurrency(30)).adopt(&old, now);
    /// assert_eq!(new.snapshot(now).service_time, Some(Duration::from_millis(40)));
    /// ```
    #[must_use]
    pub fn adopt(mut self, old: &Admission, now: Timestamp) -> Admission {
        if let (Some(new), Some(old)) = (&self.limit, &old.limit) {
            new.adopt(old, now);
            new.land();
        }
        if let Some(old) = &old.pacer {
            self.pacer = self.pacer.take().map(|new| new.adopt(old));
        }
        self.recent.adopt(&old.recent);
        for (new, old) in self.counted().into_iter().zip(old.counted()) {
            new.set(old.get());
        }
        self
    }

    fn counted(&self) -> [&Word; 7] {
        [&self.takes, &self.accepted, &self.hopeless, &self.full, &self.low, &self.retries, &self.turns]
    }
}
