//! A server of HTTP/1.1 that does as it is told, byte by byte.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What the server does with a request.
pub(crate) enum Say {
    /// These bytes, and waits for the next request.
    Bytes(Vec<u8>),
    /// These bytes, and closes the connection.
    Cut(Vec<u8>),
    /// Nothing, ever.
    Nothing,
}

impl Say {
    pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Say {
        Say::Bytes(answer(status, headers, body))
    }
}

pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Words\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// What came to the server.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Raw {
    /// Answers requests as `script` says, which is told how many came before.
    pub(crate) async fn new(script: impl Fn(usize, &str) -> Say + Send + Sync + 'static) -> Raw {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let raw = Raw { address, requests: Arc::default(), connections: Arc::default() };
        let (server, script) = (raw.clone(), Arc::new(script));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                server.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(server.clone().serve(stream, script.clone()));
            }
        });
        raw
    }

    async fn serve(self, mut stream: TcpStream, script: Arc<impl Fn(usize, &str) -> Say>) {
        while let Some(request) = read(&mut stream).await {
            let before = {
                let mut requests = self.requests.lock().unwrap();
                requests.push(request.clone());
                requests.len() - 1
            };
            match script(before, &request) {
                Say::Bytes(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Say::Cut(bytes) => {
                    _ = stream.write_all(&bytes).await;
                    return;
                }
                Say::Nothing => std::future::pending().await,
            }
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn came(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The values of a header, request by request.
    pub(crate) fn header(&self, name: &str) -> Vec<Option<String>> {
        let of = |request: &String| {
            let lines = request.lines().filter_map(|line| line.split_once(": "));
            lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
        };
        self.requests.lock().unwrap().iter().map(of).collect()
    }
}

/// A request with its body.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}
