//! An axum server that takes what it can do, and tells everybody else when to come back.
//!
//! `cargo run -p relent-wire-tests --example protected_server`, and then `curl -i http://127.0.0.1:3000/` from many terminals.
#![expect(clippy::print_stdout, reason = "a program talks")]

use axum::{Router, routing::get};
use relent::{
    Admission, Limit, Pacer, Priority,
    layer::{AdmissionLayer, Caller},
};
use std::time::Duration;

static DOOR: Admission =
    Admission::new().limit(Limit::concurrency(10).queue(10, Duration::from_secs(1))).pacer(Pacer::capacity(20.0));

async fn work() -> String {
    let caller = Caller::current().unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(500)).await;
    format!("done, at attempt {}\n", caller.attempt())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let layer = AdmissionLayer::new(&DOOR).priority(|_, uri, _| match uri.path() {
        "/health" => Priority::Vital,
        _ => Priority::Normal,
    });
    let figures = layer.clone();
    let app = Router::new()
        .route("/", get(work))
        .route("/health", get(move || async move { format!("{:#?}\n", figures.snapshot()) }))
        .layer(layer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}/ and /health", listener.local_addr()?);
    axum::serve(listener, app).await
}
