//! Questions of many callers, asked of a server as one.
//!
//! A question costs both sides much the same whether one key is in it or a hundred, and so does a commit. So where enough questions
//! of a kind are under way, those that come meanwhile gather, and go together when one of these has its answer, or has been under way for
//! long. Each who waits sees to that himself: whoever asks may be left lying by his task, or his answer. A caller that
//! is alone asks alone and at once. What has no answer among others (a key that somebody has, a row that somebody is at, anything
//! that the server refuses) is asked about alone: no caller's trouble is another's.

use crate::{
    Error,
    race::{Either, race},
};
use relent::{SystemTimer, Timer, Timestamp};
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
    /// By their numbers.
    waiting: Vec<Waiting<Q>>,
    under_way: Vec<UnderWay>,
    /// How many have waited or gone so far.
    number: u64,
    /// How many are still to be asked alone.
    shy: u32,
}

/// Who has a place, and until when it is his alone.
struct UnderWay {
    number: u64,
    until: Timestamp,
}

struct Waiting<Q: Many> {
    number: u64,
    question: Q,
    asks: oneshot::Sender<Told<Q>>,
}

enum Told<Q: Many> {
    Answer(Result<Q::Answer, Error>),
    /// It is to be asked alone; in this lane, where there is one.
    Alone(Option<Lane<Q>>),
}

/// One of the questions under way. When it ends, those that gathered meanwhile have its place, unless somebody had it before.
struct Lane<Q: Many> {
    engine: Q::Engine,
    number: u64,
    of: PhantomData<fn(Q)>,
}

impl<Q: Many> Default for Gather<Q> {
    fn default() -> Gather<Q> {
        Gather(Mutex::new(Queue { waiting: vec![], under_way: vec![], number: 0, shy: 0 }))
    }
}

impl<Q: Many> Gather<Q> {
    fn lock(&self) -> MutexGuard<'_, Queue<Q>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Q: Many> Queue<Q> {
    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Whether there is a place. One that somebody has had for too long is one.
    fn has_place(&mut self, now: Timestamp) -> bool {
        self.under_way.retain(|one| now < one.until);
        self.under_way.len() < Q::LANES
    }

    fn lane(&mut self, engine: &Q::Engine, now: Timestamp) -> Lane<Q> {
        let number = self.next();
        self.under_way.push(UnderWay { number, until: now + HOLDS });
        Lane { engine: engine.clone(), number, of: PhantomData }
    }

    /// Those who go together now, in the order in which they came.
    fn gathered(&mut self) -> Vec<Waiting<Q>> {
        // Whoever went away before it was asked has not asked.
        self.waiting.retain(|waiting| !waiting.asks.is_closed());
        let rest = self.waiting.split_off(self.waiting.len().min(MOST));
        mem::replace(&mut self.waiting, rest)
    }

    /// How many wait before it, at most; `None` if its question was taken.
    fn before(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.waiting.first()?.number)
    }
}

enum Place<Q: Many> {
    Alone(Option<Lane<Q>>),
    Waiting(u64, oneshot::Receiver<Told<Q>>),
}

/// Asks together with others, where there are enough of them; else, and where it has no answer among them, `alone`.
pub(crate) async fn together<Q: Many>(
    engine: &Q::Engine,
    question: impl FnOnce() -> Q,
    alone: impl Future<Output = Result<Q::Answer, Error>>,
) -> Result<Q::Answer, Error> {
    let place = {
        let (now, mut queue) = (SystemTimer.now(), Q::gather(engine).lock());
        if queue.shy > 0 {
            queue.shy -= 1;
            Place::Alone(None)
        } else if queue.waiting.is_empty() && queue.has_place(now) {
            Place::Alone(Some(queue.lane(engine, now)))
        } else {
            let (asks, told) = oneshot::channel();
            let number = queue.next();
            queue.waiting.push(Waiting { number, question: question(), asks });
            Place::Waiting(number, told)
        }
    };
    let lane = match place {
        Place::Alone(lane) => lane,
        Place::Waiting(number, told) => match wait::<Q>(engine, number, told).await {
            Some(Told::Answer(answer)) => return answer,
            Some(Told::Alone(lane)) => lane,
            // The runtime that was to ask has ended.
            None => None,
        },
    };
    let answer = alone.await;
    drop(lane);
    answer
}

