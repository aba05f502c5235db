//! Workers that are killed and stopped, on each engine that outlives them.

use super::{
    judge::{Verdict, judge},
    parent::{Done, Order, World},
    worker::{Control, LEASE, Worker},
};
use crate::servers::{PostgresServer, RedisServer};
use relent_store::{OnUnknown, Started};
use std::time::Duration;

/// How many to kill: `RELENT_FAULT_KILLS`, or so many.
fn kills(usual: u32) -> u32 {
    std::env::var("RELENT_FAULT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(usual)
}

async fn survives(url: Option<String>, usual: u32) {
    let world = World::new(url);
    let done = world.kill_many(kills(usual));
    let verdict = judge(&world).await;
    let Verdict { breaches, fenced, completed, events } = &verdict;
    let Done { kills: killed, pauses } = done;
    println!(
        "{killed} kills, {pauses} pauses: {events} events, {completed} completed, {fenced} fenced, {} breaches",
        breaches.len()
    );
    assert!(breaches.is_empty(), "{breaches:#?}");
    assert!(killed >= kills(usual) && *completed > 0, "{killed} were killed");
}

/// Stops a worker between its begin or effect and its complete, for longer than its lease; another takes the key over, and the
/// first goes on. What came of it.
pub(super) async fn paused(world: &World, pauses: u32, control: Control) -> Verdict {
    let successor = Worker::new(&world.url, world.folder()).await;
    for number in 0..pauses {
        let name = format!("a{number}");
        let point = if number % 2 == 0 { "after_begin" } else { "after_effect" };
        let mut worker = world.start(&Order { point, nth: 1, number, control, only: &name });
        assert!(worker.hear("at"), "it stands at {point}");
        worker.stop();
        tokio::time::sleep(LEASE + Duration::from_millis(20)).await;
        let Some(Started::Started { fence, unknown: Some(_) }) = successor.begin(&name, OnUnknown::TakeOver).await
        else {
            panic!("{name} was held by who was stopped");
        };
        successor.tell("started", &name, fence.0, 0);
        worker.resume();
        worker.go_on();
        successor.complete(&name, fence, fence.0).await;
    }
    judge(world).await
}

async fn pauses_are_fenced(url: Option<String>) {
    let verdict = paused(&World::new(url), 12, Control::Right).await;
    assert!(verdict.breaches.is_empty(), "{:#?}", verdict.breaches);
    assert_eq!((verdict.fenced, verdict.completed), (12, 12));
}

#[tokio::test]
async fn workers_killed_at_any_point_lose_nothing_on_sqlite() {
    survives(None, 120).await;
}

#[tokio::test]
async fn workers_killed_at_any_point_lose_nothing_on_redis() {
    survives(Some(RedisServer::start(&[]).url()), 60).await;
}

#[tokio::test]
async fn workers_killed_at_any_point_lose_nothing_on_postgres() {
    survives(Some(PostgresServer::start().url()), 40).await;
}

#[tokio::test]
async fn paused_beyond_the_lease_on_sqlite() {
    pauses_are_fenced(None).await;
}

#[tokio::test]
async fn paused_beyond_the_lease_on_redis() {
    pauses_are_fenced(Some(RedisServer::start(&[]).url())).await;
}

#[tokio::test]
async fn paused_beyond_the_lease_on_postgres() {
    pauses_are_fenced(Some(PostgresServer::start().url())).await;
}
