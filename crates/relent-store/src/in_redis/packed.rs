//! Records and leases as they are kept: one string each, which a script reads with one command and writes with one.
//!
//! A record is
//!
//! | bytes | |
//! |---:|---|
//! | 1 | the version of this layout |
//! | 1 | running `r`, success `s`, failure `f`, or forgotten but for its fence `l`, which ends there |
//! | 16 | its fence |
//! | 16 | when its claim began |
//! | 16 | for how long it is kept, from when it was written |
//! | 16 | for how long it is held, likewise |
//! | 16 | since when it is unknown; zero for not |
//! | 32, 16 | fingerprint, nonce |
//! | 4, 3 | how long its scope and its key are |
//! | | scope, key, and what came of it |
//!
//! and a lease
//!
//! | bytes | |
//! |---:|---|
//! | 1 | the version of this layout |
//! | 1 | held `h`, free `f` |
//! | 16 | its fence |
//! | 16 | for how long it is kept, from when it was written |
//! | 16 | for how long it is held, likewise |
//! | 16 | nonce |
//! | 3, 3 | how long its owner and its name are |
//! | | owner, name |
//!
//! Numbers are decimal digits, times microseconds, spans milliseconds. When it was written is not kept: the server knows how much
//! is left of what it keeps.

use super::nonsense;
use crate::{Begin, Error, ErrorKind, Fence, Key, Lease, Listed, MAX_KEY, MAX_SCOPE, Owner, RecordState, Scope, Time};
use crate::{rules::REMEMBERED, time::millis};
use std::time::Duration;

/// The layout of which this file speaks.
const VERSION: u8 = b'1';

/// Up to where a record is the same length for all.
const RECORD: usize = 137;

/// As much room as most leases need.
const LEASE: usize = 128;

/// As much as tells all but the value.
pub(super) const OUTLINE: usize = RECORD + MAX_SCOPE + MAX_KEY;

/// A number as it is kept, in so many digits. None of ours is larger.
fn padded<const N: usize>(mut number: u64) -> [u8; N] {
    let mut digits = [b'0'; N];
    for digit in digits.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    digits
}

/// A number as it is kept. One that is larger than ours are is another than all of them.
pub(super) fn digits(number: u64) -> [u8; 16] {
    if number > LARGEST { [b'9'; 16] } else { padded(number) }
}

/// The largest number that is kept.
const LARGEST: u64 = 9_999_999_999_999_998;

/// What is left when the fence and the times of a new record are set before it.
pub(super) fn record(begin: &Begin) -> Vec<u8> {
    let (scope, key) = (begin.scope.as_bytes(), begin.key.as_bytes());
    let mut packed = Vec::with_capacity(RECORD + scope.len() + key.len());
    packed.extend_from_slice(&digits(kept(begin)));
    packed.extend_from_slice(&digits(millis(begin.lease)));
    packed.extend_from_slice(&digits(0));
    packed.extend_from_slice(&begin.fingerprint.0);
    packed.extend_from_slice(&begin.nonce.0);
    packed.extend_from_slice(&padded::<4>(scope.len() as u64));
    packed.extend_from_slice(&padded::<3>(key.len() as u64));
    packed.extend_from_slice(scope);
    packed.extend_from_slice(key);
    packed
}

/// For how many milliseconds a claimed record is kept: not less than its lease.
pub(super) fn kept(begin: &Begin) -> u64 {
    millis(begin.keep).max(millis(begin.lease)).max(1)
}

/// For how many milliseconds a lease is kept and held, in digits.
pub(super) fn spans(ttl: Duration) -> Vec<u8> {
    let mut spans = Vec::with_capacity(LEASE);
    spans.extend_from_slice(&digits(remembered(ttl)));
    spans.extend_from_slice(&digits(millis(ttl)));
    spans
}

/// For how many milliseconds a lease is kept.
pub(super) fn remembered(ttl: Duration) -> u64 {
    millis(ttl).saturating_add(millis(REMEMBERED))
}

