//! Policies inside policies do not multiply, however the inner error is wrapped on its way up.

use relent::{Policy, Reason};
use std::{cell::Cell, fmt, io};

const THREE: Policy = Policy::immediate().max_attempts(3);

fn refused() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

/// Runs `inner` inside a policy of three attempts; how often the innermost operation ran, and the outer error's reason.
fn nest<E>(inner: impl Fn(&Cell<u32>) -> Result<(), E>) -> (u32, Reason) {
    let calls = Cell::new(0);
    let err = THREE.retry_blocking(|_| inner(&calls)).map_err(|err| err.reason).unwrap_err();
    (calls.get(), err)
}

fn three(calls: &Cell<u32>) -> Result<(), relent::Error<io::Error>> {
    THREE.retry_blocking(|_| {
        calls.set(calls.get() + 1);
        Err(refused())
    })
}

#[derive(Debug)]
enum App {
    Store(#[expect(dead_code, reason = "kept alive, never read")] relent::Error<io::Error>),
    Other,
}

impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

#[test]
fn what_an_inner_policy_gave_up_on_is_not_retried() {
    assert_eq!(nest(three), (3, Reason::Permanent));
    assert_eq!(nest(|calls| three(calls).map_err(anyhow::Error::from)), (3, Reason::Permanent));
    assert_eq!(
        nest(|calls| three(calls).map_err(|err| anyhow::anyhow!(err).context("loading"))),
        (3, Reason::Permanent)
    );
    assert_eq!(nest(|calls| three(calls).map_err(Box::<dyn std::error::Error>::from)), (3, Reason::Permanent));
    assert_eq!(nest(|calls| three(calls).map_err(App::Store)), (3, Reason::Permanent));
}

#[test]
fn what_the_operation_recovered_from_does_not_count() {
    let (calls, reason) = nest(|calls| {
        let _ = three(calls);
        Err(App::Other)
    });
    assert_eq!((calls, reason), (9, Reason::Attempts), "the second failure is a failure of its own");
    let (calls, reason) = nest(|calls| three(calls).map_err(|err| err.last.unwrap()));
    assert_eq!((calls, reason), (9, Reason::Attempts), "taken out of its error, it is an error like any other");
}

#[test]
fn unless_told_to() {
    let calls = Cell::new(0);
    let err = THREE.retrier().retry_given_up().retry_blocking(|_| three(&calls)).unwrap_err();
    assert_eq!((calls.get(), err.reason), (9, Reason::Attempts));

    let mut retry = THREE.start().retry_given_up();
    retry.back_off_blocking(three(&calls).unwrap_err()).unwrap();
}

#[test]
fn the_loop_knows_the_error_by_its_type() {
    let calls = Cell::new(0);
    let err = THREE.start().back_off_blocking(three(&calls).unwrap_err()).unwrap_err();
    assert_eq!((err.reason, err.last.unwrap().reason), (Reason::Permanent, Reason::Attempts));
}

#[test]
fn an_error_that_is_kept_from_an_earlier_call_deceives_nobody() {
    let calls = Cell::new(0);
    let kept = three(&calls).unwrap_err();
    let (outer, reason) = nest(|calls| {
        calls.set(calls.get() + 1);
        Err::<(), _>("of its own")
    });
    assert_eq!((outer, reason), (3, Reason::Attempts));
    drop(kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn across_awaits_and_threads() {
    async fn inner() -> anyhow::Result<()> {
        let err = THREE.retry(async |_| Err::<(), _>(refused())).await.unwrap_err();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        Err(anyhow::anyhow!(err).context("after some awaits"))
    }
    let calls: Vec<_> = (0..20)
        .map(|_| {
            tokio::spawn(async {
                let attempts = std::sync::atomic::AtomicU32::new(0);
                let err = THREE
                    .retry(async |_| {
                        attempts.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        inner().await
                    })
                    .await
                    .unwrap_err();
                (attempts.into_inner(), err.reason)
            })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), (1, Reason::Permanent));
    }
}

#[test]
fn a_panic_inside_leaves_the_thread_as_it_was() {
    let panicked = std::panic::catch_unwind(|| THREE.retry_blocking(|_| -> Result<(), &str> { panic!("inside") }));
    assert!(panicked.is_err());
    let err = THREE.retry_blocking(|_| Err::<(), _>("after")).unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Attempts, 3));
}
