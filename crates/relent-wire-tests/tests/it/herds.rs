//! Many real connections at once: a paced herd is drained as fast as can be, and a storm does not take the server down.

use axum::{Router, routing::get};
use relent::{Admission, Limit, layer::AdmissionLayer};
use relent_wire_tests::{
    herd::{Herd, Manner, Outcome},
    machine::Machine,
    serve::Server,
    storm::Storm,
};
use std::{sync::Arc, time::Duration};

/// The machine that runs this has other things to do, so one of three runs must show what can be done.
const RUNS: u32 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_with_turns_come_back_as_a_queue() {
    let herd = Herd { clients: 2000, capacity: 250.0, room: 250, at_most: Duration::from_secs(30) };
    let mut paced = Outcome::default();
    let mut holds = false;
    for _ in 0..RUNS {
        paced = herd.run(Manner::Paced).await;
        println!("paced: {paced}, of an ideal {:.2} s", herd.ideal().as_secs_f64());
        assert_eq!((paced.served, paced.lost), (2000, 0));
        holds = paced.took <= herd.ideal().mul_f64(1.05) && paced.most <= 2 && paced.broken == 0;
        if holds {
            break;
        }
    }
    assert!(holds, "{paced}");
    for manner in [Manner::FullJitter, Manner::NoJitter] {
        let herd = Herd { at_most: paced.took, ..herd };
        let other = herd.run(manner).await;
        println!("{manner:?}: {other}");
        assert_eq!(other.lost, 0, "permits come back from clients that were cut, too");
        assert!(other.served < 2000, "{manner:?}: {other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_ten_times_its_capacity_a_server_does_what_it_can() {
    let capacity = 200.0;
    let storm = Storm {
        connections: 400,
        rate: capacity * 10.0,
        lasts: Duration::from_secs(3),
        patience: Duration::from_millis(500),
    };
    let app = |machine: Arc<Machine>| {
        let handler = move || {
            let machine = machine.clone();
            async move { machine.work().await }
        };
        Router::new().route("/", get(handler))
    };
    let bare = Server::start(app(Arc::new(Machine::new(capacity))));
    let bare = storm.run(bare.address()).await;
    println!("bare: {bare}");

    let mut share = 0.0;
    for _ in 0..RUNS {
        let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(20)));
        let server = Server::start(app(Arc::new(Machine::new(capacity))).layer(layer.clone()));
        let guarded = storm.run(server.address()).await;
        share = guarded.goodput() / capacity;
        println!("with admission: {guarded}: {share:.3} of the capacity; {:?}", layer.snapshot());
        assert!(layer.snapshot().accepted + layer.snapshot().refused() >= guarded.sent - guarded.failed);
        if share >= 0.95 {
            break;
        }
    }
    assert!(share >= 0.95, "{share}");
    assert!(bare.goodput() < capacity * 0.6, "{bare}");
}
