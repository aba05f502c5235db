//! A chart on a terminal, in braille: two dots across and four down in every character.
//!
//! The band is a loose pattern, the line a dense one, so that they differ without colour.

use super::{Chart, Series};
use std::fmt::Write;

/// Draws a chart `width` characters wide, with `lines` lines between two ticks of the vertical axis, and its labels
/// below; each line ended. A width below 24 is drawn as 24.
pub fn draw(chart: &Chart, width: usize, lines: usize) -> String {
    let width = width.max(24);
    let height = chart.y_ticks.len().saturating_sub(1).max(1) * lines.max(1) + 1;
    let margin = chart.y_ticks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(0);
    let mut canvas = Canvas::new(width.saturating_sub(margin + 2).max(4), height);
    let scale = Scale::new(chart, &canvas);
    for series in &chart.series {
        canvas.band(series, &scale);
        canvas.line(series, &scale);
    }
    let mut out = String::new();
    for (row, line) in canvas.rows().enumerate() {
        let _ = writeln!(out, "{:>margin$} {}{}", scale.label(chart, row), scale.axis(chart, row), line.trim_end());
    }
    let _ = writeln!(out, "{:>margin$} └{}", "", "─".repeat(canvas.width));
    let _ = writeln!(out, "{:>margin$}  {}", "", x_labels(chart, &scale, canvas.width));
    out
}

/// From the chart's values to dots.
struct Scale {
    left: f64,
    x: f64,
    most: f64,
    y: f64,
    height: usize,
}

impl Scale {
    fn new(chart: &Chart, canvas: &Canvas) -> Scale {
        let ((left, right), most) = (chart.x_range(), chart.y_most());
        // Ticks lie in the middle of a line, so that labels stand where they belong.
        let (across, down) = ((canvas.width * 2 - 1) as f64, ((canvas.height - 1) * 4) as f64);
        Scale { left, x: across / (right - left), most, y: down / most, height: canvas.height }
    }

    fn column(&self, x: f64) -> usize {
        ((x - self.left) * self.x).round().max(0.0) as usize
    }

    fn dot(&self, y: f64) -> usize {
        (y.clamp(0.0, self.most) * self.y).round() as usize + 1
    }

    /// The row of characters, from the top, in which a value is.
    fn row(&self, y: f64) -> usize {
        self.height - 1 - (self.dot(y) / 4).min(self.height - 1)
    }

    fn label<'a>(&self, chart: &'a Chart, row: usize) -> &'a str {
        chart.y_ticks.iter().rfind(|tick| self.row(tick.at) == row).map_or("", |tick| &tick.label)
    }

    fn axis(&self, chart: &Chart, row: usize) -> char {
        if self.label(chart, row).is_empty() { '│' } else { '┤' }
    }
}

/// The labels of the horizontal axis, each centred below its place, those left out that would touch the one before.
fn x_labels(chart: &Chart, scale: &Scale, width: usize) -> String {
    let mut line = String::new();
    for tick in &chart.x_ticks {
        let length = tick.label.chars().count();
        let at = (scale.column(tick.at) / 2).saturating_sub(length / 2).min(width.saturating_sub(length));
        let free = if line.is_empty() { 0 } else { line.chars().count() + 1 };
        if at >= free {
            let pad = at - line.chars().count();
            let _ = write!(line, "{:pad$}{}", "", tick.label);
        }
    }
    line
}

/// Dots, a character for every two by four of them.
struct Canvas {
    width: usize,
    height: usize,
    cells: Vec<u8>,
}

/// The bit of a dot in a braille character, by its column and its row from the top (Unicode, block U+2800).
const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