/// What is left when the fence of a new lease is set before it.
pub(super) fn lease(lease: &Lease) -> Vec<u8> {
    let (owner, name) = (lease.owner.as_str().as_bytes(), lease.name.as_bytes());
    let mut packed = spans(lease.ttl);
    packed.extend_from_slice(&lease.nonce.0);
    packed.extend_from_slice(&padded::<3>(owner.len() as u64));
    packed.extend_from_slice(&padded::<3>(name.len() as u64));
    packed.extend_from_slice(owner);
    packed.extend_from_slice(name);
    packed
}

/// What there is of something that is packed.
pub(super) struct Outline {
    pub(super) head: Vec<u8>,
    pub(super) length: u64,
    /// What is left of the time for which it is kept.
    pub(super) left: Duration,
    pub(super) now: Time,
}

/// Reads from the front.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (part, rest) = self.0.split_at_checked(length).ok_or_else(nonsense)?;
        self.0 = rest;
        Ok(part)
    }

    fn number(&mut self, length: usize) -> Result<u64, Error> {
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| nonsense())?;
        text.parse().map_err(|_| nonsense())
    }

    fn span(&mut self) -> Result<Duration, Error> {
        self.number(16).map(Duration::from_millis)
    }

    fn length(&mut self, digits: usize) -> Result<usize, Error> {
        self.number(digits).and_then(|length| usize::try_from(length).map_err(|_| nonsense()))
    }
}

/// An error for what another relent packed.
pub(super) fn other_version() -> Error {
    Error::new(ErrorKind::TooNew, "the Redis server has a record that another version of relent wrote")
        .hint("use the relent that wrote it, or another prefix, by `?prefix=NAME_`")
}

impl Outline {
    fn parts(&self) -> Result<(u8, Parts<'_>), Error> {
        match self.head[..] {
            [VERSION, state, ..] => Ok((state, Parts(&self.head[2..]))),
            [_, ..] => Err(other_version()),
            [] => Err(nonsense()),
        }
    }

    /// How long it is kept, and how much of a part of that is left.
    fn rest(&self, full: Duration, part: Duration) -> (Duration, Duration) {
        let left = self.left.min(full);
        (left, part.saturating_sub(full.saturating_sub(left)))
    }

    /// The record as it is listed; `None` where only its fence is remembered.
    pub(super) fn record(&self) -> Result<Option<Listed>, Error> {
        let (state, mut parts) = self.parts()?;
        if state == b'l' {
            return Ok(None);
        }
        let fence = Fence(parts.number(16)?);
        let (_, full, lease) = (parts.number(16)?, parts.span()?, parts.span()?);
        // Unknown, fingerprint, nonce.
        parts.take(64)?;
        let (of_scope, of_key) = (parts.length(4)?, parts.length(3)?);
        let scope = Scope::kept(parts.take(of_scope)?).map_err(|_| nonsense())?;
        let key = Key::new(parts.take(of_key)?).map_err(|_| nonsense())?;
        let bytes = self.length.checked_sub((RECORD + of_scope + of_key) as u64).ok_or_else(nonsense)?;
        let (left, busy) = self.rest(full, lease);
        let state = match state {
            b's' => RecordState::Done,
            b'f' => RecordState::Failed,
            b'r' if busy.is_zero() => RecordState::Unknown,
            b'r' => RecordState::Running,
            _ => return Err(nonsense()),
        };
        let since = Time(self.now.0.saturating_sub(millis(full - left)));
        Ok(Some(Listed::Record { scope, key, state, fence, since, expires: self.now.after(left), bytes }))
    }

