//! What each operation means, for engines whose state is read, changed and written under a lock of their own.
//!
//! Pure functions: from what was there and the time to what is there and the answer. Redis and Postgres say the same in
//! their own languages, and are held against these by the tests.

use crate::{
    Abandon, Acquired, Begin, Booked, Claim, Delta, Fence, Fingerprint, Held, Holder, Kept, Key, Lease, Listed, Nonce,
    OnUnknown, Owner, RecordState, Renewed, Replaced, Scope, Shared, SharedRate, Started, Stored, Time, Version,
    Versioned,
    pace::{Asked, Pace},
    time::{Now, millis},
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

/// For how long what was released or removed is remembered, so that a lost answer can be asked for again.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(3600);

/// What becomes of what was there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change<T> {
    Nothing,
    Write(T),
    Remove,
}

/// An idempotency record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) fence: Fence,
    pub(crate) nonce: Nonce,
    /// When the present claim began.
    pub(crate) since: Time,
    /// When it was written last; `until` and `expires` count from here.
    pub(crate) from: Time,
    pub(crate) until: Time,
    pub(crate) expires: Time,
    /// Since when an earlier claim is unknown.
    pub(crate) unknown: Option<Time>,
    pub(crate) stored: Option<Stored>,
}

impl Record {
    fn lease_left(&self, now: Now) -> Duration {
        now.left(self.from, self.until)
    }

    pub(crate) fn is_expired(&self, now: Now) -> bool {
        now.left(self.from, self.expires).is_zero() && (self.stored.is_some() || self.lease_left(now).is_zero())
    }

    /// Written anew after the clock leapt back, so that nothing lasts longer than it was to.
    fn healed(mut self, now: Now) -> Change<Record> {
        if !now.is_before(self.from) {
            return Change::Nothing;
        }
        (self.until, self.expires) =
            (now.time.after(self.lease_left(now)), now.time.after(now.left(self.from, self.expires)));
        self.from = now.time;
        Change::Write(self)
    }

    pub(crate) fn listed(&self, scope: Scope, key: Key, now: Now) -> Listed {
        let bytes = self.stored.as_ref().map_or(0, |stored| stored.bytes().len() as u64);
        let (state, fence, since, expires) = (self.state(now), self.fence, self.from, self.expires);
        Listed::Record { scope, key, state, fence, since, expires, bytes }
    }

    fn state(&self, now: Now) -> RecordState {
        match &self.stored {
            Some(stored) if stored.is_failure() => RecordState::Failed,
            Some(_) => RecordState::Done,
            None if self.lease_left(now).is_zero() => RecordState::Unknown,
            None => RecordState::Running,
        }
    }
}

pub(crate) fn begin<E>(
    record: Option<Record>,
    now: Now,
    begin: &Begin,
    fence: impl FnOnce() -> Result<Fence, E>,
) -> Result<(Change<Record>, Started), E> {
    let claim = |fence: Fence, unknown: Option<Time>, since: Time| {
        let until = now.time.after(begin.lease);
        let expires = now.time.after(begin.keep).max(until);
        let Begin { fingerprint, nonce, .. } = *begin;
        let record = Record { fingerprint, fence, nonce, since, from: now.time, until, expires, unknown, stored: None };
        (Change::Write(record), Started::Started { fence, unknown })
    };
    let Some(record) = record.filter(|record| !record.is_expired(now)) else {
        return Ok(claim(fence()?, None, now.time));
    };
    if record.fingerprint != begin.fingerprint {
        return Ok((record.healed(now), Started::Mismatch));
    }
    if let Some(stored) = &record.stored {
        let replay = Started::Replay(stored.clone());
        return Ok((record.healed(now), replay));
    }
    let left = record.lease_left(now);
    if !left.is_zero() {
        if record.nonce == begin.nonce {
            return Ok(claim(record.fence, record.unknown, record.since));
        }
        return Ok((record.healed(now), Started::Busy { retry_after: left }));
    }
    let since = record.unknown.unwrap_or(record.since);
    match begin.on_unknown {
        OnUnknown::Tell => Ok((record.healed(now), Started::Unknown { since })),
        OnUnknown::TakeOver => Ok(claim(fence()?, Some(since), now.time)),
    }
}

