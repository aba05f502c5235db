//! Retries as a layer: what must hold of any service and any request.

use relent::{
    Breaker, Budget, Event, Hedge, Jitter, Limit, Policy, Reason, Upstream,
    layer::{GuardLayer, Missed, Repeat, Terms, TimeLeft},
};
use std::{
    future::{Future, Ready, pending, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt, service_fn};

const SEC: Duration = Duration::from_secs(1);
const POLICY: Policy = Policy::constant(SEC).jitter(Jitter::None).max_attempts(4);

type Down = &'static str;

/// Answers that came, by the number of the call.
#[derive(Clone, Debug, Default)]
struct Calls(Arc<AtomicU32>);

impl Calls {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn made(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Fails so often, then answers with the number of the call. Each clone has to be asked whether it is ready, and panics if it
/// is called without.
struct Strict {
    calls: Calls,
    failures: u32,
    is_ready: bool,
}

impl Strict {
    fn new(failures: u32) -> (Calls, Strict) {
        let calls = Calls::default();
        (calls.clone(), Strict { calls, failures, is_ready: false })
    }
}

impl Clone for Strict {
    fn clone(&self) -> Strict {
        Strict { calls: self.calls.clone(), failures: self.failures, is_ready: false }
    }
}

impl<R> Service<R> for Strict {
    type Response = u32;
    type Error = Down;
    type Future = Ready<Result<u32, Down>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Down>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: R) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called without being ready");
        let nth = self.calls.next();
        ready(if nth <= self.failures { Err("down") } else { Ok(nth) })
    }
}

/// Not to be sent twice.
#[derive(Clone, Copy, Debug)]
struct Payment;

impl<R> Repeat<R> for Payment {
    fn again(&self) -> Option<Payment> {
        Some(*self)
    }

    fn is_idempotent(&self) -> bool {
        false
    }
}

async fn send<S: Service<u32>>(service: &mut S) -> Result<S::Response, S::Error> {
    service.ready().await?.call(1).await
}

fn leak(upstream: Upstream) -> &'static Upstream {
    Box::leak(Box::new(upstream))
}

#[tokio::test(start_paused = true)]
async fn it_waits_and_gives_up_as_closures_do() {
    let (calls, service) = Strict::new(3);
    let begin = Instant::now();
    assert_eq!(POLICY.layer().layer(service).oneshot(1).await.unwrap(), 4);
    assert_eq!((calls.made(), begin.elapsed()), (4, 3 * SEC));

    let (calls, service) = Strict::new(9);
    let err = POLICY.layer().layer(service).oneshot(1).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last, calls.made()), (Reason::Attempts, 4, Some("down"), 4));
}

