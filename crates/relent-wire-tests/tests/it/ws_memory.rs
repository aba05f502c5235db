//! A WebSocket over pipes in memory, by a clock that waits for everybody.

use crate::ws_server::{Door, open_door, refusal, serve_each};
use futures_util::{SinkExt, StreamExt};
use relent::{
    Jitter, Policy, Reason, SystemTimer, Timer,
    ws::{Message, NotSent, Opening, Outbox, SocketFault, WebSocket},
};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex},
    sync::mpsc::unbounded_channel,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::CloseFrame};

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);
const EXACT: Policy = Policy::exponential(SEC).jitter(Jitter::None);

type Socket = WebSocketStream<DuplexStream>;

/// How a client reaches a server, which serves each connection that `door` lets in.
fn road<F, Fut>(door: Door, serve: F) -> impl FnOnce(Opening) -> Opening
where
    F: Fn(u32, Socket) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let (clients, incoming) = unbounded_channel();
    serve_each(UnboundedReceiverStream::new(incoming), door, serve);
    move |opening| {
        opening.connect_by(move || {
            let (near, far) = duplex(4 << 10);
            let is_there = clients.send(far).map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused));
            async { is_there.map(|()| near) }
        })
    }
}

/// Says which connection it is, and closes it after `life`.
async fn hello(nth: u32, mut socket: Socket, life: Duration, code: u16) {
    let _ = socket.send(Message::text(nth.to_string())).await;
    let _ = timeout(life, async { while let Some(Ok(_)) = socket.next().await {} }).await;
    let _ = socket.send(Message::Close(Some(CloseFrame { code: code.into(), reason: "".into() }))).await;
    while let Some(Ok(_)) = socket.next().await {}
}

async fn said(socket: &mut WebSocket) -> Result<String, relent::Error<SocketFault>> {
    let message = timeout(1_000_000 * SEC, socket.next()).await.expect("something comes").expect("it has not ended");
    message.map(|message| message.to_string())
}

#[tokio::test(start_paused = true)]
async fn what_was_well_comes_back_within_the_limits_of_time() {
    const CLIENTS: usize = 50;
    let life = 100 * SEC;
    type Way = (fn() -> relent::Retrier, Option<Duration>, Duration);
    let ways: [Way; 4] = [
        (|| EXACT.max_elapsed(3 * SEC).retrier(), None, 3 * SEC),
        (|| EXACT.max_elapsed(20 * SEC).retrier(), Some(300 * SEC), 20 * SEC),
        // So long that nobody comes in the last millisecond, to which timers are exact.
        (|| EXACT.timeout(100_000 * SEC).retrier(), Some(300_000 * SEC), 100_000 * SEC),
        (|| EXACT.deadline_at(SystemTimer.now() + 100_100 * SEC), Some(300_000 * SEC), 100_000 * SEC),
    ];
    for (way, (retrier, within, limit)) in ways.into_iter().enumerate() {
        for code in [1001, 1011, 1012] {
            let mut clients = JoinSet::new();
            for _ in 0..CLIENTS {
                let road = road(open_door(), move |nth, socket| hello(nth, socket, life, code));
                let mut opening = retrier().websocket("ws://memory/").unwrap();
                if let Some(within) = within {
                    opening = opening.rejoin_within(within);
                }
                let mut socket = road(opening).open();
                clients.spawn(async move {
                    let begin = Instant::now();
                    assert_eq!(said(&mut socket).await.unwrap(), "1");
                    assert_eq!(said(&mut socket).await.map_err(|err| format!("{way}, {code}: {err}")), Ok("2".into()));
                    begin.elapsed().saturating_sub(life)
                });
            }
            let waits = clients.join_all().await;
            assert!(waits.iter().all(|wait| *wait <= limit), "{way}, {code}: {waits:?}");
            // Of fifty not one in a half of it comes but once in 10^15 times.
            let early = waits.iter().filter(|wait| **wait < limit / 2).count();
            assert!((1..CLIENTS).contains(&early), "{way}, {code}: at random moments: {waits:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn overload_after_what_was_well_is_a_new_trouble_and_forgets_no_failure() {
    let attempts = Arc::new(Mutex::new(vec![]));
    let seen = attempts.clone();
    // Lost at once, then well for long, then refused for ever: by a server that is overloaded.
    let door = Arc::new(move |attempt| {
        let mut attempts = seen.lock().unwrap();
        attempts.push(attempt);
        if attempts.len() > 2 { Err(refusal(503, &[])) } else { Ok(()) }
    });
    let road = road(door, |nth, socket| hello(nth, socket, if nth == 1 { MS } else { 500 * SEC }, 1013));
    let mut socket = road(EXACT.max_elapsed(10 * SEC).websocket("ws://memory/").unwrap()).open();
    assert_eq!(said(&mut socket).await.unwrap(), "1");
    assert_eq!(said(&mut socket).await.unwrap(), "2");
    let err = said(&mut socket).await.unwrap_err();
    // 2 s after the second failure, and 4 s after the third; 8 s more would be too late.
    assert_eq!(*attempts.lock().unwrap(), [1, 2, 3, 4], "{err}");
    assert_eq!((err.reason, err.attempts), (Reason::Elapsed, 4), "{err}");
    let elapsed = err.elapsed.unwrap();
    assert!(elapsed >= 6 * SEC && elapsed < 7 * SEC, "since it was well: {elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn overload_of_what_was_not_well_lifts_no_limit() {
    let road = road(open_door(), |nth, socket| hello(nth, socket, 20 * SEC, 1013));
    let mut socket = road(EXACT.max_elapsed(10 * SEC).websocket("ws://memory/").unwrap()).open();
    assert_eq!(said(&mut socket).await.unwrap(), "1");
    let err = said(&mut socket).await.unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Elapsed, 1), "{err}");
}

/// Says `most` things at once, then reads; what it has read, in the end.
async fn talker(mut socket: Socket, most: u32, log: Arc<Mutex<Vec<String>>>) {
    for n in 1..=most {
        if socket.send(Message::text(n.to_string())).await.is_err() {
            return;
        }
    }
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Close(frame) => log.lock().unwrap().push(u16::from(frame.unwrap().code).to_string()),
            message if message.is_text() => log.lock().unwrap().push(message.len().to_string()),
            _ => {}
        }
    }
}

