//! An effect and its record in one transaction of the user's own.

use super::fault;
use crate::{Claim, Error, Kept, Stored, store::check_most, time::millis};
use std::time::Duration;
use tokio_postgres::{Transaction, types::Type};

/// The statement behind [`complete`], for every other client: false where the claim has passed to somebody else, and the
/// transaction is to be rolled back. `$1` is the scope and `$2` the key (`bytea`), `$3` the fence (`bigint`), `$4` whether it
/// is a failure (`boolean`), `$5` what came of it (`bytea`), `$6` for how many milliseconds it is kept (`bigint`).
pub const COMPLETE: &str = "SELECT relent_complete($1, $2, $3, $4, $5, $6)";

/// Keeps what came of a claim for `keep` from now on, in the caller's transaction on the store's own database: the effects of
/// the claim and that they are done are committed together, or neither. Who dies between the two leaves no doubt.
///
/// The store has the tables' names that it has by default. Roll back where this says [`Kept::Fenced`]: the claim has passed
/// to somebody else. From here to the commit the claim cannot be extended, so do it last.
///
/// # Errors
///
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for more bytes than [`MAX_VALUE`](crate::MAX_VALUE); what the server
/// says: the transaction is then at its end.
///
/// ```no_run
/// # async fn doc(client: &mut tokio_postgres::Client, claim: relent_store::Claim) -> Result<(), Box<dyn std::error::Error>> {
/// use relent_store::{Kept, in_postgres};
/// use std::time::Duration;
///
/// let tx = client.transaction().await?;
/// tx.execute("INSERT INTO orders VALUES ('book')", &[]).await?;
/// match in_postgres::complete(&tx, &claim, &"order 1".into(), Duration::from_secs(86_400)).await? {
///     Kept::Kept => tx.commit().await?,
///     Kept::Fenced => tx.rollback().await?,
/// }
/// # Ok(())
/// # }
/// ```
pub async fn complete(tx: &Transaction<'_>, claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error> {
    check_most(stored.bytes())?;
    let (scope, key) = (claim.scope.as_bytes(), claim.key.as_bytes());
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let (fence, keep) = (number(claim.fence.0), number(millis(keep)));
    let (is_failure, value) = (stored.is_failure(), stored.bytes());
    let rows = tx
        .query_typed(
            COMPLETE,
            &[
                (&scope, Type::BYTEA),
                (&key, Type::BYTEA),
                (&fence, Type::INT8),
                (&is_failure, Type::BOOL),
                (&value, Type::BYTEA),
                (&keep, Type::INT8),
            ],
        )
        .await
        .map_err(|err| fault::of(&err))?;
    let is_kept = rows.first().and_then(|row| row.try_get(0).ok()).ok_or_else(fault::nonsense)?;
    Ok(if is_kept { Kept::Kept } else { Kept::Fenced })
}
