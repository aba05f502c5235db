//! Which orphans are an attempt's, where relent had children before that, as a script that became relent: what those leave comes to it as
//! well.

use super::{mark::Mark, processes};
use nix::unistd::{Pid, geteuid};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// For so long nobody counts as the attempt's of whom nothing is shown, as of who is becoming another program, or does not answer. After that,
/// our own user's do: another's may have nothing to do with it, and never answer.
const MOMENT: Duration = Duration::from_secs(1);

/// What tells the attempt's from others, where there may be such.
#[derive(Debug)]
pub(super) struct Kin {
    mark: Option<Mark>,
    /// Of whom nothing is shown, and since when.
    unknown: HashMap<Pid, Instant>,
}

impl Kin {
    pub(super) fn of(mark: Option<Mark>) -> Kin {
        Kin { mark, unknown: HashMap::new() }
    }

    /// Those of the attempt, of whom some are of its group, whatever they show.
    pub(super) fn among(&mut self, mut orphans: Vec<Pid>, is_of_the_group: impl Fn(Pid) -> bool) -> Vec<Pid> {
        let Some(mark) = &self.mark else { return orphans };
        self.unknown.retain(|pid, _| orphans.contains(pid));
        orphans.retain(|pid| match mark.is_missing(*pid) {
            _ if is_of_the_group(*pid) => true,
            None => {
                let since = *self.unknown.entry(*pid).or_insert_with(Instant::now);
                since.elapsed() >= MOMENT && processes::owner(*pid) == Some(geteuid().as_raw())
            }
            Some(is_missing) => {
                self.unknown.remove(pid);
                !is_missing
            }
        });
        orphans
    }

    /// Of processes those that show that they are the attempt's, though who has started them does not.
    pub(super) fn marked(&self, mut pids: Vec<Pid>) -> Vec<Pid> {
        pids.retain(|pid| self.mark.as_ref().is_some_and(|mark| mark.marks(*pid) == Some(true)));
        pids
    }

    /// Whether all that comes to us is the attempt's.
    pub(super) fn is_all(&self) -> bool {
        self.mark.is_none()
    }

    /// Those who may be the attempt's or not, and are waited for.
    pub(super) fn unknown(&self) -> impl Iterator<Item = Pid> {
        self.unknown.iter().filter(|(_, since)| since.elapsed() < MOMENT).map(|(pid, _)| *pid)
    }
}
