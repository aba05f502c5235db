//! Where a redirect leads, and what is sent on.
//!
//! A 303 is asked for with GET, as is a 301 or 302 that answers a POST (as all browsers and curl do); all else keeps
//! its method and its body. To another scheme, host or port go those headers alone that everybody knows, and of which nothing is
//! hidden where they are shown; no `Host`. Nobody can list the names of all that let others in. A user in the new URL is not taken.

use super::{
    address::{can_be_asked_for, has_a_host, has_no_port_behind_its_colon},
    failure::{Failure, Led},
};
use crate::{escape::escape, redact};
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use percent_encoding::{CONTROLS, NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};
use relent::wire::{Fault, IDEMPOTENCY_KEY};
use std::borrow::Cow;
use url::{Host, Url};

/// The most redirects that are followed in one attempt.
pub(super) const MOST: usize = 10;

/// One request on the way to the final response.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    /// The method.
    pub(super) method: Method,
    /// Where to.
    pub(super) url: Url,
    /// The headers.
    pub(super) headers: HeaderMap,
    /// Whether the body is sent.
    pub(super) has_body: bool,
    /// How many redirects led here.
    pub(super) number: usize,
    /// Whether where it goes to is made of a secret that somebody was sent: the parser of URLs has made another text of it.
    pub(super) says_a_secret: bool,
    /// The same of its host and port alone.
    pub(super) host_says_a_secret: bool,
}

impl Hop {
    /// What led to where it goes.
    pub(super) fn led(&self) -> Led {
        Led { by_a_redirect: self.number > 0, by_a_secret: self.host_says_a_secret }
    }

