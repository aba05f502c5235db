//! A call of gRPC that ended without an answer, in gRPC's words: who reads statuses knows nothing of relent's errors, and tonic
//! takes them for `UNKNOWN`.

use super::{Terms, faults::chain, http_request::mark, peeked::Peeked};
use crate::{Error, Reason, wire};
use http::{HeaderValue, Response, header};
use http_body::Body;
use std::{any::Any, fmt};

const CANCELLED: &str = "1";
const DEADLINE_EXCEEDED: &str = "4";
const UNAVAILABLE: &str = "14";

/// More of a message is of use to nobody, and would be more than a header may be.
const LONGEST: usize = 1024;

/// The status of a call that ended so; `None` for errors of which it is said that another attempt would change nothing: these
/// stay what they are.
fn status<E>(error: &Error<E>) -> Option<&'static str> {
    match error.reason {
        Reason::Permanent => None,
        Reason::Cancelled => Some(CANCELLED),
        // A client that was told of the deadline may say so itself, at the same moment, by an error of its own.
        Reason::Elapsed => Some(DEADLINE_EXCEEDED),
        _ if error.timed_out.is_some() => Some(DEADLINE_EXCEEDED),
        _ => Some(UNAVAILABLE),
    }
}

/// The answer that a client of gRPC is given: trailers alone, with a pushback where it is known when to ask again. Layers around
/// this one do not try again what was given up here.
///
/// # Errors
///
/// The error, if it is none of these.
pub(super) fn answer<A, E>(error: Error<E>, kind: HeaderValue, terms: &Terms) -> Result<Response<Peeked<A>>, Error<E>>
where
    A: Body,
    E: fmt::Display + 'static,
{
    let Some(status) = status(&error) else { return Err(error) };
    let mut response = Response::new(Peeked::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(wire::GRPC_STATUS, HeaderValue::from_static(status));
    let mut message = error.to_string();
    if let Some(last) = error.last.as_ref().filter(|_| error.timed_out.is_none()) {
        message += &chain(last as &dyn Any, terms);
    }
    if let Ok(message) = HeaderValue::from_str(&encoded(&message)) {
        headers.insert(wire::GRPC_MESSAGE, message);
    }
    if let Some(again) = error.again_in {
        headers.insert(wire::GRPC_PUSHBACK, wire::grpc_pushback(Some(again)));
    }
    mark(response.extensions_mut());
    Ok(response)
}

/// As gRPC wants a message: "Percent-Encoded", visible ASCII as it is but for `%`.
fn encoded(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for byte in message.bytes().take(LONGEST) {
        match byte {
            b' '..=b'~' if byte != b'%' => text.push(byte.into()),
            _ => {
                text.push('%');
                text.extend([byte >> 4, byte & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)])));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_time_has_exceeded_the_deadline_whatever_failed_last() {
        let of = |reason| status(&Error::at_once(reason, "transport error"));
        assert_eq!(of(Reason::Elapsed), Some(DEADLINE_EXCEEDED));
        assert_eq!((of(Reason::Attempts), of(Reason::Open)), (Some(UNAVAILABLE), Some(UNAVAILABLE)));
        assert_eq!((of(Reason::Cancelled), of(Reason::Permanent)), (Some(CANCELLED), None));
    }

    #[test]
    fn a_message_is_ascii_and_bounded() {
        assert_eq!(encoded("out of attempts: 100 %\nno"), "out of attempts: 100 %25%0Ano");
        assert_eq!(encoded("\u{e9}\u{7f}"), "%C3%A9%7F");
        assert_eq!(encoded(&"x".repeat(5000)).len(), LONGEST);
        assert!(HeaderValue::from_str(&encoded("\0\r\n\u{10ffff}")).is_ok());
    }
}