impl Canvas {
    fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, cells: vec![0; width * height] }
    }

    /// Sets a dot, counted from the left and from below.
    fn set(&mut self, x: usize, y: usize) {
        let (x, y) = (x.min(self.width * 2 - 1), y.min(self.height * 4 - 1));
        let from_top = self.height * 4 - 1 - y;
        self.cells[from_top / 4 * self.width + x / 2] |= BITS[x % 2][from_top % 4];
    }

    fn band(&mut self, series: &Series, scale: &Scale) {
        each_column(series, scale, |x, low, _, high| {
            for y in scale.dot(low)..=scale.dot(high) {
                if low < high && (x + y).is_multiple_of(2) && x.is_multiple_of(2) {
                    self.set(x, y);
                }
            }
        });
    }

    fn line(&mut self, series: &Series, scale: &Scale) {
        let mut before: Option<usize> = None;
        each_column(series, scale, |x, _, middle, _| {
            let y = scale.dot(middle);
            let from = before.map_or(y, |before| before.min(y) + usize::from(before != y));
            for between in from.min(y)..=before.unwrap_or(y).max(y) {
                self.set(x, between);
            }
            before = Some(y);
        });
    }

    fn rows(&self) -> impl Iterator<Item = String> {
        let character = |&cell: &u8| match cell {
            0 => ' ',
            cell => char::from_u32(0x2800 + u32::from(cell)).unwrap_or(' '),
        };
        self.cells.chunks(self.width).map(move |row| row.iter().map(character).collect())
    }
}

/// Calls with every column of dots between the first and the last point, and the values in between.
fn each_column(series: &Series, scale: &Scale, mut draw: impl FnMut(usize, f64, f64, f64)) {
    if let [point] = series.points[..] {
        draw(scale.column(point.x), point.low, point.middle, point.high);
    }
    for (nth, pair) in series.points.windows(2).enumerate() {
        let (a, b) = (pair[0], pair[1]);
        let (from, to) = (scale.column(a.x), scale.column(b.x));
        for column in from + usize::from(nth > 0)..=to {
            let t = if to > from { (column - from) as f64 / (to - from) as f64 } else { 1.0 };
            let between = |a: f64, b: f64| a + (b - a) * t;
            draw(column, between(a.low, b.low), between(a.middle, b.middle), between(a.high, b.high));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Point, Tick, number_ticks};

    fn chart(points: Vec<Point>) -> Chart {
        let x_ticks = points.iter().map(|point| Tick { at: point.x, label: point.x.to_string() }).collect();
        let series = vec![Series { name: "a".into(), points, ..Series::default() }];
        Chart { x_ticks, y_ticks: number_ticks(4.0, 2), series, ..Chart::default() }
    }

    #[test]
    fn a_line_and_its_band() {
        let band = |x: f64| Point { x, low: 0.0, middle: x / 2.0, high: x };
        let drawn = draw(&chart([0.0, 1.0, 2.0, 3.0, 4.0].map(band).to_vec()), 24, 2);
        let expected = "\
4 ┤                   ⡀⡀
  │              ⡀⡀⡀⡂⡂⡂⡂
2 ┤         ⡀⡀⡀⡂⡂⡂⡂⡂⣂⣂⡢⡦
  │    ⡀⡀⣂⣂⣂⡢⡦⡦⡒⡒⡊⡋⡋⡂⡂⡂⡂
0 ┤⠤⠖⠒⠒⠋⠋⠃⠂⠂⠂⠂⠂⠂⠂⠂⠂⠂⠂⠂⠂⠂
  └─────────────────────
   0    1    2    3    4
";
        assert_eq!(drawn, expected, "\n{drawn}");
    }

    #[test]
    fn every_size_can_be_drawn() {
        for points in [vec![], vec![Point::of(1.0, 0.0)], vec![Point::of(1.0, 1e300), Point::of(1.0, 3.0)]] {
            for (width, lines) in [(0, 0), (24, 3), (300, 50)] {
                let drawn = draw(&chart(points.clone()), width, lines);
                assert_eq!(drawn.lines().count(), 2 * lines.max(1) + 3);
                assert!(drawn.lines().all(|line| line.chars().count() <= width.max(24)), "\n{drawn}");
            }
        }
    }

    #[test]
    fn labels_never_touch() {
        let points: Vec<Point> = (0..100).map(|x| Point::of(f64::from(x), 1.0)).collect();
        let drawn = draw(&chart(points), 40, 3);
        let labels = drawn.lines().last().unwrap();
        assert!(labels.split_whitespace().all(|label| label.len() <= 2), "{labels}");
    }
}
