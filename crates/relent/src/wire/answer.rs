//! What a response says about work that takes its time: `202 Accepted`, and where to ask from then on.

use super::{Pushback, pushback, verdict};
use crate::{Answer, Verdict};
use http::{HeaderMap, StatusCode, header};
use std::time::Duration;

/// What a response says of a job that was asked about, for [`Policy::poll`](crate::Policy::poll). `now` is the time since
/// 1970.
///
/// `202 Accepted` is "not yet" (RFC 9110 15.3.3), and so is `304 Not Modified` to who asked for what is newer (15.4.5);
/// `Retry-After` and the other [dialects](super::DIALECTS) say when to ask again. Every other status below 400 is "done":
/// `200` carries the result, and `303 See Other` says where it is (15.4.4): see [`location`]. Whether something has
/// changed, HTTP does not say: that, and a `200` whose body says "running", is the caller's to tell.
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use relent::{Answer, Verdict, wire};
/// use std::time::Duration;
///
/// let now = Duration::from_secs(1_790_000_000);
/// let mut headers = HeaderMap::new();
/// let answer = |status, headers: &HeaderMap| wire::answer::<()>(status, headers, now);
/// assert_eq!(answer(StatusCode::OK, &headers), Ok(Answer::Done(())));
/// assert_eq!(answer(StatusCode::ACCEPTED, &headers), Ok(Answer::Still));
/// headers.insert("retry-after", "5".parse().unwrap());
/// assert_eq!(answer(StatusCode::ACCEPTED, &headers), Ok(Answer::StillAfter(Duration::from_secs(5))));
/// assert_eq!(answer(StatusCode::BAD_GATEWAY, &headers), Err(Verdict::After(Duration::from_secs(5))));
/// ```
///
/// # Errors
///
/// The [`verdict`] on a status of 400 and more, and [`Overloaded`](Verdict::Overloaded) on one that says both "not yet"
/// and "do not ask again".
pub fn answer<E>(status: StatusCode, headers: &HeaderMap, now: Duration) -> Result<Answer<(), E>, Verdict> {
    if let Some(verdict) = verdict(status, headers, now) {
        return Err(verdict);
    }
    if !matches!(status, StatusCode::ACCEPTED | StatusCode::NOT_MODIFIED) {
        return Ok(Answer::Done(()));
    }
    match pushback(headers, now) {
        None | Some(Pushback::Again) => Ok(Answer::Still),
        Some(Pushback::NotBefore(wait) | Pushback::Turn(wait)) => Ok(Answer::StillAfter(wait)),
        Some(Pushback::Never) => Err(Verdict::Overloaded),
    }
}

/// Where a response says to go on: to ask about a job that was accepted, or to fetch its result. `None` if it does not,
/// or says it in other than visible ASCII. It may be relative to what was asked: resolve it as your client resolves links.
///
/// ```
/// let mut headers = http::HeaderMap::new();
/// assert_eq!(relent::wire::location(&headers), None);
/// headers.insert("location", "/jobs/17".parse().unwrap());
/// assert_eq!(relent::wire::location(&headers), Some("/jobs/17"));
/// ```
pub fn location(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::LOCATION)?.to_str().ok().map(str::trim).filter(|place| !place.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const NOW: Duration = Duration::from_secs(1_790_000_000);

    fn of(code: u16, pairs: &[(&'static str, &'static str)]) -> Result<Answer<(), ()>, Verdict> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        answer(StatusCode::from_u16(code).unwrap(), &headers, NOW)
    }

    #[test]
    fn every_status() {
        for code in 100..400 {
            let expected = if matches!(code, 202 | 304) { Answer::Still } else { Answer::Done(()) };
            assert_eq!(of(code, &[]), Ok(expected), "{code}");
        }
        for code in 400..1000 {
            let transient = matches!(code, 408 | 425 | 429) || (code >= 500 && code != 501 && code != 505);
            let expected = if transient { Verdict::Transient } else { Verdict::Permanent };
            assert_eq!(of(code, &[]), Err(expected), "{code}");
        }
    }

    #[test]
    fn when_to_ask_again() {
        let after = |seconds| Ok(Answer::StillAfter(Duration::from_secs(seconds)));
        assert_eq!(of(202, &[("retry-after", "7")]), after(7));
        assert_eq!(of(304, &[("retry-after", "7")]), after(7));
        assert_eq!(of(202, &[("retry-after", "Mon, 21 Sep 2026 14:13:50 GMT")]), after(30));
        assert_eq!(of(202, &[("retry-after", "7"), ("relent-turn", "2000")]), after(2));
        assert_eq!(of(202, &[("retry-after", "100000000000")]), after(100_000_000_000));
        assert_eq!(of(202, &[("retry-after", "soon")]), Ok(Answer::Still), "nonsense says nothing");
        assert_eq!(of(202, &[("x-should-retry", "true")]), Ok(Answer::Still));
        assert_eq!(of(202, &[("relent-retry", "no")]), Err(Verdict::Overloaded));
        assert_eq!(of(200, &[("retry-after", "7")]), Ok(Answer::Done(())), "what is done is done");
        assert_eq!(of(429, &[("retry-after", "7")]), Err(Verdict::After(Duration::from_secs(7))));
    }

    #[test]
    fn a_place_that_cannot_be_read_is_none() {
        let at = |value: &[u8]| {
            let headers = HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_bytes(value).unwrap())]);
            location(&headers).map(str::to_owned)
        };
        assert_eq!(at(b"https://api.example/jobs/17?x=1").as_deref(), Some("https://api.example/jobs/17?x=1"));
        assert_eq!(at(b" /jobs/17 ").as_deref(), Some("/jobs/17"));
        assert_eq!((at(b""), at(b"  "), at(b"/j\xf6bs")), (None, None, None));
    }
}
