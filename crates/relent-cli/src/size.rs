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

/// For people: in the largest unit that divides it, a binary one if both kinds do.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size(size) = *self;
        let largest = |base: u64| (1..=4).rev().find(|power| size > 0 && size.is_multiple_of(base.pow(*power)));
        match (largest(1024), largest(1000)) {
            (Some(power), _) if size != u64::MAX => {
                write!(f, "{}{}iB", size >> (10 * power), ["", "K", "M", "G", "T"][power as usize])
            }
            (None, Some(power)) => {
                write!(f, "{}{}B", size / 1000_u64.pow(power), ["", "k", "M", "G", "T"][power as usize])
            }
            _ => write!(f, "{size}B"),
        }
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
        let shown = [1 << 30, 1000, 1536, 0, 10_000_000, u64::MAX].map(|size| Size(size).to_string());
        assert_eq!(shown, ["1GiB", "1kB", "1536B", "0B", "10MB", "18446744073709551615B"]);
        for size in [1 << 30, 1000, 1536, 0, 10_000_000, 512_000, 1_024_000] {
            assert_eq!(Size(size).to_string().parse(), Ok(Size(size)));
        }
    }
}
