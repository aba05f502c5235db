//! Without a runtime, relent's own timer wakes whoever sleeps.

use relent::{Jitter, Policy, Reason, Timer, Timestamp};
use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor there is.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn any_executor_will_do() {
    let begin = Instant::now();
    let policy = Policy::constant(Duration::from_millis(5)).jitter(Jitter::None).max_attempts(3);
    let err = block_on(policy.retry(async |_| Err::<(), _>("down"))).unwrap_err();
    assert_eq!(err.reason, Reason::Attempts);
    assert!(begin.elapsed() >= Duration::from_millis(10));
}

#[test]
fn a_timer_of_another_runtime_takes_its_place() {
    /// Such as smol's, whose sleep yields the time.
    struct Other;
    impl Timer for Other {
        type Sleep = std::pin::Pin<Box<dyn Future<Output = Instant> + Send>>;
        fn now(&self) -> Timestamp {
            Timestamp::ZERO
        }
        fn sleep(&self, _: Duration) -> Self::Sleep {
            Box::pin(async { Instant::now() })
        }
    }
    let err = block_on(Policy::default().timer(Other).retry(async |_| Err::<(), _>("down"))).unwrap_err();
    assert_eq!(err.attempts, 8);
}
