//! The one way by which URLs and headers are printed or written: without what lets others in.
//!
//! Secret is what comes before the `@` of a URL, what is not plainly harmless in its query, its fragment, a header or a setting whose name
//! says so, and URLs inside of headers and messages alike. A text that is no URL may still have been meant as one, so it loses everything
//! before its last `@`. A secret that is part of a path (`/bot123:AAE/send`) cannot be told from a path, and is shown.
//!
//! What is left may still hold characters that a terminal obeys: [`escape`](crate::escape) comes after this.

mod given;
mod headers;
mod lines;
mod names;
mod percent;
mod plain;
mod said_again;
mod settings;
mod texts;
mod value;

pub(crate) use given::{know, know_secrets, name, without as without_given};
pub use headers::header;
pub(crate) use headers::is_secret_header;
pub(crate) use lines::{is_beneath_a_secret, lines_of_a_file};
pub use names::is_secret;
pub use texts::text;

use names::{is_password, is_token};
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
/// assert_eq!(url("https://ann:pw@host/x?token=abc&q=def&page=2"), "https://***@host/x?token=***&q=***&page=2");
/// assert_eq!(url("http://ann:p/w@host:99999999/"), "http://***@host:99999999/");
/// ```
pub fn url(text: &str) -> String {
    wide(text, |text| url_as_it_is(text, parameters))
}

