//! Who was there before an attempt began, and is none of it: children of a shell that became relent, what an attempt that succeeded has left,
//! and what both have started, which comes to relent once they are gone.

use super::processes;
use nix::unistd::Pid;
use std::collections::HashSet;

/// They, each with the time at which it began: who gets its number later is another.
#[derive(Debug)]
pub(super) struct Before(HashSet<(Pid, u64)>);

impl Before {
    /// Those children that there are now, and all below them.
    pub(super) fn of(children: &[Pid]) -> Before {
        let all = children.iter().copied().chain(processes::below(children.iter().copied()));
        Before(all.filter_map(|pid| Some((pid, processes::began(pid)?))).collect())
    }

    pub(super) fn has(&self, pid: Pid) -> bool {
        !self.0.is_empty() && processes::began(pid).is_some_and(|began| self.0.contains(&(pid, began)))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn children_and_what_they_have_started_were_there() {
        let mut shell = Command::new("sh");
        let mut shell = shell.args(["-c", "sleep 60 & echo up; read x; kill $!"]);
        shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0; 3]).unwrap();
        let pid = Pid::from_raw(shell.id() as i32);
        let before = Before::of(&[pid]);
        let [sleep] = processes::below([pid])[..] else { panic!("one is below") };
        assert!(before.has(pid) && before.has(sleep) && !before.has(nix::unistd::getpid()));
        let mut later = Command::new("true").spawn().unwrap();
        assert!(!before.has(Pid::from_raw(later.id() as i32)));
        later.wait().unwrap();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(!before.has(pid), "its number is free");
        assert!(!Before(HashSet::from([(sleep, 0)])).has(sleep) && !Before::of(&[]).has(pid));
    }
}
