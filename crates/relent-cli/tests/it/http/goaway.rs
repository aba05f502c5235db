//! A server of HTTP/2 that goes away (RFC 9113, 6.8) while a POST is under way: it is sent again only if the server says that
//! it was not looked at.

use super::{
    frames::{ACK, DATA, END_STREAM, GOAWAY, HEADERS, PING, frame, go_on, listen},
    http,
};
use std::{
    io::{self, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Takes a whole request, says goodbye with these words, and closes when they were heard.
fn leave(mut stream: TcpStream, goodbye: &[u8], seen: &AtomicUsize) -> io::Result<()> {
    // The end of the head or of the body.
    listen(&mut stream, &[(HEADERS, END_STREAM), (DATA, END_STREAM)])?;
    seen.fetch_add(1, Ordering::SeqCst);
    stream.write_all(goodbye)?;
    // Who answers this has heard what was said before it. Closing earlier would be a reset.
    stream.write_all(&frame(PING, 0, 0, &[0; 8]))?;
    go_on(&mut stream, &[(PING, ACK)])
}

#[test]
fn a_post_is_sent_again_only_if_it_was_not_looked_at() {
    const NO_ERROR: u32 = 0;
    const ENHANCE_YOUR_CALM: u32 = 11;
    for (last, code, times, exit) in [
        (0, NO_ERROR, 3, 1),
        (1, NO_ERROR, 1, 6),
        (u32::MAX >> 1, NO_ERROR, 1, 6),
        (0, ENHANCE_YOUR_CALM, 3, 1),
        (1, ENHANCE_YOUR_CALM, 1, 6),
        (u32::MAX >> 1, ENHANCE_YOUR_CALM, 1, 6),
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
