//! The `Idempotency-Key` of a call: one for all its attempts, so that a server can tell a repeat from a new order.
//!
//! The header is a structured-field string (draft-ietf-httpapi-idempotency-key-header-07 section 2.1), that is, quoted.
//! Many servers (Stripe's among them) read the value as it stands; the quotes are then part of the key, the same in all
//! attempts, and do no harm.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::{
    error, fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

/// The header's name.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest key accepted, in bytes: what Stripe takes. Others take less (AWS client tokens: 64).
const LONGEST: usize = 255;

/// Whether a request carries a key, so that a server can tell when it comes again: one, and one that is a key. An empty header, as a
/// variable makes that is not set, is none.
///
/// ```
/// use http::{HeaderMap, HeaderValue};
/// use relent::wire::{IDEMPOTENCY_KEY, has_idempotency_key};
///
/// let headers = |value| HeaderMap::from_iter([(IDEMPOTENCY_KEY, HeaderValue::from_static(value))]);
/// assert!(has_idempotency_key(&headers("order-17")) && has_idempotency_key(&headers("\"order-17\"")));
/// assert!(!has_idempotency_key(&headers("")) && !has_idempotency_key(&headers("\"\"")));
/// ```
pub fn has_idempotency_key(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    matches!((values.next(), values.next()), (Some(value), None) if IdempotencyKey::read(value).is_some())
}

/// An idempotency key: 1 to 255 printable ASCII characters.
///
/// ```
/// use relent::wire::IdempotencyKey;
///
/// let key = IdempotencyKey::from_random(0x8e03978e_40d5_43dd_bc93_6894a57f9324);
/// assert_eq!(key.to_string(), "8e03978e-40d5-43dd-bc93-6894a57f9324");
/// assert_eq!(key.value(), "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"");
///
/// let order = IdempotencyKey::new("order \"7\"").unwrap();
/// assert_eq!(order.value(), r#""order \"7\"""#);
/// assert_eq!(IdempotencyKey::read(&order.value()), Some(order));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// A key that somebody chose.
    ///
    /// # Errors
    ///
    /// [`BadKey`] if it is empty, longer than 255 bytes, or has characters that a structured-field string cannot hold.
    pub fn new(key: impl Into<String>) -> Result<IdempotencyKey, BadKey> {
        let key = key.into();
        if key.is_empty() {
            return Err(BadKey::Empty);
        }
        if key.len() > LONGEST {
            return Err(BadKey::TooLong);
        }
        if !key.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) {
            return Err(BadKey::Character);
        }
        Ok(IdempotencyKey(key))
    }

    /// A new key, for one call: made once, before its first attempt, and sent with all of them. Out of the operating
    /// system's entropy, a counter, the process and the time, so that no two are alike, also in processes that were
    /// forked from one.
    ///
    /// ```
    /// use relent::{Policy, wire::IdempotencyKey};
    ///
    /// # fn pay(_: &IdempotencyKey) -> Result<(), &'static str> { Ok(()) }
    /// let key = IdempotencyKey::random();
    /// Policy::default().retry_blocking(|_| pay(&key)).unwrap();
    /// assert_ne!(key, IdempotencyKey::random());
    /// ```
    pub fn random() -> IdempotencyKey {
        static STATE: OnceLock<RandomState> = OnceLock::new();
        static MADE: AtomicU64 = AtomicU64::new(0);
        let state = STATE.get_or_init(RandomState::new);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let call = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed), now);
        let half = |nth: u8| u128::from(state.hash_one((call, nth)));
        IdempotencyKey::from_random(half(0) << 64 | half(1))
    }

    /// A key out of 128 random bits: a UUID of version 4 (RFC 9562 5.4), which the draft recommends.
    ///
    /// The bits must come from a source that never repeats: a seed that is given again makes the same key again, and
    /// the server will not carry out the second order.
    pub fn from_random(bits: u128) -> IdempotencyKey {
        let uuid = bits & !(0xf000 << 64) & !(0xc000 << 48) | (0x4000 << 64) | (0x8000 << 48);
        let hex = format!("{uuid:032x}");
        IdempotencyKey([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
    }

    /// The header's value: the key in quotes, with `"` and `\` escaped (RFC 9651 3.3.3).
    pub fn value(&self) -> HeaderValue {
        let mut quoted = String::with_capacity(self.0.len() + 2);
        quoted.push('"');
        for c in self.0.chars() {
            if matches!(c, '"' | '\\') {
                quoted.push('\\');
            }
            quoted.push(c);
        }
        quoted.push('"');
        HeaderValue::from_str(&quoted).expect("printable ASCII is a header value")
    }

    /// The key that a request's header holds: a quoted string, or, as many clients send it, the bare text.
    pub fn read(value: &HeaderValue) -> Option<IdempotencyKey> {
        let text = value.to_str().ok()?.trim_matches([' ', '\t']);
        let key = match text.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => text.into(),
        };
        IdempotencyKey::new(key).ok()
    }

    /// The key as text, without quotes.
    ///
    /// ```
    /// # use relent::wire::IdempotencyKey;
    /// assert_eq!(IdempotencyKey::new("order-17").unwrap().as_str(), "order-17");
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text of a string whose opening quote has been taken off; `None` if it does not end where it should.
/// Parameters after it say nothing that is known, and are skipped (RFC 9651 4.2).
fn unquote(quoted: &str) -> Option<String> {
    let mut key = String::new();
    let mut rest = quoted.chars();
    loop {
        match rest.next()? {
            '\\' => key.push(rest.next().filter(|c| matches!(c, '"' | '\\'))?),
            '"' => break,
            c => key.push(c),
        }
    }
    let rest = rest.as_str();
    (rest.is_empty() || rest.starts_with(';')).then_some(key)
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is no idempotency key.
///
/// ```
/// use relent::wire::{BadKey, IdempotencyKey};
///
/// assert_eq!(IdempotencyKey::new("").unwrap_err(), BadKey::Empty);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadKey {
    /// Nothing was given.
    Empty,
    /// It has more than 255 bytes.
    TooLong,
    /// It has a character that is not printable ASCII.
    Character,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadKey::Empty => "the idempotency key is empty",
            BadKey::TooLong => "the idempotency key is longer than 255 bytes",
            BadKey::Character => "the idempotency key has a character that is not printable ASCII",
        })
    }
}

