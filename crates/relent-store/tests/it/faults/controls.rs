//! Workers that do it wrong, to show that the judge sees it.

use super::{
    judge::{Breach, judge},
    kills::paused,
    parent::{Order, World},
    worker::Control,
};

#[tokio::test]
async fn who_completes_without_a_fence_is_caught() {
    let verdict = paused(&World::new(None), 12, Control::NoFence).await;
    assert!(verdict.has(Breach::SettledTwice), "{:#?}", verdict.breaches);
}

#[tokio::test]
async fn who_commits_effect_and_seen_apart_is_caught() {
    let world = World::new(None);
    let point = "effect_without_seen";
    let mut worker = world.start(&Order { point, nth: 1, number: 1, control: Control::NoTransaction, only: "m1" });
    assert!(worker.hear("at") && worker.kill());
    drop(worker);
    // It is delivered again, to a consumer that does it right.
    let control = Control::Right;
    let mut again = world.start(&Order { point: "after_commit", nth: 1, number: 2, control, only: "m1" });
    assert!(again.hear("at"));
    again.go_on();
    assert!(judge(&world).await.has(Breach::NotOnce));
}

#[tokio::test]
async fn who_tells_before_the_store_has_it_is_caught() {
    let world = World::new(None);
    let order = Order { point: "told_too_early", nth: 1, number: 1, control: Control::ToldTooEarly, only: "" };
    let mut worker = world.start(&order);
    assert!(worker.hear("at") && worker.kill());
    assert!(judge(&world).await.has(Breach::Lost));
}
