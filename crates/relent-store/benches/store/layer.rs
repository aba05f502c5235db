//! What the layer costs a request without a key, and a replay.

use crate::{ROUNDS, rate::median};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use relent_store::{Store, in_sqlite::Sqlite, layer::IdempotencyLayer};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    hint::black_box,
    task::{Context, Poll},
    time::Instant,
};
use tower_layer::Layer;
use tower_service::Service;

/// A service that answers at once.
#[derive(Clone)]
struct Echo;

impl<B> Service<Request<B>> for Echo {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(Full::new(Bytes::from_static(b"receipt")))))
    }
}

pub(crate) async fn all() {
    let folder = tempfile::tempdir().unwrap();
    let layer = IdempotencyLayer::new(Store::new(Sqlite::open(folder.path().join("state.db")).unwrap()));
    let mut with = layer.layer(Echo);
    let mut bare = Echo;
    let (mut plain, mut through, mut replays) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let number = 300_000;
        let begin = Instant::now();
        for _ in 0..number {
            let _ = black_box(bare.call(Request::get("/").body(Full::<Bytes>::default()).unwrap()).await);
        }
        plain.push(begin.elapsed().as_nanos() as f64 / f64::from(number));
        let begin = Instant::now();
        for _ in 0..number {
            let _ = black_box(with.call(Request::get("/").body(Full::<Bytes>::default()).unwrap()).await);
        }
        through.push(begin.elapsed().as_nanos() as f64 / f64::from(number));
        let begin = Instant::now();
        for _ in 0..2000 {
            let request =
                Request::post("/pay").header("idempotency-key", "\"7\"").body(Full::<Bytes>::default()).unwrap();
            let _ = black_box(with.call(request).await);
        }
        replays.push(begin.elapsed().as_nanos() as f64 / 2000.0);
    }
    let (plain, through) = (median(plain), median(through));
    println!("\n| layer | ns | target |\n|---|---:|---:|");
    println!("| a request without a key, besides the service | {:.0} | 50 |", through - plain);
    println!("| a replay from SQLite | {:.0} | 100000 |", median(replays));
}
