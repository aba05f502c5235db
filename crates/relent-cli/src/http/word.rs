//! What servers say of trying again: heard from every answer whose head is there, for whatever reason it fails.

use crate::{brief, redact};
use http::{HeaderMap, StatusCode};
use relent::{
    Verdict,
    wire::{DIALECTS, Pushback, Rules},
};
use std::time::{Duration, Instant};

/// What was said of trying again, and when.
pub(super) struct Word {
    verdict: Verdict,
    told: Option<String>,
    at: Instant,
}

impl Word {
    /// Said now, by the header that is `told`.
    pub(super) fn said(verdict: Verdict, told: Option<String>) -> Word {
        Word { verdict, told, at: Instant::now() }
    }

    /// What the head of an answer says that came now, whose failure may pass by itself.
    pub(super) fn of_head(rules: Rules, status: StatusCode, headers: &HeaderMap, now: Duration) -> Word {
        let verdict = rules.retry_on(status).verdict(status, headers, now).unwrap_or(Verdict::Transient);
        Word::said(verdict, told(headers, verdict, now))
    }

    /// What it means now, in whole milliseconds.
    pub(super) fn verdict(&self) -> Verdict {
        let passed = u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.verdict.less(Duration::from_millis(passed))
    }

    /// The header that said it.
    pub(super) fn told(&self) -> Option<&str> {
        self.told.as_deref()
    }
}

/// The header behind a pushback: `Retry-After: 30`.
pub(super) fn told(headers: &HeaderMap, verdict: Verdict, now: Duration) -> Option<String> {
    let said = match verdict {
        Verdict::After(wait) => Pushback::NotBefore(wait),
        Verdict::Turn(turn) => Pushback::Turn(turn),
        Verdict::Overloaded => Pushback::Never,
        _ => return None,
    };
    DIALECTS.iter().find_map(|dialect| {
        let mut values = headers.get_all(dialect.name).iter();
        let value = values.find(|value| {
            let read = relent::wire::pushback(&only(dialect.name, value, headers), now);
            read == Some(said)
        })?;
        let value = value.to_str().unwrap_or("?");
        // Whatever else it is takes long to be looked through.
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let value = redact::header(dialect.name, if is_number { value } else { redact::within_reach(value) });
        Some(format!("{}: {}", title(dialect.name), brief::first(&value, 40)))
    })
}

/// One header by itself, with the date that it is compared with.
fn only(name: &'static str, value: &http::HeaderValue, headers: &HeaderMap) -> HeaderMap {
    let mut map = HeaderMap::new();
    if let Some(date) = headers.get(http::header::DATE) {
        map.insert(http::header::DATE, date.clone());
    }
    map.insert(name, value.clone());
    map
}

/// A header's name as people write it: `Retry-After`.
fn title(name: &str) -> String {
    let word = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split('-').filter(|part| !part.is_empty()).map(word).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_header_that_told_is_named() {
        let mut headers = HeaderMap::new();
        headers.append("retry-after", HeaderValue::from_static("1"));
        headers.append("retry-after", HeaderValue::from_static("30"));
        let after = |seconds| told(&headers, Verdict::After(Duration::from_secs(seconds)), Duration::ZERO);
        assert_eq!(after(30).as_deref(), Some("Retry-After: 30"));
        assert_eq!(after(7), None);
        assert_eq!(told(&headers, Verdict::Transient, Duration::ZERO), None);
        headers.append("x-should-retry", HeaderValue::from_static("false"));
        let never = told(&headers, Verdict::Overloaded, Duration::ZERO);
        assert_eq!(never.as_deref(), Some("X-Should-Retry: false"));
    }

    #[test]
    fn a_head_says_the_same_whatever_the_status() {
        let mut headers = HeaderMap::new();
        let of = |rules: Rules, headers: &HeaderMap| {
            Word::of_head(rules, StatusCode::PARTIAL_CONTENT, headers, Duration::ZERO).verdict
        };
        assert_eq!(of(Rules::default(), &headers), Verdict::Transient);
        headers.append("retry-after", HeaderValue::from_static("30"));
        assert_eq!(of(Rules::default(), &headers), Verdict::After(Duration::from_secs(30)));
        assert_eq!(of(Rules::default().stop_on(StatusCode::PARTIAL_CONTENT), &headers), Verdict::Permanent);
        headers.append("relent-retry", HeaderValue::from_static("no"));
        assert_eq!(of(Rules::default(), &headers), Verdict::Overloaded);
    }
}
