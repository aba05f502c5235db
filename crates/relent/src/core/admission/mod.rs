//! Admission: a server decides, before it works, whether an attempt is worth it, and tells the client what to do instead.
//!
//! Why: an overloaded server that begins everything finishes nothing in time, and clients that are told "later" come back
//! as retries. So what cannot finish in time is not begun, and when much of what is offered are retries, the answer is
//! "do not retry" instead of "later" (Google, "Site Reliability Engineering", 2016, chapter 21). Which work goes first is
//! DAGOR's question (Zhou et al., SoCC 2018).
//!
//! How much fits is a [`Limit`]'s to say, and who comes back when a [`Pacer`]'s: an admission owns both, or neither. Who has
//! a queue of their own, such as a simulator, says what is in use and asks [`decide`](Admission::decide).

mod arrival;
mod attempts;
pub(crate) mod permit;
pub(crate) mod refusal;
mod reload;
mod settings;
mod snapshot;
#[cfg(all(test, feature = "std", not(loom)))]
mod tests;

pub use self::{
    arrival::{Admit, Arrival, Priority, Room},
    attempts::Attempts,
    settings::{AdmissionSettings, Order, Scope},
    snapshot::AdmissionSnapshot,
};

use self::{
    attempts::Recent,
    refusal::{Refusal, Rule},
};
use super::{
    invalid::Invalid,
    limiter::{Limit, settings::LimitSettings},
    pacer::{Pacer, Turn},
    time::{Timestamp, nanos},
    word::Word,
};
use crate::lobby::Lobby;
use core::{fmt, time::Duration};

/// Decides which attempts a server takes.
///
/// ```
/// use relent::{Admission, Admit, Arrival, Room, Scope, Timestamp};
/// use std::time::Duration;
///
/// static ADMISSION: Admission = Admission::new().service_time(Duration::from_millis(50));
///
/// let now = Timestamp::ZERO;
/// let (free, full) = (Room { used: 3, most: 100 }, Room { used: 100, most: 100 });
/// let hopeless = Arrival { left: Some(Duration::from_millis(20)), ..Arrival::default() };
/// assert_eq!(ADMISSION.decide(now, &Arrival::default(), free, None), Admit::Accept);
/// assert_eq!(ADMISSION.decide(now, &hopeless, free, None), Admit::Overloaded(Scope::Service));
/// assert_eq!(ADMISSION.decide(now, &Arrival::default(), full, None), Admit::Shed(Duration::from_secs(1)));
/// ```
///
/// With a limit it takes places too, and gives them back:
///
/// ```
/// use relent::{Admission, Admit, Arrival, Limit, Outcome, Pacer, Timestamp};
/// use std::time::Duration;
///
/// static DOOR: Admission = Admission::new().limit(Limit::concurrency(1)).pacer(Pacer::capacity(100.0));
///
/// let now = Timestamp::ZERO;
/// let mut inside = DOOR.permit(now, &Arrival::default()).unwrap();
/// let refused = DOOR.permit(now, &Arrival::default()).unwrap_err();
/// assert_eq!(refused, Admit::Turn(Duration::from_millis(10)));
/// inside.answered(now, Outcome::Success);
/// drop(inside);
/// assert_eq!(DOOR.snapshot(now).limit.unwrap().in_flight, Some(0));
/// ```
pub struct Admission {
    settings: AdmissionSettings,
    limit: Option<Limit>,
    pacer: Option<Pacer>,
    /// What an answer takes, learned, in nanoseconds plus 1.
    takes: Word,
    recent: Recent,
    accepted: Word,
    hopeless: Word,
    full: Word,
    low: Word,
    retries: Word,
    turns: Word,
    /// Who waits for room, where the limit has a queue.
    lobby: Lobby,
}

/// A share of retries says nothing of fewer attempts than this.
const LEAST_ATTEMPTS: u64 = 100;

