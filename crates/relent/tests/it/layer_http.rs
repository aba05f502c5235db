//! Layers over `http::Request`: what is repeated, what is said, what goes up.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use relent::{
    Breaker, Jitter, Policy, Reason, Upstream,
    layer::{Peeked, ReplayBody, TimeLeft},
    wire::{IDEMPOTENCY_KEY, RELENT_ATTEMPT, RELENT_ATTEMPTS, RELENT_DEADLINE, Rules},
};
use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{poll_fn, ready},
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt, service_fn};

const SEC: Duration = Duration::from_secs(1);
const POLICY: Policy = Policy::constant(SEC).jitter(Jitter::None).max_attempts(3);

type Answer = Result<Response<String>, io::ErrorKind>;

/// Method, URI, headers and body.
type Came = (Method, String, HeaderMap, String);

/// What came, and what is answered to it, in this order; after the last it is 200.
#[derive(Clone, Default)]
struct Server {
    came: Arc<Mutex<Vec<Came>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

impl Server {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Server {
        Server { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Server::default() }
    }

    fn service(
        &self,
    ) -> impl Service<Request<String>, Response = Response<String>, Error = io::Error, Future: Send> + Clone + Send + 'static
    {
        let server = self.clone();
        service_fn(move |request: Request<String>| {
            let (head, body) = request.into_parts();
            let came = (head.method, head.uri.to_string(), head.headers, body);
            server.came.lock().unwrap().push(came);
            let answer = server.answers.lock().unwrap().pop_front();
            ready(answer.unwrap_or_else(|| Ok(Response::new("ok".into()))).map_err(io::Error::from))
        })
    }

    fn came(&self) -> usize {
        self.came.lock().unwrap().len()
    }

