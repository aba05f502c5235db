//! On file systems that are not as others, as shares are: a small one in memory (FUSE), mounted where nobody else sees it.

#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]

use super::{
    Outcome, filtered,
    server::{Reply, Server},
};
use crate::binary::{Folder, tool};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, OpenOptions},
    io::{Read, Write},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// What one lacks.
#[derive(Clone, Copy, Default)]
struct Lacks {
    /// No file has two, and none gets one only if that is free: VirtualBox's shares, rclone, gcsfuse.
    second_names: bool,
    /// None can be set: gvfs, ntfs-3g.
    permissions: bool,
    /// Nothing can be locked: Lustre.
    locks: bool,
    /// All files have these permissions: CIFS, vfat.
    but_one_mode: Option<u32>,
    /// Nothing has room, which is said once, when a file is closed: NFS, with a quota.
    room: bool,
}

/// What comes of a script there, whose `$0` is relent and whose `$1` is a URL. `None`, which is said: nothing can be mounted.
fn on_one_that(lacks: Lacks, test: &str, script: &str, url: &str) -> Option<Outcome> {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("share")).unwrap();
    let skipped = || eprintln!("SKIPPED {test}: it takes root and FUSE");
    let Ok(mut kernel) = OpenOptions::new().read(true).write(true).open("/dev/fuse") else {
        skipped();
        return None;
    };
    let mount =
        "mount -i -t fuse -o fd=0,rootmode=40000,user_id=0,group_id=0,default_permissions none share || exit 99";
    let mut command: Command = tool("unshare");
    command.args(["-m", "sh", "-c", &format!("{mount}\ncd share; exec </dev/null\n{script}")]);
    command.args([env!("CARGO_BIN_EXE_relent"), url]).current_dir(folder.path()).env("TMPDIR", folder.path());
    command.stdin(kernel.try_clone().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut memory, mut piece) = (Memory::new(lacks), vec![0; 200_000]);
    loop {
        match kernel.read(&mut piece) {
            Ok(length) => memory.answer(&piece[..length], &mut kernel),
            // It is over, or has not begun.
            Err(_) if child.try_wait().unwrap().is_some() => break,
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| filtered(&String::from_utf8_lossy(bytes));
    let outcome = Outcome { stdout: text(&output.stdout), stderr: text(&output.stderr), code: output.status.code() };
    if outcome.code == Some(99) || outcome.stderr.contains("unshare:") {
        skipped();
        return None;
    }
    Some(outcome)
}

struct Node {
    mode: u32,
    data: Vec<u8>,
}

/// Files in one folder, as the kernel asks for them (`linux/fuse.h`).
struct Memory {
    lacks: Lacks,
    nodes: BTreeMap<u64, Node>,
    /// By the folder and the name in it.
    names: BTreeMap<(u64, Vec<u8>), u64>,
    /// The files of which something was lost, and nobody told.
    lost: BTreeSet<u64>,
}

const FOLDER: u64 = 1;
const IS_FOLDER: u32 = 0o40_000;
const IS_FILE: u32 = 0o100_000;

type Answer = Result<Vec<u8>, nix::errno::Errno>;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn index(bytes: &[u8], at: usize) -> usize {
    usize::try_from(long(bytes, at)).unwrap()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

/// What stands before the next zero byte.
fn name(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|byte| *byte == 0).next().unwrap().to_vec()
}

impl Memory {
    fn new(lacks: Lacks) -> Memory {
        let folder = Node { mode: IS_FOLDER | 0o755, data: Vec::new() };
        Memory { lacks, nodes: [(FOLDER, folder)].into(), names: BTreeMap::new(), lost: BTreeSet::new() }
    }

    fn answer(&mut self, asked: &[u8], kernel: &mut File) {
        // To be told that something is forgotten is to be asked nothing.
        if [2, 42].contains(&word(asked, 4)) {
            return;
        }
        let answer = self.answer_to(word(asked, 4), long(asked, 16), &asked[40..]);
        let error = answer.as_ref().err().map_or(0, |error| -(*error as i32));
        let bytes = answer.unwrap_or_default();
        let length = u32::try_from(bytes.len() + 16).unwrap();
        let head = [words(&[length, error.cast_unsigned()]), asked[8..16].to_vec()].concat();
        // Who asked may be gone.
        let _ = kernel.write(&[head, bytes].concat());
    }

    fn answer_to(&mut self, what: u32, node: u64, asked: &[u8]) -> Answer {
        use nix::errno::Errno;
        let open = || [longs(&[0]), words(&[1, 0])].concat();
        match what {
            // LOOKUP
            1 => Ok(self.entry(*self.names.get(&(node, name(asked))).ok_or(Errno::ENOENT)?)),
            // GETATTR
            3 => Ok([longs(&[0]), words(&[0, 0]), self.attributes(node)].concat()),
            // SETATTR
            4 => {
                let (valid, size, mode) = (word(asked, 0), index(asked, 16), word(asked, 68));
                let is_refused = self.lacks.permissions;
                let changed = self.nodes.get_mut(&node).ok_or(Errno::ENOENT)?;
                if valid & 1 != 0 {
                    if is_refused {
                        return Err(Errno::EOPNOTSUPP);
                    }
                    changed.mode = changed.mode & !0o7777 | mode & 0o7777;
                }
                if valid & 8 != 0 {
                    changed.data.resize(size, 0);
                }
                Ok([longs(&[0]), words(&[0, 0]), self.attributes(node)].concat())
            }
            // MKDIR
            9 => Ok(self.make((node, name(&asked[8..])), IS_FOLDER | word(asked, 0) & 0o7777)),
            // UNLINK, RMDIR
            10 | 11 => self.names.remove(&(node, name(asked))).map(|_| Vec::new()).ok_or(Errno::ENOENT),
            // LINK
            13 if self.lacks.second_names => Err(Errno::EPERM),
            // RENAME, RENAME2
            12 | 45 => {
                let (begin, flags) = if what == 12 { (8, 0) } else { (16, word(asked, 8)) };
                let from = (node, name(&asked[begin..]));
                let to = (long(asked, 0), name(&asked[begin + from.1.len() + 1..]));
                match flags {
                    0 => {}
                    _ if self.lacks.second_names => return Err(Errno::EINVAL),
                    _ if self.names.contains_key(&to) => return Err(Errno::EEXIST),
                    _ => {}
                }
                let node = self.names.remove(&from).ok_or(Errno::ENOENT)?;
                self.names.insert(to, node);
                Ok(Vec::new())
            }
            // OPEN, OPENDIR
            14 | 27 => Ok(open()),
            // READ
            15 => {
                let data = &self.nodes.get(&node).ok_or(Errno::ENOENT)?.data;
                let from = index(asked, 8).min(data.len());
                Ok(data[from..data.len().min(from + usize::try_from(word(asked, 16)).unwrap())].to_vec())
            }
            // WRITE
            16 => {
                let (from, length) = (index(asked, 8), word(asked, 16));
                if self.lacks.room {
                    self.lost.insert(node);
                    return Ok(words(&[length, 0]));
                }
                let data = &mut self.nodes.get_mut(&node).ok_or(Errno::ENOENT)?.data;
                let to = from + usize::try_from(length).unwrap();
                data.resize(data.len().max(to), 0);
                data[from..to].copy_from_slice(&asked[40..40 + to - from]);
                Ok(words(&[length, 0]))
            }
            // STATFS
            17 => Ok([longs(&[1 << 20, 1 << 19, 1 << 19, 1000, 900]), words(&[4096, 255, 4096]), vec![0; 28]].concat()),
            // FLUSH
            25 if self.lost.remove(&node) => Err(Errno::EDQUOT),
            // RELEASE, FSYNC, FLUSH, RELEASEDIR, FSYNCDIR
            18 | 20 | 25 | 29 | 30 => Ok(Vec::new()),
            // INIT: whether it is asked for locks
            26 => {
                let flags = if self.lacks.locks { 1 << 10 } else { 0 };
                let head = [words(&[7, 31, word(asked, 8), flags]), vec![16, 0, 12, 0]].concat();
                Ok([head, words(&[1 << 16, 1]), vec![0; 36]].concat())
            }
            // READDIR
            28 => {
                let of_it = self.names.iter().filter(|((folder, _), _)| *folder == node);
                let entries = of_it.enumerate().skip(index(asked, 8)).map(|(nth, ((_, name), node))| {
                    let length = u32::try_from(name.len()).unwrap();
                    let head = [longs(&[*node, nth as u64 + 1]), words(&[length, IS_FILE >> 12])].concat();
                    [head, name.clone(), vec![0; name.len().next_multiple_of(8) - name.len()]].concat()
                });
                Ok(entries.collect::<Vec<_>>().concat())
            }
            // CREATE
            35 => {
                let entry = self.make((node, name(&asked[16..])), IS_FILE | word(asked, 4) & 0o7777);
                Ok([entry, open()].concat())
            }
            _ => Err(Errno::ENOSYS),
        }
    }

    fn make(&mut self, name: (u64, Vec<u8>), mode: u32) -> Vec<u8> {
        let next = self.nodes.last_key_value().map_or(FOLDER, |(last, _)| *last) + 1;
        let node = *self.names.entry(name).or_insert(next);
        self.nodes.entry(node).or_insert_with(|| Node { mode, data: Vec::new() });
        self.entry(node)
    }

    fn attributes(&self, node: u64) -> Vec<u8> {
        let Node { mode, data } = &self.nodes[&node];
        let mode = match self.lacks.but_one_mode {
            Some(one) if node != FOLDER => IS_FILE | one,
            _ => *mode,
        };
        let length = data.len() as u64;
        let times = [0; 3];
        [longs(&[node, length, length.div_ceil(512)]), longs(&times), words(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0])]
            .concat()
    }

    fn entry(&self, node: u64) -> Vec<u8> {
        [longs(&[node, 0, 0, 0]), words(&[0, 0]), self.attributes(node)].concat()
    }
}

