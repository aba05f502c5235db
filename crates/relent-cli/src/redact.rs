//! The one way by which URLs and headers are printed or written: without what lets others in.
//!
//! Secret is what comes before the `@` of a URL, the values of a query, a header or a setting whose name says so, and URLs
//! inside of headers and messages alike. A text that is no URL may still have been meant as one, so it loses everything before
//! its last `@`. A secret that is part of a path (`/bot123:AAE/send`) cannot be told from a path, and is shown.
//!
//! What is left may still hold characters that a terminal obeys: [`escape`](crate::escape) comes after this.

mod names;

pub use names::is_secret;

use names::is_password;
use percent_encoding::percent_decode_str;
use std::{borrow::Cow, net::Ipv4Addr};
use url::Url;

/// What stands in place of a secret.
pub const HIDDEN: &str = "***";

/// What a value begins with that lets others in, whatever its name is.
const SCHEMES: [&str; 6] = ["basic", "bearer", "token", "apikey", "negotiate", "ntlm"];

/// Headers whose value is one URL, perhaps without scheme and host.
const URL_HEADERS: [&str; 4] = ["location", "content-location", "referer", "refresh"];

/// A URL, or what was given as one.
///
/// ```
/// use relent_cli::redact::url;
///
/// assert_eq!(url("https://ann:pw@host/x?token=abc&page=2"), "https://***@host/x?token=***&page=2");
/// assert_eq!(url("http://ann:p/w@host:99999999/"), "http://***@host:99999999/");
/// ```
pub fn url(text: &str) -> String {
    if let Some((name, value)) = header_in_its_place(text) {
        return format!("{name}:{}{HIDDEN}", if value.starts_with(' ') { " " } else { "" });
    }
    // A host without a scheme, as `Location` may have it. Who reads URLs takes no notice of what breaks lines.
    let bare = text.trim_start_matches(['/', '\\', '\t', '\r', '\n']);
    if text.len() > bare.len() + 1 {
        return format!("{}{}", &text[..text.len() - bare.len()], url(bare));
    }
    let (scheme, rest) = text.split_at(scheme(text));
    let whole = if scheme.is_empty() { Cow::Owned(format!("http://{text}")) } else { Cow::Borrowed(text) };
    // A backslash is a slash in the schemes of the web only.
    let is_of_the_web = Url::parse(&whole).is_ok_and(|url| url.is_special());
    let ends: &[char] = if is_of_the_web { &['/', '\\', '?', '#'] } else { &['/', '?', '#'] };
    let host = if is_url(&whole) { rest.find(ends).unwrap_or(rest.len()) } else { rest.len() };
    // No host has one that is written out: somebody took more of the URL for a user than its `@`.
    let written_out = || rest[..rest.find(ends).unwrap_or(rest.len())].rfind("%40");
    let shown = match rest[..host].rfind(AT).or_else(written_out) {
        Some(at) => format!("{scheme}{HIDDEN}{}", parameters(&rest[at..])),
        None => match no_port(scheme, &rest[..rest.find(ends).unwrap_or(rest.len())]) {
            // Whoever forgot the host has written a password where a port would be.
            Some(port) => format!("{scheme}{}{HIDDEN}", &rest[..port]),
            None => format!("{scheme}{}", parameters(rest)),
        },
    };
    settings(&shown).into_owned()
}

/// The sign behind a user, and those that an input method writes for it.
const AT: [char; 3] = ['@', '\u{ff20}', '\u{fe6b}'];

/// Where the port begins, if what stands there is none. No user is called like an address. Lists of hosts have several ports; a
/// sentence may go on behind one.
fn no_port(scheme: &str, hosts: &str) -> Option<usize> {
    let colon = hosts.find(':')?;
    if scheme.is_empty() || hosts.starts_with('[') || hosts[..colon].parse::<Ipv4Addr>().is_ok() {
        return None;
    }
    let is_port =
        |text: &str| text.trim_end_matches(|c: char| !c.is_alphanumeric()).bytes().all(|b| b.is_ascii_digit());
    let (first, others) = hosts[colon + 1..].split_once(',').unwrap_or((&hosts[colon + 1..], ""));
    let mut others = others.split(',').map(|host| host.rsplit_once(':').map_or("", |(_, port)| port));
    (!is_port(first) || !others.all(is_port)).then_some(colon + 1)
}

/// A header that was given in the place of a URL, if its value is secret. A host may have such a name, too.
fn header_in_its_place(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let port = value.split(['/', '?', '#']).next().unwrap_or_default();
    let is_host = port.bytes().all(|byte| byte.is_ascii_digit()) || value.contains('@');
    (is_name && !is_host && (is_secret(name) || is_credential(name, value))).then_some((name, value))
}

