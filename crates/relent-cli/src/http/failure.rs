//! What went wrong in an attempt: the client's error told apart into the faults that `relent::wire` judges.

use super::{
    exchange::{MOST_HEADER_BYTES, Unanswered},
    idle::Patience,
    proxy::{self, Proxies},
    resolve::Unresolved,
    word::{Word, told},
};
use crate::{
    escape::escape,
    redact,
    talk::{Fault as Ours, plain},
    tls_words,
};
use http::StatusCode;
use relent::{Outcome, Verdict, duration::Human, wire::Fault};
use relent_tls::Flaw;
use std::{error::Error, io, time::Duration};
use url::Url;

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    /// What happened, for people.
    pub(super) text: String,
    /// What it means.
    pub(super) verdict: Verdict,
    /// Whether the request may have reached the server.
    pub(super) left: bool,
    /// What to do about it, where there is something special.
    pub(super) hint: Option<String>,
    /// The header that told to wait, or not to come back.
    pub(super) told: Option<String>,
    /// The status, if there was a response.
    pub(super) status: Option<StatusCode>,
    /// The response, whose body may be asked for.
    pub(super) response: Option<reqwest::Response>,
    /// Whether the attempt was given up at its timeout.
    pub(super) timed_out: bool,
}

/// How an attempt can end without success.
pub(super) enum Broken {
    /// The far side, or the way to it, failed.
    Failed(Box<Failure>),
    /// Our side failed: another attempt would fail the same way.
    Ours(Ours),
}

impl From<Ours> for Broken {
    fn from(fault: Ours) -> Broken {
        Broken::Ours(fault)
    }
}

impl Broken {
    /// Judged by this as well: of a failure the strictest word counts.
    pub(super) fn judged_by<'a>(mut self, words: impl IntoIterator<Item = &'a Word>) -> Broken {
        if let Broken::Failed(failure) = &mut self {
            words.into_iter().for_each(|word| failure.judge_by(word));
        }
        self
    }
}

impl Failure {
    /// A failure without a response. One that is made while there is one is judged by its head where the attempt ends.
    pub(super) fn of(fault: Fault, text: String) -> Failure {
        Failure {
            text,
            verdict: fault.verdict(),
            left: fault.left(),
            hint: hint(fault),
            told: None,
            status: None,
            response: None,
            timed_out: false,
        }
    }

    /// The upstream let nothing through, and there was no attempt.
    pub(super) fn not_sent(why: String) -> Failure {
        Failure { left: false, hint: None, ..Failure::of(Fault::Connect, why) }
    }

    /// As a reason for a retry, of which the response is not asked any more.
    pub(super) fn without_response(self) -> Failure {
        Failure { response: None, ..self }
    }

    /// What it says of trying again, now.
    pub(super) fn word(&self) -> Word {
        Word::said(self.verdict, self.told.clone())
    }

    fn judge_by(&mut self, word: &Word) {
        let verdict = self.verdict.stricter(word.verdict());
        if verdict != self.verdict {
            (self.verdict, self.told) = (verdict, word.told().map(str::to_owned));
        }
    }

    /// What an upstream is told of it.
    pub(super) fn outcome(&self) -> Outcome {
        if self.timed_out { Outcome::TimedOut } else { Outcome::Failure(self.verdict) }
    }

    /// With what to do about it.
    pub(super) fn hint(self, hint: &str) -> Failure {
        Failure { hint: Some(hint.to_owned()), ..self }
    }

    /// A response that is a failure.
    pub(super) fn status(response: reqwest::Response, verdict: Verdict, now: Duration) -> Failure {
        let status = response.status();
        Failure {
            text: status_text(status),
            verdict,
            left: true,
            hint: status_hint(status).filter(|_| verdict == Verdict::Permanent),
            told: told(response.headers(), verdict, now),
            status: Some(status),
            response: Some(response),
            timed_out: false,
        }
    }
}

/// What led to where a request goes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Led {
    pub(super) by_a_redirect: bool,
    pub(super) by_a_secret: bool,
}

/// The way that a request took, and how far it came.
pub(super) struct Way<'a> {
    /// Where the request was to go.
    pub(super) url: &'a Url,
    /// What led there.
    pub(super) led: Led,
    /// A connection was made.
    pub(super) connected: bool,
    /// The server had not greeted, and nothing was asked.
    pub(super) is_unasked: bool,
    /// HTTP/2 is spoken without having been agreed on.
    pub(super) http2_alone: bool,
    /// The proxies that may stand on it.
    pub(super) proxies: &'a Proxies,
}

