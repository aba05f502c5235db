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
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::sync::Semaphore;

/// The names that the user has placed, and the system's.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    places: Arc<[Place]>,
    /// The ports that are connected to now, that of the URL and that of the proxy: a name comes without one.
    ports: Arc<AtomicU32>,
    /// Places of look-ups at the same time: one that nobody answers goes on long after its attempt.
    room: Arc<Semaphore>,
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
        Ok(Resolver { places: places?.into(), ports: Arc::default(), room: Arc::new(Semaphore::new(AT_ONCE)) })
    }

    /// The same names, of which another request is looked up.
    pub(super) fn apart(&self) -> Resolver {
        Resolver { places: self.places.clone(), ports: Arc::default(), room: self.room.clone() }
    }

    /// What follows is about these ports.
    pub(super) fn connects_to(&self, port: u16, proxy: Option<u16>) {
        self.ports.store(u32::from(port) << 16 | u32::from(proxy.unwrap_or(port)), Ordering::Relaxed);
    }

    fn placed(&self, name: &str) -> Option<Vec<IpAddr>> {
        let ports = self.ports.load(Ordering::Relaxed);
        let is_meant = |place: &&Place| {
            let port = u32::from(place.port);
            (place.host == "*" || place.host.eq_ignore_ascii_case(name.strip_suffix('.').unwrap_or(name)))
                && (port == ports >> 16 || port == ports & 0xffff)
        };
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
        let at = |name: &str, port| {
            resolver.connects_to(port, None);
            let found = resolver.placed(name).unwrap_or_default();
            found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(at("A", 80), "10.0.0.2", "the last counts");
        assert_eq!(at("b", 443), "::1 ::2");
        assert_eq!(at("c", 81), "10.0.0.3");
        assert_eq!(at("xn--bcher-kva.x", 80), "10.0.0.4");
        assert_eq!((at("a.", 80).as_str(), at("xn--bcher-kva.x.", 80).as_str()), ("10.0.0.2", "10.0.0.4"));
        assert_eq!((at("a", 82).as_str(), at("c", 80).as_str()), ("", ""));
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