/// The value of a header.
///
/// ```
/// use relent_cli::redact::header;
///
/// assert_eq!(header("Private-Token", "glpat-1"), "***");
/// assert_eq!(header("Location", "/in?session=1"), "/in?session=***");
/// assert_eq!(header("Location", "//ann:pw@host/in"), "//***@host/in");
/// assert_eq!(header("Accept", "text/plain"), "text/plain");
/// ```
pub fn header<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret_header(name, value) {
        Cow::Borrowed(HIDDEN)
    } else if URL_HEADERS.contains(&name.to_ascii_lowercase().as_str()) && !value.contains("://") {
        // Who reads URLs takes no notice of tabs. A host may follow two slashes of either kind, or the name of a scheme alone.
        let value = value.replace('\t', "");
        if let Some(at) = value.to_ascii_lowercase().find("url=").filter(|_| name.eq_ignore_ascii_case("refresh")) {
            let (before, after) = value.split_at(at + "url=".len());
            return Cow::Owned(format!("{before}{}", url(after)));
        }
        let is_path = value.starts_with(['/', '?', '#']) && !value[1..].starts_with(['/', '\\']);
        Cow::Owned(if is_path { parameters(&value) } else { url(&value) })
    } else {
        text(value)
    }
}

/// Whether a header lets others in: its name says so, or its value.
pub(crate) fn is_secret_header(name: &str, value: &str) -> bool {
    is_secret(name) || is_credential(name, value)
}

/// Whether a value says itself that it lets others in, as `Bearer abc` does. A server that asks for one uses the same words.
fn is_credential(name: &str, value: &str) -> bool {
    let (scheme, rest) = value.trim().split_once(char::is_whitespace).unwrap_or_default();
    !rest.is_empty()
        && !name.to_ascii_lowercase().ends_with("authenticate")
        && SCHEMES.iter().any(|word| scheme.eq_ignore_ascii_case(word))
}

/// A text that may hold URLs and settings, such as the message of a library, or what somebody wrote in the wrong place.
///
/// A password may hold what ends a URL elsewhere, a space or a quote. So a later `@` counts for the URL before it, unless a
/// word begins with it: too much is hidden rather than too little.
///
/// ```
/// use relent_cli::redact::text;
///
/// assert_eq!(text("no way to http://ann:pw@host/"), "no way to http://***@host/");
/// assert_eq!(text("invalid value 'http://ann:p w@host/'"), "invalid value 'http://***@host/'");
/// assert_eq!(text("host=db password=pw"), "host=db password=***");
/// ```
pub fn text(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return match users(text) {
            Cow::Borrowed(text) => settings(text),
            Cow::Owned(text) => Cow::Owned(settings(&text).into_owned()),
        };
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(slashes) = rest.find("://") {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let begin = rest[..slashes].trim_end_matches(is_name).len();
        out.push_str(&users(&rest[..begin]));
        let (end, user) = extent(&rest[begin..]);
        let (whole, after) = rest[begin..].split_at(end);
        match user {
            Some(at) => out.extend([&whole[..slashes - begin + 3], HIDDEN, &parameters(&whole[at..])]),
            None => out.push_str(&url(whole)),
        }
        rest = after;
    }
    out.push_str(&users(rest));
    Cow::Owned(settings(&out).into_owned())
}

/// Hides what stands before the `@` in words like `ann:pw@host`: a URL that was given without its scheme.
fn users(text: &str) -> Cow<'_, str> {
    let is_user = |before: &str| {
        let Some((name, password)) = before.split_once(':') else { return false };
        let rest = password.trim_start_matches(['/', '\\']);
        let is_url = rest.len() < password.len() && rest.contains(':') && !rest.contains(['/', '\\']);
        !name.is_empty() && !password.is_empty() && (rest.len() == password.len() || is_url)
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c| !is_end(c)) {
        let (before, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(is_end).unwrap_or(word.len()));
        out.push_str(before);
        match word.rfind('@') {
            Some(at) if is_user(&word[..at]) => out.extend([HIDDEN, &word[at..]]),
            _ => out.push_str(word),
        }
        rest = after;
    }
    out.push_str(rest);
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// What ends a URL in a text, as a rule.
fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '|')
}

