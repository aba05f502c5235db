//! The one way by which URLs and headers are printed or written: without what lets others in.
//!
//! Secret is what comes before the `@` of a URL, the values of a query or a header whose name says so, and URLs inside
//! of headers and messages alike. A text that is no URL may still have been meant as one, so it loses everything before
//! its last `@`. A secret that is part of a path (`/bot123:AAE/send`) cannot be told from a path, and is shown.
//!
//! What is left may still hold characters that a terminal obeys: [`escape`](crate::escape) comes after this.

use std::borrow::Cow;
use url::Url;

/// What stands in place of a secret.
pub const HIDDEN: &str = "***";

/// The parts of names that say that a value is secret.
const SECRET: [&str; 16] = [
    "token",
    "key",
    "secret",
    "passw",
    "passphrase",
    "session",
    "cookie",
    "authoriz",
    "x-auth",
    "credential",
    "signature",
    "jwt",
    "assertion",
    "api-id",
    "client-cert",
    "csrf",
];

/// The names that are secret as a whole, where a part of a name would say too much.
const SECRET_NAMES: [&str; 13] =
    ["auth", "pass", "pwd", "pw", "sig", "sid", "sas", "code", "pin", "otp", "nonce", "authentication", "bearer"];

/// What sounds like a secret and is none: it lets nobody in, and has to reach the server that a redirect names.
const NO_SECRET: &str = "idempotency-key";

/// Headers whose value is one URL, perhaps without scheme and host.
const URL_HEADERS: [&str; 4] = ["location", "content-location", "referer", "refresh"];

/// Whether what has this name (a header, a parameter, a variable) lets others in.
///
/// ```
/// use relent_cli::redact::is_secret;
///
/// assert!(is_secret("X-Api-Key") && is_secret("access_token") && is_secret("PGPASSWORD"));
/// assert!(!is_secret("Accept"));
/// ```
pub fn is_secret(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase().replace('_', "-");
    if name == NO_SECRET {
        return false;
    }
    SECRET.iter().any(|part| name.contains(part)) || SECRET_NAMES.contains(&name.as_str())
}

/// A URL, or what was given as one.
///
/// ```
/// use relent_cli::redact::url;
///
/// assert_eq!(url("https://ann:pw@host/x?token=abc&page=2"), "https://***@host/x?token=***&page=2");
/// assert_eq!(url("http://ann:p/w@host:99999999/"), "http://***@host:99999999/");
/// ```
pub fn url(text: &str) -> String {
    let (scheme, rest) = text.split_at(scheme(text));
    let whole = if scheme.is_empty() { Cow::Owned(format!("http://{text}")) } else { Cow::Borrowed(text) };
    let host = if is_url(&whole) { rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()) } else { rest.len() };
    match rest[..host].rfind('@') {
        Some(at) => format!("{scheme}{HIDDEN}{}", parameters(&rest[at..])),
        None => format!("{scheme}{}", parameters(rest)),
    }
}

/// The value of a header.
///
/// ```
/// use relent_cli::redact::header;
///
/// assert_eq!(header("Private-Token", "glpat-1"), "***");
/// assert_eq!(header("Location", "/in?session=1"), "/in?session=***");
/// assert_eq!(header("Accept", "text/plain"), "text/plain");
/// ```
pub fn header<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret(name) {
        Cow::Borrowed(HIDDEN)
    } else if URL_HEADERS.contains(&name.to_ascii_lowercase().as_str()) && !value.contains("://") {
        Cow::Owned(parameters(value))
    } else {
        text(value)
    }
}

/// A text that may hold URLs, such as the message of a library.
///
/// ```
/// use relent_cli::redact::text;
///
/// assert_eq!(text("no way to http://ann:pw@host/"), "no way to http://***@host/");
/// ```
pub fn text(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '|');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ends).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        out.push_str(&if word.contains("://") { Cow::Owned(url(word)) } else { Cow::Borrowed(word) });
        let next = after.find(|c| !ends(c)).unwrap_or(after.len());
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    Cow::Owned(out)
}

/// How long the scheme is, with its colon and slashes. Browsers take `https:/host` and `https:\\\\host` for URLs, too.
fn scheme(text: &str) -> usize {
    if let Some((scheme, _)) = text.split_once("://") {
        return scheme.len() + 3;
    }
    let Some((name, rest)) = text.split_once(':') else { return 0 };
    let is_one = name.starts_with(|c: char| c.is_ascii_alphabetic()) && rest.starts_with(['/', '\\']);
    let slashes = rest.len() - rest.trim_start_matches(['/', '\\']).len();
    if is_one { name.len() + 1 + slashes } else { 0 }
}

fn is_url(text: &str) -> bool {
    Url::parse(text).is_ok()
}

/// What comes after the host: secret values in the query and in the fragment.
fn parameters(text: &str) -> String {
    let Some(start) = text.find(['?', '#']) else { return text.to_owned() };
    let mut out = text[..start].to_owned();
    let mut rest = &text[start..];
    while let Some(sign) = rest.chars().next() {
        out.push(sign);
        let pair = &rest[sign.len_utf8()..];
        let end = pair.find(['&', ';', '#', '?']).unwrap_or(pair.len());
        out.push_str(&parameter(&pair[..end]));
        rest = &pair[end..];
    }
    out
}

