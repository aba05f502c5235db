//! What a decision of a shared budget costs.

use crate::{ROUNDS, rate::median};
use relent::{Budget, Outcome, Timestamp, Upstream, Verdict};
use relent_store::{Key, Memory, Sharing, Store};
use std::{hint::black_box, time::Instant};

/// What a decision of a shared budget costs beside one that is not shared, in nanoseconds: a call that begins, and a retry.
pub(crate) async fn all() {
    let store = Store::new(Memory::new());
    let together = store.share(&Key::new("bench").unwrap(), Upstream::new("bench"), Sharing::default()).await.unwrap();
    let (together, alone) = (together.its_budget().unwrap(), Budget::ratio(0.1));
    let [mut of_alone, mut of_shared] = [(); 2].map(|()| [vec![], vec![]]);
    for _ in 0..ROUNDS {
        for (budget, [calls, retries]) in [(&alone, &mut of_alone), (together, &mut of_shared)] {
            calls.push(nanos(|| _ = black_box(budget.start(black_box(Timestamp::ZERO), 0))));
            let failed = Outcome::Failure(Verdict::Transient);
            retries.push(nanos(|| _ = black_box(budget.withdraw(black_box(Timestamp::ZERO), failed, 0))));
        }
    }
    println!("\n| a decision | alone, ns | shared, ns | target |\n|---|---:|---:|---:|");
    for (work, (alone, shared)) in
        ["a call begins", "a retry, granted or not"].into_iter().zip(of_alone.into_iter().zip(of_shared))
    {
        println!("| {work} | {:.1} | {:.1} | 10 |", median(alone), median(shared));
    }
}

/// How long one of many takes.
fn nanos(work: impl Fn()) -> f64 {
    let (begin, number) = (Instant::now(), 10_000_000);
    for _ in 0..number {
        work();
    }
    begin.elapsed().as_nanos() as f64 / f64::from(number)
}
