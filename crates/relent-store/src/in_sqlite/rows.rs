//! Rows of the tables, read and written.

use super::{Names, tx::Tx};
use crate::{
    Booked, Delta, Error, Fence, Held, Key, Nonce, NotAKey, Owner, Scope, Shared, SharedRate, Time, Version,
    pace::{Asked, Pace},
    rules::{self, Change, Counts, LeaseRow, Process, SeenRow, ValueRow},
};
use rusqlite::{Row, params, types::Type};
use std::time::Duration;

/// SQLite's integers have a sign; ours are below 2^63.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or(0))
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    unsigned(row, column).map(Time)
}

/// A key as it was kept. One that is too long is not copied: no relent wrote it.
pub(super) fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<Key> {
    Key::new(row.get_ref(column)?.as_blob()?).map_err(|err| not_ours(column, err))
}

/// A scope as it was kept.
pub(super) fn scope(row: &Row<'_>, column: usize) -> rusqlite::Result<Scope> {
    Scope::kept(row.get_ref(column)?.as_blob()?).map_err(|err| not_ours(column, err))
}

fn not_ours(column: usize, err: NotAKey) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(err))
}

impl Tx<'_> {
    pub(super) fn lease(&self, names: &Names, name: &Key) -> Result<Option<LeaseRow>, Error> {
        self.one(&names.get_lease, [name.as_bytes()], |row| {
            Ok(LeaseRow {
                owner: Owner::new(row.get_ref(0)?.as_str()?),
                fence: Fence(unsigned(row, 1)?),
                nonce: Nonce(row.get(2)?),
                from: time(row, 3)?,
                until: time(row, 4)?,
            })
        })
    }

    pub(super) fn change_lease(&self, names: &Names, name: &Key, change: Change<LeaseRow>) -> Result<(), Error> {
        let Change::Write(row) = change else { return Ok(()) };
        let fence = signed(row.fence.0);
        let (from, until) = (signed(row.from.0), signed(row.until.0));
        let row = params![name.as_bytes(), row.owner.as_str(), fence, row.nonce.0, from, until];
        self.write(&names.put_lease, row).map(drop)
    }

    pub(super) fn value(&self, names: &Names, key: &Key) -> Result<Option<ValueRow>, Error> {
        self.one(&names.get_value, [key.as_bytes()], |row| {
            Ok(ValueRow {
                version: Version(unsigned(row, 0)?),
                nonce: Nonce(row.get(1)?),
                written: time(row, 2)?,
                value: row.get_ref(3)?.as_blob_or_null()?.map(Into::into),
            })
        })
    }

    pub(super) fn change_value(&self, names: &Names, key: &Key, change: Change<ValueRow>) -> Result<(), Error> {
        let Change::Write(row) = change else { return Ok(()) };
        let (version, written) = (signed(row.version.0), signed(row.written.0));
        let row = params![key.as_bytes(), version, row.nonce.0, written, row.value.as_deref()];
        self.write(&names.put_value, row).map(drop)
    }

    pub(super) fn seen(&self, names: &Names, scope: &Scope, key: &Key) -> Result<Option<SeenRow>, Error> {
        self.one(&names.get_seen, [scope.as_bytes(), key.as_bytes()], |row| {
            Ok(SeenRow { nonce: Nonce(row.get(0)?), from: time(row, 1)?, expires: time(row, 2)? })
        })
    }

    pub(super) fn change_seen(
        &self,
        names: &Names,
        scope: &Scope,
        key: &Key,
        change: Change<SeenRow>,
    ) -> Result<(), Error> {
        let Change::Write(row) = change else { return Ok(()) };
        let (from, expires) = (signed(row.from.0), signed(row.expires.0));
        self.write(&names.put_seen, params![scope.as_bytes(), key.as_bytes(), row.nonce.0, from, expires]).map(drop)
    }

    pub(super) fn merge(&self, names: &Names, delta: &Delta) -> Result<Shared, Error> {
        let (name, process, now) = (delta.upstream.as_bytes(), delta.process.0, self.now.time);
        let old = self.one(&names.get_process, params![name, process], |row| {
            let (seq, calls, reserves) = (unsigned(row, 0)?, unsigned(row, 3)?, unsigned(row, 4)?);
            Ok(Process { seq, seen: time(row, 1)?, is_open: row.get(2)?, calls, reserves })
        })?;
        let is_new = old.is_none_or(|old| old.seq < delta.seq);
        if is_new {
            let counts = [delta.calls, delta.retries, delta.successes, delta.failures].map(signed);
            let [calls, retries, successes, failures] = counts;
            let second = signed(now.0 / 1000);
            self.write(&names.come_again, params![name, second])?;
            self.write(&names.add_second, params![name, second, calls, retries, successes, failures])?;
            let before = self.one(&names.get_run, [name], |row| unsigned(row, 0))?.unwrap_or(0);
            self.write(&names.put_run, params![name, signed(rules::run(before, delta))])?;
            if delta.is_last {
                self.write(&names.del_process, params![name, process])?;
            } else {
                let Process { seq, seen, is_open, calls, reserves } = Process::told(old, now, delta);
                let (seq, seen, calls, reserves) = (signed(seq), signed(seen.0), signed(calls), signed(reserves));
                self.write(&names.put_process, params![name, process, seq, seen, is_open, calls, reserves])?;
            }
        }
        let hour = now.0.saturating_sub(3_600_000);
        self.write(&names.old_seconds, params![name, signed(hour / 1000)])?;
        self.write(&names.old_processes, params![name, signed(hour)])?;
        let booked = self.book(names, delta, is_new)?;
        Ok(Shared { booked, ..self.shared(names, &delta.upstream, Some(delta), rules::window(delta))? })
    }

    fn book(&self, names: &Names, delta: &Delta, is_new: bool) -> Result<Booked, Error> {
        let Some(asked) = delta.booking.as_ref().map(Asked::of) else { return Ok(Booked::default()) };
        let asked = if is_new { asked } else { asked.looks() };
        let (name, now) = (delta.upstream.as_bytes(), self.now.time);
        let pace = self.one(&names.get_rate, [name], |row| Ok(Pace { owed: unsigned(row, 2)?, at: time(row, 3)? }))?;
        let (pace, booked) = pace.unwrap_or_default().book(now, &asked);
        let row = params![name, signed(asked.gap), asked.burst, signed(pace.owed), signed(pace.at.0)];
        self.write(&names.put_rate, row)?;
        let second = now.0 / 1000;
        let taken = i64::from(booked.permits) - i64::from(asked.back);
        if taken != 0 {
            self.write(&names.add_permits, params![name, signed(second), taken])?;
        }
        self.write(&names.old_permits, params![name, signed(second.saturating_sub(3600))])?;
        Ok(booked)
    }

    /// What is known, and what who tells this does not know by itself.
    pub(super) fn shared(
        &self,
        names: &Names,
        upstream: &Key,
        told: Option<&Delta>,
        window: u64,
    ) -> Result<Shared, Error> {
        let (name, now) = (upstream.as_bytes(), self.now.time);
        let second = now.0 / 1000;
        let first = (second + 1).saturating_sub(window);
        let begins = signed(second) - signed(window);
        let counts = self.one(&names.sum_seconds, params![name, begins, signed(second)], |row| {
            let (calls, retries) = (unsigned(row, 0)?, unsigned(row, 1)?);
            Ok(Counts { calls, retries, successes: unsigned(row, 2)?, failures: unsigned(row, 3)?, permits: 0 })
        })?;
        let Counts { calls, retries, successes, failures, .. } = counts.unwrap_or_default();
        let rate = self.one(&names.get_rate, [name], |row| {
            let (gap, burst) = (Duration::from_nanos(unsigned(row, 0)?), row.get(1)?);
            Ok(SharedRate { gap, burst })
        })?;
        let permits = match rate {
            None => 0,
            Some(_) => {
                let within = params![name, signed(first), signed(second)];
                self.one(&names.sum_permits, within, |row| unsigned(row, 0))?.unwrap_or(0)
            }
        };
        let (recent, ahead) = (now.0.saturating_sub(window * 1000), now.0.saturating_add(window * 1000));
        let teller = told.map_or(Vec::new(), |told| told.process.0.to_vec());
        let since = told.map_or(u64::MAX, |told| now.0.saturating_sub(rules::reserved_for(told)));
        let within = params![name, signed(recent), signed(ahead), teller, signed(since)];
        let processes = self.one(&names.sum_processes, within, |row| {
            Ok((unsigned(row, 0)?, unsigned(row, 1)?, unsigned(row, 2)?, unsigned(row, 3)?))
        })?;
        let (processes, open, open_calls, reserved) = processes.unwrap_or_default();
        let kept = self.one(&names.get_run, [name], |row| Ok((unsigned(row, 0)?, row.get::<_, Option<bool>>(1)?)))?;
        let (run, held) = kept.unwrap_or_default();
        let held = held.map(|is_open| if is_open { Held::Open } else { Held::Closed });
        let open_calls = open_calls.min(calls);
        let booked = Booked::default();
        let counts = Shared { calls, retries, successes, failures, run, ..Shared::default() };
        Ok(Shared { processes, open, open_calls, reserved, held, rate, permits, booked, now, ..counts })
    }
}
