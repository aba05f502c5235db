//! `reqwest::Request`, for layers around a `reqwest::Client`.

use super::{
    Head, Repeat, Said, Terms, TimeLeft,
    faults::{self, Fate, PERMANENT},
    http_request::{self, DRAINED, DRAINED_FOR},
};
use crate::{Policy, SystemTimer, Timer, Verdict, wire::Fault};
use http::StatusCode;
use reqwest::{Body, Request, Response};
use std::{
    any::Any,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// Bodies in memory are shared with the copy; streams are sent once.
impl Repeat<Response> for Request {
    fn again(&self) -> Option<Self> {
        self.try_clone()
    }

    fn is_idempotent(&self) -> bool {
        http_request::is_idempotent(self.method(), self.headers())
    }

    fn size(&self) -> u64 {
        self.body().and_then(Body::as_bytes).map_or(0, |bytes| bytes.len() as u64)
    }

    fn policy(&self, terms: &Terms) -> Option<Policy> {
        terms.policy_for(&Head::new(self.method(), self.url().path(), self.headers()))
    }

    fn time_left(&self) -> Option<TimeLeft> {
        http_request::time_left(None, self.headers())
    }

    fn announce(&mut self, said: &Said) {
        http_request::announce(self.headers_mut(), said);
    }

    fn verdict(answer: &Response, terms: &Terms) -> Option<Verdict> {
        http_request::verdict(answer.status(), answer.headers(), answer.extensions(), terms)
    }

    fn status(answer: &Response) -> Option<StatusCode> {
        Some(answer.status())
    }

    fn fate(error: &dyn Any, terms: &Terms) -> Option<Fate> {
        let Some(error) = error.downcast_ref::<reqwest::Error>() else { return faults::fate(error, terms) };
        let fate = fate(error)?;
        // A POST that was answered with a redirect may have been carried out, though the second request went nowhere.
        Some(Fate { left: fate.left || terms.get().follows_redirects, ..fate })
    }

    fn record(answer: &mut Response, record: &str) {
        http_request::write_record(answer.headers_mut(), record);
    }

    fn give_up(answer: &mut Response) {
        http_request::mark(answer.extensions_mut());
    }

    async fn drain(mut answer: Response) {
        let mut left = DRAINED;
        let mut rest = pin!(async {
            while let Ok(Some(chunk)) = answer.chunk().await {
                match left.checked_sub(chunk.len().max(1)) {
                    Some(less) => left = less,
                    None => return,
                }
            }
        });
        let mut end = pin!(SystemTimer.sleep(DRAINED_FOR));
        poll_fn(|cx| match rest.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => end.as_mut().poll(cx),
        })
        .await;
    }
}

fn fate(error: &reqwest::Error) -> Option<Fate> {
    if error.is_builder() || error.is_redirect() {
        return Some(PERMANENT);
    }
    if error.is_timeout() && !error.is_connect() {
        return Some(Fault::Timeout.into());
    }
    faults::of_chain(error)
}
