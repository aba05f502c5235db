//! The access list of what is beside a file that has one: who may use the file may use it.
//!
//! Without one of its own, what somebody makes whom the file's list names is their own, and shuts out the file's owner. With one that the
//! folder gives to all that is made there, it lets in who may not use the file.

use rustix::fs::{AtFlags, CWD, Mode, Stat, XattrFlags, chmodat, lgetxattr, removexattr, setxattr, statat};
use std::{
    collections::BTreeMap,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

const NAME: &str = "system.posix_acl_access";

/// That of a folder for all that is made in it.
const OF_NEW_ONES: &str = "system.posix_acl_default";

/// The most bytes that one can have.
const MOST: usize = 64 << 10;

/// How a list begins: which way of writing it is.
const VERSION: [u8; 4] = 2_u32.to_le_bytes();

// Whom an entry is about: the owner, a user, the owning group, a group; the most for all but the owner and the rest; the rest.
const OWNER: u16 = 1;
const USER: u16 = 2;
const GROUP_OF_IT: u16 = 4;
const GROUP: u16 = 8;
const MASK: u16 = 16;
const REST: u16 = 32;

/// What an entry has for a number that is about nobody by number.
const NO_NUMBER: u32 = u32::MAX;

/// Whom a part is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// All whom the file is for.
    All,
    /// Those of them alone who may write to the file.
    Writers,
}

impl For {
    /// What is left to whom the file gives these rights.
    fn of(self, rights: u16) -> u16 {
        if self == For::Writers && rights & 2 == 0 { 0 } else { rights }
    }
}

/// Whose something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whose {
    user: u32,
    group: u32,
}

impl Whose {
    fn of(data: &Stat) -> Whose {
        Whose { user: data.st_uid, group: data.st_gid }
    }
}

/// Whether all that is made in a folder gets a list there.
pub(super) fn are_given_in(folder: &Path) -> bool {
    rustix::fs::getxattr(folder, OF_NEW_ONES, &mut vec![0; MOST][..]).is_ok_and(|length| length > 0)
}

/// Whether a file has one.
pub(super) fn is_on(file: &Path) -> bool {
    read(file).is_some()
}

/// Whether a part has the list that it should have: none if the file has none. `part` is open to be looked at.
pub(super) fn is_well(part: &OwnedFd, file: &Path, of_file: &Stat) -> bool {
    read_of(part) == wanted(part, file, of_file, For::All)
}

/// Gives a part the list that it should have, which says what its mode is; one without any gets this mode, when that of its folder is gone:
/// what others may do would be the most for all of that list.
pub(super) fn give(part: &OwnedFd, file: &Path, of_file: &Stat, mode: Mode, whom: For) {
    // By its descriptor, which neither `fsetxattr` nor `fchmod` takes.
    let name = by_number(part);
    if let Some(list) = wanted(part, file, of_file, whom) {
        let _ = setxattr(&name, NAME, &list, XattrFlags::empty());
        return;
    }
    let _ = removexattr(&name, NAME);
    if read_of(part).is_none() {
        let _ = chmodat(CWD, &name, mode, AtFlags::empty());
    }
}

fn wanted(part: &OwnedFd, file: &Path, of_file: &Stat, whom: For) -> Option<Vec<u8>> {
    let of_part = statat(part, "", AtFlags::EMPTY_PATH).ok()?;
    of_part_by(&read(file)?, Whose::of(of_file), Whose::of(&of_part), whom)
}

/// What leads to a part that is open.
pub(super) fn by_number(part: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", part.as_raw_fd()).into()
}

fn read_of(part: &OwnedFd) -> Option<Vec<u8>> {
    let mut list = vec![0; MOST];
    let length = rustix::fs::getxattr(by_number(part), NAME, &mut list[..]).ok()?;
    list.truncate(length);
    Some(list)
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let mut list = vec![0; MOST];
    let length = lgetxattr(file, NAME, &mut list[..]).ok()?;
    list.truncate(length);
    Some(list)
}

