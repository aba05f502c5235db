//! Which attempt of its call a request is, in the headers that clients say it with.

use http::{HeaderMap, HeaderName, HeaderValue};

/// One header by which clients count their attempts.
pub struct Counter {
    /// The header's name, in lower case.
    pub name: &'static str,
    /// Who says so, and what the value means.
    pub source: &'static str,
    read: fn(&str) -> Option<u32>,
    write: fn(u32) -> Option<String>,
}

/// `relent-attempt: 2` is the second attempt of a call.
pub const RELENT_ATTEMPT: HeaderName = HeaderName::from_static("relent-attempt");

/// The headers that count attempts, read and written.
pub const COUNTERS: &[Counter] = &[
    Counter {
        name: "relent-attempt",
        source: "relent: the attempt, from 1",
        read: counted_from_1,
        write: |attempt| Some(attempt.to_string()),
    },
    Counter {
        name: "grpc-previous-rpc-attempts",
        source: "gRPC A6: the attempts before this one; absent on the first",
        read: counted_from_0,
        write: |attempt| (attempt > 1).then(|| (attempt - 1).to_string()),
    },
    Counter {
        name: "x-envoy-attempt-count",
        source: "Envoy router, include_request_attempt_count: the attempt, from 1",
        read: counted_from_1,
        write: |attempt| Some(attempt.to_string()),
    },
    Counter {
        name: "amz-sdk-request",
        source: "AWS SDKs: `attempt=2; max=3`, from 1",
        read: |text| counted_from_1(text.split(';').find_map(|part| part.trim().strip_prefix("attempt="))?),
        write: |attempt| Some(format!("attempt={attempt}")),
    },
    Counter {
        name: "x-stainless-retry-count",
        source: "OpenAI and Anthropic SDKs: the retries before this one, from 0",
        read: counted_from_0,
        write: |attempt| Some((attempt - 1).to_string()),
    },
];

/// Which attempt of its call a request is, from 1, if its headers say so. If several do, the greatest counts; zero and
/// nonsense say nothing, and what is too great for a `u32` is its greatest.
///
/// ```
/// let mut headers = http::HeaderMap::new();
/// assert_eq!(relent::wire::attempt(&headers), None);
/// headers.insert("grpc-previous-rpc-attempts", "1".parse().unwrap());
/// assert_eq!(relent::wire::attempt(&headers), Some(2));
/// ```
pub fn attempt(headers: &HeaderMap) -> Option<u32> {
    let values = COUNTERS.iter().flat_map(|counter| headers.get_all(counter.name).iter().map(move |v| (counter, v)));
    values.filter_map(|(counter, value)| counter.read(value)).max()
}

/// The value of [`RELENT_ATTEMPT`] for an attempt.
pub fn attempt_value(attempt: u32) -> HeaderValue {
    HeaderValue::from(attempt.max(1))
}

impl Counter {
    /// The attempt that a value of this header means, from 1; `None` if it means none.
    pub fn read(&self, value: &HeaderValue) -> Option<u32> {
        (self.read)(value.to_str().ok()?.trim_matches([' ', '\t']))
    }

    /// The value of this header for an attempt, counted from 1; `None` if the header is left out then.
    pub fn write(&self, attempt: u32) -> Option<HeaderValue> {
        let text = (self.write)(attempt.max(1))?;
        Some(HeaderValue::from_str(&text).expect("counters write digits and letters"))
    }
}

fn counted_from_1(text: &str) -> Option<u32> {
    number(text).filter(|attempt| *attempt > 0)
}

fn counted_from_0(text: &str) -> Option<u32> {
    number(text).map(|before| before.saturating_add(1))
}

fn number(text: &str) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0u32, |n, byte| {
        byte.is_ascii_digit().then(|| n.saturating_mul(10).saturating_add(u32::from(byte - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(name: &'static str, value: &str) -> Option<u32> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        attempt(&headers)
    }

    #[test]
    fn each_header_counts_its_own_way() {
        assert_eq!(read("relent-attempt", "2"), Some(2));
        assert_eq!(read("grpc-previous-rpc-attempts", "2"), Some(3));
        assert_eq!(read("x-envoy-attempt-count", "2"), Some(2));
        assert_eq!(read("amz-sdk-request", "attempt=2; max=3"), Some(2));
        assert_eq!(read("amz-sdk-request", "ttl=20260101T000000Z; attempt=1; max=3"), Some(1));
        assert_eq!(read("x-stainless-retry-count", "0"), Some(1));
    }

    #[test]
    fn nonsense_counts_nothing() {
        for counter in COUNTERS {
            for nonsense in ["", "-1", "two", "1.5", "attempt=", "attempt=x"] {
                assert_eq!(read(counter.name, nonsense), None, "{}: {nonsense}", counter.name);
            }
        }
        assert_eq!(read("relent-attempt", "0"), None);
        assert_eq!(read("relent-attempt", "99999999999"), Some(u32::MAX));
        assert_eq!(read("grpc-previous-rpc-attempts", "99999999999"), Some(u32::MAX));
    }

    #[test]
    fn the_greatest_count_wins() {
        let mut headers = HeaderMap::new();
        headers.append(RELENT_ATTEMPT, attempt_value(2));
        headers.append("x-envoy-attempt-count", "4".parse().unwrap());
        headers.append("x-envoy-attempt-count", "3".parse().unwrap());
        assert_eq!(attempt(&headers), Some(4));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(attempt in 1..u32::MAX) {
            for counter in COUNTERS {
                match counter.write(attempt) {
                    Some(value) => prop_assert_eq!(counter.read(&value), Some(attempt), "{}", counter.name),
                    None => prop_assert_eq!(attempt, 1),
                }
            }
        }

        #[test]
        fn no_value_panics(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                prop_assert!(COUNTERS.iter().all(|counter| counter.read(&value) != Some(0)));
            }
        }
    }
}
