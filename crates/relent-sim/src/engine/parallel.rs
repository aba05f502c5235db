//! Work that is shared among threads. What comes of it does not depend on them.

use super::control::Control;
use std::{
    iter,
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
    let begun = begun(jobs, threads, control, work).into_iter().map(|done| done.map(|done| *done));
    begun.chain(iter::repeat_with(|| None)).take(jobs).collect()
}

/// The same up to the last that had begun: of very many that somebody stops at once there is nothing to be put together. Each has a place of
/// its own, so that they go from one list to another without standing in both.
pub(crate) fn begun<T: Send>(
    jobs: usize,
    threads: usize,
    control: &Control,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<Option<Box<T>>> {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    control.at_work.store(threads.clamp(1, jobs.max(1)), Ordering::Relaxed);
    let share = || {
        let mut own = Vec::new();
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs || control.is_over() {
                break;
            }
            own.push((job, Box::new(work(job))));
        }
        all.lock().expect("no thread panics while it holds this").append(&mut own);
    };
    thread::scope(|scope| {
        for _ in 1..threads.clamp(1, jobs.max(1)) {
            // Where the system has no thread to give, those that are there do the work.
            if !spawn(scope, share) {
                break;
            }
        }
        share();
    });
    let all = all.into_inner().expect("no thread panics while it holds this");
    let length = all.iter().map(|(job, _)| job + 1).max().unwrap_or(0);
    let mut results: Vec<Option<Box<T>>> = iter::repeat_with(|| None).take(length).collect();
    for (job, done) in all {
        results[job] = Some(done);
    }
    results
}

/// Whether a thread could be had.
fn spawn<'scope>(scope: &'scope thread::Scope<'scope, '_>, work: impl FnOnce() + Send + 'scope) -> bool {
    #[cfg(test)]
    if tests::NO_THREADS.get() {
        return false;
    }
    thread::Builder::new().spawn_scoped(scope, work).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        /// Whether the system has no thread to give, for a test.
        pub(super) static NO_THREADS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }

    #[test]
    fn where_no_thread_can_be_had_the_work_is_done_all_the_same() {
        NO_THREADS.set(true);
        let squares = each(10, 4, &Control::default(), |job| (job * job, thread::current().id()));
        NO_THREADS.set(false);
        assert!(squares.iter().all(|done| done.is_some_and(|(_, by)| by == thread::current().id())));
    }

    #[test]
    fn results_are_in_order_on_any_number_of_threads() {
        let control = Control::default();
        for threads in [0, 1, 3, 100] {
            let squares = each(10, threads, &control, |job| job * job);
            assert_eq!(squares, (0..10).map(|job| Some(job * job)).collect::<Vec<_>>());
        }
        assert!(each(0, 4, &control, |job| job).is_empty());
        assert_eq!(begun(3, 2, &control, |job| job), [0, 1, 2].map(|job| Some(Box::new(job))));
        control.stop();
        assert_eq!(each(2, 1, &control, |job| job), [None, None]);
        assert_eq!(begun(usize::MAX, 2, &control, |job| job), []);
    }
}