/// The record, if it is that of this claim.
fn of_claim(record: Option<Record>, claim: &Claim) -> Option<Record> {
    record.filter(|record| record.fence == claim.fence)
}

pub(crate) fn complete(
    record: Option<Record>,
    now: Now,
    claim: &Claim,
    stored: &Stored,
    keep: Duration,
) -> (Change<Record>, Kept) {
    match of_claim(record, claim) {
        None => (Change::Nothing, Kept::Fenced),
        Some(record) if record.stored.is_some() => (Change::Nothing, Kept::Kept),
        Some(mut record) => {
            record.stored = Some(stored.clone());
            (record.from, record.until, record.expires) = (now.time, now.time, now.time.after(keep));
            (Change::Write(record), Kept::Kept)
        }
    }
}

pub(crate) fn abandon(record: Option<Record>, now: Now, claim: &Claim, why: Abandon) -> (Change<Record>, Kept) {
    match of_claim(record, claim) {
        None => (Change::Nothing, Kept::Fenced),
        Some(record) if record.stored.is_some() => (Change::Nothing, Kept::Kept),
        Some(_) if why == Abandon::Forget => (Change::Remove, Kept::Kept),
        Some(mut record) => {
            let expires = now.time.after(now.left(record.from, record.expires));
            (record.from, record.until, record.expires) = (now.time, now.time, expires);
            (Change::Write(record), Kept::Kept)
        }
    }
}

pub(crate) fn extend(record: Option<Record>, now: Now, claim: &Claim, lease: Duration) -> (Change<Record>, Kept) {
    match of_claim(record, claim) {
        Some(record) if record.stored.is_some() => (Change::Nothing, Kept::Kept),
        Some(mut record) if !record.lease_left(now).is_zero() => {
            let expires = now.time.after(now.left(record.from, record.expires));
            (record.from, record.until) = (now.time, now.time.after(lease));
            record.expires = expires.max(record.until);
            (Change::Write(record), Kept::Kept)
        }
        _ => (Change::Nothing, Kept::Fenced),
    }
}

/// A name that is held, or was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LeaseRow {
    pub(crate) owner: Owner,
    pub(crate) fence: Fence,
    pub(crate) nonce: Nonce,
    pub(crate) from: Time,
    /// The same as `from` once it is released.
    pub(crate) until: Time,
}

impl LeaseRow {
    fn left(&self, now: Now) -> Duration {
        now.left(self.from, self.until)
    }

    fn renewed(mut self, now: Now, ttl: Duration) -> LeaseRow {
        (self.from, self.until) = (now.time, now.time.after(ttl));
        self
    }
}

pub(crate) fn acquire<E>(
    row: Option<LeaseRow>,
    now: Now,
    lease: &Lease,
    fence: impl FnOnce() -> Result<Fence, E>,
) -> Result<(Change<LeaseRow>, Acquired), E> {
    if let Some(row) = row {
        let left = row.left(now);
        if !left.is_zero() && row.nonce != lease.nonce {
            let held = Acquired::Held { by: row.owner.clone(), left };
            let change = if now.is_before(row.from) { Change::Write(row.renewed(now, left)) } else { Change::Nothing };
            return Ok((change, held));
        }
        if !left.is_zero() {
            let row = row.renewed(now, lease.ttl);
            let (fence, until) = (row.fence, row.until);
            return Ok((Change::Write(row), Acquired::Acquired { fence, until }));
        }
    }
    let (fence, until) = (fence()?, now.time.after(lease.ttl));
    let row = LeaseRow { owner: lease.owner.clone(), fence, nonce: lease.nonce, from: now.time, until };
    Ok((Change::Write(row), Acquired::Acquired { fence, until }))
}

pub(crate) fn renew(row: Option<LeaseRow>, now: Now, fence: Fence, ttl: Duration) -> (Change<LeaseRow>, Renewed) {
    match row {
        Some(row) if row.fence == fence && !row.left(now).is_zero() => {
            let row = row.renewed(now, ttl);
            let until = row.until;
            (Change::Write(row), Renewed::Until(until))
        }
        _ => (Change::Nothing, Renewed::Fenced),
    }
}

