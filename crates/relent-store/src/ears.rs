//! Who waits to be told something, by name: one connection listens for all of them.

use crate::race::{Either, race};
use relent::{SystemTimer, Timer};
use std::{
    collections::{HashMap, HashSet},
    future::{Future, pending},
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
};

/// How long a connection goes on listening for nobody, at most twice that: who waits again soon finds it there.
const LINGERS: Duration = Duration::from_secs(5);

/// An engine whose server tells.
pub(crate) trait Hears: Clone + Send + Sync + 'static {
    fn ears(&self) -> &Ears;

    /// Listens, until nobody waits any more or nothing can be heard.
    fn hear(ear: Ear<Self>) -> impl Future<Output = ()> + Send;
}

/// Those who wait.
#[derive(Default)]
pub(crate) struct Ears {
    inside: Mutex<Inside>,
    /// Somebody waits who did not, or the other way round.
    changed: Notify,
    /// More is heard.
    hears: Notify,
}

#[derive(Default)]
struct Inside {
    waiting: HashMap<String, Vec<(u64, oneshot::Sender<()>)>>,
    /// How many have waited so far.
    number: u64,
    is_listening: bool,
    heard: Heard,
}

/// What is heard from now on, whenever it is told.
#[derive(Default)]
struct Heard {
    names: HashSet<String>,
    all: bool,
}

impl Inside {
    /// Nobody listens any more.
    fn ended(&mut self) {
        (self.is_listening, self.heard) = (false, Heard::default());
    }
}

impl Ears {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on somebody waits for this.
    pub(crate) fn wait(&self, name: String) -> Waiting<'_> {
        let (tells, told) = oneshot::channel();
        let number = {
            let mut inside = self.lock();
            inside.number += 1;
            let number = inside.number;
            inside.waiting.entry(name.clone()).or_default().push((number, tells));
            number
        };
        self.changed.notify_one();
        Waiting { ears: self, name, number, told }
    }

    /// All who wait for this are told.
    pub(crate) fn tell(&self, name: &str) {
        // Who is told is woken, which nobody else has to wait for.
        let waiting = self.lock().waiting.remove(name);
        for (_, tells) in waiting.into_iter().flatten() {
            // Whoever waited may be gone.
            let _ = tells.send(());
        }
    }

    /// Of which nothing needs to be heard any more, and of which something does. Whoever waits from now on for one of the first waits
    /// until it is heard again.
    #[cfg(feature = "redis")]
    pub(crate) fn wanted(&self) -> (Vec<String>, Vec<String>) {
        let mut inside = self.lock();
        let Inside { waiting, heard, .. } = &mut *inside;
        let gone = heard.names.extract_if(|name| !waiting.contains_key(name)).collect();
        (gone, waiting.keys().filter(|name| !heard.names.contains(*name)).cloned().collect())
    }

    /// From now on this is heard.
    #[cfg(feature = "redis")]
    pub(crate) fn hear(&self, name: String) {
        self.lock().heard.names.insert(name);
        self.hears.notify_waiters();
    }

    /// From now on all is heard.
    #[cfg(feature = "postgres")]
    pub(crate) fn hear_all(&self) {
        self.lock().heard.all = true;
        self.hears.notify_waiters();
    }

    /// Ready when that may have changed.
    #[cfg(feature = "redis")]
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Somebody who waits.
pub(crate) struct Waiting<'a> {
    ears: &'a Ears,
    name: String,
    number: u64,
    told: oneshot::Receiver<()>,
}

