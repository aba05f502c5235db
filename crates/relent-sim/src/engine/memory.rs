//! How much memory there is for this process: the machine's, and less where somebody has set a limit to it.

use super::control::Control;
use std::{fs, path::Path};

/// The bytes of memory that this process may still take, where the system says: what the machine has, what its control groups (a
/// container's limit) leave, and what its own limits (`ulimit -v`, `-d`) do.
pub(crate) fn free() -> Option<u64> {
    let of_machine = kib(&text("/proc/meminfo"), "MemAvailable:");
    let of_groups = in_groups(&text("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"));
    let of_process = [left_of("Max address space", "VmSize:"), left_of("Max data size", "VmData:")];
    [of_machine, of_groups].into_iter().chain(of_process).flatten().min()
}

/// What one of its own limits leaves this process, of which it has taken some.
fn left_of(limit: &str, taken: &str) -> Option<u64> {
    let limits = text("/proc/self/limits");
    let status = text("/proc/self/status");
    Some(soft(&limits, limit)?.saturating_sub(kib(&status, taken).unwrap_or(0)))
}

/// The bytes of addresses that this process may still take, if somebody has set a limit to that (`ulimit -v`).
pub(crate) fn addresses() -> Option<u64> {
    left_of("Max address space", "VmSize:")
}

/// The addresses that so much memory takes while it is filled: a list that grows takes twice its room at once, and what gives memory out to
/// threads takes addresses in advance (glibc 64 MiB for each), but not where there are none to spare, as what is small finds out.
pub(crate) const fn in_addresses(memory: u64) -> u64 {
    const SMALL: u64 = 64 << 20;
    if memory <= SMALL { memory } else { memory.saturating_mul(2).saturating_add(2 * SMALL) }
}

/// Does what was reckoned to need so many bytes, and stops it if it takes more and leaves less than twice that again: a list that grows
/// takes twice its room at once. `None`: it was stopped. Whoever works looks now and then: a thread that did would itself take addresses in
/// advance, for which there may be no room.
pub(crate) fn watched<T>(needed: u64, control: &Control, work: impl FnOnce() -> T) -> Option<T> {
    let (Some(at_first), Some(_)) = (taken(), free()) else { return Some(work()) };
    let most = at_first.saturating_add(needed);
    control.watched_by(move || {
        let more = taken().unwrap_or(0).saturating_sub(most);
        more > 0 && free().is_some_and(|free| free / 2 < more)
    });
    let worked = work();
    (!control.unwatched()).then_some(worked)
}

/// The bytes of memory that this process has.
fn taken() -> Option<u64> {
    kib(&text("/proc/self/status"), "VmRSS:")
}

/// A text of the system's, in which a name may be in any encoding; nothing where there is none.
fn text(path: impl AsRef<Path>) -> String {
    fs::read(path).map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// What stands in a line of kilobytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// The limit of a process that counts; `None` for none.
fn soft(limits: &str, name: &str) -> Option<u64> {
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// What is left in the groups of a process, of either version, and in all that are around them.
fn in_groups(own: &str, root: &Path) -> Option<u64> {
    let groups = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, kind, path) = (parts.next()?, parts.next()?, parts.next()?);
        let path = path.trim_start_matches('/');
        let names = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"];
        match kind {
            "" => Some((root.to_owned(), path, ["memory.max", "memory.current", "inactive_file"])),
            _ if kind.split(',').any(|one| one == "memory") => Some((root.join("memory"), path, names)),
            _ => None,
        }
    });
    let left = |group: &Path, [limit, taken, cached]: [&str; 3]| {
        let text = |name: &str| text(group.join(name));
        let most: u64 = text(limit).trim().parse().ok()?;
        // What was read from files and can be read again is given back.
        let stat = text("memory.stat");
        let cached = stat.lines().filter_map(|line| line.split_once(' ')).find(|(name, _)| *name == cached);
        let cached: u64 = cached.and_then(|(_, bytes)| bytes.trim().parse().ok()).unwrap_or(0);
        let taken: u64 = text(taken).trim().parse().unwrap_or(0);
        Some(most.saturating_sub(taken.saturating_sub(cached)))
    };
    // In a namespace of its own, the group of a process is the root.
    groups
        .flat_map(|(root, path, names)| {
            let all: Vec<u64> =
                Path::new(path).ancestors().filter_map(|group| left(&root.join(group), names)).collect();
            all
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_process_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max data size             unlimited            unlimited            bytes\n\
                      Max address space         1024000000           unlimited            bytes\n";
        assert_eq!(soft(limits, "Max address space"), Some(1_024_000_000));
        assert_eq!(soft(limits, "Max data size"), None);
        assert_eq!(kib("VmPeak:\t  9 kB\nVmSize:\t    2000 kB\n", "VmSize:"), Some(2_048_000));
        assert!(free().is_none_or(|free| free > 0));
    }

    #[test]
    fn what_grows_takes_more_addresses_than_memory() {
        let mib = |mib: u64| mib << 20;
        assert_eq!([0, 64, 65, 500].map(|memory| in_addresses(mib(memory))), [0, 64, 258, 1128].map(mib));
        assert_eq!(in_addresses(u64::MAX), u64::MAX);
    }

    #[test]
    fn the_least_of_all_groups_counts() {
        let root = std::env::temp_dir().join(format!("relent-groups-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(in_groups("0::/a/b\n", &root), None);
        write("a/b/memory.max", "max\n");
        write("a/memory.max", "1000\n");
        write("a/memory.current", "700\n");
        assert_eq!(in_groups("0::/a/b\n", &root), Some(300));
        write("a/memory.stat", "anon 500\ninactive_file 150\n");
        assert_eq!(in_groups("0::/a/b\n", &root), Some(450));
        write("memory.max", "1200\n");
        write("memory.current", "1100\n");
        assert_eq!(in_groups("0::/a/b\n", &root), Some(100));
        write("memory/x/memory.limit_in_bytes", "90\n");
        write("memory/x/memory.usage_in_bytes", "20\n");
        let both = "5:cpu:/x\n4:memory:/x/not/seen/here\n0::/\n";
        assert_eq!(in_groups(both, &root), Some(70));
        fs::remove_dir_all(root).unwrap();
    }
}
