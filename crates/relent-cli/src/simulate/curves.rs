//! Load over time for people at a terminal: a strip of blocks for each policy, all to one scale.

use super::{View, table};
use crate::{
    breaks::{wrap, wrap_named},
    escape::escape,
    plot::bars,
    report::advice,
};
use relent_sim::{Outcome, Record};
use std::fmt::Write;

/// So many characters across, where there is room.
const WIDTH: usize = 72;
const HEIGHT: usize = 3;

/// Load over time for each policy; nothing where time means nothing.
pub(super) fn draw(outcome: &Outcome, view: View) -> String {
    let drawn: Vec<&Record> = table::shown(outcome).filter(|record| !record.plots.load.is_empty()).collect();
    let ends = drawn.iter().map(|record| record.plots.bin_s * record.plots.load.len() as f64).fold(0.0, f64::max);
    if ends <= 0.0 {
        return String::new();
    }
    let width = view.columns.map_or(WIDTH, |columns| columns.saturating_sub(LABEL + 2)).clamp(10, WIDTH);
    let column = ends / width as f64;
    let most = scale(outcome, &drawn, column, width);
    let scale = format!(
        "\nattempts a second over {}; full height is {}{}",
        seconds(ends),
        rounded(most / column),
        outcome.ideal.map_or_else(String::new, |ideal| format!(", the capacity is {}", rounded(ideal.capacity_per_s)))
    );
    let mut out = wrap(&scale, view.columns.unwrap_or(usize::MAX));
    for record in drawn {
        let columns: Vec<u32> = loads(record, column, width).iter().map(|load| units(*load, most)).collect();
        out.push('\n');
        out.push_str(&wrap_named(&escape(&record.policy), view.columns.unwrap_or(usize::MAX)));
        out.push_str(&framed(&bars(&columns, UNITS, HEIGHT), outcome, most / column));
        let _ = writeln!(out, "{}", axis(width, ends));
    }
    if view.unicode { out } else { ascii(&out) }
}

/// The load of each policy that a change helps, as it is and with the change that helps most.
pub(super) fn before_and_after(outcome: &Outcome, view: View) -> String {
    let width = view.columns.map_or(WIDTH, |columns| columns.saturating_sub(LABEL + 2)).clamp(10, WIDTH);
    let mut out = String::new();
    for before in outcome.records.iter().filter(|record| !record.plots.load.is_empty()) {
        let Some(remedied) = advice::best(outcome, &before.policy) else { continue };
        let pair = [before, &remedied.record];
        // A run that ends sooner because it recovers is drawn as long as the other.
        let ends = pair.iter().map(|record| record.plots.bin_s * record.plots.load.len() as f64).fold(0.0, f64::max);
        if ends <= 0.0 {
            continue;
        }
        let column = ends / width as f64;
        let most = scale(outcome, &pair, column, width);
        let names = ["as it is".to_owned(), format!("when you {}", advice::change(remedied))];
        for (record, name) in pair.iter().zip(names) {
            let columns: Vec<u32> = loads(record, column, width).iter().map(|load| units(*load, most)).collect();
            let title = format!("{}, {}", escape(&before.policy), escape(&name));
            out.push('\n');
            out.push_str(&wrap_named(&title, view.columns.unwrap_or(usize::MAX)));
            out.push_str(&framed(&bars(&columns, UNITS, HEIGHT), outcome, most / column));
            let _ = writeln!(out, "{}", axis(width, ends));
        }
    }
    if view.unicode { out } else { ascii(&out) }
}

/// Rows of blocks behind what they are high: the top one, and that in which the capacity lies.
fn framed(blocks: &str, outcome: &Outcome, height: f64) -> String {
    let of_capacity = outcome.ideal.map(|ideal| (1.0 - ideal.capacity_per_s / height) * HEIGHT as f64);
    let row = |(nth, line): (usize, &str)| {
        let has_capacity = of_capacity.is_some_and(|at| at.clamp(0.0, HEIGHT as f64 - 0.5) as usize == nth);
        let label = match nth {
            _ if has_capacity => "capacity".to_owned(),
            0 => format!("{}/s", rounded(height)),
            _ => String::new(),
        };
        format!("{label:>LABEL$} |{line}\n")
    };
    blocks.lines().enumerate().map(row).collect()
}

