//! An upstream that many processes share.

mod ledger;
mod pacing;

use self::{
    ledger::{Counted, Ledger},
    pacing::{Pacing, SOON},
};
use crate::{
    Delta, Engine, Error, Held, Key, Nonce, Notice, Shared, SharedRate, Store, notice::heedless, race::race,
    rules::RETRY,
};
use relent::{Breaker, BreakerState, Budget, Limit, LimitSettings, SystemTimer, Timer, Timestamp, Upstream, rng};
use std::{
    fmt,
    ops::Deref,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::task::JoinHandle;

/// How often processes tell each other.
const EVERY: Duration = Duration::from_millis(100);

/// What is shared of an upstream, and when all stop.
///
/// ```
/// use relent_store::Sharing;
/// use std::time::Duration;
///
/// // A tenth of all calls may be retried; when half of the processes have an open breaker, all have; ten failures in a row, of
/// // whomever, open it for 30 s.
/// let sharing = Sharing { quorum: 0.5, in_a_row: Some(10), window: Duration::from_secs(30), ..Sharing::default() };
/// assert_eq!((sharing.ratio, sharing.min_per_second), (Some(0.1), 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharing {
    /// Which share of the calls of all processes may be retried, 0 to 1; `None` shares no budget. A tenth by default.
    pub ratio: Option<f64>,
    /// Retries a second that all processes together may make in any case. One by default.
    pub min_per_second: u32,
    /// Over how long calls and retries are counted, and for how long [`in_a_row`](Sharing::in_a_row) holds: a second to an hour. Ten
    /// seconds by default.
    pub window: Duration,
    /// The breaker opens for all when at least this share of the processes, or of their calls, has an open one, and two of them at
    /// least: 0 to 1. A half by default.
    pub quorum: f64,
    /// The breaker opens for all after so many failures in a row, of whichever processes, until there was none for a
    /// [`window`](Sharing::window): for processes too short to have a breaker of their own. `None` by default.
    pub in_a_row: Option<u64>,
    /// Whether a [rate](Limit::rate) of the upstream is one for all processes: `true` by default. Each books from the store what it
    /// used since the last merge, and one permit more; so all together make no more attempts than it says, over the time between
    /// two merges. Where nobody called for a while, the first waits some milliseconds for its permit.
    pub rate: bool,
    /// How often processes tell each other: a tenth of a second by default, at least a hundredth. All should tell as often: what one has
    /// reserved is free to who tells more often after three times that one's interval, and two seconds at least.
    pub every: Duration,
}

impl Default for Sharing {
    fn default() -> Sharing {
        Sharing {
            ratio: Some(0.1),
            min_per_second: 1,
            window: Duration::from_secs(10),
            quorum: 0.5,
            in_a_row: None,
            rate: true,
            every: EVERY,
        }
    }
}

impl Sharing {
    fn interval(&self) -> Duration {
        self.every.max(SOON)
    }

    fn window_seconds(&self) -> f64 {
        crate::rules::seconds(self.window) as f64
    }

    /// What this process may spend until it tells again, having reserved so much, and what it may reserve then: of what all have left, an equal
    /// share. Nobody spends what another has reserved.
    fn share(&self, shared: &Shared, reserves: u64) -> (f64, u64) {
        let parts = RETRY as f64;
        let left = self.ratio.unwrap_or(0.0) * shared.calls as f64 + self.floor() - shared.retries as f64;
        let equal = left / shared.processes.max(1) as f64;
        let free = (left - shared.reserved as f64 / parts).clamp(0.0, reserves as f64 / parts);
        // Where all have spent too much, what this process earns by its own calls pays for that first. A cast saturates.
        (equal.min(free), (equal.max(0.0) * parts).ceil() as u64)
    }

    fn floor(&self) -> f64 {
        f64::from(self.min_per_second) * self.window_seconds()
    }

    /// Whether all should stop.
    fn stops(&self, shared: &Shared) -> bool {
        match shared.held {
            Some(Held::Open) => return true,
            Some(Held::Closed) => return false,
            None => {}
        }
        let quorum = self.quorum.clamp(0.0, 1.0);
        let is_most = |some: u64, all: u64| all > 0 && some as f64 >= quorum * all as f64;
        let by_votes =
            shared.open >= 2 && (is_most(shared.open, shared.processes) || is_most(shared.open_calls, shared.calls));
        let by_row = self.in_a_row.is_some_and(|most| shared.run >= most.max(1) && shared.failures > 0);
        by_votes || by_row
    }
}

