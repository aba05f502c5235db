//! A value changed by whoever is first, again and again until it is changed.

use crate::{Engine, Error, Key, Replaced, Store, Versioned};
use relent::Policy;
use std::fmt;

/// Why a value was not changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum UpdateError<X> {
    /// Others were quicker each time, until the policy gave up.
    Contended(relent::Error<Conflict>),
    /// The change refused the value that is there.
    Refused(X),
    /// The store could not be asked. It may have been changed if [`Error::may_have_happened`] says so.
    Store(Error),
}

/// Somebody else changed it meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict;

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("somebody else changed it meanwhile")
    }
}

impl std::error::Error for Conflict {}

impl<X: fmt::Display> fmt::Display for UpdateError<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpdateError::Contended(err) => err.fmt(f),
            UpdateError::Refused(err) => err.fmt(f),
            UpdateError::Store(err) => err.fmt(f),
        }
    }
}

impl<X: fmt::Debug + fmt::Display> std::error::Error for UpdateError<X> {}

impl<E: Engine> Store<E> {
    /// Changes a value: reads it, calls `change` with it (`None` where there is none), and puts the result in its place
    /// unless somebody else was quicker; then it all happens again after a delay of `policy`, which should have jitter.
    ///
    /// `change` is called once an attempt, and must do nothing else.
    ///
    /// # Errors
    ///
    /// [`UpdateError`]: the policy gave up, `change` refused, or the store failed. If the store failed it may have been changed: an answer was lost,
    /// perhaps, and somebody else has changed it since (see [`replace`](Store::replace)).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use relent::Policy;
    /// use relent_store::{Key, Memory, Store, UpdateError};
    /// use std::time::Duration;
    ///
    /// let (store, stock) = (Store::new(Memory::new()), Key::new("stock").unwrap());
    /// let policy = Policy::exponential(Duration::from_millis(1)).max_attempts(20);
    /// let sell = |value: Option<&[u8]>| match value.map_or(1, |value| value[0]) {
    ///     0 => Err("sold out"),
    ///     left => Ok(vec![left - 1]),
    /// };
    /// assert_eq!(&*store.update(&stock, policy, sell).await.unwrap().value.unwrap(), [0]);
    /// assert!(matches!(store.update(&stock, policy, sell).await, Err(UpdateError::Refused("sold out"))));
    /// # });
    /// ```
    pub async fn update<X>(
        &self,
        key: &Key,
        policy: Policy,
        mut change: impl FnMut(Option<&[u8]>) -> Result<Vec<u8>, X>,
    ) -> Result<Versioned, UpdateError<X>> {
        let mut retry = policy.start();
        loop {
            let current = self.read(key).await.map_err(UpdateError::Store)?;
            let value = change(current.value.as_deref()).map_err(UpdateError::Refused)?;
            match self.replace(key, current.version, Some(&value)).await.map_err(UpdateError::Store)? {
                Replaced::Replaced(version) => return Ok(Versioned { version, value: Some(value.into()) }),
                Replaced::Conflict(_) => retry.back_off(Conflict).await.map_err(UpdateError::Contended)?,
            }
        }
    }
}
