//! The end of a connection on which all was said (RFC 9112, 9.6). What the other side has not taken yet is in the system's buffer, and the
//! system throws it away when something comes for a connection that is closed: so the end is said behind it, and the connection is read until
//! the other side closes it, too.

use hyper::rt::{Read, ReadBuf, Write};
use std::{future::poll_fn, pin::Pin, time::Duration};
use tokio::time;

/// Whatever leads to a server.
pub(super) trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

/// The longest without a byte. Who keeps a connection open after its end was said is not waited for longer.
pub(super) const ENOUGH: Duration = Duration::from_secs(2);

/// The longest in all, since nobody wants what comes.
pub(super) const LONGEST: Duration = Duration::from_secs(30);

/// Waits until the other side has closed it, or says nothing for too long, or something for much too long: whether they have closed it. That
/// nothing more comes is said at once, or only then where they have been told before and could take it for the end of what they have not looked
/// at. What they say is `heard`.
pub(super) async fn until_closed(stream: Box<dyn Stream>, knows: bool, heard: impl FnMut(&[u8])) -> bool {
    // What it leaves undone is done by dropping it.
    time::timeout(LONGEST, closed(stream, knows, heard)).await.unwrap_or_default()
}

async fn closed(mut stream: Box<dyn Stream>, knows: bool, mut heard: impl FnMut(&[u8])) -> bool {
    if knows && is_over(&mut *stream, &mut heard).await {
        return true;
    }
    let said = poll_fn(|context| Pin::new(&mut *stream).poll_shutdown(context)).await;
    said.is_err() || is_over(&mut *stream, &mut heard).await
}

/// Reads until the other side closes it, or says nothing for too long: whether they have closed it.
async fn is_over(stream: &mut dyn Stream, heard: &mut impl FnMut(&[u8])) -> bool {
    let mut space = vec![0; 16 << 10];
    loop {
        let mut piece = ReadBuf::new(&mut space);
        let read = poll_fn(|context| Pin::new(&mut *stream).poll_read(context, piece.unfilled()));
        match time::timeout(ENOUGH, read).await {
            Ok(Ok(())) if !piece.filled().is_empty() => heard(piece.filled()),
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::idle::tests::paused;
    use hyper_util::rt::TokioIo;
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
}
