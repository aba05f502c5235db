//! Names of things in a store: any bytes, up to a limit.

use std::{
    fmt::{self, Write},
    sync::Arc,
};

/// The longest [`Key`], in bytes.
pub const MAX_KEY: usize = 255;

/// The longest [`Scope`], in bytes.
pub const MAX_SCOPE: usize = 1024;

/// The name of a record, a lease or a versioned value: 1 to 255 bytes of any kind.
///
/// A clone is cheap. Shown with what is not printable escaped.
///
/// ```
/// use relent_store::Key;
///
/// let key = Key::new("order-7").unwrap();
/// assert_eq!(key.as_bytes(), b"order-7");
/// assert!(Key::new("").is_err() && Key::new([0; 256]).is_err());
/// assert_eq!(Key::new(b"a\n\xff").unwrap().to_string(), r"a\n\xff");
/// assert_eq!(Key::new("हिन्दी").unwrap().to_string(), "हिन्दी");
/// assert_eq!(Key::new("it's größe \u{202e}").unwrap().to_string(), r"it's größe \u{202e}");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<[u8]>);

impl Key {
    /// A key of these bytes.
    ///
    /// # Errors
    ///
    /// [`NotAKey`] if there are none, or more than [`MAX_KEY`].
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Key, NotAKey> {
        match bytes.as_ref() {
            [] => Err(NotAKey::Empty),
            bytes if bytes.len() > MAX_KEY => Err(NotAKey::TooLong { most: MAX_KEY, is: bytes.len() }),
            bytes => Ok(Key(bytes.into())),
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Whose a key is: one scope's key never meets that of another. At most 1,024 bytes of any kind; may be empty.
///
/// Made of parts (tenant, method, path) that cannot run into each other, whatever is in them:
///
/// ```
/// use relent_store::Scope;
///
/// let scope = |tenant, path| Scope::of([tenant, "POST", path]).unwrap();
/// assert_ne!(scope("a", "b/c"), scope("a/b", "c"));
/// assert_eq!(Scope::of(["mail"]).unwrap(), Scope::new("mail").unwrap());
/// assert_eq!(scope("bank", "/pay").to_string(), "bank POST /pay");
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope(Arc<[u8]>);

/// Between two parts of a scope. In a part it is doubled, after this.
const SEPARATOR: u8 = 0x1f;
const ESCAPE: u8 = 0x1e;

impl Scope {
    /// A scope of one part.
    ///
    /// # Errors
    ///
    /// [`NotAKey::TooLong`] if it takes more than [`MAX_SCOPE`] bytes.
    pub fn new(part: impl AsRef<[u8]>) -> Result<Scope, NotAKey> {
        Scope::of([part])
    }

    /// A scope of these parts, in this order.
    ///
    /// # Errors
    ///
    /// [`NotAKey::TooLong`] if they take more than [`MAX_SCOPE`] bytes, with a byte between each two of them.
    pub fn of<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Result<Scope, NotAKey> {
        let mut bytes = Vec::new();
        for (nth, part) in parts.into_iter().enumerate() {
            if nth > 0 {
                bytes.push(SEPARATOR);
            }
            for byte in part.as_ref() {
                if matches!(*byte, SEPARATOR | ESCAPE) {
                    bytes.push(ESCAPE);
                }
                bytes.push(*byte);
            }
        }
        match bytes.len() {
            is @ ..=MAX_SCOPE => {
                debug_assert!(is <= MAX_SCOPE);
                Ok(Scope(bytes.into()))
            }
            is => Err(NotAKey::TooLong { most: MAX_SCOPE, is }),
        }
    }

    /// The bytes as they are kept: parts with a separator between them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A scope as it was kept. One that is too long was kept by nobody of us.
    #[cfg_attr(
        not(any(feature = "redis", feature = "sqlite", feature = "postgres")),
        expect(dead_code, reason = "memory lists its own")
    )]
    pub(crate) fn kept(bytes: &[u8]) -> Result<Scope, NotAKey> {
        match bytes.len() {
            ..=MAX_SCOPE => Ok(Scope(bytes.into())),
            is => Err(NotAKey::TooLong { most: MAX_SCOPE, is }),
        }
    }
}

/// What is text as it is, but for what would be obeyed or not seen, and for what the other is written with.
fn show(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match u8::try_from(c) {
                Ok(b'\'') => f.write_str("'")?,
                Ok(byte) if byte.is_ascii() => write!(f, "{}", byte.escape_ascii())?,
                // A mark goes with the letter before it, as in `str::escape_debug`.
                _ => String::from_iter(['x', c]).escape_debug().skip(1).try_for_each(|c| f.write_char(c))?,
            }
        }
        write!(f, "{}", chunk.invalid().escape_ascii())?;
    }
    Ok(())
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(&self.0, f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(\"{self}\")")
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, part) in self.0.split(|byte| *byte == SEPARATOR).enumerate() {
            if nth > 0 {
                f.write_str(" ")?;
            }
            show(part, f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope(\"{self}\")")
    }
}

/// Why some bytes are no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAKey {
    /// There are none.
    Empty,
    /// There are too many.
    TooLong {
        /// How many there may be.
        most: usize,
        /// How many there are.
        is: usize,
    },
}

impl fmt::Display for NotAKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAKey::Empty => f.write_str("the key is empty"),
            NotAKey::TooLong { most, is } => write!(f, "the key or scope has {is} bytes, which is more than {most}"),
        }
    }
}

impl std::error::Error for NotAKey {}

impl From<NotAKey> for crate::Error {
    fn from(not: NotAKey) -> crate::Error {
        crate::Error::new(crate::ErrorKind::Invalid, not.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn two_lists_of_parts_are_two_scopes(
            a in prop::collection::vec(prop::collection::vec(0x1du8..0x21, 0..3), 1..4),
            b in prop::collection::vec(prop::collection::vec(0x1du8..0x21, 0..3), 1..4),
        ) {
            prop_assert_eq!(Scope::of(&a).unwrap() == Scope::of(&b).unwrap(), a == b);
        }
    }

    #[test]
    fn what_is_too_long_says_by_how_much() {
        assert_eq!(Scope::new([b'x'; 1024]).unwrap().as_bytes().len(), 1024);
        let error = Scope::new([b'x'; 1025]).unwrap_err();
        assert_eq!(error.to_string(), "the key or scope has 1025 bytes, which is more than 1024");
    }
}
