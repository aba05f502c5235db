//! What can be asked for: URLs of the web whose host there could be.

use crate::{escape::escape, redact, talk::Fault};
use percent_encoding::percent_decode_str;
use relent::wire;
use url::{Host, Url};

const URL_HINT: &str = "write it like https://example.com/path";

/// `user:password` of a URL, as they are sent, text or not.
pub(super) fn user(url: &Url) -> Option<Vec<u8>> {
    let has_user = !url.username().is_empty() || url.password().is_some();
    let decoded = |part: &str| percent_decode_str(part).collect::<Vec<u8>>();
    has_user.then(|| [&decoded(url.username())[..], b":", &decoded(url.password().unwrap_or_default())].concat())
}

/// A URL that can be asked for; one without a scheme is http.
pub(super) fn url(text: &str) -> Result<Url, Fault> {
    if wire::METHODS.iter().any(|row| row.method == text) {
        return Err(Fault::new(format!("{text:?} is a method, and the URL is missing"))
            .hint(format!("write it like relent http {text} https://example.com/path")));
    }
    // The parser leaves them out, and makes another host of what stands around them.
    if text.trim().contains(['\t', '\n', '\r']) {
        return Err(Fault::new(format!(
            "{:?} is no URL: it has a tab or the end of a line in it",
            redact::value(text)
        ))
        .hint(URL_HINT));
    }
    let begins = text.to_ascii_lowercase();
    let begins = begins.strip_prefix("https").or_else(|| begins.strip_prefix("http")).unwrap_or_default();
    // A slash too few, or the wrong ones, make no host of the scheme.
    let is_whole = text.contains("://") || begins.starts_with(":/") || begins.starts_with(":\\");
    let with_scheme = match is_whole {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let shown = redact::value(text);
    let url = Url::parse(&with_scheme).map_err(|error| match error {
        url::ParseError::InvalidPort => {
            Fault::new(format!("{shown:?} has no valid port")).hint("a port is a number from 0 to 65535")
        }
        url::ParseError::InvalidIpv6Address if text.contains('%') => {
            Fault::new(format!("{shown:?} has a zone in its address, which is not supported"))
                .hint("an address without a zone is asked for: a global one, or one of the loopback")
        }
        error => Fault::new(format!("{shown:?} is no URL: {error}")).hint(URL_HINT),
    })?;
    if has_no_port_behind_its_colon(&with_scheme) {
        return Err(Fault::new(format!("{shown:?} has no port behind its colon"))
            .hint("in a password, / is written %2F, ? %3F and # %23"));
    }
    if !has_a_host(&url) {
        return Err(Fault::new(format!("{shown:?} has no host that there could be"))
            .hint("hosts are letters, digits, dots and -, or addresses"));
    }
    if !can_be_asked_for(&url) {
        return Err(Fault::new(format!("the URL is too long to be asked for: {} bytes", url.as_str().len()))
            .hint("up to 65534 bytes are; -d sends more"));
    }
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(Fault::new(format!("the scheme {}:// is not supported", escape(scheme)))
            .hint("http:// and https:// are; relent connect waits for tcp:// and unix:")),
    }
}

/// A name as it is looked up, whatever letters and signs it was written in: `bücher.example.` is `xn--bcher-kva.example`. `None` for
/// what is no name; an address stays as it is.
pub(super) fn looked_up(name: &str) -> Option<String> {
    match Host::parse(name).ok()? {
        Host::Domain(name) => {
            let is_one = name.chars().all(is_of_a_name) && !name.trim_matches('.').is_empty();
            is_one.then(|| name.strip_suffix('.').unwrap_or(&name).to_owned())
        }
        _ => Some(name.to_owned()),
    }
}

/// Whether a URL has an empty port and an `@` behind it. The parser leaves the port out, and what stands behind it may be a password that
/// nobody would know again.
pub(super) fn has_no_port_behind_its_colon(text: &str) -> bool {
    let slashes: &[char] = &['/', '\\'];
    let rest = match text.split_once(':') {
        Some((scheme, rest)) if rest.starts_with(slashes) && !scheme.contains(slashes) => rest,
        _ if text.starts_with("//") || text.starts_with("\\\\") => text,
        _ => return false,
    };
    let rest = rest.trim_start_matches(slashes);
    let (host, rest) = rest.split_at(rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()));
    host.ends_with(':') && rest.contains(['@', '\u{ff20}', '\u{fe6b}'])
}

/// Whether a request can be made of a URL that has a host: its own limit is shorter than that of the parser.
pub(super) fn can_be_asked_for(url: &Url) -> bool {
    url.as_str().parse::<http::Uri>().is_ok()
}

/// Whether the host of a URL is an address, or a name that could be looked up. The parser takes many signs that no name has.
pub(super) fn has_a_host(url: &Url) -> bool {
    url.host_str().is_some_and(|host| host.starts_with('[') || host.chars().all(is_of_a_name))
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_they_are_looked_up() {
        for (written, name) in [
            ("bücher.example", "xn--bcher-kva.example"),
            ("BÜCHER.example.", "xn--bcher-kva.example"),
            ("a_b.example.", "a_b.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(looked_up(written).as_deref(), Some(name));
        }
        for none in ["", ".", "a b", "a/b", "10.0.0.0/8", "a!b"] {
            assert_eq!(looked_up(none), None, "{none:?}");
        }
    }

    /// What was parsed has its empty port no more, and nobody would know the password in it again.
    #[test]
    fn an_empty_port_with_a_user_behind_it_is_refused() {
        for bad in ["http://ann:#hunter2@h/", "http://ann:?hunter2@h", "ann:/hunter2@h", "https:\\\\ann:\\hunter2@h"] {
            let fault = url(bad).unwrap_err().shown().0;
            assert!(fault.contains("has no port behind its colon") && !fault.contains("hunter2"), "{bad}: {fault}");
        }
        assert!(url("http://h:/x").is_ok() && url("http://ann:%23pw@h:/x").is_ok());
    }

    #[test]
    fn a_url_is_too_long_only_for_its_length() {
        for bad in ["http://{host}/x", "http://\"db\"/x", "http://a|b/", "{host}:80"] {
            let told = url(bad).unwrap_err().shown().0;
            assert!(told.contains("has no host that there could be") || told.contains("is no URL"), "{bad}: {told}");
        }
        for c in (' '..'\u{a1}').filter(|c| !"/?#\\@:".contains(*c)) {
            let text = format!("http://a{c}n:p{c}w@h/x{c}y;a={c}z/?a{c}b={c}#{c}z");
            assert!(can_be_asked_for(&Url::parse(&text).unwrap()), "{text}");
        }
        let long = |length: usize| format!("http://h/{}", "x".repeat(length - "http://h/".len()));
        assert!(url(&long(65534)).is_ok());
        let told = url(&long(65535)).unwrap_err().shown().0;
        assert_eq!(told, "the URL is too long to be asked for: 65535 bytes");
    }

    #[test]
    fn a_url_without_a_scheme_is_http() {
        assert_eq!(url("localhost:8080/x").unwrap().as_str(), "http://localhost:8080/x");
        assert_eq!(url("https://example.com").unwrap().as_str(), "https://example.com/");
        assert_eq!(url("[::1]:8080").unwrap().port(), Some(8080));
        for sloppy in ["https:/example.com/x", "HTTPS:\\\\example.com\\x", "https:///example.com/x"] {
            assert_eq!(url(sloppy).unwrap().as_str(), "https://example.com/x", "{sloppy}");
        }
        assert_eq!(url("http:8080/x").unwrap().as_str(), "http://http:8080/x");
    }
}
