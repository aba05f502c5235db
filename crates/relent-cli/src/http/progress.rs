//! A bar for bodies that take long, on a terminal only.

use crate::screen::is_lively;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// A bar that shows itself when the body has taken half a second.
pub(super) struct Progress {
    bar: ProgressBar,
    due: Instant,
}

const PATIENCE: Duration = Duration::from_millis(500);

impl Progress {
    /// A bar for a body of `total` bytes, of which `have` are there.
    pub(super) fn new(have: u64, total: Option<u64>, wanted: bool) -> Option<Progress> {
        if !wanted || !is_lively() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden()).with_position(have);
        let style = match total {
            Some(_) => "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
            None => "{spinner} {bytes} {bytes_per_sec} {elapsed}",
        };
        bar.set_style(ProgressStyle::with_template(style).expect("the template is one"));
        Some(Progress { bar, due: Instant::now() + PATIENCE })
    }

    /// This many bytes are there now.
    pub(super) fn at(&mut self, have: u64) {
        if self.bar.is_hidden() && Instant::now() >= self.due {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(have);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
