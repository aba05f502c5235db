//! A scenario in words: what a reader must know to understand the plots.

use super::clients;
pub(crate) use super::numbers::percent;
pub(super) use super::numbers::{count, seconds};
use relent::duration::Human;
use relent_sim::{
    Access, Arrivals, Contender, Network, Outcome, RetryAfter, Scenario, Server, Service, Trouble, TroubleKind, World,
};
use std::time::Duration;

/// What happens, in sentences.
pub(super) fn scenario(scenario: &Scenario, outcome: &Outcome) -> Vec<String> {
    let mut words = match &scenario.world {
        World::Service(world) => service(scenario, world),
        World::OptimisticWriters(world) => vec![
            format!("{} writers each change one and the same row once.", count(world.clients as f64)),
            "Each reads the row's version and writes; a write counts only if nobody else's came in between.".into(),
            network(world.network),
        ],
        World::Layers(world) => vec![
            format!(
                "{} calls go through {} layers of services, each of which retries under the same policy.",
                count(world.calls as f64),
                world.depth
            ),
            format!("An attempt at the bottom fails with a probability of {}.", percent(world.failure)),
            if world.say_overloaded {
                "A layer that gives up says \"overloaded, do not retry\" to the one above.".into()
            } else {
                "A layer above sees one more failure, and starts all over.".into()
            },
        ],
        World::Batch(world) => vec![format!(
            "{} packets share a channel of time slots. In each window every packet picks one slot at random, and is \
             through if it is alone in it.",
            count(world.packets as f64)
        )],
        World::Ethernet(world) => vec![
            format!("{} stations begin to send on one cable at the same moment.", count(world.stations as f64)),
            format!("A slot lasts {}; a frame occupies {} of them.", Human(world.slot), world.frame_slots),
        ],
        World::Saturated(world) => vec![
            format!("{} stations always have something to send.", count(world.stations as f64)),
            match world.access {
                Access::Persistent(p) => format!("Each sends in each slot with a probability of {p} (slotted ALOHA)."),
                Access::Dcf { window, stages } => {
                    format!("Their windows begin at {window} slots and double up to {stages} times (802.11).")
                }
            },
        ],
    };
    if let (Some(ideal), World::Service(Service { arrivals: Arrivals::Herd { .. }, .. })) =
        (&outcome.ideal, &scenario.world)
    {
        words.push(format!(
            "The best that can be: everybody connected after {}, with one attempt each.",
            seconds(ideal.begins_s + ideal.drain_s)
        ));
    }
    words
}

fn service(scenario: &Scenario, world: &Service) -> Vec<String> {
    let mut words = clients::arrivals(scenario);
    if words.is_empty() {
        words.push(clients::comes(&world.arrivals, Duration::ZERO));
    }
    words.extend(server(&world.server));
    words.push(network(world.network));
    if let Some(timeout) = world.timeout {
        words.push(format!("A client waits {} for the answer to an attempt.", Human(timeout)));
    }
    if let Some(writes) = world.writes {
        let again = if writes.retried { "are retried too" } else { "are not retried" };
        words.push(format!("{} of the calls are writes, which {again}.", percent(writes.share)));
    }
    if world.layers > 1 {
        words.push(format!("{} layers in between retry as well.", world.layers));
    }
    words.extend(clients::differences(scenario));
    words.extend(world.troubles.iter().map(trouble));
    words
}

fn server(server: &Server) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(capacity) = server.capacity {
        let mut what = format!("The server completes {} a second", count(capacity));
        if server.workers > 1 {
            what.push_str(&format!(" with {} workers", server.workers));
        }
        match server.queue {
            Some(queue) => what.push_str(&format!(
                " and holds at most {}: those beyond are turned away at once.",
                count(queue as f64)
            )),
            None => what.push_str("; its queue has no limit."),
        }
        words.push(what);
    }
    if let Some(limit) = server.rate_limit {
        let who = if server.capacity.is_some() { "It" } else { "The server" };
        words.push(format!("{who} admits {} a second, and {} at once.", count(limit.rate), count(limit.burst as f64)));
    }
    if server.lifo {
        words.push("The newest request is served first.".into());
    }
    if server.drop_expired {
        words.push("Requests whose client no longer waits are dropped.".into());
    }
    if server.failure > 0.0 {
        words.push(format!("{} of the attempts fail.", percent(server.failure)));
    }
    words.extend(told(server.retry_after));
    words
}