    fn header(&self, name: impl AsRef<str>) -> Vec<Option<String>> {
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        self.came.lock().unwrap().iter().map(|(_, _, headers, _)| headers.get(name.as_ref()).map(text)).collect()
    }
}

fn status(code: u16, headers: &[(&'static str, &str)]) -> Answer {
    let mut answer = Response::new(format!("words of {code}"));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    for (name, value) in headers {
        answer.headers_mut().append(*name, value.parse().unwrap());
    }
    Ok(answer)
}

fn busy() -> Answer {
    status(503, &[])
}

fn request(method: Method, path: &str) -> Request<String> {
    let request = Request::builder().method(method).uri(path).header("x-mine", "kept");
    request.body("body".into()).unwrap()
}

fn get() -> Request<String> {
    request(Method::GET, "/accounts/7?all")
}

fn post() -> Request<String> {
    request(Method::POST, "/pay")
}

fn some<const N: usize>(values: [&str; N]) -> Vec<Option<String>> {
    values.into_iter().map(|value| Some(value.to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_transient_is_asked_for_again_as_it_was() {
    let server = Server::new([busy(), Err(io::ErrorKind::ConnectionReset)]);
    let answer = POLICY.layer().layer(server.service()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status(), answer.body().as_str()), (StatusCode::OK, "ok"));
    for (method, uri, headers, body) in &*server.came.lock().unwrap() {
        assert_eq!((method, uri.as_str(), body.as_str()), (&Method::GET, "/accounts/7?all", "body"));
        assert_eq!(headers["x-mine"], "kept");
    }
    let attempts = vec![None, Some("2".into()), Some("3".into())];
    assert_eq!(server.header(RELENT_ATTEMPT), attempts, "the first is the first without saying so");
    assert_eq!(server.header("grpc-previous-rpc-attempts"), vec![None; 3]);
}

#[tokio::test(start_paused = true)]
async fn attempts_of_callers_before_this_one_are_added() {
    let server = Server::new([busy()]);
    let mut request = get();
    request.headers_mut().insert("relent-attempt", "2".parse().unwrap());
    POLICY.layer().layer(server.service()).oneshot(request).await.unwrap();
    assert_eq!(server.header(RELENT_ATTEMPT), some(["2", "3"]));
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_goes_up_as_it_came() {
    let server = Server::new((0..9).map(|nth| status(500 + nth, &[("x-theirs", "kept")])));
    let answer = POLICY.layer().layer(server.service()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.body().as_str()), (501, "words of 501"), "501 is permanent");
    let server = Server::new((0..9).map(|_| status(503, &[("x-theirs", "kept")])));
    let answer = POLICY.layer().layer(server.service()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.body().as_str(), server.came()), (503, "words of 503", 3));
    assert_eq!(answer.headers()["x-theirs"], "kept");
    assert!(!answer.headers().contains_key("relent"), "unless it is asked for");
}

#[tokio::test(start_paused = true)]
async fn overloaded_goes_up_unchanged_and_nobody_multiplies_it() {
    let server = Server::new((0..9).map(|_| status(503, &[("relent-retry", "no"), ("retry-after", "1")])));
    let three_layers = POLICY.layer().layer(POLICY.layer().layer(POLICY.layer().layer(server.service())));
    let answer = three_layers.oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.body().as_str(), server.came()), (503, "words of 503", 1));
    assert_eq!(
        (&answer.headers()["relent-retry"], &answer.headers()["retry-after"]),
        (&"no".parse().unwrap(), &"1".parse().unwrap())
    );
}

#[tokio::test(start_paused = true)]
async fn layers_within_layers_do_not_multiply_answers() {
    let server = Server::new((0..99).map(|_| busy()));
    let twice = POLICY.layer().layer(POLICY.layer().layer(server.service()));
    assert_eq!(twice.oneshot(get()).await.unwrap().status().as_u16(), 503);
    assert_eq!(server.came(), 3);
}

#[tokio::test(start_paused = true)]
async fn pushbacks_are_kept_and_lies_do_no_harm() {
    let took = async |headers: &[(&'static str, &str)]| {
        let server = Server::new([status(503, headers)]);
        let begin = Instant::now();
        let answer = POLICY.layer().layer(server.service()).oneshot(get()).await.unwrap();
        (answer.status().as_u16(), begin.elapsed())
    };
    let secs = |n| Duration::from_secs(n);
    assert_eq!(took(&[("retry-after", "7")]).await, (200, secs(7)));
    assert_eq!(took(&[("retry-after", "7"), ("retry-after-ms", "9000")]).await, (200, secs(9)), "the longest");
    assert_eq!(took(&[("relent-turn", "1234"), ("retry-after", "2")]).await, (200, Duration::from_millis(1234)));
    assert_eq!(took(&[("retry-after", "100000000000")]).await, (503, Duration::ZERO), "given up at once");
    assert_eq!(took(&[("retry-after", "-1"), ("retry-after-ms", "nonsense")]).await, (200, SEC));
    let long = "x".repeat(64 << 10);
    assert_eq!(took(&[("retry-after", &long), ("relent-turn", &long)]).await, (200, SEC));
    assert_eq!(took(&[("grpc-retry-pushback-ms", "-1")]).await, (503, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_post_is_never_doubled() {
    let once = async |failure: Answer| {
        let server = Server::new([failure]);
        let outcome = POLICY.layer().layer(server.service()).oneshot(post()).await;
        (server.came(), outcome.map(|answer| answer.status().as_u16()).map_err(|err| err.reason))
    };
    assert_eq!(once(busy()).await, (1, Ok(503)));
    assert_eq!(once(status(429, &[("retry-after", "1")])).await, (1, Ok(429)));
    for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::TimedOut, io::ErrorKind::UnexpectedEof] {
        assert_eq!(once(Err(kind)).await, (1, Err(Reason::NotIdempotent)), "{kind}");
    }
    assert_eq!(once(Err(io::ErrorKind::ConnectionRefused)).await, (2, Ok(200)), "it never left");
}

#[tokio::test(start_paused = true)]
async fn a_post_with_a_key_is_repeated_with_the_same_key() {
    let server = Server::new([busy(), busy()]);
    let mut request = post();
    request.headers_mut().insert(IDEMPOTENCY_KEY, "\"mine\"".parse().unwrap());
    POLICY.layer().layer(server.service()).oneshot(request).await.unwrap();
    assert_eq!(server.header(IDEMPOTENCY_KEY), some(["\"mine\"", "\"mine\"", "\"mine\""]));

    // Keys that the layer makes: one a call, for what is not idempotent; also where the first attempt had to wait.
    for policy in [POLICY, POLICY.timeout(60 * SEC)] {
        let server = Server::new([busy(), busy(), Ok(Response::new("ok".into())), busy()]);
        let mut client = policy.layer().idempotency_keys().layer(server.service());
        for request in [post(), post(), get()] {
            assert_eq!(client.ready().await.unwrap().call(request).await.unwrap().status().as_u16(), 200);
        }
        let keys = server.header(IDEMPOTENCY_KEY);
        assert!(keys[0].is_some() && keys[0] == keys[1] && keys[1] == keys[2], "{keys:?}");
        assert!(keys[3].is_some() && keys[3] == keys[4] && keys[3] != keys[0], "{keys:?}");
        assert_eq!(keys[5..], [None], "a GET needs none");
    }
}

#[tokio::test(start_paused = true)]
async fn the_user_may_say_otherwise() {
    let server = Server::new([busy()]);
    POLICY.layer().repeat_unsafe().layer(server.service()).oneshot(post()).await.unwrap();
    assert_eq!(server.came(), 2);
    let server = Server::new([status(409, &[]), busy()]);
    let rules = Rules::default().retry_on(StatusCode::CONFLICT).stop_on(StatusCode::SERVICE_UNAVAILABLE);
    let answer = POLICY.layer().rules(rules).layer(server.service()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), server.came()), (503, 2));
    let server = Server::new([Err(io::ErrorKind::ConnectionReset)]);
    let judge = |err: &io::Error| err.kind() != io::ErrorKind::ConnectionReset;
    let err = POLICY.when(judge).layer().layer(server.service()).oneshot(get()).await.unwrap_err();
    assert_eq!((err.reason, server.came()), (Reason::Permanent, 1));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_sent_once() {
    let server = Server::new([busy()]);
    let answer = POLICY.layer().body_limit(3).record().layer(server.service()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), server.came()), (503, 1));
    assert_eq!(answer.headers()["relent"], "attempts=1; reason=too_large");
}

#[tokio::test(start_paused = true)]
async fn what_became_of_a_call_is_recorded_where_asked() {
    let record = async |answers: Vec<Answer>, request| {
        let server = Server::new(answers);
        let answer = POLICY.layer().record().layer(server.service()).oneshot(request).await.unwrap();
        answer.headers()["relent"].to_str().unwrap().to_owned()
    };
    assert_eq!(record(vec![], get()).await, "attempts=1");
    assert_eq!(record(vec![busy()], get()).await, "attempts=2");
    assert_eq!(record(vec![busy(), busy(), busy()], get()).await, "attempts=3; reason=attempts");
    assert_eq!(record(vec![busy()], post()).await, "attempts=1; reason=not_idempotent");
    assert_eq!(record(vec![status(404, &[])], get()).await, "attempts=1; reason=permanent");
    let told = vec![status(503, &[("retry-after", "1000")])];
    assert_eq!(record(told, get()).await, "attempts=1; reason=pushback_too_long; pushback_ms=1000000");
}

#[tokio::test(start_paused = true)]
async fn policies_are_chosen_by_method_path_and_rule_on_one_upstream() {
    static BANK: Upstream = Upstream::new("bank").breaker(Breaker::consecutive(100));
    let only = |attempts| Policy::immediate().max_attempts(attempts);
    let server = Server::new((0..99).map(|_| busy()));
    let layer = only(2).on(&BANK).layer().path("/pay", only(3)).writes(only(4));
    let layer = layer.choose(move |head| head.headers.contains_key("x-batch").then_some(only(5))).repeat_unsafe();
    let mut client = layer.layer(server.service());
    let mut batch = get();
    batch.headers_mut().insert("x-batch", "1".parse().unwrap());
    let put = request(Method::PUT, "/accounts/7");
    for (request, attempts) in [(get(), 2), (post(), 3), (put, 4), (batch, 5)] {
        let before = server.came();
        client.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(server.came() - before, attempts);
    }
    assert_eq!(BANK.snapshot().attempts, 14);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_passed_on() {
    let server = Server::new([busy(), busy()]);
    POLICY.timeout(10 * SEC).layer().layer(server.service()).oneshot(get()).await.unwrap();
    assert_eq!(server.header(RELENT_DEADLINE), some(["10000", "9000", "8000"]));

    // Of a handler's own caller, of the request's own header, and the least of all.
    let server = Server::new([]);
    let mut client = POLICY.timeout(10 * SEC).layer().layer(server.service());
    TimeLeft::new(4 * SEC).scope(async { client.ready().await.unwrap().call(get()).await }).await.unwrap();
    let mut with_extension = get();
    with_extension.extensions_mut().insert(TimeLeft::new(3 * SEC));
    client.ready().await.unwrap().call(with_extension).await.unwrap();
    let mut grpc = get();
    grpc.headers_mut().insert("content-type", "application/grpc+proto".parse().unwrap());
    grpc.headers_mut().insert("grpc-timeout", "2S".parse().unwrap());
    client.ready().await.unwrap().call(grpc).await.unwrap();
    assert_eq!(server.header(RELENT_DEADLINE), some(["4000", "3000", "2000"]));
    assert_eq!(server.header("grpc-timeout"), vec![None, None, Some("2000000u".into())]);
}

#[tokio::test(start_paused = true)]
async fn servers_are_told_the_attempts_of_the_last_minute() {
    let server = Server::new([busy(), busy()]);
    let mut client = POLICY.layer().histogram().layer(server.service());
    for _ in 0..2 {
        client.ready().await.unwrap().call(get()).await.unwrap();
        tokio::time::sleep(SEC).await;
    }
    assert_eq!(server.header(RELENT_ATTEMPTS), some(["1=1", "1=1,2=1", "1=1,2=1,3=1", "1=2,2=1,3=1"]));
}

#[tokio::test(start_paused = true)]
async fn grpc_is_judged_by_its_status() {
    let took = async |code: &str, more: &[(&'static str, &str)]| {
        let headers = [&[("content-type", "application/grpc"), ("grpc-status", code)], more].concat();
        let server = Server::new([status(200, &headers)]);
        let mut request = post();
        request.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
        let begin = Instant::now();
        POLICY.layer().layer(server.service()).oneshot(request).await.unwrap();
        (server.came(), begin.elapsed(), server.header("grpc-previous-rpc-attempts").pop().flatten())
    };
    let again = |wait| (2, wait, Some("1".to_owned()));
    let once = (1, Duration::ZERO, None);
    assert_eq!(took("0", &[]).await, once);
    assert_eq!(took("14", &[]).await, again(SEC));
    assert_eq!(took("14", &[("grpc-retry-pushback-ms", "2500")]).await, again(Duration::from_millis(2500)));
    assert_eq!(took("14", &[("grpc-retry-pushback-ms", "-1")]).await, once);
    assert_eq!(took("14", &[("grpc-retry-pushback-ms", "abc")]).await, once);
    assert_eq!(took("8", &[]).await, once, "perhaps a quota of a day");
    assert_eq!(took("8", &[("grpc-retry-pushback-ms", "2500")]).await, again(Duration::from_millis(2500)));
    for code in ["1", "2", "3", "4", "5", "6", "7", "9", "10", "11", "12", "13", "15", "16", "", "140", "x"] {
        assert_eq!(took(code, &[]).await, once, "{code:?}");
    }
}

/// A body of pieces, that counts how often it was read.
#[derive(Clone, Default)]
struct Pieces {
    pieces: VecDeque<Piece>,
    read: Arc<Mutex<usize>>,
    is_endless: bool,
    /// What comes after the pieces never comes.
    hangs: bool,
}

#[derive(Clone)]
enum Piece {
    Data(&'static str),
    Trailers(HeaderMap),
}

impl Pieces {
    fn of(pieces: impl IntoIterator<Item = Piece>) -> Pieces {
        Pieces { pieces: pieces.into_iter().collect(), ..Pieces::default() }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        *self.read.lock().unwrap() += 1;
        match self.pieces.pop_front() {
            Some(Piece::Data(text)) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(text.as_bytes()))))),
            Some(Piece::Trailers(trailers)) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            None if self.is_endless => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; 1000]))))),
            None if self.hangs => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_wants_is_read_to_its_end_if_that_is_near() {
    let read = async |body: Pieces| {
        let (count, begin) = (body.read.clone(), Instant::now());
        let answers = Arc::new(Mutex::new(vec![Response::new(Pieces::default()), {
            let mut answer = Response::new(body);
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            answer
        }]));
        let service =
            service_fn(move |_: Request<String>| ready(Ok::<_, io::Error>(answers.lock().unwrap().pop().unwrap())));
        POLICY.layer().layer(service).oneshot(get()).await.unwrap();
        (*count.lock().unwrap(), begin.elapsed())
    };
    assert_eq!(read(Pieces::of([Piece::Data("a"), Piece::Data("b")])).await, (3, SEC));
    let (frames, _) = read(Pieces { is_endless: true, ..Pieces::default() }).await;
    assert_eq!(frames, 66, "64 KiB of it and no more");
    assert_eq!(read(Pieces { hangs: true, ..Pieces::default() }).await.1, SEC + Duration::from_millis(50));
}

