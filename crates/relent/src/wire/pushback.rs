//! What servers say about trying again, all headers together. Which ones there are is in `dialect.rs`.

use super::{DIALECTS, Pushback, value::Clock};
use http::HeaderMap;
use std::time::Duration;

/// What a response's headers say about trying again, all dialects together; `now` is the time since 1970.
///
/// "Never" counts more than any wait, and the longest wait more than the others, also when one header stands there
/// twice: what is too long is never cut short by what is said elsewhere. A turn, which is this client's own, counts more
/// than the waits beside it, which are there for those who do not understand it. A date is compared with the response's own
/// `Date` if it has one, since both come from one clock; else with `now`. A time that has passed is a wait of zero.
///
/// ```
/// use relent::wire::{Pushback, pushback};
/// use std::time::Duration;
///
/// let mut headers = http::HeaderMap::new();
/// headers.append("retry-after", "1".parse().unwrap());
/// headers.append("retry-after", "120".parse().unwrap());
/// headers.append("retry-after-ms", "nonsense".parse().unwrap());
/// let told = Pushback::NotBefore(Duration::from_secs(120));
/// assert_eq!(pushback(&headers, Duration::ZERO), Some(told));
/// ```
pub fn pushback(headers: &HeaderMap, now: Duration) -> Option<Pushback> {
    let clock = Clock::of(headers, now);
    let mut told = Told::default();
    for dialect in DIALECTS {
        for value in headers.get_all(dialect.name) {
            told.add(dialect.read_by(value, &clock), dialect.yields);
        }
    }
    told.word()
}

/// What has been said so far.
#[derive(Default)]
struct Told {
    wait: Option<Duration>,
    turn: Option<Duration>,
    never: bool,
    never_unless_wait: bool,
    again: bool,
}

impl Told {
    fn add(&mut self, pushback: Option<Pushback>, yields: bool) {
        match pushback {
            None => {}
            Some(Pushback::NotBefore(wait)) => self.wait = self.wait.max(Some(wait)),
            Some(Pushback::Turn(turn)) => self.turn = self.turn.max(Some(turn)),
            Some(Pushback::Never) if yields => self.never_unless_wait = true,
            Some(Pushback::Never) => self.never = true,
            Some(Pushback::Again) => self.again = true,
        }
    }

    fn word(self) -> Option<Pushback> {
        match (self.turn, self.wait) {
            _ if self.never => Some(Pushback::Never),
            (Some(turn), _) => Some(Pushback::Turn(turn)),
            (None, Some(wait)) => Some(Pushback::NotBefore(wait)),
            (None, None) if self.never_unless_wait => Some(Pushback::Never),
            (None, None) => self.again.then_some(Pushback::Again),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue, header};
    use proptest::prelude::*;

    /// 2026-09-21 14:13:20 UTC.
    const NOW: Duration = Duration::from_secs(1_790_000_000);

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        map
    }

    fn told(pairs: &[(&'static str, &str)]) -> Option<Pushback> {
        pushback(&headers(pairs), NOW)
    }

    fn secs(seconds: u64) -> Option<Pushback> {
        Some(Pushback::NotBefore(Duration::from_secs(seconds)))
    }

    #[test]
    fn retry_after_that_says_something() {
        for (value, seconds) in [
            ("0", 0),
            ("2", 2),
            (" 2 ", 2),
            ("\t2", 2),
            ("007", 7),
            ("2592000", 2_592_000),
            ("100000000000", 100_000_000_000),
            ("99999999999999999999999999", u64::MAX),
            ("Mon, 21 Sep 2026 14:13:50 GMT", 30),
            ("Monday, 21-Sep-26 14:13:50 GMT", 30),
            ("Mon Sep 21 14:13:50 2026", 30),
            ("Mon, 21 Sep 2026 14:13:20 GMT", 0),
            ("Mon, 01 Jan 1900 00:00:00 GMT", 0),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 0),
        ] {
            assert_eq!(told(&[("retry-after", value)]), secs(seconds), "{value:?}");
        }
    }

    #[test]
    fn retry_after_that_is_nonsense_says_nothing() {
        for value in [
            "",
            " ",
            "abc",
            "-1",
            "-2",
            "+5",
            "2.5",
            "1e3",
            "0x10",
            "5s",
            "1, 120",
            "2 3",
            "\u{7f}",
            "Fri, 32 Dec 1999 23:59:59 GMT",
            "Fri, 32 Dec 1999",
            "tomorrow",
            "NaN",
            "Infinity",
            "١٢",
        ] {
            let mut map = HeaderMap::new();
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                map.append(header::RETRY_AFTER, value);
            }
            assert_eq!(pushback(&map, NOW), None, "{value:?}");
        }
    }

