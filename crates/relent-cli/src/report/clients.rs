//! Who the clients are and what stands between them and the server, in words: populations, layers, machines.

use super::numbers::{count, percent};
use crate::explain::InShort;
use relent::{Policy, duration::Human};
use relent_sim::{
    Arrivals, Contender, Layer, Network, Part, Picture, Population, Protection, RetryAfter, Scenario, Writes,
};
use std::time::Duration;

/// Who comes when, where populations come by themselves; nothing where all come together.
pub(super) fn arrivals(scenario: &Scenario) -> Vec<String> {
    let told = |population: &Population| match &population.part {
        Part::Own(arrivals, at) => Some(format!("{}: {}", population.name, comes(arrivals, *at))),
        Part::Share(_) => None,
    };
    populations(scenario).iter().filter_map(told).collect()
}

/// The populations of the first run that has any: who comes when is the same in all of them.
fn populations(scenario: &Scenario) -> &[Population] {
    let own = scenario.contenders.iter().map(|contender| &contender.populations[..]);
    own.into_iter().find(|populations| !populations.is_empty()).unwrap_or_default()
}

/// When they come, in a sentence.
pub(super) fn comes(arrivals: &Arrivals, later: Duration) -> String {
    let at = if later.is_zero() { String::new() } else { format!(" at {}", Human(later)) };
    match arrivals {
        Arrivals::Herd { clients, window } if window.is_zero() && later.is_zero() => {
            format!("{} clients call at the same moment.", count(*clients as f64))
        }
        Arrivals::Herd { clients, window } if window.is_zero() => {
            format!("{} clients call{at}, all at once.", count(*clients as f64))
        }
        Arrivals::Herd { clients, window } => {
            let from = if later.is_zero() { String::new() } else { format!(" from {} on", Human(later)) };
            format!("{} clients call within {}{from}.", count(*clients as f64), Human(*window))
        }
        Arrivals::Open { rate, until, .. } => match rate.points() {
            [(_, rate)] => format!("{} calls begin every second, for {}.", count(*rate), Human(*until)),
            points => {
                let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
                let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
                format!("Between {} and {} calls begin every second, for {}.", count(least), count(most), Human(*until))
            }
        },
    }
}

