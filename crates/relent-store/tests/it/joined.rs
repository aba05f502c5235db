//! Handlers that commit their effects together with the record of their request.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use relent_store::{
    Claim, Fence, Kept, Key, Scope, Store, Stored,
    in_sqlite::{self, Sqlite},
    layer::{Claimed, IdempotencyBody, IdempotencyLayer},
};
use rusqlite::{Connection, TransactionBehavior::Immediate};
use std::{
    convert::Infallible,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tower_layer::Layer;
use tower_service::Service;

const DAY: Duration = Duration::from_secs(86_400);

/// A service that books a payment, and is killed before its commit or after it, as the path says.
#[derive(Clone)]
struct Bank(PathBuf);

impl Service<Request<IdempotencyBody<Full<Bytes>>>> for Bank {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<IdempotencyBody<Full<Bytes>>>) -> Self::Future {
        let path = self.0.clone();
        Box::pin(async move {
            let claimed = request.extensions().get::<Claimed>().unwrap();
            let answer = Response::builder().status(StatusCode::CREATED).header("location", "/payments/1");
            let answer = answer.header("set-cookie", "secret").body(Bytes::from("receipt")).unwrap();
            let mut db = Connection::open(&path).unwrap();
            let tx = db.transaction_with_behavior(Immediate).unwrap();
            tx.execute("INSERT INTO payments VALUES (1)", []).unwrap();
            let kept = in_sqlite::complete(&tx, &claimed.claim, &claimed.stored(&answer), claimed.keep).unwrap();
            assert_eq!(kept, Kept::Kept);
            let dies = match request.uri().path() {
                "/before" => true,
                "/first-dies" => claimed.unknown.is_none(),
                _ => false,
            };
            assert!(!dies, "killed before the commit");
            tx.commit().unwrap();
            assert!(request.uri().path() != "/after", "killed after the commit");
            Ok(answer.map(Full::new))
        })
    }
}

fn bank(folder: &Path) -> (IdempotencyLayer<Sqlite>, Bank) {
    let path = folder.join("bank.db");
    let store = Store::new(Sqlite::open(&path).unwrap());
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE payments (n INTEGER)").unwrap();
    (IdempotencyLayer::new(store), Bank(path))
}

fn payments(bank: &Bank) -> u32 {
    let db = Connection::open(&bank.0).unwrap();
    db.query_row("SELECT COUNT(*) FROM payments", [], |row| row.get(0)).unwrap()
}

/// Status, whether it was replayed, and body; `None` if the service died.
async fn pay(layer: &IdempotencyLayer<Sqlite>, bank: &Bank, path: &'static str) -> Option<(u16, bool, String)> {
    let mut service = layer.layer(bank.clone());
    let request = Request::post(path).header("idempotency-key", "\"7\"").body(Full::default()).unwrap();
    let (head, body) = tokio::spawn(service.call(request)).await.ok()?.unwrap().into_parts();
    let is_replayed = head.headers.contains_key("idempotent-replayed");
    if head.status == 201 {
        assert_eq!(head.headers["location"], "/payments/1");
        assert_eq!(head.headers["relent-idempotency-keep"], "86400");
        assert_eq!(head.headers.contains_key("set-cookie"), !is_replayed);
    }
    let body = body.collect().await.unwrap().to_bytes();
    Some((head.status.as_u16(), is_replayed, String::from_utf8_lossy(&body).into_owned()))
}

#[tokio::test]
async fn who_dies_after_the_commit_leaves_no_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let (layer, bank) = bank(folder.path());
    assert_eq!(pay(&layer, &bank, "/after").await, None);
    let replay = Some((201, true, "receipt".to_owned()));
    assert_eq!(pay(&layer, &bank, "/after").await, replay);
    assert_eq!(pay(&layer, &bank, "/after").await, replay);
    assert_eq!(payments(&bank), 1);
}

#[tokio::test]
async fn who_dies_before_the_commit_leaves_doubt_and_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    let (layer, bank) = bank(folder.path());
    assert_eq!(pay(&layer, &bank, "/before").await, None);
    assert_eq!(pay(&layer, &bank, "/before").await.unwrap().0, 409);
    assert_eq!(payments(&bank), 0);
    // What is in the transaction or nowhere may be done again without a look.
    let layer = layer.rerun();
    assert_eq!(pay(&layer, &bank, "/before").await, None);
    assert_eq!(payments(&bank), 0);
    let (layer, other) = (layer, bank.clone());
    assert_eq!(pay(&layer, &other, "/works").await, Some((201, false, "receipt".to_owned())));
    assert_eq!(pay(&layer, &other, "/works").await, Some((201, true, "receipt".to_owned())));
    assert_eq!(payments(&bank), 1);
}

#[tokio::test]
async fn who_lost_the_claim_is_refused_in_its_own_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bank.db");
    let store = Store::new(Sqlite::open(&path).unwrap());
    let (scope, key) = (Scope::new("pay").unwrap(), Key::new("7").unwrap());
    let done = store.once(&scope, &key).run(async |effect| {
        let mut db = Connection::open(&path).unwrap();
        let tx = db.transaction_with_behavior(Immediate).unwrap();
        let late = Claim { scope: scope.clone(), key: key.clone(), fence: Fence(effect.fence.0 + 1) };
        assert_eq!(in_sqlite::complete(&tx, &late, &Stored::success("late"), DAY).unwrap(), Kept::Fenced);
        let large = Stored::success(vec![0; relent_store::MAX_VALUE + 1]);
        let ours = Claim { fence: effect.fence, ..late };
        assert!(in_sqlite::complete(&tx, &ours, &large, DAY).is_err());
        assert_eq!(in_sqlite::complete(&tx, &ours, &Stored::success("kept"), DAY).unwrap(), Kept::Kept);
        tx.commit().unwrap();
        Err::<&str, _>("what is committed is done, whatever comes after")
    });
    assert!(done.await.is_err());
    let done = store.once(&scope, &key).run(async |_| Ok::<_, String>("again")).await.unwrap();
    assert_eq!((done.bytes(), done.is_replayed), (&b"kept"[..], true));
}

#[tokio::test]
async fn what_is_unknown_is_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let (layer, bank) = bank(folder.path());
    assert_eq!(pay(&layer, &bank, "/before").await, None);
    let asleep =
        layer.clone().reconcile(async |_: Request<Bytes>, _| Err::<Option<Response<Bytes>>, _>("the bank sleeps"));
    assert_eq!(pay(&asleep, &bank, "/before").await.unwrap().0, 409);
    let found = layer.clone().reconcile(async |request: Request<Bytes>, _| {
        assert_eq!(request.headers()["idempotency-key"], "\"7\"");
        let answer = Response::builder().status(201).header("location", "/payments/1");
        Ok::<_, http::Error>(Some(answer.body(Bytes::from("found"))?))
    });
    assert_eq!(pay(&found, &bank, "/before").await, Some((201, true, "found".to_owned())));
    assert_eq!(pay(&layer, &bank, "/before").await, Some((201, true, "found".to_owned())), "it is kept");
    assert_eq!(payments(&bank), 0);

    // What did not happen is carried out.
    assert_eq!(pay(&layer, &bank, "/first-dies").await, None);
    let nothing = layer.reconcile(async |_: Request<Bytes>, _| Ok::<Option<Response<Bytes>>, String>(None));
    assert_eq!(pay(&nothing, &bank, "/first-dies").await, Some((201, false, "receipt".to_owned())));
    assert_eq!(payments(&bank), 1);
}
