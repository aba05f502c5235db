use super::*;
use crate::{modelled::Count, sync::Arc};
use loom::{model, thread};

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
        assert_eq!(count.woken(), 1);
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
        assert_eq!((count.woken(), other.woken()), (usize::from(!has_left), 1));
        assert!(lock(&alarm.sleepers).by_end.is_empty());
    });
}