/// An upstream whose budget, breaker and rate are shared by all processes that give it the same name in the same store. Made by
/// [`Store::share`].
///
/// A decision never waits: each process decides by what it last knew, and tells the others every tenth of a second. When the store is
/// away, each goes on alone with its share, and [says so](Notice::Alone) once.
pub struct SharedUpstream<E: Engine> {
    upstream: Arc<Upstream>,
    teller: Arc<Teller<E>>,
    telling: JoinHandle<()>,
}

impl<E: Engine> Deref for SharedUpstream<E> {
    type Target = Arc<Upstream>;

    fn deref(&self) -> &Arc<Upstream> {
        &self.upstream
    }
}

impl<E: Engine> fmt::Debug for SharedUpstream<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedUpstream").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

pub(crate) struct Teller<E: Engine> {
    store: Store<E>,
    name: Key,
    process: Nonce,
    sharing: Sharing,
    upstream: Arc<Upstream>,
    ledger: &'static Ledger,
    pacing: Option<&'static Pacing>,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    seq: u64,
    /// The last one whose answer was heard.
    learnt: u64,
    /// What was sent, or is to be sent again, because no answer came.
    pending: Option<Delta>,
    /// What was counted since.
    waiting: Counted,
    /// What is to be reserved, in millionths of a retry.
    wants: u64,
    known: Shared,
    is_alone: bool,
    /// Until when what this process may spend has been reckoned.
    reckoned: Timestamp,
    /// What we have set the breaker to, for all.
    held: Option<Held>,
    has_left: bool,
}

impl<E: Engine> Store<E> {
    /// Shares an upstream's budget, breaker and rate with all processes that give it this name in this store. `upstream` has what
    /// this process has of its own: a breaker, which votes (without one it gets one that never opens by itself), a limit of what is in flight, a hedge. Its budget is replaced by the
    /// shared one; a [rate](Limit::rate) is that of all together, [unless](Sharing::rate) it is not to be shared.
    ///
    /// What is counted is told on the tokio runtime this is called on. A few words of memory stay for each upstream that is shared,
    /// until the process ends.
    ///
    /// # Errors
    ///
    /// What the store says the first time it is asked.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use relent::{Breaker, Policy, Upstream};
    /// use relent_store::{Key, Memory, Sharing, Store};
    ///
    /// let store = Store::new(Memory::new());
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(5));
    /// let bank = store.share(&Key::new("bank")?, bank, Sharing::default()).await?;
    /// assert_eq!(Policy::default().on(bank.clone()).retry(async |_| Ok::<_, String>(1)).await.unwrap(), 1);
    /// let known = bank.merge().await?;
    /// assert_eq!((known.calls, known.successes), (1, 1));
    /// # Ok::<_, relent_store::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn share(&self, name: &Key, upstream: Upstream, sharing: Sharing) -> Result<SharedUpstream<E>, Error> {
        let (upstream, teller) = started(self, name, upstream, sharing).await?;
        let telling = tokio::spawn({
            let teller = teller.clone();
            async move { teller.run().await }
        });
        Ok(SharedUpstream { upstream, teller, telling })
    }
}

/// What is shared, and who tells the others when it is run.
pub(crate) async fn started<E: Engine>(
    store: &Store<E>,
    name: &Key,
    upstream: Upstream,
    sharing: Sharing,
) -> Result<(Arc<Upstream>, Arc<Teller<E>>), Error> {
    // A budget of one's own lives as long as the program.
    let ledger: &'static Ledger = Box::leak(Box::new(Ledger::new(sharing.ratio)));
    let upstream = upstream.budget(Budget::custom(ledger));
    // What all hold open, this process holds by a breaker; one of its own that never opens by itself will do.
    let upstream = match upstream.its_breaker() {
        Some(_) => upstream,
        None => upstream.breaker(Breaker::consecutive(u32::MAX)),
    };
    let (upstream, pacing) = if sharing.rate { paced(upstream, sharing.interval()) } else { (upstream, None) };
    let upstream = Arc::new(upstream);
    let teller = Arc::new(Teller {
        store: store.clone(),
        name: name.clone(),
        process: Nonce::random(),
        sharing,
        upstream: upstream.clone(),
        ledger,
        pacing,
        told: Mutex::default(),
    });
    teller.tell(false).await?;
    if sharing.ratio.is_some() {
        // Whoever was there hears of us at its next merge. Who fails now is asked again.
        _ = teller.tell(false).await;
    }
    Ok((upstream, teller))
}

