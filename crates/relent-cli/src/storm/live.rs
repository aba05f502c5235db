//! What a storm looks like while it goes on: for each policy how many are connected, beside the ideal, and the load.

use super::{
    plan::Plan,
    sight::{Sight, What},
};
use crate::{breaks::without_messages_within, escape::escape, redact, screen, simulate::numbers::grouped, stderr};
use relent_sim::Seen;
use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write as _},
    time::{Duration, Instant},
};

/// How often the picture changes.
const FRAME: Duration = Duration::from_millis(100);

/// Columns for which it is drawn at most.
const WIDEST: usize = 100;

/// One herd, counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) connected: u64,
    pub(super) gave_up: u64,
    refused: u64,
    arrived: u64,
    /// Attempts that did not come through.
    pub(super) broken: u64,
    /// Why the last of them did not.
    pub(super) why: Option<String>,
    /// Arrivals by stretch of time.
    load: Vec<u32>,
    /// When the last client was done.
    done: Option<Duration>,
}

/// The stretches in which the load is counted, of the time that a herd is watched.
const STRETCHES: u32 = 50;

impl Tally {
    pub(super) fn see(&mut self, sight: &Sight, plan: &Plan) {
        match &sight.what {
            What::Seen(Seen::Arrived { .. }) => {
                self.arrived += 1;
                let stretch = (sight.at.as_secs_f64() / plan.limit.as_secs_f64() * f64::from(STRETCHES)) as usize;
                if self.load.len() <= stretch {
                    self.load.resize(stretch.min(STRETCHES as usize) + 1, 0);
                }
                if let Some(count) = self.load.get_mut(stretch) {
                    *count += 1;
                }
            }
            What::Seen(Seen::Refused(_)) => self.refused += 1,
            What::Seen(Seen::Connected { .. }) => {
                self.connected += 1;
                self.done = Some(sight.at);
            }
            What::Seen(Seen::GaveUp { .. }) => self.gave_up += 1,
            What::Seen(Seen::Served | Seen::Failed) => {}
            What::Broken(why) => {
                self.broken += 1;
                self.why = Some(why.clone());
            }
        }
    }

    pub(super) fn is_done(&self, plan: &Plan) -> bool {
        self.connected + self.gave_up >= u64::from(plan.clients)
    }
}

/// The picture on a terminal, drawn over itself.
#[derive(Debug)]
pub(super) struct Live {
    is_shown: bool,
    unicode: bool,
    /// Lines of the last frame.
    lines: usize,
    drawn: Option<Instant>,
}

impl Live {
    /// Shown where somebody watches.
    pub(super) fn new(is_quiet: bool) -> Live {
        Live {
            is_shown: !is_quiet && io::stderr().is_terminal() && !screen::is_dumb(),
            unicode: screen::unicode(),
            lines: 0,
            drawn: None,
        }
    }

    /// A frame, if it is time for one.
    pub(super) fn draw(&mut self, plan: &Plan, herds: &[(Duration, &Tally)]) {
        if !self.is_shown || self.drawn.is_some_and(|drawn| drawn.elapsed() < FRAME) {
            return;
        }
        self.drawn = Some(Instant::now());
        let (rows, columns) = screen::size_of_stderr();
        let text = frame(plan, herds, columns.min(WIDEST), self.unicode);
        let text = without_messages_within(&text, columns);
        // What is higher than the terminal could not be drawn over.
        let lines = text.lines().count().min(rows - 1);
        let mut stderr = stderr::open();
        if self.lines > 0 {
            let _ = write!(stderr, "\x1b[{}A", self.lines);
        }
        let cleared: String = text.lines().take(lines).map(|line| format!("\x1b[K{}\n", screen::cut(line))).collect();
        let _ = stderr.write_all(cleared.as_bytes());
        let _ = stderr.flush();
        self.lines = lines;
    }

    /// The picture goes: the table takes its place.
    pub(super) fn end(&mut self) {
        if self.lines > 0 {
            let _ = write!(stderr::open(), "\x1b[{}A\x1b[J", self.lines);
            self.lines = 0;
        }
    }
}

