//! A process that was forked has none of its parent's threads: its sleepers must be woken all the same.
#![cfg(all(unix, feature = "std"))]

use fork::{Fork, fork, waitpid};
use relent::{Jitter, Policy, SystemTimer, Timer};
use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    pin::{Pin, pin},
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

/// The plainest executor: it polls when it is woken, and gives up when nobody wakes it.
fn block_on<F: Future>(future: F) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, begin) = (pin!(future), Instant::now());
    while begin.elapsed() < Duration::from_secs(20) {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        thread::park_timeout(Duration::from_secs(20));
    }
    None
}

/// What of three attempts is made, on the sleeper that is relent's own.
fn attempts() -> u8 {
    let policy = Policy::constant(Duration::from_millis(5)).jitter(Jitter::None).max_attempts(3);
    let call = block_on(policy.retry(async |_| Err::<(), _>("down")));
    call.map_or(0, |outcome| u8::try_from(outcome.unwrap_err().attempts).unwrap_or(u8::MAX))
}

#[test]
fn sleepers_of_a_forked_process_wake() {
    assert_eq!(attempts(), 3, "so that the thread of the timers runs before the fork");
    // A sleeper that is asleep at the fork, and dropped on both sides.
    let mut asleep: Pin<Box<_>> = Box::pin(SystemTimer.sleep(Duration::from_secs(3600)));
    assert!(asleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());

    let (mut here, mut there) = UnixStream::pair().unwrap();
    match fork().unwrap() {
        Fork::Child => {
            drop((asleep, here));
            let _ = there.write_all(&[attempts()]);
            std::process::exit(0);
        }
        Fork::Parent(child) => {
            drop((asleep, there));
            here.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let mut told = [0];
            here.read_exact(&mut told).expect("the child tells how far it came");
            assert_eq!(told, [3], "the child's sleepers wake");
            waitpid(child).unwrap();
        }
    }
    assert_eq!(attempts(), 3, "and the parent's still do");
}
