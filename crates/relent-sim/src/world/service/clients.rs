//! The clients' side of a failure: relent's core decides. Budgets and breakers, which calls share, belong here.

use crate::engine::draws::{Draws, remembers_draws};
use relent::{Call, Decision, Policy, Saved, Timestamp, Verdict, rng::mix};

/// A failure that a client noticed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) client: u32,
    /// Which population the client is of.
    pub(crate) place: usize,
    /// Attempts before the one that failed.
    pub(crate) failures: u32,
    /// When the client's call began.
    pub(crate) started: u64,
    /// When the failure was noticed.
    pub(crate) now: u64,
    pub(crate) verdict: Verdict,
}

/// What the clients do about failures.
pub(crate) trait Clients {
    fn fail(&mut self, failure: Failure) -> Decision;
}

/// Clients that retry on their own: a [`Call`] each, of which only what cannot be computed is kept.
///
/// The core's own curves remember nothing that depends on luck, except for decorrelated jitter. So the memory after
/// `k` failures is the same for all, and a client costs no memory here at all.
pub(crate) struct Single<'a> {
    policy: &'a Policy,
    draws: Draws,
    /// The memory after so many failures.
    common: Vec<u64>,
    /// The memory of each client, where it depends on luck.
    own: Vec<u64>,
}

/// Failures after which the memory of the core's own curves no longer matters: every one is at its cap, infinite, or
/// does not use it.
const COMMON: usize = 4096;

impl<'a> Single<'a> {
    pub(crate) fn new(policy: &'a Policy, draws: Draws, clients: usize) -> Single<'a> {
        let first = policy.call(Timestamp::ZERO, 0).save().memory;
        let (common, own) = match remembers_draws(policy) {
            true => (Vec::new(), vec![first; clients]),
            false => (common_memory(policy), Vec::new()),
        };
        Single { policy, draws, common, own }
    }

    #[inline]
    fn memory(&self, client: u32, failures: u32) -> u64 {
        if self.own.is_empty() { self.common[(failures as usize).min(COMMON - 1)] } else { self.own[client as usize] }
    }
}

fn common_memory(policy: &Policy) -> Vec<u64> {
    let unlimited = relent::Settings { max_attempts: None, max_elapsed: None, timeout: None, ..policy.settings() };
    let policy = unlimited.policy().expect("taking limits away leaves a valid policy");
    let mut call = policy.call(Timestamp::ZERO, 0);
    let mut memory = Vec::with_capacity(COMMON);
    for _ in 0..COMMON {
        memory.push(call.save().memory);
        call.on_failure_with(Timestamp::ZERO, Verdict::Transient, 0);
    }
    memory
}

impl Clients for Single<'_> {
    #[inline(always)]
    fn fail(&mut self, failure: Failure) -> Decision {
        let Failure { client, failures, started, now, verdict, .. } = failure;
        let saved = Saved { failures, memory: self.memory(client, failures) };
        let seed = self.draws.call(u64::from(client));
        let mut call = self.policy.resume(Timestamp::from_nanos(started), seed, saved);
        let now = Timestamp::from_nanos(now);
        let failure = failures.saturating_add(1);
        let draw = match self.draws.forced {
            None => relent::rng::draw(seed, failure),
            Some(forced) => forced(self.draws.seed(), u64::from(client), failure),
        };
        let decision = call.on_failure_with(now, verdict, draw);
        if !self.own.is_empty() {
            self.own[client as usize] = call.save().memory;
        }
        decision
    }
}

/// Clients behind layers of services that each retry: a [`Call`] for each layer of each client.
pub(crate) struct Layered<'a> {
    policy: &'a Policy,
    draws: Draws,
    layers: usize,
    say_overloaded: bool,
    /// From the layer next to the server to the client itself.
    calls: Vec<Call<&'a Policy>>,
}

impl<'a> Layered<'a> {
    pub(crate) fn new(
        policy: &'a Policy,
        draws: Draws,
        (clients, starts): (usize, impl Iterator<Item = u64>),
        layers: u32,
        say_overloaded: bool,
    ) -> Layered<'a> {
        let layers = layers as usize;
        let mut calls = Vec::with_capacity(clients * layers);
        for (client, start) in starts.enumerate() {
            for layer in 0..layers {
                calls.push(policy.call(Timestamp::from_nanos(start), layer_seed(&draws, client as u64, layer, 0)));
            }
        }
        Layered { policy, draws, layers, say_overloaded, calls }
    }
}

