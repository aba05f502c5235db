//! Postgres, beside prepared statements, a pair at a time and a hundred.

use crate::{ROUND, ROUNDS, cost::Cost, next, rate::row, servers::PostgresServer, work::pair};
use relent_store::{Nonce, Store, in_postgres::Postgres};
use std::time::Instant;
use tokio_postgres::Client;

/// A pair by hand, in two statements that are prepared.
async fn raw_pairs(client: &Client) -> f64 {
    let claim = "INSERT INTO once VALUES ($1, $2, NULL) ON CONFLICT DO NOTHING RETURNING 1";
    let claim = client.prepare(claim).await.unwrap();
    let complete = client.prepare("UPDATE once SET value = $3 WHERE key = $1 AND nonce = $2").await.unwrap();
    let (begin, mut done) = (Instant::now(), 0.0);
    while begin.elapsed() < ROUND {
        let (key, nonce) = (next().to_string(), Nonce::random().0);
        let (key, nonce, value) = (key.as_bytes(), &nonce[..], &b"done"[..]);
        client.query(&claim, &[&key, &nonce]).await.unwrap();
        client.execute(&complete, &[&key, &nonce, &value]).await.unwrap();
        done += 1.0;
    }
    done / begin.elapsed().as_secs_f64()
}

/// A hundred pairs at a time by hand, in two statements that are prepared.
async fn raw_batches(client: &Client) -> f64 {
    let claim = "INSERT INTO once SELECT key, nonce FROM unnest($1::bytea[], $2::bytea[]) AS a (key, nonce)
        ON CONFLICT DO NOTHING RETURNING key";
    let claim = client.prepare(claim).await.unwrap();
    let complete = "UPDATE once o SET value = a.value FROM unnest($1::bytea[], $2::bytea[], $3::bytea[])
        AS a (key, nonce, value) WHERE o.key = a.key AND o.nonce = a.nonce";
    let complete = client.prepare(complete).await.unwrap();
    let (begin, mut done) = (Instant::now(), 0.0);
    while begin.elapsed() < ROUND {
        let keys: Vec<Vec<u8>> = (0..100).map(|_| next().to_string().into_bytes()).collect();
        let nonces: Vec<Vec<u8>> = (0..100).map(|_| Nonce::random().0.to_vec()).collect();
        let values = vec![&b"done"[..]; 100];
        client.query(&claim, &[&keys, &nonces]).await.unwrap();
        client.execute(&complete, &[&keys, &nonces, &values]).await.unwrap();
        done += 100.0;
    }
    done / begin.elapsed().as_secs_f64()
}

/// How many pairs a second eight of them do, each on a connection of its own.
async fn by_eight(url: &str, is_batch: bool) -> f64 {
    let mut tasks = vec![];
    for _ in 0..8 {
        let url = url.to_owned();
        tasks.push(tokio::spawn(async move {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            if is_batch { raw_batches(&client).await } else { raw_pairs(&client).await }
        }));
    }
    let mut sum = 0.0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}

/// Rounds of one kind: by hand, by relent-store, and by relent-store with prepared statements.
#[derive(Default)]
struct Kind {
    by_hand: Vec<f64>,
    ours: Vec<f64>,
    prepared: Vec<f64>,
    costs: [Cost; 3],
}

pub(crate) async fn all() {
    let server = PostgresServer::start();
    // A server that listens may still be starting: this waits for it.
    drop(Store::open(&server.url()).await.unwrap());
    let engine = Postgres::open_url(&server.url()).await.unwrap();
    let prepared = Postgres::open_url(&format!("{}?prepared=1", server.url())).await.unwrap();
    let (setup, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    setup.batch_execute("CREATE TABLE once (key bytea PRIMARY KEY, nonce bytea, value bytea)").await.unwrap();
    let (pid, mut kinds) = (server.pid(), [(); 3].map(|()| Kind::default()));
    for _ in 0..ROUNDS {
        for (callers, Kind { by_hand, ours, prepared: with, costs }) in [1, 8, 800].into_iter().zip(&mut kinds) {
            by_hand.push(match callers {
                1 => costs[0].round(pid, raw_pairs(&setup)).await,
                8 => costs[0].round(pid, by_eight(&server.url(), false)).await,
                _ => costs[0].round(pid, by_eight(&server.url(), true)).await,
            });
            for (engine, rates, cost) in [(&engine, ours, 1), (&prepared, with, 2)] {
                let one = engine.clone();
                let cycle = move || {
                    let one = one.clone();
                    async move { pair(&one).await }
                };
                rates.push(costs[cost].of(pid, callers, cycle).await);
            }
        }
    }
    let names = ["one caller", "8 callers", "800 callers, over 8 workers with batches of 100 by hand"];
    for ((Kind { by_hand, ours, prepared, costs }, name), target) in
        kinds.into_iter().zip(names).zip(["", "0.8", "0.8"])
    {
        row(&format!("Postgres, begin and complete, {name}"), by_hand.clone(), ours, target);
        row(&format!("the same, prepared, {name}"), by_hand, prepared, target);
        for (cost, what) in costs.into_iter().zip(["by hand", "relent-store", "prepared"]) {
            cost.say(what);
        }
    }
}