/// The same, but of parameters no more is hidden than what says itself that it is a secret.
fn url_without_secrets(text: &str) -> String {
    url_as_it_is(text, secret_parameters)
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

fn url_as_it_is(text: &str, parameters: fn(&str) -> String) -> String {
    let mut shown = at_once(text, parameters);
    // What is hidden of one part may let another be seen as what it is.
    for _ in 0..4 {
        let again = at_once(&shown, parameters);
        if again == shown {
            break;
        }
        shown = again;
    }
    shown
}

fn at_once(text: &str, parameters: fn(&str) -> String) -> String {
    if let Some((name, value)) = headers::in_its_place(text) {
        return format!("{name}:{}{HIDDEN}", if value.starts_with(' ') { " " } else { "" });
    }
    // A host without a scheme, as `Location` may have it. Who reads URLs takes no notice of what breaks lines.
    let bare = text.trim_start_matches(['/', '\\', '\t', '\r', '\n']);
    if text.len() > bare.len() + 1 {
        return format!("{}{}", &text[..text.len() - bare.len()], at_once(bare, parameters));
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
    let hosts = &rest[..rest.find(ends).unwrap_or(rest.len())];
    let written_out = || hosts.rfind("%40");
    // Behind an empty one a password may begin with a slash.
    let is_empty = !scheme.is_empty() && hosts.ends_with(':') && rest.len() > hosts.len() + 1;
    let no_port = || if is_empty { Some(hosts.len()) } else { no_port(scheme, hosts) };
    let shown = match rest[..host].rfind(AT).or_else(written_out) {
        Some(at) => format!("{scheme}{HIDDEN}{}", parameters(&rest[at..])),
        None => match no_port() {
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
    let shown = |text: &str| match text.starts_with("sqlite:") {
        true => None,
        false => value::without_user(text, scheme(text), value::of_a_server),
    };
    wide(text, |text| shown(text).unwrap_or_else(|| value::shown(text)))
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

/// How long the scheme is, with its colon and slashes. Browsers take `https:/host` and `https:\\\\host` for URLs, too, and more slashes
/// for two; others leave out the host, and may mean one all the same. What is called like a secret is none.
fn scheme(text: &str) -> usize {
    const OF_BROWSERS: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let begin = if text.starts_with("jdbc:") { "jdbc:".len() } else { 0 };
    let Some((name, rest)) = text[begin..].split_once(':') else { return 0 };
    if !is_name(name) || is_secret(name) || is_password(name) {
        return 0;
    }
    let slashes = rest.len() - rest.trim_start_matches(['/', '\\']).len();
    let is_sloppy = || slashes > 0 && OF_BROWSERS.iter().any(|scheme| name.eq_ignore_ascii_case(scheme));
    if rest.starts_with("//") || is_sloppy() { begin + name.len() + 1 + slashes } else { 0 }
}

fn is_url(text: &str) -> bool {
    Url::parse(text).is_ok()
}

/// What comes after the host. Behind the first `?` or `;` names are shown that look like words, and values that are plainly harmless; behind
/// a `#` nothing is. So nobody has to know where a value ends that was not written out, nor what is within it.
fn parameters(text: &str) -> String {
    let Some(start) = text.find(['?', '#', ';']) else { return of_a_path(text) };
    let (query, fragment) = text[start..].split_once('#').map_or((&text[start..], None), |(a, b)| (a, Some(b)));
    let mut out = of_a_path(&text[..start]);
    if !query.is_empty() {
        let (sign, pairs) = query.split_at(1);
        for (nth, pair) in pairs.split('&').enumerate() {
            out.extend([if nth == 0 { sign } else { "&" }, &parameter(pair)]);
        }
    }
    if let Some(fragment) = fragment {
        out.extend(["#", if fragment.is_empty() || is_hidden(fragment) { fragment } else { HIDDEN }]);
    }
    out
}

/// A host and a path, in which a URL with a user may stand, or a query that is written out.
fn of_a_path(text: &str) -> String {
    let begin = text.find('/').map_or(text.len(), |slash| slash + 1);
    let (before, path) = text.split_at(begin);
    let (undone, places) = percent::undone(path);
    let from = undone.rfind(AT).filter(|at| undone[..*at].contains(':')).map_or(0, |at| places[at]);
    let is_written_out = |sign: &usize| path[places[*sign]..].starts_with('%') && places[*sign] >= from;
    let query = undone.match_indices(['?', '=']).map(|(sign, _)| sign).find(is_written_out);
    let user = if from > 0 { HIDDEN } else { "" };
    format!("{before}{user}{}", value::up_to(path, query.map_or(path.len(), |sign| places[sign + 1])).split_off(from))
}

/// `name=value`, as it is shown. What has no name is a value.
fn parameter(pair: &str) -> Cow<'_, str> {
    let is_name = |name: &str| !is_token(name) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    match pair.split_once('=') {
        None if pair.is_empty() || is_hidden(pair) || plain::is_harmless("", without_end(pair)) => Cow::Borrowed(pair),
        // What ends so may be in base64.
        Some((name, "" | "="))
            if name.len() > 32 || name.contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase()) =>
        {
            Cow::Borrowed(HIDDEN)
        }
        Some((name, value)) if is_name(name) && !name.is_empty() => {
            match value.is_empty() || is_hidden(value) || plain::is_harmless(name, without_end(value)) {
                true => Cow::Borrowed(pair),
                false => Cow::Owned(format!("{name}={HIDDEN}")),
            }
        }
        _ => Cow::Borrowed(HIDDEN),
    }
}

/// Without what ends a sentence or a part of one.
fn without_end(text: &str) -> &str {
    text.trim_end_matches([':', ';', '.', ',', ')'])
}

/// Whether nothing is left of a value.
fn is_hidden(text: &str) -> bool {
    without_end(text) == HIDDEN
}

/// Parameters anywhere, without the values of names that say themselves that they are secret.
fn secret_parameters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(['?', '&', ';', '#', ',']) {
        let pair = piece.trim_end_matches(['?', '&', ';', '#', ',']);
        match pair.split_once('=') {
            Some((name, value)) if is_secret(name) && !value.is_empty() => {
                out.extend([name, "=", HIDDEN, &piece[pair.len()..]]);
            }
            _ => out.push_str(piece),
        }
    }
    out
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
            assert!(!server(given).contains("ter2") && server(given).contains("=***"), "{}", server(given));
        }
        for given in ["AccountKey=hunter2;x=1", "SharedAccessKey=hunter2", "pw=hunter2", "passwort=hunter2"] {
            assert!(!text(given).contains("hunter2"), "{given}");
        }
    }

    /// What was written down can be shown again, and no sign before or behind a value gets it out.
    #[test]
    fn whatever_is_made_of_signs_is_shown_once_as_twice() {
        const SIGNS: [&str; 30] = [
            "http", "://", "@", ":", "/", "?", "#", "&", ";", "=", "token", "***", "%40", "%3D", "a", "1", " ", "'",
            "\"", "\\", ".", ",", "sqlite:", "redis://", "{", "}", "key", "auth:80", "\u{ff20}", "-",
        ];
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize
        };
        for _ in 0..20_000 {
            let many = 1 + next() % 9;
            let mut signs = || (0..many).map(|_| SIGNS[next() % SIGNS.len()]).collect::<String>();
            let (before, behind) = (signs(), signs());
            let once = url(&before);
            assert_eq!(url(&once), once, "{before:?}");
            if before.contains('&') {
                continue;
            }
            let given = format!("http://h/?token={before}hunter2{behind}");
            assert!(!url(&given).contains("hunter2") && !value(&given).contains("hunter2"), "{given:?}");
            for name in ["kennwort=", "X-Api-Key:", "token "] {
                let given = format!("{name}{before}hunter2{behind}");
                assert!(!value(&given).contains("hunter2"), "{given:?}: {}", value(&given));
            }
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
        for path in ["/a/b@c", "?x=12", "in", "/"] {
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
            ("Link", "</x?sig=pw&code=pw>; rel=next", "</x?sig=***&code=***>; rel=next"),
            ("Content-Type", "text/html;charset=utf-8;sid=pw", "text/html;charset=utf-8;sid=***"),
            ("Server", "x/?kennwort=pw", "x/?kennwort=***"),
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
            ("localhost:/x@y", "***@y"),
            ("https:///ann:pw@db/x", "https:///***@db/x"),
            ("postgres:///ann:pw@db/x", "postgres:///***@db/x"),
            ("redis:////:pw@db/x", "redis:////***@db/x"),
            ("https://\\ann:pw@db", "https://\\***@db"),
            // Written out as a whole.
            ("http://ann%3Apw%40host/x%40y", "http://***%40host/x%40y"),
            ("redis://hunter2%40host", "redis://***%40host"),
            ("hunter2%40host:80", "***%40host:80"),
            ("http://host/x%40y", "http://host/x%40y"),
            // A URL may stand in the path of another.
            ("http://h/get/https://ann:pw@b/x", "http://h/***@b/x"),
            ("http://h/get/https%3A%2F%2Fann%253Apw%2540b/x", "http://h/***%2540b/x"),
            ("/get/ann:pw@b/x", "/***@b/x"),
            ("http://h/x%3Ftoken%253Dpw", "http://h/x%3F***"),
            ("/x/token%3Dpw", "/x/token%3D***"),
            ("/x/token%3D", "/x/token%3D"),
            ("http://h/get/http%3A%2F%2Fann:pw%40b%3Fpw=1", "http://h/***%40b%3F***"),
            ("http://ann:/pw", "http://ann:***"),
            // An `@` of a path is none of a user.
            ("https://host/@scope/package", "https://host/@scope/package"),
        ] {
            assert_eq!(url(given), shown, "{given}");
        }
    }

    #[test]
    fn of_a_query_what_is_plainly_harmless_is_shown() {
        for (given, shown) in [
            ("http://host/?token=abc&page=2", "http://host/?token=***&page=2"),
            ("http://host/?q=abc&wait=10s&q=0.9&limit=1000", "http://host/?q=***&wait=10s&q=0.9&limit=1000"),
            ("http://host/?n=10000&x=1234567", "http://host/?n=***&x=***"),
            ("http://host/?pin=4815&otp=12", "http://host/?pin=***&otp=***"),
            ("http://host/?abc&12&a=&=x", "http://host/?***&12&a=&***"),
            (
                "http://host/?X-Amz-Signature=f00&X-Amz-Expires=300",
                "http://host/?X-Amz-Signature=***&X-Amz-Expires=300",
            ),
            ("m://host/db?sslmode=require&prefix=a_&key=a", "m://host/db?sslmode=require&prefix=a_&key=***"),
            ("http://host/?to%6ben=12&glpat-secret7=1", "http://host/?***&***"),
            ("http://host/?next=http://ann:pw@b/?token=12", "http://host/?next=***"),
            // Signs of a URL that stand in a value are a part of it.
            ("http://host/?token=ab?cd&page=2", "http://host/?token=***&page=2"),
            ("http://host/?token=?abc", "http://host/?token=***"),
            ("http://host/?page=2;api_key=abc", "http://host/?page=***"),
            ("/cb?code=abc&next=https://b/", "/cb?code=***&next=***"),
            ("cb?access_token=abc&u=http://c", "cb?access_token=***&u=***"),
            ("/a;jsessionid=abc;u=http://c/", "/a;jsessionid=***"),
            ("http://host/a;jsessionid=abc?page=2", "http://host/a;jsessionid=***"),
            ("http://host/a;v=1?page=2", "http://host/a;v=***"),
            ("http://host/a;v=1", "http://host/a;v=1"),
            // Nothing is shown of a fragment.
            ("http://host/#access_token=abc", "http://host/#***"),
            ("http://host/?a=1#b?session=abc", "http://host/?a=1#***"),
            ("http://host/?token=ab#cd&page=2", "http://host/?token=***#***"),
            ("http://host/#", "http://host/#"),
            ("http://host/?sig=abc&signal=1", "http://host/?sig=***&signal=1"),
            ("http://host/?token=&token", "http://host/?token=&***"),
            ("http://host/?aHVudGVyMg==&aHVudGVyMg=", "http://host/?***&***"),
            ("http://ho st/?password=abc", "http://ho st/?password=***"),
            // What is no URL but a header.
            ("Authorization: Bearer abc", "Authorization: ***"),
            ("X-Api-Key:abc", "X-Api-Key:***"),
            ("X-Api-Key:/abc", "X-Api-Key:***"),
            ("X-Upstream: Bearer abc", "X-Upstream: ***"),
            ("auth:8080/x", "auth:***"),
            ("token://host/x", "token:***"),
        ] {
            assert_eq!(url(given), shown);
            assert_eq!(url(shown), shown, "twice is once");
        }
        // What ends a sentence is no part of it.
        for same in ["to http://host/?page=2: refused", "(http://host/?page=2).", "http://host/?token=***; or"] {
            assert_eq!(text(same), same);
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
