use super::*;
use std::{
    sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::Wake,
};

const LONG: Duration = Duration::from_secs(3600);

fn poll(sleep: &mut Sleep, waker: &Waker) -> Poll<()> {
    Pin::new(sleep).poll(&mut Context::from_waker(waker))
}

/// Tells when it is woken.
struct Tell(StdMutex<mpsc::Sender<u32>>, u32);

impl Wake for Tell {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().send(self.1).unwrap();
    }
}

#[test]
fn who_is_due_is_woken_in_order_of_time_and_nobody_else() {
    let (sender, woken) = mpsc::channel();
    let alarm = Alarm::new();
    let begin = Instant::now();
    for (number, seconds) in [(1, 30), (2, 10), (3, 20), (4, 40)] {
        let waker = Waker::from(Arc::new(Tell(StdMutex::new(sender.clone()), seconds)));
        assert!(alarm.insert((begin + Duration::from_secs(seconds.into()), number), waker, || Ok(())).is_ok());
    }
    wake_all(alarm.wait(|| begin + Duration::from_secs(30))).unwrap();
    assert_eq!(woken.try_iter().collect::<Vec<_>>(), [10, 20, 30]);
    assert_eq!(lock(&alarm.sleepers).by_end.len(), 1);
}

#[test]
fn a_sleeper_that_comes_later_and_is_due_sooner_is_woken_first() {
    let (sender, woken) = mpsc::channel();
    let waker = |number| Waker::from(Arc::new(Tell(StdMutex::new(sender.clone()), number)));
    let (mut late, mut soon) =
        (Sleep::until(Some(Instant::now() + LONG)), Sleep::until(Some(Instant::now() + Duration::from_millis(1))));
    assert!(poll(&mut late, &waker(1)).is_pending());
    let is_ready = poll(&mut soon, &waker(2)).is_ready();
    assert!(is_ready || woken.recv_timeout(LONG) == Ok(2));
}

/// The sleepers of this process that wake at a moment.
fn sleeping_until(end: Instant) -> usize {
    let house = House::of_this_process();
    lock(&house.alarm.sleepers).by_end.keys().filter(|(at, _)| *at == end).count()
}

#[test]
fn a_sleeper_is_entered_once_and_leaves_nothing() {
    let end = Instant::now() + LONG;
    let (mut one, mut other) = (Sleep::until(Some(end)), Sleep::until(Some(end)));
    for _ in 0..3 {
        assert!(poll(&mut one, Waker::noop()).is_pending());
    }
    assert_eq!(sleeping_until(end), 1, "polled again, it renews its waker");
    assert!(poll(&mut other, Waker::noop()).is_pending());
    assert_eq!(sleeping_until(end), 2, "two that wake at one moment are two");
    drop(one);
    assert_eq!(sleeping_until(end), 1);
    drop(other);
    assert_eq!(sleeping_until(end), 0);
}

#[test]
fn the_thread_waits_for_the_first_and_no_longer() {
    let alarm = Alarm::new();
    let begin = Instant::now();
    let soon = begin + Duration::from_millis(20);
    alarm.insert((soon, 1), Waker::noop().clone(), || Ok(())).unwrap();
    alarm.insert((begin + LONG, 2), Waker::noop().clone(), || Ok(())).unwrap();
    within_a_minute(move || {
        assert_eq!(alarm.wait(Instant::now).len(), 1);
        assert!(Instant::now() >= soon, "not before it is due");
    });
}

/// The thread sleeps for ever, or for long, when somebody comes who is due sooner.
#[test]
fn who_comes_first_wakes_the_thread() {
    let alarm: &'static Alarm = Box::leak(Box::new(Alarm::new()));
    alarm.insert((Instant::now() + LONG, 1), Waker::noop().clone(), || Ok(())).unwrap();
    let (sender, woken) = mpsc::channel();
    thread::spawn(move || sender.send(alarm.wait(Instant::now).len()).unwrap());
    // Whether the thread waits already or not: it learns of the sleeper.
    thread::yield_now();
    alarm.insert((Instant::now() + Duration::from_millis(20), 2), Waker::noop().clone(), || Ok(())).unwrap();
    assert_eq!(woken.recv_timeout(Duration::from_secs(60)), Ok(1));
}

