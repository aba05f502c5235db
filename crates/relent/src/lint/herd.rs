//! Clients that all fail at once, each time: what a policy does to a herd.

use crate::core::{backoff::Step, policy::Policy, rng, verdict::Verdict};
use core::time::Duration;

/// Clients that all fail at once, each time. Their draws before a retry are spread evenly, in another order each time.
pub(super) struct Herd {
    failures: u32,
    memory: [u64; Herd::COUNT],
    elapsed: [u64; Herd::COUNT],
    delays: [u64; Herd::COUNT],
}

impl Herd {
    pub(super) const COUNT: usize = 512;
    const STRATUM: u64 = u64::MAX / Herd::COUNT as u64;

    pub(super) fn new(policy: &Policy) -> Herd {
        let zero = [0; Herd::COUNT];
        Herd { failures: 0, memory: [policy.first_memory(); Herd::COUNT], elapsed: zero, delays: zero }
    }

    /// The sorted delays of all clients that wait once more; `None` when none does.
    pub(super) fn wait(&mut self, policy: &Policy) -> Option<&[u64]> {
        self.failures += 1;
        let order = rng::mix(u64::from(self.failures));
        let mut live = 0;
        for i in 0..Herd::COUNT {
            let stratum = (i as u64).wrapping_mul(order | 1).wrapping_add(order >> 32) % Herd::COUNT as u64;
            let within = rng::scale(rng::draw(order, i as u32), Herd::STRATUM);
            let mut step = Step {
                failures: self.failures,
                elapsed: Duration::from_nanos(self.elapsed[i]),
                verdict: Verdict::Transient,
                draw: stratum * Herd::STRATUM + within,
                memory: self.memory[i],
            };
            let Some(delay) = policy.delay(&mut step) else { continue };
            self.memory[i] = step.memory;
            self.elapsed[i] = self.elapsed[i].saturating_add(delay);
            self.delays[live] = delay;
            live += 1;
        }
        let delays = &mut self.delays[..live];
        delays.sort_unstable();
        (live > 0).then_some(delays)
    }
}
