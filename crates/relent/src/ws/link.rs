//! What keeps a connection: makes it, keeps it alive, judges how it ended, and makes the next.

use super::{
    Keeping, Message, SocketFault, Subscribe,
    outbox::{INBOX, Line},
    road::{Connection, Road},
};
use crate::{
    Attempt, Cancel, Cause, Error, Event, Judge, Policy, Reason, Retrier, Setting, Timer, Verdict, Watch,
    failed::Fault as Failed,
    guard::Guard,
    retry::{Retry, Woken},
    run::{Ears, SEAL, attempt_once, call},
    wire,
};
use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};
use tokio_tungstenite::tungstenite::{
    Bytes, Error as Broken,
    handshake::client::{Request, generate_key},
    protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
};

/// How long making a connection may take where the policy has no attempt timeout: what swallows packets would hold it
/// for ever.
const CONNECT: Duration = Duration::from_secs(10);

/// Says that it is over, whatever becomes of the task.
pub(super) struct Ends<'l>(pub(super) &'l Line, pub(super) Option<Error<SocketFault>>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.ended(self.1.take());
    }
}

/// Keeps a connection until it is closed or given up.
pub(super) async fn keep<W, N, S>(
    retrier: Retrier<W, N, S>,
    request: Request,
    keeping: Keeping,
    subscribe: Option<Subscribe>,
    road: Road,
    line: &Line,
) where
    W: Judge<SocketFault>,
    N: Watch<SocketFault>,
    S: Setting,
{
    let mut ends = Ends(line, None);
    let mut kept = pin!(connections(retrier, request, keeping, subscribe, road, line));
    ends.1 = poll_fn(|cx| {
        line.listen(cx.waker());
        if line.is_said() && !line.is_connected() {
            return Poll::Ready(None);
        }
        kept.as_mut().poll(cx)
    })
    .await;
}

/// One connection after the other; the error that ends it, unless it was meant to end.
async fn connections<W, N, S>(
    retrier: Retrier<W, N, S>,
    request: Request,
    keeping: Keeping,
    mut subscribe: Option<Subscribe>,
    mut road: Road,
    line: &Line,
) -> Option<Error<SocketFault>>
where
    W: Judge<SocketFault>,
    N: Watch<SocketFault>,
    S: Setting,
{
    let (mut policy, mut hooks) = retrier.into_parts();
    if policy.attempt_timeout.nanos() == u64::MAX {
        policy = policy.attempt_timeout(CONNECT);
    }
    let hooks = &mut hooks;
    let mut judge = |fault: &SocketFault| if W::IS_DEFAULT { fault.verdict() } else { hooks.when.judge(fault, SEAL) };
    let (setting, timer) = (&hooks.setting, hooks.setting.timer(SEAL));
    let mut ears = Ears { when: &mut judge, notify: &mut hooks.notify, retries_given_up: hooks.retries_given_up };
    let mut retry = call(&policy, setting, hooks.deadline, Some(timer.now()), setting.guard(SEAL));
    let mut connect = |attempt: Attempt| road.connect(prepared(&request, attempt), keeping.config);
    let (mut last, mut connection) = (None, 0_u32);
    let mut delay = if policy.has_spread() { retry.spread_delay() } else { Duration::ZERO };
    loop {
        if let Woken::Not(reason) = retry.sleep(delay).await {
            return Some(retry.give_up(reason, last));
        }
        let attempt = retry.attempt();
        let stream = match attempt_once(&mut connect, &mut retry, attempt, setting, &mut ears).await {
            Ok(stream) => stream,
            Err(failed) => match ears.failed(&mut retry, attempt, failed, &mut last) {
                Ok(wait) => {
                    delay = wait;
                    continue;
                }
                Err(error) => return Some(error),
            },
        };
        retry.succeeded();
        connection = connection.saturating_add(1);
        let began = timer.now();
        let greeting = subscribe.as_mut().map_or_else(Vec::new, |subscribe| subscribe(connection));
        line.connected();
        let lost = Life::new(stream, line, greeting, keeping, timer).live(setting.switch(SEAL)).await;
        line.disconnected();
        let fault = match lost {
            Lost::Said => return None,
            Lost::Cancelled => return Some(retry.give_up(Reason::Cancelled, None)),
            Lost::By(fault) if fault.is_the_end() => return None,
            Lost::By(fault) => fault,
        };
        let was_healthy = timer.now().since(began) >= keeping.healthy_after;
        if was_healthy && fault.is_overload() {
            retry.was_well();
        }
        if !was_healthy || fault.is_overload() {
            match ears.failed(&mut retry, attempt, Failed::Error(fault), &mut last) {
                Ok(wait) => delay = wait,
                Err(error) => return Some(error),
            }
            continue;
        }
        let verdict = (ears.when)(&fault);
        if let Some(reason) = verdict.reason() {
            let _ = retry.failed(verdict);
            return Some(retry.give_up(reason, Some(fault)));
        }
        delay = rejoin(&mut retry, &policy, keeping, verdict);
        let elapsed = Duration::ZERO;
        ears.notify.watch(&Event { attempt, error: Cause::Error(&fault), verdict, delay, elapsed }, SEAL);
        last = Some(fault);
    }
}

