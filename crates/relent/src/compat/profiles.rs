//! The table of profiles: other systems' defaults.
//!
//! A system that has no default parameters gets those of its documentation's example. Sources that name a file name it
//! in the repository of the version given.

use super::{
    Chained, Compound, Formula, Growth, Limit, Link, Profile, Pushback, Rounding, Spread, Stop, Unit, Until,
    WholeSpread,
};
use crate::{Backoff, Policy};
use core::time::Duration;

const NO_LIMIT: u32 = u32::MAX;
const INF: f64 = f64::INFINITY;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Other systems do not bound a pushback.
const fn rule(rule: &'static dyn Backoff, max_attempts: u32) -> Policy {
    Policy::custom(rule).max_attempts(max_attempts).max_pushback(Duration::MAX)
}

const SECONDS: Formula = Formula { growth: Growth::Power { factor: 2.0 }, ..Formula::SECONDS };
const MILLIS: Formula = Formula { growth: Growth::Power { factor: 2.0 }, ..Formula::MILLIS };

static CENKALTI_V4: Compound = Compound { name: "cenkalti-v4", ..Compound::CENKALTI };
static CENKALTI_V5: Compound = Compound { name: "cenkalti-v5", pushback: Pushback::Restarts, ..Compound::CENKALTI };

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
    pushback: Pushback::Replaces,
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
    limit: Limit::After,
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

static CELERY: Formula = Formula { name: "celery", cap: 600.0, spread: Spread::Whole, ..SECONDS };
static CELERY_PLAIN: Formula = Formula { name: "celery-no-jitter", cap: 600.0, ..SECONDS };
static CELERY_DEFAULT: Formula = Formula { name: "celery-default", first: 180.0, ..Formula::SECONDS };
static KOMBU: Formula = Formula {
    name: "kombu",
    first: 2.0,
    growth: Growth::Sum { step: 2.0, limit: 32.0, repeat: true },
    most: 30.0,
    ..Formula::SECONDS
};

static AWS_20: Formula = Formula { name: "aws-2.0", cap: 20.0, spread: Spread::FULL, ..SECONDS };
const AWS_21: Formula = Formula { first: 0.05, pushback: Pushback::RaisesByAtMost(secs(5)), ..AWS_20 };
static AWS_21_TRANSIENT: Formula = Formula { name: "aws-2.1", ..AWS_21 };
static AWS_21_THROTTLING: Formula = Formula { name: "aws-2.1-throttling", first: 1.0, ..AWS_21 };
static AWS_21_DYNAMODB: Formula = Formula { name: "aws-2.1-dynamodb", first: 0.025, ..AWS_21 };
static AWS_LEGACY: Formula = Formula { name: "aws-legacy", spread: Spread::FULL, ..SECONDS };
static AWS_LEGACY_DYNAMODB: Formula = Formula { name: "aws-legacy-dynamodb", first: 0.05, ..SECONDS };
static SMITHY_JS: Formula = Formula {
    name: "smithy-js",
    first: 50.0,
    cap: 20_000.0,
    spread: Spread::FULL,
    round: Rounding::Floor,
    pushback: Pushback::RaisesByAtMost(secs(5)),
    ..MILLIS
};
static BLOG_FULL: Formula = Formula { name: "aws-blog-full", first: 5.0, cap: 2000.0, spread: Spread::FULL, ..MILLIS };
static BLOG_EQUAL: Formula =
    Formula { name: "aws-blog-equal", first: 5.0, cap: 2000.0, spread: Spread::Half, ..MILLIS };
static BLOG_DECORRELATED: Chained = Chained {
    name: "aws-blog-decorrelated",
    unit: Unit::Millis,
    first: 5.0,
    cap: 2000.0,
    link: Link::Decorrelated,
    pushback: Pushback::Raises,
};

static GRPC_A6: Formula = Formula {
    name: "grpc-a6",
    first: 0.1,
    cap: 1.0,
    spread: Spread::Between { low: 0.8, width: 0.4 },
    pushback: Pushback::Restarts,
    ..SECONDS
};
static GRPC_JS: Formula = Formula {
    name: "grpc-js",
    first: 0.1,
    growth: Growth::Product { factor: 2.0, limit: 1.0 },
    spread: Spread::Between { low: 0.8, width: 1.2 - 0.8 },
    pushback: Pushback::Restarts,
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

static CONNECT_RETRY: [Duration; 7] = [secs(1), secs(2), secs(4), secs(8), secs(16), secs(32), secs(64)];
static BROWSER: Formula = Formula {
    name: "browser-reconnect",
    first: 1000.0,
    cap: 30_000.0,
    spread: Spread::Around { share: 0.2 },
    round: Rounding::Floor,
    ..MILLIS
};

static FINAGLE_EXPONENTIAL: Compound = Compound {
    name: "finagle-exponential",
    first: 100_000_000,
    factor: 2.0,
    cap: 10_000_000_000,
    limit: Limit::After,
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
    limit: Limit::Half,
    spread: WholeSpread::Remainder,
    ..Compound::CENKALTI
};
static LINKERD: Formula =
    Formula { name: "linkerd", first: 0.025, cap: 0.25, spread: Spread::Above { share: 1.0, limit: 0.25 }, ..SECONDS };

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
    pushback: Pushback::Raises,
};

