//! Values of the flags of `relent simulate`.

use relent_sim::{Newcomers, Windows};
use std::time::Duration;

/// A time of trouble on the command line: `10s` from the beginning, or `60s+10s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When it begins.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
}

/// A time in which calls come at another rate: `120s+5s=30`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spike {
    /// When it begins, and how long it lasts.
    pub time: Outage,
    /// Calls a second in it.
    pub rate: f64,
}

/// A number, or `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub Option<u64>);

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    relent::duration::parse_duration(text).map_err(|bad| format!("{bad}: {}", bad.hint()))
}

/// A limit of time; who means the other one is told where that is.
pub(crate) fn time_limit(text: &str) -> Result<Duration, String> {
    if text.contains('=') {
        return Err("a duration is expected, after which it ends; a limit of attempts is --limiter here".to_owned());
    }
    duration(text)
}

pub(super) fn outage(text: &str) -> Result<Outage, String> {
    match text.split_once('+') {
        Some((at, lasts)) => Ok(Outage { at: duration(at)?, lasts: duration(lasts)? }),
        None => Ok(Outage { at: Duration::ZERO, lasts: duration(text)? }),
    }
}

pub(super) fn spike(text: &str) -> Result<Spike, String> {
    let (time, per_s) = text.split_once('=').ok_or("a spike is AT+FOR=RATE, such as 120s+5s=30")?;
    Ok(Spike { time: outage(time)?, rate: rate(per_s)? })
}

pub(super) fn newcomers(text: &str) -> Result<Newcomers, String> {
    let (per_s, until) = text.split_once('+').ok_or("newcomers are RATE+FOR, such as 2500+60s")?;
    Ok(Newcomers { rate: rate(per_s)?, until: duration(until)? })
}

/// A whole number, with underscores and powers of ten (`100_000`, `1e6`) for people who count zeros badly.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    if let Ok(number) = plain.parse::<u64>() {
        return Ok(number);
    }
    match plain.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.fract() == 0.0 && number < 1e18 => Ok(number as u64),
        _ => Err("a whole number is expected, such as 100000".to_owned()),
    }
}

pub(super) fn rate(text: &str) -> Result<f64, String> {
    match text.replace('_', "").parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err("a number a second is expected, such as 5000".to_owned()),
    }
}

pub(super) fn limit(text: &str) -> Result<Limit, String> {
    if text == "unlimited" { Ok(Limit(None)) } else { count(text).map(|number| Limit(Some(number))) }
}

pub(super) fn windows(text: &str) -> Result<Windows, String> {
    Windows::parse(text).ok_or_else(|| "there are beb, exp=1.5, quad, lb, llb, stb, fixed".to_owned())
}

/// A number with thousands apart: `100,000`, `1,234.5`.
pub(crate) fn grouped(number: f64) -> String {
    let text = number.to_string();
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let thousands = |(nth, digit)| if nth > 0 && nth % 3 == whole.len() % 3 { vec![',', digit] } else { vec![digit] };
    whole.chars().enumerate().flat_map(thousands).chain(fraction.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let words = [0.0, 999.0, 1000.0, 100_000.0, 1_234_567.25].map(grouped);
        assert_eq!(words, ["0", "999", "1,000", "100,000", "1,234,567.25"]);
    }

    #[test]
    fn values_are_read_as_people_write_them() {
        let secs = Duration::from_secs;
        assert_eq!(outage("60s+10s"), Ok(Outage { at: secs(60), lasts: secs(10) }));
        assert_eq!(outage("10s"), Ok(Outage { at: secs(0), lasts: secs(10) }));
        assert!(outage("60+10").is_err() && outage("").is_err());
        let time = Outage { at: secs(120), lasts: secs(5) };
        assert_eq!(spike("120s+5s=30"), Ok(Spike { time, rate: 30.0 }));
        let read = ["2500+60s", "2500", "x+60s", "2500+60"].map(newcomers);
        assert_eq!(read[0], Ok(Newcomers { rate: 2500.0, until: secs(60) }));
        assert!(read[1..].iter().all(Result::is_err));
        assert!(["120s+5s", "120s=", "=30", "120s+5s=x"].map(spike).iter().all(Result::is_err));
        assert_eq!(["100_000", "1e6", "7"].map(count), [Ok(100_000), Ok(1_000_000), Ok(7)]);
        assert!(["1.5", "-1", "nan", "x", "1e30"].map(count).iter().all(Result::is_err));
        assert_eq!(limit("unlimited"), Ok(Limit(None)));
        assert!(["inf", "NaN", ""].map(rate).iter().all(Result::is_err));
    }
}
