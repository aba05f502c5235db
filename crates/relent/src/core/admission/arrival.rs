//! Who knocks, what room there is, and what they are told.

use super::{attempts::Attempts, settings::Scope};
use core::time::Duration;

/// How much a request matters.
///
/// ```
/// use relent::{Admission, Admit, Arrival, Priority, Room, Timestamp};
///
/// let (admission, now) = (Admission::new(), Timestamp::ZERO);
/// let half_full = Room { used: 50, most: 100 };
/// let decide = |priority| admission.decide(now, &Arrival { priority, ..Arrival::default() }, half_full, None);
/// assert_eq!(decide(Priority::Normal), Admit::Accept);
/// assert!(matches!(decide(Priority::Low), Admit::Shed(_)));
/// assert_eq!(decide(Priority::Vital), Admit::Accept);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// May wait for a better time: takes no more than half of the room.
    Low,
    /// As most requests: takes up to all of the room.
    #[default]
    Normal,
    /// Health checks and what is as cheap: always taken.
    Vital,
}

/// What a server knows of an attempt before it begins to work.
///
/// ```
/// use relent::{Arrival, Attempts, Priority};
/// use std::time::Duration;
///
/// let arrival = Arrival { attempt: 2, left: Some(Duration::from_millis(80)), ..Arrival::default() };
/// assert_eq!(arrival.priority, Priority::Normal);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number, the first is 1, by whatever dialect.
    pub attempt: u32,
    /// What the client says of its attempts of late.
    pub client: Option<Attempts>,
    /// The time left to the caller, if it says so.
    pub left: Option<Duration>,
    /// How much it matters.
    pub priority: Priority,
}

/// A first attempt of normal priority of which nothing else is known.
impl Default for Arrival {
    fn default() -> Arrival {
        Arrival { attempt: 1, client: None, left: None, priority: Priority::Normal }
    }
}

/// What is in use of what there is, by whatever limits a server: requests in flight, or places in a queue.
///
/// ```
/// use relent::{Admission, Admit, Arrival, Room, Timestamp};
///
/// let (admission, now) = (Admission::new(), Timestamp::ZERO);
/// let decide = |used| admission.decide(now, &Arrival::default(), Room { used, most: 100 }, None);
/// assert_eq!(decide(99), Admit::Accept);
/// assert!(matches!(decide(100), Admit::Shed(_)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// In use, this attempt not included.
    pub used: u64,
    /// The most that may be.
    pub most: u64,
}

/// What a server answers.
///
/// ```
/// use relent::{Admit, Scope};
/// use std::time::Duration;
///
/// /// The answer as a status and headers.
/// fn answer(admit: Admit) -> (u16, Vec<(&'static str, String)>) {
///     match admit {
///         Admit::Accept => (200, vec![]),
///         Admit::Shed(wait) => (503, vec![("retry-after", wait.as_secs().to_string())]),
///         Admit::Turn(wait) => (503, vec![("relent-turn", wait.as_millis().to_string())]),
///         Admit::Overloaded(Scope::Host) => (503, vec![("x-envoy-overloaded", "true".to_owned())]),
///         Admit::Overloaded(Scope::Service) => (503, vec![("relent-retry", "no".to_owned())]),
///     }
/// }
/// assert_eq!(answer(Admit::Shed(Duration::from_secs(1))).1[0].0, "retry-after");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    /// Take the work.
    Accept,
    /// Refuse; the client may come back, not before this long from now (a pushback, which clients spread).
    Shed(Duration),
    /// Refuse; the client comes back after exactly this long (its own turn, which it keeps).
    Turn(Duration),
    /// Refuse; nobody in this scope retries.
    Overloaded(Scope),
}