#[test]
fn where_no_file_has_two_names_new_ones_are_written_all_the_same() {
    let test = "where_no_file_has_two_names_new_ones_are_written_all_the_same";
    let server = Server::new(vec![Reply::ok("new")]);
    let lacks = Lacks { second_names: true, ..Lacks::default() };
    let script = "\
        ln /proc/self/exe second 2>/dev/null && echo it has second names\n\
        \"$0\" run -q --report report -- true && \"$0\" run -q --report report -- true || exit\n\
        \"$0\" simulate herd --clients 5 --seeds 1 -q --csv table --html page >/dev/null || exit\n\
        \"$0\" http -q -o file \"$1\" && stat -c '%a %n' report && ls -A";
    let Some(outcome) = on_one_that(lacks, test, script, &server.url("/")) else { return };
    let all = (outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str());
    assert_eq!(all, (Some(0), "600 report\nfile\npage\nreport\ntable\n", ""));
}

#[test]
fn where_there_are_no_permissions_a_download_is_kept() {
    let server = Server::new(vec![Reply::ok("new")]);
    let lacks = Lacks { permissions: true, ..Lacks::default() };
    let script = "\
        chmod 644 . 2>/dev/null && echo it has permissions\n\
        \"$0\" http -q -o file \"$1\" && \"$0\" http -q -o file \"$1\" && \"$0\" http -q -C - -o other \"$1\" || exit\n\
        umask 022; table() { \"$0\" simulate herd --clients 5 --seeds 1 -q --csv table >/dev/null; }\n\
        table && table && stat -c '%a' table && ls -A";
    let test = "where_there_are_no_permissions_a_download_is_kept";
    let Some(outcome) = on_one_that(lacks, test, script, &server.url("/")) else { return };
    assert_eq!(
        (outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()),
        (Some(0), "644\nfile\nother\ntable\n", "")
    );
}

