//! Celery and kombu: queues and tasks.

use super::{NO_LIMIT, SECONDS, rule};
use crate::compat::{Evidence, Formula, Growth, Profile, Spread};

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

pub(super) const PROFILES: &[Profile] = &[
    Profile {
        name: "celery",
        system: "Celery autoretry_for with retry_backoff=True",
        version: "5.7.0",
        source: "celery: utils/time.py get_exponential_backoff_interval, app/autoretry.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "full jitter in whole seconds can be 0, and many clients share a second",
        policy: rule(&CELERY, 4),
    },
    Profile {
        name: "celery-no-jitter",
        system: "Celery autoretry_for with retry_backoff=True, retry_jitter=False",
        version: "5.7.0",
        source: "celery: utils/time.py get_exponential_backoff_interval",
        evidence: Evidence::Run,
        picks: "",
        warning: "no jitter: tasks that failed together come back together",
        policy: rule(&CELERY_PLAIN, 4),
    },
    Profile {
        name: "celery-default",
        system: "Celery Task.retry without a countdown",
        version: "5.7.0",
        source: "celery: app/task.py default_retry_delay",
        evidence: Evidence::Run,
        picks: "",
        warning: "180 s each time, no jitter",
        policy: rule(&CELERY_DEFAULT, 4),
    },
    Profile {
        name: "kombu",
        system: "kombu retry_over_time (Celery's broker reconnect)",
        version: "5.7.0",
        source: "kombu: utils/functional.py",
        evidence: Evidence::Run,
        picks: "",
        warning: "no jitter: workers reconnect in step; no limit",
        policy: rule(&KOMBU, NO_LIMIT),
    },
];
