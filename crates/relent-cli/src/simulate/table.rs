//! The figures of a simulation as a table for people, always beside the ideal.

use super::View;
use crate::{breaks::wrap_named, escape::escape, report::percent, screen};
use relent_sim::{Engine, Figure, Ideal, Outcome, Record};
use std::{fmt::Write, ops::Range};

/// Figures that a table has room for, in order; those without a meaning anywhere are left out.
const COLUMNS: [Figure; 20] = [
    Figure::SuccessShare,
    Figure::GaveUpShare,
    Figure::StillTrying,
    Figure::AttemptsPerClient,
    Figure::Calls,
    Figure::TimeMs,
    Figure::MakespanOverN,
    Figure::AttemptsPerPacket,
    Figure::SuccessPerSlot,
    Figure::Collisions,
    Figure::DrainS,
    Figure::DrainOverIdeal,
    Figure::RecoveryS,
    Figure::GoodputShare,
    Figure::Load,
    Figure::P50S,
    Figure::P99S,
    Figure::Peak100Ms,
    Figure::PeakOverCapacity,
    Figure::Utilisation,
];

/// The table, with a line of title above and the engine below.
pub(super) fn draw(outcome: &Outcome, view: View) -> String {
    let mut out = table(outcome, view);
    out.push('\n');
    out.push_str(&footer(outcome, view));
    out
}

/// The table under its title.
pub(crate) fn table(outcome: &Outcome, view: View) -> String {
    let columns = columns(outcome);
    let mut rows = vec![header(&columns, outcome)];
    rows.extend(ideal(outcome, &columns));
    rows.extend(shown(outcome).map(|record| row(record, &columns, outcome)));
    let mut out = String::new();
    if !outcome.title.is_empty() {
        let _ = writeln!(out, "{}", wrap_named(&escape(&outcome.title), view.columns.unwrap_or(usize::MAX)));
    }
    out.push_str(&readable(rows, view));
    out
}

/// The rows side by side, as wide as the terminal and in its characters.
pub(super) fn readable(mut rows: Vec<Vec<String>>, view: View) -> String {
    if !view.unicode {
        rows.iter_mut().flatten().for_each(|cell| *cell = cell.replace('±', "+-"));
    }
    aligned(&rows, view.columns.unwrap_or(usize::MAX))
}

/// The policies with the populations of their clients, the one that is recommended, and a herd with a pacer.
pub(super) fn shown(outcome: &Outcome) -> impl Iterator<Item = &Record> {
    let recommended = outcome.advice.as_ref().and_then(|advice| advice.recommended.as_ref());
    let paced = outcome.advice.as_ref().and_then(|advice| advice.paced.as_ref());
    let advised = recommended.map(|recommended| &recommended.record).into_iter();
    let advised = advised.chain(paced.into_iter().flat_map(|paced| paced.record.with_populations()));
    outcome.records.iter().flat_map(Record::with_populations).chain(advised)
}

fn columns(outcome: &Outcome) -> Vec<Figure> {
    let has = |figure| shown(outcome).any(|record| record.get(figure).is_some());
    let (is_channel, is_occ) = (has(Figure::AttemptsPerPacket), has(Figure::Calls));
    let is_open = !has(Figure::DrainS) && has(Figure::Load);
    let wanted = |figure: &Figure| match figure {
        Figure::AttemptsPerClient => !is_channel,
        Figure::GoodputShare | Figure::Load | Figure::RecoveryS => is_open,
        Figure::DrainS | Figure::P50S | Figure::P99S => !is_occ,
        // One peak is enough: where the capacity is known, in units of it.
        Figure::Peak100Ms => !is_occ && !has(Figure::PeakOverCapacity),
        Figure::GaveUpShare | Figure::StillTrying => {
            shown(outcome).any(|record| record.get(*figure).unwrap_or(0.0) > 0.0)
        }
        _ => true,
    };
    COLUMNS.into_iter().filter(|figure| wanted(figure) && has(*figure)).collect()
}

fn recovers(outcome: &Outcome) -> bool {
    outcome.records.iter().any(|record| record.recovered.is_some_and(|share| share.yes < share.of))
}

fn header(columns: &[Figure], outcome: &Outcome) -> Vec<String> {
    let mut row = vec!["policy".to_owned()];
    row.extend(columns.iter().map(|figure| figure.title().to_owned()));
    if recovers(outcome) {
        row.push("recovers".to_owned());
    }
    row
}

fn ideal(outcome: &Outcome, columns: &[Figure]) -> Option<Vec<String>> {
    let mut row = ideal_row(&outcome.ideal?, columns, outcome);
    if recovers(outcome) {
        row.push("yes".to_owned());
    }
    Some(row)
}

