//! Questions of many callers, asked of a server as one.
//!
//! A question costs both sides much the same whether one key is in it or a hundred, and so does a commit. So where enough questions
//! of a kind are under way, those that come meanwhile gather, and go together when one of these has its answer. A caller that
//! is alone asks alone and at once. What has no answer among others (a key that somebody has, a row that somebody is at, anything
//! that the server refuses) is asked about alone: no caller's trouble is another's.

use crate::{
    Error,
    race::{Either, race},
};
use relent::{SystemTimer, Timer};
use std::{
    future::Future,
    marker::PhantomData,
    mem,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{runtime::Handle, sync::oneshot};

/// How many go together at most.
const MOST: usize = 256;

/// How long a question keeps its place while it has no answer: one that waits for a lock or a network holds up no others.
const HOLDS: Duration = Duration::from_millis(25);

/// How many are asked alone after those that gathered had few answers.
const SHY: u32 = 256;

/// A question that can be asked together with others of its kind. To ask it twice is to ask it once.
pub(crate) trait Many: Sized + Send + Sync + 'static {
    type Engine: Clone + Send + Sync + 'static;
    type Answer: Send + 'static;

    /// How many questions of a kind are under way before others gather.
    const LANES: usize;

    /// Those that gather at this store.
    fn gather(engine: &Self::Engine) -> &Gather<Self>;

    /// Asks all of them. The answers are in their order; `None`, or none at all, is for what is to be asked alone.
    fn ask(
        engine: &Self::Engine,
        those: Vec<Self>,
    ) -> impl Future<Output = Result<Vec<Option<Self::Answer>>, Error>> + Send;
}

/// Where questions of a kind gather.
pub(crate) struct Gather<Q: Many>(Mutex<Queue<Q>>);

struct Queue<Q: Many> {
    waiting: Vec<Waiting<Q>>,
    under_way: usize,
    /// How many are still to be asked alone.
    shy: u32,
}

struct Waiting<Q: Many> {
    question: Q,
    asks: oneshot::Sender<Told<Q>>,
}

enum Told<Q: Many> {
    Answer(Result<Q::Answer, Error>),
    /// It is to be asked alone; in this lane, where there is one.
    Alone(Option<Lane<Q>>),
}

/// One of the questions under way. When it ends, those that gathered meanwhile have its place.
struct Lane<Q: Many>(Q::Engine, PhantomData<fn(Q)>);

impl<Q: Many> Default for Gather<Q> {
    fn default() -> Gather<Q> {
        Gather(Mutex::new(Queue { waiting: vec![], under_way: 0, shy: 0 }))
    }
}

impl<Q: Many> Gather<Q> {
    fn lock(&self) -> MutexGuard<'_, Queue<Q>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Place<Q: Many> {
    Alone(Option<Lane<Q>>),
    Waiting(oneshot::Receiver<Told<Q>>),
}

/// Asks together with others, where there are enough of them; else, and where it has no answer among them, `alone`.
pub(crate) async fn together<Q: Many>(
    engine: &Q::Engine,
    question: impl FnOnce() -> Q,
    alone: impl Future<Output = Result<Q::Answer, Error>>,
) -> Result<Q::Answer, Error> {
    let place = {
        let mut queue = Q::gather(engine).lock();
        if queue.shy > 0 {
            queue.shy -= 1;
            Place::Alone(None)
        } else if queue.under_way < Q::LANES {
            queue.under_way += 1;
            Place::Alone(Some(Lane::<Q>::new(engine)))
        } else {
            let (asks, told) = oneshot::channel();
            queue.waiting.push(Waiting { question: question(), asks });
            Place::Waiting(told)
        }
    };
    let lane = match place {
        Place::Alone(lane) => lane,
        Place::Waiting(told) => match told.await {
            Ok(Told::Answer(answer)) => return answer,
            Ok(Told::Alone(lane)) => lane,
            // The runtime that was to ask has ended.
            Err(_) => None,
        },
    };
    held(lane, alone).await
}

/// Runs what is asked in a lane, and gives the lane up where that takes long.
async fn held<T, L>(lane: L, asked: impl Future<Output = T>) -> T {
    let mut asked = pin!(asked);
    match race(asked.as_mut(), pin!(SystemTimer.sleep(HOLDS))).await {
        Either::First(answer) => answer,
        Either::Second(()) => {
            drop(lane);
            asked.await
        }
    }
}

impl<Q: Many> Lane<Q> {
    fn new(engine: &Q::Engine) -> Lane<Q> {
        Lane(engine.clone(), PhantomData)
    }
}

impl<Q: Many> Drop for Lane<Q> {
    fn drop(&mut self) {
        let mut gathered = {
            let mut queue = Q::gather(&self.0).lock();
            // Whoever went away before it was asked has not asked.
            queue.waiting.retain(|waiting| !waiting.asks.is_closed());
            let most = queue.waiting.len().min(MOST);
            if most == 0 {
                queue.under_way -= 1;
                return;
            }
            let rest = queue.waiting.split_off(most);
            mem::replace(&mut queue.waiting, rest)
        };
        let lane = Lane::new(&self.0);
        if gathered.len() == 1 {
            let told = gathered.pop().map(|only| only.asks.send(Told::Alone(Some(lane))));
            return drop(told);
        }
        // Without a runtime each asks alone.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(ask(lane, gathered));
        }
    }
}

