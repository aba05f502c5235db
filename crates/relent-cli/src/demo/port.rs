//! A port of loopback that is ours before anything listens on it, so that connections to it are refused at first.

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::fd::OwnedFd,
};

/// A port that is taken and closed.
pub(super) struct Port {
    socket: OwnedFd,
    address: SocketAddr,
}

/// Connections that may wait to be accepted: more than all clients of a herd, or the system would hold some back.
const BACKLOG: i32 = 1024;

impl Port {
    pub(super) fn closed() -> io::Result<Port> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = getsockname(&socket)?.try_into()?;
        Ok(Port { socket, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn open(self) -> io::Result<TcpListener> {
        listen(&self.socket, BACKLOG)?;
        Ok(TcpListener::from(self.socket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn is_closed_and_then_open() {
        let port = Port::closed().unwrap();
        let address = port.address();
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let listener = port.open().unwrap();
        TcpStream::connect(address).unwrap();
        listener.accept().unwrap();
    }
}
