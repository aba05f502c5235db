//! Values of headers, as heads of requests and answers are shown.
//!
//! What is known of a header by its name is shown but for URLs and what says itself that it lets others in. All others have values that
//! nobody can know, so of them no more is shown than of an argument ([`value`]).

use super::{
    HIDDEN, given,
    most::Budget,
    names::{SCHEMES, is_secret_header},
    plain,
    query::{BEFORE, parameters, secret_parameters},
    texts::text,
    url::{path, url},
    value::{self, is_odd},
};
use std::borrow::Cow;

/// The same within a value, where they are not what a header is dropped for.
const OTHER_SCHEMES: [&str; 5] = ["key", "sharedkey", "digest", "hawk", "password"];

/// Headers whose value is one URL, perhaps without scheme and host.
const URL_HEADERS: [&str; 4] = ["location", "content-location", "referer", "refresh"];

/// Others that have a URL or a host in them.
const WITH_URLS: [&str; 5] = ["link", "alt-svc", "origin", "access-control-allow-origin", "host"];

/// Headers whose value has a grammar of its own, and is no secret.
const KNOWN: [&str; 54] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "alt-svc",
    "cache-control",
    "cache-status",
    "connection",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-range",
    "content-security-policy",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "host",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "last-modified",
    "link",
    "origin",
    "pragma",
    "prefer",
    "proxy-authenticate",
    "range",
    "ratelimit",
    "ratelimit-policy",
    "relent-attempt",
    "retry-after",
    "server",
    "server-timing",
    "strict-transport-security",
    "te",
    "traceparent",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
];

/// The value of a header.
///
/// ```
/// use relent_cli::redact::header;
///
/// assert_eq!(header("Private-Token", "glpat-1"), "***");
/// assert_eq!(header("Location", "/in?session=1"), "/in?session=***");
/// assert_eq!(header("Location", "//ann:pw@host/in"), "//***@host/in");
/// assert_eq!(header("Referer", "/in/token=1"), "/in/token=***");
/// assert_eq!(header("Accept", "text/plain"), "text/plain");
/// ```
pub fn header<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    header_within(name, value, &mut Budget::of(value))
}

/// The same as far as something is left to look with.
pub(super) fn header_within<'a>(name: &str, value: &'a str, budget: &mut Budget) -> Cow<'a, str> {
    match given::without_secrets_within(value, budget) {
        Cow::Borrowed(value) => header_of_others(name, value),
        // A server may say again what it was sent.
        Cow::Owned(value) => Cow::Owned(header_of_others(name, &value).into_owned()),
    }
}

/// What is hidden of a header that is sent: who gets it may say it again.
pub(crate) fn hidden_of_header(name: &str, value: &str) -> Vec<String> {
    let narrow = plain::narrow(value);
    given::hidden_parts(&narrow, &header_as_it_is(name, &narrow)).into_iter().map(str::to_owned).collect()
}

/// Whether a header has a URL or a host in it, which are of plain letters.
pub(crate) fn is_of_urls(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    URL_HEADERS.contains(&&*name) || WITH_URLS.contains(&&*name)
}

/// Whether a header has a value that is no secret.
pub(crate) fn is_known_header(name: &str) -> bool {
    KNOWN.contains(&name.to_ascii_lowercase().as_str())
}

fn header_of_others<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    match plain::narrow(value) {
        Cow::Borrowed(value) => header_as_it_is(name, value),
        Cow::Owned(narrow) => match header_as_it_is(name, &narrow) {
            same if same == narrow => Cow::Borrowed(value),
            other => Cow::Owned(other.into_owned()),
        },
    }
}

fn header_as_it_is<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret_header(name, value) {
        Cow::Borrowed(HIDDEN)
    } else if URL_HEADERS.contains(&name.to_ascii_lowercase().as_str()) && !value.contains("://") {
        // Who reads URLs takes no notice of tabs. A host may follow two slashes of either kind, or the name of a scheme alone.
        let value = value.replace('\t', "");
        if let Some(at) = value.to_ascii_lowercase().find("url=").filter(|_| name.eq_ignore_ascii_case("refresh")) {
            let (before, after) = value.split_at(at + "url=".len());
            return Cow::Owned(format!("{before}{}", url(after)));
        }
        let is_path = value.starts_with(['/', '?', '#']) && !value[1..].starts_with(['/', '\\']);
        Cow::Owned(if is_path { path(&value) } else { url(&value) })
    } else if !is_known_header(name) {
        let is_path = value.starts_with('/') && !value[1..].starts_with(['/', '\\']) && !value.contains(is_odd);
        let is_part_of_a_url = value.starts_with(['/', '?', '#']);
        Cow::Owned(match (is_path, is_part_of_a_url) {
            (true, _) => what_may_be_a_path(value),
            (_, true) => value::shown(&url(value)),
            _ => value::shown(value),
        })
    } else {
        match text(value) {
            Cow::Borrowed(value) => inside(name, value),
            Cow::Owned(value) => Cow::Owned(inside(name, &value).into_owned()),
        }
    }
}

/// What may be a path: of what stands before a query no more is shown than of an argument.
fn what_may_be_a_path(value: &str) -> String {
    let place = &value[..value.find(['?', '#', ';']).unwrap_or(value.len())];
    match value::shown(place) {
        same if same == place => path(value),
        less => path(&less),
    }
}

/// What may stand anywhere in the value of a header: a path with secret parameters, and the name of a scheme with what lets in behind.
fn inside<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut out = String::new();
    let mut rest = value;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        let (before, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(char::is_whitespace).unwrap_or(word.len()));
        out.push_str(before);
        out.push_str(&if word.contains("://") {
            Cow::Borrowed(word)
        } else {
            Cow::Owned(word.split_inclusive(",<").map(of_a_word).collect())
        });
        let last = &word[word.trim_end_matches(is_word).len()..];
        let begins = word[..word.len() - last.len()].chars().next_back();
        let is_scheme = SCHEMES.iter().chain(&OTHER_SCHEMES).any(|scheme| last.eq_ignore_ascii_case(scheme))
            && begins.is_none_or(|c| "=,;:\"'(".contains(c))
            && !name.to_ascii_lowercase().ends_with("authenticate");
        rest = after;
        if is_scheme && !after.trim().is_empty() {
            out.push(' ');
            out.push_str(HIDDEN);
            rest = "";
        }
    }
    out.push_str(rest);
    if out == value { Cow::Borrowed(value) } else { Cow::Owned(out) }
}

/// What is shown of a word with parameters: of a path no more than of a URL.
fn of_a_word(word: &str) -> String {
    let (bare, end) = word.split_at(word.trim_end_matches([';', ',', '<', '>', '"', '\'', ')']).len());
    let (begin, bare) = bare.split_at(bare.len() - bare.trim_start_matches(['<', '"', '\'', '(']).len());
    let has_query = bare.find('?').is_some_and(|query| bare[query..].contains('='));
    // A host may follow two slashes of either kind.
    if bare.starts_with(['/', '\\']) && bare[1..].starts_with(['/', '\\']) {
        format!("{begin}{}{end}", url(bare))
    } else if bare.starts_with(['/', '.', '?']) || has_query {
        format!("{begin}{}{end}", parameters(bare))
    } else {
        secret_parameters(word, &BEFORE)
    }
}
