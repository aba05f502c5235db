//! `-H 'Name: value'` as a header, and what is wrong with it.

use crate::{
    escape::escape,
    redact, regular,
    talk::{Fault, plain},
};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use relent::wire::{IDEMPOTENCY_KEY, has_idempotency_key};

/// The headers that the flags give, in order. Nothing of a line is told again but a name: it may be a secret.
pub(super) fn resolve(lines: &[String]) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    for (number, line) in (1..).zip(lines) {
        match line.strip_prefix('@') {
            None => add(&mut headers, line, &format!("the header of -H number {number}"))?,
            Some(file) => {
                let text = read(file)?;
                // A file is for secrets, whatever they are called, but for headers that are known to be harmless.
                let pairs = text.lines().filter_map(|line| line.split_once(':'));
                let others = pairs.filter(|(name, _)| !redact::is_known_header(name.trim()));
                redact::know_secrets(others.map(|(_, value)| value.trim().to_owned()));
                for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
                    add(&mut headers, line, &format!("line {number} of {}", escape(file)))?;
                }
            }
        }
    }
    if headers.contains_key(IDEMPOTENCY_KEY) && !has_idempotency_key(&headers) {
        return Err(Fault::new(format!("the header {IDEMPOTENCY_KEY} is no key"))
            .hint("it is given once, and has 1 to 255 printable characters of ASCII; is a variable in it not set?"));
    }
    Ok(headers)
}

/// The most bytes of a file of headers.
const LONGEST: u64 = 1 << 20;

fn read(file: &str) -> Result<String, Fault> {
    regular::text(file, LONGEST).map_err(|error| {
        Fault::new(format!("cannot read {}: {}", escape(file), plain(&error)))
            .hint("-H @FILE reads headers from a file, one a line")
    })
}

/// Adds the header of a line that came from somewhere.
pub(super) fn add(headers: &mut HeaderMap, line: &str, from: &str) -> Result<(), Fault> {
    let (name, value) = one(line, from)?;
    if let Some(why) = not_yours(&name) {
        return Err(Fault::new(format!("the header {name} cannot be given")).hint(why));
    }
    if name == header::HOST && headers.contains_key(header::HOST) {
        return Err(Fault::new("the header host is given twice").hint("a request has one"));
    }
    if headers.len() >= MOST_GIVEN {
        return Err(Fault::new(format!("more than {MOST_GIVEN} headers are given")).hint("no server takes as many"));
    }
    headers.append(name, value);
    Ok(())
}

/// The most headers that can be given, as many as are taken of an answer.
const MOST_GIVEN: usize = 1000;

/// Why a header cannot be given: what says where a message ends must be what is true, or the next reader sees another
/// one (RFC 9112 11.2), and what is for somebody on the way is nobody else's.
fn not_yours(name: &HeaderName) -> Option<&'static str> {
    match name.as_str() {
        "content-length" => Some("it is that of the body, which -d gives"),
        "transfer-encoding" | "te" | "trailer" => Some("how the body is sent is decided here; -d gives it"),
        "connection" | "keep-alive" | "proxy-connection" | "upgrade" => {
            Some("each attempt has a connection of its own")
        }
        // A server behind a tunnel, or one that no proxy leads to, would get it.
        "proxy-authorization" => Some("who you are to a proxy is said to it alone: -U USER:PASSWORD"),
        _ => None,
    }
}

fn one(line: &str, from: &str) -> Result<(HeaderName, HeaderValue), Fault> {
    if line.contains(['\r', '\n', '\0']) {
        return Err(Fault::new(format!("{from} has a line break in it"))
            .hint("give each header its own -H; a value is one line"));
    }
    let Some((name, value)) = line.split_once(':') else {
        return Err(Fault::new(format!("{from} has no colon")).hint("write it like -H 'Accept: text/plain'"));
    };
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        Fault::new(format!("{from} has a name that is none"))
            .hint("letters, digits and dashes, with no space before the colon")
    })?;
    let value = HeaderValue::from_bytes(value.trim().as_bytes()).map_err(|_| {
        Fault::new(format!("the value of the header {name} has a control character in it"))
            .hint("values are one line of text")
    })?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values() {
        let headers = resolve(&["Accept: text/plain".into(), "X-Empty:".into(), "accept:a:b".into()]).unwrap();
        let accepts: Vec<_> = headers.get_all("accept").iter().collect();
        assert_eq!(accepts, ["text/plain", "a:b"]);
        assert_eq!(headers["x-empty"], "");
    }

    /// A table of headers has no room for tens of thousands, and says so by a panic.
    #[test]
    fn as_many_headers_can_be_given_as_are_taken() {
        let lines = |count: usize| (0..count).map(|nth| format!("a{nth}: b")).collect::<Vec<_>>();
        assert_eq!(resolve(&lines(MOST_GIVEN)).map(|headers| headers.len()).ok(), Some(MOST_GIVEN));
        for count in [MOST_GIVEN + 1, 40_000] {
            let fault = format!("{:?}", resolve(&lines(count)).unwrap_err());
            assert!(fault.contains("more than 1000 headers are given"), "{fault}");
        }
    }

    #[test]
    fn what_says_where_a_message_ends_is_not_the_users() {
        for line in
            ["Content-Length: 2", "transfer-encoding: chunked", "Connection: close", "Upgrade: x", "TE: trailers"]
        {
            assert!(resolve(&[line.to_owned()]).is_err(), "{line:?}");
        }
        assert!(resolve(&["Host: a".to_owned(), "host: b".to_owned()]).is_err());
    }

    #[test]
    fn a_key_that_is_none_is_refused() {
        let is_taken =
            |lines: &[&str]| resolve(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()).is_ok();
        for one in ["order-17", "\"order-17\"", "a:b=c"] {
            assert!(is_taken(&[&format!("Idempotency-Key: {one}")]), "{one}");
        }
        for none in ["", " ", "\"\"", "\"a", "\u{e4}"] {
            assert!(!is_taken(&[&format!("Idempotency-Key: {none}")]), "{none}");
        }
        assert!(!is_taken(&["Idempotency-Key: a", "idempotency-key: b"]), "two");
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for line in ["Accept", "A b: c", ": c", "Accept : c", "A: b\nC: d", "A: b\r\n", "A: \u{1}", "Ä: b"] {
            assert!(resolve(&[line.to_owned()]).is_err(), "{line:?}");
        }
    }
}
