//! The simulator against what is known: algebra, the literature, and other simulators.

mod aws;
mod channel;
mod engines;
mod herd;
mod input;
mod layers;
mod open;
mod shipped;