#[tokio::test(start_paused = true)]
async fn the_judge_and_the_watcher_are_asked() {
    let (calls, service) = Strict::new(9);
    let told = Arc::new(Mutex::new(vec![]));
    let tell = told.clone();
    let layer = POLICY
        .when(|err: &Down| *err == "down")
        .notify(move |event: &Event<'_, Missed<Down>>| tell.lock().unwrap().push(event.to_string()))
        .layer();
    layer.layer(service).oneshot(1).await.unwrap_err();
    assert_eq!(told.lock().unwrap()[0], "attempt 1 failed: down; next in 1s");
    assert_eq!((told.lock().unwrap().len(), calls.made()), (3, 4));

    let (calls, service) = Strict::new(9);
    let err = POLICY.when(|_: &Down| false).layer().layer(service).oneshot(1).await.unwrap_err();
    assert_eq!((err.reason, calls.made()), (Reason::Permanent, 1));
}

#[tokio::test(start_paused = true)]
async fn no_clone_is_called_before_it_is_ready() {
    // Every way to a first attempt: at once, after a spread, after a wait for a limit, hedged, within a deadline.
    let rate = leak(Upstream::new("rate").limit(Limit::rate(1)));
    let hedge = leak(Upstream::new("hedge").hedge(Hedge::after(SEC)));
    let (calls, service) = Strict::new(2);
    let mut service = POLICY.on(rate).layer().layer(service);
    for _ in 0..3 {
        send(&mut service).await.unwrap();
    }
    assert_eq!(calls.made(), 5);
    let (_, strict) = Strict::new(2);
    POLICY.spread(SEC).layer().layer(strict.clone()).oneshot(1).await.unwrap();
    POLICY.on(hedge).hedged().layer().layer(strict.clone()).oneshot(1).await.unwrap();
    POLICY.timeout(9 * SEC).layer().layer(strict).oneshot(1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_service_that_will_not_be_ready_is_told() {
    #[derive(Clone)]
    struct Closed;
    impl Service<u32> for Closed {
        type Response = ();
        type Error = Down;
        type Future = Ready<Result<(), Down>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Down>> {
            Poll::Ready(Err("closed"))
        }
        fn call(&mut self, _: u32) -> Self::Future {
            panic!("it is not ready")
        }
    }
    let err = POLICY.layer().layer(Closed).ready().await.map(|_| ()).unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last), (Reason::Permanent, 0, Some("closed")));
}

/// All that an upstream may hold of a call.
fn guarded() -> &'static Upstream {
    leak(
        Upstream::new("bank")
            .limit(Limit::concurrency(1))
            .budget(Budget::ratio(0.0).min_per_second(1))
            .breaker(Breaker::consecutive(100)),
    )
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_gives_back_what_it_holds() {
    for seconds in [0, 1, 2, 3, 5, 7] {
        let bank = guarded();
        // Attempts take two seconds, delays one.
        let service = service_fn(|_: u32| async {
            tokio::time::sleep(2 * SEC).await;
            Err::<(), _>("down")
        });
        let before = bank.snapshot().balance;
        let call = POLICY.on(bank).layer().layer(service).oneshot(1);
        let outcome = tokio::time::timeout(seconds * SEC + SEC / 2, call).await;
        assert!(outcome.is_err(), "still under way");
        let now = bank.snapshot();
        assert_eq!(now.limit.unwrap().in_flight, Some(0), "after {seconds} s");
        let retries = now.retries as f64;
        assert_eq!(now.balance.unwrap(), before.unwrap() - retries, "after {seconds} s: paid for what started");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_gives_back_what_it_holds() {
    for panics_at in [1, 2] {
        let bank = guarded();
        let calls = Calls::default();
        let count = calls.clone();
        let service = service_fn(move |_: u32| {
            let nth = count.next();
            async move {
                assert!(nth != panics_at, "on purpose");
                Err::<(), _>("down")
            }
        });
        let call = tokio::spawn(POLICY.on(bank).layer().layer(service).oneshot(1));
        assert!(call.await.unwrap_err().is_panic());
        assert_eq!(bank.snapshot().limit.unwrap().in_flight, Some(0));
    }
}

#[tokio::test(start_paused = true)]
async fn the_upstream_is_told_each_outcome_once() {
    let bank = leak(Upstream::new("bank").breaker(Breaker::consecutive(3).open_for(60 * SEC)));
    let (calls, service) = Strict::new(2);
    let mut service = POLICY.on(bank).layer().layer(service);
    assert_eq!(send(&mut service).await.unwrap(), 3, "two failures do not trip it");
    let now = bank.snapshot();
    assert_eq!((now.calls, now.attempts, now.retries), (1, 3, 2));

    let (_, down) = Strict::new(99);
    let mut down = POLICY.on(bank).layer().layer(down);
    let err = send(&mut down).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last), (Reason::Open, 3, Some("down")));
    let err = send(&mut service).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, calls.made()), (Reason::Open, 0, 3));
    assert!(err.again_in.unwrap() <= 60 * SEC);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_idempotent_is_made_once_and_counts_as_a_failure() {
    let bank = leak(Upstream::new("bank").breaker(Breaker::consecutive(1)).budget(Budget::ratio(0.1)));
    let before = bank.snapshot().balance;
    let (calls, service) = Strict::new(1);
    let err = POLICY.on(bank).layer().layer(service).oneshot(Payment).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, err.last, calls.made()), (Reason::NotIdempotent, 1, Some("down"), 1));
    assert_eq!(bank.snapshot().balance, before, "nothing was paid");
    let (_, service) = Strict::new(0);
    let err = POLICY.on(bank).layer().layer(service).oneshot(Payment).await.unwrap_err();
    assert_eq!(err.reason, Reason::Open, "the breaker was told");

    let (calls, service) = Strict::new(1);
    POLICY.layer().repeat_unsafe().layer(service).oneshot(Payment).await.unwrap();
    assert_eq!(calls.made(), 2);
}

