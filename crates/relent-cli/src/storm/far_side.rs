//! What clients call: a server of the storm's own, or one that `--target` names; on loopback, whichever it is.

use crate::{
    redact,
    talk::{Fault, plain},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use relent::{
    Verdict,
    wire::{self, RELENT_ATTEMPT},
};
use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use url::Url;

/// Where it is, and what is asked of it.
#[derive(Clone, Debug)]
pub(super) struct FarSide {
    address: SocketAddr,
    /// The head of a request, but for what is the client's own.
    head: String,
}

/// How an attempt failed.
#[derive(Clone, Debug)]
pub(super) enum Failed {
    /// The server answered, and this is what it means.
    Refused(Verdict),
    /// It did not come so far.
    Broken(String),
}

/// The longest head of an answer, and the most of its body that is read.
const LONGEST: usize = 64 * 1024;

/// The header by which clients of a storm are told apart.
pub(super) const CLIENT: &str = "storm-client";

/// How long a body is waited for that nobody needs.
const BODY: Duration = Duration::from_secs(1);

impl FarSide {
    /// A server of the storm's own, which answers whoever knows its word.
    pub(super) fn own(address: SocketAddr, word: &str) -> FarSide {
        FarSide { address, head: head(&format!("/{word}"), "localhost") }
    }

    /// The server of a URL, whose name has to be known within a limit.
    ///
    /// # Errors
    ///
    /// It is no plain HTTP, or not on loopback.
    pub(super) fn of_url(text: &str, limit: Duration) -> Result<FarSide, Fault> {
        let bad = |problem: String| {
            Fault::new(format!("--target {}: {problem}", redact::server(text)))
                .hint("a storm is for a server of yours on this machine: http://localhost:8080/path")
        };
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&with_scheme).map_err(|error| bad(format!("it is no URL ({error})")))?;
        let host =
            url.host_str().filter(|_| url.scheme() == "http").ok_or_else(|| bad("it is no plain HTTP".into()))?;
        let port = url.port().unwrap_or(80);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = if bare.contains(':') { format!("[{bare}]:{port}") } else { format!("{bare}:{port}") };
        let addresses = relent::net::resolve(&name, Some(limit))
            .map_err(|error| bad(format!("its name is not known ({})", plain(&error))))?;
        let first = addresses.first().copied().filter(|_| addresses.iter().all(|at| at.ip().is_loopback()));
        let address = first.ok_or_else(|| bad("its address is not on loopback".into()))?;
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Ok(FarSide { address, head: head(&path, &format!("{host}:{port}")) })
    }

    /// One attempt on a connection of its own. `sent` is called when the request has been written.
    pub(super) async fn call(&self, client: u32, attempt: u32, sent: impl FnOnce()) -> Result<(), Failed> {
        let broken = |error: io::Error| Failed::Broken(plain(&error));
        let mut stream = TcpStream::connect(self.address).await.map_err(broken)?;
        // No port is kept waiting after it is closed: a storm has more connections than there are ports.
        let _ = stream.set_zero_linger();
        let request = format!("{}{CLIENT}: {client}\r\n{RELENT_ATTEMPT}: {attempt}\r\n\r\n", self.head);
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        sent();
        let answer = read(&mut stream).await.map_err(broken)?;
        let _ = timeout(BODY, answer.drain(&mut stream)).await;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        wire::verdict(answer.status, &answer.headers, now).map_or(Ok(()), |verdict| Err(Failed::Refused(verdict)))
    }
}

fn head(path: &str, host: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nUser-Agent: relent-storm\r\n")
}

/// The head of an answer, and how much of its body came with it.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: usize,
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Answer> {
    let mut bytes = Vec::with_capacity(512);
    loop {
        match parse(&bytes)? {
            // What is final may have come with it.
            Some((length, answer)) if answer.status.is_informational() => {
                bytes.drain(..length);
                continue;
            }
            Some((_, answer)) => return Ok(answer),
            None if bytes.len() > LONGEST => return Err(no_http()),
            None => {}
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the connection was closed without an answer"));
        }
    }
}

/// The answer and the length of its head; nothing as long as that is not whole.
fn parse(bytes: &[u8]) -> io::Result<Option<(usize, Answer)>> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(bytes).map_err(|_| no_http())? {
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(length) => length,
    };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or_else(no_http)?;
    let mut headers = HeaderMap::new();
    for field in response.headers.iter() {
        let (name, value) = (HeaderName::try_from(field.name), HeaderValue::from_bytes(field.value));
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    Ok(Some((length, Answer { status, headers, body: bytes.len() - length })))
}

fn no_http() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the answer is no HTTP")
}

impl Answer {
    /// Reads what nobody needs, so that the server is not cut off while it writes.
    async fn drain(&self, stream: &mut TcpStream) -> io::Result<()> {
        let length =
            self.headers.get(http::header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let mut left = length.unwrap_or(LONGEST).min(LONGEST).saturating_sub(self.body);
        let mut bytes = [0; 4096];
        while left > 0 {
            match stream.read(&mut bytes).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn only_loopback_is_stormed() {
        let refused = |url: &str| FarSide::of_url(url, LONG).unwrap_err().to_json();
        for url in ["http://192.0.2.1/", "http://10.0.0.1:80/x", "http://[2001:db8::1]/", "http://0.0.0.0:1/"] {
            assert!(refused(url).contains("its address is not on loopback"), "{url}: {}", refused(url));
        }
        assert!(refused("https://localhost/").contains("no plain HTTP"));
        assert!(refused("http://").contains("no URL"));
        let far = FarSide::of_url("http://127.0.0.1:8080/health?deep=1", LONG).unwrap();
        assert!(far.head.starts_with("GET /health?deep=1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"), "{}", far.head);
        assert!(FarSide::of_url("localhost:8080", LONG).unwrap().address.ip().is_loopback());
        assert_eq!(FarSide::of_url("http://[::1]:9/", LONG).unwrap().address, "[::1]:9".parse().unwrap());
    }

    #[test]
    fn answers_are_read_when_they_are_whole() {
        let text = b"HTTP/1.1 503 Busy\r\nRelent-Turn: 1500\r\nContent-Length: 3\r\n\r\nno";
        assert!(parse(&text[..40]).unwrap().is_none());
        let (length, answer) = parse(text).unwrap().unwrap();
        assert_eq!((length, answer.body, answer.status.as_u16()), (text.len() - 2, 2, 503));
        let told = wire::verdict(answer.status, &answer.headers, Duration::ZERO);
        assert_eq!(told, Some(Verdict::Turn(Duration::from_millis(1500))));
        assert!(parse(b"SSH-2.0-OpenSSH\r\n\r\n").is_err());
    }

    #[tokio::test]
    async fn an_answer_is_read_though_another_came_with_it() {
        let text = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(read(&mut text.as_bytes()).await.unwrap().status, StatusCode::NO_CONTENT);
        let cut = read(&mut &text.as_bytes()[..text.len() - 30]).await.unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
    }
}
