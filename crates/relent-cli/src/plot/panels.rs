//! Charts below one another in one picture, under one title and one legend: what is to be compared stands on one axis.

use super::{
    Chart, Mark, Series,
    svg::{CHARACTER, COLOURS, LEFT, RIGHT, Scale, WIDTH, escape, write_axes, write_head, write_marked, write_title},
};
use std::fmt::Write;

/// The height of a plot that is alone, and of one among others.
const ALONE: f64 = 280.0;
const AMONG: f64 = 104.0;

/// Draws charts below one another. Their horizontal axes should be the same; the last one is named.
pub fn draw(title: &str, charts: &[Chart]) -> String {
    let mut out = String::new();
    let _ = write_all(&mut out, title, charts);
    out
}

fn write_all(out: &mut String, title: &str, charts: &[Chart]) -> std::fmt::Result {
    let entries = legend(charts);
    let rows = entries.last().map_or(0.0, |entry| entry.row + 1.0);
    let first = 64.0 + 22.0 * rows;
    let each = if charts.len() == 1 { ALONE } else { AMONG };
    let step = each + if charts.len() == 1 { 0.0 } else { 50.0 };
    let height = first + step * charts.len() as f64 + if charts.len() == 1 { 56.0 } else { 24.0 };
    let colours = charts.iter().map(|chart| chart.series.len()).max().unwrap_or(0);
    write_head(out, title, height, colours)?;
    write_title(out, title)?;
    let what = charts.first().map_or("", |chart| &chart.y_name);
    writeln!(out, "<text x=\"{LEFT}\" y=\"42\">{}</text>", escape(what))?;
    write_legend(out, &entries)?;
    for (nth, chart) in charts.iter().enumerate() {
        let begin = first + step * nth as f64;
        let top = begin + if charts.len() == 1 { 0.0 } else { 22.0 };
        write_panel(out, chart, top, top + each, charts.len() > 1)?;
    }
    let (middle, below) = ((LEFT + WIDTH - RIGHT) / 2.0, height - 10.0);
    let x_name = charts.last().map_or("", |chart| &chart.x_name);
    writeln!(out, "<text class=\"mid\" x=\"{middle}\" y=\"{below}\">{}</text>\n</svg>", escape(x_name))
}

fn write_panel(out: &mut String, chart: &Chart, top: f64, ground: f64, named: bool) -> std::fmt::Result {
    let scale = Scale::new(chart, top, ground);
    write_axes(out, chart, &scale)?;
    // Their labels come last, so that nothing covers them.
    let last = |series: &&(usize, &Series)| matches!(series.1.mark, Mark::Reference);
    let series: Vec<(usize, &Series)> = chart.series.iter().enumerate().collect();
    for (nth, series) in series.iter().filter(|series| !last(series)).chain(series.iter().filter(last)) {
        write_marked(out, series, nth % COLOURS.len(), &scale)?;
    }
    write_dot_names(out, chart, &scale)?;
    if named {
        writeln!(out, "<text class=\"title\" x=\"{LEFT}\" y=\"{}\">{}</text>", top - 7.0, escape(&chart.title))?;
    }
    let end = WIDTH - RIGHT;
    if chart.note.is_empty() {
        return Ok(());
    }
    writeln!(out, "<text class=\"end\" x=\"{end}\" y=\"{}\">{}</text>", top - 7.0, escape(&chart.note))
}

/// The names of dots, where they cover neither a dot nor each other.
fn write_dot_names(out: &mut String, chart: &Chart, scale: &Scale) -> std::fmt::Result {
    let dots: Vec<(f64, f64, &str)> = chart
        .series
        .iter()
        .filter(|series| match series.mark {
            Mark::Dot => true,
            Mark::Reference => series.points.len() == 1,
            _ => false,
        })
        .flat_map(|series| series.points.iter().map(|at| (scale.x(at.x), scale.y(at.middle), series.name.as_str())))
        .collect();
    let mut taken: Vec<[f64; 4]> = dots.iter().map(|(x, y, _)| [x - 7.0, y - 7.0, x + 7.0, y + 7.0]).collect();
    // Nor a line between them.
    for series in chart.series.iter().filter(|series| series.mark == Mark::Solid) {
        taken.extend(series.points.windows(2).map(|pair| {
            let [(x, y), (to, down)] = [pair[0], pair[1]].map(|at| (scale.x(at.x), scale.y(at.middle)));
            [x.min(to) - 2.0, y.min(down) - 2.0, x.max(to) + 2.0, y.max(down) + 2.0]
        }));
    }
    for (x, y, name) in dots {
        let width = name.chars().count() as f64 * CHARACTER;
        let places = [0.0, -1.0, 1.0, -2.0, 2.0, -3.0, 3.0].into_iter().flat_map(|k| [(true, k), (false, k)]);
        let boxed = |(right, k): (bool, f64)| {
            let (left, middle) = (if right { x + 11.0 } else { x - 11.0 - width }, y + k * 14.0);
            [left, middle - 6.0, left + width, middle + 6.0]
        };
        let free = |place: &(bool, f64)| {
            let at = boxed(*place);
            let inside = at[0] > 0.0 && at[2] < WIDTH && at[1] > scale.top - 8.0 && at[3] < scale.ground;
            inside && !taken.iter().any(|t| t[0] < at[2] && t[2] > at[0] && t[1] < at[3] && t[3] > at[1])
        };
        let place = places.clone().find(free).unwrap_or((true, 0.0));
        let at = boxed(place);
        writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", at[0], at[1] + 10.5, escape(name))?;
        taken.push(at);
    }
    Ok(())
}

