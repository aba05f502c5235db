//! Delays are spread at first, but many clients end up waiting the identical time.

use super::{
    Check, Rule, Warning,
    behaviour::{Alike, Behaviour},
    words::Percent,
};
use crate::core::{duration::Human, policy::Policy};
use core::{fmt, time::Duration};

pub(super) const RULE: Rule = Rule {
    name: "jitter_dies",
    hint: "jitter has to be drawn below the cap, not cut at it: use jitter full or equal",
    check: Check::Policy(check),
    tell,
    is_note: |_| false,
};

/// A share of identical delays from which on jitter counts as dying.
const DYING: f64 = 0.05;

/// The last retries, over which a share is averaged: what it settles at.
const RECENT: usize = 8;

/// Where the share may have settled, compared with where it ends.
const SETTLED: f64 = 0.8;

/// A share that the herd can hardly tell from all.
const NEARLY_ALL: f64 = 0.99;

fn check(policy: &Policy, behaviour: &Behaviour) -> Option<Warning> {
    let rows = behaviour.alike();
    let dying = &rows[rows.len() - dying_rows(rows)..];
    let recent = &dying[dying.len().saturating_sub(RECENT)..];
    let delay = Duration::from_nanos(recent.last()?.delay);
    let share = recent.iter().map(|row| row.share).sum::<f64>() / recent.len() as f64;
    // Told is the attempt from which on the share is what is told, not the one at which it began to grow.
    let least = if share > NEARLY_ALL { share - 0.002 } else { share * SETTLED };
    let early = dying.iter().take_while(|row| row.share < least).count();
    // A herd of some hundred cannot see the one client in a million that the schedule knows of.
    let all_wait_it = policy.schedule().nth(rows.len() - 1).is_some_and(|row| row.delay.min == row.delay.max);
    let share = if share < 1.0 || all_wait_it { share } else { share.next_down() };
    let attempt = (rows.len() - dying.len() + early + 2) as u32;
    Some(Warning::JitterDies { attempt, share, delay })
}

/// The last retries, before all of which far more clients than earlier waited the identical time.
fn dying_rows(rows: &[Alike]) -> usize {
    let (mut least, mut dying) = (1.0f64, 0);
    for row in rows {
        // A delay as long as time itself is one that was cut off there, by no cap of the policy's.
        let dies = row.share >= DYING && row.share > 2.0 * least && row.delay > 0 && row.delay < u64::MAX;
        dying = if dies { dying + 1 } else { 0 };
        least = least.min(row.share);
    }
    dying
}

/// Whether the jitter dies.
pub(super) fn dies(behaviour: &Behaviour) -> bool {
    dying_rows(behaviour.alike()) > 0
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Warning::JitterDies { attempt, share, delay } = *warning else { return Ok(()) };
    let (share, delay) = (Percent(share), Human(delay));
    write!(f, "jitter dies: from attempt {attempt} on, {share} of clients wait the identical {delay}")
}
