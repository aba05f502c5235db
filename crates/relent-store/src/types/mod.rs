//! What stores are asked and what they answer. Data only.

mod fence;
mod idempotency;
mod lease;
mod name;
mod shared;
mod version;

pub use self::{
    fence::{Fence, Fingerprint, Nonce},
    idempotency::{Abandon, Begin, Claim, Kept, OnUnknown, Started, Stored},
    lease::{Acquired, Holder, Holding, Lease, Owner, Renewed},
    name::{Key, MAX_KEY, MAX_SCOPE, NotAKey, Scope},
    shared::{Booked, Booking, Delta, Held, Shared, SharedRate},
    version::{Replaced, Version, Versioned},
};
