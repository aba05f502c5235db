//! Everything a pacer is told, by name, and what of it makes no sense.

use crate::core::invalid::Invalid;
use core::time::Duration;

/// Everything a [`Pacer`](crate::Pacer) is told, by name.
///
/// ```
/// use relent::PacerSettings;
///
/// let bad = PacerSettings { capacity: f64::NAN, ..PacerSettings::default() };
/// assert_eq!(bad.pacer().unwrap_err().key, "capacity");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacerSettings {
    /// Requests a second that the server gets done: above 0 and up to 10^9. Measured, if `measured`, from this on.
    pub capacity: f64,
    /// Whether the capacity is measured.
    pub measured: bool,
    /// No turn is further away than this.
    pub horizon: Duration,
    /// The share of the turns that is kept: above 0 and up to 1. Turns are laid that much denser.
    pub kept: f64,
    /// Whether the share is learned, from `kept` on.
    pub learned: bool,
}

impl PacerSettings {
    pub(super) const DEFAULT: PacerSettings = PacerSettings {
        capacity: 1000.0,
        measured: false,
        horizon: Duration::from_secs(60),
        kept: 1.0,
        learned: false,
    };

    pub(super) const fn check(&self) -> Result<(), Invalid> {
        if !(self.capacity > 0.0 && self.capacity <= 1e9) {
            return no("capacity", "the capacity is not above 0 and up to 10^9 a second", "5000 is 5,000 a second");
        }
        if self.horizon.is_zero() {
            return no("horizon", "the horizon is zero: there would be no turns", "60s turns away for up to a minute");
        }
        if !(self.kept > 0.0 && self.kept <= 1.0) {
            return no("kept", "the share of turns that are kept is not above 0 and up to 1", "0.8 if a fifth leaves");
        }
        Ok(())
    }
}

/// 1,000 a second, a horizon of a minute, every turn kept.
impl Default for PacerSettings {
    fn default() -> PacerSettings {
        PacerSettings::DEFAULT
    }
}

const fn no(key: &'static str, problem: &'static str, hint: &'static str) -> Result<(), Invalid> {
    Err(Invalid { key, problem, hint })
}
