//! What is told although it stands in a secret, too: hosts that are asked, and names that somebody chose.

use super::plain::is_of_a_name;
use std::ops::Range;

/// Whether what stands at a place of a text is told all the same: a part of a name of these, which are in small letters, or of an address of these
/// that stands there as a whole, or its host. Elsewhere a password that is a part of a host's name is one as any other.
pub(super) fn is_told(told: &[String], text: &str, place: &Range<usize>) -> bool {
    // There are no less small letters than there are others, and each has four bytes at most.
    let mut told = told.iter().filter(|one| place.len() <= 4 * one.len()).peekable();
    let small = told.peek().map(|_| text[place.clone()].to_lowercase()).unwrap_or_default();
    told.any(|one| match one.split_once("://") {
        None => one.contains(&small),
        Some((_, host)) => {
            let host = host.trim_end_matches('/');
            let name = host.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix(':').unwrap_or(host);
            [one.as_str(), name, host].iter().any(|whole| is_around(whole, text, place, &small))
        }
    })
}

/// Whether a text has this host, or address, as a whole where such a part of it stands: as no part of another word, of a path or of a setting.
fn is_around(host: &str, text: &str, place: &Range<usize>, part: &str) -> bool {
    (0..=host.len().saturating_sub(part.len())).any(|at| {
        let Some(begin) = place.start.checked_sub(at).filter(|_| host.as_bytes()[at..].starts_with(part.as_bytes()))
        else {
            return false;
        };
        let end = begin + host.len();
        text.get(begin..end).is_some_and(|said| said.eq_ignore_ascii_case(host)) && {
            let (before, behind) = (&text[..begin], &text[end..]);
            let is_in_a_path = before.ends_with('/') && !before.ends_with("//");
            let begins = before.chars().next_back().is_none_or(|c| !is_of_a_name(c) && !":=".contains(c));
            let ends =
                host.ends_with('/') || behind.chars().next().is_none_or(|c| !is_of_a_name(c) && !"@=".contains(c));
            !is_in_a_path && begins && ends
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host is told where it stands as a whole.
    #[test]
    fn a_secret_that_is_a_part_of_a_host_is_hidden_elsewhere() {
        let told = [
            "http://shop2024prod.example:8080/",
            "redis://app2024prod:1/",
            "http://token777.example/",
            "http://[fe80::1]/",
            "annabelle7",
        ]
        .map(str::to_owned);
        // Where the first of the marked ones stands.
        let is_told = |text: &str| {
            let begin = text.find('<').unwrap();
            let end = text.find('>').unwrap() - 1;
            is_told(&told, &text.replace(['<', '>'], ""), &(begin..end))
        };
        for text in [
            "GET http://<Shop2024prod>.example:8080/cart",
            "host: <shop2024prod>.example:8080",
            "cannot find <shop2024prod>.example: gone",
            "to https://www.<shop2024prod>.example/x",
            "store redis://***@<app2024prod>:1/2",
            "<app2024prod>:1 is away",
            "no \"<app2024prod>\"",
            "at <http://token777.example/>",
            "<token777.example>",
            "at http://<[fe80::1]>/",
            "<anna>belle7 of x",
        ] {
            assert!(is_told(text), "{text}");
        }
        for text in [
            "to /login/wrong-<shop2024prod>/x",
            "no <shop2024prod>, shop2024prod.example",
            "no <shop2024prod>.examples",
            "store redis://***@app2024prod:1/<app2024prod>",
            "ann:<app2024prod>@x",
            "pw=<app2024prod>",
            "<annabelle7x>",
        ] {
            assert!(!is_told(text), "{text}");
        }
    }
}
