//! What of parameters that are sent lets somebody in.

use super::{
    given::hidden_parts,
    names::is_secret,
    plain,
    query::{plainly, secret_parameters},
    value::as_shown,
};
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;

/// What is secret of a pair as queries and forms have it: the value, if its name says so, and else what says itself that it is a secret.
pub(crate) fn secrets_of_a_pair(pair: &str) -> BTreeSet<String> {
    let (name, value) = pair.split_once('=').unwrap_or(("", pair));
    if is_secret(&plainly(name)) {
        return BTreeSet::from([value.to_owned()]);
    }
    // It may be a URL with pairs of its own, or be written out twice.
    let once = percent_decode_str(value).decode_utf8_lossy();
    [once, plainly(value)].iter().flat_map(|value| secrets_of_a_value(value)).collect()
}

/// What of a value says itself that it is a secret. It may be a URL with more in it than a URL has.
fn secrets_of_a_value(value: &str) -> Vec<String> {
    let narrow = plain::narrow(value);
    let shown = [as_shown(&narrow, false).1, secret_parameters(&narrow, &['&'])];
    shown.iter().flat_map(|shown| hidden_parts(&narrow, shown)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_of_a_pair_says_itself_that_it_is_a_secret_is_found() {
        for (pair, secrets) in [
            ("token=a&b", &["a&b"][..]),
            ("to%6ben=%41", &["%41"]),
            ("data=%7B%22password%22%3A%22a%22%7D", &["\"a\""]),
            ("next=https%3A%2F%2Fh%2F%3Ftoken%3Da", &["a"]),
            ("next=https%3A%2F%2Fh%2F%3Fcode%3Da%2526b", &["a", "a%26b"]),
            ("data=%257B%2522password%2522%253A%2522a%2522%257D", &["\"a\""]),
            ("next=https%3A%2F%2Fh%2F%3Fcode%3Da%257B", &["a%7B", "a{"]),
            ("q=a", &[]),
            ("q", &[]),
        ] {
            assert!(secrets_of_a_pair(pair).iter().eq(secrets), "{pair}: {:?}", secrets_of_a_pair(pair));
        }
    }
}
