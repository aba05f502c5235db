//! google.rpc `RetryInfo` in `grpc-status-details-bin`: a protobuf message in base64, as gRPC servers send it.
//!
//! Four messages are looked into, each for one field; everything else in them is skipped. What is malformed says
//! nothing. Source: googleapis, `google/rpc/status.proto` and `google/rpc/error_details.proto`; protobuf's encoding
//! guide; gRPC over HTTP/2, "Binary-Header".

use std::time::Duration;

/// The `retry_delay` of a `google.rpc.Status` in base64.
pub(super) fn read(base64: &str) -> Option<Duration> {
    let status = decode(base64)?;
    let mut longest = None;
    for detail in Fields(&status).all(STATUS_DETAILS)? {
        longest = longest.max(retry_delay(detail));
    }
    longest
}

/// A `google.rpc.Status` of UNAVAILABLE with a `RetryInfo`, in base64.
pub(super) fn write(delay: Duration) -> String {
    let mut duration = Vec::new();
    number(&mut duration, 1, delay.as_secs().min(i64::MAX as u64));
    number(&mut duration, 2, delay.subsec_nanos().into());
    let mut info = Vec::new();
    bytes(&mut info, RETRY_INFO_DELAY, &duration);
    let mut any = Vec::new();
    bytes(&mut any, ANY_TYPE, format!("type.googleapis.com/{RETRY_INFO}").as_bytes());
    bytes(&mut any, ANY_VALUE, &info);
    let mut status = Vec::new();
    number(&mut status, 1, UNAVAILABLE);
    bytes(&mut status, STATUS_DETAILS, &any);
    encode(&status)
}

const RETRY_INFO: &str = "google.rpc.RetryInfo";
const UNAVAILABLE: u64 = 14;

// The numbers of the fields.
const STATUS_DETAILS: u64 = 3;
const ANY_TYPE: u64 = 1;
const ANY_VALUE: u64 = 2;
const RETRY_INFO_DELAY: u64 = 1;

/// The delay of a `google.protobuf.Any` that is a `RetryInfo`.
fn retry_delay(any: &[u8]) -> Option<Duration> {
    let kind = *Fields(any).all(ANY_TYPE)?.last()?;
    if kind.rsplit(|byte| *byte == b'/').next() != Some(RETRY_INFO.as_bytes()) {
        return None;
    }
    let info = *Fields(any).all(ANY_VALUE)?.last()?;
    let duration = *Fields(info).all(RETRY_INFO_DELAY)?.last()?;
    let (mut seconds, mut nanos) = (0, 0);
    let mut fields = Fields(duration);
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (1, Value::Number(value)) => seconds = value,
            (2, Value::Number(value)) => nanos = value,
            _ => {}
        }
    }
    // Negative numbers are the upper half; neither they nor a second's worth of nanoseconds make a duration.
    if seconds > i64::MAX as u64 || nanos > 999_999_999 {
        return None;
    }
    Some(Duration::new(seconds, nanos as u32))
}

/// The fields of a message, in order.
struct Fields<'a>(&'a [u8]);

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

impl<'a> Fields<'a> {
    /// All values of a field that holds bytes; `None` if the message is malformed.
    fn all(mut self, wanted: u64) -> Option<Vec<&'a [u8]>> {
        let mut found = Vec::new();
        while let Some((field, value)) = self.next()? {
            if let (true, Value::Bytes(bytes)) = (field == wanted, value) {
                found.push(bytes);
            }
        }
        Some(found)
    }

    /// The next field: `Some(None)` at the end, `None` if the message is malformed.
    fn next(&mut self) -> Option<Option<(u64, Value<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            _ => return None,
        };
        Some(Some((tag >> 3, value)))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Seven bits a byte, the lowest first, at most ten bytes.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for place in 0..10 {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << (7 * place).min(63);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with or without padding: gRPC sends it without and must take both.
fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    if text.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for quartet in text.chunks(4) {
        let mut word = 0u32;
        for byte in quartet {
            word = word << 6 | sextet(*byte)?;
        }
        word <<= 6 * (4 - quartet.len());
        out.extend_from_slice(&word.to_be_bytes()[1..quartet.len()]);
    }
    Some(out)
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for triplet in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=triplet.len()].copy_from_slice(triplet);
        let word = u32::from_be_bytes(word);
        for place in 0..=triplet.len() {
            out.push(char::from(ALPHABET[(word >> (18 - 6 * place) & 63) as usize]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Status{code: 14, message: "busy", details: [RetryInfo{retry_delay: 2.5 s}]}, written by Google's protobuf library.
    const BUSY: &str = "CA4SBGJ1c3kaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIAhCAyrXuAQ";

    #[test]
    fn what_googles_library_writes_is_read() {
        assert_eq!(read(BUSY), Some(Duration::from_millis(2500)));
        assert_eq!(read(&format!("{BUSY}==")), Some(Duration::from_millis(2500)), "padding is allowed");
    }

    #[test]
    fn what_is_cut_or_changed_says_nothing_or_something_and_never_panics() {
        for end in 0..BUSY.len() {
            let _ = read(&BUSY[..end]);
        }
        assert_eq!(read(&BUSY[..BUSY.len() - 4]), None);
        assert_eq!(read(""), None);
        assert_eq!(read("!!!!"), None);
        assert_eq!(read("AAAAA"), None);
    }

    #[test]
    fn base64_as_the_rfc_has_it() {
        for (plain, encoded) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(encode(plain.as_bytes()), encoded, "RFC 4648 10");
            assert_eq!(decode(encoded).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn a_number_has_ten_bytes_at_most() {
        let read = |bytes: &[u8]| Fields(bytes).varint();
        assert_eq!(read(&[0xac, 0x02]), Some(300), "protobuf's own example");
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(read(&most), Some(u64::MAX), "the tenth byte has the highest bit");
        most[9] = 0;
        assert_eq!(read(&most), Some(u64::MAX >> 1));
        assert_eq!(read(&[0x80; 10]), None, "an eleventh would follow");
        assert_eq!(read(&[0x80; 9]), None, "the tenth is missing");
    }

    #[test]
    fn negative_delays_are_none() {
        let mut duration = Vec::new();
        number(&mut duration, 1, -5i64 as u64);
        let mut info = Vec::new();
        bytes(&mut info, RETRY_INFO_DELAY, &duration);
        let mut any = Vec::new();
        bytes(&mut any, ANY_TYPE, b"type.googleapis.com/google.rpc.RetryInfo");
        bytes(&mut any, ANY_VALUE, &info);
        assert_eq!(retry_delay(&any), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in 0..=i64::MAX as u64, nanos in 0..1_000_000_000u32) {
            let delay = Duration::new(seconds, nanos);
            prop_assert_eq!(read(&write(delay)), Some(delay));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&encode(&bytes));
            prop_assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
        }
    }
}
