//! Bodies on both sides of the layer: as they came, or read before and then given again.

use bytes::Bytes;
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

/// A body that was read, up to a limit.
pub(super) struct Read<B: Body> {
    frames: VecDeque<Frame<Bytes>>,
    error: Option<B::Error>,
    rest: Option<Pin<Box<B>>>,
    has_trailers: bool,
}

impl<B: Body<Data = Bytes>> Read<B> {
    /// Reads until the end, or until it is more than `most`.
    pub(super) async fn all(body: B, most: usize) -> Read<B> {
        let mut body = Box::pin(body);
        let (mut read, mut bytes) =
            (Read { frames: VecDeque::new(), error: None, rest: None, has_trailers: false }, 0_usize);
        while bytes <= most {
            match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                None => return read,
                Some(Err(error)) => {
                    read.error = Some(error);
                    return read;
                }
                Some(Ok(frame)) => {
                    match frame.data_ref() {
                        Some(data) => bytes = bytes.saturating_add(data.len()),
                        None => read.has_trailers = true,
                    }
                    read.frames.push_back(frame);
                }
            }
        }
        read.rest = Some(body);
        read
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
