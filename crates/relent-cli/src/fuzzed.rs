//! A door for fuzzing: everything in this crate that reads what came from outside, with what must hold of it.
//!
//! Each function takes what somebody else wrote and panics if a promise is broken. The targets of `fuzz/` call them with
//! what libFuzzer makes up, the tests with the inputs that were kept. They are no interface: nothing else may use them.

pub use crate::{connect::fuzzed as connect, http::fuzzed as http, run::fuzzed as run};

use crate::{
    escape::escape,
    explain::foreign,
    promises::{PASSWORD, is_plain, is_refused, is_told},
    redact,
    size::Size,
    talk::Fault,
};
use percent_encoding::percent_decode_str;

/// The readers of texts, by number.
pub const READERS: &[fn(&str)] = &[
    size,
    redacted,
    foreign,
    http::flags,
    http::part,
    connect::target,
    run::exit_set,
    |text| run::verdict(text, 22),
    |text| {
        let (pattern, output) = text.split_once('\0').unwrap_or((text, text));
        run::pattern(pattern, output.as_bytes());
    },
];

/// A text, read by the reader of the number that stands before it.
pub fn command_line(input: &[u8]) {
    let Some((reader, text)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    // Who makes inputs up sees what they are compared with.
    if !decoded(&text).contains(PASSWORD) {
        READERS[usize::from(*reader) % READERS.len()](&text);
    }
}

/// What a reader of URLs may take a text for.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().to_ascii_lowercase()
}

/// A line with a status, how much of a body is there, and the time; then the headers of an answer.
pub fn http_answer(input: &[u8]) {
    let (first, headers) = input.split_at(input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len()));
    let first = String::from_utf8_lossy(first);
    let mut numbers = first.split(' ').map(|number| number.parse::<u64>().unwrap_or_default());
    let mut number = || numbers.next().unwrap_or_default();
    http::answer(number(), number(), number(), headers);
}

/// Sizes: what is shown is read as the same number.
pub fn size(text: &str) {
    match text.parse::<Size>() {
        Ok(size) if size.0 < u64::MAX => assert_eq!(size.to_string().parse(), Ok(size), "{text:?}"),
        Ok(_) => {}
        Err(bad) => is_refused(&bad),
    }
}

/// What is shown of anything that may have been meant as a URL or a header holds no password.
pub fn redacted(text: &str) {
    let (before, after) = text.split_once('\0').unwrap_or(("http", text));
    let mut before: String = before.chars().filter(char::is_ascii_alphanumeric).collect();
    // Where something is taken out, the word may come together that is no password there: `hunter2hu;nter2`.
    if decoded(&before).contains(PASSWORD) {
        before.clear();
    }
    for (shape, rest) in [
        (format!("{before}://ann:{PASSWORD}@"), after.to_owned()),
        (format!("http://host/{before}?token={PASSWORD}&"), after.replace(['&', ';', '#', '?'], "")),
        (format!("ann:{PASSWORD}@"), after.replace("://", "")),
    ] {
        if decoded(&rest).contains(PASSWORD) {
            continue;
        }
        let given = shape + &rest;
        assert!(!redact::url(&given).contains(PASSWORD), "{given:?} is shown as {:?}", redact::url(&given));
    }
    let url = format!("{before}://ann:{PASSWORD}@{after}");
    assert!(!redact::text(&url).contains(PASSWORD), "{url:?} is shown as {:?}", redact::text(&url));
    assert!(!redact::header("Location", &url).contains(PASSWORD), "{url:?}");
    assert_eq!(redact::header("X-Api-Key", text), redact::HIDDEN);
    // Twice is once: what was written down can be shown again.
    let once = redact::url(text);
    assert_eq!(redact::url(&once), once, "{text:?}");
    is_plain(&escape(text));
}

/// The settings of other systems: a policy, or a reason.
pub fn foreign(text: &str) {
    let readings = [
        foreign::systemd("a.service", text, &[]),
        foreign::curl(text),
        foreign::envoy(text),
        foreign::kubernetes(text),
    ];
    for reading in readings {
        match reading {
            Ok(reading) => assert!(!reading.name.is_empty() && !reading.settings.is_empty(), "{text:?}"),
            Err(bad) => is_told(&Fault::from(bad)),
        }
    }
}
