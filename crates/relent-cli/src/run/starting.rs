//! A command that does not start. Whoever starts a program waits until the system has it, and a file system that hangs, or somebody who
//! looks at programs first, may take as long as they like. So a thread beside kills it in time, or for a signal: none of it has run.
//!
//! Ctrl-Z just then stops what is to become the program, too, which has a group of its own by then, so that no shell can call it back.
//! The thread does: once it runs, it is stopped with relent as any command is.

use super::{processes, ways::LOOK};
use crate::system_text;
use nix::{
    sys::signal::{SigSet, Signal, kill},
    unistd::{Pid, getpid},
};
use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The thread, from outside.
pub(super) struct Starting(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    /// What is being started.
    start: Option<Start>,
    is_over: bool,
}

struct Start {
    began: Instant,
    limit: Option<Instant>,
    /// Children that relent had before.
    others: Vec<Pid>,
}

/// As long as it is there, a program is being started.
pub(super) struct Begun<'a>(&'a Shared);

/// What takes no longer is about to run, and told as any command is.
const MOMENT: Duration = Duration::from_millis(200);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Starting {
    /// `is_asked` says whether there is a signal that ends the run.
    pub(super) fn new(is_asked: impl Fn() -> bool + Send + 'static) -> Starting {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        if cfg!(target_os = "linux") {
            // Where there is no thread more, it is waited for.
            let _ = thread::Builder::new().name("starting".into()).spawn(move || watch(&of_thread, is_asked));
        }
        Starting(shared)
    }

    /// A program is about to be started, which has time until then.
    pub(super) fn begins(&self, limit: Option<Instant>, others: &[Pid]) -> Begun<'_> {
        self.0.lock().start = Some(Start { began: Instant::now(), limit, others: others.to_vec() });
        self.0.news.notify_all();
        Begun(&self.0)
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.lock().start = None;
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.news.notify_all();
    }
}

fn watch(shared: &Shared, is_asked: impl Fn() -> bool) {
    // Of these one takes back the other as long as nobody has heard it, and relent hears them when it has started the program.
    let _ = [Signal::SIGTSTP, Signal::SIGCONT].into_iter().collect::<SigSet>().thread_block();
    let mut state = shared.lock();
    while !state.is_over {
        let Some(start) = &state.start else {
            state = shared.news.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let is_late = start.limit.is_some_and(|limit| limit <= Instant::now());
        let took = start.began.elapsed();
        // Under the lock: what is over is signalled by nobody.
        if took >= MOMENT && (is_late || is_asked()) {
            start.signal(Signal::SIGKILL, |_| true);
        } else if took >= LOOK {
            start.signal(Signal::SIGCONT, processes::is_stopped);
        }
        state = shared.news.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
    }
}

impl Start {
    /// Signals those of the children of whom that is so that are not a program of their own yet: who has our name and user, and began none. None
    /// of this asks a process itself, which may not answer.
    fn signal(&self, signal: Signal, is_so: impl Fn(Pid) -> bool) {
        let Some(folder) = processes::folder(getpid()) else { return };
        let own = getpid().to_string();
        let children = system_text::read(folder.join("task").join(own).join("children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok().map(Pid::from_raw));
        let known = |pid| (processes::owner(pid), processes::name(pid));
        let ours = known(getpid());
        // In this order: who is none yet after that was none before.
        let is_none_yet = |pid| known(pid) == ours && processes::is_no_program_yet(pid);
        for pid in children.filter(|pid| !self.others.contains(pid) && is_so(*pid) && is_none_yet(*pid)) {
            let _ = kill(pid, signal);
        }
    }
}
