//! What a server says to a client whom it does not serve now: one answer that every kind of client understands.

use super::{RELENT_RETRY, RELENT_TURN};
use crate::{Admit, Scope, Turn};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use std::time::Duration;

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const ENVOY_OVERLOADED: HeaderName = HeaderName::from_static("x-envoy-overloaded");
pub(crate) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
pub(crate) const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
pub(crate) const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");
/// gRPC's codes: what may be retried, and what is not by anybody who goes by the code alone.
const RESOURCE_EXHAUSTED: HeaderValue = HeaderValue::from_static("8");
const UNAVAILABLE: HeaderValue = HeaderValue::from_static("14");

/// Room for all headers of a refusal and for what hyper adds, so that there is one allocation for the table.
const HEADERS: usize = 8;

/// The whole answer of a server that refuses a request, without a body. `None` if it does not refuse.
///
/// The status is for those between who repeat requests by the status alone, and know nothing of the rest. Proxies answer
/// a 503 by trying another host, and pass a 429 on. So it is 503 where `scope` is this host, and 429 where it is the
/// service, of which another host has no more room than this one. An [`Admit::Overloaded`] has a scope of its own.
///
/// The headers are for the clients: `Retry-After` in whole seconds, rounded up, and `Retry-After-Ms`; `Relent-Turn` for a
/// turn; or else `Relent-Retry: no`, `X-Should-Retry: false` and, for a service, `X-Envoy-Overloaded: true`.
///
/// If `asked`, the request's headers, are those of gRPC, it is a 200 with the gRPC status in its head ("trailers-only"):
/// `UNAVAILABLE` with a pushback, or, where a service is not to be asked again, `RESOURCE_EXHAUSTED` with "never".
///
/// ```
/// use relent::{Admit, Scope, wire};
/// use std::time::Duration;
///
/// let turn = Admit::Turn(Duration::from_micros(1_200_500));
/// let answer = wire::refusal(turn, Scope::Service, &http::HeaderMap::new()).unwrap();
/// assert_eq!(answer.status(), 429);
/// assert_eq!(answer.headers()["retry-after"], "2");
/// assert_eq!(answer.headers()["relent-turn"], "1201");
///
/// let never = wire::refusal(Admit::Overloaded(Scope::Host), Scope::Host, &http::HeaderMap::new()).unwrap();
/// assert_eq!(never.status(), 503);
/// assert_eq!(never.headers()["relent-retry"], "no");
/// ```
pub fn refusal(answer: Admit, scope: Scope, asked: &HeaderMap) -> Option<Response<()>> {
    let (scope, wait, message) = match answer {
        Admit::Accept => return None,
        Admit::Shed(wait) => (scope, Some(wait), "no room now: come back later"),
        Admit::Turn(wait) => (scope, Some(wait), "no room now: come back at your turn"),
        Admit::Overloaded(scope) => (scope, None, "overloaded: do not retry"),
    };
    let mut headers = HeaderMap::with_capacity(HEADERS);
    match wait {
        Some(wait) => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(Turn::In(wait).seconds().unwrap_or(1)));
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(millis(wait)));
        }
        None => {
            headers.insert(RELENT_RETRY, HeaderValue::from_static("no"));
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
    }
    if let Admit::Turn(wait) = answer {
        headers.insert(RELENT_TURN, HeaderValue::from(millis(wait)));
    }
    let is_last = wait.is_none() && scope == Scope::Service;
    if is_last {
        headers.insert(ENVOY_OVERLOADED, HeaderValue::from_static("true"));
    }
    let status = match asked.get(header::CONTENT_TYPE).filter(|kind| is_grpc(kind)) {
        Some(kind) => {
            headers.insert(header::CONTENT_TYPE, kind.clone());
            headers.insert(GRPC_STATUS, if is_last { RESOURCE_EXHAUSTED } else { UNAVAILABLE });
            headers.insert(GRPC_MESSAGE, HeaderValue::from_static(message));
            headers.insert(GRPC_PUSHBACK, grpc_pushback(wait));
            StatusCode::OK
        }
        None if scope == Scope::Service => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = Response::new(());
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    Some(response)
}

fn is_grpc(kind: &HeaderValue) -> bool {
    kind.as_bytes().starts_with(b"application/grpc")
}

fn millis(wait: Duration) -> u64 {
    Turn::In(wait).millis().unwrap_or(u64::MAX)
}

