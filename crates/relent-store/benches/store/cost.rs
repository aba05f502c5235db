//! What something costs in processors' time, here and at a server.

use crate::rate::rate;
use std::time::Instant;

/// What a process and its children have had of the processors so far, in microseconds: other work on the machine makes no
/// difference to it.
fn spent(pid: &str) -> f64 {
    let children = std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let stat = stat(entry.file_name().to_str()?);
        (stat.get(1).map(String::as_str) == Some(pid)).then(|| ticks(&stat[11..13]))
    });
    let own = stat(pid);
    // Children that have ended are counted by their parent.
    (own.get(11..15).map_or(0.0, ticks) + children.sum::<f64>()) * 10_000.0
}

/// What the system says of a process, behind its name, which may hold anything: state, parent, and so on.
fn stat(pid: &str) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Hundredths of seconds, its own and the kernel's for it.
fn ticks(fields: &[String]) -> f64 {
    fields.iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
}

/// How often a second, and what one of it costs in microseconds of processors, here and at the server.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cost {
    number: f64,
    here: f64,
    there: f64,
}

impl Cost {
    /// Adds a round of so many callers to it.
    pub(crate) async fn of<F, Fut>(&mut self, server: u32, callers: u32, cycle: F) -> f64
    where
        F: Fn() -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + Send,
    {
        self.round(server, rate(callers, cycle)).await
    }

    /// Adds a round of something else to it. No server is 0.
    pub(crate) async fn round(&mut self, server: u32, round: impl Future<Output = f64>) -> f64 {
        let (here, there) = (ticks(&stat("self")[11..13]) * 10_000.0, spent(&server.to_string()));
        let begin = Instant::now();
        let rate = round.await;
        self.number += rate * begin.elapsed().as_secs_f64();
        self.here += ticks(&stat("self")[11..13]) * 10_000.0 - here;
        self.there += spent(&server.to_string()) - there;
        rate
    }

    pub(crate) fn say(self, what: &str) {
        let (here, there) = (self.here / self.number, self.there / self.number);
        println!("  {what}: {here:.1} us here, {there:.1} us at the server, {:.1} us both", here + there);
    }
}
