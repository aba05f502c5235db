//! A table of colours: a value for each of two settings.

use super::svg::{LEFT, RIGHT, WIDTH, escape, write_head, write_title};
use std::fmt::Write;

/// Values by column and row.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// What it shows.
    pub title: String,
    /// What the values are.
    pub value_name: String,
    /// What the columns are, and each of them.
    pub columns: (String, Vec<String>),
    /// What the rows are, and each of them, from below.
    pub rows: (String, Vec<String>),
    /// The values, row by row from below; `None` where there is none.
    pub cells: Vec<Vec<Option<f64>>>,
    /// A cell that is framed, by row and column, and what is said about it.
    pub framed: Option<(usize, usize, String)>,
}

/// Cells with more neighbours than this in a row are too small for a number.
const MOST_WRITTEN: usize = 12;
const TOP: f64 = 56.0;

impl Grid {
    /// The grid as SVG: the darker a cell, the greater its value, on a scale of ratios.
    pub fn draw(&self) -> String {
        let mut out = String::new();
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let (columns, rows) = (self.columns.1.len().max(1), self.rows.1.len().max(1));
        let written = columns <= MOST_WRITTEN;
        let (wide, high) = ((WIDTH - LEFT - RIGHT) / columns as f64, if written { 34.0 } else { 320.0 / rows as f64 });
        let ground = TOP + high * rows as f64;
        write_head(out, &self.title, ground + 52.0, 2)?;
        write_title(out, &self.title)?;
        writeln!(out, "<text x=\"{LEFT}\" y=\"42\">{}</text>", escape(&self.value_name))?;
        writeln!(out, "<text class=\"end\" x=\"{}\" y=\"42\">{}</text>", LEFT - 8.0, escape(&self.rows.0))?;
        let (least, most) = self.range();
        for (r, c, value) in self.values() {
            let (x, y) = (LEFT + wide * c as f64, ground - high * (r + 1) as f64);
            let share = if most > least { (value / least).ln() / (most / least).ln() } else { 0.0 };
            let opacity = opacity(share);
            writeln!(
                out,
                "<rect class=\"s1\" fill=\"currentColor\" fill-opacity=\"{opacity:.2}\" x=\"{x:.1}\" y=\"{y:.1}\" \
                 width=\"{:.1}\" height=\"{:.1}\"/>",
                wide - 1.0,
                high - 1.0
            )?;
            if written {
                let (x, y) = (x + wide / 2.0, y + high / 2.0 + 4.5);
                writeln!(out, "<text class=\"mid\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", short(value))?;
            }
        }
        for (r, c) in self.empty() {
            let (x, y) = (LEFT + wide * c as f64 + wide / 2.0, ground - high * (r as f64 + 0.5));
            write_none(out, x, y, (wide.min(high) / 6.0).min(4.0))?;
        }
        if most > 0.0 {
            self.write_scale(out, ground + 42.0, (least, most))?;
        }
        if let Some((r, c, words)) = &self.framed {
            let (x, y) = (LEFT + wide * *c as f64, ground - high * (r + 1) as f64);
            let frame = "<rect class=\"s0\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2.5\"";
            writeln!(out, "{frame} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\"/>")?;
            let end = WIDTH - RIGHT;
            writeln!(out, "<text class=\"end\" x=\"{end}\" y=\"42\">framed: {}</text>", escape(words))?;
        }
        self.write_labels(out, wide, high, ground)
    }

    /// What the colours mean, from the least value to the greatest, and what a cell without one.
    fn write_scale(&self, out: &mut String, y: f64, (least, most): (f64, f64)) -> std::fmt::Result {
        const STEPS: usize = 8;
        const STEP: f64 = 14.0;
        let right = WIDTH - RIGHT - 44.0;
        let left = right - STEP * STEPS as f64;
        writeln!(out, "<text class=\"end\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>", left - 6.0, short(least))?;
        for step in 0..STEPS {
            let opacity = opacity(step as f64 / (STEPS - 1) as f64);
            let x = left + STEP * step as f64;
            let shape = format!("M{x:.1} {:.1}h{STEP}v10h-{STEP}z", y - 10.0);
            writeln!(out, "<path class=\"s1\" fill=\"currentColor\" fill-opacity=\"{opacity:.2}\" d=\"{shape}\"/>")?;
        }
        writeln!(out, "<text class=\"end\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>", WIDTH - RIGHT, short(most))?;
        if self.empty().next().is_some() {
            write_none(out, LEFT + 4.0, y - 5.0, 4.0)?;
            writeln!(out, "<text x=\"{:.1}\" y=\"{y:.1}\">no result</text>", LEFT + 14.0)?;
        }
        Ok(())
    }