/// A failure of what must not be repeated stops it as well when it was no first attempt's, and when it timed out.
#[tokio::test(start_paused = true)]
async fn what_is_not_idempotent_is_made_once_also_where_it_had_to_wait_or_timed_out() {
    let (calls, service) = Strict::new(1);
    let err = POLICY.timeout(60 * SEC).layer().layer(service).oneshot(Payment).await.unwrap_err();
    assert_eq!((err.reason, calls.made()), (Reason::NotIdempotent, 1));

    let calls = Calls::default();
    let count = calls.clone();
    let silent = service_fn(move |_: Payment| {
        count.next();
        pending::<Result<(), Down>>()
    });
    let err = POLICY.attempt_timeout(SEC).layer().layer(silent).oneshot(Payment).await.unwrap_err();
    assert_eq!((err.reason, err.timed_out, calls.made()), (Reason::NotIdempotent, Some(SEC), 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_idempotent_is_not_hedged() {
    let search = leak(Upstream::new("search").hedge(Hedge::after(SEC)));
    let calls = Calls::default();
    let count = calls.clone();
    let slow = service_fn(move |_| {
        let nth = count.next();
        async move {
            tokio::time::sleep(5 * SEC).await;
            Ok::<_, Down>(nth)
        }
    });
    let layer = POLICY.on(search).hedged().layer();
    let begin = Instant::now();
    assert_eq!(layer.layer(slow.clone()).oneshot(Payment).await.unwrap(), 1);
    assert_eq!((calls.made(), begin.elapsed()), (1, 5 * SEC));
}

#[tokio::test(start_paused = true)]
async fn what_may_be_made_twice_is_hedged() {
    let search = leak(Upstream::new("search").hedge(Hedge::after(SEC)));
    let calls = Calls::default();
    let count = calls.clone();
    let slow_at_first = service_fn(move |_: u32| {
        let nth = count.next();
        async move {
            tokio::time::sleep(if nth == 1 { 50 * SEC } else { SEC }).await;
            Ok::<_, Down>(nth)
        }
    });
    let begin = Instant::now();
    assert_eq!(POLICY.on(search).hedged().layer().layer(slow_at_first).oneshot(1).await.unwrap(), 2);
    assert_eq!(begin.elapsed(), 2 * SEC);
}

/// A text that counts how often it was copied.
#[derive(Debug)]
struct Counted(Calls, u64);

impl<R> Repeat<R> for Counted {
    fn again(&self) -> Option<Counted> {
        self.0.next();
        Some(Counted(self.0.clone(), self.1))
    }

    fn size(&self) -> u64 {
        self.1
    }

    fn policy(&self, _: &Terms) -> Option<Policy> {
        Some(Policy::immediate().max_attempts(2))
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_copied_for_the_attempts_that_come_and_no_more() {
    for (attempts, copies) in [(1, 0), (2, 1), (3, 2), (5, 4)] {
        let copied = Calls::default();
        let (calls, service) = Strict::new(99);
        let layer = Policy::immediate().max_attempts(attempts).layer();
        layer.layer(service).oneshot(Counted(copied.clone(), 0)).await.unwrap_err();
        assert_eq!((calls.made(), copied.made()), (attempts, copies), "the last attempt takes the copy itself");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_sent_once_and_never_copied() {
    let copied = Calls::default();
    let (calls, service) = Strict::new(99);
    let layer = Policy::immediate().max_attempts(5).layer().body_limit(100);
    let err = layer.layer(service.clone()).oneshot(Counted(copied.clone(), 101)).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, calls.made(), copied.made()), (Reason::TooLarge, 1, 1, 0));
    assert_eq!(err.to_string(), "too large to repeat after 1 attempt: down");
    let err = layer.layer(service).oneshot(Counted(copied.clone(), 100)).await.unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Attempts, 5));
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_has_no_attempt_timeout_unless_asked() {
    let takes_two = service_fn(|_: u32| async {
        tokio::time::sleep(2 * SEC).await;
        Ok::<_, Down>(())
    });
    let policy = Policy::immediate().max_attempts(3).attempt_timeout(SEC);
    let begin = Instant::now();
    policy.layer().layer(takes_two).oneshot(1).await.unwrap();
    assert_eq!(begin.elapsed(), 4 * SEC, "one, one, and as long as it takes");

    let err = policy.layer().time_last_attempt().layer(takes_two).oneshot(1).await.unwrap_err();
    assert_eq!((err.reason, err.timed_out), (Reason::Attempts, Some(SEC)));

    let begin = Instant::now();
    let err = policy.timeout(3 * SEC).layer().layer(takes_two).oneshot(1).await.unwrap_err();
    assert_eq!((err.attempts, begin.elapsed()), (3, 3 * SEC), "the call's own limit holds for the last too");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_waited_for_ends_its_calls_in_time() {
    let silent = service_fn(|_: u32| pending::<Result<(), Down>>());
    let begin = Instant::now();
    let call = POLICY.layer().layer(silent).oneshot(1);
    let err = TimeLeft::new(3 * SEC).scope(call).await.unwrap_err();
    assert_eq!((err.timed_out.is_some(), begin.elapsed()), (true, 3 * SEC));
}

#[tokio::test(start_paused = true)]
async fn layers_within_layers_do_not_multiply() {
    let (calls, service) = Strict::new(99);
    let twice = POLICY.layer().layer(POLICY.layer().layer(service));
    let err = twice.oneshot(1).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, calls.made()), (Reason::Permanent, 1, 4));

    let (calls, service) = Strict::new(99);
    let twice = POLICY.retrier().retry_given_up().layer().layer(POLICY.layer().layer(service));
    twice.oneshot(1).await.unwrap_err();
    assert_eq!(calls.made(), 16, "unless they are told to");
}

#[tokio::test(start_paused = true)]
async fn a_guard_refuses_and_does_not_retry() {
    let (calls, service) = Strict::new(2);
    let mut service = GuardLayer::breaker(Breaker::consecutive(2).open_for(9 * SEC)).layer(service);
    let mut reasons = vec![];
    for _ in 0..3 {
        reasons.push(send(&mut service).await.unwrap_err().reason);
    }
    assert_eq!((reasons, calls.made()), (vec![Reason::Attempts, Reason::Attempts, Reason::Open], 2));
    tokio::time::sleep(10 * SEC).await;
    assert_eq!(send(&mut service).await.unwrap(), 3);

    let (_, service) = Strict::new(0);
    let mut service = GuardLayer::limit(Limit::rate(1)).layer(service);
    let begin = Instant::now();
    for _ in 0..3 {
        send(&mut service).await.unwrap();
    }
    assert_eq!(begin.elapsed(), 2 * SEC);
}

/// A call that is polled by hand.
fn begin(failures: u32) -> Pin<Box<dyn Future<Output = Result<u32, relent::Error<Down>>>>> {
    let mut service = POLICY.layer().layer(Strict::new(failures).1);
    let is_ready = Service::<u32>::poll_ready(&mut service, &mut Context::from_waker(Waker::noop())).is_ready();
    assert!(is_ready);
    Box::pin(service.call(1u32))
}

#[test]
fn a_call_that_succeeds_needs_no_runtime_and_no_clock() {
    let call = begin(0).as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(call, Poll::Ready(Ok(1))));
}

#[test]
fn a_call_that_is_ready_is_not_polled_again() {
    let mut call = begin(0);
    let mut poll =
        || catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()));
    assert!(poll().unwrap());
    assert!(poll().is_err());
}
