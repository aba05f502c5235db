//! A transaction, and what statements do in it.

use super::{Names, fault, fences::Fences};
use crate::{Error, Fence, time::Now};
use rusqlite::{Connection, OptionalExtension, Params, Row};

/// A transaction that is open, and when it is.
pub(super) struct Tx<'a> {
    pub(super) conn: &'a Connection,
    pub(super) now: Now,
    /// `None` where no numbers are kept from one transaction to the next.
    pub(super) fences: Option<&'a Fences>,
}

impl Tx<'_> {
    pub(super) fn write(&self, sql: &str, params: impl Params) -> Result<usize, Error> {
        self.conn.prepare_cached(sql).and_then(|mut sql| sql.execute(params)).map_err(fault::of)
    }

    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        let found = self.conn.prepare_cached(sql).and_then(|mut sql| sql.query_row(params, read).optional());
        found.map_err(fault::of)
    }

    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let mut sql = self.conn.prepare_cached(sql).map_err(fault::of)?;
        let rows = sql.query_map(params, read).map_err(fault::of)?;
        rows.collect::<Result<_, _>>().map_err(fault::of)
    }

    /// A number that was never given before.
    pub(super) fn next(&self, names: &Names) -> Result<Fence, Error> {
        if let Some(fence) = self.spare(names)? {
            return Ok(fence);
        }
        let take = |number| self.one(&names.take_fences, [number], |row| row.get(0));
        match self.fences {
            Some(fences) => fences.first(take),
            None => Fences::default().first(take),
        }
    }

    /// A number that was never given before, where there is one for which nothing needs to be written.
    pub(super) fn spare(&self, names: &Names) -> Result<Option<Fence>, Error> {
        let Some(fences) = self.fences else { return Ok(None) };
        fences.spare(|| self.one(&names.last_fence, [], |row| row.get(0)))
    }
}
