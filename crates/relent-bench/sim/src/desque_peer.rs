//! The herd in desque: an event a retry.

use crate::herd::{Done, Herd, ONE_WAY};
use desque::{
    SimState,
    serial::{Event, Simulation},
};

#[derive(Debug)]
struct Arrival {
    client: u32,
    failures: u32,
}

struct State(Herd);

impl SimState<u64> for State {}

impl Event<State, u64> for Arrival {
    fn execute(&mut self, simulation: &mut Simulation<State, u64>) -> desque::Result {
        let now = *simulation.current_time();
        match simulation.state_mut().0.arrive(now, self.client, self.failures) {
            Some(later) => {
                simulation.schedule(Arrival { client: self.client, failures: self.failures + 1 }, now + later)
            }
            None => Ok(()),
        }
    }
}

pub(crate) fn run(clients: u32, seed: u64) -> Done {
    let mut simulation = Simulation::new(State(Herd::new(clients, seed)), 0);
    for client in 0..clients {
        simulation.schedule(Arrival { client, failures: 0 }, ONE_WAY).expect("the time is not past");
    }
    simulation.run().expect("no event fails");
    simulation.state().0.result()
}
