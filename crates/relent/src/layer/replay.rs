//! Bodies that are recorded as they are sent, so that they can be sent again.

use crate::sync::lock;
use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::{
    error::Error,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

/// A body that is recorded as it is sent. A clone of it begins from the start: with what was recorded, and then with what the
/// first had not sent yet, which it takes over.
///
/// A body that was taken over ends with an error, so that no server takes a half of it for the whole. So does one that is
/// begun again although it was too large to be recorded, or had failed: such a request is not sent again.
///
/// Made by [`RetryLayer::replay`](super::RetryLayer::replay).
///
/// ```
/// use http_body_util::{BodyExt, Full};
/// use relent::{Policy, layer::ReplayBody};
/// use std::io;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// // It reads the body, and fails at the first attempt.
/// let client = service_fn(async |request: http::Request<ReplayBody<Full<bytes::Bytes>>>| {
///     let is_first = !request.headers().contains_key("relent-attempt");
///     assert_eq!(request.into_body().collect().await.unwrap().to_bytes(), "all of it");
///     if is_first { Err(io::Error::from(io::ErrorKind::ConnectionReset)) } else { Ok(http::Response::new(String::new())) }
/// });
/// let layer = Policy::default().layer().replay(|body| body);
/// let request = http::Request::put("/notes/7").body(Full::from("all of it")).unwrap();
/// assert_eq!(layer.layer(client).oneshot(request).await.unwrap().status(), 200);
/// # });
/// ```
pub struct ReplayBody<B> {
    tape: Arc<Mutex<Tape<B>>>,
    /// Frames of the recording that this one has yielded.
    played: usize,
    /// Which of the clones it is, by the order in which they began. 0 is not begun.
    reader: u32,
}

struct Tape<B> {
    frames: Vec<Recorded>,
    /// Bytes in them, or more if there is more than may be kept.
    size: u64,
    limit: u64,
    /// What comes after the recording; `None` when it has ended, or failed.
    rest: Option<B>,
    has_failed: bool,
    /// Who reads it, and how many have begun.
    reader: u32,
    /// Whom to wake when another goes on with it.
    waker: Option<Waker>,
}

/// A frame, the end, or an error.
type Played<E> = Option<Result<Frame<Bytes>, ReplayError<E>>>;

enum Recorded {
    Data(Bytes),
    /// What came in small pieces, so that they take no more room than their bytes.
    Small(Vec<u8>),
    Trailers(HeaderMap),
}

/// A piece of fewer bytes is kept with those beside it, up to so many.
const SMALL: usize = 4096;

/// Why a body that is sent again ends.
///
/// ```
/// use relent::layer::ReplayError;
///
/// let error: ReplayError<std::io::Error> = ReplayError::TooLarge;
/// assert_eq!(error.to_string(), "the body is too large to repeat");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError<E> {
    /// The body itself failed.
    Body(E),
    /// Another attempt goes on with it.
    TakenOver,
    /// It was too large to be recorded.
    TooLarge,
    /// It failed in an attempt before, and there is no more of it.
    Failed,
}

impl<E: fmt::Display> fmt::Display for ReplayError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Body(error) => error.fmt(f),
            ReplayError::TakenOver => f.write_str("the body is sent by another attempt"),
            ReplayError::TooLarge => f.write_str("the body is too large to repeat"),
            ReplayError::Failed => f.write_str("the body has failed before"),
        }
    }
}

impl<E: Error + 'static> Error for ReplayError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReplayError::Body(error) => Some(error),
            ReplayError::TakenOver | ReplayError::TooLarge | ReplayError::Failed => None,
        }
    }
}

impl<B: Body> ReplayBody<B> {
    /// Records so many bytes at most.
    pub(crate) fn new(body: B, limit: u64) -> ReplayBody<B> {
        let tape =
            Tape { frames: Vec::new(), size: 0, limit, rest: Some(body), has_failed: false, reader: 0, waker: None };
        ReplayBody { tape: Arc::new(Mutex::new(tape)), played: 0, reader: 0 }
    }
}

impl<B> Clone for ReplayBody<B> {
    /// The body from its start.
    fn clone(&self) -> ReplayBody<B> {
        ReplayBody { tape: self.tape.clone(), played: 0, reader: 0 }
    }
}

impl<B: Body + Unpin> Tape<B> {
    fn is_too_large(&self) -> bool {
        self.size > self.limit
    }

    fn record(&mut self, frame: Frame<B::Data>) -> Frame<Bytes> {
        let recorded = match frame.into_data() {
            Ok(mut data) => Recorded::Data(data.copy_to_bytes(data.remaining())),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => Recorded::Trailers(trailers),
                // A kind of frame that is not there yet.
                Err(_) => Recorded::Data(Bytes::new()),
            },
        };
        self.size = self.size.saturating_add(recorded.len());
        let frame = recorded.frame();
        if self.is_too_large() {
            self.frames = Vec::new();
            return frame;
        }
        match (self.frames.last_mut(), recorded) {
            (Some(Recorded::Small(before)), Recorded::Data(data)) if before.len() + data.len() < SMALL => {
                before.extend_from_slice(&data);
            }
            (_, Recorded::Data(data)) if data.len() < SMALL => self.frames.push(Recorded::Small(data.to_vec())),
            (_, recorded) => self.frames.push(recorded),
        }
        frame
    }
}

