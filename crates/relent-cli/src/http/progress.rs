//! A bar for bodies that take long, on a terminal only.

use crate::{screen, stderr};
use relent::duration::Human;
use std::{
    fmt,
    io::Write as _,
    time::{Duration, Instant},
};

/// A bar that shows itself when the body has taken half a second.
pub(super) struct Progress {
    body: Body,
    began: Instant,
    /// When it is drawn next.
    due: Instant,
    is_shown: bool,
}

const PATIENCE: Duration = Duration::from_millis(500);

/// How often the bar changes at most.
const FRAME: Duration = Duration::from_millis(100);

impl Progress {
    /// A bar for a body of `total` bytes, of which `have` are there.
    pub(super) fn new(have: u64, total: Option<u64>, wanted: bool) -> Option<Progress> {
        if !wanted || !screen::is_lively() {
            return None;
        }
        let began = Instant::now();
        Some(Progress { body: Body { before: have, have, total }, began, due: began + PATIENCE, is_shown: false })
    }

    /// This many bytes are there now.
    pub(super) fn at(&mut self, have: u64) {
        self.body.have = have;
        let now = Instant::now();
        if now < self.due {
            return;
        }
        self.due = now + FRAME;
        self.is_shown = true;
        let (bar, text) = (self.body.bar(), self.body.text(now - self.began));
        // What is longer than a line could not be erased.
        let (_, columns) = screen::size_of_stderr();
        let fits = |line: &String| line.chars().count() < columns;
        let line = [bar + &text, text].into_iter().find(fits).unwrap_or_default();
        let _ = write!(stderr::open(), "\r\x1b[K{line}");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(stderr::open(), "\r\x1b[K");
        }
    }
}

/// How much of a body is there.
struct Body {
    /// What was there before this attempt.
    before: u64,
    have: u64,
    total: Option<u64>,
}

impl Body {
    /// The share that is there, in thirty columns; nothing if that is not known.
    fn bar(&self) -> String {
        const COLUMNS: u128 = 30;
        let Some(total) = self.total else { return String::new() };
        let full = u128::from(self.have) * COLUMNS / u128::from(total.max(1));
        (0..COLUMNS).map(|place| if place < full { '█' } else { '░' }).chain([' ']).collect()
    }

    /// What is said of it when it has taken so long.
    fn text(&self, elapsed: Duration) -> String {
        let (came, millis) = (self.have.saturating_sub(self.before), elapsed.as_millis().max(1));
        let speed = u64::try_from(u128::from(came) * 1000 / millis).unwrap_or(u64::MAX);
        let Some(total) = self.total else {
            let turn = "⠁⠂⠄⡀⢀⠠⠐⠈".chars().nth((millis / FRAME.as_millis() % 8) as usize).unwrap_or(' ');
            let seconds = Human(Duration::from_secs(elapsed.as_secs()));
            return format!("{turn} {} {}/s {seconds}", Amount(self.have), Amount(speed));
        };
        let said = format!("{}/{} {}/s", Amount(self.have), Amount(total), Amount(speed));
        match total.saturating_sub(self.have).checked_div(speed) {
            Some(left) => format!("{said} {} left", Human(Duration::from_secs(left))),
            None => said,
        }
    }
}

/// So many bytes, rounded.
struct Amount(u64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut amount = self.0 as f64;
        let mut unit = None;
        for larger in ['K', 'M', 'G', 'T', 'P', 'E'] {
            if amount < 1024.0 {
                break;
            }
            (amount, unit) = (amount / 1024.0, Some(larger));
        }
        match unit {
            Some(unit) => write!(f, "{amount:.2} {unit}iB"),
            None => write!(f, "{} B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_how_much_is_there_how_quickly_it_comes_and_how_long_that_takes() {
        let half = "█".repeat(15) + &"░".repeat(15) + " ";
        let second = Duration::from_secs(1);
        for (before, have, total, line) in [
            (0, 50_000, Some(100_000), "48.83 KiB/97.66 KiB 24.41 KiB/s 2s left"),
            (49_000, 50_000, Some(100_000), "48.83 KiB/97.66 KiB 500 B/s 1m40s left"),
            (500, 500, Some(1000), "500 B/1000 B 0 B/s"),
            (0, 3 << 30, None, "⢀ 3.00 GiB 1.50 GiB/s 2s"),
        ] {
            let body = Body { before, have, total };
            assert_eq!(body.text(2 * second), line);
            assert_eq!(body.bar(), if total.is_some() { &*half } else { "" });
        }
    }

    #[test]
    fn no_number_is_too_large_or_too_small() {
        for (before, have, total, full) in
            [(5, 0, 0, 0), (0, 1, u64::MAX, 0), (0, u64::MAX, u64::MAX, 30), (0, u64::MAX, 1, 30)]
        {
            let body = Body { before, have, total: Some(total) };
            assert_eq!(body.bar(), "█".repeat(full) + &"░".repeat(30 - full) + " ");
            assert!(body.text(Duration::ZERO).starts_with(&Amount(have).to_string()));
        }
        assert_eq!(Amount(u64::MAX).to_string(), "16.00 EiB");
    }
}
