//! Open files: a client needs one, and the server another for it.

use crate::talk::Fault;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What else is open.
const OTHERS: u64 = 64;

/// Makes room for the sockets of so many clients, each with as many ends in this process, and says how many files there are besides.
/// `or` says what else there is to do, where there may be so many clients.
///
/// # Errors
///
/// The hard limit allows fewer.
pub(crate) fn make_room(who: &str, clients: u64, ends: u64, or: impl FnOnce(u64) -> String) -> Result<u64, Fault> {
    let sockets = clients.saturating_mul(ends);
    let needed = sockets.saturating_add(OTHERS);
    let besides = |current: Option<u64>| current.unwrap_or(u64::MAX) - sockets - OTHERS / 2;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Any user of the machine may connect to the servers, and hold a file of ours for a moment: the more there are, the less that matters.
    if maximum != current && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok() {
        return make_room(who, clients, ends, or);
    }
    if current.is_none_or(|current| current >= needed) {
        return Ok(besides(current));
    }
    let is_allowed = maximum.is_none_or(|maximum| maximum >= needed);
    if is_allowed && setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).is_ok() {
        return Ok(besides(Some(needed)));
    }
    let most = maximum.unwrap_or(needed).saturating_sub(OTHERS) / ends.max(1);
    let problem = format!(
        "the {who} needs {needed} open files at once, and this process may have {}",
        maximum.or(current).unwrap_or_default()
    );
    Err(Fault::new(problem)
        .hint(format!("raise the hard limit (ulimit -Hn {needed}, or LimitNOFILE={needed} of a unit){}", or(most))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_that_needs_too_many_files_says_what_to_set() {
        let make_room = |clients| make_room("storm", clients, 2, |most| format!("; or take {most} clients"));
        let besides = make_room(1).unwrap();
        assert_eq!(make_room(11).unwrap(), besides - 20);
        // More than any system allows.
        let fault = make_room(1 << 40).unwrap_err().to_json();
        assert!(fault.contains("the storm needs 2199023255616 open files at once"), "{fault}");
        assert!(fault.contains("ulimit -Hn 2199023255616"), "{fault}");
    }
}
