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
