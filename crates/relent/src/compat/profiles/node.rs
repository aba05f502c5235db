//! JavaScript.

use super::{INF, MILLIS, NO_LIMIT, rule};
use crate::compat::{Chained, Evidence, Formula, Link, OnPushback, Profile, Rounding, Spread, Unit};

static COCKATIEL: Chained = Chained {
    name: "cockatiel",
    unit: Unit::Millis,
    first: 128.0,
    cap: 30_000.0,
    link: Link::Smoothed { factor: 2.0 },
    pushback: OnPushback::Raises,
};
static COCKATIEL_NONE: Formula = Formula { name: "cockatiel-no-jitter", first: 128.0, cap: 30_000.0, ..MILLIS };
static COCKATIEL_FULL: Formula =
    Formula { name: "cockatiel-full-jitter", spread: Spread::FULL, round: Rounding::Floor, ..COCKATIEL_NONE };
static COCKATIEL_HALF: Formula = Formula { name: "cockatiel-half-jitter", spread: Spread::Half, ..COCKATIEL_FULL };
static GOT: Formula = Formula {
    name: "got",
    first: 1000.0,
    spread: Spread::Additive { most: 100.0 },
    pushback: OnPushback::Replaces,
    ..MILLIS
};
static AXIOS: Formula = Formula { name: "axios-retry", first: 0.0, ..Formula::MILLIS };
static AXIOS_EXPONENTIAL: Formula = Formula {
    name: "axios-retry-exponential",
    first: 100.0,
    offset: 1,
    spread: Spread::Above { share: 0.2, limit: INF },
    pushback: OnPushback::Stretched,
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
    pushback: OnPushback::Raises,
};

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "cockatiel",
        system: "cockatiel ExponentialBackoff (Node)",
        version: "3.2.1",
        source: "connor4312/cockatiel: ExponentialBackoffGenerators.ts",
        evidence: Evidence::Run,
        picks: "",
        warning: "the cap clips after the jitter: nearly all late delays are exactly the cap",
        policy: rule(&COCKATIEL, NO_LIMIT),
    },
    Profile {
        name: "cockatiel-no-jitter",
        system: "cockatiel noJitterGenerator",
        version: "3.2.1",
        source: "connor4312/cockatiel: ExponentialBackoffGenerators.ts",
        evidence: Evidence::Run,
        picks: "",
        warning: "no jitter; ignores the exponent it is given",
        policy: rule(&COCKATIEL_NONE, NO_LIMIT),
    },
    Profile {
        name: "cockatiel-full-jitter",
        system: "cockatiel fullJitterGenerator",
        version: "3.2.1",
        source: "connor4312/cockatiel: ExponentialBackoffGenerators.ts",
        evidence: Evidence::Run,
        picks: "",
        warning: "delays can be 0; ignores the exponent it is given",
        policy: rule(&COCKATIEL_FULL, NO_LIMIT),
    },
    Profile {
        name: "cockatiel-half-jitter",
        system: "cockatiel halfJitterGenerator",
        version: "3.2.1",
        source: "connor4312/cockatiel: ExponentialBackoffGenerators.ts",
        evidence: Evidence::Run,
        picks: "",
        warning: "ignores the exponent it is given",
        policy: rule(&COCKATIEL_HALF, NO_LIMIT),
    },
    Profile {
        name: "got",
        system: "got (Node)",
        version: "14.6.6",
        source: "sindresorhus/got: source/core/calculate-retry-delay.ts",
        evidence: Evidence::Run,
        picks: "",
        warning: "100 ms of jitter whatever the delay is; a Retry-After of 25 days or more is retried at once",
        policy: rule(&GOT, 3),
    },
    Profile {
        name: "axios-retry",
        system: "axios-retry (Node)",
        version: "4.5.0",
        source: "softonic/axios-retry: src/index.ts",
        evidence: Evidence::Run,
        picks: "",
        warning: "no delay at all by default; a Retry-After of 25 days or more is retried at once",
        policy: rule(&AXIOS, 4),
    },
    Profile {
        name: "axios-retry-exponential",
        system: "axios-retry exponentialDelay",
        version: "4.5.0",
        source: "softonic/axios-retry: src/index.ts",
        evidence: Evidence::Run,
        picks: "",
        warning: "no cap; a fifth of jitter, upwards only",
        policy: rule(&AXIOS_EXPONENTIAL, 4),
    },
    Profile {
        name: "npm-retry",
        system: "npm retry (also p-retry below 7, async-retry)",
        version: "0.13.1",
        source: "tim-kos/node-retry: lib/retry.js",
        evidence: Evidence::Run,
        picks: "",
        warning: "no jitter, no cap by default",
        policy: rule(&NPM_RETRY, 11),
    },
    Profile {
        name: "npm-retry-randomize",
        system: "npm retry with randomize: true",
        version: "0.13.1",
        source: "tim-kos/node-retry: lib/retry.js",
        evidence: Evidence::Run,
        picks: "",
        warning: "given a maximum, it clips after the jitter; its table is sorted, which undoes some of it",
        policy: rule(&NPM_RETRY_RANDOMIZE, 11),
    },
    Profile {
        name: "exponential-backoff",
        system: "npm exponential-backoff",
        version: "3.1.3",
        source: "coveooss/exponential-backoff: src",
        evidence: Evidence::Run,
        picks: "",
        warning: "no jitter, no cap by default",
        policy: rule(&NPM_EXPONENTIAL, 10),
    },
    Profile {
        name: "exponential-backoff-full",
        system: "npm exponential-backoff with jitter: full",
        version: "3.1.3",
        source: "coveooss/exponential-backoff: src",
        evidence: Evidence::Run,
        picks: "",
        warning: "delays can be 0; no cap by default",
        policy: rule(&NPM_EXPONENTIAL_FULL, 10),
    },
    Profile {
        name: "reconnecting-websocket",
        system: "reconnecting-websocket (browser)",
        version: "4.4.0",
        source: "pladaria/reconnecting-websocket: reconnecting-websocket.ts",
        evidence: Evidence::Run,
        picks: "",
        warning: "one draw per page (here: per call) and no jitter after it: at the cap all clients wait exactly 10 s",
        policy: rule(&WEBSOCKET, NO_LIMIT),
    },
];