/// So many messages that may have to be sent again are confirmed at a time, where somebody waits for that.
const SOME: u64 = 8;

/// A connection was lost that had been well, and others with it: what comes now is the first attempt of a herd, at a
/// random moment within the limits of time. RFC 6455 7.2.3: "the first reconnect attempt SHOULD be delayed by a random
/// amount of time".
fn rejoin<T: Timer, G: Guard>(
    retry: &mut Retry<&Policy, &T, G>,
    policy: &Policy,
    keeping: Keeping,
    verdict: Verdict,
) -> Duration {
    let within = match (keeping.rejoin_within, policy.spread.nanos()) {
        (Some(within), _) => crate::core::time::nanos(within),
        (None, 0) => 5_000_000_000,
        (None, spread) => spread,
    };
    retry.begin_another(within).max(verdict.pushback().unwrap_or_default())
}

/// The request of an attempt: with a key of its own, and its number.
fn prepared(request: &Request, attempt: Attempt) -> Request {
    let mut request = request.clone();
    let headers = request.headers_mut();
    if let Ok(key) = generate_key().parse() {
        headers.insert(http::header::SEC_WEBSOCKET_KEY, key);
    }
    headers.insert(wire::RELENT_ATTEMPT, http::HeaderValue::from(attempt.number()));
    request
}

enum Lost {
    /// The program closed it.
    Said,
    Cancelled,
    By(SocketFault),
}

/// A connection while it lasts.
struct Life<'l, T: Timer> {
    stream: Connection,
    line: &'l Line,
    timer: &'l T,
    keeping: Keeping,
    greeting: VecDeque<Message>,
    /// Pings under way: their number, and how many messages had been written before them.
    pings: VecDeque<(u64, u64)>,
    pinged: u64,
    next_ping: Pin<Box<T::Sleep>>,
    is_ping_due: bool,
    /// Runs while nothing has been heard since a ping.
    silence: Option<Pin<Box<T::Sleep>>>,
    /// What the server closed with.
    closed: Option<Option<CloseFrame>>,
    /// Whether the program's close has been written.
    has_closed: bool,
    /// Runs while somebody waits and nothing moves.
    standing: Option<Pin<Box<T::Sleep>>>,
    /// How much had moved when that began.
    moved: (u64, usize),
}

impl<'l, T: Timer> Life<'l, T> {
    fn new(stream: Connection, line: &'l Line, greeting: Vec<Message>, keeping: Keeping, timer: &'l T) -> Self {
        Life {
            stream,
            line,
            timer,
            keeping,
            greeting: greeting.into(),
            pings: VecDeque::new(),
            pinged: 0,
            next_ping: Box::pin(timer.sleep(keeping.ping_every)),
            is_ping_due: false,
            silence: None,
            closed: None,
            has_closed: false,
            standing: None,
            moved: (0, 0),
        }
    }

    async fn live(mut self, cancel: Option<&Cancel>) -> Lost {
        let mut cancelled = pin!(cancel.map(Cancel::cancelled));
        poll_fn(|cx| {
            if cancelled.as_mut().as_pin_mut().is_some_and(|cancelled| cancelled.poll(cx).is_ready()) {
                return Poll::Ready(Lost::Cancelled);
            }
            self.line.listen(cx.waker());
            match self.step(cx) {
                Ok(()) => Poll::Pending,
                Err(_) if self.line.is_said() => Poll::Ready(Lost::Said),
                Err(fault) => Poll::Ready(Lost::By(fault)),
            }
        })
        .await
    }

