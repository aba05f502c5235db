//! What becomes of a connection, and what that means: refusals of the upgrade, close codes, silence.

use crate::{Verdict, duration::Human, net, wire};
use http::StatusCode;
use std::{fmt, time::Duration};
use tokio_tungstenite::tungstenite::{Error as Broken, error::ProtocolError};

/// Why there is no connection, or none any more.
///
/// ```
/// use relent::{Verdict, ws::SocketFault};
///
/// let fault = SocketFault::Closed { code: Some(1013), reason: "busy".to_owned() };
/// assert_eq!(fault.to_string(), r#"closed by the server: 1013 ("busy")"#);
/// assert_eq!(fault.verdict(), Verdict::Transient);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum SocketFault {
    /// It could not be made, or it broke.
    Broken(Box<Broken>),
    /// The server refused the upgrade.
    Refused {
        /// By this status.
        status: StatusCode,
        /// Which means this, its `Retry-After` and `Relent-Turn` included.
        verdict: Verdict,
    },
    /// The server closed it.
    Closed {
        /// With this code, if it gave one.
        code: Option<u16>,
        /// And these words.
        reason: String,
    },
    /// Nothing was heard for so long after a ping.
    Silent(Duration),
}

/// A close code and what it means.
///
/// ```
/// use relent::{Verdict, ws::CLOSE_CODES};
///
/// let row = CLOSE_CODES.iter().find(|row| (row.first..=row.last).contains(&1009)).unwrap();
/// assert_eq!(row.verdict, Some(Verdict::Permanent));
/// assert!(row.source.starts_with("RFC 6455 7.4.1"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseCode {
    /// The first code of the row.
    pub first: u16,
    /// The last code of the row.
    pub last: u16,
    /// What it means: `None` is an end that was intended.
    pub verdict: Option<Verdict>,
    /// Who says so.
    pub source: &'static str,
}

const fn row(first: u16, last: u16, verdict: Option<Verdict>, source: &'static str) -> CloseCode {
    CloseCode { first, last, verdict, source }
}

const PASSES: Option<Verdict> = Some(Verdict::Transient);
const STAYS: Option<Verdict> = Some(Verdict::Permanent);

/// What close codes mean. Codes that are in no row pass.
#[rustfmt::skip]
pub const CLOSE_CODES: &[CloseCode] = &[
    row(1000, 1000, None, "RFC 6455 7.4.1: normal closure, the purpose has been fulfilled"),
    row(1001, 1001, PASSES, "RFC 6455 7.4.1: going away, such as a server going down"),
    row(1002, 1003, STAYS, "RFC 6455 7.4.1: protocol error; a type of data that cannot be accepted"),
    row(1005, 1006, PASSES, "RFC 6455 7.4.1: no status; closed without a close frame"),
    row(1007, 1010, STAYS, "RFC 6455 7.4.1: inconsistent data; against the policy; too big; an extension is missing"),
    row(1011, 1011, PASSES, "RFC 6455 7.4.1: an unexpected condition of the server"),
    row(1012, 1012, PASSES, "IANA registry: service restart; reconnect with a random delay of 5 to 30 s"),
    row(1013, 1013, PASSES, "IANA registry: try again later; the service is overloaded, so failures are not forgotten"),
    row(1014, 1014, PASSES, "IANA registry: bad gateway"),
    row(1015, 1015, STAYS, "RFC 6455 7.4.1: TLS handshake"),
    row(3000, 3000, STAYS, "IANA registry: unauthorized"),
    row(3003, 3003, STAYS, "IANA registry: forbidden"),
    row(3008, 3008, PASSES, "IANA registry: timeout"),
];

/// What a close code means: `None` is an end that was intended.
///
/// ```
/// use relent::{Verdict, ws::close_verdict};
///
/// assert_eq!(close_verdict(1000), None);
/// assert_eq!(close_verdict(1008), Some(Verdict::Permanent));
/// assert_eq!(close_verdict(1012), Some(Verdict::Transient));
/// assert_eq!(close_verdict(4999), Some(Verdict::Transient));
/// ```
pub fn close_verdict(code: u16) -> Option<Verdict> {
    let row = CLOSE_CODES.iter().find(|row| (row.first..=row.last).contains(&code));
    row.map_or(PASSES, |row| row.verdict)
}

