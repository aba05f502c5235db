//! What the library promises, tested through its public face.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are tests")]

mod absurd;
mod admission;
mod asynchronous;
mod blocking;
mod budgets;
mod cancel;
mod cenkalti;
mod connect;
mod edges;
mod fake;
mod found;
mod given_back;
mod kept;
mod layer;
mod layer_fallback;
mod layer_http;
mod limits;
mod nested;
mod no_tokio;
mod places;
mod poll;
mod promises;
mod properties;
mod reload;
mod runtimes;
mod rush;
mod ticker;
mod traps;
mod types;
mod upstream;
