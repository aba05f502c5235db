//! Policies as text: files, flags, and what is wrong with them (feature `toml`).
//!
//! ```toml
//! [policy.read]                    # relent run --policy relent.toml#read
//! curve = "exponential"            # immediate constant linear exponential fibonacci slots list; or compat = "NAME"
//! base = "100ms"
//! factor = 2
//! cap = "10s"
//! jitter = "full"                  # none full equal decorrelated { proportional = 0.2 } { additive = "1s" }
//! max_attempts = 5                 # the first included; or "unlimited"
//! max_elapsed = "30s"
//! timeout = "1m"                   # ends everything at that moment, an attempt under way included
//! attempt_timeout = "2s"
//!
//! [policy.notify]
//! delays = ["15s", "30s", "3m"]    # curve = "list" goes without saying
//! repeat = true                    # the last one for ever; else the call gives up when the list ends
//!
//! [policy]                         # one without a name, which is meant when none is named
//! max_pushback = "1m"
//! spread = "10s"
//! ```
//!
//! A key that is not given takes the default of its curve ([`Settings::of`](crate::Settings::of)). `cap`,
//! `max_attempts`, `max_elapsed`, `max_pushback`, `timeout` and `attempt_timeout` may be `"unlimited"`. A key or value that is not
//! known is an error with its place and a suggestion, and so is a policy that makes no sense, even if another one of
//! the file is asked for.
//!
//! ```toml
//! [upstream.bank]                  # what all policies with upstream = "bank" share
//! budget = { ratio = 0.1, min_per_second = 1 }         # or a name: "aws-2.1", "grpc-a6", "finagle", "envoy", "sre"
//! breaker = { consecutive = 5, open_for = "30s" }      # or "polly", "gobreaker", "cockatiel", "resilience4j"
//! limit = { rate = 100, burst = 10 }                   # or { concurrency = 20 }, { aimd = 20 }, "aws_adaptive"
//! hedge = { after = "50ms" }                           # or { quantile = 0.95 }
//!
//! [server.api]                     # of a server that protects itself
//! admission = { max_retry_share = 0.5 }
//! pacer = { capacity = 5000, horizon = "60s" }
//! ```
//!
//! [`Upstreams`] makes objects of them, which keep their state when the file is read again.
//!
//! A policy is `Copy` and holds no heap, so the delays of a list that comes from text are leaked, each different list
//! once per process and at most 1000 delays long. Do not read policies from untrusted text in an endless loop.
//!
//! What is not here: the environment, the search for a file, and other formats.

mod bad_setting;
mod breaker;
mod budget;
mod draft;
mod error;
mod file;
mod hedge;
mod limit;
mod part;
mod profile;
mod server;
mod text;
mod upstream;
mod upstreams;
mod value;
mod write;

pub use self::{
    bad_setting::BadSetting,
    draft::{Draft, KEYS},
    error::ConfigError,
    file::Config,
    part::Part,
    server::{SERVER_KEYS, ServerDraft},
    upstream::{UPSTREAM_KEYS, UpstreamDraft},
    upstreams::Upstreams,
    value::{Ceiling, CurveName},
};

#[cfg(test)]
mod protection_tests;
#[cfg(test)]
mod tests;
