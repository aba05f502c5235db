//! Envoy's admission control: how likely a request is refused, by the share that succeeds.

/// The probability with which Envoy's admission control refuses a request, before its cap of 0.8.
///
/// `max(0, (total - successes / threshold) / (total + 1)) ^ (1 / aggression)`. Envoy's defaults: threshold 0.95,
/// aggression 1, over 30 s. With aggression 1 it is [`rejection`](crate::rejection) with `k = 1 / threshold`. An
/// aggression below 1 counts as 1. Source: Envoy, `admission_control.cc`.
///
/// ```
/// use relent::compat::envoy_rejection;
///
/// assert_eq!(envoy_rejection(100.0, 95.0, 0.95, 1.0), 0.0);
/// assert!((envoy_rejection(100.0, 94.0, 0.95, 1.0) - 0.010422094841063068).abs() < 1e-9);
/// ```
pub fn envoy_rejection(total: f64, successes: f64, threshold: f64, aggression: f64) -> f64 {
    let p = (total - successes / threshold) / (total + 1.0);
    if p > 0.0 { p.powf(1.0 / aggression.max(1.0)) } else { 0.0 }
}