    /// The request after a response with this status and head; `None` if it is no redirect.
    pub(super) fn next(&self, status: StatusCode, head: &HeaderMap) -> Result<Option<Hop>, Box<Failure>> {
        let Some(location) = location(status, head) else { return Ok(None) };
        if self.number == MOST {
            return Err(failure("too many redirects".into()));
        }
        let shown = shown(&self.url, &location);
        if has_no_port_behind_its_colon(&location) {
            return Err(failure(format!("the redirect to {shown} is no URL: it has no port behind its colon")));
        }
        let mut url =
            self.url.join(&location).map_err(|error| failure(format!("the redirect to {shown} is no URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(failure(format!("the redirect leads to {}:, which is not supported", url.scheme())));
        }
        if !has_a_host(&url) {
            return Err(failure(format!("the redirect to {shown} has no host that there could be")));
        }
        if !can_be_asked_for(&url) {
            return Err(failure(format!(
                "the redirect leads to a URL of {} bytes, which is too long",
                url.as_str().len()
            )));
        }
        // Both are there to be removed, or there is nothing to remove.
        let _ = (url.set_username(""), url.set_password(None));
        // Of a query nothing is shown but what is harmless.
        let where_to = location.split(['?', '#']).next().unwrap_or_default();
        let hidden = redact::without_secrets(where_to);
        let is_at_home = url.origin() == self.url.origin();
        let is_disguised = !is_at_home && is_an_address_in_disguise(&url, where_to);
        let says_a_secret = hidden != where_to || is_disguised || (self.says_a_secret && is_at_home);
        let host_says_a_secret =
            !hidden.starts_with(up_to_the_path(where_to)) || is_disguised || (self.host_says_a_secret && is_at_home);
        let mut hop = Hop { url, number: self.number + 1, says_a_secret, host_says_a_secret, ..self.clone() };
        let is_post = self.method == Method::POST
            || self
                .headers
                .iter()
                .any(|(name, value)| names_a_method(name) && value.as_bytes().eq_ignore_ascii_case(b"POST"));
        if loses_its_body(status, is_post) {
            hop.method = if self.method == Method::HEAD { Method::HEAD } else { Method::GET };
            hop.has_body = false;
            remove(&mut hop.headers, |name| is_about_the_body(name) || names_a_method(name));
        }
        if hop.url.origin() != self.url.origin() {
            let given = hop.headers.clone();
            let is_plain = |name: &HeaderName| {
                let mut values = given.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
                match *name {
                    // A URL may have a user, and much else: it is looked at as an argument is.
                    header::CONTENT_LOCATION => {
                        values.all(|value| redact::value(&redact::header(name.as_str(), &value)) == value)
                    }
                    _ => {
                        says_what_is_meant(name)
                            || is_about_the_body(name)
                            || redact::is_known_header(name.as_str())
                                && values.all(|value| redact::hidden_of_header(name.as_str(), &value).is_empty())
                    }
                }
            };
            remove(&mut hop.headers, |name| *name == header::HOST || !is_plain(name));
        }
        Ok(Some(hop))
    }
}

impl Hop {
    /// What headers of this one do not go along to the next, which is elsewhere: whoever sent them does not expect that of any but those that let
    /// somebody in.
    pub(super) fn lost(&self, next: &Hop) -> Vec<&HeaderName> {
        const EXPECTED: [HeaderName; 3] = [header::HOST, header::AUTHORIZATION, header::COOKIE];
        let is_lost = |name: &&HeaderName| !next.headers.contains_key(*name) && !EXPECTED.contains(name);
        // What names a method stays behind only where the request is another.
        let is_the_same = self.has_body == next.has_body && self.method == next.method;
        let is_meant = |name: &&HeaderName| !names_a_method(name) && (is_the_same || !is_about_the_body(name));
        let lost = self.headers.keys().filter(is_lost).filter(is_meant);
        if self.url.origin() == next.url.origin() { Vec::new() } else { lost.collect() }
    }
}

/// What stands before the path of where something leads, its host and port among it: nothing, if there is but a path. What is not plain
/// counts: a tab, which the parser leaves out, or a scheme without slashes.
fn up_to_the_path(location: &str) -> &str {
    let slashes: &[char] = &['/', '\\'];
    let begins = location.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case("http"));
    let scheme = location.find(':').filter(|_| begins).map_or(0, |colon| colon + 1);
    let rest = location[scheme..].trim_start_matches(slashes);
    let host = location.len() - rest.len();
    match host {
        _ if location.contains(['\t', '\r', '\n']) => location,
        0 | 1 => "",
        host => &location[..host + rest.find(slashes).unwrap_or(rest.len())],
    }
}

/// Whether a URL has an address for a host that is written in another way there: in one number, which may be a secret, or in digits of
/// another script.
fn is_an_address_in_disguise(url: &Url, location: &str) -> bool {
    matches!(url.host(), Some(Host::Ipv4(address)) if !location.contains(&address.to_string()))
}

/// Where a response leads, if it is a redirect that can be followed. Nothing would lead to where it came from.
pub(super) fn location(status: StatusCode, head: &HeaderMap) -> Option<String> {
    let redirects = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = head.get(header::LOCATION).filter(|to| redirects && !to.is_empty())?;
    // What is no text is written out, as it would be in a path that a browser asks for.
    let text = location.as_bytes().utf8_chunks().map(|chunk| {
        let others = percent_encode(chunk.invalid(), NON_ALPHANUMERIC);
        format!("{}{others}", chunk.valid())
    });
    Some(text.collect())
}

/// Where it leads, for people: of another host the name that is asked for, which has no letters that look like others, nor has
/// what is no URL.
pub(super) fn shown(from: &Url, location: &str) -> String {
    let location = redact::within_reach(location);
    let url = from.join(location).ok().filter(|_| !has_no_port_behind_its_colon(location));
    let leads = url.as_ref().filter(|url| url.origin() != from.origin());
    // What is written out afterwards is known no more, nor is what an address was made of.
    let leads = match redact::without_secrets(location) {
        _ if leads.is_some_and(|url| is_an_address_in_disguise(url, location)) => Cow::Borrowed(redact::HIDDEN),
        Cow::Borrowed(location) => redact::without_secrets(leads.map_or(location, Url::as_str)),
        hidden => hidden,
    };
    let told = redact::url(&leads);
    let told = escape(&told);
    if url.is_some() { told.into_owned() } else { utf8_percent_encode(&told, CONTROLS).to_string() }
}

/// Whether `-L` could follow it.
pub(super) fn is_followable(from: &Url, location: &str) -> bool {
    !has_no_port_behind_its_colon(location)
        && from.join(location).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && has_a_host(&url))
}

