//! Numbers as people say them.

use relent::duration::Human;
use std::time::Duration;

/// A number with thousands separated, three digits or more: `100,000`, `5,000`, `12.8`, `0.122`.
pub(super) fn count(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 || v == v.trunc() => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |(whole, fraction)| (whole, fraction));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}

/// A time as people say it, to three digits.
pub(super) fn seconds(value: f64) -> String {
    let digits = if value >= 100.0 { 1.0 } else { 10f64.powf(2.0 - value.max(1e-9).log10().floor()) };
    let rounded = (value * digits).round() / digits;
    Human(Duration::try_from_secs_f64(rounded).unwrap_or(Duration::MAX)).to_string()
}

/// A share, as a percentage of at most three digits.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 99.95 && share < 1.0 {
        return "almost 100 %".into();
    }
    if percent > 0.0 && percent < 0.005 {
        return "<0.01 %".into();
    }
    if percent >= 99.5 && share < 1.0 {
        // A few are missing: 100 % would say that none is.
        return format!("{percent:.1} %");
    }
    let rounded = if percent >= 10.0 { percent.round() } else { (percent * 100.0).round() / 100.0 };
    format!("{rounded} %")
}
