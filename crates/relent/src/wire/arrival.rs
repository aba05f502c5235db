//! Everything that a request's headers tell a server before it decides: in one walk over them, since a server reads them
//! of each request, most of which say nothing.

use super::{COUNTERS, Counter, DEADLINES, Deadline, RELENT_ATTEMPTS};
use crate::{Arrival, Attempts};
use http::HeaderMap;

/// What a server knows of an attempt by its headers: [`attempt`](super::attempt()), [`attempts`](super::attempts()) and
/// [`deadline`](super::deadline()) at once. Its priority is for the caller to set.
///
/// ```
/// use std::time::Duration;
///
/// let mut headers = http::HeaderMap::new();
/// assert_eq!(relent::wire::arrival(&headers), relent::Arrival::default());
/// headers.insert("relent-attempt", "2".parse().unwrap());
/// headers.insert("grpc-timeout", "250m".parse().unwrap());
/// let arrival = relent::wire::arrival(&headers);
/// assert_eq!((arrival.attempt, arrival.left), (2, Some(Duration::from_millis(250))));
/// ```
pub fn arrival(headers: &HeaderMap) -> Arrival {
    let mut arrival = Arrival::default();
    for (name, value) in headers {
        let name = name.as_str();
        if !may_say_something(name) {
            continue;
        }
        if let Some(counter) = COUNTERS.iter().find(|counter| counter.name == name) {
            arrival.attempt = arrival.attempt.max(counter.read(value).unwrap_or(1));
        } else if let Some(deadline) = DEADLINES.iter().find(|deadline| deadline.name == name) {
            let read = deadline.read(value);
            arrival.left = match (arrival.left, read) {
                (Some(known), Some(read)) => Some(known.min(read)),
                (known, read) => known.or(read),
            };
        } else if *name == RELENT_ATTEMPTS
            && let Ok(text) = value.to_str()
            && let Some(more) = Attempts::parse(text.trim_matches([' ', '\t']))
        {
            let known = arrival.client.get_or_insert_default();
            (1..=8).for_each(|attempt| known.add(attempt, more.of(attempt)));
        }
    }
    arrival
}

/// The first letters of the headers of the tables, one bit each: most headers of most requests begin with others.
const FIRST: u32 = first_letters();

const fn first_letters() -> u32 {
    let mut letters = bit(RELENT_FIRST);
    let mut at = 0;
    while at < COUNTERS.len() {
        let Counter { name, .. } = &COUNTERS[at];
        letters |= bit(name.as_bytes()[0]);
        at += 1;
    }
    at = 0;
    while at < DEADLINES.len() {
        let Deadline { name, .. } = &DEADLINES[at];
        letters |= bit(name.as_bytes()[0]);
        at += 1;
    }
    letters
}

const RELENT_FIRST: u8 = b'r';

/// Letters that differ by 32 share a bit, which costs a look and no more.
const fn bit(letter: u8) -> u32 {
    1 << (letter % 32)
}

#[inline]
fn may_say_something(name: &str) -> bool {
    name.as_bytes().first().is_some_and(|letter| FIRST & bit(*letter) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{attempt, attempts, deadline};
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    #[test]
    fn headers_of_the_tables_are_looked_at_and_most_others_are_not() {
        let names = COUNTERS.iter().map(|row| row.name).chain(DEADLINES.iter().map(|row| row.name));
        for name in names.chain([RELENT_ATTEMPTS.as_str()]) {
            assert!(may_say_something(name), "{name}");
        }
        for name in ["host", "content-type", "user-agent", "cookie", "traceparent", ":path"] {
            assert!(!may_say_something(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn it_is_what_the_three_readers_say(
            pairs in prop::collection::vec(
                (
                    prop::sample::select(vec![
                        "relent-attempt", "relent-attempts", "relent-deadline", "grpc-timeout", "x-envoy-attempt-count",
                        "grpc-previous-rpc-attempts", "x-envoy-expected-rq-timeout-ms", "amz-sdk-request",
                        "x-stainless-retry-count", "accept", "x-other",
                    ]),
                    "[ -~]{0,12}|[0-9]{1,12}|[0-9]{1,8}[numSMH]|[0-9]=[0-9]{1,11}(,[0-9]{1,2}=[0-9]{1,3})?|attempt=[0-9]{1,3}",
                ),
                0..12,
            ),
        ) {
            let mut headers = HeaderMap::new();
            for (name, value) in &pairs {
                headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
            }
            let arrival = arrival(&headers);
            prop_assert_eq!(arrival.attempt, attempt(&headers).unwrap_or(1));
            prop_assert_eq!(arrival.client, attempts(&headers));
            prop_assert_eq!(arrival.left, deadline(&headers));
        }
    }
}