/// Whether servers that heed it take a request for one of another method, which it names.
pub(super) fn names_a_method(name: &HeaderName) -> bool {
    matches!(name.as_str(), "x-http-method-override" | "x-http-method" | "x-method-override")
}

fn is_about_the_body(name: &HeaderName) -> bool {
    const NAMES: [&str; 10] = [
        "content-type",
        "content-encoding",
        "content-language",
        "content-location",
        "content-range",
        "content-disposition",
        "content-md5",
        "content-digest",
        "repr-digest",
        "digest",
    ];
    NAMES.contains(&name.as_str())
}

/// What makes another request of it if it is missing, and lets nobody in, whatever its value looks like: a key without which the server takes
/// it for a new one, what is asked for or changed of something, and conditions without which it is carried out in any case. A lock that
/// `If` names is known to all who may look (RFC 4918, 6.4).
fn says_what_is_meant(name: &HeaderName) -> bool {
    *name == IDEMPOTENCY_KEY
        || matches!(name.as_str(), "range" | "depth" | "overwrite")
        || names_a_method(name)
        || is_a_condition(name.as_str())
}

/// Those of the standards, and of stores of objects and blobs: `x-goog-if-generation-match`, `x-amz-copy-source-if-match`, `x-ms-if-tags`.
fn is_a_condition(name: &str) -> bool {
    let Some(asked) = name.strip_prefix("if-").or_else(|| name.split_once("-if-").map(|(_, asked)| asked)) else {
        return name == "if" || name.starts_with("x-ms-blob-condition-");
    };
    let is_compared = asked.rsplit('-').next().is_some_and(|word| matches!(word, "match" | "since"));
    is_compared || matches!(asked, "range" | "tags") || asked.starts_with("sequence-number-")
}

/// Whether it goes on as a request for what is there, whatever it was before.
fn loses_its_body(status: StatusCode, is_post: bool) -> bool {
    match status.as_u16() {
        303 => true,
        301 | 302 => is_post,
        _ => false,
    }
}

fn remove(headers: &mut HeaderMap, is_meant: impl Fn(&HeaderName) -> bool) {
    let meant: Vec<HeaderName> = headers.keys().filter(|name| is_meant(name)).cloned().collect();
    for name in meant {
        headers.remove(name);
    }
}

