//! Polly (.NET).

use super::rule;
use crate::compat::{Chained, Evidence, Formula, Growth, Link, OnPushback, Profile, Spread, Unit};

static POLLY: Formula = Formula { name: "polly", first: 2e7, ..Formula::TICKS };
static POLLY_LINEAR: Formula = Formula { name: "polly-linear", growth: Growth::Linear { step: 2e7 }, ..POLLY };
static POLLY_EXPONENTIAL: Formula =
    Formula { name: "polly-exponential", growth: Growth::Power { factor: 2.0 }, ..POLLY };
static POLLY_CONSTANT_JITTER: Formula =
    Formula { name: "polly-constant-jitter", spread: Spread::Between { low: 0.75, width: 0.5 }, ..POLLY };
static POLLY_JITTER: Chained = Chained {
    name: "polly-exponential-jitter",
    unit: Unit::Ticks,
    first: 2e7,
    cap: 9_223_372_036_854_774_807.0,
    link: Link::Smoothed { factor: 2.0 },
    pushback: OnPushback::Raises,
};

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "polly",
        system: "Polly v8 RetryStrategyOptions",
        version: "8.7.0",
        source: "App-vNext/Polly: src/Polly.Core/Retry/RetryHelper.cs",
        evidence: Evidence::Port,
        picks: "",
        warning: "2 s each time, no jitter",
        policy: rule(&POLLY, 4),
    },
    Profile {
        name: "polly-linear",
        system: "Polly v8, BackoffType Linear",
        version: "8.7.0",
        source: "App-vNext/Polly: src/Polly.Core/Retry/RetryHelper.cs",
        evidence: Evidence::Port,
        picks: "",
        warning: "no jitter, no cap",
        policy: rule(&POLLY_LINEAR, 4),
    },
    Profile {
        name: "polly-exponential",
        system: "Polly v8, BackoffType Exponential",
        version: "8.7.0",
        source: "App-vNext/Polly: src/Polly.Core/Retry/RetryHelper.cs",
        evidence: Evidence::Port,
        picks: "",
        warning: "no jitter, no cap",
        policy: rule(&POLLY_EXPONENTIAL, 4),
    },
    Profile {
        name: "polly-constant-jitter",
        system: "Polly v8, BackoffType Constant, UseJitter",
        version: "8.7.0",
        source: "App-vNext/Polly: src/Polly.Core/Retry/RetryHelper.cs",
        evidence: Evidence::Port,
        picks: "",
        warning: "a quarter to each side, which keeps a herd together",
        policy: rule(&POLLY_CONSTANT_JITTER, 4),
    },
    Profile {
        name: "polly-exponential-jitter",
        system: "Polly v8, BackoffType Exponential, UseJitter",
        version: "8.7.0",
        source: "App-vNext/Polly: src/Polly.Core/Retry/RetryHelper.cs",
        evidence: Evidence::Port,
        picks: "",
        warning: "the cap clips after the jitter, so there is none at the cap",
        policy: rule(&POLLY_JITTER, 4),
    },
];
