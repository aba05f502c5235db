//! A server of HTTP/2 that goes away (RFC 9113, 6.8) while a POST is under way: it is sent again only if the server says that
//! it was not looked at.

use super::{floods::frame, http};
use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;

/// Takes a whole request, says goodbye with these words, and closes a moment later.
fn leave(mut stream: TcpStream, goodbye: &[u8], seen: &AtomicUsize) -> io::Result<()> {
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        stream.read_exact(&mut vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize])?;
        match (head[3], head[4]) {
            (SETTINGS, 0) => stream.write_all(&frame(SETTINGS, 1, 0, &[]))?,
            // The end of the head or of the body.
            (0 | 1, flags) if flags & END_STREAM != 0 => break,
            _ => {}
        }
    }
    seen.fetch_add(1, Ordering::SeqCst);
    stream.write_all(goodbye)?;
    thread::sleep(Duration::from_millis(50));
    Ok(())
}

#[test]
fn a_post_is_sent_again_only_if_it_was_not_looked_at() {
    const NO_ERROR: u32 = 0;
    const ENHANCE_YOUR_CALM: u32 = 11;
    for (last, code, times, exit) in [
        (0, NO_ERROR, 3, 1),
        (1, NO_ERROR, 1, 6),
        (u32::MAX >> 1, NO_ERROR, 1, 6),
        (0, ENHANCE_YOUR_CALM, 1, 6),
        (1, ENHANCE_YOUR_CALM, 1, 6),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let seen = Arc::new(AtomicUsize::new(0));
        let counted = seen.clone();
        let goodbye = frame(GOAWAY, 0, 0, &[u32::to_be_bytes(last), u32::to_be_bytes(code)].concat());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let _ = leave(stream, &goodbye, &counted);
            }
        });
        let outcome = http(&["--http2", "--max-attempts=3", "-d", "one", &url]);
        assert_eq!((outcome.code, seen.load(Ordering::SeqCst)), (Some(exit), times), "{last} {code}: {outcome:?}");
    }
}
