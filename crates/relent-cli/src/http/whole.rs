//! Whether a body of HTTP/2 came to its end (RFC 9113, 8.1): the client takes one for complete that its server, or a balancer
//! that restarts, cuts off with RST_STREAM or GOAWAY and the code NO_ERROR. HTTP/1 says itself where a body ends, and is checked
//! by the client.

use bytes::Bytes;
use http::Version;
use http_body::{Body, Frame, SizeHint};
use reqwest::Response;
use std::{
    error::Error,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The response with a body that is an error if it ends without its last frame, or short of the length it told.
pub(super) fn checked(response: Response) -> Response {
    if response.version() != Version::HTTP_2 {
        return response;
    }
    Response::from(http::Response::<reqwest::Body>::from(response).map(|body| reqwest::Body::wrap(Whole(body))))
}

struct Whole(reqwest::Body);

impl Body for Whole {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match ready!(Pin::new(&mut self.0).poll_frame(context)) {
            None if self.0.is_end_stream() || self.0.size_hint().exact() == Some(0) => Poll::Ready(None),
            None => Poll::Ready(Some(Err(Box::new(io::Error::from(io::ErrorKind::UnexpectedEof))))),
            Some(frame) => Poll::Ready(Some(frame.map_err(Into::into))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