/// The same with a rate whose permits come from all, if it has a rate.
fn paced(upstream: Upstream, every: Duration) -> (Upstream, Option<&'static Pacing>) {
    let settings = upstream.its_limit().map(Limit::settings);
    let Some(settings @ LimitSettings::Rate { rate, per, burst }) = settings else { return (upstream, None) };
    let Ok(limit) = settings.limit() else { return (upstream, None) };
    let gap = Duration::from_nanos(per.as_nanos().div_ceil(rate.into()) as u64);
    let pacing: &'static Pacing = Box::leak(Box::new(Pacing::new(SharedRate { gap, burst }, every)));
    (upstream.limit(limit.granted_by(pacing)), Some(pacing))
}

impl<E: Engine> SharedUpstream<E> {
    /// Tells what was counted now, and not at the next interval; what all know then.
    ///
    /// # Errors
    ///
    /// What the store says; what was counted is told the next time.
    pub async fn merge(&self) -> Result<Shared, Error> {
        self.teller.tell(false).await
    }

    /// What all were known to know at the last merge.
    pub fn known(&self) -> Shared {
        self.teller.known()
    }

    /// Tells the last, and that this process leaves: for processes that end soon after, as those of a command line.
    ///
    /// # Errors
    ///
    /// What the store says; then the last interval is not counted.
    pub async fn leave(self) -> Result<Shared, Error> {
        self.telling.abort();
        self.teller.tells_the_last();
        let told = self.teller.tell(true).await;
        self.teller.leaves();
        told
    }
}

impl<E: Engine> Drop for SharedUpstream<E> {
    fn drop(&mut self) {
        self.telling.abort();
        self.teller.leaves();
    }
}

