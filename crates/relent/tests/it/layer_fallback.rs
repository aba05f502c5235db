//! Layers that answer otherwise: with something else, with what was answered before, with what another has asked for.

use moka::sync::Cache;
use relent::layer::{FallbackLayer, OneFlightLayer, StaleLayer};
use std::{
    collections::VecDeque,
    future::{Ready, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tower::{Layer, Service, ServiceExt, service_fn};

const SEC: Duration = Duration::from_secs(1);

type Answer = Result<u32, &'static str>;

/// Answers in this order.
fn script(
    answers: impl IntoIterator<Item = Answer>,
) -> impl Service<u32, Response = u32, Error = &'static str, Future = Ready<Answer>> + Clone {
    let answers: Arc<Mutex<VecDeque<Answer>>> = Arc::new(Mutex::new(answers.into_iter().collect()));
    service_fn(move |_: u32| ready(answers.lock().unwrap().pop_front().unwrap()))
}

async fn send<S: Service<u32>>(service: &mut S, request: u32) -> Result<S::Response, S::Error> {
    service.ready().await?.call(request).await
}

#[tokio::test]
async fn something_else_is_answered_where_the_rule_says_so() {
    let rule = |outcome: Result<&u32, &&'static str>| match outcome {
        Err(&"down") => Some(0),
        Ok(503) => Some(1),
        _ => None,
    };
    let mut service = FallbackLayer::new(rule).layer(script([Ok(7), Err("down"), Ok(503), Err("gone")]));
    let mut answers = vec![];
    for _ in 0..4 {
        answers.push(send(&mut service, 1).await);
    }
    assert_eq!(answers, [Ok(7), Ok(0), Ok(1), Err("gone")]);
}

#[tokio::test]
async fn what_was_answered_before_is_answered_when_it_fails() {
    let layer = StaleLayer::new(Cache::new(10), |request: &u32| (*request < 10).then_some(*request));
    let layer = layer.failures(|answer| *answer == 503).mark(|answer| *answer += 1000);
    let answers = [Ok(7), Err("down"), Ok(503), Err("down"), Ok(8), Err("down"), Ok(9), Err("down")];
    let mut service = layer.layer(script(answers));
    for (request, expected) in [
        (1, Ok(7)),
        (1, Ok(1007)),
        (1, Ok(1007)),
        (2, Err("down")),
        (1, Ok(8)),
        (1, Ok(1008)),
        (10, Ok(9)),
        (10, Err("down")),
    ] {
        assert_eq!(send(&mut service, request).await, expected, "{request}");
    }
}

/// Counts calls, which take a second and answer with their number, or fail.
fn slow(
    fails: bool,
) -> (Arc<AtomicU32>, impl Service<u32, Response = u32, Error = String, Future: Send> + Clone + Send + 'static) {
    let calls = Arc::new(AtomicU32::new(0));
    let count = calls.clone();
    let service = service_fn(move |_: u32| {
        let nth = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            tokio::time::sleep(SEC).await;
            if fails { Err(format!("failure {nth}")) } else { Ok(nth) }
        }
    });
    (calls, service)
}

#[tokio::test(start_paused = true)]
async fn equal_requests_share_one_call() {
    let (calls, service) = slow(false);
    let service = OneFlightLayer::new(|request: &u32| (*request < 10).then_some(*request)).layer(service);
    let all: Vec<_> =
        [1, 1, 2, 1, 10, 10].into_iter().map(|request| tokio::spawn(service.clone().oneshot(request))).collect();
    let mut answers = vec![];
    for call in all {
        answers.push(call.await.unwrap().unwrap());
    }
    assert_eq!((answers, calls.load(Ordering::SeqCst)), (vec![1, 1, 2, 1, 3, 4], 4));
    assert_eq!(service.oneshot(1).await.unwrap(), 5, "what is over is asked for anew");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_shared_too() {
    let (calls, service) = slow(true);
    let service = OneFlightLayer::new(|request: &u32| Some(*request)).layer(service);
    let (one, two) = tokio::join!(service.clone().oneshot(1), service.clone().oneshot(1));
    assert_eq!((one.unwrap_err().as_str(), two.unwrap_err().as_str()), ("failure 1", "failure 1"));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_left_when_the_first_gives_up() {
    let (calls, service) = slow(false);
    let service = OneFlightLayer::new(|request: &u32| Some(*request)).layer(service);
    let first = tokio::time::timeout(SEC / 2, service.clone().oneshot(1));
    let second = tokio::time::timeout(SEC, service.clone().oneshot(1));
    let (first, second, third, fourth) =
        tokio::join!(first, second, service.clone().oneshot(1), service.clone().oneshot(1));
    assert!(first.is_err() && second.is_err(), "they gave up");
    assert_eq!(third.unwrap(), fourth.unwrap(), "those who stayed have one answer");
    let calls = || calls.load(Ordering::SeqCst);
    assert!(calls() <= 3, "the first's, the second's if it was next, and one more: {}", calls());

    // Nobody is left at all, and the next begins anew.
    let before = calls();
    _ = tokio::time::timeout(SEC / 2, service.clone().oneshot(1)).await.unwrap_err();
    assert_eq!(service.oneshot(1).await.unwrap(), before + 2);
}
