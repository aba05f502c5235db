//! Who else may do what a file's group may: with an access list (a POSIX ACL), anybody in it; without one, whoever is in the group.

use crate::system_text;
use nix::{
    sys::stat::{Mode, umask},
    unistd::{Gid, Group, Uid, User, getegid, geteuid},
};
use std::{
    fs::{self, File, Metadata, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::Path,
    sync::OnceLock,
};

/// Whether a file is the caller's.
pub(crate) fn is_own(owner: u32) -> bool {
    owner == geteuid().as_raw() && is_known(owner)
}

/// Whether two things have one owner.
pub(crate) fn is_same(owner: u32, other: u32) -> bool {
    owner == other && is_known(owner)
}

/// Whether two things have one group.
pub(crate) fn is_same_group(group: u32, other: u32) -> bool {
    group == other && groups().has(group)
}

/// Whether a number is that of one user. In a namespace of users all that it does not know have the same.
pub(crate) fn is_known(owner: u32) -> bool {
    users().has(owner)
}

/// The numbers of users, or of groups, in a namespace of users.
struct Numbers {
    map: Option<String>,
    /// What all have that it does not know.
    unknown: Option<u32>,
    /// Whether the system says anything of it.
    is_shown: bool,
}

fn users() -> &'static Numbers {
    static USERS: OnceLock<Numbers> = OnceLock::new();
    USERS.get_or_init(|| Numbers::read("uid"))
}

fn groups() -> &'static Numbers {
    static GROUPS: OnceLock<Numbers> = OnceLock::new();
    GROUPS.get_or_init(|| Numbers::read("gid"))
}

impl Numbers {
    fn read(kind: &str) -> Numbers {
        let unknown = system_text::read(format!("/proc/sys/kernel/overflow{kind}"));
        let own = if kind == "uid" { geteuid().as_raw() } else { getegid().as_raw() };
        Numbers::of(system_text::read(format!("/proc/self/{kind}_map")).ok(), unknown.ok(), own)
    }

    /// What the system says of them. In a sandbox that shows nothing of it nobody has the number but the caller, if that does.
    fn of(map: Option<String>, unknown: Option<String>, own: u32) -> Numbers {
        // Unless the system was told another.
        const OVERFLOW: u32 = 65_534;
        let told = unknown.and_then(|number| number.trim().parse().ok());
        // Elsewhere there are no such namespaces.
        let is_shown = map.is_some() || told.is_some() || !cfg!(target_os = "linux");
        let unknown = match &map {
            Some(map) => Some(told.unwrap_or(OVERFLOW)).filter(|number| outside(map, *number).is_none()),
            None => Some(OVERFLOW).filter(|number| !is_shown && *number != own),
        };
        Numbers { map, unknown, is_shown }
    }

    fn has(&self, number: u32) -> bool {
        self.unknown != Some(number)
    }

    /// Whether there is but one.
    fn are_one(&self) -> bool {
        let is_one = |map: &String| map.split_whitespace().nth(2) == Some("1") && map.lines().count() == 1;
        self.map.as_ref().is_some_and(is_one)
    }

    /// What has a number here has this one around the namespace, as far as the system says.
    fn outside(&self, number: u32) -> Option<u32> {
        match &self.map {
            Some(map) => outside(map, number),
            None => Some(number).filter(|_| self.is_shown),
        }
    }
}

/// What a user, or a group, of this number in a namespace has around it, if it has one.
fn outside(map: &str, number: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        let (first, there, count) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
        let nth = number.checked_sub(first).filter(|nth| *nth < count)?;
        there.checked_add(nth)
    })
}

/// Whether a group is the user's alone: it has the user's number, as many systems make one for each, root's included, and nobody else
/// is in it. One that all users have in common is theirs as well.
pub(crate) fn is_own_group(group: u32) -> bool {
    is_alone_in(group, geteuid().as_raw())
}

/// The same of another user. In a namespace of users the list of those who are in a group may be the one around it; one that has a single
/// group, as a sandbox's, may be in another, and whose its number is there nobody knows.
fn is_alone_in(group: u32, user: u32) -> bool {
    let is_alone = |group, user| group == user && !has_others(group, user);
    let is_alone_outside = match (groups().outside(group), users().outside(user)) {
        (Some(there), Some(user_there)) => (there, user_there) == (group, user) || is_alone(there, user_there),
        _ => false,
    };
    !groups().are_one() && is_alone_outside && is_alone(group, user)
}