/// What these figures are at best.
pub(super) fn ideal_row(ideal: &Ideal, columns: &[Figure], outcome: &Outcome) -> Vec<String> {
    let is_herd = shown(outcome).any(|record| record.get(Figure::DrainS).is_some());
    let of = |figure: &Figure| match figure {
        figure if is_herd => ideal.figure(*figure),
        Figure::AttemptsPerClient
        | Figure::Amplification
        | Figure::Load
        | Figure::GoodputShare
        | Figure::SuccessShare => Some(1.0),
        Figure::RecoveryS | Figure::GaveUpShare | Figure::StillTrying | Figure::WastedWork => Some(0.0),
        Figure::RefusedBudget
        | Figure::RefusedOpen
        | Figure::RefusedShed
        | Figure::RefusedOverloaded
        | Figure::RefusedTurn
        | Figure::PutOff => Some(0.0),
        _ => None,
    };
    let mut row = vec!["ideal".to_owned()];
    row.extend(columns.iter().map(|figure| of(figure).map_or_else(|| "-".to_owned(), |value| said(*figure, value))));
    row
}

/// The name of the policy, and these figures of it.
pub(super) fn figures(record: &Record, columns: &[Figure]) -> Vec<String> {
    let mut row = vec![escape(&record.policy).into_owned()];
    row.extend(columns.iter().map(|figure| match (record.get(*figure), record.sd(*figure)) {
        (None, _) => "-".to_owned(),
        (Some(mean), _) if is_share(*figure) => said(*figure, mean),
        (Some(mean), sd) => number(mean) + &sd.map_or_else(String::new, |sd| spread(mean, sd)),
    }));
    row
}

fn row(record: &Record, columns: &[Figure], outcome: &Outcome) -> Vec<String> {
    let mut row = figures(record, columns);
    if recovers(outcome) {
        row.push(record.recovered.map_or_else(
            || "-".to_owned(),
            |share| match (share.yes, share.of) {
                (yes, of) if yes == of => "yes".to_owned(),
                (0, _) => "no".to_owned(),
                (yes, of) => {
                    let (low, high) = share.wilson();
                    format!("{yes} of {of} ({:.0}-{:.0} %)", low * 100.0, high * 100.0)
                }
            },
        ));
    }
    row
}

/// Figures that are read as percentages.
const fn is_share(figure: Figure) -> bool {
    matches!(
        figure,
        Figure::SuccessShare
            | Figure::GaveUpShare
            | Figure::StillTrying
            | Figure::GoodputShare
            | Figure::Utilisation
            | Figure::WastedWork
    )
}

fn said(figure: Figure, value: f64) -> String {
    if is_share(figure) { percent(value) } else { number(value) }
}

/// A number as short as it says what it has to.
pub(crate) fn number(value: f64) -> String {
    decimals(value, places(value))
}

/// A deviation with the decimals of what it belongs to; nothing if those are zeros.
fn spread(mean: f64, sd: f64) -> String {
    let digits = decimals(sd, places(mean));
    if digits.contains(|digit| ('1'..='9').contains(&digit)) { format!(" ±{digits}") } else { String::new() }
}

fn places(value: f64) -> usize {
    match value.abs() {
        0.0 => 0,
        value if value >= 1000.0 => 0,
        value if value >= 100.0 => 1,
        value if value >= 10.0 => 2,
        value if value >= 0.1 => 3,
        // Three digits that count, whatever the size.
        value => (2.0 - value.log10().floor()).min(12.0) as usize,
    }
}

fn decimals(value: f64, places: usize) -> String {
    if value.fract() == 0.0 && places <= 1 { format!("{value:.0}") } else { format!("{value:.places$}") }
}

/// The widest column.
const MOST_WIDTH: usize = 10_000;

/// What is shown of a name in any case.
const LEAST_NAME: usize = 12;

/// Columns side by side: the first to the left, the others to the right. Those for which there is no room stand below,
/// beside the first once more; of a first that leaves no room for another as much is shown as does, so that a terminal breaks no name.
pub(crate) fn aligned(rows: &[Vec<String>], room: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    if columns == 0 {
        return String::new();
    }
    // A column that is wider than any window is no column, and the formatting macros take no more than 16 bits.
    let width = |row: &Vec<String>, column: usize| screen::width(&row[column]).min(MOST_WIDTH);
    let width = |column: usize| rows.iter().map(|row| width(row, column)).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns).map(width).collect();
    let widest = widths.iter().skip(1).max().map_or(0, |width| 2 + width);
    let of_a_name = room.saturating_sub(widest).max(LEAST_NAME);
    widths[0] = widths[0].min(of_a_name);
    let mut blocks = Vec::new();
    let mut begin = 1;
    while begin < columns || blocks.is_empty() {
        let mut taken = widths.first().copied().unwrap_or(0);
        let fits = |width: &&usize| {
            taken += 2 + **width;
            taken <= room
        };
        let end = begin + widths.iter().skip(begin).take_while(fits).count().max(1);
        blocks.push(block(rows, &widths, of_a_name, begin..end.min(columns)));
        begin = end;
    }
    blocks.join("\n")
}

