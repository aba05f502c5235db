//! Bodies on both sides of the layer: as they came, or read before and then given again.

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

pin_project_lite::pin_project! {
    /// The body of a request or an answer that goes through an [`IdempotencyService`](super::IdempotencyService): as it came,
    /// or what was read of it, and the rest.
    pub struct IdempotencyBody<B> where B: Body {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project_lite::pin_project! {
    #[project = Projected]
    enum Kind<B> where B: Body {
        AsItIs { #[pin] body: B },
        Read { frames: VecDeque<Frame<Bytes>>, error: Option<B::Error>, rest: Option<Pin<Box<B>>> },
    }
}

impl<B: Body> IdempotencyBody<B> {
    pub(super) fn as_it_is(body: B) -> Self {
        IdempotencyBody { kind: Kind::AsItIs { body } }
    }

    pub(super) fn whole(bytes: Bytes) -> Self {
        let frames = if bytes.is_empty() { VecDeque::new() } else { [Frame::data(bytes)].into() };
        IdempotencyBody { kind: Kind::Read { frames, error: None, rest: None } }
    }
}

/// A piece of fewer bytes is kept with those beside it.
const SMALL: usize = 4096;

/// A body that was read, up to a limit.
pub(super) struct Read<B: Body> {
    frames: VecDeque<Frame<Bytes>>,
    error: Option<B::Error>,
    rest: Option<Pin<Box<B>>>,
    has_trailers: bool,
}

impl<B: Body<Data = Bytes>> Read<B> {
    /// Reads until the end, or until it is more than `most`. What comes in small pieces takes no more room than their bytes.
    pub(super) async fn all(body: B, most: usize) -> Read<B> {
        let mut body = Box::pin(body);
        let mut read = Read { frames: VecDeque::new(), error: None, rest: None, has_trailers: false };
        let (mut bytes, mut small) = (0_usize, BytesMut::new());
        while bytes <= most {
            let frame = match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                None => {
                    read.put(&mut small);
                    return read;
                }
                Some(Err(error)) => {
                    read.put(&mut small);
                    read.error = Some(error);
                    return read;
                }
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(data) if data.len() < SMALL => {
                    bytes = bytes.saturating_add(data.len());
                    small.extend_from_slice(&data);
                }
                Ok(data) => {
                    bytes = bytes.saturating_add(data.len());
                    read.put(&mut small);
                    read.frames.push_back(Frame::data(data));
                }
                Err(frame) => {
                    read.has_trailers = true;
                    read.put(&mut small);
                    read.frames.push_back(frame);
                }
            }
        }
        read.put(&mut small);
        read.rest = Some(body);
        read
    }

    /// What was gathered so far becomes a frame.
    fn put(&mut self, small: &mut BytesMut) {
        if !small.is_empty() {
            self.frames.push_back(Frame::data(small.split().freeze()));
        }
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.rest.is_some()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Everything, if that is all there is and bytes are all it is.
    pub(super) fn bytes(&self) -> Option<Bytes> {
        (!self.is_too_large() && !self.has_failed() && !self.has_trailers).then(|| self.data())
    }

    /// The bytes that were read.
    pub(super) fn data(&self) -> Bytes {
        let mut data = self.frames.iter().filter_map(Frame::data_ref);
        match (data.next(), data.next()) {
            (None, _) => Bytes::new(),
            (Some(one), None) => one.clone(),
            _ => self.frames.iter().filter_map(Frame::data_ref).flatten().copied().collect(),
        }
    }

    /// The trailers that were read, names and values in turn.
    pub(super) fn trailers(&self) -> impl Iterator<Item = &[u8]> {
        let fields = self.frames.iter().filter_map(Frame::trailers_ref).flatten();
        fields.flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()])
    }

    /// The same body, from its beginning.
    pub(super) fn again(self) -> IdempotencyBody<B> {
        let Read { frames, error, rest, .. } = self;
        IdempotencyBody { kind: Kind::Read { frames, error, rest } }
    }
}

impl<B: Body<Data = Bytes>> Body for IdempotencyBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            Projected::AsItIs { body } => body.poll_frame(cx),
            Projected::Read { frames, error, rest } => match (frames.pop_front(), error.take(), rest) {
                (Some(frame), failed, _) => {
                    *error = failed;
                    Poll::Ready(Some(Ok(frame)))
                }
                (None, Some(failed), _) => Poll::Ready(Some(Err(failed))),
                (None, None, Some(rest)) => rest.as_mut().poll_frame(cx),
                (None, None, None) => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::AsItIs { body } => body.is_end_stream(),
            Kind::Read { frames, error, rest } => {
                frames.is_empty() && error.is_none() && rest.as_ref().is_none_or(|rest| rest.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::AsItIs { body } => body.size_hint(),
            Kind::Read { frames, error: None, rest: None } => {
                SizeHint::with_exact(frames.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum())
            }
            Kind::Read { .. } => SizeHint::default(),
        }
    }
}

impl<B: Body> fmt::Debug for IdempotencyBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_read = matches!(self.kind, Kind::Read { .. });
        f.debug_struct("IdempotencyBody").field("is_read", &is_read).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    struct Pieces(VecDeque<Frame<Bytes>>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(Ok))
        }
    }

    /// A byte in a frame of its own would take a hundred times its room.
    #[tokio::test]
    async fn small_pieces_are_kept_together_and_large_ones_as_they_came() {
        let piece = |bytes: &'static [u8]| Frame::data(Bytes::from_static(bytes));
        let mut pieces: VecDeque<_> = (0..9999).map(|_| piece(b"a")).collect();
        pieces.extend([piece(&[b'b'; SMALL]), piece(b""), piece(b"c"), Frame::trailers(http::HeaderMap::new())]);
        let copy = |frame: &Frame<Bytes>| match frame.data_ref() {
            Some(data) => Frame::data(data.clone()),
            None => Frame::trailers(http::HeaderMap::new()),
        };
        let read = Read::all(Pieces(pieces.iter().map(copy).collect()), 100_000).await;
        assert_eq!(read.frames.len(), 4);
        let all = ["a".repeat(9999), "b".repeat(SMALL), "c".to_owned()].concat();
        assert!(read.has_trailers && !read.is_too_large() && read.data() == all.as_bytes());
        // What is too large goes on where reading stopped.
        let mut again = Box::pin(Read::all(Pieces(pieces), 5000).await.again());
        let mut whole = Vec::new();
        while let Some(Ok(frame)) = poll_fn(|cx| again.as_mut().poll_frame(cx)).await {
            whole.extend_from_slice(frame.data_ref().map_or(&[], Bytes::as_ref));
        }
        assert_eq!(whole, all.as_bytes());
    }
}
