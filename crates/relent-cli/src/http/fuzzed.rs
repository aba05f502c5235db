//! What must hold of everything that `relent http` reads: flags, and what servers answer.

use super::{
    address,
    failure::Failure,
    form, head,
    headers::add,
    proxy,
    redirect::{self, Hop},
    request, resolve,
    resume::Resume,
    write_out::{End, Seen, WriteOut},
};
use crate::{
    promises::{PASSWORD, is_plain, is_told},
    redact,
    talk::Fault,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use relent::wire::Rules;
use reqwest::Response;
use std::time::Duration;
use url::Url;

/// The texts of flags: each is understood, or refused with a line that says why and tells no secret.
pub fn flags(text: &str) {
    tried(WriteOut::of_text(text).map(drop));
    tried(resolve::place(text).map(drop));
    tried(request::statuses("--retry-on-status", &[text.to_owned()]).map(drop));
    tried(form::Field::parse(text).map(|field| {
        let head = field.head("B");
        assert!(
            head.ends_with("\r\n\r\n") && head.matches("\r\n\r\n").count() == 1,
            "{text:?} ends the head: {head:?}"
        );
    }));
    let mut headers = HeaderMap::new();
    tried(add(&mut headers, text, "the header"));
    assert!(!headers.contains_key(header::CONTENT_LENGTH) && !headers.contains_key(header::TRANSFER_ENCODING));
    urls(text);
}

/// URLs and proxies, with a password in them and without.
fn urls(text: &str) {
    tried(address::url(text).map(drop));
    tried(proxy::parse("--proxy", text).map(|url| is_plain(&proxy::shown(&url))));
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    if scheme.contains(|c: char| !c.is_ascii_alphanumeric()) {
        return;
    }
    let secret = format!("{scheme}://ann:{PASSWORD}@{rest}");
    for refused in [address::url(&secret).err(), proxy::parse("--proxy", &secret).err()].into_iter().flatten() {
        assert!(!refused.to_json().contains(PASSWORD), "{secret:?}: {}", refused.to_json());
    }
    if let Ok(mut url) = address::url(&secret) {
        assert!(matches!(url.scheme(), "http" | "https"), "{secret:?}");
        request::take_user(&mut url);
        assert!(!url.as_str().contains(PASSWORD), "{url} is sent with the password of {secret:?}");
    }
}

fn tried(read: Result<(), Fault>) {
    if let Err(fault) = read {
        is_told(&fault);
    }
}

/// What a part of a body is known by, as an earlier run wrote it down: read as it was written, or not at all.
pub fn part(text: &str) {
    if let Some(resume) = Resume::from_text(text) {
        let again = resume.to_text().and_then(|text| Resume::from_text(&text));
        assert!(again.is_none() || again.as_ref() == Some(&resume), "{text:?}");
        let mut headers = HeaderMap::new();
        resume.ask(7, &mut headers);
        assert_eq!(headers[header::RANGE], "bytes=7-");
    }
}

/// The names that answers are made of.
const NAMES: [&str; 16] = [
    "location",
    "content-range",
    "etag",
    "last-modified",
    "date",
    "retry-after",
    "relent-turn",
    "set-cookie",
    "content-type",
    "content-encoding",
    "accept-ranges",
    "x-api-key",
    "x-should-retry",
    "link",
    "refresh",
    "x",
];

/// An answer: what it may make us do, join and say. `lines` are the number of a header, and its value.
pub fn answer(status: u64, have: u64, now: u64, lines: &[u8]) {
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let Some(status) = status else { return };
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n').take(50) {
        if let Some((number, value)) = line.split_first()
            && let Ok(value) = HeaderValue::from_bytes(value)
        {
            headers.append(HeaderName::from_static(NAMES[usize::from(*number) % NAMES.len()]), value);
        }
    }
    // As many seconds as fit into any date.
    let now = now % (1 << 35);
    follows(status, &headers);
    joins(status, &headers, have, i64::try_from(now).unwrap_or_default());
    says(status, &headers, now);
}

