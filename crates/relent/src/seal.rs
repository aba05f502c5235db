//! What only this crate can make.

/// Cannot be made outside of this crate, so that what is called with it cannot be either.
#[derive(Clone, Copy, Debug)]
pub struct Seal(pub(crate) ());