fn told(retry_after: RetryAfter) -> Option<String> {
    match retry_after {
        RetryAfter::Silent => None,
        RetryAfter::Fixed(delay) => Some(format!("A refusal says Retry-After: {}.", Human(delay))),
        RetryAfter::Spread => Some("A refusal says when to come back: at random while the others are served.".into()),
        RetryAfter::Exact => Some("A refusal gives each client a time of its own to come back.".into()),
    }
}

fn network(network: Network) -> String {
    format!("A message takes {}.", clients::way(network))
}

fn trouble(trouble: &Trouble) -> String {
    let (what, Trouble { at, lasts, .. }) = (trouble_name(trouble), trouble);
    let ramp = match trouble.ramp {
        ramp if ramp.is_zero() => String::new(),
        ramp => format!(" After it the server becomes as fast as before over {}.", Human(ramp)),
    };
    format!("At {} there is trouble for {}: {what}.{ramp}", Human(*at), Human(*lasts))
}

/// What goes wrong, in a few words.
pub(super) fn trouble_name(trouble: &Trouble) -> String {
    match trouble.kind {
        TroubleKind::Stall => "the server takes requests but does no work".into(),
        TroubleKind::Refuse => "connections are refused".into(),
        TroubleKind::Slow(share) => format!("the server works at {} of its speed", percent(share)),
        TroubleKind::Failing(share) => format!("{} of the attempts fail", percent(share)),
        TroubleKind::Losing(share) if share >= 1.0 => "requests are lost, and nobody is told".into(),
        TroubleKind::Losing(share) => format!("{} of the requests are lost, and nobody is told", percent(share)),
    }
}

/// A policy in a line.
pub(super) fn policy(contender: Option<&Contender>) -> String {
    contender.map_or_else(String::new, clients::run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent_sim::simulate;

    #[test]
    fn numbers_are_read_easily() {
        let values = [100_000.0, 5000.0, 12.806, 0.12249, 1.0, -1234.5, 999.99, 163.39];
        let words = ["100,000", "5,000", "12.8", "0.122", "1", "-1,234", "1,000", "163"];
        assert_eq!(values.map(count), words);
        assert_eq!(
            [0.5, 0.1225, 0.0123, 0.9972, 0.9949, 0.9999, 1.0].map(percent),
            ["50 %", "12 %", "1.23 %", "99.7 %", "99 %", "almost 100 %", "100 %"]
        );
        assert_eq!([163.39, 20.0, 0.0123, 0.0].map(seconds), ["2m43s", "20s", "12.3ms", "0s"]);
    }

    #[test]
    fn a_herd_in_words() {
        let mut herd = Service::herd(1000, 50.0);
        herd.server.queue = Some(50);
        herd.troubles.push(Trouble::new(Duration::ZERO, Duration::from_secs(3), TroubleKind::Refuse));
        let world = Scenario::new("x", World::Service(herd)).policy("a", relent::Policy::default());
        let outcome = simulate(&world).unwrap();
        assert_eq!(
            scenario(&world, &outcome),
            [
                "1,000 clients call at the same moment.",
                "The server completes 50 a second and holds at most 50: those beyond are turned away at once.",
                "A message takes 5ms.",
                "At 0s there is trouble for 3s: connections are refused.",
                "The best that can be: everybody connected after 23s, with one attempt each.",
            ]
        );
        assert_eq!(policy(world.contenders.first()), "exponential 1s * 2 up to 1m4s, full jitter, 8 attempts");
    }
}
