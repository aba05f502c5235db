//! What is left to be done about a request's body when there is an answer to it. A redirect that leads away from one answers it, too: its page is
//! read to its end beside what is asked next, since hanging up on a page destroys what is on its way to the server.

use super::{
    beside::Beside,
    exchange::Sending,
    linger::{ENOUGH, LONGEST},
};
use reqwest::Response;
use std::pin::Pin;
use tokio::time;

/// A request with a body, all of which may not be sent yet, or not be taken.
pub(super) struct Left {
    sending: Sending,
    page: Option<Page>,
}

/// Whether the page of a redirect has come to its end; the connection is there as long as this is.
type Page = (Pin<Box<dyn Future<Output = bool>>>, Beside);

/// The most bytes of it.
const MOST: usize = 1 << 20;

impl Left {
    /// One whose answer is received.
    pub(super) fn of(sending: Sending) -> Left {
        Left { sending, page: None }
    }

    /// One that a redirect leads away from, if all of it is on its way to who may not have read it; and whether what has not left is sent to
    /// nobody any more.
    pub(super) fn behind(redirect: Response) -> (Option<Left>, bool) {
        let extensions = redirect.extensions();
        let (Some(sending), Some(beside)) = (extensions.get::<Sending>(), extensions.get::<Beside>()) else {
            return (None, false);
        };
        if !sending.is_on_its_way() {
            return (None, !sending.is_sent(false));
        }
        let (sending, beside) = (sending.clone(), beside.clone());
        let read = Box::pin(beside.run(is_read(redirect)));
        (Some(Left { sending, page: Some((read, beside)) }), false)
    }

    /// Waits until all of it has left, or cannot leave; `None` if a redirect's page does not end.
    pub(super) async fn leaves(&mut self) -> Option<()> {
        if let Some((read, _)) = &mut self.page
            && !read.await
        {
            return None;
        }
        self.sending.leaves().await;
        Some(())
    }

    /// Waits until the server has had the time to take it.
    pub(super) async fn ends(&mut self) {
        self.sending.ends().await;
    }

    /// Whether all of it is sent, if that is how it `has_ended`.
    pub(super) fn is_sent(&self, has_ended: bool) -> bool {
        (has_ended || self.page.is_none()) && self.sending.is_sent(has_ended)
    }
}

async fn is_read(mut response: Response) -> bool {
    let mut room = MOST;
    let read = async {
        loop {
            match time::timeout(ENOUGH, response.chunk()).await {
                Ok(Ok(Some(piece))) if piece.len() <= room => room -= piece.len(),
                ended => return matches!(ended, Ok(Ok(None))),
            }
        }
    };
    time::timeout(LONGEST, read).await.unwrap_or_default()
}
