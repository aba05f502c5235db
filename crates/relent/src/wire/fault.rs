//! Failures without a response: what happened on the way.

use std::{fmt, io};

/// A failure without a whole response, as far as judging it needs.
///
/// ```
/// use relent::{Verdict, wire::Fault};
///
/// assert_eq!(Fault::Connect.verdict(), Verdict::Transient);
/// assert!(!Fault::Connect.left(), "a POST that never left may be sent again");
/// assert_eq!(Fault::Untrusted.verdict(), Verdict::Permanent);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The host's name has no address now.
    Resolve,
    /// No connection: refused, unreachable, out of time while connecting.
    Connect,
    /// TLS could not be agreed on: the far side does not speak it, or not in a way that we do.
    Handshake,
    /// The certificate is not trusted.
    Untrusted,
    /// The server said that it did not process the request (HTTP/2 `REFUSED_STREAM`, `GOAWAY`).
    Refused,
    /// The connection was reset or closed before the response's head was read.
    Reset,
    /// The response's body ended early.
    EarlyEnd,
    /// No answer in time.
    Timeout,
    /// What came back is not HTTP.
    Protocol,
}

impl Fault {
    /// The fault that an error of a connection stands for, once the connection has been made.
    ///
    /// ```
    /// use relent::wire::Fault;
    /// use std::io::{Error, ErrorKind};
    ///
    /// assert_eq!(Fault::of_io(&Error::from(ErrorKind::ConnectionReset)), Fault::Reset);
    /// ```
    pub fn of_io(error: &io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Fault::Timeout,
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::NotFound => Fault::Connect,
            io::ErrorKind::UnexpectedEof => Fault::EarlyEnd,
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Fault::Protocol,
            _ => Fault::Reset,
        }
    }
}

/// The fault as people say it: `connection reset`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Resolve => "host not found",
            Fault::Connect => "no connection",
            Fault::Handshake => "no TLS",
            Fault::Untrusted => "certificate not trusted",
            Fault::Refused => "request not processed",
            Fault::Reset => "connection reset",
            Fault::EarlyEnd => "body ended early",
            Fault::Timeout => "no answer in time",
            Fault::Protocol => "not HTTP",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Verdict, wire::FAULTS};

    const ALL: [Fault; 9] = [
        Fault::Resolve,
        Fault::Connect,
        Fault::Handshake,
        Fault::Untrusted,
        Fault::Refused,
        Fault::Reset,
        Fault::EarlyEnd,
        Fault::Timeout,
        Fault::Protocol,
    ];

    #[test]
    fn each_fault_has_one_row() {
        assert_eq!(FAULTS.len(), ALL.len());
        for fault in ALL {
            assert_eq!(fault.row().fault, fault);
        }
    }

    #[test]
    fn connect_errors_resets_and_timeouts_are_transient() {
        for fault in [Fault::Connect, Fault::Reset, Fault::EarlyEnd, Fault::Timeout, Fault::Refused] {
            assert_eq!(fault.verdict(), Verdict::Transient, "{fault}");
        }
        assert_eq!(Fault::Untrusted.verdict(), Verdict::Permanent);
    }

    #[test]
    fn errors_of_connections_are_told_apart() {
        for (kind, fault) in [
            (io::ErrorKind::ConnectionRefused, Fault::Connect),
            (io::ErrorKind::ConnectionReset, Fault::Reset),
            (io::ErrorKind::ConnectionAborted, Fault::Reset),
            (io::ErrorKind::BrokenPipe, Fault::Reset),
            (io::ErrorKind::UnexpectedEof, Fault::EarlyEnd),
            (io::ErrorKind::TimedOut, Fault::Timeout),
            (io::ErrorKind::InvalidData, Fault::Protocol),
        ] {
            assert_eq!(Fault::of_io(&io::Error::from(kind)), fault, "{kind:?}");
        }
    }
}
