//! Which rows of a schedule are shown: all of a short one, the telling ones of a long one.

use relent::{Policy, Row};

/// The rows to show, and what follows them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rows {
    pub(super) shown: Vec<Row>,
    pub(super) then: Then,
}

/// What follows the rows that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing: the call gives up.
    End,
    /// Delays like the last one shown, for ever or up to this attempt.
    Same(Option<u32>),
    /// Further delays, for ever or up to this attempt.
    More(Option<u32>),
}

/// Rows alike after which those that follow are looked at, and left out if they are alike too.
const ALIKE: usize = 3;

/// More delays than a list may have.
const LONGEST_LIST: usize = 1001;

/// How far is looked.
const AHEAD: usize = 200;

/// The first `most` rows of a policy, fewer where they only repeat.
pub(super) fn rows(policy: &Policy, most: usize) -> Rows {
    let end = policy.settings().max_attempts;
    let mut shown: Vec<Row> = Vec::new();
    let mut schedule = policy.schedule();
    while let Some(row) = schedule.next() {
        let alike = |other: &Row| other.delay == row.delay;
        let was_steady = shown.len() >= ALIKE && shown.iter().rev().take(ALIKE).all(alike);
        shown.push(row);
        if was_steady && schedule.clone().take(AHEAD).all(|next| alike(&next)) {
            match schedule.clone().take(AHEAD).count() {
                0 | 1 => {}
                AHEAD => return Rows { shown, then: Then::Same(end) },
                left => return Rows { shown, then: Then::Same(Some(row.attempt + left as u32)) },
            }
        }
        if shown.len() >= most && schedule.clone().next().is_some() {
            // A list may end before the limit.
            let left = schedule.take(LONGEST_LIST).count();
            let end = if left < LONGEST_LIST { Some(shown.len() as u32 + 1 + left as u32) } else { end };
            return Rows { shown, then: Then::More(end) };
        }
    }
    Rows { shown, then: Then::End }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::Jitter;
    use std::time::Duration;

    const SEC: Duration = Duration::from_secs(1);

    fn counted(policy: Policy) -> (usize, Then) {
        let rows = rows(&policy, 20);
        (rows.shown.len(), rows.then)
    }

    #[test]
    fn short_schedules_are_shown_whole() {
        assert_eq!(counted(Policy::default()), (7, Then::End));
        assert_eq!(counted(Policy::default().max_attempts(1)), (0, Then::End));
        assert_eq!(counted(Policy::constant(SEC).max_attempts(4)), (3, Then::End));
        assert_eq!(counted(Policy::list(&[SEC; 5])), (5, Then::End));
        assert_eq!(counted(Policy::list(&[SEC; 9])), (4, Then::Same(Some(10))));
    }

    #[test]
    fn what_only_repeats_is_left_out() {
        assert_eq!(counted(Policy::constant(SEC).unlimited_attempts()), (4, Then::Same(None)));
        assert_eq!(counted(Policy::constant(SEC).max_attempts(100)), (4, Then::Same(Some(100))));
        assert_eq!(counted(Policy::default().unlimited_attempts()), (10, Then::Same(None)), "capped from the 7th on");
        static LATE: [Duration; 7] = [SEC, SEC, SEC, SEC, SEC, SEC, Duration::from_secs(60)];
        assert_eq!(counted(Policy::list(&LATE)), (7, Then::End));
    }

    #[test]
    fn long_schedules_are_cut() {
        let growing = Policy::linear(SEC).cap(SEC * 1000).jitter(Jitter::None);
        assert_eq!(counted(growing.max_attempts(50)), (20, Then::More(Some(50))));
        assert_eq!(counted(growing.unlimited_attempts()), (20, Then::More(None)));
        assert_eq!(counted(growing.max_attempts(21)), (20, Then::End));
        let list: Vec<Duration> = (1..=30).map(|n| SEC * n).collect();
        assert_eq!(counted(Policy::list(list.leak()).unlimited_attempts()), (20, Then::More(Some(31))));
    }
}
