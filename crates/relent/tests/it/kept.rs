//! What an upstream remembers is all of what it decides by: saved, and loaded later, it goes on as if nothing had been in between.

use crate::budgets::seed;
use relent::{
    Breaker, BreakerQuirks, BreakerSettings, Budget, Hedge, Limit, LimitAnswer, Outcome, Timestamp, Upstream, Verdict,
    Withdrawal, rng::draw,
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);

/// Every machine that remembers something.
fn upstreams() -> Vec<Upstream> {
    let bank = || Upstream::new("bank");
    let cockatiel = BreakerSettings {
        share: Some(0.5),
        slow_after: Some(50 * MS),
        min_calls: Some(3),
        quirks: BreakerQuirks::Cockatiel,
        ..BreakerSettings::default()
    };
    vec![
        bank().budget(Budget::ratio(0.2)),
        bank().budget(Budget::aws_quota_2_1()),
        bank().budget(Budget::grpc(10, 0.1)),
        bank().budget(Budget::finagle(0.2).min_per_second(1)),
        bank().budget(Budget::in_flight(0.2, 3)),
        bank().budget(Budget::throttle(2.0)),
        bank().budget(Budget::ratio(0.2).for_one_call()),
        bank().breaker(Breaker::consecutive(3).open_for(SEC).factor(2.0).jitter(0.5).close_after(2)),
        bank().breaker(Breaker::share(0.5).window_calls(40).min_calls(5).open_for(SEC).ramp(SEC)),
        bank().breaker(Breaker::slow(50 * MS, 0.5).window_calls(70).min_calls(5).open_for(SEC)),
        bank().breaker(Breaker::share(0.5).min_calls(5).open_for(SEC).or_slow(50 * MS, 0.9)),
        bank().breaker(Breaker::failures(4).open_for(SEC).for_one_thread()),
        bank().breaker(Breaker::failures(4).open_for(SEC).for_one_call()),
        bank().breaker(cockatiel.breaker().unwrap()),
        bank().limit(Limit::rate(20).burst(5)),
        bank().limit(Limit::concurrency(3).queue(4, SEC)),
        bank().limit(Limit::aimd(5)),
        bank().limit(Limit::gradient(5)),
        bank().limit(Limit::aws_adaptive()),
        bank().hedge(Hedge::quantile(0.9).min_samples(5)),
    ]
}

fn moment(k: u32) -> Timestamp {
    Timestamp::from_nanos(1 << 40) + 37 * MS * k
}

/// So many random things that happen to it, and what it answers.
fn live(bank: &Upstream, seed: u64, from: u32, to: u32) -> Vec<String> {
    let mut told = vec![];
    for k in from..to {
        let now = moment(k);
        let (random, chance) = (draw(seed, 2 * k), draw(seed, 2 * k + 1));
        let took = MS * (random >> 40 & 127) as u32;
        let outcome = match random % 5 {
            0 | 1 => Outcome::Success,
            2 => Outcome::Failure(Verdict::After(took)),
            3 => Outcome::TimedOut,
            _ => Outcome::Failure(Verdict::Transient),
        };
        if let Some(budget) = bank.its_budget() {
            let started = budget.start(now, chance);
            let paid = budget.withdraw(now, outcome, chance);
            match paid {
                Some(paid) if random & 1 << 22 == 0 => budget.refund(now, paid),
                _ => budget.outcome(now, outcome, paid.filter(|_| random & 1 << 20 == 0)),
            }
            told.push(format!("{started} {:?} {}", paid.map(Withdrawal::cost), budget.balance(now)));
        }
        if let Some(breaker) = bank.its_breaker() {
            let permit = breaker.permit(now, chance).map_err(|refused| refused.again);
            let change = match permit {
                Ok(permit) if outcome == Outcome::Success => permit.succeeded(now, took, chance),
                Ok(permit) => permit.failed(now, took, chance),
                Err(again) => {
                    told.push(format!("{again:?}"));
                    None
                }
            };
            let seen = breaker.snapshot(now);
            told.push(format!("{change:?} {:?} {:?} {}", seen.state, seen.until, seen.failures_in_a_row));
            told.push(format!("{} {} {}", seen.window_calls, seen.window_failures, seen.window_slow));
        }
        if let Some(limit) = bank.its_limit() {
            match limit.acquire(now) {
                LimitAnswer::Granted if random & 1 << 20 == 0 => limit.release(now, outcome, took),
                LimitAnswer::Queue(_) if random & 1 << 21 == 0 => limit.leave(),
                other => told.push(format!("{other:?}")),
            }
            if random % 7 == 0 {
                told.push(format!("{:?} {}", limit.next(now), limit.enter()));
                limit.release(now, outcome, took);
            }
            told.push(format!("{:?} {:?} {:?}", limit.snapshot(now), limit.min_rtt(), limit.aws_state(now)));
        }
        if let Some(hedge) = bank.its_hedge() {
            hedge.observe(took);
            told.push(format!("{} {:?}", hedge.samples(), hedge.delay()));
        }
    }
    told
}

