//! Layers between real clients and real servers.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests are tests, and say what they skip")]

mod allocations;
mod grpc_server;
mod herds;
mod hops;
mod hostile;
mod hypers;
mod idempotency;
mod nginx;
mod nginx_process;
mod observe;
mod proxies;
mod raw;
mod reqwests;
mod tonics;
mod ws;
mod ws_herd;
mod ws_memory;
mod ws_server;
