//! An operation that must happen once: begun, completed, abandoned.

use super::{Fence, Fingerprint, Key, Nonce, Scope};
use crate::Time;
use std::{fmt, sync::Arc, time::Duration};

/// Somebody wants to carry out an operation, if nobody has.
#[derive(Clone, Debug)]
pub struct Begin {
    /// Whose key it is.
    pub scope: Scope,
    /// The key of the operation.
    pub key: Key,
    /// What the request was.
    pub fingerprint: Fingerprint,
    /// Who asks. The same nonce again is the same question, asked again because its answer was lost.
    pub nonce: Nonce,
    /// How long the claim holds unless it is [extended](crate::Engine::extend). Whole milliseconds, at least one.
    pub lease: Duration,
    /// How long the record is kept, from now on, and again from its completion on. Whole milliseconds.
    pub keep: Duration,
    /// What to do where an earlier claim ended without a word.
    pub on_unknown: OnUnknown,
}

/// What to do with a key whose holder went silent: nobody knows whether the effect happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// Say so, and change nothing.
    #[default]
    Tell,
    /// Claim it, with a new fence. The answer says that it was unknown; the record remembers it until it is completed or
    /// [forgotten](Abandon::Forget).
    TakeOver,
}

/// What became of a [`Begin`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// It is the caller's to carry out.
    Started {
        /// Under this fence.
        fence: Fence,
        /// Since when it was unknown whether an earlier one happened; only after [`OnUnknown::TakeOver`].
        unknown: Option<Time>,
    },
    /// It is done, and this came of it.
    Replay(Stored),
    /// Somebody is at it.
    Busy {
        /// Until that claim ends, if nothing is heard of it.
        retry_after: Duration,
    },
    /// The key belongs to another request.
    Mismatch,
    /// Somebody was at it and went silent. It may have happened.
    Unknown {
        /// When that claim began.
        since: Time,
    },
}

/// What the holder of a key has in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Whose key it is.
    pub scope: Scope,
    /// The key.
    pub key: Key,
    /// The fence of this claim.
    pub fence: Fence,
}

/// Whether what a holder told was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a holder that is fenced has lost what it held"]
pub enum Kept {
    /// It was, or had been already.
    Kept,
    /// No: the fence is old. Somebody else holds the key, or it is gone.
    Fenced,
}

/// Why a claim is given up without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandon {
    /// It did not happen: as if never asked.
    Forget,
    /// It may have happened: the next one is told so at once, not only after the lease.
    Unknown,
}

/// What came of an operation, as it is kept and replayed. A clone is cheap. Its bytes are never shown.
///
/// ```
/// use relent_store::Stored;
///
/// let stored = Stored::success("receipt 7");
/// assert_eq!(stored.bytes(), b"receipt 7");
/// assert_eq!(format!("{stored:?}"), "Stored { is_failure: false, bytes: 9 }");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    is_failure: bool,
    bytes: Arc<[u8]>,
}

impl Stored {
    /// The result of an operation that succeeded.
    pub fn success(bytes: impl AsRef<[u8]>) -> Stored {
        Stored { is_failure: false, bytes: bytes.as_ref().into() }
    }

    /// A failure that is final, and is replayed as such.
    pub fn failure(bytes: impl AsRef<[u8]>) -> Stored {
        Stored { is_failure: true, bytes: bytes.as_ref().into() }
    }

    /// Whether it is a failure.
    pub fn is_failure(&self) -> bool {
        self.is_failure
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("is_failure", &self.is_failure).field("bytes", &self.bytes.len()).finish()
    }
}

impl From<&str> for Stored {
    fn from(bytes: &str) -> Stored {
        Stored::success(bytes)
    }
}

impl From<String> for Stored {
    fn from(bytes: String) -> Stored {
        Stored::success(bytes)
    }
}

impl From<&[u8]> for Stored {
    fn from(bytes: &[u8]) -> Stored {
        Stored::success(bytes)
    }
}

impl From<Vec<u8>> for Stored {
    fn from(bytes: Vec<u8>) -> Stored {
        Stored::success(bytes)
    }
}

impl From<()> for Stored {
    fn from((): ()) -> Stored {
        Stored::success([])
    }
}
