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
//! Async, on tokio or any other runtime. The attempt that hangs is dropped and made again:
//!
//! ```
//! use relent::{Error, Policy};
//! use std::{io, time::Duration};
//! use tokio::net::TcpStream;
//!
//! const CONNECT: Policy = Policy::exponential(Duration::from_millis(10))
//!     .max_attempts(3)
//!     .attempt_timeout(Duration::from_secs(2));
//!
//! async fn connect(address: &str) -> Result<TcpStream, Error<io::Error>> {
//!     CONNECT
//!         .when(|err: &io::Error| err.kind() != io::ErrorKind::PermissionDenied)
//!         .retry(async |_| TcpStream::connect(address).await)
//!         .await
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! assert_eq!(connect("127.0.0.1:1").await.unwrap_err().attempts, 3);
//! # });
//! ```
//!
//! HTTP (feature `http`): the status says what may be retried, and `Retry-After` when. With a client of any make:
//!
//! ```
//! use relent::{Policy, Verdict, wire};
//! use std::time::SystemTime;
//!
//! # async fn send(n: u32) -> http::Response<&'static str> {
//! #     let status = if n == 1 { 503 } else { 200 };
//! #     http::Response::builder().status(status).body("body").unwrap()
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
//! let body = Policy::default()
//!     .when(|failed: &(http::StatusCode, Verdict)| failed.1)
//!     .retry(async |attempt| {
//!         let response = send(attempt.number()).await;
//!         let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
//!         // `None` is a success.
//!         match wire::verdict(response.status(), response.headers(), now) {
//!             Some(verdict) => Err((response.status(), verdict)),
//!             None => Ok(response.into_body()),
//!         }
//!     })
//!     .await;
//! assert_eq!(body.unwrap(), "body");
//! # });
//! ```
//!
//! More to copy is in the [`cookbook`].
//!
//! # What to use
//!
//! | to | use |
//! |---|---|
//! | call a closure until it succeeds | [`Policy::retry`], [`Policy::retry_blocking`] |
//! | say what failures mean, watch, cancel, set a deadline | [`Policy::when`], [`notify`](Policy::notify), [`cancel`](Policy::cancel): a [`Retrier`] |
//! | write the loop yourself | [`Policy::start`]: a [`Retry`] with [`back_off`](Retry::back_off) |
//! | protect the far side: budget, breaker, limit, hedge | [`Upstream`], by [`Policy::on`] |
//! | ask until something is done | [`Policy::poll`], with an [`Answer`] |
//! | be woken at a policy's times | [`Policy::ticker`] |
//! | connect a socket | [`net`] |
//! | keep a WebSocket (feature `ws`) | [`relent::ws`] |
//! | see what a policy will do | [`Policy::schedule`], [`Policy::warnings`] |
//! | drive it from an event loop or a simulator | [`Policy::call`]: a [`Call`], which is told the time |
//! | have the delays of another system | [`compat`] |
//! | read policies from a file (feature `toml`) | [`relent::config`] |
//! | judge HTTP responses (feature `http`) | [`relent::wire`] |
//! | repeat what must happen once (feature `http`) | one `IdempotencyKey` of [`relent::wire`], made before the call, for all attempts |
//! | protect a client or a server by a layer (feature `tower`) | [`relent::layer`] |
//! | see calls in logs and figures (features `tracing`, `metrics`) | [`relent::observe`] |
//! | copy a recipe | [`cookbook`] |
//!
//! # Defaults
//!
//! What [`Policy::default`] says; other constructors name what they do otherwise.
//!
//! | setting | default |
//! |---|---|
//! | curve | exponential: 1 s, then twice as long each time |
//! | [`cap`](Policy::cap) | 64 s, or the base if that is longer |
//! | [`jitter`](Policy::jitter) | full: any part of the delay |
//! | [`max_attempts`](Policy::max_attempts) | 8, the first included |
//! | [`max_elapsed`](Policy::max_elapsed) | no limit |
//! | [`timeout`](Policy::timeout) of the call | no limit |
//! | [`attempt_timeout`](Policy::attempt_timeout) | no limit |
//! | [`max_pushback`](Policy::max_pushback) | 2 min |
//! | [`spread`](Policy::spread) before the first attempt | none |
//! | what is retried | every error, but not that of another policy: [`Policy::when`] |
//!
//! # Layers
//!
//! Attempts multiply when an operation that retries is retried: three layers of four attempts make 64. What an inner
//! policy gave up on is not retried by an outer one when the error is relent's own type; where it is wrapped, say
//! `when(|err| !gave_up(err))`: see [`gave_up`]. Between processes a budget stops it, per [`Upstream`].
//!
//! # Features
//!
//! | feature | for | brings |
//! |---|---|---|
//! | `std` (default) | clock and sleepers, closures on them, [`Upstream`] queues, [`Cancel`], [`Ticker`], [`net`], [`compat`] | nothing |
//! | `tokio` | sleepers obey tokio's clock where that is paused | `tokio` |
//! | `net` | connecting tokio's sockets | `tokio` with `net` |
//! | `stream` | the ticker is a `Stream` | `futures-core` |
//! | `http` | [`relent::wire`] | `http` |
//! | `metrics` | [`relent::observe`]: calls in figures | `metrics` |
//! | `tracing` | [`relent::observe`]: calls in logs | `tracing` |
//! | `ws` | [`relent::ws`] | `tokio-tungstenite`, `futures-util` |
//! | `tower` | [`relent::layer`] | `tower-layer`, `tower-service`, `http-body`, `bytes`, `pin-project-lite` |
//! | `hyper` | in layers: errors of hyper's clients told apart | `hyper`, `hyper-util`, `h2` |
//! | `moka` | a layer that answers with what was answered before | `moka` |
//! | `reqwest` | layers around a `reqwest::Client` | `reqwest` |
//! | `toml` | [`relent::config`] | `toml` |
//!
//! Async calls run on every runtime without a feature. Without `std` the crate is `no_std`, and executors take a
//! [`Timer`].
//!
#![cfg_attr(feature = "tower", doc = "[`relent::layer`]: crate::layer")]
#![cfg_attr(not(feature = "tower"), doc = "[`relent::layer`]: https://docs.rs/relent/latest/relent/layer/index.html")]
#![cfg_attr(any(feature = "metrics", feature = "tracing"), doc = "[`relent::observe`]: crate::observe")]
#![cfg_attr(
    not(any(feature = "metrics", feature = "tracing")),
    doc = "[`relent::observe`]: https://docs.rs/relent/latest/relent/observe/index.html"
)]
#![cfg_attr(feature = "ws", doc = "[`relent::ws`]: crate::ws")]
#![cfg_attr(not(feature = "ws"), doc = "[`relent::ws`]: https://docs.rs/relent/latest/relent/ws/index.html")]
#![cfg_attr(feature = "http", doc = "[`relent::wire`]: crate::wire")]
#![cfg_attr(not(feature = "http"), doc = "[`relent::wire`]: https://docs.rs/relent/latest/relent/wire/index.html")]
#![cfg_attr(feature = "toml", doc = "[`relent::config`]: crate::config")]
#![cfg_attr(not(feature = "toml"), doc = "[`relent::config`]: https://docs.rs/relent/latest/relent/config/index.html")]
#![warn(clippy::return_self_not_must_use)]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(feature = "std"),
    expect(clippy::result_large_err, reason = "without an allocator, an error has its story inside")
)]
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
mod failed;
mod failure;
mod guard;
#[cfg(feature = "std")]
mod hedged;
mod hooks;
#[cfg(feature = "tower")]
pub mod layer;
mod lint;
#[cfg(feature = "std")]
mod lobby;
#[cfg(not(feature = "std"))]
#[path = "no_lobby.rs"]
mod lobby;
#[cfg(all(test, loom))]
mod modelled;
#[cfg(any(feature = "metrics", feature = "tracing"))]
pub mod observe;
mod poll;
mod retrier;
mod retry;
mod rt;
mod run;
mod seal;
mod setting;
mod story;
#[cfg(feature = "std")]
mod suggest;
#[cfg(feature = "std")]
mod sync;
mod timeline;
#[cfg(feature = "http")]
pub mod wire;
#[cfg(all(feature = "ws", not(loom)))]
pub mod ws;

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
            permit::AdmissionPermit,
        },
        backoff::{Backoff, Step},
        bounds::Bounds,
        breaker::{
            Breaker, BreakerChange, BreakerPass, BreakerPermit, BreakerQuirks, BreakerSettings, BreakerSnapshot,
            BreakerState, BreakerWindow,
        },
        call::{Call, Saved},
        curve::Curve,
        delay::Delays,
        hedge::{Hedge, HedgeSettings, HedgeStep, HedgedCall},
        invalid::Invalid,
        jitter::Jitter,
        outcome::Outcome,
        pacer::{Pacer, PacerSettings, PacerSnapshot, Turn},
        policy::Policy,
        refused::Refused,
        schedule::{Row, Schedule},
        settings::Settings,
        time::Timestamp,
        upstream::{
            Upstream, ask::UpstreamAnswer, call::UpstreamCall, change::UpstreamChange, saved::UpstreamSaved,
            snapshot::UpstreamSnapshot,
        },
        upstream_settings::UpstreamSettings,
        verdict::{Decision, Reason, Verdict},
    },
    error::{ChainedError, Error, NotReady, gave_up},
    event::{Cause, Event},
    failure::Failure,
    guard::{Guard, Unguarded},
    hooks::{Always, Heeds, Judge, PassFailureVerdictToWhen, Plain, Silent, Watch},
    lint::Warning,
    poll::Answer,
    retrier::Retrier,
    retry::Retry,
    rt::Timer,
    setting::{On, Setting, Until},
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
        permits::Permits,
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

/// The page about clients that stay compiles.
#[cfg(all(doctest, feature = "ws"))]
#[doc = include_str!("../../../docs/clients.md")]
struct Clients;

/// The page about logs and figures compiles.
#[cfg(all(doctest, any(feature = "metrics", feature = "tracing")))]
#[doc = include_str!("../../../docs/observe.md")]
struct Observing;
