//! Durations as people write them: `100ms`, `1m30s`, `2.5s`.

use core::{fmt, time::Duration};

/// Shows a duration the way policy files and flags write it, exactly: what is shown parses back to the same value.
/// With a precision (`{:.1}`) it is rounded to that many decimals of the unit shown, for reading.
///
/// ```
/// use relent::duration::{Human, parse_duration};
/// use std::time::Duration;
///
/// assert_eq!(Human(Duration::from_secs(90)).to_string(), "1m30s");
/// assert_eq!(Human(Duration::from_micros(2500)).to_string(), "2.5ms");
/// assert_eq!(format!("{:.1}", Human(Duration::from_nanos(84_211_000))), "84.2ms");
/// assert_eq!(parse_duration("1m30s").unwrap(), Duration::from_secs(90));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Human(pub Duration);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        match f.precision() {
            Some(decimals) => rounded(f, nanos, decimals as u32),
            None => exact(f, nanos),
        }
    }
}

const SECOND: u128 = 1_000_000_000;
const MINUTE: u128 = 60 * SECOND;
const HOUR: u128 = 60 * MINUTE;

fn exact(f: &mut fmt::Formatter<'_>, nanos: u128) -> fmt::Result {
    let (unit, name) = small_unit(nanos);
    if nanos < MINUTE {
        return decimal(f, nanos, unit, name);
    }
    let (hours, minutes, rest) = (nanos / HOUR, nanos % HOUR / MINUTE, nanos % MINUTE);
    if hours > 0 {
        write!(f, "{hours}h")?;
    }
    if minutes > 0 {
        write!(f, "{minutes}m")?;
    }
    if rest > 0 { decimal(f, rest, SECOND, "s") } else { Ok(()) }
}

fn rounded(f: &mut fmt::Formatter<'_>, nanos: u128, decimals: u32) -> fmt::Result {
    let decimals = decimals.min(9);
    let (unit, _) = small_unit(nanos);
    let step = (unit / 10u128.pow(decimals)).max(1);
    exact(f, (nanos + step / 2) / step * step)
}

fn small_unit(nanos: u128) -> (u128, &'static str) {
    match nanos {
        0 | SECOND.. => (SECOND, "s"),
        1_000_000.. => (1_000_000, "ms"),
        1_000.. => (1_000, "us"),
        _ => (1, "ns"),
    }
}

/// `nanos` in a unit, with as many decimals as it takes and no trailing zeros.
fn decimal(f: &mut fmt::Formatter<'_>, nanos: u128, unit: u128, name: &str) -> fmt::Result {
    write!(f, "{}", nanos / unit)?;
    let (mut rest, mut place) = (nanos % unit, unit / 10);
    if rest > 0 {
        f.write_str(".")?;
    }
    while rest > 0 {
        write!(f, "{}", rest / place)?;
        rest %= place;
        place /= 10;
    }
    f.write_str(name)
}

/// Reads a duration: numbers with units, largest first or not, added up. Units: `ns`, `us` (or `µs`), `ms`, `s`, `m`
/// (or `min`), `h`, `d`. Decimals are allowed (`1.5s`), down to the nanosecond; `0` needs no unit. Values past 584
/// years saturate there.
///
/// # Errors
///
/// [`BadDuration`] says which part is wrong and what is meant.
///
/// ```
/// use relent::duration::parse_duration;
/// use std::time::Duration;
///
/// assert_eq!(parse_duration("100ms").unwrap(), Duration::from_millis(100));
/// assert_eq!(parse_duration("1h 30m").unwrap(), Duration::from_secs(5400));
/// assert_eq!(parse_duration("5").unwrap_err().to_string(), "the duration has no unit");
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(BadDuration::Empty);
    }
    if rest.starts_with('-') {
        return Err(BadDuration::Negative);
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len()));
        let after = after.trim_start();
        let (unit, after) = after.split_at(after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len()));
        total = total.saturating_add(part(number, unit)?);
        rest = after.trim_start();
    }
    Ok(Duration::from_nanos(u64::try_from(total).unwrap_or(u64::MAX)))
}