/// Each herd in two lines: how many are connected, and the load over time.
fn frame(plan: &Plan, herds: &[(Duration, &Tally)], columns: usize, unicode: bool) -> String {
    let names: Vec<String> = plan.contenders.iter().map(|contender| short(&contender.name, 20)).collect();
    let width = names.iter().map(|name| screen::width(name)).max().unwrap_or(0);
    let clients = grouped(f64::from(plan.clients));
    let mut out = String::new();
    let ideal = plan.capacity.map(|capacity| f64::from(plan.clients) / capacity);
    let ideal_said = ideal.map_or_else(String::new, |ideal| format!("; at best {ideal:.1}s, 1 attempt each"));
    let _ = writeln!(out, "{clients} clients{ideal_said}");
    for (name, (elapsed, tally)) in names.iter().zip(herds) {
        let at = tally.done.filter(|_| tally.is_done(plan)).unwrap_or((*elapsed).min(plan.limit));
        let each = tally.arrived as f64 / f64::from(plan.clients);
        let said = format!(
            "{:>w$}/{clients}  {:>7} refused  {each:>5.2} a client  {:>5.1}s",
            grouped(tally.connected as f64),
            grouped(tally.refused as f64),
            at.as_secs_f64(),
            w = clients.len(),
        );
        let room = columns.saturating_sub(width + 2 + 2 + said.chars().count() + 1).max(4);
        let share = tally.connected as f64 / f64::from(plan.clients);
        let best = ideal.map(|ideal| (at.as_secs_f64() / ideal).min(1.0));
        let pad = width - screen::width(name);
        let _ = writeln!(out, "{name}{:pad$}  {}  {said}", "", bar(share, best, room, unicode));
        let peak = tally.load.iter().copied().max().unwrap_or(0);
        let per_second = f64::from(peak) * f64::from(STRETCHES) / plan.limit.as_secs_f64();
        let line = spark(&tally.load, columns.saturating_sub(width + 2 + 16).min(STRETCHES as usize), unicode);
        let _ = writeln!(out, "{:<width$}  {line}  peak {}/s", "", grouped(per_second.round()));
    }
    out
}

/// A name in so many columns.
fn short(name: &str, most: usize) -> String {
    screen::short(&escape(&redact::name(name)), most)
}

/// The share that is connected, and a mark where the best would be.
fn bar(share: f64, best: Option<f64>, room: usize, unicode: bool) -> String {
    let (full, empty, mark) = if unicode { ('█', '░', '│') } else { ('#', '.', '|') };
    let filled = (share * room as f64) as usize;
    let best = best.map(|best| ((best * room as f64) as usize).min(room - 1));
    let cell = |place| match place {
        place if place < filled => full,
        place if Some(place) == best => mark,
        _ => empty,
    };
    (0..room).map(cell).collect()
}

/// The load over time in a line, the highest of it at full height.
fn spark(load: &[u32], room: usize, unicode: bool) -> String {
    let steps: Vec<char> =
        if unicode { "▁▂▃▄▅▆▇█".chars().collect() } else { "_.-:=+*#".chars().collect() };
    let peak = load.iter().copied().max().unwrap_or(0).max(1);
    let each = (STRETCHES as usize).div_ceil(room.max(1));
    let column = |stretches: &[u32]| match stretches.iter().copied().max().unwrap_or(0) {
        0 => ' ',
        count => steps[(u64::from(count) * 7 / u64::from(peak)) as usize],
    };
    let line: String = load.chunks(each).map(column).collect();
    format!("{line:<room$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent_sim::Contender;

    fn plan() -> Plan {
        let policy = relent::Policy::default();
        Plan {
            clients: 2000,
            capacity: Some(200.0),
            queue: Some(50),
            target: None,
            contenders: vec![Contender::new("none", policy), Contender::new("full + pacer", policy)],
            processes: 2000,
            limit: Duration::from_secs(20),
            seed: 1,
        }
    }

    /// Letters that take two columns are counted as two.
    #[test]
    fn names_of_all_scripts_fit() {
        let mut plan = plan();
        plan.contenders[0].name = "\u{5b57}".repeat(30);
        let tally = Tally::default();
        let herds = [(Duration::ZERO, &tally), (Duration::ZERO, &tally)];
        let text = frame(&plan, &herds, 80, true);
        assert!(text.lines().all(|line| screen::width(line) <= 80), "{text}");
        let bars: Vec<usize> =
            text.lines().filter_map(|line| Some(screen::width(&line[..line.find('\u{2591}')?]))).collect();
        assert_eq!(bars, [22, 22], "{text}");
        assert_eq!(short(&plan.contenders[0].name, 20), "\u{5b57}".repeat(9) + "~");
    }

    #[test]
    fn a_frame_has_eighty_columns_and_says_what_happens() {
        let plan = plan();
        let mut tally = Tally { connected: 900, refused: 12_345, arrived: 13_245, ..Tally::default() };
        tally.load = vec![5000, 0, 100, 2500];
        let done = Tally { connected: 2000, done: Some(Duration::from_millis(10_020)), ..tally.clone() };
        let herds = [(Duration::from_millis(5000), &tally), (Duration::from_secs(12), &done)];
        let text = frame(&plan, &herds, 80, true);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "2,000 clients; at best 10.0s, 1 attempt each");
        assert!(lines[1].starts_with("none          ████"), "{text}");
        assert!(lines[1].ends_with("  900/2,000   12,345 refused   6.62 a client    5.0s"), "{text}");
        assert!(lines[1].contains('│'), "the ideal is marked: {text}");
        assert!(lines[2].contains("█ ▁▄") && lines[2].ends_with("peak 12,500/s"), "{text}");
        assert!(lines[3].contains("2,000/2,000") && lines[3].ends_with("10.0s"), "{text}");
        assert!(frame(&plan, &herds, 80, false).is_ascii());
    }

    #[test]
    fn names_that_are_long_are_cut() {
        assert_eq!(short("a very long name of a policy", 8), "a very ~");
        assert_eq!(bar(0.5, Some(1.0), 4, false), "##.|");
    }
}
