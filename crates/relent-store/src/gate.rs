//! Who may ask a store that is away.
//!
//! Whoever finds the store away knows it for all: from then on nobody asks at will. All stand in one line, whose first may ask, and
//! ten times a second somebody, as long as nobody is answered. An answer lets two more go, and theirs four, so that a store that
//! comes back meets what has gathered in steps, each as large as what it has shown it can do, and not all of it at once. Nobody
//! is sent away: how long somebody stands there is his own affair.

use crate::race::race;
use relent::{SystemTimer, Timer, Timestamp};
use std::{
    pin::pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Mutex as Line, Notify};

/// How often somebody asks while nobody is answered.
const EVERY: Duration = Duration::from_millis(100);

/// How many go after one who stood in the line was answered.
const MORE: usize = 2;

/// The way to a store, for all operations of a process.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Whether all have to stand in the line.
    is_shut: AtomicBool,
    /// How many were answered.
    answered: AtomicU64,
    line: Line<()>,
    /// How many stand in it.
    standing: AtomicUsize,
    leave: Mutex<Leave>,
    /// Whoever is first is told that he may go.
    granted: Notify,
}

#[derive(Debug, Default)]
struct Leave {
    /// How many may go at once.
    granted: usize,
    /// When somebody went last.
    last: Option<Timestamp>,
}

/// How many had been answered when somebody went, and whether he stood in the line before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    answered: u64,
    has_stood: bool,
}

impl Gate {
    fn leave(&self) -> MutexGuard<'_, Leave> {
        self.leave.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leave to ask without standing in the line, unless the store is away.
    pub(crate) fn pass(&self) -> Option<Pass> {
        (!self.is_shut.load(Ordering::Relaxed)).then(|| self.passed(false))
    }

    fn passed(&self, has_stood: bool) -> Pass {
        Pass { answered: self.answered.load(Ordering::Relaxed), has_stood }
    }

    /// Leave to ask, after all who were here before. Whoever is dropped has left the line.
    pub(crate) async fn turn(&self) -> Pass {
        let _standing = Standing::new(&self.standing);
        let _first = self.line.lock().await;
        loop {
            let Some(wait) = self.wait() else { return self.passed(true) };
            race(pin!(self.granted.notified()), pin!(SystemTimer.sleep(wait))).await;
        }
    }

    /// How long whoever is first has to wait; `None` if he goes.
    fn wait(&self) -> Option<Duration> {
        let (now, mut leave) = (SystemTimer.now(), self.leave());
        let wait = leave.last.map_or(Duration::ZERO, |last| (last + EVERY).since(now));
        if leave.granted == 0 && !wait.is_zero() {
            return Some(wait);
        }
        *leave = Leave { granted: leave.granted.saturating_sub(1), last: Some(now) };
        None
    }

    /// Somebody was answered.
    pub(crate) fn answered(&self, pass: Pass) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let was_shut = self.is_shut.load(Ordering::Relaxed) && self.is_shut.swap(false, Ordering::Relaxed);
        let standing = self.standing.load(Ordering::Relaxed);
        if (pass.has_stood || was_shut) && standing > 0 {
            let mut leave = self.leave();
            // What nobody is there to use is not kept for the next trouble.
            leave.granted = (leave.granted + MORE).min(standing);
            drop(leave);
            self.granted.notify_one();
        }
    }

    /// Somebody found the store away. It is, if nobody has been answered since he went.
    pub(crate) fn found_away(&self, pass: Pass) {
        let is_silent = self.answered.load(Ordering::Relaxed) == pass.answered;
        if is_silent && !self.is_shut.swap(true, Ordering::Relaxed) {
            self.leave().granted = 0;
        }
    }
}

/// Somebody in the line.
struct Standing<'a>(&'a AtomicUsize);

