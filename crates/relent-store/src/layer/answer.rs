//! Answers: as they are kept, and those of the layer itself.

use super::IdempotencyBody;
use crate::Stored;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::Body;
use relent::wire::RELENT_RETRY;
use std::time::Duration;

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

const KEEP: HeaderName = HeaderName::from_static("relent-idempotency-keep");

/// Says for how many seconds an answer is kept.
pub(super) fn tell_keep(headers: &mut HeaderMap, keep: Duration) {
    headers.insert(KEEP, HeaderValue::from(keep.as_secs()));
}

/// What an answer is kept as begins with one of these.
const WHOLE: u8 = 1;
const TOO_LARGE: u8 = 2;

/// An answer as it is kept: status, number of headers, each name and value with its length before it, body.
pub(super) fn kept(head: &Response<()>, names: &[HeaderName], body: Option<&Bytes>) -> Stored {
    let Some(body) = body else { return Stored::success([TOO_LARGE]) };
    let mut bytes = vec![WHOLE];
    bytes.extend(head.status().as_u16().to_be_bytes());
    let headers: Vec<_> = head.headers().iter().filter(|(name, _)| names.contains(name)).collect();
    bytes.extend((headers.len() as u32).to_be_bytes());
    for (name, value) in headers {
        for part in [name.as_str().as_bytes(), value.as_bytes()] {
            bytes.extend((part.len() as u32).to_be_bytes());
            bytes.extend(part);
        }
    }
    bytes.extend(body);
    Stored::success(bytes)
}

/// The answer to a request that came again.
pub(super) fn replayed<B: Body>(stored: &Stored, keep: Duration) -> Response<IdempotencyBody<B>> {
    match read(stored.bytes()) {
        Some(mut answer) => {
            answer.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            tell_keep(answer.headers_mut(), keep);
            answer.map(IdempotencyBody::whole)
        }
        None => Refusal::NotKept.answer(),
    }
}

fn read(bytes: &[u8]) -> Option<Response<Bytes>> {
    let mut rest = bytes.strip_prefix(&[WHOLE])?;
    let status = u16::from_be_bytes(*take(&mut rest)?);
    let mut headers = HeaderMap::new();
    for _ in 0..u32::from_be_bytes(*take(&mut rest)?) {
        let mut part = || {
            let length = u32::from_be_bytes(*take(&mut rest)?) as usize;
            let (part, after) = rest.split_at_checked(length)?;
            rest = after;
            Some(part)
        };
        let name = HeaderName::from_bytes(part()?).ok()?;
        headers.append(name, HeaderValue::from_bytes(part()?).ok()?);
    }
    let mut answer = Response::new(Bytes::copy_from_slice(rest));
    *answer.status_mut() = StatusCode::from_u16(status).ok()?;
    *answer.headers_mut() = headers;
    Some(answer)
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(first)
}

/// Why the layer answers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Missing,
    NoKey,
    BodyFailed,
    TooLarge(usize),
    Mismatch,
    Busy(Duration),
    Unknown,
    /// It was carried out, and somebody else had taken it over.
    Passed,
    /// It was carried out, and its answer could not be kept.
    NotKept,
    StoreAway,
}

impl Refusal {
    /// A whole answer, in the words of RFC 9457.
    pub(super) fn answer<B: Body>(self) -> Response<IdempotencyBody<B>> {
        let (status, title, wait) = match self {
            Refusal::Missing => (400, "an Idempotency-Key is required here", None),
            Refusal::NoKey => (400, "the Idempotency-Key is not one string of 1 to 255 characters", None),
            Refusal::BodyFailed => (400, "the request's body ended before it was whole", None),
            Refusal::TooLarge(_) => {
                (413, "the request's body is too large for a request with an Idempotency-Key", None)
            }
            Refusal::Mismatch => (422, "the Idempotency-Key was used for another request", None),
            Refusal::Busy(left) => (409, "a request with this Idempotency-Key is being carried out", Some(left)),
            Refusal::Unknown => {
                (409, "a request with this Idempotency-Key was begun, and may have been carried out", None)
            }
            Refusal::Passed => (409, "another request with this Idempotency-Key took over", Some(Duration::ZERO)),
            Refusal::NotKept => (409, "the request was carried out; its answer could not be kept", None),
            Refusal::StoreAway => (503, "what was carried out cannot be looked up now", Some(Duration::ZERO)),
        };
        let detail = match self {
            Refusal::TooLarge(most) => format!(",\"detail\":\"it may have {most} bytes\""),
            _ => String::new(),
        };
        let body = format!("{{\"title\":\"{title}\",\"status\":{status}{detail}}}");
        let mut answer = Response::new(IdempotencyBody::whole(body.into()));
        *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match wait {
            // A claim may end long before its lease.
            Some(left) => {
                let seconds = left.as_millis().div_ceil(1000).clamp(1, 5) as u64;
                headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            None => {
                headers.insert(RELENT_RETRY, HeaderValue::from_static("no"));
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_kept_is_read_back(status in 200_u16..600, body: Vec<u8>, etag in "[ -~]{0,40}") {
            let mut head = Response::new(());
            *head.status_mut() = StatusCode::from_u16(status).unwrap();
            head.headers_mut().insert(header::ETAG, HeaderValue::from_str(&etag).unwrap());
            head.headers_mut().insert(header::SET_COOKIE, HeaderValue::from_static("secret"));
            let stored = kept(&head, &[header::ETAG], Some(&body.clone().into()));
            let answer = read(stored.bytes()).unwrap();
            prop_assert_eq!(answer.status(), status);
            prop_assert_eq!(answer.headers().len(), 1);
            prop_assert_eq!(&answer.headers()[header::ETAG], head.headers().get(header::ETAG).unwrap());
            prop_assert_eq!(&answer.body()[..], &body[..]);
        }

        #[test]
        fn nothing_that_is_kept_panics(bytes: Vec<u8>) {
            let _ = read(&bytes);
            let _ = read(&[&[WHOLE], &bytes[..]].concat());
        }
    }
}