impl Waiting<'_> {
    /// Ready when it would be heard if it were told, or never. What was told before that was not.
    async fn heard(ears: &Ears, name: &str) {
        loop {
            let mut more = pin!(ears.hears.notified());
            more.as_mut().enable();
            {
                let heard = &ears.lock().heard;
                if heard.all || heard.names.contains(name) {
                    return;
                }
            }
            more.await;
        }
    }

    /// Ready when it is told, or when it came before anything was heard: `has_come` looks, once it would be.
    pub(crate) async fn told_or(&mut self, has_come: impl Future<Output = bool>) {
        let (ears, name) = (self.ears, self.name.clone());
        if let Either::First(()) = race(pin!(self.told()), pin!(Self::heard(ears, &name))).await {
            return;
        }
        // Not left half way when it is told meanwhile: a question that is given up costs its connection.
        if !has_come.await {
            self.told().await;
        }
    }

    /// Ready when it is told, however long that takes.
    async fn told(&mut self) {
        if (&mut self.told).await.is_err() {
            pending().await
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut inside = self.ears.lock();
        let Some(waiting) = inside.waiting.get_mut(&self.name) else { return };
        let at = waiting.iter().position(|(number, _)| *number == self.number);
        let own = at.map(|at| waiting.remove(at));
        let is_last = waiting.is_empty();
        if is_last {
            inside.waiting.remove(&self.name);
        }
        drop(inside);
        // That wakes whoever polled it.
        drop(own);
        if is_last {
            self.ears.changed.notify_one();
        }
    }
}

/// Begins to listen, if nobody does.
pub(crate) fn listen<E: Hears>(engine: &E) {
    // Without a runtime nothing is heard.
    let Ok(runtime) = Handle::try_current() else { return };
    if !std::mem::replace(&mut engine.ears().lock().is_listening, true) {
        runtime.spawn(E::hear(Ear { engine: engine.clone(), is_over: false }));
    }
}

/// Whoever listens for all.
pub(crate) struct Ear<E: Hears> {
    pub(crate) engine: E,
    is_over: bool,
}

impl<E: Hears> Ear<E> {
    /// Ready when nobody has waited for a while, whatever is heard meanwhile. Then the next who waits begins anew.
    pub(crate) async fn over(&mut self) {
        let mut nobody_since = None;
        loop {
            SystemTimer.sleep(LINGERS).await;
            let mut inside = self.engine.ears().lock();
            let nobody = inside.waiting.is_empty().then_some(inside.number);
            if nobody.is_some() && nobody == nobody_since {
                inside.ended();
                self.is_over = true;
                return;
            }
            nobody_since = nobody;
        }
    }
}

impl<E: Hears> Drop for Ear<E> {
    fn drop(&mut self) {
        if !self.is_over {
            self.engine.ears().lock().ended();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::{Context, Wake, Waker},
    };
    use tokio::{runtime::Builder, time::timeout};

    /// A town, and its crier.
    #[derive(Clone, Default)]
    struct Town(Arc<Inside>);

    #[derive(Default)]
    struct Inside {
        ears: Ears,
        /// How many criers have begun, and how many are there.
        begun: AtomicUsize,
        there: AtomicUsize,
        breaks: Notify,
    }

    impl Town {
        /// Somebody waits, for whom somebody listens.
        fn wait(&self, name: &str) -> Waiting<'_> {
            let waiting = self.0.ears.wait(name.to_owned());
            listen(self);
            waiting
        }

        /// How many criers have begun, and how many are there.
        fn criers(&self) -> (usize, usize) {
            (self.0.begun.load(Ordering::Relaxed), self.0.there.load(Ordering::Relaxed))
        }
    }

    impl Hears for Town {
        fn ears(&self) -> &Ears {
            &self.0.ears
        }

