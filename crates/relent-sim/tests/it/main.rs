//! The simulator against what is known: algebra, the literature, and other simulators.

mod aws;
mod channel;
mod engines;
mod herd;
mod layers;
mod open;
