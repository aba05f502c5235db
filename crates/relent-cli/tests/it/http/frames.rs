//! HTTP/2 as a server speaks it by hand: frames, and a client that is listened to.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const UNKNOWN: u8 = 0xee;

pub(super) const ACK: u8 = 1;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Greets a client, and reads what it sends up to the first frame of one of these kinds that has the flags beside it.
pub(super) fn listen(stream: &mut TcpStream, last: &[(u8, u8)]) -> io::Result<()> {
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    go_on(stream, last)
}

/// Reads more, up to such a frame.
pub(super) fn go_on(stream: &mut TcpStream, last: &[(u8, u8)]) -> io::Result<()> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        stream.read_exact(&mut vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize])?;
        let (kind, flags) = (head[3], head[4]);
        if last.iter().any(|last| kind == last.0 && flags & last.1 == last.1) {
            return Ok(());
        }
        if (kind, flags) == (SETTINGS, 0) {
            stream.write_all(&frame(SETTINGS, ACK, 0, &[]))?;
        }
    }
}

/// Reads on to what a client asks behind a long request, which is whether all of it is read, and says so. What
/// waits to be sent would be lost with whoever hangs up then.
pub(super) fn say_that_all_is_read(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload)?;
        if head[3] == PING && payload == b"all read" {
            return stream.write_all(&frame(PING, ACK, 0, &payload));
        }
    }
}
