//! Who may ask a store that is away.
//!
//! Whoever finds the store away knows it for all: from then on nobody asks at will. All stand in one line, whose first may ask, and
//! ten times a second somebody, as long as nobody is answered. An answer lets two more go, and theirs four, so that a store that
//! comes back meets what has gathered in steps, each as large as what it has shown it can do, and not all of it at once. Nobody
//! is sent away: how long somebody stands there is his own affair.
//!
//! Nobody waits for another to be polled: a task may leave a future lying that stands first, or was let go. So each who stands there has a
//! timer of his own, and looks himself. Who lets his time pass is passed over by who looks next, and has his place again when he looks.
//! Who stands behind looks the less often the more are before him, from ten times a second to every few seconds, so that of very many few
//! look at a time.

use crate::race::race;
use relent::{SystemTimer, Timer, Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::poll_fn,
    mem,
    pin::pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Poll, Waker},
    time::Duration,
};

/// How often somebody asks while nobody is answered.
const EVERY: Duration = Duration::from_millis(100);

/// How long it is the first's turn alone.
const GRACE: Duration = Duration::from_millis(10);

/// How much later each looks than who stands before him, and of how many that is so.
const APART: Duration = Duration::from_millis(1);
const FRONT: u64 = 2000;

/// How many go after one who stood in the line was answered.
const MORE: usize = 2;

/// The way to a store, for all operations of a process.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Whether all have to stand in the line.
    is_shut: AtomicBool,
    /// How many were answered.
    answered: AtomicU64,
    line: Mutex<Line>,
}

/// Each who stands in it has a number, and who came first the lowest.
#[derive(Debug, Default)]
struct Line {
    next: u64,
    /// Who waits. Without a waker he was woken, and has not looked since.
    waiting: BTreeMap<u64, Option<Waker>>,
    /// Who may go at once, when he looks.
    let_go: BTreeSet<u64>,
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
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leave to ask without standing in the line, unless the store is away.
    pub(crate) fn pass(&self) -> Option<Pass> {
        (!self.is_shut.load(Ordering::Relaxed)).then(|| self.passed(false))
    }

    fn passed(&self, has_stood: bool) -> Pass {
        Pass { answered: self.answered.load(Ordering::Relaxed), has_stood }
    }

    /// Leave to ask, after all who were here before and look. Whoever is dropped has left the line.
    pub(crate) async fn turn(&self) -> Pass {
        let standing = Standing::new(self);
        loop {
            let Some(wait) = poll_fn(|cx| Poll::Ready(standing.look(cx.waker()))).await else {
                return self.passed(true);
            };
            let mut is_woken = false;
            let woken = poll_fn(|_| if mem::replace(&mut is_woken, true) { Poll::Ready(()) } else { Poll::Pending });
            race(pin!(woken), pin!(SystemTimer.sleep(wait))).await;
        }
    }

    /// Somebody was answered.
    pub(crate) fn answered(&self, pass: Pass) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let was_shut = self.is_shut.load(Ordering::Relaxed) && self.is_shut.swap(false, Ordering::Relaxed);
        if pass.has_stood || was_shut {
            let mut line = self.line();
            // What nobody is there to use is not kept for the next trouble.
            let more = [(); MORE].map(|()| line.let_one_go());
            let first = line.first();
            drop(line);
            wake(more.into_iter().chain([first]));
        }
    }

    /// Somebody found the store away. It is, if nobody has been answered since he went.
    pub(crate) fn found_away(&self, pass: Pass) {
        let is_silent = self.answered.load(Ordering::Relaxed) == pass.answered;
        if is_silent && !self.is_shut.swap(true, Ordering::Relaxed) {
            self.line().let_go.clear();
        }
    }
}

fn wake(those: impl IntoIterator<Item = Option<Waker>>) {
    those.into_iter().flatten().for_each(Waker::wake);
}

impl Line {
    /// The first may go; he is to be woken.
    fn let_one_go(&mut self) -> Option<Waker> {
        let (number, waker) = self.waiting.pop_first()?;
        self.let_go.insert(number);
        waker
    }

    /// Whoever is first now is to be woken, so that he knows.
    fn first(&mut self) -> Option<Waker> {
        self.waiting.first_entry()?.get_mut().take()
    }

    /// Those before somebody stand in it no more, until they look.
    fn without_those_before(&mut self, number: u64) -> BTreeMap<u64, Option<Waker>> {
        let rest = self.waiting.split_off(&number);
        mem::replace(&mut self.waiting, rest)
    }

    /// How many stand before somebody, at most.
    fn before(&self, number: u64) -> u64 {
        self.waiting.first_key_value().map_or(0, |(&first, _)| number.saturating_sub(first))
    }
}

/// Somebody in the line.
struct Standing<'a> {
    gate: &'a Gate,
    number: u64,
}

