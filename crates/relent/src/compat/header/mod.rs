//! How other systems read a pushback from a header, mistakes included.
//!
//! Times are seconds, milliseconds or nanoseconds since 1970 as in the original; `now` comes from the caller. These are
//! for comparison and for moving from one system to another: relent's own reading of `Retry-After` follows RFC 9110.

mod date;

use super::Random;
use date::Date;

/// The header has no meaning for urllib3, which raises `InvalidHeader`.
///
/// ```
/// use relent::compat::header::{InvalidHeader, urllib3};
///
/// assert_eq!(urllib3("soon", 0.0, 21_600.0), Err(InvalidHeader));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidHeader;

impl core::fmt::Display for InvalidHeader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("invalid Retry-After header")
    }
}

impl core::error::Error for InvalidHeader {}

/// `Retry-After` in urllib3 2.8, in seconds: digits, or whatever Python's mail library takes for a date; never
/// negative, at most `most` (its `retry_after_max`, 6 hours). A day that does not exist counts on into the next month.
///
/// # Errors
///
/// [`InvalidHeader`], which the original raises out of the middle of the retry loop.
///
/// ```
/// # use relent::compat::header::urllib3;
/// assert_eq!(urllib3("86400", 0.0, 21_600.0), Ok(21_600.0), "6 hours at most");
/// ```
pub fn urllib3(header: &str, now: f64, most: f64) -> Result<f64, InvalidHeader> {
    let trimmed = header.trim();
    let seconds = if is_digits(trimmed) {
        trimmed.parse().map_err(|_| InvalidHeader)?
    } else {
        Date::parse_leniently(header).ok_or(InvalidHeader)?.unix() as f64 - now
    };
    Ok(seconds.max(0.0).min(most))
}

/// `Retry-After` in go-retryablehttp 0.7, in nanoseconds: a whole number of seconds, or the one form of date that Go
/// calls RFC 1123, with `now` in seconds; `None` where the header is ignored.
///
/// There is no bound, and more than 9,223,372,036 s overflows into a negative duration.
///
/// ```
/// # use relent::compat::header::retryablehttp;
/// assert_eq!(retryablehttp("2", 0.0), Some(2_000_000_000));
/// assert!(retryablehttp("9223372037", 0.0).unwrap() < 0, "it overflows");
/// ```
pub fn retryablehttp(header: &str, now: f64) -> Option<i64> {
    if let Ok(seconds) = header.parse::<i64>() {
        return (seconds >= 0).then(|| seconds.wrapping_mul(1_000_000_000));
    }
    let until = Date::parse_as_go(header)?.unix() as f64 - now;
    Some((until.max(0.0) * 1e9) as i64)
}

/// `Retry-After` in axios-retry 4.5, in milliseconds: what JavaScript's `Number` makes of it times 1000, or if that is
/// 0 the time until the date that it may be; 0 where it is ignored.
///
/// There is no bound. Above 2,147,483 s the timer overflows, and the request is sent again at once.
///
/// ```
/// # use relent::compat::header::axios;
/// assert_eq!((axios("2.5", 0.0), axios("soon", 0.0)), (2500.0, 0.0));
/// ```
pub fn axios(header: &str, now: f64) -> f64 {
    let millis = javascript_number(header) * 1000.0;
    if millis.is_nan() || millis == 0.0 {
        return Date::parse_as_javascript(header).map_or(0.0, |date| (date.unix() as f64 * 1000.0 - now).max(0.0));
    }
    millis.max(0.0)
}

/// The wait that openai-python 3.52 reads from `retry-after-ms` or else `retry-after`, in seconds; `None` where neither
/// can be read. Waits of 0 and less, and above 120 s, are not obeyed: the latter are not retried at all.
///
/// ```
/// # use relent::compat::header::{openai, openai_obeys};
/// let told = openai(Some("1500"), Some("9"), 0.0);
/// assert_eq!(told, Some(1.5));
/// assert!(openai_obeys(1.5));
/// ```
pub fn openai(retry_after_ms: Option<&str>, retry_after: Option<&str>, now: f64) -> Option<f64> {
    let number = |header: Option<&str>, divisor: f64| {
        let header = header?;
        let seconds = python_float(header)?;
        let overflowed = seconds == f64::INFINITY && header.contains(|c: char| c.is_ascii_digit());
        Some(if overflowed { OPENAI_LONGEST + 1.0 } else { seconds / divisor })
    };
    let numbers = number(retry_after_ms, 1000.0).or_else(|| number(retry_after, 1.0));
    numbers.or_else(|| Some(Date::parse_leniently(retry_after?)?.unix() as f64 - now))
}

