//! What a store says when it cannot.

use relent::Verdict;
use std::{borrow::Cow, fmt};

/// Why a store could not do what it was asked. Shows no value, and no credentials.
///
/// What was asked may have happened where [`may_have_happened`](Error::may_have_happened) says so. Every operation can be
/// asked again with the same nonce, fence or number, and is then done once; [`Store`](crate::Store) does.
///
/// ```
/// use relent_store::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Full, "the disk is full").hint("make room, then try again");
/// assert_eq!((error.to_string(), error.hint_text()), ("the disk is full".into(), Some("make room, then try again")));
/// assert!(!error.is_transient());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    what: String,
    hint: Option<Cow<'static, str>>,
    may_have_happened: bool,
}

/// What kind of trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store does not answer, is starting, or has lost the connection. Tried again.
    Unavailable,
    /// Others were quicker: a lock, a serialization failure, a deadlock. Tried again.
    Contended,
    /// It took too long. The answer may still come true.
    Timeout,
    /// The store takes no writes: a read-only file, a replica.
    ReadOnly,
    /// No room is left.
    Full,
    /// The store does not let us in.
    Refused,
    /// A key, value, setting or URL that makes no sense, or too large.
    Invalid,
    /// The store was made by a newer relent.
    TooNew,
    /// The store is of an older relent, and was not to be changed.
    TooOld,
    /// There is no store, and none was to be made.
    Missing,
    /// What is there is not what a store of ours holds.
    Corrupt,
    /// This build or engine cannot do that.
    Unsupported,
}

impl Error {
    /// An error of this kind. `what` is for people, and must hold no secret.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Error {
        let inner = Inner { kind, what: what.into(), hint: None, may_have_happened: kind == ErrorKind::Timeout };
        Error(Box::new(inner))
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// The question was sent and no answer came.
    #[must_use]
    pub fn maybe_happened(mut self) -> Error {
        self.0.may_have_happened = true;
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What to do about it, where that is known.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Whether what was asked may have been done nevertheless.
    pub fn may_have_happened(&self) -> bool {
        self.0.may_have_happened
    }

    /// Whether it may be over the next time.
    pub fn is_transient(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Unavailable | ErrorKind::Contended | ErrorKind::Timeout)
    }

    /// What it means for a call.
    pub fn verdict(&self) -> Verdict {
        if self.is_transient() { Verdict::Transient } else { Verdict::Permanent }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.what)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.what)
    }
}

impl std::error::Error for Error {}