impl Way<'_> {
    /// What was connected to, the proxy included.
    fn shown(&self) -> String {
        match self.proxies.to(self.url) {
            Ok(Some(proxy)) => format!("{} through the proxy {}", self.authority(), proxy::shown(proxy)),
            _ => self.authority(),
        }
    }

    fn authority(&self) -> String {
        if self.led.by_a_secret { redact::HIDDEN.to_owned() } else { authority(self.url) }
    }

    /// With whom TLS was to be spoken: where the server does not speak it, with the proxy; where both do, the client does not say with which.
    fn speaks_tls(&self) -> String {
        match self.proxies.to(self.url) {
            Ok(Some(proxy)) if self.url.scheme() == "http" => format!("the proxy {}", proxy::shown(proxy)),
            Ok(Some(proxy)) if proxy.scheme() == "https" => {
                format!("{} or the proxy {}", self.authority(), proxy::shown(proxy))
            }
            _ => self.shown(),
        }
    }

    /// Whether a failure may have come after the request was sent. What a redirect led away from was sent before.
    fn finish(&self, mut failure: Failure, was_refused: bool) -> Broken {
        failure.left = !self.is_unasked && (failure.left || self.connected && !was_refused) || self.led.by_a_redirect;
        Broken::Failed(Box::new(failure))
    }
}

/// The client's error before the response's head was there.
pub(super) fn before_head(error: &Unanswered, way: &Way<'_>) -> Broken {
    let (fault, mut failure) = fault_before_head(error, way);
    let is_unsent = matches!(error, Unanswered::Unsent(_));
    failure.left &= !is_unsent;
    way.finish(failure, fault == Fault::Refused || is_unsent)
}

/// The attempt took longer than it may.
pub(super) fn late(limit: Duration, way: &Way<'_>) -> Broken {
    let limit = Human(limit);
    let failure = match way.connected {
        true => Failure::of(Fault::Timeout, format!("no answer within {limit:.1}")),
        false => Failure::of(Fault::Connect, format!("no connection to {} within {limit:.1}", way.shown())),
    };
    way.finish(Failure { timed_out: true, ..failure }, false)
}

/// The request could not be sent for want of something of our own, which may be there next time.
pub(super) fn not_sent(why: String, way: &Way<'_>) -> Broken {
    way.finish(Failure::not_sent(why), true)
}

/// No head of an answer came for too long, whatever else did.
pub(super) fn silent(patience: Patience, way: &Way<'_>) -> Broken {
    let (fault, what) = match way.connected {
        true => (Fault::Timeout, "no head of an answer"),
        false => (Fault::Connect, "nothing"),
    };
    let failure = Failure::of(fault, format!("{what} came from {} {}", way.shown(), patience.shown()));
    way.finish(failure.hint(PATIENCE_HINT), false)
}

/// The head of an answer has more in it than is looked at.
pub(super) fn too_large(way: &Way<'_>) -> Broken {
    let text = format!("the head of the answer is too large: it has more than {} KiB", MOST_HEADER_BYTES >> 10);
    way.finish(Failure::of(Fault::Protocol, text), false)
}

/// Nothing more of the body came for too long.
pub(super) fn stalled(have: u64, total: Option<u64>, patience: Patience) -> Broken {
    let text = format!("nothing more of the body came {}, after {}", patience.shown(), progress(have, total));
    Broken::Failed(Box::new(Failure::of(Fault::EarlyEnd, text).hint(PATIENCE_HINT)))
}

const PROXY_USER_HINT: &str = "--proxy-user USER:PASSWORD, if the proxy wants one";
const PATIENCE_HINT: &str = "--idle-timeout gives it more time, or unlimited";

fn fault_before_head(error: &Unanswered, way: &Way<'_>) -> (Fault, Failure) {
    if let Some(Unresolved(name)) = find(error) {
        let (of_whom, name) = match way.url.host_str() == Some(name) {
            true if way.led.by_a_secret => ("host", redact::HIDDEN.into()),
            true => ("host", escape(name)),
            false => ("the proxy's host", escape(name)),
        };
        of(Fault::Resolve, format!("cannot find {of_whom} {name}"))
    } else if let Some(tls) = find::<rustls::Error>(error) {
        of_tls(tls, &way.speaks_tls())
    } else if let Unanswered::Unconnected(error) = error {
        let why = if error.is_timeout() { "out of time".into() } else { innermost(error) };
        let said = proxy::Said::of(&why);
        let (fault, failure) = of(Fault::Connect, format!("cannot connect to {}: {}", way.shown(), said.words));
        match said.wants_user {
            true => {
                let failure = failure.hint(PROXY_USER_HINT);
                (fault, Failure { verdict: Verdict::Permanent, ..failure })
            }
            false => (fault, failure),
        }
    } else {
        of_connection(error, way)
    }
}

