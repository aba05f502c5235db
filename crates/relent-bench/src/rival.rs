//! A second thread that does the same on the same object while a case is timed.
//!
//! Two threads that take turns on one processor are not two threads: so each has a processor of its own, and a turn
//! in which the second one was held off by something else on the machine is not counted.

use crate::harness::Case;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Instant,
};

/// How many of its operations the rival does before it tells.
const BLOCK: u64 = 64;

/// What `make` makes, timed while a second thread does what `make` makes.
pub(crate) fn beside<F: FnMut() + Send + 'static>(name: &'static str, make: impl Fn() -> F) -> Case {
    let shared = Arc::new(Shared::default());
    let (told, mut other) = (shared.clone(), make());
    // The rival says when it begins and when it rests: one that was told both before it got to run would miss a turn.
    let (says, said) = mpsc::sync_channel(0);
    let thread = thread::spawn(move || {
        stay_on(|processors| processors.last());
        loop {
            // The channel parks this thread too, and may take what it was woken with: the flag alone tells.
            while !told.runs.load(Ordering::Relaxed) {
                thread::park();
            }
            if says.send(()).is_err() {
                return;
            }
            while told.runs.load(Ordering::Relaxed) {
                (0..BLOCK).for_each(|_| other());
                told.done.fetch_add(BLOCK, Ordering::Relaxed);
            }
            if says.send(()).is_err() {
                return;
            }
        }
    });
    let mut once = make();
    let rival = {
        let shared = shared.clone();
        move |runs: bool| {
            shared.runs.store(runs, Ordering::Relaxed);
            thread.thread().unpark();
            said.recv().expect("the rival runs as long as its case");
        }
    };
    Case::sometimes(name, move |iterations| {
        let before = stay_on(|processors| processors.first());
        rival(true);
        let (start, done) = (Instant::now(), shared.done.load(Ordering::Relaxed));
        (0..iterations).for_each(|_| once());
        let (took, done) = (start.elapsed(), shared.done.load(Ordering::Relaxed) - done);
        rival(false);
        if let Some(before) = before {
            _ = sched_setaffinity(None, &before);
        }
        // In a few iterations nobody can tell. A fourth as many is what a fair rival has at the least.
        (iterations < BLOCK * 8 || done * 4 >= iterations).then_some(took)
    })
}

/// Lines of the cache of their own, so that the flag and the count disturb nobody.
#[derive(Default)]
#[repr(align(128))]
struct Shared {
    runs: AtomicBool,
    done: AtomicU64,
}

/// Keeps this thread on one of the processors it may use, and says which those were. Without that, figures are worse
/// and not wrong.
fn stay_on(pick: impl Fn(&[usize]) -> Option<&usize>) -> Option<CpuSet> {
    let before = sched_getaffinity(None).ok()?;
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| before.is_set(*cpu)).collect();
    let mut one = CpuSet::new();
    one.set(*pick(&processors)?);
    sched_setaffinity(None, &one).ok()?;
    Some(before)
}
