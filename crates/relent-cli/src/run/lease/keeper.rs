//! The thread that asks the store: takes the lease, renews it, and lets it go.
//!
//! It decides nothing about the command. What it finds out it tells the thread that runs the command, and how long the
//! lease still holds it tells the watchman, too, so that this is known even if that thread is stuck in a write.

use super::{
    args::IfHeld,
    times::{Moment, Times},
    waiting::Delays,
    watchman::Line,
};
use crate::{ear::Ear, store};
use relent::{Policy, duration::Human};
use relent_store::{Acquired, Any, Engine, Error, Heed, Holding, Kept, Key, Lease, Nonce, Owner, Renewed, Store};
use std::{
    future::{Future, ready},
    io::Write,
    os::unix::net::UnixStream,
    pin::pin,
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{sleep, timeout},
};

/// What is wanted.
pub(super) struct Wish {
    pub(super) url: String,
    pub(super) name: Key,
    pub(super) times: Times,
    pub(super) held: IfHeld,
    /// By which it is waited for.
    pub(super) delays: Delays,
}

/// What the keeper is told.
pub(super) enum Order {
    /// Tell this watchman how long the lease holds.
    Tell(Line),
    /// Let go, or keep it for so long.
    End(Option<Duration>),
}

/// What the keeper tells.
#[derive(Debug)]
pub(super) enum News {
    /// Somebody else has it.
    Held { by: String, left: Duration },
    /// Somebody else has it, and it is not waited for any more.
    Refused { by: String, left: Duration },
    /// It is ours; it was asked for then.
    Taken { fence: u64, asked: Moment },
    /// The watchman has not heard it.
    Unheard,
    /// It was renewed; that was asked for then.
    Renewed(Moment),
    /// It cannot be renewed at the moment.
    Away(Error),
    /// It passed to somebody else, or ended.
    Lost,
    /// The end: what came of letting go.
    Ended(Result<Kept, Error>),
    /// The store is closed, after it was let go.
    Closed,
    /// The store cannot be asked.
    Failed(Error),
}

/// The thread, from outside.
pub(super) struct Keeper {
    orders: UnboundedSender<Order>,
    pub(super) news: mpsc::Receiver<News>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts it. `waker` is written to whenever there are news.
    pub(super) fn start(wish: Wish, waker: UnixStream) -> std::io::Result<Keeper> {
        let runtime = crate::runtime::builder()?.build()?;
        let (orders, taken) = unbounded_channel();
        let (tell, news) = mpsc::channel();
        let desk = Desk { tell, waker, orders: taken, watchman: None, end: None };
        let run = move || runtime.block_on(keep(wish, desk));
        let thread = thread::Builder::new().name("lease".into()).spawn(run)?;
        Ok(Keeper { orders, news, thread: Some(thread) })
    }

    pub(super) fn order(&self, order: Order) {
        // A keeper that is gone has said why.
        let _ = self.orders.send(order);
    }

    /// Whether its thread has ended.
    pub(super) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Lets go, or keeps it for so long, and waits for that, though not for long: after a signal only for a store that answers. Whether
    /// nothing is left to do.
    pub(super) fn leave(&self, keep: Option<Duration>, deadline: Option<Instant>, ear: &Ear) -> bool {
        self.order(Order::End(keep));
        let mut latest = store::latest(LET_GO, deadline);
        let mut ear = ear.clone();
        loop {
            match ear.wait(&self.news, latest) {
                Ok(News::Taken { .. }) => {
                    // Who has just answered is given the time to hear that it is let go.
                    latest = store::latest(LET_GO, ear.heard().map(|_| Instant::now()).or(deadline));
                    ear = Ear::default();
                }
                Ok(_) => {}
                Err(ended) => return ended == RecvTimeoutError::Disconnected,
            }
        }
    }
}

/// Where orders come in and news go out.
struct Desk {
    tell: mpsc::Sender<News>,
    waker: UnixStream,
    orders: UnboundedReceiver<Order>,
    watchman: Option<Line>,
    /// The order to end, once it came.
    end: Option<Option<Duration>>,
}

