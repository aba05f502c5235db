//! How long an answer is still of use: the deadline of a call, passed on from hop to hop as the time that is left, since
//! clocks of two machines differ. Which headers say it is in `dialect.rs`.

use super::DEADLINES;
use http::HeaderMap;
use std::time::Duration;

/// How much time is left for a request, if its headers say so; the least, if several do. What is nonsense says nothing,
/// and what is too long for a number is its greatest.
///
/// ```
/// use std::time::Duration;
///
/// let mut headers = http::HeaderMap::new();
/// assert_eq!(relent::wire::deadline(&headers), None);
/// headers.insert("grpc-timeout", "250m".parse().unwrap());
/// headers.insert("relent-deadline", "1500".parse().unwrap());
/// assert_eq!(relent::wire::deadline(&headers), Some(Duration::from_millis(250)));
/// ```
pub fn deadline(headers: &HeaderMap) -> Option<Duration> {
    let values = DEADLINES.iter().flat_map(|row| headers.get_all(row.name).iter().map(move |value| (row, value)));
    values.filter_map(|(row, value)| row.read(value)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn left(pairs: &[(&'static str, &str)]) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        deadline(&headers)
    }

    fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    #[test]
    fn each_header_counts_its_own_way() {
        assert_eq!(left(&[("relent-deadline", "1500")]), ms(1500));
        assert_eq!(left(&[("relent-deadline", "0")]), ms(0));
        assert_eq!(left(&[("x-envoy-expected-rq-timeout-ms", "1500")]), ms(1500));
        assert_eq!(left(&[("x-envoy-expected-rq-timeout-ms", "0")]), None, "no limit");
        for (text, time) in [
            ("1H", 3_600_000),
            ("2M", 120_000),
            ("3S", 3_000),
            ("4m", 4),
            ("5000u", 5),
            ("6000000n", 6),
            ("0S", 0),
            ("99999999m", 99_999_999),
        ] {
            assert_eq!(left(&[("grpc-timeout", text)]), ms(time), "{text}");
        }
    }

    #[test]
    fn nonsense_says_nothing() {
        for row in DEADLINES {
            for nonsense in ["", "-1", "+1", "1.5", "abc", "S", "1 S", "1s", "1h", "123456789S", "1SS", "\u{e9}S"] {
                assert_eq!(left(&[(row.name, nonsense)]), None, "{}: {nonsense}", row.name);
            }
        }
        assert_eq!(left(&[("grpc-timeout", "15")]), None, "a unit is needed");
        assert_eq!(left(&[("relent-deadline", "15m")]), None, "no unit is allowed");
    }

    #[test]
    fn the_least_counts_and_the_greatest_is_kept() {
        assert_eq!(left(&[("relent-deadline", "900"), ("relent-deadline", "30"), ("grpc-timeout", "1S")]), ms(30));
        assert_eq!(left(&[("relent-deadline", "99999999999999999999999")]), ms(u64::MAX));
        assert_eq!(left(&[("grpc-timeout", "99999999H")]), Some(Duration::from_secs(99_999_999 * 3600)));
    }

    #[test]
    fn written_word_for_word_and_never_more_than_is_left() {
        let written = |name: &str, left: Duration| {
            let row = DEADLINES.iter().find(|row| row.name == name).unwrap();
            row.write(left).map(|value| value.to_str().unwrap().to_owned())
        };
        let some = |text: &str| Some(text.to_owned());
        let left = Duration::from_micros(1_500_900);
        assert_eq!(written("relent-deadline", left), some("1500"));
        assert_eq!(written("grpc-timeout", left), some("1500900u"));
        assert_eq!(written("x-envoy-expected-rq-timeout-ms", left), some("1500"));
        assert_eq!(written("grpc-timeout", Duration::from_nanos(99_999_999)), some("99999999n"));
        assert_eq!(written("grpc-timeout", Duration::from_nanos(100_000_000)), some("100000u"));
        assert_eq!(written("grpc-timeout", Duration::ZERO), some("0n"));
        assert_eq!(written("grpc-timeout", Duration::MAX), some("99999999H"));
        assert_eq!(written("relent-deadline", Duration::from_micros(900)), some("0"));
        assert_eq!(written("x-envoy-expected-rq-timeout-ms", Duration::from_micros(900)), None, "0 is no limit there");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_never_later(seconds in 0..1u64 << 48, nanos in 0..1_000_000_000u32) {
            let left = Duration::new(seconds, nanos);
            for row in DEADLINES {
                let Some(value) = row.write(left) else { continue };
                let read = row.read(&value).expect("what was written");
                prop_assert!(read <= left, "{}: {:?}", row.name, value);
                let fine = Duration::from_millis(1).max(left / 1_000_000);
                prop_assert!(left > Duration::from_secs(99_999_999 * 3600) || left - read <= fine, "{}: {:?}", row.name, value);
                prop_assert_eq!(row.write(read).map(|again| row.read(&again)), Some(Some(read)));
            }
        }

        #[test]
        fn no_value_panics(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let Ok(value) = HeaderValue::from_bytes(&bytes) else { return Ok(()) };
            let mut headers = HeaderMap::new();
            for row in DEADLINES {
                headers.append(row.name, value.clone());
            }
            let _ = deadline(&headers);
        }
    }
}