fn of(fault: Fault, text: String) -> (Fault, Failure) {
    (fault, Failure::of(fault, text))
}

/// The host and port of a URL.
pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// The client's error while the body was read, of which `have` bytes were there.
pub(super) fn in_body(error: &reqwest::Error, have: u64, total: Option<u64>) -> Broken {
    let undecodable = error.is_decode() && find::<hyper::Error>(error).is_none();
    let truncated = find::<io::Error>(error).is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    let failure = if error.is_timeout() {
        Failure::of(Fault::Timeout, "no more of the body in time".into())
    } else if undecodable && !truncated {
        Failure::of(Fault::Protocol, format!("the body cannot be decoded: {}", innermost(error)))
    } else if is_nonsense(error) {
        Failure::of(Fault::Protocol, format!("the body is not HTTP: {}", innermost(error)))
    } else {
        early_end(have, total)
    };
    Broken::Failed(Box::new(failure))
}

/// Whether the pieces of a body do not say how long they are.
fn is_nonsense(error: &reqwest::Error) -> bool {
    let is_bad = |error: &io::Error| matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData);
    find::<hyper::Error>(error).is_some() && find::<io::Error>(error).is_some_and(is_bad)
}

/// The body ended before it was complete.
pub(super) fn early_end(have: u64, total: Option<u64>) -> Failure {
    Failure::of(Fault::EarlyEnd, format!("the body ended early, after {}", progress(have, total)))
}

fn progress(have: u64, total: Option<u64>) -> String {
    match total {
        Some(total) => format!("{have} of {total} bytes"),
        None => format!("{have} bytes"),
    }
}

/// The status as people know it: `503 Service Unavailable`.
pub(super) fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => format!("status {}", status.as_u16()),
    }
}

/// The words of the cause at the bottom, without anything secret or that a terminal obeys.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let text = match chain(error).last() {
        Some(last) => match last.downcast_ref::<io::Error>() {
            Some(io) => plain(io),
            None => last.to_string(),
        },
        None => error.to_string(),
    };
    // A library's own words end with an address of its own.
    let text = if text.contains("close_notify") { "it ended without the goodbye of TLS".to_owned() } else { text };
    escape(&redact::text(&text)).into_owned()
}

/// A connection that was made, and failed.
fn of_connection(error: &Unanswered, way: &Way<'_>) -> (Fault, Failure) {
    if let Some(h2) = find::<h2::Error>(error) {
        if h2.is_library() && matches!(h2.reason(), Some(h2::Reason::FRAME_SIZE_ERROR | h2::Reason::PROTOCOL_ERROR)) {
            let (fault, failure) = of(Fault::Protocol, format!("the answer is not HTTP/2: {}", reason(h2)));
            return (fault, failure.hint(HTTP1_HINT));
        }
        // Of a stream that was looked at is said how the connection ended, and never that it was GOAWAY.
        let refused = h2.reason() == Some(h2::Reason::REFUSED_STREAM) || (h2.is_go_away() && h2.is_remote());
        let fault = if refused { Fault::Refused } else { Fault::Reset };
        return of(fault, format!("the server ended the stream: {}", reason(h2)));
    }
    if find::<hyper::Error>(error).is_some_and(hyper::Error::is_parse) {
        return of(Fault::Protocol, format!("the answer is not HTTP: {}", innermost(error)));
    }
    match find::<io::Error>(error) {
        Some(io) if io.kind() == io::ErrorKind::InvalidData => {
            let (fault, failure) = of(Fault::Protocol, format!("the answer is not HTTP/2: {}", plain(io)));
            (fault, failure.hint(HTTP1_HINT))
        }
        Some(io) if Fault::of_io(io) == Fault::Timeout => of(Fault::Timeout, "no answer in time".into()),
        Some(_) => of(Fault::Reset, format!("the connection broke before the answer: {}", innermost(error))),
        // What does not understand the greeting of HTTP/2 may be known by its answer to it, or gone before the request was sent.
        None if way.http2_alone => {
            let (fault, failure) = of(Fault::Reset, CLOSED.into());
            (fault, failure.hint(HTTP1_HINT))
        }
        None => of(Fault::Reset, CLOSED.into()),
    }
}

const CLOSED: &str = "the connection was closed before the answer";
const HTTP1_HINT: &str = "--http1.1 speaks the older version";