/// How far the URL goes that a text begins with, and where the `@` is that stands beyond what looks like its end.
fn extent(text: &str) -> (usize, Option<usize>) {
    let end = text.find(is_end).unwrap_or(text.len());
    // No host has what a password may have before its first space.
    let is_cut = !is_url(&text[..end]);
    let others = text[end..].find("://").map_or(text.len(), |next| end + next);
    let ends = text[end..others].match_indices('@').map(|(at, _)| end + at);
    let of_a_user = |at: &usize| is_cut || !text[..*at].ends_with(is_end);
    match ends.rev().find(of_a_user) {
        Some(at) => (text[at..].find(is_end).map_or(text.len(), |end| at + end), Some(at)),
        None => (end, None),
    }
}

/// Hides what is set under the name of a password, as in `host=db password=pw`.
fn settings(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(sign) = rest.find('=') {
        let (before, after) = rest.split_at(sign + 1);
        out.push_str(before);
        rest = after;
        // Connection strings and TOML may have spaces around the sign.
        let name = before.trim_end_matches('=').trim_end_matches(SPACES);
        let name = &name[name.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "_-".contains(c)).len()..];
        if is_password(name) {
            let after = rest.trim_start_matches(SPACES);
            out.push_str(&rest[..rest.len() - after.len()]);
            rest = after;
            let (value, after) = rest.split_at(value(rest));
            out.push_str(if value.is_empty() { "" } else { HIDDEN });
            rest = after;
        }
    }
    match out.is_empty() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(out + rest),
    }
}

const SPACES: [char; 2] = [' ', '\t'];

/// How long the value is that a text begins with, in quotes or not. The quote around the whole setting is not a part of it.
fn value(text: &str) -> usize {
    let quote = ["\\\"", "\\'", "\"", "'"].into_iter().find(|quote| text.starts_with(quote));
    if let Some(quote) = quote {
        let inside = &text[quote.len()..];
        return inside.find(quote).map_or(text.len(), |end| quote.len() + end + quote.len());
    }
    if let Some(after) = text.strip_prefix(HIDDEN)
        && after.starts_with(|c: char| !c.is_alphanumeric())
    {
        return HIDDEN.len();
    }
    // An empty one, of a query.
    if text.starts_with(['&', ';', '#', '?']) {
        return 0;
    }
    let word = text.find(char::is_whitespace).map_or(text, |end| &text[..end]);
    word.trim_end_matches(['\'', '"', '\\']).len()
}

/// How long the scheme is, with its colon and slashes. Browsers take `https:/host` and `https:\\\\host` for URLs, too.
fn scheme(text: &str) -> usize {
    if let Some((scheme, rest)) = text.split_once("://") {
        // Browsers take more slashes for two; others leave out the host, and may mean one all the same.
        return scheme.len() + 3 + rest.len() - rest.trim_start_matches(['/', '\\']).len();
    }
    let Some((name, rest)) = text.split_once(':') else { return 0 };
    let is_one = name.starts_with(|c: char| c.is_ascii_alphabetic()) && rest.starts_with(['/', '\\']);
    let slashes = rest.len() - rest.trim_start_matches(['/', '\\']).len();
    if is_one { name.len() + 1 + slashes } else { 0 }
}

fn is_url(text: &str) -> bool {
    Url::parse(text).is_ok()
}

/// What comes after the host: secret values in the query, in the fragment, and of parameters in the path.
fn parameters(text: &str) -> String {
    let Some(start) = text.find(['?', '#', ';']) else { return text.to_owned() };
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
    let holds_one = |text: &str| {
        let decoded = decoded(text);
        let mut pairs = decoded.split(['?', '&', ';', '#']).filter_map(|pair| pair.split_once('='));
        pairs.any(|(name, value)| is_secret(name) && !value.is_empty())
            || (decoded.contains("://") && decoded.contains('@'))
    };
    match pair.split_once('=') {
        // The sign may be written out.
        None if pair.contains('%') && holds_one(pair) => Cow::Borrowed(HIDDEN),
        None | Some((_, "")) => Cow::Borrowed(pair),
        Some((name, value)) if is_secret(&decoded(name)) || holds_one(value) => Cow::Owned(format!("{name}={HIDDEN}")),
        Some(_) => Cow::Borrowed(pair),
    }
}

