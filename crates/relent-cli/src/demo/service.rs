//! The service that fails the way services fail: one answer a connection, by a script.

use crate::loopback::{self, NOT_FOUND, Server, Silent};
use std::{
    io,
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{io::AsyncWriteExt, net::TcpStream, time};

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

/// The header by which the client says the word.
pub(super) const WORD: &str = "demo-word";

/// What answers, and whom.
#[derive(Debug)]
struct Service {
    script: &'static [Answer],
    /// How many have been answered.
    answered: AtomicUsize,
    word: String,
    silent: Silent,
}

/// Answers who knows the word by the script, the last answer for ever, until this is dropped. So many files are there for others.
///
/// # Errors
///
/// The system has no thread or no files to give.
pub(super) fn serve(listener: TcpListener, script: &'static [Answer], word: &str, files: u64) -> io::Result<Server> {
    let runtime = crate::runtime::builder()?.build()?;
    let listener = loopback::listener(&runtime, listener)?;
    let (answered, word, silent) = (AtomicUsize::new(0), word.to_owned(), Silent::new(1, files));
    let service = Arc::new(Service { script, answered, word, silent });
    Server::start(runtime, move || {
        tokio::spawn(loopback::accept(listener, move |stream| answer(stream, service.clone())));
    })
}

async fn answer(mut stream: TcpStream, service: Arc<Service>) -> io::Result<()> {
    let knows = loopback::read(&mut stream, |request| loopback::header(request, WORD) == Some(&service.word));
    if !service.silent.hear(knows).await? {
        return stream.write_all(NOT_FOUND).await;
    }
    match service.next() {
        Some(Answer::Silent(time)) => time::sleep(time).await,
        Some(Answer::Healthy(body)) => {
            let length = body.len();
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            stream.write_all(text.as_bytes()).await?;
        }
        Some(Answer::Busy) | None => {
            let text = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nbusy\n";
            stream.write_all(text.as_bytes()).await?;
        }
    }
    Ok(())
}

impl Service {
    fn next(&self) -> Option<Answer> {
        let nth = self.answered.fetch_add(1, Ordering::Relaxed);
        self.script.get(nth).or(self.script.last()).copied()
    }
}