/// `name=value`, its value hidden if the name says so or if it holds a URL or parameters that are secret.
fn parameter(pair: &str) -> Cow<'_, str> {
    let Some((name, value)) = pair.split_once('=') else { return Cow::Borrowed(pair) };
    if value.is_empty() {
        return Cow::Borrowed(pair);
    }
    let decoded = decoded(value);
    let holds_one = decoded.split(['?', '&', ';', '#']).filter_map(|pair| pair.split_once('='));
    let is_hidden = is_secret(&self::decoded(name))
        || holds_one.into_iter().any(|(name, _)| is_secret(name))
        || (decoded.contains("://") && decoded.contains('@'));
    if is_hidden { Cow::Owned(format!("{name}={HIDDEN}")) } else { Cow::Borrowed(pair) }
}

/// A name or value without its percent signs.
fn decoded(text: &str) -> String {
    let pairs = url::form_urlencoded::parse(text.as_bytes());
    pairs.map(|(name, value)| if value.is_empty() { name.into_owned() } else { format!("{name}={value}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_stands_before_the_at_is_hidden() {
        for (given, shown) in [
            ("http://ann:pw@host/x", "http://***@host/x"),
            ("https://ghp_0123456789@github.com/x.git", "https://***@github.com/x.git"),
            ("ann:pw@host", "***@host"),
            ("http://a@b:c@host/", "http://***@host/"),
            // None of these can be parsed.
            ("http://ann:p/w@host/", "http://***@host/"),
            ("http://ann:p?w@host/", "http://***@host/"),
            ("http://ann:p#w@host/", "http://***@host/"),
            ("http://ann:pw@host:99999999/", "http://***@host:99999999/"),
            ("http://ann:pw@ho st/", "http://***@ho st/"),
            ("socks5h://ann:pw@proxy:1080", "socks5h://***@proxy:1080"),
            ("https:/ann:pw@host/", "https:/***@host/"),
            ("https:\\\\ann:pw@host", "https:\\\\***@host"),
            ("localhost:/x@y", "localhost:/***@y"),
            // An `@` of a path is none of a user.
            ("https://host/@scope/package", "https://host/@scope/package"),
            ("https://host/?mail=a@b", "https://host/?mail=a@b"),
        ] {
            assert_eq!(url(given), shown);
        }
    }

    #[test]
    fn values_of_secret_names_are_hidden() {
        for (given, shown) in [
            ("http://host/?token=abc&page=2", "http://host/?token=***&page=2"),
            ("http://host/?page=2;api_key=abc", "http://host/?page=2;api_key=***"),
            ("http://host/?X-Amz-Signature=f00&X-Amz-Date=1", "http://host/?X-Amz-Signature=***&X-Amz-Date=1"),
            ("http://host/?to%6ben=abc", "http://host/?to%6ben=***"),
            ("http://host/#access_token=abc", "http://host/#access_token=***"),
            ("http://host/?a=1#b?session=abc", "http://host/?a=1#b?session=***"),
            ("http://host/?next=http%3A%2F%2Fb%2F%3Ftoken%3Dabc", "http://host/?next=***"),
            ("http://host/?db=pg%3A%2F%2Fann%3Apw%40db", "http://host/?db=***"),
            ("http://host/?sig=abc&signal=1", "http://host/?sig=***&signal=1"),
            ("http://host/?token=&token", "http://host/?token=&token"),
            ("http://ho st/?password=abc", "http://ho st/?password=***"),
        ] {
            assert_eq!(url(given), shown);
        }
    }

    #[test]
    fn headers_that_say_so_are_hidden() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "Cookie",
            "Set-Cookie",
            "X-Api-Key",
            "Private-Token",
            "X-Auth",
            "X-Auth-User",
            "x_session_id",
            "X-Amz-Security-Token",
            "X-Vault-Token",
            "Client-Secret",
            "X-Password",
        ] {
            assert_eq!(header(name, "abc"), HIDDEN, "{name}");
        }
        for name in ["Accept", "WWW-Authenticate", "X-Id", "Content-Type", "Author", "Idempotency-Key"] {
            assert_eq!(header(name, "abc"), "abc", "{name}");
        }
    }

    #[test]
    fn urls_inside_of_other_texts_are_found() {
        assert_eq!(header("Location", "https://ann:pw@host/?code=1"), "https://***@host/?code=***");
        assert_eq!(header("Location", "/back?code=1&page=2"), "/back?code=***&page=2");
        assert_eq!(header("Link", "<http://host/?token=1>; rel=\"next\""), "<http://host/?token=***>; rel=\"next\"");
        assert_eq!(text("a\nhttp://ann:pw@host/ b"), "a\nhttp://***@host/ b");
        assert_eq!(text(""), "");
    }
}
