//! What stands between a program and its connection: messages that came, and messages that are to go.
//!
//! Nobody is woken under the lock.

use super::{Message, SocketFault};
use crate::{
    Error,
    sync::{Mutex, lock},
};
use std::{
    collections::VecDeque,
    fmt,
    task::{Context, Poll, Waker},
};

/// What happens to messages that are sent: how many are kept, and what of them while there is no connection.
///
/// ```
/// use relent::ws::{self, Message, NotSent, Outbox};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let open = |outbox| ws::RECONNECT.websocket("ws://feed.example/prices").unwrap().outbox(outbox).open();
/// // There is no connection yet.
/// let prices = open(Outbox::Refuse(10));
/// assert_eq!(prices.try_send(Message::text("5.17")), Err(NotSent::Away));
/// let orders = open(Outbox::Repeat(10));
/// assert_eq!(orders.try_send(Message::text("order 7")), Ok(()));
/// assert_eq!(orders.waiting(), 1);
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outbox {
    /// Up to so many wait to be written, and none while there is no connection: sending fails with
    /// [`NotSent::Away`]. For what is worth nothing later.
    Refuse(usize),
    /// Up to so many wait to be written, while there is no connection too. What was written when a connection broke may
    /// be lost: at most once.
    Queue(usize),
    /// Up to so many are kept until the far side has surely got them, which the answer to a ping sent after them says,
    /// and are sent again on the next connection: at least once. The far side must know a repetition when it sees one.
    Repeat(usize),
}

impl Outbox {
    const fn most(self) -> usize {
        match self {
            Outbox::Refuse(most) | Outbox::Queue(most) | Outbox::Repeat(most) => {
                if most == 0 {
                    1
                } else {
                    most
                }
            }
        }
    }
}

/// Up to 256, as [`Queue`](Outbox::Queue).
impl Default for Outbox {
    fn default() -> Outbox {
        Outbox::Queue(256)
    }
}

/// Why a message was not sent. It is the caller's still.
///
/// ```
/// use relent::ws::{self, Message, NotSent, Outbox};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let feed = ws::RECONNECT.websocket("ws://feed.example/trades").unwrap().outbox(Outbox::Queue(1)).open();
/// assert_eq!(feed.try_send(Message::text("one")), Ok(()));
/// let not = feed.try_send(Message::text("two")).unwrap_err();
/// assert_eq!((not, not.to_string().as_str()), (NotSent::Full, "the outbox is full"));
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotSent {
    /// There is no connection now, and the outbox is one that [refuses](Outbox::Refuse).
    Away,
    /// The outbox is full.
    Full,
    /// There will be no connection any more: it was closed, or given up.
    Ended,
    /// It would wait for ever: 256 messages stand unread, so nothing more is heard of the server, neither that messages
    /// have arrived nor that it reads. To be asked again when some have been read.
    Unread,
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotSent::Away => "not connected",
            NotSent::Full => "the outbox is full",
            NotSent::Ended => "the connection has ended",
            NotSent::Unread => "nothing moves before messages that stand unread are read",
        })
    }
}

impl std::error::Error for NotSent {}

/// How many messages may wait to be read. Then nothing is read from the connection, so that the server waits; but where
/// the program closes, others are let go.
pub(super) const INBOX: usize = 256;

pub(super) struct Line {
    outbox: Outbox,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    inbox: VecDeque<Message>,
    /// To be written.
    queue: VecDeque<Message>,
    /// Written on this connection, and not confirmed.
    written: VecDeque<Message>,
    /// Messages confirmed since the connection was made.
    confirmed: u64,
    is_connected: bool,
    is_closing: bool,
    ended: Option<Option<Error<SocketFault>>>,
    wants_flush: bool,
    /// Counts whatever brings nearer an end of waiting.
    moved: u64,
    /// Somebody waits in vain, and is to be told.
    is_vain: bool,
    /// A message was let go, and so are all after it.
    lets_go: bool,
    link: Option<Waker>,
    reader: Option<Waker>,
    writers: Vec<Waker>,
}

/// Whom to wake when the lock is open again.
#[derive(Default)]
struct Wake(Vec<Waker>);

impl Drop for Wake {
    fn drop(&mut self) {
        for waker in self.0.drain(..) {
            waker.wake();
        }
    }
}

impl State {
    fn is_full(&self, most: usize) -> bool {
        self.queue.len().saturating_add(self.written.len()) >= most
    }

    fn moves(&mut self) {
        (self.moved, self.is_vain) = (self.moved.wrapping_add(1), false);
    }

    fn wait(wakers: &mut Vec<Waker>, waker: &Waker) {
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }
}

impl Line {
    pub(super) fn new(outbox: Outbox) -> Line {
        Line { outbox, state: Mutex::new(State::default()) }
    }

    fn with<R>(&self, change: impl FnOnce(&mut State, &mut Wake) -> R) -> R {
        let mut wake = Wake::default();
        let result = change(&mut lock(&self.state), &mut wake);
        drop(wake);
        result
    }

