//! Two futures, of which the first to be ready counts.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

pub(crate) enum Either<A, B> {
    First(A),
    Second(B),
}

/// Polls both; `first` first, so that it counts where both are ready.
pub(crate) async fn race<A: Future, B: Future>(
    mut first: Pin<&mut A>,
    mut second: Pin<&mut B>,
) -> Either<A::Output, B::Output> {
    poll_fn(|cx| {
        if let Poll::Ready(first) = first.as_mut().poll(cx) {
            return Poll::Ready(Either::First(first));
        }
        second.as_mut().poll(cx).map(Either::Second)
    })
    .await
}

/// Lets others have their turn.
pub(crate) async fn yield_once() {
    let mut is_second = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_second, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
