//! Sizes as people write them: `500k`, `10MB`, `1GiB`.

use crate::talk::Fault;

/// The bytes of a size; `None` is no limit.
pub(super) fn parse(flag: &str, text: &str) -> Result<Option<u64>, Fault> {
    if text == "unlimited" {
        return Ok(None);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..digits].parse::<u64>().ok();
    let size = number.zip(unit(text[digits..].trim())).and_then(|(number, unit)| number.checked_mul(unit));
    size.map(Some).ok_or_else(|| {
        Fault::new(format!("{flag}: {text:?} is no size"))
            .hint("write it like 500k, 10MB, 1GiB or unlimited; B, k, M, G, T")
    })
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

/// A size for people: the largest binary unit that divides it.
pub(super) fn shown(size: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (1..units.len()).rev().find(|power| size > 0 && size.is_multiple_of(1 << (10 * power))).unwrap_or(0);
    format!("{}{}", size >> (10 * power), units[power])
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
            ("2K", 2048),
            ("2kB", 2000),
            ("2KiB", 2048),
            ("3 MB", 3_000_000),
            ("1GiB", 1 << 30),
            ("1t", 1 << 40),
        ] {
            assert_eq!(parse("--x", text).unwrap(), Some(bytes), "{text}");
        }
        assert_eq!(parse("--x", "unlimited").unwrap(), None);
        for bad in ["", "k", "-1", "1.5G", "1x", "1ib", "18446744073709551615k", "1 k b"] {
            assert!(parse("--x", bad).is_err(), "{bad}");
        }
        assert_eq!([shown(1 << 30), shown(1000), shown(1536), shown(0)], ["1GiB", "1000B", "1536B", "0B"]);
    }
}