/// The longest wait that openai-python obeys, in seconds.
pub const OPENAI_LONGEST: f64 = 120.0;

/// Whether openai-python waits as told, instead of by its own delay.
///
/// ```
/// # use relent::compat::header::openai_obeys;
/// assert!(!openai_obeys(0.0) && openai_obeys(120.0) && !openai_obeys(120.5));
/// ```
pub fn openai_obeys(seconds: f64) -> bool {
    seconds > 0.0 && seconds <= OPENAI_LONGEST
}

/// `x-amz-retry-after` in botocore 1.44 (retry 2.1), in seconds: whole milliseconds as Python's `int` reads them,
/// `None` where the header is ignored.
///
/// ```
/// # use relent::compat::header::aws;
/// assert_eq!((aws("1500"), aws("1.5")), (Some(1.5), None));
/// ```
pub fn aws(header: &str) -> Option<f64> {
    let trimmed = header.trim();
    let digits = trimmed.strip_prefix('+').unwrap_or(trimmed);
    // Python takes single underscores between digits, and fails on what is no float.
    let grouped = digits.split('_').all(is_digits);
    let millis = || digits.replace('_', "").parse::<f64>().ok().filter(|millis| millis.is_finite());
    if grouped { millis().map(|millis| millis / 1000.0) } else { None }
}

/// What botocore 1.44 waits when its own delay is `own` and the header says `told`, in seconds: at least its own, at
/// most 5 s more.
///
/// ```
/// # use relent::compat::header::aws_delay;
/// assert_eq!(aws_delay(1.0, Some(60.0)), 6.0, "told a minute, it comes back after 6 s");
/// ```
pub fn aws_delay(own: f64, told: Option<f64>) -> f64 {
    told.map_or(own, |told| own.max(told.min(own + 5.0)))
}

/// `grpc-retry-pushback-ms` in grpc-js 1.14: what JavaScript's `parseInt` makes of it. Below 0 is "do not retry"; NaN,
/// which gRFC A6 wants to mean the same, is retried after about a millisecond, as is everything above 2^31 - 1.
///
/// ```
/// # use relent::compat::header::grpc_js;
/// assert_eq!((grpc_js("250"), grpc_js("-1")), (250.0, -1.0));
/// assert!(grpc_js("soon").is_nan());
/// ```
pub fn grpc_js(header: &str) -> f64 {
    let header = header.trim_start();
    let (sign, rest) = match header.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, header.strip_prefix('+').unwrap_or(header)),
    };
    if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let digits = leading(hex, |c| c.is_ascii_hexdigit());
        let fold = |value, c: char| value * 16.0 + f64::from(c.to_digit(16).unwrap_or(0));
        return if digits.is_empty() { f64::NAN } else { sign * digits.chars().fold(0.0, fold) };
    }
    leading(rest, |c| c.is_ascii_digit()).parse::<f64>().map_or(f64::NAN, |value| sign * value)
}

/// Envoy's wait for a reset header or `Retry-After` of `least` milliseconds: up to half as long again.
///
/// ```
/// # use relent::compat::{Random, header::envoy};
/// assert_eq!(envoy(1000, Random::Draw(0)), 1000);
/// assert_eq!(envoy(1000, Random::Draw(499)), 1499);
/// ```
pub fn envoy(least: u64, random: Random) -> u64 {
    match least >> 1 {
        0 => least,
        half => least.saturating_add(random.bits() % half),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn leading(text: &str, wanted: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !wanted(c)).unwrap_or(text.len())]
}

