//! The sans-IO core: everything that decides, and nothing that reads a clock, sleeps or asks for entropy.
//!
//! Imports `core` only. Private, because a public module of this name would shadow the crate `core` for whoever
//! writes `use relent::*`; its items are re-exported at the root.

pub(crate) mod admission;
#[macro_use]
pub(crate) mod atomic;
pub(crate) mod backoff;
pub(crate) mod bounds;
pub(crate) mod breaker;
pub(crate) mod budget;
mod build;
pub(crate) mod call;
pub(crate) mod cells;
pub(crate) mod curve;
pub(crate) mod delay;
pub mod duration;
pub(crate) mod float;
pub(crate) mod hedge;
pub(crate) mod invalid;
pub(crate) mod jitter;
pub(crate) mod latency;
pub(crate) mod limiter;
pub(crate) mod outcome;
pub(crate) mod pacer;
pub(crate) mod policy;
pub(crate) mod refused;
pub mod rng;
pub(crate) mod schedule;
pub(crate) mod settings;
pub(crate) mod time;
pub(crate) mod trajectories;
pub(crate) mod upstream;
pub(crate) mod upstream_settings;
pub(crate) mod verdict;
pub(crate) mod word;
