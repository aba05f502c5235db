//! Keys that are begun, and completed, together: what gathers, and how it is asked.

use super::{
    Inner, Postgres,
    asking::Asking,
    fault,
    rows::{Param, bytes, signed, unsigned},
};
use crate::{
    Begin, Claim, Error, Fence, Kept, Key, Scope, Started, Stored,
    gather::{Gather, Many},
    time::millis,
};
use std::time::Duration;
use tokio_postgres::{Row, types::Type};

/// How many questions of a kind are under way before others gather.
const LANES: usize = 1;

/// How many bytes a result may have that is kept together with others.
const SMALL: usize = 1 << 14;

/// A claim, what came of it, and for how long that is kept.
pub(super) struct Completion {
    pub(super) claim: Claim,
    pub(super) stored: Stored,
    pub(super) keep: Duration,
}

impl Completion {
    /// Whether it is small enough to go with others.
    pub(super) fn is_small(stored: &Stored) -> bool {
        stored.bytes().len() <= SMALL
    }
}

impl Postgres {
    /// The rows that answer questions of many, none where the server refused them as a whole.
    async fn rows_of_many(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let (client, Inner { wire, is_prepared, .. }) = (self.client().await?, &*self.inner);
        match Asking::rows(client, wire, *is_prepared, &self.named(sql), params).await {
            // Nothing of it was done. Whose fault it is will be seen when each is asked alone.
            Err(err) if err.code().is_some() => Ok(vec![]),
            rows => rows.map_err(|err| self.fault(&err)),
        }
    }
}

impl Many for Begin {
    type Engine = Postgres;
    type Answer = Started;

    const LANES: usize = LANES;

    fn gather(postgres: &Postgres) -> &Gather<Begin> {
        &postgres.inner.begins
    }

    async fn ask(postgres: &Postgres, those: Vec<Begin>) -> Result<Vec<Option<Started>>, Error> {
        let order = in_order(&those, |begin| (&begin.scope, &begin.key));
        let scopes: Vec<&[u8]> = order.iter().map(|(_, begin)| begin.scope.as_bytes()).collect();
        let keys: Vec<&[u8]> = order.iter().map(|(_, begin)| begin.key.as_bytes()).collect();
        let fingerprints: Vec<&[u8]> = order.iter().map(|(_, begin)| &begin.fingerprint.0[..]).collect();
        let nonces: Vec<&[u8]> = order.iter().map(|(_, begin)| &begin.nonce.0[..]).collect();
        let leases: Vec<i64> = order.iter().map(|(_, begin)| signed(millis(begin.lease))).collect();
        let keeps: Vec<i64> = order.iter().map(|(_, begin)| signed(millis(begin.keep))).collect();
        let params: [Param<'_>; 6] = [
            (&scopes, Type::BYTEA_ARRAY),
            (&keys, Type::BYTEA_ARRAY),
            (&fingerprints, Type::BYTEA_ARRAY),
            (&nonces, Type::BYTEA_ARRAY),
            (&leases, Type::INT8_ARRAY),
            (&keeps, Type::INT8_ARRAY),
        ];
        let sql = "SELECT asked, number FROM relent_begin_many($1, $2, $3, $4, $5, $6)";
        let rows = postgres.rows_of_many(sql, &params).await?;
        let mut answers: Vec<Option<Started>> = those.iter().map(|_| None).collect();
        // They come in the order in which they were asked. One that does not is asked about again.
        let mut asked = order.iter();
        for row in &rows {
            let nonce = bytes(row, 0)?;
            let Some((nth, _)) = asked.find(|(_, begin)| begin.nonce.0 == nonce) else { break };
            answers[*nth] = Some(Started::Started { fence: Fence(unsigned(row, 1)?), unknown: None });
        }
        Ok(answers)
    }
}

impl Many for Completion {
    type Engine = Postgres;
    type Answer = Kept;

    const LANES: usize = LANES;

    fn gather(postgres: &Postgres) -> &Gather<Completion> {
        &postgres.inner.completions
    }

    async fn ask(postgres: &Postgres, those: Vec<Completion>) -> Result<Vec<Option<Kept>>, Error> {
        let order = in_order(&those, |one| (&one.claim.scope, &one.claim.key));
        let scopes: Vec<&[u8]> = order.iter().map(|(_, one)| one.claim.scope.as_bytes()).collect();
        let keys: Vec<&[u8]> = order.iter().map(|(_, one)| one.claim.key.as_bytes()).collect();
        let fences: Vec<i64> = order.iter().map(|(_, one)| signed(one.claim.fence.0)).collect();
        let failed: Vec<bool> = order.iter().map(|(_, one)| one.stored.is_failure()).collect();
        let results: Vec<&[u8]> = order.iter().map(|(_, one)| one.stored.bytes()).collect();
        let keeps: Vec<i64> = order.iter().map(|(_, one)| signed(millis(one.keep))).collect();
        let params: [Param<'_>; 6] = [
            (&scopes, Type::BYTEA_ARRAY),
            (&keys, Type::BYTEA_ARRAY),
            (&fences, Type::INT8_ARRAY),
            (&failed, Type::BOOL_ARRAY),
            (&results, Type::BYTEA_ARRAY),
            (&keeps, Type::INT8_ARRAY),
        ];
        let rows = postgres.rows_of_many("SELECT relent_complete_many($1, $2, $3, $4, $5, $6)", &params).await?;
        let mut answers: Vec<Option<Kept>> = those.iter().map(|_| None).collect();
        for row in &rows {
            let place = usize::try_from(unsigned(row, 0)?.wrapping_sub(1)).ok().and_then(|place| order.get(place));
            let (nth, _) = place.ok_or_else(fault::nonsense)?;
            answers[*nth] = Some(Kept::Kept);
        }
        Ok(answers)
    }
}

/// In the order in which all take rows, so that nobody waits for somebody who waits for him; with their places.
fn in_order<T>(those: &[T], row: impl Fn(&T) -> (&Scope, &Key)) -> Vec<(usize, &T)> {
    let mut order: Vec<(usize, &T)> = those.iter().enumerate().collect();
    order.sort_by(|(_, one), (_, other)| row(one).cmp(&row(other)));
    order
}
