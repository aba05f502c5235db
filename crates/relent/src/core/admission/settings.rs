//! Everything an admission is told, by name, and what of it makes no sense.

use crate::core::invalid::Invalid;
use core::time::Duration;

/// Who should not be asked again when a server is overloaded.
///
/// ```
/// use relent::{Admission, Scope};
///
/// /// Behind a load balancer another host may have room.
/// static ADMISSION: Admission = Admission::new().scope(Scope::Host);
/// assert_eq!(ADMISSION.settings().scope, Scope::Host);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// This host: another may be tried.
    Host,
    /// The service: nobody below or above retries.
    Service,
}

/// Which attempts go first when the last tenth of the room is reached.
///
/// ```
/// use relent::{Admission, Admit, Arrival, Order, Room, Timestamp};
///
/// let admission = Admission::new().order(Order::RetriesFirst);
/// let nearly_full = Room { used: 95, most: 100 };
/// let decide = |attempt| {
///     admission.decide(Timestamp::ZERO, &Arrival { attempt, ..Arrival::default() }, nearly_full, None)
/// };
/// assert!(matches!(decide(1), Admit::Shed(_)));
/// assert_eq!(decide(2), Admit::Accept);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Neither.
    #[default]
    AsTheyCome,
    /// Retries: their callers have waited longest, and refusing them again wastes most.
    RetriesFirst,
    /// First attempts: retries may be for callers that have gone.
    FirstAttemptsFirst,
}

/// Everything an [`Admission`](crate::Admission) is told, by name.
///
/// ```
/// use relent::AdmissionSettings;
///
/// let bad = AdmissionSettings { max_retry_share: 2.0, ..AdmissionSettings::default() };
/// assert_eq!(bad.admission().unwrap_err().key, "max_retry_share");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionSettings {
    /// What an answer takes; `None` learns it from [`Admission::completed`](crate::Admission::completed).
    pub service_time: Option<Duration>,
    /// With more retries than this share in what is offered, a server without room says "do not retry": above 0, up to 1.
    pub max_retry_share: f64,
    /// The pushback of what is shed.
    pub pushback: Duration,
    /// Which attempts go first near the limit.
    pub order: Order,
    /// Who is not asked again when this server is overloaded.
    pub scope: Scope,
}

impl AdmissionSettings {
    pub(super) const DEFAULT: AdmissionSettings = AdmissionSettings {
        service_time: None,
        max_retry_share: 0.5,
        pushback: Duration::from_secs(1),
        order: Order::AsTheyCome,
        scope: Scope::Service,
    };

    pub(super) const fn check(&self) -> Result<(), Invalid> {
        if !(self.max_retry_share > 0.0 && self.max_retry_share <= 1.0) {
            return Err(Invalid {
                key: "max_retry_share",
                problem: "the share of retries is not above 0 and up to 1",
                hint: "0.5 says \"do not retry\" when more than half of what is offered are retries",
            });
        }
        Ok(())
    }
}

/// Learns what an answer takes; half retries are too many; a pushback of a second.
impl Default for AdmissionSettings {
    fn default() -> AdmissionSettings {
        AdmissionSettings::DEFAULT
    }
}
