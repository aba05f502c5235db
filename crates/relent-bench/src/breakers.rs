//! Breakers and the pacer, alone and with a second thread on the same object: a permit and the success of its attempt.

use crate::{
    harness::{Case, Group},
    rival,
};
use recloser::Recloser;
use relent::{Breaker, Pacer, Timestamp};
use std::{
    future::{Future, ready},
    hint::black_box,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};
use tower::Service;
use tower_layer::Layer;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;

const OPEN: Duration = Duration::from_secs(30);
const TOOK: Duration = Duration::from_millis(1);

static CONSECUTIVE: Breaker = Breaker::consecutive(5).open_for(OPEN);
static CALLS: Breaker = Breaker::share(0.5).window_calls(100).open_for(OPEN);
static TIME: Breaker = Breaker::share(0.5).window(Duration::from_secs(10)).open_for(OPEN);
static PACER: Pacer = Pacer::capacity(1e9).horizon(Duration::MAX);
static CAS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn alone() -> Group {
    Group { name: "breaker", title: "Breaker: a permit and a success, alone", per: 1, cases: breakers(false) }
}

pub(crate) fn two_threads() -> Group {
    Group {
        name: "breaker-two-threads",
        title: "Breaker: a permit and a success, while a second thread does the same on the same object",
        per: 1,
        cases: breakers(true),
    }
}

pub(crate) fn pacer() -> Group {
    Group { name: "pacer", title: "Pacer: a turn, alone", per: 1, cases: turns(false) }
}

pub(crate) fn pacer_two_threads() -> Group {
    Group {
        name: "pacer-two-threads",
        title: "Pacer: a turn, while a second thread takes turns of the same pacer",
        per: 1,
        cases: turns(true),
    }
}

fn breakers(rival: bool) -> Vec<Case> {
    let recloser = Arc::new(Recloser::custom().closed_len(100).build());
    let failsafe = failsafe::Config::new()
        .failure_policy(failsafe::failure_policy::consecutive_failures(5, failsafe::backoff::constant(OPEN)))
        .build();
    let layer = CircuitBreakerLayer::builder().failure_rate_threshold(0.5).sliding_window_size(100).build();
    let resilient =
        layer.expect("the settings are valid").layer(tower::service_fn(|number: u32| ready(Ok::<_, ()>(number))));
    vec![
        case("floor: a compare-exchange", rival, || compare_exchange),
        case("relent, in a row", rival, || clock(&CONSECUTIVE)),
        case("relent, share of 100 calls", rival, || clock(&CALLS)),
        case("relent, share of 10 s", rival, || clock(&TIME)),
        case("recloser", rival, || {
            let recloser = recloser.clone();
            move || _ = black_box(recloser.call(|| Ok::<_, ()>(black_box(1))))
        }),
        case("failsafe", rival, || {
            let failsafe = failsafe.clone();
            move || _ = black_box(failsafe::CircuitBreaker::call(&failsafe, || Ok::<_, ()>(black_box(1))))
        }),
        case("tower-resilience, share of 100 calls (reads the clock too)", rival, || tower_resilience(&resilient)),
    ]
}

fn turns(rival: bool) -> Vec<Case> {
    vec![
        case("floor: a compare-exchange", rival, || compare_exchange),
        case("relent", rival, || || _ = black_box(PACER.turn(black_box(Timestamp::ZERO)))),
    ]
}

/// A permit and a success, a microsecond later each time.
fn clock(breaker: &'static Breaker) -> impl FnMut() + Send + 'static {
    let mut nanos = 0;
    move || {
        nanos += 1000;
        let now = Timestamp::from_nanos(black_box(nanos));
        if let Ok(permit) = breaker.permit(now, 0) {
            _ = black_box(permit.succeeded(now, TOOK, 0));
        }
    }
}

/// One call through a clone of the service, as a server does: its breaker is shared.
fn tower_resilience<S>(service: &S) -> impl FnMut() + Send + use<S>
where
    S: Service<u32, Response = u32> + Clone + Send + 'static,
{
    let mut service = service.clone();
    move || {
        let mut context = Context::from_waker(Waker::noop());
        if service.poll_ready(&mut context).is_ready() {
            let mut call = pin!(service.call(black_box(1)));
            _ = black_box(call.as_mut().poll(&mut context).is_ready());
        }
    }
}

fn compare_exchange() {
    let mut found = CAS.load(Ordering::Acquire);
    while let Err(other) = CAS.compare_exchange_weak(found, found + 1, Ordering::AcqRel, Ordering::Acquire) {
        found = other;
    }
}

/// What `make` makes, if asked for while a second thread does the same.
fn case<F: FnMut() + Send + 'static>(name: &'static str, rival: bool, make: impl Fn() -> F) -> Case {
    if rival { rival::beside(name, make) } else { Case::new(name, make()) }
}