impl SocketFault {
    /// What it means: what judges, unless [`when`](crate::Retrier::when) does.
    ///
    /// ```
    /// use relent::{Verdict, ws::SocketFault};
    /// use std::time::Duration;
    ///
    /// assert_eq!(SocketFault::Silent(Duration::from_secs(10)).verdict(), Verdict::Transient);
    /// assert_eq!(SocketFault::Closed { code: Some(1008), reason: "no".into() }.verdict(), Verdict::Permanent);
    /// ```
    pub fn verdict(&self) -> Verdict {
        match self {
            SocketFault::Refused { verdict, .. } => *verdict,
            SocketFault::Closed { code, .. } => code.and_then(close_verdict).unwrap_or(Verdict::Transient),
            SocketFault::Silent(_) => Verdict::Transient,
            SocketFault::Broken(err) => match &**err {
                Broken::Io(err) => net::verdict(err),
                Broken::ConnectionClosed | Broken::AlreadyClosed | Broken::AttackAttempt => Verdict::Transient,
                // A certificate may be renewed; a name that is none stays one, and is found when the request is made.
                Broken::Tls(_) => Verdict::Transient,
                Broken::Protocol(
                    ProtocolError::ResetWithoutClosingHandshake
                    | ProtocolError::HandshakeIncomplete
                    | ProtocolError::SendAfterClosing
                    | ProtocolError::ReceivedAfterClosing,
                ) => Verdict::Transient,
                _ => Verdict::Permanent,
            },
        }
    }

    /// Whether the server says that it has too much to do.
    pub(super) fn is_overload(&self) -> bool {
        matches!(self, SocketFault::Closed { code: Some(1013), .. } | SocketFault::Refused { .. })
    }

    /// Whether it closed because there is no more to say.
    pub(super) fn is_the_end(&self) -> bool {
        matches!(self, SocketFault::Closed { code: Some(code), .. } if close_verdict(*code).is_none())
    }

    pub(super) fn of_connecting(err: Broken) -> SocketFault {
        match err {
            Broken::Http(response) => {
                let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
                let verdict = wire::verdict(response.status(), response.headers(), now.unwrap_or_default());
                // An answer that is none to an upgrade: something else listens there.
                SocketFault::Refused { status: response.status(), verdict: verdict.unwrap_or(Verdict::Permanent) }
            }
            err => SocketFault::Broken(Box::new(err)),
        }
    }
}

impl fmt::Display for SocketFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketFault::Broken(err) => err.fmt(f),
            SocketFault::Refused { status, .. } => write!(f, "upgrade refused: {status}"),
            SocketFault::Closed { code: None, .. } => f.write_str("closed by the server"),
            SocketFault::Closed { code: Some(code), reason } if reason.is_empty() => {
                write!(f, "closed by the server: {code}")
            }
            SocketFault::Closed { code: Some(code), reason } => write!(f, "closed by the server: {code} ({reason:?})"),
            SocketFault::Silent(limit) => write!(f, "no answer to a ping within {}", Human(*limit)),
        }
    }
}

impl std::error::Error for SocketFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SocketFault::Broken(err) => Some(err),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_do_not_overlap_and_reserved_codes_pass() {
        for pair in CLOSE_CODES.windows(2) {
            assert!(pair[0].first <= pair[0].last && pair[0].last < pair[1].first, "{pair:?}");
        }
        assert_eq!(close_verdict(0), Some(Verdict::Transient));
        assert_eq!(close_verdict(u16::MAX), Some(Verdict::Transient));
    }

    #[test]
    fn what_breaks_and_what_is_wrong() {
        let broken = |err| SocketFault::Broken(Box::new(err)).verdict();
        assert_eq!(broken(Broken::Io(std::io::ErrorKind::ConnectionRefused.into())), Verdict::Transient);
        assert_eq!(broken(Broken::Io(std::io::ErrorKind::PermissionDenied.into())), Verdict::Permanent);
        assert_eq!(broken(Broken::Protocol(ProtocolError::ResetWithoutClosingHandshake)), Verdict::Transient);
        assert_eq!(broken(Broken::Protocol(ProtocolError::WrongHttpMethod)), Verdict::Permanent);
        let refused = |code| {
            let response = http::Response::builder().status(code).header("retry-after", "3").body(None).unwrap();
            SocketFault::of_connecting(Broken::Http(Box::new(response))).verdict()
        };
        assert_eq!(refused(503), Verdict::After(Duration::from_secs(3)));
        assert_eq!(refused(403), Verdict::Permanent);
        assert_eq!(refused(200), Verdict::Permanent, "no WebSocket lives there");
    }
}
