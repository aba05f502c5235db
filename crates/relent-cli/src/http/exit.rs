//! The exit codes of `relent http`: one table for `--help`, the code and the tests.

use relent::Reason;

/// The table as `--help` and the documentation show it.
pub(super) const TABLE: &str = "
Exit codes:
    0  success: the final status is below 400
    1  gave up: out of attempts, or another limit of the policy
    3  permanent: a status or failure that no retry would change
    4  told not to retry by the server
    5  told to wait longer than the policy allows
    6  not sent again: the method is unsafe (POST, PATCH) and the request may have been carried out
  124  out of time: max_elapsed or --timeout
  125  relent itself failed: wrong flags, an unreadable file, a body that cannot be written
  141  whoever read standard output went away; 129 hung up, 130 interrupted, 131 quit, 143 terminated

Examples:  relent http -C - -O --timeout 1h https://example.com/dump.tar";

/// The request was not sent again because that could have done its work twice.
pub(super) const UNSAFE: u8 = 6;

/// There is no more time for the whole call.
pub(super) const OUT_OF_TIME: u8 = 124;

/// Whoever read standard output went away, as if SIGPIPE had ended it.
pub(super) const READER_GONE: u8 = 141;

/// The failure is permanent.
pub(super) const PERMANENT: u8 = 3;

/// The exit code of a call that was given up.
pub(super) const fn of(reason: Reason) -> u8 {
    match reason {
        Reason::Permanent => PERMANENT,
        Reason::Overloaded => 4,
        Reason::PushbackTooLong => 5,
        Reason::Elapsed => OUT_OF_TIME,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talk::EXIT_FAULT;

    const PAGE: &str = include_str!("../../../../docs/http.md");

    #[test]
    fn every_code_is_in_the_table() {
        let reasons = [
            Reason::Permanent,
            Reason::Overloaded,
            Reason::Attempts,
            Reason::Elapsed,
            Reason::PushbackTooLong,
            Reason::Budget,
        ];
        for code in reasons.map(of).into_iter().chain([0, UNSAFE, EXIT_FAULT, OUT_OF_TIME, READER_GONE]) {
            assert!(PAGE.contains(&format!("\n| {code} |")), "{code} is not in docs/http.md");
            assert!(TABLE.lines().any(|line| line.trim_start().starts_with(&format!("{code}  "))), "{code}");
        }
    }
}
