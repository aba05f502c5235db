//! The one way by which URLs and headers are printed or written: without what lets others in.
//!
//! Secret is what comes before the `@` of a URL, the values of a query, a header or a setting whose name says so, and URLs
//! inside of headers and messages alike. A text that is no URL may still have been meant as one, so it loses everything before
//! its last `@`. A secret that is part of a path (`/bot123:AAE/send`) cannot be told from a path, and is shown.
//!
//! What is left may still hold characters that a terminal obeys: [`escape`](crate::escape) comes after this.

mod given;
mod headers;
mod lines;
mod names;
mod plain;
mod settings;
mod texts;
mod value;

pub(crate) use given::{know, without as without_given};
pub use headers::header;
pub(crate) use headers::is_secret_header;
pub(crate) use lines::lines_of_a_file;
pub use names::is_secret;
pub use texts::text;

use percent_encoding::percent_decode_str;
use settings::settings;
use std::{borrow::Cow, net::Ipv4Addr};
use url::Url;

/// What stands in place of a secret.
pub const HIDDEN: &str = "***";

/// A path with what follows it, as it stands in the head of a request.
pub(crate) fn path(text: &str) -> String {
    settings(&wide(text, parameters)).into_owned()
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
    wide(text, url_as_it_is)
}

/// What a text is shown as, if wide signs in it count as others do; a text that has nothing to hide stays as it is.
fn wide(text: &str, shown: impl Fn(&str) -> String) -> String {
    match plain::narrow(text) {
        Cow::Borrowed(text) => shown(text),
        Cow::Owned(narrow) => match shown(&narrow) {
            same if same == narrow => text.to_owned(),
            other => other,
        },
    }
}

fn url_as_it_is(text: &str) -> String {
    let mut shown = at_once(text);
    // What is hidden of one part may let another be seen as what it is.
    for _ in 0..4 {
        let again = at_once(&shown);
        if again == shown {
            break;
        }
        shown = again;
    }
    shown
}

