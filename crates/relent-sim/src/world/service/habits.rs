//! What a kind of budget wants to be told, and what it may refuse.

use relent::{Budget, BudgetSettings};

/// What a kind of budget wants to be told, and what it may refuse: nothing, where there is none.
#[derive(Clone, Copy)]
pub(super) struct Habits {
    /// Whether it may refuse a first attempt.
    pub(super) refuses_first: bool,
    /// Whether it wants to know how attempts end.
    pub(super) hears: bool,
    /// Whether it wants to know then what was paid for them, and when they begin: so that what was paid must be kept.
    pub(super) recalls: bool,
}

impl Habits {
    pub(super) fn of(budget: Option<&Budget>) -> Habits {
        let (refuses_first, hears, recalls) = match budget.map(Budget::settings) {
            None | Some(BudgetSettings::Ratio { .. } | BudgetSettings::Finagle { .. }) => (false, false, false),
            Some(BudgetSettings::Grpc { .. }) => (false, true, false),
            Some(BudgetSettings::Throttle { .. }) => (true, true, false),
            Some(BudgetSettings::Custom(_)) => (true, true, true),
            Some(_) => (false, true, true),
        };
        Habits { refuses_first, hears, recalls }
    }
}
