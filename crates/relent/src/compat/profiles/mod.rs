//! The profiles, a file for each family of systems. A new one is an entry in its family's file, and a row in COMPARE.md.
//!
//! A system that has no default parameters gets those of its documentation's example, or others that are named in
//! `picks`. Sources that name a file name it in the repository of the version given.

mod aws;
mod celery;
mod go;
mod google;
mod jvm;
mod node;
mod notifications;
mod polly;
mod proxies;
mod python;
mod standards;
#[cfg(test)]
mod tests;

use super::{Formula, Growth, Profile};
use crate::{Backoff, Policy};
use core::time::Duration;

const FAMILIES: [&[Profile]; 11] = [
    go::PROFILES,
    celery::PROFILES,
    aws::PROFILES,
    google::PROFILES,
    standards::PROFILES,
    proxies::PROFILES,
    polly::PROFILES,
    jvm::PROFILES,
    python::PROFILES,
    node::PROFILES,
    notifications::PROFILES,
];

/// All of them, in the order of their families.
pub(super) static PROFILES: [Profile; COUNT] = {
    let mut all = [FAMILIES[0][0]; COUNT];
    let (mut family, mut next) = (0, 0);
    while family < FAMILIES.len() {
        let mut nth = 0;
        while nth < FAMILIES[family].len() {
            all[next] = FAMILIES[family][nth];
            (next, nth) = (next + 1, nth + 1);
        }
        family += 1;
    }
    all
};

const COUNT: usize = {
    let (mut family, mut count) = (0, 0);
    while family < FAMILIES.len() {
        count += FAMILIES[family].len();
        family += 1;
    }
    count
};

const NO_LIMIT: u32 = u32::MAX;
const INF: f64 = f64::INFINITY;
const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Other systems do not bound a pushback.
const fn rule(rule: &'static dyn Backoff, max_attempts: u32) -> Policy {
    Policy::custom(rule).max_attempts(max_attempts).max_pushback(Duration::MAX)
}

const SECONDS: Formula = Formula { growth: Growth::Power { factor: 2.0 }, ..Formula::SECONDS };
const MILLIS: Formula = Formula { growth: Growth::Power { factor: 2.0 }, ..Formula::MILLIS };
