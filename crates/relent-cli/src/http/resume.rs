//! Going on with a download where it broke off (RFC 9110 section 14), and when that is safe.
//!
//! A part may only be joined to a part of the same representation. So a download is resumed only if its first response
//! had a length and a strong validator; the request says `If-Range` with it, and a 206 is taken only if it has exactly
//! what is missing.

use super::coding;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use relent::wire::http_date;
use sha2::{Digest, Sha256};
use url::{Position, Url};

/// What is needed to ask for the rest of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resume {
    /// What the whole body is known by; without it, a file that the user says is a part.
    validator: Option<HeaderValue>,
    /// The length of the whole body, as far as it is known.
    total: Option<u64>,
    /// The body must not have changed since, in seconds since 1970.
    unchanged_since: Option<i64>,
    /// Who sent what is there, as far as it is known: a validator is one resource's alone (RFC 9110, 8.8.3).
    place: Option<String>,
}

/// The place that a URL names, as it may be written down: its query may have secrets in it, and nobody but the server knows what of
/// it names a file, and what is a signature.
fn place(url: &Url) -> String {
    BASE64_STANDARD.encode(Sha256::digest(&url[..Position::AfterQuery]))
}

impl Resume {
    /// What a response with this head allows; `None` if its body can only be had from the start.
    /// `length` is that of the body as it is written, `now` in seconds since 1970.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap, length: Option<u64>, now: i64) -> Option<Resume> {
        let refused = headers.get(header::ACCEPT_RANGES).is_some_and(|units| units == "none");
        if status != StatusCode::OK || refused || headers.contains_key(header::CONTENT_ENCODING) {
            return None;
        }
        let (validator, total) = (validator(headers, now)?, length.filter(|length| *length > 0)?);
        Some(Resume { validator: Some(validator), total: Some(total), unchanged_since: None, place: None })
    }

    /// The same, of what this URL sends.
    #[must_use]
    pub(super) fn at(self, url: &Url) -> Resume {
        Resume { place: Some(place(url)), ..self }
    }

    /// Whether what this URL sends can be a part of it.
    pub(super) fn is_of(&self, url: &Url) -> bool {
        self.place.as_ref().is_none_or(|known| *known == place(url))
    }

    /// A file of which nothing is known but when it was last written, which the user says is a part.
    pub(super) fn of_a_file(written: i64) -> Resume {
        Resume { validator: None, total: None, unchanged_since: Some(written), place: None }
    }

    /// Whether nothing but the user says that what is there is a part.
    pub(super) fn is_the_users_word(&self) -> bool {
        self.validator.is_none()
    }

    /// The same with what a 206 with these headers says about the whole, so that a later run knows it.
    pub(super) fn of_part(headers: &HeaderMap, now: i64) -> Option<Resume> {
        let (_, _, total) = content_range(headers)?;
        let validator = Some(validator(headers, now)?);
        Some(Resume { validator, total: Some(total), unchanged_since: None, place: None })
    }

    /// As it is kept for a later run; `None` if there is nothing to know it by.
    pub(super) fn to_text(&self) -> Option<String> {
        let place = self.place.as_deref().unwrap_or_default();
        Some(format!("{}\n{}\n{place}\n", self.validator.as_ref()?.to_str().ok()?, self.total?))
    }

    /// What an earlier run kept.
    pub(super) fn from_text(text: &str) -> Option<Resume> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let (validator, total, place, None) = (lines.next()?, lines.next()?, lines.next()?, lines.next()) else {
            return None;
        };
        let (validator, total) = (Some(HeaderValue::from_str(validator).ok()?), Some(number(total)?));
        let place = Some(place.to_owned()).filter(|place| !place.is_empty());
        Some(Resume { validator, total, unchanged_since: None, place })
    }

    /// The headers that ask this URL for what is missing after `have` bytes, or for all of it if what it sends can be no part.
    pub(super) fn ask_at(&self, url: &Url, have: u64, headers: &mut HeaderMap) {
        if self.is_of(url) {
            self.ask(have, headers);
        } else {
            headers.remove(header::RANGE);
            headers.remove(header::IF_RANGE);
        }
    }

    /// The headers that ask for what is missing after `have` bytes.
    pub(super) fn ask(&self, have: u64, headers: &mut HeaderMap) {
        let range = HeaderValue::from_str(&format!("bytes={have}-")).expect("digits are a header value");
        headers.insert(header::RANGE, range);
        if let Some(validator) = &self.validator {
            headers.insert(header::IF_RANGE, validator.clone());
        }
        // A range of an encoded body would be no range of ours.
        headers.insert(header::ACCEPT_ENCODING, coding::IDENTITY);
    }

    /// Whether a 206 with these headers has exactly what is missing after `have` bytes.
    pub(super) fn is_answered_by(&self, have: u64, headers: &HeaderMap) -> bool {
        let is_same = self.validator.as_ref().is_none_or(|validator| is_known_by(validator, headers));
        let is_rest = content_range(headers).is_some_and(|(first, last, total)| {
            first == have && last.checked_add(1) == Some(total) && self.total.is_none_or(|known| known == total)
        });
        let is_plain = headers.get_all(header::CONTENT_ENCODING).iter().all(|coding| coding == "identity");
        is_same && is_rest && is_plain && self.is_unchanged(headers)
    }

    /// Whether a 416 with these headers says that the `have` bytes are all there is (RFC 9110 15.5.17).
    pub(super) fn is_all(&self, have: u64, headers: &HeaderMap) -> bool {
        let total = bytes(headers).and_then(|range| number(range.strip_prefix("*/")?));
        let says_which = headers.contains_key(header::ETAG) || headers.contains_key(header::LAST_MODIFIED);
        let is_same = self.validator.as_ref().is_none_or(|known| !says_which || is_known_by(known, headers));
        is_same && total == Some(have) && self.total.is_none_or(|known| known == have) && self.is_unchanged(headers)
    }

    fn is_unchanged(&self, headers: &HeaderMap) -> bool {
        let Some(since) = self.unchanged_since else { return true };
        let modified = headers.get(header::LAST_MODIFIED).and_then(|value| http_date(value.to_str().ok()?, since));
        modified.is_none_or(|modified| modified <= since)
    }

    /// The length of the whole body, if it is known.
    pub(super) fn total(&self) -> Option<u64> {
        self.total
    }
}

