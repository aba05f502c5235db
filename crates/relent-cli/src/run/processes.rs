//! What the system shows of processes, where it shows ours: in another namespace than `/proc` was mounted for, its numbers are those of
//! strangers.

use crate::system_text;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill, killpg},
    unistd::{Pid, getpgid, getpid},
};
use std::{
    collections::{HashMap, HashSet},
    fs, io,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::OnceLock,
};

/// Where it shows processes; `None` where it shows none, or those of another namespace.
pub(super) fn shown() -> Option<PathBuf> {
    static ARE_OURS: OnceLock<bool> = OnceLock::new();
    let are_ours = || system_text::read("/proc/self/status").is_ok_and(|status| is_of(&status, getpid()));
    ARE_OURS.get_or_init(are_ours).then(|| PathBuf::from("/proc"))
}

/// Where it shows one of them.
pub(super) fn folder(pid: Pid) -> Option<PathBuf> {
    Some(shown()?.join(pid.to_string()))
}

/// Whose a process is, where that is shown.
pub(super) fn owner(pid: Pid) -> Option<u32> {
    Some(fs::metadata(folder(pid)?).ok()?.uid())
}

/// All that are shown. `None` where nothing is.
pub(super) fn all() -> Option<impl Iterator<Item = Pid>> {
    let names = fs::read_dir(shown()?).ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(names.map(Pid::from_raw))
}

/// Those of a group that have not ended; who has ended is of it until somebody waits for it. `None` where nothing is shown, or nobody
/// of a group that is there.
pub(super) fn of_group(group: Pid) -> Option<Vec<Pid>> {
    let is_of_it = |pid: &Pid| getpgid(Some(*pid)) == Ok(group);
    let (ended, left): (Vec<Pid>, Vec<Pid>) = all()?.filter(is_of_it).partition(|pid| has_ended(*pid));
    match (ended.is_empty(), left.is_empty()) {
        (_, false) => Some(left),
        // Of others' processes nothing may be shown at all (`hidepid`).
        (true, true) => (!is_anybody_in(group)).then(Vec::new),
        // Nor of those who have not waited for these.
        (false, true) => {
            let parents: HashSet<Pid> = ended.into_iter().filter_map(parent).filter(is_of_it).collect();
            Some(parents.into_iter().filter(|pid| !has_ended(*pid)).collect())
        }
    }
}

/// Whether anybody is in a group, be it only who has ended, or is not shown.
pub(super) fn is_anybody_in(group: Pid) -> bool {
    killpg(group, None) != Err(Errno::ESRCH)
}

/// Whether nobody goes on of those that a number stands for: the process, or whoever is left of the group that it led.
pub(super) fn is_over(pid: Pid) -> bool {
    has_ended(pid) && of_group(pid).map_or_else(|| !is_anybody_in(pid), |left| left.is_empty())
}

/// Whether a process has ended, all threads of it: what is shown as its state is that of its first thread, and the others may go on
/// without that.
pub(super) fn has_ended(pid: Pid) -> bool {
    let Some(folder) = folder(pid) else { return kill(pid, None) == Err(Errno::ESRCH) };
    let is_gone =
        |error: io::Error| error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::ESRCH as i32);
    // Of whom nothing can be read, as without descriptors, nobody knows that it has ended.
    let is_over = |stat: io::Result<String>| {
        stat.map_or_else(is_gone, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])))
    };
    let mut threads = match fs::read_dir(folder.join("task")) {
        Ok(threads) => threads,
        // Of others' processes nothing may be shown at all (`hidepid`).
        Err(error) => return is_gone(error) && kill(pid, None) == Err(Errno::ESRCH),
    };
    threads.all(|thread| match thread {
        Ok(thread) => is_over(system_text::read(thread.path().join("stat"))),
        Err(error) => is_gone(error),
    })
}

/// Whether a process is stopped, where that is shown.
pub(super) fn is_stopped(pid: Pid) -> bool {
    stat(pid).is_some_and(|stat| stat.starts_with('T'))
}

/// Whether a process was begun by another and has not become a program since, where that is shown.
pub(super) fn is_no_program_yet(pid: Pid) -> bool {
    /// `PF_FORKNOEXEC`.
    const FORKED: u32 = 0x40;
    // The 9th of all; the 3rd is the first here.
    let flags = |stat: String| stat.split(' ').nth(6)?.parse::<u32>().ok();
    stat(pid).and_then(flags).is_some_and(|flags| flags & FORKED != 0)
}