fn failure(text: String) -> Box<Failure> {
    Box::new(Failure::of(Fault::Protocol, escape(&text).into_owned()).hint("see where it leads without -L"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn what_is_no_url_has_no_letters_that_look_like_others() {
        let from = Url::parse("http://h/").unwrap();
        for (location, told) in [
            ("http://\u{430}pple.com/x", "http://xn--pple-43d.com/x"),
            ("http://\u{430}pple.com:99999/x", "http://%D0%B0pple.com:99999/x"),
        ] {
            assert_eq!(shown(&from, location), told);
        }
        // Nobody is kept looking for what is secret in so much.
        let long = format!("http://other/{}", "x".repeat(20_000));
        assert_eq!(shown(&from, &long), redact::HIDDEN);
        assert_eq!(shown(&from, &long[..1000]), long[..1000]);
        let head = HeaderMap::from_iter([(
            header::LOCATION,
            HeaderValue::from_bytes("http://\u{430}:99999/".as_bytes()).unwrap(),
        )]);
        let refused = hop(Method::GET, "http://h/").next(StatusCode::FOUND, &head).unwrap_err();
        assert!(format!("{refused:?}").is_ascii(), "{refused:?}");
    }

    /// Where it leads, and its host, is told, but for an address that is another way to write a secret.
    #[test]
    fn a_path_at_an_address_is_told() {
        for (from, location, hides) in [
            ("127.0.0.1", "/echo", false),
            ("127.0.0.1", "x?q=1", false),
            ("127.0.0.1", "//127.0.0.1:81/x", false),
            ("127.0.0.2", "http://2130706433/", true),
        ] {
            let head = HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_static(location))]);
            let from = hop(Method::GET, &format!("http://{from}/"));
            let hop = from.next(StatusCode::FOUND, &head).unwrap().unwrap();
            assert_eq!((hop.says_a_secret, hop.host_says_a_secret), (hides, hides), "{location}");
        }
    }

    fn hop(method: Method, url: &str) -> Hop {
        let pairs = [
            ("host", "h"),
            ("authorization", "a"),
            ("x-api-key", "k"),
            ("cookie", "c"),
            ("accept", "b"),
            ("content-type", "t"),
            ("idempotency-key", "i"),
            ("x-upstream", "Bearer u"),
            ("x-basic", "basic\tu"),
            ("x-macaroon", "m"),
        ];
        let headers = pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        Hop {
            method,
            url: Url::parse(url).unwrap(),
            headers: headers.into_iter().collect(),
            has_body: true,
            number: 0,
            says_a_secret: false,
            host_says_a_secret: false,
        }
    }

    fn after(status: u16, location: &str, method: Method) -> Result<Option<Hop>, Box<Failure>> {
        let head = [(header::LOCATION, HeaderValue::from_bytes(location.as_bytes()).unwrap())].into_iter().collect();
        hop(method, "https://a.example/old/x").next(StatusCode::from_u16(status).unwrap(), &head)
    }

    fn names(hop: &Hop) -> String {
        let mut names: Vec<_> = hop.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names.join(" ")
    }

    #[test]
    fn methods_and_bodies() {
        for (status, from, to, body) in [
            (301, Method::POST, Method::GET, false),
            (302, Method::PUT, Method::PUT, true),
            (303, Method::PUT, Method::GET, false),
            (303, Method::HEAD, Method::HEAD, false),
            (303, Method::GET, Method::GET, false),
            (302, Method::GET, Method::GET, true),
            (307, Method::POST, Method::POST, true),
            (308, Method::POST, Method::POST, true),
        ] {
            let next = after(status, "new", from).unwrap().unwrap();
            assert_eq!((next.method, next.has_body), (to, body), "{status}");
            assert_eq!(next.url.as_str(), "https://a.example/old/new");
            assert_eq!(next.headers.contains_key("content-type"), body);
        }
        for status in [200, 300, 304, 305] {
            assert!(after(status, "new", Method::GET).unwrap().is_none());
        }
        assert!(after(302, "", Method::GET).unwrap().is_none(), "it leads nowhere");
        // Bytes that are no text are asked for as they are.
        let bytes = HeaderValue::from_bytes(b"/caf\xe9\xc3\xa9?x=\xff").unwrap();
        let head = HeaderMap::from_iter([(header::LOCATION, bytes)]);
        let next = hop(Method::GET, "http://a/").next(StatusCode::FOUND, &head).unwrap().unwrap();
        assert_eq!(next.url.as_str(), "http://a/caf%E9%C3%A9?x=%FF");
    }

    /// The parser would leave the port out, and what is behind it would be a path.
    #[test]
    fn a_password_behind_an_empty_port_is_no_path() {
        let from = Url::parse("https://a.example/").unwrap();
        for location in ["http://ann:#hunter2@b/", "http://ann:?hunter2@b/", "//ann:/hunter2@b/", "\\\\ann:\\hunter2@b"]
        {
            assert!(after(302, location, Method::GET).is_err() && !is_followable(&from, location), "{location}");
            assert!(!shown(&from, location).contains("hunter2"), "{}", shown(&from, location));
        }
        assert!(after(302, "http://b:/x?mail=", Method::GET).is_ok() && is_followable(&from, "/x:/y@z"));
    }

    #[test]
    fn what_lets_others_in_stays_at_home() {
        let all =
            "accept authorization content-type cookie host idempotency-key x-api-key x-basic x-macaroon x-upstream";
        assert_eq!(names(&after(307, "/new", Method::GET).unwrap().unwrap()), all);
        assert_eq!(names(&after(307, "https://a.example:443/", Method::GET).unwrap().unwrap()), all);
        for elsewhere in ["https://b.example/", "https://a.example:444/", "http://a.example/", "//a.example.b/"] {
            let next = after(307, elsewhere, Method::GET).unwrap().unwrap();
            assert_eq!(names(&next), "accept content-type idempotency-key", "{elsewhere}");
        }
        assert_eq!(
            after(302, "https://ann:pw@a.example/", Method::GET).unwrap().unwrap().url.as_str(),
            "https://a.example/"
        );
    }

    #[test]
    fn a_host_stands_before_the_path() {
        for (location, before) in [
            ("http://h:1/x/y", "http://h:1"),
            ("HTTPS:\\\\u@h\\x", "HTTPS:\\\\u@h"),
            ("//h/x", "//h"),
            ("///h", "///h"),
            ("http:h/x", "http:h"),
            ("/x/y", ""),
            ("x:/y", ""),
            ("", ""),
            ("/\t/h/x", "/\t/h/x"),
        ] {
            assert_eq!(up_to_the_path(location), before, "{location:?}");
        }
    }

    #[test]
    fn conditions_and_what_is_said_about_a_body_go_anywhere() {
        let meant = "depth if if-match if-schedule-tag-match overwrite x-amz-copy-source-if-none-match \
                     x-goog-if-generation-match x-ms-blob-condition-maxsize x-ms-if-sequence-number-le x-ms-if-tags";
        // What is asked for with GET is no more than that.
        let body = "content-digest content-disposition content-md5 repr-digest x-http-method x-http-method-override x-method-override";
        let others = "content-location if-token x-gif-match x-if-match-token x-if-secret x-only-if";
        let all = [meant, body, others].join(" ");
        let value = |name| if name == "content-location" { "/a?key=k3y==" } else { "k3y==" };
        let headers = all.split(' ').map(|name| (name.parse().unwrap(), HeaderValue::from_static(value(name))));
        let mut from = Hop { headers: headers.collect(), ..hop(Method::PUT, "https://a.example/") };
        let head = [(header::LOCATION, HeaderValue::from_static("https://b.example/"))].into_iter().collect();
        let next = from.next(StatusCode::TEMPORARY_REDIRECT, &head).unwrap().unwrap();
        let mut goes: Vec<&str> = meant.split(' ').chain(body.split(' ')).collect();
        goes.sort_unstable();
        assert_eq!(names(&next), goes.join(" "));
        let next = from.next(StatusCode::SEE_OTHER, &head).unwrap().unwrap();
        assert_eq!(names(&next), meant);
        // Of a GET that a header makes a POST, nothing but a GET is left, as of a POST.
        let posts =
            HeaderMap::from_iter([("x-http-method-override".parse().unwrap(), HeaderValue::from_static("Post"))]);
        let next = Hop { headers: posts, ..hop(Method::GET, "https://a.example/") }.next(StatusCode::FOUND, &head);
        assert_eq!(names(&next.unwrap().unwrap()), "");
        // That a request that is another one goes without them is expected; the rest is told.
        for (method, has_body) in [(Method::PUT, true), (Method::POST, false), (Method::GET, false)] {
            let from = Hop { method, has_body, ..from.clone() };
            let next = from.next(StatusCode::SEE_OTHER, &head).unwrap().unwrap();
            let about = ["content-digest", "x-http-method-override"];
            let lost: Vec<&str> = from.lost(&next).into_iter().map(HeaderName::as_str).collect();
            assert!(others.split(' ').skip(1).all(|name| lost.contains(&name)), "{lost:?}");
            assert_eq!(about.map(|name| lost.contains(&name)), [from.method == Method::GET, false], "{lost:?}");
        }
        let secrets = ["/a&token=k3y7Pq", "/token:k3y7Pq", "/a/token=k3y7Pq", "//ann:k3y7Pq@a.example/"];
        for (place, goes) in
            [("/a/3", true), ("https://a.example/a/3", true)].into_iter().chain(secrets.map(|one| (one, false)))
        {
            from.headers.insert(header::CONTENT_LOCATION, HeaderValue::from_static(place));
            let next = from.next(StatusCode::TEMPORARY_REDIRECT, &head).unwrap().unwrap();
            assert_eq!(next.headers.contains_key(header::CONTENT_LOCATION), goes, "{place}");
        }
    }

    #[test]
    fn other_schemes_are_refused() {
        for bad in ["ftp://a/", "file:///etc/passwd", "gopher:x", "http://", "data:,x"] {
            let refused = after(302, bad, Method::GET).err().unwrap();
            assert_eq!(refused.verdict, relent::Verdict::Permanent, "{bad}");
        }
    }
}
