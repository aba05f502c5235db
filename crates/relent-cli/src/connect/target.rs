//! What is waited for: `host:port`, a URL or `unix:path`, and one attempt to reach it.

use super::tls::Tls;
use crate::{redact, system_text};
use relent::config::BadSetting;
use rustix::{
    io::{Errno, ioctl_fionbio},
    net::{AddressFamily, SocketAddrUnix, SocketType, connect, netdevice::name_to_index},
};
use std::{
    fmt,
    fs::File,
    io::{self, Read},
    net::{Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    str::FromStr,
    time::{Duration, Instant},
};

/// Something that accepts connections, or will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A host and a port, as the resolver takes them: `db:5432`, `[::1]:5432`; and the scheme of the URL, if it was one.
    Tcp { scheme: Option<String>, address: String },
    /// The same, and a TLS handshake.
    Tls { scheme: String, address: String },
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Target {
    /// One attempt: a new socket, the name resolved anew, all its addresses tried within the limit, and then the
    /// handshake.
    pub(super) fn connect(&self, limit: Option<Duration>, tls: &Tls) -> io::Result<()> {
        match self {
            Target::Tcp { address, .. } => relent::net::connect_once(address, limit).map(drop),
            Target::Tls { address, .. } => tls.connect(address, limit),
            Target::Unix(path) => knock(path),
        }
    }

    /// One attempt to find it gone: `Ok` if nobody accepts there. Who does not answer is, where that was asked for as long as an attempt may
    /// take, not where the whole call has no more time.
    pub(super) fn is_gone(&self, limit: Option<Duration>, whole: Option<Duration>) -> io::Result<()> {
        let is_cut = limit.is_some_and(|limit| whole.is_none_or(|whole| limit < whole));
        let found = match self {
            Target::Tcp { address, .. } | Target::Tls { address, .. } => knock_at_all(address, limit, is_cut),
            Target::Unix(path) => knock(path),
        };
        match found {
            Ok(()) => Err(io::Error::other("still accepts")),
            Err(error) if says_nobody_accepts(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether it takes a handshake.
    pub(super) fn is_tls(&self) -> bool {
        matches!(self, Target::Tls { .. })
    }
}

/// Connects to one of the addresses that a name has: an error that says most, if nobody accepts at any.
fn knock_at_all(address: &str, limit: Option<Duration>, is_cut: bool) -> io::Result<()> {
    let began = Instant::now();
    let addresses = match relent::net::resolve(address, limit) {
        Err(error) if is_not_known(&error) => return can_look().and(Err(io::ErrorKind::NotFound.into())),
        // A name server that does not answer says nothing of the name.
        addresses => addresses.map_err(io::Error::other)?,
    };
    let ask = |address: SocketAddr, share| match relent::net::connect_once(&address.to_string(), share) {
        // Or else it has no port more to ask from.
        Err(error) if error.raw_os_error() == Some(Errno::ADDRNOTAVAIL.raw_os_error()) && !has_a_way_to(address) => {
            Err(Errno::AFNOSUPPORT.into())
        }
        asked => asked.map(drop),
    };
    let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
    // A name server that took most of the time has taken it from the host.
    let is_cut = is_cut || limit.zip(left).is_some_and(|(limit, left)| left < limit / 2);
    each(&addresses, left, is_cut, &ask)
}

/// Whether the system's resolver can have looked: what it cannot open, it takes for empty.
fn can_look() -> io::Result<()> {
    let looks = || match File::open("/etc/hosts").map(|mut file| file.read(&mut [0]).map(|_| file)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) | Ok(Err(error)) => Err(error),
        Ok(Ok(file)) => Ok(Some(file)),
    };
    // It needs a socket beside that.
    looks().and_then(|file| looks().map(|another| drop((file, another)))).map_err(|error| {
        io::Error::other(format!("names cannot be looked up: /etc/hosts: {}", crate::talk::plain(&error)))
    })
}

/// The same of addresses, each of which has its share of the time.
fn each(
    addresses: &[SocketAddr],
    limit: Option<Duration>,
    is_cut: bool,
    ask: &dyn Fn(SocketAddr, Option<Duration>) -> io::Result<()>,
) -> io::Result<()> {
    let began = Instant::now();
    let mut gone = Err(io::ErrorKind::NotFound.into());
    let (mut gone_of, mut unasked) = ([false; 2], [None, None]);
    for (address, others) in addresses.iter().zip((1..=addresses.len() as u32).rev()) {
        let share = limit.map(|limit| limit.saturating_sub(began.elapsed()) / others);
        if share.is_some_and(|share| share.is_zero()) {
            return Err(io::Error::other("there was no time to ask at all of its addresses"));
        }
        let family = usize::from(address.is_ipv6());
        match ask(*address, share) {
            Err(error) if is_cut && error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none() => {
                return Err(io::Error::other("it did not answer in the time that was left"));
            }
            Err(error) if says_nobody_accepts(&error) => (gone, gone_of[family]) = (Err(error), true),
            Err(error) if is_of_no_family_of_ours(&error) => unasked[family] = Some(error),
            other => return other,
        }
    }
    let counts = |family: usize| gone_of[family] || !gone_of[1 - family];
    let unheard = unasked.into_iter().enumerate().find_map(|(family, error)| error.filter(|_| counts(family)));
    unheard.map_or(gone, Err)
}

/// Whether this machine has an address to speak with that one from. Nothing is sent.
fn has_a_way_to(address: SocketAddr) -> bool {
    let from: SocketAddr = match address {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    UdpSocket::bind(from).and_then(|socket| socket.connect(address)).is_ok()
}

/// Whether an error says that this machine speaks with nobody in that way, as where it has IPv4 alone: then what the addresses of the
/// other kind say counts.
fn is_of_no_family_of_ours(error: &io::Error) -> bool {
    [Errno::NETUNREACH, Errno::AFNOSUPPORT].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Whether the resolver says that there is no such name, or no address of it. It has no number for that here, but these words in the
/// system's libraries (glibc, musl, those of BSD), which nobody translates for us.
fn is_not_known(error: &io::Error) -> bool {
    const WORDS: [&str; 4] = ["not known", "No address associated", "does not resolve", "has no usable address"];
    let text = error.to_string();
    error.raw_os_error().is_none() && WORDS.iter().any(|words| text.contains(words))
}

/// Whether an error says that nobody accepts there. All others say nothing of it: that we may not look, cannot, or have to queue; that
/// somebody is there who speaks another way; that it is no address.
fn says_nobody_accepts(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::NotFound)
        || [Errno::CONNREFUSED, Errno::CONNRESET, Errno::CONNABORTED, Errno::HOSTUNREACH]
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Connects to a Unix socket, at once: one whose queue is full would let us wait until somebody takes us out of it.
fn knock(path: &Path) -> io::Result<()> {
    let address = SocketAddrUnix::new(path).map_err(|error| match error {
        Errno::NAMETOOLONG => io::Error::new(io::ErrorKind::InvalidInput, "the path is too long for a socket"),
        error => error.into(),
    })?;
    let socket = stream_of(AddressFamily::UNIX)?;
    ioctl_fionbio(&socket, true)?;
    match connect(&socket, &address) {
        Err(Errno::AGAIN) => Err(io::Error::new(io::ErrorKind::WouldBlock, "it accepts nobody, and its queue is full")),
        connected => Ok(connected?),
    }
}

/// A socket that no command gets, though another thread may become one at any moment.
#[cfg(target_os = "linux")]
fn stream_of(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    rustix::net::socket_with(family, SocketType::STREAM, rustix::net::SocketFlags::CLOEXEC, None)
}

/// A socket that no command gets, but one that another thread becomes in this very moment.
#[cfg(not(target_os = "linux"))]
fn stream_of(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(socket)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp { address, .. } => f.write_str(address),
            Target::Tls { address, .. } => write!(f, "tls://{address}"),
            Target::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Target {
    type Err = BadSetting;

    fn from_str(text: &str) -> Result<Target, BadSetting> {
        parse(text).map_err(|bad| without_password(text, bad))
    }
}

fn parse(text: &str) -> Result<Target, BadSetting> {
    if let Some(path) = text.strip_prefix("unix:") {
        return unix(path);
    }
    match text.split_once("://") {
        None => tcp(text, None).map(|address| Target::Tcp { scheme: None, address }),
        Some((scheme, rest)) => url(&scheme.to_ascii_lowercase(), rest),
    }
}

/// What is wrong with a target, without what stands before its `@`: a password with a slash in it looks like a port.
fn without_password(text: &str, bad: BadSetting) -> BadSetting {
    let Some((before, _)) = text.rsplit_once('@') else { return bad };
    let quoted = bad.problem.split('"').nth(1).unwrap_or_default();
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest).split(['/', '?', '#']).next();
    let is_behind =
        !authority.unwrap_or_default().contains('@') || text.rsplit(':').next().unwrap_or_default().contains('@');
    let is_told = quoted.replace("***@", "").contains(['@', '\\'])
        || (!quoted.is_empty() && before.contains(quoted))
        || (quoted.is_empty() && is_behind);
    match is_told {
        true => BadSetting {
            problem: format!("{:?} is no target", redact::value(text)),
            hint: "in a password of a URL / is written %2F, ? %3F and # %23".to_owned(),
            ..bad
        },
        false => bad,
    }
}

const FORMS: &str = "targets are host:port, host:service, tcp://, tls://, http:// and https:// URLs, and unix:path";

/// The schemes whose servers begin with a TLS handshake.
const WITH_TLS: [&str; 5] = ["tls", "https", "wss", "rediss", "amqps"];

/// Schemes that `/etc/services` names otherwise, or not at all.
const PORTS: [(&str, u16); 13] = [
    ("http", 80),
    ("https", 443),
    ("tls", 443),
    ("ws", 80),
    ("wss", 443),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("mysql", 3306),
    ("redis", 6379),
    ("rediss", 6379),
    ("amqp", 5672),
    ("amqps", 5671),
    ("mongodb", 27017),
];

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

/// Of a URL only the host and the port count; a password in it is for others, and is not shown.
fn url(scheme: &str, rest: &str) -> Result<Target, BadSetting> {
    if scheme == "unix" {
        return unix(rest);
    }
    if matches!(scheme, "udp" | "quic" | "file" | "icmp" | "ping" | "dns") {
        return Err(bad(format!("{scheme}:// has no connections to wait for"), FORMS));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let usual = PORTS.iter().find(|(name, _)| *name == scheme).map(|(_, port)| *port).or_else(|| service(scheme));
    let address = tcp(host, usual)?;
    let scheme = scheme.to_owned();
    Ok(match WITH_TLS.contains(&scheme.as_str()) {
        true => Target::Tls { scheme, address },
        false => Target::Tcp { scheme: Some(scheme), address },
    })
}

/// The address as the resolver takes it, the port as a number; `usual` is the port where none is given.
fn tcp(address: &str, usual: Option<u16>) -> Result<String, BadSetting> {
    let address = address.strip_suffix('/').unwrap_or(address);
    // It may have been meant as a URL, with a password in it.
    let shown = redact::value(address);
    let is_whole = address.ends_with(']') || !address.contains(':');
    let (host, port) = match (address.rsplit_once(':'), usual) {
        (_, Some(usual)) if is_whole => (address, Ok(usual)),
        (None, None) => {
            let hint = match address {
                "tcp" | "http" | "postgresql" | "mysql" | "redis" => "leave the word out: the target says what it is",
                _ => FORMS,
            };
            return Err(bad(format!("{shown:?} has no port"), hint));
        }
        (Some((host, port)), _) => (host, number(port)),
        (None, Some(usual)) => (address, Ok(usual)),
    };
    let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if name.unwrap_or(host).is_empty() {
        return Err(bad(format!("{shown:?} has no host"), FORMS));
    }
    if name.is_none() && host.contains(':') {
        return Err(bad(format!("{shown:?} has colons in its host"), "an IPv6 address stands in brackets: [::1]:5432"));
    }
    // No name that is looked up has any other sign, and a password may.
    let is_of_none = |c: char| c.is_whitespace() || c.is_control() || (c.is_ascii_punctuation() && !"-_.".contains(c));
    if name.is_none() && host.contains(is_of_none) {
        return Err(bad(format!("{:?} is not a host", redact::value(host)), FORMS));
    }
    let host = match name {
        Some(name) => version_6(name)?,
        None if host.is_ascii() => host.to_owned(),
        None => international(host)?,
    };
    Ok(format!("{host}:{}", port?))
}

/// An address in brackets. The name of a zone becomes its number, which is what is connected with (RFC 4007 11.2).
fn version_6(name: &str) -> Result<String, BadSetting> {
    let (address, zone) = name.split_once('%').map_or((name, None), |(address, zone)| (address, Some(zone)));
    if address.parse::<Ipv6Addr>().is_err() {
        return Err(bad(
            format!("{:?} is no IPv6 address", redact::value(address)),
            "only such an address stands in brackets: [::1]:5432",
        ));
    }
    let Some(zone) = zone else { return Ok(format!("[{address}]")) };
    let number = zone.parse().ok().or_else(|| {
        // In URLs the percent sign is written as one (RFC 6874).
        let zone = zone.strip_prefix("25").unwrap_or(zone);
        let any = stream_of(AddressFamily::INET6).ok()?;
        name_to_index(&any, zone).ok()
    });
    let Some(number) = number else {
        return Err(bad(
            format!("there is no network interface {:?}", redact::value(zone)),
            "ip link shows which there are",
        ));
    };
    Ok(format!("[{address}%{number}]"))
}

/// A name of all nations as it is looked up, and shown: in letters of which none looks like another.
fn international(name: &str) -> Result<String, BadSetting> {
    match url::Host::parse(name) {
        Ok(url::Host::Domain(name)) => Ok(name),
        Ok(address) => Ok(address.to_string()),
        Err(error) => Err(bad(format!("{:?} is not a host: {error}", redact::value(name)), FORMS)),
    }
}

fn number(port: &str) -> Result<u16, BadSetting> {
    match port.parse::<u16>() {
        Ok(number @ 1..) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
        _ if port.starts_with(|c: char| c.is_ascii_alphabetic()) => service(port).ok_or_else(|| {
            // It may have been a password.
            let problem = "what follows the last colon is no service".to_owned();
            bad(problem, "/etc/services lists them; a port is a number from 1 to 65535")
        }),
        _ => {
            let problem = match port.bytes().all(|byte| byte.is_ascii_digit() || byte == b'+') {
                true => format!("{port:?} is not a port"),
                false => "what follows the last colon is not a port".to_owned(),
            };
            Err(bad(problem, "a port is a number from 1 to 65535, or a service's name"))
        }
    }
}

/// The port of a service, by its name or an alias.
fn service(name: &str) -> Option<u16> {
    let known = PORTS.iter().find(|(known, _)| *known == name).map(|(_, port)| *port);
    known.or_else(|| listed(&system_text::read("/etc/services").ok()?, name))
}

/// A line is `name port/protocol alias... # comment` (services(5)).
fn listed(services: &str, name: &str) -> Option<u16> {
    services.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let (first, port) = (words.next()?, words.next()?.strip_suffix("/tcp")?);
        (first == name || words.any(|alias| alias == name)).then(|| port.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        text.parse::<Target>().map(|target| target.to_string()).map_err(|bad| bad.problem)
    }

    #[test]
    fn only_what_says_so_means_that_nobody_accepts() {
        let of = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        for gone in [Errno::CONNREFUSED, Errno::CONNRESET, Errno::HOSTUNREACH, Errno::NOENT, Errno::TIMEDOUT] {
            assert!(says_nobody_accepts(&of(gone)), "{gone}");
        }
        let nothing = [Errno::INVAL, Errno::LOOP, Errno::NETDOWN, Errno::NETUNREACH, Errno::MFILE, Errno::ACCESS];
        for nothing in nothing.into_iter().chain([Errno::ADDRNOTAVAIL, Errno::AGAIN, Errno::PROTOTYPE, Errno::NOBUFS]) {
            assert!(!says_nobody_accepts(&of(nothing)), "{nothing}");
        }
        let told =
            |text: &str| is_not_known(&io::Error::other(format!("failed to lookup address information: {text}")));
        assert!(told("Name or service not known") && told("Name does not resolve"));
        assert!(told("nodename nor servname provided, or not known") && told("No address associated with hostname"));
        assert!(!told("Temporary failure in name resolution") && !told("System error"));
        let late = Target::Tcp { scheme: None, address: "127.0.0.1:1".into() }.is_gone(Some(Duration::ZERO), None);
        assert_eq!(late.unwrap_err().to_string(), "there was no time to ask at all of its addresses");
    }

    /// Its queue is full, so that it answers to nobody, and accepts again a moment later.
    #[test]
    fn who_was_not_waited_for_is_not_gone() {
        use rustix::net::{bind, getsockname, listen};
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let new = || stream_of(AddressFamily::INET).unwrap();
        let server = new();
        bind(&server, &local).unwrap();
        listen(&server, 0).unwrap();
        let address = SocketAddr::try_from(getsockname(&server).unwrap()).unwrap();
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let client = new();
                ioctl_fionbio(&client, true).unwrap();
                let _ = connect(&client, &address);
                client
            })
            .collect();
        let target = Target::Tcp { scheme: None, address: address.to_string() };
        let (short, long) = (Some(Duration::from_millis(20)), Some(Duration::from_secs(5)));
        for whole in [long, None] {
            let told = target.is_gone(short, whole).unwrap_err().to_string();
            assert_eq!(told, "it did not answer in the time that was left");
        }
        assert!(target.is_gone(short, short).is_ok(), "it had all of its time");
        drop((waiting, server));
        assert!(target.is_gone(long, None).is_ok(), "nobody listens there any more");
    }

    /// `localhost` has both in many places where this machine has but one.
    #[test]
    fn what_addresses_say_of_a_kind_that_this_machine_has_not_does_not_count() {
        let addresses = ["[::1]:80", "127.0.0.1:80", "127.0.0.2:80"].map(|address| address.parse().unwrap());
        let found = |answers: [Errno; 3]| {
            let of = |errno: Errno| Err(io::Error::from_raw_os_error(errno.raw_os_error()));
            each(&addresses, None, false, &|address, _| {
                of(answers[addresses.iter().position(|one| *one == address).unwrap()])
            })
            .unwrap_err()
            .raw_os_error()
        };
        let (no, refused, net) = (Errno::AFNOSUPPORT, Errno::CONNREFUSED, Errno::NETUNREACH);
        for (answers, counts) in [
            ([no, refused, refused], refused),
            ([net, refused, refused], refused),
            ([refused, no, no], refused),
            // Nobody was asked, or not all of a kind could be.
            ([no, no, no], no),
            ([net, refused, net], net),
            ([refused, refused, net], net),
            // Nobody was asked there, for want of a port.
            ([refused, Errno::ADDRNOTAVAIL, refused], Errno::ADDRNOTAVAIL),
            ([Errno::ADDRNOTAVAIL, refused, refused], Errno::ADDRNOTAVAIL),
        ] {
            assert_eq!(found(answers), Some(counts.raw_os_error()), "{answers:?}");
        }
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
            ("db:http", "db:80"),
            ("http://db", "db:80"),
            ("http://db:8080/health?x=1", "db:8080"),
            ("HTTPS://db/x", "tls://db:443"),
            ("tls://db:6380", "tls://db:6380"),
            ("tls://[::1]", "tls://[::1]:443"),
            ("postgres://user:secret@db/shop", "db:5432"),
            ("postgres://user:secr@t@db:1/shop", "db:1"),
            ("redis://:secret@cache:6379/0", "cache:6379"),
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
            ("http://", "\"\" has no host"),
            ("::1:80", "\"::1:80\" has colons in its host"),
            ("db:0", "\"0\" is not a port"),
            ("db:65536", "\"65536\" is not a port"),
            ("db:+80", "\"+80\" is not a port"),
            ("db:nosuchservice", "what follows the last colon is no service"),
            ("user@db:80", "\"***@db\" is not a host"),
            ("db\u{1b}[2J:80", "\"db***\" is not a host"),
            ("unix:", "unix: has no path"),
            ("udp://db:53", "udp:// has no connections to wait for"),
            ("nosuch://db", "\"db\" has no port"),
        ] {
            assert_eq!(read(text).unwrap_err(), problem);
        }
        assert_eq!(read(&format!("unix:/{}", "a".repeat(107))).unwrap_err(), "the path of the socket has 108 bytes");
    }

    #[test]
    fn services_have_aliases() {
        let services = "# all\nhttp 80/tcp www # the web\nntp 123/udp\nsmtp\t25/tcp\tmail\n";
        assert_eq!(
            ["http", "www", "mail", "ntp", "web"].map(|name| listed(services, name)),
            [Some(80), Some(80), Some(25), None, None]
        );
    }
}
