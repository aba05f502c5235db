//! How the time that is left stands in headers, each in its way.

use std::time::Duration;

pub(in crate::wire) fn read_millis(text: &str) -> Option<Duration> {
    digits(text).map(Duration::from_millis)
}

pub(in crate::wire) fn write_millis(left: Duration) -> Option<String> {
    Some(left.as_millis().to_string())
}

pub(in crate::wire) fn read_envoy(text: &str) -> Option<Duration> {
    read_millis(text).filter(|left| !left.is_zero())
}

pub(in crate::wire) fn write_envoy(left: Duration) -> Option<String> {
    (left.as_millis() > 0).then(|| left.as_millis().to_string())
}

/// gRPC's units, the finest first, in nanoseconds.
const UNITS: [(char, u64); 6] =
    [('n', 1), ('u', 1_000), ('m', 1_000_000), ('S', 1_000_000_000), ('M', 60_000_000_000), ('H', 3_600_000_000_000)];
const MOST_DIGITS: usize = 8;
const MOST: u128 = 99_999_999;

pub(in crate::wire) fn read_grpc(text: &str) -> Option<Duration> {
    let (at, unit) = text.char_indices().last()?;
    let (_, nanos) = UNITS.iter().find(|(letter, _)| *letter == unit)?;
    let count = text.get(..at).filter(|count| count.len() <= MOST_DIGITS)?;
    let count = digits(count)?;
    // 8 digits of hours are more nanoseconds than 64 bits hold.
    let all = u128::from(count) * u128::from(*nanos);
    Some(Duration::new((all / 1_000_000_000) as u64, (all % 1_000_000_000) as u32))
}

/// The finest unit in which the time left has no more than 8 digits.
pub(in crate::wire) fn write_grpc(left: Duration) -> Option<String> {
    let count = |nanos: u64| left.as_nanos() / u128::from(nanos);
    let (unit, nanos) = UNITS.iter().find(|(_, nanos)| count(*nanos) <= MOST).unwrap_or(&UNITS[5]);
    Some(format!("{}{unit}", count(*nanos).min(MOST)))
}

/// Digits alone; what does not fit is the greatest that does.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}
