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

/// The users and passwords that a text says in base64, each behind a `Basic`, and whatever signs there are in between.
pub(super) fn undone(text: &str) -> Vec<String> {
    const NAME: &str = "basic";
    let decoded = |encoded: &str, alphabet: &Alphabet| {
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(alphabet, config.with_decode_allow_trailing_bits(true)).decode(encoded).ok()
    };
    let small = text.to_ascii_lowercase();
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(begin) = small[at..].find(NAME).map(|begin| at + begin).filter(|_| all.len() < MOST) {
        at = begin + NAME.len();
        let behind = &text[at..];
        let spaced = behind.strip_prefix("\\u0020").unwrap_or(behind);
        let encoded = spaced.trim_start_matches(|c: char| c.is_whitespace() || "+:=\"'".contains(c));
        if encoded.len() == behind.len() || text[..begin].ends_with(|c: char| c.is_alphanumeric()) {
            continue;
        }
        let end = encoded.find(|c: char| !c.is_ascii_alphanumeric() && !"+/-_".contains(c)).unwrap_or(encoded.len());
        let (encoded, rest) = encoded.split_at(end);
        let filled = rest.len() - rest.trim_start_matches('=').len();
        at = text.len() - rest.len() + filled;
        if (1..=LONGEST).contains(&encoded.len()) {
            all.extend(decoded(encoded, &STANDARD).or_else(|| decoded(encoded, &URL_SAFE)));
        }
    }
    all.into_iter().map(|user| String::from_utf8_lossy(&user).into_owned()).collect()
}

/// The most users in one text.
const MOST: usize = 16;

/// The longest of them in base64.
const LONGEST: usize = 64 << 10;

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
            ("Authorization: Basic aHVudGVyMg==, Bearer abc", "hunter2"),
            ("{\"authorization\":\"Basic aHVudGVyMg==\"}", "hunter2"),
            ("auth='Basic:aHVudGVyMg'; basics=1", "hunter2"),
            ("auth=Basic+OnA6dz8/fg", ":p:w??~"),
            ("Basic\\u0020aHVudGVyMg", "hunter2"),
        ] {
            assert_eq!(undone(value), [user], "{value}");
        }
        for other in ["Bearer YW5uOg==", "Basic", "Basic !", "", "YW5uOg=="] {
            assert!(undone(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn a_text_is_looked_at_once() {
        for word in ["basic=", "basic/", "basic aa=", "basic ", "=basic:"] {
            assert!(undone(&word.repeat((1 << 20) / word.len())).len() <= MOST, "{word}");
        }
    }

    #[test]
    fn a_key_may_stand_on_either_side() {
        for (user, all) in [("ann:p:w", ["ann:p:w", "ann", "p:w"]), ("key", ["key", "key", ""]), (":", [":", "", ""])] {
            assert!(secrets_of_a_user(user).eq(all), "{user}");
        }
    }
}
