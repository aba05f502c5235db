//! What every dialect writes, word for word, and details that gRPC's messages may have.
#![cfg(feature = "http")]

use http::{HeaderMap, HeaderValue, StatusCode};
use relent::{
    Decision, Policy, Reason, Timestamp, Verdict,
    wire::{DIALECTS, Pushback, RELENT_TURN, pushback, verdict},
};
use std::time::Duration;

const WAIT: Duration = Duration::from_millis(1500);

/// A wait of 1.5 s, "never", "again" and a turn in 1.5 s, as each header says them; "-" where it cannot.
#[rustfmt::skip]
const WRITTEN: &[(&str, &str, &str, &str, &str)] = &[
    ("retry-after", "2", "-", "-", "-"),
    ("retry-after-ms", "1500", "-", "-", "-"),
    ("x-ms-retry-after-ms", "1500", "-", "-", "-"),
    ("x-amz-retry-after", "1500", "-", "-", "-"),
    ("grpc-retry-pushback-ms", "1500", "-1", "0", "-"),
    ("ratelimit", "\"default\";r=0;t=2", "-", "-", "-"),
    ("x-should-retry", "-", "false", "true", "-"),
    ("stripe-should-retry", "-", "false", "true", "-"),
    ("x-envoy-overloaded", "-", "true", "-", "-"),
    ("x-envoy-ratelimited", "true", "-", "-", "-"),
    ("relent-retry", "-", "no", "-", "-"),
    ("relent-turn", "-", "-", "-", "1500"),
];

#[test]
fn every_dialect_writes_what_it_can_say() {
    for dialect in DIALECTS.iter().filter(|dialect| dialect.name != "grpc-status-details-bin") {
        let row = WRITTEN.iter().find(|row| row.0 == dialect.name);
        let (name, wait, never, again, turn) = row.unwrap_or_else(|| panic!("{} must be in the table", dialect.name));
        let words = [Pushback::NotBefore(WAIT), Pushback::Never, Pushback::Again, Pushback::Turn(WAIT)];
        for (word, expected) in words.into_iter().zip([wait, never, again, turn]) {
            let value = dialect.write(word);
            let written = value.as_ref().map_or("-", |value| value.to_str().unwrap());
            assert_eq!(written, *expected, "{name}: {word:?}");
        }
    }
    assert_eq!(DIALECTS.len(), WRITTEN.len() + 1);
}

/// What a server writes in every header that can say it comes back as it was meant, from all of them together.
#[test]
fn what_all_headers_say_together_is_what_was_meant() {
    for word in [Pushback::NotBefore(Duration::from_secs(3)), Pushback::Never, Pushback::Turn(WAIT)] {
        let mut headers = HeaderMap::new();
        for dialect in DIALECTS {
            if let Some(value) = dialect.write(word) {
                headers.insert(dialect.name, value);
            }
        }
        assert_eq!(pushback(&headers, Duration::ZERO), Some(word));
    }
}

/// A turn is rounded up to whole milliseconds: nobody comes before it.
#[test]
fn a_turn_is_kept_to_the_millisecond_and_judged_as_one() {
    let row = DIALECTS.iter().find(|row| row.name == RELENT_TURN.as_str()).unwrap();
    let value = row.write(Pushback::Turn(Duration::from_nanos(1_234_000_001))).unwrap();
    assert_eq!(value, "1235");
    let mut headers = HeaderMap::from_iter([(RELENT_TURN, value)]);
    headers.insert("retry-after", HeaderValue::from_static("2"));
    let of = |status: u16| verdict(StatusCode::from_u16(status).unwrap(), &headers, Duration::ZERO);
    let turn = Verdict::Turn(Duration::from_millis(1235));
    assert_eq!((of(503), of(429), of(404), of(200)), (Some(turn), Some(turn), Some(Verdict::Permanent), None));

    // No spread on top, and no limit lifted.
    let policy = Policy::exponential(Duration::from_millis(100));
    assert_eq!(
        policy.call(Timestamp::ZERO, 1).on_failure(Timestamp::ZERO, turn),
        Decision::Retry(turn.pushback().unwrap())
    );
    let far = HeaderMap::from_iter([(RELENT_TURN, HeaderValue::from_static("99999999999999999999"))]);
    let far = verdict(StatusCode::SERVICE_UNAVAILABLE, &far, Duration::ZERO).unwrap();
    let decision = policy.call(Timestamp::ZERO, 1).on_failure(Timestamp::ZERO, far);
    assert_eq!(decision, Decision::GiveUp(Reason::PushbackTooLong));
}

