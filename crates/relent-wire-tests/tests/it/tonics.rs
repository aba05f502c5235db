//! A layer around tonic's channel, with servers of HTTP/2 that answer as gRPC's do.

use bytes::{Buf, BufMut, Bytes};
use http::{HeaderMap, Request, Response, uri::PathAndQuery};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use relent::{Breaker, Jitter, Policy, Upstream};
use std::{
    convert::Infallible,
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use tonic::{
    Code, Status,
    client::GrpcService,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::{Channel, Endpoint},
};
use tower::Layer;

const POLICY: Policy = Policy::constant(Duration::from_millis(5)).jitter(Jitter::None).max_attempts(3);

/// Messages are bytes.
#[derive(Clone, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

type Frames = BoxBody<Bytes, Infallible>;
type Answer = Response<Frames>;

fn message(text: &str) -> Frame<Bytes> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    Frame::data(bytes.into())
}

fn trailers(code: &str, more: &[(&'static str, &str)]) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.parse().unwrap());
    for (name, value) in more {
        trailers.insert(*name, value.parse().unwrap());
    }
    trailers
}

fn stream(frames: Vec<Frame<Bytes>>) -> Answer {
    let frames = tokio_stream::iter(frames.into_iter().map(Ok));
    let answer = Response::builder().header("content-type", "application/grpc");
    answer.body(BodyExt::boxed(StreamBody::new(frames))).unwrap()
}

fn fails(more: &[(&'static str, &str)]) -> Answer {
    stream(vec![Frame::trailers(trailers("14", more))])
}

fn works() -> Answer {
    stream(vec![message("answer"), Frame::trailers(trailers("0", &[]))])
}

type Came = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// Answers requests, whole, with what `answer` makes of their number.
async fn server(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> (Channel, Came) {
    let came = Came::default();
    let (seen, answer) = (came.clone(), Arc::new(answer));
    let channel = serve(move |request: Request<Incoming>| {
        let (seen, answer) = (seen.clone(), answer.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let before = {
                let mut came = seen.lock().unwrap();
                came.push((head.headers, body));
                came.len() - 1
            };
            answer(before)
        }
    });
    (channel.await, came)
}

async fn serve<F>(handler: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static) -> Channel
where
    F: Future<Output = Answer> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let handler = handler.clone();
            let service = service_fn(move |request| {
                let answer = handler(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let connection = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    Endpoint::from_shared(url).unwrap().connect().await.unwrap()
}

const PATH: &str = "/test.Bank/Pay";

async fn unary(channel: Channel, request: tonic::Request<Bytes>) -> Result<Bytes, Status> {
    let layer = POLICY.layer().errors::<tonic::transport::Error>().replay(tonic::body::Body::new);
    ask(layer.layer(channel), request).await
}

async fn ask<S>(service: S, request: tonic::Request<Bytes>) -> Result<Bytes, Status>
where
    S: GrpcService<tonic::body::Body, ResponseBody: Send + 'static>,
    <S::ResponseBody as http_body::Body>::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut client = tonic::client::Grpc::new(service);
    client.ready().await.map_err(|err| Status::from_error(err.into()))?;
    client.unary(request, PathAndQuery::from_static(PATH), Raw).await.map(tonic::Response::into_inner)
}

fn request() -> tonic::Request<Bytes> {
    tonic::Request::new("request".into())
}

#[tokio::test]
async fn unavailable_in_trailers_is_retried() {
    let (channel, came) = server(|before| if before < 2 { fails(&[]) } else { works() }).await;
    assert_eq!(unary(channel, request()).await.unwrap(), "answer");
    let came = came.lock().unwrap();
    let previous: Vec<_> = came.iter().map(|(headers, _)| headers.get("grpc-previous-rpc-attempts").cloned()).collect();
    assert_eq!(previous, [None, Some("1".parse().unwrap()), Some("2".parse().unwrap())]);
    assert!(came.iter().all(|(_, body)| body.ends_with(b"request") && body.len() == 12), "whole, each time");
}

#[tokio::test]
async fn unavailable_in_headers_is_retried_and_the_last_goes_up() {
    let in_head = || {
        let mut answer = stream(vec![]);
        answer.headers_mut().extend(trailers("14", &[("grpc-message", "words")]));
        answer
    };
    let (channel, came) = server(move |_| in_head()).await;
    let status = unary(channel, request()).await.unwrap_err();
    assert_eq!((status.code(), status.message(), came.lock().unwrap().len()), (Code::Unavailable, "words", 3));
}

#[tokio::test]
async fn a_pushback_is_obeyed_and_a_negative_one_ends() {
    let told = |told: &'static str| {
        server(move |before| if before == 0 { fails(&[("grpc-retry-pushback-ms", told)]) } else { works() })
    };
    let (channel, _) = told("120").await;
    let begin = Instant::now();
    unary(channel, request()).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(120));
    for never in ["-1", "soon"] {
        let (channel, came) = told(never).await;
        assert_eq!(unary(channel, request()).await.unwrap_err().code(), Code::Unavailable);
        assert_eq!(came.lock().unwrap().len(), 1, "{never}");
    }
}

/// `google.rpc.Status { code: 14, details: [RetryInfo { retry_delay: 120 ms }] }`.
#[tokio::test]
async fn retry_info_is_obeyed() {
    let pushback = relent::wire::Pushback::NotBefore(Duration::from_millis(120));
    let row = relent::wire::DIALECTS.iter().find(|row| row.name == "grpc-status-details-bin").unwrap();
    let details = row.write(pushback).unwrap().to_str().unwrap().to_owned();
    let (channel, _) =
        server(move |before| if before == 0 { fails(&[("grpc-status-details-bin", &details)]) } else { works() }).await;
    let begin = Instant::now();
    unary(channel, request()).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(120));
}

#[tokio::test]
async fn a_deadline_is_for_the_whole_call_and_is_passed_on() {
    let (channel, came) = server(|_| fails(&[("grpc-retry-pushback-ms", "100")])).await;
    let mut request = request();
    request.set_timeout(Duration::from_secs(3));
    unary(channel, request).await.unwrap_err();
    let came = came.lock().unwrap();
    let left: Vec<_> = came.iter().map(|(headers, _)| relent::wire::deadline(headers).unwrap()).collect();
    assert_eq!(left.len(), 3);
    assert!(left[0] <= Duration::from_secs(3) && left[1] + Duration::from_millis(100) <= left[0], "{left:?}");
    assert!(left[2] + Duration::from_millis(100) <= left[1], "{left:?}");
}

/// The server sends its head and its first message at once, and then one for each that it is told to; the client sees each as
/// it comes.
#[tokio::test]
async fn streams_stream() {
    let (tell, told) = mpsc::channel::<&'static str>(4);
    let told = Arc::new(Mutex::new(Some(told)));
    let channel = serve(move |_| {
        let frames = ReceiverStream::new(told.lock().unwrap().take().unwrap()).map(|text| Ok(message(text)));
        let answer = Response::builder().header("content-type", "application/grpc");
        std::future::ready(answer.body(BodyExt::boxed(StreamBody::new(frames))).unwrap())
    });
    let layer = POLICY.layer().replay(tonic::body::Body::new);
    let mut client = tonic::client::Grpc::new(layer.layer(channel.await));
    client.ready().await.unwrap();
    // Of both sides: the client does not end its stream either.
    let (ask, asked) = mpsc::channel::<Bytes>(4);
    let asking = tonic::Request::new(ReceiverStream::new(asked));
    let answer = client.streaming(asking, PathAndQuery::from_static(PATH), Raw);
    let answer =
        tokio::time::timeout(Duration::from_secs(5), answer).await.expect("the head is not held back").unwrap();
    let mut messages = answer.into_inner();
    for text in ["one", "two", "three"] {
        ask.send("more".into()).await.unwrap();
        tell.send(text).await.unwrap();
        let message = tokio::time::timeout(Duration::from_secs(5), messages.message()).await.unwrap().unwrap();
        assert_eq!(message.unwrap(), text);
    }
}

#[tokio::test]
async fn after_the_first_message_a_failure_is_the_callers() {
    let late = |_| stream(vec![message("answer"), Frame::trailers(trailers("14", &[]))]);
    let (channel, came) = server(late).await;
    assert_eq!(unary(channel, request()).await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(came.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_open_breaker_is_unavailable_and_says_for_how_long() {
    static DOWN: Upstream =
        Upstream::new("down").breaker(Breaker::consecutive(1).open_for(Duration::from_secs(30)).jitter(0.0));
    let (channel, came) = server(|_| fails(&[])).await;
    let layer = POLICY.max_attempts(1).on(&DOWN).layer().replay(tonic::body::Body::new);
    assert_eq!(ask(layer.layer(channel.clone()), request()).await.unwrap_err().code(), Code::Unavailable);
    let refused = ask(layer.layer(channel), request()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(refused.message().starts_with("breaker open before the first attempt"), "{refused}");
    let pushback: u64 = refused.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap().parse().unwrap();
    assert!((20_000..=30_000).contains(&pushback), "{pushback}");
    assert_eq!(came.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn who_cannot_be_reached_is_unavailable_and_a_layer_around_does_not_try_again() {
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let channel = Endpoint::from_shared(format!("http://{nowhere}")).unwrap().connect_lazy();
    let told = Arc::new(AtomicU32::new(0));
    let tell = told.clone();
    let layer = POLICY
        .when(|_: &tonic::transport::Error| true)
        .notify(move |_| _ = tell.fetch_add(1, Ordering::SeqCst))
        .layer()
        .errors::<tonic::transport::Error>()
        .replay(tonic::body::Body::new);
    let status = ask(layer.layer(channel.clone()), request()).await.unwrap_err();
    assert_eq!((status.code(), told.load(Ordering::SeqCst)), (Code::Unavailable, 2), "{status}");
    assert!(status.message().contains("out of attempts after 3 attempts"), "{status}");
    assert!(status.message().contains("refused"), "down to what it was made of: {status}");

    let around = POLICY.layer().replay(tonic::body::Body::new);
    let status = ask(around.layer(layer.layer(channel)), request()).await.unwrap_err();
    assert_eq!((status.code(), told.load(Ordering::SeqCst)), (Code::Unavailable, 4), "{status}");
}

#[tokio::test]
async fn who_does_not_answer_in_time_has_exceeded_the_deadline() {
    let channel = serve(|_| std::future::pending()).await;
    let layer = POLICY.timeout(Duration::from_millis(100)).layer().replay(tonic::body::Body::new);
    let status = ask(layer.layer(channel), request()).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
}

/// The work is done, and then the connection breaks: nobody knows, so nobody may do it again.
#[tokio::test]
async fn a_call_that_was_cut_off_without_a_status_is_not_doubled() {
    let done = Arc::new(AtomicU32::new(0));
    let count = done.clone();
    let cuts = move |request: Request<Incoming>| {
        let count = count.clone();
        async move {
            _ = request.into_body().collect().await;
            count.fetch_add(1, Ordering::SeqCst);
            panic!("the connection breaks here")
        }
    };
    let status = unary(serve(cuts).await, request()).await.unwrap_err();
    assert_eq!((status.code(), done.load(Ordering::SeqCst)), (Code::Unavailable, 1), "{status}");
}
