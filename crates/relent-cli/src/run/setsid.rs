//! Commands that are over at once, whatever becomes of what they were to run.

use std::{ffi::OsString, path::Path};

/// What is said of a command that is one, if it is.
///
/// `setsid` leaves its group, which who leads it cannot do: so it goes on as another process, and ends with 0 at once. In a group of others, as a
/// script starts it, it leads none.
pub(super) fn remark(command: &[OsString]) -> Option<&'static str> {
    let (program, arguments) = command.split_first()?;
    let is_short = |flags: &str| !flags.starts_with('-') && flags.contains(['w', 'f']);
    let decides = |flag: &str| {
        flag.strip_prefix('-').is_some_and(is_short) || ["--wait", "--fork", "--help", "--version"].contains(&flag)
    };
    let mut flags = arguments.iter().map_while(|argument| argument.to_str().filter(|text| text.starts_with('-')));
    let is_one = Path::new(program).file_name()? == "setsid" && !flags.any(decides);
    is_one.then_some("setsid ends at once, with 0, whatever becomes of what it starts: setsid --wait waits for that")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_whether_to_wait_knows_it() {
        let is_one = |line: &str| remark(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).is_some();
        for line in ["setsid true", "/usr/bin/setsid -c true", "setsid sh -w", "setsid -- sh --wait", "setsid"] {
            assert!(is_one(line), "{line}");
        }
        for line in ["setsid -w true", "setsid --wait true", "setsid -cw true", "setsid -f true", "sh setsid", "true"] {
            assert!(!is_one(line), "{line}");
        }
        assert_eq!(remark(&[]), None);
    }
}
