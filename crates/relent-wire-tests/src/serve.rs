//! An axum server on a free port of loopback, for as long as it is held.

use axum::Router;
use std::net::SocketAddr;
use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinHandle,
};

/// A server that ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// How many connections may wait to be accepted: a herd comes at once, and who finds no room there comes back a second
/// later, which is the system's doing.
const BACKLOG: u32 = 4096;

/// A listener with room for a herd.
///
/// # Panics
///
/// If loopback has no free port.
pub fn listen() -> TcpListener {
    let socket = TcpSocket::new_v4().expect("a socket can be made");
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("loopback has a free port");
    socket.listen(BACKLOG).expect("it is bound")
}

impl Server {
    /// Serves an app.
    ///
    /// # Panics
    ///
    /// If loopback has no free port.
    pub fn start(app: Router) -> Server {
        let listener = listen();
        let address = listener.local_addr().expect("it is bound");
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Server { address, task }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
