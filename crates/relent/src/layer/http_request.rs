//! `http::Request`, as hyper's, axum's and tonic's clients send it.

use super::{
    Caller, Head, Repeat, Said, Terms, TimeLeft,
    faults::{Fate, fate},
};
use crate::{
    Policy, SystemTimer, Timer, Verdict, rt,
    wire::{self, IDEMPOTENCY_KEY, Pushback, RELENT_ATTEMPT, RELENT_ATTEMPTS, RELENT_DEADLINE},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body::Body;
use std::{
    any::Any,
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

/// What became of a call, where [`record`](super::RetryLayer::record) asks for it: `relent: attempts=2; reason=budget`.
pub(crate) const RELENT: HeaderName = HeaderName::from_static("relent");

const GRPC_PREVIOUS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// An answer that is not wanted any more is read up to so many bytes, and for so long.
pub(crate) const DRAINED: usize = 64 << 10;
pub(crate) const DRAINED_FOR: Duration = Duration::from_millis(50);

/// A policy gave up on this answer: layers around the one that says so do not try it again.
#[derive(Clone, Copy, Debug)]
struct GivenUp;

/// The trailers of an answer that has a failed gRPC status in them instead of in its head.
#[derive(Clone, Debug)]
pub(crate) struct Trailers(pub(crate) HeaderMap);

impl<B, A> Repeat<http::Response<A>> for http::Request<B>
where
    B: Body + Clone + Send + 'static,
    A: Body + Send + 'static,
{
    fn again(&self) -> Option<Self> {
        let mut request = http::Request::new(self.body().clone());
        *request.method_mut() = self.method().clone();
        *request.uri_mut() = self.uri().clone();
        *request.version_mut() = self.version();
        *request.headers_mut() = copy(self.headers());
        *request.extensions_mut() = self.extensions().clone();
        Some(request)
    }

    fn is_idempotent(&self) -> bool {
        is_idempotent(self.method(), self.headers())
    }

    /// What is left of a body that has not ended is not counted, so that one that grows as it is sent becomes too large only
    /// when it is.
    fn size(&self) -> u64 {
        self.body().size_hint().lower()
    }

    fn is_whole(&self) -> bool {
        self.body().size_hint().exact().is_some()
    }

    fn is_refused_by_answers(&self) -> bool {
        is_grpc(self.headers())
    }

    fn policy(&self, terms: &Terms) -> Option<Policy> {
        terms.policy_for(&Head::new(self.method(), self.uri().path(), self.headers()))
    }

    fn time_left(&self) -> Option<TimeLeft> {
        time_left(self.extensions().get(), self.headers())
    }

    fn announce(&mut self, said: &Said) {
        announce(self.headers_mut(), said);
    }

    fn verdict(answer: &http::Response<A>, terms: &Terms) -> Option<Verdict> {
        verdict(answer.status(), answer.headers(), answer.extensions(), terms)
    }

    fn status(answer: &http::Response<A>) -> Option<StatusCode> {
        Some(answer.status())
    }

    fn fate(error: &dyn Any, terms: &Terms) -> Option<Fate> {
        fate(error, terms)
    }

    fn record(answer: &mut http::Response<A>, record: &str) {
        write_record(answer.headers_mut(), record);
    }

    fn give_up(answer: &mut http::Response<A>) {
        mark(answer.extensions_mut());
    }

    fn drain(answer: http::Response<A>) -> impl Future<Output = ()> + Send {
        drain(answer.into_body())
    }

    fn recycle(self) {
        let (head, _) = self.into_parts();
        put_back(head.headers);
    }
}

thread_local! {
    /// The headers of a copy that was not needed, for the next: a call that succeeds allocates nothing for its copy.
    static SPARE: Cell<Option<HeaderMap>> = const { Cell::new(None) };
}

/// More room than this is not kept.
const MOST_SPARE: usize = 128;

/// A copy of headers: names and values are shared, not copied.
fn copy(headers: &HeaderMap) -> HeaderMap {
    if headers.is_empty() {
        return HeaderMap::new();
    }
    let Some(mut copy) = SPARE.take() else { return headers.clone() };
    for (name, value) in headers {
        copy.append(name.clone(), value.clone());
    }
    copy
}

fn put_back(mut headers: HeaderMap) {
    if (1..=MOST_SPARE).contains(&headers.capacity()) {
        headers.clear();
        SPARE.set(Some(headers));
    }
}

pub(crate) fn is_idempotent(method: &Method, headers: &HeaderMap) -> bool {
    wire::is_idempotent(method) || wire::has_idempotency_key(headers)
}

pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"application/grpc"))
}

#[inline]
pub(crate) fn time_left(extension: Option<&TimeLeft>, headers: &HeaderMap) -> Option<TimeLeft> {
    // Looking at all names is quicker than looking some up, while they are few.
    let is_said = |name: &HeaderName| wire::DEADLINES.iter().any(|row| row.name == name.as_str());
    let said = if headers.keys().any(is_said) { wire::deadline(headers).map(TimeLeft::new) } else { None };
    match (extension, said) {
        (Some(extension), Some(said)) => Some(said.min(*extension)),
        (extension, said) => said.or(extension.copied()),
    }
}

