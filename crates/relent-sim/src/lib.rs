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
mod engine;
mod observed;
mod outcome;
mod scenario;
mod simulate;
mod sweeps;
mod time;
mod world;
mod write;

pub use crate::{
    advice::{Effort, advise},
    engine::control::Control,
    observed::{Observed, Seen},
    outcome::{
        Advice, Band, Bands, Broken, Cure, Extras, FatalOutage, Figures, Harm, Heat, Hysteresis, HysteresisPoint,
        Ideal, LoadBin, Matrix, Outcome, Paced, Plots, Recommended, Record, Recovery, RecoveryPoint, Remedied, Remedy,
        SafeLoad, Safety, Shape, Share, Sizes, Storm,
    },
    scenario::{
        Access, Arrivals, Assertion, Batch, Contender, Engine, Ethernet, Figure, Forced, Layer, Layers, Network,
        Newcomers, OptimisticWriters, Part, Picture, Pictures, Population, Problem, Protection, Rate, RateLimit,
        RetryAfter, Saturated, Scenario, Server, Service, Subject, Trouble, TroubleKind, Windows, World, Writes,
        presets,
    },
    simulate::{simulate, simulate_with},
    sweeps::draw_pictures,
    world::{
        channel::theory,
        service::gate::{Gate, Knock},
    },
};

/// The JSON writer that the whole workspace uses.
pub mod json {
    pub use crate::write::object::{Object, array, is_hostile, is_line_break, list, number, quoted};
}