/// `Number(text)`: decimal or hexadecimal, with blanks around; 0 for nothing, NaN for anything else.
fn javascript_number(text: &str) -> f64 {
    let text = text.trim();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match text {
        "" => 0.0,
        _ if unsigned == "Infinity" => {
            if text.starts_with('-') {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        _ if text.starts_with("0x") || text.starts_with("0X") => {
            u64::from_str_radix(&text[2..], 16).map_or(f64::NAN, |value| value as f64)
        }
        _ if is_decimal(unsigned) => text.parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}

/// `float(text)`: decimal, `inf`, `nan`, with blanks around.
fn python_float(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// Rust also parses "inf" and "nan", which JavaScript does not.
fn is_decimal(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fri, 31 Dec 1999 23:59:57 GMT.
    const NOW: f64 = 946_684_797.0;

    #[test]
    fn urllib3_sleeps_six_hours_for_a_day_that_does_not_exist() {
        let read = |header| urllib3(header, NOW, 21600.0);
        assert_eq!(read("Fri, 32 Dec 1999 23:59:59 GMT"), Ok(21600.0));
        assert_eq!(read("Fri Dec 31 23:59:59 1999"), Ok(2.0));
        assert_eq!(read("Fri, 31 Dec 1999 23:59:59 +0100"), Ok(0.0));
        assert_eq!(read("2.5"), Err(InvalidHeader));
        assert_eq!(read("100000000000"), Ok(21600.0));
        assert_eq!(read(&"9".repeat(400)), Ok(21600.0));
    }

    #[test]
    fn go_retryablehttp_overflows() {
        assert_eq!(retryablehttp("9223372037", NOW), Some(-9_223_372_036_709_551_616));
        assert_eq!(retryablehttp(" 2 ", NOW), None);
        assert_eq!(retryablehttp("Fri, 31 Dec 1999 23:59:59 GMT", NOW), Some(2_000_000_000));
        assert_eq!(retryablehttp("Fri, 31 Dec 1999 23:59:59 +0100", NOW), None);
        assert_eq!(retryablehttp("", NOW), None);
    }

    #[test]
    fn axios_reads_numbers_as_javascript_does() {
        let read = |header| axios(header, NOW * 1000.0);
        assert_eq!(read("2.5"), 2500.0);
        assert_eq!(read(" 2 "), 2000.0);
        assert_eq!(read("0x10"), 16_000.0);
        assert_eq!(read("abc"), 0.0);
        assert_eq!(read("inf"), 0.0);
        assert_eq!(read(""), 0.0);
        assert_eq!(read("0"), 3000.0, "the year 2000");
        assert_eq!(read("Friday, 31-Dec-99 23:59:59 GMT"), 2000.0);
        assert_eq!(read("Fri, 32 Dec 1999 23:59:59 GMT"), 0.0);
    }

    #[test]
    fn grpc_js_takes_what_the_specification_refuses() {
        for (header, expected) in
            [("1.5", 1.0), ("007", 7.0), ("+5", 5.0), ("12abc", 12.0), ("-1", -1.0), ("0x10", 16.0)]
        {
            assert_eq!(grpc_js(header), expected, "{header:?}");
        }
        assert!(grpc_js("abc").is_nan() && grpc_js("").is_nan() && grpc_js("-").is_nan());
    }

    #[test]
    fn openai_reads_milliseconds_first() {
        assert_eq!(openai(Some("1500"), Some("9"), NOW), Some(1.5));
        assert_eq!(openai(Some("x"), Some("9"), NOW), Some(9.0));
        assert_eq!(openai(None, Some("Fri, 31 Dec 1999 23:59:59 GMT"), NOW), Some(2.0));
        assert_eq!(openai(None, Some("1e999"), NOW), Some(121.0));
        assert_eq!(openai(None, None, NOW), None);
        assert!(!openai_obeys(f64::NAN) && !openai_obeys(0.0) && openai_obeys(120.0) && !openai_obeys(120.1));
    }

    #[test]
    fn aws_reads_whole_milliseconds() {
        for (header, expected) in [(" 250 ", 0.25), ("+5", 0.005), ("1_000", 1.0)] {
            assert_eq!(aws(header), Some(expected), "{header:?}");
        }
        for header in ["1.5", "-1", "", "1__0", "_1", "1_", &"9".repeat(400)] {
            assert_eq!(aws(header), None, "{header:?}");
        }
        assert_eq!(aws_delay(1.0, aws("60000")), 6.0);
    }

    #[test]
    fn envoy_spreads_upwards_only() {
        assert_eq!(envoy(1, Random::Draw(9)), 1);
        assert_eq!(envoy(1000, Random::Draw(999)), 1499);
        assert_eq!(envoy(u64::MAX, Random::Draw(u64::MAX)), u64::MAX);
    }
}