/// Whether anybody else is in a user's group, as far as the system lists its members and users.
fn has_others(group: u32, user: u32) -> bool {
    let own = User::from_uid(Uid::from_raw(user)).ok().flatten().map(|user| user.name);
    let listed = Group::from_gid(Gid::from_raw(group)).ok().flatten();
    let is_listed = listed.is_some_and(|group| group.mem.iter().any(|name| Some(name) != own.as_ref()));
    // Of several groups that have one number the system names the first.
    is_listed
        || says("/etc/group", |groups| has_members(groups, group, own.as_deref()))
        || says("/etc/passwd", |users| belong(users, group, user))
}

/// Whether a list of the system's says so, or cannot be read though there is one.
fn says(list: &str, so: impl FnOnce(&str) -> bool) -> bool {
    match system_text::read(list) {
        Ok(text) => so(&text),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether any group of a number has members but this one.
fn has_members(groups: &str, number: u32, own: Option<&str>) -> bool {
    let of_number = groups.lines().map(|line| line.split(':').skip(2).collect::<Vec<_>>());
    let mut lists = of_number.filter(|parts| parts.first().and_then(|gid| gid.trim().parse().ok()) == Some(number));
    lists.any(|parts| {
        parts.get(1).is_some_and(|names| names.split(',').any(|name| !name.is_empty() && Some(name) != own))
    })
}

/// Whether a user with another number belongs to a group from the beginning.
fn belong(users: &str, group: u32, own: u32) -> bool {
    users.lines().any(|user| {
        // The system skips blanks before numbers.
        let mut numbers = user.split(':').skip(2).map(|number| number.trim().parse::<u32>());
        let (user, first) = (numbers.next(), numbers.next());
        first == Some(Ok(group)) && user != Some(Ok(own))
    })
}

/// Whether a folder is one like `/tmp`: others may make something in it, and nobody moves what is not theirs.
pub(crate) fn is_shared(folder: &Metadata, path: &Path) -> bool {
    is_sticky(folder) && is_open(folder, path)
}

/// Whether others than the caller and a folder's owner may put something else in the place of what is in it, whosever that is.
pub(crate) fn may_be_exchanged(folder: &Metadata, path: &Path) -> bool {
    let is_the_owners =
        || folder.mode() & 0o002 == 0 && is_alone_in(folder.gid(), folder.uid()) && !path_has_list(path);
    !is_sticky(folder) && is_open(folder, path) && !is_the_owners()
}

/// Whether others than the caller and a folder's owner may put something into it: where nothing there can be exchanged, it may have come
/// from a folder of theirs.
pub(crate) fn is_open_to_others(folder: &Metadata, path: &Path) -> bool {
    may_be_exchanged(folder, path) || is_shared(folder, path)
}

fn is_sticky(folder: &Metadata) -> bool {
    folder.mode() & 0o1000 != 0
}

/// Whether root may remove what belongs to somebody else from a folder: in a sticky one, which is not its own either, that takes more than to be root
/// (`CAP_FOWNER`).
pub(crate) fn may_be_removed(folder: &Metadata) -> bool {
    !is_sticky(folder) || is_own(folder.uid()) || may_change_others()
}

/// Whether the caller may do with files of others what their owners may, as root may where nobody has taken that from it.
pub(crate) fn may_change_others() -> bool {
    #[cfg(target_os = "linux")]
    return has(rustix::thread::CapabilitySet::FOWNER);
    #[cfg(not(target_os = "linux"))]
    geteuid().is_root()
}

/// Whether the caller may give files away.
pub(crate) fn may_give_away() -> bool {
    #[cfg(target_os = "linux")]
    return has(rustix::thread::CapabilitySet::CHOWN);
    #[cfg(not(target_os = "linux"))]
    geteuid().is_root()
}

#[cfg(target_os = "linux")]
fn has(capability: rustix::thread::CapabilitySet) -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(capability))
}