    /// Where there is no value.
    fn empty(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let row = |(r, row): (usize, &'_ Vec<Option<f64>>)| {
            let none: Vec<_> = row.iter().enumerate().filter(|(_, cell)| cell.is_none()).map(|(c, _)| (r, c)).collect();
            none
        };
        self.cells.iter().enumerate().flat_map(row)
    }

    fn write_labels(&self, out: &mut String, wide: f64, high: f64, ground: f64) -> std::fmt::Result {
        // As many as fit.
        let every = |count: usize, room: f64| ((count as f64 / room).ceil() as usize).max(1);
        for (c, name) in self.columns.1.iter().enumerate().step_by(every(self.columns.1.len(), 10.0)) {
            let x = LEFT + wide * (c as f64 + 0.5);
            writeln!(out, "<text class=\"mid\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>", ground + 18.0, escape(name))?;
        }
        for (r, name) in self.rows.1.iter().enumerate().step_by(every(self.rows.1.len(), 12.0)) {
            let y = ground - high * (r as f64 + 0.5) + 4.5;
            writeln!(out, "<text class=\"end\" x=\"{}\" y=\"{y:.1}\">{}</text>", LEFT - 8.0, escape(name))?;
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        writeln!(
            out,
            "<text class=\"mid\" x=\"{middle}\" y=\"{:.1}\">{}</text>\n</svg>",
            ground + 42.0,
            escape(&self.columns.0)
        )
    }

    fn values(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let row = |(r, row)| {
            let cell = move |(c, value): (usize, &Option<f64>)| value.map(|value| (r, c, value.max(0.01)));
            <[Option<f64>]>::iter(row).enumerate().filter_map(cell)
        };
        self.cells.iter().map(Vec::as_slice).enumerate().flat_map(row)
    }

    /// The least and the greatest value.
    fn range(&self) -> (f64, f64) {
        self.values()
            .fold((f64::INFINITY, 0.0), |(least, most), (_, _, value)| (least.min(value), f64::max(most, value)))
    }
}

/// How dark a cell is, from the share of the scale.
fn opacity(share: f64) -> f64 {
    0.06 + 0.84 * share
}

/// A small cross.
fn write_none(out: &mut String, x: f64, y: f64, arm: f64) -> std::fmt::Result {
    let (left, top, across) = (x - arm, y - arm, 2.0 * arm);
    let shape = format!("M{left:.1} {top:.1}l{across:.1} {across:.1}m0 -{across:.1}l-{across:.1} {across:.1}");
    writeln!(out, "<path fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.35\" d=\"{shape}\"/>")
}

/// Three digits.
fn short(value: f64) -> String {
    if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(size: usize) -> Grid {
        let names = |what: &str| (what.to_owned(), (0..size).map(|n| n.to_string()).collect::<Vec<_>>());
        let cell = |r: usize, c: usize| (c >= r).then_some(1.0 + (r + c) as f64);
        let cells = (0..size).map(|r| (0..size).map(|c| cell(r, c)).collect()).collect();
        Grid { title: "t".into(), value_name: "v".into(), columns: names("x"), rows: names("y"), cells, framed: None }
    }

    #[test]
    fn small_grids_have_numbers_and_large_ones_a_frame() {
        let framed = Some((1, 2, "the <best>".to_owned()));
        let (small, large) = (grid(3).draw(), Grid { framed, ..grid(40) }.draw());
        assert!(small.contains(">5.00<") && !small.contains("framed"), "{small}");
        assert_eq!(small.matches("<rect").count(), 6);
        assert!(large.contains("framed: the &lt;best&gt;"));
        assert_eq!(large.matches("<rect").count(), 820 + 1);
        assert!(large.contains(">1.00<") && large.contains(">79.0<"), "the scale has its ends");
        assert_eq!(large.matches("stroke-opacity=\"0.35\"").count(), 780 + 1, "what has no result is marked, and said");
    }

    #[test]
    fn nothing_is_drawn_as_nothing() {
        let empty = Grid::default().draw();
        assert!(empty.ends_with("</svg>\n") && !empty.contains("NaN"), "{empty}");
    }
}