/// A limit of time that is not reached costs a place among the sleepers, and no switch to the thread and back.
#[test]
fn who_comes_and_goes_while_the_thread_waits_for_one_before_does_not_wake_it() {
    let alarm: &'static Alarm = Box::leak(Box::new(Alarm::new()));
    let looks: &'static AtomicUsize = Box::leak(Box::default());
    let (sender, woken) = mpsc::channel();
    thread::spawn(move || {
        let now = || {
            looks.fetch_add(1, Ordering::Relaxed);
            Instant::now()
        };
        sender.send(alarm.wait(now).len()).unwrap();
    });
    let begin = Instant::now();
    while lock(&alarm.sleepers).thread != Thread::Waits {
        thread::yield_now();
    }
    for nth in 0..10_000 {
        let key = (begin + LONG + Duration::from_nanos(nth), nth as usize);
        assert!(alarm.insert(key, Waker::noop().clone(), || Ok(())).is_ok());
        assert!(alarm.remove(key).is_some());
        if nth % 1000 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    // One that woke it, and whatever the system does by itself.
    assert!(looks.load(Ordering::Relaxed) < 10, "{looks:?}");
    alarm.insert((begin, 0), Waker::noop().clone(), || Ok(())).unwrap();
    assert_eq!(woken.recv_timeout(Duration::from_secs(60)), Ok(1));
}

#[test]
fn a_process_that_was_forked_has_a_thread_of_its_own() {
    let (parent, child) = (House::of_this_process(), House::of(u32::MAX));
    parent.enter((Instant::now() + LONG, 0), Waker::noop().clone()).unwrap();
    assert_eq!((parent.process, child.process), (process::id(), u32::MAX));
    assert!(lock(&parent.alarm.sleepers).is_running && !lock(&child.alarm.sleepers).is_running);
    assert!(std::ptr::eq(child, House::of(u32::MAX)) && std::ptr::eq(parent, House::of_this_process()));
    // What was entered in the parent is left alone by the child, whose lock nobody may ever give back.
    let held = lock(&child.alarm.sleepers);
    drop(Sleep { end: Some(Instant::now() + LONG), entry: Some(Entry { house: child, number: 0 }) });
    drop(held);
}

#[test]
fn without_a_thread_to_be_had_the_sleeper_is_told() {
    let alarm = Alarm::new();
    let key = (Instant::now() + LONG, 1);
    alarm.insert(key, Waker::noop().clone(), || Err(io::ErrorKind::WouldBlock.into())).unwrap_err();
    assert!(lock(&alarm.sleepers).by_end.is_empty());
    alarm.insert(key, Waker::noop().clone(), || Ok(())).unwrap();
    assert!(alarm.remove(key).is_some());
}

/// What a task's waker may be: the last owner of a task that holds another sleep.
struct Owner(#[expect(dead_code, reason = "is dropped")] StdMutex<Sleep>, Arc<AtomicUsize>);

impl Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

fn owner(dropped: &Arc<AtomicUsize>) -> Waker {
    let mut inner = Sleep::until(Some(Instant::now() + LONG));
    assert!(poll(&mut inner, Waker::noop()).is_pending());
    Waker::from(Arc::new(Owner(StdMutex::new(inner), dropped.clone())))
}

#[test]
fn a_waker_that_owns_a_sleeping_task_is_dropped_without_the_lock() {
    let dropped = Arc::new(AtomicUsize::new(0));
    within_a_minute({
        let dropped = dropped.clone();
        move || {
            let mut sleep = Sleep::until(Some(Instant::now() + LONG));
            assert!(poll(&mut sleep, &owner(&dropped)).is_pending());
            // Another waker takes its place, and then the sleep is dropped.
            assert!(poll(&mut sleep, &owner(&dropped)).is_pending());
            assert_eq!(dropped.load(Ordering::Relaxed), 1);
            drop(sleep);
        }
    });
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("a waker that panics"));
    }
}

#[test]
fn a_waker_that_panics_does_not_keep_others_asleep() {
    let soon = || Some(Instant::now() + Duration::from_millis(1));
    let mut bad = Sleep::until(soon());
    let _ = poll(&mut bad, &Waker::from(Arc::new(Panics)));
    for _ in 0..2 {
        within_a_minute(move || {
            let (sender, woken) = mpsc::channel();
            let waker = Waker::from(Arc::new(Tell(StdMutex::new(sender), 1)));
            let mut sleep = Sleep::until(soon());
            while poll(&mut sleep, &waker).is_pending() {
                woken.recv().unwrap();
            }
        });
    }
}

/// Fails instead of hanging.
fn within_a_minute(work: impl FnOnce() + Send + 'static) {
    let (sender, done) = mpsc::channel();
    thread::spawn(move || {
        work();
        sender.send(()).unwrap();
    });
    done.recv_timeout(Duration::from_secs(60)).expect("it hangs, or it failed");
}
