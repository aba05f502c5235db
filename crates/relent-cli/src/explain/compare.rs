//! Policies side by side: what they say, their delays attempt by attempt, and what to know about each.

use super::{
    call::WholeCall,
    chart::chart,
    rows::{Then, rows},
    subject::{InShort, Subject},
    text::{MOST_WIDTH, View, brief, remarks},
};
use crate::{plot::terminal, screen};
use relent::Row;
use std::fmt::Write;

/// The explanation of several policies.
pub(super) fn compare(subjects: &[Subject], view: View) -> String {
    let mut out = String::new();
    for subject in subjects {
        out.push_str(&view.headed(&format!("{}: {}", subject.shown(), InShort(&subject.policy))));
    }
    for part in fitting(subjects, view.width()) {
        out.push('\n');
        out.push_str(&table(part, view));
    }
    if view.plot {
        let whole = chart(subjects, view.rows);
        for (nth, subject) in subjects.iter().enumerate() {
            let alone = crate::plot::Chart { series: vec![whole.series[nth].clone()], ..whole.clone() };
            if alone.series[0].points.len() > 1 {
                out.push('\n');
                out.push_str(&view.headed(&subject.shown()));
                out.push_str(&terminal::draw(&alone, view.width().min(MOST_WIDTH), 1));
            }
        }
    }
    for subject in subjects {
        let remarks = remarks(subject, view.width());
        if !remarks.is_empty() {
            out.push('\n');
            out.push_str(view.headed(&format!("{}:", subject.shown())).trim_end());
            out.push_str(&remarks);
        }
    }
    out
}

/// The least width of a column.
const COLUMN: usize = 22;

/// The subjects in groups that fit beside each other.
fn fitting(subjects: &[Subject], width: usize) -> impl Iterator<Item = &[Subject]> {
    subjects.chunks((width.saturating_sub(LABEL) / (COLUMN + 2)).max(1))
}

const LABEL: usize = 18;

fn table(subjects: &[Subject], view: View) -> String {
    // No terminal breaks a name.
    let of_each = |columns: usize| columns.saturating_sub(LABEL) / subjects.len().max(1);
    let room = view.columns.map_or(usize::MAX, |columns| of_each(columns).saturating_sub(2).max(COLUMN));
    let columns: Vec<Vec<String>> = subjects.iter().map(|subject| column(subject, view, room)).collect();
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = columns
        .iter()
        .map(|column| column.iter().map(|cell| screen::width(cell)).max().unwrap_or(0).max(COLUMN))
        .collect();
    let mut out = String::new();
    for row in 0..longest {
        let label = match row {
            0 => String::new(),
            row if row <= WHOLE.len() => WHOLE[row - 1].to_owned(),
            row => format!("before attempt {}", row - WHOLE.len() + 1),
        };
        let mut line = format!("{label:LABEL$}");
        for (column, width) in columns.iter().zip(&widths) {
            let cell = column.get(row).map_or("", String::as_str);
            let _ = write!(line, "  {cell}{}", " ".repeat(width.saturating_sub(screen::width(cell))));
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

const WHOLE: [&str; 3] = ["attempts", "waits, mean", "waits, at worst"];

fn column(subject: &Subject, view: View, room: usize) -> Vec<String> {
    let call = WholeCall::of(&subject.policy);
    let attempts = match (call.most_attempts, call.mean_attempts) {
        (Some(most), Some(mean)) if mean < f64::from(most) - 0.05 => format!("{mean:.1} of {most}"),
        (Some(most), _) => most.to_string(),
        (None, Some(mean)) => format!("{mean:.1} on average"),
        (None, None) => "no end".to_owned(),
    };
    let waits = |duration: Option<_>| duration.map_or("no end".to_owned(), brief);
    let mut cells = vec![
        screen::short(&subject.shown(), room),
        attempts,
        waits(call.waits.map(|w| w.mean)),
        waits(call.waits.map(|w| w.max)),
    ];
    let rows = rows(&subject.policy, view.rows);
    cells.extend(rows.shown.iter().map(delay));
    cells.push(match rows.then {
        Then::End => "gives up".to_owned(),
        Then::Same(_) => "and so on".to_owned(),
        Then::More(_) => "...".to_owned(),
    });
    cells
}

fn delay(row: &Row) -> String {
    let bounds = row.delay;
    if bounds.min == bounds.max {
        return brief(bounds.mean);
    }
    format!("{} ({} to {})", brief(bounds.mean), brief(bounds.min), brief(bounds.max))
}