    /// The lease as it is listed; `None` where nobody has it.
    pub(super) fn lease(&self) -> Result<Option<Listed>, Error> {
        let (state, mut parts) = self.parts()?;
        let fence = Fence(parts.number(16)?);
        let (full, ttl) = (parts.span()?, parts.span()?);
        parts.take(16)?;
        let (of_owner, of_name) = (parts.length(3)?, parts.length(3)?);
        let owner = Owner::new(&String::from_utf8_lossy(parts.take(of_owner)?));
        let name = Key::new(parts.take(of_name)?).map_err(|_| nonsense())?;
        let (_, busy) = self.rest(full, ttl);
        let until = self.now.after(busy);
        Ok((state == b'h' && !busy.is_zero()).then_some(Listed::Lease { name, owner, fence, until }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fingerprint, Nonce, OnUnknown};
    use proptest::prelude::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn begin() -> Begin {
        Begin {
            scope: Scope::new("s1").unwrap(),
            key: Key::new("k23").unwrap(),
            fingerprint: Fingerprint::NONE,
            nonce: Nonce([7; 16]),
            lease: seconds(60),
            keep: seconds(100),
            on_unknown: OnUnknown::Tell,
        }
    }

    fn outline(state: u8, rest: &[u8], left: Duration) -> Outline {
        let since = if rest.is_empty() { vec![] } else { digits(0).to_vec() };
        let head = [&[VERSION, state][..], &digits(7), &since, rest].concat();
        Outline { length: head.len() as u64 + 5, head, left, now: Time(1_000_000) }
    }

    #[test]
    fn what_is_left_of_a_record_tells_when_it_was_written_and_whether_its_lease_is_over() {
        let packed = record(&begin());
        assert_eq!(packed.len() + 34, RECORD + 5);
        for (state, left, is, since, expires) in [
            (b'r', 100, RecordState::Running, 1_000_000, 1_100_000),
            (b'r', 41, RecordState::Running, 941_000, 1_041_000),
            (b'r', 40, RecordState::Unknown, 940_000, 1_040_000),
            (b's', 40, RecordState::Done, 940_000, 1_040_000),
            (b'f', 1, RecordState::Failed, 901_000, 1_001_000),
            // After a clock that leapt back.
            (b'r', 3700, RecordState::Running, 1_000_000, 1_100_000),
        ] {
            let told = outline(state, &packed, seconds(left)).record().unwrap();
            let begin = begin();
            let (since, expires) = (Time(since), Time(expires));
            let (scope, key, fence) = (begin.scope, begin.key, Fence(7));
            assert_eq!(told, Some(Listed::Record { scope, key, state: is, fence, since, expires, bytes: 5 }), "{left}");
        }
        assert_eq!(outline(b'l', &[], seconds(9)).record().unwrap(), None);
    }

    #[test]
    fn numbers_have_as_many_digits_as_there_is_room() {
        assert_eq!(digits(1_800_000_000_000_007), *b"1800000000000007");
        assert_eq!(digits(1 << 52), *b"4503599627370496");
        assert_eq!((padded::<3>(255), padded::<4>(1024)), (*b"255", *b"1024"));
        assert_eq!(digits(LARGEST), *b"9999999999999998");
        assert_eq!((digits(LARGEST + 1), digits(u64::MAX)), ([b'9'; 16], [b'9'; 16]));
    }

    #[test]
    fn a_record_of_a_lease_longer_than_what_is_kept_is_kept_as_long_as_the_lease() {
        assert_eq!(kept(&begin()), 100_000);
        assert_eq!(kept(&Begin { lease: seconds(101), ..begin() }), 101_000);
        assert_eq!(kept(&Begin { lease: seconds(0), keep: seconds(0), ..begin() }), 1);
    }

    #[test]
    fn a_record_that_is_cut_off_or_of_another_version_is_an_error() {
        let packed = record(&begin());
        for length in 0..packed.len() {
            let error = outline(b'r', &packed[..length], seconds(9)).record().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{length}");
        }
        let mut newer = outline(b'r', &packed, seconds(9));
        newer.head[0] = b'2';
        assert_eq!(newer.record().unwrap_err().kind(), ErrorKind::TooNew);
        assert_eq!(newer.lease().unwrap_err().kind(), ErrorKind::TooNew);
        assert_eq!(outline(b'x', &packed, seconds(9)).record().unwrap_err().kind(), ErrorKind::Corrupt);
    }

    proptest! {
        #[test]
        fn whatever_is_there_is_read_without_harm(
            head in prop::collection::vec(any::<u8>(), 0..300),
            digit in prop::collection::vec(0x30u8..0x3a, 0..300),
            length in any::<u64>(),
            left in any::<u64>(),
        ) {
            for head in [head.clone(), [&b"1r"[..], &digit, &head].concat(), [&b"1h"[..], &digit, &head].concat()] {
                let outline = Outline { head, length, left: Duration::from_millis(left), now: Time(left) };
                let _ = (outline.record(), outline.lease());
            }
        }
    }
}
