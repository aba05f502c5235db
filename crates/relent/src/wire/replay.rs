//! May a request be sent again? The rule, and which part of it decided.

use super::{METHODS, has_idempotency_key};
use http::{HeaderMap, Method};
use std::fmt;

/// What the rule looks at.
///
/// ```
/// use http::{HeaderMap, Method};
/// use relent::wire::{Replay, Request, replay};
///
/// let headers = HeaderMap::new();
/// let post = Request { method: &Method::POST, headers: &headers, left: true, unsafe_too: false };
/// assert_eq!(replay(&post), Replay::NotIdempotent);
/// assert!(!replay(&post).is_allowed());
/// assert!(replay(&Request { left: false, ..post }).is_allowed());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a Method,
    /// The headers, of which the idempotency key counts.
    pub headers: &'a HeaderMap,
    /// Whether the request may have reached the server ([`Fault::left`](super::Fault::left); always with a response).
    pub left: bool,
    /// The user said that unsafe methods may be sent again too.
    pub unsafe_too: bool,
}

/// The part of the rule that decided.
///
/// ```
/// use http::{HeaderMap, Method};
/// use relent::wire::{Replay, Request, replay};
///
/// let headers = HeaderMap::new();
/// let get = Request { method: &Method::GET, headers: &headers, left: true, unsafe_too: false };
/// assert_eq!(replay(&get), Replay::Idempotent);
/// assert!(replay(&get).is_allowed());
/// assert_eq!(replay(&get).to_string(), "the method is idempotent");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replay {
    /// Allowed: the method is idempotent (RFC 9110 9.2.2).
    Idempotent,
    /// Allowed: the request never left, or the server said that it was not processed.
    NeverLeft,
    /// Allowed: the server can tell a repeat by its idempotency key.
    Keyed,
    /// Allowed: the user said so.
    UserSaysSo,
    /// Not allowed: the method is not idempotent, and the request may have been carried out.
    NotIdempotent,
}

impl Replay {
    /// Whether the request may be sent again.
    pub const fn is_allowed(self) -> bool {
        !matches!(self, Replay::NotIdempotent)
    }
}

/// Whether a request may be sent again, and by which part of the rule: a method that is not idempotent is repeated only
/// if the request never left, or carries an idempotency key, or the user says so.
///
/// ```
/// use http::{HeaderMap, Method};
/// use relent::wire::{IDEMPOTENCY_KEY, IdempotencyKey, Replay, Request, replay};
///
/// let mut headers = HeaderMap::new();
/// headers.insert(IDEMPOTENCY_KEY, IdempotencyKey::new("order-17").unwrap().value());
/// let post = Request { method: &Method::POST, headers: &headers, left: true, unsafe_too: false };
/// assert_eq!(replay(&post), Replay::Keyed);
/// ```
pub fn replay(request: &Request<'_>) -> Replay {
    if is_idempotent(request.method) {
        Replay::Idempotent
    } else if !request.left {
        Replay::NeverLeft
    } else if has_idempotency_key(request.headers) {
        Replay::Keyed
    } else if request.unsafe_too {
        Replay::UserSaysSo
    } else {
        Replay::NotIdempotent
    }
}

/// Whether sending a request with this method twice has the effect of sending it once. Methods that [`METHODS`] does
/// not know are not.
///
/// ```
/// # use http::Method;
/// # use relent::wire::is_idempotent;
/// assert!(is_idempotent(&Method::PUT) && !is_idempotent(&Method::POST));
/// ```
pub fn is_idempotent(method: &Method) -> bool {
    METHODS.iter().any(|row| row.idempotent && row.method == method.as_str())
}

/// The rule as people say it.
impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Replay::Idempotent => "the method is idempotent",
            Replay::NeverLeft => "the request never left",
            Replay::Keyed => "it carries an idempotency key",
            Replay::UserSaysSo => "the user says so",
            Replay::NotIdempotent => "the method is not idempotent and the request may have been carried out",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn methods_are_idempotent_as_their_specifications_say() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PROPFIND", "QUERY"] {
            assert!(is_idempotent(&method.parse().unwrap()), "{method}");
        }
        for method in ["POST", "PATCH", "CONNECT", "LOCK", "get", "Get", "BREW"] {
            assert!(!is_idempotent(&method.parse().unwrap()), "{method}");
        }
    }

    #[test]
    fn an_unsafe_method_needs_one_of_three() {
        let none = HeaderMap::new();
        let post = Request { method: &Method::POST, headers: &none, left: true, unsafe_too: false };
        assert_eq!(replay(&post), Replay::NotIdempotent);
        assert_eq!(replay(&Request { left: false, ..post }), Replay::NeverLeft);
        assert_eq!(replay(&Request { unsafe_too: true, ..post }), Replay::UserSaysSo);
        let mut keyed = HeaderMap::new();
        keyed.insert(crate::wire::IDEMPOTENCY_KEY, HeaderValue::from_static("\"k\""));
        assert_eq!(replay(&Request { headers: &keyed, ..post }), Replay::Keyed);
        assert_eq!(replay(&Request { method: &Method::PUT, ..post }), Replay::Idempotent);
    }
}