impl Recorded {
    fn frame(&self) -> Frame<Bytes> {
        match self {
            Recorded::Data(data) => Frame::data(data.clone()),
            Recorded::Small(data) => Frame::data(Bytes::copy_from_slice(data)),
            Recorded::Trailers(trailers) => Frame::trailers(trailers.clone()),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Recorded::Data(data) => data.len() as u64,
            Recorded::Small(data) => data.len() as u64,
            Recorded::Trailers(_) => 0,
        }
    }
}

impl<B: Body + Unpin> Body for ReplayBody<B> {
    type Data = Bytes;
    type Error = ReplayError<B::Error>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Played<B::Error>> {
        let this = self.get_mut();
        let mut waker = Some(cx.waker().clone());
        let polled = this.poll(cx, &mut waker);
        // Whoever was waiting for what another attempt has taken over; not under the lock.
        if let Some(waker) = waker
            && !waker.will_wake(cx.waker())
        {
            waker.wake();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let tape = lock(&self.tape);
        let has_ended = tape.rest.as_ref().is_none_or(Body::is_end_stream);
        has_ended
            && !tape.has_failed
            && self.played >= tape.frames.len()
            && (self.reader == tape.reader || tape.reader == 0)
    }

    /// Of one that has not begun, all of it; so one that is too large says more than may be kept, and one that has failed before more
    /// than there can be.
    fn size_hint(&self) -> SizeHint {
        let tape = lock(&self.tape);
        if tape.has_failed && self.reader == 0 {
            let mut hint = SizeHint::new();
            hint.set_lower(u64::MAX);
            return hint;
        }
        let rest = tape.rest.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let played = tape.frames.iter().take(self.played).map(Recorded::len).sum::<u64>();
        let before =
            if self.reader == 0 { tape.size } else { tape.frames.iter().map(Recorded::len).sum::<u64>() - played };
        let mut hint = SizeHint::new();
        hint.set_lower(before.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            hint.set_upper(before.saturating_add(upper));
        }
        hint
    }
}

impl<B: Body + Unpin> ReplayBody<B> {
    /// Leaves in `waker` the one that was waiting before.
    fn poll(&mut self, cx: &mut Context<'_>, waker: &mut Option<Waker>) -> Poll<Played<B::Error>> {
        let mut tape = lock(&self.tape);
        if self.reader == 0 {
            if tape.has_failed {
                return Poll::Ready(Some(Err(ReplayError::Failed)));
            }
            if tape.is_too_large() {
                return Poll::Ready(Some(Err(ReplayError::TooLarge)));
            }
            tape.reader += 1;
            self.reader = tape.reader;
        }
        if self.reader != tape.reader {
            return Poll::Ready(Some(Err(ReplayError::TakenOver)));
        }
        std::mem::swap(&mut tape.waker, waker);
        if let Some(frame) = tape.frames.get(self.played) {
            self.played += 1;
            return Poll::Ready(Some(Ok(frame.frame())));
        }
        let Some(rest) = &mut tape.rest else {
            return Poll::Ready(tape.has_failed.then_some(Err(ReplayError::Failed)));
        };
        match Pin::new(rest).poll_frame(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                tape.rest = None;
                Poll::Ready(None)
            }
            // What is polled after an error may say that it has ended.
            Poll::Ready(Some(Err(error))) => {
                (tape.rest, tape.has_failed) = (None, true);
                Poll::Ready(Some(Err(ReplayError::Body(error))))
            }
            Poll::Ready(Some(Ok(frame))) => {
                let frame = tape.record(frame);
                self.played = tape.frames.len();
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    /// Whether all of it has been read from where it came from.
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.tape).rest.as_ref().is_none_or(Body::is_end_stream)
    }
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tape = lock(&self.tape);
        f.debug_struct("ReplayBody")
            .field("frames", &tape.frames.len())
            .field("size", &tape.size)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        collections::VecDeque,
        convert::Infallible,
        sync::atomic::{AtomicU32, Ordering},
        task::Wake,
    };

