//! SQLite, beside three transactions for each cycle.

use crate::{
    NEXT, ROUND, ROUNDS,
    cost::Cost,
    rate::{rate, row},
    work::cycle,
};
use relent_store::in_sqlite::Sqlite;
use rusqlite::Connection;
use std::{path::Path, sync::atomic::Ordering, time::Instant};

/// A table of one's own, as somebody would write it who needs no more than this.
fn by_hand(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    let _: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).unwrap();
    conn.execute_batch(
        "PRAGMA synchronous = FULL; CREATE TABLE once (key BLOB PRIMARY KEY, until INTEGER, value BLOB) WITHOUT ROWID",
    )
    .unwrap();
    conn
}

/// So many cycles in three transactions.
fn raw_cycles(conn: &Connection, number: u64) {
    let first = NEXT.fetch_add(number, Ordering::Relaxed);
    for sql in [
        "INSERT INTO once VALUES (?1, 1, NULL)",
        "UPDATE once SET until = 2 WHERE key = ?1",
        "UPDATE once SET until = 3, value = x'646f6e65' WHERE key = ?1",
    ] {
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut statement = conn.prepare_cached(sql).unwrap();
        for key in first..first + number {
            statement.execute([key.to_string().as_bytes()]).unwrap();
        }
        drop(statement);
        conn.execute_batch("COMMIT").unwrap();
    }
}

fn raw_rate(conn: &Connection, number: u64) -> f64 {
    let (begin, mut done) = (Instant::now(), 0);
    while begin.elapsed() < ROUND {
        raw_cycles(conn, number);
        done += number;
    }
    done as f64 / begin.elapsed().as_secs_f64()
}

pub(crate) async fn all() {
    let folder = tempfile::tempdir().unwrap();
    let raw = by_hand(&folder.path().join("raw.db"));
    let engine = Sqlite::open(folder.path().join("state.db")).unwrap();
    let [mut alone_raw, mut alone, mut batched, mut many] = [(); 4].map(|()| vec![]);
    let mut costs = [Cost::default(); 2];
    for _ in 0..ROUNDS {
        alone_raw.push(raw_rate(&raw, 1));
        let one = engine.clone();
        alone.push(
            rate(1, move || {
                let one = one.clone();
                async move { cycle(&one).await }
            })
            .await,
        );
        batched.push(costs[0].round(0, async { raw_rate(&raw, 100) }).await);
        let all = engine.clone();
        let all = move || {
            let all = all.clone();
            async move { cycle(&all).await }
        };
        many.push(costs[1].of(0, 256, all).await);
    }
    row("SQLite FULL, three commits, one caller", alone_raw, alone.clone(), "0.9");
    row("SQLite FULL, three commits, 256 callers, over batches of 100 by hand", batched, many.clone(), "0.8");
    row("SQLite FULL, 256 callers over one", alone, many, "40");
    costs[0].say("three commits by hand, a hundred at a time");
    costs[1].say("three commits, 256 callers");
}
