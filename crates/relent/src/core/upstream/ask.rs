//! May the next attempt of a call start? Breaker, limiter, then what the budget has to say.

use super::{
    Upstream,
    call::{Phase, UpstreamCall},
};
use crate::core::{
    limiter::{LimitAnswer, Place, settings::LimitSettings},
    outcome::Outcome,
    refused::Refused,
    rng::mix,
    time::Timestamp,
    verdict::{Reason, Verdict},
};
use core::{ops::Deref, time::Duration};

/// Whether an attempt may start.
///
/// ```
/// use relent::{Limit, Timestamp, Upstream, UpstreamAnswer};
/// use std::time::Duration;
///
/// let (gateway, now) = (Upstream::new("gateway").limit(Limit::rate(100)), Timestamp::ZERO);
/// let within = Duration::from_secs(1);
/// assert_eq!(gateway.call().ask(now, 0, within), UpstreamAnswer::Go);
/// let mut second = gateway.call();
/// assert_eq!(second.ask(now, 0, within), UpstreamAnswer::Wait(Duration::from_millis(10)));
/// assert_eq!(second.ask(now + Duration::from_millis(10), 0, within), UpstreamAnswer::Go);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an attempt that was not let through must not be made"]
pub enum UpstreamAnswer {
    /// Now.
    Go,
    /// Not now: ask again after so long. Its place is kept meanwhile.
    Wait(Duration),
    /// Not now: it stands in the queue. Ask again when woken ([`Upstream::next`] says who is next), at the latest after so
    /// long.
    Queue(Duration),
    /// No. Nothing is held any more, and what was paid is refunded.
    Refused(Refused),
}