/// A redirect leads to http or https, and takes no secret along to somebody else.
fn follows(status: StatusCode, headers: &HeaderMap) {
    let secret = |name| (name, HeaderValue::from_static(PASSWORD));
    let given = [secret(header::AUTHORIZATION), secret(header::COOKIE), secret(header::HOST)].into_iter().collect();
    let url = Url::parse("https://a.example/b/c?d").expect("it is one");
    let hop = Hop {
        method: Method::POST,
        url,
        headers: given,
        has_body: true,
        number: 3,
        says_a_secret: false,
        host_says_a_secret: false,
    };
    match hop.next(status, headers) {
        Ok(None) => {}
        Ok(Some(next)) => {
            assert!(matches!(next.url.scheme(), "http" | "https"), "{}", next.url);
            assert!(next.url.username().is_empty() && next.url.password().is_none(), "{}", next.url);
            assert_eq!(next.number, 4);
            let is_home = next.url.origin() == hop.url.origin();
            assert_eq!(next.headers.len(), if is_home { 3 } else { 0 }, "{}", next.url);
        }
        Err(failure) => is_plain(&failure.text),
    }
    if let Some(location) = redirect::location(status, headers) {
        let shown = redirect::shown(&hop.url, &location);
        is_plain(&shown);
    }
}

/// Only the rest of the same body is joined to what is there.
fn joins(status: StatusCode, headers: &HeaderMap, have: u64, now: i64) {
    let Some(resume) = Resume::of(status, headers, Some(have.saturating_add(5)), now) else { return };
    assert_eq!(status, StatusCode::OK);
    let mut asked = HeaderMap::new();
    resume.ask(have, &mut asked);
    assert!(!asked[header::IF_RANGE].as_bytes().starts_with(b"W/"), "a weak validator joins nothing");
    if resume.is_answered_by(have, headers) {
        let range = headers[header::CONTENT_RANGE].to_str().expect("it was read");
        let numbers: Vec<u64> =
            range.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
        assert_eq!(numbers, [have, have.saturating_add(4), have.saturating_add(5)], "{range:?}");
    }
    if let Some(text) = resume.to_text() {
        assert_eq!(Resume::from_text(&text), Some(resume), "{text:?}");
    }
}

/// What is said of an answer is plain, whatever is in it, and its secrets are not told.
fn says(status: StatusCode, headers: &HeaderMap, now: u64) {
    let response = || {
        let mut response = http::Response::new("");
        (*response.status_mut(), *response.headers_mut()) = (status, headers.clone());
        Response::from(response)
    };
    let received = head::received(&response(), &mut redact::Head::new());
    for line in received.lines() {
        assert!(line.starts_with("< "), "{line:?} is a line of its own");
        is_plain(line);
    }
    for name in headers.keys().filter(|name| redact::is_secret(name.as_str())) {
        assert!(received.contains(&format!("\n< {name}: {}\n", redact::HIDDEN)) || received.ends_with(redact::HIDDEN));
    }
    let printed = head::printed(&response(), Some(80));
    String::from_utf8_lossy(&printed).lines().for_each(is_plain);
    let url = Url::parse("https://a.example/b/c?d").expect("it is one");
    let hop = Hop {
        method: Method::GET,
        url: url.clone(),
        headers: HeaderMap::new(),
        has_body: false,
        number: 0,
        says_a_secret: false,
        host_says_a_secret: false,
    };
    let seen = Seen::of(&response(), &hop);
    let (seen, elapsed) = (Some(&seen), Duration::ZERO);
    let end = |columns| End { seen, url: &url, bytes: 0, attempts: 1, elapsed, exit: 0, file: None, columns };
    let format = WriteOut::of_text("%{content_type}%{redirect_url}%header{link}%header{x}").expect("it is one");
    let text = |columns| String::from_utf8_lossy(&format.text(&end(Some(columns)))).into_owned();
    is_plain(&text(usize::MAX));
    // What the terminal would break is set in.
    for (nth, line) in text(80).lines().enumerate() {
        is_plain(line);
        assert!(nth == 0 || line.starts_with("  "), "{line:?} is a line of its own");
    }
    let now = Duration::from_secs(now);
    if let Some(verdict) = Rules::default().verdict(status, headers, now) {
        let failure = Failure::status(response(), verdict, now);
        is_plain(&failure.text);
        failure.told.iter().chain(&failure.hint).for_each(|told| is_plain(told));
    }
}