    #[test]
    fn a_date_counts_from_a_fraction_of_a_second() {
        let now = NOW + Duration::from_millis(250);
        let map = headers(&[("retry-after", "Mon, 21 Sep 2026 14:13:50 GMT")]);
        assert_eq!(pushback(&map, now), Some(Pushback::NotBefore(Duration::from_millis(29_750))));
    }

    #[test]
    fn a_date_is_read_on_the_servers_own_clock() {
        let dated = |date| told(&[("retry-after", "Mon, 21 Sep 2026 14:13:50 GMT"), ("date", date)]);
        assert_eq!(dated("Mon, 21 Sep 2026 14:13:40 GMT"), secs(10));
        assert_eq!(dated("Mon, 21 Sep 2026 10:13:40 GMT"), secs(4 * 3600 + 10), "our clock is four hours ahead");
        assert_eq!(dated("Mon, 21 Sep 2026 15:13:40 GMT"), secs(0));
        assert_eq!(dated("yesterday"), secs(30), "nonsense is no clock");
    }

    #[test]
    fn the_longest_wait_wins() {
        assert_eq!(told(&[("retry-after", "1"), ("retry-after", "120")]), secs(120));
        assert_eq!(told(&[("retry-after", "120"), ("retry-after", "1")]), secs(120));
        assert_eq!(told(&[("retry-after", "abc"), ("retry-after", "3")]), secs(3));
        assert_eq!(told(&[("retry-after", "2"), ("retry-after-ms", "1500")]), secs(2));
        assert_eq!(told(&[("retry-after", "1"), ("x-ms-retry-after-ms", "7000")]), secs(7));
        assert_eq!(told(&[("retry-after", "Mon, 21 Sep 2026 14:13:50 GMT"), ("retry-after", "3")]), secs(30));
    }

    #[test]
    fn milliseconds() {
        for name in ["retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"] {
            let millis = |ms| Some(Pushback::NotBefore(Duration::from_millis(ms)));
            assert_eq!(told(&[(name, "1500")]), millis(1500), "{name}");
            assert_eq!(told(&[(name, "99999999999999999999")]), millis(u64::MAX), "{name}");
            for nonsense in ["-1", "1.5", "abc", ""] {
                assert_eq!(told(&[(name, nonsense)]), None, "{name}: {nonsense}");
            }
        }
    }

    #[test]
    fn grpc_pushback_that_is_negative_or_unparsable_is_never() {
        assert_eq!(told(&[("grpc-retry-pushback-ms", "250")]), Some(Pushback::NotBefore(Duration::from_millis(250))));
        for never in ["-1", "abc", "2147483648", "1.5", ""] {
            assert_eq!(told(&[("grpc-retry-pushback-ms", never)]), Some(Pushback::Never), "grpc-js 1.14.7: {never}");
        }
    }