pub(crate) fn release(row: Option<LeaseRow>, now: Now, fence: Fence) -> (Change<LeaseRow>, Kept) {
    match row {
        Some(row) if row.fence == fence => (Change::Write(row.renewed(now, Duration::ZERO)), Kept::Kept),
        _ => (Change::Nothing, Kept::Fenced),
    }
}

pub(crate) fn holder(row: Option<LeaseRow>, now: Now) -> Option<Holder> {
    let row = row?;
    let left = row.left(now);
    (!left.is_zero()).then_some(Holder { owner: row.owner, fence: row.fence, left })
}

/// A value, or the memory of one that was removed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueRow {
    pub(crate) version: Version,
    pub(crate) nonce: Nonce,
    pub(crate) written: Time,
    pub(crate) value: Option<Arc<[u8]>>,
}

pub(crate) fn versioned(row: Option<ValueRow>) -> Versioned {
    row.map_or(Versioned::ABSENT, |row| Versioned { version: row.version, value: row.value })
}

pub(crate) fn replace<E>(
    row: Option<ValueRow>,
    now: Now,
    version: Version,
    value: Option<&[u8]>,
    nonce: Nonce,
    next: impl FnOnce() -> Result<Fence, E>,
) -> Result<(Change<ValueRow>, Replaced), E> {
    if let Some(row) = &row
        && row.nonce == nonce
        && row.version > version
    {
        return Ok((Change::Nothing, Replaced::Replaced(row.version)));
    }
    let is_absent = row.as_ref().is_none_or(|row| row.value.is_none());
    let current = row.as_ref().map_or(Version::ABSENT, |row| row.version);
    if current != version && !(version == Version::ABSENT && is_absent) {
        return Ok((Change::Nothing, Replaced::Conflict(versioned(row))));
    }
    let version = Version(next()?.0);
    let row = ValueRow { version, nonce, written: now.time, value: value.map(Into::into) };
    Ok((Change::Write(row), Replaced::Replaced(version)))
}

/// A key that was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeenRow {
    pub(crate) nonce: Nonce,
    pub(crate) from: Time,
    pub(crate) expires: Time,
}

pub(crate) fn first_time(row: Option<SeenRow>, now: Now, keep: Duration, nonce: Nonce) -> (Change<SeenRow>, bool) {
    match row {
        Some(row) if !now.left(row.from, row.expires).is_zero() => (Change::Nothing, row.nonce == nonce),
        _ => (Change::Write(SeenRow { nonce, from: now.time, expires: now.time.after(keep) }), true),
    }
}

/// What processes counted in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) retries: u64,
    pub(crate) successes: u64,
    pub(crate) failures: u64,
    /// Booked of a shared rate.
    pub(crate) permits: u64,
}

/// What one process told last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Process {
    pub(crate) seq: u64,
    pub(crate) seen: Time,
    pub(crate) is_open: bool,
    /// Its calls, those of long ago forgotten little by little.
    pub(crate) calls: u64,
    pub(crate) reserves: u64,
}

impl Process {
    /// What there is of a process after it told of `delta`.
    pub(crate) fn told(old: Option<Process>, now: Time, delta: &Delta) -> Process {
        let window = window(delta).max(1) * 1000;
        let kept = old.map_or(0, |old| {
            let gone = millis(now.since(old.seen)).min(window);
            (u128::from(old.calls) * u128::from(window - gone) / u128::from(window)) as u64
        });
        let (calls, reserves) = (kept.saturating_add(delta.calls), reserves(delta));
        Process { seq: delta.seq, seen: now, is_open: delta.is_open, calls, reserves }
    }
}

/// A retry, in the parts in which what is reserved of a budget is counted.
pub(crate) const RETRY: u64 = 1_000_000;

/// So that nobody's sum is too large.
pub(crate) fn reserves(delta: &Delta) -> u64 {
    delta.reserves.min(1_000_000 * RETRY)
}

/// How long what others have reserved counts, in milliseconds. Who tells nothing for so long has ended, or is alone.
pub(crate) fn reserved_for(delta: &Delta) -> u64 {
    millis(delta.every).saturating_mul(3).clamp(2000, 3_600_000)
}

/// In whole seconds, 1 to 3600.
pub(crate) fn window(delta: &Delta) -> u64 {
    seconds(delta.window)
}

pub(crate) fn seconds(window: Duration) -> u64 {
    millis(window).div_ceil(1000).clamp(1, 3600)
}

