//! gRPC's retries and Google's client libraries.

use super::{MILLIS, NO_LIMIT, SECONDS, rule, secs};
use crate::compat::{Evidence, Formula, Growth, OnPushback, Profile, Spread};

static GRPC_A6: Formula = Formula {
    name: "grpc-a6",
    first: 0.1,
    cap: 1.0,
    spread: Spread::Between { low: 0.8, width: 0.4 },
    pushback: OnPushback::Restarts,
    ..SECONDS
};
static GRPC_JS: Formula = Formula {
    name: "grpc-js",
    first: 0.1,
    growth: Growth::Product { factor: 2.0, limit: 1.0 },
    spread: Spread::Between { low: 0.8, width: 1.2 - 0.8 },
    pushback: OnPushback::Restarts,
    ..Formula::SECONDS
};
static GOOGLE_API_CORE: Formula = Formula {
    name: "google-api-core",
    growth: Growth::Product { factor: 2.0, limit: 60.0 },
    cap: 60.0,
    spread: Spread::FULL,
    ..Formula::SECONDS
};
const GOOGLE_CLOUD: Formula = Formula { spread: Spread::AdditiveWhole { most: 1000, per: 1000.0 }, ..SECONDS };
static GOOGLE_CLOUD_64: Formula = Formula { name: "google-cloud", most: 64.0, ..GOOGLE_CLOUD };
static GOOGLE_CLOUD_32: Formula = Formula { name: "google-cloud-32", most: 32.0, ..GOOGLE_CLOUD };
static GOOGLE_CLOUD_JAVA: Formula = Formula {
    name: "google-cloud-java",
    first: 1000.0,
    spread: Spread::AdditiveWhole { most: 1000, per: 1.0 },
    most: 64_000.0,
    ..MILLIS
};

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "grpc-a6",
        system: "gRPC retry policy, the example of the specification",
        version: "gRFC A6",
        source: "github.com/grpc/proposal: A6-client-retries.md",
        evidence: Evidence::Port,
        picks: "initialBackoff 0.1 s, maxBackoff 1 s, backoffMultiplier 2 and maxAttempts 4, the specification's example",
        warning: "jitter exceeds the cap by a fifth",
        policy: rule(&GRPC_A6, 4),
    },
    Profile {
        name: "grpc-js",
        system: "@grpc/grpc-js retry policy, the example of gRFC A6",
        version: "1.14.7",
        source: "@grpc/grpc-js: retrying-call.ts",
        evidence: Evidence::Run,
        picks: "initialBackoff 0.1 s, maxBackoff 1 s, backoffMultiplier 2 and maxAttempts 4, the specification's example",
        warning: "an initial backoff above the maximum is not cut; a pushback that cannot be read is retried at once",
        policy: rule(&GRPC_JS, 4),
    },
    Profile {
        name: "google-api-core",
        system: "google-api-core Retry (Python)",
        version: "2.44.0",
        source: "google-api-core: google/api_core/retry/retry_base.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "delays can be 0",
        policy: rule(&GOOGLE_API_CORE, NO_LIMIT).max_elapsed(secs(120)),
    },
    Profile {
        name: "google-cloud",
        system: "Google Cloud truncated exponential backoff, 64 s",
        version: "2026",
        source: "cloud.google.com/memorystore/docs/redis/exponential-backoff",
        evidence: Evidence::Port,
        picks: "maximum_backoff 64 s, the longer of the two that are recommended",
        warning: "at the cap there is no jitter: from the 7th delay on all clients wait exactly 64 s",
        policy: rule(&GOOGLE_CLOUD_64, NO_LIMIT),
    },
    Profile {
        name: "google-cloud-32",
        system: "Google Cloud truncated exponential backoff, 32 s",
        version: "2026",
        source: "cloud.google.com/memorystore/docs/redis/exponential-backoff",
        evidence: Evidence::Port,
        picks: "maximum_backoff 32 s, the shorter of the two that are recommended",
        warning: "at the cap there is no jitter: from the 6th delay on all clients wait exactly 32 s",
        policy: rule(&GOOGLE_CLOUD_32, NO_LIMIT),
    },
    Profile {
        name: "google-cloud-java",
        system: "min(2^n * base + U[0..jitter_max], cap) in milliseconds, the common Java form",
        version: "2026",
        source: "common in articles and code; after cloud.google.com/memorystore/docs/redis/exponential-backoff",
        evidence: Evidence::Port,
        picks: "base 1 s, jitter_max 1 s and cap 64 s",
        warning: "at the cap there is no jitter: from the 7th delay on all clients wait exactly 64 s",
        policy: rule(&GOOGLE_CLOUD_JAVA, NO_LIMIT),
    },
];
