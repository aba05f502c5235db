//! A chart as SVG: the same bytes for the same chart, readable on light and on dark ground.
//!
//! Text and axes have the colour of the text around them (`currentColor`), or follow the reader's colour scheme where
//! the file stands alone. Series differ by dashes as well as by colour. No script, no font of its own, no size: it
//! scales to where it is put.

use super::{Chart, Mark, Series};
use relent_sim::json::{is_hostile, is_line_break};
use std::fmt::Write;

pub(super) const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
pub(super) const LEFT: f64 = 64.0;
pub(super) const RIGHT: f64 = 16.0;
/// What a character of a label takes, roughly: files have no way to measure.
pub(super) const CHARACTER: f64 = 7.2;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 56.0;

/// The colours of Okabe and Ito, which colour-blind readers tell apart: one for light ground, one for dark.
pub(super) const COLOURS: [(&str, &str); 8] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff9a4d"),
    ("#007a5a", "#3fd0a4"),
    ("#a3477f", "#e59ac6"),
    ("#8a6d00", "#e6c229"),
    ("#555555", "#bbbbbb"),
    ("#5b4bc4", "#a99dff"),
    ("#b3261e", "#ff8a80"),
];

const DASHES: [&str; 8] = ["none", "8 4", "2 3", "10 3 2 3", "14 4", "5 2 1 2 1 2", "4 4", "12 3 2 3 2 3"];

/// The colours as CSS variables `--s0`, `--s1` ... for pages that draw by themselves.
pub fn variables() -> String {
    let all = |of: fn(&(&'static str, &'static str)) -> &'static str| {
        let lines = COLOURS.iter().enumerate().map(|(nth, pair)| format!("--s{nth}:{};", of(pair)));
        lines.collect::<String>()
    };
    let (light, dark) = (all(|pair| pair.0), all(|pair| pair.1));
    format!(
        ":root{{{light}}}\n:root[data-theme=dark]{{{dark}}}\n\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
    )
}

/// Draws a chart.
pub fn draw(chart: &Chart) -> String {
    let mut out = String::new();
    let _ = write_all(&mut out, chart);
    out
}

fn write_all(out: &mut String, chart: &Chart) -> std::fmt::Result {
    write_head(out, &chart.title, HEIGHT, chart.series.len())?;
    write_title(out, &chart.title)?;
    writeln!(out, "<text x=\"{LEFT}\" y=\"42\">{}</text>", escape(&chart.y_name))?;
    let scale = Scale::new(chart, TOP, HEIGHT - BOTTOM);
    write_axes(out, chart, &scale)?;
    let (middle, below) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 14.0);
    writeln!(out, "<text class=\"mid\" x=\"{middle}\" y=\"{below}\">{}</text>", escape(&chart.x_name))?;
    for (nth, series) in chart.series.iter().enumerate() {
        write_series(out, series, nth % COLOURS.len(), &scale)?;
    }
    if chart.series.len() > 1 {
        write_legend(out, &chart.series)?;
    }
    writeln!(out, "</svg>")
}

/// The title at the top, in letters so small that it fits.
pub(super) fn write_title(out: &mut String, title: &str) -> std::fmt::Result {
    const LETTER: f64 = 0.57;
    const USUAL: f64 = 15.0;
    let room = WIDTH - LEFT - RIGHT / 2.0;
    let size = (room / (LETTER * title.chars().count() as f64)).clamp(9.0, USUAL);
    let style = if size < USUAL { format!(" style=\"font-size:{size:.1}px\"") } else { String::new() };
    writeln!(out, "<text class=\"title\" x=\"{LEFT}\" y=\"22\"{style}>{}</text>", escape(title))
}

/// The beginning of a picture: its size, its title for those who cannot see it, and the style.
pub(super) fn write_head(out: &mut String, title: &str, height: f64, series: usize) -> std::fmt::Result {
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" class=\"relent\" role=\"img\" \
         aria-label=\"{}\">",
        escape(title)
    )?;
    writeln!(out, "<title>{}</title>", escape(title))?;
    write_style(out, series.min(COLOURS.len()))?;
    // A ground of its own: the page around it may be dark without saying so.
    writeln!(out, "<path class=\"ground\" d=\"M0 0H{WIDTH}V{height}H0Z\"/>")
}

fn write_style(out: &mut String, series: usize) -> std::fmt::Result {
    writeln!(out, "<style>")?;
    writeln!(out, ".relent{{color-scheme:light dark;color:#1f2328;font:13px system-ui,sans-serif}}")?;
    writeln!(out, ".relent .ground{{fill:#fff}}")?;
    writeln!(out, ".relent text{{fill:currentColor}} .relent .title{{font-size:15px;font-weight:600}}")?;
    writeln!(out, ".relent .end{{text-anchor:end}} .relent .mid{{text-anchor:middle}}")?;
    writeln!(out, ".relent .axis{{stroke:currentColor}} .relent .grid{{stroke:currentColor;stroke-opacity:.15}}")?;
    writeln!(out, ".relent .line{{fill:none;stroke-width:2;stroke-linejoin:round}} .relent .band{{fill-opacity:.18}}")?;
    let colours = &COLOURS[..series];
    for (nth, (light, _)) in colours.iter().enumerate() {
        let dash = DASHES[nth];
        writeln!(out, ".relent .s{nth}{{color:{light};stroke-dasharray:{dash}}}")?;
    }
    writeln!(out, "@media (prefers-color-scheme:dark){{.relent{{color:#e6edf3}} .relent .ground{{fill:#0d1117}}")?;
    for (nth, (_, dark)) in colours.iter().enumerate() {
        write!(out, ".relent .s{nth}{{color:{dark}}}")?;
    }
    writeln!(out, "}}\n</style>")
}