fn trailers(code: &'static str) -> Piece {
    Piece::Trailers(HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static(code))]))
}

/// One call to a gRPC server that answers with these bodies in turn; its answer, how long that took, how many requests came.
async fn grpc(request: Pieces, answers: Vec<Pieces>) -> (Response<Peeked<Pieces>>, Duration, Vec<String>) {
    let came = Arc::new(Mutex::new(vec![]));
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let seen = came.clone();
    let service = service_fn(move |request: Request<ReplayBody<Pieces>>| {
        let (seen, answer) = (seen.clone(), answers.lock().unwrap().pop_front().unwrap());
        async move {
            let mut body = request.into_body();
            let mut text = String::new();
            while let Poll::Ready(Some(Ok(frame))) = poll_fn(|cx| Poll::Ready(Pin::new(&mut body).poll_frame(cx))).await
            {
                text += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
            }
            seen.lock().unwrap().push(text);
            let answer = Response::builder().header("content-type", "application/grpc").body(answer).unwrap();
            Ok::<_, io::Error>(answer)
        }
    });
    let request = Request::post("/svc/method").header("content-type", "application/grpc").body(request).unwrap();
    let begin = Instant::now();
    let answer = POLICY.layer().replay(|body| body).layer(service).oneshot(request).await.unwrap();
    let came = came.lock().unwrap().clone();
    (answer, begin.elapsed(), came)
}

