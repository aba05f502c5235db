//! The table of all headers by which clients and servers speak about trying again: one file that says who speaks how, and
//! maps the dialects both ways. How values are read and written is in `value/`, what all headers of a message together mean in
//! `pushback.rs`, `attempt.rs` and `deadline.rs`.

use super::value::{Clock, Pushback, attempt, deadline, pushback};
use http::{HeaderName, HeaderValue};
use std::time::Duration;

/// `relent-retry: no` says "do not retry" (any other value says nothing).
pub const RELENT_RETRY: HeaderName = HeaderName::from_static("relent-retry");
/// `relent-turn: 1234` gives this client, and no other, its time to come back: in so many milliseconds.
pub const RELENT_TURN: HeaderName = HeaderName::from_static("relent-turn");
/// `relent-attempt: 2` is the second attempt of a call.
pub const RELENT_ATTEMPT: HeaderName = HeaderName::from_static("relent-attempt");
/// `relent-attempts: 1=930,2=50` are a client's attempts of late, by their number.
pub const RELENT_ATTEMPTS: HeaderName = HeaderName::from_static("relent-attempts");
/// `relent-deadline: 1500` leaves the whole call so many milliseconds.
pub const RELENT_DEADLINE: HeaderName = HeaderName::from_static("relent-deadline");

/// One header by which servers speak about trying again.
///
/// ```
/// use http::HeaderValue;
/// use relent::wire::{DIALECTS, Pushback};
/// use std::time::Duration;
///
/// let azure = DIALECTS.iter().find(|row| row.name == "x-ms-retry-after-ms").unwrap();
/// assert!(azure.source.contains("Azure") && !azure.yields);
/// let told = Pushback::NotBefore(Duration::from_millis(1500));
/// assert_eq!(azure.read(&HeaderValue::from_static("1500"), Duration::ZERO), Some(told));
/// assert_eq!(azure.write(told).unwrap(), "1500");
/// assert_eq!(azure.write(Pushback::Never), None, "it cannot say so");
/// ```
pub struct Dialect {
    /// The header's name, in lower case.
    pub name: &'static str,
    /// Who says so, and what the value means.
    pub source: &'static str,
    /// Its "never" gives way to another header that says when.
    pub yields: bool,
    read: fn(&str, &Clock) -> Option<Pushback>,
    write: fn(Pushback) -> Option<String>,
}

/// The headers that are understood, and written, by name.
///
/// A value that its row's source does not allow says nothing, except `grpc-retry-pushback-ms`, of which gRPC A6 says
/// that an unparsable value means "do not retry".
#[rustfmt::skip]
pub const DIALECTS: &[Dialect] = &[
    dialect("retry-after", "RFC 9110 10.2.3: whole seconds, or a date", pushback::read_retry_after, pushback::write_seconds),
    dialect("retry-after-ms", "OpenAI and Azure SDKs: milliseconds", pushback::read_millis, pushback::write_millis),
    dialect("x-ms-retry-after-ms", "Azure Cosmos DB, Azure SDK guidelines: milliseconds", pushback::read_millis, pushback::write_millis),
    dialect("x-amz-retry-after", "AWS SDKs, retry behaviour 2.1: milliseconds", pushback::read_millis, pushback::write_millis),
    dialect("grpc-retry-pushback-ms", "gRPC A6: milliseconds; negative or unparsable is never", pushback::read_grpc, pushback::write_grpc),
    dialect("grpc-status-details-bin", "google.rpc.RetryInfo, google/rpc/error_details.proto: retry_delay", pushback::read_retry_info, pushback::write_retry_info),
    dialect("ratelimit", "draft-ietf-httpapi-ratelimit-headers-10 4: t seconds until r=0 is over", pushback::read_ratelimit, pushback::write_ratelimit),
    dialect("x-should-retry", "OpenAI and Anthropic SDKs: true or false", pushback::read_bool, pushback::write_bool),
    dialect("stripe-should-retry", "Stripe, Low-level errors: true or false", pushback::read_bool, pushback::write_bool),
    dialect("x-envoy-overloaded", "Envoy router: dropped by load shedding; a retry would be dropped too", pushback::read_never, pushback::write_overloaded),
    Dialect { yields: true, ..dialect("x-envoy-ratelimited", "Envoy router: rate limited; not retried unless configured", pushback::read_never, pushback::write_limited) },
    dialect("relent-turn", "relent: milliseconds, of this client alone; counts more than the waits beside it", pushback::read_turn, pushback::write_turn),
    dialect("relent-retry", "relent: `no` is never", pushback::read_no, pushback::write_no),
];

const fn dialect(
    name: &'static str,
    source: &'static str,
    read: fn(&str, &Clock) -> Option<Pushback>,
    write: fn(Pushback) -> Option<String>,
) -> Dialect {
    Dialect { name, source, yields: false, read, write }
}

/// One header by which clients count their attempts.
///
/// ```
/// use http::HeaderValue;
/// use relent::wire::COUNTERS;
///
/// let grpc = COUNTERS.iter().find(|row| row.name == "grpc-previous-rpc-attempts").unwrap();
/// assert_eq!(grpc.read(&HeaderValue::from_static("1")), Some(2), "one before this one");
/// assert_eq!(grpc.write(2).unwrap(), "1");
/// assert_eq!(grpc.write(1), None, "absent on the first");
/// ```
pub struct Counter {
    /// The header's name, in lower case.
    pub name: &'static str,
    /// Who says so, and what the value means.
    pub source: &'static str,
    read: fn(&str) -> Option<u32>,
    write: fn(u32) -> Option<String>,
}