/// What gRPC's 32 bits cannot hold is "never": less would be a broken promise.
pub(crate) fn grpc_pushback(wait: Option<Duration>) -> HeaderValue {
    match wait.map(millis) {
        Some(wait) if wait <= i32::MAX as u64 => HeaderValue::from(wait),
        _ => HeaderValue::from_static("-1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Verdict,
        wire::{DIALECTS, Pushback, pushback, verdict},
    };
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(1_790_000_000);

    fn grpc() -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc+proto"))])
    }

    #[test]
    fn whoever_is_taken_is_not_refused() {
        assert!(refusal(Admit::Accept, Scope::Service, &HeaderMap::new()).is_none());
    }

    #[test]
    fn a_proxy_tries_another_host_but_not_another_service() {
        let status = |answer, scope| refusal(answer, scope, &HeaderMap::new()).unwrap().status().as_u16();
        let shed = Admit::Shed(Duration::from_secs(1));
        assert_eq!((status(shed, Scope::Host), status(shed, Scope::Service)), (503, 429));
        assert_eq!(status(Admit::Overloaded(Scope::Service), Scope::Host), 429, "its own scope counts");
        let envoy = |scope| refusal(Admit::Overloaded(scope), scope, &HeaderMap::new()).unwrap().headers().clone();
        assert!(envoy(Scope::Service).contains_key("x-envoy-overloaded"));
        assert!(!envoy(Scope::Host).contains_key("x-envoy-overloaded"), "Envoy would not try another host");
    }

    #[test]
    fn grpc_has_a_status_of_its_own() {
        let answer = |answer| {
            let answer = refusal(answer, Scope::Service, &grpc()).unwrap();
            assert_eq!((answer.status(), &answer.headers()["content-type"]), (StatusCode::OK, &grpc()["content-type"]));
            let text = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
            (text("grpc-status"), text("grpc-retry-pushback-ms"))
        };
        let some = |status: &str, pushback: &str| (status.to_owned(), pushback.to_owned());
        assert_eq!(answer(Admit::Turn(Duration::from_millis(30))), some("14", "30"));
        assert_eq!(answer(Admit::Shed(Duration::from_secs(u64::MAX))), some("14", "-1"));
        assert_eq!(answer(Admit::Overloaded(Scope::Service)), some("8", "-1"));
        assert_eq!(answer(Admit::Overloaded(Scope::Host)), some("14", "-1"));
    }

    /// The table of dialects says how each header is written; here they are written without its strings.
    #[test]
    fn every_header_is_written_as_the_table_says() {
        for wait in [0, 1, 999, 1_000, 1_001, 1_500_000, 60_000_000, 3_600_000_000].map(Duration::from_micros) {
            for (answer, meant) in [
                (Admit::Shed(wait), [Some(Pushback::NotBefore(wait)), None]),
                (Admit::Turn(wait), [Some(Pushback::NotBefore(wait)), Some(Pushback::Turn(wait))]),
                (Admit::Overloaded(Scope::Service), [Some(Pushback::Never), None]),
            ] {
                let answer = refusal(answer, Scope::Service, &grpc()).unwrap();
                for dialect in DIALECTS {
                    let Some(value) = answer.headers().get(dialect.name) else { continue };
                    let written: Vec<_> = meant.iter().flatten().filter_map(|meant| dialect.write(*meant)).collect();
                    let at_least_one = dialect.name == "retry-after" && wait.is_zero() && value == "1";
                    assert!(written.contains(value) || at_least_one, "{}: {value:?}, not {written:?}", dialect.name);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_client_reads_what_was_meant(micros in 0..100_000_000_000u64, service: bool, turn: bool) {
            let wait = Duration::from_micros(micros);
            let scope = if service { Scope::Service } else { Scope::Host };
            let answer = refusal(if turn { Admit::Turn(wait) } else { Admit::Shed(wait) }, scope, &HeaderMap::new()).unwrap();
            let read = verdict(answer.status(), answer.headers(), NOW);
            match read {
                Some(Verdict::Turn(read)) if turn => prop_assert_eq!(read, Duration::from_millis(micros.div_ceil(1000))),
                Some(Verdict::After(read)) if !turn => prop_assert!(read >= wait && read < wait + Duration::from_millis(1001)),
                other => prop_assert!(false, "{:?}", other),
            }
            let never = refusal(Admit::Overloaded(scope), scope, &HeaderMap::new()).unwrap();
            prop_assert_eq!(verdict(never.status(), never.headers(), NOW), Some(Verdict::Overloaded));
            prop_assert_eq!(pushback(never.headers(), NOW), Some(Pushback::Never));
        }
    }
}