/// Whether others than its owner may write to it: everybody, a group that is not the caller's alone, or who is in an access list.
fn is_open(folder: &Metadata, path: &Path) -> bool {
    let by_a_group = || folder.mode() & 0o020 != 0 && (!is_own_group(folder.gid()) || path_has_list(path));
    folder.mode() & 0o002 != 0 || by_a_group()
}

/// What others may do with a file of ours to which somebody may have given its name, in a folder like `/tmp`: no more than with a new one,
/// and for a group that a new one would not get, and everybody, what both have.
pub(crate) fn anew(file: &Metadata, folder: &Metadata) -> u32 {
    let of_new_ones = if folder.mode() & 0o2000 != 0 { folder.gid() } else { getegid().as_raw() };
    let mode = file.mode() & 0o777 & !mask();
    if is_same_group(file.gid(), of_new_ones) { mode } else { without_group(mode) }
}

/// Permissions of a file that loses its group: nobody but the owner may do more than both that group and everybody could. Who is in it may
/// have been shut out.
pub(crate) fn without_group(mode: u32) -> u32 {
    let left = mode & mode >> 3 & 0o007;
    mode & 0o7700 | left << 3 | left
}

/// What new files are not allowed. Where the system does not tell, it is asked by setting it.
pub(crate) fn mask() -> u32 {
    let told = system_text::read("/proc/self/status").unwrap_or_default();
    let told = told.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("Umask:")?.trim(), 8).ok());
    if let Some(mask) = told {
        return mask;
    }
    let mask = umask(Mode::from_bits_truncate(0o077));
    umask(mask);
    mask.bits()
}

/// Whether a file has one.
#[cfg(target_os = "linux")]
pub(crate) fn has_list(file: &File) -> bool {
    is_one(rustix::fs::fgetxattr(file, NAME, &mut [0; 256]))
}

/// Whether what a path leads to has one.
#[cfg(target_os = "linux")]
pub(crate) fn path_has_list(path: &Path) -> bool {
    is_one(rustix::fs::getxattr(path, NAME, &mut [0; 256]))
}

#[cfg(target_os = "linux")]
const NAME: &str = "system.posix_acl_access";

/// That which a folder gives to all that is made in it.
#[cfg(target_os = "linux")]
const OF_NEW_ONES: &str = "system.posix_acl_default";

/// One that is too long is one, and so is what cannot be asked about, but for want of lists.
#[cfg(target_os = "linux")]
fn is_one(length: rustix::io::Result<usize>) -> bool {
    use rustix::io::Errno;
    !matches!(length, Ok(0) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS))
}

/// Takes away the list that a new file has from its folder, where it gets what an older file allowed: with the list that would be more.
///
/// # Errors
///
/// It stays.
#[cfg(target_os = "linux")]
pub(crate) fn take_list(file: &File) -> io::Result<()> {
    take(file, NAME)
}

