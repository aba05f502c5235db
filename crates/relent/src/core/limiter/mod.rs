//! Limiters: how many attempts may be made, in a time or at a time.

mod aimd;
mod answer;
pub(crate) mod aws_adaptive;
mod build;
mod concurrency;
mod flight;
pub(crate) mod gradient;
mod holes;
#[cfg(all(test, loom))]
mod models;
pub(crate) mod permit;
pub(crate) mod permits;
mod rate;
pub(crate) mod settings;

pub use self::answer::{LimitAnswer, LimitNext, LimitSnapshot};

use self::{
    aimd::Aimd,
    aws_adaptive::{AwsAdaptive, AwsAdaptiveState},
    concurrency::Concurrency,
    gradient::Gradient,
    permits::Permits,
    rate::Rate,
    settings::LimitSettings,
};
use super::{
    outcome::Outcome,
    time::{Timestamp, nanos},
    word::Word,
};
use core::time::Duration;

/// How many attempts may be made on one upstream, in a time or at a time.
///
/// Made by a `const fn` and usable in a `static`; all methods take `&self` and allocate nothing.
///
/// ```
/// use relent::{LimitAnswer, Limit, Timestamp};
/// use std::time::Duration;
///
/// static LIMIT: Limit = Limit::rate(100).burst(2);
///
/// let now = Timestamp::ZERO;
/// assert_eq!(LIMIT.acquire(now), LimitAnswer::Granted);
/// assert_eq!(LIMIT.acquire(now), LimitAnswer::Granted);
/// assert_eq!(LIMIT.acquire(now), LimitAnswer::Wait(Duration::from_millis(10)));
/// ```
///
/// ```compile_fail
/// static LIMIT: relent::Limit = relent::Limit::rate(0);
/// ```
#[derive(Debug)]
pub struct Limit {
    settings: LimitSettings,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Rate(Rate),
    /// A rate whose permits somebody else counts.
    Granted(&'static dyn Permits),
    Concurrency(Concurrency),
    Aimd(Aimd),
    Gradient(Gradient),
    AwsAdaptive(AwsAdaptive),
}

/// What was granted, as the time at which it may be used, in nanoseconds; of a rate, that at which it is due at a steady pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(pub(crate) u64);

impl Limit {
    /// Everything the limit says, by name.
    ///
    /// ```
    /// # use relent::{Limit, LimitSettings};
    /// assert!(matches!(Limit::rate(100).settings(), LimitSettings::Rate { rate: 100, burst: 1, .. }));
    /// ```
    pub const fn settings(&self) -> LimitSettings {
        self.settings
    }

    /// Whether attempts may wait in line for it.
    pub(crate) const fn has_queue(&self) -> bool {
        matches!(self.settings, LimitSettings::Concurrency { queue: 1.., .. })
    }

    /// The kind, as policy files name it: `rate`, `concurrency`, `aimd`, `gradient`, `aws_adaptive`.
    ///
    /// ```
    /// # use relent::Limit;
    /// assert_eq!(Limit::aimd(20).name(), "aimd");
    /// ```
    pub const fn name(&self) -> &'static str {
        match self.kind {
            Kind::Rate(_) | Kind::Granted(_) => "rate",
            Kind::Concurrency(_) => "concurrency",
            Kind::Aimd(_) => "aimd",
            Kind::Gradient(_) => "gradient",
            Kind::AwsAdaptive(_) => "aws_adaptive",
        }
    }

    /// Asks for leave for one attempt. [`permit`](Limit::permit) is the same as a guard.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Shed);
    /// limit.release(now, Outcome::Success, Duration::from_millis(3));
    /// ```
    #[inline]
    pub fn acquire(&self, now: Timestamp) -> LimitAnswer {
        match &self.kind {
            Kind::Rate(kind) => kind.acquire(now),
            Kind::Granted(rule) => permits::acquire(*rule, now),
            Kind::Concurrency(kind) => kind.acquire(now),
            Kind::Aimd(kind) => kind.acquire(),
            Kind::Gradient(kind) => kind.acquire(),
            Kind::AwsAdaptive(kind) => kind.acquire(now),
        }
    }

