//! Sizes as people write them: `500k`, `10MB`, `1GiB`, `unlimited`.

use relent::config::BadSetting;
use std::{fmt, str::FromStr};

/// A number of bytes; `u64::MAX` is no limit.
///
/// ```
/// use relent_cli::size::Size;
///
/// assert_eq!("2KiB".parse::<Size>().unwrap(), Size(2048));
/// assert_eq!(Size(100 << 20).to_string(), "100MiB");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = BadSetting;

    fn from_str(text: &str) -> Result<Size, BadSetting> {
        if text == "unlimited" {
            return Ok(Size(u64::MAX));
        }
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number = text[..digits].parse::<u64>().ok();
        let size = number.zip(unit(text[digits..].trim())).and_then(|(number, unit)| number.checked_mul(unit));
        size.map(Size).ok_or_else(|| BadSetting {
            key: None,
            problem: format!("{text:?} is no size"),
            hint: "write it like 500k, 10MB, 1GiB or unlimited; units are B, k, M, G, T".to_owned(),
        })
    }
}

fn unit(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let is_binary = lower.len() < 2 || lower.ends_with("ib");
    let base: u64 = if is_binary { 1024 } else { 1000 };
    let power = match lower.trim_end_matches("ib").trim_end_matches('b') {
        "" if lower.ends_with("ib") => return None,
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(base.pow(power))
}

/// For people: in the largest binary unit that divides it.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size(size) = *self;
        let units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let divides = |power: &usize| size > 0 && size.is_multiple_of(1 << (10 * power));
        let power = (1..units.len()).rev().find(divides).unwrap_or(0);
        write!(f, "{}{}", size >> (10 * power), units[power])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("12", 12),
            ("12B", 12),
            ("2k", 2048),
            ("2kB", 2000),
            ("2KiB", 2048),
            ("3 MB", 3_000_000),
            ("1GiB", 1 << 30),
            ("unlimited", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for bad in ["", "k", "-1", "1.5G", "1x", "1ib", "18446744073709551615k", "1 k b"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
        assert_eq!([1 << 30, 1000, 1536, 0].map(|size| Size(size).to_string()), ["1GiB", "1000B", "1536B", "0B"]);
    }
}
