//! One thread that wakes sleepers, for executors without a timer that we know.

use crate::{
    core::atomic::Counter,
    sync::{Condvar, Mutex, MutexGuard, lock, wake_all},
};
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use std::{
    collections::BTreeMap,
    io, process,
    sync::{OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Ready at a point in time; never, if that lies beyond what the clock can say.
pub(crate) struct Sleep {
    end: Option<Instant>,
    entry: Option<Entry>,
}

/// Where a sleeper is entered.
struct Entry {
    house: &'static House,
    number: usize,
}

impl Sleep {
    pub(crate) fn until(end: Option<Instant>) -> Sleep {
        Sleep { end, entry: None }
    }

    /// Takes the sleeper out, unless it was entered before a fork: that thread is not here, and somebody who is not
    /// here either may hold its lock for ever.
    fn leave(&mut self) {
        if let (Some(end), Some(Entry { house, number })) = (self.end, self.entry.take())
            && house.process == process::id()
        {
            drop(house.alarm.remove((end, number)));
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(end) = self.end else { return Poll::Pending };
        if Instant::now() >= end {
            self.leave();
            return Poll::Ready(());
        }
        let house = House::of_this_process();
        let number = match &self.entry {
            Some(entry) if entry.house.process == house.process => entry.number,
            _ => house.alarm.numbers.next(),
        };
        match house.enter((end, number), cx.waker().clone()) {
            Ok(()) => {
                self.entry = Some(Entry { house, number });
                Poll::Pending
            }
            Err(_) => {
                // There is no thread to be had, so this one waits: late for its other tasks, but not for ever.
                thread::sleep(end.saturating_duration_since(Instant::now()));
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("end", &self.end).finish_non_exhaustive()
    }
}

/// The alarm of one process, and, behind it, that of a process forked from it, whose thread does not come along.
struct House {
    process: u32,
    alarm: Alarm,
    next: OnceLock<&'static House>,
}

impl House {
    fn of_this_process() -> &'static House {
        House::of(process::id())
    }

    /// The alarm of a process. Each has one for as long as it runs.
    fn of(process: u32) -> &'static House {
        static FIRST: OnceLock<&'static House> = OnceLock::new();
        let mut next = &FIRST;
        loop {
            let house = match next.get() {
                Some(house) => *house,
                None => {
                    // Made before, because a fork in the middle of `get_or_init` would leave the child waiting for it.
                    let new: &'static House =
                        Box::leak(Box::new(House { process, alarm: Alarm::new(), next: OnceLock::new() }));
                    match next.set(new) {
                        Ok(()) => new,
                        Err(_) => continue,
                    }
                }
            };
            if house.process == process {
                return house;
            }
            next = &house.next;
        }
    }

    /// Enters a sleeper, and starts the thread for the first.
    fn enter(&'static self, key: Key, waker: Waker) -> io::Result<()> {
        let start = || {
            let named = thread::Builder::new().name("relent-timer".to_owned());
            named.spawn(|| self.alarm.run()).map(drop)
        };
        let replaced = self.alarm.insert(key, waker, start)?;
        drop(replaced);
        Ok(())
    }
}

/// When a sleeper wants to be woken, and its number.
type Key = (Instant, usize);

/// Who sleeps until when, and the thread's wait for the first of them.
struct Alarm {
    numbers: Counter,
    sleepers: Mutex<Sleepers>,
    changed: Condvar,
}

#[derive(Default)]
struct Sleepers {
    by_end: BTreeMap<Key, Waker>,
    is_running: bool,
    thread: Thread,
    /// When the thread will look at the latest: when the first of those was due whom it saw or was woken for. They may
    /// have left since. Who is due no sooner does not wake it.
    until: Option<Instant>,
}

/// What the thread does, while somebody else has the lock.
#[derive(Default, PartialEq, Eq)]
enum Thread {
    /// It will look who sleeps before it waits.
    #[default]
    Looks,
    Waits,
}

impl Alarm {
    fn new() -> Alarm {
        Alarm { numbers: Counter::new(), sleepers: Mutex::new(Sleepers::default()), changed: Condvar::new() }
    }

    /// Enters a sleeper or renews its waker; what it replaced, to be dropped without the lock.
    fn insert(&self, key: Key, waker: Waker, start: impl FnOnce() -> io::Result<()>) -> io::Result<Option<Waker>> {
        let mut sleepers = lock(&self.sleepers);
        if !sleepers.is_running {
            start()?;
            sleepers.is_running = true;
        }
        let replaced = sleepers.by_end.insert(key, waker);
        // A sleeper that leaves wakes nobody, so most that come and go again do not either: the thread waits for one before.
        if sleepers.thread == Thread::Waits && sleepers.until.is_none_or(|until| key.0 < until) {
            sleepers.thread = Thread::Looks;
            sleepers.until = Some(key.0);
            self.changed.notify_one();
        }
        Ok(replaced)
    }

    /// Takes a sleeper out; its waker, to be dropped without the lock.
    fn remove(&self, key: Key) -> Option<Waker> {
        lock(&self.sleepers).by_end.remove(&key)
    }

    fn run(&self) {
        loop {
            let due = self.wait(Instant::now);
            // A panic is that of the task that was to be woken, and has been told; the others still want to wake.
            core::mem::forget(wake_all(due));
        }
    }

    /// Waits until somebody is due; who is.
    fn wait(&self, now: impl Fn() -> Instant) -> Vec<Waker> {
        let mut sleepers = lock(&self.sleepers);
        loop {
            let now = now();
            let due = due(&mut sleepers, now);
            if !due.is_empty() {
                sleepers.thread = Thread::Looks;
                return due;
            }
            let first = sleepers.by_end.first_key_value().map(|((end, _), _)| *end);
            let told = sleepers.until.filter(|until| *until > now);
            sleepers.until = first.into_iter().chain(told).min();
            sleepers.thread = Thread::Waits;
            let wait = sleepers.until.map_or(Duration::MAX, |end| end - now);
            sleepers = self.changed.wait_timeout(sleepers, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn due(sleepers: &mut MutexGuard<'_, Sleepers>, now: Instant) -> Vec<Waker> {
    let mut due = Vec::new();
    while let Some(entry) = sleepers.by_end.first_entry().filter(|entry| entry.key().0 <= now) {
        due.push(entry.remove());
    }
    due
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

#[cfg(all(test, loom))]
mod models;
