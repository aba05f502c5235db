//! Output that somebody holds yet when the command has ended: of a script that logs by `exec > >(tee LOG)` the last of it comes only
//! then. What a command has left has a second to finish it.

use super::{group::Group, patterns::Found, signals::Signals, stream::Stream, ways::LOOK};
use crate::talk::Fault;
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// For how long that is read, or waited for where it is not read here.
pub(super) const MOMENT: Duration = Duration::from_secs(1);

/// For how long it is waited at once: who has waited for so much longer was stopped, and not just held up by a machine that is busy.
const SLICE: Duration = Duration::from_millis(200);

/// What is said of whoever does so for longer after a success, and stays.
pub(super) const ENDS: &str = "something that the command has started goes on and holds its output, which ends now: \
                               it needs one of its own (> FILE), or --stream without patterns";

/// Reads on until nobody holds them any more, or there is no room for what comes, and at the longest until then, which is asked with how
/// much longer than it meant to relent has waited, as while it was stopped. A signal that ends the run ends this, too, and is returned. Of what has succeeded, by what was found in it, there is room for all.
pub(super) fn read_on(
    mut streams: Vec<&mut Stream<'_>>,
    until: &dyn Fn(Duration) -> Instant,
    succeeds: &dyn Fn(Found) -> bool,
    signals: &Signals,
    say: &dyn Fn(&str),
) -> Result<Option<Signal>, Fault> {
    let mut stood_still = Duration::ZERO;
    loop {
        let found = streams.iter().fold(Found::default(), |found, stream| found.or(stream.found()));
        streams.iter_mut().for_each(|stream| stream.is_of_success(succeeds(found)));
        let is_awaited = streams.iter().any(|stream| stream.is_awaited());
        let began = Instant::now();
        let left = until(stood_still).saturating_duration_since(began);
        if !is_awaited || left.is_zero() {
            return Ok(None);
        }
        let most = left.min(SLICE);
        let ending = step(&mut streams, most, signals, say)?;
        stood_still += Some(began.elapsed().saturating_sub(most)).filter(|late| *late >= SLICE).unwrap_or_default();
        if ending.is_some() {
            return Ok(ending);
        }
    }
}

/// Waits until there is something of them, and reads that. The signal that has ended this.
pub(super) fn step(
    streams: &mut [&mut Stream<'_>],
    most: Duration,
    signals: &Signals,
    say: &dyn Fn(&str),
) -> Result<Option<Signal>, Fault> {
    let mut fds = Vec::new();
    for stream in &*streams {
        stream.poll(&mut fds);
    }
    let is_busy = streams.iter().any(|stream| stream.is_busy());
    let ending = signals.wait_beside(fds, if is_busy { Duration::ZERO } else { most });
    if ending.is_none() {
        for stream in streams {
            stream.step(say)?;
        }
    }
    Ok(ending)
}

/// Waits until nothing is left of a command that writes where relent does, and at the longest until then. The signal that has ended this.
pub(super) fn wait_for_the_rest(group: &mut Group, until: &dyn Fn() -> Instant, signals: &Signals) -> Option<Signal> {
    loop {
        let left = until().saturating_duration_since(Instant::now());
        if left.is_zero() || group.left().is_empty() {
            return None;
        }
        let ending = signals.wait(left.min(LOOK));
        if ending.is_some() {
            return ending;
        }
    }
}
