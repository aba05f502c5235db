//! How runs are followed and stopped, and why they stop.

use super::memory;
use std::{
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Why a run stopped that its caller stopped.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// A run that needs more attempts than this is not going to end.
pub(crate) fn most_attempts(clients: u64) -> u64 {
    clients.saturating_mul(10_000).clamp(10_000_000, 20_000_000_000)
}

/// Attempts from one look at whether a run is to stop to the next.
pub(crate) const TICK: u64 = 1 << 16;

/// Why a run stopped that went on for longer than it may, in nanoseconds of its own time.
pub(crate) fn past(limit: u64) -> String {
    format!("not over after {}", relent::duration::Human(Duration::from_nanos(limit)))
}

/// Why a run stopped that needed more attempts than [`most_attempts`].
pub(crate) fn past_attempts(most: u64) -> String {
    format!("not over after {most} attempts")
}

/// What is looked at now and then, by whichever thread asks whether it is over.
struct Watch {
    next: Instant,
    starves: Box<dyn Fn() -> bool + Send>,
}

/// From one look to the next.
const LOOK: Duration = Duration::from_millis(50);

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("next", &self.next).finish_non_exhaustive()
    }
}

/// How a caller follows and stops a simulation that is under way.
///
/// ```
/// let control = relent_sim::Control::default();
/// control.stop();
/// assert!(control.is_stopped());
/// ```
#[derive(Debug, Default)]
pub struct Control {
    stopped: AtomicBool,
    /// Whether runs stop because they have taken the memory there was.
    starves: AtomicBool,
    watch: Mutex<Option<Watch>>,
    pub(crate) done_runs: AtomicU64,
    pub(crate) all_runs: AtomicU64,
    pub(crate) attempts: AtomicU64,
    pub(crate) advising: AtomicBool,
    /// The threads that share the runs.
    pub(crate) at_work: AtomicUsize,
}

impl Control {
    /// Stops the simulation soon. What is finished is kept.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether no run goes on: it was told to stop, or there is no memory left.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopped() || self.starves()
    }

    /// From now on runs stop once this is so.
    fn watched_by(&self, starves: impl Fn() -> bool + Send + 'static) {
        let watch = Watch { next: Instant::now() + LOOK, starves: Box::new(starves) };
        *self.watch.lock().expect("no look panics") = Some(watch);
    }

    /// Does what was reckoned to need so many bytes, and stops it if it takes more and leaves less than twice that again: a list that grows
    /// takes twice its room at once. `None`: it was stopped. Whoever works looks now and then: a thread that did would itself take addresses in
    /// advance, for which there may be no room.
    pub(crate) fn watched<T>(&self, needed: u64, work: impl FnOnce() -> T) -> Option<T> {
        if let (Some(at_first), Some(_)) = (memory::taken(), memory::free()) {
            let most = at_first.saturating_add(needed);
            self.watched_by(move || {
                let more = memory::taken().unwrap_or(0).saturating_sub(most);
                more > 0 && memory::free().is_some_and(|free| free / 2 < more)
            });
        }
        let worked = work();
        (!self.unwatched()).then_some(worked)
    }

    /// Whether a list has room for so many more, for which it takes memory now; if there is none, no run goes on. For lists of which nobody
    /// knows how long they will be, now and then, so that they take none in between.
    #[cold]
    pub(crate) fn has_room(&self, list: &mut impl memory::Grows, more: usize) -> bool {
        let has = memory::has_room(list, more, self.at_work.load(Ordering::Relaxed));
        self.starves.fetch_or(!has, Ordering::Relaxed);
        has
    }

    /// Nobody looks any more. Whether runs were stopped.
    fn unwatched(&self) -> bool {
        *self.watch.lock().expect("no look panics") = None;
        self.starves.swap(false, Ordering::Relaxed)
    }

    fn starves(&self) -> bool {
        if !self.starves.load(Ordering::Relaxed)
            // Whoever else looks tells all.
            && let Ok(mut watch) = self.watch.try_lock()
            && let Some(watch) = watch.as_mut().filter(|watch| watch.next <= Instant::now())
        {
            self.starves.fetch_or((watch.starves)(), Ordering::Relaxed);
            watch.next = Instant::now() + LOOK;
        }
        self.starves.load(Ordering::Relaxed)
    }

    /// Runs done, runs in all, and attempts simulated so far.
    pub fn progress(&self) -> (u64, u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.done_runs), load(&self.all_runs), load(&self.attempts))
    }

    /// Whether the runs are done, and advice is being looked for.
    pub fn is_advising(&self) -> bool {
        self.advising.load(Ordering::Relaxed)
    }

    /// Why a run is to stop that has made so many attempts, of at most so many. For after every [`TICK`] of them.
    #[cold]
    pub(crate) fn stops(&self, attempts: u64, most: u64) -> Option<String> {
        self.tick(TICK);
        self.stopped().or_else(|| (attempts >= most).then(|| past_attempts(most)))
    }

    /// Why a run is to stop already.
    pub(crate) fn stopped(&self) -> Option<String> {
        self.is_over().then(|| INTERRUPTED.to_owned())
    }

    /// The numbers of so many clients, as long as nobody stops it: for what is made ready for each of them.
    pub(crate) fn each(&self, clients: usize) -> impl Iterator<Item = u32> {
        (0..clients as u32).take_while(|client| !u64::from(*client).is_multiple_of(TICK) || !self.is_over())
    }

    /// Notes work done; false if the run should stop.
    pub(crate) fn tick(&self, attempts: u64) -> bool {
        self.attempts.fetch_add(attempts, Ordering::Relaxed);
        !self.is_over()
    }
}