async fn ask<Q: Many>(lane: Lane<Q>, gathered: Vec<Waiting<Q>>) {
    let (those, mut asks): (Vec<Q>, Vec<_>) = gathered.into_iter().map(|one| (one.question, one.asks)).unzip();
    let engine = lane.0.clone();
    let answer = {
        // What nobody waits for any more is cancelled.
        let all_gone = async {
            for asks in &mut asks {
                asks.closed().await;
            }
        };
        held(lane, async { race(pin!(Q::ask(&engine, those)), pin!(all_gone)).await }).await
    };
    let told: Vec<Told<Q>> = match answer {
        Either::Second(()) => return,
        Either::First(Err(error)) => asks.iter().map(|_| Told::Answer(Err(error.clone()))).collect(),
        Either::First(Ok(answers)) => {
            let mut answers = answers.into_iter();
            let told = asks.iter().map(|_| match answers.next().flatten() {
                Some(answer) => Told::Answer(Ok(answer)),
                None => Told::Alone(None),
            });
            let told: Vec<_> = told.collect();
            let left = told.iter().filter(|told| matches!(told, Told::Alone(_))).count();
            if left * 2 > told.len() {
                Q::gather(&engine).lock().shy = SHY;
            }
            told
        }
    };
    for (asks, told) in asks.into_iter().zip(told) {
        // Whoever asked may be gone.
        let _ = asks.send(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use std::sync::Arc;
    use tokio::sync::{Semaphore, mpsc};

    /// Numbers that are doubled, one at a time or many. Those over a hundred are for nobody but themselves.
    #[derive(Clone)]
    pub(crate) struct Doubler(Arc<Inside>);

    struct Inside {
        gather: Gather<u32>,
        /// Who asks, alone or together.
        asked: mpsc::UnboundedSender<Vec<u32>>,
        /// How many may be answered.
        may: Semaphore,
    }

    impl Doubler {
        fn new() -> (Doubler, mpsc::UnboundedReceiver<Vec<u32>>) {
            let (asked, asks) = mpsc::unbounded_channel();
            (Doubler(Arc::new(Inside { gather: Gather::default(), asked, may: Semaphore::new(0) })), asks)
        }

        async fn told(&self, those: Vec<u32>) {
            self.0.asked.send(those).unwrap();
            self.0.may.acquire().await.unwrap().forget();
        }

        fn double(&self, number: u32) -> tokio::task::JoinHandle<Result<u32, Error>> {
            let doubler = self.clone();
            tokio::spawn(async move {
                let alone = async {
                    doubler.told(vec![number]).await;
                    Ok(number * 2)
                };
                together(&doubler, || number, alone).await
            })
        }

        fn under_way(&self) -> usize {
            self.0.gather.lock().under_way
        }
    }

    impl Many for u32 {
        type Engine = Doubler;
        type Answer = u32;

        const LANES: usize = 1;

        fn gather(doubler: &Doubler) -> &Gather<u32> {
            &doubler.0.gather
        }

        async fn ask(doubler: &Doubler, those: Vec<u32>) -> Result<Vec<Option<u32>>, Error> {
            doubler.told(those.clone()).await;
            if those.contains(&666) {
                return Err(Error::new(ErrorKind::Unavailable, "away"));
            }
            Ok(those.iter().map(|&number| (number < 100).then_some(number * 2)).collect())
        }
    }

    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_a_question_is_under_way_goes_together() {
        let (doubler, mut asks) = Doubler::new();
        let first = doubler.double(1);
        assert_eq!(asks.recv().await, Some(vec![1]));
        let rest = [2, 3, 4].map(|number| doubler.double(number));
        settle().await;
        assert!(asks.is_empty(), "they wait for the first");
        doubler.0.may.add_permits(2);
        assert_eq!(first.await.unwrap(), Ok(2));
        assert_eq!(asks.recv().await, Some(vec![2, 3, 4]));
        for (number, asks) in [2, 3, 4].into_iter().zip(rest) {
            assert_eq!(asks.await.unwrap(), Ok(number * 2));
        }
        settle().await;
        assert_eq!(doubler.under_way(), 0);
        let next = doubler.double(5);
        assert_eq!(asks.recv().await, Some(vec![5]), "it is alone again");
        doubler.0.may.add_permits(1);
        assert_eq!(next.await.unwrap(), Ok(10));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_no_answer_among_others_is_asked_alone() {
        let (doubler, mut asks) = Doubler::new();
        let all = [1, 2, 101, 3].map(|number| doubler.double(number));
        settle().await;
        doubler.0.may.add_permits(10);
        for (number, asks) in [1, 2, 101, 3].into_iter().zip(all) {
            assert_eq!(asks.await.unwrap(), Ok(number * 2));
        }
        let mut asked = vec![];
        while let Ok(those) = asks.try_recv() {
            asked.push(those);
        }
        assert_eq!(asked, [vec![1], vec![2, 101, 3], vec![101]]);
        settle().await;
        assert_eq!(doubler.under_way(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn where_most_have_none_they_are_asked_alone_for_a_while() {
        let (doubler, mut asks) = Doubler::new();
        let all = [1, 101, 102, 103].map(|number| doubler.double(number));
        settle().await;
        doubler.0.may.add_permits(10_000);
        for asks in all {
            let _ = asks.await.unwrap().unwrap();
        }
        while asks.try_recv().is_ok() {}
        let mut later = vec![];
        for number in 1..=SHY {
            later.push(doubler.double(number % 50));
        }
        for asks in later {
            let _ = asks.await.unwrap().unwrap();
        }
        for _ in 0..SHY {
            assert_eq!(asks.recv().await.unwrap().len(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_before_it_was_asked_has_not_asked_and_holds_up_nobody() {
        let (doubler, mut asks) = Doubler::new();
        let first = doubler.double(1);
        assert_eq!(asks.recv().await, Some(vec![1]));
        let (gone, second, third) = (doubler.double(2), doubler.double(3), doubler.double(4));
        settle().await;
        gone.abort();
        settle().await;
        doubler.0.may.add_permits(1);
        assert_eq!(first.await.unwrap(), Ok(2));
        assert_eq!(asks.recv().await, Some(vec![3, 4]));
        // Nobody waits for these any more: whoever comes next does not wait for them either.
        second.abort();
        third.abort();
        settle().await;
        assert_eq!(doubler.under_way(), 0);
        let next = doubler.double(5);
        assert_eq!(asks.recv().await, Some(vec![5]));
        next.abort();
        settle().await;
        assert_eq!(doubler.under_way(), 0, "who is dropped while it asks alone leaves its place");
    }

    #[tokio::test(start_paused = true)]
    async fn the_only_one_that_gathered_asks_alone_in_the_place_of_the_first() {
        let (doubler, mut asks) = Doubler::new();
        let first = doubler.double(1);
        assert_eq!(asks.recv().await, Some(vec![1]));
        let second = doubler.double(101);
        settle().await;
        doubler.0.may.add_permits(1);
        assert_eq!(first.await.unwrap(), Ok(2));
        assert_eq!(asks.recv().await, Some(vec![101]));
        let third = doubler.double(3);
        settle().await;
        assert!(asks.is_empty() && doubler.under_way() == 1);
        doubler.0.may.add_permits(2);
        assert_eq!((second.await.unwrap(), third.await.unwrap()), (Ok(202), Ok(6)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_away_is_told_to_all_who_asked() {
        let (doubler, mut asks) = Doubler::new();
        let first = doubler.double(1);
        assert_eq!(asks.recv().await, Some(vec![1]));
        let all = [2, 666].map(|number| doubler.double(number));
        settle().await;
        doubler.0.may.add_permits(2);
        assert_eq!(first.await.unwrap(), Ok(2));
        for asks in all {
            assert_eq!(asks.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_takes_long_holds_up_nobody() {
        let (doubler, mut asks) = Doubler::new();
        let first = doubler.double(1);
        assert_eq!(asks.recv().await, Some(vec![1]));
        let rest = [2, 3].map(|number| doubler.double(number));
        settle().await;
        assert!(asks.is_empty());
        tokio::time::sleep(HOLDS).await;
        assert_eq!(asks.recv().await, Some(vec![2, 3]), "the first has no answer yet");
        let last = doubler.double(4);
        tokio::time::sleep(HOLDS).await;
        assert_eq!(asks.recv().await, Some(vec![4]), "nor have the others");
        doubler.0.may.add_permits(3);
        assert_eq!((first.await.unwrap(), last.await.unwrap()), (Ok(2), Ok(8)));
        for (number, asks) in [2, 3].into_iter().zip(rest) {
            assert_eq!(asks.await.unwrap(), Ok(number * 2));
        }
        assert_eq!(doubler.under_way(), 0);
    }

    #[test]
    fn a_runtime_that_ends_leaves_what_gathered_to_those_who_asked() {
        let (doubler, _asks) = Doubler::new();
        let (ends, stays) = [(); 2]
            .map(|()| tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap())
            .into();
        let first = {
            let _inside = ends.enter();
            doubler.double(1)
        };
        ends.block_on(settle());
        let (second, third) = stays.block_on(async {
            let rest = (doubler.double(2), doubler.double(3));
            settle().await;
            rest
        });
        drop((first, ends));
        doubler.0.may.add_permits(5);
        let told = stays.block_on(async { (second.await.unwrap(), third.await.unwrap()) });
        assert_eq!(told, (Ok(4), Ok(6)));
        assert_eq!(doubler.under_way(), 0);
    }
}