impl AdmissionSettings {
    /// The admission of these settings.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the setting that makes no sense, why, and what to write instead.
    pub const fn admission(self) -> Result<Admission, Invalid> {
        match self.check() {
            Ok(()) => Ok(Admission::of(self)),
            Err(invalid) => Err(invalid),
        }
    }
}

impl Admission {
    const fn of(settings: AdmissionSettings) -> Admission {
        Admission {
            settings,
            limit: None,
            pacer: None,
            takes: Word::new(0),
            recent: Recent::new(),
            accepted: Word::new(0),
            hopeless: Word::new(0),
            full: Word::new(0),
            low: Word::new(0),
            retries: Word::new(0),
            turns: Word::new(0),
            lobby: Lobby::new(),
        }
    }

    #[track_caller]
    const fn must(self) -> Admission {
        match self.settings.check() {
            Ok(()) => self,
            Err(invalid) => invalid.refuse(),
        }
    }

    /// Takes what there is room for and time left; sheds the rest with a pushback of a second; says "do not retry" when
    /// more than half of what is offered are retries.
    ///
    /// ```
    /// # use relent::Admission;
    /// static ADMISSION: Admission = Admission::new();
    /// ```
    #[expect(clippy::new_without_default, reason = "a machine with state is made by name")]
    pub const fn new() -> Admission {
        Admission::of(AdmissionSettings::DEFAULT)
    }

    /// How much there is room for: requests in flight, fixed or found by itself, or a rate. Without it there always is.
    ///
    /// ```
    /// use relent::{Admission, Limit};
    /// use std::time::Duration;
    ///
    /// static FIXED: Admission = Admission::new().limit(Limit::concurrency(100).queue(50, Duration::from_secs(1)));
    /// static FOUND: Admission = Admission::new().limit(Limit::aimd(20).slow_after(Duration::from_millis(500)));
    /// ```
    #[must_use]
    pub const fn limit(mut self, limit: Limit) -> Admission {
        self.limit = Some(limit);
        self
    }

    /// Gives who finds no room a turn, and keeps a tenth of the room for those who come back at theirs. A
    /// [measured](Pacer::measured) capacity is the rate of answers while the limit is used up, so it needs a limit.
    #[must_use]
    pub const fn pacer(mut self, pacer: Pacer) -> Admission {
        self.pacer = Some(pacer);
        self
    }

    /// What an answer takes, instead of learning it: with less time left to its caller, an attempt is not begun.
    ///
    /// ```
    /// # use relent::{Admission, Admit, Arrival, Room, Scope, Timestamp};
    /// # use std::time::Duration;
    /// let admission = Admission::new().service_time(Duration::from_millis(50));
    /// let late = Arrival { left: Some(Duration::from_millis(20)), ..Arrival::default() };
    /// let answer = admission.decide(Timestamp::ZERO, &late, Room { used: 0, most: 100 }, None);
    /// assert_eq!(answer, Admit::Overloaded(Scope::Service));
    /// ```
    #[must_use]
    pub const fn service_time(mut self, time: Duration) -> Admission {
        self.settings.service_time = Some(time);
        self
    }

