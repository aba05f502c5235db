//! What the tests and examples of layers share: a server with an exact capacity, a herd of real clients, a storm.

pub mod client;
pub mod herd;
pub mod machine;
pub mod serve;
pub mod storm;

/// The page about layers compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/layers.md")]
struct Layers;