async fn rest(mut body: Peeked<Pieces>) -> (String, Option<HeaderMap>) {
    let (mut text, mut last) = (String::new(), None);
    while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame.into_data() {
            Ok(data) => text += std::str::from_utf8(&data).unwrap(),
            Err(frame) => last = frame.into_trailers().ok(),
        }
    }
    (text, last)
}

#[tokio::test(start_paused = true)]
async fn a_grpc_status_in_trailers_is_retried_and_goes_up_as_it_came() {
    let message = || Pieces::of([Piece::Data("re"), Piece::Data("quest")]);
    let fails = || Pieces::of([trailers("14")]);
    let answers = Pieces::of([Piece::Data("answer"), trailers("0")]);
    let (answer, took, came) = grpc(message(), vec![fails(), fails(), answers]).await;
    assert_eq!((took, came), (2 * SEC, vec!["request".to_owned(); 3]));
    let (text, last) = rest(answer.into_body()).await;
    assert_eq!((text.as_str(), last.unwrap()["grpc-status"].to_str().unwrap()), ("answer", "0"));

    let (answer, _, came) = grpc(message(), vec![fails(), fails(), fails()]).await;
    let (text, last) = rest(answer.into_body()).await;
    assert_eq!((text.as_str(), last.unwrap()["grpc-status"].to_str().unwrap(), came.len()), ("", "14", 3));

    let (_, took, came) = grpc(message(), vec![Pieces::of([Piece::Data("part"), trailers("14")])]).await;
    assert_eq!((took, came.len()), (Duration::ZERO, 1), "after the first message it is the caller's");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_says_nothing_yet_is_handed_over() {
    let quiet = || Pieces { hangs: true, ..Pieces::default() };
    let (_, took, _) = grpc(Pieces::of([Piece::Data("all")]), vec![quiet()]).await;
    assert_eq!(took, Duration::from_millis(100), "a moment");
    let still_talking = Pieces { hangs: true, ..Pieces::of([Piece::Data("part")]) };
    let (_, took, came) = grpc(still_talking, vec![quiet()]).await;
    assert_eq!((took, came), (Duration::ZERO, vec!["part".to_owned()]), "the server may be waiting for more");
}

#[tokio::test(start_paused = true)]
async fn a_recorded_body_that_is_too_large_is_sent_once() {
    let server = Arc::new(Mutex::new(vec![]));
    let seen = server.clone();
    let service = service_fn(move |request: Request<ReplayBody<Pieces>>| {
        let seen = seen.clone();
        async move {
            let mut body = request.into_body();
            let mut size = 0;
            while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                size += frame.data_ref().unwrap().len();
            }
            seen.lock().unwrap().push(size);
            Ok::<_, io::Error>(busy().unwrap())
        }
    });
    for (limit, sent) in [(6, vec![6, 6, 6]), (5, vec![6])] {
        let body = Pieces::of([Piece::Data("abc"), Piece::Data("def")]);
        let layer = POLICY.layer().body_limit(limit).record().replay(|body| body);
        let answer = layer.layer(service.clone()).oneshot(get().map(|_| body)).await.unwrap();
        assert_eq!(std::mem::take(&mut *server.lock().unwrap()), sent);
        let reason = if sent.len() == 1 { "too_large" } else { "attempts" };
        assert_eq!(answer.headers()["relent"], format!("attempts={}; reason={reason}", sent.len()));
    }
}

