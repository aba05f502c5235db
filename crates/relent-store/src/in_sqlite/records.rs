//! The rows of idempotency records.
//!
//! What is usual is one statement, which says in its conditions when it is what the [rules] would do: a key that is new, a claim
//! that is completed or extended in time. Else the record is read, and they say what becomes of it.
//!
//! A row is found by when it expires, for which there is an index. To move a row there costs as much as to write it, so a record
//! that is completed stays where it was, if it is to be kept a little longer only: `expires` is when it is looked at, and `ends`,
//! where there is one, when it ends.

use super::{
    Names,
    rows::{signed, time, unsigned},
    tx::Tx,
};
use crate::{
    Begin, Claim, Error, Fence, Fingerprint, Kept, Key, Nonce, Scope, Started, Stored, Time,
    rules::{self, Change, Record},
    time::millis,
};
use rusqlite::params;
use std::time::Duration;

/// By how much a record may end after it is looked at first.
const LATER: Duration = Duration::from_secs(600);

/// When a record that ends then may be looked at first.
fn earliest(ends: Time) -> i64 {
    signed(ends.0.saturating_sub(millis(LATER)))
}

impl Tx<'_> {
    /// A key is claimed, or what is known of it.
    pub(super) fn begin(&self, names: &Names, begin: &Begin) -> Result<Started, Error> {
        let (scope, key) = (&begin.scope, &begin.key);
        let spare = self.spare(names)?;
        if let Some(fence) = spare
            && let (Change::Write(row), started) = rules::begin(None, self.now, begin, || Ok::<_, Error>(fence))?
            && self.put(&names.add_once, scope, key, &row)?
        {
            return Ok(started);
        }
        let fence = || spare.map_or_else(|| self.next(names), Ok);
        let (change, started) = rules::begin(self.record(names, scope, key)?, self.now, begin, fence)?;
        self.change_record(names, scope, key, change)?;
        Ok(started)
    }

    /// What came of a claim is kept.
    pub(super) fn complete(
        &self,
        names: &Names,
        claim: &Claim,
        stored: &Stored,
        keep: Duration,
    ) -> Result<Kept, Error> {
        let ends = self.now.time.after(keep);
        let is_kept = self.write(
            &names.complete_once,
            params![
                claim.scope.as_bytes(),
                claim.key.as_bytes(),
                signed(claim.fence.0),
                signed(self.now.time.0),
                signed(ends.0),
                earliest(ends),
                stored.is_failure(),
                stored.bytes(),
            ],
        )?;
        if is_kept > 0 {
            return Ok(Kept::Kept);
        }
        self.claimed(names, claim, |record| rules::complete(record, self.now, claim, stored, keep))
    }

    /// A claim holds for longer.
    pub(super) fn extend(&self, names: &Names, claim: &Claim, lease: Duration) -> Result<Kept, Error> {
        // After a leap of the clock more is to be thought of than a condition says.
        if self.now.has_no_leap() {
            let until = self.now.time.after(lease);
            let extended = self.write(
                &names.extend_once,
                params![
                    claim.scope.as_bytes(),
                    claim.key.as_bytes(),
                    signed(claim.fence.0),
                    signed(self.now.time.0),
                    signed(until.0),
                    earliest(until),
                ],
            )?;
            if extended > 0 {
                return Ok(Kept::Kept);
            }
        }
        self.claimed(names, claim, |record| rules::extend(record, self.now, claim, lease))
    }

    /// The rule for a claim's record.
    pub(super) fn claimed(
        &self,
        names: &Names,
        claim: &Claim,
        rule: impl FnOnce(Option<Record>) -> (Change<Record>, Kept),
    ) -> Result<Kept, Error> {
        let (change, kept) = rule(self.record(names, &claim.scope, &claim.key)?);
        self.change_record(names, &claim.scope, &claim.key, change)?;
        Ok(kept)
    }

    pub(super) fn record(&self, names: &Names, scope: &Scope, key: &Key) -> Result<Option<Record>, Error> {
        self.one(&names.get_once, [scope.as_bytes(), key.as_bytes()], |row| {
            let failed: Option<bool> = row.get(7)?;
            let stored = match (failed, row.get_ref(8)?.as_blob_or_null()?) {
                (Some(true), value) => Some(Stored::failure(value.unwrap_or_default())),
                (Some(false), value) => Some(Stored::success(value.unwrap_or_default())),
                (None, _) => None,
            };
            Ok(Record {
                fingerprint: Fingerprint(row.get(0)?),
                fence: Fence(unsigned(row, 1)?),
                nonce: Nonce(row.get(2)?),
                since: time(row, 3)?,
                from: time(row, 4)?,
                until: time(row, 5)?,
                expires: time(row, 6)?,
                stored,
                unknown: row.get::<_, Option<i64>>(9)?.map(|since| Time(u64::try_from(since).unwrap_or(0))),
            })
        })
    }

    pub(super) fn change_record(
        &self,
        names: &Names,
        scope: &Scope,
        key: &Key,
        change: Change<Record>,
    ) -> Result<(), Error> {
        match change {
            Change::Nothing => Ok(()),
            Change::Remove => self.write(&names.del_once, [scope.as_bytes(), key.as_bytes()]).map(drop),
            Change::Write(row) => self.put(&names.put_once, scope, key, &row).map(drop),
        }
    }

    /// Writes a whole row by one of two statements. Whether it was written.
    fn put(&self, sql: &str, scope: &Scope, key: &Key, row: &Record) -> Result<bool, Error> {
        let stored = row.stored.as_ref();
        let row = params![
            scope.as_bytes(),
            key.as_bytes(),
            row.fingerprint.0,
            signed(row.fence.0),
            row.nonce.0,
            signed(row.since.0),
            signed(row.from.0),
            signed(row.until.0),
            signed(row.expires.0),
            stored.map(Stored::is_failure),
            stored.map(Stored::bytes),
            row.unknown.map(|since| signed(since.0)),
        ];
        self.write(sql, row).map(|rows| rows > 0)
    }
}