/// The failures in a row after `delta`, of all processes.
pub(crate) fn run(before: u64, delta: &Delta) -> u64 {
    if delta.successes > 0 { delta.run } else { before.saturating_add(delta.run) }
}

/// All that is known of one upstream, in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct UpstreamRows {
    pub(crate) seconds: BTreeMap<u64, Counts>,
    pub(crate) processes: HashMap<Nonce, Process>,
    pub(crate) run: u64,
    pub(crate) held: Option<Held>,
    pub(crate) rate: Option<(SharedRate, Pace)>,
}

impl UpstreamRows {
    pub(crate) fn merge(&mut self, now: Time, delta: &Delta) -> Shared {
        let old = self.processes.get(&delta.process).copied();
        let is_new = old.is_none_or(|old| old.seq < delta.seq);
        if is_new {
            // Calls of seconds that come again do not count twice.
            self.seconds.range_mut(now.0 / 1000 + 1..).for_each(|(_, counts)| counts.calls = 0);
            let counts = self.seconds.entry(now.0 / 1000).or_default();
            counts.calls = counts.calls.saturating_add(delta.calls);
            counts.retries = counts.retries.saturating_add(delta.retries);
            counts.successes = counts.successes.saturating_add(delta.successes);
            counts.failures = counts.failures.saturating_add(delta.failures);
            self.run = run(self.run, delta);
            if delta.is_last {
                self.processes.remove(&delta.process);
            } else {
                self.processes.insert(delta.process, Process::told(old, now, delta));
            }
        }
        let booked = self.book(now, delta, is_new);
        self.forget(now);
        Shared { booked, ..self.shared(now, Some(delta), window(delta)) }
    }

    fn book(&mut self, now: Time, delta: &Delta, is_new: bool) -> Booked {
        let Some(asked) = delta.booking.as_ref().map(Asked::of) else { return Booked::default() };
        let asked = if is_new { asked } else { asked.looks() };
        let pace = self.rate.map(|(_, pace)| pace).unwrap_or_default();
        let (pace, booked) = pace.book(now, &asked);
        self.rate = Some((asked.rate(), pace));
        let counts = self.seconds.entry(now.0 / 1000).or_default();
        counts.permits = (counts.permits + u64::from(booked.permits)).saturating_sub(asked.back.into());
        booked
    }

    fn forget(&mut self, now: Time) {
        let hour = now.0.saturating_sub(3_600_000);
        self.seconds.retain(|second, _| *second >= hour / 1000);
        self.processes.retain(|_, process| process.seen.0 >= hour);
    }

    /// What is known, and what who tells this does not know by itself.
    pub(crate) fn shared(&self, now: Time, told: Option<&Delta>, window: u64) -> Shared {
        let second = now.0 / 1000;
        let first = (second + 1).saturating_sub(window);
        let rate = self.rate.map(|(rate, _)| rate);
        let mut shared = Shared { run: self.run, held: self.held, rate, now, ..Shared::default() };
        // Of the second that the beginning of the window cuts nothing counts that allows more, and all that allows less; nor of what was told
        // before the clock went back.
        for (at, counts) in self.seconds.range(second.saturating_sub(window)..=second.saturating_add(window)) {
            if (first..=second).contains(at) {
                shared.calls += counts.calls;
                shared.permits += counts.permits;
            }
            shared.retries += counts.retries;
            shared.successes += counts.successes;
            shared.failures += counts.failures;
        }
        // What somebody told whose clock was far ahead counts no longer than what it told now would.
        let recent = now.0.saturating_sub(window * 1000)..=now.0.saturating_add(window * 1000);
        for (nonce, process) in self.processes.iter().filter(|(_, process)| recent.contains(&process.seen.0)) {
            shared.processes += 1;
            let is_others =
                |told: &Delta| told.process != *nonce && process.seen.0 >= now.0.saturating_sub(reserved_for(told));
            if told.is_some_and(is_others) {
                shared.reserved += process.reserves;
            }
            if process.is_open {
                shared.open += 1;
                shared.open_calls = shared.open_calls.saturating_add(process.calls);
            }
        }
        shared.open_calls = shared.open_calls.min(shared.calls);
        shared
    }
}
