//! Which attempt of its call a request is, and how many attempts of each number its client made lately, in the headers
//! that clients say it with. Which ones there are is in `dialect.rs`.

use super::{COUNTERS, RELENT_ATTEMPTS};
use crate::Attempts;
use http::{HeaderMap, HeaderValue};

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

/// The value of `Relent-Attempt` for an attempt.
///
/// ```
/// use relent::wire::{RELENT_ATTEMPT, attempt, attempt_value};
///
/// let mut headers = http::HeaderMap::new();
/// headers.insert(RELENT_ATTEMPT, attempt_value(2));
/// assert_eq!(attempt(&headers), Some(2));
/// ```
pub fn attempt_value(attempt: u32) -> HeaderValue {
    HeaderValue::from(attempt.max(1))
}

/// How many attempts of each number the client made lately, if a header `Relent-Attempts` says so. Several of them are
/// added up, as if one had all their entries; those that are nonsense say nothing.
///
/// ```
/// let mut headers = http::HeaderMap::new();
/// headers.insert("relent-attempts", "1=930,2=50,3=12".parse().unwrap());
/// assert_eq!(relent::wire::attempts(&headers).unwrap().of(2), 50);
/// ```
pub fn attempts(headers: &HeaderMap) -> Option<Attempts> {
    let values = headers.get_all(RELENT_ATTEMPTS).iter().filter_map(|value| value.to_str().ok());
    let said = values.filter_map(|text| Attempts::parse(text.trim_matches([' ', '\t'])));
    said.reduce(|mut all, more| {
        (1..=8).for_each(|attempt| all.add(attempt, more.of(attempt)));
        all
    })
}

/// The value of [`RELENT_ATTEMPTS`] for a histogram; `None` if it is empty, since then there is nothing to say.
///
/// ```
/// use relent::{Attempts, wire::attempts_value};
///
/// let mut lately = Attempts::default();
/// assert_eq!(attempts_value(&lately), None);
/// lately.add(1, 93);
/// lately.add(2, 7);
/// assert_eq!(attempts_value(&lately).unwrap(), "1=93,2=7");
/// ```
pub fn attempts_value(attempts: &Attempts) -> Option<HeaderValue> {
    // As `Display` writes it, which would take three allocations and three times as long.
    let mut text = Text { bytes: [0; LONGEST], length: 0 };
    for attempt in 1..=8 {
        let count = attempts.of(attempt);
        if count > 0 {
            if text.length > 0 {
                text.push(b',');
            }
            text.push(b'0' + attempt as u8);
            text.push(b'=');
            text.push_number(count);
        }
    }
    let text = text.bytes.get(..text.length).filter(|text| !text.is_empty())?;
    HeaderValue::from_bytes(text).ok()
}

/// Eight times a digit, an equals sign, ten digits and a comma.
const LONGEST: usize = 8 * 13;

struct Text {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Text {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn push_number(&mut self, number: u32) {
        let mut power = 1u32;
        while number / power >= 10 {
            power *= 10;
        }
        while power > 0 {
            self.push(b'0' + (number / power % 10) as u8);
            power /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::RELENT_ATTEMPT;
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

    #[test]
    fn a_histogram_is_read_and_written() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(RELENT_ATTEMPTS, HeaderValue::from_str(value).unwrap());
            }
            attempts(&headers).and_then(|attempts| attempts_value(&attempts))
        };
        let some = |text| Some(HeaderValue::from_static(text));
        assert_eq!(read(&["1=930,2=50,3=12"]), some("1=930,2=50,3=12"));
        assert_eq!(read(&[" 3=12,1=930 "]), some("1=930,3=12"));
        assert_eq!(read(&["1=930", "nonsense", "1=70,9=4"]), some("1=1000,8=4"));
        assert_eq!(read(&["1=4294967295", "1=1"]), some("1=4294967295"), "saturates");
        for nothing in [&[][..], &[""], &["1=many"], &["0=1"], &["1"], &["1=1,"]] {
            assert_eq!(read(nothing), None, "{nothing:?}");
        }
        assert_eq!(attempts_value(&Attempts::default()), None, "nothing to say");
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
        fn a_histogram_is_written_as_it_is_shown(counts in prop::collection::vec(prop_oneof![Just(0), any::<u32>(), 0..200u32], 8)) {
            let mut attempts = Attempts::default();
            for (attempt, count) in (1..).zip(&counts) {
                attempts.add(attempt, *count);
            }
            let text = attempts.to_string();
            let value = attempts_value(&attempts);
            prop_assert_eq!(value.as_ref().map(|value| value.to_str().unwrap()), Some(text.as_str()).filter(|text| !text.is_empty()));
        }

        #[test]
        fn no_value_panics(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                prop_assert!(COUNTERS.iter().all(|counter| counter.read(&value) != Some(0)));
                let _ = attempts(&HeaderMap::from_iter([(RELENT_ATTEMPTS, value)]));
            }
        }
    }
}