impl<E: Engine> Teller<E> {
    pub(crate) fn known(&self) -> Shared {
        self.told().known.clone()
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn run(&self) {
        let every = self.sharing.interval();
        loop {
            match self.pacing {
                None => SystemTimer.sleep(every).await,
                Some(pacing) => {
                    // Not in step with others, so that nobody always comes first to what they share.
                    let fifth = u64::try_from(every.as_nanos() / 5).unwrap_or(u64::MAX);
                    let time = every - every / 10 + Duration::from_nanos(rng::scale(SystemTimer.seed(), fifth));
                    let wanted = async {
                        SystemTimer.sleep(SOON).await;
                        pacing.wanted.notified().await;
                    };
                    race(pin!(SystemTimer.sleep(time)), pin!(wanted)).await;
                }
            }
            if self.told().has_left {
                return;
            }
            if self.tell(false).await.is_err() {
                self.go_on_alone();
            }
        }
    }

    /// The next delta, or the last one again if it may have been lost.
    fn delta(&self, is_last: bool) -> Delta {
        let breaker = self.upstream.snapshot().breaker;
        let mut told = self.told();
        // Whose time is over finds out by its next call, which may never come: it votes for as long again while somebody's calls fail.
        let now = SystemTimer.now();
        let is_open = breaker.is_some_and(|breaker| match (breaker.state, breaker.until) {
            (BreakerState::Open, Some(until)) if until <= now => {
                told.known.failures > 0 && now < until + until.since(breaker.since)
            }
            (BreakerState::Open, _) => true,
            (BreakerState::HalfOpen, _) => breaker.probes > 0 && told.known.failures > 0,
            _ => false,
        });
        let counted = self.ledger.take();
        told.waiting.add(counted);
        if let Some(pending) = &told.pending {
            return pending.clone();
        }
        let Counted { calls, retries, successes, failures, run } = std::mem::take(&mut told.waiting);
        told.seq += 1;
        let delta = Delta {
            upstream: self.name.clone(),
            process: self.process,
            seq: told.seq,
            window: self.sharing.window,
            calls,
            retries,
            successes,
            failures,
            run,
            is_open,
            is_last,
            reserves: if self.sharing.ratio.is_some() { told.wants.max(self.ledger.left_in(RETRY)) } else { 0 },
            every: self.sharing.interval(),
            booking: self.pacing.map(|pacing| pacing.booking(is_last)),
        };
        told.pending = Some(delta.clone());
        delta
    }

    pub(crate) async fn tell(&self, is_last: bool) -> Result<Shared, Error> {
        let mut delta = self.delta(is_last);
        // Once more if what was sent was what had been lost, so that the last is told, too.
        loop {
            let shared = self.store.engine().merge(&delta).await?;
            let is_old = delta.is_last != is_last;
            self.learn(&delta, &shared);
            if !is_old || !is_last && self.told().has_left {
                return Ok(shared);
            }
            delta = self.delta(is_last);
        }
    }

    fn learn(&self, delta: &Delta, shared: &Shared) {
        let (share, wants) = self.sharing.share(shared, delta.reserves);
        let (was_alone, before, untold) = {
            let mut told = self.told();
            // Of two that were under way the later one may be answered first. What the other has booked is nobody's.
            if delta.seq < told.learnt {
                return;
            }
            told.learnt = delta.seq;
            if told.pending.as_ref().is_some_and(|pending| pending.seq == delta.seq) {
                told.pending = None;
            }
            (told.known, told.wants) = (shared.clone(), wants);
            told.reckoned = SystemTimer.now();
            let pending = told.pending.as_ref().map_or(0, |pending| pending.retries);
            let untold = told.waiting.retries.saturating_add(pending);
            let stops = self.sharing.stops(shared);
            let wanted = match (shared.held, stops) {
                (Some(held), _) => Some(held),
                (None, true) => Some(Held::Open),
                (None, false) => None,
            };
            (std::mem::take(&mut told.is_alone), std::mem::replace(&mut told.held, wanted), untold)
        };
        // Whose own breaker is open goes on by itself: its probes are how all learn that it is over. What the program holds by hand is its to let go.
        let state = self.upstream.its_breaker().map(Breaker::state);
        let is_own = match state {
            Some(BreakerState::Open | BreakerState::HalfOpen) => shared.held.is_none(),
            Some(BreakerState::HeldOpen | BreakerState::HeldClosed) => !self.is_held(before),
            _ => false,
        };
        let after = self.told().held;
        match (before, after) {
            (before, after) if before == after => {}
            _ if is_own => self.told().held = None,
            (_, Some(Held::Open)) => heedless(|| _ = self.upstream.hold_open()),
            (_, Some(Held::Closed)) => heedless(|| _ = self.upstream.hold_closed()),
            (_, None) => heedless(|| _ = self.upstream.release()),
        }
        // Whoever leaves may do so between the answer and this.
        if before != after && !is_own && after.is_some() && self.told().has_left {
            heedless(|| _ = self.upstream.release());
        }
        // The store does not know what was spent while it was asked.
        self.ledger.set(share - untold.saturating_add(self.ledger.spent()) as f64);
        if let Some(pacing) = self.pacing {
            pacing.learn(SystemTimer.now(), shared.booked, shared.processes);
        }
        if was_alone {
            self.store.tell(Notice::Together(self.name.to_string()));
        }
    }

    /// This process has nothing to do with the others any more, even if an answer is just being heard.
    pub(crate) fn leaves(&self) {
        self.tells_the_last();
        self.let_go();
    }

    /// Nothing is told any more but that it was the last.
    pub(crate) fn tells_the_last(&self) {
        self.told().has_left = true;
    }

    /// Whether the breaker is as we have set it for all.
    fn is_held(&self, held: Option<Held>) -> bool {
        let state = match held {
            Some(Held::Open) => BreakerState::HeldOpen,
            Some(Held::Closed) => BreakerState::HeldClosed,
            None => return false,
        };
        self.upstream.its_breaker().is_some_and(|breaker| breaker.state() == state)
    }

    /// Nobody holds the breaker any more, for all.
    fn let_go(&self) {
        let held = self.told().held.take();
        if held.is_some() && self.is_held(held) {
            heedless(|| _ = self.upstream.release());
        }
    }

    /// The share that this process had goes on to be its.
    fn go_on_alone(&self) {
        let now = SystemTimer.now();
        let (processes, since, is_first) = {
            let mut told = self.told();
            let since = now.since(std::mem::replace(&mut told.reckoned, now));
            (told.known.processes.max(1) as f64, since, !std::mem::replace(&mut told.is_alone, true))
        };
        self.pacing.iter().for_each(|pacing| pacing.is_away());
        let earned = f64::from(self.sharing.min_per_second) * since.as_secs_f64() / processes;
        self.ledger.add(earned, (self.sharing.floor() / processes).max(1.0));
        // What all have decided together holds no longer than somebody knows that it does; a hand is not taken away.
        if self.told().known.held.is_none() {
            self.let_go();
        }
        if is_first {
            self.store.tell(Notice::Alone(self.name.to_string()));
        }
    }
}

#[cfg(test)]
mod tests;
