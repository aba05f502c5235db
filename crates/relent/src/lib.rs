//! Retries that make failing calls succeed without hurting what they call.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "std")]
pub mod compat;
#[cfg(feature = "toml")]
pub mod config;
mod core;
mod lint;
#[cfg(feature = "http")]
#[cfg_attr(docsrs, doc(cfg(feature = "http")))]
pub mod wire;

pub use self::core::{
    backoff::{Backoff, Step},
    call::{Call, Saved},
    curve::Curve,
    delay::Delays,
    duration::{BadDuration, Human, parse_duration},
    jitter::Jitter,
    policy::{Invalid, Policy, Settings},
    rng::{GAMMA, draw, mix, scale, unit},
    schedule::{Bounds, Row, Schedule},
    time::Timestamp,
    verdict::{Decision, Reason, Verdict},
};
pub use self::lint::Warning;
