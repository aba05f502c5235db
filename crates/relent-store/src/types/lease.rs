//! A lock that ends by itself.

use super::{Fence, Key, Nonce};
use crate::Time;
use std::{fmt, sync::Arc, time::Duration};

/// Somebody wants to hold a name.
#[derive(Clone, Debug)]
pub struct Lease {
    /// What is to be held.
    pub name: Key,
    /// Who it is, for people.
    pub owner: Owner,
    /// Who asks. The same nonce again is the same holder, asking again because the answer was lost.
    pub nonce: Nonce,
    /// How long it holds unless it is renewed. Whole milliseconds, at least one.
    pub ttl: Duration,
}

/// Who holds a lease, as people are told: up to 255 bytes of text; more is cut off.
///
/// ```
/// use relent_store::Owner;
/// assert_eq!(Owner::new("web-3").as_str(), "web-3");
/// assert!(Owner::here().as_str().contains(&std::process::id().to_string()));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Owner(Arc<str>);

impl Owner {
    /// An owner of this name.
    pub fn new(name: &str) -> Owner {
        let mut end = name.len().min(255);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        Owner(name[..end].into())
    }

    /// This process: its machine, where that is known, and its number.
    pub fn here() -> Owner {
        let host = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = String::from_utf8_lossy(&host);
        let host = if host.trim().is_empty() { "process" } else { host.trim() };
        Owner::new(&format!("{host}:{}", std::process::id()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:?})", &*self.0)
    }
}

/// What became of a wish for a [`Lease`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// It is the caller's.
    Acquired {
        /// Under this fence.
        fence: Fence,
        /// Until then, on the store's clock.
        until: Time,
    },
    /// Somebody else has it.
    Held {
        /// Who.
        by: Owner,
        /// How long, if it is not renewed.
        left: Duration,
    },
}

/// What the holder of a lease has in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// What is held.
    pub name: Key,
    /// The fence.
    pub fence: Fence,
}

/// What became of a wish to go on holding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a holder that is fenced has lost what it held"]
pub enum Renewed {
    /// Until then, on the store's clock.
    Until(Time),
    /// No: it ended, and may have passed to somebody else.
    Fenced,
}

/// Who holds a name now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Who.
    pub owner: Owner,
    /// The fence it holds under.
    pub fence: Fence,
    /// How long, if it is not renewed.
    pub left: Duration,
}
