//! What is waited for: `host:port`, `tcp://host:port` or `unix:path`, and one attempt to reach it.

use relent::config::BadSetting;
use std::{fmt, io, path::PathBuf, str::FromStr, time::Duration};

/// Something that accepts connections, or will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A host and a port, as the resolver takes them: `db:5432`, `[::1]:5432`.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Target {
    /// One attempt: a new socket, the name resolved anew, all its addresses tried within the limit.
    pub(super) fn connect(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Target::Tcp(address) => relent::net::connect_once(address, limit).map(drop),
            Target::Unix(path) => std::os::unix::net::UnixStream::connect(path).map(drop),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp(address) => f.write_str(address),
            Target::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Target {
    type Err = BadSetting;

    fn from_str(text: &str) -> Result<Target, BadSetting> {
        if let Some(path) = text.strip_prefix("unix:") {
            return unix(path);
        }
        match text.split_once("://") {
            None => tcp(text),
            Some(("tcp", address)) => tcp(address),
            Some(("http" | "https", _)) => Err(bad(
                format!("{text} is a URL, not an address"),
                "relent http asks for a response; for the socket alone write host:port",
            )),
            Some((scheme, _)) => Err(bad(format!("{scheme}:// is not a known scheme"), FORMS)),
        }
    }
}

const FORMS: &str = "targets are host:port, tcp://host:port and unix:path";

fn bad(problem: String, hint: &str) -> BadSetting {
    BadSetting { key: None, problem, hint: hint.to_owned() }
}

fn unix(path: &str) -> Result<Target, BadSetting> {
    // The system's limit for the name of a socket (unix(7)); longer ones fail later with less to go by.
    const LONGEST: usize = 107;
    let path = path.strip_prefix("//").unwrap_or(path);
    match path.len() {
        0 => Err(bad("unix: has no path".to_owned(), "write it like unix:/run/service.sock")),
        1..=LONGEST => Ok(Target::Unix(path.into())),
        length => Err(bad(
            format!("the path of the socket has {length} bytes"),
            "the system allows 107; a link in a shorter folder helps",
        )),
    }
}

fn tcp(address: &str) -> Result<Target, BadSetting> {
    let address = address.strip_suffix('/').unwrap_or(address);
    let Some((host, port)) = address.rsplit_once(':') else {
        return Err(bad(format!("{address:?} has no port"), FORMS));
    };
    let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if name.unwrap_or(host).is_empty() {
        return Err(bad(format!("{address:?} has no host"), FORMS));
    }
    if name.is_none() && host.contains(':') {
        return Err(bad(
            format!("{address:?} has colons in its host"),
            "an IPv6 address stands in brackets: [::1]:5432",
        ));
    }
    if host.contains(|c: char| c.is_whitespace() || c == '/' || c == '@') {
        return Err(bad(format!("{host:?} is not a host"), FORMS));
    }
    match port.parse::<u16>() {
        Ok(1..) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Target::Tcp(address.to_owned())),
        _ => Err(bad(format!("{port:?} is not a port"), "a port is a number from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        text.parse::<Target>().map(|target| target.to_string()).map_err(|bad| bad.problem)
    }

    #[test]
    fn targets() {
        for (text, shown) in [
            ("db:5432", "db:5432"),
            ("tcp://db.example:1/", "db.example:1"),
            ("[::1]:80", "[::1]:80"),
            ("tcp://127.0.0.1:65535", "127.0.0.1:65535"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
            ("unix:///run/a.sock", "unix:/run/a.sock"),
            ("unix:a b.sock", "unix:a b.sock"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(shown));
        }
    }

    #[test]
    fn what_is_no_target_says_why() {
        for (text, problem) in [
            ("db", "\"db\" has no port"),
            ("", "\"\" has no port"),
            (":80", "\":80\" has no host"),
            ("[]:80", "\"[]:80\" has no host"),
            ("::1:80", "\"::1:80\" has colons in its host"),
            ("db:0", "\"0\" is not a port"),
            ("db:65536", "\"65536\" is not a port"),
            ("db:+80", "\"+80\" is not a port"),
            ("db:http", "\"http\" is not a port"),
            ("user@db:80", "\"user@db\" is not a host"),
            ("unix:", "unix: has no path"),
            ("udp://db:53", "udp:// is not a known scheme"),
            ("http://db:80", "http://db:80 is a URL, not an address"),
        ] {
            assert_eq!(read(text).unwrap_err(), problem);
        }
        assert_eq!(read(&format!("unix:/{}", "a".repeat(107))).unwrap_err(), "the path of the socket has 108 bytes");
    }
}
