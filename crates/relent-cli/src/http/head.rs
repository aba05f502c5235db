//! The heads of requests and responses as text, for `-v` and `-I`.

use super::request::Request;
use http::{HeaderMap, header};
use reqwest::Response;
use std::fmt::Write;

/// The request's head, each line after `> `; what lets others in is not shown.
pub(super) fn sent(request: &Request, headers: &HeaderMap) -> String {
    let query = request.url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut text = format!("> {} {}{query}", request.method, request.url.path());
    for (name, value) in headers {
        let secret = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE].contains(name);
        let shown = if secret { b"***" } else { value.as_bytes() };
        let _ = write!(text, "\n> {name}: {}", String::from_utf8_lossy(shown));
    }
    text
}

/// The response's head, each line after `< `.
pub(super) fn received(response: &Response) -> String {
    of(response).lines().map(|line| format!("< {line}")).collect::<Vec<_>>().join("\n")
}

/// The response's head, as `-I` prints it.
pub(super) fn of(response: &Response) -> String {
    let status = response.status();
    let mut head = format!("{:?} {}", response.version(), status.as_u16());
    if let Some(reason) = status.canonical_reason() {
        let _ = write!(head, " {reason}");
    }
    for (name, value) in response.headers() {
        let _ = write!(head, "\n{name}: {}", String::from_utf8_lossy(value.as_bytes()));
    }
    head.push('\n');
    head
}