/// Some seeds and how much has happened before, or the one that is asked for.
fn lives() -> impl Iterator<Item = (u64, u32)> {
    let seeds = match seed() {
        Some(seed) => seed..seed + 1,
        None => 0..10,
    };
    seeds.flat_map(|seed| [0, 3, 40, 150].map(|until| (seed, until)))
}

#[test]
fn what_was_saved_goes_on_as_if_nothing_had_been() {
    for (seed, until) in lives() {
        for bank in upstreams() {
            live(&bank, seed, 0, until);
            let mut saved = vec![0; bank.words()];
            bank.save(&mut saved);
            let first = live(&bank, seed, until, until + 50);
            live(&bank, !seed, 300, 340);
            bank.load(&saved);
            assert_eq!(first, live(&bank, seed, until, until + 50), "RELENT_SEED={seed}, after {until}: {bank:?}");
        }
    }
}

/// A fresh one of the same settings is where an old one was.
#[test]
fn what_was_saved_is_all_there_is() {
    for (seed, until) in lives() {
        for (old, new) in upstreams().iter().zip(upstreams()) {
            live(old, seed, 0, until);
            let mut saved = vec![0; old.words()];
            old.save(&mut saved);
            new.load(&saved);
            let (old, new) = (live(old, seed, until, until + 50), live(&new, seed, until, until + 50));
            assert_eq!(old, new, "RELENT_SEED={seed}, after {until}");
        }
    }
}

/// Settings that were read again and say the same: budgets and limits go on as if they had not been. Only a budget of one call
/// begins anew, being three words.
#[test]
fn what_was_taken_over_goes_on_as_if_nothing_had_been() {
    for (seed, until) in lives() {
        for (old, new) in upstreams().iter().zip(upstreams()) {
            live(old, seed, 0, until);
            if old.its_budget().is_some() && old.words() == 3 {
                continue;
            }
            if let (Some(new), Some(old)) = (new.its_budget(), old.its_budget()) {
                new.adopt(old);
            } else if let (Some(new), Some(old)) = (new.its_limit(), old.its_limit()) {
                new.adopt(old, moment(until));
            } else {
                continue;
            }
            let (old, new) = (live(old, seed, until, until + 50), live(&new, seed, until, until + 50));
            assert_eq!(old, new, "RELENT_SEED={seed}, after {until}");
        }
    }
}

#[test]
fn what_was_reset_goes_on_as_a_new_one() {
    for (seed, until) in lives() {
        for (old, new) in upstreams().iter().zip(upstreams()) {
            live(old, seed, 0, until);
            if let Some(budget) = old.its_budget() {
                budget.reset(moment(until));
            } else if let Some(limit) = old.its_limit() {
                limit.reset(moment(until));
            } else {
                continue;
            }
            let (reset, new) = (live(old, seed, until, until + 50), live(&new, seed, until, until + 50));
            assert_eq!(new, reset, "RELENT_SEED={seed}, after {until}: {old:?}");
        }
    }
}
