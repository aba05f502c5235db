//! Numbers that tell claims apart: the store's, the caller's, the request's.

use relent::{SystemTimer, Timer, rng::draw};
use sha2::{Digest, Sha256};
use std::fmt;

/// A number that grows with each claim of a key and each holder of a lease. Whoever comes with an old one is refused.
///
/// Pass it on to what the claim protects (a column, a file, a device): a far side that remembers the greatest fence it
/// saw, and refuses lower ones, is safe from a holder that slept through the end of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// 128 bits that tell one caller from all others, so that an operation whose answer was lost can be asked again: who
/// comes with the nonce that is there is the same.
///
/// ```
/// use relent_store::Nonce;
/// assert_ne!(Nonce::random(), Nonce::random());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce(pub [u8; 16]);

impl Nonce {
    /// A new one. Made of the system's entropy, read once a process, a counter and the time; no secret.
    pub fn random() -> Nonce {
        let (a, b) = (SystemTimer.seed(), SystemTimer.seed());
        let process = u64::from(std::process::id());
        let bits = (u128::from(draw(a, 0) ^ process) << 64) | u128::from(draw(b, 1));
        Nonce(bits.to_be_bytes())
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nonce({:032x})", u128::from_be_bytes(self.0))
    }
}

/// What a request was, in 32 bytes: the same key with another fingerprint is somebody's mistake, and is refused.
///
/// ```
/// use relent_store::Fingerprint;
///
/// assert_ne!(Fingerprint::of(["pay", "10"]), Fingerprint::of(["pay1", "0"]));
/// assert_eq!(Fingerprint::of(["pay", "10"]), Fingerprint::of(["pay", "10"]));
/// ```
#[derive(Clone, Copy, Eq, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "what is equal is the same, only the time it takes differs")]
pub struct Fingerprint(pub [u8; 32]);

/// Takes the same time wherever they differ.
impl PartialEq for Fingerprint {
    fn eq(&self, other: &Fingerprint) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
    }
}

impl Fingerprint {
    /// Where requests are not compared.
    pub const NONE: Fingerprint = Fingerprint([0; 32]);

    /// SHA-256 of these parts, each with its length before it.
    pub fn of<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Fingerprint {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Fingerprint(hash.finalize().into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "Fingerprint({:08x}..)", u32::from_be_bytes([a, b, c, d]))
    }
}
