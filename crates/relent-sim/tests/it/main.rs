//! The simulator against what is known: algebra, the literature, and other simulators.

mod accounts;
mod advice;
mod aws;
mod chain;
mod chance;
mod channel;
mod delays;
mod engines;
mod herd;
mod input;
mod layers;
mod many;
mod open;
mod populations;
mod protection;
mod queues;
mod rows;
mod shipped;
mod whose;
