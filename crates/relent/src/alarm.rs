//! One thread that wakes sleepers, for executors without a timer that we know.

use crate::{
    core::atomic::Counter,
    sync::{Condvar, Mutex, MutexGuard, lock, wake_all},
};
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use std::{
    collections::BTreeMap,
    io, process,
    sync::{OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Ready at a point in time; never, if that lies beyond what the clock can say.
pub(crate) struct Sleep {
    end: Option<Instant>,
    entry: Option<Entry>,
}

/// Where a sleeper is entered.
struct Entry {
    house: &'static House,
    number: usize,
}

impl Sleep {
    pub(crate) fn until(end: Option<Instant>) -> Sleep {
        Sleep { end, entry: None }
    }

    /// Takes the sleeper out, unless it was entered before a fork: that thread is not here, and somebody who is not
    /// here either may hold its lock for ever.
    fn leave(&mut self) {
        if let (Some(end), Some(Entry { house, number })) = (self.end, self.entry.take())
            && house.process == process::id()
        {
            drop(house.alarm.remove((end, number)));
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(end) = self.end else { return Poll::Pending };
        if Instant::now() >= end {
            self.leave();
            return Poll::Ready(());
        }
        let house = House::of_this_process();
        let number = match &self.entry {
            Some(entry) if entry.house.process == house.process => entry.number,
            _ => house.alarm.numbers.next(),
        };
        match house.enter((end, number), cx.waker().clone()) {
            Ok(()) => {
                self.entry = Some(Entry { house, number });
                Poll::Pending
            }
            Err(_) => {
                // There is no thread to be had, so this one waits: late for its other tasks, but not for ever.
                thread::sleep(end.saturating_duration_since(Instant::now()));
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("end", &self.end).finish_non_exhaustive()
    }
}

/// The alarm of one process, and, behind it, that of a process forked from it, whose thread does not come along.
struct House {
    process: u32,
    alarm: Alarm,
    next: OnceLock<&'static House>,
}

impl House {
    fn of_this_process() -> &'static House {
        House::of(process::id())
    }

    /// The alarm of a process. Each has one for as long as it runs.
    fn of(process: u32) -> &'static House {
        static FIRST: OnceLock<&'static House> = OnceLock::new();
        let mut next = &FIRST;
        loop {
            let house = match next.get() {
                Some(house) => *house,
                None => {
                    // Made before, because a fork in the middle of `get_or_init` would leave the child waiting for it.
                    let new: &'static House =
                        Box::leak(Box::new(House { process, alarm: Alarm::new(), next: OnceLock::new() }));
                    match next.set(new) {
                        Ok(()) => new,
                        Err(_) => continue,
                    }
                }
            };
            if house.process == process {
                return house;
            }
            next = &house.next;
        }
    }

    /// Enters a sleeper, and starts the thread for the first.
    fn enter(&'static self, key: Key, waker: Waker) -> io::Result<()> {
        let start = || {
            let named = thread::Builder::new().name("relent-timer".to_owned());
            named.spawn(|| self.alarm.run()).map(drop)
        };
        let replaced = self.alarm.insert(key, waker, start)?;
        drop(replaced);
        Ok(())
    }
}

/// When a sleeper wants to be woken, and its number.
type Key = (Instant, usize);

/// Who sleeps until when, and the thread's wait for the first of them.
struct Alarm {
    numbers: Counter,
    sleepers: Mutex<Sleepers>,
    changed: Condvar,
}

#[derive(Default)]
struct Sleepers {
    by_end: BTreeMap<Key, Waker>,
    is_running: bool,
    thread: Thread,
}

/// What the thread does, while somebody else has the lock.
#[derive(Default)]
enum Thread {
    /// It will look who sleeps before it waits.
    #[default]
    Looks,
    /// It waits; for whoever was first when it began, who may have left since.
    Waits(Option<Instant>),
}

impl Alarm {
    fn new() -> Alarm {
        Alarm { numbers: Counter::new(), sleepers: Mutex::new(Sleepers::default()), changed: Condvar::new() }
    }

    /// Enters a sleeper or renews its waker; what it replaced, to be dropped without the lock.
    fn insert(&self, key: Key, waker: Waker, start: impl FnOnce() -> io::Result<()>) -> io::Result<Option<Waker>> {
        let mut sleepers = lock(&self.sleepers);
        if !sleepers.is_running {
            start()?;
            sleepers.is_running = true;
        }
        let replaced = sleepers.by_end.insert(key, waker);
        // A sleeper that leaves wakes nobody, so most that come and go again do not either: the thread waits for one before.
        if let Thread::Waits(until) = sleepers.thread
            && until.is_none_or(|until| key.0 < until)
        {
            sleepers.thread = Thread::Looks;
            self.changed.notify_one();
        }
        Ok(replaced)
    }

    /// Takes a sleeper out; its waker, to be dropped without the lock.
    fn remove(&self, key: Key) -> Option<Waker> {
        lock(&self.sleepers).by_end.remove(&key)
    }

    fn run(&self) {
        loop {
            let due = self.wait(Instant::now);
            // A panic is that of the task that was to be woken, and has been told; the others still want to wake.
            core::mem::forget(wake_all(due));
        }
    }

    /// Waits until somebody is due; who is.
    fn wait(&self, now: impl Fn() -> Instant) -> Vec<Waker> {
        let mut sleepers = lock(&self.sleepers);
        loop {
            let now = now();
            let due = due(&mut sleepers, now);
            if !due.is_empty() {
                sleepers.thread = Thread::Looks;
                return due;
            }
            let until = sleepers.by_end.first_key_value().map(|((end, _), _)| *end);
            sleepers.thread = Thread::Waits(until);
            let wait = until.map_or(Duration::MAX, |end| end - now);
            sleepers = self.changed.wait_timeout(sleepers, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn due(sleepers: &mut MutexGuard<'_, Sleepers>, now: Instant) -> Vec<Waker> {
    let mut due = Vec::new();
    while let Some(entry) = sleepers.by_end.first_entry().filter(|entry| entry.key().0 <= now) {
        due.push(entry.remove());
    }
    due
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
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
        while !matches!(lock(&alarm.sleepers).thread, Thread::Waits(None)) {
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
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::Arc;
    use loom::{model, thread};
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_sleeper_that_comes_while_the_thread_goes_to_wait_is_woken() {
        let (begin, end) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        model(move || {
            let alarm = Arc::new(Alarm::new());
            let count = std::sync::Arc::new(Count::default());
            let sleeper = thread::spawn({
                let (alarm, waker) = (alarm.clone(), Waker::from(count.clone()));
                move || drop(alarm.insert((begin, 1), waker, || Ok(())))
            });
            wake_all(alarm.wait(|| end)).unwrap();
            sleeper.join().unwrap();
            assert_eq!(count.0.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn a_sleeper_that_leaves_is_woken_at_most_once_and_leaves_nothing() {
        let (begin, end) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        model(move || {
            let alarm = Arc::new(Alarm::new());
            let (count, other) = (std::sync::Arc::new(Count::default()), std::sync::Arc::new(Count::default()));
            alarm.insert((begin, 1), Waker::from(count.clone()), || Ok(())).unwrap();
            alarm.insert((begin, 2), Waker::from(other.clone()), || Ok(())).unwrap();
            let leaver = thread::spawn({
                let alarm = alarm.clone();
                move || alarm.remove((begin, 1)).is_some()
            });
            wake_all(alarm.wait(|| end)).unwrap();
            let has_left = leaver.join().unwrap();
            assert_eq!((count.0.load(Ordering::Relaxed), other.0.load(Ordering::Relaxed)), (usize::from(!has_left), 1));
            assert!(lock(&alarm.sleepers).by_end.is_empty());
        });
    }
}
