//! The request that the flags describe, checked.

use super::{
    address,
    args::Args,
    body::Body,
    form, headers,
    redirect::{Hop, names_a_method},
};
use crate::{escape::escape, outer, redact, talk::Fault};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use relent::wire::{self, IDEMPOTENCY_KEY, IdempotencyKey, Rules};
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};
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
    /// The method that is meant: one that a header names, for servers that heed that, if it may be repeated less than that of the request.
    pub(super) fn meant(&self) -> Method {
        let values = self.headers.iter().filter(|(name, _)| names_a_method(name)).map(|(_, value)| value);
        let said = values.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_uppercase());
        // What cannot be read here a server may read as anything.
        let named = said.filter(|name| !name.is_empty()).map(|name| name.parse().unwrap_or(Method::POST));
        let repeats = |method: &Method| (wire::is_idempotent(method), method.is_safe());
        named.chain([self.method.clone()]).min_by_key(repeats).expect("there is one")
    }

    /// The method as it is told.
    pub(super) fn named(&self) -> String {
        let made = if self.meant() == self.method { "" } else { ", of which a header makes another method," };
        format!("{}{made}", self.method)
    }

    /// The request that the flags describe. A body that has to be read now must end within `limit`.
    pub(super) fn resolve(args: &Args, limit: Option<Duration>) -> Result<Request, Fault> {
        let (method, mut url) = target(args)?;
        let mut headers = headers::resolve(&args.headers)?;
        let of_the_url = take_user(&mut url);
        let user = args.user.clone().map(String::into_bytes).or(of_the_url);
        redact::know_place(&url);
        redact::know_name_in_a_path(&String::from_utf8_lossy(user.as_deref().unwrap_or_default()), url.path());
        redact::know_secrets(pairs(args, &url).flat_map(redact::secrets_of_a_pair));
        if let (Some(user), false) = (user, headers.contains_key(header::AUTHORIZATION)) {
            headers.insert(header::AUTHORIZATION, basic(&user)?);
        }
        redact::know_secrets(headers.iter().flat_map(|(name, value)| {
            redact::hidden_of_header(name.as_str(), &String::from_utf8_lossy(value.as_bytes()))
        }));
        if let Some(key) = &args.idempotency_key {
            if headers.contains_key(IDEMPOTENCY_KEY) {
                return Err(Fault::new("the idempotency key is given twice: by --idempotency-key and by -H")
                    .hint("leave one of them out; --idempotency-key=KEY says which"));
            }
            headers.insert(IDEMPOTENCY_KEY, idempotency_key(key.as_deref())?.value());
        }
        let (body, kind) = body(args, limit)?;
        match kind {
            Some(kind) if matches!(body, Some(Body::Form(_))) => form::set_type(&mut headers, kind)?,
            Some(kind) if !headers.contains_key(header::CONTENT_TYPE) => _ = headers.insert(header::CONTENT_TYPE, kind),
            _ => {}
        }
        Ok(Request { method, url, headers, body })
    }

    /// The URL without secrets, for messages.
    pub(super) fn shown_url(&self) -> String {
        escape(&redact::url(self.url.as_str())).into_owned()
    }

    /// The first request of an attempt.
    pub(super) fn hop(&self, headers: HeaderMap) -> Hop {
        let has_body = self.body.is_some();
        Hop {
            method: self.method.clone(),
            url: self.url.clone(),
            headers,
            has_body,
            number: 0,
            says_a_secret: false,
            host_says_a_secret: false,
        }
    }
}

/// The parameters that are sent, as names with values: of the path, of the query and of the body, where the flags say it. The name of a file
/// is none.
fn pairs<'a>(args: &'a Args, url: &'a Url) -> impl Iterator<Item = &'a str> {
    let of_the_path = url.path().split(';').skip(1);
    let data = args.data.iter().map(String::as_str).filter(|data| !data.starts_with('@'));
    let of_queries = url.query().into_iter().chain(data).flat_map(|pairs| pairs.split('&'));
    let fields = args.form.iter().filter(|field| redact::file_of_a_field(field).is_none());
    of_the_path.chain(of_queries).chain(fields.filter_map(|field| field.split(";type=").next()))
}

fn body(args: &Args, limit: Option<Duration>) -> Result<(Option<Body>, Option<HeaderValue>), Fault> {
    if !args.form.is_empty() {
        let (pieces, kind) = form::resolve(&args.form, random_bits())?;
        return Ok((Some(Body::Form(pieces.into())), Some(kind)));
    }
    let body = Body::resolve(&args.data, limit)?;
    let kind = body.is_some().then(|| HeaderValue::from_static("application/x-www-form-urlencoded"));
    Ok((body, kind))
}

/// Takes `user:password` out of a URL: it is sent as a header, and nowhere else.
pub(super) fn take_user(url: &mut Url) -> Option<Vec<u8>> {
    let user = address::user(url)?;
    // What has a user has a host, so that both can be removed.
    let _ = (url.set_username(""), url.set_password(None));
    Some(user)
}