    /// Does what can be done now. The error is the end.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<(), SocketFault> {
        self.read(cx)?;
        while self.next_ping.as_mut().poll(cx).is_ready() {
            self.is_ping_due = true;
            self.next_ping = Box::pin(self.timer.sleep(self.keeping.ping_every));
        }
        self.write(cx)?;
        if is_over(&mut self.silence, cx) {
            return Err(SocketFault::Silent(self.keeping.pong_within));
        }
        self.stand(cx)
    }

    /// Nobody waits for ever for what does not move.
    fn stand(&mut self, cx: &mut Context<'_>) -> Result<(), SocketFault> {
        let Some(moved) = self.line.awaited() else {
            self.standing = None;
            return Ok(());
        };
        let moved = (moved, self.greeting.len());
        if self.standing.is_none() || self.moved != moved {
            (self.moved, self.standing) = (moved, Some(Box::pin(self.timer.sleep(self.keeping.pong_within))));
        }
        if !is_over(&mut self.standing, cx) {
            return Ok(());
        }
        self.standing = None;
        if self.line.is_closing() {
            return Err(SocketFault::Silent(self.keeping.pong_within));
        }
        self.line.waited_in_vain();
        Ok(())
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Result<(), SocketFault> {
        for _ in 0..INBOX {
            if !self.line.has_room() {
                // Who does not read hears no pong either.
                self.silence = None;
                return Ok(());
            }
            let message = match self.stream.0.as_mut().poll_next(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Some(Ok(message))) => message,
                Poll::Ready(Some(Err(err))) => return Err(self.lost(err)),
                Poll::Ready(None) => return Err(self.lost(Broken::ConnectionClosed)),
            };
            self.silence = None;
            match message {
                Message::Text(_) | Message::Binary(_) => self.line.received(message),
                Message::Pong(payload) => self.pong(&payload),
                Message::Close(frame) => self.closed = Some(frame),
                // Answered by the protocol below.
                Message::Ping(_) | Message::Frame(_) => {}
            }
        }
        // There may be more; but it is not all there is to do.
        cx.waker().wake_by_ref();
        Ok(())
    }

    fn lost(&mut self, err: Broken) -> SocketFault {
        match (self.closed.take(), err) {
            (Some(Some(frame)), _) => {
                SocketFault::Closed { code: Some(frame.code.into()), reason: frame.reason.as_str().to_owned() }
            }
            (Some(None), _) | (None, Broken::ConnectionClosed | Broken::AlreadyClosed) => {
                SocketFault::Closed { code: None, reason: String::new() }
            }
            (None, err) => SocketFault::Broken(Box::new(err)),
        }
    }

    fn pong(&mut self, payload: &[u8]) {
        let Ok(number) = payload.try_into().map(u64::from_be_bytes) else { return };
        while let Some(&(ping, written)) = self.pings.front()
            && ping <= number
        {
            self.pings.pop_front();
            self.line.confirm(written);
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), SocketFault> {
        loop {
            match self.stream.0.as_mut().poll_ready(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(err)) => return Err(self.lost(err)),
            }
            let Some(message) = self.next() else { break };
            if let Err(err) = self.stream.0.as_mut().start_send(message) {
                return Err(self.lost(err));
            }
        }
        match self.stream.0.as_mut().poll_flush(cx) {
            Poll::Ready(Err(err)) => Err(self.lost(err)),
            _ => Ok(()),
        }
    }

    /// What is to be written next.
    fn next(&mut self) -> Option<Message> {
        if self.closed.is_some() || self.has_closed {
            return None;
        }
        if let Some(message) = self.greeting.pop_front() {
            return Some(message);
        }
        // Of many, some as they go, and not all at the end: that may come too late for the server, or for the connection.
        let written = self.line.written();
        let asked = self.pings.back().map_or(0, |(_, asked)| *asked);
        if self.line.wants_confirmation() && self.line.unconfirmed().min(written.saturating_sub(asked)) >= SOME {
            return Some(self.ping(written));
        }
        if let Some(message) = self.line.take() {
            return Some(message);
        }
        let written = self.line.written();
        let is_asked = self.pings.back().is_some_and(|(_, asked)| *asked >= written);
        if self.is_ping_due || (!is_asked && self.line.wants_confirmation()) {
            return Some(self.ping(written));
        }
        if self.line.is_said() {
            self.has_closed = true;
            return Some(Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() })));
        }
        None
    }

    fn ping(&mut self, written: u64) -> Message {
        self.is_ping_due = false;
        self.pinged += 1;
        self.pings.push_back((self.pinged, written));
        if self.silence.is_none() {
            self.silence = Some(Box::pin(self.timer.sleep(self.keeping.pong_within)));
        }
        Message::Ping(Bytes::copy_from_slice(&self.pinged.to_be_bytes()))
    }
}

fn is_over<F: Future>(end: &mut Option<Pin<Box<F>>>, cx: &mut Context<'_>) -> bool {
    end.as_mut().is_some_and(|end| end.as_mut().poll(cx).is_ready())
}

pub(super) fn config(most: usize) -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(most)).max_frame_size(Some(most))
}
