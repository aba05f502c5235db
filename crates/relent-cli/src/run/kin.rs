//! Which orphans are an attempt's, where relent had children before that, as a script that became relent: what those leave comes to it as
//! well.

use super::{answer, mark::Mark, processes};
use nix::unistd::{Pid, geteuid};
use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

/// For so long nobody counts as the attempt's of whom nothing is shown. After that, who is becoming another program does, unless it is another
/// user's. Those, and who does not answer, do not: others may have nothing to do with it, and make one after another.
const MOMENT: Duration = Duration::from_secs(1);

/// For so long they are asked at once: somebody waits for what comes of it. What was not asked by then is the next time.
const LOOK_FOR: Duration = Duration::from_millis(200);

/// What tells the attempt's from others, where there may be such.
#[derive(Debug)]
pub(super) struct Kin {
    mark: Option<Mark>,
    /// Those that have shown that they are not the attempt's, and when they began: who is no more becomes none.
    strangers: HashSet<(Pid, Option<u64>)>,
    /// Of whom nothing is shown, and since when; of another user's, since when that is so of any of them.
    unknown: HashMap<Pid, Instant>,
    /// Since when another user's show nothing, and when one did not last.
    silent: HashMap<u32, (Instant, Instant)>,
}

impl Kin {
    pub(super) fn of(mark: Option<Mark>) -> Kin {
        Kin { mark, strangers: HashSet::new(), unknown: HashMap::new(), silent: HashMap::new() }
    }

    /// Those of the attempt, of whom some are of its group, whatever they show.
    pub(super) fn among(&mut self, mut orphans: Vec<Pid>, is_of_the_group: impl Fn(Pid) -> bool) -> Vec<Pid> {
        let Some(mark) = &self.mark else { return orphans };
        let until = Instant::now() + LOOK_FOR;
        let all: HashSet<Pid> = orphans.iter().copied().collect();
        self.unknown.retain(|pid, _| all.contains(pid));
        self.silent.retain(|_, (_, last)| last.elapsed() < MOMENT);
        self.strangers.retain(|(pid, began)| all.contains(pid) && processes::began(*pid) == *began);
        let strangers: HashSet<Pid> = self.strangers.iter().map(|(pid, _)| *pid).collect();
        orphans.retain(|pid| is_of_the_group(*pid) || !strangers.contains(pid));
        let (ours, mut others): (Vec<Pid>, Vec<Pid>) = orphans.iter().partition(|pid| is_of_the_group(**pid));
        others.sort_by_cached_key(|pid| {
            let owner = processes::owner(*pid).unwrap_or_else(|| geteuid().as_raw());
            (owner != geteuid().as_raw(), answer::used(owner))
        });
        // Before they are asked: who gets the number of one afterwards is another.
        let began: Vec<Option<u64>> = others.iter().map(|pid| processes::began(*pid)).collect();
        let mut is_one: HashSet<Pid> = ours.into_iter().collect();
        for ((pid, told), began) in mark.are_missing(others, until).zip(began) {
            let other = processes::owner(pid).filter(|owner| *owner != geteuid().as_raw());
            let is_ours = self.is_ours(pid, other, told, Instant::now());
            if matches!(told, Some(Some(_))) && !is_ours {
                self.strangers.insert((pid, began));
            }
            if is_ours {
                is_one.insert(pid);
            }
        }
        orphans.retain(|pid| is_one.contains(pid));
        orphans
    }

    /// Whether one is the attempt's, which may be another user's, as far as it `told`: whether it is missing, or that it is becoming another
    /// program.
    fn is_ours(&mut self, pid: Pid, other: Option<u32>, told: Option<Option<bool>>, now: Instant) -> bool {
        if let Some(Some(is_missing)) = told {
            self.unknown.remove(&pid);
            return !is_missing;
        }
        let since = other.map_or(now, |other| {
            let (since, last) = self.silent.entry(other).or_insert((now, now));
            *last = now;
            *since
        });
        let since = *self.unknown.entry(pid).or_insert(since);
        told.is_some() && other.is_none() && now.duration_since(since) >= MOMENT
    }

    /// Of processes those that show that they are the attempt's, though who has started them does not.
    pub(super) fn marked(&self, pids: Vec<Pid>) -> Vec<Pid> {
        let until = Instant::now() + LOOK_FOR;
        let answers = self.mark.iter().flat_map(|mark| mark.marks(pids.clone(), Some(until)));
        answers.filter(|(_, is_one)| *is_one == Some(true)).map(|(pid, _)| pid).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One after another, each of which is there for less than a moment.
    #[test]
    fn whoever_shows_nothing_for_a_moment_holds_up_nobody() {
        const OWN: Option<u32> = None;
        const BECOMES_ANOTHER: Option<Option<bool>> = Some(None);
        let (began, step) = (Instant::now(), MOMENT / 3);
        for told in [None, BECOMES_ANOTHER] {
            let mut kin = Kin::of(Some(Mark::of("x")));
            for nth in 0..9 {
                let (pid, now) = (Pid::from_raw(1000 + nth), began + step * nth.cast_unsigned());
                assert!(!kin.is_ours(pid, Some(7), told, now), "{told:?}, {nth}");
                assert_eq!(kin.unknown[&pid], began, "it is waited for since the first of them");
            }
            assert!(!kin.is_ours(Pid::from_raw(1000), Some(7), told, began + MOMENT * 2), "{told:?}");
        }
        let mut kin = Kin::of(Some(Mark::of("x")));
        let mut is_ours = |told, after| kin.is_ours(Pid::from_raw(1), OWN, told, began + after);
        assert!(!is_ours(BECOMES_ANOTHER, Duration::ZERO) && !is_ours(BECOMES_ANOTHER, step));
        assert!(is_ours(BECOMES_ANOTHER, MOMENT) && !is_ours(None, MOMENT));
        assert!(is_ours(Some(Some(false)), MOMENT) && !is_ours(Some(Some(true)), MOMENT));
        assert!(!is_ours(BECOMES_ANOTHER, MOMENT), "it became one, and now another");
    }
}