/// `Authorization` by name and password (RFC 7617).
fn basic(user: &[u8]) -> Result<HeaderValue, Fault> {
    if !user.contains(&b':') {
        return Err(Fault::new("--user has no password")
            .hint("write it like -u USER:PASSWORD; -H @FILE takes an Authorization from a file"));
    }
    let value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(user)));
    let mut value = value.expect("base64 is a header value");
    value.set_sensitive(true);
    Ok(value)
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

/// The statuses of a list of numbers and ranges.
pub(super) fn statuses(flag: &str, ranges: &[String]) -> Result<Vec<StatusCode>, Fault> {
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
            return Err(Fault::new(format!(
                "two methods are given, {} and {}",
                escape(&redact::value(method)),
                escape(&redact::value(other))
            ))
            .hint("leave out one of them"));
        }
        (more, _) => {
            return Err(Fault::new(format!("one URL is asked for at a time, and {} were given", more.len() - 1))
                .hint("quote a URL with spaces in it; run relent http for each of several"));
        }
    };
    let url = address::url(text)?;
    Ok((given.map_or_else(|| Ok(default_method(args)), |given| method(given, args))?, url))
}

fn default_method(args: &Args) -> Method {
    match args {
        Args { head: true, .. } => Method::HEAD,
        Args { data, form, .. } if !data.is_empty() || !form.is_empty() => Method::POST,
        _ => Method::GET,
    }
}

fn method(given: &str, args: &Args) -> Result<Method, Fault> {
    if given.starts_with(['{', '[']) && args.talk.json {
        return Err(Fault::new("--json takes no data: it writes events for machines")
            .hint("-d DATA -H 'Content-Type: application/json' sends JSON"));
    }
    let capital = given.to_ascii_uppercase();
    // Methods are case-sensitive, but nobody means another one by `post`.
    let name = if wire::METHODS.iter().any(|row| row.method == capital) { capital.as_str() } else { given };
    let method = Method::from_bytes(name.as_bytes()).map_err(|_| {
        Fault::new(format!("{:?} is no method", redact::value(given)))
            .hint("methods are words like GET, POST or PUT; see relent http --help")
    })?;
    if method == Method::CONNECT {
        return Err(Fault::new("CONNECT asks for a tunnel, and here is nobody who would use it")
            .hint("-x PROXY goes through one"));
    }
    if args.head && method != Method::HEAD {
        return Err(Fault::new(format!("--head asks with HEAD, not with {method}")).hint("leave out one of them"));
    }
    Ok(method)
}

fn idempotency_key(key: Option<&str>) -> Result<IdempotencyKey, Fault> {
    let Some(key) = key else {
        // All that happens inside of one call of `relent run` is one piece of work, whichever attempt it is.
        let Some(given) = outer::key() else { return Ok(IdempotencyKey::from_random(random_bits())) };
        // One that is left out for another would be another in each attempt.
        return IdempotencyKey::new(given.to_string_lossy())
            .map_err(|bad| Fault::new(format!("RELENT_KEY: {bad}")).hint("use 1 to 255 letters, digits and signs"));
    };
    let hint = if key.is_empty() {
        "is a variable in it not set? --idempotency-key alone makes one"
    } else {
        "use 1 to 255 letters, digits and signs"
    };
    IdempotencyKey::new(key).map_err(|bad| Fault::new(bad.to_string()).hint(hint))
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
    fn a_header_makes_a_method_less_that_may_be_repeated_and_never_more() {
        for (method, header, named, meant) in [
            ("GET", "X-HTTP-Method-Override", "POST", "POST"),
            ("GET", "X-HTTP-Method", " patch", "PATCH"),
            ("PUT", "X-Method-Override", "PURGE", "PURGE"),
            ("GET", "X-HTTP-Method-Override", "PUT", "PUT"),
            ("POST", "X-HTTP-Method-Override", "GET", "POST"),
            ("GET", "X-HTTP-Method-Override", "a b", "POST"),
            ("GET", "X-HTTP-Method-Override", "POST, GET", "POST"),
            ("GET", "X-HTTP-Method-Override", "\"GET\"", "POST"),
            ("GET", "X-HTTP-Method-Override", " ", "GET"),
            ("GET", "X-HTTP-Method-Override", "get", "GET"),
            ("GET", "X-Method", "POST", "GET"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(http::HeaderName::try_from(header).unwrap(), HeaderValue::from_static(named));
            let url = Url::parse("http://h/").unwrap();
            let request = Request { method: method.parse().unwrap(), url, headers, body: None };
            assert_eq!(request.meant().as_str(), meant, "{method}, {header}: {named}");
        }
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
    fn a_user_is_a_header_and_nowhere_else() {
        let mut with_user = address::url("http://ann:s%3Acret@host/x?token=abc").unwrap();
        assert_eq!(take_user(&mut with_user).as_deref(), Some(&b"ann:s:cret"[..]));
        let mut of_bytes = address::url("http://%fFn@host/").unwrap();
        assert_eq!(take_user(&mut of_bytes).as_deref(), Some(&b"\xffn:"[..]));
        let (method, headers) = (Method::GET, HeaderMap::new());
        let request = Request { method, url: with_user, headers, body: None };
        assert_eq!(request.shown_url(), "http://host/x?token=***");
        assert_eq!(basic(b"ann:s:cret").unwrap(), "Basic YW5uOnM6Y3JldA==");
        assert!(basic(b"ann").is_err());
    }
}
