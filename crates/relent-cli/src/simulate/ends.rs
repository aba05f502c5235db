//! Policies whose delays end by themselves, before the attempts that are allowed do.

use crate::escape::escape;
use relent::{Curve, Policy};
use relent_sim::Scenario;
use std::fmt::Write;

/// A line for each of them, below the table.
pub(super) fn draw(scenario: &Scenario) -> String {
    let mut out = String::new();
    for contender in &scenario.contenders {
        if let Some(attempts) = ends_after(&contender.policy) {
            let plural = if attempts == 1 { "" } else { "s" };
            let _ = writeln!(out, "{}: its delays end after {attempts} attempt{plural}", escape(&contender.name));
        }
    }
    out
}

/// After how many attempts a list or slots end, if no limit comes first.
fn ends_after(policy: &Policy) -> Option<u32> {
    let settings = policy.settings();
    let attempts = match settings.curve {
        Curve::List { delays, repeat: false } => u32::try_from(delays.len()).unwrap_or(u32::MAX).saturating_add(1),
        Curve::Slots { .. } => 16,
        _ => return None,
    };
    settings.max_attempts.is_none_or(|most| most > attempts).then_some(attempts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_ends_by_itself_is_told_unless_a_limit_comes_first() {
        static DELAYS: [Duration; 2] = [Duration::from_secs(1); 2];
        let list = Policy::list(&DELAYS).unlimited_attempts();
        assert_eq!(ends_after(&list), Some(3));
        assert_eq!(ends_after(&list.max_attempts(3)), None);
        let slots = Policy::slots(Duration::from_micros(51));
        assert_eq!(ends_after(&slots.max_attempts(20)), Some(16));
        assert_eq!(ends_after(&slots.max_attempts(16)), None);
        assert_eq!(ends_after(&Policy::default()), None);
    }
}
