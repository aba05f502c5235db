//! What is left to be done about a request's body when there is an answer to it. A redirect that leads away from one answers it, too: its page is
//! read to its end beside what is asked next, since hanging up on a page destroys what is on its way to the server.

use super::{beside::Beside, exchange::Sending, linger::ENOUGH};
use reqwest::Response;
use std::pin::Pin;
use tokio::time;

/// A request with a body, all of which may not be sent yet, or not be taken.
pub(super) struct Left {
    sending: Sending,
    /// The page of a redirect, until it is read.
    page: Option<Page>,
    /// The connection on which it was read.
    _beside: Option<Beside>,
}

/// Why some of a request's body may be lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum Doubt {
    /// The server has not taken all of it.
    Untaken,
    /// The page of a redirect that leads away from it was not read to its end.
    Page,
}

/// The connection, if it has come to its end; one on which more comes is closed.
type Page = Pin<Box<dyn Future<Output = Option<Beside>>>>;

/// The most bytes of it.
const MOST: usize = 1 << 20;

impl Left {
    /// One whose answer is received.
    pub(super) fn of(sending: Sending) -> Left {
        Left { sending, page: None, _beside: None }
    }

    /// One that a redirect leads away from, if all of it is on its way to who may not have read it; or that what has not left is sent to nobody
    /// any more.
    pub(super) fn behind(redirect: Response) -> (Option<Left>, Option<Doubt>) {
        let extensions = redirect.extensions();
        let (Some(sending), Some(beside)) = (extensions.get::<Sending>(), extensions.get::<Beside>()) else {
            return (None, None);
        };
        if !sending.is_on_its_way() {
            return (None, (!sending.is_sent(false)).then_some(Doubt::Untaken));
        }
        let (sending, beside) = (sending.clone(), beside.clone());
        let kept = beside.clone();
        let read: Page = Box::pin(beside.run(async move { is_read(redirect).await.then_some(kept) }));
        (Some(Left { sending, page: Some(read), _beside: None }), None)
    }

    /// Waits until all of it has left, or cannot leave; `None` if a redirect's page does not end.
    pub(super) async fn leaves(&mut self) -> Option<()> {
        if let Some(page) = &mut self.page {
            self._beside = Some(page.await?);
            self.page = None;
        }
        self.sending.leaves().await;
        Some(())
    }

    /// Waits until the server has had the time to take it.
    pub(super) async fn ends(&mut self) {
        self.sending.ends().await;
    }

    /// Whether some of it may be lost, if that is how it `has_ended`.
    pub(super) fn doubt(&self, has_ended: bool) -> Option<Doubt> {
        match self.page {
            Some(_) => Some(Doubt::Page),
            None => (!self.sending.is_sent(has_ended)).then_some(Doubt::Untaken),
        }
    }
}

/// Whether the page ends in time, whatever else comes meanwhile.
async fn is_read(mut response: Response) -> bool {
    let mut room = MOST;
    let read = async {
        loop {
            match response.chunk().await {
                Ok(Some(piece)) if piece.len() <= room => room -= piece.len(),
                ended => return matches!(ended, Ok(None)),
            }
        }
    };
    time::timeout(ENOUGH, read).await.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::idle::tests::paused;
    use bytes::Bytes;
    use http_body::{Body, Frame};
    use std::{
        convert::Infallible,
        task::{Context, Poll, ready},
        time::Duration,
    };

    /// A byte each second, so many times.
    struct Slow(Pin<Box<time::Sleep>>, u32);

    impl Body for Slow {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.1 == 0 {
                return Poll::Ready(None);
            }
            ready!(self.0.as_mut().poll(context));
            self.0.as_mut().reset(time::Instant::now() + Duration::from_secs(1));
            self.1 -= 1;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[test]
    fn a_page_has_its_time_in_all() {
        for (count, is_whole, time) in [(1, true, Duration::from_secs(1)), (100, false, ENOUGH)] {
            paused(async {
                let began = time::Instant::now();
                let page = Slow(Box::pin(time::sleep(Duration::from_secs(1))), count);
                let response = Response::from(http::Response::new(reqwest::Body::wrap(page)));
                assert_eq!((is_read(response).await, began.elapsed()), (is_whole, time));
            });
        }
    }
}
