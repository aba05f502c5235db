//! The herd in nexosim: one model, the server, that schedules the arrivals on itself, on one thread. A model a client
//! would be a mailbox and a task for each.

use crate::herd::{Done, Herd, ONE_WAY};
use nexosim::{
    model::{Context, Model, schedulable},
    ports::{EventSinkReader, Output, SinkState, event_slot},
    simulation::{Mailbox, SimInit},
    time::MonotonicTime,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Server {
    herd: Herd,
    left: u32,
    done: Output<(u64, u64)>,
}

#[Model]
impl Server {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>) {
        for client in 0..self.herd.clients {
            cx.schedule_event(Duration::from_nanos(ONE_WAY), schedulable!(Self::arrive), (client, 0))
                .expect("the time is not past");
        }
    }

    #[nexosim(schedulable)]
    async fn arrive(&mut self, arrival: (u32, u32), cx: &Context<Self>) {
        let (client, failures) = arrival;
        let now = cx.time().duration_since(MonotonicTime::EPOCH).as_nanos() as u64;
        if let Some(later) = self.herd.arrive(now, client, failures) {
            cx.schedule_event(Duration::from_nanos(later), schedulable!(Self::arrive), (client, failures + 1))
                .expect("the time is not past");
            return;
        }
        self.left -= 1;
        if self.left == 0 {
            let Done { attempts, drained, .. } = self.herd.result();
            self.done.send((attempts, drained)).await;
        }
    }
}

pub(crate) fn run(clients: u32, seed: u64) -> Done {
    let mut server = Server { herd: Herd::new(clients, seed), left: clients, done: Output::default() };
    let (sink, mut done) = event_slot(SinkState::Enabled);
    server.done.connect_sink(sink);
    let init = SimInit::with_num_threads(1).add_model(server, Mailbox::new(), "server");
    let mut simulation = init.init(MonotonicTime::EPOCH).expect("the model can be initialised");
    simulation.run().expect("nothing fails");
    let (attempts, drained) = done.try_read().expect("every client was connected");
    Done { attempts, drained, questions: 0 }
}
