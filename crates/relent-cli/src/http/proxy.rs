//! Which proxy leads to a URL: that of `--proxy`, or else that of the environment.
//!
//! `HTTP_PROXY` in capitals is never read: a CGI program has a header of its client's there (CVE-2016-5385).

use super::{
    address::{self, has_a_host, looked_up},
    args::Args,
};
use crate::{redact, talk::Fault};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::HeaderValue;
use hyper_util::client::proxy::matcher::Matcher;
use std::{env, sync::Arc};
use url::Url;

/// The proxies that the flags and the environment name.
#[derive(Clone, Debug, Default)]
pub(super) struct Proxies {
    http: Option<Named>,
    https: Option<Named>,
    direct: Option<Arc<Direct>>,
}

/// A proxy, or what is wrong with what was named as one.
type Named = Result<Url, Fault>;

const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

impl Proxies {
    /// What the flags say, over what the environment says.
    pub(super) fn resolve(args: &Args) -> Result<Proxies, Fault> {
        if args.unix_socket.is_some() {
            return Ok(Proxies::default());
        }
        let user = args.proxy_user.as_deref();
        let named = |(from, text): (&str, String)| with_user(from, parse(from, &text)?, user);
        let given = args.proxy.as_ref().map(|text| ("--proxy", text.clone()));
        let all = || variable(&["all_proxy", "ALL_PROXY"]);
        let either = |names: &[&'static str]| match &given {
            Some((_, none)) if none.is_empty() => None,
            Some(given) => Some(given.clone()),
            None => variable(names).or_else(all),
        };
        let no = args.noproxy.clone().or_else(|| variable(&["no_proxy", "NO_PROXY"]).map(|(_, text)| text));
        let direct = no.map(|no| Arc::new(Direct::to(&no)));
        let proxies = Proxies {
            http: either(&["http_proxy"]).map(named),
            https: either(&["https_proxy", "HTTPS_PROXY"]).map(named),
            direct,
        };
        match (&proxies.http, given) {
            (Some(Err(fault)), Some(_)) => Err(fault.clone()),
            _ => Ok(proxies),
        }
    }

    /// The proxy on the way to `url`, if there is one.
    pub(super) fn to(&self, url: &Url) -> Result<Option<&Url>, Fault> {
        let named = if url.scheme() == "https" { &self.https } else { &self.http };
        match named {
            Some(_) if self.is_direct(url) => Ok(None),
            Some(Ok(proxy)) => Ok(Some(proxy)),
            Some(Err(fault)) => Err(fault.clone()),
            None => Ok(None),
        }
    }

    /// All of it as one text, which is another wherever a proxy may lead to another machine.
    pub(super) fn whole(&self) -> String {
        let url = |named: &Option<Named>| named.as_ref().and_then(|named| named.as_ref().ok().map(Url::to_string));
        format!("{:?}", (url(&self.http), url(&self.https), self.direct.as_ref().map(|direct| &direct.text)))
    }

    /// Whether any of them is spoken to over TLS.
    pub(super) fn any_over_tls(&self) -> bool {
        [&self.http, &self.https].into_iter().flatten().flatten().any(|proxy| proxy.scheme() == "https")
    }

    fn is_direct(&self, url: &Url) -> bool {
        let mut url = url.clone();
        // `example.com.` is the same host, its name written in full.
        if let Some(host) = url.host_str().and_then(|host| host.strip_suffix('.')).map(ToOwned::to_owned) {
            let _ = url.set_host(Some(&host));
        }
        let Ok(uri) = url.as_str().parse::<http::Uri>() else { return false };
        self.direct.as_ref().is_some_and(|direct| direct.has(&uri, url.port_or_known_default()))
    }
}

/// Where no proxy leads to: hosts with what they cover, addresses and networks, each at all ports or at one; or everything.
#[derive(Debug)]
struct Direct {
    /// As it was given.
    text: String,
    everything: bool,
    rules: Vec<(Option<u16>, Matcher)>,
}