/// The axis of time.
fn axis(width: usize, ends: f64) -> String {
    let end = seconds(ends);
    format!("{:>LABEL$} 0s{end:>room$}", "", room = width.saturating_sub(1))
}

/// What stands before the blocks.
const LABEL: usize = 9;

/// Blocks in the three heights that ASCII has.
fn ascii(bars: &str) -> String {
    let plain = |c: char| match c {
        '▁' | '▂' => '_',
        '▃' | '▄' | '▅' => '=',
        '▆' | '▇' | '█' => '#',
        c => c,
    };
    bars.chars().map(plain).collect()
}

/// Bars count in whole units: so many are the full height.
const UNITS: u32 = 1 << 20;

fn units(load: f64, most: f64) -> u32 {
    let share = (load / most).min(1.0);
    if load > 0.0 { ((share * f64::from(UNITS)) as u32).max(1) } else { 0 }
}

/// Attempts in each column. A bin that lies in two columns is divided between them, or else columns with one bin more
/// than others would stand out.
fn loads(record: &Record, column: f64, width: usize) -> Vec<f64> {
    let mut loads = vec![0.0; width];
    let bin_s = record.plots.bin_s;
    for (i, bin) in record.plots.load.iter().enumerate() {
        let (begin, end) = (i as f64 * bin_s / column, (i + 1) as f64 * bin_s / column);
        let mut from = begin;
        for (place, load) in loads.iter_mut().enumerate().skip(begin as usize) {
            let to = end.min((place + 1) as f64);
            *load += (bin.first + bin.retries) * (to - from).max(0.0) / (end - begin);
            from = to;
            if to >= end {
                break;
            }
        }
    }
    loads
}

/// The full height: four times what the server can do, or what is reached if that is less. The first rush of a herd
/// would dwarf everything else.
fn scale(outcome: &Outcome, drawn: &[&Record], column: f64, width: usize) -> f64 {
    let reached = drawn.iter().flat_map(|record| loads(record, column, width)).fold(0.0, f64::max).max(1.0);
    outcome.ideal.map_or(reached, |ideal| reached.min(4.0 * ideal.capacity_per_s * column)).max(f64::MIN_POSITIVE)
}

fn seconds(value: f64) -> String {
    let rounded = (value * 1000.0).round() / 1000.0;
    format!("{:.1}", relent::duration::Human(std::time::Duration::try_from_secs_f64(rounded).unwrap_or_default()))
}

fn rounded(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent_sim::{LoadBin, Plots, Scenario, Service, World, simulate};

    #[test]
    fn an_even_load_is_even_in_every_column() {
        let scenario = Scenario::new("x", World::Service(Service::herd(1, 5.0))).policy("a", relent::Policy::default());
        let mut record = simulate(&scenario).unwrap().records.remove(0);
        for (bins, width) in [(100, 72), (72, 72), (10, 72), (2048, 7)] {
            let load = vec![LoadBin { first: 2.0, retries: 1.0, ..LoadBin::default() }; bins];
            record.plots = Plots { bin_s: 0.25, load, ..Plots::default() };
            let column = 0.25 * bins as f64 / width as f64;
            let (loads, each) = (loads(&record, column, width), 3.0 * bins as f64 / width as f64);
            assert!(loads.iter().all(|load| (load - each).abs() < 1e-6), "{bins}, {width}: {loads:?}");
        }
    }

    #[test]
    fn blocks_are_drawn_without_unicode() {
        assert_eq!(ascii("a ▁▄█\n"), "a _=#\n");
    }
}