/// From the chart's values to places in the picture.
pub(super) struct Scale {
    left: f64,
    x: f64,
    pub(super) top: f64,
    pub(super) ground: f64,
    most: f64,
    y: f64,
}

impl Scale {
    /// For a plot between two heights.
    pub(super) fn new(chart: &Chart, top: f64, ground: f64) -> Scale {
        let ((left, right), most) = (chart.x_range(), chart.y_most());
        Scale { left, x: (WIDTH - LEFT - RIGHT) / (right - left), top, ground, most, y: (ground - top) / most }
    }

    pub(super) fn x(&self, x: f64) -> f64 {
        LEFT + (x - self.left) * self.x
    }

    pub(super) fn y(&self, y: f64) -> f64 {
        self.ground - y.min(self.most) * self.y
    }
}

pub(super) fn write_axes(out: &mut String, chart: &Chart, scale: &Scale) -> std::fmt::Result {
    let (end, ground) = (WIDTH - RIGHT, scale.ground);
    for (from, to, what) in &chart.shaded {
        let (from, to) = (scale.x(*from).clamp(LEFT, end), scale.x(*to).clamp(LEFT, end));
        let path = format!("M{from:.1} {}H{to:.1}V{ground}H{from:.1}Z", scale.top);
        writeln!(
            out,
            "<path fill=\"currentColor\" fill-opacity=\".1\" d=\"{path}\"><title>{}</title></path>",
            escape(what)
        )?;
    }
    for tick in chart.y_ticks.iter().filter(|tick| tick.at <= scale.most) {
        let y = scale.y(tick.at);
        writeln!(out, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{end}\"/>")?;
        let (x, y) = (LEFT - 8.0, y + 4.5);
        writeln!(out, "<text class=\"end\" x=\"{x}\" y=\"{y:.1}\">{}</text>", escape(&tick.label))?;
    }
    for tick in &chart.x_ticks {
        let (x, y) = (scale.x(tick.at), ground + 18.0);
        // A label in the middle of the last tick may be wider than the margin.
        let is_cut = x + tick.label.chars().count() as f64 * CHARACTER / 2.0 > WIDTH;
        let (class, x) = if is_cut { ("end", WIDTH - 1.0) } else { ("mid", x) };
        writeln!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y}\">{}</text>", escape(&tick.label))?;
    }
    writeln!(out, "<path class=\"axis\" d=\"M{LEFT} {ground}H{end}\"/>")
}

