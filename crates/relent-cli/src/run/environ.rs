//! The environment that a process was started with, as far as the system shows it.

use super::processes;
use nix::unistd::Pid;
use std::{fs::File, io::Read};

/// What Linux gives a program at most, arguments and environment together. A process can make its own look larger, and
/// whoever looks at all of them must not read that.
const LARGEST: u64 = 6 << 20;

/// All of it; nothing for those that have ended, and for those of others.
pub(super) fn of(pid: Pid) -> Vec<u8> {
    let mut environment = Vec::new();
    let Some(folder) = processes::folder(pid) else { return environment };
    let file = File::open(folder.join("environ"));
    match file.and_then(|file| file.take(LARGEST).read_to_end(&mut environment)) {
        Ok(_) => environment,
        Err(_) => Vec::new(),
    }
}

/// The values that a variable has in it.
pub(super) fn values<'a>(environment: &'a [u8], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let entries = environment.split(|byte| *byte == 0);
    entries.filter_map(move |entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}
