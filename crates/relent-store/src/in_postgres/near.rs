//! Connections by a socket of this machine. They are made here and not by the client, so that it is known who listens before anything is said.

use super::{
    CONNECT,
    wire::{To, Watched, Wire},
};
use crate::peer;
use std::{
    error,
    future::Future,
    io,
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UnixStream,
    task::JoinHandle,
    time::timeout,
};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Socket, tls::TlsConnect};

/// What reads from a connection.
pub(super) enum Link {
    Far(Connection<Socket, Watched>),
    Near(Connection<Unconnected, Watched>),
}

impl Link {
    pub(super) fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> {
        match self {
            Link::Far(connection) => connection.poll_message(cx),
            Link::Near(connection) => connection.poll_message(cx),
        }
    }
}

impl Future for Link {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Link::Far(connection) => Pin::new(connection).poll(cx),
            Link::Near(connection) => Pin::new(connection).poll(cx),
        }
    }
}

impl Wire {
    /// A connection, to the first that makes one.
    pub(super) async fn connect(&self, config: &Config) -> Result<(Client, Link), Error> {
        let mut sockets = self.sockets.iter().peekable();
        while let Some(socket) = sockets.next() {
            let made = config.connect_raw(Unconnected(socket.clone()), self.to("")).await;
            if made.is_ok() || sockets.peek().is_none() {
                return made.map(|(client, connection)| (client, Link::Near(connection)));
            }
        }
        config.connect(self.clone()).await.map(|(client, connection)| (client, Link::Far(connection)))
    }

    /// Ends what a connection was asked.
    pub(super) async fn cancel(&self, client: &Client) {
        let asked = client.cancel_token();
        // Whoever has not got the question takes no notice.
        for socket in self.sockets.iter() {
            let _ = asked.cancel_query_raw(Unconnected(socket.clone()), self.to("")).await;
        }
        if self.sockets.is_empty() {
            let _ = asked.cancel_query(self.clone()).await;
        }
    }
}

impl deadpool_postgres::Connect for Wire {
    fn connect(
        &self,
        config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        let config = config.clone();
        Box::pin(async move {
            let (client, link) = Wire::connect(self, &config).await?;
            Ok((client, tokio::spawn(async { drop(link.await) })))
        })
    }
}

/// A socket that is connected to when the client has a word for TLS, in whose place that comes.
pub(super) struct Unconnected(PathBuf);

impl TlsConnect<Unconnected> for To {
    type Stream = Watched;
    type Error = Box<dyn error::Error + Sync + Send>;
    type Future = Pin<Box<dyn Future<Output = Result<Watched, Self::Error>> + Send>>;

    fn connect(self, Unconnected(socket): Unconnected) -> Self::Future {
        Box::pin(async move {
            let stream = timeout(CONNECT, UnixStream::connect(&socket)).await.map_err(io::Error::from)??;
            if !self.believes_all() {
                peer::check(&stream, &socket).map_err(|refused| refused.hint(HINT))?;
            }
            Ok(self.watched(Box::new(stream)))
        })
    }
}

const HINT: &str =
    "if that is the user whom the server runs as, `?owner=any` believes it; in a folder of its own no word is needed";

impl AsyncRead for Unconnected {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
    }
}

impl AsyncWrite for Unconnected {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