/// By a file's list, that of a part of somebody else's: the file's owner and group are named there, and nobody may do more with it than with
/// the file.
fn of_part_by(list: &[u8], file: Whose, part: Whose, whom: For) -> Option<Vec<u8>> {
    let entries: Vec<(u16, u16, u32)> = list
        .strip_prefix(&VERSION)?
        .chunks_exact(8)
        .map(|entry| {
            let number = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
            (u16::from_le_bytes([entry[0], entry[1]]), u16::from_le_bytes([entry[2], entry[3]]) & 6, number)
        })
        .collect();
    let rights = |tag: u16| entries.iter().find(|entry| entry.0 == tag).map(|entry| entry.1);
    let (owner, rest, most) = (rights(OWNER)?, whom.of(rights(REST)?), rights(MASK).unwrap_or(6));
    let group = whom.of(rights(GROUP_OF_IT)? & most);
    let named = |tag: u16| -> BTreeMap<u32, u16> {
        let of_tag = entries.iter().filter(|entry| entry.0 == tag);
        of_tag.map(|&(_, rights, number)| (number, whom.of(rights & most))).collect()
    };
    let (mut users, mut groups) = (named(USER), named(GROUP));
    if file.user != part.user {
        users.insert(file.user, owner);
    }
    let mut group_of_it = group;
    if file.group != part.group {
        groups.insert(file.group, group);
        group_of_it = 0;
    }
    let most = users.values().chain(groups.values()).fold(group_of_it, |most, rights| most | rights);
    let mut out = VERSION.to_vec();
    let mut write = |tag: u16, rights: u16, number: u32| {
        out.extend(tag.to_le_bytes());
        out.extend(rights.to_le_bytes());
        out.extend(number.to_le_bytes());
    };
    write(OWNER, owner, NO_NUMBER);
    users.iter().for_each(|(number, rights)| write(USER, *rights, *number));
    write(GROUP_OF_IT, group_of_it, NO_NUMBER);
    groups.iter().for_each(|(number, rights)| write(GROUP, *rights, *number));
    write(MASK, most, NO_NUMBER);
    write(REST, rest, NO_NUMBER);
    Some(out)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Gives a folder a list by which user 65534 may do everything with all that is made there.
    pub(in super::super) fn give_to_new(folder: &Path) -> rustix::io::Result<()> {
        let no = NO_NUMBER;
        let all = [(OWNER, 7, no), (USER, 7, 65_534), (GROUP_OF_IT, 7, no), (MASK, 7, no), (REST, 0, no)];
        setxattr(folder, OF_NEW_ONES, &list(&all), XattrFlags::empty())
    }

    /// Gives a file a list by which user 65532 may read and write it.
    pub(in super::super) fn give(file: &Path) -> rustix::io::Result<()> {
        let no = NO_NUMBER;
        let both = [(OWNER, 6, no), (USER, 6, 65_532), (GROUP_OF_IT, 0, no), (MASK, 6, no), (REST, 0, no)];
        setxattr(file, NAME, &list(&both), XattrFlags::empty())
    }

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut list = VERSION.to_vec();
        for (tag, rights, number) in entries {
            list.extend(tag.to_le_bytes());
            list.extend(rights.to_le_bytes());
            list.extend(number.to_le_bytes());
        }
        list
    }

    #[test]
    fn a_part_is_for_all_that_the_file_is_for_and_for_nobody_else() {
        let no = NO_NUMBER;
        let (file, of_a_friend) = (Whose { user: 7, group: 70 }, Whose { user: 9, group: 90 });
        // The mask takes from the group and from those who are named, and not from the owner.
        let of_file = list(&[
            (OWNER, 6, no),
            (USER, 7, 8),
            (USER, 6, 9),
            (GROUP_OF_IT, 4, no),
            (GROUP, 5, 60),
            (MASK, 4, no),
            (REST, 0, no),
        ]);
        let same = [
            (OWNER, 6, no),
            (USER, 4, 8),
            (USER, 4, 9),
            (GROUP_OF_IT, 4, no),
            (GROUP, 4, 60),
            (MASK, 4, no),
            (REST, 0, no),
        ];
        assert_eq!(of_part_by(&of_file, file, file, For::All), Some(list(&same)));
        let of_friends = [
            (OWNER, 6, no),
            (USER, 6, 7),
            (USER, 4, 8),
            (USER, 4, 9),
            (GROUP_OF_IT, 0, no),
            (GROUP, 4, 60),
            (GROUP, 4, 70),
            (MASK, 6, no),
            (REST, 0, no),
        ];
        assert_eq!(of_part_by(&of_file, file, of_a_friend, For::All), Some(list(&of_friends)));
        for none in [&b""[..], &VERSION, &[1, 0, 0, 0], &of_file[1..]] {
            assert_eq!(of_part_by(none, file, of_a_friend, For::All), None, "{none:?}");
        }
    }

    /// Who could only read it could lock it.
    #[test]
    fn a_journal_is_for_nobody_who_may_only_read_the_file() {
        let no = NO_NUMBER;
        let file = Whose { user: 7, group: 70 };
        let of_file = |most: u16| {
            list(&[
                (OWNER, 6, no),
                (USER, 4, 8),
                (USER, 6, 9),
                (GROUP_OF_IT, 4, no),
                (GROUP, 6, 60),
                (MASK, most, no),
                (REST, 4, no),
            ])
        };
        let of_journal = |rights: u16| {
            list(&[
                (OWNER, 6, no),
                (USER, 0, 8),
                (USER, rights, 9),
                (GROUP_OF_IT, 0, no),
                (GROUP, rights, 60),
                (MASK, rights, no),
                (REST, 0, no),
            ])
        };
        for (most, rights) in [(6, 6), (4, 0)] {
            assert_eq!(of_part_by(&of_file(most), file, file, For::Writers), Some(of_journal(rights)), "{most}");
        }
    }
}
