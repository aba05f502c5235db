//! A value and the number that changes with it.

use std::{fmt, sync::Arc};

/// The version of a value. It grows at each change, also over a deletion, so that a version is never met again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// That of a value that is not there.
    pub const ABSENT: Version = Version(0);
}

/// A value as it was at some version. Its bytes are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Versioned {
    /// Its version; [`Version::ABSENT`] where there is none.
    pub version: Version,
    /// The bytes; `None` where there are none.
    pub value: Option<Arc<[u8]>>,
}

impl Versioned {
    /// What is not there.
    pub const ABSENT: Versioned = Versioned { version: Version::ABSENT, value: None };
}

impl fmt::Debug for Versioned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.value.as_ref().map(|value| value.len());
        f.debug_struct("Versioned").field("version", &self.version.0).field("bytes", &bytes).finish()
    }
}

/// What became of a wish to replace a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a conflict has replaced nothing"]
pub enum Replaced {
    /// It is replaced, and this is its version now; [`Version::ABSENT`] if it was removed.
    Replaced(Version),
    /// It had changed meanwhile, to this.
    Conflict(Versioned),
}
