//! Scenarios that are asked for by flags.

use super::{Contender, Scenario, World};
use super::{Network, OptimisticWriters};
use relent::{Jitter, Policy, compat};
use std::time::Duration;

/// The AWS post: `clients` writers of one row, its five algorithms with its constants (base 5 ms, of which the first
/// backoff is the double; cap 2 s), a network of 10 +- 2 ms each way.
pub fn aws(clients: u64) -> Scenario {
    const CAP: Duration = Duration::from_millis(2000);
    let network = Network::Normal { mean: Duration::from_millis(10), sd: Duration::from_millis(2) };
    let decorrelated = compat::find("aws-blog-decorrelated").expect("relent knows the AWS blog").policy();
    let exponential = Policy::exponential(Duration::from_millis(10)).cap(CAP).unlimited_attempts();
    let mut scenario = Scenario::new("aws", World::OptimisticWriters(OptimisticWriters { clients, network }));
    scenario.title = format!("{clients} writers of one row under optimistic concurrency");
    scenario.contenders = vec![
        Contender::new("none", Policy::immediate().unlimited_attempts()),
        Contender::new("exponential", exponential.jitter(Jitter::None)),
        Contender::new("full", exponential.jitter(Jitter::Full)),
        Contender::new("equal", exponential.jitter(Jitter::Equal)),
        Contender::new("decorrelated", decorrelated),
    ];
    scenario
}