    /// Frames, and moments at which there is none yet.
    struct Slow(VecDeque<Option<&'static str>>);

    impl Body for Slow {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                Some(Some(text)) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(text.as_bytes()))))),
                Some(None) => Poll::Pending,
                None => Poll::Ready(None),
            }
        }
    }

    fn replay(frames: &[Option<&'static str>], limit: u64) -> ReplayBody<Slow> {
        ReplayBody::new(Slow(frames.iter().copied().collect()), limit)
    }

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// What can be read now, and how it ends: `.` at the end, `?` for not yet, `!` for an error.
    fn read(body: &mut ReplayBody<Slow>, waker: &Waker) -> String {
        let mut text = String::new();
        loop {
            match Pin::new(&mut *body).poll_frame(&mut Context::from_waker(waker)) {
                Poll::Pending => return text + "?",
                Poll::Ready(None) => return text + ".",
                Poll::Ready(Some(Err(_))) => return text + "!",
                Poll::Ready(Some(Ok(frame))) => {
                    text += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_clone_begins_from_the_start_and_takes_the_rest_over() {
        let waker = Waker::noop();
        let kept = replay(&[Some("a"), Some("b"), None, Some("c")], 100);
        let mut first = kept.clone();
        assert_eq!(read(&mut first, waker), "ab?");
        let mut second = kept.clone();
        assert_eq!(read(&mut second, waker), "abc.");
        assert_eq!(read(&mut first, waker), "!", "never a half that looks whole");
        assert!(!first.is_end_stream());
        assert_eq!(read(&mut kept.clone(), waker), "abc.");
    }

    #[test]
    fn who_waits_is_woken_when_another_takes_over() {
        let woken = Arc::new(Woken::default());
        let kept = replay(&[Some("a"), None, None, Some("b")], 100);
        let mut first = kept.clone();
        assert_eq!(read(&mut first, &woken.clone().into()), "a?");
        assert_eq!(woken.0.load(Ordering::SeqCst), 0);
        assert_eq!(read(&mut kept.clone(), Waker::noop()), "a?");
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn what_is_too_large_goes_through_once_and_is_refused_then() {
        let kept = replay(&[Some("abc"), Some("def"), Some("ghi")], 5);
        assert!(kept.size_hint().lower() <= 5);
        let mut first = kept.clone();
        assert_eq!(read(&mut first, Waker::noop()), "abcdefghi.");
        assert!(kept.size_hint().lower() > 5, "it says so");
        assert_eq!(read(&mut kept.clone(), Waker::noop()), "!");
        let exactly = replay(&[Some("abc"), Some("de")], 5);
        assert_eq!(read(&mut exactly.clone(), Waker::noop()), "abcde.");
        assert_eq!(read(&mut exactly.clone(), Waker::noop()), "abcde.");
    }

    /// A piece takes no more room than its bytes.
    #[test]
    fn small_pieces_are_kept_together() {
        let mut pieces = vec![Some("ab"); 5000];
        pieces.insert(2500, None);
        let kept = replay(&pieces, 100_000);
        let mut first = kept.clone();
        assert_eq!(read(&mut first, Waker::noop()).len(), 5001);
        assert_eq!(first.size_hint().exact(), None, "the rest says nothing of itself");
        assert_eq!(lock(&kept.tape).frames.len(), 2);
        let mut second = kept.clone();
        assert_eq!(read(&mut second, Waker::noop()), "ab".repeat(5000) + ".");
        assert_eq!(second.size_hint().exact(), Some(0));
        assert_eq!(lock(&kept.tape).frames.len(), 3);
        assert_eq!(read(&mut kept.clone(), Waker::noop()), "ab".repeat(5000) + ".");
    }

    /// `None` follows an error.
    #[test]
    fn what_has_failed_is_never_whole_again() {
        struct Fails(u8);
        impl Body for Fails {
            type Data = Bytes;
            type Error = &'static str;

            fn poll_frame(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
                self.0 += 1;
                Poll::Ready(match self.0 {
                    1 => Some(Ok(Frame::data(Bytes::from_static(b"a")))),
                    2 => Some(Err("gone")),
                    _ => None,
                })
            }
        }
        let kept = ReplayBody::new(Fails(0), 100);
        let next =
            |body: &mut ReplayBody<Fails>| match Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(Ok(_))) => "a".to_owned(),
                Poll::Ready(Some(Err(error))) => error.to_string(),
                Poll::Ready(None) => "the end".to_owned(),
                Poll::Pending => "nothing yet".to_owned(),
            };
        let mut first = kept.clone();
        let told = [next(&mut first), next(&mut first), next(&mut first)];
        assert_eq!(told, ["a", "gone", "the body has failed before"]);
        assert!(!first.is_end_stream() && !kept.is_end_stream());
        assert_eq!(next(&mut kept.clone()), "the body has failed before");
        assert_eq!((kept.size_hint().lower(), kept.size_hint().upper()), (u64::MAX, None));
    }

    #[test]
    fn its_size_is_what_is_still_to_come() {
        let full = ReplayBody::new(String::from("abc"), 100);
        let mut first = full.clone();
        assert_eq!((full.size_hint().exact(), first.size_hint().exact()), (Some(3), Some(3)));
        assert!(!first.is_end_stream());
        let frame = Pin::new(&mut first).poll_frame(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(frame, Poll::Ready(Some(Ok(_)))));
        assert_eq!((full.size_hint().exact(), first.size_hint().exact()), (Some(3), Some(0)));
        assert!(first.is_end_stream() && !full.clone().is_end_stream());
    }
}
