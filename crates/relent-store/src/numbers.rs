//! Numbers of users and groups in a namespace of users, where all that it does not know have the same.

use rustix::process::{getegid, geteuid};
use std::fs;

/// The number that all have, unless the system was told another.
const OVERFLOW: u32 = 65_534;

/// Whether a number is that of one user (`uid`), or of one group (`gid`).
pub(crate) fn is_known(kind: &str, number: u32) -> bool {
    let read = |path: String| fs::read_to_string(path).ok();
    let all = read(format!("/proc/sys/kernel/overflow{kind}")).and_then(|all| all.trim().parse().ok());
    let own = if kind == "uid" { geteuid().as_raw() } else { getegid().as_raw() };
    unknown(all, read(format!("/proc/self/{kind}_map")).as_deref(), own) != Some(number)
}

/// What all have that a namespace with this map does not know. In a sandbox that shows nothing of it nobody has the number but the caller.
fn unknown(all: Option<u32>, map: Option<&str>, own: u32) -> Option<u32> {
    match (all, map) {
        (all, Some(map)) => Some(all.unwrap_or(OVERFLOW)).filter(|all| !has(map, *all)),
        (None, None) => Some(OVERFLOW).filter(|all| *all != own && cfg!(target_os = "linux")),
        (Some(_), None) => None,
    }
}

fn has(map: &str, number: u32) -> bool {
    let is_in = |line: &str| {
        let mut numbers = line.split_whitespace().map_while(|number| number.parse::<u32>().ok());
        let (first, count) = (numbers.next()?, numbers.nth(1)?);
        Some(number >= first && number - first < count)
    };
    map.lines().any(|line| is_in(line) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_a_namespace_does_not_know_is_nobodys() {
        assert!(has("         0          0 4294967295\n", 65_534) && has("0 1000 1\n1 100000 65536\n", 65_534));
        for map in ["", "x\n", "0 1000 1\n", "0 100000 65534\n"] {
            assert!(!has(map, 65_534), "{map}");
        }
        assert!(is_known("uid", 0) && is_known("gid", 0));
        let all = "0 0 4294967295\n";
        for (overflow, map, own, nobodys) in [
            (Some(65_534), Some(all), 0, None),
            (Some(7), Some("0 1000 1\n"), 0, Some(7)),
            (None, Some("0 1000 1\n"), 0, Some(OVERFLOW)),
            (None, Some(all), 0, None),
            (None, None, 0, Some(OVERFLOW)),
            (None, None, OVERFLOW, None),
            (Some(65_534), None, 0, None),
        ] {
            assert_eq!(unknown(overflow, map, own), nobodys, "{overflow:?} {map:?} {own}");
        }
    }
}