/// A strong `ETag`, or a `Last-Modified` that is strong because the response was made at least a second later
/// (RFC 9110 8.8.2.2).
fn validator(headers: &HeaderMap, now: i64) -> Option<HeaderValue> {
    // Of two nobody knows which is true.
    let one = |name| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())
    };
    if headers.contains_key(header::ETAG) {
        return one(header::ETAG).filter(|tag| is_tag(tag)).cloned();
    }
    let date = |name| http_date(one(name)?.to_str().ok()?, now);
    (date(header::DATE)? > date(header::LAST_MODIFIED)?).then(|| headers[header::LAST_MODIFIED].clone())
}

/// Whether a part says of itself that it is of what is known by this, and by nothing else (RFC 9110 15.3.7.3): a server that does
/// not know `If-Range` sends the rest of whatever is there now.
fn is_known_by(validator: &HeaderValue, headers: &HeaderMap) -> bool {
    let all = |name| headers.get_all(name).iter().collect::<Vec<_>>();
    match is_tag(validator) {
        true => all(header::ETAG) == [validator],
        false => all(header::LAST_MODIFIED) == [validator] && all(header::ETAG).is_empty(),
    }
}

/// A strong tag is in quotes; a weak one begins with `W/`.
fn is_tag(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    bytes.len() >= 2 && bytes.starts_with(b"\"") && bytes.ends_with(b"\"")
}

/// Whether a part is the whole: only if it says so (RFC 9110, 14.4).
pub(super) fn is_whole(headers: &HeaderMap) -> bool {
    content_range(headers).is_some_and(|(first, last, total)| first == 0 && last.checked_add(1) == Some(total))
}

/// The bytes that a part says it has, be it known how many there are in all or not.
pub(super) fn part_length(headers: &HeaderMap) -> Option<u64> {
    let (first, last) = bytes(headers)?.split_once('/')?.0.split_once('-')?;
    number(last)?.checked_sub(number(first)?)?.checked_add(1)
}

/// First, last and length of `Content-Range: bytes 5-9/10`. An unknown length (`*`) says too little.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64, u64)> {
    let (range, total) = bytes(headers)?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((number(first)?, number(last)?, number(total)?))
}