    // The program's end.

    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, Error<SocketFault>>>> {
        self.with(|state, wake| {
            if let Some(message) = state.inbox.pop_front() {
                // There is room now. Who closes does not wait for that.
                if !state.is_closing {
                    state.moves();
                }
                wake.0.extend(state.link.take());
                return Poll::Ready(Some(Ok(message)));
            }
            match &mut state.ended {
                Some(error) => Poll::Ready(error.take().map(Err)),
                None => {
                    state.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    fn may_send(&self, state: &State) -> Result<(), NotSent> {
        match self.outbox {
            _ if state.ended.is_some() || state.is_closing => Err(NotSent::Ended),
            Outbox::Refuse(_) if !state.is_connected => Err(NotSent::Away),
            _ => Ok(()),
        }
    }

    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), NotSent>> {
        self.with(|state, wake| {
            if let Err(not) = self.may_send(state) {
                return Poll::Ready(Err(not));
            }
            if !state.is_full(self.outbox.most()) {
                return Poll::Ready(Ok(()));
            }
            Self::wait(state, wake, cx)
        })
    }

    /// Takes a message, if there is room.
    pub(super) fn send(&self, message: Message) -> Result<(), NotSent> {
        self.with(|state, wake| {
            self.may_send(state)?;
            if state.is_full(self.outbox.most()) {
                return Err(NotSent::Full);
            }
            state.queue.push_back(message);
            wake.0.extend(state.link.take());
            Ok(())
        })
    }

    /// Ready when everything is written, and confirmed where that is asked for.
    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<Result<(), NotSent>> {
        self.with(|state, wake| {
            if state.queue.is_empty() && state.written.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if state.ended.is_some() {
                return Poll::Ready(Err(NotSent::Ended));
            }
            state.wants_flush = true;
            Self::wait(state, wake, cx)
        })
    }

    /// Waits for the outbox, unless that is in vain.
    fn wait(state: &mut State, wake: &mut Wake, cx: &mut Context<'_>) -> Poll<Result<(), NotSent>> {
        if std::mem::take(&mut state.is_vain) {
            return Poll::Ready(Err(NotSent::Unread));
        }
        State::wait(&mut state.writers, cx.waker());
        wake.0.extend(state.link.take());
        Poll::Pending
    }

    /// Ready when the connection has ended.
    pub(super) fn poll_close(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.with(|state, wake| {
            if state.ended.is_some() {
                return Poll::Ready(());
            }
            if !state.is_closing {
                state.is_closing = true;
                state.moves();
            }
            State::wait(&mut state.writers, cx.waker());
            wake.0.extend(state.link.take());
            Poll::Pending
        })
    }

    pub(super) fn is_connected(&self) -> bool {
        lock(&self.state).is_connected
    }

    pub(super) fn waiting(&self) -> usize {
        let state = lock(&self.state);
        state.queue.len().saturating_add(state.written.len())
    }

    // The connection's end.

    /// There is a connection: what was written on the last one and is not confirmed, is to be written again.
    pub(super) fn connected(&self) {
        self.with(|state, _| {
            while let Some(message) = state.written.pop_back() {
                state.queue.push_front(message);
            }
            (state.is_connected, state.confirmed) = (true, 0);
        });
    }

    pub(super) fn disconnected(&self) {
        self.with(|state, wake| {
            state.is_connected = false;
            // Who waits for room is refused now, where that is asked for.
            if matches!(self.outbox, Outbox::Refuse(_)) {
                state.queue.clear();
                wake.0.append(&mut state.writers);
            }
        });
    }

    pub(super) fn ended(&self, error: Option<Error<SocketFault>>) {
        self.with(|state, wake| {
            (state.is_connected, state.ended) = (false, Some(error));
            wake.0.append(&mut state.writers);
            wake.0.extend(state.reader.take());
        });
    }

    /// To be woken when there is something to write, or room to read.
    pub(super) fn listen(&self, waker: &Waker) {
        self.with(|state, _| state.link = Some(waker.clone()));
    }

    pub(super) fn has_room(&self) -> bool {
        let state = lock(&self.state);
        state.is_closing || state.inbox.len() < INBOX
    }

    pub(super) fn received(&self, message: Message) {
        self.with(|state, wake| {
            state.lets_go |= state.inbox.len() >= INBOX;
            if state.lets_go {
                return;
            }
            state.inbox.push_back(message);
            wake.0.extend(state.reader.take());
        });
    }

    /// The next to be written.
    pub(super) fn take(&self) -> Option<Message> {
        self.with(|state, wake| {
            let message = state.queue.pop_front()?;
            state.moves();
            if matches!(self.outbox, Outbox::Repeat(_)) {
                state.written.push_back(message.clone());
            } else {
                wake.0.append(&mut state.writers);
            }
            Some(message)
        })
    }

    /// How many messages have been written on this connection; more come from `take` only.
    pub(super) fn written(&self) -> u64 {
        let state = lock(&self.state);
        state.confirmed.saturating_add(state.written.len() as u64)
    }

    /// The far side has the first so many of what was written on this connection.
    pub(super) fn confirm(&self, written: u64) {
        self.with(|state, wake| {
            while state.confirmed < written && state.written.pop_front().is_some() {
                state.confirmed += 1;
                state.moves();
            }
            state.wants_flush &= !state.written.is_empty();
            wake.0.append(&mut state.writers);
        });
    }

    /// How many have been written that may have to be sent again.
    pub(super) fn unconfirmed(&self) -> u64 {
        lock(&self.state).written.len() as u64
    }

    /// Whether somebody waits for messages to be confirmed.
    pub(super) fn wants_confirmation(&self) -> bool {
        let state = lock(&self.state);
        !state.written.is_empty() && (state.wants_flush || state.is_closing || state.is_full(self.outbox.most()))
    }

    /// How much has moved, if somebody waits for more who would wait for ever without a limit: who closes, and whoever
    /// waits for the outbox while nothing is read.
    pub(super) fn awaited(&self) -> Option<u64> {
        let state = lock(&self.state);
        let is_shut = state.inbox.len() >= INBOX && !state.writers.is_empty() && !state.is_vain;
        (state.is_closing || is_shut).then_some(state.moved)
    }

    /// Nothing has moved for too long.
    pub(super) fn waited_in_vain(&self) {
        self.with(|state, wake| {
            state.is_vain = true;
            wake.0.append(&mut state.writers);
        });
    }

    pub(super) fn is_closing(&self) -> bool {
        lock(&self.state).is_closing
    }

    /// Whether the program closes, and everything is said.
    pub(super) fn is_said(&self) -> bool {
        let state = lock(&self.state);
        state.is_closing && state.queue.is_empty() && state.written.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Message {
        Message::text(text)
    }

    fn taken(line: &Line) -> Vec<String> {
        std::iter::from_fn(|| line.take()).map(|message| message.to_string()).collect()
    }

    #[test]
    fn what_is_not_confirmed_is_written_again_in_its_order() {
        let line = Line::new(Outbox::Repeat(4));
        for word in ["a", "b", "c"] {
            line.send(text(word)).unwrap();
        }
        line.connected();
        assert_eq!(taken(&line), ["a", "b", "c"]);
        assert_eq!(line.written(), 3);
        line.confirm(1);
        line.send(text("d")).unwrap();
        line.disconnected();
        line.connected();
        assert_eq!(taken(&line), ["b", "c", "d"]);
        line.confirm(9);
        assert_eq!((line.waiting(), line.written()), (0, 3));
    }

    #[test]
    fn a_bound_is_a_bound() {
        for outbox in [Outbox::Queue(2), Outbox::Repeat(2)] {
            let line = Line::new(outbox);
            line.send(text("a")).unwrap();
            line.send(text("b")).unwrap();
            assert_eq!(line.send(text("c")), Err(NotSent::Full));
            line.connected();
            line.take();
            let waits_for_confirmation = matches!(outbox, Outbox::Repeat(_));
            assert_eq!(line.send(text("c")).is_err(), waits_for_confirmation, "{outbox:?}");
        }
    }

    #[test]
    fn what_is_let_go_leaves_no_gap() {
        let line = Line::new(Outbox::default());
        let mut cx = Context::from_waker(Waker::noop());
        let mut unread = || line.poll_next(&mut cx).map(|next| next.map(|message| message.unwrap().to_string()));
        for n in 0..INBOX {
            assert!(line.has_room());
            line.received(text(&n.to_string()));
        }
        assert!(!line.has_room() && line.awaited().is_none());
        assert!(line.poll_close(&mut Context::from_waker(Waker::noop())).is_pending());
        let moved = line.awaited();
        assert!(line.has_room() && moved.is_some());
        line.received(text("let go"));
        assert_eq!(unread(), Poll::Ready(Some("0".to_owned())));
        line.received(text("after what was let go"));
        for n in 1..INBOX {
            assert_eq!(unread(), Poll::Ready(Some(n.to_string())));
        }
        assert!(unread().is_pending());
        assert_eq!(line.awaited(), moved, "a close does not last longer because somebody reads");
    }

    #[test]
    fn the_time_of_a_close_begins_with_it() {
        let line = Line::new(Outbox::Queue(1));
        let mut cx = Context::from_waker(Waker::noop());
        line.send(text("a")).unwrap();
        (0..INBOX).for_each(|_| line.received(text("x")));
        assert!(line.poll_flush(&mut cx).is_pending());
        let waited = line.awaited();
        assert!(waited.is_some() && line.poll_close(&mut cx).is_pending());
        let closing = line.awaited();
        assert!(closing.is_some() && closing != waited);
        assert!(line.poll_close(&mut cx).is_pending() && line.awaited() == closing, "it is not put off");
    }

    #[test]
    fn what_is_refused_while_away_and_after_the_end() {
        let line = Line::new(Outbox::Refuse(2));
        assert_eq!(line.send(text("a")), Err(NotSent::Away));
        line.connected();
        line.send(text("a")).unwrap();
        line.disconnected();
        assert_eq!((line.waiting(), line.send(text("b"))), (0, Err(NotSent::Away)));
        line.ended(None);
        assert_eq!(line.send(text("b")), Err(NotSent::Ended));
        assert_eq!(Line::new(Outbox::Queue(0)).send(text("a")), Ok(()), "none at all would be of no use");
    }
}