/// A name or value without its percent signs, which may have been written out themselves a few times.
fn decoded(text: &str) -> String {
    let mut text = text.replace('+', " ");
    for _ in 0..4 {
        let once = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if once == text {
            break;
        }
        text = once;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_scheme_has_users_too() {
        for (given, shown) in [
            ("//ann:pw@b/", "//***@b/"),
            ("///ann:pw@b/", "///***@b/"),
            ("\\\\ann:pw@b/x", "\\\\***@b/x"),
            ("/\\ann:pw@b/?token=pw", "/\\***@b/?token=***"),
            ("/\t/ann:pw@b/", "/\t/***@b/"),
            ("//ann:pw%40b/", "//***%40b/"),
        ] {
            assert_eq!(url(given), shown, "{given:?}");
            for name in ["Location", "Content-Location", "Referer"] {
                assert_eq!(header(name, given), shown.replace('\t', ""), "{given:?}");
            }
        }
        for given in ["https:\\\\ann:pw@b", "https:/ann:pw@b", "https:ann:pw@b", "http:\t//ann:pw@b/"] {
            assert!(!header("Location", given).contains("pw"), "{given:?}: {}", header("Location", given));
        }
        for path in ["/a/b@c", "?x=1@2", "in", "/"] {
            assert_eq!(header("Location", path), path);
        }
    }

    #[test]
    fn a_password_in_the_place_of_a_port_is_hidden() {
        for (given, shown) in [
            ("http://ann:pw", "http://ann:***"),
            ("http://ann:pw/x", "http://ann:***"),
            ("http://ann:80pw?x", "http://ann:***"),
            ("http://ann:pw\u{ff20}h/", "http://***\u{ff20}h/"),
        ] {
            assert_eq!(url(given), shown, "{given:?}");
            assert_eq!(text(&format!("at {given}")), format!("at {shown}"), "{given:?}");
        }
        for port in [
            "http://h:80/",
            "http://h:/",
            "http://h:99999999",
            "http://[::1]:80/",
            "http://[::1]/",
            "m://a:1,b:2/x",
            "http://127.0.0.1:-1/",
        ] {
            assert_eq!(url(port), port);
        }
        assert_eq!(text("no connection to http://h:80: refused"), "no connection to http://h:80: refused");
    }

    #[test]
    fn the_url_of_a_refresh_has_users_too() {
        for given in ["0;url=https:\\\\ann:pw@b/", "0; URL=//ann:pw@b/", "0; url=https:/ann:pw@b"] {
            assert!(!header("Refresh", given).contains("pw"), "{given:?}: {}", header("Refresh", given));
        }
        assert_eq!(header("Refresh", "5; url=/in?x=1"), "5; url=/in?x=1");
    }

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
            ("https:///ann:pw@db/x", "https:///***@db/x"),
            ("postgres:///ann:pw@db/x", "postgres:///***@db/x"),
            ("redis:////:pw@db/x", "redis:////***@db/x"),
            ("https://\\ann:pw@db", "https://\\***@db"),
            // Written out as a whole.
            ("http://ann%3Apw%40host/x%40y", "http://***%40host/x%40y"),
            ("redis://hunter2%40host", "redis://***%40host"),
            ("hunter2%40host:80", "***%40host:80"),
            ("http://host/x%40y", "http://host/x%40y"),
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
            ("http://host/a;jsessionid=abc?page=2", "http://host/a;jsessionid=***?page=2"),
            ("http://host/a;v=1/b;sid=abc", "http://host/a;v=1/b;sid=***"),
            ("http://host/?PHPSESSID=abc&authCode=1&dbPwd=2", "http://host/?PHPSESSID=***&authCode=***&dbPwd=***"),
            ("http://host/?SAMLResponse=abc&ticket=ST-1", "http://host/?SAMLResponse=***&ticket=***"),
            // Signs that are written out, also twice.
            ("http://host/?token%3Dabc", "http://host/?***"),
            ("http://host/#/in%3Faccess_token%3Dabc", "http://host/#***"),
            ("http://host/?next=%252Fb%253Ftoken%253Dabc", "http://host/?next=***"),
            ("http://host/?to%256ben=abc", "http://host/?to%256ben=***"),
            ("http://host/?100%25&page=2", "http://host/?100%25&page=2"),
            // What is no URL but a header.
            ("Authorization: Bearer abc", "Authorization: ***"),
            ("X-Api-Key:abc", "X-Api-Key:***"),
            ("X-Upstream: Bearer abc", "X-Upstream: ***"),
            ("auth:8080/x", "auth:8080/x"),
            ("token://host/x", "token://host/x"),
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
            "X-Dbpass",
            "X-WSSE",
            "X-Pin",
            "X-Sas",
            "X-Creds",
            "X-Mfa",
            "Grpc-Metadata-Macaroon",
            "Authentication-Info",
        ] {
            assert_eq!(header(name, "abc"), HIDDEN, "{name}");
        }
        for name in
            ["Accept", "WWW-Authenticate", "X-Id", "Content-Type", "Author", "Idempotency-Key", "X-Cache-Bypass"]
        {
            assert_eq!(header(name, "abc"), "abc", "{name}");
        }
        assert_eq!(header("X-Upstream", "Bearer abc"), HIDDEN);
        assert_eq!(header("X-Upstream", "basic abc=="), HIDDEN);
        assert_eq!(header("X-Upstream", "Bearer\tabc"), HIDDEN);
        assert_eq!(header("WWW-Authenticate", "Basic realm=x"), "Basic realm=x");
        assert_eq!(header("X-Title", "Basic"), "Basic");
    }

    #[test]
    fn urls_inside_of_other_texts_are_found() {
        assert_eq!(header("Location", "https://ann:pw@host/?code=1"), "https://***@host/?code=***");
        assert_eq!(header("Location", "/back?code=1&page=2"), "/back?code=***&page=2");
        assert_eq!(header("Link", "<http://host/?token=1>; rel=\"next\""), "<http://host/?token=***>; rel=\"next\"");
        assert_eq!(text("a\nhttp://ann:pw@host/ b"), "a\nhttp://***@host/ b");
        assert_eq!(text(""), "");
    }

    /// Where something else was wanted than a URL, nobody has said where it ends.
    #[test]
    fn a_password_may_hold_what_ends_a_url() {
        for inside in
            ["p w", "p\"w", "p'w", "p|w", "p<w", "p>w", "p`w", "7 w", "7/w x", "p@ w", "p w@x", "p://w", "", "p "]
        {
            let given = format!("invalid value 'redis://ann:{inside}@host:6379/0' for '--flag'");
            assert_eq!(text(&given), "invalid value 'redis://***@host:6379/0' for '--flag'", "{given}");
        }
        assert_eq!(text(r#""redis://ann:p\"w@h/" is no size"#), r#""redis://***@h/" is no size"#);
        assert_eq!(url("redis://ann:p\\w@h/"), "redis://***@h/");
        for (given, shown) in [
            ("there is no profile \"ann:pw@host\"", "there is no profile \"***@host\""),
            ("cannot read /x/ann:pw@host: gone", "cannot read ***@host: gone"),
            ("http://host/ and ann:pw@host", "http://***@host"),
            ("RELENT_CONFIG=https:\\\\ann:pw@h: no", "***@h: no"),
            ("the value 'https:///ann:pw@db/x' is", "the value 'https:///***@db/x' is"),
            ("ann:pw@host and http://host/", "***@host and http://host/"),
        ] {
            assert_eq!(text(given), shown);
        }
        // What no user is, stays.
        for same in [
            "https://host/x; -H @FILE takes it from a file",
            "https://host/@scope/package: 404",
            "write it like https://example.com/path",
            "\"http://host:8080/\" and 'https://other/' are two",
            "store sqlite:/home/ann@example.org/state.db: it is locked",
            "git@example.org:relent.git, ann@example.org: and @FILE",
        ] {
            assert_eq!(text(same), same);
        }
    }

    #[test]
    fn settings_with_the_name_of_a_password_are_hidden() {
        for (given, shown) in [
            ("host=h password=x", "host=h password=***"),
            ("postgres://h/db user=ann password=x", "postgres://h/db user=ann password=***"),
            ("invalid value 'host=h password=x' for '--store'", "invalid value 'host=h password=***' for '--store'"),
            ("password='a b' host=h", "password=*** host=h"),
            ("{\"password=\\\"a b\\\"\"}", "{\"password=***\"}"),
            ("sslpassword=x&y API_KEY=z", "sslpassword=*** API_KEY=***"),
            ("PGPASSWORD=x psql", "PGPASSWORD=*** psql"),
            ("password=***x", "password=***"),
            ("AWS_SECRET_ACCESS_KEY=x dbpass=y", "AWS_SECRET_ACCESS_KEY=*** dbpass=***"),
            ("host=h password = x", "host=h password = ***"),
            ("password= x and password ='x y'", "password= *** and password =***"),
            ("2 | password = \"x\"", "2 | password = ***"),
            // None of these is one.
            ("password =", "password ="),
            ("grpc=10,token_ratio=0.1", "grpc=10,token_ratio=0.1"),
            ("--idempotency-key=KEY and --key=FILE", "--idempotency-key=KEY and --key=FILE"),
        ] {
            assert_eq!(text(given), shown, "{given}");
            assert_eq!(text(shown), shown, "twice is once");
            assert!(!given.contains("://") || url(given) == shown);
        }
        assert_eq!(url("host=h password=x"), "host=h password=***");
    }
}
