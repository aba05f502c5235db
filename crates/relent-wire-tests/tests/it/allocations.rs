//! A call that succeeds at once allocates nothing for its layer.

use allocation_counter::measure;
use http::{HeaderName, HeaderValue, Request, Response};
use relent::{Breaker, Budget, Limit, Policy, Upstream};
use std::{
    convert::Infallible,
    future::{Future, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};
use tower::{Layer, Service, service_fn};

static BANK: Upstream =
    Upstream::new("bank").budget(Budget::ratio(0.1)).breaker(Breaker::share(0.5)).limit(Limit::concurrency(100));

/// How many allocations a call makes, after a first one that makes what is kept for later.
fn allocations<S: Service<R, Error: std::fmt::Debug>, R>(service: &mut S, request: impl Fn() -> R) -> u64 {
    let mut cx = Context::from_waker(Waker::noop());
    let mut call = |request| {
        assert!(service.poll_ready(&mut cx).is_ready());
        match pin!(service.call(request)).poll(&mut cx) {
            Poll::Ready(answer) => answer.unwrap(),
            Poll::Pending => panic!("it answers at once"),
        }
    };
    _ = call(request());
    let again = request();
    measure(|| _ = call(again)).count_total
}

#[test]
fn a_first_attempt_that_succeeds_allocates_nothing() {
    let policy = Policy::default();
    let plain = service_fn(|request: u32| ready(Ok::<_, Infallible>(request)));
    assert_eq!(allocations(&mut policy.layer().layer(plain), || 7), 0);
    assert_eq!(allocations(&mut policy.on(&BANK).layer().layer(plain), || 7), 0, "with all that protects an upstream");

    let http = service_fn(|_: Request<String>| ready(Ok::<_, Infallible>(Response::new(String::new()))));
    let mut service = policy.on(&BANK).layer().writes(Policy::default().max_attempts(2)).layer(http);
    let value = HeaderValue::from_static("application/json");
    let mine = HeaderName::from_static("x-mine");
    let path: http::Uri = "/accounts/7?all".parse().unwrap();
    let (_first, _shared) = (path.clone(), value.clone());
    let request = || {
        let request = Request::get(path.clone()).header("accept", value.clone()).header(mine.clone(), value.clone());
        request.body(String::new()).unwrap()
    };
    assert_eq!(allocations(&mut service, request), 0, "the copy shares what it can, and the rest is used again");
}

#[test]
fn a_retry_does_allocate_so_that_this_can_be_measured() {
    let mut failures = 2;
    let mut service = service_fn(move |_: u32| {
        failures -= 1;
        ready(if failures > 0 { Err("down") } else { Ok(Box::new(1)) })
    });
    let mut cx = Context::from_waker(Waker::noop());
    let counted = measure(|| {
        for _ in 0..2 {
            assert!(service.poll_ready(&mut cx).is_ready());
            _ = pin!(service.call(1)).poll(&mut cx);
        }
    });
    assert_eq!(counted.count_total, 1);
}
