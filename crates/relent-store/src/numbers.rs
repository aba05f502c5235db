//! Numbers of users and groups in a namespace of users, where all that it does not know have the same.

use std::fs;

/// Whether a number is that of one user (`uid`), or of one group (`gid`).
pub(crate) fn is_known(kind: &str, number: u32) -> bool {
    let unknown = || {
        let all = fs::read_to_string(format!("/proc/sys/kernel/overflow{kind}")).ok()?.trim().parse().ok()?;
        let map = fs::read_to_string(format!("/proc/self/{kind}_map")).ok()?;
        (!has(&map, all)).then_some(all)
    };
    unknown() != Some(number)
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
    }
}
