//! A small server whose answers, and failures to answer, are written down in the test.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// A server on a port of its own; it ends with the test.
pub(super) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    ended: Arc<AtomicBool>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The head, up to the empty line.
    pub(super) head: String,
    /// The body.
    pub(super) body: Vec<u8>,
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    bytes: Vec<u8>,
    wait: Duration,
    pause: Option<(usize, Duration)>,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Close,
    Reset,
    Hang,
}

impl Server {
    /// Answers the requests in turn, the last reply for ever.
    pub(super) fn new(replies: Vec<Reply>) -> Server {
        Server::with(move |k, _| replies[k.min(replies.len() - 1)].clone())
    }

    /// Answers each request as the function says; the first is number 0.
    pub(super) fn with(answer: impl Fn(usize, &Request) -> Reply + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        Server::on(listener, answer)
    }

    /// The same on a listener that is there already.
    pub(super) fn on(listener: TcpListener, answer: impl Fn(usize, &Request) -> Reply + Send + 'static) -> Server {
        let address = listener.local_addr().expect("it is bound");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let ended = Arc::new(AtomicBool::new(false));
        let (seen, over) = (requests.clone(), ended.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                if let Some(request) = Request::read(&stream) {
                    let k = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request.clone());
                        seen.len() - 1
                    };
                    let reply = answer(k, &request);
                    thread::spawn(move || reply.send(stream));
                }
            }
        });
        Server { address, requests, ended }
    }

    /// A URL on this server.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// How many requests came.
    pub(super) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

impl Request {
    fn read(mut stream: &TcpStream) -> Option<Request> {
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            read_some(&mut stream, &mut bytes)?;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut request = Request { head, body: bytes.split_off(end) };
        let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        while request.body.len() < length {
            read_some(&mut stream, &mut request.body)?;
        }
        Some(request)
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The first line.
    pub(super) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }
}

fn read_some(stream: &mut &TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 65_536];
    match stream.read(&mut piece) {
        Ok(read @ 1..) => {
            bytes.extend_from_slice(&piece[..read]);
            Some(())
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => Some(()),
        _ => None,
    }
}

impl Reply {
    /// A response with a body and its length.
    pub(super) fn new(status: u16, headers: &[&str], body: impl AsRef<[u8]>) -> Reply {
        let mut head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.as_ref().len());
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        let mut bytes = format!("{head}\r\n").into_bytes();
        bytes.extend_from_slice(body.as_ref());
        Reply { bytes, wait: Duration::ZERO, pause: None, end: End::Close }
    }

    /// 200 with a body.
    pub(super) fn ok(body: impl AsRef<[u8]>) -> Reply {
        Reply::new(200, &[], body)
    }

    /// A failing status with a short body.
    pub(super) fn status(status: u16) -> Reply {
        Reply::new(status, &[], "no\n")
    }

    /// Exactly these bytes.
    pub(super) fn raw(bytes: impl AsRef<[u8]>) -> Reply {
        Reply { bytes: bytes.as_ref().to_owned(), wait: Duration::ZERO, pause: None, end: End::Close }
    }

    /// Nothing: the connection is closed.
    pub(super) fn nothing() -> Reply {
        Reply::raw("")
    }

    /// Only all but the last `missing` bytes.
    pub(super) fn cut(mut self, missing: usize) -> Reply {
        self.bytes.truncate(self.bytes.len() - missing);
        self
    }

    /// The connection is reset instead of closed.
    pub(super) fn reset(self) -> Reply {
        Reply { end: End::Reset, ..self }
    }

    /// The connection stays open, and nothing more comes.
    pub(super) fn hang(self) -> Reply {
        Reply { end: End::Hang, ..self }
    }

    /// Waits before it answers.
    pub(super) fn late(self, wait: Duration) -> Reply {
        Reply { wait, ..self }
    }

    /// Pauses before the last `missing` bytes.
    pub(super) fn paused(self, missing: usize, pause: Duration) -> Reply {
        Reply { pause: Some((self.bytes.len() - missing, pause)), ..self }
    }

    fn send(&self, mut stream: TcpStream) {
        thread::sleep(self.wait);
        let (first, pause) = self.pause.unwrap_or((self.bytes.len(), Duration::ZERO));
        let _ = stream.write_all(&self.bytes[..first]);
        thread::sleep(pause);
        let _ = stream.write_all(&self.bytes[first..]);
        match self.end {
            End::Close => {}
            End::Reset => {
                // What was sent must arrive before the reset does.
                thread::sleep(Duration::from_millis(50));
                let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            }
            End::Hang => thread::sleep(Duration::from_secs(30)),
        }
    }
}

/// A port on loopback where nobody listens, and that nobody else is given while the test runs: it is bound, and kept. Who
/// says so (`SO_REUSEADDR`, as listeners of std and nginx do) may still listen on it.
pub(super) fn free_port() -> u16 {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("there are sockets");
    socket.set_reuse_address(true).expect("a socket that is not bound may be told so");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).expect("loopback has a free port");
    let port = socket.local_addr().ok().and_then(|at| at.as_socket()).expect("it is bound").port();
    std::mem::forget(socket);
    port
}
