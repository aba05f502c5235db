//! The request that the flags describe, checked.

use super::{args::Args, body::Body, headers};
use crate::talk::Fault;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use relent::wire::{self, IDEMPOTENCY_KEY, IdempotencyKey, Rules};
use std::hash::{BuildHasher, Hasher, RandomState};
use url::Url;

/// The request, the same in every attempt.
#[derive(Debug)]
pub(super) struct Request {
    /// The method.
    pub(super) method: Method,
    /// Where to.
    pub(super) url: Url,
    /// The headers, the idempotency key among them.
    pub(super) headers: HeaderMap,
    /// The body, if there is one.
    pub(super) body: Option<Body>,
}

impl Request {
    /// The request that the flags describe.
    pub(super) fn resolve(args: &Args) -> Result<Request, Fault> {
        let (method, url) = target(args)?;
        let mut headers = headers::resolve(&args.headers)?;
        if let Some(key) = &args.idempotency_key {
            headers.insert(IDEMPOTENCY_KEY, idempotency_key(key)?.value());
        }
        let body = Body::resolve(&args.data)?;
        if body.is_some() && !headers.contains_key(header::CONTENT_TYPE) {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        }
        Ok(Request { method, url, headers, body })
    }

    /// The URL without a password, for messages.
    pub(super) fn shown_url(&self) -> String {
        let mut url = self.url.clone();
        if url.password().is_some() {
            // A URL with a password has a host, so it can be replaced.
            let _ = url.set_password(Some("***"));
        }
        url.into()
    }
}

/// The user's rules about statuses.
pub(super) fn rules(args: &Args) -> Result<Rules, Fault> {
    let mut rules = Rules::default();
    for status in statuses("--retry-on-status", &args.retry_on_status)? {
        rules = rules.retry_on(status);
    }
    for status in statuses("--stop-on-status", &args.stop_on_status)? {
        rules = rules.stop_on(status);
    }
    Ok(rules)
}

fn statuses(flag: &str, ranges: &[String]) -> Result<Vec<StatusCode>, Fault> {
    let mut statuses = Vec::new();
    for range in ranges {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let status = |text: &str| text.trim().parse::<StatusCode>().ok().map(|status| status.as_u16());
        let (Some(first), Some(last)) = (status(first), status(last)) else {
            return Err(Fault::new(format!("{flag}: {range:?} is no status"))
                .hint("statuses are numbers from 100 to 999: 409,423 or 520-529"));
        };
        if first > last {
            return Err(
                Fault::new(format!("{flag}: {range} ends before it begins")).hint(format!("write {last}-{first}"))
            );
        }
        statuses.extend((first..=last).filter_map(|status| StatusCode::from_u16(status).ok()));
    }
    Ok(statuses)
}

fn target(args: &Args) -> Result<(Method, Url), Fault> {
    let (given, text) = match (args.target.as_slice(), &args.request) {
        ([], _) => return Err(Fault::new("no URL is given").hint("write it like relent http https://example.com/path")),
        ([url], method) => (method.as_ref(), url),
        ([method, url], None) => (Some(method), url),
        ([method, _], Some(other)) => {
            return Err(
                Fault::new(format!("two methods are given, {method} and {other}")).hint("leave out one of them")
            );
        }
        (more, _) => {
            return Err(Fault::new(format!("one URL is asked for at a time, and {} were given", more.len() - 1))
                .hint("quote a URL with spaces in it; run relent http for each of several"));
        }
    };
    let url = url(text)?;
    Ok((given.map_or_else(|| Ok(default_method(args)), |given| method(given, args))?, url))
}

fn default_method(args: &Args) -> Method {
    match args {
        Args { head: true, .. } => Method::HEAD,
        Args { data, .. } if !data.is_empty() => Method::POST,
        _ => Method::GET,
    }
}

fn method(given: &str, args: &Args) -> Result<Method, Fault> {
    let capital = given.to_ascii_uppercase();
    // Methods are case-sensitive, but nobody means another one by `post`.
    let name = if wire::METHODS.iter().any(|row| row.method == capital) { capital.as_str() } else { given };
    let method = Method::from_bytes(name.as_bytes()).map_err(|_| {
        Fault::new(format!("{given:?} is no method"))
            .hint("methods are words like GET, POST or PUT; see relent http --help")
    })?;
    if args.head && method != Method::HEAD {
        return Err(Fault::new(format!("--head asks with HEAD, not with {method}")).hint("leave out one of them"));
    }
    Ok(method)
}

const URL_HINT: &str = "write it like https://example.com/path";

fn url(text: &str) -> Result<Url, Fault> {
    if wire::METHODS.iter().any(|row| row.method == text) {
        return Err(Fault::new(format!("{text:?} is a method, and the URL is missing"))
            .hint(format!("write it like relent http {text} https://example.com/path")));
    }
    let with_scheme = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let url = Url::parse(&with_scheme).map_err(|error| match error {
        url::ParseError::InvalidPort => {
            Fault::new(format!("{text:?} has no valid port")).hint("a port is a number from 0 to 65535")
        }
        error => Fault::new(format!("{text:?} is no URL: {error}")).hint(URL_HINT),
    })?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(Fault::new(format!("the scheme {scheme}:// is not supported"))
            .hint("http:// and https:// are; relent connect waits for tcp:// and unix:")),
    }
}

fn idempotency_key(key: &str) -> Result<IdempotencyKey, Fault> {
    if key.is_empty() {
        return Ok(IdempotencyKey::from_random(random_bits()));
    }
    IdempotencyKey::new(key).map_err(|bad| Fault::new(bad.to_string()).hint("use 1 to 255 letters, digits and signs"))
}

/// Bits of the system's: never of `--seed`, which would make the same key in the next run.
fn random_bits() -> u128 {
    let state = RandomState::new();
    let word = |part: u8| {
        let mut hasher = state.build_hasher();
        hasher.write_u8(part);
        hasher.write_u32(std::process::id());
        u128::from(hasher.finish())
    };
    word(0) << 64 | word(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_scheme_is_http() {
        assert_eq!(url("localhost:8080/x").unwrap().as_str(), "http://localhost:8080/x");
        assert_eq!(url("https://example.com").unwrap().as_str(), "https://example.com/");
        assert_eq!(url("[::1]:8080").unwrap().port(), Some(8080));
    }

    #[test]
    fn statuses_are_numbers_and_ranges() {
        let set = |text: &str| statuses("--x", &[text.to_owned()]).map(|all| all.len());
        assert_eq!(set("409").unwrap(), 1);
        assert_eq!(set("520-529").unwrap(), 10);
        for bad in ["", "99", "1000", "4xx", "409-", "-409", "409-4", "+409", "500-499"] {
            assert!(set(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn random_keys_differ() {
        let mut keys: Vec<_> = (0..100).map(|_| random_bits()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 100);
    }

    #[test]
    fn a_password_is_not_shown() {
        let request = Request {
            method: Method::GET,
            url: url("http://ann:secret@host/x").unwrap(),
            headers: HeaderMap::new(),
            body: None,
        };
        assert_eq!(request.shown_url(), "http://ann:***@host/x");
    }
}
