//! The judgement on HTTP failures as tables, one row a case, each with its source. Everything else looks things up here.
//!
//! The rows say what holds when nobody says otherwise: a user's rules ([`Rules`](super::Rules)) and a server's word
//! ([`pushback`](super::pushback)) come first.

use super::Fault;
use crate::Verdict;

/// What the statuses from `first` to `last` mean.
///
/// ```
/// use relent::{Verdict, wire::STATUSES};
///
/// let row = STATUSES.iter().find(|row| (row.first..=row.last).contains(&429)).unwrap();
/// assert_eq!(row.verdict, Verdict::Transient);
/// assert!(row.source.starts_with("RFC 6585"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusRow {
    /// The first status of the row.
    pub first: u16,
    /// The last status of the row, included.
    pub last: u16,
    /// What they mean.
    pub verdict: Verdict,
    /// Where that is said, and why it follows.
    pub source: &'static str,
}

const fn status(first: u16, last: u16, verdict: Verdict, source: &'static str) -> StatusRow {
    StatusRow { first, last, verdict, source }
}

/// The verdicts on statuses of 400 and more; the first row that has the status counts. Less than 400 is no failure.
#[rustfmt::skip]
pub const STATUSES: &[StatusRow] = &[
    status(408, 408, Verdict::Transient, "RFC 9110 15.5.9: the client MAY repeat the request on a new connection"),
    status(409, 409, Verdict::Permanent, "RFC 9110 15.5.10: for the user to resolve first; retried if the user says so"),
    status(423, 423, Verdict::Permanent, "RFC 4918 11.3: locked, for as long as somebody likes; retried if the user says so"),
    status(425, 425, Verdict::Transient, "RFC 8470 5.2: sent too early; the client retries without early data"),
    status(429, 429, Verdict::Transient, "RFC 6585 4: too many requests in a given time; Retry-After may say how long"),
    status(400, 499, Verdict::Permanent, "RFC 9110 15.5: the client seems to have erred; the same request errs again"),
    status(501, 501, Verdict::Permanent, "RFC 9110 15.6.2: the server does not support what is needed"),
    status(505, 505, Verdict::Permanent, "RFC 9110 15.6.6: the server refuses the major version of HTTP"),
    status(500, 599, Verdict::Transient, "RFC 9110 15.6: the server is aware that it has erred"),
    status(600, 999, Verdict::Transient, "RFC 9110 15: a status outside 100..599 is processed as a 5xx"),
];

/// Whether requests with a method have the same effect when sent twice.
///
/// ```
/// use relent::wire::METHODS;
///
/// let row = METHODS.iter().find(|row| row.method == "PATCH").unwrap();
/// assert!(!row.idempotent && row.source.starts_with("RFC 5789"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodRow {
    /// The method, in capitals: methods are case-sensitive.
    pub method: &'static str,
    /// Whether it is idempotent.
    pub idempotent: bool,
    /// Where that is said.
    pub source: &'static str,
}

const fn method(method: &'static str, idempotent: bool, source: &'static str) -> MethodRow {
    MethodRow { method, idempotent, source }
}

/// Which methods are idempotent. A method without a row is taken as not idempotent.
#[rustfmt::skip]
pub const METHODS: &[MethodRow] = &[
    method("GET", true, "RFC 9110 9.2.1, 9.2.2: safe, so idempotent"),
    method("HEAD", true, "RFC 9110 9.2.1, 9.2.2: safe, so idempotent"),
    method("OPTIONS", true, "RFC 9110 9.2.1, 9.2.2: safe, so idempotent"),
    method("TRACE", true, "RFC 9110 9.2.1, 9.2.2: safe, so idempotent"),
    method("PUT", true, "RFC 9110 9.2.2"),
    method("DELETE", true, "RFC 9110 9.2.2"),
    method("POST", false, "RFC 9110 9.2.2: a client SHOULD NOT retry it unless it knows better"),
    method("PATCH", false, "RFC 5789 2: neither safe nor idempotent"),
    method("CONNECT", false, "RFC 9110 18.2: neither safe nor idempotent"),
    method("LOCK", false, "RFC 4918 9.10: neither safe nor idempotent"),
    method("PROPFIND", true, "RFC 4918 9.1"),
    method("PROPPATCH", true, "RFC 4918 9.2"),
    method("MKCOL", true, "RFC 4918 9.3"),
    method("COPY", true, "RFC 4918 9.8"),
    method("MOVE", true, "RFC 4918 9.9"),
    method("UNLOCK", true, "RFC 4918 9.11"),
    method("REPORT", true, "RFC 3253 3.6: safe"),
    method("SEARCH", true, "RFC 5323 2: safe"),
    method("QUERY", true, "The HTTP QUERY Method (draft-ietf-httpbis-safe-method-w-body) 2: safe and idempotent"),
];