/// What breaks off after its first half, then the rest of it.
fn halves() -> Server {
    Server::with(|nth, request| match (nth, request.header("range")) {
        (0, _) => Reply::new(200, &["ETag: \"v1\""], "01234567").cut(4),
        (_, Some("bytes=4-")) => Reply::new(206, &["ETag: \"v1\"", "Content-Range: bytes 4-7/8"], "4567"),
        _ => Reply::new(200, &["ETag: \"v1\""], "01234567"),
    })
}

const TWICE: &str = "\
    \"$0\" http -q --max-attempts 1 -C - -o file \"$1\" 2>/dev/null; ls -A\n\
    \"$0\" http --max-attempts 1 -C - -o file \"$1\" && cat file && ls -A";

#[test]
fn where_nothing_can_be_kept_from_others_a_download_begins_anew() {
    let test = "where_nothing_can_be_kept_from_others_a_download_begins_anew";
    for lacks in [
        Lacks { locks: true, ..Lacks::default() },
        Lacks { but_one_mode: Some(0o777), ..Lacks::default() },
        Lacks { but_one_mode: Some(0o775), ..Lacks::default() },
    ] {
        let server = halves();
        let Some(outcome) = on_one_that(lacks, test, TWICE, &server.url("/")) else { return };
        let said = "relent: -C - begins anew: what is made in this folder cannot be kept from others\n";
        let all = (outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str());
        assert_eq!(all, (Some(0), "01234567file\n", said));
        assert_eq!(server.requests()[1].header("range"), None);
    }
}

