//! A question that ends at the server, too, when nobody waits for its answer.
//!
//! An operation that is dropped at its timeout would go on at the server, behind a lock for instance, and take effect when
//! nobody reckons with it; and whoever got the connection next would wait behind it. A `statement_timeout` of the
//! connection's own would not pass a pooler, so the question is cancelled, and the connection leaves the pool.

use super::{CONNECT, wire::Wire};
use deadpool_postgres::Client;
use tokio_postgres::{
    Row,
    error::SqlState,
    types::{ToSql, Type},
};

/// A connection on which a question may be under way.
pub(super) struct Asking<'a>(Option<Client>, &'a Wire);

impl Asking<'_> {
    pub(super) async fn rows(
        client: Client,
        wire: &Wire,
        is_prepared: bool,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let mut asking = Asking(None, wire);
        let client = asking.0.insert(client);
        let answer = match is_prepared {
            true => prepared(client, sql, params).await,
            false => client.query_typed(sql, params).await,
        };
        asking.0 = None;
        answer
    }
}

/// Asks by a statement that the connection keeps, and so plans once.
async fn prepared(
    client: &Client,
    sql: &str,
    params: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let (values, types): (Vec<&(dyn ToSql + Sync)>, Vec<Type>) = params.iter().cloned().unzip();
    let statement = client.prepare_typed_cached(sql, &types).await?;
    let answer = client.query(&statement, &values).await;
    if answer.as_ref().is_err_and(|err| err.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED)) {
        // Somebody has changed a table since: it is planned anew, and nothing was done.
        client.statement_cache.clear();
        return client.query_typed(sql, params).await;
    }
    answer
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let Some(client) = self.0.take().map(Client::take) else { return };
        // Without a runtime the connection is closed, and the question ends by itself.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let wire = self.1.apart();
        runtime.spawn(async move {
            // A pooler knows the question as long as its connection is open.
            let _ = tokio::time::timeout(CONNECT, wire.cancel(&client)).await;
            drop(client);
        });
    }
}
