//! The end of a connection on which all was said (RFC 9112, 9.6). What the other side has not taken yet is in the system's buffer, and the
//! system throws it away when something comes for a connection that is closed: so the end is said behind it, and the connection is read until
//! the other side closes it, too.

use hyper::rt::{Read, ReadBuf, Write};
use std::{future::poll_fn, io::ErrorKind, pin::Pin, time::Duration};
use tokio::time;

/// Whatever leads to a server.
pub(super) trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

/// The longest without a byte. Who keeps a connection open after its end was said is not waited for longer.
pub(super) const ENOUGH: Duration = Duration::from_secs(2);

/// The longest in all, since nobody wants what comes.
pub(super) const LONGEST: Duration = Duration::from_secs(30);

/// The most bytes in all.
const MOST: usize = 64 << 20;

/// Waits until the other side has closed it, or says nothing for too long, or something for much too long: whether they have closed it. That
/// nothing more comes is said at once, or only then where they have been told before and could take it for the end of what they have not looked
/// at. What they say is `heard`.
pub(super) async fn until_closed(stream: Box<dyn Stream>, knows: bool, heard: impl FnMut(&[u8])) -> bool {
    // What it leaves undone is done by dropping it.
    time::timeout(LONGEST, closed(stream, knows, heard)).await.unwrap_or_default()
}

async fn closed(mut stream: Box<dyn Stream>, knows: bool, mut heard: impl FnMut(&[u8])) -> bool {
    if knows && let Some(is_clean) = end(&mut *stream, &mut heard).await {
        return is_clean;
    }
    let said = poll_fn(|context| Pin::new(&mut *stream).poll_shutdown(context)).await;
    // What they have said before is heard of a connection that is broken, too, whose end says nothing.
    let is_clean = end(&mut *stream, &mut heard).await.unwrap_or_default();
    said.is_ok() && is_clean
}

/// Reads until the other side closes it, says nothing for too long, or too much: whether they have closed it, or broken it. Who hangs up on what they
/// have not read breaks it.
async fn end(stream: &mut dyn Stream, heard: &mut impl FnMut(&[u8])) -> Option<bool> {
    let (mut space, mut room) = (vec![0; 16 << 10], MOST);
    loop {
        let mut piece = ReadBuf::new(&mut space);
        let read = poll_fn(|context| Pin::new(&mut *stream).poll_read(context, piece.unfilled()));
        match time::timeout(ENOUGH, read).await {
            Ok(Ok(())) if piece.filled().len() > room => return None,
            Ok(Ok(())) if !piece.filled().is_empty() => {
                room -= piece.filled().len();
                heard(piece.filled());
            }
            // Nor is a word of TLS needed for it.
            Ok(read) => return Some(read.map_or_else(|error| error.kind() == ErrorKind::UnexpectedEof, |()| true)),
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::idle::tests::paused;
    use hyper::rt::ReadBufCursor;
    use hyper_util::rt::TokioIo;
    use std::{
        io,
        task::{Context, Poll},
    };
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[test]
    fn who_goes_on_for_ever_is_left() {
        for knows in [false, true] {
            paused(async {
                let (ours, mut theirs) = duplex(64);
                let began = time::Instant::now();
                let says = async {
                    while theirs.write_all(&[7]).await.is_ok() {
                        time::sleep(Duration::from_secs(1)).await;
                    }
                };
                let lingers = until_closed(Box::new(TokioIo::new(ours)), knows, |_| ());
                let (is_closed, ()) = tokio::join!(lingers, says);
                assert!(!is_closed, "{knows}");
                assert_eq!(began.elapsed(), LONGEST, "{knows}");
            });
        }
    }

    #[test]
    fn who_says_much_is_left_sooner() {
        for knows in [false, true] {
            paused(async {
                let (ours, mut theirs) = duplex(1 << 20);
                let began = time::Instant::now();
                let mut heard = 0;
                let says = async {
                    let piece = vec![7; 1 << 20];
                    while theirs.write_all(&piece).await.is_ok() {}
                };
                let lingers = until_closed(Box::new(TokioIo::new(ours)), knows, |bytes| heard += bytes.len());
                let (is_closed, ()) = tokio::join!(lingers, says);
                assert!(!is_closed && began.elapsed() < ENOUGH, "{knows}: {:?}", began.elapsed());
                assert!((MOST - (1 << 20)..=2 * MOST).contains(&heard), "{knows}: {heard}");
            });
        }
    }

    #[test]
    fn who_goes_on_is_heard_until_they_close_or_are_silent() {
        for (closes, knows) in [(true, false), (false, false), (true, true), (false, true)] {
            paused(async {
                let (ours, mut theirs) = duplex(64);
                let began = time::Instant::now();
                let mut heard = 0;
                let lingers = until_closed(Box::new(TokioIo::new(ours)), knows, |bytes| heard += bytes.len());
                let reads = async {
                    if !knows {
                        assert_eq!(theirs.read(&mut [0]).await.unwrap(), 0, "the end is said");
                    }
                    for _ in 0..10 {
                        time::sleep(ENOUGH - Duration::from_millis(1)).await;
                        theirs.write_all(&[7; 1000]).await.unwrap();
                    }
                    if knows {
                        let said = time::timeout(Duration::ZERO, theirs.read(&mut [0])).await;
                        assert!(said.is_err(), "the end is not said");
                    }
                    (!closes).then_some(theirs)
                };
                let (is_closed, _kept) = tokio::join!(lingers, reads);
                assert_eq!((is_closed, heard), (closes, 10_000), "{knows}");
                let silent = if closes { 0 } else { 1 + u32::from(knows) };
                let expected = (ENOUGH - Duration::from_millis(1)) * 10 + ENOUGH * silent;
                assert_eq!(began.elapsed(), expected, "{closes} {knows}");
            });
        }
    }

    /// Who says something, and breaks the connection then.
    struct Broken(&'static [u8]);

    impl Read for Broken {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut into: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            if self.0.is_empty() {
                return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
            }
            into.put_slice(std::mem::take(&mut self.0));
            Poll::Ready(Ok(()))
        }
    }

    impl Write for Broken {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(ErrorKind::NotConnected.into()))
        }
    }

    #[test]
    fn who_breaks_it_is_heard_and_has_not_closed_it() {
        for knows in [false, true] {
            paused(async {
                let mut heard = Vec::new();
                let is_closed = until_closed(Box::new(Broken(b"all")), knows, |bytes| heard.extend_from_slice(bytes));
                assert!(!is_closed.await, "{knows}");
                assert_eq!(heard, b"all", "{knows}");
            });
        }
    }
}
