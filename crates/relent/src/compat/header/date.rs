//! Dates in headers, as leniently or strictly as other systems read them.

/// A date as it was written, not checked: the 32nd of December is the 1st of January.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// East of Greenwich, in seconds.
    zone: i64,
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl Date {
    /// As Python's `email.utils.parsedate_tz`: the three forms of RFC 9110, any zone, any order of day and month.
    pub(super) fn parse_leniently(text: &str) -> Option<Date> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let first = *words.first()?;
        if first.ends_with(',') || DAYS.contains(&first.to_ascii_lowercase().as_str()) {
            words.remove(0);
        } else if let Some(comma) = first.rfind(',') {
            words[0] = &first[comma + 1..];
        }
        if words.len() == 3 && words[0].split('-').count() == 3 {
            words = words[0].split('-').chain(words[1..].iter().copied()).collect();
        }
        if words.len() == 4 {
            match words[3].find('+').or_else(|| words[3].find('-')) {
                Some(sign @ 1..) => {
                    let (time, zone) = words[3].split_at(sign);
                    words.truncate(3);
                    words.extend([time, zone]);
                }
                _ => words.push(""),
            }
        }
        let &[day, month, year, time, zone] = words.get(..5)? else { return None };
        let (day, month) = if month_number(month).is_some() { (day, month) } else { (month, day) };
        let (year, time) = if year.find(':').is_some_and(|at| at > 0) { (time, year) } else { (year, time) };
        let (year, zone) = if year.starts_with(|c: char| c.is_ascii_digit()) { (year, zone) } else { (zone, year) };
        let mut clock = time.trim_end_matches(',').split(':').map(number);
        let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next().unwrap_or(Some(0))?);
        if clock.next().is_some() {
            return None;
        }
        let year = match number(year.trim_end_matches(','))? {
            year @ 0..=68 => year + 2000,
            year @ 69..=99 => year + 1900,
            year => year,
        };
        let (day, month) = (number(day.trim_end_matches(','))?, month_number(month)?);
        Some(Date { year, month, day, hour, minute, second, zone: zone_seconds(zone) })
    }

    /// As Go's `time.Parse(time.RFC1123, text)`: one form, real dates only; a zone's name is not looked up.
    pub(super) fn parse_as_go(text: &str) -> Option<Date> {
        let words: Vec<&str> = text.split(' ').collect();
        let &[weekday, day, _, year, time, zone] = words.as_slice() else { return None };
        let is_weekday = weekday.strip_suffix(',').is_some_and(|d| DAYS.contains(&d.to_ascii_lowercase().as_str()));
        let is_zone = (3..=5).contains(&zone.len()) && zone.bytes().all(|b| b.is_ascii_uppercase());
        if !is_weekday || !is_zone || day.len() != 2 || year.len() != 4 || time.len() != 8 {
            return None;
        }
        let date = Date::parse_leniently(text)?;
        (date.is_real() && date.day <= days_in(date.year, date.month)).then_some(Date { zone: 0, ..date })
    }

    /// As V8's `Date.parse` for dates of the forms above; a bare 0 is the year 2000. Without a zone it is UTC here,
    /// where the original takes the machine's.
    pub(super) fn parse_as_javascript(text: &str) -> Option<Date> {
        let trimmed = text.trim();
        if !trimmed.is_empty() && trimmed.bytes().all(|b| b == b'0') {
            return Some(Date { year: 2000, month: 1, day: 1, hour: 0, minute: 0, second: 0, zone: 0 });
        }
        Date::parse_leniently(text).filter(|date| date.is_real())
    }

    fn is_real(self) -> bool {
        (1..=31).contains(&self.day) && self.hour < 24 && self.minute < 60 && self.second < 60
    }

    /// Seconds since 1970, counting on where a number is too large.
    pub(super) fn unix(self) -> i64 {
        let days = days_before(self.year.min(9999), self.month) + self.day.min(1_000_000) - 1;
        let hours = days * 24 + self.hour.min(1_000_000);
        (hours * 60 + self.minute.min(1_000_000)) * 60 + self.second.min(1_000_000) - self.zone
    }
}

