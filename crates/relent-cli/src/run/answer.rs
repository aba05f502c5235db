//! What a process is asked that may never answer.
//!
//! Anybody can make one whose memory nobody can read for as long as it likes (it maps a file of a file system of its own, which keeps
//! that waiting), and with the memory goes what the system shows of it: its environment and its command line. Who looks at all processes
//! would stand still with it. So others' are asked on threads beside, and who is late is not waited for. Our own user's, which nobody else
//! makes, are asked at once: a machine that is busy takes its time from one thread to the next.

use super::processes;
use nix::unistd::{Pid, geteuid};
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{self, Sender},
    },
    thread,
    time::Duration,
};

/// Who was asked and has not answered.
static OWING: Mutex<Vec<Debt>> = Mutex::new(Vec::new());

/// Threads that have nobody to ask.
static READERS: Mutex<Vec<Sender<Question>>> = Mutex::new(Vec::new());

type Question = Box<dyn FnOnce() + Send>;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Debt {
    of: Pid,
    owner: u32,
}

/// How long an answer is waited for: as long as all have answered, and where its user owes some, or several do.
const PATIENCE: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(50)];

/// So many may owe an answer, of one user and of all: then no more of them are asked.
const MOST_OWING: [usize; 2] = [3, 30];

/// What it answers within a moment. `None`: it has not, or it owes an answer from before.
pub(super) fn of<T: Send + 'static>(pid: Pid, ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match processes::owner(pid) {
        Some(owner) if owner != geteuid().as_raw() => answered(Debt { of: pid, owner }, ask),
        // Who is gone, or is not shown, keeps nobody waiting either.
        _ => Some(ask()),
    }
}

fn answered<T: Send + 'static>(debt: Debt, ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let patience = patience(debt)?;
    let idle = lock(&READERS).pop();
    let Some(reader) = idle.or_else(reader) else {
        // Where there is no thread to be had, it is waited for.
        return Some(ask());
    };
    let (answer, answers) = mpsc::channel();
    let question = move || {
        let told = ask();
        let mut owing = lock(&OWING);
        owing.retain(|one| *one != debt);
        let _ = answer.send(told);
    };
    reader.send(Box::new(question)).ok()?;
    let told = answers.recv_timeout(patience).ok().or_else(|| {
        let mut owing = lock(&OWING);
        let late = answers.try_recv().ok();
        if late.is_none() {
            owing.push(debt);
        }
        late
    });
    // One that waits for its answer ends with that.
    if told.is_some() {
        lock(&READERS).push(reader);
    }
    told
}

/// How long the answer is waited for. `None`: it is not asked.
fn patience(debt: Debt) -> Option<Duration> {
    let owing = lock(&OWING);
    let of_user = owing.iter().filter(|one| one.owner == debt.owner).count();
    let is_asked = of_user < MOST_OWING[0] && owing.len() < MOST_OWING[1] && !owing.contains(&debt);
    is_asked.then_some(PATIENCE[usize::from(of_user > 0 || owing.len() >= MOST_OWING[0])])
}

fn reader() -> Option<Sender<Question>> {
    let (asks, questions) = mpsc::channel::<Question>();
    let read = move || questions.into_iter().for_each(|question| question());
    thread::Builder::new().name("reader".into()).stack_size(256 << 10).spawn(read).ok().map(|_| asks)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Receiver;

    fn debt(nth: i32, owner: u32) -> Debt {
        Debt { of: Pid::from_raw(1_000_000_000 + nth), owner }
    }

    fn waits(gate: Receiver<()>) -> impl FnOnce() -> bool + Send + 'static {
        move || gate.recv().is_err()
    }

    /// Who asks goes on, asks those again who have answered late, and nobody else of a user of whom several owe an answer, nor of all.
    #[test]
    fn who_does_not_answer_holds_up_nobody() {
        let (go, mut gates): (Vec<_>, Vec<_>) = (0..30).map(|_| mpsc::channel::<()>()).unzip();
        let mut wait = |nth, owner| answered(debt(nth, owner), waits(gates.remove(0)));
        for nth in 0..3 {
            assert_eq!(wait(nth, 7), None);
        }
        assert_eq!(answered(debt(0, 7), || unreachable!("it owes an answer")), None::<()>);
        assert_eq!(answered(debt(3, 7), || unreachable!("three of this user do")), None::<()>);
        assert_eq!(answered(debt(3, 8), || 8), Some(8));
        for nth in 3..30 {
            assert_eq!(wait(nth, 7 + nth as u32 / 3), None);
        }
        assert_eq!(answered(debt(30, 40), || unreachable!("so many do")), None::<()>);
        drop(go);
        while !lock(&OWING).is_empty() {
            thread::yield_now();
        }
        for (nth, owner) in [(0, 7), (3, 7), (30, 40)] {
            assert_eq!(answered(debt(nth, owner), || 9), Some(9));
        }
    }

    /// Nobody else makes those.
    #[test]
    fn our_own_are_waited_for() {
        let own = Pid::from_raw(std::process::id() as i32);
        let late = || {
            thread::sleep(PATIENCE[0] + PATIENCE[1]);
            7
        };
        assert_eq!(of(own, late), Some(7));
    }
}
