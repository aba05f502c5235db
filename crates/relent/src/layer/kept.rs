//! What a layer keeps of a request, so that it can be sent again.

use super::{Repeat, Terms};
use crate::Policy;

/// The copy of a request that is sent again.
pub(super) enum Kept<Req> {
    Copy(Req),
    /// Too large to be kept, or cannot be copied.
    TooLarge,
    /// There is no need for one.
    None,
}

impl<Req> Kept<Req> {
    #[inline]
    pub(super) fn of<R>(request: &Req, policy: &Policy, terms: &Terms) -> Kept<Req>
    where
        Req: Repeat<R>,
    {
        if policy.max_attempts <= 1 {
            Kept::None
        } else if request.size() > terms.body_limit() {
            Kept::TooLarge
        } else {
            request.again().map_or(Kept::TooLarge, Kept::Copy)
        }
    }

    #[inline]
    pub(super) fn recycle<R>(self)
    where
        Req: Repeat<R>,
    {
        if let Kept::Copy(request) = self {
            request.recycle();
        }
    }
}
