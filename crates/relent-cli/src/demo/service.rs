//! The service that fails the way services fail: one answer a connection, by a script.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

/// What the service does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// 503 with `Retry-After: 1`.
    Busy,
    /// Accepts, and says nothing for this long.
    Silent(Duration),
    /// 200 and the body.
    Healthy(&'static str),
}

/// Answers connections by the script, the last answer for ever, until the process ends.
///
/// # Errors
///
/// The system has no thread to give.
pub(super) fn serve(listener: TcpListener, script: &'static [Answer]) -> io::Result<()> {
    let serve = move || {
        let answers = script.iter().chain(script.last().into_iter().cycle());
        for (stream, answer) in listener.incoming().zip(answers) {
            // A client that went away is its own affair; each has a thread, so that silence holds up nobody.
            // Where the system has no thread to give, it is hung up.
            let _ = thread::Builder::new().spawn(move || stream.and_then(|stream| answer_one(&stream, *answer)));
        }
    };
    thread::Builder::new().spawn(serve).map(drop)
}

fn answer_one(stream: &TcpStream, answer: Answer) -> io::Result<()> {
    read_head(stream)?;
    let mut to = stream;
    match answer {
        Answer::Silent(time) => {
            thread::sleep(time);
            Ok(())
        }
        Answer::Busy => write!(
            to,
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nbusy\n"
        ),
        Answer::Healthy(body) => {
            let length = body.len();
            write!(to, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        }
    }
}

/// Reads the head of a request; its end is an empty line.
fn read_head(stream: &TcpStream) -> io::Result<()> {
    const LONGEST: u64 = 16 * 1024;
    let head = BufReader::new(io::Read::take(stream, LONGEST));
    for line in head.lines() {
        if line?.is_empty() {
            return Ok(());
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}
