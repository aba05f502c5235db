//! How often clients try, and what becomes of them: the mean hides the few that try for ever.

use super::{View, table};
use crate::{escape::escape, report::percent};
use relent_sim::{Figure, Outcome, Record};
use std::{collections::BTreeSet, ops::RangeInclusive};

/// Attempts that share a column.
const COLUMNS: [(&str, RangeInclusive<usize>); 8] = [
    ("1", 1..=1),
    ("2", 2..=2),
    ("3", 3..=3),
    ("4", 4..=4),
    ("5-8", 5..=8),
    ("9-16", 9..=16),
    ("17-64", 17..=64),
    ("65+", 65..=usize::MAX),
];

/// The shares of the clients that were done after so many attempts, and of those that succeeded or gave up, and why;
/// nothing where nobody made a second attempt.
pub(super) fn draw(outcome: &Outcome, view: View) -> String {
    let records: Vec<&Record> = table::shown(outcome).filter(|record| done(record, &(0..=usize::MAX)) > 0).collect();
    if records.iter().all(|record| done(record, &(2..=usize::MAX)) == 0) {
        return String::new();
    }
    let used = |range: &RangeInclusive<usize>| records.iter().any(|record| done(record, range) > 0);
    let columns: Vec<_> = COLUMNS.into_iter().filter(|(_, range)| used(range)).collect();
    let reasons: BTreeSet<&str> = records.iter().flat_map(|record| record.gave_up.keys().copied()).collect();
    let mut header = vec!["done after attempts".to_owned(), "succeed".to_owned()];
    header.extend(columns.iter().map(|(name, _)| (*name).to_owned()));
    header.extend(reasons.iter().map(|reason| format!("gave up: {reason}")));
    let trying = |record: &Record| 1.0 - done(record, &(0..=usize::MAX)) as f64 / calls(record);
    let left = records.iter().any(|record| trying(record) > 0.0);
    header.extend(left.then(|| "still trying".to_owned()));
    let row = |record: &&Record| {
        let all = done(record, &(0..=usize::MAX)) as f64;
        let mut row = vec![escape(&record.policy).into_owned()];
        row.push(record.get(Figure::SuccessShare).map_or_else(|| "-".to_owned(), share));
        row.extend(columns.iter().map(|(_, range)| share(done(record, range) as f64 / all)));
        let gave_up = |reason: &&str| record.gave_up.get(*reason).copied().unwrap_or(0) as f64;
        row.extend(reasons.iter().map(|reason| share(gave_up(reason) / calls(record))));
        row.extend(left.then(|| share(trying(record))));
        row
    };
    let rows: Vec<Vec<String>> = [header].into_iter().chain(records.iter().map(row)).collect();
    format!("\n{}", table::aligned(&rows, view.columns.unwrap_or(usize::MAX)))
}

/// The calls of all runs.
fn calls(record: &Record) -> f64 {
    (record.clients as f64 * f64::from(record.seeds)).max(1.0)
}

/// Clients that were done after so many attempts, in all runs.
fn done(record: &Record, attempts: &RangeInclusive<usize>) -> u64 {
    let counts = record.plots.attempts.iter().enumerate();
    counts.filter(|(made, _)| attempts.contains(made)).map(|(_, count)| count).sum()
}

/// A share; nobody at all is a dash, so that it is not taken for hardly anybody.
fn share(share: f64) -> String {
    if share <= 0.0 { "-".to_owned() } else { percent(share) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::Policy;
    use relent_sim::{Scenario, Service, World, simulate};
    use std::time::Duration;

    const WIDE: View = View { columns: None, unicode: true };

    #[test]
    fn all_clients_are_in_some_column() {
        let mut service = Service::herd(1000, 100.0);
        service.server.queue = Some(100);
        let constant = Policy::constant(Duration::from_secs(1)).jitter(relent::Jitter::None);
        let scenario = Scenario::new("herd", World::Service(service))
            .policy("five", constant.max_attempts(5))
            .policy("all", constant.unlimited_attempts());
        let outcome = simulate(&scenario).unwrap();
        // Ten waves a second apart, of which each lets 100 in.
        assert_eq!(
            draw(&outcome, WIDE),
            "\ndone after attempts  succeed     1     2     3     4   5-8  9-16  gave up: attempts\n\
             five                    50 %  10 %  10 %  10 %  10 %  60 %     -               50 %\n\
             all                    100 %  10 %  10 %  10 %  10 %  40 %  20 %                  -\n"
        );
    }

    #[test]
    fn who_is_not_done_when_the_run_ends_is_not_forgotten() {
        let mut service = Service::herd(10, 1.0);
        service.server.queue = Some(1);
        let constant = Policy::constant(Duration::from_secs(1)).jitter(relent::Jitter::None);
        let mut scenario =
            Scenario::new("herd", World::Service(service)).policy("p", constant.max_elapsed(Duration::from_secs(100)));
        scenario.limit = Duration::from_millis(2500);
        let drawn = draw(&simulate(&scenario).unwrap(), WIDE);
        assert_eq!(
            drawn.lines().map(|line| line.rsplit("  ").next().unwrap()).collect::<Vec<_>>()[1..],
            ["still trying", "70 %"]
        );
    }

    #[test]
    fn nobody_is_told_what_everybody_knows() {
        let scenario = Scenario::new("few", World::Service(Service::herd(10, 5.0))).policy("p", Policy::default());
        assert_eq!(draw(&simulate(&scenario).unwrap(), WIDE), "");
    }
}