        async fn hear(mut ear: Ear<Town>) {
            let town = ear.engine.clone();
            town.0.begun.fetch_add(1, Ordering::Relaxed);
            town.0.there.fetch_add(1, Ordering::Relaxed);
            race(pin!(town.0.breaks.notified()), pin!(ear.over())).await;
            town.0.there.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether somebody is told, by now.
    async fn is_told(waiting: &mut Waiting<'_>) -> bool {
        timeout(Duration::from_millis(1), waiting.told()).await.is_ok()
    }

    /// What somebody waits for.
    fn names(ears: &Ears) -> Vec<String> {
        ears.lock().waiting.keys().cloned().collect()
    }

    /// What is told before it is heard is looked for when it would be, and not sooner.
    #[tokio::test(start_paused = true)]
    async fn what_came_before_it_was_heard_is_seen() {
        let ears = Ears::default();
        let looks = AtomicUsize::new(0);
        let look = |has_come: bool| {
            let looks = &looks;
            async move {
                looks.fetch_add(1, Ordering::Relaxed);
                has_come
            }
        };
        let soon = Duration::from_millis(1);
        let mut bread = ears.wait("bread".to_owned());
        assert!(timeout(soon, bread.told_or(look(true))).await.is_err());
        assert_eq!((ears.wanted(), looks.load(Ordering::Relaxed)), ((vec![], vec!["bread".to_owned()]), 0));
        ears.hear("bread".to_owned());
        assert!(timeout(soon, bread.told_or(look(false))).await.is_err());
        assert!(timeout(soon, bread.told_or(look(true))).await.is_ok());
        assert_eq!((ears.wanted(), looks.load(Ordering::Relaxed)), ((vec![], vec![]), 2));
        // Whoever comes when it is about to be unheard waits until it is heard again.
        drop(bread);
        assert_eq!(ears.wanted(), (vec!["bread".to_owned()], vec![]));
        let mut bread = ears.wait("bread".to_owned());
        assert!(timeout(soon, bread.told_or(look(true))).await.is_err());
        assert_eq!(ears.wanted(), (vec![], vec!["bread".to_owned()]));
        ears.hear_all();
        assert!(timeout(soon, bread.told_or(look(true))).await.is_ok());
        // Nobody listens: nothing is heard.
        ears.lock().ended();
        assert!(timeout(soon, bread.told_or(look(true))).await.is_err());
        let mut waits = Box::pin(bread.told_or(look(true)));
        assert!(timeout(soon, waits.as_mut()).await.is_err());
        ears.hear("bread".to_owned());
        assert!(timeout(soon, waits).await.is_ok(), "and is told of it while it waits");
    }

    /// Whoever is woken may look at the ears at once.
    #[test]
    fn nobody_is_woken_while_others_are_kept_out() {
        struct Looks(Arc<Ears>, AtomicUsize);
        impl Wake for Looks {
            fn wake(self: Arc<Self>) {
                assert!(self.0.inside.try_lock().is_ok(), "the lock is held");
                self.1.fetch_add(1, Ordering::Relaxed);
            }
        }
        let ears = Arc::new(Ears::default());
        let looks = Arc::new(Looks(ears.clone(), AtomicUsize::new(0)));
        let waker = Waker::from(looks.clone());
        let mut context = Context::from_waker(&waker);
        let (mut told, mut leaves) = (ears.wait("a".to_owned()), ears.wait("b".to_owned()));
        for waiting in [&mut told, &mut leaves] {
            assert!(pin!(waiting.told()).poll(&mut context).is_pending());
        }
        ears.tell("a");
        assert_eq!(looks.1.load(Ordering::Relaxed), 1);
        drop((told, leaves));
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_for_a_name_are_told_and_nobody_else() {
        let town = Town::default();
        let (mut first, mut second, mut other) = (town.wait("bread"), town.wait("bread"), town.wait("fish"));
        town.0.ears.tell("wine");
        assert!(!is_told(&mut first).await && !is_told(&mut second).await && !is_told(&mut other).await);
        town.0.ears.tell("bread");
        // Who comes now waits for the next time.
        let mut late = town.wait("bread");
        assert!(is_told(&mut first).await && is_told(&mut second).await);
        assert!(!is_told(&mut late).await && !is_told(&mut other).await);
        drop((first, second));
        town.0.ears.tell("bread");
        assert!(is_told(&mut late).await, "those who left took nobody with them");
        assert!(!is_told(&mut other).await);
        assert_eq!(names(&town.0.ears), ["fish"]);
        assert_eq!(town.criers(), (1, 1), "one listens for all");
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_leaves_the_others_and_the_last_takes_the_name_along() {
        let town = Town::default();
        let (mut first, second) = (town.wait("bread"), town.wait("bread"));
        assert_eq!(timeout(LINGERS, town.0.ears.changed()).await, Ok(()));
        drop(second);
        assert!(timeout(LINGERS, town.0.ears.changed()).await.is_err(), "the name is still waited for");
        town.0.ears.tell("bread");
        assert!(is_told(&mut first).await);
        drop(first);

        let third = town.wait("bread");
        assert_eq!(timeout(LINGERS, town.0.ears.changed()).await, Ok(()));
        drop(third);
        assert_eq!(timeout(LINGERS, town.0.ears.changed()).await, Ok(()));
        assert!(names(&town.0.ears).is_empty());
        town.0.ears.tell("bread");
    }

    #[tokio::test(start_paused = true)]
    async fn a_listener_that_breaks_is_begun_anew_by_the_next_who_waits() {
        let town = Town::default();
        let mut first = town.wait("bread");
        assert!(!is_told(&mut first).await);
        town.0.breaks.notify_one();
        assert!(!is_told(&mut first).await);
        assert_eq!(town.criers(), (1, 0));
        let mut second = town.wait("bread");
        assert!(!is_told(&mut first).await && !is_told(&mut second).await);
        assert_eq!(town.criers(), (2, 1));
        town.0.ears.tell("bread");
        assert!(is_told(&mut first).await && is_told(&mut second).await, "it listens for who was there before, too");
    }

    #[tokio::test(start_paused = true)]
    async fn a_listener_lingers_for_who_waits_again() {
        let town = Town::default();
        for nth in 1..20 {
            let mut waiting = town.wait("bread");
            assert!(!is_told(&mut waiting).await);
            tokio::time::sleep(LINGERS * nth / 10).await;
            drop(waiting);
            tokio::time::sleep(LINGERS * 9 / 10).await;
            assert_eq!(town.criers(), (1, 1), "{nth}");
        }
        let waiting = town.wait("bread");
        tokio::time::sleep(LINGERS * 10).await;
        assert_eq!(town.criers(), (1, 1), "it stays as long as somebody waits");
        drop(waiting);
        for _ in 0..20 {
            // What others are told is nothing to it.
            tokio::time::sleep(LINGERS / 10).await;
            town.0.ears.tell("fish");
        }
        assert_eq!(town.criers(), (1, 0), "nobody waits");
        assert!(!is_told(&mut town.wait("bread")).await);
        assert_eq!(town.criers(), (2, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_over_does_not_end_its_successor() {
        let town = Town::default();
        town.0.ears.lock().is_listening = true;
        let mut ear = Ear { engine: town.clone(), is_over: false };
        let waiting = town.wait("bread");
        assert!(timeout(LINGERS * 10, ear.over()).await.is_err());
        drop(waiting);
        assert_eq!(timeout(LINGERS * 3, ear.over()).await, Ok(()));
        // It has still to close its connection.
        let mut waiting = town.wait("bread");
        assert!(!is_told(&mut waiting).await);
        assert_eq!(town.criers(), (1, 1));
        drop(ear);
        let mut second = town.wait("fish");
        assert!(!is_told(&mut second).await);
        assert_eq!(town.criers(), (1, 1), "two would listen");
    }

    #[test]
    fn a_runtime_that_ends_takes_its_listener_along() {
        let town = Town::default();
        drop(town.wait("bread"));
        assert_eq!(town.criers(), (0, 0), "nobody listens without a runtime");
        for begun in 1..=2 {
            let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            runtime.block_on(async { assert!(!is_told(&mut town.wait("bread")).await) });
            assert_eq!(town.criers().0, begun);
        }
    }
}
