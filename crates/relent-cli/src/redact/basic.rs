//! Users with passwords, as `-u` has them, and as a header does.

use base64::{
    Engine,
    alphabet::{Alphabet, STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// What of `ann:password` is secret: all of it and either side, since services take a key for a user with any password.
pub(super) fn secrets_of_a_user(user: &str) -> impl Iterator<Item = String> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    [user, name, password].into_iter().map(str::to_owned)
}

/// The user and the password that a header says in base64 behind `Basic`.
pub(super) fn undone(value: &str) -> Option<String> {
    let (scheme, encoded) = value.trim().split_once(char::is_whitespace)?;
    let decoded = |alphabet: &Alphabet| {
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(alphabet, config.with_decode_allow_trailing_bits(true)).decode(encoded.trim()).ok()
    };
    let user = scheme.eq_ignore_ascii_case("basic").then(|| decoded(&STANDARD).or_else(|| decoded(&URL_SAFE)))??;
    Some(String::from_utf8_lossy(&user).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_says_in_base64_is_known() {
        for (value, user) in [
            ("Basic YW5uOkh1bnRlcjJMb25nZXI=", "ann:Hunter2Longer"),
            ("basic\tYW5uOkh1bnRlcjJMb25nZXI", "ann:Hunter2Longer"),
            ("BASIC  YW5uOg==", "ann:"),
            ("Basic OnA6dz8_fg==", ":p:w??~"),
            ("Basic OnA6dz8/fg==", ":p:w??~"),
            ("Basic aHVudGVyMg==", "hunter2"),
        ] {
            assert_eq!(undone(value).as_deref(), Some(user), "{value}");
        }
        for other in ["Bearer YW5uOg==", "Basic", "Basic !", "", "YW5uOg=="] {
            assert_eq!(undone(other), None, "{other}");
        }
    }

    #[test]
    fn a_key_may_stand_on_either_side() {
        for (user, all) in [("ann:p:w", ["ann:p:w", "ann", "p:w"]), ("key", ["key", "key", ""]), (":", [":", "", ""])] {
            assert!(secrets_of_a_user(user).eq(all), "{user}");
        }
    }
}
