//! Finagle, Envoy and Linkerd.

use super::{NO_LIMIT, SECONDS, rule};
use crate::compat::{Capped, Chained, Compound, Evidence, Formula, Growth, Link, Profile, Spread, Unit, WholeSpread};

static FINAGLE_EXPONENTIAL: Compound = Compound {
    name: "finagle-exponential",
    first: 100_000_000,
    factor: 2.0,
    cap: 10_000_000_000,
    capped: Capped::Quotient,
    spread: WholeSpread::None,
    ..Compound::CENKALTI
};
static FINAGLE_EQUAL: Formula = Formula {
    name: "finagle-equal",
    lead: Some(1e8),
    first: 1e8,
    growth: Growth::Power { factor: 2.0 },
    offset: -1,
    cap: 1e10,
    spread: Spread::Twice,
    most: 1e10,
    ..Formula::NANOS
};
const FINAGLE: Chained = Chained { unit: Unit::Nanos, first: 1e8, cap: 1e10, ..Chained::SECONDS };
static FINAGLE_DECORRELATED: Chained = Chained { name: "finagle-decorrelated", link: Link::Rising, ..FINAGLE };
static FINAGLE_JITTERED: Chained = Chained { name: "finagle-exponential-jittered", link: Link::Compounding, ..FINAGLE };
static ENVOY: Compound = Compound {
    name: "envoy",
    unit: Unit::Millis,
    first: 25,
    factor: 2.0,
    cap: 250,
    capped: Capped::Quotient,
    spread: WholeSpread::Remainder,
    ..Compound::CENKALTI
};
static LINKERD: Formula =
    Formula { name: "linkerd", first: 0.025, cap: 0.25, spread: Spread::Above { share: 1.0, limit: 0.25 }, ..SECONDS };

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "finagle-exponential",
        system: "Finagle Backoff.exponential",
        version: "4feb34cb9",
        source: "twitter/finagle: finagle-core Backoff.scala",
        evidence: Evidence::Run,
        picks: "start 100 ms and maximum 10 s",
        warning: "no jitter",
        policy: rule(&FINAGLE_EXPONENTIAL, NO_LIMIT),
    },
    Profile {
        name: "finagle-equal",
        system: "Finagle Backoff.equalJittered",
        version: "4feb34cb9",
        source: "twitter/finagle: finagle-core Backoff.scala",
        evidence: Evidence::Run,
        picks: "start 100 ms and maximum 10 s",
        warning: "no jitter in the first delay, nor at the cap",
        policy: rule(&FINAGLE_EQUAL, NO_LIMIT),
    },
    Profile {
        name: "finagle-decorrelated",
        system: "Finagle Backoff.decorrelatedJittered",
        version: "4feb34cb9",
        source: "twitter/finagle: finagle-core Backoff.scala",
        evidence: Evidence::Run,
        picks: "start 100 ms and maximum 10 s",
        warning: "no jitter in the first delay; a delay never gets shorter, so all end at the cap",
        policy: rule(&FINAGLE_DECORRELATED, NO_LIMIT),
    },
    Profile {
        name: "finagle-exponential-jittered",
        system: "Finagle Backoff.exponentialJittered",
        version: "4feb34cb9",
        source: "twitter/finagle: finagle-core Backoff.scala",
        evidence: Evidence::Run,
        picks: "start 100 ms and maximum 10 s",
        warning: "its draws compound: 2^(n(n+1)/2) instead of 2^n; no jitter at the cap; fails after a draw of 0",
        policy: rule(&FINAGLE_JITTERED, NO_LIMIT),
    },
    Profile {
        name: "envoy",
        system: "Envoy route retry_policy",
        version: "2026",
        source: "envoyproxy/envoy: source/common/common/backoff_strategy.cc",
        evidence: Evidence::Port,
        picks: "",
        warning: "delays can be 0; one retry by default; its documentation says (2^n - 1) * base, its code does not",
        policy: rule(&ENVOY, 2),
    },
    Profile {
        name: "linkerd",
        system: "Linkerd 2 exp-backoff",
        version: "29637b64f",
        source: "linkerd2-proxy: linkerd/exp-backoff/src/lib.rs",
        evidence: Evidence::Port,
        picks: "",
        warning: "at the cap there is no jitter",
        policy: rule(&LINKERD, 2),
    },
];
