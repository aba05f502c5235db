//! The store as its users meet it.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod any_server;
mod blocking;
mod clocks;
mod conformity;
mod crash;
mod cuts;
mod disk;
mod equivalence;
mod faults;
mod in_postgres;
mod in_redis;
mod joined;
mod keeping;
mod layer;
mod leases;
mod once;
mod outage;
mod promises;
mod proxy;
mod servers;
mod shared;
mod stories;
mod strangers;
mod tls;
mod together;
mod troubles;
