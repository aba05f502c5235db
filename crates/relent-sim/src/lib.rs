//! What a retry policy does to a server when a million clients use it, seen before it happens.
//!
//! The world is simulated; the policies are not: what decides every delay is relent's own core, one
//! [`Call`](relent::Call) a client. A [`Scenario`] says who calls what, and which policies are compared; they meet the
//! same luck. [`simulate()`] yields one [`Record`] a policy, to be printed, plotted, or asserted upon in a test:
//!
//! ```
//! use relent::{Jitter, Policy};
//! use relent_sim::{Figure, Scenario, Service, World, simulate};
//! use std::time::Duration;
//!
//! let mut service = Service::herd(10_000, 500.0);
//! service.server.queue = Some(500);
//! let policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).unlimited_attempts();
//! let scenario = Scenario::new("reconnect", World::Service(service))
//!     .policy("plain", policy.jitter(Jitter::None))
//!     .policy("full", policy.jitter(Jitter::Full));
//!
//! let outcome = simulate(&scenario).unwrap();
//! let drain = |i: usize| outcome.records[i].get(Figure::DrainS).unwrap();
//! assert!(drain(0) > 160.0 && drain(1) < 30.0, "without jitter the server idles while everybody waits");
//! ```
//!
//! It needs no threads, sockets or clock of its own: time is a number here.

mod advice;
mod arrivals;
mod assertion;
mod bands;
mod bulk;
mod calendar;
mod channel;
mod csv;
mod engine;
mod figure;
mod fine;
mod histogram;
mod json;
mod lanes;
mod layers;
mod luck;
mod network;
mod occ;
mod outcome;
mod parallel;
mod pictures;
mod radix;
mod run;
mod scenario;
mod service;
mod simulate;

pub use crate::{
    advice::{Advice, Cure, Effort, FatalOutage, Recommended, SafeLoad, Safety, Shape, Storm, advise},
    arrivals::{Arrivals, Rate},
    assertion::{Assertion, Broken},
    bands::{Band, Bands},
    channel::{Access, Batch, Ethernet, Saturated, Windows, theory},
    figure::{Figure, Figures},
    layers::Layers,
    luck::Forced,
    network::Network,
    occ::Occ,
    outcome::{
        Engine, Extras, Heat, Hysteresis, HysteresisPoint, Ideal, LoadBin, Matrix, Outcome, Plots, Record, Recovery,
        RecoveryPoint, Share, Sizes,
    },
    pictures::draw_pictures,
    run::Control,
    scenario::{
        Contender, Picture, Pictures, Problem, RateLimit, RetryAfter, Scenario, Server, Service, Trouble, TroubleKind,
        World, Writes, presets,
    },
    simulate::{simulate, simulate_with},
};

use std::time::Duration;

/// The nanoseconds of a duration, at most 584 years.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    (relent::Timestamp::ZERO + duration).as_nanos()
}