impl Standing<'_> {
    fn new(standing: &AtomicUsize) -> Standing<'_> {
        standing.fetch_add(1, Ordering::Relaxed);
        Standing(standing)
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::Future, sync::Arc};
    use tokio::{task::JoinHandle, time};

    /// A store that answers or not, and who asks it.
    #[derive(Default)]
    struct Far {
        gate: Gate,
        is_up: AtomicBool,
        asked: AtomicUsize,
        under_way: AtomicUsize,
        most_under_way: AtomicUsize,
        done: AtomicUsize,
    }

    /// How long it takes to say something.
    const TRIP: Duration = Duration::from_millis(1);

    impl Far {
        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }

        fn done(&self) -> usize {
            self.done.load(Ordering::Relaxed)
        }

        async fn ask(&self, pass: Pass) -> bool {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
            self.most_under_way.fetch_max(under_way, Ordering::Relaxed);
            time::sleep(TRIP).await;
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            let is_up = self.is_up.load(Ordering::Relaxed);
            if is_up {
                self.gate.answered(pass)
            } else {
                self.gate.found_away(pass)
            }
            is_up
        }

        /// Asks until there is an answer.
        async fn call(&self) {
            let is_answered = match self.gate.pass() {
                Some(pass) => self.ask(pass).await,
                None => false,
            };
            if !is_answered {
                while !self.ask(self.gate.turn().await).await {}
            }
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn calls(far: &Arc<Far>, number: usize) -> Vec<JoinHandle<()>> {
        (0..number).map(|_| far.clone()).map(|far| tokio::spawn(async move { far.call().await })).collect()
    }

    fn up(far: &Far, is_up: bool) {
        far.is_up.store(is_up, Ordering::Relaxed);
    }

    async fn pass<T>(millis: u64, future: impl Future<Output = T>) -> bool {
        time::timeout(Duration::from_millis(millis), future).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_away_is_asked_ten_times_a_second_by_all() {
        let far = Arc::new(Far::default());
        let first = calls(&far, 300);
        time::sleep(TRIP * 2).await;
        // All found out together, and one of them asks already.
        assert_eq!(far.asked(), 301);
        let late = calls(&far, 300);
        time::sleep(Duration::from_secs(10)).await;
        assert!((400..=402).contains(&far.asked()), "{}", far.asked());
        up(&far, true);
        for call in first.into_iter().chain(late) {
            assert!(pass(1000, call).await, "{} of 600", far.done());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_gathered_goes_in_steps_and_soon() {
        let far = Arc::new(Far::default());
        let calls = calls(&far, 300);
        time::sleep(Duration::from_secs(1)).await;
        let before = far.asked();
        far.most_under_way.store(0, Ordering::Relaxed);
        up(&far, true);
        let mut steps = vec![];
        while far.done() == 0 {
            time::sleep(TRIP).await;
        }
        for _ in 0..12 {
            steps.push(far.done());
            time::sleep(TRIP).await;
        }
        assert!(steps.windows(2).all(|two| two[1] <= two[0] * 3 + 1), "{steps:?}");
        assert_eq!(far.done(), 300, "twelve trips are enough: {steps:?}");
        assert_eq!(far.asked() - before, 300, "each asks once");
        assert!(far.most_under_way.load(Ordering::Relaxed) <= 256);
        for call in calls {
            call.await.unwrap();
        }
        assert!(far.gate.pass().is_some());
    }

    /// What was granted to those who are gone does not let others storm the next time.
    #[tokio::test(start_paused = true)]
    async fn leave_that_nobody_used_is_not_kept() {
        let far = Arc::new(Far::default());
        for _ in 0..5 {
            up(&far, false);
            let calls = calls(&far, 100);
            time::sleep(Duration::from_secs(1)).await;
            let before = far.asked();
            time::sleep(Duration::from_secs(1)).await;
            assert!((9..=11).contains(&(far.asked() - before)), "{}", far.asked() - before);
            up(&far, true);
            for call in calls {
                call.await.unwrap();
            }
        }
    }

    /// Nor what was granted to those who went away before they used it.
    #[tokio::test(start_paused = true)]
    async fn leave_of_who_is_gone_is_not_kept() {
        let gate = Gate::default();
        gate.found_away(gate.pass().unwrap());
        let first = gate.turn().await;
        let mut others = [(); 3].map(|()| Box::pin(gate.turn()));
        for other in &mut others {
            assert!(!pass(1, other.as_mut()).await);
        }
        gate.answered(first);
        drop(others);
        gate.found_away(gate.pass().unwrap());
        assert!(pass(200, gate.turn()).await);
        assert!(!pass(90, gate.turn()).await);
    }

    /// A question that nobody answers (a row that somebody has, a network that swallows it) keeps nobody from asking.
    #[tokio::test(start_paused = true)]
    async fn who_asks_and_hears_nothing_holds_up_nobody() {
        let gate = Gate::default();
        gate.found_away(gate.pass().unwrap());
        assert!(gate.pass().is_none());
        let stuck = gate.turn().await;
        assert!(!pass(99, gate.turn()).await);
        assert!(pass(2, gate.turn()).await);
        // Whoever leaves the line while he is first, is followed by the next.
        let (mut first, mut second) = (Box::pin(gate.turn()), Box::pin(gate.turn()));
        assert!(!pass(1, first.as_mut()).await && !pass(1, second.as_mut()).await);
        drop(first);
        assert!(pass(100, second).await);
        gate.answered(stuck);
        assert!(gate.pass().is_some(), "and an answer that comes late is one");
    }

    /// Where others are answered, only those who were not stand in the line.
    #[tokio::test(start_paused = true)]
    async fn who_is_alone_with_its_trouble_shuts_out_nobody() {
        let gate = Gate::default();
        for _ in 0..10 {
            let (unlucky, lucky) = (gate.pass().unwrap(), gate.pass().unwrap());
            gate.answered(lucky);
            gate.found_away(unlucky);
        }
        assert!(gate.pass().is_some());
        // Nor do the answers of others let those go, who may be unlucky again.
        assert!(pass(1, gate.turn()).await);
        let mut turn = Box::pin(gate.turn());
        for _ in 0..9 {
            gate.answered(gate.pass().unwrap());
            assert!(!pass(10, turn.as_mut()).await);
        }
        assert!(pass(11, turn).await);
    }
}