    #[test]
    fn ratelimit_counts_when_nothing_remains() {
        assert_eq!(told(&[("ratelimit", "\"default\";r=0;t=30")]), secs(30));
        assert_eq!(told(&[("ratelimit", "\"default\";r=50;t=30")]), None, "something remains");
        assert_eq!(told(&[("ratelimit", "\"a\";r=0;t=5, \"b\"; t=60; r=0, \"c\";r=1;t=900")]), secs(60));
        for nothing in
            ["\"default\";r=0", "\"default\";t=30", "\"default\";r=0;t=-1", "r", "\"a;b\";r=0;tt=5", ";;,,=;"]
        {
            assert_eq!(told(&[("ratelimit", nothing)]), None, "{nothing}");
        }
    }

    #[test]
    fn told_not_to_counts_more_than_any_wait() {
        for (name, value) in [
            ("x-should-retry", "false"),
            ("stripe-should-retry", "False"),
            ("x-envoy-overloaded", "true"),
            ("x-envoy-ratelimited", "true"),
            ("relent-retry", "no"),
            ("relent-retry", "NO"),
        ] {
            assert_eq!(told(&[(name, value)]), Some(Pushback::Never), "{name}: {value}");
        }
        let both = |name| told(&[(name, "no"), ("retry-after", "3")]);
        assert_eq!(both("relent-retry"), Some(Pushback::Never));
        assert_eq!(both("x-envoy-overloaded"), Some(Pushback::Never));
        assert_eq!(both("x-envoy-ratelimited"), secs(3), "limited, and told when to come back");
        assert_eq!(told(&[("x-should-retry", "true"), ("relent-retry", "no")]), Some(Pushback::Never));
        assert_eq!(told(&[("x-should-retry", "true")]), Some(Pushback::Again));
        assert_eq!(told(&[("x-should-retry", "perhaps"), ("relent-retry", "yes")]), None);
    }

    #[test]
    fn sixty_four_kib_of_header_are_read_once() {
        let started = std::time::Instant::now();
        for (piece, seconds) in [("9", secs(u64::MAX)), ("0", secs(0)), (" ", None), ("a", None), ("Mon, ", None)] {
            assert_eq!(told(&[("retry-after", &piece.repeat(65_536 / piece.len()))]), seconds, "{piece:?}");
        }
        for (piece, seconds) in
            [(",", None), (";", None), ("\"a\";r=0;t=5,", secs(5)), ("t=5;", None), (";r=0;t=5", secs(5))]
        {
            assert_eq!(told(&[("ratelimit", &piece.repeat(65_536 / piece.len()))]), seconds, "{piece:?}");
        }
        let many: Vec<_> = (0..8192).map(|_| ("retry-after", "3")).collect();
        assert_eq!(told(&many), secs(3));
        assert!(started.elapsed() < Duration::from_secs(5), "work that grows faster than the header takes minutes");
    }

    #[test]
    fn what_is_written_is_read_back_and_never_shorter() {
        let waits = [0, 1, 999_999, 1_000_000, 1_500_000_000, 30_000_000_000, u64::MAX].map(Duration::from_nanos);
        for dialect in DIALECTS {
            for wait in waits.into_iter().chain([Duration::MAX]) {
                let Some(value) = dialect.write(Pushback::NotBefore(wait)) else { continue };
                match dialect.read(&value, NOW) {
                    Some(Pushback::NotBefore(read)) => {
                        let longest = Duration::from_millis(u64::MAX);
                        assert!(read >= wait.min(longest), "{}: {wait:?} became {read:?}", dialect.name);
                        assert!(read - wait.min(read) < Duration::from_secs(1), "{}: {wait:?}", dialect.name);
                    }
                    Some(Pushback::Never) => {}
                    other => panic!("{}: {wait:?} became {other:?}", dialect.name),
                }
            }
            for word in [Pushback::Never, Pushback::Again] {
                let Some(value) = dialect.write(word) else { continue };
                let read = dialect.read(&value, NOW);
                let grpc_again = Some(Pushback::NotBefore(Duration::ZERO));
                assert!(read == Some(word) || (word == Pushback::Again && read == grpc_again), "{}", dialect.name);
            }
        }
    }