    /// Takes the next permit if it can be had within so long, and says when: who books does not have to ask again, and
    /// those who wait go in the order they came. What is booked and not used is [given back](Limit::give_back). Only a
    /// [`rate`](Limit::rate) knows its future; the others book what they would grant at once.
    ///
    /// ```
    /// # use relent::{Limit, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::rate(10), Timestamp::ZERO);
    /// let within = Duration::from_millis(150);
    /// assert_eq!(limit.book(now, within), Some(Duration::ZERO));
    /// assert_eq!(limit.book(now, within), Some(Duration::from_millis(100)));
    /// assert_eq!(limit.book(now, within), None, "it would be 200 ms");
    /// ```
    pub fn book(&self, now: Timestamp, within: Duration) -> Option<Duration> {
        match &self.kind {
            Kind::Rate(_) | Kind::Granted(_) => self.book_place(now, within).map(|(wait, _)| wait),
            _ => match self.acquire(now) {
                LimitAnswer::Granted => Some(Duration::ZERO),
                LimitAnswer::Queue(_) => {
                    self.leave();
                    None
                }
                LimitAnswer::Wait(_) | LimitAnswer::Shed => None,
            },
        }
    }

    /// [`book`](Limit::book), of rates alone, and the place, with which it can be [given back](Limit::give_place_back).
    pub(crate) fn book_place(&self, now: Timestamp, within: Duration) -> Option<(Duration, Place)> {
        match &self.kind {
            Kind::Rate(kind) => {
                let booked = kind.book(now, nanos(within)).ok()?;
                Some((Duration::from_nanos(booked.wait), Place(booked.due)))
            }
            Kind::Granted(rule) => rule.book(now, within).ok().map(|wait| (wait, Place((now + wait).as_nanos()))),
            _ => None,
        }
    }

    /// [`acquire`](Limit::acquire) of what may be given back.
    pub(crate) fn acquire_place(&self, now: Timestamp) -> Result<Place, LimitAnswer> {
        if let Kind::Rate(kind) = &self.kind {
            let booked = kind.book(now, 0).map_err(|wait| LimitAnswer::Wait(Duration::from_nanos(wait)))?;
            return Ok(Place(booked.due));
        }
        match self.acquire(now) {
            LimitAnswer::Granted => Ok(Place(now.as_nanos())),
            refused => Err(refused),
        }
    }

    /// What was granted at this place will never start.
    pub(crate) fn give_place_back(&self, Place(due): Place, now: Timestamp) {
        match &self.kind {
            Kind::Rate(kind) => kind.give_back(due, now),
            _ => self.give_back(Timestamp::from_nanos(due)),
        }
    }

    /// The place of what was booked for a time that had to be waited for.
    pub(crate) fn place_of(&self, due: Timestamp) -> Place {
        let ahead = if let Kind::Rate(kind) = &self.kind { kind.ahead } else { 0 };
        Place(due.as_nanos().saturating_add(ahead))
    }

    /// An attempt that was granted ended; `latency` is how long it took. A [dropped](Outcome::Dropped) one makes room
    /// and counts as neither success nor failure; the permit of a rate is used up, because the far side saw the attempt.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// limit.release(now, Outcome::Success, Duration::from_millis(3));
    /// assert_eq!(limit.snapshot(now).in_flight, Some(0));
    /// ```
    #[inline]
    pub fn release(&self, now: Timestamp, outcome: Outcome, latency: Duration) {
        match &self.kind {
            Kind::Rate(_) | Kind::Granted(_) => {}
            Kind::Concurrency(kind) => kind.release(),
            Kind::Aimd(kind) => kind.release(now, outcome, latency),
            Kind::Gradient(kind) => kind.release(now, outcome, latency),
            Kind::AwsAdaptive(kind) => kind.release(now, outcome),
        }
    }

    /// An attempt that was granted will never start: as if it had not been granted. `due` is when it could have been made: when it was granted,
    /// or the time for which it was [booked](Limit::book).
    ///
    /// Of a rate whoever asks next has the permit for that very time, and who waits for another one comes neither sooner nor later. It
    /// lapses if that time has passed, or if 256 others are due before it. A rate with a burst that has let others through since does not know
    /// which of them it was, and keeps it: there [`LimitPermit`](crate::LimitPermit)s and an [`UpstreamCall`](crate::UpstreamCall) lose nothing.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// let (limit, now) = (Limit::rate(100), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// limit.give_back(now); // The caller was cancelled before it sent anything.
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// ```
    #[inline]
    pub fn give_back(&self, due: Timestamp) {
        match &self.kind {
            Kind::Rate(kind) => kind.give_back_one(due),
            Kind::Granted(rule) => rule.give_back(due),
            Kind::Concurrency(kind) => kind.release(),
            Kind::Aimd(kind) => kind.flight.release(),
            Kind::Gradient(kind) => kind.flight.release(),
            Kind::AwsAdaptive(kind) => kind.give_back(due),
        }
    }

