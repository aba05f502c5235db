//! How often a second, of one side and of the other.

use crate::ROUND;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// How many times a second `cycle` runs, by so many callers at once.
pub(crate) async fn rate<F, Fut>(callers: u32, cycle: F) -> f64
where
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let (done, begin) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (cycle, done) = (cycle.clone(), done.clone());
            tokio::spawn(async move {
                while begin.elapsed() < ROUND {
                    cycle().await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    done.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn row(work: &str, floor: Vec<f64>, ours: Vec<f64>, target: &str) {
    let (floor, ours) = (median(floor), median(ours));
    println!("| {work} | {floor:.0} | {ours:.0} | {:.2} | {target} |", ours / floor);
}
