//! How large the state of a policy, of a call and of a future is.

use crate::harness::Settings;
use relent::{Call, Policy};
use serde_json::json;
use std::time::Duration;

pub(crate) fn report(settings: Settings) {
    let policy = Policy::exponential(Duration::from_millis(100)).max_attempts(4);
    let relent = policy.retry(async |_| Ok::<u64, u32>(7));
    let builder = backon::ExponentialBuilder::new().with_jitter();
    let backon = std::future::IntoFuture::into_future(backon::Retryable::retry(async || Ok::<u64, u32>(7), builder));
    let operation = || std::future::ready(Ok::<u64, u32>(7));
    let tokio_retry = tokio_retry::Retry::start(tokio_retry::strategy::ExponentialBackoff::from_millis(10), operation);
    let rows = [
        ("relent: Policy", size_of::<Policy>()),
        ("relent: Call", size_of::<Call<&Policy>>()),
        ("relent: future of retry", size_of_val(&relent)),
        ("backon: ExponentialBuilder", size_of::<backon::ExponentialBuilder>()),
        ("backon: ExponentialBackoff", size_of::<backon::ExponentialBackoff>()),
        ("backon: future of retry", size_of_val(&backon)),
        ("tokio-retry: ExponentialBackoff", size_of::<tokio_retry::strategy::ExponentialBackoff>()),
        ("tokio-retry: future of retry", size_of_val(&tokio_retry)),
        ("backoff: ExponentialBackoff", size_of::<backoff::ExponentialBackoff>()),
        ("tower: ExponentialBackoff", size_of::<tower::retry::backoff::ExponentialBackoff>()),
        ("retry-policies: ExponentialBackoff", size_of::<retry_policies::policies::ExponentialBackoff>()),
    ];
    if settings.json {
        for (name, bytes) in rows {
            println!("{}", json!({"name": format!("sizes/{name}"), "bytes": bytes}));
        }
        return;
    }
    println!("## State, in bytes\n\n| what | bytes |\n|---|---:|");
    for (name, bytes) in rows {
        println!("| {name} | {bytes} |");
    }
    println!();
}
