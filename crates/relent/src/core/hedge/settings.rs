//! Everything a hedge is told, by name, and what of it makes no sense.

use crate::core::invalid::Invalid;
use core::time::Duration;

/// Everything a [`Hedge`](crate::Hedge) is told, by name.
///
/// ```
/// use relent::HedgeSettings;
///
/// let settings = HedgeSettings { quantile: Some(0.95), ..HedgeSettings::default() };
/// assert!(settings.hedge().is_ok());
/// assert_eq!(HedgeSettings::default().hedge().unwrap_err().key, "after");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HedgeSettings {
    /// A hedge starts this long after the attempt before it.
    pub after: Option<Duration>,
    /// A hedge starts after this quantile of the latencies observed: above 0 and below 1.
    pub quantile: Option<f64>,
    /// The most hedges of one call, the first attempt not included: 1 to 255.
    pub at_most: u32,
    /// No quantile is taken of fewer latencies than this: 1 to 2048.
    pub min_samples: u32,
}

impl HedgeSettings {
    pub(super) const DEFAULT: HedgeSettings =
        HedgeSettings { after: None, quantile: None, at_most: 1, min_samples: 100 };

    pub(super) const fn check(&self) -> Result<(), Invalid> {
        match (self.after, self.quantile) {
            (None, None) => return no("after", "nothing says when a hedge starts", "say after or quantile"),
            (Some(Duration::ZERO), _) => {
                return no("after", "a hedge would start with the first attempt", "50ms starts it 50 ms later");
            }
            (_, Some(quantile)) if !(quantile > 0.0 && quantile < 1.0) => {
                return no("quantile", "the quantile is not between 0 and 1", "0.95 hedges one call in twenty");
            }
            _ => {}
        }
        if self.at_most == 0 || self.at_most > 255 {
            return no(
                "at_most",
                "the hedges of a call are not 1 to 255",
                "1 is one more attempt; leave hedge out for none",
            );
        }
        if self.min_samples == 0 || self.min_samples > 2048 {
            return no("min_samples", "the least samples are not 1 to 2048", "100 is the default");
        }
        Ok(())
    }
}

/// Says neither `after` nor `quantile` yet; one hedge, 100 samples.
impl Default for HedgeSettings {
    fn default() -> HedgeSettings {
        HedgeSettings::DEFAULT
    }
}

const fn no(key: &'static str, problem: &'static str, hint: &'static str) -> Result<(), Invalid> {
    Err(Invalid { key, problem, hint })
}
