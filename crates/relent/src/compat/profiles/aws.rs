//! The AWS SDKs and the AWS Architecture Blog.

use super::{MILLIS, NO_LIMIT, SECONDS, rule, secs};
use crate::compat::{Chained, Evidence, Formula, Link, OnPushback, Profile, Rounding, Spread, Unit};

static AWS_20: Formula = Formula { name: "aws-2.0", cap: 20.0, spread: Spread::FULL, ..SECONDS };
const AWS_21: Formula = Formula { first: 0.05, pushback: OnPushback::RaisesByAtMost(secs(5)), ..AWS_20 };
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
    pushback: OnPushback::RaisesByAtMost(secs(5)),
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
    pushback: OnPushback::Raises,
};

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "aws-2.0",
        system: "AWS SDKs standard retry mode, 2020",
        version: "botocore 1.35.99",
        source: "AWS SDKs and Tools Reference Guide, retry behavior; botocore: retries/standard.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "delays can be 0; a Retry-After is not read",
        policy: rule(&AWS_20, 3),
    },
    Profile {
        name: "aws-2.1",
        system: "AWS SDKs standard retry mode, 2026, transient errors",
        version: "botocore 1.44.5",
        source: "AWS SDKs and Tools Reference Guide, retry behavior; botocore: retries/standard.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "first delays of 0 to 50 ms; told to wait longer than its own delay plus 5 s, it comes back too early",
        policy: rule(&AWS_21_TRANSIENT, 3),
    },
    Profile {
        name: "aws-2.1-throttling",
        system: "AWS SDKs standard retry mode, 2026, throttling errors",
        version: "botocore 1.44.5",
        source: "AWS SDKs and Tools Reference Guide, retry behavior; botocore: retries/standard.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "told to wait longer than its own delay plus 5 s, it comes back too early",
        policy: rule(&AWS_21_THROTTLING, 3),
    },
    Profile {
        name: "aws-2.1-dynamodb",
        system: "AWS SDKs standard retry mode, 2026, transient errors of DynamoDB",
        version: "botocore 1.44.5",
        source: "AWS SDKs and Tools Reference Guide, retry behavior; botocore: retries/standard.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "first delays of 0 to 25 ms; told to wait longer than its own delay plus 5 s, it comes back too early",
        policy: rule(&AWS_21_DYNAMODB, 3),
    },
    Profile {
        name: "aws-legacy",
        system: "botocore legacy retry mode",
        version: "1.44.5",
        source: "botocore: retryhandler.py delay_exponential",
        evidence: Evidence::Run,
        picks: "",
        warning: "no cap; delays can be 0",
        policy: rule(&AWS_LEGACY, 5),
    },
    Profile {
        name: "aws-legacy-dynamodb",
        system: "botocore legacy retry mode, DynamoDB",
        version: "1.44.5",
        source: "botocore: data/_retry.json, retryhandler.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "no jitter and no cap",
        policy: rule(&AWS_LEGACY_DYNAMODB, 10),
    },
    Profile {
        name: "smithy-js",
        system: "AWS SDK for JavaScript v3 (@smithy/core)",
        version: "3.41.0",
        source: "@smithy/core: retry",
        evidence: Evidence::Run,
        picks: "",
        warning: "delays can be 0, rounded down to whole milliseconds",
        policy: rule(&SMITHY_JS, 3),
    },
    Profile {
        name: "aws-blog-full",
        system: "AWS Architecture Blog, full jitter",
        version: "2015",
        source: "Exponential Backoff And Jitter; aws-samples/aws-arch-backoff-simulator",
        evidence: Evidence::Port,
        picks: "base 5 ms and cap 2 s, as in the simulator",
        warning: "delays can be 0; no limit",
        policy: rule(&BLOG_FULL, NO_LIMIT),
    },
    Profile {
        name: "aws-blog-equal",
        system: "AWS Architecture Blog, equal jitter",
        version: "2015",
        source: "Exponential Backoff And Jitter; aws-samples/aws-arch-backoff-simulator",
        evidence: Evidence::Port,
        picks: "base 5 ms and cap 2 s, as in the simulator",
        warning: "half of each delay is the same for all; no limit",
        policy: rule(&BLOG_EQUAL, NO_LIMIT),
    },
    Profile {
        name: "aws-blog-decorrelated",
        system: "AWS Architecture Blog, decorrelated jitter",
        version: "2015",
        source: "Exponential Backoff And Jitter; aws-samples/aws-arch-backoff-simulator",
        evidence: Evidence::Port,
        picks: "base 5 ms and cap 2 s, as in the simulator",
        warning: "its cap clips: in the long run every fourth to third delay is exactly the cap; no limit",
        policy: rule(&BLOG_DECORRELATED, NO_LIMIT),
    },
];
