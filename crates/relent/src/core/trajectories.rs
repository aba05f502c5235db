//! What a custom rule does on average: it is a black box, so it is run.
//!
//! 512 clients fail together, each time. Their draws before a retry are the middles of 512 equal parts of the range, one
//! each. Where a rule remembers something, the clients are put in the order of what they remember before the draws are
//! dealt out by the bits of their places, reversed: so clients that remember much get large and small draws alike, and
//! the means of chained rules are right to one or two hundredths, which a random deal would need a hundred times as many
//! clients for (L'Ecuyer, Lécot, Tuffin: A Randomized Quasi-Monte Carlo Simulation Method for Markov Chains, 2008).
//!
//! The least and the greatest are those of all clients and of four more, whose draws are always the least, always the
//! greatest, or one and the other in turn; and what each of them would have waited by the least and by the greatest draw.

use super::{backoff::Step, bounds::Bounds, policy::Policy, rng, verdict::Verdict};
use core::time::Duration;

/// Clients of one rule, from failure to failure.
#[derive(Clone)]
pub(crate) struct Trajectories {
    clients: [Client; Trajectories::COUNT],
    extremes: [Client; 4],
}

/// What a client brings to its next failure. Ordered by what it remembers.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Client {
    memory: u64,
    elapsed: u64,
}

impl Trajectories {
    const COUNT: usize = 512;
    const STRATUM: u64 = u64::MAX / Trajectories::COUNT as u64 + 1;

    pub(crate) fn new(policy: &Policy) -> Trajectories {
        let client = Client { memory: policy.first_memory(), elapsed: 0 };
        Trajectories { clients: [client; Self::COUNT], extremes: [client; 4] }
    }

    /// The delays after this many failures; `None` when all clients have given up.
    pub(crate) fn next(&mut self, policy: &Policy, failures: u32) -> Option<Bounds> {
        if self.clients.iter().any(|client| client.memory != self.clients[0].memory) {
            self.clients.sort_unstable();
        }
        let shift = rng::mix(u64::from(failures)) as usize % Self::COUNT;
        let (mut min, mut max, mut sum, mut live) = (u64::MAX, 0, 0.0, 0u32);
        for client in self.clients.iter().chain(&self.extremes) {
            for delay in [0, u64::MAX].into_iter().filter_map(|draw| { *client }.wait(policy, failures, draw)) {
                (min, max) = (min.min(delay), max.max(delay));
            }
        }
        for (place, client) in self.clients.iter_mut().enumerate() {
            let stratum = (reversed(place) + shift) % Self::COUNT;
            let Some(delay) = client.wait(policy, failures, draw_of(stratum)) else { continue };
            (min, max) = (min.min(delay), max.max(delay));
            (sum, live) = (sum + delay as f64, live + 1);
        }
        let in_turn = [0, u64::MAX][failures as usize % 2];
        for (client, draw) in self.extremes.iter_mut().zip([0, u64::MAX, in_turn, !in_turn]) {
            let Some(delay) = client.wait(policy, failures, draw) else { continue };
            (min, max) = (min.min(delay), max.max(delay));
        }
        (live > 0).then(|| Bounds::of_nanos(min, (sum / f64::from(live) + 0.5) as u64, max))
    }
}

impl Client {
    fn wait(&mut self, policy: &Policy, failures: u32, draw: u64) -> Option<u64> {
        let elapsed = Duration::from_nanos(self.elapsed);
        let mut step = Step { failures, elapsed, verdict: Verdict::Transient, draw, memory: self.memory };
        let delay = policy.delay(&mut step)?;
        *self = Client { memory: step.memory, elapsed: self.elapsed.saturating_add(delay) };
        Some(delay)
    }
}

/// The middle of a part of the range, or next to it: a rule may look at the remainder of a division, so the draws are an
/// arithmetic progression whose step has no small divisor. Opposite parts mirror each other, so that an even spread has
/// its exact mean.
fn draw_of(stratum: usize) -> u64 {
    const ASIDE: u64 = 9;
    const START: u64 = Trajectories::STRATUM / 2 - (ASIDE * (Trajectories::COUNT as u64 - 1)).div_ceil(2);
    START + stratum as u64 * (Trajectories::STRATUM + ASIDE)
}

/// A place with its bits in reverse order: neighbours end up far apart.
fn reversed(place: usize) -> usize {
    place.reverse_bits() >> (usize::BITS - Trajectories::COUNT.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backoff;
    use core::fmt;

    #[test]
    fn every_place_has_a_stratum_of_its_own() {
        let mut seen = [false; Trajectories::COUNT];
        for place in 0..Trajectories::COUNT {
            assert!(!core::mem::replace(&mut seen[reversed(place)], true));
        }
    }

    #[test]
    fn draws_mirror_each_other_and_leave_every_remainder() {
        for stratum in 0..Trajectories::COUNT {
            assert_eq!(draw_of(stratum), !draw_of(Trajectories::COUNT - 1 - stratum));
        }
        for divisor in [2, 3, 5, 7, 10, 25, 50, 100, 250] {
            let mut seen = [0; 250];
            (0..Trajectories::COUNT).for_each(|nth| seen[(draw_of(nth) % divisor) as usize] += 1);
            let seen = &seen[..divisor as usize];
            assert!(seen.iter().max().unwrap() - seen.iter().min().unwrap() <= 2, "{divisor}: {seen:?}");
        }
    }

    /// A rule written as a function of failures, random fraction and memory.
    struct Rule(fn(u32, f64, &mut u64) -> u64);

    impl fmt::Debug for Rule {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("rule")
        }
    }

    impl Backoff for Rule {
        fn name(&self) -> &str {
            "rule"
        }
        fn delay(&self, step: &mut Step) -> Option<Duration> {
            Some(Duration::from_nanos((self.0)(step.failures, rng::unit(step.draw), &mut step.memory)))
        }
    }

    fn rows(rule: &'static Rule) -> [Bounds; 8] {
        let policy = Policy::custom(rule).unlimited_attempts();
        let mut rows = policy.schedule();
        core::array::from_fn(|_| rows.next().unwrap().delay)
    }

    /// `E' = (base + 3 E) / 2`.
    #[test]
    fn chained_means_follow_their_recursion() {
        let rows = rows(&Rule(|_, r, previous| {
            let before = (*previous).max(1_000_000) as f64;
            *previous = (1e6 + r * (3.0 * before - 1e6)) as u64;
            *previous
        }));
        let mut expected = 1e6;
        for (nth, row) in rows.iter().enumerate() {
            expected = (1e6 + 3.0 * expected) / 2.0;
            let told = row.mean.as_nanos() as f64;
            assert!((told / expected - 1.0).abs() < 0.025, "retry {}: {told} against {expected}", nth + 1);
            assert_eq!(row.min, Duration::from_millis(1));
        }
    }

    /// The difference of two draws in a row is least where the one before was greatest.
    #[test]
    fn the_ends_of_differences_are_found() {
        let rows = rows(&Rule(|_, r, previous| {
            let now = (r * 1e6) as u64;
            2_000_000 + now - core::mem::replace(previous, now)
        }));
        for row in &rows[1..] {
            assert!(row.min < Duration::from_nanos(1_000_010) && row.max > Duration::from_nanos(2_999_990), "{row:?}");
        }
    }
}
