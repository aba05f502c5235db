//! A WebSocket across connections, between real sockets.

use crate::ws_server::{Server, Socket, close_with, echo, open_door, refusal, serve};
use futures_util::{SinkExt, StreamExt};
use relent::{
    Breaker, Cancel, Cause, Event, Jitter, Policy, Reason, Upstream, Verdict,
    ws::{Message, NotSent, Outbox, SocketFault, WebSocket},
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::net::TcpListener;

const MS: Duration = Duration::from_millis(1);
const FAST: Policy = Policy::constant(MS.saturating_mul(20)).jitter(Jitter::None).max_attempts(4);

fn text(text: &str) -> Message {
    Message::text(text)
}

/// What comes, as text; the test fails if nothing does for ten seconds.
async fn next(socket: &mut WebSocket) -> Option<Result<String, relent::Error<SocketFault>>> {
    let next = tokio::time::timeout(Duration::from_secs(10), socket.next()).await.unwrap();
    Some(next?.map(|message| message.to_string()))
}

async fn said(socket: &mut WebSocket) -> String {
    next(socket).await.unwrap().unwrap()
}

/// A list that several tasks write.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl ToString) {
        self.0.lock().unwrap().push(line.to_string());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn it_goes_on_across_connections_and_subscribes_on_each() {
    let server = serve("127.0.0.1:0", open_door(), async |nth, mut socket: Socket| {
        for _ in 0..2 {
            if let Some(Ok(message)) = socket.next().await {
                let _ = socket.send(text(&format!("{nth}: {message}"))).await;
            }
        }
        // Gone without a word.
    });
    let server = server.await;
    let told = Log::default();
    let tell = told.clone();
    let mut socket = FAST
        .notify(move |event: &Event<'_, SocketFault>| tell.add(matches!(event.error, Cause::Error(_))))
        .websocket(server.url())
        .unwrap()
        .subscribe(|connection| vec![text(&format!("subscribe {connection}"))])
        .healthy_after(Duration::ZERO)
        .rejoin_within(MS)
        .open();
    for connection in 1..4 {
        socket.send(text("hello")).await.unwrap();
        assert_eq!(said(&mut socket).await, format!("{connection}: subscribe {connection}"));
        assert_eq!(said(&mut socket).await, format!("{connection}: hello"));
        // Waits for the loss, so that the next message does not go into it.
        while socket.is_connected() {
            tokio::time::sleep(MS).await;
        }
    }
    assert!(told.lines().len() >= 3, "each loss is told");
}

#[tokio::test]
async fn close_codes_are_judged() {
    for (code, end) in [(1000, None), (1008, Some(Reason::Permanent)), (3003, Some(Reason::Permanent))] {
        let server = serve("127.0.0.1:0", open_door(), move |_, mut socket| async move {
            close_with(&mut socket, code, "bye").await;
        });
        let server = server.await;
        let mut socket = FAST.websocket(server.url()).unwrap().open();
        let ended = next(&mut socket).await.map(|result| result.unwrap_err());
        assert_eq!(ended.as_ref().map(|err| err.reason), end, "{code}");
        if let Some(err) = ended {
            assert_eq!(err.attempts, 1);
            assert_eq!(err.into_last().unwrap().to_string(), format!("closed by the server: {code} (\"bye\")"));
        }
        assert!(next(&mut socket).await.is_none(), "it stays ended");
        assert_eq!(socket.send(text("?")).await, Err(NotSent::Ended));
    }
}

#[tokio::test]
async fn whoever_is_told_to_come_later_comes_later() {
    for code in [1001, 1011, 1012, 1013, 4321] {
        let server = serve("127.0.0.1:0", open_door(), move |nth, mut socket| async move {
            match nth {
                1 => close_with(&mut socket, code, "").await,
                _ => echo(nth, socket).await,
            }
        });
        let server = server.await;
        let mut socket = FAST.websocket(server.url()).unwrap().healthy_after(Duration::ZERO).rejoin_within(MS).open();
        socket.send(text("still there")).await.unwrap();
        // What was written into the first connection may be lost.
        tokio::time::sleep(60 * MS).await;
        socket.send(text("still there")).await.unwrap();
        assert_eq!(said(&mut socket).await, "still there", "{code}");
    }
}

#[tokio::test]
async fn a_judge_of_ones_own() {
    let server = serve("127.0.0.1:0", open_door(), async |_, mut socket| close_with(&mut socket, 4001, "").await).await;
    let judge = |fault: &SocketFault| match fault {
        SocketFault::Closed { code: Some(4001), .. } => Verdict::Permanent,
        fault => fault.verdict(),
    };
    let mut socket = FAST.when(judge).websocket(server.url()).unwrap().open();
    assert_eq!(next(&mut socket).await.unwrap().unwrap_err().reason, Reason::Permanent);
}

#[tokio::test]
async fn a_refused_upgrade_is_judged_and_its_turn_is_kept() {
    let attempts = Log::default();
    let seen = attempts.clone();
    let door = Arc::new(move |attempt| {
        seen.add(attempt);
        match attempt {
            1 => Err(refusal(503, &[("relent-turn", "150".into()), ("retry-after", "1".into())])),
            2 => Err(refusal(503, &[("retry-after-ms", "50".into())])),
            _ => Ok(()),
        }
    });
    let server = serve("127.0.0.1:0", door, echo).await;
    let begin = Instant::now();
    let mut socket = FAST.websocket(server.url()).unwrap().open();
    socket.send(text("in")).await.unwrap();
    assert_eq!(said(&mut socket).await, "in");
    assert!(begin.elapsed() >= 200 * MS && begin.elapsed() < 1000 * MS, "{:?}", begin.elapsed());
    assert_eq!(attempts.lines(), ["1", "2", "3"], "each attempt says which it is");

    for (status, reason) in [(403, Reason::Permanent), (302, Reason::Permanent), (500, Reason::Attempts)] {
        let server = serve("127.0.0.1:0", Arc::new(move |_| Err(refusal(status, &[]))), echo).await;
        let mut socket = FAST.websocket(server.url()).unwrap().open();
        let err = next(&mut socket).await.unwrap().unwrap_err();
        assert_eq!(err.reason, reason, "{status}: {err}");
        assert!(matches!(err.last, Some(SocketFault::Refused { status: told, .. }) if told == status), "{err:?}");
    }
    let never = Arc::new(|_| Err(refusal(503, &[("retry-after", "100000000000".into())])));
    let server = serve("127.0.0.1:0", never, echo).await;
    let mut socket = FAST.websocket(server.url()).unwrap().open();
    assert_eq!(next(&mut socket).await.unwrap().unwrap_err().reason, Reason::PushbackTooLong);
}

#[tokio::test]
async fn a_server_that_accepts_and_drops_at_once_is_backed_off_from() {
    let (accepted, seen) = (Log::default(), Log::default());
    let log = accepted.clone();
    let server = serve("127.0.0.1:0", open_door(), move |nth, socket| {
        log.add(nth);
        async move { drop(socket) }
    });
    let server = server.await;
    let tell = seen.clone();
    let begin = Instant::now();
    let mut socket = Policy::exponential(20 * MS)
        .jitter(Jitter::None)
        .max_attempts(4)
        .notify(move |event: &Event<'_, SocketFault>| tell.add(event.delay.as_millis()))
        .websocket(server.url())
        .unwrap()
        .open();
    let err = next(&mut socket).await.unwrap().unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Attempts, 4));
    assert_eq!((accepted.lines().len(), seen.lines()), (4, vec!["20".into(), "40".into(), "80".to_owned()]));
    assert!(begin.elapsed() >= 140 * MS);
}

/// Takes connections and says nothing.
async fn mute() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    (listener, url)
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_on_in_time() {
    let (_listener, url) = mute().await;
    let mut socket = FAST.attempt_timeout(50 * MS).max_attempts(2).websocket(&url).unwrap().open();
    let begin = Instant::now();
    let err = next(&mut socket).await.unwrap().unwrap_err();
    assert_eq!((err.attempts, err.timed_out), (2, Some(50 * MS)));
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn silence_after_a_ping_is_a_loss_and_a_message_is_not_silence() {
    // The upgrade, and then not even a pong: nobody reads.
    let server = serve("127.0.0.1:0", open_door(), async |_, socket| {
        std::future::pending::<()>().await;
        drop(socket);
    });
    let server = server.await;
    let mut socket =
        FAST.max_attempts(2).websocket(server.url()).unwrap().ping_every(30 * MS).pong_within(30 * MS).open();
    let err = next(&mut socket).await.unwrap().unwrap_err();
    assert!(matches!(err.last, Some(SocketFault::Silent(limit)) if limit == 30 * MS), "{err:?}");

    // It says something all the time, and reads seldom.
    let server = serve("127.0.0.1:0", open_door(), async |_, mut socket: Socket| {
        for n in 0..30 {
            tokio::time::sleep(10 * MS).await;
            let _ = socket.send(text(&n.to_string())).await;
        }
        echo(1, socket).await;
    });
    let server = server.await;
    let mut socket = FAST
        .max_attempts(1)
        .websocket(server.url())
        .unwrap()
        .ping_every(20 * MS)
        .pong_within(Duration::from_secs(2))
        .open();
    for n in 0..30 {
        assert_eq!(said(&mut socket).await, n.to_string());
    }
    socket.send(text("alive")).await.unwrap();
    assert_eq!(said(&mut socket).await, "alive");
}

#[tokio::test]
async fn a_reader_that_is_slow_makes_the_server_wait_and_loses_nothing() {
    let server = serve("127.0.0.1:0", open_door(), async |_, mut socket: Socket| {
        for n in 0..2000 {
            socket.feed(text(&n.to_string())).await.unwrap();
        }
        socket.flush().await.unwrap();
        echo(1, socket).await;
    });
    let server = server.await;
    let mut socket = FAST.websocket(server.url()).unwrap().ping_every(5 * MS).pong_within(200 * MS).open();
    assert_eq!(said(&mut socket).await, "0");
    tokio::time::sleep(400 * MS).await; // Longer than a pong may take, with a full inbox.
    for n in 1..2000 {
        assert_eq!(said(&mut socket).await, n.to_string());
    }
}

#[tokio::test]
async fn what_may_not_have_arrived_is_sent_again() {
    let got = Log::default();
    let log = got.clone();
    // Each of the first connections reads a little and breaks.
    let server = serve("127.0.0.1:0", open_door(), move |nth, mut socket: Socket| {
        let log = log.clone();
        async move {
            let most = if nth < 6 { 3 * nth } else { u32::MAX };
            for _ in 0..most {
                match socket.next().await {
                    Some(Ok(message)) if message.is_text() => log.add(message),
                    Some(Ok(_)) => {}
                    _ => return,
                }
            }
        }
    });
    let server = server.await;
    let mut socket = FAST
        .unlimited_attempts()
        .websocket(server.url())
        .unwrap()
        .outbox(Outbox::Repeat(10))
        .healthy_after(Duration::from_secs(60))
        .open();
    let all = async {
        for n in 0..50 {
            socket.send(text(&n.to_string())).await.unwrap();
        }
        socket.flush().await.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(10), all).await.expect("all of it arrives");
    assert_eq!(socket.waiting(), 0);
    let distinct: BTreeSet<u32> = got.lines().iter().map(|line| line.parse().unwrap()).collect();
    assert_eq!(distinct, (0..50).collect(), "at least once: {:?}", got.lines());
    // In order but for what is repeated.
    let mut first = BTreeSet::new();
    let in_order: Vec<u32> =
        got.lines().iter().map(|line| line.parse().unwrap()).filter(|n| first.insert(*n)).collect();
    assert!(in_order.is_sorted(), "{in_order:?}");
}

#[tokio::test]
async fn the_outbox_is_bounded_while_away() {
    let (listener, url) = mute().await;
    let mut queue = FAST.websocket(&url).unwrap().outbox(Outbox::Queue(3)).open();
    for _ in 0..3 {
        queue.try_send(text("x")).unwrap();
    }
    assert_eq!((queue.try_send(text("x")), queue.waiting()), (Err(NotSent::Full), 3));
    assert!(tokio::time::timeout(20 * MS, queue.send(text("x"))).await.is_err(), "it waits");
    assert!(tokio::time::timeout(20 * MS, queue.flush()).await.is_err());
    let mut refuse = FAST.websocket(&url).unwrap().outbox(Outbox::Refuse(3)).open();
    assert_eq!(refuse.send(text("x")).await, Err(NotSent::Away));
    drop(listener);
}

#[tokio::test]
async fn what_waited_while_away_is_sent_when_it_is_back() {
    let (listener, url) = mute().await;
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let mut socket = FAST.unlimited_attempts().websocket(&url).unwrap().open();
    for n in 0..5 {
        socket.send(text(&n.to_string())).await.unwrap();
    }
    tokio::time::sleep(50 * MS).await;
    assert!(!socket.is_connected());
    let _server = serve(&address, open_door(), echo).await;
    for n in 0..5 {
        assert_eq!(said(&mut socket).await, n.to_string());
    }
}

async fn has_ended(log: &Log) {
    let begin = Instant::now();
    while log.lines().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(5), "the server never saw the end");
        tokio::time::sleep(MS).await;
    }
}