pub(crate) fn announce(headers: &mut HeaderMap, said: &Said) {
    // Those of callers before this one: as the request says, or the server's layer that this call is made behind.
    // Looking at all names is quicker than looking some up, while they are few.
    let is_counted = headers.keys().any(|name| wire::COUNTERS.iter().any(|row| row.name == name.as_str()));
    let own = if is_counted { wire::attempt(headers).unwrap_or(1) } else { 1 };
    let before = own.max(Caller::current().map_or(1, |caller| caller.attempt())) - 1;
    let attempt = said.attempt.saturating_add(before);
    if attempt > 1 {
        headers.insert(RELENT_ATTEMPT, wire::attempt_value(attempt));
        if is_grpc(headers) {
            headers.insert(GRPC_PREVIOUS, HeaderValue::from(attempt - 1));
        }
    }
    if let Some(left) = said.left {
        let left = wire::deadline(headers).map_or(left, |said| said.min(left));
        let is_grpc = is_grpc(headers);
        for row in wire::DEADLINES {
            let name = HeaderName::from_static(row.name);
            let is_spoken = name == RELENT_DEADLINE || (name == GRPC_TIMEOUT && is_grpc) || headers.contains_key(&name);
            if let (true, Some(value)) = (is_spoken, row.write(left)) {
                headers.insert(name, value);
            }
        }
    }
    if let Some(histogram) = &said.histogram {
        headers.insert(RELENT_ATTEMPTS, histogram.clone());
    }
    if let Some(key) = &said.key
        && !wire::has_idempotency_key(headers)
    {
        headers.insert(IDEMPOTENCY_KEY, key.clone());
    }
}

#[inline]
pub(crate) fn verdict(
    status: StatusCode,
    headers: &HeaderMap,
    extensions: &http::Extensions,
    terms: &Terms,
) -> Option<Verdict> {
    let options = terms.get();
    if !extensions.is_empty() {
        if extensions.get::<GivenUp>().is_some() && !options.retries_given_up {
            return Some(Verdict::Overloaded);
        }
        if let Some(Trailers(trailers)) = extensions.get() {
            return grpc_verdict(trailers);
        }
    }
    if headers.keys().any(|name| *name == GRPC_STATUS) {
        return grpc_verdict(headers);
    }
    // No clock is read for a success.
    if status.as_u16() < 400 && !options.rules.retry_on.contains(status.as_u16()) {
        return None;
    }
    options.rules.verdict(status, headers, rt::since_1970())
}

pub(crate) fn grpc_status(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(GRPC_STATUS).map(HeaderValue::as_bytes)
}

/// What a gRPC status means: [`UNAVAILABLE`](https://grpc.github.io/grpc/core/md_doc_statuscodes.html) is the one for which
/// clients are told to try again; `RESOURCE_EXHAUSTED` may be a quota of a day, unless the server says when it is over.
pub(crate) fn grpc_verdict(headers: &HeaderMap) -> Option<Verdict> {
    const OK: &[u8] = b"0";
    const UNAVAILABLE: &[u8] = b"14";
    const RESOURCE_EXHAUSTED: &[u8] = b"8";
    let status = grpc_status(headers)?;
    if status == OK {
        return None;
    }
    let pushback = wire::pushback(headers, rt::since_1970());
    Some(match pushback {
        Some(Pushback::Never) => Verdict::Overloaded,
        Some(Pushback::NotBefore(wait)) if matches!(status, UNAVAILABLE | RESOURCE_EXHAUSTED) => Verdict::After(wait),
        Some(Pushback::Turn(turn)) if matches!(status, UNAVAILABLE | RESOURCE_EXHAUSTED) => Verdict::Turn(turn),
        _ if status == UNAVAILABLE => Verdict::Transient,
        _ => Verdict::Permanent,
    })
}

/// A policy gave up on the answer that these belong to.
pub(crate) fn mark(extensions: &mut http::Extensions) {
    extensions.insert(GivenUp);
}

pub(crate) fn write_record(headers: &mut HeaderMap, record: &str) {
    if let Ok(value) = HeaderValue::from_str(record) {
        headers.insert(RELENT, value);
    }
}

/// Reads what little is left of a body, so that its connection can be used again.
async fn drain<B: Body>(body: B) {
    if body.is_end_stream() {
        return;
    }
    let mut body = pin!(body);
    let mut end = pin!(SystemTimer.sleep(DRAINED_FOR));
    let mut left = DRAINED;
    poll_fn(|cx| {
        while let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
            let Some(Ok(frame)) = frame else { return Poll::Ready(()) };
            let size = frame.data_ref().map_or(0, bytes::Buf::remaining);
            match left.checked_sub(size.max(1)) {
                Some(less) => left = less,
                None => return Poll::Ready(()),
            }
        }
        end.as_mut().poll(cx)
    })
    .await;
}