impl Standing<'_> {
    fn new(gate: &Gate) -> Standing<'_> {
        let number = {
            let mut line = gate.line();
            line.next += 1;
            line.next
        };
        Standing { gate, number }
    }

    /// How long he waits until he looks again, unless he is woken; `None` if he goes.
    fn look(&self, waker: &Waker) -> Option<Duration> {
        let (now, waker, mut line) = (SystemTimer.now(), waker.clone(), self.gate.line());
        let before = line.before(self.number);
        let due = line.last.map_or(now, |last| last + EVERY) + if before > 0 { GRACE } else { Duration::ZERO };
        let was_let_go = line.let_go.remove(&self.number);
        if was_let_go || due <= now {
            line.last = Some(now);
            let passed_over = if was_let_go { BTreeMap::new() } else { line.without_those_before(self.number) };
            drop(line);
            drop(passed_over);
            return None;
        }
        let older = line.waiting.insert(self.number, Some(waker));
        drop(line);
        drop(older);
        let later = before.min(FRONT) + before.saturating_sub(FRONT) % FRONT;
        Some(due.since(now) + APART * u32::try_from(later).unwrap_or(u32::MAX))
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        let mut line = self.gate.line();
        let was_first = line.waiting.first_key_value().is_some_and(|(&first, _)| first == self.number);
        let own = line.waiting.remove(&self.number);
        // Leave that he did not use is for the next.
        let was_let_go = line.let_go.remove(&self.number);
        let next = if was_let_go { line.let_one_go() } else { None };
        let first = if was_let_go || was_first { line.first() } else { None };
        drop(line);
        drop(own);
        wake([next, first]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        future::Future,
        sync::{Arc, atomic::AtomicUsize},
    };
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

    /// As a task does that goes on with something else (`select!`), and keeps the future.
    async fn left_lying<'a>(gate: &'a Gate, number: usize) -> Vec<impl Future<Output = Pass> + Unpin + 'a> {
        let mut those: Vec<_> = (0..number).map(|_| Box::pin(gate.turn())).collect();
        for one in &mut those {
            assert!(!pass(0, one.as_mut()).await);
        }
        those
    }

    #[tokio::test(start_paused = true)]
    async fn who_stands_first_and_is_left_lying_holds_up_nobody() {
        for number in [1, 16] {
            let gate = Gate::default();
            gate.found_away(gate.pass().unwrap());
            gate.turn().await;
            let lying = left_lying(&gate, number).await;
            assert!(!pass(100, gate.turn()).await, "it is their turn");
            assert!(pass(30, gate.turn()).await, "who looks next passes {number} over");
            let mut now = time::Instant::now();
            for _ in 0..20 {
                let last = gate.turn().await;
                assert_eq!(now.elapsed(), EVERY, "they stand no more before anybody");
                gate.found_away(last);
                now = time::Instant::now();
            }
            gate.answered(gate.turn().await);
            assert!(gate.pass().is_some());
            drop(lying);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_let_go_and_left_lying_holds_up_nobody_and_waits_again() {
        let gate = Arc::new(Gate::default());
        gate.found_away(gate.pass().unwrap());
        let first = gate.turn().await;
        let mut lying = left_lying(&gate, MORE).await;
        let others: Vec<_> = (0..50)
            .map(|_| gate.clone())
            .map(|gate| {
                tokio::spawn(async move {
                    let pass = gate.turn().await;
                    gate.answered(pass);
                })
            })
            .collect();
        time::sleep(TRIP).await;
        gate.answered(first);
        let now = time::Instant::now();
        for other in others {
            assert!(pass(1000, other).await);
        }
        assert!(now.elapsed() <= EVERY, "{:?}", now.elapsed());
        // What was theirs then is no leave for the next trouble.
        gate.found_away(gate.pass().unwrap());
        gate.turn().await;
        for one in &mut lying {
            assert!(!pass(0, one).await);
        }
        for one in lying {
            let now = time::Instant::now();
            one.await;
            assert_eq!(now.elapsed(), EVERY);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_came_first_goes_first_though_another_looks_before() {
        let gate = Gate::default();
        gate.found_away(gate.pass().unwrap());
        gate.turn().await;
        let mut lying = left_lying(&gate, 3).await;
        for left in (0..3).rev() {
            time::sleep(EVERY).await;
            for other in &mut lying[1..] {
                assert!(!pass(0, other).await);
            }
            assert!(pass(0, lying.remove(0)).await, "{left} come after");
        }
    }

    /// Of very many that stand there, few look at a time.
    #[tokio::test(start_paused = true)]
    async fn who_stands_far_behind_looks_seldom() {
        let gate = Arc::new(Gate::default());
        gate.found_away(gate.pass().unwrap());
        gate.turn().await;
        let looked = Arc::new(AtomicUsize::new(0));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..5_000 {
            let (gate, looked) = (gate.clone(), looked.clone());
            tasks.spawn(async move {
                let mut turn = pin!(gate.turn());
                poll_fn(|cx| {
                    looked.fetch_add(1, Ordering::Relaxed);
                    turn.as_mut().poll(cx)
                })
                .await;
            });
        }
        time::sleep(Duration::from_secs(4)).await;
        let looked = looked.load(Ordering::Relaxed) - 5_000;
        assert!(looked < 4 * 5_000, "{looked} times in four seconds");
    }
}
