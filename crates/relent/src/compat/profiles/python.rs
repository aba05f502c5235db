//! Python.

use super::{HOUR, NO_LIMIT, SECONDS, rule, secs};
use crate::compat::{Evidence, Formula, Growth, OnPushback, Profile, Spread, Stop, Stopped};

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
static STAMINA: Stopped = Stopped { rule: &STAMINA_DELAYS, stop: Stop::Reached(secs(45)) };
static URLLIB3: Formula =
    Formula { name: "urllib3", lead: Some(0.0), first: 0.0, most: 120.0, pushback: OnPushback::Replaces, ..SECONDS };
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
    pushback: OnPushback::Replaces,
    ..SECONDS
};

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "tenacity",
        system: "tenacity @retry (Python)",
        version: "9.2.1",
        source: "tenacity: wait.py, stop.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "for ever, and without any delay",
        policy: rule(&TENACITY, NO_LIMIT),
    },
    Profile {
        name: "tenacity-exponential",
        system: "tenacity wait_exponential",
        version: "9.2.1",
        source: "tenacity: wait.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "no jitter, and no cap below 146 billion years",
        policy: rule(&TENACITY_EXPONENTIAL, NO_LIMIT),
    },
    Profile {
        name: "tenacity-random-exponential",
        system: "tenacity wait_random_exponential",
        version: "9.2.1",
        source: "tenacity: wait.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "no cap by default; delays can be 0",
        policy: rule(&TENACITY_RANDOM, NO_LIMIT),
    },
    Profile {
        name: "tenacity-exponential-jitter",
        system: "tenacity wait_exponential_jitter",
        version: "9.2.1",
        source: "tenacity: wait.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "a second of jitter whatever the delay is; given a cap, none is left there",
        policy: rule(&TENACITY_JITTER, NO_LIMIT),
    },
    Profile {
        name: "stamina",
        system: "stamina.retry (Python)",
        version: "26.1.0",
        source: "stamina: _core.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "at the cap of 5 s, from the 7th delay on, there is no jitter; its timeout may be passed by a delay",
        policy: rule(&STAMINA, 10),
    },
    Profile {
        name: "urllib3",
        system: "urllib3 Retry (Python)",
        version: "2.8.0",
        source: "urllib3: util/retry.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "11 attempts without any delay; Retry-After is obeyed up to 6 hours",
        policy: rule(&URLLIB3, 11).max_pushback(secs(6 * HOUR)),
    },
    Profile {
        name: "urllib3-backoff",
        system: "urllib3 Retry(backoff_factor=1)",
        version: "2.8.0",
        source: "urllib3: util/retry.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "the first retry comes at once; no jitter",
        policy: rule(&URLLIB3_BACKOFF, 11).max_pushback(secs(6 * HOUR)),
    },
    Profile {
        name: "litl-expo",
        system: "litl/backoff on_exception(expo) (Python)",
        version: "2.2.1",
        source: "litl/backoff: _wait_gen.py, _jitter.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "no cap and no limit by default; delays can be 0",
        policy: rule(&LITL_EXPO, NO_LIMIT),
    },
    Profile {
        name: "litl-fibo",
        system: "litl/backoff on_exception(fibo) (Python)",
        version: "2.2.1",
        source: "litl/backoff: _wait_gen.py, _jitter.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "no cap and no limit by default; delays can be 0",
        policy: rule(&LITL_FIBO, NO_LIMIT),
    },
    Profile {
        name: "stripe",
        system: "stripe-python",
        version: "16.1.0",
        source: "stripe-python: _http_client.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "the first delay is always 0.5 s: no jitter where most retries are",
        policy: rule(&STRIPE, 3),
    },
    Profile {
        name: "openai",
        system: "openai-python (Stainless SDKs)",
        version: "3.52.0",
        source: "openai-python: _base_client.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "a quarter of jitter, downwards only",
        policy: rule(&OPENAI, 3).max_pushback(secs(120)),
    },
];
