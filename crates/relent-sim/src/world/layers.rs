//! Layers of services that each retry: amplification.
//!
//! With `R` retries on each of `L` layers and a bottom that fails always, one call at the top is `(R+1)^L` calls at the
//! bottom. If only the lowest layer retries, and the others pass on "overloaded, do not retry", it is `R+1`.

use super::{
    meter::{Judge, Meter},
    service::clients::{Clients, Failure, Layered},
};
use crate::{
    engine::{
        control::{Control, INTERRUPTED, TICK, most_attempts, past_attempts},
        draws::{Draws, Purpose},
    },
    outcome::{Matrix, run::Run},
    scenario::{Contender, Figure, Layers},
};
use relent::{Decision, Policy, Verdict, rng::unit};

impl Layers {
    /// The calls at the bottom for one at the top that `attempts` a layer bring, in expectation.
    ///
    /// ```
    /// use relent_sim::Layers;
    /// let layers = Layers { calls: 1, depth: 3, failure: 1.0, say_overloaded: false };
    /// assert_eq!(layers.amplification(4), 64.0);
    /// assert_eq!(Layers { say_overloaded: true, ..layers }.amplification(4), 4.0);
    /// ```
    pub fn amplification(&self, attempts: u32) -> f64 {
        let layers = if self.say_overloaded { self.depth.min(1) } else { self.depth };
        let (mut failure, mut calls) = (self.failure, 1.0);
        for _ in 0..layers {
            calls *= attempts_of(failure, attempts);
            failure = failure.powi(i32::try_from(attempts).unwrap_or(i32::MAX));
        }
        calls
    }

    /// Amplification by depth and attempts a layer.
    pub fn matrix(&self) -> Matrix {
        let (depths, attempts): (Vec<u32>, Vec<u32>) = ((1..=5).collect(), (1..=6).collect());
        let row = |depth: &u32| {
            let layers = Layers { depth: *depth, ..self.clone() };
            attempts.iter().map(|attempts| layers.amplification(*attempts)).collect()
        };
        Matrix { failure: self.failure, amplification: depths.iter().map(row).collect(), depths, attempts }
    }
}

/// The expected attempts of one layer: `(1 - p^n) / (1 - p)`.
fn attempts_of(failure: f64, attempts: u32) -> f64 {
    // The sum of a geometric series, term by term while terms matter, so that p = 1 needs no special case.
    let mut sum = 0.0;
    let mut term = 1.0;
    for _ in 0..attempts {
        sum += term;
        term *= failure;
        if term < 1e-18 {
            break;
        }
    }
    sum
}

/// The closed form for a policy, where there is one: it may end a call by its number of attempts only, or by that of its
/// delays.
pub(crate) fn expected(layers: &Layers, policy: &Policy) -> Option<f64> {
    const MOST: u32 = 1_000_000;
    let settings = policy.settings();
    let is_timed = settings.max_elapsed.is_some() || settings.timeout.is_some();
    if is_timed || settings.max_attempts.is_some_and(|most| most > MOST) {
        return None;
    }
    let attempts = 1 + policy.schedule().take(MOST as usize).count() as u32;
    (attempts <= MOST).then(|| layers.amplification(attempts))
}

/// Attempts at the bottom of one call, after which it is not going to end.
const MOST: u32 = 100_000_000;

pub(crate) fn run(layers: &Layers, contender: &Contender, draws: Draws, control: &Control) -> Run {
    let calls = layers.calls;
    let zeros = control.each(calls as usize).map(|_| 0);
    let mut chain =
        Layered::new(&contender.policy, draws, (calls as usize, zeros), layers.depth, layers.say_overloaded);
    let mut meter = Meter::new(calls, false);
    let most = most_attempts(calls);
    let mut over = 0;
    let mut stopped = control.stopped();
    while over < calls && stopped.is_none() {
        stopped = match meter.attempts >= most {
            true => Some(past_attempts(most)),
            false => one_call(layers, draws, over as u32, &mut chain, &mut meter, control),
        };
        over += u64::from(stopped.is_none());
    }
    // Calls do not meet each other, so those that are over say as much as all.
    let mut run = meter.finish(&Judge::default(), over.max(1), 0, None, stopped);
    // Nor do loads over time mean anything.
    for figure in [Figure::DrainS, Figure::Peak1Ms, Figure::Peak100Ms, Figure::Peak1S, Figure::Goodput] {
        run.figures = run.figures.without(figure);
    }
    run.plots.load.clear();
    run.recovered = None;
    run
}

/// Makes a call; why it was stopped, if it was.
fn one_call(
    layers: &Layers,
    draws: Draws,
    client: u32,
    chain: &mut Layered<'_>,
    meter: &mut Meter,
    control: &Control,
) -> Option<String> {
    let mut now = 0;
    for failures in 0..MOST {
        if meter.attempts.is_multiple_of(TICK) && !control.tick(TICK) {
            return Some(INTERRUPTED.to_owned());
        }
        meter.attempted();
        let fails = unit(draws.world(u64::from(client), failures + 1, Purpose::Failure)) < layers.failure;
        if !fails {
            meter.connected(now, 0, failures + 1);
            return None;
        }
        match chain.fail(Failure { client, place: 0, failures, started: 0, now, verdict: Verdict::Transient }) {
            Decision::Retry(delay) => now = now.saturating_add(crate::time::nanos(delay)),
            Decision::GiveUp(reason) => {
                meter.gave_up(now, reason, failures + 1);
                return None;
            }
        }
    }
    Some(format!("a call was not over after {MOST} attempts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Google SRE book, "Addressing Cascading Failures": 64 = 4^3, and the recursion for partial failure.
    #[test]
    fn amplification_in_closed_form() {
        let calls = |failure, depth, attempts| {
            Layers { calls: 1, depth, failure, say_overloaded: false }.amplification(attempts)
        };
        assert_eq!([1, 2, 3, 4].map(|depth| calls(1.0, depth, 4)), [4.0, 16.0, 64.0, 256.0]);
        assert_eq!([1, 2, 3].map(|depth| calls(1.0, depth, 3)), [3.0, 9.0, 27.0]);
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 5e-4, "{value} is not {expected}");
        for (p, expected) in [(0.1, 1.111), (0.5, 1.875), (0.75, 2.734), (0.9, 3.439), (0.99, 3.940)] {
            near(calls(p, 1, 4), expected);
        }
        for (p, two, three) in [(0.5, 2.0, 2.0), (0.9, 8.147, 9.988), (0.99, 14.854, 47.440)] {
            near(calls(p, 2, 4), two);
            near(calls(p, 3, 4), three);
        }
    }
}