    /// From the queue into flight, if there is room; otherwise the caller stays in the queue.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1).queue(1, Duration::from_secs(1)), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert!(matches!(limit.acquire(now), LimitAnswer::Queue(_)));
    /// assert!(!limit.enter(), "no room yet");
    /// limit.give_back(now);
    /// assert!(limit.enter());
    /// ```
    pub fn enter(&self) -> bool {
        match &self.kind {
            Kind::Concurrency(kind) => kind.enter(),
            _ => false,
        }
    }

    /// Out of the queue: too long, or cancelled.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1).queue(1, Duration::from_secs(1)), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert!(matches!(limit.acquire(now), LimitAnswer::Queue(_)));
    /// limit.leave(); // It waited for as long as it could.
    /// assert_eq!(limit.snapshot(now).queued, 0);
    /// ```
    pub fn leave(&self) {
        if let Kind::Concurrency(kind) = &self.kind {
            kind.leave();
        }
    }

    /// Whom of the queue to wake now; `None` if nobody waits or there is no room.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, LimitNext, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1).queue(1, Duration::from_secs(1)), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// assert!(matches!(limit.acquire(now), LimitAnswer::Queue(_)));
    /// assert_eq!(limit.next(now), None, "no room");
    /// limit.give_back(now);
    /// assert_eq!(limit.next(now), Some(LimitNext::Oldest));
    /// ```
    pub fn next(&self, now: Timestamp) -> Option<LimitNext> {
        match &self.kind {
            Kind::Concurrency(kind) => kind.next(now),
            _ => None,
        }
    }

    /// What the limiter knows now.
    ///
    /// ```
    /// # use relent::{Limit, Timestamp};
    /// let seen = Limit::rate(100).burst(10).snapshot(Timestamp::ZERO);
    /// assert_eq!((seen.rate, seen.available), (Some(100.0), 10.0));
    /// ```
    pub fn snapshot(&self, now: Timestamp) -> LimitSnapshot {
        let flight = |flight: &flight::Flight| {
            let limit = flight.limit() as f64 / flight::FINE as f64;
            in_flight(limit, flight.in_flight(), 0)
        };
        match &self.kind {
            Kind::Rate(kind) => LimitSnapshot {
                limit: Some((kind.ahead / kind.gap + 1) as f64),
                in_flight: None,
                queued: 0,
                rate: Some(1e9 / kind.gap as f64),
                available: kind.available(now) as f64,
            },
            Kind::Granted(rule) => {
                let LimitSettings::Rate { rate, per, burst } = self.settings else { unreachable!() };
                let (limit, rate) = (Some(f64::from(burst)), Some(f64::from(rate) / per.as_secs_f64()));
                LimitSnapshot { limit, in_flight: None, queued: 0, rate, available: rule.available(now) as f64 }
            }
            Kind::Concurrency(kind) => {
                let LimitSettings::Concurrency { limit, .. } = self.settings else { unreachable!() };
                in_flight(f64::from(limit), kind.in_flight(), kind.queued())
            }
            Kind::Aimd(kind) => flight(&kind.flight),
            Kind::Gradient(kind) => flight(&kind.flight),
            Kind::AwsAdaptive(kind) => {
                let AwsAdaptiveState { enabled, bucket, .. } = kind.state(now);
                LimitSnapshot {
                    limit: enabled.then_some(bucket.max_capacity),
                    in_flight: None,
                    queued: 0,
                    rate: enabled.then_some(bucket.fill_rate),
                    available: if enabled { bucket.capacity } else { f64::INFINITY },
                }
            }
        }
    }

