//! Through a real SOCKS server, of the test's own: versions 4, 4a and 5, with and without a user.

use super::{
    expect, http,
    server::{Reply, Server, free_port},
};
use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A SOCKS server that leads everybody to one place, and what it was asked for.
struct Socks {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Socks {
    /// Leads to `place`, and answers with this code; `user` has to be given if there is one.
    fn new(place: SocketAddr, code: u8, user: Option<&'static str>) -> Socks {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let log = log.clone();
                thread::spawn(move || serve(client, place, code, user, &log));
            }
        });
        Socks { address, asked }
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(
    mut client: TcpStream,
    place: SocketAddr,
    code: u8,
    user: Option<&str>,
    log: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let answer = match bytes::<1>(&mut client)? {
        [4] => {
            let asked = version_4(&mut client)?;
            log.lock().unwrap().push(asked);
            vec![0, if code == 0 { 90 } else { 91 }, 0, 0, 0, 0, 0, 0]
        }
        _ => {
            let Some(asked) = version_5(&mut client, user)? else { return Ok(()) };
            log.lock().unwrap().push(asked);
            vec![5, code, 0, 1, 0, 0, 0, 0, 0, 0]
        }
    };
    client.write_all(&answer)?;
    if code != 0 {
        return Ok(());
    }
    let mut far = TcpStream::connect(place)?;
    let (mut back, mut there) = (client.try_clone()?, far.try_clone()?);
    thread::spawn(move || io::copy(&mut client, &mut there));
    io::copy(&mut far, &mut back).map(drop)
}

fn bytes<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn until_zero(client: &mut TcpStream) -> io::Result<String> {
    let mut text = String::new();
    loop {
        match bytes::<1>(client)? {
            [0] => return Ok(text),
            [byte] => text.push(byte.into()),
        }
    }
}

fn version_4(client: &mut TcpStream) -> io::Result<String> {
    let [_connect, high, low] = bytes(client)?;
    let address = Ipv4Addr::from(bytes::<4>(client)?);
    let _user = until_zero(client)?;
    let port = u16::from_be_bytes([high, low]);
    match address.octets() {
        [0, 0, 0, last] if last != 0 => Ok(format!("name {}:{port}", until_zero(client)?)),
        _ => Ok(format!("address {address}:{port}")),
    }
}