fn block(rows: &[Vec<String>], widths: &[usize], of_a_name: usize, columns: Range<usize>) -> String {
    let mut out = String::new();
    for row in rows {
        let mut line = row.first().map_or_else(String::new, |name| screen::short(name, of_a_name));
        line.push_str(&" ".repeat(widths[0].saturating_sub(screen::width(&line))));
        for (cell, width) in row[columns.clone()].iter().zip(&widths[columns.clone()]) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn footer(outcome: &Outcome, view: View) -> String {
    let line = |text: String| wrap_named(&text, view.columns.unwrap_or(usize::MAX));
    let seeds = || outcome.records.iter().map(|record| record.seeds);
    let (fewest, most) = (seeds().min().unwrap_or(0), seeds().max().unwrap_or(0));
    let runs = match (fewest, most) {
        (1, 1) => "1 run".to_owned(),
        (fewest, most) if fewest == most => format!("{most} runs"),
        // Somebody has interrupted it.
        (fewest, most) => format!("{fewest} to {most} runs"),
    };
    let mut out = line(format!("engine {}, {runs} a policy", engines(outcome)));
    for (name, measured, expected) in &outcome.extras.checks {
        let is_of_layer = name.contains(": attempts of ");
        let name = escape(name);
        if let Some(expected) = expected {
            out.push_str(&line(format!("{name}: {}, by theory {}", checked(*measured), checked(*expected))));
        } else if is_of_layer {
            out.push_str(&line(format!("{name}: {} a call", number(*measured))));
        }
    }
    out
}

/// The engine; where there are several, the policies of all but the first are named.
fn engines(outcome: &Outcome) -> String {
    let mut engines: Vec<(Engine, Vec<&str>)> = Vec::new();
    for record in &outcome.records {
        match engines.iter_mut().find(|(engine, _)| *engine == record.engine) {
            Some((_, policies)) => policies.push(&record.policy),
            None => engines.push((record.engine, vec![&record.policy])),
        }
    }
    let named = |(place, (engine, policies)): (usize, &(Engine, Vec<&str>))| match place {
        0 => engine.as_str().to_owned(),
        _ => format!("{} for {}", engine.as_str(), escape(&policies.join(" and "))),
    };
    engines.iter().enumerate().map(named).collect::<Vec<_>>().join(", ")
}

/// A number that is compared with another one: both have four decimals, if that is readable.
fn checked(value: f64) -> String {
    if value.abs() < 1e9 { format!("{value:.4}") } else { format!("{value:.4e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent_sim::{Scenario, Service, World, simulate};

    #[test]
    fn numbers_are_as_short_as_they_may_be() {
        let texts = [0.0, 0.25, 8.017_8, 25.806_2, 163.39, 100_000.0, 382_850.4, 0.000_051_2].map(number);
        assert_eq!(texts, ["0", "0.250", "8.018", "25.81", "163.4", "100000", "382850", "0.0000512"]);
        assert_eq!([0.001, 0.0004, 0.0].map(|sd| spread(8.0178, sd)), [" ±0.001", "", ""]);
    }

    #[test]
    fn engines_and_runs_that_differ_are_said() {
        let scenario = Scenario::new("x", World::Service(Service::herd(1, 5.0)))
            .policy("a", relent::Policy::default())
            .policy("b", relent::Policy::default())
            .policy("c", relent::Policy::default());
        let mut outcome = simulate(&scenario).unwrap();
        assert_eq!(footer(&outcome, View { columns: None, unicode: true }), "engine exact, 1 run a policy\n");
        outcome.records[1].engine = Engine::Count;
        (outcome.records[0].seeds, outcome.records[1].seeds) = (2, 2);
        assert_eq!(
            footer(&outcome, View { columns: None, unicode: true }),
            "engine exact, count for b, 1 to 2 runs a policy\n"
        );
        assert_eq!([64.0, 1e32].map(checked), ["64.0000", "1.0000e32"]);
    }

    #[test]
    fn columns_without_room_stand_below() {
        let row = |name: &str| ["a long name", "1.00", "22.00", "333.00"].map(|cell| cell.replace("a long name", name));
        let rows = [row("policy").to_vec(), row("b").to_vec()];
        let wide = "policy  1.00  22.00  333.00\nb       1.00  22.00  333.00\n";
        assert_eq!((aligned(&rows, usize::MAX).as_str(), aligned(&rows, 27).as_str()), (wide, wide));
        let narrow = "policy  1.00  22.00\nb       1.00  22.00\n\npolicy  333.00\nb       333.00\n";
        assert_eq!(aligned(&rows, 26), narrow);
        assert_eq!(aligned(&rows, 1).lines().count(), 8, "a column at least");
        assert_eq!(aligned(&[], 80), "");
        // A name leaves room for a column, and nothing of it is on the next line of a terminal.
        let long = [vec!["p".repeat(90), "1".to_owned()], vec!["字".repeat(90), "22".to_owned()]];
        let told = aligned(&long, 40);
        assert_eq!(told, format!("{}~   1\n{}~   22\n", "p".repeat(35), "字".repeat(17)));
        assert!(told.lines().all(|line| screen::width(line) <= 40), "{told}");
        assert!(aligned(&long, usize::MAX).starts_with(&"p".repeat(90)));
    }
}
