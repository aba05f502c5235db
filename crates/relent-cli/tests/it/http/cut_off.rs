//! Bodies of HTTP/2 that are cut off without an error (RFC 9113, 8.1), as by a server or a balancer that restarts: they are not
//! whole, whatever the code says; those that ended before the stream was reset are.

use super::{
    frames::{ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, frame, go_on, listen},
    http_in,
};
use crate::binary::Folder;
use std::{
    io::{self, Write},
    net::{TcpListener, TcpStream},
    thread,
};

const NO_ERROR: [u8; 4] = [0; 4];

type Fields<'a> = &'a [(&'a str, &'a str)];

/// `:status 200`, and these header fields (RFC 7541, 6.2.2).
fn head(fields: Fields, flags: u8) -> Vec<u8> {
    let mut block = vec![0x88];
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("short"));
            block.extend(text.as_bytes());
        }
    }
    frame(HEADERS, END_HEADERS | flags, 1, &block)
}

fn serve(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    listen(&mut stream, &[(HEADERS, END_STREAM), (DATA, END_STREAM)])?;
    stream.write_all(answer)?;
    stream.write_all(&frame(PING, 0, 0, &[0; 8]))?;
    go_on(&mut stream, &[(PING, ACK)])
}

/// What comes of a call that is answered so: the exit code, what is said, and the file, if there is one.
fn outcome(more: &[&str], answer: Vec<u8>) -> (Option<i32>, String, Option<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = serve(stream, &answer);
        }
    });
    let folder = Folder::new();
    let args = [&["--http2", "--max-attempts=1", "-o", "file"], more, &[&url]].concat();
    let outcome = http_in(&folder, &args);
    let file = folder.names().first().map(|name| folder.read(name));
    (outcome.code, outcome.stderr, file)
}

#[test]
fn a_body_that_is_reset_without_an_error_is_not_whole() {
    let endings = [frame(RST_STREAM, 0, 1, &NO_ERROR), frame(GOAWAY, 0, 0, &[NO_ERROR, NO_ERROR].concat())];
    let gzip = ("content-encoding", "gzip");
    let heads: [(Fields, &[&str], &str); 5] = [
        (&[("content-length", "20")], &[], "after 3 of 20 bytes"),
        (&[], &[], "after 3 bytes"),
        (&[("content-length", "20"), ("etag", "\"a\"")], &[], "after 3 of 20 bytes"),
        (&[], &["-d", "x"], "after 3 bytes"),
        (&[gzip], &["--compressed"], "after 0 bytes"),
    ];
    for end in &endings {
        for (fields, more, is) in heads {
            let data: &[u8] = if fields == [gzip] { &[0x1f, 0x8b, 8] } else { b"par" };
            let answer = [head(fields, 0), frame(DATA, 0, 1, data), end.clone()].concat();
            let (code, said, file) = outcome(more, answer);
            assert!(
                code != Some(0) && said.contains(&format!("the body ended early, {is}")),
                "{fields:?}: {code:?} {said}"
            );
            assert_eq!(file, None, "{fields:?}");
        }
    }
}

#[test]
fn a_body_that_ended_is_whole_whatever_comes_then() {
    let reset = frame(RST_STREAM, 0, 1, &NO_ERROR);
    let length = [("content-length", "3")];
    for answer in [
        [head(&[], 0), frame(DATA, END_STREAM, 1, b"all"), reset.clone()].concat(),
        [head(&[], 0), frame(DATA, 0, 1, b"all"), frame(DATA, END_STREAM, 1, b"")].concat(),
        // All that was told has come, and only the word that this was all has not.
        [head(&length, 0), frame(DATA, 0, 1, b"all"), reset].concat(),
        // Trailers are an end, too.
        [head(&[], 0), frame(DATA, 0, 1, b"all"), trailers()].concat(),
    ] {
        assert_eq!(outcome(&[], answer), (Some(0), String::new(), Some("all".into())));
    }
    assert_eq!(outcome(&[], head(&[], END_STREAM)), (Some(0), String::new(), Some(String::new())));
}

fn trailers() -> Vec<u8> {
    let field = [&[0, 1][..], b"a", &[1], b"b"].concat();
    frame(HEADERS, END_HEADERS | END_STREAM, 1, &field)
}
