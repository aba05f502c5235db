//! Layers of services that each retry.

/// Calls through layers of services that each retry.
#[derive(Clone, Debug, PartialEq)]
pub struct Layers {
    /// Calls at the top.
    pub calls: u64,
    /// Layers that retry, each under the same policy.
    pub depth: u32,
    /// The probability that an attempt at the bottom fails.
    pub failure: f64,
    /// Whether a layer that gives up says "overloaded, do not retry" to the one above.
    pub say_overloaded: bool,
}
