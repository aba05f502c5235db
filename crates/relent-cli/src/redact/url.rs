//! URLs, as they are shown.

use super::{
    AT, HIDDEN,
    names::{in_its_place, is_password, is_secret},
    plain,
    query::{parameters, secret_parameters},
    settings::settings,
    users::{without_user, written_out},
};
use std::{borrow::Cow, net::Ipv4Addr};
use url::Url;

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

/// The passwords that a URL has: of its user, and of its settings.
pub(crate) fn passwords(url: &str) -> impl Iterator<Item = &str> {
    let behind = url.split_once("://").map_or("", |(_, behind)| behind);
    let (place, rest) = behind.split_at(behind.find(['/', '?', '#']).unwrap_or(behind.len()));
    let of_the_user = place.rsplit_once('@').and_then(|(user, _)| Some(user.split_once(':')?.1));
    let query = rest.split_once('?').map_or("", |(_, query)| query).split('#').next().unwrap_or_default();
    let settings = query.split('&').filter_map(|pair| pair.split_once('='));
    of_the_user
        .into_iter()
        .chain(settings.filter(|(name, _)| is_secret(name) || is_password(name)).map(|(_, value)| value))
}

/// The same, but of parameters no more is hidden than what says itself that it is a secret.
pub(super) fn url_without_secrets(text: &str) -> String {
    url_as_it_is(text, |text| secret_parameters(text, &['&']))
}

/// What a text is shown as, if wide signs in it count as others do; a text that has nothing to hide stays as it is.
pub(super) fn wide(text: &str, shown: impl Fn(&str) -> String) -> String {
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
    if let Some((name, value)) = in_its_place(text) {
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
        && let Some(shown) = without_user(text, scheme.len(), parameters)
    {
        return settings(&shown).into_owned();
    }
    let hosts = &rest[..rest.find(ends).unwrap_or(rest.len())];
    // Behind an empty one a password may begin with a slash.
    let is_empty = !scheme.is_empty() && hosts.ends_with(':') && rest.len() > hosts.len() + 1;
    let no_port = || if is_empty { Some(hosts.len()) } else { no_port(scheme, hosts) };
    let shown = match rest[..host].rfind(AT).or_else(|| written_out(rest)) {
        Some(at) => format!("{scheme}{HIDDEN}{}", parameters(&rest[at..])),
        None => match no_port() {
            // Whoever forgot the host has written a password where a port would be.
            Some(port) => format!("{scheme}{}{HIDDEN}", &rest[..port]),
            None => format!("{scheme}{}", parameters(rest)),
        },
    };
    settings(&shown).into_owned()
}

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
pub(super) fn scheme(text: &str) -> usize {
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

pub(super) fn is_url(text: &str) -> bool {
    Url::parse(text).is_ok()
}