impl Desk {
    fn tell(&mut self, news: News) {
        let _ = self.tell.send(news);
        // A socket that is full wakes as well.
        let _ = self.waker.write(&[0]);
    }

    /// What comes of `work`, or nothing if the order to end comes before.
    async fn unless_ended<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        while self.end.is_none() {
            tokio::select! {
                biased;
                order = self.orders.recv() => self.hear(order),
                done = &mut work => return Some(done),
            }
        }
        None
    }

    fn hear(&mut self, order: Option<Order>) {
        match order {
            Some(Order::Tell(line)) => self.watchman = Some(line),
            Some(Order::End(keep)) => self.end = Some(keep),
            None => self.end = Some(None),
        }
    }
}

async fn keep(mut wish: Wish, mut desk: Desk) {
    let store = match desk.unless_ended(Store::open(&wish.url)).await {
        Some(Ok(store)) => store,
        Some(Err(error)) => return desk.tell(News::Failed(error)),
        None => return,
    };
    if holds(store.engine(), &mut wish, &mut desk).await {
        // Who ends before the file is closed leaves SQLite's log beside it, which others may not be able to read.
        drop(store);
        desk.tell(News::Closed);
    }
}

/// Takes the lease, holds it, and lets it go. Whether it was taken.
async fn holds(engine: &Any, wish: &mut Wish, desk: &mut Desk) -> bool {
    match take(engine, wish, desk).await {
        Ok(Some((holding, asked))) => {
            let kept = match desk.end {
                None => hold(engine, wish, &holding, asked, desk).await,
                Some(_) => Held::Still,
            };
            let ended = match kept {
                Held::Lost => {
                    desk.tell(News::Lost);
                    // There is nothing to let go.
                    while desk.unless_ended(std::future::pending::<()>()).await.is_some() {}
                    Ok(Kept::Fenced)
                }
                Held::Still => let_go(engine, wish, &holding, desk.end.flatten()).await,
            };
            desk.tell(News::Ended(ended));
            true
        }
        Ok(None) => false,
        Err(error) => {
            desk.tell(News::Failed(error));
            false
        }
    }
}