impl Direct {
    /// What stands in `no_proxy`.
    fn to(no: &str) -> Direct {
        let entries = || no.split([',', ' ', '\t']).filter(|entry| !entry.is_empty()).map(with_port);
        let anywhere: Vec<String> = entries().filter(|(_, port)| port.is_none()).map(|(host, _)| host).collect();
        let mut rules = vec![(None, without(&anywhere.join(",")))];
        rules.extend(entries().filter(|(_, port)| port.is_some()).map(|(host, port)| (port, without(&host))));
        // The matcher knows it for names alone.
        let everything = entries().any(|(host, port)| host == "*" && port.is_none());
        Direct { text: no.to_owned(), everything, rules }
    }

    fn has(&self, uri: &http::Uri, port: Option<u16>) -> bool {
        let is_at = |of: &Option<u16>| of.is_none() || *of == port;
        self.everything || self.rules.iter().any(|(of, rule)| is_at(of) && rule.intercept(uri).is_none())
    }
}

/// What knows the rules of `no_proxy`; that it leads elsewhere is all it is asked.
fn without(hosts: &str) -> Matcher {
    Matcher::builder().all("http://proxy.invalid").no(hosts.to_owned()).build()
}

/// An entry's host, address or network, and its port if it has one.
fn with_port(entry: &str) -> (String, Option<u16>) {
    let (host, port) = match entry.strip_prefix('[').and_then(|address| address.split_once(']')) {
        Some((address, rest)) => (address, rest.strip_prefix(':')),
        None => match entry.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, Some(port)),
            _ => (entry, None),
        },
    };
    match port.map(str::parse) {
        None => (plain_host(host), None),
        Some(Ok(port)) => (plain_host(host), Some(port)),
        Some(Err(_)) => (entry.to_owned(), None),
    }
}

/// `example.com.`, `*.example.com` and `bücher.example` are written as the matcher knows them. What is no name, as a network, stays.
fn plain_host(host: &str) -> String {
    let bare = host.strip_prefix("*.").or_else(|| host.strip_prefix('.')).unwrap_or(host);
    looked_up(bare).unwrap_or_else(|| bare.to_owned())
}

/// Scheme, host and port of a proxy, for messages.
pub(super) fn shown(proxy: &Url) -> String {
    let port = proxy.port_or_known_default().unwrap_or(SOCKS_PORT);
    format!("{}://{}:{port}", proxy.scheme(), proxy.host_str().unwrap_or_default())
}

/// What the client says about a way through a proxy that failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// In plain words.
    pub(super) words: String,
    /// Whether the proxy asks who we are, and does not take the answer.
    pub(super) wants_user: bool,
}

impl Said {
    /// The client has no types for it that others can see, only these texts.
    pub(super) fn of(text: &str) -> Said {
        let Some(what) = text.strip_prefix("SOCKS error: ").or_else(|| text.strip_prefix("tunnel error: ")) else {
            return Said { words: text.to_owned(), wants_user: false };
        };
        let (words, wants_user) = match what {
            "failed to create underlying connection" => ("the proxy cannot be reached", false),
            "io error during SOCKS handshake" | "io error establishing tunnel" | "unexpected end of file" => {
                ("the proxy ended the connection", false)
            }
            "failed parsing server response" => ("the proxy does not speak SOCKS", false),
            "unsuccessful" => ("the proxy refuses", false),
            "proxy authorization required" => ("the proxy asks for a user", true),
            "credentials not accepted" => ("the proxy does not accept the user", true),
            "server does not support user/pass authentication" => {
                ("the proxy wants another authentication than it is given", true)
            }
            "failed serialize request" => ("SOCKS takes no user, password or host of 255 bytes and more", true),
            "server implements authentication incorrectly" => ("the proxy asks for another authentication", true),
            other => return Said { words: format!("the proxy says: {other}"), wants_user: false },
        };
        Said { words: words.to_owned(), wants_user }
    }
}