fn version_5(client: &mut TcpStream, user: Option<&str>) -> io::Result<Option<String>> {
    let text = |client: &mut TcpStream| -> io::Result<String> {
        let [length] = bytes(client)?;
        let mut text = vec![0; length.into()];
        client.read_exact(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let methods = text(client)?;
    match user {
        None => client.write_all(&[5, 0])?,
        Some(_) if !methods.contains('\u{2}') => {
            client.write_all(&[5, 255])?;
            return Ok(None);
        }
        Some(user) => {
            client.write_all(&[5, 2])?;
            let [_version] = bytes(client)?;
            let given = format!("{}:{}", text(client)?, text(client)?);
            client.write_all(&[1, u8::from(given != user)])?;
            if given != user {
                return Ok(None);
            }
        }
    }
    let [_version, _connect, _reserved, kind] = bytes(client)?;
    let host = match kind {
        1 => format!("address {}", Ipv4Addr::from(bytes::<4>(client)?)),
        3 => format!("name {}", text(client)?),
        _ => format!("kind {kind} {:?}", bytes::<16>(client)?),
    };
    Ok(Some(format!("{host}:{}", u16::from_be_bytes(bytes(client)?))))
}

#[test]
fn every_version_leads_there() {
    let server = Server::new(vec![Reply::ok("through\n")]);
    for (scheme, host, asked) in [
        ("socks5", "127.0.0.2", "address 127.0.0.2:80"),
        ("socks5h", "127.0.0.2", "address 127.0.0.2:80"),
        ("socks5h", "far.invalid", "name far.invalid:80"),
        ("socks4", "127.0.0.2", "address 127.0.0.2:80"),
        ("socks4a", "far.invalid", "name far.invalid:80"),
    ] {
        let socks = Socks::new(server.address(), 0, None);
        expect(&http(&["-x", &socks.url(scheme), &format!("http://{host}/x")]), 0, "through\n", "");
        assert_eq!(socks.asked(), [asked], "{scheme}");
    }
    assert!(server.requests().iter().all(|request| request.line() == "GET /x HTTP/1.1"));
}

#[test]
fn names_are_looked_up_here_unless_the_scheme_says_there() {
    let server = Server::new(vec![Reply::ok("through\n")]);
    for scheme in ["socks5", "socks4"] {
        let socks = Socks::new(server.address(), 0, None);
        let args = ["-x", &socks.url(scheme), "--resolve", "far.invalid:80:127.0.0.9", "http://far.invalid/"];
        expect(&http(&args), 0, "through\n", "");
        assert_eq!(socks.asked(), ["address 127.0.0.9:80"], "{scheme}");
    }
}

#[test]
fn a_proxy_that_wants_a_user() {
    let server = Server::new(vec![Reply::ok("through\n")]);
    let socks = Socks::new(server.address(), 0, Some("ann:p w"));
    expect(&http(&["-x", &socks.url("socks5h"), "-U", "ann:p w", "http://far.invalid/"]), 0, "through\n", "");
    let in_the_url = socks.url("socks5h://ann:p%20w@").replace("@://", "@");
    expect(&http(&["-x", &in_the_url, "http://far.invalid/"]), 0, "through\n", "");
    for wrong in [vec![], vec!["-U", "ann:hunter2"]] {
        let url = socks.url("socks5h");
        let mut args = vec!["-x", url.as_str(), "http://far.invalid/"];
        args.extend(wrong);
        let outcome = http(&args);
        assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("through the proxy socks5h://HOST: the proxy "), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("--proxy-user"), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("hunter2"), "{}", outcome.stderr);
    }
}

#[test]
fn a_proxy_that_fails_is_told_and_a_post_may_be_sent_again() {
    let server = Server::new(vec![Reply::ok("through\n")]);
    for scheme in ["socks5h", "socks4a"] {
        let socks = Socks::new(server.address(), 5, None);
        let args = ["POST", "-d", "x", "-x", &socks.url(scheme), "--max-attempts=2", "http://far.invalid/"];
        let outcome = http(&args);
        assert_eq!((outcome.code, socks.asked().len()), (Some(1), 2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(&format!("through the proxy {scheme}://HOST")), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("the proxy says: "), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("the request never left"), "{}", outcome.stderr);
    }
    assert_eq!(server.count(), 0);
    let gone = format!("socks5h://127.0.0.1:{}", free_port());
    let outcome = http(&["-x", &gone, "--max-attempts=1", "http://far.invalid/"]);
    assert!(
        outcome.stderr.contains("through the proxy socks5h://HOST: the proxy cannot be reached"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_proxy_that_speaks_something_else_ends_in_time() {
    for nonsense in ["HTTP/1.1 200 OK\r\n\r\n", "\u{5}", "", "\u{5}\u{0}\u{5}\u{0}\u{0}\u{9}xxxxxxxxxxxxxxxxxxxxxxxx"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut client in listener.incoming().map_while(Result::ok) {
                let _ = client.read(&mut [0; 100]);
                let _ = client.write_all(nonsense.as_bytes());
                let _ = client.shutdown(std::net::Shutdown::Write);
            }
        });
        for scheme in ["socks5h", "socks4a", "http"] {
            let proxy = format!("{scheme}://{address}");
            let outcome = http(&[
                "-x",
                &proxy,
                "--connect-timeout=2s",
                "--idle-timeout=2s",
                "--max-attempts=2",
                "https://far.invalid/",
            ]);
            assert!(
                matches!(outcome.code, Some(1 | 3)),
                "{nonsense:?} {scheme}: {:?} {}",
                outcome.code,
                outcome.stderr
            );
        }
    }
}