/// The headers that count attempts, read and written.
#[rustfmt::skip]
pub const COUNTERS: &[Counter] = &[
    counter("relent-attempt", "relent: the attempt, from 1", attempt::from_1, attempt::write_from_1),
    counter("grpc-previous-rpc-attempts", "gRPC A6: the attempts before this one; absent on the first", attempt::from_0, attempt::write_previous),
    counter("x-envoy-attempt-count", "Envoy router, include_request_attempt_count: the attempt, from 1", attempt::from_1, attempt::write_from_1),
    counter("amz-sdk-request", "AWS SDKs: `attempt=2; max=3`, from 1", attempt::read_aws, attempt::write_aws),
    counter("x-stainless-retry-count", "OpenAI and Anthropic SDKs: the retries before this one, from 0", attempt::from_0, attempt::write_from_0),
];

const fn counter(
    name: &'static str,
    source: &'static str,
    read: fn(&str) -> Option<u32>,
    write: fn(u32) -> Option<String>,
) -> Counter {
    Counter { name, source, read, write }
}

/// One header by which clients say how long an answer is still of use.
///
/// ```
/// use http::HeaderValue;
/// use relent::wire::DEADLINES;
/// use std::time::Duration;
///
/// let grpc = DEADLINES.iter().find(|row| row.name == "grpc-timeout").unwrap();
/// assert_eq!(grpc.read(&HeaderValue::from_static("1500m")), Some(Duration::from_millis(1500)));
/// let value = grpc.write(Duration::from_millis(1500)).unwrap();
/// assert_eq!(grpc.read(&value), Some(Duration::from_millis(1500)));
/// ```
pub struct Deadline {
    /// The header's name, in lower case.
    pub name: &'static str,
    /// Who says so, and what the value means.
    pub source: &'static str,
    read: fn(&str) -> Option<Duration>,
    write: fn(Duration) -> Option<String>,
}

/// The headers that pass a deadline on, read and written.
#[rustfmt::skip]
pub const DEADLINES: &[Deadline] = &[
    Deadline { name: "relent-deadline", source: "relent: milliseconds left", read: deadline::read_millis, write: deadline::write_millis },
    Deadline { name: "grpc-timeout", source: "gRPC over HTTP/2: up to 8 digits and a unit, H M S m u n", read: deadline::read_grpc, write: deadline::write_grpc },
    Deadline { name: "x-envoy-expected-rq-timeout-ms", source: "Envoy router: milliseconds in which an answer is expected; 0 is no limit", read: deadline::read_envoy, write: deadline::write_envoy },
];

impl Dialect {
    /// What a value of this header says; `None` if it says nothing. `now` is the time since 1970.
    pub fn read(&self, value: &HeaderValue, now: Duration) -> Option<Pushback> {
        self.read_by(value, &Clock { now, server: None })
    }

    /// The value that says `pushback` in this header; `None` if the header cannot say it without promising less
    /// waiting than was meant. Waits are rounded up.
    pub fn write(&self, pushback: Pushback) -> Option<HeaderValue> {
        let text = (self.write)(pushback)?;
        Some(HeaderValue::from_str(&text).expect("dialects write letters, digits and punctuation"))
    }

    pub(super) fn read_by(&self, value: &HeaderValue, clock: &Clock) -> Option<Pushback> {
        match value.to_str() {
            Ok(text) => (self.read)(text.trim_matches([' ', '\t']), clock),
            Err(_) => (self.read)("not ASCII", clock),
        }
    }
}

impl Counter {
    /// The attempt that a value of this header means, from 1; `None` if it means none.
    pub fn read(&self, value: &HeaderValue) -> Option<u32> {
        (self.read)(value.to_str().ok()?.trim_matches([' ', '\t']))
    }

    /// The value of this header for an attempt, counted from 1; `None` if the header is left out then.
    pub fn write(&self, attempt: u32) -> Option<HeaderValue> {
        let text = (self.write)(attempt.max(1))?;
        Some(HeaderValue::from_str(&text).expect("counters write letters, digits and punctuation"))
    }
}

impl Deadline {
    /// The time left that a value of this header means; `None` if it means none.
    pub fn read(&self, value: &HeaderValue) -> Option<Duration> {
        (self.read)(value.to_str().ok()?.trim_matches([' ', '\t']))
    }

    /// The value of this header for the time left, rounded down; `None` if the header cannot say it.
    pub fn write(&self, left: Duration) -> Option<HeaderValue> {
        let text = (self.write)(left)?;
        Some(HeaderValue::from_str(&text).expect("deadlines write letters and digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_unique_and_have_a_source() {
        let rows = DIALECTS.iter().map(|row| (row.name, row.source));
        let rows = rows.chain(COUNTERS.iter().map(|row| (row.name, row.source)));
        let rows: Vec<_> = rows.chain(DEADLINES.iter().map(|row| (row.name, row.source))).collect();
        for (at, (name, source)) in rows.iter().enumerate() {
            assert!(!source.is_empty());
            assert_eq!(*name, name.to_ascii_lowercase());
            assert!(rows[..at].iter().all(|(other, _)| other != name), "{name} twice");
        }
        for header in [RELENT_RETRY, RELENT_TURN, RELENT_ATTEMPT, RELENT_DEADLINE] {
            assert!(rows.iter().any(|(name, _)| *name == header.as_str()), "{header} has no row");
        }
    }
}