/// What `Content-Range` says of bytes, in small or capital letters. It is said once: of two nobody knows which is true.
fn bytes(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(header::CONTENT_RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let (unit, range) = line.to_str().ok()?.split_once(' ')?;
    unit.eq_ignore_ascii_case("bytes").then_some(range)
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    const NOW: i64 = 1_790_000_000;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| (HeaderName::from_static(k), HeaderValue::from_static(v))).collect()
    }

    fn of(pairs: &[(&'static str, &'static str)]) -> Option<Resume> {
        Resume::of(StatusCode::OK, &headers(pairs), Some(10), NOW)
    }

    #[test]
    fn a_strong_validator_and_a_length_are_needed() {
        assert!(of(&[("etag", "\"v1\"")]).is_some());
        assert!(of(&[("etag", "W/\"v1\"")]).is_none(), "weak");
        assert!(of(&[("etag", "v1")]).is_none(), "not quoted");
        assert!(of(&[]).is_none());
        let mut both = headers(&[("etag", "\"v1\"")]);
        both.append("etag", HeaderValue::from_static("\"v2\""));
        assert!(Resume::of(StatusCode::OK, &both, Some(10), NOW).is_none(), "two that differ");
        assert!(of(&[("etag", "\"v1\""), ("accept-ranges", "none")]).is_none());
        assert!(of(&[("etag", "\"v1\""), ("content-encoding", "gzip")]).is_none());
        assert!(Resume::of(StatusCode::OK, &headers(&[("etag", "\"v1\"")]), None, NOW).is_none());
        assert!(Resume::of(StatusCode::OK, &headers(&[("etag", "\"v1\"")]), Some(0), NOW).is_none());
        assert!(Resume::of(StatusCode::PARTIAL_CONTENT, &headers(&[("etag", "\"v1\"")]), Some(5), NOW).is_none());
    }

    #[test]
    fn a_date_is_strong_a_second_later() {
        let modified = ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(of(&[modified, ("date", "Sun, 06 Nov 1994 08:49:38 GMT")]).is_some());
        assert!(of(&[modified, ("date", "Sun, 06 Nov 1994 08:49:37 GMT")]).is_none());
        assert!(of(&[modified]).is_none());
        assert!(of(&[modified, ("date", "now")]).is_none());
        assert!(of(&[modified, ("date", "Sun, 06 Nov 1994 08:49:38 GMT"), ("etag", "W/\"a\"")]).is_none());
    }

    #[test]
    fn the_request_names_what_is_missing() {
        let mut asked = HeaderMap::new();
        of(&[("etag", "\"v1\"")]).unwrap().ask(4, &mut asked);
        assert_eq!(asked, headers(&[("range", "bytes=4-"), ("if-range", "\"v1\""), ("accept-encoding", "identity")]));
    }

    #[test]
    fn a_206_must_have_exactly_what_is_missing() {
        let resume = of(&[("etag", "\"v1\"")]).unwrap();
        let same = ("etag", "\"v1\"");
        let answered = |range: &'static str| resume.is_answered_by(4, &headers(&[("content-range", range), same]));
        assert!(answered("bytes 4-9/10") && answered("Bytes 4-9/10"));
        for wrong in [
            "bytes 0-9/10",
            "bytes 5-9/10",
            "bytes 4-8/10",
            "bytes 4-9/11",
            "bytes 4-9/*",
            "bytes */10",
            "4-9/10",
            "bytes 4-9",
            "bytes +4-9/10",
            "bytes 4-9/10/",
            "items 4-9/10",
            "",
            "bytes 99999999999999999999-9/10",
        ] {
            assert!(!answered(wrong), "{wrong}");
        }
        assert!(!resume.is_answered_by(4, &HeaderMap::new()));
        assert!(!resume.is_answered_by(4, &headers(&[("content-range", "bytes 4-9/10"), ("etag", "\"v2\"")])));
        let coded =
            |coding: &'static str| headers(&[("content-range", "bytes 4-9/10"), same, ("content-encoding", coding)]);
        assert!(resume.is_answered_by(4, &coded("identity")) && !resume.is_answered_by(4, &coded("gzip")));
        let mut two = headers(&[("content-range", "bytes 4-9/10"), same]);
        assert!(resume.is_answered_by(4, &two));
        two.append(header::CONTENT_RANGE, HeaderValue::from_static("bytes 0-9/10"));
        assert!(!resume.is_answered_by(4, &two), "two that differ");
    }

    #[test]
    fn what_is_said_of_a_range_is_said_once_and_in_any_letters() {
        let line = |value| HeaderValue::from_static(value);
        let ranges = |values: &[&'static str]| {
            let mut all = headers(&[("etag", "\"v1\"")]);
            for value in values {
                all.append(header::CONTENT_RANGE, line(value));
            }
            all
        };
        let resume = of(&[("etag", "\"v1\"")]).unwrap();
        for (whole, all) in [("bytes 0-9/10", "bytes */10"), ("BYTES 0-9/10", "BYTES */10")] {
            assert!(is_whole(&ranges(&[whole])) && !is_whole(&ranges(&[whole, whole])), "{whole}");
            assert!(Resume::of_part(&ranges(&[whole]), NOW).is_some(), "{whole}");
            assert!(Resume::of_part(&ranges(&[whole, "bytes 0-4/5"]), NOW).is_none(), "{whole}");
            assert!(resume.is_all(10, &ranges(&[all])) && !resume.is_all(10, &ranges(&[all, "bytes */11"])), "{all}");
        }
        let of_another = |etag| headers(&[("content-range", "bytes */10"), ("etag", etag)]);
        assert!(resume.is_all(10, &of_another("\"v1\"")) && !resume.is_all(10, &of_another("\"v2\"")));
        for part in ["bytes 1-9/10", "bytes 0-8/10", "bytes 0-9/*", "bytes */10", "0-9/10", "items 0-9/10", "bytes"] {
            assert!(!is_whole(&ranges(&[part])), "{part}");
        }
        assert!(!is_whole(&HeaderMap::new()));
        assert!(!is_whole(&ranges(&["bytes 0-18446744073709551615/18446744073709551615"])), "no number is larger");
    }

    #[test]
    fn a_part_must_be_known_by_the_same_validator() {
        const OLD: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        let (old, new) = (("last-modified", OLD), ("last-modified", "Sun, 06 Nov 1994 08:49:38 GMT"));
        let tag = ("etag", "\"v1\"");
        let by_tag = of(&[tag, old]).unwrap();
        let by_date = of(&[old, ("date", "Sun, 06 Nov 1994 09:00:00 GMT")]).unwrap();
        let answered = |resume: &Resume, own: &[(&'static str, &'static str)]| {
            let mut all = headers(&[("content-range", "bytes 4-9/10")]);
            all.extend(headers(own));
            resume.is_answered_by(4, &all)
        };
        assert!(answered(&by_tag, &[tag]) && answered(&by_tag, &[tag, old]) && answered(&by_date, &[old]));
        for other in [&[][..], &[old], &[("etag", "\"v2\"")], &[("etag", "W/\"v1\"")]] {
            assert!(!answered(&by_tag, other), "{other:?}");
        }
        for other in [&[][..], &[new], &[old, tag], &[tag]] {
            assert!(!answered(&by_date, other), "{other:?}");
        }
        let mut two = headers(&[("content-range", "bytes 4-9/10"), tag]);
        two.append(header::ETAG, HeaderValue::from_static("\"v2\""));
        assert!(!by_tag.is_answered_by(4, &two));
    }

    #[test]
    fn what_is_kept_for_a_later_run_means_the_same() {
        let resume = of(&[("etag", "\"v1\"")]).unwrap();
        assert_eq!(Resume::from_text(&resume.to_text().unwrap()), Some(resume.clone()));
        let url = |text: &str| Url::parse(text).unwrap();
        let resume = resume.at(&url("http://h/a?key=hunter2"));
        assert!(resume.is_of(&url("http://h/a?key=hunter2#b")), "what follows a # is not sent");
        let others = ["http://h/b", "http://h:81/a", "https://h/a", "http://g/a"];
        for other in others.map(|other| format!("{other}?key=hunter2")).iter().map(String::as_str).chain([
            "http://h/a",
            "http://h/a?",
            "http://h/a?key=hunter3",
            "http://h/a?key=hunter2&x",
        ]) {
            assert!(!resume.is_of(&url(other)), "{other}");
            let mut asked = HeaderMap::new();
            resume.ask_at(&url("http://h/a?key=hunter2"), 4, &mut asked);
            assert_eq!(asked[header::RANGE], "bytes=4-");
            resume.ask_at(&url(other), 4, &mut asked);
            assert_eq!(asked, headers(&[("accept-encoding", "identity")]), "{other}");
        }
        assert!(!resume.to_text().unwrap().contains("hunter2"));
        assert_eq!(Resume::from_text(&resume.to_text().unwrap()), Some(resume));
        for broken in ["", "\"v1\"", "\"v1\"\n10\n", "\"v1\"\nten\n\n", "\"v1\"\n10\nx\ny\n", "a\rb\n10\n\n"] {
            assert_eq!(Resume::from_text(broken), None, "{broken:?}");
        }
        assert_eq!(Resume::of_a_file(0).to_text(), None);
    }

    #[test]
    fn a_file_that_is_said_to_be_a_part_must_not_have_changed() {
        let part = Resume::of_a_file(784_111_777);
        let answered = |modified: &'static str| {
            part.is_answered_by(4, &headers(&[("content-range", "bytes 4-9/10"), ("last-modified", modified)]))
        };
        assert!(answered("Sun, 06 Nov 1994 08:49:37 GMT"));
        assert!(!answered("Sun, 06 Nov 1994 08:49:38 GMT"));
        assert!(part.is_all(10, &headers(&[("content-range", "bytes */10")])));
        assert!(!part.is_all(9, &headers(&[("content-range", "bytes */10")])));
        assert!(!part.is_all(9, &HeaderMap::new()));
        let mut asked = HeaderMap::new();
        part.ask(4, &mut asked);
        assert!(!asked.contains_key("if-range"));
    }
}