fn at_once(text: &str) -> String {
    if let Some((name, value)) = headers::in_its_place(text) {
        return format!("{name}:{}{HIDDEN}", if value.starts_with(' ') { " " } else { "" });
    }
    // A host without a scheme, as `Location` may have it. Who reads URLs takes no notice of what breaks lines.
    let bare = text.trim_start_matches(['/', '\\', '\t', '\r', '\n']);
    if text.len() > bare.len() + 1 {
        return format!("{}{}", &text[..text.len() - bare.len()], at_once(bare));
    }
    let (scheme, rest) = text.split_at(scheme(text));
    let whole = if scheme.is_empty() { Cow::Owned(format!("http://{text}")) } else { Cow::Borrowed(text) };
    // A backslash is a slash in the schemes of the web only.
    let is_of_the_web = Url::parse(&whole).is_ok_and(|url| url.is_special());
    let ends: &[char] = if is_of_the_web { &['/', '\\', '?', '#'] } else { &['/', '?', '#'] };
    let host = rest.find(ends).unwrap_or(rest.len());
    // Behind an empty port a password may go on.
    let is_whole = is_url(&whole) && !(rest[..host].ends_with(':') && rest[host..].contains(AT));
    let host = if is_whole { host } else { rest.len() };
    if host == rest.len()
        && let Some(shown) = value::without_user(text, scheme.len(), parameters)
    {
        return settings(&shown).into_owned();
    }
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

/// What was given for something else than a URL, as it is shown in the place of what it was given as.
pub(crate) fn value(text: &str) -> String {
    match value::shown(text) {
        shown if shown == text => url(text),
        shown => shown,
    }
}

/// A URL whose `@` is that of a user wherever it stands, but behind the name of a parameter: of a store or a proxy, whose paths have none.
/// A password may look like a port and a path.
///
/// ```
/// use relent_cli::redact::server;
///
/// assert_eq!(server("postgres://ann:12/pw@host/db"), "postgres://***@host/db");
/// assert_eq!(server("postgres://ann@host/db?password=p;w"), "postgres://***@host/db?password=***");
/// assert_eq!(server("postgres://ann@host/db?password=p@w"), "postgres://***@host/db?password=***");
/// ```
pub fn server(text: &str) -> String {
    wide(text, |text| value::without_user(text, scheme(text), value::of_a_server).unwrap_or_else(|| value::shown(text)))
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
        if settings(&decoded) != decoded || texts::users(&decoded) != decoded || plain::secret(&decoded, true).is_some()
        {
            return true;
        }
        let mut pairs = decoded.split(['?', '&', ';', '#']).filter_map(|pair| pair.split_once('='));
        pairs.any(|(name, value)| is_secret(name) && !value.is_empty())
            || (decoded.contains("://") && decoded.contains('@'))
    };
    match pair.split_once('=') {
        // The sign may be written out.
        None if pair.contains('%') && holds_one(pair) => Cow::Borrowed(HIDDEN),
        None | Some((_, "")) => Cow::Borrowed(pair),
        // What ends a sentence, behind one that was hidden before.
        Some((_, value)) if value.strip_prefix(HIDDEN).is_some_and(|end| [":", ".", ","].contains(&end)) => {
            Cow::Borrowed(pair)
        }
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
    fn what_was_hidden_is_shown_as_it_is() {
        let odd = "http\0os\0t/x?token=\u{3}http://\0\0 \u{15} --delay 2\0\u{fffd} -delay 2b";
        for given in [odd, "postgres://ann@h/db?password=p;w#x", "http://ann:pw@h/?key=http://b:pw@h2/ x"] {
            let once = url(given);
            assert_eq!(url(&once), once, "{given:?}");
        }
        for given in
            ["postgres://ann@h/db?password=hun;ter2", "redis://h?token=hun#ter2&x=1", "rediss://a:b@h?pw=hun?ter2"]
        {
            assert!(!server(given).contains("ter2") && server(given).ends_with("=***"), "{}", server(given));
        }
        for given in ["AccountKey=hunter2;x=1", "SharedAccessKey=hunter2", "pw=hunter2", "passwort=hunter2"] {
            assert!(!text(given).contains("hunter2"), "{given}");
        }
    }

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
            ("http://ann:pw\u{ff20}h/", "http://***@h/"),
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
    fn secrets_inside_of_headers_are_found() {
        for (name, given, shown) in [
            ("Link", "</x?sig=pw&code=pw>; rel=next", "</x?sig=***&code=***; rel=next"),
            ("X-Original-URL", "/y?sig=pw&page=2", "/y?sig=***&page=2"),
            (
                "Content-Security-Policy",
                "default-src 'self'; report-uri /r?key=pw",
                "default-src 'self'; report-uri /r?key=***",
            ),
            ("X-Url", "https://h/x?page=2&token=pw", "https://h/x?page=2&token=***"),
            ("Server", "{\"password\":\"pw\"}", "{\"password\":***}"),
            ("Server", "a SharedKey a:pw", "a SharedKey ***"),
            ("Server", "\"Basic pw\"", "\"Basic ***"),
            // Of others nobody can know.
            ("X-D", "{\"password\":\"pw\"}", "***"),
            ("X-D", "token: pw", "token:***"),
            ("X-D", "auth=Bearer pw", "auth=***"),
            ("X-D", "a SharedKey a:pw", "a SharedKey ***"),
            ("X-D", "glpat-secret7", "***"),
            ("X-D", "%7B%22password%22%3A%22pw%22%7D", "***"),
            ("X-D", "http%3A%2F%2Fann%3Apw%40h", "http***"),
            ("X-D", "Bearer:pw", "Bearer:***"),
            ("X-D", "[Bearer pw]", "[Bearer ***"),
            ("X-D", "Bearer,pw", "Bearer,***"),
            ("X-D", "AWS4-HMAC-SHA256 Credential=a/pw, Signature=pw", "AWS4-HMAC-SHA256 ***"),
            ("X-D", "a=1; sid=pw", "a=***"),
            ("X-D", "connect.sid=pw", "connect.sid=***"),
            ("X-D", "secret|pw", "secret***"),
            ("X-D", "a SSWS pw", "a SSWS ***"),
            ("X-D", "PRIVATE-TOKEN pw", "PRIVATE-TOKEN ***"),
            ("X-D", "kennwort=pw", "kennwort=***"),
            ("X-D", "postgres://ann:pw@h/db?password=pw;pw", "postgres://***@h/db?password=***"),
        ] {
            assert_eq!(header(name, given), shown, "{given}");
        }
        for same in ["text/html; q=0.9, */*", "max-age=1, public", "W/\"a?b\"", "application/basic x", "a key"] {
            assert_eq!(header("Accept", same), same);
        }
        for same in ["HIT", "1", "a key", "req-7f.3, b", "10.0.0.1", "h:80", "/x/y?page=2", "nosniff", "5ms"] {
            assert_eq!(header("X-Some", same), same);
        }
        assert_eq!(header("WWW-Authenticate", "Digest realm=x, Basic realm=y"), "Digest realm=x, Basic realm=y");
    }

    #[test]
    fn whatever_stands_before_the_at_is_hidden() {
        for (given, shown) in [
            ("http://ann:pw@host/x", "http://***@host/x"),
            ("https://ghp_0123456789@github.com/x.git", "https://***@github.com/x.git"),
            ("ann:pw@host", "***@host"),
            ("http://a@b:c@host/", "http://***@host/"),
            ("http://ann:#pw@host/", "http://***@host/"),
            ("http://ann:/pw@host/", "http://***@host/"),
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
            "X-JFrog-Art-Api",
            "X-Pat",
            "X-Tkn",
            "pswd",
            "tok",
            "hdnts",
            "hdnea",
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
}