#[cfg(target_os = "linux")]
fn take(file: &File, name: &str) -> io::Result<()> {
    use rustix::io::Errno;
    match rustix::fs::fremovexattr(file, name) {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The same of a folder, which hands its list on, too: it has these permissions then, others as far as the mask allows.
///
/// # Errors
///
/// They stay.
pub(crate) fn take_lists_of_a_folder(folder: &File, mode: u32) -> io::Result<()> {
    // Without its list a folder allows what the list's mask did: to nobody, until it has what it is to have.
    folder.set_permissions(Permissions::from_mode(0o700))?;
    #[cfg(target_os = "linux")]
    take(folder, OF_NEW_ONES)?;
    take_list(folder)?;
    folder.set_permissions(Permissions::from_mode(mode & !(mask() & 0o077)))
}

/// Lets its owner into a folder that was made under a mask that is for files alone (0177), if it was opened just to be looked at, too.
pub(crate) fn let_owner_in(folder: &File) {
    if let Ok(data) = folder.metadata()
        && data.mode() & 0o700 != 0o700
    {
        let way = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let _ = fs::set_permissions(way, Permissions::from_mode(data.mode() & 0o7777 | 0o700));
    }
}

/// What others may do with a new file in a folder, as the system has it: the folder's list for new ones says it, or the mask.
pub(crate) fn of_new_ones(folder: &Path) -> u32 {
    #[cfg(target_os = "linux")]
    {
        use rustix::io::Errno;
        // The most that one can have.
        let mut list = vec![0; 64 << 10];
        match rustix::fs::getxattr(folder, OF_NEW_ONES, &mut list[..]) {
            Ok(0) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => {}
            // One that is not understood may give others nothing.
            found => return found.ok().and_then(|length| mode_of_a_list(&list[..length])).unwrap_or(0o600) & 0o666,
        }
    }
    let _ = folder;
    0o666 & !mask()
}

/// What a list comes to: of the group, what is the most for it and for all who are named.
#[cfg(target_os = "linux")]
fn mode_of_a_list(list: &[u8]) -> Option<u32> {
    let entries: Vec<(u16, u32)> = entries(list)?.collect();
    let rights = |tag: u16| entries.iter().find(|(one, _)| *one == tag).map(|(_, rights)| *rights);
    let (owner, group, others) = (rights(1)?, rights(16).or_else(|| rights(4))?, rights(32)?);
    Some(owner << 6 | group << 3 | others)
}

/// What each entry is about, and the rights that it gives.
#[cfg(target_os = "linux")]
fn entries(list: &[u8]) -> Option<impl Iterator<Item = (u16, u32)>> {
    let two = |entry: &[u8], at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
    Some(list.get(4..)?.chunks_exact(8).map(move |entry| (two(entry, 0), u32::from(two(entry, 2)) & 7)))
}

/// What is left of a file's permissions without its list, if it has one: what stands in the group's place is the most for all of that, and everybody
/// may do no more than those whom it names, who may be shut out.
pub(crate) fn without_list(path: &Path, mode: u32) -> u32 {
    #[cfg(target_os = "linux")]
    if path_has_list(path) {
        // And the most that they get.
        const NAMED: [u16; 3] = [2, 8, 16];
        let mut list = vec![0; 64 << 10];
        let found = rustix::fs::getxattr(path, NAME, &mut list[..]).ok().and_then(|length| entries(&list[..length]));
        // One that is not understood may shut out anybody.
        let Some(named) = found else { return mode & 0o700 };
        let least = named.filter(|(about, _)| NAMED.contains(about)).fold(7, |least, (_, rights)| least & rights);
        return mode & (0o700 | least);
    }
    let _ = path;
    mode
}

/// Elsewhere nobody is asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn take_list(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Elsewhere nobody is asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_list(_file: &File) -> bool {
    false
}

/// Elsewhere nobody is asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn path_has_list(_path: &Path) -> bool {
    false
}

/// Gives a file or folder a list by which user 65534 may do so much at most.
#[cfg(all(test, target_os = "linux"))]
pub(crate) fn give_list(path: &Path, rights: u16) -> rustix::io::Result<()> {
    give_list_as(NAME, path, rights)
}

/// Gives a folder one for all that is made in it.
#[cfg(all(test, target_os = "linux"))]
pub(crate) fn give_list_to_new(folder: &Path, rights: u16) -> rustix::io::Result<()> {
    give_list_as(OF_NEW_ONES, folder, rights)
}

