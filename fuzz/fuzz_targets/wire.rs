//! No header, however mad, panics, or makes a wait out of nothing.
#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use libfuzzer_sys::fuzz_target;
use relent::wire;
use std::time::Duration;

const NAMES: [&str; 12] = [
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "ratelimit",
    "grpc-retry-pushback-ms",
    "relent-retry",
    "relent-turn",
    "relent-attempts",
    "relent-deadline",
    "grpc-timeout",
    "x-envoy-expected-rq-timeout-ms",
    "grpc-status-details-bin",
];

fuzz_target!(|input: (u8, u16, u64, &[u8])| {
    let (name, status, now, value) = input;
    let (Ok(value), Ok(status)) = (HeaderValue::from_bytes(value), StatusCode::from_u16(status)) else { return };
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static(NAMES[usize::from(name) % NAMES.len()]), value);
    let now = Duration::from_secs(now);
    let _ = wire::verdict(status, &headers, now);
    let _ = wire::pushback(&headers, now);
    let _ = wire::attempt(&headers);
    let _ = wire::attempts(&headers);
    let _ = wire::deadline(&headers);
});
