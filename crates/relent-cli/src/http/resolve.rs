//! Names to addresses: what `--resolve` says, else what the system says, looked up anew in each attempt.

use super::address::looked_up;
use crate::{
    redact,
    runtime::on_a_thread,
    talk::{Fault, plain},
};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{
    error::Error,
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Semaphore;
use url::Url;

/// The names that the user has placed, and the system's.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    places: Arc<[Place]>,
    /// Where it goes now: a name comes without a port.
    way: Arc<Mutex<Way>>,
    /// Places of look-ups at the same time: one that nobody answers goes on long after its attempt.
    room: Arc<Semaphore>,
}

/// The port of the URL, and the proxy's name and port.
#[derive(Debug, Default)]
struct Way {
    port: u16,
    proxy: Option<(String, u16)>,
}

/// Where a host is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    host: String,
    port: u16,
    addresses: Vec<IpAddr>,
}

/// The most names that are looked up at the same time, each on a thread.
const AT_ONCE: usize = 512;

impl Resolver {
    /// What all `--resolve` together say; the last one counts.
    pub(super) fn new(given: &[String]) -> Result<Resolver, Fault> {
        let places: Result<Vec<Place>, Fault> = given.iter().rev().map(|text| place(text)).collect();
        Ok(Resolver { places: places?.into(), way: Arc::default(), room: Arc::new(Semaphore::new(AT_ONCE)) })
    }

    /// The same names, of which another request is looked up.
    pub(super) fn apart(&self) -> Resolver {
        Resolver { places: self.places.clone(), way: Arc::default(), room: self.room.clone() }
    }

    /// What follows is about these.
    pub(super) fn connects_to(&self, url: &Url, proxy: Option<&Url>) {
        let port = |url: &Url| url.port_or_known_default().unwrap_or_default();
        let proxy = proxy.and_then(|proxy| Some((proxy.host_str()?.to_owned(), port(proxy))));
        *self.way.lock().unwrap_or_else(PoisonError::into_inner) = Way { port: port(url), proxy };
    }

    fn placed(&self, name: &str) -> Option<Vec<IpAddr>> {
        let is_named = |host: &str| host.eq_ignore_ascii_case(name.strip_suffix('.').unwrap_or(name));
        let way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        // Who has the proxy's name is asked for that: what is said to it goes nowhere else.
        let port = match &way.proxy {
            Some((host, port)) if is_named(host.strip_suffix('.').unwrap_or(host)) => *port,
            _ => way.port,
        };
        let is_meant = |place: &&Place| (place.host == "*" || is_named(&place.host)) && place.port == port;
        self.places.iter().find(is_meant).map(|place| place.addresses.clone())
    }
}

/// `HOST:PORT:ADDRESS[,ADDRESS]`, an IPv6 address in brackets or not.
pub(super) fn place(text: &str) -> Result<Place, Fault> {
    let read = || {
        let (host, rest) = text.strip_prefix('+').unwrap_or(text).split_once(':')?;
        let (port, addresses) = rest.split_once(':')?;
        let address = |text: &str| text.trim().trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let addresses = addresses.split(',').map(address).collect::<Option<Vec<_>>>()?;
        let host = if host == "*" { host.to_owned() } else { looked_up(host)? };
        Some(Place { host, port: port.parse().ok()?, addresses })
    };
    read().ok_or_else(|| {
        Fault::new(format!("--resolve: {:?} says no place", redact::value(text)))
            .hint("write it like example.com:443:127.0.0.1, or *:80:[::1] for all hosts")
    })
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (placed, room) = (self.placed(name.as_str()), self.room.clone());
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = match placed {
                Some(placed) => placed.into_iter().map(|address| SocketAddr::new(address, 0)).collect(),
                None => {
                    let place = room.acquire_owned().await?;
                    let named = name.as_str().to_owned();
                    let found = on_a_thread("lookup", move || {
                        let _place = place;
                        Ok::<_, io::Error>((named.as_str(), 0).to_socket_addrs()?.collect())
                    });
                    let no_thread =
                        |error| io::Error::other(format!("there is no thread to look up a name: {}", plain(&error)));
                    let found = found.map_err(no_thread)?;
                    found.await?.map_err(|_| Unresolved(name.as_str().to_owned()))?
                }
            };
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// The name has no address now.
#[derive(Debug)]
pub(super) struct Unresolved(pub(super) String);

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no address", self.0)
    }
}

impl Error for Unresolved {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_for_a_host_and_a_port() {
        let given = ["a:80:10.0.0.1", "b:443:[::1],::2", "+a:80:10.0.0.2", "*:81:10.0.0.3", "BÜCHER.x.:80:10.0.0.4"]
            .map(str::to_owned);
        let resolver = Resolver::new(&given).unwrap();
        let url = |text: &str| Url::parse(text).unwrap();
        let at = |name: &str, port| {
            resolver.connects_to(&url(&format!("http://x:{port}")), None);
            let found = resolver.placed(name).unwrap_or_default();
            found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(at("A", 80), "10.0.0.2", "the last counts");
        assert_eq!(at("b", 443), "::1 ::2");
        assert_eq!(at("c", 81), "10.0.0.3");
        assert_eq!(at("xn--bcher-kva.x", 80), "10.0.0.4");
        assert_eq!((at("a.", 80).as_str(), at("xn--bcher-kva.x.", 80).as_str()), ("10.0.0.2", "10.0.0.4"));
        assert_eq!((at("a", 82).as_str(), at("c", 80).as_str()), ("", ""));
        let by = |name: &str, proxy: &str| {
            resolver.connects_to(&url("http://a"), Some(&url(proxy)));
            resolver.placed(name).map(|found| found[0].to_string())
        };
        assert_eq!(
            (by("a", "http://p:81").as_deref(), by("p", "http://p:81").as_deref()),
            (Some("10.0.0.2"), Some("10.0.0.3"))
        );
        assert_eq!(by("p", "http://P.:3128"), None, "the port is the URL's");
        assert_eq!((by("a", "http://a:3128"), by("A.", "socks5h://a:3128")), (None, None));
        assert_eq!(by("b", "https://b").as_deref(), Some("::1"));
    }

    #[test]
    fn what_says_no_place_is_refused() {
        for bad in
            ["", "a", "a:80", "a:80:", "a:x:10.0.0.1", "a:80:b", ":80:10.0.0.1", "a:99999:10.0.0.1", "a b:80:10.0.0.1"]
        {
            assert!(place(bad).is_err(), "{bad}");
        }
    }
}
