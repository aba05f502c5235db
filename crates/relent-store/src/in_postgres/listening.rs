//! One connection hears of all releases, for all who wait for one.

use super::{Postgres, near::Link, rows::get};
use crate::{
    Engine, Key,
    ears::{Ear, Ears, Hears, listen},
    race::{Either, race},
};
use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
    task::{Context, Poll},
};
use tokio_postgres::{AsyncMessage, types::Type};

impl Postgres {
    /// Ready when a release of this name is heard of, or was missed before anything was heard; or never.
    pub(super) async fn told_of(&self, name: &Key) {
        let Some(payload) = self.payload(name).await else { return pending().await };
        let mut waiting = self.inner.ears.wait(payload);
        listen(self);
        waiting.told_or(async { self.holder(name).await == Ok(None) }).await;
    }

    /// What is told of a release of this name.
    async fn payload(&self, name: &Key) -> Option<String> {
        let name = name.as_bytes();
        let row = self.row("SELECT md5($1::bytea)", &[(&name, Type::BYTEA)]).await.ok()?;
        get(&row, 0).ok()
    }

    /// A connection of its own that listens, until it breaks or nobody waits any more.
    async fn listen(&self, ear: &mut Ear<Postgres>) -> Option<()> {
        let (client, mut connection) = self.inner.wire.apart().connect(&self.inner.config).await.ok()?;
        let sql = self.named("LISTEN relent_freed");
        let mut listening = pin!(client.batch_execute(&sql));
        let mut is_listening = false;
        let mut over = pin!(ear.over());
        loop {
            let heard = poll_fn(|cx| {
                if !is_listening {
                    is_listening = listening.as_mut().poll(cx).is_ready();
                    if is_listening {
                        self.inner.ears.hear_all();
                    }
                }
                poll_notification(&mut connection, cx)
            });
            match race(pin!(heard), over.as_mut()).await {
                Either::First(payload) => self.inner.ears.tell(&payload?),
                Either::Second(()) => return Some(()),
            }
        }
    }
}

impl Hears for Postgres {
    fn ears(&self) -> &Ears {
        &self.inner.ears
    }

    async fn hear(mut ear: Ear<Postgres>) {
        let postgres = ear.engine.clone();
        // Whoever waits does so for as long as it would have without.
        let _ = postgres.listen(&mut ear).await;
    }
}

/// What is told; `None` at the end of the connection.
fn poll_notification(connection: &mut Link, cx: &mut Context<'_>) -> Poll<Option<String>> {
    loop {
        match connection.poll_message(cx) {
            Poll::Ready(Some(Ok(AsyncMessage::Notification(told)))) => {
                return Poll::Ready(Some(told.payload().to_owned()));
            }
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(_) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        }
    }
}