/// Takes the lease. `None` if it is not waited for any more.
async fn take(engine: &Any, wish: &mut Wish, desk: &mut Desk) -> Result<Option<(Holding, Moment)>, Error> {
    let (owner, nonce, ttl) = (Owner::here(), Nonce::random(), wish.times.ttl);
    let lease = Lease { name: wish.name.clone(), owner, nonce, ttl };
    let (mut heed, mut told, mut late) = (Heed::default(), None, 0);
    loop {
        let mut asked = Moment::now();
        let ask = || {
            asked = Moment::now();
            engine.acquire(&lease)
        };
        // Not given up half way: who was granted a lease has to let it go.
        let (by, left) = match patiently(ask).await? {
            Acquired::Acquired { fence, .. } => {
                let holding = Holding { name: lease.name.clone(), fence };
                let is_over = |time| asked.plus(time) <= Moment::now();
                let is_wanted = desk.unless_ended(ready(())).await.is_some();
                if is_wanted && is_over(wish.times.renew()) && late < TIMES_LATE {
                    // It is time to renew it already: who holds it and asks for it does that.
                    late += 1;
                    continue;
                }
                if is_wanted && is_over(wish.times.tell()) {
                    let _ = let_go(engine, wish, &holding, None).await;
                    let text = format!("it takes too long to answer for a lease of {}", Human(ttl));
                    return Err(Error::new(relent_store::ErrorKind::Timeout, text));
                }
                desk.tell(News::Taken { fence: fence.0, asked });
                return Ok(Some((holding, asked)));
            }
            Acquired::Held { by, left } => (by.as_str().to_owned(), left),
        };
        if wish.held != IfHeld::Wait {
            desk.tell(News::Refused { by, left });
            return Ok(None);
        }
        if told.as_ref() != Some(&by) {
            desk.tell(News::Held { by: by.clone(), left });
            told = Some(by);
        }
        if desk.unless_ended(heed.freed(engine, &wish.name, wish.delays.next())).await.is_none() {
            return Ok(None);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Still,
    Lost,
}

/// Renews the lease until it is to end, or is lost.
async fn hold(engine: &Any, wish: &Wish, holding: &Holding, asked: Moment, desk: &mut Desk) -> Held {
    let times = wish.times;
    let (mut held_from, mut next, mut is_away) = (asked, asked.plus(times.renew()), false);
    loop {
        // The watchman comes after the lease was taken.
        let tell = |line: &Line| line.holds(held_from.plus(times.tell()), held_from.plus(times.kill()));
        if desk.watchman.as_ref().is_some_and(|line| !tell(line)) {
            desk.tell(News::Unheard);
        }
        let heard = desk.watchman.is_some();
        let wait = next.after(Moment::now());
        let waited = {
            let mut slept = pin!(sleep(wait));
            loop {
                tokio::select! {
                    biased;
                    order = desk.orders.recv() => desk.hear(order),
                    () = &mut slept => break true,
                }
                if desk.end.is_some() {
                    return Held::Still;
                }
                if desk.watchman.is_some() != heard {
                    break false;
                }
            }
        };
        if !waited {
            continue;
        }
        let asked = Moment::now();
        let renewing = timeout(times.patience(), engine.renew(holding, times.ttl));
        match desk.unless_ended(renewing).await {
            None => return Held::Still,
            Some(Ok(Ok(Renewed::Until(_)))) => {
                (held_from, next, is_away) = (asked, asked.plus(times.renew()), false);
                desk.tell(News::Renewed(asked));
            }
            Some(Ok(Ok(Renewed::Fenced))) => return Held::Lost,
            Some(failed) => {
                next = Moment::now().plus(times.again());
                if !std::mem::replace(&mut is_away, true) {
                    let slow = || Error::new(relent_store::ErrorKind::Timeout, "it does not answer");
                    desk.tell(News::Away(failed.ok().and_then(Result::err).unwrap_or_else(slow)));
                }
            }
        }
    }
}

/// Lets the lease go, or makes it hold for `keep` from now on and leaves it at that.
async fn let_go(engine: &Any, wish: &Wish, holding: &Holding, keep: Option<Duration>) -> Result<Kept, Error> {
    let letting_go = async {
        match keep {
            None => patiently(|| engine.release(holding)).await,
            Some(keep) => patiently(|| engine.renew(holding, keep)).await.map(|renewed| match renewed {
                Renewed::Until(_) => Kept::Kept,
                Renewed::Fenced => Kept::Fenced,
            }),
        }
    };
    let slow = |_| Err(Error::new(relent_store::ErrorKind::Timeout, "it does not answer"));
    timeout(wish.times.ttl.min(LET_GO), letting_go).await.unwrap_or_else(slow)
}

/// How long letting go may take: nobody waits longer for a store that is away, since a lease ends by itself.
pub(super) const LET_GO: Duration = Duration::from_secs(3);

/// How often a lease that was granted late is asked for again.
const TIMES_LATE: u32 = 3;

/// How an operation on the store is tried again.
const PATIENCE: Policy = Policy::exponential(Duration::from_millis(10))
    .cap(Duration::from_secs(1))
    .max_attempts(u32::MAX)
    .attempt_timeout(Duration::from_secs(3))
    .timeout(Duration::from_secs(10));

async fn patiently<T, F: Future<Output = Result<T, Error>>>(mut op: impl FnMut() -> F) -> Result<T, Error> {
    let done = PATIENCE.when(Error::verdict).retry(|_| op()).await;
    done.map_err(|err| {
        err.last.clone().unwrap_or_else(|| Error::new(relent_store::ErrorKind::Timeout, "it does not answer"))
    })
}
