//! What a signed request says of itself: with `Digest` its path and how it is signed, with signatures like AWS's where it goes (the day, the
//! region, the service) and which of its headers are signed. It stands in a header that is secret, and is none: hosts, paths and headers
//! are called so.

use std::{cmp::Reverse, ops::Range};

/// What `Digest` says so (RFC 7616).
const OF_DIGEST: [&str; 5] = ["uri", "realm", "algorithm", "qop", "nc"];

/// What ends the place that AWS and its like sign for: `20261125/eu-west-1/s3/aws4_request`.
const END: &str = "_request";

/// The longest that it says of one thing: what is longer is no place, and would be looked for long.
const LONGEST: usize = 1024;

/// The most that it says.
const MOST: usize = 8;

/// Where in a secret it stands, in order.
pub(super) fn of_the_request(secret: &str) -> Vec<Range<usize>> {
    let begin = secret.len() - secret.trim_start().len();
    let scheme = begin..begin + secret[begin..].find(char::is_whitespace).unwrap_or(0);
    let ends = secret.match_indices(END).map(|(at, end)| at + end.len());
    let mut all: Vec<_> = ends.take(MOST).filter_map(|end| place(secret, end)).collect();
    if !all.is_empty() {
        all.extend(Some(scheme).filter(|scheme| secret[scheme.clone()].contains("-SHA")));
        all.extend(value(secret, "signedheaders"));
    } else if secret[scheme].eq_ignore_ascii_case("digest") {
        all.extend(OF_DIGEST.iter().filter_map(|name| value(secret, name)));
    }
    all.retain(|range| range.len() <= LONGEST);
    all.sort_unstable_by_key(|range| (range.start, Reverse(range.end)));
    // One may be the beginning of another.
    let mut end = 0;
    all.retain(|range| {
        let is_new = range.start >= end;
        end = end.max(range.end);
        is_new
    });
    all
}

/// Whether a part of a secret is one of these, or a piece of one, perhaps with its name.
pub(super) fn is_of_the_request(secret: &str, all: &[Range<usize>], part: &str) -> bool {
    let named = part.split_once('=').map(|(name, value)| (&part[..=name.len()], value.trim_matches('"')));
    all.iter().any(|place| {
        let has_its_name = |name: &str| secret[..place.start].trim_end_matches('"').ends_with(name);
        let says = |text: &str| secret[place.clone()].contains(text);
        says(part) || named.is_some_and(|(name, value)| !value.is_empty() && has_its_name(name) && says(value))
    })
}

/// What is left of a secret without these.
pub(super) fn others<'a>(secret: &'a str, all: &[Range<usize>]) -> Vec<&'a str> {
    let begins = [0].into_iter().chain(all.iter().map(|range| range.end));
    let ends = all.iter().map(|range| range.start).chain([secret.len()]);
    begins.zip(ends).filter_map(|(begin, end)| secret.get(begin..end)).filter(|text| !text.is_empty()).collect()
}

/// The place that ends there, which begins with a day behind the id of a key.
fn place(text: &str, end: usize) -> Option<Range<usize>> {
    let is_one = |c: char| c.is_ascii_alphanumeric() || "/_-.+".contains(c);
    let begin = text[..end].trim_end_matches(is_one).len();
    let (id, place) = text[begin..end].split_once('/')?;
    let day = place.split('/').next().unwrap_or_default();
    let is_day = day.len() >= 8 && day.chars().all(|c| c.is_ascii_digit() || c == '-');
    is_day.then_some(begin + id.len() + 1..end)
}

/// The value that stands under a name, up to the query of a path, or to the next name.
fn value(text: &str, name: &str) -> Option<Range<usize>> {
    let small = text.to_ascii_lowercase();
    let is_name = |at: &usize| !small[..*at].ends_with(|c: char| c.is_alphanumeric() || "-_".contains(c));
    let named = format!("{name}=");
    let at = small.match_indices(&named).map(|(at, _)| at).find(is_name)? + named.len();
    let (begin, ends): (_, &[char]) =
        if text[at..].starts_with('"') { (at + 1, &['"', '?']) } else { (at, &[',', ' ', '\t', '?', '&', '=']) };
    let end = text[begin..].find(ends).map_or(text.len(), |length| begin + length);
    // A list has the same sign in it as stands before a name.
    let end = if text[end..].starts_with('=') { begin + text[begin..end].rfind(';')? } else { end };
    (begin < end).then_some(begin..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_says_of_itself_is_found() {
        for (secret, said) in [
            (
                "AWS4-HMAC-SHA256 Credential=AKID7/20261125/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=f00",
                &["AWS4-HMAC-SHA256", "20261125/eu-west-1/s3/aws4_request", "host;x-amz-date"][..],
            ),
            (
                " TC3-HMAC-SHA256 Credential=AKID7/2026-11-25/cvm/tc3_request,SignedHeaders=host,Signature=f00",
                &["TC3-HMAC-SHA256", "2026-11-25/cvm/tc3_request", "host"],
            ),
            ("AKID7/20261125/eu-west-1/s3/aws4_request", &["20261125/eu-west-1/s3/aws4_request"]),
            (
                "Digest username=\"ann\", realm=\"a b\", nonce=\"n\", uri=\"/a/b?c=d\", qop=auth, nc=00000001, cnonce=\"c\", response=\"r\"",
                &["a b", "/a/b", "auth", "00000001"],
            ),
            (
                "AWS4-HMAC-SHA256 Credential=AKID7/20261125/eu-west-1/s3/aws4_request;SignedHeaders=host;x-a;Signature=f00",
                &["AWS4-HMAC-SHA256", "20261125/eu-west-1/s3/aws4_request", "host;x-a"],
            ),
            (
                "https://b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID7/20261125/eu-west-1/s3/aws4_request&X-Amz-SignedHeaders=host&X-Amz-Signature=f00",
                &["20261125/eu-west-1/s3/aws4_request"],
            ),
            ("Digest uri=\"", &[]),
            ("Bearer my_request", &[]),
            ("a/b/my_request", &[]),
            ("hunter2", &[]),
            ("", &[]),
        ] {
            let all = of_the_request(secret);
            assert!(all.iter().map(|place| &secret[place.clone()]).eq(said.iter().copied()), "{secret}: {all:?}");
            let others = others(secret, &all);
            assert_eq!(others.concat().len() + said.concat().len(), secret.len(), "{secret}: {others:?}");
        }
    }

    /// Who wrote it may have made it to take long.
    #[test]
    fn what_is_said_of_a_request_is_short_and_no_more_than_a_few_things() {
        let nested = format!("AKID/20261125{}", "/a_request".repeat(10_000));
        assert_eq!(of_the_request(&nested).len(), 1);
        let place = "AKID7/20261125/eu/s3/aws4_request ";
        let all = of_the_request(&place.repeat(10_000));
        assert!(all.len() == MOST && all.windows(2).all(|two| two[0].end <= two[1].start), "{all:?}");
        assert!(of_the_request(&format!("A/20261125/{}/aws4_request", "x".repeat(LONGEST))).is_empty());
    }

    #[test]
    fn what_belongs_to_it_has_its_name_or_none() {
        let secret = "Digest username=\"hunter2x\", realm=\"a b\", uri=\"/a/b\"";
        let all = of_the_request(secret);
        for (part, is_one) in [
            ("/a/b", true),
            ("/a", true),
            ("realm=\"a b", true),
            ("hunter2x", false),
            ("hunter2x=", false),
            ("x=a b", false),
            ("realm=", false),
        ] {
            assert_eq!(is_of_the_request(secret, &all, part), is_one, "{part}");
        }
    }
}