/// Whoever uploads is gone in the middle of it, and what is polled after that says that it has ended.
struct Upload(u8);

impl Body for Upload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0 += 1;
        Poll::Ready(match self.0 {
            1 => Some(Ok(Frame::data(Bytes::from_static(b"half")))),
            2 => Some(Err(io::ErrorKind::ConnectionReset.into())),
            _ => None,
        })
    }
}

#[tokio::test(start_paused = true)]
async fn half_a_body_is_never_sent_as_a_whole() {
    let came = Arc::new(Mutex::new(vec![]));
    let seen = came.clone();
    let service = service_fn(move |request: Request<ReplayBody<Upload>>| {
        let seen = seen.clone();
        async move {
            let mut body = request.into_body();
            loop {
                match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                    Some(Ok(_)) => {}
                    // As hyper says it of a stream of HTTP/2.
                    Some(Err(_)) => return Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                    None => break,
                }
            }
            seen.lock().unwrap().push(());
            Ok(Response::new(String::new()))
        }
    });
    let request = get().map(|_| Upload(0));
    let error = POLICY.layer().replay(|body| body).layer(service).oneshot(request).await.unwrap_err();
    assert_eq!((error.reason, error.attempts), (Reason::Permanent, 1));
    assert!(came.lock().unwrap().is_empty());
}
