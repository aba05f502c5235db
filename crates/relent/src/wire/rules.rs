//! The verdict on a response: the user's rules, then the server's word, then the table.

use super::{Pushback, STATUSES, pushback};
use crate::Verdict;
use http::{HeaderMap, StatusCode};
use std::time::Duration;

/// What a response means: `None` if it is no failure (a status below 400). `now` is the time since 1970.
///
/// The table is [`STATUSES`]; what the server says about trying again ([`pushback`]) counts more: "never" is
/// [`Overloaded`](Verdict::Overloaded) whatever the status, a wait turns a transient failure into
/// [`After`](Verdict::After) and a turn into [`Turn`](Verdict::Turn), and "again" makes any failure transient. A wait alone makes no permanent failure
/// transient: a 404 that says `Retry-After` is still a 404.
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use relent::{Verdict, wire::verdict};
/// use std::time::Duration;
///
/// let of = |status| verdict(status, &HeaderMap::new(), Duration::ZERO);
/// assert_eq!(of(StatusCode::BAD_GATEWAY), Some(Verdict::Transient));
/// assert_eq!(of(StatusCode::NOT_IMPLEMENTED), Some(Verdict::Permanent));
/// ```
pub fn verdict(status: StatusCode, headers: &HeaderMap, now: Duration) -> Option<Verdict> {
    Rules::default().verdict(status, headers, now)
}

/// What a user says about statuses, before everything else.
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use relent::{Verdict, wire::Rules};
/// use std::time::Duration;
///
/// let rules = Rules::default().retry_on(StatusCode::CONFLICT).stop_on(StatusCode::INTERNAL_SERVER_ERROR);
/// let of = |status| rules.verdict(status, &HeaderMap::new(), Duration::ZERO);
/// assert_eq!(of(StatusCode::CONFLICT), Some(Verdict::Transient));
/// assert_eq!(of(StatusCode::INTERNAL_SERVER_ERROR), Some(Verdict::Permanent));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Statuses that are transient, also ones below 400 (a 202 that means "not yet").
    pub retry_on: StatusSet,
    /// Statuses that are permanent; they count more than `retry_on`.
    pub stop_on: StatusSet,
}

impl Rules {
    /// Nothing is said.
    #[cfg(feature = "tower")]
    pub(crate) const NONE: Rules = Rules { retry_on: StatusSet([0; 16]), stop_on: StatusSet([0; 16]) };

    /// The same rules, with a status that is transient.
    #[must_use]
    pub const fn retry_on(mut self, status: StatusCode) -> Rules {
        self.retry_on.insert(status.as_u16());
        self
    }

    /// The same rules, with a status that is permanent.
    #[must_use]
    pub const fn stop_on(mut self, status: StatusCode) -> Rules {
        self.stop_on.insert(status.as_u16());
        self
    }

    /// What a response means under these rules, as [`verdict`] says it without.
    pub fn verdict(&self, status: StatusCode, headers: &HeaderMap, now: Duration) -> Option<Verdict> {
        let ruled = self.by_status(status.as_u16())?;
        if self.stop_on.contains(status.as_u16()) {
            return Some(ruled);
        }
        Some(match (pushback(headers, now), ruled) {
            (None, ruled) => ruled,
            (Some(Pushback::Never), _) => Verdict::Overloaded,
            (Some(Pushback::Again), _) => Verdict::Transient,
            (Some(Pushback::NotBefore(wait)), Verdict::Transient) => Verdict::After(wait),
            (Some(Pushback::Turn(turn)), Verdict::Transient) => Verdict::Turn(turn),
            (Some(Pushback::NotBefore(_) | Pushback::Turn(_)), ruled) => ruled,
        })
    }

    /// What the status alone means.
    fn by_status(&self, status: u16) -> Option<Verdict> {
        if self.stop_on.contains(status) {
            return Some(Verdict::Permanent);
        }
        if self.retry_on.contains(status) {
            return Some(Verdict::Transient);
        }
        STATUSES.iter().find(|row| (row.first..=row.last).contains(&status)).map(|row| row.verdict)
    }
}

