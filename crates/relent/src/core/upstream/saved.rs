//! What an upstream and a call on it remember, as plain data: for simulators, which have millions of them that are all set up
//! alike, and one upstream that plays each of them in its turn.

use super::{
    Upstream,
    call::{Phase, UpstreamCall},
};
use crate::core::{
    breaker::BreakerPass,
    budget::allowance::Withdrawal,
    limiter::{Limit, Place, settings::LimitSettings},
    time::Timestamp,
    word::Word,
};
use core::ops::Deref;

/// What a call on an upstream remembers while it has nothing under way: see [`UpstreamCall::save`].
///
/// ```
/// assert_eq!(relent::UpstreamSaved::default().paid, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamSaved {
    /// What was paid for the attempt that comes next.
    pub paid: Option<Withdrawal>,
    /// Whether its first attempt was let through.
    pub has_started: bool,
    /// When the permit that it has booked of a rate is due.
    pub booked: Option<Timestamp>,
}

impl Upstream {
    /// How many words are [saved](Upstream::save): none without machines, or of those that remember nothing. It depends on
    /// the settings alone.
    ///
    /// ```
    /// # use relent::{Breaker, Budget, Upstream};
    /// assert_eq!(Upstream::new("none").words(), 0);
    /// assert_eq!(Upstream::new("bank").budget(Budget::aws_quota_2_1()).words(), 1);
    /// assert_eq!(Upstream::new("bank").breaker(Breaker::consecutive(5)).words(), 4);
    /// ```
    pub fn words(&self) -> usize {
        let mut words = 0;
        self.each_word(&mut |_| words += 1);
        words
    }

    /// Writes down what its machines decide by, into as many [words](Upstream::words). What they mean is not promised:
    /// they are for [`load`](Upstream::load) of an upstream of the same settings, in the same program. Counts of what was
    /// done, who queues and who listens are not among them, nor is a budget or a limit of the user's own. Words for which
    /// there is no room are left out.
    ///
    /// For one thread: what another does meanwhile may be saved in part.
    ///
    /// ```
    /// use relent::{Breaker, BreakerState, Timestamp, Upstream};
    ///
    /// let (bank, now) = (Upstream::new("bank").breaker(Breaker::consecutive(1)), Timestamp::ZERO);
    /// let mut fresh = vec![0; bank.words()];
    /// bank.save(&mut fresh);
    /// bank.hold_open_at(now);
    /// let mut held = fresh.clone();
    /// bank.save(&mut held);
    /// bank.load(&fresh);
    /// assert_eq!(bank.its_breaker().unwrap().state(), BreakerState::Closed);
    /// bank.load(&held);
    /// assert_eq!(bank.its_breaker().unwrap().state(), BreakerState::HeldOpen);
    /// ```
    #[inline]
    pub fn save(&self, to: &mut [u64]) {
        let mut to = to.iter_mut();
        self.each_word(&mut |word| {
            if let Some(to) = to.next() {
                *to = word.get();
            }
        });
    }

    /// Goes on where an upstream of the same settings was when it was [saved](Upstream::save). Machines for which there are
    /// no words stay as they are.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Upstream};
    /// let (bank, now) = (Upstream::new("bank").budget(Budget::aws_quota_2_1()), Timestamp::ZERO);
    /// let mut full = vec![0; bank.words()];
    /// bank.save(&mut full);
    /// assert!(bank.its_budget().unwrap().withdraw(now, Outcome::TimedOut, 0).is_some());
    /// bank.load(&full);
    /// assert_eq!(bank.snapshot_at(now).balance, Some(500.0));
    /// ```
    #[inline]
    pub fn load(&self, from: &[u64]) {
        let mut from = from.iter();
        self.each_word(&mut |word| {
            if let Some(from) = from.next() {
                word.set(*from);
            }
        });
    }

    #[inline(always)]
    fn each_word<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        if let Some(budget) = &self.budget {
            budget.words(with);
        }
        if let Some(breaker) = &self.breaker {
            breaker.words(with);
        }
        if let Some(limit) = &self.limit {
            limit.words(with);
        }
        if let Some(hedge) = &self.hedge {
            hedge.words(with);
        }
    }
}

