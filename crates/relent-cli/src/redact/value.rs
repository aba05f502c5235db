//! One value that is known as a whole, as it is shown.
//!
//! What is no plain URL loses everything before its last `@`, everything behind the name of a secret, and everything from the first sign
//! on behind which one could stand ([`plain`]). Where a secret may have an `@` in it, nothing behind its name is shown.

use super::{
    AT, HIDDEN,
    looks::as_it_looks,
    names::{is_secret, is_token},
    plain::{self, up_to},
    query::{parameters, secret_parameters},
    undone::decoded,
    url::{is_url, scheme, url, url_without_secrets, wide},
    users::{Behind, behind_a_user, without_user, written_out},
};
use std::net::{IpAddr, SocketAddr};

/// What was given for something else than a URL, as it is shown in the place of what it was given as.
pub(crate) fn value(text: &str) -> String {
    match shown(text) {
        shown if shown == text => url(text),
        shown => shown,
    }
}

/// A word of a command line: what touches the letter of a flag is its value.
pub(crate) fn word(text: &str) -> String {
    match value(text) {
        same if same == text => value(&format!("{text} ")).trim_end().to_owned(),
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
    let of_a_user = |text: &str| match text.starts_with("sqlite:") {
        true => None,
        false => without_user(text, scheme(text), of_a_server),
    };
    wide(text, |text| of_a_user(text).unwrap_or_else(|| shown(text)))
}

/// A value as it is shown.
pub(super) fn shown(value: &str) -> String {
    let narrow = plain::narrow(value);
    let shown = as_shown(&narrow, false).0;
    if shown == narrow { value.to_owned() } else { shown }
}

/// A value as it is shown, and as it would be if nothing were a secret but what says so. Names that somebody chose may have signs in them.
pub(super) fn as_shown(value: &str, is_name: bool) -> (String, String) {
    let (shown, without_secrets) = as_a_whole(value, is_name);
    match shown == value {
        true => (shown, without_secrets),
        false => (shown, in_its_parts(value).unwrap_or(without_secrets)),
    }
}

/// A value without what says that it is a secret, where it is plain what ends where: in JSON, and in a form as it is sent.
fn in_its_parts(value: &str) -> Option<String> {
    if is_json(value) {
        let without = as_it_looks(value);
        // What ends a list may stand in a text of it.
        return is_json(&without.replace(HIDDEN, "1")).then(|| without.into_owned());
    }
    (value.contains('&') && value.split('&').all(is_pair)).then(|| secret_parameters(value, &['&']))
}

/// Whether a pair of a form stands there, and nothing that may have a secret in it but the value of a name that says so.
fn is_pair(text: &str) -> bool {
    let (name, value) = text.split_once('=').unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-[]".contains(c);
    let is_plain = |text: &str| text.chars().all(|c| plain::is_of_a_word(c) || ":,".contains(c));
    let value = value.trim_end_matches('=');
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_name)
        && !value.contains(['=', ' '])
        && (is_secret(name) || is_plain(&decoded(value).unwrap_or_else(|| value.to_owned())))
}

/// Whether a text is JSON as far as its quotes tell, and no token is in it.
fn is_json(text: &str) -> bool {
    let pieces = || text.trim().split("\"");
    let is_string = |nth: usize| nth % 2 == 1;
    // Signs, numbers, `true`, `false` and `null`.
    let is_outside = |c: char| c.is_ascii_digit() || c.is_whitespace() || "{}[]:,+-.E true false null".contains(c);
    let mut all = pieces().enumerate();
    text.trim().starts_with(['{', '['])
        && !is_string(pieces().count() - 1)
        && all.all(|(nth, piece)| if is_string(nth) { !is_token(piece) } else { piece.chars().all(is_outside) })
}

