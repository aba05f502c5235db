//! What a herd does under a policy, in the figures that the rules look at.

use super::herd::Herd;
use crate::core::policy::Policy;

/// Retries a herd is watched for: doubling a millisecond that often is half a million years.
pub(super) const ROWS: u32 = 64;

pub(super) const MILLISECOND: u64 = 1_000_000;

/// What a herd does.
pub(super) struct Behaviour {
    /// Retries watched.
    pub(super) rows: u32,
    /// Whether the delays ended by themselves.
    pub(super) ended: bool,
    /// Whether all clients waited the identical time before every retry.
    pub(super) in_step: bool,
    /// The first delay that is not zero.
    pub(super) first: u64,
    /// Before each retry, the most frequent delay and the share of clients that waited it.
    pub(super) alike: [Alike; ROWS as usize],
    /// The greatest share of clients that did not wait at all, and before which attempt.
    pub(super) not_at_all: (f64, u32),
    /// The greatest share of clients that came back within a millisecond, and before which attempt.
    pub(super) soonest: (f64, u32),
}

/// Clients that wait the identical time.
#[derive(Clone, Copy, Default)]
pub(super) struct Alike {
    pub(super) share: f64,
    pub(super) delay: u64,
}

impl Behaviour {
    pub(super) fn of(policy: &Policy) -> Behaviour {
        let mut behaviour = Behaviour {
            rows: 0,
            ended: false,
            in_step: true,
            first: 0,
            alike: [Alike::default(); ROWS as usize],
            not_at_all: (0.0, 0),
            soonest: (0.0, 0),
        };
        let mut herd = Herd::new(policy);
        let most = policy.settings().max_attempts.map_or(ROWS, |most| ROWS.min(most - 1));
        while behaviour.rows < most {
            let Some(delays) = herd.wait(policy) else {
                behaviour.ended = true;
                break;
            };
            behaviour.rows += 1;
            behaviour.watch(delays);
        }
        behaviour
    }

    /// Before each retry that was watched, the clients that wait the identical time.
    pub(super) fn alike(&self) -> &[Alike] {
        &self.alike[..self.rows as usize]
    }

    /// Takes in the sorted delays of all clients before the next retry.
    fn watch(&mut self, delays: &[u64]) {
        let count = delays.len() as f64;
        let (same, delay) = most_frequent(delays);
        let share = same as f64 / count;
        let attempt = self.rows + 1;
        if self.first == 0 {
            self.first = delay;
        }
        self.in_step &= share == 1.0;
        self.alike[self.rows as usize - 1] = Alike { share, delay };
        let within = |limit| delays.partition_point(|&delay| delay < limit) as f64 / count;
        for (greatest, share) in [(&mut self.not_at_all, within(1)), (&mut self.soonest, within(MILLISECOND))] {
            if share > greatest.0 {
                *greatest = (share, attempt);
            }
        }
    }
}

/// The longest run of equal values among sorted ones, and its value.
fn most_frequent(sorted: &[u64]) -> (usize, u64) {
    sorted.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0])).max().unwrap_or_default()
}
