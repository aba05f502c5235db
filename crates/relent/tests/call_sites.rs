//! Call sites that the library must support as they stand here: the tasks on which it is compared with others, and the
//! hard cases of closures (captures by reference, mutation, `&mut self`, spawned tasks, `?`, anyhow).
use relent::*;
use std::{
    io,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);

// Checked at compile time: `factor(0.5)` here would not compile.
const READ: Policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).max_attempts(5);

#[derive(Debug)]
enum Http {
    Timeout,
    NotFound,
    Busy(Duration),
}
impl std::fmt::Display for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}
impl Http {
    fn verdict(&self) -> Verdict {
        match self {
            Http::Timeout => Verdict::Transient,
            Http::NotFound => Verdict::Permanent,
            Http::Busy(d) => Verdict::After(*d),
        }
    }
}
async fn fetch(fail: &AtomicU32) -> Result<&'static str, Http> {
    if fail.fetch_sub(1, Ordering::SeqCst) > 1 { Err(Http::Timeout) } else { Ok("body") }
}

#[tokio::test(start_paused = true)]
async fn t1_basic() {
    let fail = AtomicU32::new(3);
    let body = READ.retry(async |_| fetch(&fail).await).await.unwrap();
    assert_eq!(body, "body");
}

#[tokio::test(start_paused = true)]
async fn t2_permanent_and_notify() {
    let seen = AtomicU32::new(0);
    let err = READ
        .when(Http::verdict)
        .notify(|event| {
            seen.fetch_add(1, Ordering::SeqCst);
            println!("attempt {} failed: {}; next in {:?}", event.attempt.number(), event.error, event.delay)
        })
        .retry(async |attempt| if attempt.number() < 3 { Err::<(), _>(Http::Timeout) } else { Err(Http::NotFound) })
        .await
        .unwrap_err();
    assert_eq!((err.reason, err.attempts, seen.load(Ordering::SeqCst)), (Reason::Permanent, 3, 2));
    println!("{err}");
}

#[tokio::test(start_paused = true)]
async fn t3_retry_after() {
    let at = tokio::time::Instant::now();
    READ.when(Http::verdict)
        .retry(async |attempt| if attempt.number() == 1 { Err(Http::Busy(20 * SEC)) } else { Ok(()) })
        .await
        .unwrap();
    assert!(at.elapsed() >= 20 * SEC);
}

#[tokio::test(start_paused = true)]
async fn loop_form_needs_no_closure() {
    struct Client {
        tries: u32,
    }
    impl Client {
        async fn connect(&mut self) -> Result<u32, io::Error> {
            self.tries += 1;
            if self.tries < 4 { Err(io::ErrorKind::ConnectionRefused.into()) } else { Ok(self.tries) }
        }
    }
    async fn go(client: &mut Client) -> Result<u32, Error<io::Error>> {
        let mut retry = READ.start();
        loop {
            match client.connect().await {
                Ok(n) => return Ok(n),
                Err(err) => retry.back_off(err).await?,
            }
        }
    }
    assert_eq!(go(&mut Client { tries: 0 }).await.unwrap(), 4);
}

#[tokio::test(start_paused = true)]
async fn closure_mutates_before_the_future() {
    let mut log: Vec<u32> = vec![];
    READ.retry(|attempt| {
        log.push(attempt.number());
        let n = log.len();
        async move { if n < 3 { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(()) } }
    })
    .await
    .unwrap();
    assert_eq!(log, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn future_is_send_for_spawn() {
    let n = tokio::spawn(async {
        let state = AtomicU32::new(0);
        READ.retry(async |_| {
            let n = state.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            if n < 2 { Err(anyhow::anyhow!("x")) } else { Ok(n) }
        })
        .await
    })
    .await
    .unwrap()
    .unwrap();
    assert_eq!(n, 2);
}

#[tokio::test(start_paused = true)]
async fn a_future_whose_error_is_a_reference_is_send_for_spawn() {
    let called = tokio::spawn(async { READ.retry(async |_| Err::<u32, _>("down")).await });
    let polled = tokio::spawn(async { READ.poll(async |_| Ok::<_, &str>(Answer::Done(7))).await });
    assert_eq!(called.await.unwrap().map_err(|err| err.into_last()), Err(Some("down")));
    assert_eq!(polled.await.unwrap().ok(), Some(7));
}

#[tokio::test(start_paused = true)]
async fn loop_future_is_send_for_spawn() {
    let n = tokio::spawn(async {
        let mut state = 0;
        let mut retry = READ.start();
        loop {
            state += 1;
            match async {
                tokio::task::yield_now().await;
                if state < 3 { Err("no") } else { Ok(state) }
            }
            .await
            {
                Ok(n) => break n,
                Err(e) => retry.back_off(e).await.unwrap(),
            }
        }
    })
    .await
    .unwrap();
    assert_eq!(n, 3);
}

#[tokio::test(start_paused = true)]
async fn hooked_future_is_send_for_spawn() {
    let n = tokio::spawn(async {
        READ.when(|e: &Http| matches!(e, Http::Timeout))
            .notify(|e| println!("{}", e.error))
            .retry(async |a| {
                tokio::task::yield_now().await;
                if a.number() < 2 { Err(Http::Timeout) } else { Ok(7) }
            })
            .await
    })
    .await
    .unwrap()
    .unwrap();
    assert_eq!(n, 7);
}

#[test]
fn blocking_form() {
    let fast = Policy::constant(MS).jitter(Jitter::None).max_attempts(3);
    let err = fast.retry_blocking(|a| Err::<(), _>(format!("try {}", a.number()))).unwrap_err();
    assert_eq!(err.to_string().split(" in ").next().unwrap(), "out of attempts after 3 attempts");
    assert_eq!(err.last.unwrap(), "try 3");
}

#[test]
fn op_decides_with_failure() {
    let fast = Policy::constant(MS).max_attempts(3);
    let mut n = 0;
    let err = fast
        .when(Failure::verdict)
        .retry_blocking(|_| -> Result<(), Failure<io::Error>> {
            n += 1;
            if n == 2 {
                return Err(Failure::permanent(io::ErrorKind::NotFound.into()));
            }
            Err(io::Error::from(io::ErrorKind::TimedOut))?
        })
        .unwrap_err();
    assert_eq!((n, err.reason), (2, Reason::Permanent));
}

#[test]
fn anyhow_question_mark() -> anyhow::Result<()> {
    let fast = Policy::constant(MS).max_attempts(3);
    let text = fast.retry_blocking(|_| -> anyhow::Result<String> { Ok("x".to_owned()) })?;
    assert_eq!(text, "x");
    Ok(())
}
