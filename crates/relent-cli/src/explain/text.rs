//! One policy explained to people: what it says, its schedule as a table and a plot, the whole call, warnings.

use super::{
    call::{self, WholeCall, latest_start},
    chart::chart,
    rows::{Rows, Then, rows},
    subject::{InShort, Subject, as_flags},
};
use crate::{
    breaks::{without_messages, wrap, wrap_named},
    escape::escape,
    plot::terminal,
};
use relent::{Bounds, Row, duration::Human};
use std::{fmt::Write, time::Duration};

/// How much of it is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// Rows of the schedule, at most.
    pub(super) rows: usize,
    /// Columns of the terminal, if it has any.
    pub(super) columns: Option<usize>,
    /// Whether there is a plot.
    pub(super) plot: bool,
}

impl View {
    /// How wide a paragraph is.
    pub(super) fn width(self) -> usize {
        self.columns.unwrap_or(80)
    }

    /// A line that begins with a name that somebody chose, so that no part of it is like a message.
    pub(super) fn headed(self, line: &str) -> String {
        without_messages(&wrap_named(line, self.columns.unwrap_or(usize::MAX))).into_owned()
    }
}

/// The explanation of one policy.
pub(super) fn explain(subject: &Subject, view: View) -> String {
    let mut out = view.headed(&format!("{}: {}", subject.shown(), InShort(&subject.policy)));
    if let Some(source) = subject.source {
        let _ = writeln!(out, "source: {source}");
    }
    out.push('\n');
    out.push_str(&settings(subject, view));
    let rows = rows(&subject.policy, view.rows);
    if !rows.shown.is_empty() {
        out.push('\n');
        out.push_str(&table(&rows, latest_start(&subject.policy)));
    }
    out.push('\n');
    out.push_str(&wrap(&whole_call(subject), view.width()));
    if view.plot && rows.shown.len() > 1 {
        out.push('\n');
        out.push_str(&wrap("Delay before each attempt: the mean, and the band from least to greatest.", view.width()));
        let chart = chart(std::slice::from_ref(subject), view.rows);
        out.push_str(&terminal::draw(&chart, view.width().min(MOST_WIDTH), 2));
    }
    out.push_str(&remarks(subject, view.width()));
    if let Some(flags) = subject.source.and_then(|_| as_flags(&subject.policy)) {
        let _ = write!(out, "\nThe same with relent:\n  relent run {flags} -- COMMAND\n");
    }
    out
}

/// Wider plots are no clearer.
pub(super) const MOST_WIDTH: usize = 76;

/// For a terminal that knows no more than ASCII: the dots of a plot and the signs that relent writes itself.
pub(super) fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{2800}' => out.push(' '),
            // Braille counts its dots in bits: a line has more of them than a band.
            '\u{2801}'..='\u{28ff}' => out.push(if (u32::from(c) & 0xff).count_ones() > 1 { '*' } else { '.' }),
            '│' => out.push('|'),
            '┤' | '└' => out.push('+'),
            '─' => out.push('-'),
            '±' => out.push_str("+-"),
            c => out.push(c),
        }
    }
    out
}

fn settings(subject: &Subject, view: View) -> String {
    let widths = |of: fn(&super::setting::Setting) -> &str| {
        subject.settings.iter().map(|setting| of(setting).chars().count()).max().unwrap_or(0)
    };
    let (key, value) = (widths(|setting| setting.key), widths(|setting| &setting.value));
    let mut out = String::new();
    for setting in &subject.settings {
        let line = format!("  {:key$}  {:value$}  {}", setting.key, escape(&setting.value), escape(&setting.from));
        out.push_str(&view.headed(&line));
    }
    out
}

