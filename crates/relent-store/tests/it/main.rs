//! The store as its users meet it.

mod in_postgres;
mod in_redis;
mod keeping;
mod leases;
mod once;
mod servers;
