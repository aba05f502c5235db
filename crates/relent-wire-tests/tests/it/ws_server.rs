//! A WebSocket server that does what tests want, on a free port of loopback, or in memory.

use futures_util::{SinkExt, Stream, StreamExt, stream};
use std::{
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
        protocol::CloseFrame,
    },
};

pub(crate) type Socket = WebSocketStream<TcpStream>;

/// Runs until it is dropped, and all its connections with it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    tasks: AbortHandle,
}

impl Server {
    pub(crate) fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

/// What is done with an upgrade: the attempt number that the client sent is given.
pub(crate) type Door = Arc<dyn Fn(u32) -> Result<(), Box<ErrorResponse>> + Send + Sync>;

pub(crate) fn open_door() -> Door {
    Arc::new(|_| Ok(()))
}

/// Serves each connection that `door` lets in with `serve`, on `address`; port 0 is any that is free.
pub(crate) async fn serve<F, Fut>(address: &str, door: Door, serve: F) -> Server
where
    F: Fn(u32, Socket) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = stream::unfold(listener, async |listener| {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                return Some((stream, listener));
            }
        }
    });
    Server { address, tasks: serve_each(incoming, door, serve) }
}

/// Serves each connection that comes and that `door` lets in, until it is aborted.
pub(crate) fn serve_each<S, F, Fut>(
    incoming: impl Stream<Item = S> + Send + 'static,
    door: Door,
    serve: F,
) -> AbortHandle
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(u32, WebSocketStream<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let serve = Arc::new(serve);
    let tasks = tokio::spawn(async move {
        let mut incoming = pin!(incoming);
        let mut connections = JoinSet::new();
        let count = Arc::new(Mutex::new(0));
        while let Some(stream) = incoming.next().await {
            let (door, serve, count) = (door.clone(), serve.clone(), count.clone());
            connections.spawn(async move {
                #[expect(clippy::result_large_err, reason = "tungstenite wants it so")]
                let judge = |request: &Request, response: Response| {
                    let attempt = request.headers().get("relent-attempt").and_then(|value| value.to_str().ok());
                    match door(attempt.and_then(|text| text.parse().ok()).unwrap_or(1)) {
                        Ok(()) => Ok(response),
                        Err(refusal) => Err(*refusal),
                    }
                };
                let Ok(socket) = accept_hdr_async(stream, judge).await else { return };
                let nth = {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    *count
                };
                serve(nth, socket).await;
            });
            while connections.try_join_next().is_some() {}
        }
    });
    tasks.abort_handle()
}

/// Answers each message with itself.
pub(crate) async fn echo(_: u32, mut socket: Socket) {
    while let Some(Ok(message)) = socket.next().await {
        if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
            return;
        }
    }
}

/// Closes with this code, and waits for the client's answer.
pub(crate) async fn close_with(socket: &mut Socket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code: code.into(), reason: reason.into() };
    let _ = socket.send(Message::Close(Some(frame))).await;
    while let Some(Ok(_)) = socket.next().await {}
}

pub(crate) fn refusal(status: u16, headers: &[(&'static str, String)]) -> Box<ErrorResponse> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, value);
    }
    Box::new(response.body(None).unwrap())
}