const SOCKS_PORT: u16 = 1080;

fn variable(names: &[&'static str]) -> Option<(&'static str, String)> {
    let mut set = names.iter().filter_map(|name| Some((*name, env::var_os(name)?)));
    let (name, value) = set.find(|(_, value)| !value.is_empty())?;
    Some((name, value.to_string_lossy().into_owned()))
}

/// What `from` names as a proxy.
pub(super) fn parse(from: &str, text: &str) -> Named {
    let hint = "write it like http://proxy:3128 or socks5h://proxy:1080; -U USER:PASSWORD is for the proxy";
    let shown = redact::server(text);
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    if text.trim().contains(['\t', '\n', '\r']) {
        return Err(Fault::new(format!("{from}: {shown:?} has a tab or the end of a line in it")).hint(hint));
    }
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return Err(Fault::new(format!("{from}: {shown:?} has bytes in it that are no text")).hint(hint));
    }
    let url =
        Url::parse(&whole).map_err(|error| Fault::new(format!("{from}: {shown:?} is no URL: {error}")).hint(hint))?;
    if !SCHEMES.contains(&url.scheme()) {
        return Err(Fault::new(format!("{from}: there are no {}:// proxies", url.scheme()))
            .hint(format!("a proxy is one of {}", SCHEMES.join(", "))));
    }
    if url.host_str().is_none_or(str::is_empty) || !has_a_host(&url) {
        return Err(Fault::new(format!("{from}: {shown:?} has no host")).hint(hint));
    }
    let mut url = url;
    if url.port_or_known_default().is_none() {
        // It has a host, so it can have a port.
        let _ = url.set_port(Some(SOCKS_PORT));
    }
    Ok(url)
}

fn with_user(from: &str, mut url: Url, user: Option<&str>) -> Named {
    if let Some(user) = user {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        // It has a host, so it can have a user.
        let _ = url.set_username(name);
        let _ = url.set_password(Some(password));
    }
    let user = address::user(&url).unwrap_or_default();
    // What a tunnel is asked for with is written by a library, for which they are text.
    if std::str::from_utf8(&user).is_err() {
        return Err(Fault::new(format!("{from}: the user or the password of the proxy is no text"))
            .hint("%XX there are bytes of UTF-8; a % is %25"));
    }
    let sent = BASE64_STANDARD.encode(user);
    redact::know_secrets([format!("Basic {sent}"), sent].into_iter());
    redact::know_place(&url);
    Ok(url)
}

