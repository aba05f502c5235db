//! Questions, and the rows that answer them.

use super::{Inner, Postgres, asking::Asking, fault};
use crate::{Booked, Error, Held, Key, Scope, Shared, SharedRate, Time};
use std::time::Duration;
use tokio_postgres::{
    Row,
    types::{FromSql, ToSql, Type},
};

pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// Postgres's integers have a sign; ours are below 2^63.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Error> {
    row.try_get(column).map_err(|_| fault::nonsense())
}

pub(super) fn unsigned(row: &Row, column: usize) -> Result<u64, Error> {
    get::<i64>(row, column).map(|number| u64::try_from(number).unwrap_or(0))
}

pub(super) fn bytes(row: &Row, column: usize) -> Result<&[u8], Error> {
    get::<Option<&[u8]>>(row, column).map(Option::unwrap_or_default)
}

pub(super) fn key(row: &Row, column: usize) -> Result<Key, Error> {
    Key::new(bytes(row, column)?).map_err(|_| fault::nonsense())
}

pub(super) fn scope(row: &Row, column: usize) -> Result<Scope, Error> {
    Scope::kept(bytes(row, column)?).map_err(|_| fault::nonsense())
}

pub(super) fn shared(row: &Row, first: usize) -> Result<Shared, Error> {
    let held: Option<bool> = get(row, first + 8)?;
    let rate = match get::<Option<i64>>(row, first + 10)? {
        None => None,
        Some(gap) => {
            let burst = u32::try_from(unsigned(row, first + 11)?).map_err(|_| fault::nonsense())?;
            Some(SharedRate { gap: Duration::from_nanos(u64::try_from(gap).unwrap_or(0)), burst })
        }
    };
    Ok(Shared {
        calls: unsigned(row, first)?,
        retries: unsigned(row, first + 1)?,
        successes: unsigned(row, first + 2)?,
        failures: unsigned(row, first + 3)?,
        run: unsigned(row, first + 4)?,
        processes: unsigned(row, first + 5)?,
        open: unsigned(row, first + 6)?,
        open_calls: unsigned(row, first + 7)?,
        reserved: 0,
        held: held.map(|is_open| if is_open { Held::Open } else { Held::Closed }),
        now: Time(unsigned(row, first + 9)?),
        rate,
        permits: unsigned(row, first + 12)?,
        booked: Booked::default(),
    })
}

impl Postgres {
    pub(super) async fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let (client, Inner { wire, is_prepared, .. }) = (self.client().await?, &*self.inner);
        Asking::rows(client, wire, *is_prepared, &self.named(sql), params).await.map_err(|err| self.fault(&err))
    }

    pub(super) async fn row(&self, sql: &str, params: &[Param<'_>]) -> Result<Row, Error> {
        self.rows(sql, params).await?.pop().ok_or_else(fault::nonsense)
    }
}