    /// With more retries than this share in what is offered, a server without room says "do not retry". Default 0.5.
    ///
    /// # Panics
    ///
    /// If it is not above 0 and up to 1. In a `const`, the panic is a compile error.
    ///
    /// ```compile_fail
    /// const NO: relent::Admission = relent::Admission::new().max_retry_share(f64::NAN);
    /// ```
    ///
    /// ```
    /// # use relent::{Admission, Admit, Arrival, Room, Scope, Timestamp};
    /// let (admission, now) = (Admission::new().max_retry_share(0.2), Timestamp::ZERO);
    /// let full = Room { used: 100, most: 100 };
    /// let answers: Vec<Admit> = (0..200)
    ///     .map(|n| admission.decide(now, &Arrival { attempt: 1 + n % 2, ..Arrival::default() }, full, None))
    ///     .collect();
    /// assert!(matches!(answers[0], Admit::Shed(_)), "nothing is known yet");
    /// assert_eq!(answers[199], Admit::Overloaded(Scope::Service), "half of them are retries");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn max_retry_share(mut self, share: f64) -> Admission {
        self.settings.max_retry_share = share;
        self.must()
    }

    /// The pushback of what is shed. Default 1 s.
    ///
    /// ```
    /// # use relent::{Admission, Admit, Arrival, Room, Timestamp};
    /// # use std::time::Duration;
    /// let admission = Admission::new().pushback(Duration::from_secs(5));
    /// let answer = admission.decide(Timestamp::ZERO, &Arrival::default(), Room { used: 1, most: 1 }, None);
    /// assert_eq!(answer, Admit::Shed(Duration::from_secs(5)));
    /// ```
    #[must_use]
    pub const fn pushback(mut self, wait: Duration) -> Admission {
        self.settings.pushback = wait;
        self
    }

    /// Which attempts go first when the last tenth of the room is reached. Default neither.
    ///
    /// ```
    /// # use relent::{Admission, Order};
    /// static ADMISSION: Admission = Admission::new().order(Order::RetriesFirst);
    /// ```
    #[must_use]
    pub const fn order(mut self, order: Order) -> Admission {
        self.settings.order = order;
        self
    }

    /// Who is not asked again when this server is overloaded. Default the service.
    ///
    /// ```
    /// # use relent::{Admission, Scope};
    /// static ADMISSION: Admission = Admission::new().scope(Scope::Host);
    /// ```
    #[must_use]
    pub const fn scope(mut self, scope: Scope) -> Admission {
        self.settings.scope = scope;
        self
    }

    /// Everything it was told, by name.
    ///
    /// ```
    /// # use relent::Admission;
    /// assert_eq!(Admission::new().settings().max_retry_share, 0.5);
    /// ```
    pub const fn settings(&self) -> AdmissionSettings {
        self.settings
    }

    /// Decides on an attempt that arrives at `now`. With a pacer, who finds no room is given a turn, and newcomers do
    /// not take room that is promised.
    ///
    /// ```
    /// # use relent::{Admission, Admit, Arrival, Pacer, Room, Timestamp};
    /// # use std::time::Duration;
    /// let (admission, pacer, now) = (Admission::new(), Pacer::capacity(100.0), Timestamp::ZERO);
    /// let full = Room { used: 100, most: 100 };
    /// let answer = admission.decide(now, &Arrival::default(), full, Some(&pacer));
    /// assert_eq!(answer, Admit::Turn(Duration::from_millis(10)));
    /// ```
    pub fn decide(&self, now: Timestamp, arrival: &Arrival, room: Room, pacer: Option<&Pacer>) -> Admit {
        match self.judge(now, arrival, room, pacer) {
            Ok(()) => Admit::Accept,
            Err(refusal) => refusal.answer,
        }
    }

    fn judge(&self, now: Timestamp, arrival: &Arrival, room: Room, pacer: Option<&Pacer>) -> Result<(), Refusal> {
        self.recent.add(now, arrival.attempt);
        if arrival.priority == Priority::Vital {
            return self.accept();
        }
        if self.is_hopeless(arrival) {
            return Err(self.hopeless());
        }
        let has_room = room.used < self.most_for(arrival, room.most);
        match pacer {
            Some(pacer) => self.paced(pacer.arrive(now, arrival.attempt, has_room)),
            None if has_room => self.accept(),
            None => Err(self.refuse(now, arrival, room.used < room.most)),
        }
    }

    /// An answer took this long, the wait in the queue included.
    ///
    /// ```
    /// # use relent::{Admission, Timestamp};
    /// # use std::time::Duration;
    /// let admission = Admission::new();
    /// admission.completed(Duration::from_millis(40));
    /// assert_eq!(admission.snapshot(Timestamp::ZERO).service_time, Some(Duration::from_millis(40)));
    /// ```
    pub fn completed(&self, took: Duration) {
        let sample = nanos(took);
        let mut found = self.takes.get();
        loop {
            let next = match found.checked_sub(1) {
                None => sample,
                Some(known) if sample >= known => known + (sample - known) / 8,
                Some(known) => known - (known - sample).div_ceil(8),
            };
            match self.takes.exchange(found, next.saturating_add(1)) {
                Ok(()) => return,
                Err(other) => found = other,
            }
        }
    }

    /// Everything at one moment.
    ///
    /// ```
    /// # use relent::{Admission, Timestamp};
    /// assert_eq!(Admission::new().snapshot(Timestamp::ZERO).service_time, None, "nothing was learned yet");
    /// ```
    pub fn snapshot(&self, now: Timestamp) -> AdmissionSnapshot {
        AdmissionSnapshot {
            accepted: self.accepted.get(),
            hopeless: self.hopeless.get(),
            full: self.full.get(),
            low: self.low.get(),
            retries: self.retries.get(),
            turns: self.turns.get(),
            offered: self.recent.at(now),
            service_time: self.takes(),
            limit: self.limit.as_ref().map(|limit| limit.snapshot(now)),
            pacer: self.pacer.as_ref().map(|pacer| pacer.snapshot(now)),
        }
    }

    fn takes(&self) -> Option<Duration> {
        self.settings.service_time.or_else(|| self.takes.get().checked_sub(1).map(Duration::from_nanos))
    }

    fn is_hopeless(&self, arrival: &Arrival) -> bool {
        arrival.left.is_some_and(|left| left.is_zero() || self.takes().is_some_and(|takes| left < takes))
    }

    /// How much of the room this attempt may find in use.
    fn most_for(&self, arrival: &Arrival, most: u64) -> u64 {
        let waits_behind = match self.settings.order {
            Order::AsTheyCome => false,
            Order::RetriesFirst => arrival.attempt <= 1,
            Order::FirstAttemptsFirst => arrival.attempt > 1,
        };
        match arrival.priority {
            Priority::Low => most.div_ceil(2),
            _ if waits_behind => most - most / 10,
            _ => most,
        }
    }

    fn accept(&self) -> Result<(), Refusal> {
        self.accepted.add(1);
        Ok(())
    }

    fn told(&self, rule: Rule, answer: Admit) -> Refusal {
        let count = match rule {
            Rule::Hopeless => &self.hopeless,
            Rule::Full => &self.full,
            Rule::Low => &self.low,
            Rule::Retries => &self.retries,
            Rule::Turns => &self.turns,
        };
        count.add(1);
        Refusal { answer, rule }
    }

    /// Whoever answers, it would be too late.
    fn hopeless(&self) -> Refusal {
        self.told(Rule::Hopeless, Admit::Overloaded(Scope::Service))
    }

    fn paced(&self, turn: Turn) -> Result<(), Refusal> {
        match turn {
            Turn::Now => self.accept(),
            Turn::In(wait) => Err(self.told(Rule::Turns, Admit::Turn(wait))),
            Turn::Overloaded => Err(self.told(Rule::Retries, Admit::Overloaded(self.settings.scope))),
        }
    }

    fn refuse(&self, now: Timestamp, arrival: &Arrival, is_kept: bool) -> Refusal {
        // No share is more than all.
        let may_be = self.settings.max_retry_share < 1.0;
        let is_too_much = |attempts: &Attempts| {
            attempts.total() >= LEAST_ATTEMPTS && attempts.retry_share() > self.settings.max_retry_share
        };
        if may_be && is_too_much(&self.recent.at(now)) || arrival.client.as_ref().is_some_and(is_too_much) {
            return self.told(Rule::Retries, Admit::Overloaded(self.settings.scope));
        }
        self.told(if is_kept { Rule::Low } else { Rule::Full }, Admit::Shed(self.settings.pushback))
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("settings", &self.settings)
            .field("limit", &self.limit)
            .field("pacer", &self.pacer)
            .finish_non_exhaustive()
    }
}