/// A server that writes down how connections end.
async fn watching(log: &Log) -> Server {
    let log = log.clone();
    serve("127.0.0.1:0", open_door(), move |_, mut socket: Socket| {
        let log = log.clone();
        async move {
            let mut said = vec![];
            while let Some(Ok(message)) = socket.next().await {
                match message {
                    Message::Close(frame) => said.push(frame.map_or(0, |frame| frame.code.into()).to_string()),
                    message => said.push(message.to_string()),
                }
            }
            log.add(said.join(" "));
        }
    })
    .await
}

#[tokio::test]
async fn closing_says_everything_first_and_dropping_ends_at_once() {
    for outbox in [Outbox::Queue(9), Outbox::Repeat(9)] {
        let log = Log::default();
        let server = watching(&log).await;
        let mut socket = FAST.websocket(server.url()).unwrap().outbox(outbox).open();
        socket.send(text("a")).await.unwrap();
        socket.send(text("b")).await.unwrap();
        socket.close().await;
        has_ended(&log).await;
        let line = log.lines().remove(0);
        assert!(line.starts_with("a b") && line.ends_with("1000"), "{line:?}");
        assert!(next(&mut socket).await.is_none());
    }
    let log = Log::default();
    let server = watching(&log).await;
    let mut socket = FAST.websocket(server.url()).unwrap().open();
    socket.send(text("a")).await.unwrap();
    socket.flush().await.unwrap();
    tokio::time::sleep(20 * MS).await;
    drop(socket);
    has_ended(&log).await;

    let (_listener, url) = mute().await;
    let mut away = FAST.websocket(&url).unwrap().open();
    tokio::time::timeout(Duration::from_secs(2), away.close()).await.expect("nothing is left to say");
}

