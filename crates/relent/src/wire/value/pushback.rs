//! How the word of a server stands in its headers, each in its way.

use crate::wire::{http_date, retry_info};
use http::{HeaderMap, header};
use std::time::Duration;

/// The far side's word about trying again.
///
/// ```
/// use relent::wire::{Pushback, pushback};
/// use std::time::Duration;
///
/// let of = |name: &'static str, value: &str| {
///     let mut headers = http::HeaderMap::new();
///     headers.insert(name, value.parse().unwrap());
///     pushback(&headers, Duration::ZERO)
/// };
/// assert_eq!(of("retry-after", "30"), Some(Pushback::NotBefore(Duration::from_secs(30))));
/// assert_eq!(of("relent-turn", "1234"), Some(Pushback::Turn(Duration::from_millis(1234))));
/// assert_eq!(of("relent-retry", "no"), Some(Pushback::Never));
/// assert_eq!(of("x-should-retry", "true"), Some(Pushback::Again));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushback {
    /// Not before this long from now.
    NotBefore(Duration),
    /// This client, and no other, exactly so long from now.
    Turn(Duration),
    /// Do not retry.
    Never,
    /// Trying again is welcome, whatever the status says.
    Again,
}

/// The clocks that a date is compared with.
pub(in crate::wire) struct Clock {
    pub(in crate::wire) now: Duration,
    pub(in crate::wire) server: Option<i64>,
}

impl Clock {
    pub(in crate::wire) fn of(headers: &HeaderMap, now: Duration) -> Clock {
        let date = headers.get(header::DATE).and_then(|value| value.to_str().ok());
        let server = date.and_then(|text| http_date(text.trim_matches([' ', '\t']), seconds(now)));
        Clock { now, server }
    }

    fn until(&self, date: i64) -> Duration {
        match self.server {
            Some(server) => Duration::from_secs(date.saturating_sub(server).max(0).unsigned_abs()),
            None => Duration::from_secs(date.max(0).unsigned_abs()).saturating_sub(self.now),
        }
    }
}

fn seconds(now: Duration) -> i64 {
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

pub(in crate::wire) fn read_retry_after(text: &str, clock: &Clock) -> Option<Pushback> {
    let wait = match number(text) {
        Some(seconds) => Duration::from_secs(seconds),
        None => clock.until(http_date(text, seconds(clock.now))?),
    };
    Some(Pushback::NotBefore(wait))
}

pub(in crate::wire) fn read_millis(text: &str, _: &Clock) -> Option<Pushback> {
    Some(Pushback::NotBefore(Duration::from_millis(number(text)?)))
}

pub(in crate::wire) fn read_turn(text: &str, _: &Clock) -> Option<Pushback> {
    Some(Pushback::Turn(Duration::from_millis(number(text)?)))
}

pub(in crate::wire) fn read_grpc(text: &str, _: &Clock) -> Option<Pushback> {
    Some(match number(text) {
        Some(millis) if millis <= i32::MAX as u64 => Pushback::NotBefore(Duration::from_millis(millis)),
        _ => Pushback::Never,
    })
}

pub(in crate::wire) fn read_retry_info(text: &str, _: &Clock) -> Option<Pushback> {
    retry_info::read(text).map(Pushback::NotBefore)
}

/// Members are separated by commas, parameters by semicolons; neither can stand in what we look for. A quoted name that
/// has one ends up as a piece that is none of ours.
pub(in crate::wire) fn read_ratelimit(text: &str, _: &Clock) -> Option<Pushback> {
    text.split(',').filter_map(spent).max().map(|wait| Pushback::NotBefore(Duration::from_secs(wait)))
}

/// How long a quota of a `RateLimit` header that has nothing remaining stays so.
fn spent(member: &str) -> Option<u64> {
    let pieces = member.split(';').skip(1).map(|piece| piece.trim_matches([' ', '\t']));
    // A name comes first; of two parameters with one name, the last counts (RFC 9651 4.2.3.2).
    let parameter = |name: &str| {
        number(pieces.clone().filter_map(|piece| piece.split_once('=')).filter(|(key, _)| *key == name).last()?.1)
    };
    if parameter("r")? == 0 { parameter("t") } else { None }
}

pub(in crate::wire) fn read_bool(text: &str, _: &Clock) -> Option<Pushback> {
    if text.eq_ignore_ascii_case("false") {
        Some(Pushback::Never)
    } else {
        text.eq_ignore_ascii_case("true").then_some(Pushback::Again)
    }
}

/// Envoy looks at the header's presence only.
pub(in crate::wire) fn read_never(_: &str, _: &Clock) -> Option<Pushback> {
    Some(Pushback::Never)
}

pub(in crate::wire) fn read_no(text: &str, _: &Clock) -> Option<Pushback> {
    text.eq_ignore_ascii_case("no").then_some(Pushback::Never)
}

/// A number in digits alone (`1*DIGIT`); what does not fit is the greatest that does.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0u64, |n, byte| {
        byte.is_ascii_digit().then(|| n.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
    })
}

pub(in crate::wire) fn write_seconds(pushback: Pushback) -> Option<String> {
    let Pushback::NotBefore(wait) = pushback else { return None };
    Some(whole_seconds(wait).to_string())
}

pub(in crate::wire) fn write_millis(pushback: Pushback) -> Option<String> {
    let Pushback::NotBefore(wait) = pushback else { return None };
    Some(whole_millis(wait).to_string())
}

pub(in crate::wire) fn write_turn(pushback: Pushback) -> Option<String> {
    let Pushback::Turn(turn) = pushback else { return None };
    Some(whole_millis(turn).to_string())
}

/// A wait that gRPC's 32 bits cannot hold is "never": less would be a broken promise.
pub(in crate::wire) fn write_grpc(pushback: Pushback) -> Option<String> {
    Some(match pushback {
        Pushback::NotBefore(wait) if whole_millis(wait) <= i32::MAX as u128 => whole_millis(wait).to_string(),
        Pushback::NotBefore(_) | Pushback::Never => "-1".into(),
        Pushback::Turn(_) => return None,
        Pushback::Again => "0".into(),
    })
}

pub(in crate::wire) fn write_retry_info(pushback: Pushback) -> Option<String> {
    let Pushback::NotBefore(wait) = pushback else { return None };
    Some(retry_info::write(wait))
}

pub(in crate::wire) fn write_ratelimit(pushback: Pushback) -> Option<String> {
    Some(format!("\"default\";r=0;t={}", write_seconds(pushback)?))
}

pub(in crate::wire) fn write_bool(pushback: Pushback) -> Option<String> {
    match pushback {
        Pushback::NotBefore(_) | Pushback::Turn(_) => None,
        Pushback::Never => Some("false".into()),
        Pushback::Again => Some("true".into()),
    }
}

pub(in crate::wire) fn write_overloaded(pushback: Pushback) -> Option<String> {
    (pushback == Pushback::Never).then(|| "true".into())
}

pub(in crate::wire) fn write_limited(pushback: Pushback) -> Option<String> {
    matches!(pushback, Pushback::NotBefore(_)).then(|| "true".into())
}

pub(in crate::wire) fn write_no(pushback: Pushback) -> Option<String> {
    (pushback == Pushback::Never).then(|| "no".into())
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0))
}

fn whole_millis(wait: Duration) -> u128 {
    wait.as_nanos().div_ceil(1_000_000)
}
