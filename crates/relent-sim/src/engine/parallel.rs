//! Work that is shared among threads. What comes of it does not depend on them.

use super::control::Control;
use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Does jobs 0 to `jobs` on so many threads, and returns what came of each, in order; `None` for those that had not
/// begun when somebody stopped it.
pub(crate) fn each<T: Send>(
    jobs: usize,
    threads: usize,
    control: &Control,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<Option<T>> {
    let results: Vec<Mutex<Option<T>>> = (0..jobs).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let share = || {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs || control.is_stopped() {
                break;
            }
            let done = work(job);
            *results[job].lock().expect("no thread panics while it holds this") = Some(done);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.clamp(1, jobs.max(1)) {
            scope.spawn(share);
        }
        share();
    });
    results.into_iter().map(|result| result.into_inner().expect("no thread panics while it holds this")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_on_any_number_of_threads() {
        let control = Control::default();
        for threads in [0, 1, 3, 100] {
            let squares = each(10, threads, &control, |job| job * job);
            assert_eq!(squares, (0..10).map(|job| Some(job * job)).collect::<Vec<_>>());
        }
        assert!(each(0, 4, &control, |job| job).is_empty());
        control.stop();
        assert_eq!(each(2, 1, &control, |job| job), [None, None]);
    }
}