    /// What an [`aws_adaptive`](Limit::aws_adaptive) limit knows; `None` for other limits.
    ///
    /// ```
    /// # use relent::{Limit, Timestamp};
    /// let now = Timestamp::ZERO;
    /// assert!(!Limit::aws_adaptive().aws_state(now).unwrap().enabled, "nothing was throttled yet");
    /// assert_eq!(Limit::rate(100).aws_state(now), None);
    /// ```
    pub fn aws_state(&self, now: Timestamp) -> Option<AwsAdaptiveState> {
        match &self.kind {
            Kind::AwsAdaptive(kind) => Some(kind.state(now)),
            _ => None,
        }
    }

    /// The latency without load that a [`gradient`](Limit::gradient) limit has measured; `None` before, and for others.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Outcome, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, mut now, took) = (Limit::gradient(20), Timestamp::ZERO, Duration::from_millis(10));
    /// assert_eq!(limit.min_rtt(), None);
    /// while limit.min_rtt().is_none() {
    ///     assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    ///     now = now + took;
    ///     limit.release(now, Outcome::Success, took);
    /// }
    /// assert_eq!(limit.min_rtt(), Some(took));
    /// ```
    pub fn min_rtt(&self) -> Option<Duration> {
        match &self.kind {
            Kind::Gradient(kind) => Some(kind.min_rtt()).filter(|rtt| !rtt.is_zero()),
            _ => None,
        }
    }

    /// Takes over the state of another limit, when a configuration is loaded anew: what is in flight stays in flight, a
    /// limit that was found is kept within the new bounds, and of a rate so much of the burst stays used. A limit of
    /// another kind is not taken over. `old` should not be in use any more.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// let (old, now) = (Limit::concurrency(2), Timestamp::ZERO);
    /// assert_eq!(old.acquire(now), LimitAnswer::Granted);
    /// let new = Limit::concurrency(10);
    /// new.adopt(&old, now);
    /// assert_eq!(new.snapshot(now).in_flight, Some(1));
    /// ```
    pub fn adopt(&self, old: &Limit, now: Timestamp) {
        match (&self.kind, &old.kind) {
            (Kind::Rate(new), Kind::Rate(old)) => new.adopt(old, now),
            (Kind::Concurrency(new), Kind::Concurrency(old)) => new.adopt(old),
            (Kind::Aimd(new), Kind::Aimd(old)) => new.adopt(old),
            (Kind::Gradient(new), Kind::Gradient(old)) => new.adopt(old),
            (Kind::AwsAdaptive(new), Kind::AwsAdaptive(old)) => new.adopt(old),
            _ => {}
        }
    }

    /// What was taken over as being in flight gives its permits back to another limit, so it is not in flight here.
    pub(crate) fn land(&self) {
        match &self.kind {
            Kind::Concurrency(kind) => kind.reset(),
            Kind::Aimd(kind) => kind.flight.land(),
            Kind::Gradient(kind) => kind.flight.land(),
            Kind::Rate(_) | Kind::Granted(_) | Kind::AwsAdaptive(_) => {}
        }
    }

    #[inline(always)]
    pub(super) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        match &self.kind {
            Kind::Rate(kind) => kind.words(with),
            _ => self.words_of_others(with),
        }
    }

    #[inline(never)]
    fn words_of_others<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        match &self.kind {
            Kind::Rate(kind) => kind.words(with),
            Kind::Concurrency(kind) => kind.words(with),
            Kind::Aimd(kind) => kind.words(with),
            Kind::Gradient(kind) => kind.words(with),
            Kind::AwsAdaptive(kind) => kind.words(with),
            Kind::Granted(_) => {}
        }
    }

    /// As if nothing had happened yet, and nothing were in flight.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// let (limit, now) = (Limit::concurrency(1), Timestamp::ZERO);
    /// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    /// limit.reset(now);
    /// assert_eq!(limit.snapshot(now).in_flight, Some(0));
    /// ```
    pub fn reset(&self, now: Timestamp) {
        match &self.kind {
            Kind::Rate(kind) => kind.reset(),
            Kind::Granted(_) => {}
            Kind::Concurrency(kind) => kind.reset(),
            Kind::Aimd(kind) => kind.reset(),
            Kind::Gradient(kind) => kind.reset(),
            Kind::AwsAdaptive(kind) => kind.reset(now),
        }
    }
}

fn in_flight(limit: f64, flying: u32, queued: u32) -> LimitSnapshot {
    let available = (limit - f64::from(flying)).max(0.0);
    LimitSnapshot { limit: Some(limit), in_flight: Some(flying), queued, rate: None, available }
}
