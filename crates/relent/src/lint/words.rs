//! Figures as people read them.

use core::fmt;

/// A share as people read it, to a tenth of a percent. What is not quite all is never "100 %".
pub(super) struct Percent(pub(super) f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 1000.0 + 0.5) as u64;
        match (tenths / 10, tenths % 10) {
            (0, 0) => f.write_str("less than 0.1 %"),
            (100.., _) if self.0 < 1.0 => f.write_str("more than 99.9 %"),
            (whole, 0) => write!(f, "{whole} %"),
            (whole, tenth) => write!(f, "{whole}.{tenth} %"),
        }
    }
}

/// A count rounded to three digits.
pub(super) fn three_digits(count: u64) -> u64 {
    let place = 10u64.pow(count.checked_ilog10().unwrap_or(0).saturating_sub(2));
    (count / place).saturating_mul(place)
}
