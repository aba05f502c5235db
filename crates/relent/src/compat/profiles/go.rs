//! Go.

use super::{INF, MINUTE, NO_LIMIT, rule, secs};
use crate::compat::{Capped, Compound, Evidence, Formula, Growth, OnPushback, Profile, Rounding, Spread, WholeSpread};

static CENKALTI_V4: Compound = Compound { name: "cenkalti-v4", ..Compound::CENKALTI };
static CENKALTI_V5: Compound = Compound { name: "cenkalti-v5", pushback: OnPushback::Restarts, ..Compound::CENKALTI };
static JPILLORA: Formula = Formula {
    name: "jpillora",
    first: 1e8,
    growth: Growth::Power { factor: 2.0 },
    round: Rounding::Truncate,
    least: 1e8,
    most: 1e10,
    ..Formula::NANOS
};
static JPILLORA_JITTER: Formula = Formula { name: "jpillora-jitter", spread: Spread::From { low: 1e8 }, ..JPILLORA };
static RETRYABLEHTTP: Formula = Formula {
    name: "go-retryablehttp",
    first: 1e9,
    growth: Growth::Power { factor: 2.0 },
    nan: INF,
    round: Rounding::Truncate,
    most: 3e10,
    pushback: OnPushback::Replaces,
    ..Formula::NANOS
};
static RETRYABLEHTTP_LINEAR: Formula = Formula {
    name: "go-retryablehttp-linear",
    growth: Growth::Linear { step: 1.0 },
    spread: Spread::Times { low: 1e9, high: 3e10 },
    ..Formula::NANOS
};
static GAX: Compound = Compound {
    name: "gax-go",
    first: 1_000_000_000,
    factor: 2.0,
    cap: 30_000_000_000,
    capped: Capped::After,
    spread: WholeSpread::UpTo,
    ..Compound::CENKALTI
};
static GRPC_CONNECTION: Formula = Formula {
    name: "grpc-connection",
    lead: Some(1e9),
    first: 1e9,
    growth: Growth::Product { factor: 1.6, limit: 1.2e11 },
    cap: 1.2e11,
    spread: Spread::Around { share: 0.2 },
    round: Rounding::Truncate,
    ..Formula::NANOS
};

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "cenkalti-v4",
        system: "cenkalti/backoff (Go)",
        version: "4.3.0",
        source: "github.com/cenkalti/backoff v4: exponential.go, retry.go",
        evidence: Evidence::Run,
        picks: "",
        warning: "the first delay ignores the cap, and jitter exceeds it by half; a custom Stop value is not recognised and loops for ever",
        policy: rule(&CENKALTI_V4, NO_LIMIT).max_elapsed(secs(15 * MINUTE)),
    },
    Profile {
        name: "cenkalti-v5",
        system: "cenkalti/backoff (Go), v5 to v7",
        version: "5.0",
        source: "github.com/cenkalti/backoff v5: exponential.go, retry.go",
        evidence: Evidence::Run,
        picks: "",
        warning: "as v4; a RetryAfter starts the delays again from the first",
        policy: rule(&CENKALTI_V5, NO_LIMIT).max_elapsed(secs(15 * MINUTE)),
    },
    Profile {
        name: "jpillora",
        system: "jpillora/backoff (Go)",
        version: "1.0.0",
        source: "github.com/jpillora/backoff: backoff.go",
        evidence: Evidence::Run,
        picks: "",
        warning: "no jitter by default, and no limit",
        policy: rule(&JPILLORA, NO_LIMIT),
    },
    Profile {
        name: "jpillora-jitter",
        system: "jpillora/backoff (Go), Jitter: true",
        version: "1.0.0",
        source: "github.com/jpillora/backoff: backoff.go",
        evidence: Evidence::Run,
        picks: "",
        warning: "the first delay is exactly the least even with jitter, and the cap clips after the jitter: nearly all late delays are exactly the cap",
        policy: rule(&JPILLORA_JITTER, NO_LIMIT),
    },
    Profile {
        name: "go-retryablehttp",
        system: "hashicorp/go-retryablehttp (Go), DefaultBackoff",
        version: "0.7.8",
        source: "github.com/hashicorp/go-retryablehttp: client.go",
        evidence: Evidence::Run,
        picks: "",
        warning: "no jitter; a Retry-After is not bounded, overflows above 292 years, and POST is retried",
        policy: rule(&RETRYABLEHTTP, 5),
    },
    Profile {
        name: "go-retryablehttp-linear",
        system: "hashicorp/go-retryablehttp (Go), LinearJitterBackoff",
        version: "0.7.8",
        source: "github.com/hashicorp/go-retryablehttp: client.go",
        evidence: Evidence::Run,
        picks: "",
        warning: "the greatest wait is multiplied by the attempt too: 120 s where the maximum is 30 s",
        policy: rule(&RETRYABLEHTTP_LINEAR, 5),
    },
    Profile {
        name: "gax-go",
        system: "googleapis/gax-go Backoff",
        version: "2",
        source: "github.com/googleapis/gax-go v2: call_option.go",
        evidence: Evidence::Run,
        picks: "",
        warning: "delays can be 1 ns; an initial delay above the maximum is not cut",
        policy: rule(&GAX, NO_LIMIT),
    },
    Profile {
        name: "grpc-connection",
        system: "gRPC connection backoff (grpc-go)",
        version: "2026",
        source: "grpc/doc/connection-backoff.md; grpc-go: internal/backoff",
        evidence: Evidence::Run,
        picks: "",
        warning: "the first delay has no jitter; jitter exceeds the cap by a fifth",
        policy: rule(&GRPC_CONNECTION, NO_LIMIT),
    },
];
