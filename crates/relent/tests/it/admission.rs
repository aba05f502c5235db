//! The server's side as a layer: who is let in, what the others are told, and that every place comes back.

use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use relent::{
    Admission, Limit, Pacer, Priority, Scope,
    layer::{AdmissionBody, AdmissionLayer, AdmissionService, Caller, TimeLeft},
};
use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{pending, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, yield_now},
    time::{Instant, sleep},
};
use tower::{Layer, Service, ServiceExt, service_fn};

const MS: Duration = Duration::from_millis(1);

/// A body of so many frames, or one that must not be touched.
enum Frames {
    Some(VecDeque<Result<&'static str, &'static str>>),
    Untouchable,
}

impl Frames {
    fn of(frames: &[Result<&'static str, &'static str>]) -> Frames {
        Frames::Some(frames.iter().copied().collect())
    }
}

impl Body for Frames {
    type Data = &'static [u8];
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<&'static [u8]>, &'static str>>> {
        match &mut *self {
            Frames::Some(frames) => {
                Poll::Ready(frames.pop_front().map(|frame| frame.map(|text| Frame::data(text.as_bytes()))))
            }
            Frames::Untouchable => panic!("the body was touched"),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Frames::Some(frames) if frames.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

type Answer = Response<AdmissionBody<Frames>>;

fn request(headers: &[(&'static str, &str)]) -> Request<Frames> {
    let mut request = Request::new(Frames::Untouchable);
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

async fn ask<S>(service: &S, headers: &[(&'static str, &str)]) -> Answer
where
    S: Service<Request<Frames>, Response = Answer, Error = Infallible> + Clone,
{
    service.clone().ready().await.unwrap().call(request(headers)).await.unwrap()
}

async fn next(answer: &mut Answer) -> Option<Result<(), &'static str>> {
    let mut body = pin!(answer.body_mut());
    poll_fn(|cx| body.as_mut().poll_frame(cx)).await.map(|frame| frame.map(drop))
}

/// A service that answers at once, with two frames.
fn prompt(layer: &AdmissionLayer) -> impl Service<Request<Frames>, Response = Answer, Error = Infallible> + Clone {
    layer.layer(service_fn(async |_: Request<Frames>| Ok(Response::new(Frames::of(&[Ok("a"), Ok("b")])))))
}

fn in_flight(layer: &AdmissionLayer) -> (u32, u32) {
    let limit = layer.snapshot().limit.unwrap();
    (limit.in_flight.unwrap(), limit.queued)
}

fn text<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_place_is_held_until_the_end_of_the_body() {
    let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(1)));
    let service = prompt(&layer);
    let mut answer = ask(&service, &[]).await;
    assert_eq!((answer.status().as_u16(), in_flight(&layer)), (200, (1, 0)));
    assert_eq!(ask(&service, &[]).await.status(), 429);
    assert_eq!((next(&mut answer).await, in_flight(&layer)), (Some(Ok(())), (1, 0)));
    assert_eq!((next(&mut answer).await, in_flight(&layer)), (Some(Ok(())), (0, 0)), "that was the last frame");
    assert_eq!(next(&mut answer).await, None);
    drop(ask(&service, &[]).await);
    assert_eq!(in_flight(&layer), (0, 0), "dropped unread");
    assert_eq!((layer.snapshot().accepted, layer.snapshot().full), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_place_can_be_free_from_the_head_on() {
    let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(1))).until_head();
    let service = prompt(&layer);
    let answer = ask(&service, &[]).await;
    assert_eq!((answer.status().as_u16(), in_flight(&layer)), (200, (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_has_no_place_for_ever() {
    for (version, reads) in [(http::Version::HTTP_11, true), (http::Version::HTTP_2, false)] {
        let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(1))).body_at_most(50 * MS);
        let service = prompt(&layer);
        let mut request = request(&[]);
        *request.version_mut() = version;
        let mut answer = service.clone().oneshot(request).await.unwrap();
        if reads {
            assert_eq!(next(&mut answer).await, Some(Ok(())), "the first of two frames");
        }
        sleep(49 * MS).await;
        assert_eq!(in_flight(&layer), (1, 0), "{version:?}");
        sleep(2 * MS).await;
        assert_eq!(in_flight(&layer), (0, 0), "{version:?}");
        assert_eq!(ask(&service, &[]).await.status(), 200, "its place is another's");
        while let Some(frame) = next(&mut answer).await {
            frame.unwrap();
        }
        assert_eq!(in_flight(&layer), (0, 0), "and is not given back again");
    }
}

#[tokio::test(start_paused = true)]
async fn every_place_comes_back() {
    let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(2)));

    let panics = layer.layer(service_fn(async |_: Request<Frames>| -> Result<Response<Frames>, Infallible> {
        yield_now().await;
        panic!("as handlers do")
    }));
    assert!(tokio::spawn(async move { ask(&panics, &[]).await.status() }).await.is_err());
    assert_eq!(in_flight(&layer), (0, 0), "after a panic");

    let hangs = layer.layer(service_fn(|_: Request<Frames>| pending::<Result<Response<Frames>, Infallible>>()));
    let task = tokio::spawn(async move { ask(&hangs, &[]).await.status() });
    yield_now().await;
    assert_eq!(in_flight(&layer), (1, 0));
    task.abort();
    assert!(task.await.is_err());
    assert_eq!(in_flight(&layer), (0, 0), "after the client has gone");

    let mut fails = layer.layer(service_fn(async |_: Request<Frames>| Err::<Response<Frames>, _>("down")));
    assert_eq!(fails.ready().await.unwrap().call(request(&[])).await.err(), Some("down"));
    assert_eq!(in_flight(&layer), (0, 0), "after an error");

    let breaks = layer.layer(service_fn(async |_: Request<Frames>| {
        Ok(Response::new(Frames::of(&[Ok("a"), Err("cut"), Ok("never")])))
    }));
    let mut answer = ask(&breaks, &[]).await;
    assert_eq!((next(&mut answer).await, in_flight(&layer)), (Some(Ok(())), (1, 0)));
    assert_eq!((next(&mut answer).await, in_flight(&layer)), (Some(Err("cut")), (0, 0)), "after the body broke");

    let empty = layer.layer(service_fn(async |_: Request<Frames>| Ok(Response::new(Frames::of(&[])))));
    let _answer = ask(&empty, &[]).await;
    assert_eq!(in_flight(&layer), (0, 0), "there is no body to wait for");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_whole_answers_and_touch_no_body() {
    let door = Admission::new().limit(Limit::concurrency(1)).pacer(Pacer::capacity(10.0).horizon(250 * MS));
    let layer = AdmissionLayer::new(door);
    let service = prompt(&layer);
    let _inside = ask(&service, &[]).await;

    let mut turn = ask(&service, &[]).await;
    let told = ["retry-after", "retry-after-ms", "relent-turn", "relent-retry"].map(|name| text(&turn, name));
    assert_eq!((turn.status().as_u16(), told), (429, ["1", "100", "100", ""]));
    assert!(turn.body().is_end_stream());
    assert_eq!((turn.body().size_hint().exact(), next(&mut turn).await), (Some(0), None));

    let grpc = ask(&service, &[("content-type", "application/grpc")]).await;
    let told = ["grpc-status", "grpc-retry-pushback-ms", "relent-turn", "content-type"].map(|name| text(&grpc, name));
    assert_eq!((grpc.status().as_u16(), told), (200, ["14", "200", "200", "application/grpc"]));

    let never = ask(&service, &[]).await;
    let told = ["retry-after", "relent-turn", "relent-retry", "x-should-retry"].map(|name| text(&never, name));
    assert_eq!((never.status().as_u16(), told), (429, ["", "", "no", "false"]));
    let snapshot = layer.snapshot();
    assert_eq!((snapshot.accepted, snapshot.turns, snapshot.retries, snapshot.refused()), (1, 2, 1, 3));
}

#[tokio::test(start_paused = true)]
async fn the_status_is_by_scope_unless_said() {
    for (scope, status, expected) in
        [(Scope::Host, None, 503), (Scope::Service, None, 429), (Scope::Service, Some(503), 503)]
    {
        let layer = AdmissionLayer::new(Admission::new().scope(scope).limit(Limit::concurrency(1)));
        let layer = match status {
            Some(status) => layer.status(http::StatusCode::from_u16(status).unwrap()),
            None => layer,
        };
        let service = prompt(&layer);
        let _inside = ask(&service, &[]).await;
        assert_eq!(ask(&service, &[]).await.status(), expected);
        assert_eq!(ask(&service, &[("content-type", "application/grpc")]).await.status(), 200);
    }
}

/// A service that works for 10 ms, at most so many at a time: how many it saw is counted.
fn slow(
    layer: &AdmissionLayer,
    served: Arc<AtomicUsize>,
) -> AdmissionService<
    impl Service<Request<Frames>, Response = Response<Frames>, Error = Infallible, Future: Send> + Clone + Send + use<>,
> {
    layer.layer(service_fn(move |_: Request<Frames>| {
        let served = served.clone();
        async move {
            served.fetch_add(1, Ordering::Relaxed);
            sleep(10 * MS).await;
            Ok(Response::new(Frames::of(&[])))
        }
    }))
}

fn spawn<S>(service: &S, headers: &'static [(&'static str, &'static str)]) -> JoinHandle<u16>
where
    S: Service<Request<Frames>, Response = Answer, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static,
{
    let service = service.clone();
    tokio::spawn(async move { ask(&service, headers).await.status().as_u16() })
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_served_in_turn_or_told_no_in_time() {
    let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(1).queue(3, 25 * MS)));
    let served = Arc::new(AtomicUsize::new(0));
    let service = slow(&layer, served.clone());
    let begin = Instant::now();
    let mut tasks = VecDeque::new();
    for _ in 0..5 {
        tasks.push_back(spawn(&service, &[]));
        yield_now().await;
    }
    assert_eq!((in_flight(&layer), tasks.pop_back().unwrap().await.unwrap()), ((1, 3), 429), "the queue is full");
    for (expected, after) in [(200, 10), (200, 20), (200, 30), (429, 25)] {
        let status = tasks.pop_front().unwrap().await.unwrap();
        assert_eq!(status, expected);
        assert!(begin.elapsed() >= after * MS && begin.elapsed() < 32 * MS, "{:?}", begin.elapsed());
    }
    assert_eq!((in_flight(&layer), served.load(Ordering::Relaxed)), ((0, 0), 3));
    assert_eq!((layer.snapshot().accepted, layer.snapshot().full), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_queue_passes_on_that_there_is_room() {
    let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(1).queue(9, 500 * MS)));
    let service = slow(&layer, Arc::default());
    let tasks: Vec<_> = (0..4).map(|_| spawn(&service, &[])).collect();
    yield_now().await;
    assert_eq!(in_flight(&layer), (1, 3));
    // The one at work, and the one that is woken by it before it has looked.
    tasks[0].abort();
    tasks[1].abort();
    let begin = Instant::now();
    let mut statuses = Vec::new();
    for task in tasks {
        statuses.push(task.await.ok());
    }
    assert_eq!(statuses, [None, None, Some(200), Some(200)]);
    assert!(begin.elapsed() <= 22 * MS, "{:?}", begin.elapsed());
    assert_eq!(in_flight(&layer), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_is_not_begun() {
    let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(10)));
    let served = Arc::new(AtomicUsize::new(0));
    let service = slow(&layer, served.clone());
    assert_eq!(ask(&service, &[("relent-deadline", "0")]).await.status(), 429);
    for _ in 0..50 {
        assert_eq!(ask(&service, &[("relent-deadline", "50")]).await.status(), 200);
    }
    assert_eq!(ask(&service, &[("x-envoy-expected-rq-timeout-ms", "9")]).await.status(), 429);
    let grpc = ask(&service, &[("content-type", "application/grpc"), ("grpc-timeout", "9m")]).await;
    assert_eq!((text(&grpc, "grpc-status"), text(&grpc, "grpc-retry-pushback-ms")), ("8", "-1"));
    assert_eq!((served.load(Ordering::Relaxed), layer.snapshot().hopeless), (50, 3));
    assert_eq!(layer.snapshot().service_time, Some(10 * MS));
}

#[tokio::test(start_paused = true)]
async fn the_handler_knows_its_caller() {
    let layer = AdmissionLayer::new(Admission::new());
    let service = layer.layer(service_fn(async |request: Request<Frames>| {
        let extension = request.extensions().get::<Caller>().copied();
        assert_eq!(request.extensions().get(), TimeLeft::current().as_ref());
        let current = Caller::current();
        sleep(30 * MS).await;
        assert_eq!(Caller::current(), current, "after a wait, too");
        let spawned = tokio::spawn(async { Caller::current() }).await.unwrap();
        let taken_along = tokio::spawn(current.unwrap().scope(async { Caller::current() })).await.unwrap();
        assert_eq!((spawned, taken_along), (None, current));
        let left = current.unwrap().time_left().map_or(0, |time| time.left().as_millis());
        let said = format!("{} {left} {}", current.unwrap().attempt(), extension == current);
        Ok(Response::builder().header("said", said).body(Frames::of(&[])).unwrap())
    }));
    assert_eq!(text(&ask(&service, &[]).await, "said"), "1 0 false");
    let headers = [("grpc-timeout", "100m"), ("relent-deadline", "500"), ("grpc-previous-rpc-attempts", "1")];
    assert_eq!(text(&ask(&service, &headers).await, "said"), "2 70 true");
    assert_eq!(Caller::current(), None);
}

#[tokio::test(start_paused = true)]
async fn a_caller_is_kept_apart_from_the_next_one_and_from_panics() {
    let caller = |attempt| {
        let arrival = relent::Arrival { attempt, ..relent::Arrival::default() };
        Caller::new(relent::Timestamp::ZERO, &arrival)
    };
    let panicked = std::panic::catch_unwind(|| caller(2).within(|| panic!("as handlers do")));
    assert!(panicked.is_err() && Caller::current().is_none());
    let nested = caller(2).within(|| (caller(3).within(Caller::current), Caller::current()));
    assert_eq!(nested, (Some(caller(3)), Some(caller(2))));
    let both = async |number: u32| {
        for _ in 0..5 {
            assert_eq!(Caller::current().unwrap().attempt(), number);
            yield_now().await;
        }
    };
    tokio::join!(caller(4).scope(both(4)), caller(5).scope(both(5)));
    assert_eq!(caller(u32::MAX).attempt_below(u32::MAX), u32::MAX);
    assert_eq!(caller(0).attempt_below(0), 1);
}

#[tokio::test(start_paused = true)]
async fn some_go_first_by_the_users_rule() {
    let layer =
        AdmissionLayer::new(Admission::new().limit(Limit::concurrency(2))).priority(|_, _, headers: &HeaderMap| {
            match headers.get("kind").map(|kind| kind.as_bytes()) {
                Some(b"health") => Priority::Vital,
                Some(b"export") => Priority::Low,
                _ => Priority::Normal,
            }
        });
    let service = prompt(&layer);
    let first = ask(&service, &[("kind", "export")]).await;
    assert_eq!(ask(&service, &[("kind", "export")]).await.status(), 429, "half is for others");
    let second = ask(&service, &[]).await;
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
    assert_eq!(ask(&service, &[]).await.status(), 429);
    assert_eq!(ask(&service, &[("kind", "health")]).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn layers_of_one_admission_share_it() {
    static DOOR: Admission = Admission::new().limit(Limit::concurrency(1));
    let (reads, writes) = (AdmissionLayer::new(&DOOR), AdmissionLayer::new(&DOOR));
    let inside = ask(&prompt(&reads), &[]).await;
    assert_eq!(ask(&prompt(&writes), &[]).await.status(), 429);
    drop(inside);
    assert_eq!(ask(&prompt(&writes), &[]).await.status(), 200);
    assert_eq!((writes.snapshot().accepted, reads.admission().snapshot(relent::Timestamp::ZERO).full), (2, 1));
}

/// A herd of 200 that all come at once to a server of 10 ms; timers are up to a millisecond late, so 90 a second.
#[tokio::test(start_paused = true)]
async fn a_paced_herd_comes_back_as_a_queue() {
    let door = Admission::new().limit(Limit::concurrency(1).queue(40, 500 * MS)).pacer(Pacer::capacity(90.0));
    let layer = AdmissionLayer::new(door);
    let service = slow(&layer, Arc::default());
    let begin = Instant::now();
    let refused = Arc::new(Semaphore::new(0));
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let (service, refused) = (service.clone(), refused.clone());
            tokio::spawn(async move {
                for attempt in 1u32.. {
                    let answer = ask(&service, &[("relent-attempt", &attempt.to_string())]).await;
                    if answer.status() == 200 {
                        return attempt;
                    }
                    refused.add_permits(1);
                    sleep(Duration::from_millis(text(&answer, "relent-turn").parse().unwrap())).await;
                }
                unreachable!()
            })
        })
        .collect();
    let mut most = 0;
    for task in tasks {
        most = most.max(task.await.unwrap());
    }
    let ideal = Duration::from_millis(2222);
    assert!(begin.elapsed() <= ideal.mul_f64(1.05), "{:?}", begin.elapsed());
    assert_eq!((most, refused.available_permits(), in_flight(&layer)), (2, 163, (0, 0)));
}
