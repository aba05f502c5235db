//! One connection hears of releases, for all who wait for one.

use super::{FREED, Redis};
use crate::{
    Engine, Key,
    ears::{Ear, Ears, Hears, listen},
    race::{Either, race},
};
use futures_core::Stream;
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::atomic::Ordering,
};

impl Redis {
    /// Ready when a release of this name is heard of, or was missed before anything was heard; or never.
    pub(super) async fn told_of(&self, name: &Key) {
        let mut waiting = self.inner.ears.wait(self.named(FREED, None, name));
        listen(self);
        waiting.told_or(async { self.holder(name).await == Ok(None) }).await;
    }

    /// A connection of its own that listens on the channels of those who wait, until it breaks or nobody waits any more.
    async fn listen(&self, ear: &mut Ear<Redis>) -> Option<()> {
        let (connection, seen) = self.inner.line.listening().await?;
        let (mut sink, mut messages) = connection.split();
        let ears = &self.inner.ears;
        let mut over = pin!(ear.over());
        loop {
            let (gone, new) = ears.wanted();
            for channel in gone {
                sink.unsubscribe(channel).await.ok()?;
            }
            for channel in new {
                sink.subscribe(&channel).await.ok()?;
                ears.hear(channel);
            }
            let message = poll_fn(|cx| Pin::new(&mut messages).poll_next(cx));
            let changed = async { race(pin!(ears.changed()), over.as_mut()).await };
            match race(pin!(message), pin!(changed)).await {
                Either::First(message) => {
                    ears.tell(message?.get_channel_name());
                    seen.asked.fetch_add(1, Ordering::Relaxed);
                }
                Either::Second(Either::First(())) => {}
                Either::Second(Either::Second(())) => return Some(()),
            }
        }
    }
}

impl Hears for Redis {
    fn ears(&self) -> &Ears {
        &self.inner.ears
    }

    async fn hear(mut ear: Ear<Redis>) {
        let redis = ear.engine.clone();
        // Whoever waits does so for as long as it would have without.
        let _ = redis.listen(&mut ear).await;
    }
}