impl error::Error for BadKey {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<String> {
        IdempotencyKey::read(&HeaderValue::from_str(text).unwrap()).map(|key| key.to_string())
    }

    #[test]
    fn quoted_or_bare() {
        assert_eq!(read("\"abc\"").as_deref(), Some("abc"));
        assert_eq!(read("abc").as_deref(), Some("abc"));
        assert_eq!(read(" \"abc\" ").as_deref(), Some("abc"));
        assert_eq!(read("\"abc\";p=1").as_deref(), Some("abc"));
        assert_eq!(read(r#""a\"b\\c""#).as_deref(), Some(r#"a"b\c"#));
        for broken in ["", "\"", "\"abc", "\"abc\"x", r#""a\b""#, "\"\"", r#""a\"#] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }

    #[test]
    fn what_is_no_key_says_why() {
        let why = |text: &str| IdempotencyKey::new(text).unwrap_err();
        assert_eq!(why(""), BadKey::Empty);
        assert_eq!(why(&"x".repeat(256)), BadKey::TooLong);
        assert_eq!(why("a\nb"), BadKey::Character);
        assert_eq!(why("schlüssel"), BadKey::Character);
        assert!(IdempotencyKey::new("x".repeat(255)).is_ok());
    }

    #[test]
    fn random_keys_are_uuids_of_version_4() {
        assert_eq!(IdempotencyKey::from_random(0).as_str(), "00000000-0000-4000-8000-000000000000");
        assert_eq!(IdempotencyKey::from_random(u128::MAX).as_str(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn no_two_keys_are_alike() {
        let keys: std::collections::HashSet<_> = (0..10_000).map(|_| IdempotencyKey::random()).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|key| key.as_str().len() == 36));
    }

    proptest! {
        #[test]
        fn every_key_is_read_back(text in "[ -~]{1,255}") {
            let key = IdempotencyKey::new(text).unwrap();
            prop_assert_eq!(IdempotencyKey::read(&key.value()), Some(key));
        }

        #[test]
        fn no_value_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let _ = IdempotencyKey::read(&value);
            }
        }

        #[test]
        fn random_bits_are_kept(a: u128, b: u128) {
            // 122 of the 128 bits are random.
            let fixed: u128 = (0xf000 << 64) | (0xc000 << 48);
            let same = a & !fixed == b & !fixed;
            prop_assert_eq!(IdempotencyKey::from_random(a) == IdempotencyKey::from_random(b), same);
        }
    }
}
