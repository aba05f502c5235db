//! HTTP-date in all three forms (RFC 9110 5.6.7), as seconds since 1970.
//!
//! Strict where a wrong value would mislead: names are case-sensitive, fields have their widths, days exist in their
//! month. The day of the week must be one, but need not be the right one: the date is clear without it.

/// Seconds since 1970-01-01 00:00 UTC of an HTTP-date; negative before. `None` if it is none.
///
/// The three forms are `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` (RFC 850) and
/// `Sun Nov  6 08:49:37 1994` (asctime). The two-digit year of RFC 850 is the latest one that is not more than 50 years
/// after `now` (seconds since 1970), as RFC 9110 5.6.7 says.
///
/// ```
/// use relent::wire::http_date;
///
/// for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
///     assert_eq!(http_date(text, 1_790_000_000), Some(784_111_777));
/// }
/// assert_eq!(http_date("Fri, 32 Dec 1999 23:59:59 GMT", 0), None);
/// ```
pub fn http_date(text: &str, now: i64) -> Option<i64> {
    let date = Fields(text.as_bytes());
    match text.len() {
        29 => date.imf_fixdate(),
        24 => date.asctime(),
        30..=33 => date.rfc850(now),
        _ => None,
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    fn imf_fixdate(mut self) -> Option<i64> {
        self.one_of(&DAYS)?;
        self.literal(b", ")?;
        let day = self.digits(2)?;
        self.literal(b" ")?;
        let month = self.one_of(&MONTHS)?;
        self.literal(b" ")?;
        let year = self.digits(4)?;
        self.literal(b" ")?;
        let time = self.time()?;
        self.literal(b" GMT")?;
        Some(days(year, month, day)? * DAY + time)
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`
    fn rfc850(mut self, now: i64) -> Option<i64> {
        self.one_of(&LONG_DAYS)?;
        self.literal(b", ")?;
        let day = self.digits(2)?;
        self.literal(b"-")?;
        let month = self.one_of(&MONTHS)?;
        self.literal(b"-")?;
        let year = self.digits(2)?;
        self.literal(b" ")?;
        let time = self.time()?;
        self.literal(b" GMT")?;
        latest(year, month, day, time, now)
    }

    /// `Sun Nov  6 08:49:37 1994`
    fn asctime(mut self) -> Option<i64> {
        self.one_of(&DAYS)?;
        self.literal(b" ")?;
        let month = self.one_of(&MONTHS)?;
        self.literal(b" ")?;
        let day = if self.literal(b" ").is_some() { self.digits(1)? } else { self.digits(2)? };
        self.literal(b" ")?;
        let time = self.time()?;
        self.literal(b" ")?;
        let year = self.digits(4)?;
        Some(days(year, month, day)? * DAY + time)
    }

    /// `08:49:37`, in seconds; a leap second (`:60`) is the next minute's first.
    fn time(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.literal(b":")?;
        let minute = self.digits(2)?;
        self.literal(b":")?;
        let second = self.digits(2)?;
        (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
    }

    fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits.iter().try_fold(0, |n, byte| byte.is_ascii_digit().then(|| n * 10 + i64::from(byte - b'0')))
    }

    /// The place of the name that comes next, from 1.
    fn one_of(&mut self, names: &[&str]) -> Option<i64> {
        let place = names.iter().position(|name| self.literal(name.as_bytes()).is_some())?;
        Some(place as i64 + 1)
    }
}

const DAY: i64 = 86_400;
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LONG_DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Fifty years of the Gregorian calendar's mean length.
const FIFTY_YEARS: i64 = 50 * 31_556_952;

/// The latest date with this two-digit year that is at most 50 years after `now`.
fn latest(year: i64, month: i64, day: i64, time: i64, now: i64) -> Option<i64> {
    let horizon = now.saturating_add(FIFTY_YEARS);
    // 400 years after 1600 the calendar repeats, and no clock that runs a program is past 9999.
    (0..=99)
        .rev()
        .filter_map(|century| Some(days(century * 100 + year, month, day)? * DAY + time))
        .find(|date| *date <= horizon)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, if there is such a day.
///
/// Years are counted from March, so that the leap day is the last: then the days before a month are
/// `(153 * month + 2) / 5`, and the calendar repeats every 400 years of 146,097 days.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, UNIX_EPOCH};

    /// 2026-09-21 14:13:20 UTC.
    const NOW: i64 = 1_790_000_000;

    #[test]
    fn the_three_forms_of_rfc_9110() {
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(http_date(text, NOW), Some(784_111_777), "{text}");
        }
        assert_eq!(http_date("Wed Nov 16 08:49:37 1994", NOW), Some(784_111_777 + 10 * DAY));
    }

    #[test]
    fn dates_before_1970_are_negative() {
        assert_eq!(http_date("Mon, 01 Jan 1900 00:00:00 GMT", NOW), Some(-2_208_988_800));
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT", NOW), Some(0));
        assert_eq!(http_date("Sat, 01 Jan 0000 00:00:00 GMT", NOW), Some(-62_167_219_200));
    }

    #[test]
    fn the_two_digit_year_is_at_most_50_years_ahead() {
        let year_of = |text: &str, now: i64| {
            let date = http_date(text, now).unwrap();
            (1900..2200).rev().find(|year| days(*year, 1, 1).unwrap() * DAY <= date).unwrap()
        };
        assert_eq!(year_of("Sunday, 06-Nov-26 08:49:37 GMT", NOW), 2026);
        assert_eq!(year_of("Sunday, 06-Nov-30 08:49:37 GMT", NOW), 2030);
        assert_eq!(year_of("Sunday, 01-Jan-76 00:00:00 GMT", NOW), 2076, "less than 50 years ahead");
        assert_eq!(year_of("Sunday, 31-Dec-76 00:00:00 GMT", NOW), 1976, "more than 50 years ahead");
        assert_eq!(year_of("Sunday, 06-Nov-94 08:49:37 GMT", NOW), 1994);
        let in_2099 = days(2099, 6, 1).unwrap() * DAY;
        assert_eq!(year_of("Sunday, 06-Nov-05 08:49:37 GMT", in_2099), 2105);
    }

    #[test]
    fn leap_years_and_leap_seconds() {
        assert!(http_date("Tue, 29 Feb 2000 00:00:00 GMT", NOW).is_some());
        assert!(http_date("Mon, 29 Feb 1900 00:00:00 GMT", NOW).is_none());
        assert!(http_date("Wed, 29 Feb 2023 00:00:00 GMT", NOW).is_none());
        let leap = http_date("Sat, 31 Dec 2016 23:59:60 GMT", NOW);
        assert_eq!(leap, http_date("Sun, 01 Jan 2017 00:00:00 GMT", NOW));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "abc",
            "Fri, 32 Dec 1999 23:59:59 GMT",
            "Fri, 32 Dec 1999",
            "Fri, 00 Dec 1999 23:59:59 GMT",
            "Fri, 31 Nov 1999 23:59:59 GMT",
            "Fri, 31 Dec 1999 24:00:00 GMT",
            "Fri, 31 Dec 1999 23:60:00 GMT",
            "Fri, 31 Dec 1999 23:59:61 GMT",
            "Fri, 31 Dec 1999 23:59:59 UTC",
            "Fri, 31 Dec 1999 23:59:59 +01",
            "fri, 31 dec 1999 23:59:59 gmt",
            "Fry, 31 Dec 1999 23:59:59 GMT",
            "Fri, 31 Dez 1999 23:59:59 GMT",
            "Fri, 31-Dec-1999 23:59:59 GMT",
            "Fri, 31 Dec +199 23:59:59 GMT",
            "Friday, 31-Dec-9 23:59:59 GMT",
            "Fri Dec 32 23:59:59 1999",
            "Fri Dec  0 23:59:59 1999",
            "Fri Dec  6 23:59:59 199x",
            "1999-12-31T23:59:59Z",
        ] {
            assert_eq!(http_date(text, NOW), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_second_is_read_as_another_implementation_writes_it(at in 0..253_402_300_800u64) {
            let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(at));
            prop_assert_eq!(http_date(&text, NOW), Some(at as i64));
        }

        #[test]
        fn rfc850_and_asctime_agree_with_the_fixdate(at in (NOW - 49 * 31_556_952)..(NOW + 49 * 31_556_952)) {
            let fixed = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(at as u64));
            let part = |range: std::ops::Range<usize>| &fixed[range];
            let day = part(5..7).trim_start_matches('0');
            let asctime = format!("{} {} {day:>2} {} {}", part(0..3), part(8..11), part(17..25), part(12..16));
            prop_assert_eq!(http_date(&asctime, NOW), Some(at), "{}", asctime);
            let long = LONG_DAYS.iter().find(|long| long.starts_with(part(0..3))).unwrap();
            let rfc850 = format!("{long}, {}-{}-{} {} GMT", part(5..7), part(8..11), part(14..16), part(17..25));
            prop_assert_eq!(http_date(&rfc850, NOW), Some(at), "{}", rfc850);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}", now: i64) {
            let _ = http_date(&text, now);
        }

        #[test]
        fn no_text_that_is_nearly_a_date_panics(
            text in "(Mon|Sunday),? [0-9]{2}[ -](Feb|Dec)[ -][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT", now: i64,
        ) {
            let _ = http_date(&text, now);
        }
    }
}
