//! What the figures were measured on.

use std::{fs, process::Command};

/// The processor, the system and the compiler, in a line.
pub(crate) fn describe() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, m)| m);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let rustc = Command::new("rustc").arg("--version").output().map(|out| out.stdout).unwrap_or_default();
    let date = Command::new("date").arg("+%Y-%m-%d").output().map(|out| out.stdout).unwrap_or_default();
    let (rustc, date) = (String::from_utf8_lossy(&rustc), String::from_utf8_lossy(&date));
    format!("{model}, {cores} cores, Linux {}, {}, {}", kernel.trim(), rustc.trim(), date.trim())
}