/// Whatever is kept there for a while: what was cut off is not taken for whole.
#[test]
fn where_a_lack_of_room_is_said_late_nothing_that_was_lost_is_taken_for_done() {
    let large = "x".repeat(3_000_000);
    let server = Server::new(vec![Reply::ok(&large)]);
    let lacks = Lacks { room: true, ..Lacks::default() };
    let script = "\
        export TMPDIR=$PWD\n\
        \"$0\" http -q \"$1\"; echo body $?\n\
        \"$0\" run -q -- seq 500000; echo output $?\n\
        seq 500000 | \"$0\" http -q PUT -d @- \"$1\"; echo data $?\n\
        seq 500000 | \"$0\" run -q --base 1ms -- sh -c 'cat >/dev/null; exit 1'; echo input $?\n\
        \"$0\" http -q -o /dev/null -w '%{http_code}' \"$1\" >out; echo words $?\n\
        \"$0\" run -q --base 1ms --cap 1ms -- \"$0\" http -d x -q -o /dev/null \"$1\"; echo verdict $?";
    let test = "where_a_lack_of_room_is_said_late_nothing_that_was_lost_is_taken_for_done";
    let Some(outcome) = on_one_that(lacks, test, script, &server.url("/")) else { return };
    let all = "body 125\noutput 125\ndata 125\ninput 125\nwords 125\nverdict 125\n";
    assert_eq!(outcome.stdout, all, "{}", outcome.stderr);
    for said in [
        "cannot read back what the command wrote",
        "cannot read standard input",
        "cannot keep standard input for another attempt",
        "cannot be told what may not be sent twice, so it was not sent",
    ] {
        // What closing says once, a process that was being started may have heard instead.
        let why = ["Disk quota exceeded", "its file system has lost a part of it"];
        let is_said = |why: &&str| outcome.stderr.contains(&format!("{said}: {why}\n"));
        assert!(why.iter().any(is_said), "{said}: {}", outcome.stderr);
    }
    assert!(server.requests().iter().all(|request| request.body.is_empty()));
}

/// As any file there.
#[test]
fn where_the_share_says_who_may_read_a_download_goes_on() {
    for mode in [0o755, 0o644, 0o700] {
        let server = halves();
        let lacks = Lacks { but_one_mode: Some(mode), ..Lacks::default() };
        let test = "where_the_share_says_who_may_read_a_download_goes_on";
        let Some(outcome) = on_one_that(lacks, test, TWICE, &server.url("/")) else { return };
        let all = (outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str());
        assert_eq!(all, (Some(0), ".file.part\n.file.part.from\n01234567file\n", ""), "{mode:o}");
        assert_eq!(server.requests()[1].header("range"), Some("bytes=4-"), "{mode:o}");
    }
}