#[tokio::test]
async fn it_is_cancelled_connected_or_not() {
    let server = serve("127.0.0.1:0", open_door(), echo).await;
    let (_listener, mute) = mute().await;
    for url in [server.url(), mute] {
        let switch = Cancel::new();
        let mut socket = FAST.cancel(&switch).websocket(&url).unwrap().open();
        tokio::time::sleep(30 * MS).await;
        switch.cancel();
        assert_eq!(next(&mut socket).await.unwrap().unwrap_err().reason, Reason::Cancelled);
    }
}

#[tokio::test]
async fn on_an_upstream_connections_are_attempts_and_its_breaker_ends_them() {
    let feed: &'static Upstream = Box::leak(Box::new(Upstream::new("feed").breaker(Breaker::consecutive(2))));
    let (listener, url) = mute().await;
    drop(listener);
    let mut socket = FAST.on(feed).websocket(&url).unwrap().open();
    let err = next(&mut socket).await.unwrap().unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Open, 2));
    feed.release();
    let server = serve("127.0.0.1:0", open_door(), echo).await;
    let mut socket = FAST.on(feed).websocket(server.url()).unwrap().open();
    socket.send(text("x")).await.unwrap();
    assert_eq!(said(&mut socket).await, "x");
    let seen = feed.snapshot();
    assert_eq!((seen.calls, seen.attempts), (2, 3));
}

