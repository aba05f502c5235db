//! How the far side is reached: by TCP and TLS, as the URL says, or as the program connects.

use super::{Message, SocketFault};
use futures_util::{Sink, Stream};
use std::{future::Future, io, pin::Pin};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::{
    client_async_with_config, connect_async_with_config,
    tungstenite::{Error as Broken, handshake::client::Request, protocol::WebSocketConfig},
};

/// A WebSocket, whatever is below it.
pub(super) struct Connection(pub(super) Pin<Box<dyn Both + Send>>);

pub(super) trait Both: Stream<Item = Result<Message, Broken>> + Sink<Message, Error = Broken> {}

impl<T: Stream<Item = Result<Message, Broken>> + Sink<Message, Error = Broken>> Both for T {}

type Connecting = Pin<Box<dyn Future<Output = Result<Connection, SocketFault>> + Send>>;

/// The program's own way.
type Own = Box<dyn FnMut(Request, Option<WebSocketConfig>) -> Connecting + Send>;

#[derive(Default)]
pub(super) struct Road(Option<Own>);

impl Road {
    pub(super) fn own<F, Fut, S>(mut connect: F) -> Road
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Road(Some(Box::new(move |request, config| {
            let connecting = connect();
            Box::pin(async move {
                let stream = connecting.await.map_err(|err| SocketFault::of_connecting(Broken::Io(err)))?;
                let opened = client_async_with_config(request, stream, config).await;
                opened.map(|(socket, _)| Connection(Box::pin(socket))).map_err(SocketFault::of_connecting)
            })
        })))
    }

    pub(super) fn connect(&mut self, request: Request, config: Option<WebSocketConfig>) -> Connecting {
        match &mut self.0 {
            Some(own) => own(request, config),
            None => Box::pin(async move {
                let opened = connect_async_with_config(request, config, true).await;
                opened.map(|(socket, _)| Connection(Box::pin(socket))).map_err(SocketFault::of_connecting)
            }),
        }
    }
}