/// In what populations differ from all clients, and what layers there are.
pub(super) fn differences(scenario: &Scenario) -> Vec<String> {
    let mut words = Vec::new();
    for population in populations(scenario) {
        let Population { network, timeout, writes, leaving, .. } = population;
        let differs: Vec<String> = [
            network.map(|network| format!("a message takes {}", way(network))),
            timeout.map(|timeout| format!("it waits {} for the answer to an attempt", Human(timeout))),
            writes.map(|Writes { share, .. }| format!("{} of its calls are writes", percent(share))),
            leaving.map(|share| format!("{} of those who are refused do not come back", percent(share))),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !differs.is_empty() {
            words.push(format!("{}: {}.", population.name, differs.join(", and ")));
        }
    }
    let chain = scenario.contenders.iter().find(|contender| !contender.layers.is_empty());
    words.extend(chain.map(|contender| {
        let names: Vec<&str> = contender.layers.iter().map(|layer| layer.name.as_str()).collect();
        format!(
            "Between the clients and the server: {}. Who stops waiting for an attempt does not end it: the layers below go \
             on, unless they were told how long it waits.",
            names.join(" > ")
        )
    }));
    words
}

/// How long a message takes.
pub(super) fn way(network: Network) -> String {
    match network {
        Network::Constant(delay) => Human(delay).to_string(),
        Network::Normal { mean, sd } => format!("{} ± {}", Human(mean), Human(sd)),
        Network::Exponential(mean) => format!("{} on average, exponentially distributed", Human(mean)),
        Network::LogNormal { sigma, .. } => {
            let mean = Duration::try_from_secs_f64((network.mean_ns() / 1e3).round() / 1e6).unwrap_or(Duration::MAX);
            format!("{} on average, log-normally distributed (sigma {sigma})", Human(mean))
        }
    }
}

/// What a run does, in a line: its policy, or those of its populations or layers, and what protects the server.
pub(super) fn run(contender: &Contender) -> String {
    let populations = contender.populations.iter();
    let populations = populations.map(|own| format!("{}: {}{}", own.name, one(&own.policy), machines(&own.protection)));
    let layers = contender.layers.iter().map(|own| layer(own, contender));
    let mut parts: Vec<String> = populations.chain(layers).collect();
    if parts.is_empty() {
        parts.push(one(&contender.policy));
    }
    let mut words = parts.join("; ");
    // The machines of populations are their own; those of the server are everybody's.
    let own = match contender.populations.is_empty() {
        true => contender.protection,
        false => Protection {
            pacer: contender.protection.pacer,
            admission: contender.protection.admission,
            ..Protection::default()
        },
    };
    words.push_str(&machines(&own));
    match contender.retry_after {
        None | Some(RetryAfter::Silent) => {}
        Some(RetryAfter::Fixed(delay)) => words.push_str(&format!("; the server says Retry-After: {}", Human(delay))),
        Some(RetryAfter::Spread) => words.push_str("; the server spreads those it refuses (Retry-After)"),
        Some(RetryAfter::Exact) => words.push_str("; the server gives each refused client its own time (Retry-After)"),
    }
    words
}

fn one(policy: &Policy) -> String {
    let spread = policy.settings().spread;
    if policy.settings().max_attempts == Some(1) && spread.is_zero() {
        // Of delays nobody waits for there is nothing to say.
        return "1 attempt".to_owned();
    }
    match spread.is_zero() {
        true => InShort(policy).to_string(),
        false => format!("{}, the first attempt spread over {}", InShort(policy), Human(spread)),
    }
}

fn layer(layer: &Layer, contender: &Contender) -> String {
    let policy = layer.policy.unwrap_or(contender.policy);
    let settings = policy.settings();
    let mut words = format!("{}: {}", layer.name, one(&policy));
    let least = |a: Option<Duration>, b: Option<Duration>| a.into_iter().chain(b).min();
    if let Some(timeout) = least(layer.timeout, settings.attempt_timeout) {
        words.push_str(&format!(", waits {} for an attempt", Human(timeout)));
    }
    if let Some(deadline) = least(layer.deadline, settings.timeout) {
        words.push_str(&format!(", {} for a call", Human(deadline)));
    }
    if layer.passes_deadline {
        words.push_str(", and tells the next how long it waits");
    }
    if layer.say_overloaded {
        words.push_str(", and says \"overloaded, do not retry\" when it gives up");
    }
    words
}

fn machines(protection: &Protection) -> String {
    let parts = [
        (protection.pacer.is_some(), "a pacer"),
        (protection.admission.is_some(), "an admission"),
        (protection.budget.is_some(), "a budget"),
        (protection.breaker.is_some(), "a breaker"),
        (protection.limit.is_some(), "a limiter"),
        (protection.hedge.is_some(), "a hedge"),
    ];
    let said: Vec<&str> = parts.into_iter().filter_map(|(is_there, name)| is_there.then_some(name)).collect();
    if said.is_empty() { String::new() } else { format!(", with {}", said.join(" and ")) }
}

/// Why pictures are missing that the world would have if its clients were all alike.
pub(super) fn missing(scenario: &Scenario) -> Vec<String> {
    let titles = |picture: Picture| match picture {
        Picture::Heat => "base and cap",
        Picture::Hysteresis => "a load that rises and falls",
        Picture::Recovery => "the time to heal by load",
        Picture::Layers => "layers and attempts",
        Picture::Clients => "more and fewer clients",
    };
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for picture in Picture::ALL {
        // A server alone has no layers that anybody would miss.
        if picture.fits(&scenario.world).is_err() || picture == Picture::Layers && !populations(scenario).is_empty() {
            continue;
        }
        let Err(reason) = scenario.fits(picture) else { continue };
        match reasons.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, pictures)) => pictures.push(titles(picture)),
            None => reasons.push((reason, vec![titles(picture)])),
        }
    }
    let sentence = |(reason, pictures): &(&str, Vec<&str>)| {
        let plural = if pictures.len() == 1 { "There is no picture" } else { "There are no pictures" };
        format!("{plural} of {}: {reason}.", pictures.join(", nor of "))
    };
    reasons.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent_sim::{Outcome, Rate, Service, World, simulate};

    const SEC: Duration = Duration::from_secs(1);

    fn facts(scenario: &Scenario) -> (Vec<String>, Outcome) {
        let outcome = simulate(scenario).unwrap();
        (super::super::words::scenario(scenario, &outcome), outcome)
    }

    /// A herd among a stream is no rate of two million a second.
    #[test]
    fn populations_come_in_sentences_of_their_own() {
        let at_once = Policy::immediate().max_attempts(3);
        let stream = Arrivals::Open { rate: Rate::constant(30.0), poisson: true, until: 20 * SEC };
        let mobile = Population::own("mobile", stream, Policy::default());
        let mut batch = Population::own("batch", Arrivals::Herd { clients: 500, window: Duration::ZERO }, at_once);
        batch.part = match batch.part {
            Part::Own(arrivals, _) => Part::Own(arrivals, 5 * SEC),
            share => share,
        };
        batch.timeout = Some(3 * SEC);
        let contender = Contender::new("both", Policy::default()).with(mobile).with(batch);
        let mut service = Service::herd(1, 100.0);
        service.arrivals = Arrivals::together(&contender.populations);
        let scenario = Scenario::new("x", World::Service(service)).contender(contender);
        let (facts, _) = facts(&scenario);
        assert_eq!(facts[0], "mobile: 30 calls begin every second, for 20s.");
        assert_eq!(facts[1], "batch: 500 clients call at 5s, all at once.");
        assert!(facts.contains(&"batch: it waits 3s for the answer to an attempt.".to_owned()), "{facts:?}");
        assert!(!facts.iter().any(|fact| fact.contains("Between")), "{facts:?}");
        assert_eq!(
            run(&scenario.contenders[0]),
            "mobile: exponential 1s * 2 up to 1m4s, full jitter, 8 attempts; batch: no delay, 3 attempts"
        );
        assert_eq!(
            missing(&scenario),
            [
                "There are no pictures of a load that rises and falls, nor of the time to heal by load: populations with a \
              rate or count of their own have no one load that could be raised."
            ]
        );
    }

    #[test]
    fn layers_are_told_with_what_each_does() {
        let retries = Policy::immediate().max_attempts(2);
        let client = Layer { timeout: Some(SEC), passes_deadline: true, ..Layer::new("client") };
        let below = Layer { deadline: Some(3 * SEC), say_overloaded: true, ..Layer::new("gateway") };
        let chain = Contender::new("chain", retries).through(client).through(below);
        let scenario = Scenario::new("x", World::Service(Service::herd(10, 5.0))).contender(chain);
        let (facts, _) = facts(&scenario);
        assert!(facts.iter().any(|fact| fact.starts_with("Between the clients and the server: client > gateway. ")));
        assert_eq!(
            run(&scenario.contenders[0]),
            "client: no delay, 2 attempts, waits 1s for an attempt, and tells the next how long it waits; gateway: no delay, \
             2 attempts, 3s for a call, and says \"overloaded, do not retry\" when it gives up"
        );
        assert!(missing(&scenario)[0].starts_with("There is no picture of base and cap: "), "{:?}", missing(&scenario));
        assert_eq!(missing(&scenario).len(), 2);
        let alone = Scenario::new("x", World::Service(Service::herd(10, 5.0))).policy("p", retries);
        assert_eq!(missing(&alone), [""; 0]);
    }

    #[test]
    fn who_does_not_retry_has_no_delays() {
        assert_eq!(run(&Contender::new("once", Policy::default().max_attempts(1))), "1 attempt");
    }

    #[test]
    fn machines_are_part_of_a_run() {
        let paced = Contender::new("p", Policy::immediate()).told_turns(Service::herd(10, 5.0).pacer().unwrap());
        assert!(run(&paced).ends_with(", with a pacer"), "{}", run(&paced));
    }
}