/// The same of a value of which nobody can say what ends where.
fn as_a_whole(value: &str, is_name: bool) -> (String, String) {
    let same = |text: String| (text.clone(), text);
    if is_token(value) {
        return same(HIDDEN.to_owned());
    }
    let is_word = plain::is_word(value) && plain::secret(value, false).is_none();
    if is_word || is_host_with_port(value) || value.parse::<IpAddr>().is_ok() || value.parse::<SocketAddr>().is_ok() {
        return same(value.to_owned());
    }
    let of_a_url = || (url(value), url_without_secrets(value));
    let is_plain = scheme(value) > 0 && value.contains("://") && is_url(value) && !value.contains(is_odd);
    let is_of_the_web = ["http", "https", "ws", "wss"].iter().any(|name| value.starts_with(&format!("{name}://")));
    let rest = &value[scheme(value)..];
    let is_one = is_plain && if is_of_the_web { !is_cut_short(rest) } else { !value.contains(AT) && has_a_host(rest) };
    if is_one || (!value.contains(is_odd) && begins_with_a_host(value)) {
        return of_a_url();
    }
    // A path may have all signs in it but this one.
    if let Some(query) = value.find('?').filter(|_| value.starts_with("sqlite:") || value.starts_with("memory:")) {
        let (shown, without_secrets) = as_a_whole(&value[..query], is_name);
        let query = parameters(&value[query..]);
        return (shown + &query, without_secrets + &query);
    }
    let begin = match ["sqlite:", "unix:", "memory:"].iter().find(|name| value.starts_with(*name)) {
        Some(name) => name.len(),
        None if plain::is_word(&value[..scheme(value)].replace([':', '\\'], "")) => scheme(value),
        None => 0,
    };
    let is_user = |at: &usize| {
        // A name may have one, a part of a path begin with one, and a file of systemd's end with one.
        let (before, behind) = (&value[begin..*at], value[*at..].trim_start_matches(AT));
        let is_none = before.is_empty() || before.ends_with('/') || behind.starts_with('.');
        let is_of_a_name = is_name && plain::is_word(before);
        let is_of_a_path = is_a_path(value, *at);
        !(is_none || is_of_a_name || is_of_a_path)
    };
    let at = value.rfind(AT).filter(|at| *at >= begin).filter(is_user);
    // A word may be one by chance, and stand elsewhere, too.
    let is_by_chance = at.is_some_and(|at| begin == 0 && plain::is_word(&value[..at]));
    let (head, rest) = match at {
        Some(at) => match behind_a_user(value, begin, at) {
            Behind::All(at) => (format!("{}{HIDDEN}", &value[..begin]), &value[at..]),
            // A part of a script may be told elsewhere.
            Behind::Nothing if begin == 0 && value.contains(char::is_whitespace) => {
                let end = plain::secret(value, true).unwrap_or(value.len());
                return (HIDDEN.to_owned(), up_to(value, end));
            }
            Behind::Nothing => return same(format!("{}{HIDDEN}", &value[..begin])),
            Behind::Setting(end) => return same(up_to(value, end)),
        },
        None if !value.contains(AT)
            && written_out(&value[begin..]).is_some_and(|at| begin > 0 || plain::is_word(&value[..at])) =>
        {
            return same(format!("{}{HIDDEN}", &value[..begin]));
        }
        None => (value[..begin].to_owned(), &value[begin..]),
    };
    let plain = if is_name { plain::shown_of_a_name(rest) } else { plain::shown(rest) };
    let secret = |has_to_be| plain::secret_of(rest, has_to_be, is_name).unwrap_or(rest.len());
    let shown = format!("{head}{}", up_to(rest, plain.min(secret(false))));
    // A URL of a server, or what looks like one, may hide its secret elsewhere.
    match shown == value && value.contains("://") {
        true => of_a_url(),
        false => {
            let head = if is_by_chance { &value[..value.len() - rest.len()] } else { &head };
            (shown, format!("{head}{}", up_to(rest, secret(true))))
        }
    }
}

/// Whether an `@` stands in the path of a store's file or of a socket: a socket has no user, but what is meant as a server may have one.
fn is_a_path(value: &str, at: usize) -> bool {
    let path = value.strip_prefix("unix:").map(|_| &value["unix:".len()..at]);
    value.starts_with("sqlite:")
        || path.is_some_and(|path| path.starts_with('/') && !path.starts_with("//") && !path.contains(':'))
}

/// Whether a value is a host and its port, and nothing else, whatever the host is called.
fn is_host_with_port(value: &str) -> bool {
    value.split_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c))
            && (1..=5).contains(&port.len())
            && port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// What stands in no URL as it is.
