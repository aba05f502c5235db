//! The store as its users meet it.

mod keeping;
mod leases;
mod once;
