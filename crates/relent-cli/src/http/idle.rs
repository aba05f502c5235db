//! The limit on silence: an attempt in which no byte moves for too long has failed, however long it may take otherwise.

use relent::duration::Human;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{self, Instant};

/// When something of a request has moved last.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulse(Arc<Mutex<Option<Instant>>>);

impl Pulse {
    /// Something moves.
    pub(super) fn beat(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(Instant::now());
    }

    fn last(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut since = Instant::now();
        loop {
            if let Ok(came) = time::timeout(limit.saturating_sub(since.elapsed()), &mut next).await {
                return Some(came);
            }
            since = pulse.last().filter(|last| *last > since)?;
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
pub(super) mod tests {
    use super::*;

    /// Runs it by a clock that goes on when nothing else does.
    pub(in crate::http) fn paused<F: Future>(test: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(test)
    }

    #[test]
    fn silence_has_a_limit_and_work_has_none() {
        let patience = Patience(Some(Duration::from_secs(60)));
        paused(async {
            let pulse = Pulse::default();
            let began = Instant::now();
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
            let began = Instant::now();
            let ends = async {
                time::sleep(Duration::from_secs(10)).await;
                pulse.beat();
                std::future::pending::<()>().await;
            };
            assert_eq!(patience.wait(&pulse, ends).await, None);
            assert_eq!(began.elapsed(), Duration::from_secs(70), "from the last byte on");
            let late = async { time::sleep(Duration::from_secs(1000)).await };
            assert_eq!(Patience(None).wait(&pulse, late).await, Some(()));
        });
    }
}