/// What a failure without a response means.
///
/// ```
/// use relent::wire::{FAULTS, Fault};
///
/// let never_left: Vec<Fault> = FAULTS.iter().filter(|row| !row.left).map(|row| row.fault).collect();
/// assert!(never_left.contains(&Fault::Connect) && !never_left.contains(&Fault::Timeout));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultRow {
    /// What failed.
    pub fault: Fault,
    /// What it means.
    pub verdict: Verdict,
    /// Whether the request may have reached the server. If not, every method may be sent again.
    pub left: bool,
    /// Where that is said, and why it follows.
    pub source: &'static str,
}

const fn fault(fault: Fault, verdict: Verdict, left: bool, source: &'static str) -> FaultRow {
    FaultRow { fault, verdict, left, source }
}

/// The verdicts on failures without a (whole) response, one row for each [`Fault`].
#[rustfmt::skip]
pub const FAULTS: &[FaultRow] = &[
    fault(Fault::Resolve, Verdict::Transient, false, "RFC 2308 5: a negative answer holds for its TTL only; nothing was sent"),
    fault(Fault::Connect, Verdict::Transient, false, "RFC 9293 3.10.7: refused or unreachable now; nothing was sent"),
    fault(Fault::Handshake, Verdict::Permanent, false, "RFC 8446 6.2: no common ground in TLS; nothing was sent"),
    fault(Fault::Untrusted, Verdict::Permanent, false, "RFC 9110 4.3.4: a client MUST NOT go on with a certificate it does not trust"),
    fault(Fault::Refused, Verdict::Transient, false, "RFC 9113 8.7: REFUSED_STREAM, or above GOAWAY's last stream: not processed"),
    fault(Fault::Reset, Verdict::Transient, true, "RFC 9110 9.2.2: the connection closed before the response was read"),
    fault(Fault::EarlyEnd, Verdict::Transient, true, "RFC 9112 8: the response is incomplete"),
    fault(Fault::Timeout, Verdict::Transient, true, "RFC 9110 9.2.2: no answer in time says nothing about what was done"),
    fault(Fault::Protocol, Verdict::Permanent, true, "RFC 9112 2.2, RFC 9113 5.4: the server does not speak the protocol"),
];

/// What the table says of a fault.
impl Fault {
    /// What it means.
    ///
    /// ```
    /// # use relent::{Verdict, wire::Fault};
    /// assert_eq!(Fault::Reset.verdict(), Verdict::Transient);
    /// assert_eq!(Fault::Untrusted.verdict(), Verdict::Permanent);
    /// ```
    pub fn verdict(self) -> Verdict {
        self.row().verdict
    }

    /// Whether the request may have reached the server.
    ///
    /// ```
    /// # use relent::wire::Fault;
    /// assert!(Fault::Reset.left(), "nobody knows whether it was carried out");
    /// assert!(!Fault::Connect.left());
    /// ```
    pub fn left(self) -> bool {
        self.row().left
    }

    /// Its row of the table.
    ///
    /// ```
    /// # use relent::wire::Fault;
    /// assert!(Fault::Refused.row().source.starts_with("RFC 9113"));
    /// ```
    pub fn row(self) -> &'static FaultRow {
        FAULTS.iter().find(|row| row.fault == self).expect("each fault has a row: a test counts them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failing_status_has_a_row_and_every_row_a_use() {
        let row = |status: u16| STATUSES.iter().position(|row| (row.first..=row.last).contains(&status));
        let mut used: Vec<usize> = (400..1000).map(|status| row(status).expect("a row")).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), STATUSES.len(), "a row that no status reaches");
        assert_eq!(row(399), None);
    }

    #[test]
    fn methods_have_one_row_each() {
        let mut names: Vec<_> = METHODS.iter().map(|row| row.method).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn every_row_names_its_source() {
        let sources = STATUSES.iter().map(|row| row.source);
        let sources = sources.chain(METHODS.iter().map(|row| row.source)).chain(FAULTS.iter().map(|row| row.source));
        for source in sources {
            assert!(source.starts_with("RFC ") || source.contains("draft-"), "{source}");
        }
    }
}
