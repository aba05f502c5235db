//! A shared channel: who talks at the same time as another is not heard.

pub(crate) mod batch;
pub(crate) mod ethernet;
pub(crate) mod saturated;
pub mod theory;
