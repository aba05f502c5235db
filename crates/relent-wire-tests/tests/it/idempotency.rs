//! A server of payments that is killed, whose connections are cut, and a client that asks again: axum, SQLite, reqwest.

use axum::{Router, extract::State, routing::post};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use relent_store::{
    Kept, Store,
    in_sqlite::{self, Sqlite},
    layer::{Claimed, IdempotencyLayer},
};
use rusqlite::{Connection, TransactionBehavior::Immediate};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const FOLDER: &str = "RELENT_TEST_PAYMENTS";

fn die() -> ! {
    let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
    unreachable!("it is dead");
}

/// Books a payment together with its answer, and dies, or takes its time, where the request says so.
async fn pay(State(bank): State<PathBuf>, request: Request<axum::body::Body>) -> Response<axum::body::Body> {
    let claimed = request.extensions().get::<Claimed>().unwrap();
    let dies = request.headers().get("x-dies").map(|value| value.to_str().unwrap().to_owned());
    if request.headers().contains_key("x-slow") {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let answer = Response::builder().status(StatusCode::CREATED).body(Bytes::from("receipt")).unwrap();
    let mut bank = Connection::open(&bank).unwrap();
    let tx = bank.transaction_with_behavior(Immediate).unwrap();
    tx.execute("INSERT INTO payments VALUES (?)", [claimed.claim.key.as_bytes()]).unwrap();
    let kept = in_sqlite::complete(&tx, &claimed.claim, &claimed.stored(&answer), claimed.keep).unwrap();
    if dies.as_deref() == Some("before") {
        die();
    }
    if kept == Kept::Kept {
        tx.commit().unwrap();
    }
    if dies.as_deref() == Some("after") {
        die();
    }
    answer.map(axum::body::Body::from)
}

/// The process that serves. Does nothing unless it was started by the test below.
#[tokio::test]
async fn server() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let bank = folder.join("bank.db");
    let store = Store::new(Sqlite::open(&bank).unwrap());
    Connection::open(&bank).unwrap().execute_batch("CREATE TABLE IF NOT EXISTS payments (key BLOB)").unwrap();
    let layer = IdempotencyLayer::new(store).lease(Duration::from_millis(400)).required(|_| true).rerun();
    let app = Router::new().route("/pay", post(pay)).with_state(bank).layer(layer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    fs::write(folder.join("new"), listener.local_addr().unwrap().port().to_string()).unwrap();
    fs::rename(folder.join("new"), folder.join("port")).unwrap();
    axum::serve(listener, app).await.unwrap();
}

/// A process that serves, ended with the test.
struct Server {
    process: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(folder: &Path) -> Server {
        let port = folder.join("port");
        let _ = fs::remove_file(&port);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "idempotency::server", "--nocapture"]).env(FOLDER, folder);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begin = Instant::now();
        let port = loop {
            match fs::read_to_string(&port) {
                Ok(port) => break port,
                Err(_) => assert!(begin.elapsed() < Duration::from_secs(20), "it does not start"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        Server { process, url: format!("http://127.0.0.1:{port}/pay") }
    }

    fn request(&self, client: &reqwest::Client, key: &str) -> reqwest::RequestBuilder {
        client.post(&self.url).header("idempotency-key", format!("\"{key}\"")).body("100")
    }

    /// Asks until it is not busy. Whether the answer was replayed.
    async fn paid(&self, client: &reqwest::Client, key: &str) -> bool {
        let begin = Instant::now();
        loop {
            let answer = self.request(client, key).send().await.unwrap();
            if answer.status() == StatusCode::CREATED {
                let is_replayed = answer.headers().contains_key("idempotent-replayed");
                assert_eq!(answer.text().await.unwrap(), "receipt");
                return is_replayed;
            }
            assert_eq!(answer.status(), StatusCode::CONFLICT);
            assert!(begin.elapsed() < Duration::from_secs(10), "it stays busy");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn a_payment_happens_once_though_servers_die_and_connections_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let payments = || {
        let bank = Connection::open(folder.path().join("bank.db")).unwrap();
        bank.query_row("SELECT COUNT(*) FROM payments", [], |row| row.get::<_, u32>(0)).unwrap()
    };

    let server = Server::start(folder.path());
    server.request(&client, "1").header("x-dies", "after").send().await.expect_err("it was killed");
    drop(server);
    let server = Server::start(folder.path());
    assert!(server.paid(&client, "1").await, "its answer was committed with it");
    assert_eq!(payments(), 1);

    server.request(&client, "2").header("x-dies", "before").send().await.expect_err("it was killed");
    drop(server);
    assert_eq!(payments(), 1);
    let server = Server::start(folder.path());
    assert!(!server.paid(&client, "2").await, "nothing of it was committed");
    assert!(server.paid(&client, "2").await);
    assert_eq!(payments(), 2);

    let hasty = server.request(&client, "3").header("x-slow", "1").timeout(Duration::from_millis(100));
    hasty.send().await.expect_err("the connection was cut");
    assert!(server.paid(&client, "3").await, "it went on without us");
    assert_eq!(payments(), 3);
    assert_eq!(client.post(&server.url).send().await.unwrap().status(), StatusCode::BAD_REQUEST, "without a key");
}
