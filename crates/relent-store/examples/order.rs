//! An order that is inserted once, however often its message is delivered: the order and that the message was seen are
//! committed in one transaction, and consumers are killed on both sides of the commit.
//!
//! ```sh
//! cargo run -p relent-store --example order                              # in a new SQLite file
//! cargo run -p relent-store --example order -- postgres://me@localhost/shop
//! ```

#![expect(clippy::print_stdout, reason = "it is an example")]

use relent_store::{Key, Nonce, Scope, Store, in_postgres, in_sqlite};
use rusqlite::TransactionBehavior::Immediate;
use std::{env, error::Error, process::Command, time::Duration};
use tokio_postgres::types::Type;

const WEEK: Duration = Duration::from_secs(7 * 86_400);
const TABLE: &str = "CREATE TABLE IF NOT EXISTS example_orders (message TEXT NOT NULL, item TEXT NOT NULL)";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What becomes of the consumers of a message, one after the other; the message is delivered until one lives.
const FATES: [&[&str]; 3] = [&["before its commit", "lives"], &["before its acknowledgement", "lives"], &["lives"]];

/// Ends this process as `kill -9` does, if that is its fate.
fn killed_if(is_fate: bool) -> Result<()> {
    if is_fate {
        Command::new("kill").args(["-9", &std::process::id().to_string()]).status()?;
    }
    Ok(())
}

fn consume_in_sqlite(path: &str, message: &str, fate: &str) -> Result<bool> {
    let mut shop = rusqlite::Connection::open(path)?;
    let tx = shop.transaction_with_behavior(Immediate)?;
    let is_first = in_sqlite::first_time(&tx, &Scope::new("orders")?, &Key::new(message)?, WEEK)?;
    if is_first {
        tx.execute("INSERT INTO example_orders VALUES (?, 'book')", [message])?;
    }
    killed_if(fate == FATES[0][0])?;
    tx.commit()?;
    killed_if(fate == FATES[1][0])?;
    Ok(is_first)
}

async fn consume_in_postgres(url: &str, message: &str, fate: &str) -> Result<bool> {
    let (mut shop, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let tx = shop.transaction().await?;
    let is_first = in_postgres::first_time(&tx, &Scope::new("orders")?, &Key::new(message)?, WEEK).await?;
    if is_first {
        tx.query_typed("INSERT INTO example_orders VALUES ($1, 'book')", &[(&message, Type::TEXT)]).await?;
    }
    killed_if(fate == FATES[0][0])?;
    tx.commit().await?;
    killed_if(fate == FATES[1][0])?;
    Ok(is_first)
}

/// The tables of relent and of the shop, side by side.
async fn prepare(url: &str) -> Result<()> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let mut shop = rusqlite::Connection::open(path)?;
        in_sqlite::prepare(&mut shop)?;
        return Ok(shop.execute_batch(TABLE)?);
    }
    if !url.starts_with("postgres") {
        return Err("a transaction wants sqlite:FILE or postgres://..".into());
    }
    Store::open(url).await?;
    let (shop, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    Ok(shop.batch_execute(TABLE).await?)
}

async fn orders(url: &str, message: &str) -> Result<i64> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let sql = "SELECT COUNT(*) FROM example_orders WHERE message = ?";
        return Ok(rusqlite::Connection::open(path)?.query_row(sql, [message], |row| row.get(0))?);
    }
    let (shop, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let sql = "SELECT COUNT(*) FROM example_orders WHERE message = $1";
    let rows = shop.query_typed(sql, &[(&message, Type::TEXT)]).await?;
    Ok(rows.first().ok_or("a count has one row")?.try_get(0)?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [child, url, message, fate] = &args[..]
        && child == "--child"
    {
        let is_first = match url.strip_prefix("sqlite:") {
            Some(path) => consume_in_sqlite(path, message, fate)?,
            None => consume_in_postgres(url, message, fate).await?,
        };
        println!("{}", if is_first { "inserted the order" } else { "saw the message before, and did nothing" });
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let url = args.first().cloned().unwrap_or(format!("sqlite:{}", folder.path().join("shop.db").display()));
    prepare(&url).await?;
    let run = format!("{:?}", Nonce::random());
    for (nth, fates) in (1..).zip(FATES) {
        let message = format!("{run}-{nth}");
        for fate in fates {
            let consumer = Command::new(env::current_exe()?).args(["--child", &url, &message, fate]).output()?;
            let (told, error) = (String::from_utf8_lossy(&consumer.stdout), String::from_utf8_lossy(&consumer.stderr));
            match consumer.status.code() {
                Some(0) => println!("message {nth}: a consumer {}", told.trim()),
                Some(_) => return Err(format!("a consumer of message {nth} failed: {}", error.trim()).into()),
                None => println!("message {nth}: its consumer was killed {fate}: {}", consumer.status),
            }
        }
        println!("message {nth}: {} order(s)", orders(&url, &message).await?);
    }
    Ok(())
}
