//! A reqwest client behind one layer, calling a server that fails every second time.
//!
//! `cargo run -p relent-wire-tests --example client`
#![expect(clippy::print_stdout, reason = "an example says what it does")]

use axum::{Router, http::StatusCode, routing::any};
use relent::{Breaker, Budget, Policy, Upstream};
use reqwest::{Client, Method, Request};
use std::{
    error::Error,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use tower::{Layer, Service, ServiceExt};

const READ: Policy = Policy::exponential(Duration::from_millis(20)).max_attempts(5);
static BANK: Upstream = Upstream::new("bank").budget(Budget::ratio(0.1)).breaker(Breaker::consecutive(5));

/// A bank that is busy every second time.
async fn bank() -> Result<&'static str, StatusCode> {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let asked = ASKED.fetch_add(1, Ordering::Relaxed);
    if asked.is_multiple_of(2) { Err(StatusCode::SERVICE_UNAVAILABLE) } else { Ok("17") }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/accounts/7", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/accounts/7", any(bank))).await });

    // The client's own retries are off: one layer retries.
    _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().retry(reqwest::retry::never()).no_proxy().build()?;
    let mut client = READ.on(&BANK).layer().record().layer(client);

    for method in [Method::GET, Method::GET, Method::POST] {
        let request = Request::new(method.clone(), url.parse()?);
        let answer = client.ready().await?.call(request).await?;
        println!("{method}: {} ({})", answer.status(), answer.headers()["relent"].to_str()?);
    }
    let bank = BANK.snapshot();
    println!("{} calls, {} attempts, {} retries", bank.calls, bank.attempts, bank.retries);
    Ok(())
}