#[tokio::test]
async fn a_hook_that_panics_ends_it_and_hangs_nobody() {
    let server = serve("127.0.0.1:0", open_door(), echo).await;
    let mut socket = FAST.websocket(server.url()).unwrap().subscribe(|_| panic!("on purpose")).open();
    assert!(next(&mut socket).await.is_none());
    assert_eq!(socket.send(text("x")).await, Err(NotSent::Ended));
}

#[test]
fn what_is_no_url_is_refused() {
    for url in ["", "http://127.0.0.1/", "ws:", "ws://", "/", "ws://[::1", "mailto:x"] {
        assert!(FAST.websocket(url).is_err(), "{url:?}");
    }
}

#[tokio::test]
async fn messages_that_are_too_large_end_it() {
    let server = serve("127.0.0.1:0", open_door(), async |_, mut socket: Socket| {
        let _ = socket.send(text(&"x".repeat(1001))).await;
        echo(1, socket).await;
    });
    let server = server.await;
    let mut socket = FAST.websocket(server.url()).unwrap().largest_message(1000).open();
    let err = next(&mut socket).await.unwrap().unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Permanent, 1), "{err}");
}

#[tokio::test]
async fn those_that_were_well_come_back_as_newcomers_at_random_moments() {
    const CLIENTS: usize = 40;
    let (lose, log) = (Arc::new(tokio::sync::Notify::new()), Arc::new(Mutex::new(vec![])));
    let door = {
        let log = log.clone();
        Arc::new(move |attempt| {
            log.lock().unwrap().push((Instant::now(), attempt));
            Ok(())
        })
    };
    let server = serve("127.0.0.1:0", door, {
        let lose = lose.clone();
        move |_, socket| {
            let lose = lose.clone();
            async move {
                lose.notified().await;
                drop(socket);
            }
        }
    });
    let server = server.await;
    let sockets: Vec<WebSocket> = (0..CLIENTS)
        .map(|_| {
            let opening = FAST.websocket(server.url()).unwrap();
            opening.healthy_after(50 * MS).rejoin_within(600 * MS).open()
        })
        .collect();
    while !sockets.iter().all(WebSocket::is_connected) {
        tokio::time::sleep(5 * MS).await;
    }
    tokio::time::sleep(100 * MS).await;
    log.lock().unwrap().clear();
    let lost = Instant::now();
    lose.notify_waiters();
    while log.lock().unwrap().len() < CLIENTS {
        assert!(lost.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(5 * MS).await;
    }
    let back: Vec<(Duration, u32)> =
        log.lock().unwrap().iter().map(|(at, attempt)| (at.duration_since(lost), *attempt)).collect();
    assert!(back.iter().all(|(_, attempt)| *attempt == 1), "each is a newcomer: {back:?}");
    // Of forty that draw from 600 ms, no fewer than six fall on either side of 300 ms but once in a million times.
    let early = back.iter().filter(|(after, _)| *after < 300 * MS).count();
    assert!((6..=34).contains(&early), "{early} of {CLIENTS} in the first half: {back:?}");
}
