//! Who waits to be told something, by name: one connection listens for all of them.

use std::{
    collections::HashMap,
    future::{Future, pending},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
};

/// How long a connection goes on listening for nobody, at most twice: who waits again soon finds it there.
pub(crate) const LINGERS: Duration = Duration::from_secs(5);

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
}

#[derive(Default)]
struct Inside {
    waiting: HashMap<String, Vec<(u64, oneshot::Sender<()>)>>,
    /// How many have waited so far.
    number: u64,
    is_listening: bool,
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
        for (_, tells) in self.lock().waiting.remove(name).into_iter().flatten() {
            // Whoever waited may be gone.
            let _ = tells.send(());
        }
    }

    /// What somebody waits for.
    #[cfg(feature = "redis")]
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().waiting.keys().cloned().collect()
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
    /// Ready when it is told, however long that takes.
    pub(crate) async fn told(&mut self) {
        if (&mut self.told).await.is_err() {
            pending().await
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut inside = self.ears.lock();
        let Some(waiting) = inside.waiting.get_mut(&self.name) else { return };
        waiting.retain(|(number, _)| *number != self.number);
        if waiting.is_empty() {
            inside.waiting.remove(&self.name);
            drop(inside);
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
    /// Whether nobody waits. Then the next who waits begins anew.
    pub(crate) fn is_over(&mut self) -> bool {
        let mut inside = self.engine.ears().lock();
        self.is_over = inside.waiting.is_empty();
        if self.is_over {
            inside.is_listening = false;
        }
        self.is_over
    }
}

impl<E: Hears> Drop for Ear<E> {
    fn drop(&mut self) {
        if !self.is_over {
            self.engine.ears().lock().is_listening = false;
        }
    }
}
