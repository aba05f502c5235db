//! Who waits at an upstream and who listens to it: what needs `std`, and is therefore apart from the machines.
//!
//! Nobody is called, woken, or dropped under a lock.

use crate::{
    UpstreamChange,
    sync::{Lock, wake_all},
};
use core::{fmt, task::Waker};
use std::{collections::BTreeMap, sync::Arc};

/// A name that was read from somewhere.
pub(crate) type Text = Arc<str>;

pub(crate) type Listener = Arc<dyn Fn(&UpstreamChange<'_>) + Send + Sync>;

/// Listeners, and the wakers of those who queue, the oldest first.
pub(crate) struct Lobby {
    listeners: Lock<Vec<Listener>>,
    queue: Lock<Queue>,
}

struct Queue {
    tickets: u64,
    waiting: BTreeMap<u64, Waker>,
}

impl Lobby {
    pub(crate) const fn new() -> Lobby {
        let queue = Queue { tickets: 0, waiting: BTreeMap::new() };
        Lobby { listeners: Lock::new(Vec::new()), queue: Lock::new(queue) }
    }

    pub(crate) fn listen(&self, listener: Listener) {
        self.listeners.lock().push(listener);
    }

    pub(crate) fn tell(&self, change: &UpstreamChange<'_>) {
        let listeners = self.listeners.lock().clone();
        for listener in listeners {
            listener(change);
        }
    }

    /// Those who listen to the old one listen to this one too.
    pub(crate) fn adopt(&self, old: &Lobby) {
        let listeners = old.listeners.lock().clone();
        self.listeners.lock().extend(listeners);
    }

    /// Stands in the queue, first with ticket 0; who comes back with their ticket has their old place.
    pub(crate) fn enter(&self, ticket: u64, waker: &Waker) -> u64 {
        let waker = waker.clone();
        let (ticket, old) = {
            let mut queue = self.queue.lock();
            queue.tickets += u64::from(ticket == 0);
            let ticket = if ticket == 0 { queue.tickets } else { ticket };
            (ticket, queue.waiting.insert(ticket, waker))
        };
        drop(old);
        ticket
    }

    pub(crate) fn leave(&self, ticket: u64) {
        if ticket == 0 {
            return;
        }
        let waker = self.queue.lock().waiting.remove(&ticket);
        drop(waker);
    }

    pub(crate) fn wake(&self, newest: bool) {
        let woken = {
            let mut queue = self.queue.lock();
            if newest { queue.waiting.pop_last() } else { queue.waiting.pop_first() }
        };
        // A waker that panics must not keep a permit from coming back.
        drop(wake_all(woken.map(|(_, waker)| waker)));
    }
}

impl fmt::Debug for Lobby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lobby").finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod models {
    use crate::{
        Breaker, BreakerState, Limit, Outcome, Timestamp, Upstream, UpstreamAnswer, UpstreamCall, Verdict,
        guard::Guard,
        modelled::{Count, model},
    };
    use core::task::Waker;
    use loom::{sync::Arc, thread};
    use std::time::Duration;

    const SEC: Duration = Duration::from_secs(1);

    /// Everything that threads share is made before there are two.
    fn narrow() -> Arc<Upstream> {
        let narrow = Arc::new(Upstream::new("narrow").limit(Limit::concurrency(1).queue(1, SEC)));
        narrow.lobby_for_models().enter(7, Waker::noop());
        narrow.lobby_for_models().leave(7);
        let _ = narrow.snapshot_at(Timestamp::ZERO);
        narrow
    }

    fn ask(call: &mut UpstreamCall<Arc<Upstream>>) -> UpstreamAnswer {
        UpstreamCall::ask(call, Timestamp::ZERO, 0, SEC)
    }

    fn in_flight(upstream: &Upstream) -> (Option<u32>, u32) {
        let limit = upstream.snapshot_at(Timestamp::ZERO).limit.expect("it has one");
        (limit.in_flight, limit.queued)
    }

    /// Who stands in line and then asks is either let through, or woken when there is room.
    #[test]
    fn no_place_that_comes_free_is_missed() {
        model(|| {
            let narrow = narrow();
            let mut holder = UpstreamCall::new(narrow.clone());
            assert_eq!(ask(&mut holder), UpstreamAnswer::Go);
            let mut waiting = UpstreamCall::new(narrow.clone());
            assert!(matches!(ask(&mut waiting), UpstreamAnswer::Queue(_)));
            let other = thread::spawn(move || holder.outcome(Timestamp::ZERO, Outcome::Success, 0));
            let count = std::sync::Arc::new(Count::default());
            Guard::stand_in_line(&mut waiting, &Waker::from(count.clone()));
            let answer = ask(&mut waiting);
            other.join().unwrap();
            if matches!(answer, UpstreamAnswer::Queue(_)) {
                assert_eq!(count.woken(), 1, "it would sleep for ever");
                assert_eq!(ask(&mut waiting), UpstreamAnswer::Go);
            }
            assert_eq!(in_flight(&narrow), (Some(1), 0));
            drop(waiting);
            assert_eq!(in_flight(&narrow), (Some(0), 0));
        });
    }

    /// Whoever gives up while a place comes free for them leaves it to others.
    #[test]
    fn who_goes_away_leaves_neither_a_place_nor_a_waker() {
        model(|| {
            let narrow = narrow();
            let mut holder = UpstreamCall::new(narrow.clone());
            assert_eq!(ask(&mut holder), UpstreamAnswer::Go);
            let mut waiting = UpstreamCall::new(narrow.clone());
            assert!(matches!(ask(&mut waiting), UpstreamAnswer::Queue(_)));
            let count = std::sync::Arc::new(Count::default());
            Guard::stand_in_line(&mut waiting, &Waker::from(count.clone()));
            let other = thread::spawn(move || drop(holder));
            drop(waiting);
            other.join().unwrap();
            assert_eq!(in_flight(&narrow), (Some(0), 0));
            assert_eq!(std::sync::Arc::strong_count(&count), 1, "nobody keeps its waker");
        });
    }

    /// One probe at a time, and its permit comes back when its call is dropped.
    #[test]
    fn a_dropped_probe_makes_room_for_the_next() {
        model(|| {
            let down = Arc::new(Upstream::new("down").breaker(Breaker::consecutive(1).open_for(SEC)));
            let mut first = UpstreamCall::new(down.clone());
            assert_eq!(ask(&mut first), UpstreamAnswer::Go);
            first.outcome(Timestamp::ZERO, Outcome::Failure(Verdict::Transient), 0);
            let later = Timestamp::ZERO + 2 * SEC;
            let probe = move |down: Arc<Upstream>| {
                let mut call = UpstreamCall::new(down);
                UpstreamCall::ask(&mut call, later, 0, Duration::ZERO) == UpstreamAnswer::Go
            };
            let shared = down.clone();
            let other = thread::spawn(move || probe(shared));
            let mine = probe(down.clone());
            let theirs = other.join().unwrap();
            assert!(mine || theirs, "one is let through at least");
            assert!(probe(down.clone()), "what was dropped is there again");
            assert_eq!(down.snapshot_at(later).breaker.unwrap().state, BreakerState::HalfOpen);
        });
    }
}