/// A name in the legend, and where it stands.
struct Entry<'a> {
    name: &'a str,
    colour: usize,
    area: bool,
    solid: bool,
    x: f64,
    row: f64,
}

/// The series of the first chart, in rows. Dots and references have their names beside them.
fn legend(charts: &[Chart]) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let (mut x, mut row) = (LEFT, 0.0);
    let series = charts.first().map_or(&[][..], |chart| &chart.series);
    for (nth, series) in series.iter().enumerate() {
        if !matches!(series.mark, Mark::Line | Mark::Solid | Mark::Area) || series.name.is_empty() {
            continue;
        }
        let width = 46.0 + series.name.chars().count() as f64 * CHARACTER;
        if x + width > WIDTH - RIGHT && x > LEFT {
            (x, row) = (LEFT, row + 1.0);
        }
        entries.push(Entry {
            name: &series.name,
            colour: nth % COLOURS.len(),
            area: series.mark == Mark::Area,
            solid: series.mark == Mark::Solid,
            x,
            row,
        });
        x += width;
    }
    entries
}

fn write_legend(out: &mut String, entries: &[Entry<'_>]) -> std::fmt::Result {
    for Entry { name, colour, area, solid, x, row } in entries {
        let y = 62.0 + 22.0 * row;
        if *area {
            let top = y - 6.0;
            writeln!(
                out,
                "<rect class=\"s{colour}\" fill=\"currentColor\" fill-opacity=\".8\" x=\"{x}\" y=\"{top}\" width=\"24\" \
                 height=\"12\" rx=\"2\"/>"
            )?;
        } else {
            let (end, dash) = (x + 24.0, if *solid { " style=\"stroke-dasharray:none\"" } else { "" });
            writeln!(out, "<path class=\"line s{colour}\"{dash} stroke=\"currentColor\" d=\"M{x} {y}H{end}\"/>")?;
        }
        writeln!(out, "<text x=\"{}\" y=\"{}\">{}</text>", x + 30.0, y + 4.5, escape(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Point, number_ticks};

    fn chart(mark: Mark) -> Chart {
        let points = vec![Point { x: 0.0, low: 0.0, middle: 1.0, high: 2.0 }, Point::of(4.0, 9.0)];
        let series = |name: &str| Series { name: name.into(), points: points.clone(), mark };
        Chart {
            title: "a <panel>".into(),
            y_ticks: number_ticks(4.0, 2),
            series: vec![series("one"), series("two")],
            y_limit: Some(4.0),
            ..Chart::default()
        }
    }

    #[test]
    fn every_mark_is_drawn_inside() {
        for (mark, what) in [
            (Mark::Line, "class=\"line\""),
            (Mark::Solid, "stroke-width=\"1.6\""),
            (Mark::Area, "fill-opacity=\".8\""),
            (Mark::Dot, "r=\"6\""),
            (Mark::Speck, "v2"),
            (Mark::Reference, "stroke-dasharray=\"6 4\""),
        ] {
            let drawn = draw("title", &[chart(mark)]);
            assert!(drawn.contains(what), "{mark:?}: {drawn}");
            assert!(!drawn.contains("NaN") && !drawn.contains(" -"), "a point above the limit is drawn at it: {drawn}");
            assert_eq!(drawn, draw("title", &[chart(mark)]));
        }
    }

    #[test]
    fn panels_stand_below_one_another() {
        let drawn = draw("both", &[chart(Mark::Line), chart(Mark::Line)]);
        assert_eq!(drawn.matches("a &lt;panel&gt;").count(), 2);
        assert_eq!(drawn.matches(">one<").count(), 1, "one legend");
        assert!(draw("none", &[]).ends_with("</svg>\n"));
    }
}
