//! Without `std` nothing can be cancelled from outside but by dropping the future: the type has no values.

use core::future::{Future, pending};

#[derive(Clone, Debug)]
pub enum Cancel {}

impl Cancel {
    pub fn is_cancelled(&self) -> bool {
        match *self {}
    }

    pub fn cancelled(&self) -> impl Future<Output = ()> + use<> {
        pending()
    }
}
