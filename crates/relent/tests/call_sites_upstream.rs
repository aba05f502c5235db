//! Call sites on an upstream that the library must support as they stand here. The helpers are those of `call_sites.rs`.
use relent::*;
use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

const SEC: Duration = Duration::from_secs(1);

const READ: Policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).max_attempts(5);

#[derive(Debug)]
enum Http {
    Timeout,
}
impl std::fmt::Display for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}
impl Http {
    fn verdict(&self) -> Verdict {
        Verdict::Transient
    }
}
async fn fetch(fail: &AtomicU32) -> Result<&'static str, Http> {
    if fail.fetch_sub(1, Ordering::SeqCst) > 1 { Err(Http::Timeout) } else { Ok("body") }
}

static BANK: Upstream =
    Upstream::new("bank").budget(Budget::ratio(0.1)).breaker(Breaker::consecutive(5).open_for(SEC.saturating_mul(30)));

#[tokio::test(start_paused = true)]
async fn t4_budget_and_breaker() {
    let bank = Upstream::new("bank").budget(Budget::ratio(0.1)).breaker(Breaker::consecutive(5).open_for(30 * SEC));
    let pay = READ.on(&bank).when(Http::verdict);
    let mut reasons = vec![];
    for _ in 0..4 {
        let err = pay.retry(async |_| Err::<(), _>(Http::Timeout)).await.unwrap_err();
        reasons.push((err.reason, err.attempts));
    }
    assert_eq!(reasons[0], (Reason::Attempts, 5));
    assert_eq!(reasons[1], (Reason::Open, 0));
    tokio::time::sleep(31 * SEC).await;
    pay.retry(async |_| Ok::<_, Http>(())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn t4_static_shared_and_spawned() {
    let task = tokio::spawn(READ.on(&BANK).when(Http::verdict).retry(async |_| Ok::<_, Http>(1)));
    assert_eq!(task.await.unwrap().unwrap(), 1);
    let far = std::sync::Arc::new(Upstream::new("far").limit(Limit::concurrency(2)));
    let task = tokio::spawn(READ.on(far.clone()).retry(async |_| Ok::<_, Http>(2)));
    assert_eq!(task.await.unwrap().unwrap(), 2);
    assert_eq!(far.snapshot().attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn t4_own_loop() -> Result<(), Error<Http>> {
    let fail = AtomicU32::new(3);
    let mut retry = READ.start().on(&BANK);
    let _body = loop {
        retry.ready().await?; // Breaker and limiter; the permit's outcome is told by back_off, success or drop.
        match fetch(&fail).await {
            Ok(body) => break retry.succeed(body),
            Err(err) => retry.back_off(err).await?,
        }
    };
    Ok(())
}

#[cfg(feature = "tower")]
#[tokio::test(start_paused = true)]
async fn t5_tower() {
    use ::tower::{Service, ServiceBuilder, ServiceExt};
    let calls = std::sync::Arc::new(AtomicU32::new(0));
    let c = calls.clone();
    let mut svc = ServiceBuilder::new().layer(READ.on(&BANK).when(Http::verdict).layer()).service(tower::service_fn(
        move |_req: String| {
            let n = c.fetch_add(1, Ordering::SeqCst);
            async move { if n < 2 { Err(Http::Timeout) } else { Ok(n) } }
        },
    ));
    assert_eq!(svc.ready().await.unwrap().call("x".into()).await.unwrap(), 2);
}
