//! Retries that make failing calls succeed without hurting what they call.
//!
//! A [`Policy`] says when to try again and when to stop. It is data, so one `const` serves a whole program:
//!
//! ```
//! use relent::Policy;
//! use std::time::Duration;
//!
//! const READ: Policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).max_attempts(5);
//!
//! let text = READ.retry_blocking(|attempt| match attempt.number() {
//!     1 => Err("not yet"),
//!     _ => Ok("here"),
//! })?;
//! assert_eq!(text, "here");
//! # Ok::<(), relent::Error<&str>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | call a closure until it succeeds | [`Policy::retry`], [`Policy::retry_blocking`] |
//! | say what failures mean, watch, cancel, set a deadline | [`Policy::when`], [`notify`](Policy::notify), [`cancel`](Policy::cancel): a [`Retrier`] |
//! | write the loop yourself | [`Policy::start`]: a [`Retry`] with [`back_off`](Retry::back_off) |
//! | protect the far side: budget, breaker, limit, hedge | [`Upstream`], by [`Policy::on`] |
//! | be woken at a policy's times | [`Policy::ticker`] |
//! | connect a socket | [`net`] |
//! | see what a policy will do | [`Policy::schedule`], [`Policy::warnings`] |
//! | drive it from an event loop or a simulator | [`Policy::call`]: a [`Call`], which is told the time |
//! | have the delays of another system | [`compat`] |
//! | read policies from a file (feature `toml`) | `relent::config` |
//! | judge HTTP responses (feature `http`) | `relent::wire` |
//!
//! Without features but `std`, which is on by default, there are no dependencies; without `std` the crate is `no_std`,
//! and executors take a [`Timer`]. The feature `tokio` makes sleepers obey tokio's clock where that is paused, `net` connects
//! tokio's sockets, and `stream` makes the ticker a `Stream`.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(feature = "std"),
    expect(rustdoc::broken_intra_doc_links, reason = "the text is about all of the crate, and links to what is there")
)]

#[cfg(feature = "std")]
mod alarm;
mod attempt;
#[cfg(feature = "std")]
pub mod compat;
#[cfg(feature = "toml")]
pub mod config;
/// Recipes to copy.
///
#[cfg(any(doc, doctest))]
pub mod cookbook;
mod core;
mod error;
mod event;
mod failure;
mod guard;
#[cfg(feature = "std")]
mod hedged;
mod hooks;
mod lint;
#[cfg(feature = "std")]
mod lobby;
#[cfg(not(feature = "std"))]
#[path = "no_lobby.rs"]
mod lobby;
mod retrier;
mod retry;
mod rt;
mod run;
mod story;
#[cfg(feature = "std")]
mod suggest;
#[cfg(feature = "std")]
mod sync;
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

pub use self::core::{duration, rng};

pub use self::{
    attempt::Attempt,
    core::{
        admission::{
            Admission, AdmissionSettings, AdmissionSnapshot, Admit, Arrival, Attempts, Order, Priority, Room, Scope,
        },
        backoff::{Backoff, Step},
        breaker::{
            Breaker, BreakerChange, BreakerPass, BreakerPermit, BreakerQuirks, BreakerSettings, BreakerSnapshot,
            BreakerState, BreakerWindow,
        },
        call::{Call, Saved},
        curve::Curve,
        delay::Delays,
        hedge::{Hedge, HedgeSettings, HedgeStep, HedgedCall},
        jitter::Jitter,
        outcome::Outcome,
        pacer::{Pacer, PacerSettings, PacerSnapshot, Turn},
        policy::Policy,
        refused::Refused,
        schedule::{Bounds, Row, Schedule},
        settings::{Invalid, Settings},
        time::Timestamp,
        upstream::{
            Upstream, UpstreamChange,
            call::{UpstreamAnswer, UpstreamCall},
            snapshot::UpstreamSnapshot,
        },
        upstream_settings::UpstreamSettings,
        verdict::{Decision, Reason, Verdict},
    },
    error::{Chained, Error, NotReady, gave_up},
    event::{Cause, Event},
    failure::Failure,
    guard::{Guard, Unguarded},
    hooks::{Always, Heeds, Judge, On, PassFailureVerdictToWhen, Plain, Setting, Silent, Until, Watch},
    lint::Warning,
    retrier::Retrier,
    retry::Retry,
    rt::Timer,
    story::Story,
    timeline::{Past, Timeline},
};

pub use self::core::{
    budget::{
        Budget,
        allowance::{Allowance, Withdrawal},
        aws_quota::AwsQuota,
        settings::BudgetSettings,
        throttle::rejection,
    },
    limiter::{
        Limit, LimitAnswer, LimitNext, LimitSnapshot,
        aws_adaptive::{AwsAdaptiveState, AwsBucket, AwsClocker, AwsCubic},
        gradient::gradient,
        permit::LimitPermit,
        settings::LimitSettings,
    },
};

#[cfg(feature = "std")]
pub use self::{
    cancel::{Cancel, Cancelled},
    rt::{Sleep, SystemTimer},
    ticker::{Ticker, Ticks},
};

/// The README's snippets compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../../../docs/coming-from.md")]
struct ComingFrom;

/// The page about what protects the far side compiles.
#[cfg(all(doctest, feature = "toml"))]
#[doc = include_str!("../../../docs/protect.md")]
struct Protect;
