//! What happens: clients and servers, a row and its writers, layers of services, shared channels.

pub(crate) mod bounds;
pub(crate) mod channel;
pub(crate) mod layers;
pub(crate) mod meter;
pub(crate) mod meters;
pub(crate) mod optimistic_writers;
pub(crate) mod service;
