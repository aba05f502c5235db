//! The herd in relent-sim: with the real policy, and everything measured that its reports show.

use crate::herd::Done;
use relent::{Jitter, Policy};
use relent_sim::{Control, Engine, Figure, Picture, Pictures, Scenario, Service, World, draw_pictures, simulate_with};
use std::time::Duration;

fn scenario(clients: u64, engine: Engine) -> Scenario {
    let mut service = Service::herd(clients, clients as f64 / 20.0);
    service.server.queue = Some(clients / 20);
    let policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).jitter(Jitter::Full);
    Scenario::new("herd", World::Service(service)).policy("full", policy.unlimited_attempts()).engine(engine)
}

pub(crate) fn run(engine: Engine, clients: u64, seed: u64, seeds: u32, threads: usize) -> Done {
    let scenario = Scenario { seeds, first_seed: seed, ..scenario(clients, engine) };
    let outcome = simulate_with(&scenario, threads, &Control::default()).expect("the scenario is possible");
    let record = &outcome.records[0];
    let get = |figure| record.get(figure).expect("a herd has this figure");
    let attempts = get(Figure::AttemptsPerClient) * clients as f64 * f64::from(seeds);
    Done { attempts: attempts.round() as u64, drained: (get(Figure::DrainS) * 1e9) as u64, questions: 0 }
}

/// As many maps of base and cap as give a thousand cells; returns the cells.
pub(crate) fn heat(clients: u64) -> Done {
    let mut scenario = scenario(clients, Engine::Fluid);
    scenario.pictures = Pictures::NONE.with(Picture::Heat, true);
    let mut cells = 0;
    while cells < 1000 {
        let mut outcome = simulate_with(&scenario, 1, &Control::default()).expect("the scenario is possible");
        draw_pictures(&scenario, &mut outcome, 1, &Control::default());
        let heat = outcome.extras.heat.expect("a herd has a map");
        cells += heat.drain_over_ideal.iter().map(|row| row.len() as u64).sum::<u64>();
    }
    Done { attempts: cells, ..Done::default() }
}