impl<H: Deref<Target = Upstream>> UpstreamCall<H> {
    /// The other half of [`ask`](UpstreamCall::ask) for a first attempt that nothing hinders: no draw is needed. `false`
    /// if something does; then `ask`.
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp, Upstream};
    /// let (bank, now) = (Upstream::new("bank").breaker(Breaker::consecutive(5)), Timestamp::ZERO);
    /// assert!(bank.call().go_at_once(now));
    /// bank.hold_open_at(now);
    /// assert!(!bank.call().go_at_once(now));
    /// ```
    #[inline]
    pub fn go_at_once(&mut self, now: Timestamp) -> bool {
        let upstream = &*self.upstream;
        if self.has_started || self.phase != Phase::Idle || upstream.draws_at_start() {
            return false;
        }
        if let Some(breaker) = &upstream.breaker {
            let Some(pass) = breaker.pass_closed() else { return false };
            self.pass = Some(pass);
        }
        self.now = self.now.max(now);
        if let Some(limit) = &upstream.limit {
            match limit.acquire(now) {
                LimitAnswer::Granted => {}
                LimitAnswer::Queue(most) => {
                    (self.pass, self.phase) = (None, Phase::Queued);
                    (self.is_waiting, self.asked, self.mark) = (true, now, now + most);
                    return false;
                }
                LimitAnswer::Wait(_) | LimitAnswer::Shed => {
                    self.pass = None;
                    return false;
                }
            }
        }
        if let Some(budget) = &upstream.budget {
            budget.start(now, 0);
        }
        upstream.count_call();
        self.has_started = true;
        (self.phase, self.mark) = (Phase::Flying, now);
        true
    }

    /// May the next attempt start? `draw` is a uniform random number of the caller's, another each time; `within` is how
    /// long the caller would wait from now on at most.
    pub fn ask(&mut self, now: Timestamp, draw: u64, within: Duration) -> UpstreamAnswer {
        let now = self.tell(now);
        if self.phase == Phase::Flying {
            return UpstreamAnswer::Go;
        }
        if !self.is_waiting {
            (self.is_waiting, self.asked) = (true, now);
        }
        if let Some(breaker) = &self.upstream.breaker {
            match breaker.pass(now, draw) {
                Ok(pass) => {
                    self.pass = Some(pass);
                    self.upstream.changed(pass.change(), now);
                }
                Err(refused) => return self.on_open(refused, draw, within),
            }
        }
        match self.ask_limit(now, within) {
            UpstreamAnswer::Go => self.begin(now, draw),
            UpstreamAnswer::Refused(refused) => self.refuse(refused),
            wait => {
                self.give_pass_back();
                wait
            }
        }
    }

    fn on_open(&mut self, refused: Refused, draw: u64, within: Duration) -> UpstreamAnswer {
        self.give_place_back();
        let wait = refused.wait(self.now, draw);
        if self.waits_while_open && refused.again != Timestamp::MAX && wait <= within {
            return UpstreamAnswer::Wait(wait);
        }
        self.refuse(refused)
    }

    fn ask_limit(&mut self, now: Timestamp, within: Duration) -> UpstreamAnswer {
        let Some(limit) = &self.upstream.limit else { return UpstreamAnswer::Go };
        match self.phase {
            Phase::Booked if now < self.mark => return UpstreamAnswer::Wait(self.mark.since(now)),
            Phase::Booked => return UpstreamAnswer::Go,
            Phase::Queued if limit.enter() => {
                self.phase = Phase::Booked;
                self.upstream.lobby.leave(core::mem::take(&mut self.place));
                return UpstreamAnswer::Go;
            }
            Phase::Queued if now < self.mark && !within.is_zero() => {
                return UpstreamAnswer::Queue(self.mark.since(now).min(within));
            }
            Phase::Queued => return shed(Timestamp::MAX),
            Phase::Idle | Phase::Flying => {}
        }
        if matches!(limit.settings(), LimitSettings::Rate { .. })
            && let Some((wait, Place(place))) = limit.book_place(now, within)
        {
            (self.phase, self.mark, self.place) = (Phase::Booked, now + wait, place);
            return if wait.is_zero() { UpstreamAnswer::Go } else { UpstreamAnswer::Wait(wait) };
        }
        match limit.acquire_place(now) {
            Ok(Place(place)) => {
                (self.phase, self.place) = (Phase::Booked, place);
                UpstreamAnswer::Go
            }
            Err(LimitAnswer::Wait(wait)) if wait <= within && !wait.is_zero() => UpstreamAnswer::Wait(wait),
            Err(LimitAnswer::Wait(wait)) => shed(now + wait),
            Err(LimitAnswer::Queue(_)) if within.is_zero() => {
                limit.leave();
                shed(Timestamp::MAX)
            }
            Err(LimitAnswer::Queue(most)) => {
                let most = most.min(within);
                (self.phase, self.mark) = (Phase::Queued, now + most);
                UpstreamAnswer::Queue(most)
            }
            Err(LimitAnswer::Shed | LimitAnswer::Granted) => shed(Timestamp::MAX),
        }
    }

    fn begin(&mut self, now: Timestamp, draw: u64) -> UpstreamAnswer {
        let upstream = &*self.upstream;
        let counts = &upstream.counts;
        if self.is_hedge {
            counts.hedges.add(1);
        } else if self.has_started || self.paid.is_some() {
            // Whoever forgot to pay pays now.
            if let (Some(budget), None) = (&upstream.budget, self.paid) {
                self.paid = budget.withdraw(now, Outcome::Failure(Verdict::Transient), mix(draw));
                if self.paid.is_none() {
                    return self.refuse(Refused { reason: Reason::Budget, again: Timestamp::MAX });
                }
            }
            counts.retries.add(1);
        } else {
            if let Some(budget) = &upstream.budget
                && !budget.start(now, mix(draw))
            {
                return self.refuse(Refused { reason: Reason::Budget, again: now });
            }
            upstream.count_call();
        }
        if let (Some(budget), Some(paid)) = (&upstream.budget, self.paid) {
            budget.retry(now, paid);
        }
        (self.has_started, self.is_waiting) = (true, false);
        (self.phase, self.mark, self.place) = (Phase::Flying, now, 0);
        UpstreamAnswer::Go
    }

    fn refuse(&mut self, refused: Refused) -> UpstreamAnswer {
        let is_first = !self.has_started && self.paid.is_none();
        self.give_back();
        if !self.is_hedge {
            self.upstream.counts.refused(refused.reason, is_first);
            self.has_started = false;
        }
        UpstreamAnswer::Refused(refused)
    }
}

const fn shed(again: Timestamp) -> UpstreamAnswer {
    UpstreamAnswer::Refused(Refused { reason: Reason::Shed, again })
}
