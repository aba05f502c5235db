//! A WebSocket over pipes in memory, by a clock that waits for everybody.

use crate::ws_server::{Door, open_door, refusal, serve_each};
use futures_util::{SinkExt, StreamExt};
use relent::{
    Jitter, Policy, Reason, SystemTimer, Timer,
    ws::{Message, Opening, SocketFault, WebSocket},
};
use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{DuplexStream, duplex},
    sync::mpsc::unbounded_channel,
    task::JoinSet,
    time::{Instant, timeout},
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
    let message = timeout(1000 * SEC, socket.next()).await.expect("something comes").expect("it has not ended");
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
        (|| EXACT.timeout(2 * SEC).retrier(), Some(9 * SEC), 2 * SEC),
        (|| EXACT.deadline_at(SystemTimer.now() + 103 * SEC), Some(300 * SEC), 3 * SEC),
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
