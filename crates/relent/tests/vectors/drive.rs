//! Running rules: step by step for their exact numbers, and as policies for what a user gets.

use relent::{
    Backoff, Decision, Policy, Reason, Step, Timestamp, Verdict,
    compat::{Chained, Compound, Formula, Random, WholeSpread},
};
use std::time::Duration;

/// The values of a formula at steps `ks`, in order. What the rule makes of the same draw as a delay must agree.
pub(crate) fn formula(rule: Formula, ks: &[u32], random: Random) -> Result<Vec<f64>, String> {
    let mut memory = 0;
    let value = |&k: &u32| {
        let before = memory;
        let value = rule.value(k, &mut memory, random).ok_or_else(|| format!("failed at step {k}"))?;
        agrees(&rule, k, before, random, rule.unit.duration(value))?;
        Ok(value)
    };
    ks.iter().map(value).collect()
}

/// The values of a chain after failures 1 to `count`, fewer where the original fails.
pub(crate) fn chained(rule: Chained, count: usize, random: Random) -> Result<Vec<f64>, String> {
    chained_at(rule, &(1..=count as u32).collect::<Vec<u32>>(), random)
}

/// The values of a chain that begins at the first of the steps `ks`, fewer where the original fails.
pub(crate) fn chained_at(rule: Chained, ks: &[u32], random: Random) -> Result<Vec<f64>, String> {
    let (mut memory, mut values) = (0, Vec::new());
    for &k in ks {
        let before = memory;
        let Some(value) = rule.value(k, &mut memory, random) else { break };
        agrees(&rule, k, before, random, rule.unit.duration(value))?;
        values.push(value);
    }
    Ok(values)
}

/// The values of whole numbers after failures 1 to `count`.
pub(crate) fn compound(rule: Compound, count: usize, random: Random) -> Result<Vec<i64>, String> {
    let mut memory = 0;
    let value = |k| {
        let before = memory;
        let value = rule.value(&mut memory, random).ok_or_else(|| format!("failed at step {k}"))?;
        agrees(&rule, k, before, random, rule.unit.whole(value))?;
        Ok(value)
    };
    (1..=count as u32).map(value).collect()
}

/// The intervals behind the delays of whole numbers.
pub(crate) fn intervals(rule: Compound, count: usize) -> Result<Vec<i64>, String> {
    let bare = Compound { spread: WholeSpread::None, least: i64::MIN, most: i64::MAX, ..rule };
    compound(bare, count, Random::Draw(0))
}

fn agrees(rule: &dyn Backoff, k: u32, memory: u64, random: Random, value: Duration) -> Result<(), String> {
    let (Random::Draw(draw), 1..) = (random, k) else { return Ok(()) };
    let mut step = Step { failures: k, elapsed: Duration::ZERO, verdict: Verdict::Transient, draw, memory };
    match rule.delay(&mut step) {
        Some(delay) if delay == value => Ok(()),
        delay => Err(format!("the delay after failure {k} is {delay:?}, its value {value:?}")),
    }
}

/// The delay that a rule makes of a pushback on failure `k`.
pub(crate) fn pushed_back(rule: &dyn Backoff, k: u32, random: Random, pushback: Duration) -> Option<Duration> {
    let Random::Draw(draw) = random else { return None };
    let verdict = Verdict::After(pushback);
    rule.delay(&mut Step { failures: k, elapsed: Duration::ZERO, verdict, draw, memory: 0 })
}

/// A rule that lives as long as the test.
pub(crate) fn keep(rule: impl Backoff + 'static) -> &'static dyn Backoff {
    Box::leak(Box::new(rule))
}

/// What became of a call that was driven to its end.
pub(crate) struct Trace {
    pub(crate) calls: u32,
    pub(crate) waits: Vec<Duration>,
    pub(crate) end: Duration,
    pub(crate) reason: Option<Reason>,
}

impl Trace {
    pub(crate) fn waits_ns(&self) -> Vec<i64> {
        self.waits.iter().map(|wait| wait.as_nanos() as i64).collect()
    }

    pub(crate) fn waits_s(&self) -> Vec<f64> {
        self.waits.iter().map(Duration::as_secs_f64).collect()
    }
}

/// Drives a call of the policy on a clock that is moved by hand: `outcome` says how attempt `n` ends, with nothing for
/// a success, and how long it takes.
pub(crate) fn drive(
    policy: &Policy,
    random: Random,
    most: u32,
    mut outcome: impl FnMut(u32) -> (Option<Verdict>, Duration),
) -> Trace {
    let draw = match random {
        Random::Draw(draw) => draw,
        Random::Fraction(_) => panic!("a policy draws, it is not told"),
    };
    let (mut now, mut waits) = (Timestamp::ZERO, Vec::new());
    let mut call = policy.call(now, 0);
    let mut calls = 0;
    let reason = loop {
        calls += 1;
        let (verdict, took) = outcome(calls);
        now = now + took;
        let Some(verdict) = verdict else { break None };
        if calls == most {
            break None;
        }
        match call.on_failure_with(now, verdict, draw) {
            Decision::Retry(delay) => {
                waits.push(delay);
                now = now + delay;
            }
            Decision::GiveUp(reason) => break Some(reason),
        }
    };
    Trace { calls, waits, end: now.since(Timestamp::ZERO), reason }
}
