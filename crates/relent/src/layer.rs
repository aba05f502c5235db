//! Retries and upstreams as tower layers: for clients of hyper, tonic and reqwest, and for requests of the program's own.
//! Feature `tower`.
//!
//! A [`Retrier`](crate::Retrier) becomes a layer by [`layer`](crate::Retrier::layer). It holds everything about calls: the
//! policy, what failures mean, the upstream.
//!
//! ```
//! use relent::{Breaker, Budget, Policy, Upstream};
//! use std::time::Duration;
//! use tower::{Service, ServiceBuilder, ServiceExt};
//!
//! const READ: Policy = Policy::exponential(Duration::from_millis(100)).max_attempts(5);
//! static BANK: Upstream = Upstream::new("bank").budget(Budget::ratio(0.1)).breaker(Breaker::consecutive(5));
//!
//! # let client = tower::service_fn(|_: http::Request<String>| async { Ok::<_, std::io::Error>(http::Response::new(String::new())) });
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let mut client = ServiceBuilder::new().layer(READ.on(&BANK).layer()).service(client);
//!
//! let request = http::Request::get("http://bank.example/accounts/7").body(String::new())?;
//! let response = client.ready().await?.call(request).await?;
//! assert_eq!(response.status(), 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # What is repeated
//!
//! | request | when it is sent again |
//! |---|---|
//! | `http::Request` with a body that can be cloned | its answer or error is transient by [`wire`](crate::wire), and the method is idempotent, or the request has an `Idempotency-Key`, or it never left |
//! | `http::Request` with any other body | the same, with [`RetryLayer::replay`] |
//! | `reqwest::Request` (feature `reqwest`) | the same; streaming bodies are sent once |
//! | gRPC | the status is `UNAVAILABLE`, or `RESOURCE_EXHAUSTED` with a pushback |
//! | one of the program's own | what [`when`](crate::Retrier::when) says; [`Repeat`] says how it is copied |
//!
//! The last answer goes up as it came: its status, its headers and its body. What ends without an answer is an
//! [`Error`](crate::Error) with its reason and the client's last error.
//!
//! **What fails after the head is not retried.** An answer is judged by its status and headers (gRPC's also by trailers that
//! come instead of a first message). Once the head has been handed over, its body is the caller's: if that ends early, part of
//! it has been read already, and only the caller knows whether to begin again.
//!
//! # What servers are told
//!
//! `Relent-Attempt` from the second attempt on (gRPC: `grpc-previous-rpc-attempts`), `Relent-Deadline` where there is a
//! deadline or an attempt timeout (gRPC: `grpc-timeout`), and by name: [`idempotency_keys`](RetryLayer::idempotency_keys),
//! [`histogram`](RetryLayer::histogram).

pub mod admission;
mod call;
mod fallback;
mod faults;
mod grpc_answer;
mod guard;
mod http_request;
mod kept;
mod missed;
#[cfg(any(feature = "tracing", feature = "metrics"))]
mod observed;
mod one_flight;
mod peeked;
mod repeat;
mod replay;
mod replayed;
#[cfg(feature = "reqwest")]
mod reqwest_request;
mod rest;
mod retry;
mod said;
mod sent;
#[cfg(feature = "moka")]
mod stale;
mod tally;
mod terms;
mod time_left;

#[cfg(feature = "moka")]
pub use self::stale::{StaleFuture, StaleLayer, StaleService};
pub use self::{
    admission::{AdmissionBody, AdmissionFuture, AdmissionLayer, AdmissionService, Caller, CallerScope},
    call::Runs,
    fallback::{FallbackFuture, FallbackLayer, FallbackService},
    guard::GuardLayer,
    missed::Missed,
    one_flight::{OneFlightLayer, OneFlightService},
    peeked::{Peek, Peeked},
    repeat::Repeat,
    replay::{ReplayBody, ReplayError},
    replayed::{Molded, ReplayFuture, ReplayLayer, ReplayService},
    retry::{RetryFuture, RetryLayer, RetryService},
    said::Said,
    terms::{Head, Terms},
    time_left::{TimeLeft, Within},
};