/// The schedule as a table, its columns as wide as they must be.
fn table(rows: &Rows, limit: Option<Duration>) -> String {
    const HEADER: [&str; 7] = ["attempt", "min", "mean", "max", "min", "mean", "max"];
    let mut cells: Vec<[String; 7]> = vec![HEADER.map(str::to_owned)];
    cells.extend(rows.shown.iter().map(|row| {
        let [a, b, c] = in_brief(row.delay);
        let [d, e, f] = in_brief(row.total);
        [row.attempt.to_string(), a, b, c, d, e, f]
    }));
    let widths: [usize; 7] =
        std::array::from_fn(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let delay = widths[1] + widths[2] + widths[3] + 4;
    let mut out = format!("  {:>w$}   {:<delay$}   sum of delays\n", "", "delay before it", w = widths[0]);
    for (nth, row) in cells.iter().enumerate() {
        let [attempt, a, b, c, d, e, f] = row;
        let [w0, w1, w2, w3, w4, w5, w6] = widths;
        let late = nth.checked_sub(1).map_or("", |nth| lateness(&rows.shown[nth], limit));
        let line = format!("  {attempt:>w0$}   {a:>w1$}  {b:>w2$}  {c:>w3$}   {d:>w4$}  {e:>w5$}  {f:>w6$}  {late}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let then = match rows.then {
        Then::End => return out,
        Then::Same(None) if limit.is_some() => "and so on until time is up, the delays the same".to_owned(),
        Then::Same(None) => "and so on for ever, the delays the same".to_owned(),
        Then::Same(Some(last)) => format!("and so on until attempt {last}, the delays the same"),
        Then::More(None) if limit.is_some() => "and so on until time is up".to_owned(),
        Then::More(None) => "and so on for ever".to_owned(),
        Then::More(Some(last)) => format!("and so on until attempt {last}"),
    };
    let _ = writeln!(out, "  {:>w$}   {then}", "...", w = widths[0]);
    out
}

/// How an attempt stands to the limit of time, attempts taking no time.
fn lateness(row: &Row, limit: Option<Duration>) -> &'static str {
    match limit {
        Some(limit) if row.total.min > limit => "too late",
        Some(limit) if row.total.mean > limit => "mostly too late",
        Some(limit) if row.total.max > limit => "sometimes too late",
        _ => "",
    }
}

fn in_brief(bounds: Bounds) -> [String; 3] {
    [bounds.min, bounds.mean, bounds.max].map(brief)
}

/// A duration rounded to what matters in a table.
pub(super) fn brief(duration: Duration) -> String {
    let human = Human(duration);
    match duration.as_secs() {
        0..60 => format!("{human:.2}"),
        60..600 => format!("{human:.1}"),
        _ => format!("{human:.0}"),
    }
}

fn whole_call(subject: &Subject) -> String {
    let call = WholeCall::of(&subject.policy);
    let settings = subject.policy.settings();
    let mut out = String::from("A call that keeps failing ");
    let (Some(waits), Some(mean)) = (call.waits, call.mean_attempts) else {
        out.push_str("never ends: neither attempts nor time are limited.\n");
        return out;
    };
    match (settings.max_attempts, call.most_attempts) {
        _ if call.most_attempts == Some(1) => out.push_str("is not retried"),
        (Some(most), _) if mean < f64::from(most) - 0.05 => {
            let _ = write!(out, "makes {mean:.1} of {most} attempts on average");
        }
        (_, Some(most)) if mean > f64::from(most) - 0.05 => {
            let _ = write!(out, "makes {most} attempts");
        }
        _ => {
            let _ = write!(out, "makes {mean:.1} attempts on average");
        }
    }
    if call.most_attempts != Some(1) {
        let _ = write!(out, " and waits {}", brief(waits.mean));
        if waits.min < waits.max {
            let _ = write!(out, " on average, {} at worst", brief(waits.max));
        }
    }
    if let Some(most) = subject.stops_after() {
        let most = Human(most);
        let _ = write!(out, ".\nIt ends before that once {most} have passed, attempts included; a delay may pass them");
    }
    match (call.worst, settings.attempt_timeout) {
        (Some(worst), _) if settings.timeout == Some(worst) => {
            let _ = writeln!(out, ".\nAfter {} its timeout ends it, an attempt under way included.", Human(worst));
        }
        (Some(worst), Some(timeout)) => {
            let _ = writeln!(out, ".\nWith attempts of up to {} it ends within {}.", Human(timeout), brief(worst));
        }
        _ => out.push_str(".\nThe time attempts take comes on top; no attempt_timeout limits it.\n"),
    }
    if !settings.spread.is_zero() {
        let spread = call::spread(&subject.policy);
        let (most, mean) = (Human(spread), brief(spread / 2));
        let _ = writeln!(out, "Before the first attempt it waits up to {most}, {mean} on average (spread).");
    }
    out
}

/// Notes and warnings, each with what to do about it.
pub(super) fn remarks(subject: &Subject, width: usize) -> String {
    let mut out = String::new();
    for warning in subject.policy.warnings() {
        let word = if warning.is_note() { "note" } else { "warning" };
        out.push('\n');
        out.push_str(&wrap(&format!("{word}: {warning}\nhint: {}\n", warning.hint()), width));
    }
    for (nth, note) in subject.notes.iter().enumerate() {
        out.push_str(if nth == 0 { "\n" } else { "" });
        out.push_str(&wrap(&format!("note: {}\n", escape(note)), width));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("one two three\nfour\n", 7), "one two\nthree\nfour\n");
        assert_eq!(wrap("endless words", 3), "endless\nwords\n");
    }

    #[test]
    fn durations_in_brief() {
        let brief = |nanos| brief(Duration::from_nanos(nanos));
        assert_eq!(brief(1_584_893_192), "1.58s");
        assert_eq!(brief(99_999_999_999), "1m40s");
        assert_eq!(brief(127_500_000_000), "2m7.5s");
        assert_eq!(brief(4_000_400_000_000), "1h6m40s");
        assert_eq!(brief(0), "0s");
    }
}