#[cfg(all(test, target_os = "linux"))]
fn give_list_as(name: &str, path: &Path, rights: u16) -> rustix::io::Result<()> {
    // Version 2: the owner, that user, the group, the most for both, others.
    let entries = [(1, 7, u32::MAX), (2, rights, 65_534), (4, 4, u32::MAX), (16, rights, u32::MAX), (32, 4, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, who) in entries {
        list.extend(u16::to_le_bytes(tag).into_iter().chain(u16::to_le_bytes(rights)).chain(who.to_le_bytes()));
    }
    rustix::fs::setxattr(path, name, &list, rustix::fs::XattrFlags::empty())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn who_belongs_to_a_group_from_the_beginning_is_in_it() {
        let users = "root:x:0:0:root:/root:/bin/sh\nsync:x:5:0:sync:/sbin:/bin/sync\nann:x:7:7::/:/bin/sh\nbroken\n";
        assert!(belong("eve:x:8:\t 7::/:/bin/sh", 7, 7) && has_members("team:x: 7:eve", 7, None));
        assert!(belong(users, 0, 0) && !belong(users, 7, 7) && belong(users, 7, 8) && !belong(users, 9, 9));
    }

    #[test]
    fn a_group_has_the_members_of_all_that_have_its_number() {
        let groups = "ann:x:7:\nbroken\nteam:x:7:ann,eve\nalone:x:8:ann\nnone:x:9\nx:x:y:eve\n";
        assert!(
            has_members(groups, 7, Some("ann")) && !has_members(groups, 8, Some("ann")) && has_members(groups, 8, None)
        );
        assert!(!has_members(groups, 9, None) && !has_members(groups, 10, None));
    }

    /// In a list that cannot be read there may be others.
    #[test]
    fn a_list_says_nothing_only_where_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list").to_string_lossy().into_owned();
        assert!(!says(&list, |_| true));
        fs::write(&list, b"\xfc\nteam:x:7:eve\n").unwrap();
        assert!(says(&list, |groups| has_members(groups, 7, None)) && !says(&list, |_| false));
        assert!(says(&folder.path().to_string_lossy(), |_| false));
    }

    /// What a mask of 002 makes, which is that of users who have a group for themselves.
    #[test]
    fn a_folder_of_another_user_is_not_exchanged_by_that_ones_own_group() {
        use std::os::unix::fs::{PermissionsExt, chown};
        const ALONE: u32 = 41_234;
        let folder = tempfile::tempdir().unwrap();
        for (owner, group, mode, is) in [
            (ALONE, ALONE, 0o775, false),
            (ALONE, ALONE + 1, 0o775, true),
            (ALONE, ALONE, 0o777, true),
            (ALONE, ALONE + 1, 0o755, false),
            (ALONE, ALONE + 1, 0o1777, false),
        ] {
            chown(folder.path(), Some(owner), Some(group)).expect("only root can be another user, too");
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            let data = fs::metadata(folder.path()).unwrap();
            assert_eq!(may_be_exchanged(&data, folder.path()), is, "{owner} {group} {mode:o}");
        }
        chown(folder.path(), Some(0), Some(0)).unwrap();
    }

    #[test]
    fn whom_a_namespace_does_not_know_is_nobody_there() {
        let maps = |map: &str, number| outside(map, number).is_some();
        assert!(maps("         0          0 4294967295\n", 65_534));
        assert!(!maps("", 65_534) && !maps("0 1000 1\n", 65_534) && !maps("0 100000 65534\n", 65_534));
        assert!(maps("0 1000 1\n1 100000 65536\n", 65_534) && maps("0 1000 1\n", 0) && !maps("x\n", 0));
        let numbers = |map: &str| Numbers::of(Some(map.to_owned()), Some("65534\n".to_owned()), 0);
        let (all, some) = (numbers("0 0 4294967295\n"), numbers("0 1000 1\n5 100000 2\n"));
        assert!(all.has(65_534) && all.has(7) && !some.has(65_534) && some.has(6));
        let outside = |number| (all.outside(number), some.outside(number));
        assert_eq!(
            [0, 1, 6, 7].map(outside),
            [(Some(0), Some(1000)), (Some(1), None), (Some(6), Some(100_001)), (Some(7), None)]
        );
        assert!(numbers("         0       1000          1\n").are_one());
        assert!(!all.are_one() && !some.are_one() && !Numbers::of(None, None, 0).are_one());
        // As in a sandbox that shows nothing of the system.
        assert!(!Numbers::of(Some("0 1000 1\n".to_owned()), None, 0).has(65_534));
        assert!(!Numbers::of(None, None, 7).has(65_534) && Numbers::of(None, None, 65_534).has(65_534));
        assert_eq!(Numbers::of(None, None, 0).outside(7), None);
        let nothing_told = Numbers::of(None, Some("65534".to_owned()), 0);
        assert!(nothing_told.has(65_534) && nothing_told.outside(65_534) == Some(65_534));
    }

    #[test]
    fn a_list_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!has_list(file.as_file()) && !path_has_list(file.path()));
        if let Err(error) = give_list(file.path(), 6) {
            eprintln!("SKIPPED a_list_is_seen: the temporary folder takes none: {error}");
            return;
        }
        assert!(has_list(file.as_file()) && path_has_list(file.path()));
        // Of what is gone nobody knows.
        assert!(path_has_list(&file.path().join("none")));
    }
}