impl<H: Deref<Target = Upstream>> UpstreamCall<H> {
    /// Takes out what it remembers, and is a new call. `None` while it holds more than that, which it keeps: an attempt, a
    /// place in the queue.
    ///
    /// ```
    /// use relent::{Budget, Outcome, Timestamp, Upstream, UpstreamAnswer, Verdict};
    /// use std::time::Duration;
    ///
    /// let (bank, now) = (Upstream::new("bank").budget(Budget::aws_quota_2_1()), Timestamp::ZERO);
    /// let mut call = bank.call();
    /// assert!(call.go_at_once(now));
    /// assert_eq!(call.save(), None, "an attempt is under way");
    /// let failed = Outcome::Failure(Verdict::Transient);
    /// call.outcome(now, failed, 0);
    /// assert!(call.pay(now, failed, 0));
    /// let saved = call.save().unwrap();
    /// call.load(saved);
    /// assert_eq!(call.ask(now, 0, Duration::ZERO), UpstreamAnswer::Go);
    /// assert_eq!((bank.snapshot_at(now).calls, bank.snapshot_at(now).retries), (1, 1));
    /// ```
    ///
    /// What is booked stays booked:
    ///
    /// ```
    /// use relent::{Limit, Timestamp, Upstream, UpstreamAnswer};
    /// use std::time::Duration;
    ///
    /// let (gateway, now) = (Upstream::new("gateway").limit(Limit::rate(10)), Timestamp::ZERO);
    /// assert!(gateway.call().go_at_once(now));
    /// let (mut call, within) = (gateway.call(), Duration::from_secs(1));
    /// let UpstreamAnswer::Wait(wait) = call.ask(now, 0, within) else { panic!("100 ms between them") };
    /// let saved = call.save().unwrap();
    /// assert_eq!(saved.booked, Some(now + wait));
    /// let mut later = gateway.call();
    /// later.load(saved);
    /// assert_eq!(later.ask(now + wait, 0, within), UpstreamAnswer::Go);
    /// ```
    #[inline]
    pub fn save(&mut self) -> Option<UpstreamSaved> {
        let booked = match self.phase {
            _ if self.pass.is_some() => return None,
            Phase::Idle => None,
            Phase::Booked => Some(self.mark),
            Phase::Queued | Phase::Flying => return None,
        };
        self.phase = Phase::Idle;
        let saved = UpstreamSaved { paid: self.paid.take(), has_started: self.has_started, booked };
        // The new call may be told an earlier time.
        (self.has_started, self.is_waiting, self.now) = (false, false, Timestamp::ZERO);
        Some(saved)
    }

    /// Takes out an attempt under way: what was paid for it, and the pass of the breaker that lets it through. Whoever has
    /// them tells budget and breaker its outcome, and this is a new call. `None` if nothing is under way, or it has the
    /// permit of a limit that is told the outcome: of any but a rate.
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp, Upstream};
    /// # use std::time::Duration;
    /// let (bank, now) = (Upstream::new("bank").breaker(Breaker::consecutive(1)), Timestamp::ZERO);
    /// let mut call = bank.call();
    /// assert!(call.go_at_once(now));
    /// let (saved, pass) = call.save_attempt().unwrap();
    /// assert!(saved.has_started && !call.is_under_way());
    /// assert!(bank.its_breaker().unwrap().failed(pass.unwrap(), now, Duration::ZERO, 0).is_some());
    /// ```
    pub fn save_attempt(&mut self) -> Option<(UpstreamSaved, Option<BreakerPass>)> {
        let hears = |limit: &Limit| !matches!(limit.settings(), LimitSettings::Rate { .. });
        if self.phase != Phase::Flying || self.upstream().its_limit().is_some_and(hears) {
            return None;
        }
        let pass = self.pass.take();
        self.phase = Phase::Idle;
        Some((self.save()?, pass))
    }

    /// Goes on where a call was when it was [saved](UpstreamCall::save), on an upstream that has been
    /// [loaded](Upstream::load), or has stayed the same. What it holds now is given back.
    ///
    /// ```
    /// # use relent::{Outcome, Timestamp, Upstream, UpstreamAnswer, Verdict};
    /// # use std::time::Duration;
    /// let (bank, now) = (Upstream::new("bank"), Timestamp::ZERO);
    /// let mut call = bank.call();
    /// assert!(call.go_at_once(now));
    /// let failed = Outcome::Failure(Verdict::Transient);
    /// call.outcome(now, failed, 0);
    /// assert!(call.pay(now, failed, 0));
    /// let saved = call.save().unwrap();
    /// let mut later = bank.call();
    /// later.load(saved);
    /// assert_eq!(later.ask(now, 0, Duration::ZERO), UpstreamAnswer::Go);
    /// assert_eq!(bank.snapshot_at(now).calls, 1, "it is the same call");
    /// ```
    #[inline]
    pub fn load(&mut self, saved: UpstreamSaved) {
        if self.phase != Phase::Idle || self.pass.is_some() || self.paid.is_some() {
            self.give_back();
        }
        (self.paid, self.has_started) = (saved.paid, saved.has_started);
        if let Some(due) = saved.booked {
            let Place(place) = self.upstream.limit.as_ref().map_or(Place(0), |limit| limit.place_of(due));
            (self.phase, self.mark, self.place) = (Phase::Booked, due, place);
        }
    }
}