/// A set of statuses, 0 to 1023.
///
/// ```
/// use relent::wire::StatusSet;
///
/// let mut set = StatusSet::default();
/// set.insert(409);
/// assert!(set.contains(409) && !set.contains(423));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusSet([u64; 16]);

impl StatusSet {
    /// Adds a status; one of 1024 and more, which does not exist, is left out.
    pub const fn insert(&mut self, status: u16) {
        if status < 1024 {
            self.0[status as usize / 64] |= 1 << (status % 64);
        }
    }

    /// Whether the status is in the set.
    pub const fn contains(&self, status: u16) -> bool {
        status < 1024 && self.0[status as usize / 64] & (1 << (status % 64)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decision, Jitter, Policy, Reason, Timestamp};
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(1_790_000_000);

    fn status(code: u16) -> StatusCode {
        StatusCode::from_u16(code).unwrap()
    }

    fn of(code: u16, pairs: &[(&'static str, &str)]) -> Option<Verdict> {
        by(Rules::default(), code, pairs)
    }

    fn by(rules: Rules, code: u16, pairs: &[(&'static str, &str)]) -> Option<Verdict> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        rules.verdict(status(code), &headers, NOW)
    }

    #[test]
    fn every_status_by_itself() {
        for code in 100..400 {
            assert_eq!(of(code, &[]), None, "{code}");
        }
        for code in 400..1000 {
            let transient = matches!(code, 408 | 425 | 429) || (code >= 500 && code != 501 && code != 505);
            let expected = if transient { Verdict::Transient } else { Verdict::Permanent };
            assert_eq!(of(code, &[]), Some(expected), "{code}");
        }
    }

    #[test]
    fn retry_after_raises_what_is_transient_and_nothing_else() {
        let wait = [("retry-after", "30")];
        let after = Some(Verdict::After(Duration::from_secs(30)));
        for code in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert_eq!(of(code, &wait), after, "{code}");
        }
        for code in [400, 401, 403, 404, 409, 413, 423, 501, 505] {
            assert_eq!(of(code, &wait), Some(Verdict::Permanent), "{code}");
        }
        assert_eq!(of(200, &wait), None);
        assert_eq!(of(301, &wait), None);
    }

    #[test]
    fn the_servers_word_counts_more_than_the_table() {
        assert_eq!(of(503, &[("relent-retry", "no")]), Some(Verdict::Overloaded));
        assert_eq!(of(503, &[("x-envoy-overloaded", "true"), ("retry-after", "1")]), Some(Verdict::Overloaded));
        assert_eq!(of(404, &[("x-should-retry", "false")]), Some(Verdict::Overloaded));
        assert_eq!(of(409, &[("stripe-should-retry", "true")]), Some(Verdict::Transient));
        assert_eq!(of(200, &[("relent-retry", "no")]), None, "a success is no failure");
    }

    #[test]
    fn the_user_counts_more_than_the_server() {
        let rules = Rules::default().retry_on(status(409)).retry_on(status(202)).stop_on(status(503));
        assert_eq!(by(rules, 409, &[]), Some(Verdict::Transient));
        assert_eq!(by(rules, 409, &[("retry-after", "2")]), Some(Verdict::After(Duration::from_secs(2))));
        assert_eq!(by(rules, 409, &[("relent-retry", "no")]), Some(Verdict::Overloaded), "the far side may say no");
        assert_eq!(by(rules, 202, &[]), Some(Verdict::Transient));
        assert_eq!(by(rules, 503, &[("x-should-retry", "true")]), Some(Verdict::Permanent));
        assert_eq!(by(rules.stop_on(status(409)), 409, &[]), Some(Verdict::Permanent));
    }

    // What other clients do with these responses, and relent does not.

    fn decide(policy: Policy, code: u16, pairs: &[(&'static str, &str)]) -> Decision {
        policy.call(Timestamp::ZERO, 7).on_failure(Timestamp::ZERO, of(code, pairs).unwrap())
    }

    const TOO_LONG: Decision = Decision::GiveUp(Reason::PushbackTooLong);

    #[test]
    fn got_axios_retry_a_30_day_retry_after_is_not_retried_at_once() {
        assert_eq!(decide(Policy::default(), 503, &[("retry-after", "2592000")]), TOO_LONG);
        assert_eq!(decide(Policy::default(), 503, &[("retry-after", "2147484")]), TOO_LONG);
    }

    #[test]
    fn go_retryablehttp_retry_after_is_bounded_and_does_not_overflow() {
        for huge in ["100000000000", "9223372036854775807", "18446744073709551616"] {
            assert_eq!(decide(Policy::default(), 429, &[("retry-after", huge)]), TOO_LONG, "{huge}");
        }
    }

    #[test]
    fn urllib3_the_32nd_of_december_is_ignored() {
        let plain = decide(Policy::default(), 503, &[]);
        assert_eq!(decide(Policy::default(), 503, &[("retry-after", "Fri, 32 Dec 1999 23:59:59 GMT")]), plain);
        assert_eq!(decide(Policy::default(), 503, &[("retry-after", "Fri, 32 Dec 1999")]), plain);
    }

    #[test]
    fn urllib3_fractions_and_negatives_are_ignored() {
        let plain = decide(Policy::default(), 503, &[]);
        for nonsense in ["2.5", "-2", "abc"] {
            assert_eq!(decide(Policy::default(), 503, &[("retry-after", nonsense)]), plain, "{nonsense}");
        }
    }

    #[test]
    fn backon_a_date_is_not_zero_and_the_limit_holds() {
        let date = [("retry-after", "Mon, 21 Sep 2026 14:13:50 GMT")];
        let policy = Policy::constant(Duration::from_secs(1)).jitter(Jitter::None).max_attempts(3);
        let told = of(503, &date).unwrap();
        let mut call = policy.call(Timestamp::ZERO, 7);
        for _ in 1..3 {
            let wait = Decision::Retry(Duration::from_secs(30));
            assert_eq!(call.on_failure(Timestamp::ZERO, told), wait);
        }
        assert_eq!(call.on_failure(Timestamp::ZERO, told), Decision::GiveUp(Reason::Attempts));
    }

    #[test]
    fn backoff_retry_after_does_not_pass_max_elapsed() {
        let policy = Policy::default().max_elapsed(Duration::from_millis(10));
        assert_eq!(decide(policy, 503, &[("retry-after", "1")]), TOO_LONG);
    }

    #[test]
    fn tokio_retry2_retry_after_is_waited_for() {
        let policy = Policy::default().max_pushback(Duration::from_secs(7200));
        let Decision::Retry(delay) = decide(policy, 503, &[("retry-after", "3600")]) else { panic!("gave up") };
        assert!(delay >= Duration::from_secs(3600), "{delay:?}");
    }

    #[test]
    fn reqwest_retry_501_is_not_retried_and_retry_after_counts() {
        assert_eq!(decide(Policy::default(), 501, &[]), Decision::GiveUp(Reason::Permanent));
        assert_eq!(decide(Policy::default(), 503, &[("retry-after", "3600")]), TOO_LONG);
    }

    #[test]
    fn grpc_js_an_unparsable_pushback_is_never() {
        for pushback in ["abc", "2147483648"] {
            let decided = decide(Policy::default(), 503, &[("grpc-retry-pushback-ms", pushback)]);
            assert_eq!(decided, Decision::GiveUp(Reason::Overloaded), "{pushback}");
        }
    }

    proptest! {
        #[test]
        fn no_header_shortens_a_delay(
            code in 400u16..1000,
            name in prop::sample::select(super::super::DIALECTS.iter().map(|d| d.name).collect::<Vec<_>>()),
            value in "[ -~]{0,40}|[0-9]{1,20}",
            seed: u64,
        ) {
            let policy = Policy::default().max_pushback(Duration::MAX);
            let delay = |verdict| match policy.call(Timestamp::ZERO, seed).on_failure(Timestamp::ZERO, verdict) {
                Decision::Retry(delay) => delay,
                Decision::GiveUp(_) => Duration::MAX,
            };
            let with = of(code, &[(name, value.trim())]).unwrap();
            prop_assert!(delay(with) >= delay(Verdict::Transient), "{with:?}");
        }
    }
}
