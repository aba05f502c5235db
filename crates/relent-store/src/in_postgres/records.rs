//! The operations of idempotency records, each asked alone.

use super::{
    Postgres, fault,
    rows::{Param, bytes, get, signed, unsigned},
};
use crate::{Begin, Claim, Error, Fence, Kept, OnUnknown, Started, Stored, Time, time::millis};
use std::time::Duration;
use tokio_postgres::types::Type;

pub(super) fn kept(is_kept: bool) -> Kept {
    if is_kept { Kept::Kept } else { Kept::Fenced }
}

impl Postgres {
    pub(super) async fn begin_alone(&self, begin: &Begin) -> Result<Started, Error> {
        let (scope, key) = (begin.scope.as_bytes(), begin.key.as_bytes());
        let (fingerprint, nonce) = (&begin.fingerprint.0[..], &begin.nonce.0[..]);
        let (lease, keep) = (signed(millis(begin.lease)), signed(millis(begin.keep)));
        let takes_over = begin.on_unknown == OnUnknown::TakeOver;
        let sql = "SELECT answer, number, also, has_failed, result FROM relent_begin($1, $2, $3, $4, $5, $6, $7)";
        let params: [Param<'_>; 7] = [
            (&scope, Type::BYTEA),
            (&key, Type::BYTEA),
            (&fingerprint, Type::BYTEA),
            (&nonce, Type::BYTEA),
            (&lease, Type::INT8),
            (&keep, Type::INT8),
            (&takes_over, Type::BOOL),
        ];
        let row = self.row(sql, &params).await?;
        match get(&row, 0)? {
            "started" => {
                let unknown = get::<Option<i64>>(&row, 2)?.map(|since| Time(u64::try_from(since).unwrap_or(0)));
                Ok(Started::Started { fence: Fence(unsigned(&row, 1)?), unknown })
            }
            "replay" => {
                let value = bytes(&row, 4)?;
                Ok(Started::Replay(if get(&row, 3)? { Stored::failure(value) } else { Stored::success(value) }))
            }
            "busy" => Ok(Started::Busy { retry_after: Duration::from_millis(unsigned(&row, 1)?) }),
            "unknown" => Ok(Started::Unknown { since: Time(unsigned(&row, 1)?) }),
            "mismatch" => Ok(Started::Mismatch),
            _ => Err(fault::nonsense()),
        }
    }

    pub(super) async fn complete_alone(&self, claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error> {
        let (is_failure, value, keep) = (stored.is_failure(), stored.bytes(), signed(millis(keep)));
        let more: [Param<'_>; 3] = [(&is_failure, Type::BOOL), (&value, Type::BYTEA), (&keep, Type::INT8)];
        self.claimed("SELECT relent_complete($1, $2, $3, $4, $5, $6)", claim, &more).await
    }

    pub(super) async fn claimed(&self, sql: &str, claim: &Claim, more: &[Param<'_>]) -> Result<Kept, Error> {
        let (scope, key, fence) = (claim.scope.as_bytes(), claim.key.as_bytes(), signed(claim.fence.0));
        let mut params: Vec<Param<'_>> = vec![(&scope, Type::BYTEA), (&key, Type::BYTEA), (&fence, Type::INT8)];
        params.extend(more.iter().cloned());
        get(&self.row(sql, &params).await?, 0).map(kept)
    }
}