    #[test]
    fn every_dialect_names_its_source_and_writes_something() {
        let mut words = vec![Pushback::Never, Pushback::Again, Pushback::NotBefore(Duration::from_secs(1))];
        words.retain(|word| DIALECTS.iter().any(|dialect| dialect.write(*word).is_some()));
        assert_eq!(words.len(), 3);
        for dialect in DIALECTS {
            assert!(!dialect.source.is_empty());
            assert_eq!(dialect.name, dialect.name.to_ascii_lowercase());
        }
    }

    fn turn(ms: u64) -> Option<Pushback> {
        Some(Pushback::Turn(Duration::from_millis(ms)))
    }

    #[test]
    fn a_turn_counts_more_than_the_waits_beside_it() {
        assert_eq!(told(&[("relent-turn", "1234")]), turn(1234));
        assert_eq!(told(&[("relent-turn", "1234"), ("retry-after", "2")]), turn(1234));
        assert_eq!(told(&[("retry-after", "1"), ("retry-after-ms", "99999"), ("relent-turn", "0")]), turn(0));
        assert_eq!(told(&[("relent-turn", "1234"), ("x-envoy-ratelimited", "true")]), turn(1234));
        assert_eq!(told(&[("relent-turn", "5"), ("relent-turn", "7")]), turn(7));
        assert_eq!(told(&[("relent-turn", "1234"), ("x-should-retry", "true")]), turn(1234));
    }

    #[test]
    fn a_turn_gives_way_to_never_and_nonsense_to_all() {
        assert_eq!(told(&[("relent-turn", "1234"), ("relent-retry", "no")]), Some(Pushback::Never));
        for nonsense in ["", "-1", "+1", "1.5", "1s", "0x10", "soon", "1 2", "\u{e9}"] {
            assert_eq!(told(&[("relent-turn", nonsense)]), None, "{nonsense:?}");
            assert_eq!(told(&[("relent-turn", nonsense), ("retry-after", "2")]), secs(2), "{nonsense:?}");
        }
        assert_eq!(told(&[("relent-turn", "99999999999999999999999999")]), turn(u64::MAX));
    }

    proptest! {
        #[test]
        fn no_value_panics(bytes in prop::collection::vec(any::<u8>(), 0..80), seconds: u64, nanos in 0..1_000_000_000u32) {
            let Ok(value) = HeaderValue::from_bytes(&bytes) else { return Ok(()) };
            let mut map = HeaderMap::new();
            for dialect in DIALECTS {
                map.append(dialect.name, value.clone());
            }
            map.append(header::DATE, value);
            let _ = pushback(&map, Duration::new(seconds, nanos));
        }

        #[test]
        fn digits_are_seconds_and_anything_else_is_not(text in "[0-9a-zA-Z.,+ -]{1,24}") {
            let map = headers(&[("retry-after", &text)]);
            let expected = text.trim().bytes().all(|b| b.is_ascii_digit()) && !text.trim().is_empty();
            // The pattern has no colon, so it makes no date.
            prop_assert_eq!(pushback(&map, NOW).is_some(), expected, "{}", text);
            if expected {
                let seconds = text.trim().parse::<u128>().unwrap().min(u64::MAX.into());
                prop_assert_eq!(pushback(&map, NOW), secs(seconds as u64));
            }
        }

        #[test]
        fn a_further_header_never_shortens(a in "[0-9]{1,12}|[a-z]{0,3}", b in "[0-9]{1,12}|[a-z]{0,3}") {
            let wait = |pairs: &[(&'static str, &str)]| match told(pairs) {
                Some(Pushback::NotBefore(wait)) => wait,
                _ => Duration::ZERO,
            };
            let both = wait(&[("retry-after", &a), ("retry-after", &b)]);
            prop_assert_eq!(both, wait(&[("retry-after", &a)]).max(wait(&[("retry-after", &b)])));
        }
    }
}
