//! The layer of calls that are seen.

use super::RetryLayer;
use crate::{Retrier, observe::Observed};

impl<W, N, S> Observed<W, N, S> {
    /// [`Retrier::layer`], seen. An answer that is a failure is one in logs and figures too, though it is handed over.
    ///
    /// ```
    /// let layer = relent::Policy::default().observe("read").layer();
    /// # let _ = layer;
    /// ```
    pub fn layer(self) -> RetryLayer<Retrier<W, N, S>> {
        self.retrier.layer().observed(self.policy)
    }
}