/// `Proxy-Authorization`, if it has a user (RFC 7617).
pub(super) fn authorization(proxy: &Url) -> Option<HeaderValue> {
    let sent = BASE64_STANDARD.encode(address::user(proxy)?);
    let mut value = HeaderValue::try_from(format!("Basic {sent}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheme(text: &str) -> Result<String, Fault> {
        parse("--proxy", text).map(|url| shown(&url))
    }

    #[test]
    fn proxies_of_every_kind() {
        assert_eq!(scheme("proxy:3128").unwrap(), "http://proxy:3128");
        assert_eq!(scheme("https://proxy").unwrap(), "https://proxy:443");
        assert_eq!(scheme("socks5h://ann:pw@proxy").unwrap(), "socks5h://proxy:1080");
        assert_eq!(scheme("socks5://[::1]:9050").unwrap(), "socks5://[::1]:9050");
        for bad in ["socks9://proxy", "ftp://proxy", "socks5://", "http://pro xy"] {
            assert!(scheme(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_user_of_a_proxy_is_text() {
        let with = |url: &str, user| with_user("--proxy", parse("--proxy", url).unwrap(), user);
        assert!(with("ann:p%C3%A9@proxy", None).is_ok() && with("proxy", Some("ann:%41")).is_ok());
        for (url, user) in [("ann:%ff@proxy", None), ("%ff@proxy", None), ("proxy", Some("ann:%ff"))] {
            assert!(with(url, user).is_err(), "{url} {user:?}");
        }
    }

    /// It is not the proxy that says so, and will not pass.
    #[test]
    fn what_socks_has_no_room_for_is_said_as_that() {
        let said = Said::of("SOCKS error: failed serialize request");
        assert!(said.words.contains("255 bytes") && said.wants_user, "{said:?}");
    }

    #[test]
    fn hosts_without_a_proxy() {
        let proxies = Proxies {
            http: Some(parse("x", "proxy:1")),
            https: None,
            direct: Some(Arc::new(Direct::to("example.com, 10.0.0.0/8, full.example.org."))),
        };
        let through = |url: &str| proxies.to(&Url::parse(url).unwrap()).unwrap().is_some();
        assert!(through("http://example.org/") && through("http://11.0.0.1/") && through("http://notexample.com/"));
        assert!(
            !through("http://example.com/") && !through("http://a.example.com:81/") && !through("http://10.1.2.3/")
        );
        for in_full in ["http://example.com./", "http://a.example.com.:81/x", "http://full.example.org/"] {
            assert!(!through(in_full), "{in_full}");
        }
        assert!(through("http://example.org./") && !through("http://full.example.org./"));
        assert!(!through("https://example.org/"));
    }

    fn direct(no: &str, host: &str) -> bool {
        let (http, direct) = (Some(parse("x", "proxy:1")), Some(Arc::new(Direct::to(no))));
        let proxies = Proxies { http, https: None, direct };
        proxies.to(&Url::parse(&format!("http://{host}/")).unwrap()).unwrap().is_none()
    }

    /// A star is everything, addresses as well.
    #[test]
    fn nothing_goes_through_a_proxy_where_all_is_without() {
        for no in ["*", " *", "x,*", "*,x", "x *\t"] {
            for host in ["a.test", "localhost", "127.0.0.1", "127.1", "0x7f000001", "[::1]", "10.1.2.3:81"] {
                assert!(direct(no, host), "{no:?} {host}");
            }
        }
    }

    #[test]
    fn a_host_without_a_proxy_may_have_a_port_or_a_star() {
        for (no, hosts, others) in [
            ("127.0.0.1:81", &["127.0.0.1:81"][..], &["127.0.0.1", "127.0.0.1:82", "127.0.0.2:81"][..]),
            ("a.test:80", &["a.test", "b.a.test:80"], &["a.test:81", "b.test"]),
            ("*.a.test,c.test", &["b.a.test", "a.test", "c.test"], &["xa.test", "b.test"]),
            ("bücher.test", &["bücher.test", "xn--bcher-kva.test.:81", "a.BÜCHER.test"], &["bucher.test"]),
            (".BÜCHER.test:80,*.d.test.", &["bücher.test", "d.test"], &["bücher.test:81"]),
            ("[::1]:81", &["[::1]:81"], &["[::1]", "[::2]:81"]),
            ("[::1]", &["[::1]:81", "[::1]"], &["[::2]"]),
            ("::1", &["[::1]:81"], &["[::2]"]),
            ("10.0.0.0/8:81", &["10.1.1.1:81"], &["10.1.1.1"]),
            ("a.test:nonsense", &[], &["a.test"]),
            ("", &[], &["a.test", "127.0.0.1"]),
        ] {
            hosts.iter().for_each(|host| assert!(direct(no, host), "{no} {host}"));
            others.iter().for_each(|host| assert!(!direct(no, host), "{no} {host}"));
        }
    }

    #[test]
    fn hosts_without_a_proxy_stand_between_commas_or_spaces() {
        for no in ["b.test,a.test", "b.test a.test", "b.test, a.test.", " b.test\ta.test ", "*"] {
            assert!(direct(no, "a.test") && direct(no, "b.test"), "{no:?}");
            assert_eq!(direct(no, "c.test"), no == "*", "{no:?}");
        }
    }
}
