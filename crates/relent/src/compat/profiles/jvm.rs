//! resilience4j and Failsafe, with its port to Go.

use super::rule;
use crate::compat::{Capped, Compound, Evidence, Formula, Profile, Unit, WholeSpread};

const RESILIENCE4J: Compound = Compound {
    unit: Unit::Millis,
    first: 500,
    factor: 1.5,
    cap: i64::MAX,
    capped: Capped::Never,
    spread: WholeSpread::None,
    least: 1,
    ..Compound::CENKALTI
};
static RESILIENCE4J_FIXED: Compound = Compound { name: "resilience4j", factor: 1.0, ..RESILIENCE4J };
static RESILIENCE4J_EXPONENTIAL: Compound = Compound { name: "resilience4j-exponential", ..RESILIENCE4J };
static RESILIENCE4J_RANDOM: Compound =
    Compound { name: "resilience4j-randomized", spread: WholeSpread::Margin(0.5), ..RESILIENCE4J_FIXED };
static RESILIENCE4J_EXPONENTIAL_RANDOM: Compound =
    Compound { name: "resilience4j-exponential-random", spread: WholeSpread::Margin(0.5), ..RESILIENCE4J };
static FAILSAFE: Formula = Formula { name: "failsafe", first: 0.0, ..Formula::NANOS };
static FAILSAFE_GO: Formula = Formula { name: "failsafe-go", ..FAILSAFE };

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "resilience4j",
        system: "resilience4j RetryConfig",
        version: "2.4.0",
        source: "resilience4j-core: IntervalFunction.java",
        evidence: Evidence::Run,
        picks: "",
        warning: "500 ms each time, no jitter",
        policy: rule(&RESILIENCE4J_FIXED, 3),
    },
    Profile {
        name: "resilience4j-exponential",
        system: "resilience4j IntervalFunction.ofExponentialBackoff",
        version: "2.4.0",
        source: "resilience4j-core: IntervalFunction.java",
        evidence: Evidence::Run,
        picks: "",
        warning: "no jitter, no cap; truncated at each step",
        policy: rule(&RESILIENCE4J_EXPONENTIAL, 3),
    },
    Profile {
        name: "resilience4j-randomized",
        system: "resilience4j IntervalFunction.ofRandomized",
        version: "2.4.0",
        source: "resilience4j-core: IntervalFunction.java",
        evidence: Evidence::Run,
        picks: "",
        warning: "does not grow",
        policy: rule(&RESILIENCE4J_RANDOM, 3),
    },
    Profile {
        name: "resilience4j-exponential-random",
        system: "resilience4j IntervalFunction.ofExponentialRandomBackoff",
        version: "2.4.0",
        source: "resilience4j-core: IntervalFunction.java",
        evidence: Evidence::Run,
        picks: "",
        warning: "no cap by default; given one, it clips after the jitter",
        policy: rule(&RESILIENCE4J_EXPONENTIAL_RANDOM, 3),
    },
    Profile {
        name: "failsafe",
        system: "Failsafe RetryPolicy (Java)",
        version: "3.3.2",
        source: "failsafe-lib/failsafe: RetryPolicyConfig.java",
        evidence: Evidence::Run,
        picks: "",
        warning: "no delay at all by default; with maxDuration it spins at the end",
        policy: rule(&FAILSAFE, 3),
    },
    Profile {
        name: "failsafe-go",
        system: "failsafe-go RetryPolicy",
        version: "0.9.7",
        source: "failsafe-go/failsafe-go: retrypolicy",
        evidence: Evidence::Run,
        picks: "",
        warning: "no delay at all by default",
        policy: rule(&FAILSAFE_GO, 3),
    },
];