fn month_number(name: &str) -> Option<i64> {
    let name = name.to_ascii_lowercase();
    let full = [
        "january",
        "february",
        "march",
        "april",
        "",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let at = MONTHS.iter().zip(full).position(|(short, full)| name == *short || (!full.is_empty() && name == full))?;
    Some(at as i64 + 1)
}

fn number(digits: &str) -> Option<i64> {
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// What is unknown counts as UTC, as the machine's own zone would here.
fn zone_seconds(zone: &str) -> i64 {
    let named = |hours: i64| hours * 3600;
    match zone.to_ascii_uppercase().as_str() {
        "AST" => named(-4),
        "ADT" => named(-3),
        "EST" => named(-5),
        "EDT" => named(-4),
        "CST" => named(-6),
        "CDT" => named(-5),
        "MST" => named(-7),
        "MDT" => named(-6),
        "PST" => named(-8),
        "PDT" => named(-7),
        zone => {
            let (sign, digits) = match zone.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, zone.strip_prefix('+').unwrap_or(zone)),
            };
            number(digits).map_or(0, |clock| sign * (clock / 100 * 3600 + clock % 100 * 60))
        }
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    days_before(year + month / 12, month % 12 + 1) - days_before(year, month)
}

/// Days from 1970-01-01 to the first of a month, by counting years from March as the calendar's leap days want it.
fn days_before(year: i64, month: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lenient(text: &str) -> Option<i64> {
        Date::parse_leniently(text).map(Date::unix)
    }

    /// As `email.utils.mktime_tz(email.utils.parsedate_tz(text))` of Python 3.11 says.
    #[test]
    fn python_reads() {
        for text in [
            "Fri, 31 Dec 1999 23:59:59 GMT",
            "Friday, 31-Dec-99 23:59:59 GMT",
            "Fri Dec 31 23:59:59 1999",
            "31 Dec 1999 23:59:59",
        ] {
            assert_eq!(lenient(text), Some(946_684_799), "{text}");
        }
        assert_eq!(lenient("Fri, 32 Dec 1999 23:59:59 GMT"), Some(946_771_199));
        assert_eq!(lenient("Fri, 31 Dec 1999 23:59:59 +0100"), Some(946_681_199));
        assert_eq!(lenient("Fri, 31 Dec 1999 23:59:59 EST"), Some(946_702_799));
        for text in
            ["", "badbadbad", "2.5", "31 Dec 1999", "1e3", "-2", "a b c d e f", "Fri, 31 Dec 1999 23:59:59:59 GMT"]
        {
            assert_eq!(lenient(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_calendar() {
        assert_eq!(days_before(1970, 1), 0);
        assert_eq!(days_before(2000, 3), 11_017);
        assert_eq!(days_before(2026, 11), 20_758);
        assert_eq!((days_in(2000, 2), days_in(1900, 2), days_in(2024, 12)), (29, 28, 31));
    }

    #[test]
    fn go_wants_one_form_and_real_days() {
        assert!(Date::parse_as_go("Fri, 31 Dec 1999 23:59:59 GMT").is_some());
        for text in [
            "Fri, 32 Dec 1999 23:59:59 GMT",
            "Tue, 31 Feb 2000 00:00:00 GMT",
            "Friday, 31-Dec-99 23:59:59 GMT",
            "Fri Dec 31 23:59:59 1999",
            "Fri, 31 Dec 1999 24:00:00 GMT",
        ] {
            assert_eq!(Date::parse_as_go(text), None, "{text}");
        }
    }

    #[test]
    fn no_text_breaks_a_reader() {
        for text in [
            "99999999999 99999999 99999999 9:9:9",
            "- - - - -",
            ", , , , ,",
            "ä ö ü ß :",
            "1-1-1 1:1 +",
            "999999999 Dec 999999999 999999999:0:0 -999999999",
        ] {
            let _ = (lenient(text), Date::parse_as_go(text), Date::parse_as_javascript(text));
        }
    }
}
