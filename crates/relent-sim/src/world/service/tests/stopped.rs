//! Runs that somebody stops before they begin.

use super::*;
use crate::{
    engine::control::TICK,
    scenario::{Layer, Layers, Part},
    world::{layers, service},
};

/// Whatever is kept of clients, none of a run that is stopped already makes an attempt: to make all of them ready takes long.
#[test]
fn who_is_stopped_before_the_first_attempt_makes_none() {
    let clients = TICK * 4;
    let herd = Service::herd(clients, 300.0);
    let mut queue = herd.clone();
    queue.server.lifo = true;
    let deep = Service { layers: 3, ..herd.clone() };
    let deep_queue = Service { layers: 3, ..queue.clone() };
    let open = Arrivals::Open { rate: Rate::constant(clients as f64), poisson: true, until: SEC };
    let open = Service { arrivals: open, ..herd.clone() };
    let one_process = Service { processes: Some(1), ..herd.clone() };
    let many_processes = Service { processes: Some(clients / 2), ..herd.clone() };
    let timed = Service { timeout: Some(SEC), ..herd.clone() };
    let policy = policies()[0].policy;
    let alone = Contender::new("alone", policy);
    let with = |protection| alone.clone().protected(protection);
    let budget = Protection { budget: Some(Budget::ratio(0.1).settings()), ..Protection::default() };
    let breaker = BreakerSettings::default();
    let breaker = Protection { breaker: Some(breaker), ..Protection::default() };
    let hedge = Protection { hedge: Some(Hedge::after(5 * MS).settings()), ..Protection::default() };
    let limit = Protection { limit: Some(Limit::concurrency(1).settings()), ..Protection::default() };
    let both = Protection { hedge: hedge.hedge, ..budget };
    let mixed = |populations| Contender { populations, ..alone.clone() };
    let shares = vec![Population::share("one", 0.5, policy), Population::share("other", 0.5, policy)];
    let own = vec![Population { part: Part::Own(open.arrivals.clone(), SEC), ..Population::share("one", 0.5, policy) }];
    let layered = Contender { layers: vec![Layer::new("inner")], ..alone.clone() };
    for (what, service, contender) in [
        ("alone", &herd, &alone),
        ("in a stream", &open, &alone),
        ("of two populations", &herd, &mixed(shares)),
        ("with arrivals of their own", &herd, &mixed(own)),
        ("newest first", &queue, &alone),
        ("in layers", &open, &layered),
        ("in layers of one policy", &deep, &alone),
        ("in layers of one policy, newest first", &deep_queue, &alone),
        ("who hedge", &herd, &with(hedge)),
        ("with budgets of their own", &herd, &with(budget)),
        ("who share a budget", &one_process, &with(budget)),
        ("who share a breaker", &one_process, &with(breaker)),
        ("who wait for a slot of their own", &timed, &with(limit)),
        ("who share budgets of many", &many_processes, &with(both)),
    ] {
        let control = Control::default();
        control.stop();
        let draws = Draws::new(1, None);
        let run = service::run(&Task { service, contender, draws, limit: u64::MAX, control: &control });
        assert_eq!(run.stopped.as_deref(), Some("interrupted"), "{what}");
        let is_none =
            run.figures.get(crate::scenario::Figure::AttemptsPerClient).is_none_or(|attempts| attempts == 0.0);
        assert!(is_none && run.gave_up.is_empty(), "{what}: {:?}", run.figures);
        assert_eq!(control.progress().2, 0, "{what}");
    }
}

/// Calls that do not meet each other are made ready, too.
#[test]
fn nor_does_a_call_through_layers_that_is_stopped() {
    let control = Control::default();
    control.stop();
    let layers = Layers { calls: TICK * 4, depth: 3, failure: 0.1, say_overloaded: false };
    let run = layers::run(&layers, &Contender::new("alone", policies()[0].policy), Draws::new(1, None), &control);
    assert_eq!((run.stopped.as_deref(), control.progress().2), (Some("interrupted"), 0));
}
