//! What is defined by a page or a standard: the AWS blog, IEEE 802.3, Google Cloud.

use crate::{
    case::{Case, Outcome, equal, same},
    drive,
};
use relent::{
    Decision, Policy, Timestamp, Verdict,
    compat::{Chained, Formula, Growth, Link, Random, Spread},
};
use std::time::Duration;

pub(crate) fn aws_blog(case: &Case) -> Outcome {
    let (base, cap, random) = (case.number("base_s")?, case.number("cap_s")?, case.forced()?);
    let ks: Vec<u32> = case.steps("attempt")?.iter().map(|n| n + 1).collect();
    let rule = |spread| Formula { first: base, growth: Growth::Power { factor: 2.0 }, cap, spread, ..Formula::SECONDS };
    let mut outcome = Err("none of the three kinds".to_owned());
    for (key, spread) in [("full", Spread::FULL), ("equal", Spread::Half)] {
        if case.has(key) {
            outcome = Ok(same(&case.numbers(key)?, &drive::formula(rule(spread), &ks, random)?)?);
        }
    }
    if case.has("decorrelated") {
        let rule = Chained { first: base, cap, link: Link::Decorrelated, ..Chained::SECONDS };
        outcome = Ok(same(&case.numbers("decorrelated")?, &drive::chained(rule, ks.len(), random)?)?);
    }
    outcome
}

pub(crate) fn ethernet(case: &Case) -> Outcome {
    const SLOT: Duration = Duration::from_nanos(51_200);
    let policy = Policy::slots(SLOT);
    let collision = case.count("collision")?;
    let delay = |draw| {
        let mut call = policy.call(Timestamp::ZERO, 0);
        let mut decide = || call.on_failure_with(Timestamp::ZERO, Verdict::Transient, draw);
        (1..collision).for_each(|_| {
            decide();
        });
        decide()
    };
    if case.get("k").is_none() {
        return equal("discarded", true, matches!(delay(0), Decision::GiveUp(_)));
    }
    let slots = |draw| match delay(draw) {
        Decision::Retry(delay) => Ok(delay.as_nanos() as f64 / SLOT.as_nanos() as f64),
        Decision::GiveUp(reason) => Err(reason.to_string()),
    };
    let ends = [slots(0)?, slots(u64::MAX)?];
    same(&[case.number("slots_min")?, case.number("slots_max")?], &ends)?;
    let row = policy.schedule().nth(collision as usize - 1).ok_or("no row in the schedule")?;
    equal("mean", case.number("mean_slots")?, row.delay.mean.as_nanos() as f64 / SLOT.as_nanos() as f64)?;
    let longest = (case.number("max_wait_us_10Mb")? * 1000.0).round() as u128;
    equal("longest wait", longest, row.delay.max.as_nanos())
}

pub(crate) fn google_cloud(case: &Case) -> Outcome {
    let ks: Vec<u32> = case.steps("n")?.iter().map(|n| n + 1).collect();
    let millis = u64::from(case.count("random_number_milliseconds")?);
    let rule = Formula {
        growth: Growth::Power { factor: 2.0 },
        spread: Spread::AdditiveWhole { most: 1000, per: 1000.0 },
        most: case.number("maximum_backoff_s")?,
        ..Formula::SECONDS
    };
    // The least draw that is scaled to this many of 1001 milliseconds.
    let draw = (u128::from(millis) << 64).div_ceil(1001) as u64;
    same(&case.numbers("out_s")?, &drive::formula(rule, &ks, Random::Draw(draw))?)
}
