//! Users with passwords, as `-u` has them, and as a header does.

use base64::{
    Engine,
    alphabet::{Alphabet, STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// What of `ann:password` is secret: without a password it is the user.
pub(crate) fn secret_of_a_user(user: &str) -> &str {
    match user.split_once(':') {
        Some((name, "")) => name,
        Some((_, password)) => password,
        None => user,
    }
}

/// The secret that a header says in base64 behind `Basic`.
pub(super) fn undone(value: &str) -> Option<String> {
    let (scheme, encoded) = value.trim().split_once(char::is_whitespace)?;
    let decoded = |alphabet: &Alphabet| {
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(alphabet, config.with_decode_allow_trailing_bits(true)).decode(encoded.trim()).ok()
    };
    let user = scheme.eq_ignore_ascii_case("basic").then(|| decoded(&STANDARD).or_else(|| decoded(&URL_SAFE)))??;
    Some(secret_of_a_user(&String::from_utf8_lossy(&user)).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_says_in_base64_is_known() {
        for (value, secret) in [
            ("Basic YW5uOkh1bnRlcjJMb25nZXI=", "Hunter2Longer"),
            ("basic\tYW5uOkh1bnRlcjJMb25nZXI", "Hunter2Longer"),
            ("BASIC  YW5uOg==", "ann"),
            ("Basic OnA6dz8_fg==", "p:w??~"),
            ("Basic OnA6dz8/fg==", "p:w??~"),
            ("Basic aHVudGVyMg==", "hunter2"),
        ] {
            assert_eq!(undone(value).as_deref(), Some(secret), "{value}");
        }
        for other in ["Bearer YW5uOg==", "Basic", "Basic !", "", "YW5uOg=="] {
            assert_eq!(undone(other), None, "{other}");
        }
    }
}