fn part(number: &str, unit: &str) -> Result<u128, BadDuration> {
    if number.is_empty() {
        return Err(BadDuration::Number);
    }
    let unit = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" => SECOND,
        "m" | "min" => MINUTE,
        "h" => HOUR,
        "d" => 24 * HOUR,
        "" => return Err(BadDuration::NoUnit),
        _ => return Err(BadDuration::Unit),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(BadDuration::Number);
    }
    let mut nanos = digits(whole).saturating_mul(unit);
    let mut place = unit;
    for digit in fraction.bytes().map(|b| u128::from(b - b'0')) {
        if digit > 0 && place % 10 != 0 {
            return Err(BadDuration::TooFine);
        }
        place /= 10;
        nanos = nanos.saturating_add(digit * place);
    }
    Ok(nanos)
}

fn digits(text: &str) -> u128 {
    text.bytes().fold(0u128, |n, b| n.saturating_mul(10).saturating_add(u128::from(b - b'0')))
}

/// Why a text is not a duration.
///
/// ```
/// use relent::duration::{BadDuration, parse_duration};
///
/// assert_eq!(parse_duration("10"), Err(BadDuration::NoUnit));
/// assert_eq!(BadDuration::NoUnit.to_string(), "the duration has no unit");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadDuration {
    /// Nothing was given.
    Empty,
    /// A unit stands where a number should.
    Number,
    /// It begins with a minus.
    Negative,
    /// A number has no unit.
    NoUnit,
    /// The unit is none that is known.
    Unit,
    /// The number has decimals below a nanosecond.
    TooFine,
}

impl BadDuration {
    /// What to write instead.
    ///
    /// ```
    /// # use relent::duration::BadDuration;
    /// assert!(BadDuration::NoUnit.hint().starts_with("write it like 100ms"));
    /// ```
    pub const fn hint(self) -> &'static str {
        "write it like 100ms, 1.5s, 1m30s or 2h; units are ns, us, ms, s, m, h, d"
    }
}

impl fmt::Display for BadDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadDuration::Empty => "the duration is empty",
            BadDuration::Number => "the duration has a unit without a number",
            BadDuration::Negative => "the duration is negative",
            BadDuration::NoUnit => "the duration has no unit",
            BadDuration::Unit => "the duration has an unknown unit",
            BadDuration::TooFine => "the duration is finer than a nanosecond",
        })
    }
}

impl core::error::Error for BadDuration {}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use std::{format, string::ToString};

    #[test]
    fn what_is_shown_parses_back() {
        let mut nanos = 1u64;
        for k in 0..200 {
            let duration = Duration::from_nanos(nanos);
            let shown = Human(duration).to_string();
            assert_eq!(parse_duration(&shown), Ok(duration), "{shown}");
            nanos = crate::rng::mix(nanos + k) >> (k % 60);
        }
        assert_eq!(
            parse_duration(&Human(Duration::from_nanos(u64::MAX)).to_string()).unwrap().as_nanos(),
            u64::MAX.into()
        );
    }

    #[test]
    fn shown_as_people_write_them() {
        let shown = |nanos| Human(Duration::from_nanos(nanos)).to_string();
        assert_eq!(shown(0), "0s");
        assert_eq!(shown(51_200), "51.2us");
        assert_eq!(shown(100_000_000), "100ms");
        assert_eq!(shown(1_500_000_000), "1.5s");
        assert_eq!(shown(5_400_000_000_000), "1h30m");
        assert_eq!(shown(3_600_000_000_001), "1h0.000000001s");
        assert_eq!(format!("{:.0}", Human(Duration::from_nanos(59_999_999_999))), "1m");
        assert_eq!(format!("{:.2}", Human(Duration::from_nanos(1_234_567_890))), "1.23s");
    }

    #[test]
    fn what_is_no_duration_says_why() {
        for (text, why) in [
            ("", BadDuration::Empty),
            ("ms", BadDuration::Number),
            ("-1s", BadDuration::Negative),
            (".s", BadDuration::Number),
            ("1.2.3s", BadDuration::Number),
            ("15", BadDuration::NoUnit),
            ("1m30", BadDuration::NoUnit),
            ("3 parsecs", BadDuration::Unit),
            ("0.5ns", BadDuration::TooFine),
        ] {
            assert_eq!(parse_duration(text), Err(why), "{text:?}");
        }
        assert_eq!(parse_duration("99999999999999999999999999d"), Ok(Duration::from_nanos(u64::MAX)));
        assert_eq!(parse_duration(" 1h 30m "), Ok(Duration::from_secs(5400)));
    }
}
