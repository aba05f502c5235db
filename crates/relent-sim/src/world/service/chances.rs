//! Which machines decide by chance.

use super::cast::Role;
use crate::scenario::Protection;
use relent::BudgetSettings;

/// Which machines of a population decide by a draw of chance: it is not drawn for the others.
#[derive(Clone, Copy)]
pub(super) struct Chances {
    /// Those that are asked before an attempt, whatever their state.
    pub(super) before: bool,
    /// A breaker, while it is not closed; it may draw when it trips.
    pub(super) breaker: bool,
    pub(super) jitter: bool,
}

impl Chances {
    pub(super) fn of(role: &Role<'_>) -> Chances {
        let Protection { budget, breaker, .. } = role.protection;
        Chances {
            before: matches!(budget, Some(BudgetSettings::Throttle { .. } | BudgetSettings::Custom(_))),
            breaker: breaker.is_some(),
            jitter: breaker.is_some_and(|breaker| breaker.jitter > 0.0),
        }
    }
}