fn reason(error: &h2::Error) -> String {
    error.reason().map_or_else(|| error.to_string(), |reason| reason.description().to_owned())
}

fn of_tls(error: &rustls::Error, authority: &str) -> (Fault, Failure) {
    match error {
        rustls::Error::InvalidCertificate(why) => {
            let (words, hint) = certificate(why);
            let text = format!("the certificate of {authority} is not trusted: {words}");
            (Fault::Untrusted, Failure::of(Fault::Untrusted, text).hint(hint))
        }
        rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
            let (fault, failure) = of(Fault::Handshake, format!("{authority} does not speak TLS"));
            (fault, failure.hint("try http://"))
        }
        other => of(Fault::Handshake, format!("no TLS with {authority}: {}", tls_words::of(other))),
    }
}

/// What is wrong with a certificate, and what to do about it.
fn certificate(error: &rustls::CertificateError) -> (String, &'static str) {
    use rustls::CertificateError as Bad;
    const AUTHORITY: &str = "--cacert FILE trusts a private certificate authority";
    const CLOCK: &str = "look at the clock of this machine, and at the certificate";
    const NAME: &str = "ask for a name that the certificate has; --resolve says where that host is";
    const ITSELF: &str =
        "--cacert FILE trusts what is in FILE; openssl makes one of version 3 with -addext or -extfile";
    const ANY: &str = "-k trusts any certificate, whoever is in between";
    if let Some(flaw) = Flaw::of(error) {
        let hint = match flaw {
            Flaw::Authoritys | Flaw::Signers => AUTHORITY,
            Flaw::Version1 => ITSELF,
            Flaw::TooMany => ANY,
        };
        return (flaw.to_string(), hint);
    }
    match error {
        Bad::UnknownIssuer => ("its issuer is unknown".into(), AUTHORITY),
        Bad::Expired | Bad::ExpiredContext { .. } => ("it has expired".into(), CLOCK),
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => ("it is not valid yet".into(), CLOCK),
        Bad::NotValidForName => ("it is for another name".into(), NAME),
        Bad::NotValidForNameContext { presented, .. } => (for_names(presented), NAME),
        Bad::BadSignature => ("it is not signed by the authority it names".into(), AUTHORITY),
        Bad::Revoked => ("it has been revoked".into(), ANY),
        Bad::Other(other) => (tls_words::name(&format!("{:?}", other.0)), ANY),
        other => (tls_words::name(&format!("{other:?}")), ANY),
    }
}

fn for_names(presented: &[String]) -> String {
    const MOST: usize = 3;
    // As in `DnsName("example.com")`.
    let name = |name: &String| {
        let inside = name.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"'));
        inside.map_or(name.as_str(), |(name, _)| name).to_owned()
    };
    let names: Vec<String> = presented.iter().take(MOST).map(name).collect();
    let more = if presented.len() > MOST { ", ..." } else { "" };
    match names.as_slice() {
        [] => "it is for no name".into(),
        names => format!("it is for another name, {}{more}", escape(&names.join(", "))),
    }
}

fn hint(fault: Fault) -> Option<String> {
    let hint = match fault {
        Fault::Resolve => "check the name; it was looked up anew in each attempt",
        _ => return None,
    };
    Some(hint.into())
}

fn status_hint(status: StatusCode) -> Option<String> {
    match status {
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => Some(PROXY_USER_HINT.into()),
        StatusCode::CONFLICT | StatusCode::LOCKED => Some(format!("--retry-on-status {} retries it", status.as_u16())),
        _ => None,
    }
}

/// The errors from the outermost to the innermost. What an `io::Error` wraps is looked into as well.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

/// The innermost error of this type.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).filter_map(|error| error.downcast_ref()).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_without_a_name_have_a_number() {
        assert_eq!(status_text(StatusCode::BAD_GATEWAY), "502 Bad Gateway");
        assert_eq!(status_text(StatusCode::from_u16(599).unwrap()), "status 599");
    }

    #[test]
    fn the_words_of_a_library_are_not_told() {
        let text = "peer closed connection without sending TLS close_notify: https://docs.rs/";
        let error = io::Error::new(io::ErrorKind::UnexpectedEof, text);
        assert_eq!(innermost(&error), "it ended without the goodbye of TLS");
    }

    #[test]
    fn wrapped_errors_are_found() {
        let inner = io::Error::other(rustls::Error::HandshakeNotComplete);
        let outer = io::Error::other(inner);
        assert!(find::<rustls::Error>(&outer).is_some());
        assert_eq!(plain(&io::Error::from_raw_os_error(111)), "Connection refused");
    }
}
