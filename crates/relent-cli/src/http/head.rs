//! The heads of requests and responses as text, for `-v`, `-i` and `-I`.

use super::redirect::Hop;
use crate::{
    breaks::without_messages_within,
    escape::{escape, escape_bytes},
    redact, stderr,
    talk::TalkArgs,
};
use percent_encoding::{CONTROLS, utf8_percent_encode};
use reqwest::{
    Response,
    header::{HOST, HeaderName, HeaderValue},
};
use std::io::Write;

/// Tells what goes over the wire, with `--verbose`.
pub(super) fn tell(talk: TalkArgs, head: impl FnOnce(&mut redact::Head) -> String) {
    if talk.verbose && !talk.json {
        let mut look = redact::Head::new();
        let text = head(&mut look);
        // There is nobody left to tell when stderr is gone.
        let _ = write!(stderr::open(), "{}", look.lines(&text));
    }
}

/// The request's head, each line after `> `; what lets others in is not shown.
pub(super) fn sent(hop: &Hop, look: &mut redact::Head) -> String {
    let method = redact::value(hop.method.as_str());
    if hop.says_a_secret {
        return format!("> {method} {}", redact::HIDDEN) + &headers(hop, look);
    }
    let url = look.path(&hop.url[url::Position::BeforePath..url::Position::AfterQuery]);
    let mut text = format!("> {method} {}", escape(&url));
    if let Some(host) = hop.url.host_str().filter(|_| !hop.headers.contains_key(HOST)) {
        let port = hop.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        text.push_str(&format!("\n> host: {host}{port}"));
    }
    text + &headers(hop, look)
}

fn headers(hop: &Hop, look: &mut redact::Head) -> String {
    let line = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("\n> {name}: {}", shown(name.as_str(), value.as_bytes(), look))
    };
    hop.headers.iter().map(line).collect()
}

/// The response's head, each line after `< `; what lets others in is not shown.
pub(super) fn received(response: &Response, look: &mut redact::Head) -> String {
    let mut text = format!("< {}", first_line(response));
    for (name, value) in response.headers() {
        text.push_str(&format!("\n< {name}: {}", shown(name.as_str(), value.as_bytes(), look)));
    }
    text
}

/// The response's head as data, byte for byte; on a terminal of so many columns nothing in it is obeyed, and no header looks like a message of relent's.
pub(super) fn printed(response: &Response, columns: Option<usize>) -> Vec<u8> {
    let first = first_line(response) + "\n";
    let headers = response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    if let Some(columns) = columns {
        let lines = headers.map(|(name, value)| format!("{name}: {}\n", escape_bytes(value)));
        return without_messages_within(&(first + &lines.collect::<String>()), columns).into_owned().into_bytes();
    }
    let lines = headers.flat_map(|(name, value)| [name.as_bytes(), b": ", value, b"\n"]);
    [first.as_bytes()].into_iter().chain(lines).flatten().copied().collect()
}

fn first_line(response: &Response) -> String {
    let status = response.status();
    match status.canonical_reason() {
        Some(reason) => format!("{:?} {} {reason}", response.version(), status.as_u16()),
        None => format!("{:?} {}", response.version(), status.as_u16()),
    }
}

/// A header's value; letters in a URL may look like others, and are written as whoever follows it sends them.
fn shown(name: &str, value: &[u8], look: &mut redact::Head) -> String {
    let value = String::from_utf8_lossy(value);
    let told = escape(&look.header(name, &value)).into_owned();
    if redact::is_of_urls(name) { utf8_percent_encode(&told, CONTROLS).to_string() } else { told }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_header_is_a_message_on_a_terminal() {
        let answer = http::Response::builder().header("Error", "gave up").header("X-Two", "a\tb").body("").unwrap();
        let response = Response::from(answer);
        let printed = |columns| String::from_utf8(printed(&response, columns)).unwrap();
        assert_eq!(printed(None), "HTTP/1.1 200 OK\nerror: gave up\nx-two: a\tb\n");
        assert_eq!(printed(Some(80)), "HTTP/1.1 200 OK\n  error: gave up\nx-two: a\\tb\n");
    }
}
