//! Layers between real clients and real servers.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests are tests, and say what they skip")]

mod herds;
mod hops;
mod nginx;
mod observe;
mod proxies;