/// Draws a series as its mark says, in the colour of this number.
pub(super) fn write_marked(out: &mut String, series: &Series, nth: usize, scale: &Scale) -> std::fmt::Result {
    let place = |x: f64, y: f64| format!("{:.1} {:.1}", scale.x(x), scale.y(y));
    let points = &series.points;
    match series.mark {
        Mark::Line => write_series(out, series, nth, scale),
        Mark::Area => {
            let upper = points.iter().map(|point| place(point.x, point.high));
            let lower = points.iter().rev().map(|point| place(point.x, point.low));
            let outline: Vec<String> = upper.chain(lower).collect();
            if outline.is_empty() {
                return Ok(());
            }
            writeln!(
                out,
                "<path class=\"s{nth}\" fill=\"currentColor\" fill-opacity=\".8\" d=\"M{}Z\"/>",
                outline.join("L")
            )
        }
        Mark::Solid => {
            let mut path = String::new();
            for pair in points.windows(2).filter(|pair| pair.iter().all(|point| point.middle > 0.0)) {
                let (from, to) = (place(pair[0].x, pair[0].middle), place(pair[1].x, pair[1].middle));
                let go_on = path.ends_with(&from);
                let _ = if go_on { write!(path, "L{to}") } else { write!(path, "M{from}L{to}") };
            }
            let style = "stroke=\"currentColor\" stroke-width=\"1.6\" fill=\"none\" style=\"stroke-dasharray:none\"";
            writeln!(out, "<path class=\"s{nth}\" {style} d=\"{path}\"/>")
        }
        Mark::Dot => points.iter().try_for_each(|point| {
            let (x, y) = (scale.x(point.x), scale.y(point.middle));
            writeln!(out, "<circle class=\"s{nth}\" fill=\"currentColor\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\"/>")
        }),
        Mark::Speck => {
            let strokes: String = points.iter().map(|point| format!("M{}v2", place(point.x, point.middle))).collect();
            let path =
                "<path stroke=\"currentColor\" stroke-width=\"1.5\" fill=\"none\" style=\"stroke-dasharray:none\"";
            writeln!(out, "{path} class=\"s{nth}\" d=\"{strokes}\"/>")
        }
        Mark::Reference => {
            let line: Vec<String> = points.iter().map(|point| place(point.x, point.middle)).collect();
            let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(()) };
            if points.len() == 1 {
                let (x, y) = (scale.x(last.x), scale.y(last.middle) - 8.0);
                return writeln!(out, "<path fill=\"currentColor\" d=\"M{x:.1} {y:.1}l7 8l-7 8l-7 -8Z\"/>");
            }
            let path = "<path fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"";
            writeln!(out, "{path} d=\"M{}\"/>", line.join("L"))?;
            let (x, y) = (scale.x(last.x), scale.y(last.middle));
            if first.x == last.x {
                let y = y - 6.0;
                return writeln!(out, "<text class=\"mid\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(&series.name));
            }
            // Along a level line there is room above its end; along any other, beside its middle.
            let level = (last.middle - first.middle).abs() < f64::EPSILON;
            if !level && x < WIDTH * 0.8 {
                let (x, y) = ((scale.x(first.x) + x) / 2.0 - 8.0, (scale.y(first.middle) + y) / 2.0);
                return writeln!(out, "<text class=\"end\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(&series.name));
            }
            let y = y - 5.0;
            writeln!(out, "<text class=\"end\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(&series.name))
        }
    }
}

fn write_series(out: &mut String, series: &Series, nth: usize, scale: &Scale) -> std::fmt::Result {
    let place = |x: f64, y: f64| format!("{:.1} {:.1}", scale.x(x), scale.y(y));
    let points = &series.points;
    writeln!(out, "<g class=\"s{nth}\">")?;
    if points.len() > 1 && points.iter().any(|point| point.low < point.high) {
        let upper = points.iter().map(|point| place(point.x, point.high));
        let lower = points.iter().rev().map(|point| place(point.x, point.low));
        let outline: Vec<String> = upper.chain(lower).collect();
        writeln!(out, "<path class=\"band\" fill=\"currentColor\" d=\"M{}Z\"/>", outline.join("L"))?;
    }
    let line: Vec<String> = points.iter().map(|point| place(point.x, point.middle)).collect();
    if points.len() > 1 {
        writeln!(out, "<path class=\"line\" stroke=\"currentColor\" d=\"M{}\"/>", line.join("L"))?;
    }
    if points.len() <= MOST_DOTS {
        for point in points {
            let (x, y) = (scale.x(point.x), scale.y(point.middle));
            writeln!(out, "<circle fill=\"currentColor\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>")?;
        }
    }
    writeln!(out, "</g>")
}

/// More points than this are a line without dots.
const MOST_DOTS: usize = 40;

fn write_legend(out: &mut String, series: &[Series]) -> std::fmt::Result {
    for (nth, series) in series.iter().enumerate() {
        let (colour, y) = (nth % COLOURS.len(), TOP + 14.0 + 20.0 * nth as f64);
        let (from, to, text) = (LEFT + 14.0, LEFT + 46.0, LEFT + 54.0);
        writeln!(out, "<path class=\"line s{colour}\" stroke=\"currentColor\" d=\"M{from} {y}H{to}\"/>")?;
        writeln!(out, "<text x=\"{text}\" y=\"{}\">{}</text>", y + 4.5, escape(&series.name))?;
    }
    Ok(())
}

/// Text as XML wants it. What XML cannot hold at all is replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if is_hostile(c) || is_line_break(c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Point, Tick, number_ticks};

    fn chart() -> Chart {
        let band = |x: f64| Point { x, low: 0.0, middle: x / 2.0, high: x };
        let series =
            |name: &str| Series { name: name.into(), points: [2.0, 3.0, 4.0].map(band).to_vec(), ..Series::default() };
        Chart {
            title: "a <b> & \"c\"\u{7}".into(),
            x_name: "attempt".into(),
            y_name: "delay".into(),
            x_ticks: vec![Tick { at: 2.0, label: "2".into() }],
            y_ticks: number_ticks(4.0, 2),
            series: vec![series("one"), series("two")],
            ..Chart::default()
        }
    }

    #[test]
    fn is_the_same_each_time_and_whole() {
        let drawn = draw(&chart());
        assert_eq!(drawn, draw(&chart()));
        assert!(drawn.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 400\""));
        assert!(drawn.ends_with("</svg>\n"));
        assert_eq!(drawn.matches("<g ").count(), 2);
        assert_eq!(drawn.matches("<circle").count(), 6);
        assert!(drawn.contains("M64.0 204.0L384.0 134.0L704.0 64.0L704.0 344.0L384.0 344.0L64.0 344.0Z"), "{drawn}");
        assert!(drawn.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn text_cannot_break_it() {
        assert!(draw(&chart()).contains("<title>a &lt;b&gt; &amp; &quot;c&quot;\u{fffd}</title>"));
    }

    #[test]
    fn nothing_to_draw_is_drawn() {
        let empty = draw(&Chart::default());
        assert!(!empty.contains("NaN") && !empty.contains("inf"), "{empty}");
    }
}
