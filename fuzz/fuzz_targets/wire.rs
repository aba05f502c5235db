//! No header of any dialect, however mad, panics, shortens a wait, or loses what another header said; and what is
//! written is read as no less than was meant.
//!
//! An input is a status, a time, a wait, and lines: the number of a header, and its value.
#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use libfuzzer_sys::fuzz_target;
use relent::{
    Verdict,
    wire::{self, COUNTERS, DEADLINES, DIALECTS, IdempotencyKey, Pushback, Rules},
};
use std::time::Duration;

fuzz_target!(|input: (u16, u64, u64, &[u8])| {
    let (status, now, wait, lines) = input;
    let Ok(status) = StatusCode::from_u16(status % 1000) else { return };
    let (now, wait) = (Duration::from_secs(now), Duration::from_nanos(wait));
    let headers = headers(lines);
    read(status, &headers, now);
    counted(&headers);
    written(wait);
    repeated(&headers, lines);
});

/// All that are looked at; a date only now and then, since it is what the others are compared with.
fn name(number: u8) -> HeaderName {
    let dialects = DIALECTS.iter().map(|dialect| dialect.name).chain(COUNTERS.iter().map(|counter| counter.name));
    let names = dialects.chain(DEADLINES.iter().map(|deadline| deadline.name));
    let names: Vec<&'static str> = names.chain(["date", "idempotency-key", "relent-attempts"]).collect();
    HeaderName::from_static(names[usize::from(number) % names.len()])
}

fn headers(lines: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n').take(50) {
        if let Some((number, value)) = line.split_first()
            && let Ok(value) = HeaderValue::from_bytes(value)
        {
            headers.append(name(*number), value);
        }
    }
    headers
}

fn read(status: StatusCode, headers: &HeaderMap, now: Duration) {
    let told = wire::pushback(headers, now);
    for dialect in DIALECTS {
        for value in headers.get_all(dialect.name) {
            match (dialect.read(value, now), told) {
                (Some(Pushback::Never), told) if !dialect.yields => assert_eq!(told, Some(Pushback::Never)),
                // A date is compared with the response's own, if there is one.
                (Some(Pushback::NotBefore(wait)), Some(Pushback::NotBefore(told))) if !headers.contains_key("date") => {
                    assert!(told >= wait, "{}: {told:?} is shorter than {wait:?}", dialect.name);
                }
                (Some(Pushback::Turn(_)), told) => {
                    assert!(matches!(told, Some(Pushback::Turn(_) | Pushback::Never)), "a turn is kept: {told:?}");
                }
                (Some(_), told) => assert!(told.is_some(), "{} was not heard", dialect.name),
                (None, _) => {}
            }
        }
    }
    let verdict = wire::verdict(status, headers, now);
    match verdict {
        Some(Verdict::After(wait)) => assert_eq!(told, Some(Pushback::NotBefore(wait)), "made out of nothing"),
        Some(Verdict::Turn(wait)) => assert_eq!(told, Some(Pushback::Turn(wait)), "made out of nothing"),
        _ => {}
    }
    assert!(verdict.is_none() || told != Some(Pushback::Never) || verdict == Some(Verdict::Overloaded));
    let stop = Rules::default().stop_on(status).retry_on(status);
    assert_eq!(stop.verdict(status, headers, now), Some(Verdict::Permanent));
}

fn counted(headers: &HeaderMap) {
    let _ = (wire::attempts(headers), wire::deadline(headers));
    let attempt = wire::attempt(headers);
    assert_ne!(attempt, Some(0));
    for counter in COUNTERS {
        for value in headers.get_all(counter.name) {
            let read = counter.read(value);
            assert!(read <= attempt, "{}: {read:?} is more than {attempt:?}", counter.name);
            if let Some(attempt) = read {
                let written = counter.write(attempt).map(|value| counter.read(&value));
                assert!(written.is_none_or(|again| again == Some(attempt)), "{}", counter.name);
            }
        }
    }
}

fn written(wait: Duration) {
    for dialect in DIALECTS {
        for word in [Pushback::NotBefore(wait), Pushback::Turn(wait), Pushback::Never, Pushback::Again] {
            let Some(value) = dialect.write(word) else { continue };
            let read = dialect.read(&value, Duration::ZERO).expect("what is written can be read");
            let holds = match (word, read) {
                (_, Pushback::Never) => word != Pushback::Again,
                (
                    Pushback::NotBefore(meant) | Pushback::Turn(meant),
                    Pushback::NotBefore(read) | Pushback::Turn(read),
                ) => read >= meant,
                (Pushback::Again, Pushback::NotBefore(read)) => read.is_zero(),
                (Pushback::Again, Pushback::Again) => true,
                _ => false,
            };
            assert!(holds, "{}: {word:?} is read as {read:?}", dialect.name);
        }
    }
}

fn repeated(headers: &HeaderMap, bytes: &[u8]) {
    let key = headers.get("idempotency-key").and_then(IdempotencyKey::read);
    if let Some(key) = &key {
        assert_eq!(IdempotencyKey::read(&key.value()).as_ref(), Some(key));
    }
    let Ok(method) = Method::from_bytes(&bytes[..bytes.len().min(8)]) else { return };
    let request = wire::Request { method: &method, headers, left: true, unsafe_too: false };
    assert_eq!(
        wire::replay(&request).is_allowed(),
        wire::is_idempotent(&method) || wire::has_idempotency_key(headers)
    );
}