/// One that is connected to a [`talker`], and what that has read.
async fn listener(most: u32, outbox: Outbox) -> (WebSocket, Arc<Mutex<Vec<String>>>) {
    let log = Arc::new(Mutex::new(vec![]));
    let seen = log.clone();
    let road = road(open_door(), move |_, socket| talker(socket, most, seen.clone()));
    let mut socket = road(EXACT.max_attempts(1).websocket("ws://memory/").unwrap().outbox(outbox)).open();
    assert_eq!(said(&mut socket).await.unwrap(), "1");
    sleep(SEC).await;
    (socket, log)
}

#[tokio::test(start_paused = true)]
async fn a_close_reads_on_and_what_finds_no_room_is_let_go() {
    for outbox in [Outbox::Queue(9), Outbox::Repeat(9)] {
        let (mut socket, log) = listener(1000, outbox).await;
        socket.send(Message::text("last order")).await.unwrap();
        let begin = Instant::now();
        timeout(100 * SEC, socket.close()).await.expect("it ends");
        assert!(begin.elapsed() < SEC, "{outbox:?}: the server has answered at once: {:?}", begin.elapsed());
        assert_eq!(*log.lock().unwrap(), ["10", "1000"], "{outbox:?}");
        for n in 2..258 {
            assert_eq!(said(&mut socket).await.unwrap(), n.to_string(), "{outbox:?}");
        }
        assert!(socket.next().await.is_none(), "{outbox:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_where_the_server_hears_nothing() {
    // It talks and never listens: no pong, and no answer to a close.
    let deaf = |_, mut socket: Socket| async move {
        while socket.send(Message::text("x")).await.is_ok() {
            sleep(MS).await;
        }
    };
    let road = road(open_door(), deaf);
    let opening = EXACT.max_attempts(2).websocket("ws://memory/").unwrap().outbox(Outbox::Repeat(9));
    let mut socket = road(opening.pong_within(5 * SEC)).open();
    assert_eq!(said(&mut socket).await.unwrap(), "x");
    socket.send(Message::text("last order")).await.unwrap();
    let begin = Instant::now();
    timeout(100 * SEC, socket.close()).await.expect("it ends");
    // Twice lost, and a second between.
    assert!(begin.elapsed() >= 11 * SEC && begin.elapsed() < 12 * SEC, "{:?}", begin.elapsed());
    let err = loop {
        if let Err(err) = said(&mut socket).await {
            break err;
        }
    };
    assert_eq!((err.reason, socket.waiting()), (Reason::Attempts, 1), "{err}");
    assert!(matches!(err.last, Some(SocketFault::Silent(limit)) if limit == 5 * SEC), "{err:?}");
}

#[tokio::test(start_paused = true)]
async fn a_close_lasts_while_something_moves() {
    let log = Arc::new(Mutex::new(0));
    let seen = log.clone();
    let slow = move |_, mut socket: Socket| {
        let seen = seen.clone();
        async move {
            let _ = socket.send(Message::text("x")).await;
            while let Some(Ok(message)) = socket.next().await {
                *seen.lock().unwrap() += usize::from(message.is_text());
                sleep(6 * SEC).await;
            }
        }
    };
    let road = road(open_door(), slow);
    let mut socket = road(EXACT.max_attempts(1).websocket("ws://memory/").unwrap()).open();
    assert_eq!(said(&mut socket).await.unwrap(), "x");
    for _ in 0..5 {
        // None is written before the one before has been read.
        socket.send(Message::text("x".repeat(200 << 10))).await.unwrap();
    }
    socket.close().await;
    assert_eq!(*log.lock().unwrap(), 5);
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_because_nobody_reads_is_told_so() {
    for outbox in [Outbox::Queue(1), Outbox::Repeat(1)] {
        let (mut socket, log) = listener(2000, outbox).await;
        // More than the pipe holds: it is not written before the server reads.
        socket.send(Message::text("x".repeat(200 << 10))).await.unwrap();
        sleep(SEC).await;
        if outbox == Outbox::Queue(1) {
            socket.send(Message::text("y")).await.unwrap();
        }
        for _ in 0..2 {
            let begin = Instant::now();
            let sent = timeout(100 * SEC, socket.send(Message::text("z"))).await.expect("it ends");
            assert_eq!((sent, begin.elapsed().as_secs()), (Err(NotSent::Unread), 10), "{outbox:?}");
            let flushed = timeout(100 * SEC, socket.flush()).await.expect("it ends");
            assert_eq!((flushed, begin.elapsed().as_secs()), (Err(NotSent::Unread), 20), "{outbox:?}");
        }
        for n in 2..=2000 {
            assert_eq!(said(&mut socket).await.unwrap(), n.to_string(), "nothing is lost");
        }
        socket.flush().await.unwrap();
        assert_eq!(log.lock().unwrap()[0], (200 << 10).to_string(), "{outbox:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_in_vain_while_somebody_reads() {
    let (mut socket, _) = listener(300, Outbox::Repeat(1)).await;
    socket.send(Message::text("x")).await.unwrap();
    let (mut sink, mut stream) = socket.split();
    let reader = tokio::spawn(async move {
        loop {
            sleep(9 * SEC).await;
            let _ = stream.next().await;
        }
    });
    let begin = Instant::now();
    assert_eq!(sink.flush().await, Ok(()));
    assert!(begin.elapsed() > 100 * SEC, "it was unread for long: {:?}", begin.elapsed());
    reader.abort();
}

/// A pipe that always has something to read once anything came through it: a message without a word, thousands of times.
struct Flood {
    pipe: DuplexStream,
    has_begun: bool,
    left: Arc<AtomicUsize>,
}

impl AsyncRead for Flood {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let left = self.left.load(Ordering::SeqCst);
        match Pin::new(&mut self.pipe).poll_read(cx, buf) {
            Poll::Pending if self.has_begun && left > 0 => {
                self.left.store(left - 1, Ordering::SeqCst);
                buf.put_slice(&[0x82, 0].repeat(buf.remaining().min(8 << 10) / 2));
                Poll::Ready(Ok(()))
            }
            poll => {
                self.has_begun |= poll.is_ready();
                poll
            }
        }
    }
}

impl AsyncWrite for Flood {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.pipe).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn a_close_ends_under_a_flood() {
    let (clients, incoming) = unbounded_channel();
    serve_each(UnboundedReceiverStream::new(incoming), open_door(), |_, socket: Socket| async move {
        std::future::pending::<()>().await;
        drop(socket);
    });
    let left = Arc::new(AtomicUsize::new(1000));
    let opening = EXACT.max_attempts(1).websocket("ws://memory/").unwrap().pong_within(50 * MS).connect_by({
        let left = left.clone();
        move || {
            let (pipe, far) = duplex(4 << 10);
            let is_there = clients.send(far).map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused));
            let flood = Flood { pipe, has_begun: false, left: left.clone() };
            async { is_there.map(|()| flood) }
        }
    });
    let mut socket = opening.open();
    assert_eq!(said(&mut socket).await.unwrap(), "");
    timeout(10 * SEC, socket.close()).await.expect("it ends");
    assert!(left.load(Ordering::SeqCst) > 0, "it has not waited for the end of the flood");
}

/// A server that takes its time for each message answers what was asked behind all of them too late.
#[tokio::test(start_paused = true)]
async fn what_takes_longer_than_an_answer_may_is_confirmed_as_it_goes() {
    let came = Arc::new(Mutex::new(0));
    let seen = came.clone();
    let road = road(open_door(), move |_, mut socket: Socket| {
        let seen = seen.clone();
        async move {
            while let Some(Ok(message)) = socket.next().await {
                if message.is_text() {
                    sleep(500 * MS).await;
                    *seen.lock().unwrap() += 1;
                }
            }
        }
    });
    let mut socket = road(EXACT.websocket("ws://memory/").unwrap().outbox(Outbox::Repeat(100))).open();
    for nth in 0..100 {
        socket.send(Message::text(nth.to_string())).await.unwrap();
    }
    // The server needs 50 s for all of them, and has 10 s for an answer.
    timeout(60 * SEC, socket.flush()).await.expect("it moves").unwrap();
    assert_eq!(*came.lock().unwrap(), 100, "each once");
}
