//! How much memory there is for this process: the machine's, and less where somebody has set a limit to it.

use std::{
    collections::{BinaryHeap, VecDeque},
    fs,
    path::Path,
};

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

/// The addresses that so much memory of so many threads takes while it is filled: a list that grows takes twice its room at once, and what
/// gives memory out to threads takes addresses in advance (glibc 64 MiB for each but the first), those that watch included, for which what is
/// small leaves room.
pub(crate) const fn in_addresses(memory: u64, threads: u64) -> u64 {
    const A_THREAD: u64 = 64 << 20;
    let watched = if memory <= A_THREAD { 0 } else { 2 * A_THREAD };
    let threads = threads.saturating_sub(1).saturating_mul(A_THREAD);
    memory.saturating_mul(2).saturating_add(watched).saturating_add(threads)
}

/// A list that grows.
pub(crate) trait Grows {
    /// The bytes that one place takes, how many there are, and how many of them are free.
    const PLACE: usize;
    fn places(&self) -> usize;
    fn free_places(&self) -> usize;
    /// Takes room for so many more; false if there is none.
    fn grow(&mut self, more: usize) -> bool;
}

macro_rules! grows {
    ($($list:ident $(: $bound:ident)?),*) => {$(
        impl<T $(: $bound)?> Grows for $list<T> {
            const PLACE: usize = size_of::<T>();
            fn places(&self) -> usize {
                self.capacity()
            }
            fn free_places(&self) -> usize {
                self.capacity() - self.len()
            }
            fn grow(&mut self, more: usize) -> bool {
                self.try_reserve_exact(more).is_ok()
            }
        }
    )*};
}

grows!(BinaryHeap: Ord, VecDeque, Vec);

/// Whether a list has room for so many more, or gets it, half as much again at least: where there is memory for it beside the list as it is,
/// for what the lists of the other threads grow by, and for all that is small.
pub(crate) fn has_room(list: &mut impl Grows, more: usize, threads: usize) -> bool {
    grown(list, more, threads, free)
}

fn grown<L: Grows>(list: &mut L, more: usize, threads: usize, free: impl FnOnce() -> Option<u64>) -> bool {
    /// What grows by less is not asked about, and what is kept for all else.
    const SMALL: usize = 1 << 20;
    const SPARE: u64 = 8 << 20;
    let lacks = more.saturating_sub(list.free_places());
    if lacks == 0 {
        return true;
    }
    let more = more.max((list.places() / 2).saturating_add(list.free_places()));
    let grown = list.places().saturating_sub(list.free_places()).saturating_add(more).saturating_mul(L::PLACE);
    let others = (grown as u64 / 3).saturating_mul(threads.saturating_sub(1) as u64);
    let needed = (grown as u64).saturating_add(others).saturating_add(SPARE);
    let fits = grown < SMALL || free().is_none_or(|free| free >= needed);
    fits && list.grow(more)
}

/// The bytes of memory that this process has.
pub(super) fn taken() -> Option<u64> {
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
        assert_eq!([0, 64, 65, 500].map(|memory| in_addresses(mib(memory), 1)), [0, 128, 258, 1128].map(mib));
        assert_eq!([16, 65].map(|memory| in_addresses(mib(memory), 3)), [160, 386].map(mib));
        assert_eq!(in_addresses(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn a_list_grows_where_there_is_memory_for_it_beside_what_it_is() {
        let mut list: VecDeque<u64> = VecDeque::with_capacity(1 << 20);
        list.extend(0..1 << 20);
        let free = |mib: u64| move || Some(mib << 20);
        assert!(!grown(&mut list, 10, 1, free(19)) && list.capacity() == 1 << 20, "12 MiB, and 8 to spare");
        assert!(!grown(&mut list, 10, 3, free(27)), "two other lists grow by 4 MiB each");
        assert!(grown(&mut list, 0, 1, free(0)), "nothing is wanted");
        assert!(grown(&mut list, 10, 1, free(20)) && list.capacity() >= 3 << 19, "half as much again");
        assert!(grown(&mut list, 1 << 19, 1, || unreachable!("there is room")));
        assert!(!grown(&mut list, usize::MAX / 8, 1, || None), "as much as nobody has");
        assert!(grown(&mut Vec::<u64>::new(), 1000, 1, free(0)), "what is small is not asked about");
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
