//! How often who waits for a lease heeds what it is told: whoever may say that it is free need not be who had it.

use crate::{Engine, Key};
use relent::{SystemTimer, Timer, Timestamp};
use std::time::Duration;

/// How often what is told is heeded, if it is told again and again.
const GAP: Duration = Duration::from_millis(250);

/// How often it is heeded at once before that, after a time in which it was quiet.
const AT_ONCE: u32 = 20;

/// One who waits for a name to be free, and asks again each time that it may be.
///
/// A store tells who waits of a release, so that nobody polls in vain. But in Postgres every role may `NOTIFY`, in Redis whoever may
/// `PUBLISH`, and a hundred who wait are woken together for one of them to succeed. So what is told ends a wait at once twenty times, and
/// four times a second after that (as a bucket of tokens: the generic cell rate algorithm of ITU-T I.371). A wait is never longer than
/// without what is told.
///
/// [`Store::lease`](crate::Store::lease) waits so by itself, within a process with others, too: this is for who asks an [`Engine`] in a loop
/// of its own. One belongs to one who waits, for as long as it waits; a clone counts for itself from then on. What was not told for a
/// while is heeded at once again: one wait more for each quarter of a second, up to twenty.
///
/// ```
/// # use relent_store::Memory;
/// use relent_store::{Acquired, Engine, Heed, Key, Lease, Nonce, Owner};
/// use std::time::Duration;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
/// # let engine = Memory::new();
/// # runtime.block_on(async {
/// let lease = |ttl| -> Result<_, relent_store::NotAKey> {
///     Ok(Lease { name: Key::new("nightly")?, owner: Owner::here(), nonce: Nonce::random(), ttl })
/// };
/// let (before, ours) = (lease(Duration::from_millis(50))?, lease(Duration::from_secs(30))?);
/// assert!(matches!(engine.acquire(&before).await?, Acquired::Acquired { .. }));
///
/// let mut heed = Heed::default();
/// let fence = loop {
///     match engine.acquire(&ours).await? {
///         Acquired::Acquired { fence, .. } => break fence,
///         // Until it is let go, or for five seconds: somebody may have died with it.
///         Acquired::Held { left, .. } => heed.freed(&engine, &ours.name, left.min(Duration::from_secs(5))).await,
///     }
/// };
/// # let _ = fence;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Heed {
    due: Timestamp,
}

impl Heed {
    /// Waits until the name may be free, at most so long: zero does not wait, and any time may be asked for. It may be free no more when
    /// this returns, or never have been: the engine says, asked anew.
    ///
    /// # Errors
    ///
    /// None: a store that is away, or that cannot tell, is waited for as one that says nothing.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped has taken nothing and lost nothing. What it was told may count, so that the next is heeded a quarter of
    /// a second later.
    pub async fn freed<E: Engine + ?Sized>(&mut self, engine: &E, name: &Key, most: Duration) {
        let began = SystemTimer.now();
        engine.freed(name, most).await;
        let now = SystemTimer.now();
        let left = most.saturating_sub(now.since(began));
        SystemTimer.sleep(self.in_vain(now).min(left)).await;
    }

    /// How long it goes on waiting, told at this time.
    fn in_vain(&mut self, now: Timestamp) -> Duration {
        let due = self.due.max(now);
        self.due = due + GAP;
        due.since(now).saturating_sub(GAP * (AT_ONCE - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Acquired, Holding, Lease, Memory, Nonce, Owner};

    #[test]
    fn what_is_told_again_and_again_is_heeded_now_and_then() {
        let mut heed = Heed::default();
        let mut now = Timestamp::ZERO + Duration::from_secs(9);
        let began = now;
        for _ in 0..AT_ONCE {
            assert_eq!(heed.in_vain(now), Duration::ZERO);
        }
        for _ in 0..40 {
            let wait = heed.in_vain(now);
            assert!(wait > Duration::ZERO && wait <= GAP, "{wait:?}");
            now = now + wait;
        }
        assert_eq!(now.since(began), GAP * 40);
        // In a time of quiet it comes back, and no more than there was.
        now = now + GAP * 1000;
        let at_once = (0..100).take_while(|_| heed.in_vain(now).is_zero()).count();
        assert_eq!(at_once, AT_ONCE as usize);
    }

    /// As when somebody says all the time that something is free.
    #[tokio::test(start_paused = true)]
    async fn who_is_told_all_the_time_asks_now_and_then() {
        let engine = Memory::new();
        let [name, other] = ["nightly", "other"].map(|name| Key::new(name).unwrap());
        let releases = async {
            loop {
                let lease = Lease { name: other.clone(), owner: Owner::here(), nonce: Nonce::random(), ttl: GAP };
                if let Ok(Acquired::Acquired { fence, .. }) = engine.acquire(&lease).await {
                    let _ = engine.release(&Holding { name: other.clone(), fence }).await.unwrap();
                }
                SystemTimer.sleep(Duration::from_millis(1)).await;
            }
        };
        let (mut asked, mut heed) = (0_u32, Heed::default());
        let asks = async {
            loop {
                heed.freed(&engine, &name, Duration::from_secs(60)).await;
                asked += 1;
            }
        };
        let both = async { tokio::join!(releases, asks) };
        assert!(tokio::time::timeout(GAP * 40, both).await.is_err());
        assert!((50..=AT_ONCE + 41).contains(&asked), "{asked}");
    }
}
