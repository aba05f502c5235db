//! Retries that make failing calls succeed without hurting what they call.
#![cfg_attr(not(feature = "std"), no_std)]

mod attempt;
#[cfg(feature = "std")]
pub mod compat;
#[cfg(feature = "toml")]
pub mod config;
mod core;
mod error;
mod event;
mod failure;
mod lint;
mod nested;
mod retrier;
mod retry;
mod rt;
mod timeline;
#[cfg(feature = "http")]
pub mod wire;

#[cfg(feature = "std")]
mod cancel;
#[cfg(not(feature = "std"))]
#[path = "no_cancel.rs"]
mod cancel;
#[cfg(feature = "std")]
pub mod net;
#[cfg(feature = "std")]
mod ticker;

pub use self::{
    attempt::Attempt,
    core::{
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
    },
    error::{Chained, Error},
    event::{Cause, Event},
    failure::Failure,
    lint::Warning,
    retrier::{Always, Judge, Retrier, Silent, Watch},
    retry::Retry,
    rt::Timer,
    timeline::{Past, Timeline},
};

#[cfg(feature = "std")]
pub use self::{
    cancel::{Cancel, Cancelled},
    rt::{Sleep, SystemTimer},
    ticker::{Ticker, Ticks},
};

/// The README's snippets compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