/// The seed of a layer's call: the outermost is the client's own, the inner ones are new for each call from above.
fn layer_seed(draws: &Draws, client: u64, layer: usize, failures: u32) -> u64 {
    mix(draws.call(client) ^ mix((layer as u64) << 32 | u64::from(failures)))
}

impl Clients for Layered<'_> {
    fn fail(&mut self, failure: Failure) -> Decision {
        let Failure { client, failures, now, mut verdict, .. } = failure;
        let now = Timestamp::from_nanos(now);
        let first = client as usize * self.layers;
        let calls = &mut self.calls[first..first + self.layers];
        let mut decision = None;
        for layer in 0..self.layers {
            let decided = calls[layer].on_failure(now, verdict);
            decision = Some(decided);
            if let Decision::Retry(delay) = decided {
                for (inner, call) in calls[..layer].iter_mut().enumerate() {
                    let seed = layer_seed(&self.draws, u64::from(client), inner, failures.saturating_add(1));
                    *call = self.policy.call(now + delay, seed);
                }
                break;
            }
            verdict = match verdict {
                // What must not be repeated is repeated by nobody.
                Verdict::Permanent | Verdict::Overloaded => verdict,
                _ if self.say_overloaded => Verdict::Overloaded,
                _ => Verdict::Transient,
            };
        }
        decision.expect("a chain has at least one layer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::Jitter;
    use std::time::Duration;

    fn failure(failures: u32, now: u64) -> Failure {
        Failure { client: 3, place: 0, failures, started: 0, now, verdict: Verdict::Transient }
    }

    #[test]
    fn a_client_does_what_its_call_would_do() {
        let ms = Duration::from_millis;
        let draws = Draws::new(5, None);
        for policy in [
            Policy::default(),
            Policy::exponential(ms(100)).jitter(Jitter::Decorrelated).max_attempts(30),
            Policy::linear(ms(10)).step(ms(3)).jitter(Jitter::Equal).max_attempts(100),
            Policy::fibonacci(ms(1)).max_elapsed(ms(300)),
            Policy::slots(ms(1)),
        ] {
            let mut clients = Single::new(&policy, draws, 4);
            let mut call = policy.call(Timestamp::ZERO, draws.call(3));
            for failures in 0..100 {
                let now = u64::from(failures) * 10_000_000;
                let expected = call.on_failure(Timestamp::from_nanos(now), Verdict::Transient);
                assert_eq!(clients.fail(failure(failures, now)), expected);
                if matches!(expected, Decision::GiveUp(_)) {
                    break;
                }
            }
        }
    }

    fn attempts(layers: u32, say_overloaded: bool) -> u32 {
        let policy = Policy::immediate().max_attempts(4);
        let mut clients =
            Layered::new(&policy, Draws::new(1, None), (4, vec![0; 4].into_iter()), layers, say_overloaded);
        (1..).find(|attempt| matches!(clients.fail(failure(attempt - 1, 0)), Decision::GiveUp(_))).unwrap()
    }

    #[test]
    fn layers_multiply_unless_they_say_overloaded() {
        assert_eq!([1, 2, 3, 4].map(|layers| attempts(layers, false)), [4, 16, 64, 256]);
        assert_eq!([1, 2, 3, 4].map(|layers| attempts(layers, true)), [4, 4, 4, 4]);
    }

    #[test]
    fn what_must_not_be_repeated_is_repeated_by_no_layer() {
        let policy = Policy::immediate().max_attempts(4);
        for verdict in [Verdict::Permanent, Verdict::Overloaded] {
            let mut clients = Layered::new(&policy, Draws::new(1, None), (4, vec![0; 4].into_iter()), 3, false);
            let decision = clients.fail(Failure { verdict, ..failure(0, 0) });
            assert!(matches!(decision, Decision::GiveUp(_)), "{verdict:?}: {decision:?}");
        }
    }
}
