//! Policies inside policies do not multiply: by the inner error's type, and where it is wrapped by its chain of sources.

use relent::{Failure, Policy, Reason, gave_up};
use std::{cell::Cell, error::Error, fmt, io};

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

/// An error of a program, as such errors are written.
#[derive(Debug)]
enum App {
    Store(relent::Error<io::Error>),
    /// What `#[error(transparent)]` makes.
    Transparent(relent::Error<io::Error>),
    TransparentChained(relent::ChainedError<io::Error>),
    /// Kept for a log, no cause of this error.
    Other {
        #[expect(dead_code, reason = "kept alive, never read")]
        handled: relent::Error<io::Error>,
    },
}

impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            App::Transparent(err) => err.fmt(f),
            App::TransparentChained(err) => err.fmt(f),
            _ => f.write_str("the app failed"),
        }
    }
}

impl Error for App {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            App::Store(err) => Some(err),
            App::Transparent(err) => err.source(),
            App::TransparentChained(err) => err.source(),
            App::Other { .. } => None,
        }
    }
}

#[test]
fn what_an_inner_policy_gave_up_on_is_not_retried() {
    assert_eq!(nest(three), (3, Reason::Permanent));
    assert_eq!(nest(|calls| three(calls).map_err(relent::Error::chained)), (3, Reason::Permanent));
}

#[test]
fn a_wrapped_give_up_is_recognised_by_its_chain() {
    let calls = Cell::new(0);
    let inner = || three(&calls).unwrap_err();
    assert!(gave_up(&inner()) && gave_up(&inner().chained()));
    assert!(gave_up(&App::Store(inner())) && gave_up(&App::Transparent(inner())));
    assert!(gave_up(&App::TransparentChained(inner().chained())));
    assert!(gave_up(anyhow::anyhow!(inner()).context("loading").as_ref()));
    assert!(gave_up(anyhow::anyhow!(inner().chained()).context("loading").as_ref()));
    assert!(gave_up(Box::<dyn Error>::from(inner()).as_ref()));
    assert!(gave_up(&Failure::transient(inner())));
    let at_once = THREE.when(|_: &io::Error| false).retry_blocking(|_| Err::<(), _>(refused())).unwrap_err();
    assert!(gave_up(&at_once), "also where nothing is allocated to tell of it");

    assert!(!gave_up(&refused()));
    assert!(!gave_up(&App::Other { handled: inner() }), "what was handled is no cause");
    assert!(!gave_up(anyhow::anyhow!("no").context("loading").as_ref()));
}

#[test]
fn reporters_show_each_link_once() {
    let calls = Cell::new(0);
    let alone = anyhow::Error::from(three(&calls).unwrap_err()).context("loading");
    assert_eq!(format!("{alone:#}"), "loading: out of attempts after 3 attempts: connection refused");
    assert_eq!(alone.chain().count(), 2);
    let chained = anyhow::Error::from(three(&calls).unwrap_err().chained()).context("loading");
    assert_eq!(format!("{chained:#}"), "loading: out of attempts after 3 attempts: connection refused");
    assert!(chained.chain().last().unwrap().is::<io::Error>());
    assert!(three(&calls).unwrap_err().source().is_none(), "it shows its last error itself");
}

#[test]
fn what_is_asked_of_an_error_is_heard_by_nobody_else() {
    let err = three(&Cell::new(0)).unwrap_err();
    for shown in [format!("{err:>60}"), format!("{err:^+1.0}"), format!("{err:.0}")] {
        assert_eq!(shown.trim(), err.to_string());
    }
}

#[test]
fn when_stops_what_is_wrapped_from_multiplying() {
    let calls = Cell::new(0);
    let policy = THREE.when(|err: &anyhow::Error| !gave_up(err.as_ref()));
    let err = policy.retry_blocking(|_| three(&calls).map_err(anyhow::Error::from)).unwrap_err();
    assert_eq!((calls.get(), err.reason, err.attempts), (3, Reason::Permanent, 1));
}

#[test]
fn what_the_operation_recovered_from_does_not_count() {
    let (calls, reason) = nest(|calls| Err::<(), _>(App::Other { handled: three(calls).unwrap_err() }));
    assert_eq!((calls, reason), (9, Reason::Attempts), "the outer failure is a failure of its own");
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

#[tokio::test]
async fn one_from_another_thread_is_recognised_too() {
    let far = tokio::task::spawn_blocking(|| three(&Cell::new(0))).await.unwrap().unwrap_err();
    assert!(gave_up(anyhow::anyhow!(far).as_ref()));
}

#[test]
fn a_panic_inside_leaves_the_thread_as_it_was() {
    let panicked = std::panic::catch_unwind(|| THREE.retry_blocking(|_| -> Result<(), &str> { panic!("inside") }));
    assert!(panicked.is_err());
    let err = THREE.retry_blocking(|_| Err::<(), _>("after")).unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Attempts, 3));
}
