//! The limit on silence: an attempt in which no byte moves for too long has failed, however long it may take otherwise.

use relent::duration::Human;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time;

/// Counts what has moved of a request's body.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Something moves.
    pub(super) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The longest time without a byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience(pub(super) Option<Duration>);

impl Patience {
    /// Waits for the next byte; `None` if none came for too long.
    pub(super) async fn wait<F: Future>(self, pulse: &Pulse, next: F) -> Option<F::Output> {
        let Some(limit) = self.0 else { return Some(next.await) };
        let mut next = std::pin::pin!(next);
        loop {
            let before = pulse.count();
            match time::timeout(limit, &mut next).await {
                Ok(came) => return Some(came),
                Err(_) if pulse.count() != before => {}
                Err(_) => return None,
            }
        }
    }

    /// The shorter one.
    pub(super) fn at_most(self, most: Duration) -> Patience {
        Patience(Some(self.0.map_or(most, |limit| limit.min(most))))
    }

    /// `for 60s`.
    pub(super) fn shown(self) -> String {
        self.0.map_or_else(String::new, |limit| format!("for {}", Human(limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paused<F: Future>(test: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(test)
    }

    #[test]
    fn silence_has_a_limit_and_work_has_none() {
        let patience = Patience(Some(Duration::from_secs(60)));
        paused(async {
            let pulse = Pulse::default();
            let began = time::Instant::now();
            assert_eq!(patience.wait(&pulse, std::future::pending::<()>()).await, None);
            assert_eq!(began.elapsed(), Duration::from_secs(60));
            let slow = async {
                for _ in 0..10 {
                    time::sleep(Duration::from_secs(50)).await;
                    pulse.beat();
                }
                7
            };
            assert_eq!(patience.wait(&pulse, slow).await, Some(7));
            let late = async { time::sleep(Duration::from_secs(1000)).await };
            assert_eq!(Patience(None).wait(&pulse, late).await, Some(()));
        });
    }
}