fn retry_info(text: &str) -> Option<Pushback> {
    let dialect = DIALECTS.iter().find(|dialect| dialect.name == "grpc-status-details-bin").expect("a dialect");
    dialect.read(&HeaderValue::from_str(text).expect("a header's value"), Duration::ZERO)
}

#[test]
fn retry_info_says_waits_and_nothing_else() {
    let dialect = DIALECTS.iter().find(|dialect| dialect.name == "grpc-status-details-bin").unwrap();
    let value = dialect.write(Pushback::NotBefore(WAIT)).expect("a wait is written");
    assert_eq!(dialect.read(&value, Duration::ZERO), Some(Pushback::NotBefore(WAIT)));
    assert_eq!((dialect.write(Pushback::Never), dialect.write(Pushback::Again)), (None, None));
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let sextet = |bits: &[u8]| (0..6).fold(0, |n, at| n << 1 | usize::from(bits.get(at).copied().unwrap_or(0)));
    bits.chunks(6).map(|bits| char::from(ALPHABET[sextet(bits)])).collect()
}

/// A status with one `RetryInfo` of these bytes as its duration, and other fields before it.
fn status(before: &[u8], duration: &[u8]) -> Vec<u8> {
    let field = |tag: u8, bytes: &[u8]| [&[tag, bytes.len() as u8], bytes].concat();
    let info = field(0x0a, duration);
    let any = [field(0x0a, b"type.googleapis.com/google.rpc.RetryInfo"), field(0x12, &info)].concat();
    [before.to_vec(), field(0x1a, &any)].concat()
}

#[test]
fn other_fields_of_a_status_are_stepped_over_by_their_length() {
    let seven = Some(Pushback::NotBefore(Duration::from_secs(7)));
    // Field 9 as a varint, 64 bits, bytes and 32 bits.
    let others: [&[u8]; 4] =
        [&[0x48, 0xff, 1], &[0x49, 1, 2, 3, 4, 5, 6, 7, 8], &[0x4a, 2, 0xff, 0xff], &[0x4d, 1, 2, 3, 4]];
    for before in others {
        assert_eq!(retry_info(&base64(&status(before, &[8, 7]))), seven, "{before:?}");
        for cut in 1..before.len() {
            assert_ne!(retry_info(&base64(&before[..cut])), seven);
        }
    }
    assert_eq!(retry_info(&base64(&status(&others.concat(), &[8, 7]))), seven);
    // Groups are long gone, and are no message.
    assert_eq!(retry_info(&base64(&status(&[0x4b], &[8, 7]))), None);
}

#[test]
fn base64_of_every_length_and_no_other() {
    let seven = Some(Pushback::NotBefore(Duration::from_secs(7)));
    for extra in 0..6 {
        let padding = [vec![0x4a, extra], vec![b'x'; extra.into()]].concat();
        let text = base64(&status(&padding, &[8, 7]));
        assert_eq!(retry_info(&text), seven, "{extra}");
        assert_eq!(retry_info(&format!("{text}==")), seven, "{extra}");
        for odd in [format!("{text}\u{21}"), format!("!{text}"), text.replace('A', "-"), format!("{text}=A")] {
            assert_eq!(retry_info(&odd), None, "{odd}");
        }
    }
    assert_eq!(retry_info("AAAAA"), None, "a single letter is no byte");
}