/// Waits until it is asked together with others. Who has waited for long enough, asks for all that gathered.
async fn wait<Q: Many>(engine: &Q::Engine, number: u64, mut told: oneshot::Receiver<Told<Q>>) -> Option<Told<Q>> {
    while let Some(wait) = look::<Q>(engine, number) {
        if let Either::First(told) = race(pin!(&mut told), pin!(SystemTimer.sleep(wait))).await {
            return told.ok();
        }
    }
    told.await.ok()
}

/// How long it waits until there is a place at the latest; `None` if its question was taken.
fn look<Q: Many>(engine: &Q::Engine, number: u64) -> Option<Duration> {
    loop {
        let (now, mut queue) = (SystemTimer.now(), Q::gather(engine).lock());
        let before = queue.before(number)?;
        if !queue.has_place(now) {
            let free = queue.under_way.iter().map(|one| one.until.since(now)).min().unwrap_or(HOLDS);
            // Those who do not go with the next look later.
            return Some(free + HOLDS * u32::try_from(before / MOST as u64).unwrap_or(u32::MAX));
        }
        let (gathered, lane) = (queue.gathered(), queue.lane(engine, now));
        drop(queue);
        lane.go(gathered);
    }
}

impl<Q: Many> Lane<Q> {
    fn go(self, mut gathered: Vec<Waiting<Q>>) {
        if gathered.len() == 1 {
            let told = gathered.pop().map(|only| only.asks.send(Told::Alone(Some(self))));
            return drop(told);
        }
        // Without a runtime each asks alone.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(ask(self, gathered));
        }
    }
}

impl<Q: Many> Drop for Lane<Q> {
    fn drop(&mut self) {
        let (gathered, lane) = {
            let (now, mut queue) = (SystemTimer.now(), Q::gather(&self.engine).lock());
            let Some(at) = queue.under_way.iter().position(|one| one.number == self.number) else { return };
            queue.under_way.swap_remove(at);
            let gathered = queue.gathered();
            if gathered.is_empty() {
                return;
            }
            (gathered, queue.lane(&self.engine, now))
        };
        lane.go(gathered);
    }
}

