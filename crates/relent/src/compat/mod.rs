//! Other systems' backoff, exactly as they do it, warts included.
//!
//! People come to relent from something else. A [`Profile`] gives them the delays they have today, so that they can
//! move first and improve later: [`find`]`("cenkalti-v4")?.policy()`, `--compat cenkalti-v4`, `compat = "cenkalti-v4"`.
//! COMPARE.md says what goes wrong in each system and which policy of relent's own to take instead.
//!
//! Behind all of them are four forms, which users can fill in with parameters of their own:
//!
//! - [`Formula`]: a formula of the number of the failure, in floating point (tenacity, AWS, gRPC, got and most others);
//! - [`Compound`]: each interval computed from the one before, in whole numbers (cenkalti, resilience4j, Envoy);
//! - [`Chained`]: each delay drawn from the delay before (the AWS blog's decorrelated jitter, Finagle, Polly);
//! - lists of delays ([`Policy::list`](crate::Policy::list)) and slots ([`Policy::slots`](crate::Policy::slots)), which
//!   are relent's own.
//!
//! [`Stopped`] adds the stop rules that a policy's own limits do not express, and [`OnPushback`] says what a pushback does.
//! [`header`] and [`status`] are how other systems read a `Retry-After` and which answers they retry.
//!
//! `tests/vectors.rs` compares the numbers with those in `vectors/`. What these are is each profile's [`Evidence`]: most
//! were produced by the systems' own code, some are recomputed from a formula, and some profiles are published schedules
//! without numbers to compare with.
//!
//! Budgets of other systems have their names at [`Budget::compat`](crate::Budget::compat); here is a formula of
//! Envoy's.

mod chained;
mod compound;
mod find;
mod formula;
mod growth;
pub mod header;
mod memory;
mod profile;
mod profiles;
mod pushback;
mod random;
mod rejection;
mod spread;
pub mod status;
mod stop;
mod unit;

pub use self::{
    chained::{Chained, Link},
    compound::{Capped, Compound, WholeSpread},
    find::{Unknown, all, find},
    formula::{Formula, Rounding},
    growth::Growth,
    profile::{Evidence, Profile},
    pushback::OnPushback,
    random::Random,
    rejection::envoy_rejection,
    spread::Spread,
    stop::{Stop, Stopped},
    unit::Unit,
};

/// The examples of COMPARE.md compile and hold.
#[cfg(doctest)]
#[doc = include_str!("../../COMPARE.md")]
struct ComparePage;