/// Whether a process is a descendant of another. `false` where nothing is shown.
pub(super) fn is_below(mut pid: Pid, above: Pid) -> bool {
    const DEEPEST: usize = 1000;
    for _ in 0..DEEPEST {
        match parent(pid) {
            Some(parent) if parent == above => return true,
            Some(parent) if parent.as_raw() > 0 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// Those that processes have started or taken in, and theirs, as far as they are shown and have not ended.
pub(super) fn below(above: impl IntoIterator<Item = Pid>) -> Vec<Pid> {
    let (mut kinship, mut seen, mut found) = (Kinship::default(), HashSet::new(), Vec::new());
    let mut look =
        |pid, found: &mut Vec<Pid>| found.extend(kinship.children(pid).into_iter().filter(|pid| seen.insert(*pid)));
    above.into_iter().for_each(|pid| look(pid, &mut found));
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        look(pid, &mut found);
        next += 1;
    }
    found.retain(|pid| !has_ended(*pid));
    found
}

/// Who has started or taken in whom, as far as that was asked.
#[derive(Default)]
struct Kinship {
    /// The threads of which those were read.
    threads: u64,
    /// Those of all, where that is less to read.
    all: Option<HashMap<Pid, Vec<Pid>>>,
}

impl Kinship {
    /// Of more threads than these it takes longer to read whom they have started than of all processes who has started them.
    const MOST_THREADS: u64 = 200;

    fn children(&mut self, pid: Pid) -> Vec<Pid> {
        let Some(threads) = folder(pid).map(|folder| folder.join("task")) else { return Vec::new() };
        // A folder for each thread, besides two names of its own.
        self.threads += fs::metadata(&threads).map_or(0, |folder| folder.nlink().saturating_sub(2));
        if self.threads > Kinship::MOST_THREADS {
            return self.all.get_or_insert_with(of_all).remove(&pid).unwrap_or_default();
        }
        let of_threads = fs::read_dir(threads).into_iter().flatten().flatten();
        let texts = of_threads.filter_map(|thread| system_text::read(thread.path().join("children")).ok());
        let numbers = |text: String| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>();
        texts.flat_map(numbers).map(Pid::from_raw).collect()
    }
}

/// The children of all processes that are shown.
fn of_all() -> HashMap<Pid, Vec<Pid>> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for pid in all().into_iter().flatten() {
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// Sends a signal to a process that somebody else waits for, if it is a descendant of ours by then: its number may be another's.
///
/// # Errors
///
/// It may not be sent, or the process is gone.
#[cfg(target_os = "linux")]
pub(super) fn send_below(pid: Pid, signal: Signal) -> Result<(), Errno> {
    send_held(pid, signal, || is_below(pid, getpid()))
}

/// Sends a signal to a process that somebody else waits for, if it is one of those that are meant by then. Where the system holds no
/// process for that, its number may be another's from one moment to the next.
///
/// # Errors
///
/// It may not be sent, or the process is gone.
pub(super) fn send_if(pid: Pid, signal: Signal, is_one: impl Fn() -> bool) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    match send_held(pid, signal, &is_one) {
        Ok(()) => return Ok(()),
        Err(Errno::ESRCH) => return Err(Errno::ESRCH),
        // What a container knows nothing of is not permitted there, and there may be no descriptor left. What is not permitted to us is not
        // then either.
        Err(_) => {}
    }
    if is_one() { kill(pid, signal) } else { Err(Errno::ESRCH) }
}

#[cfg(target_os = "linux")]
fn send_held(pid: Pid, signal: Signal, is_one: impl Fn() -> bool) -> Result<(), Errno> {
    use rustix::process::{self, PidfdFlags, pidfd_open, pidfd_send_signal};
    let errno = |error: rustix::io::Errno| Errno::from_raw(error.raw_os_error());
    let (number, to_send) = (process::Pid::from_raw(pid.as_raw()), process::Signal::from_named_raw(signal as i32));
    let (Some(number), Some(to_send)) = (number, to_send) else { return Err(Errno::EINVAL) };
    // Since Linux 5.3.
    let held = pidfd_open(number, PidfdFlags::empty()).map_err(errno)?;
    if !is_one() {
        return Err(Errno::ESRCH);
    }
    pidfd_send_signal(held, to_send).map_err(errno)
}

/// Elsewhere nobody is known to be one.
#[cfg(not(target_os = "linux"))]
pub(super) fn send_below(_pid: Pid, _signal: Signal) -> Result<(), Errno> {
    Err(Errno::ESRCH)
}

/// Who has started a process or taken it in, where that is shown.
fn parent(pid: Pid) -> Option<Pid> {
    stat(pid)?.split(' ').nth(1)?.parse().ok().map(Pid::from_raw)
}

/// When a process began, in the system's own units since it started.
pub(super) fn began(pid: Pid) -> Option<u64> {
    // The 22nd of all; this is the 3rd.
    stat(pid)?.split(' ').nth(19)?.parse().ok()
}

/// What is shown of a process behind its name, which may have anything in it: the state, and more.
fn stat(pid: Pid) -> Option<String> {
    let stat = system_text::read(folder(pid)?.join("stat")).ok()?;
    stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned())
}

/// What a process is called, where that is shown: mostly as its program, of which it is the beginning.
pub(super) fn name(pid: Pid) -> Option<String> {
    system_text::read(folder(pid)?.join("comm")).ok()
}

/// `sleep (12), process 13`: with names where the system tells them. Of a group that nobody leads any more, `process group 14`.
pub(super) fn names(pids: &[Pid]) -> String {
    const MOST: usize = 5;
    let name = |pid: &Pid| {
        let name = name(*pid).unwrap_or_default();
        match name.trim() {
            "" if kill(*pid, None) == Err(Errno::ESRCH) && is_anybody_in(*pid) => format!("process group {pid}"),
            "" => format!("process {pid}"),
            name => format!("{name} ({pid})"),
        }
    };
    let mut names: Vec<String> = pids.iter().take(MOST).map(name).collect();
    if pids.len() > MOST {
        names.push(format!("{} more", pids.len() - MOST));
    }
    names.join(", ")
}

/// Whether a process is known there by the number that it has itself, and by no other (`NSpid`, since Linux 4.1).
fn is_of(status: &str, pid: Pid) -> bool {
    let numbers = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let all = numbers("NSpid:").or_else(|| numbers("Pid:")).unwrap_or_default();
    all.split_whitespace().map(str::parse).eq([Ok(pid.as_raw())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_two_numbers_is_in_another_namespace() {
        let is_of = |status: &str| is_of(status, Pid::from_raw(7));
        assert!(is_of("Name:\tx\nPid:\t7\nPPid:\t1\nNSpid:\t7\n") && is_of("Name:\tx\nPid:\t7\n"));
        for other in
            ["", "Pid:\t8\n", "Pid:\t7\nNSpid:\t7\t7\n", "Pid:\t9\nNSpid:\t9\t7\n", "Pid:\t7\nNSpid:\t\n", "PPid:\t7\n"]
        {
            assert!(!is_of(other), "{other:?}");
        }
        #[cfg(target_os = "linux")]
        assert!(folder(getpid()).is_some_and(|folder| folder.join("comm").exists()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_is_below_whom() {
        use std::process::{Command, Stdio};
        let (own, parent) = (getpid(), nix::unistd::getppid());
        assert!(is_below(own, parent) && !is_below(parent, own) && !is_below(own, own));
        let mut shell = Command::new("sh");
        let mut shell = shell.args(["-c", "cat; true"]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(shell.id() as i32);
        assert!(is_below(pid, own) && is_below(pid, parent) && !is_below(own, pid));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(!is_below(pid, own), "nobody has it any more");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_thread_has_started_is_below_however_many_there_are() {
        use std::{process::Command, sync::mpsc::channel, thread};
        for others in [0, 300] {
            let (wait, end) = channel::<()>();
            let end = std::sync::Mutex::new(end);
            thread::scope(|scope| {
                for _ in 0..others {
                    scope.spawn(|| end.lock().unwrap().recv());
                }
                let start = || Command::new("sleep").arg("60").spawn().unwrap();
                let mut child = scope.spawn(start).join().unwrap();
                assert_eq!(below([getpid()]), [Pid::from_raw(child.id() as i32)], "beside {others} threads");
                child.kill().unwrap();
                child.wait().unwrap();
                drop(wait);
            });
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_has_become_a_program() {
        use std::process::{Command, Stdio};
        let mut shell = Command::new("sh");
        let mut shell = shell.args(["-c", "(read line; exit 7); exit"]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(shell.id() as i32);
        let below = loop {
            match below([pid])[..] {
                [one] => break one,
                _ => assert!(!has_ended(pid)),
            }
        };
        assert_eq!((is_no_program_yet(pid), is_no_program_yet(below), name(below)), (false, true, name(pid)));
        drop(shell.stdin.take());
        assert_eq!(shell.wait().unwrap().code(), Some(7));
        assert!(!is_no_program_yet(pid), "nobody has it any more");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_has_ended_does_not_run() {
        use std::{os::unix::process::CommandExt, process::Command};
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let group = Pid::from_raw(child.id() as i32);
        assert_eq!((of_group(group), has_ended(group)), (Some(vec![group]), false));
        child.kill().unwrap();
        while !has_ended(group) {}
        assert!(folder(group).is_some_and(|folder| folder.exists()), "nobody has waited for it");
        assert_eq!(of_group(group), Some(Vec::new()));
        child.wait().unwrap();
        assert!(has_ended(group));
    }
}