async fn ask<Q: Many>(lane: Lane<Q>, gathered: Vec<Waiting<Q>>) {
    let (those, mut asks): (Vec<Q>, Vec<_>) = gathered.into_iter().map(|one| (one.question, one.asks)).unzip();
    let engine = lane.engine.clone();
    let answer = {
        // What nobody waits for any more is cancelled.
        let all_gone = async {
            for asks in &mut asks {
                asks.closed().await;
            }
        };
        race(pin!(Q::ask(&engine, those)), pin!(all_gone)).await
    };
    drop(lane);
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
    use std::{
        future::poll_fn,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };
    use tokio::{
        sync::{Semaphore, mpsc},
        time::{Instant, timeout},
    };

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
            tokio::spawn(self.doubled(number))
        }

        fn doubled(&self, number: u32) -> impl Future<Output = Result<u32, Error>> + Send + use<> {
            let doubler = self.clone();
            async move {
                let alone = async {
                    doubler.told(vec![number]).await;
                    Ok(number * 2)
                };
                together(&doubler, || number, alone).await
            }
        }

        /// As a task does that goes on with something else (`select!`), and keeps the future.
        async fn left_lying(&self, number: u32) -> impl Future<Output = Result<u32, Error>> + Unpin {
            let mut asks = Box::pin(self.doubled(number));
            assert!(timeout(Duration::ZERO, &mut asks).await.is_err());
            asks
        }

        fn under_way(&self) -> usize {
            self.0.gather.lock().under_way.len()
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

    /// Too late, but not never.
    const SOON: Duration = Duration::from_secs(1);

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

    #[tokio::test(start_paused = true)]
    async fn who_asks_and_is_left_lying_holds_up_nobody() {
        let (doubler, mut asks) = Doubler::new();
        let lying = doubler.left_lying(1).await;
        assert_eq!(asks.recv().await, Some(vec![1]));
        let now = Instant::now();
        let rest = [2, 3].map(|number| doubler.double(number));
        assert_eq!(timeout(SOON, asks.recv()).await, Ok(Some(vec![2, 3])), "they go together");
        assert!(now.elapsed() <= HOLDS, "{:?}", now.elapsed());
        doubler.0.may.add_permits(3);
        for (number, asks) in [2, 3].into_iter().zip(rest) {
            assert_eq!(asks.await.unwrap(), Ok(number * 2));
        }
        assert_eq!(doubler.double(4).await.unwrap(), Ok(8));
        assert!(now.elapsed() <= HOLDS, "there is a place at once: {:?}", now.elapsed());
        // Who comes when it is long ago does not wait either.
        assert_eq!(asks.recv().await, Some(vec![4]));
        let again = doubler.left_lying(5).await;
        tokio::time::sleep(HOLDS).await;
        let now = Instant::now();
        doubler.0.may.add_permits(3);
        assert_eq!(timeout(SOON, doubler.doubled(6)).await, Ok(Ok(12)));
        assert_eq!(now.elapsed(), Duration::ZERO);
        assert_eq!((lying.await, again.await), (Ok(2), Ok(10)));
        assert_eq!(doubler.under_way(), 0);
    }

    /// Wherever he was when his task left him: each question is asked once.
    #[tokio::test(start_paused = true)]
    async fn who_waits_and_is_left_lying_holds_up_nobody() {
        for number in [1, 2, 16] {
            let (doubler, mut asks) = Doubler::new();
            let first = doubler.double(100);
            assert_eq!(asks.recv().await, Some(vec![100]));
            let mut lying = vec![];
            for nth in 0..number {
                lying.push((nth, doubler.left_lying(nth).await));
            }
            doubler.0.may.add_permits(100);
            assert_eq!(first.await.unwrap(), Ok(200));
            let now = Instant::now();
            for asks in [50, 51, 52].map(|number| doubler.double(number)) {
                assert!(timeout(SOON, asks).await.unwrap().unwrap().is_ok());
            }
            assert!(now.elapsed() <= HOLDS, "{number}: {:?}", now.elapsed());
            for (nth, lying) in lying {
                assert_eq!(lying.await, Ok(nth * 2));
            }
            let mut asked = vec![];
            while let Ok(those) = asks.try_recv() {
                asked.extend(those);
            }
            asked.sort_unstable();
            let all: Vec<u32> = (0..number).chain([50, 51, 52]).collect();
            assert_eq!(asked, all);
            assert_eq!(doubler.under_way(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_dropped_with_a_place_that_he_never_saw_leaves_it() {
        let (doubler, mut asks) = Doubler::new();
        let first = doubler.double(1);
        assert_eq!(asks.recv().await, Some(vec![1]));
        let lying = doubler.left_lying(2).await;
        doubler.0.may.add_permits(1);
        assert_eq!(first.await.unwrap(), Ok(2));
        let rest = [3, 4].map(|number| doubler.double(number));
        settle().await;
        assert!(asks.is_empty() && doubler.under_way() == 1);
        let now = Instant::now();
        drop(lying);
        assert_eq!(timeout(SOON, asks.recv()).await, Ok(Some(vec![3, 4])));
        assert_eq!(now.elapsed(), Duration::ZERO);
        doubler.0.may.add_permits(1);
        for asks in rest {
            assert!(asks.await.unwrap().is_ok());
        }
    }

    /// Of many that gather where nobody is answered, those look who go next.
    #[tokio::test(start_paused = true)]
    async fn who_waits_behind_many_looks_seldom() {
        const ALL: usize = MOST * 8;
        let (doubler, mut asks) = Doubler::new();
        let looked = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..=ALL)
            .map(|_| {
                let (mut asks, looked) = (Box::pin(doubler.doubled(1)), looked.clone());
                tokio::spawn(poll_fn(move |cx| {
                    looked.fetch_add(1, Ordering::Relaxed);
                    asks.as_mut().poll(cx)
                }))
            })
            .collect();
        assert_eq!(asks.recv().await, Some(vec![1]));
        let now = Instant::now();
        for _ in 0..8 {
            assert_eq!(asks.recv().await.map(|those| those.len()), Some(MOST));
        }
        assert_eq!(now.elapsed(), HOLDS * 8);
        let looked = looked.load(Ordering::Relaxed);
        assert!(looked <= ALL * 3, "{looked}");
        doubler.0.may.add_permits(9);
        for asks in tasks {
            assert_eq!(asks.await.unwrap(), Ok(2));
        }
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