pub(super) fn is_odd(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`<>|\\{}".contains(c)
}

/// What follows the user of a server's URL, as it is shown.
fn of_a_server(text: &str) -> String {
    let (place, query) = text.split_at(text.find(['?', '#', ';']).unwrap_or(text.len()));
    match plain::shown(place).min(plain::secret(place, true).unwrap_or(place.len())) {
        end if end < place.len() => up_to(place, end),
        _ => format!("{place}{}", parameters(query)),
    }
}

/// Whether a value is a URL of the web without its scheme: a host with a dot or a port, and a path.
fn begins_with_a_host(value: &str) -> bool {
    let Some((host, _)) = value.split_once('/') else { return false };
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let is_one = name == "localhost" || !port.is_empty() || name.trim_start_matches('.').contains('.');
    is_one
        && has_a_host(value)
        && !name.starts_with('.')
        && !is_cut_short(value)
        && (port.is_empty() || !is_secret(name))
}

/// Whether a host like a name stands there, perhaps with a port.
fn has_a_host(text: &str) -> bool {
    let host = &text[..text.find(['/', '?', '#', ';']).unwrap_or(text.len())];
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    let is_port = (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    !name.is_empty() && name.chars().all(is_name) && is_port
}

/// Whether what is behind a scheme may be a user whose password begins with digits and has a slash in it: it has a host like a name, a
/// port, and an `@` that begins no part of a path.
fn is_cut_short(rest: &str) -> bool {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let is_name = host.split_once(':').is_some_and(|(name, _)| !name.contains(['.', '[']) && name != "localhost");
    is_name && path.rfind(AT).is_some_and(|at| !path[..at].ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_itself_that_it_is_a_secret_ends_where_the_next_parameter_begins() {
        assert_eq!(as_shown("http://h/?token=a,b?c&q=d", false).1, "http://h/?token=***&q=d");
    }

    #[test]
    fn what_stands_beside_a_secret_is_none_where_it_is_plain_what_ends_where() {
        for (given, without) in [
            (r#"{"a":"b","password":"a}","url":"//h"}"#, r#"{"a":"b","password":***,"url":"//h"}"#),
            (r#"[{"token": ["a", "b"], "x": true}, 1]"#, r#"[{"token": ***, "x": true}, 1]"#),
            (r#"{"url":"m://ann:pw@h/x","token":"a"}"#, r#"{"url":"m://***@h/x","token":***}"#),
            ("a-b=c&client_secret=p:w@&url=http://h&x=y%2Fz==", "a-b=c&client_secret=***&url=http://h&x=y%2Fz=="),
            // It is not in these.
            (r#"{"password":"a"b","url":"//h"}"#, r#"{"password":***"#),
            (r#"{"password":"a\"b","url":"//h"}"#, r#"{"password":***"#),
            (r#"{"password":["a]b"],"url":"//h"}"#, r#"{"password":***"#),
            ("{password:a, b}", "{password:***"),
            (r#"{"a":"glpat-secret7"}"#, r#"{"a":"***"#),
            ("Server=h;Pwd=a&b=c", "Server=h;Pwd=***"),
            ("pwd=a&b", "pwd=***"),
            ("--pwd=a&b=c", "--pwd=***"),
            ("pwd=a&b=%7B%22c", "pwd=***"),
            ("pwd=a&b=ann:pw@h", "pwd=***"),
            ("pwd=a b&c=d", "pwd=***"),
        ] {
            assert_eq!(as_shown(given, false).1, without, "{given}");
        }
    }

    #[test]
    fn values_are_shown_without_their_secrets() {
        for (given, is_shown) in [
            ("http://ann:pw@h/x", "http://***@h/x"),
            ("localhost:80/x?page=2&token=pw", "localhost:80/x?page=2&token=***"),
            ("h.example/x?page=a", "h.example/x?page=***"),
            ("127.0.0.1:80/x?sig=pw&r=a://b", "127.0.0.1:80/x?sig=***&r=***"),
            ("./x?kennwort=pw", "./x?kennwort=***"),
            ("http://h/@scope/x?token=pw", "http://h/@scope/x?token=***"),
            ("http://ann:12/pw@h/", "http://***@h/"),
            ("http://localhost:80/x@1", "http://localhost:80/x@1"),
            ("http://h:80/@scope", "http://h:80/@scope"),
            ("http://a.example:80/x@1", "http://a.example:80/x@1"),
            ("postgres://ann:12/pw@h/db", "postgres://***@h/db"),
            ("http://ann:\"pw\"@h", "http://***@h"),
            ("http://ann:\tpw@h", "http://***@h"),
            ("ann:p w @h", "***@h"),
            ("dG9rZW4tdG9rZW4=@db:5432", "***"),
            ("postgres//dG9rZW4tdG9rZW4=@db/x", "***"),
            ("sqlplus scott/Tig=er7pw@db", "***"),
            ("MFZWIZLTOQ2GK===@db:5432", "***"),
            ("DB1=@pw", "DB1=***"),
            ("Kennwort=@pw", "***"),
            ("X509_PEM==@pw", "X509_PEM=***"),
            ("Kennwort=:p@pw", "***"),
            ("url=p@w", "url=***"),
            ("DATABASE_URL=p@w", "DATABASE_URL=***"),
            (":pw@h", "***@h"),
            ("redis://:pw", "redis://:***"),
            ("unix://ann:pw@h", "unix:***@h"),
            ("unix:ann:pw@h", "unix:***@h"),
            ("unix://pw@h", "unix:***@h"),
            ("unix:/ann:pw@h", "unix:***@h"),
            ("host=h password='p''w'", "host=h password=***"),
            ("Server=h;Pwd={p w};x=1", "Server=***"),
            ("{\"password\" : \"pw\"}", "***"),
            ("Authorization: Bearer pw", "Authorization:***"),
            ("bearer pw", "bearer ***"),
            ("--store=host=h password=pw", "--store=***"),
            ("PGPASSWORD=p w psql", "PGPASSWORD=***"),
            ("kennwort=pw", "kennwort=***"),
            ("kennwort: pw", "kennwort:***"),
            ("password|pw", "password***"),
            ("password pw", "password ***"),
            ("--password pw", "--password ***"),
            ("machine h login ann password pw", "machine h login ann password ***"),
            ("postgres://h/db?kennwort=pw", "postgres://h/db?kennwort=***"),
            ("ann|pw@h", "***"),
            ("glpat-secret7", "***"),
            ("dev#2:pw", "dev#2:***"),
            // What was to be a URL.
            ("h/cb?hunter2Kx7", "h/cb?***"),
            ("db:443?hunter", "db:443?***"),
            ("proxy/a#hunter2Kx7", "proxy/a#***"),
            ("x#hunter-2", "x#***"),
            ("h/cb?hunter2.Kx7?*", "h/cb?***"),
            ("ex ample/f?hunter2", "ex ample/f?***"),
            ("ex ample/f#Hunter2Kx7", "ex ample/f#***"),
            ("http://ann:pw@ex ample/f?hunter2#hunter2", "http://***@ex ample/f?***"),
            ("is it? yes", "is it? yes"),
            ("what?", "what?"),
            ("p.toml#read-v2", "p.toml#read-v2"),
            ("see issue #12b", "see issue #12b"),
            ("p.toml#dev:pw", "p.toml#dev:***"),
            ("-p pw", "-p ***"),
            ("http://h/?data=%7B%22password%22%3A%22pw%22%7D", "http://h/?data=***"),
            ("http://h/?data={%22password%22:%22pw%22}", "http://h/?data=***"),
            ("http://h/?r=//ann:pw@h/&page=2", "http://h/?r=***&page=2"),
            ("http://h/?r=%2F%2Fann%3Apw%40h", "http://h/?r=***"),
            ("http://h/?u=ann%253Apw%2540h2", "http://h/?u=***"),
            ("https://hunter2%40git.example/x.tar", "https://***"),
            ("https://hunter2:x-oauth-basic%40git.example/", "https://***"),
            ("https://hunter2%25252540git.example/", "https://***"),
            ("https://hunter2&commat;git.example/", "https://***&commat;***"),
            ("https://hunter2\\u0040git.example/", "https://***"),
            ("redis://hunter2%40127.0.0.1:6379/0", "redis://***"),
            ("hunter2%40git.example:443", "***"),
            ("http://h/get/ann%2540c", "http://h/get/ann%2540c"),
            ("http://h/?h=Authorization:%20Bearer%20pw", "http://h/?h=***"),
            ("http://h/?h=Bearer+pw", "http://h/?h=***"),
            ("http://h/?q=a+b&at=12:30&n=1&mail=ann@h", "http://h/?q=***&at=***&n=1&mail=***"),
            ("postgres://h/db?pw", "postgres://h/db?***"),
            ("https://h/p?client_secret=?pw&y=2", "https://h/p?client_secret=***&y=2"),
            ("sqlite:x.db?key=pw", "sqlite:x.db?key=***"),
            ("sqlite:x.db?pw", "sqlite:x.db?***"),
            // A slash begins no port, and no scheme but those of browsers have backslashes.
            ("password:/pw", "password:***"),
            ("X-Api-Key:/pw", "X-Api-Key:***"),
            ("ann:/pw", "ann:***"),
            ("api_key:1/pw", "api_key:***"),
            ("token:://pw", "token:***"),
            ("ann:\\pw@h", "***@h"),
            ("CORP\\ann:\\pw@h", "***@h"),
            ("ann:/pw@h", "***@h"),
            ("token:\\pw", "token:***"),
            ("kennwort:pw,http://b", "kennwort:***"),
            ("ann:pw,http://b", "ann:***"),
            ("redis://:/pw", "redis://:***"),
            ("auth:8080/x", "auth:***"),
            ("auth:8080", "auth:8080"),
            ("auth:480815", "auth:***"),
            ("ann：pw＠h", "***@h"),
            ("http：//ann:pw＠h", "http://***@h"),
            ("password＝pw", "password=***"),
            // An `@` in a password is no user's.
            ("postgres://ann@h:9/db?password=p@pw", "postgres://***@h:9/db?password=***"),
            ("postgres://h/db?password=p@pw", "postgres://***"),
            ("postgres://ann:p?w@h/db", "postgres://***@h/db"),
            ("postgres://ann:p@w@h/db", "postgres://***@h/db"),
            ("host=h password=p@pw", "host=h password=***"),
            ("password=p@pw", "password=***"),
            ("kennwort=p@pw", "kennwort=***"),
            ("kennwort: p@pw", "kennwort:***"),
            ("Authorization: Bearer p@pw", "Authorization:***"),
            ("{\"password\":\"p@pw\"}", "***"),
            ("PGPASSWORD=p@pw psql", "PGPASSWORD=***"),
            ("--password=p@pw", "--password=***"),
            ("token p@pw", "token ***"),
            ("ann@h.example:p@pw", "***"),
            ("token=@pw", "token=***"),
            ("http://h/?password=p@pw", "http://h/?password=***"),
            ("{\"kennwort\":\"p@pw\"}", "***"),
            ("<pass>p@pw</pass>", "***"),
            ("kennwort:{p@pw}", "***"),
            ("job@host", "***@host"),
            ("ann/pw@h/db", "***@h/db"),
            ("system/pw@//h:1521/x", "***@//h:1521/x"),
            ("ann,pw@h", "***@h"),
            // None of these is one.
            ("sqlite:/home/ann@h/x.db", "sqlite:/home/ann@h/x.db"),
            (
                "sqlite:x.db?links=no&others=no&make=no&durability=process",
                "sqlite:x.db?links=no&others=no&make=no&durability=process",
            ),
            ("unix:/run/user@1000.service/x.sock", "unix:/run/user@1000.service/x.sock"),
            ("getty@.service", "getty@.service"),
            ("@FILE", "@FILE"),
            ("tls://auth.example.com:5432", "tls://auth.example.com:5432"),
            ("http://auth:8080/x", "http://auth:8080/x"),
            ("grpc=10,token_ratio=0.1", "grpc=10,token_ratio=0.1"),
            ("--key-file=x y", "--key-file=***"),
            ("/etc/ssl/private/key.pem", "/etc/ssl/private/key.pem"),
            ("my file (2).txt", "my file (2).txt"),
            ("tls://auth.example.com:5432", "tls://auth.example.com:5432"),
            ("relent.toml#read", "relent.toml#read"),
        ] {
            assert_eq!(shown(given), is_shown, "{given}");
        }
    }
}
