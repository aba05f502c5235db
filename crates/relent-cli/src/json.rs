//! The workspace's writer of JSON, under a name of this crate.

pub use relent_sim::json::{Object, array, quoted};

use std::time::Duration;

/// Whole milliseconds, as events and reports count time.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out_and_means_the_same() {
        let text = "\u{9b}2J\u{7f}\u{202e}\u{2028}\u{e0041}\u{200b}\u{2060}\u{180e}";
        let json = quoted(text);
        assert_eq!(json, r#""\u009b2J\u007f\u202e\u2028\udb40\udc41\u200b\u2060\u180e""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
