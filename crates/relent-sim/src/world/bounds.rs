//! What holds for every retry, whatever the policy.

use relent::{Curve, Policy, Verdict};

/// What must hold for every retry, whatever the policy: checked at each one.
pub(crate) struct Bounds {
    most_attempts: u32,
    cap: u64,
    /// Whether who decides is who was told, and obeys: a layer that gives up does not pass on what the server said, and a
    /// rule of another system's may shorten it.
    is_told: bool,
    /// Whether the rule makes of a pushback what it likes, so that neither bound is known.
    own_rule: bool,
}

impl Bounds {
    pub(crate) fn new(policy: &Policy, layers: u32) -> Bounds {
        let settings = policy.settings();
        let layered = settings.max_attempts.map(|most| most.saturating_pow(layers));
        Bounds {
            most_attempts: layered.unwrap_or(u32::MAX),
            cap: settings.cap.map_or(u64::MAX, crate::time::nanos),
            is_told: layers <= 1,
            own_rule: matches!(settings.curve, Curve::Custom(_)),
        }
    }

    #[inline]
    pub(crate) fn check(&self, failures: u32, delay: u64, verdict: Verdict) {
        assert!(failures < self.most_attempts, "a retry beyond max_attempts");
        let told = verdict.pushback().map_or(0, crate::time::nanos);
        // A turn is this client's own and kept exactly; a pushback is said to many, and spread over a tenth.
        let spread = if matches!(verdict, Verdict::Turn(_)) { 0 } else { told / 10 };
        let most = self.cap.max(told.saturating_add(spread));
        if self.own_rule && told > 0 {
            return;
        }
        let least = if self.is_told { told } else { 0 };
        assert!((least..=most).contains(&delay), "a delay of {delay} ns outside of {least}..={most}");
    }
}
