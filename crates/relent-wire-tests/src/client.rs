//! One request on one connection, so that what is counted is what was sent: no pool, and no retries but the caller's own.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::{io, net::SocketAddr};
use tokio::net::TcpStream;

/// A connection that can be used again.
#[derive(Debug)]
pub struct Connection {
    send: http1::SendRequest<Empty<Bytes>>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub async fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (send, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(Connection { send })
    }

    /// Sends a GET, and reads the answer to its end.
    ///
    /// # Errors
    ///
    /// The connection broke.
    pub async fn get(&mut self, path: &str, headers: &[(&'static str, String)]) -> io::Result<Response<Bytes>> {
        let mut request = Request::get(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Empty::new()).map_err(io::Error::other)?;
        self.send.ready().await.map_err(io::Error::other)?;
        let (head, body) = self.send.send_request(request).await.map_err(io::Error::other)?.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}

/// A GET on a connection of its own.
///
/// # Errors
///
/// It could not connect, or the connection broke.
pub async fn get(address: SocketAddr, path: &str, headers: &[(&'static str, String)]) -> io::Result<Response<Bytes>> {
    Connection::open(address).await?.get(path, headers).await
}