const RESILIENCE4J: Compound = Compound {
    unit: Unit::Millis,
    first: 500,
    factor: 1.5,
    cap: i64::MAX,
    limit: Limit::Never,
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

static TENACITY: Formula = Formula { name: "tenacity", first: 0.0, ..Formula::SECONDS };
/// The longest wait tenacity knows: half of Python's `sys.maxsize`.
const TENACITY_MAX: f64 = 4.611_686_018_427_388e18;
static TENACITY_EXPONENTIAL: Formula = Formula { name: "tenacity-exponential", cap: TENACITY_MAX, ..SECONDS };
static TENACITY_RANDOM: Formula =
    Formula { name: "tenacity-random-exponential", spread: Spread::FULL, ..TENACITY_EXPONENTIAL };
static TENACITY_JITTER: Formula = Formula {
    name: "tenacity-exponential-jitter",
    spread: Spread::Additive { most: 1.0 },
    most: TENACITY_MAX,
    ..SECONDS
};
static STAMINA_DELAYS: Formula =
    Formula { name: "stamina", first: 0.1, spread: Spread::Additive { most: 1.0 }, most: 5.0, ..SECONDS };
static STAMINA: Until = Until { rule: &STAMINA_DELAYS, stop: Stop::Reached(secs(45)) };
static URLLIB3: Formula =
    Formula { name: "urllib3", lead: Some(0.0), first: 0.0, most: 120.0, pushback: Pushback::Replaces, ..SECONDS };
static URLLIB3_BACKOFF: Formula = Formula { name: "urllib3-backoff", first: 1.0, ..URLLIB3 };
static LITL_EXPO: Formula = Formula { name: "litl-expo", spread: Spread::FULL, ..SECONDS };
static LITL_FIBO: Formula =
    Formula { name: "litl-fibo", growth: Growth::Fibonacci, spread: Spread::FULL, ..Formula::SECONDS };

static STRIPE: Formula = Formula {
    name: "stripe",
    first: 0.5,
    cap: 5.0,
    spread: Spread::Between { low: 0.5, width: 0.5 },
    least: 0.5,
    ..SECONDS
};
static OPENAI: Formula = Formula {
    name: "openai",
    first: 0.5,
    cap: 8.0,
    spread: Spread::Between { low: 1.0, width: -0.25 },
    pushback: Pushback::Replaces,
    ..SECONDS
};

static COCKATIEL: Chained = Chained {
    name: "cockatiel",
    unit: Unit::Millis,
    first: 128.0,
    cap: 30_000.0,
    link: Link::Smoothed { factor: 2.0 },
    pushback: Pushback::Raises,
};
static COCKATIEL_NONE: Formula = Formula { name: "cockatiel-no-jitter", first: 128.0, cap: 30_000.0, ..MILLIS };
static COCKATIEL_FULL: Formula =
    Formula { name: "cockatiel-full-jitter", spread: Spread::FULL, round: Rounding::Floor, ..COCKATIEL_NONE };
static COCKATIEL_HALF: Formula = Formula { name: "cockatiel-half-jitter", spread: Spread::Half, ..COCKATIEL_FULL };
static GOT: Formula = Formula {
    name: "got",
    first: 1000.0,
    spread: Spread::Additive { most: 100.0 },
    pushback: Pushback::Replaces,
    ..MILLIS
};
static AXIOS: Formula = Formula { name: "axios-retry", first: 0.0, ..Formula::MILLIS };
static AXIOS_EXPONENTIAL: Formula = Formula {
    name: "axios-retry-exponential",
    first: 100.0,
    offset: 1,
    spread: Spread::Above { share: 0.2, limit: INF },
    pushback: Pushback::Stretched,
    ..MILLIS
};
static NPM_RETRY: Formula = Formula { name: "npm-retry", first: 1000.0, round: Rounding::Nearest, ..MILLIS };
static NPM_RETRY_RANDOMIZE: Formula =
    Formula { name: "npm-retry-randomize", spread: Spread::Between { low: 1.0, width: 1.0 }, ..NPM_RETRY };
static NPM_EXPONENTIAL: Formula = Formula { name: "exponential-backoff", first: 100.0, ..MILLIS };
static NPM_EXPONENTIAL_FULL: Formula =
    Formula { name: "exponential-backoff-full", spread: Spread::FULL, round: Rounding::Nearest, ..NPM_EXPONENTIAL };
static WEBSOCKET: Chained = Chained {
    name: "reconnecting-websocket",
    unit: Unit::Millis,
    first: 1000.0,
    cap: 10_000.0,
    link: Link::DrawnOnce { width: 4000.0, factor: 1.3 },
    pushback: Pushback::Raises,
};

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
static WECHAT_PAY: [Duration; 15] = [
    secs(15),
    secs(15),
    secs(30),
    secs(3 * MINUTE),
    secs(10 * MINUTE),
    secs(20 * MINUTE),
    secs(30 * MINUTE),
    secs(30 * MINUTE),
    secs(30 * MINUTE),
    secs(60 * MINUTE),
    secs(3 * HOUR),
    secs(3 * HOUR),
    secs(3 * HOUR),
    secs(6 * HOUR),
    secs(6 * HOUR),
];
static ALIPAY: [Duration; 7] = [
    secs(4 * MINUTE),
    secs(10 * MINUTE),
    secs(10 * MINUTE),
    secs(HOUR),
    secs(2 * HOUR),
    secs(6 * HOUR),
    secs(15 * HOUR),
];
static SVIX: [Duration; 7] =
    [secs(5), secs(5 * MINUTE), secs(30 * MINUTE), secs(2 * HOUR), secs(5 * HOUR), secs(10 * HOUR), secs(10 * HOUR)];
static STANDARD_WEBHOOKS: [Duration; 9] = [
    secs(5),
    secs(5 * MINUTE),
    secs(30 * MINUTE),
    secs(2 * HOUR),
    secs(5 * HOUR),
    secs(10 * HOUR),
    secs(14 * HOUR),
    secs(20 * HOUR),
    secs(24 * HOUR),
];

/// All of them.
pub(super) static PROFILES: [Profile; 75] = [
    Profile {
        name: "cenkalti-v4",
        system: "cenkalti/backoff (Go)",
        version: "4.3.0",
        source: "github.com/cenkalti/backoff v4: exponential.go, retry.go",
        warning: "the first delay ignores the cap, and jitter exceeds it by half; a custom Stop value is not recognised and loops for ever",
        policy: rule(&CENKALTI_V4, NO_LIMIT).max_elapsed(secs(15 * MINUTE)),
    },
    Profile {
        name: "cenkalti-v5",
        system: "cenkalti/backoff (Go), v5 to v7",
        version: "5.0",
        source: "github.com/cenkalti/backoff v5: exponential.go, retry.go",
        warning: "as v4; a RetryAfter starts the delays again from the first",
        policy: rule(&CENKALTI_V5, NO_LIMIT).max_elapsed(secs(15 * MINUTE)),
    },
    Profile {
        name: "jpillora",
        system: "jpillora/backoff (Go)",
        version: "1.0.0",
        source: "github.com/jpillora/backoff: backoff.go",
        warning: "no jitter by default, and no limit",
        policy: rule(&JPILLORA, NO_LIMIT),
    },
    Profile {
        name: "jpillora-jitter",
        system: "jpillora/backoff (Go), Jitter: true",
        version: "1.0.0",
        source: "github.com/jpillora/backoff: backoff.go",
        warning: "the first delay is exactly the least even with jitter, so a herd comes back together once more",
        policy: rule(&JPILLORA_JITTER, NO_LIMIT),
    },
    Profile {
        name: "go-retryablehttp",
        system: "hashicorp/go-retryablehttp (Go), DefaultBackoff",
        version: "0.7.8",
        source: "github.com/hashicorp/go-retryablehttp: client.go",
        warning: "no jitter; a Retry-After is not bounded, overflows above 292 years, and POST is retried",
        policy: rule(&RETRYABLEHTTP, 5),
    },
    Profile {
        name: "go-retryablehttp-linear",
        system: "hashicorp/go-retryablehttp (Go), LinearJitterBackoff",
        version: "0.7.8",
        source: "github.com/hashicorp/go-retryablehttp: client.go",
        warning: "the greatest wait is multiplied by the attempt too: 120 s where the maximum is 30 s",
        policy: rule(&RETRYABLEHTTP_LINEAR, 5),
    },
    Profile {
        name: "gax-go",
        system: "googleapis/gax-go Backoff",
        version: "2",
        source: "github.com/googleapis/gax-go v2: call_option.go",
        warning: "delays can be 1 ns; an initial delay above the maximum is not cut",
        policy: rule(&GAX, NO_LIMIT),
    },
    Profile {
        name: "grpc-connection",
        system: "gRPC connection backoff (grpc-go)",
        version: "2026",
        source: "grpc/doc/connection-backoff.md; grpc-go: internal/backoff",
        warning: "the first delay has no jitter; jitter exceeds the cap by a fifth",
        policy: rule(&GRPC_CONNECTION, NO_LIMIT),
    },
    Profile {
        name: "celery",
        system: "Celery autoretry_for with retry_backoff=True",
        version: "5.7.0",
        source: "celery: utils/time.py get_exponential_backoff_interval, app/autoretry.py",
        warning: "full jitter in whole seconds can be 0, and many clients share a second",
        policy: rule(&CELERY, 4),
    },
    Profile {
        name: "celery-no-jitter",
        system: "Celery autoretry_for with retry_backoff=True, retry_jitter=False",
        version: "5.7.0",
        source: "celery: utils/time.py get_exponential_backoff_interval",
        warning: "no jitter: tasks that failed together come back together",
        policy: rule(&CELERY_PLAIN, 4),
    },
    Profile {
        name: "celery-default",
        system: "Celery Task.retry without a countdown",
        version: "5.7.0",
        source: "celery: app/task.py default_retry_delay",
        warning: "180 s each time, no jitter",
        policy: rule(&CELERY_DEFAULT, 4),
    },
    Profile {
        name: "kombu",
        system: "kombu retry_over_time (Celery's broker reconnect)",
        version: "5.7.0",
        source: "kombu: utils/functional.py",
        warning: "no jitter: workers reconnect in step; no limit",
        policy: rule(&KOMBU, NO_LIMIT),
    },
    Profile {
        name: "aws-2.0",
        system: "AWS SDKs standard retry mode, 2020",
        version: "botocore 1.35.99",
        source: "AWS SDKs and Tools Reference Guide, retry behavior; botocore: retries/standard.py",
        warning: "delays can be 0; a Retry-After is not read",
        policy: rule(&AWS_20, 3),
    },
    Profile {
        name: "aws-2.1",
        system: "AWS SDKs standard retry mode, 2026, transient errors",
        version: "botocore 1.44.5",
        source: "AWS SDKs and Tools Reference Guide, retry behavior; botocore: retries/standard.py",
        warning: "first delays of 0 to 50 ms; told to wait longer than its own delay plus 5 s, it comes back too early",
        policy: rule(&AWS_21_TRANSIENT, 3),
    },
    Profile {
        name: "aws-2.1-throttling",
        system: "AWS SDKs standard retry mode, 2026, throttling errors",
        version: "botocore 1.44.5",
        source: "AWS SDKs and Tools Reference Guide, retry behavior; botocore: retries/standard.py",
        warning: "told to wait longer than its own delay plus 5 s, it comes back too early",
        policy: rule(&AWS_21_THROTTLING, 3),
    },
    Profile {
        name: "aws-2.1-dynamodb",
        system: "AWS SDKs standard retry mode, 2026, transient errors of DynamoDB",
        version: "botocore 1.44.5",
        source: "AWS SDKs and Tools Reference Guide, retry behavior; botocore: retries/standard.py",
        warning: "first delays of 0 to 25 ms; told to wait longer than its own delay plus 5 s, it comes back too early",
        policy: rule(&AWS_21_DYNAMODB, 3),
    },
    Profile {
        name: "aws-legacy",
        system: "botocore legacy retry mode",
        version: "1.44.5",
        source: "botocore: retryhandler.py delay_exponential",
        warning: "no cap; delays can be 0",
        policy: rule(&AWS_LEGACY, 5),
    },
    Profile {
        name: "aws-legacy-dynamodb",
        system: "botocore legacy retry mode, DynamoDB",
        version: "1.44.5",
        source: "botocore: data/_retry.json, retryhandler.py",
        warning: "no jitter and no cap",
        policy: rule(&AWS_LEGACY_DYNAMODB, 10),
    },
    Profile {
        name: "smithy-js",
        system: "AWS SDK for JavaScript v3 (@smithy/core)",
        version: "3.41.0",
        source: "@smithy/core: retry",
        warning: "delays can be 0, rounded down to whole milliseconds",
        policy: rule(&SMITHY_JS, 3),
    },
    Profile {
        name: "aws-blog-full",
        system: "AWS Architecture Blog, full jitter",
        version: "2015",
        source: "Exponential Backoff And Jitter; aws-samples/aws-arch-backoff-simulator",
        warning: "delays can be 0; no limit",
        policy: rule(&BLOG_FULL, NO_LIMIT),
    },
    Profile {
        name: "aws-blog-equal",
        system: "AWS Architecture Blog, equal jitter",
        version: "2015",
        source: "Exponential Backoff And Jitter; aws-samples/aws-arch-backoff-simulator",
        warning: "half of each delay is the same for all; no limit",
        policy: rule(&BLOG_EQUAL, NO_LIMIT),
    },
    Profile {
        name: "aws-blog-decorrelated",
        system: "AWS Architecture Blog, decorrelated jitter",
        version: "2015",
        source: "Exponential Backoff And Jitter; aws-samples/aws-arch-backoff-simulator",
        warning: "its cap clips: in the long run every fourth to third delay is exactly the cap; no limit",
        policy: rule(&BLOG_DECORRELATED, NO_LIMIT),
    },
    Profile {
        name: "grpc-a6",
        system: "gRPC retry policy, the example of the specification",
        version: "gRFC A6",
        source: "github.com/grpc/proposal: A6-client-retries.md",
        warning: "jitter exceeds the cap by a fifth",
        policy: rule(&GRPC_A6, 4),
    },
    Profile {
        name: "grpc-js",
        system: "@grpc/grpc-js retry policy, the example of gRFC A6",
        version: "1.14.7",
        source: "@grpc/grpc-js: retrying-call.ts",
        warning: "an initial backoff above the maximum is not cut; a pushback that cannot be read is retried at once",
        policy: rule(&GRPC_JS, 4),
    },
    Profile {
        name: "google-api-core",
        system: "google-api-core Retry (Python)",
        version: "2.44.0",
        source: "google-api-core: google/api_core/retry/retry_base.py",
        warning: "delays can be 0",
        policy: rule(&GOOGLE_API_CORE, NO_LIMIT).max_elapsed(secs(120)),
    },
    Profile {
        name: "google-cloud",
        system: "Google Cloud truncated exponential backoff, 64 s",
        version: "2026",
        source: "cloud.google.com/memorystore/docs/redis/exponential-backoff",
        warning: "at the cap there is no jitter: from the 7th delay on all clients wait exactly 64 s",
        policy: rule(&GOOGLE_CLOUD_64, NO_LIMIT),
    },
    Profile {
        name: "google-cloud-32",
        system: "Google Cloud truncated exponential backoff, 32 s",
        version: "2026",
        source: "cloud.google.com/memorystore/docs/redis/exponential-backoff",
        warning: "at the cap there is no jitter: from the 6th delay on all clients wait exactly 32 s",
        policy: rule(&GOOGLE_CLOUD_32, NO_LIMIT),
    },
    Profile {
        name: "google-cloud-java",
        system: "min(2^n * base + U[0..jitter_max], cap) in milliseconds, the common Java form",
        version: "2026",
        source: "common in articles and code; after cloud.google.com/memorystore/docs/redis/exponential-backoff",
        warning: "at the cap there is no jitter: from the 7th delay on all clients wait exactly 64 s",
        policy: rule(&GOOGLE_CLOUD_JAVA, NO_LIMIT),
    },
    Profile {
        name: "ethernet",
        system: "IEEE 802.3 truncated binary exponential backoff, 10 Mb/s",
        version: "IEEE 802.3",
        source: "IEEE 802.3 clause 4.2.3.2.5",
        warning: "made for stations that hear each other: the first delay is 0 for half of them",
        policy: Policy::slots(Duration::from_nanos(51_200)),
    },
    Profile {
        name: "apue",
        system: "connect_retry of Advanced Programming in the UNIX Environment",
        version: "3rd edition",
        source: "Stevens, Rago: APUE, figure 16.10",
        warning: "no jitter; each attempt may block as long as the system's connect does",
        policy: Policy::list(&CONNECT_RETRY),
    },
    Profile {
        name: "browser-reconnect",
        system: "floor(min(base * 2^n, cap) +- 20 %) in milliseconds, the reconnect of many browser clients",
        version: "2026",
        source: "common practice",
        warning: "jitter exceeds the cap by a fifth, and clients that lost one server stay within 40 % of each other",
        policy: rule(&BROWSER, NO_LIMIT),
    },
    Profile {
        name: "finagle-exponential",
        system: "Finagle Backoff.exponential",
        version: "4feb34cb9",
        source: "twitter/finagle: finagle-core Backoff.scala",
        warning: "no jitter",
        policy: rule(&FINAGLE_EXPONENTIAL, NO_LIMIT),
    },
    Profile {
        name: "finagle-equal",
        system: "Finagle Backoff.equalJittered",
        version: "4feb34cb9",
        source: "twitter/finagle: finagle-core Backoff.scala",
        warning: "no jitter in the first delay, nor at the cap",
        policy: rule(&FINAGLE_EQUAL, NO_LIMIT),
    },
    Profile {
        name: "finagle-decorrelated",
        system: "Finagle Backoff.decorrelatedJittered",
        version: "4feb34cb9",
        source: "twitter/finagle: finagle-core Backoff.scala",
        warning: "no jitter in the first delay; a delay never gets shorter, so all end at the cap",
        policy: rule(&FINAGLE_DECORRELATED, NO_LIMIT),
    },
    Profile {
        name: "finagle-exponential-jittered",
        system: "Finagle Backoff.exponentialJittered",
        version: "4feb34cb9",
        source: "twitter/finagle: finagle-core Backoff.scala",
        warning: "its draws compound: 2^(n(n+1)/2) instead of 2^n; no jitter at the cap; fails after a draw of 0",
        policy: rule(&FINAGLE_JITTERED, NO_LIMIT),
    },
    Profile {
        name: "envoy",
        system: "Envoy route retry_policy",
        version: "2026",
        source: "envoyproxy/envoy: source/common/common/backoff_strategy.cc",
        warning: "delays can be 0; one retry by default; its documentation says (2^n - 1) * base, its code does not",
        policy: rule(&ENVOY, 2),
    },
    Profile {
        name: "linkerd",
        system: "Linkerd 2 exp-backoff",
        version: "29637b64f",
        source: "linkerd2-proxy: linkerd/exp-backoff/src/lib.rs",
        warning: "at the cap there is no jitter",
        policy: rule(&LINKERD, 2),
    },
    Profile {
        name: "polly",
        system: "Polly v8 RetryStrategyOptions",
        version: "8.7.0",
        source: "App-vNext/Polly: src/Polly.Core/Retry/RetryHelper.cs",
        warning: "2 s each time, no jitter",
        policy: rule(&POLLY, 4),
    },
    Profile {
        name: "polly-linear",
        system: "Polly v8, BackoffType Linear",
        version: "8.7.0",
        source: "App-vNext/Polly: src/Polly.Core/Retry/RetryHelper.cs",
        warning: "no jitter, no cap",
        policy: rule(&POLLY_LINEAR, 4),
    },
    Profile {
        name: "polly-exponential",
        system: "Polly v8, BackoffType Exponential",
        version: "8.7.0",
        source: "App-vNext/Polly: src/Polly.Core/Retry/RetryHelper.cs",
        warning: "no jitter, no cap",
        policy: rule(&POLLY_EXPONENTIAL, 4),
    },
    Profile {
        name: "polly-constant-jitter",
        system: "Polly v8, BackoffType Constant, UseJitter",
        version: "8.7.0",
        source: "App-vNext/Polly: src/Polly.Core/Retry/RetryHelper.cs",
        warning: "a quarter to each side, which keeps a herd together",
        policy: rule(&POLLY_CONSTANT_JITTER, 4),
    },
    Profile {
        name: "polly-exponential-jitter",
        system: "Polly v8, BackoffType Exponential, UseJitter",
        version: "8.7.0",
        source: "App-vNext/Polly: src/Polly.Core/Retry/RetryHelper.cs",
        warning: "the cap clips after the jitter, so there is none at the cap",
        policy: rule(&POLLY_JITTER, 4),
    },
    Profile {
        name: "resilience4j",
        system: "resilience4j RetryConfig",
        version: "2.4.0",
        source: "resilience4j-core: IntervalFunction.java",
        warning: "500 ms each time, no jitter",
        policy: rule(&RESILIENCE4J_FIXED, 3),
    },
    Profile {
        name: "resilience4j-exponential",
        system: "resilience4j IntervalFunction.ofExponentialBackoff",
        version: "2.4.0",
        source: "resilience4j-core: IntervalFunction.java",
        warning: "no jitter, no cap; truncated at each step",
        policy: rule(&RESILIENCE4J_EXPONENTIAL, 3),
    },
    Profile {
        name: "resilience4j-randomized",
        system: "resilience4j IntervalFunction.ofRandomized",
        version: "2.4.0",
        source: "resilience4j-core: IntervalFunction.java",
        warning: "does not grow",
        policy: rule(&RESILIENCE4J_RANDOM, 3),
    },
    Profile {
        name: "resilience4j-exponential-random",
        system: "resilience4j IntervalFunction.ofExponentialRandomBackoff",
        version: "2.4.0",
        source: "resilience4j-core: IntervalFunction.java",
        warning: "no cap by default; given one, it clips after the jitter",
        policy: rule(&RESILIENCE4J_EXPONENTIAL_RANDOM, 3),
    },
    Profile {
        name: "failsafe",
        system: "Failsafe RetryPolicy (Java)",
        version: "3.3.2",
        source: "failsafe-lib/failsafe: RetryPolicyConfig.java",
        warning: "no delay at all by default; with maxDuration it spins at the end",
        policy: rule(&FAILSAFE, 3),
    },
    Profile {
        name: "failsafe-go",
        system: "failsafe-go RetryPolicy",
        version: "0.9.7",
        source: "failsafe-go/failsafe-go: retrypolicy",
        warning: "no delay at all by default",
        policy: rule(&FAILSAFE_GO, 3),
    },
    Profile {
        name: "tenacity",
        system: "tenacity @retry (Python)",
        version: "9.2.1",
        source: "tenacity: wait.py, stop.py",
        warning: "for ever, and without any delay",
        policy: rule(&TENACITY, NO_LIMIT),
    },
    Profile {
        name: "tenacity-exponential",
        system: "tenacity wait_exponential",
        version: "9.2.1",
        source: "tenacity: wait.py",
        warning: "no jitter, and no cap below 146 billion years",
        policy: rule(&TENACITY_EXPONENTIAL, NO_LIMIT),
    },
    Profile {
        name: "tenacity-random-exponential",
        system: "tenacity wait_random_exponential",
        version: "9.2.1",
        source: "tenacity: wait.py",
        warning: "no cap by default; delays can be 0",
        policy: rule(&TENACITY_RANDOM, NO_LIMIT),
    },
    Profile {
        name: "tenacity-exponential-jitter",
        system: "tenacity wait_exponential_jitter",
        version: "9.2.1",
        source: "tenacity: wait.py",
        warning: "a second of jitter whatever the delay is; given a cap, none is left there",
        policy: rule(&TENACITY_JITTER, NO_LIMIT),
    },
    Profile {
        name: "stamina",
        system: "stamina.retry (Python)",
        version: "26.1.0",
        source: "stamina: _core.py",
        warning: "at the cap of 5 s, from the 7th delay on, there is no jitter; its timeout may be passed by a delay",
        policy: rule(&STAMINA, 10),
    },
    Profile {
        name: "urllib3",
        system: "urllib3 Retry (Python)",
        version: "2.8.0",
        source: "urllib3: util/retry.py",
        warning: "11 attempts without any delay; Retry-After is obeyed up to 6 hours",
        policy: rule(&URLLIB3, 11).max_pushback(secs(6 * HOUR)),
    },
    Profile {
        name: "urllib3-backoff",
        system: "urllib3 Retry(backoff_factor=1)",
        version: "2.8.0",
        source: "urllib3: util/retry.py",
        warning: "the first retry comes at once; no jitter",
        policy: rule(&URLLIB3_BACKOFF, 11).max_pushback(secs(6 * HOUR)),
    },
    Profile {
        name: "litl-expo",
        system: "litl/backoff on_exception(expo) (Python)",
        version: "2.2.1",
        source: "litl/backoff: _wait_gen.py, _jitter.py",
        warning: "no cap and no limit by default; delays can be 0",
        policy: rule(&LITL_EXPO, NO_LIMIT),
    },
    Profile {
        name: "litl-fibo",
        system: "litl/backoff on_exception(fibo) (Python)",
        version: "2.2.1",
        source: "litl/backoff: _wait_gen.py, _jitter.py",
        warning: "no cap and no limit by default; delays can be 0",
        policy: rule(&LITL_FIBO, NO_LIMIT),
    },
    Profile {
        name: "stripe",
        system: "stripe-python",
        version: "16.1.0",
        source: "stripe-python: _http_client.py",
        warning: "the first delay is always 0.5 s: no jitter where most retries are",
        policy: rule(&STRIPE, 3),
    },
    Profile {
        name: "openai",
        system: "openai-python (Stainless SDKs)",
        version: "3.52.0",
        source: "openai-python: _base_client.py",
        warning: "a quarter of jitter, downwards only",
        policy: rule(&OPENAI, 3).max_pushback(secs(120)),
    },
    Profile {
        name: "cockatiel",
        system: "cockatiel ExponentialBackoff (Node)",
        version: "3.2.1",
        source: "connor4312/cockatiel: ExponentialBackoffGenerators.ts",
        warning: "the cap clips after the jitter: nearly all late delays are exactly the cap",
        policy: rule(&COCKATIEL, NO_LIMIT),
    },
    Profile {
        name: "cockatiel-no-jitter",
        system: "cockatiel noJitterGenerator",
        version: "3.2.1",
        source: "connor4312/cockatiel: ExponentialBackoffGenerators.ts",
        warning: "no jitter; ignores the exponent it is given",
        policy: rule(&COCKATIEL_NONE, NO_LIMIT),
    },
    Profile {
        name: "cockatiel-full-jitter",
        system: "cockatiel fullJitterGenerator",
        version: "3.2.1",
        source: "connor4312/cockatiel: ExponentialBackoffGenerators.ts",
        warning: "delays can be 0; ignores the exponent it is given",
        policy: rule(&COCKATIEL_FULL, NO_LIMIT),
    },
    Profile {
        name: "cockatiel-half-jitter",
        system: "cockatiel halfJitterGenerator",
        version: "3.2.1",
        source: "connor4312/cockatiel: ExponentialBackoffGenerators.ts",
        warning: "ignores the exponent it is given",
        policy: rule(&COCKATIEL_HALF, NO_LIMIT),
    },
    Profile {
        name: "got",
        system: "got (Node)",
        version: "14.6.6",
        source: "sindresorhus/got: source/core/calculate-retry-delay.ts",
        warning: "100 ms of jitter whatever the delay is; a Retry-After of 25 days or more is retried at once",
        policy: rule(&GOT, 3),
    },
    Profile {
        name: "axios-retry",
        system: "axios-retry (Node)",
        version: "4.5.0",
        source: "softonic/axios-retry: src/index.ts",
        warning: "no delay at all by default; a Retry-After of 25 days or more is retried at once",
        policy: rule(&AXIOS, 4),
    },
    Profile {
        name: "axios-retry-exponential",
        system: "axios-retry exponentialDelay",
        version: "4.5.0",
        source: "softonic/axios-retry: src/index.ts",
        warning: "no cap; a fifth of jitter, upwards only",
        policy: rule(&AXIOS_EXPONENTIAL, 4),
    },
    Profile {
        name: "npm-retry",
        system: "npm retry (also p-retry below 7, async-retry)",
        version: "0.13.1",
        source: "tim-kos/node-retry: lib/retry.js",
        warning: "no jitter, no cap by default",
        policy: rule(&NPM_RETRY, 11),
    },
    Profile {
        name: "npm-retry-randomize",
        system: "npm retry with randomize: true",
        version: "0.13.1",
        source: "tim-kos/node-retry: lib/retry.js",
        warning: "given a maximum, it clips after the jitter; its table is sorted, which undoes some of it",
        policy: rule(&NPM_RETRY_RANDOMIZE, 11),
    },
    Profile {
        name: "exponential-backoff",
        system: "npm exponential-backoff",
        version: "3.1.3",
        source: "coveooss/exponential-backoff: src",
        warning: "no jitter, no cap by default",
        policy: rule(&NPM_EXPONENTIAL, 10),
    },
    Profile {
        name: "exponential-backoff-full",
        system: "npm exponential-backoff with jitter: full",
        version: "3.1.3",
        source: "coveooss/exponential-backoff: src",
        warning: "delays can be 0; no cap by default",
        policy: rule(&NPM_EXPONENTIAL_FULL, 10),
    },
    Profile {
        name: "reconnecting-websocket",
        system: "reconnecting-websocket (browser)",
        version: "4.4.0",
        source: "pladaria/reconnecting-websocket: reconnecting-websocket.ts",
        warning: "one draw per page (here: per call) and no jitter after it: at the cap all clients wait exactly 10 s",
        policy: rule(&WEBSOCKET, NO_LIMIT),
    },
    Profile {
        name: "wechat-pay",
        system: "WeChat Pay payment notifications",
        version: "2026",
        source: "pay.weixin.qq.com: payment notification",
        warning: "24 h 4 min in 16 attempts; no jitter, so a merchant's outage comes back as a wave",
        policy: Policy::list(&WECHAT_PAY),
    },
    Profile {
        name: "alipay",
        system: "Alipay asynchronous notifications",
        version: "2026",
        source: "opendocs.alipay.com: asynchronous notification",
        warning: "24 h 24 min in 8 attempts; no jitter, so a merchant's outage comes back as a wave",
        policy: Policy::list(&ALIPAY),
    },
    Profile {
        name: "svix",
        system: "Svix webhooks",
        version: "2026",
        source: "docs.svix.com/retries",
        warning: "27 h 35 min in 8 attempts; no jitter here",
        policy: Policy::list(&SVIX),
    },
    Profile {
        name: "standard-webhooks",
        system: "Standard Webhooks example schedule",
        version: "2026",
        source: "github.com/standard-webhooks/standard-webhooks: spec/standard-webhooks.md",
        warning: "75 h 35 min in 10 attempts; the specification asks for some jitter on top, and names none",
        policy: Policy::list(&STANDARD_WEBHOOKS),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Curve, Decision, Step, Timestamp, Verdict, compat, rng::mix};

    /// Whatever is thrown at a profile, it answers.
    #[test]
    fn no_profile_ever_panics() {
        let numbers = [0, 1, 2, 3, 31, 32, 63, 64, 1023, 1024, 1 << 31, u32::MAX - 1, u32::MAX];
        let draws = [0, 1, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX];
        let times = [Duration::ZERO, secs(1), secs(1 << 40), Duration::MAX];
        for profile in compat::all() {
            let Curve::Custom(rule) = profile.policy().settings().curve else { continue };
            for verdict in [Verdict::Transient, Verdict::After(secs(7)), Verdict::After(Duration::MAX)] {
                for (i, draw) in draws.into_iter().enumerate() {
                    let mut memory = [0, u64::MAX, draw][i % 3];
                    for (failures, elapsed) in numbers.into_iter().zip(times.into_iter().cycle()) {
                        let mut step = Step { failures, elapsed, verdict, draw, memory };
                        rule.delay(&mut step);
                        memory = step.memory;
                    }
                }
            }
        }
    }

    #[test]
    fn long_calls_of_every_profile_end_or_go_on() {
        for profile in compat::all() {
            let policy = profile.policy().unlimited_attempts();
            for seed in 0..4 {
                let (mut now, mut call) = (Timestamp::ZERO, policy.call(Timestamp::ZERO, seed));
                for k in 0..2000u64 {
                    let verdict =
                        if mix(seed ^ k).is_multiple_of(5) { Verdict::After(secs(3)) } else { Verdict::Transient };
                    match call.on_failure(now, verdict) {
                        Decision::Retry(delay) => now = now + delay,
                        Decision::GiveUp(_) => break,
                    }
                }
            }
        }
    }

    fn schedule(name: &str) -> Vec<f64> {
        let profile = compat::find(name).unwrap();
        profile.policy().max_attempts(10).schedule().map(|row| row.delay.max.as_secs_f64()).collect()
    }

    /// What the original systems' documentation promises.
    #[test]
    fn schedules_are_the_documented_ones() {
        assert_eq!(schedule("celery-no-jitter"), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);
        assert_eq!(schedule("kombu"), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0]);
        assert_eq!(schedule("go-retryablehttp"), [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]);
        assert_eq!(schedule("apue"), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        assert_eq!(schedule("google-cloud")[..3], [2.0, 3.0, 5.0]);
        assert_eq!(schedule("google-cloud")[6..], [64.0, 64.0, 64.0]);
        assert_eq!(schedule("google-cloud-java"), schedule("google-cloud"));
        assert_eq!(schedule("polly-exponential")[..4], [2.0, 4.0, 8.0, 16.0]);
        assert_eq!(schedule("tenacity-exponential")[..4], [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(schedule("urllib3-backoff")[..4], [0.0, 2.0, 4.0, 8.0]);
        assert_eq!(schedule("axios-retry"), [0.0; 9]);
        assert_eq!(schedule("npm-retry")[..4], [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(schedule("browser-reconnect")[..2], [1.2, 2.4]);
    }

    #[test]
    fn notification_schedules_take_as_long_as_documented() {
        let total = |name| {
            let policy = compat::find(name).unwrap().policy();
            let last = policy.schedule().last().unwrap();
            (last.attempt, last.total.max)
        };
        assert_eq!(total("wechat-pay"), (16, secs(24 * HOUR + 4 * MINUTE)));
        assert_eq!(total("alipay"), (8, secs(24 * HOUR + 24 * MINUTE)));
        assert_eq!(total("svix"), (8, secs(27 * HOUR + 35 * MINUTE + 5)));
        assert_eq!(total("standard-webhooks"), (10, secs(75 * HOUR + 35 * MINUTE + 5)));
    }

    fn width(name: &str, retry: usize) -> Duration {
        let row = compat::find(name).unwrap().policy().unlimited_attempts().schedule().nth(retry - 1).unwrap();
        row.delay.max - row.delay.min
    }

    /// The warnings of the table, measured.
    #[test]
    fn jitter_is_lost_where_the_warnings_say() {
        for name in ["google-cloud", "google-cloud-32", "google-cloud-java", "linkerd", "stamina", "finagle-equal"] {
            assert_eq!(width(name, 12), Duration::ZERO, "{name} at its cap");
        }
        for name in ["jpillora-jitter", "grpc-connection", "stripe", "finagle-equal", "finagle-decorrelated"] {
            assert_eq!(width(name, 1), Duration::ZERO, "{name} at first");
        }
        for name in ["cenkalti-v4", "aws-2.1", "grpc-a6", "got", "openai", "browser-reconnect"] {
            assert!(width(name, 12) > Duration::ZERO, "{name} keeps its jitter");
        }
    }

    #[test]
    fn caps_are_exceeded_where_the_warnings_say() {
        let longest = |name| {
            let policy = compat::find(name).unwrap().policy().unlimited_attempts();
            policy.schedule().nth(20).unwrap().delay.max
        };
        assert_eq!(longest("cenkalti-v4"), Duration::from_nanos(90_000_000_001));
        assert!(longest("grpc-a6") > Duration::from_millis(1199));
        assert!(longest("grpc-connection") > secs(143));
        assert!(longest("go-retryablehttp-linear") > secs(600));
    }

    #[test]
    fn pushbacks_do_what_the_systems_do() {
        let after = |name, pushback| {
            let policy = compat::find(name).unwrap().policy();
            policy.call(Timestamp::ZERO, 1).on_failure_with(Timestamp::ZERO, Verdict::After(pushback), 1 << 63)
        };
        assert_eq!(after("aws-2.1", secs(60)), Decision::Retry(Duration::from_millis(5025)));
        assert_eq!(after("got", Duration::from_millis(3)), Decision::Retry(Duration::from_millis(3)));
        assert_eq!(after("axios-retry-exponential", secs(60)), Decision::Retry(secs(66)));
        assert_eq!(after("cenkalti-v5", secs(3600)), Decision::GiveUp(crate::Reason::PushbackTooLong));
        assert_eq!(after("openai", secs(121)), Decision::GiveUp(crate::Reason::PushbackTooLong));
        assert_eq!(after("tenacity", secs(7)), Decision::Retry(secs(7)));
    }
}
