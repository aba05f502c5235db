//! Against servers, files and neighbours that mean no good.

use super::{
    expect, http, http_in,
    server::{Reply, Server},
};
use crate::binary::{Folder, Outcome};
use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    process::Command,
};

const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// `relent http` as somebody else.
fn as_nobody(folder: &Folder, args: &[&str]) -> Outcome {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_relent"), "http", "-q"]);
    command.args(args).current_dir(folder.path());
    super::finish(command)
}

#[test]
fn a_replaced_file_never_runs_as_somebody_else() {
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old");
    let path = folder.path().join("file");
    if is_root() {
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    fs::set_permissions(&path, Permissions::from_mode(0o6755)).unwrap();
    let owner = fs::metadata(&path).unwrap().uid();
    expect(&http_in(&folder, &["-o", "file", &server.url("/")]), 0, "", "");
    let data = fs::metadata(&path).unwrap();
    assert_eq!((data.mode() & 0o7777, data.uid(), folder.read("file").as_str()), (0o755, owner, "new"));
}

#[test]
fn a_file_of_another_user_is_refused() {
    assert!(is_root(), "only root can be another user, too: cargo xtask test --without root");
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(folder.path().join("file"), Permissions::from_mode(0o666)).unwrap();
    let outcome = as_nobody(&folder, &["-o", "file", &server.url("/")]);
    assert_eq!((outcome.code, folder.read("file").as_str()), (Some(125), "old"), "{}", outcome.stderr);
    // As in /tmp: even for root, a file that somebody else put there is none to fill.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    chown(folder.path().join("file"), Some(NOBODY), None).unwrap();
    let outcome = http_in(&folder, &["-q", "-o", "file", &server.url("/")]);
    assert_eq!((outcome.code, folder.read("file").as_str()), (Some(125), "old"), "{}", outcome.stderr);
    // A part that somebody else has laid there is not used.
    fs::write(folder.path().join(".own.part"), "evil").unwrap();
    chown(folder.path().join(".own.part"), Some(NOBODY), None).unwrap();
    let outcome = http_in(&folder, &["-q", "-C", "-", "-o", "own", &server.url("/")]);
    assert_eq!((outcome.code, folder.read("own").as_str()), (Some(0), "new"), "{}", outcome.stderr);
    assert_eq!(as_nobody(&folder, &["-o", "mine", &server.url("/")]).code, Some(0), "a file of one's own is fine");
}

/// Who is not in a group can give it nothing, and is told so before.
#[test]
fn a_group_that_is_lost_is_told_of() {
    assert!(is_root(), "only root can be another user, too: cargo xtask test --without root");
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old");
    let path = folder.path().join("file");
    chown(folder.path(), Some(NOBODY), None).unwrap();
    for (mode, new, is_told) in
        [(0o640, 0o600, true), (0o664, 0o644, true), (0o644, 0o644, false), (0o600, 0o600, false)]
    {
        fs::write(&path, "old").unwrap();
        chown(&path, Some(NOBODY), Some(0)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_relent"), "http"]);
        command.args(["-o", "file", &server.url("/")]).current_dir(folder.path());
        let outcome = super::finish(command);
        let data = fs::metadata(&path).unwrap();
        assert_eq!((outcome.code, data.mode() & 0o777, data.gid()), (Some(0), new, NOBODY), "{}", outcome.stderr);
        assert_eq!(
            outcome.stderr.contains("the file's group is one that you cannot give"),
            is_told,
            "{mode:o}: {}",
            outcome.stderr
        );
    }
}

/// As containers and services have it (`--cap-drop`, `CapabilityBoundingSet=`).
#[test]
fn root_that_may_give_nothing_away_is_told_so_before_anything_is_sent() {
    assert!(is_root(), "only root can be another user, too: cargo xtask test --without root");
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old");
    let path = folder.path().join("file");
    let is_of = |owner, mode| {
        chown(&path, Some(owner), Some(NOBODY)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    };
    let http = || {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-chown", "--inh-caps=-chown", env!("CARGO_BIN_EXE_relent"), "http", "POST"]);
        command.args(["-o", "file", &server.url("/")]).current_dir(folder.path());
        super::finish(command)
    };
    is_of(NOBODY, 0o666);
    let refused = "error: cannot write to file: Operation not permitted\nhint: choose another place with -o\n";
    expect(&http(), 125, "", refused);
    assert_eq!((server.count(), folder.read("file"), folder.names()), (0, "old".into(), vec!["file".to_owned()]));
    let said = "\
relent: the file's group is one that you cannot give: nobody but its owner may do more with the new one than both that group and everybody could
";
    // Who is in the group may be shut out.
    for (mode, left, said) in [(0o640, 0o600, said), (0o604, 0o600, said), (0o664, 0o644, said), (0o644, 0o644, "")] {
        is_of(0, mode);
        expect(&http(), 0, "", said);
        let data = fs::metadata(&path).unwrap();
        assert_eq!((data.mode() & 0o777, data.gid(), folder.names().len()), (left, 0, 1), "{mode:o}");
    }
}

/// As containers and services have it that may give away, and not change what is somebody else's.
#[test]
fn root_without_all_rights_leaves_a_file_of_another_user_its_permissions() {
    assert!(is_root(), "only root can be another user, too: cargo xtask test --without root");
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old");
    let path = folder.path().join("file");
    let with = |rights: &str, args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args([&format!("--bounding-set={rights}"), "--inh-caps=-all", env!("CARGO_BIN_EXE_relent")]);
        command.args(args).current_dir(folder.path());
        super::finish(command)
    };
    let relent = |args: &[&str]| with("-all,+chown,+dac_override", args);
    let http = |file: &str| relent(&["http", "-o", file, &server.url("/")]);
    for (group, mode) in [(NOBODY, 0o644), (NOBODY, 0o640), (12_345, 0o664), (12_345, 0o604), (0, 0o600)] {
        fs::write(&path, "old").unwrap();
        chown(&path, Some(NOBODY), Some(group)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        expect(&http("file"), 0, "", "");
        let data = fs::metadata(&path).unwrap();
        let is = (folder.read("file"), data.uid(), data.gid(), data.mode() & 0o7777);
        assert_eq!(is, ("new".into(), NOBODY, group, mode), "{mode:o}");
    }
    assert_eq!(folder.names(), ["file"]);
    // Where nothing can be given away it stays, and of what was made for it nothing does.
    for rights in ["-chown", "-chown,-fowner"] {
        let refused = "error: cannot write to file: Operation not permitted\nhint: choose another place with -o\n";
        expect(&with(rights, &["http", "-o", "file", &server.url("/")]), 125, "", refused);
        assert_eq!(fs::metadata(&path).unwrap().uid(), NOBODY);
        assert_eq!(folder.names(), ["file"], "{rights}");
    }
    // Of a sticky folder's owner it can be neither replaced nor removed.
    let theirs = folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::rename(&path, theirs.join("file")).unwrap();
    chown(&theirs, Some(NOBODY), None).unwrap();
    fs::set_permissions(&theirs, Permissions::from_mode(0o1777)).unwrap();
    let refused = "error: cannot write to theirs/file: Operation not permitted\nhint: choose another place with -o\n";
    let asked = server.count();
    expect(&http("theirs/file"), 125, "", refused);
    assert_eq!(server.count(), asked);
    // What is drawn is written into it.
    assert_eq!(relent(&["explain", "--svg", "theirs/file"]).code, Some(0));
    assert!(fs::read_to_string(theirs.join("file")).unwrap().starts_with("<svg"));
    assert_eq!(fs::read_dir(theirs).unwrap().count(), 1, "nothing is left");
}

/// As a container has a file of its host.
#[test]
fn a_file_that_is_mounted_is_refused_before_anything_is_sent() {
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("file", "old").file("host", "old");
    let mut command = Command::new("unshare");
    let line = "mount --bind host file || exit 99; exec \"$0\" http POST -o file \"$1\"";
    command.args(["-m", "sh", "-c", line, env!("CARGO_BIN_EXE_relent"), &server.url("/")]).current_dir(folder.path());
    let outcome = super::finish(command);
    if outcome.code == Some(99) || outcome.stderr.contains("unshare:") {
        eprintln!("SKIPPED a_file_that_is_mounted_is_refused_before_anything_is_sent: it takes root");
        return;
    }
    let refused = "error: cannot replace file: it is mounted by itself\nhint: write into it: relent http ... > file\n";
    expect(&outcome, 125, "", refused);
    assert_eq!((server.count(), folder.read("host")), (0, "old".into()));
}

/// A folder of others', through which whoever mounted it wants nobody led.
#[test]
fn a_link_is_followed_only_where_the_system_follows_it() {
    let server = Server::new(vec![Reply::ok("new")]);
    for (flags, name, is_followed) in [
        ("defaults", "link", true),
        ("nosymfollow", "link", false),
        ("nosymfollow", "folder/own", false),
        ("nosymfollow", "folder/made", false),
        ("nosymfollow", "made", true),
    ] {
        let folder = Folder::new().file("own", "old").file("theirs/x", "");
        let mut command = Command::new("unshare");
        let line = "mount -t tmpfs -o $3 none theirs && ln -s ../own theirs/link && ln -s .. theirs/folder || exit 99; exec \"$0\" http -o theirs/$1 \"$2\"";
        command.args(["-m", "sh", "-c", line, env!("CARGO_BIN_EXE_relent"), name, &server.url("/"), flags]);
        let outcome = super::finish({
            command.current_dir(folder.path());
            command
        });
        if outcome.code == Some(99) || outcome.stderr.contains("unshare:") {
            eprintln!("SKIPPED a_link_is_followed_only_where_the_system_follows_it: it takes root, and Linux 5.10");
            return;
        }
        let refused = format!("error: cannot write to theirs/{name}: no link is followed there (nosymfollow)\n");
        assert_eq!(outcome.code, Some(if is_followed { 0 } else { 125 }), "{flags} {name}: {outcome:?}");
        assert!(is_followed || outcome.stderr.starts_with(&refused), "{flags} {name}: {outcome:?}");
        let was_followed = folder.read("own") == "new";
        assert_eq!(
            (was_followed, folder.names()),
            (flags == "defaults", vec!["own".into(), "theirs".into()]),
            "{name}"
        );
    }
}

/// What is full when nothing was sent yet need not stay so, and the run around tries again; what is wrong does.
#[test]
fn a_disk_that_is_full_for_a_moment_is_no_end_of_a_run() {
    let server = Server::new(vec![Reply::ok("new")]);
    let folder = Folder::new().file("full/x", "").file("tries", "");
    let mut command = Command::new("unshare");
    let line = "mount -t tmpfs -o nr_inodes=3 none full && touch full/a full/b || exit 99
        \"$0\" run -q --base 1ms -- sh -c 'echo >> tries; \"$0\" http POST -d text -q -o full/f $1; code=$?; rm -f full/a full/b; exit $code' \"$0\" \"$1\" && cat full/f";
    command.args(["-m", "sh", "-c", line, env!("CARGO_BIN_EXE_relent"), &server.url("/")]).current_dir(folder.path());
    let outcome = super::finish(command);
    if outcome.code == Some(99) || outcome.stderr.contains("unshare:") {
        eprintln!("SKIPPED a_disk_that_is_full_for_a_moment_is_no_end_of_a_run: it takes root");
        return;
    }
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("new", Some(0)), "{outcome:?}");
    assert_eq!((server.count(), folder.read("tries").lines().count()), (1, 2), "{outcome:?}");
    let wrong = folder.relent(&[
        "run",
        "-q",
        "--base",
        "1ms",
        "--",
        env!("CARGO_BIN_EXE_relent"),
        "http",
        "-q",
        "-o",
        "no/such/f",
        &server.url("/"),
    ]);
    assert_eq!(wrong.stderr.matches("No such file or directory").count(), 1, "{wrong:?}");
}

/// As a container has the `/proc` of its host.
#[test]
fn what_a_process_has_is_found_wherever_its_folder_is_mounted() {
    let server = Server::new(vec![Reply::ok("new")]);
    for way in ["/proc", "processes"] {
        let folder = Folder::new().file("processes/x", "").file("own/x", "");
        let mut command = Command::new("unshare");
        // Somebody else sees another file system there.
        let line = "mount -t proc none processes || exit 99; here=$PWD
            unshare -m sh -c 'mount -t tmpfs none own && echo there >own/got && exec sleep 60' & pid=$!
            until test -e $1/$pid/root$here/own/got; do sleep 0.01; done
            \"$0\" http -o $1/$pid/root$here/own/got \"$2\" && cat $1/$pid/root$here/own/got
            \"$0\" http -o $1/self/fd/1 \"$2\" | cat; kill $pid
            { echo before; \"$0\" run -q --report $1/self/fd/1 -- echo command; echo after; } >log
            head -n 1 log; tail -n 1 log; grep -c '^{.*}$' log";
        command.args(["-m", "sh", "-c", line, env!("CARGO_BIN_EXE_relent"), way, &server.url("/")]);
        command.current_dir(folder.path());
        let outcome = super::finish(command);
        if outcome.code == Some(99) || outcome.stderr.contains("unshare:") {
            eprintln!("SKIPPED what_a_process_has_is_found_wherever_its_folder_is_mounted: it takes root");
            return;
        }
        let told = "newnewbefore\nafter\n1\n";
        assert_eq!((&*outcome.stdout, folder.path().join("own/got").exists()), (told, false), "{way}: {outcome:?}");
    }
}

/// What we have downloaded into a folder of theirs is ours, and they may move it, or give it another name.
#[test]
fn what_is_ours_in_a_folder_like_tmp_may_have_been_brought_there() {
    let folder = Folder::new().file("seed", "EVIL");
    let (server, path) = (Server::new(vec![Reply::ok("WHOLE")]), |name: &str| folder.path().join(name));
    let mode = |name: &str| fs::metadata(path(name)).unwrap().mode() & 0o7777;
    let is = |mode: u32| fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
    let url = server.url("/");
    let args = ["--base", "1ms", "--max-attempts", "1", "-C", "-", "-o", "file", &url];
    // What a run that broke off leaves says what it is a part of; it would be gone on with.
    let broken = Server::new(vec![Reply::raw(
        b"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\nContent-Length: 5\r\n\r\nEVI",
    )]);
    let to_broken = broken.url("/");
    let left = || http_in(&folder, &["-q", "--max-attempts", "1", "-C", "-", "-o", "file", &to_broken]);
    assert_eq!(left().code, Some(1));
    assert_eq!(folder.names(), [".file.part", ".file.part.from", "seed"]);
    is(0o1777);
    assert_eq!(left().code, Some(1));
    assert_eq!(broken.requests()[1].header("range"), None, "nothing is gone on with");
    fs::rename(path("seed"), path("file")).unwrap();
    fs::set_permissions(path("file"), Permissions::from_mode(0o666)).unwrap();
    let said = "relent: -C - begins anew: in a folder that others may write to, what is there may be theirs\n";
    expect(&http_in(&folder, &args), 0, "", said);
    assert_eq!(server.requests()[0].header("range"), None);
    assert_eq!(folder.read("file"), "WHOLE");
    assert_eq!(mode("file"), 0o644, "as a new one, however many may write to what was there");
    // A group of theirs gets no more than everybody, and that of a new file no more than with one.
    let own = fs::metadata(path("file")).unwrap().gid();
    let others = [(12_345, 0o660, 0o600), (12_345, 0o604, 0o600), (12_345, 0o664, 0o644)];
    let owns = [(own, 0o660, 0o640), (own, 0o755, 0o755), (own, 0o664, 0o644), (own, 0o600, 0o600)];
    for (group, before, after) in owns.into_iter().chain(others) {
        if chown(path("file"), None, Some(group)).is_err() {
            eprintln!("SKIPPED what_is_ours_in_a_folder_like_tmp_may_have_been_brought_there in part: it takes root");
            continue;
        }
        fs::set_permissions(path("file"), Permissions::from_mode(before)).unwrap();
        expect(&http_in(&folder, &["-o", "file", &url]), 0, "", "");
        assert_eq!(mode("file"), after, "{before:o}");
    }
    let _ = chown(path("file"), None, Some(own));
    fs::hard_link(path("file"), path("other")).unwrap();
    let refused = http_in(&folder, &["-o", "other", &url]);
    assert_eq!(refused.code, Some(125), "{}", refused.stderr);
    assert!(refused.stderr.contains("it has another name elsewhere, in a folder that others may write to"));
    // Where nobody else writes, all stays as it was.
    is(0o755);
    fs::set_permissions(path("file"), Permissions::from_mode(0o664)).unwrap();
    expect(&http_in(&folder, &["-o", "file", &url]), 0, "", "");
    assert_eq!(mode("file"), 0o664);
}

/// Who owns a folder, or may write to it, can give what is ours there the name of a part, and we would give it the rights of FILE.
#[test]
fn no_part_is_gone_on_with_where_others_may_have_named_it() {
    assert!(is_root(), "only root can be another user, too: cargo xtask test --without root");
    let whole = [&[b'x'; 5][..], b"WHOLE"].concat();
    for (owner, mode) in [(NOBODY, 0o755), (0, 0o775), (0, 0o777), (0, 0o1777)] {
        let folder = Folder::new().file("home/.file.part", "OURS!");
        let path = |name: &str| folder.path().join("home").join(name);
        fs::set_permissions(path(".file.part"), Permissions::from_mode(0o600)).unwrap();
        // A server that would go on with whatever it is.
        let broken = Server::new(vec![Reply::raw(
            b"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\nContent-Length: 10\r\n\r\nxxxxx",
        )]);
        let server = Server::new(vec![Reply::ok(&whole)]);
        let group = (mode & 0o020 != 0).then_some(NOBODY);
        assert_eq!(
            http_in(&folder, &["-q", "--max-attempts=1", "-C", "-", "-o", "home/file", &broken.url("/")]).code,
            Some(1)
        );
        let about = fs::read_to_string(path(".file.part.from")).unwrap().replace(&broken.url("/"), &server.url("/"));
        fs::write(path(".file.part.from"), about).unwrap();
        chown(path(""), Some(owner), group).unwrap();
        fs::set_permissions(path(""), Permissions::from_mode(mode)).unwrap();
        let outcome = http_in(&folder, &["-C", "-", "-o", "home/file", &server.url("/")]);
        let said = "relent: -C - begins anew: in a folder that others may write to, what is there may be theirs\n";
        expect(&outcome, 0, "", said);
        assert_eq!(server.requests()[0].header("range"), None, "{owner} {mode:o}");
        assert_eq!(folder.read("home/file").as_bytes(), whole, "{owner} {mode:o}");
    }
}

/// It is a log of a cron job's more often than a terminal.
#[test]
fn a_file_that_is_open_already_is_written_to_where_it_stands() {
    let server = Server::new(vec![Reply::ok("body;")]);
    let folder = Folder::new();
    let script = format!(
        "{{ printf 'before;'; relent http -o /dev/stdout {url}; printf 'between;'; relent http -o /dev/fd/3 {url}; \
         relent run --report /dev/stderr -- true; printf 'after\n'; }} >log 3>&1 2>&1; \
         relent explain --svg /dev/stdout --base 1s >>log",
        url = server.url("/")
    );
    let mut command = crate::binary::tool("sh");
    command.args(["-c", &format!("umask 022; {script}")]).current_dir(folder.path());
    expect(&super::finish(command), 0, "", "");
    let log = folder.read("log");
    assert!(log.starts_with("before;body;between;body;{\"command\":"), "{log}");
    assert!(log.contains("}\nafter\n") && log.contains("</svg>"), "{log}");
    assert_eq!(fs::metadata(folder.path().join("log")).unwrap().mode() & 0o777, 0o644);
    assert_eq!(folder.names(), ["log"]);
}

#[test]
fn a_link_that_leads_nowhere_yet() {
    let server = Server::new(vec![Reply::status(404), Reply::ok("new")]);
    let folder = Folder::new();
    symlink("target", folder.path().join("link")).unwrap();
    assert_eq!(http_in(&folder, &["-q", "-o", "link", &server.url("/")]).code, Some(3));
    assert_eq!(folder.names(), ["link"], "what fails leaves nothing behind");
    expect(&http_in(&folder, &["-o", "link", &server.url("/")]), 0, "", "");
    assert_eq!(folder.read("target"), "new");
    assert!(fs::symlink_metadata(folder.path().join("link")).unwrap().is_symlink());
}

/// A mistake of the caller's own is not called a neighbour's trap.
#[test]
fn a_link_that_leads_to_itself_is_said_to() {
    let folder = Folder::new();
    symlink("link", folder.path().join("link")).unwrap();
    let error = "error: cannot write to link: too many links lead to it\nhint: choose another place with -o\n";
    expect(&http_in(&folder, &["-o", "link", "http://127.0.0.1:1/"]), 125, "", error);
}

#[test]
fn what_was_not_asked_for_is_not_decoded_and_bodies_have_a_limit() {
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x05\0\xfa\xffhello\x86\xa6\x10\x36\x05\0\0\0";
    let server = Server::new(vec![Reply::new(200, &["Content-Encoding: gzip"], gzip)]);
    let folder = Folder::new();
    assert_eq!(http_in(&folder, &["-q", "-o", "file", &server.url("/")]).code, Some(0));
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), gzip);
    let outcome = http(&["--compressed", "--max-size=4B", &server.url("/")]);
    let stderr = "\
error: gave up after 1 attempt in TIME: permanent failure (the body is larger than the --max-size of 4B)
hint: --max-size takes more, or unlimited
";
    expect(&outcome, 3, "", stderr);
}

#[test]
fn a_server_cannot_forge_a_line() {
    let server = Server::new(vec![Reply::new(302, &["Location: /\u{9b}2J\u{202e}x"], "")]);
    let outcome = http(&["-v", "--seed=1", &server.url("/")]);
    assert!(!outcome.stderr.contains(['\u{9b}', '\u{202e}']), "{:?}", outcome.stderr);
    assert!(outcome.stderr.contains("\\u{9b}2J"), "{}", outcome.stderr);
}

#[test]
fn what_lets_others_in_stays_at_home() {
    let other = Server::new(vec![Reply::ok("there\n")]);
    let server = Server::new(vec![Reply::new(302, &[&format!("Location: {}", other.url("/"))], "")]);
    let args = [
        "-L",
        "-u",
        "ann:pw",
        "-H",
        "X-Api-Key: k",
        "-H",
        "Cookie: c",
        "-H",
        "X-2FA-Code: 7",
        "-H",
        "Host: h",
        "-H",
        "Accept: text/plain",
        "-H",
        "Idempotency-Key: order-7",
        "-H",
        "Origin: http://ann:pw@h",
        &server.url("/"),
    ];
    let said = "relent: not sent on to HOST, where a redirect leads: x-api-key, x-2fa-code, origin\n";
    expect(&http(&args), 0, "there\n", said);
    let (first, second) = (&server.requests()[0], &other.requests()[0]);
    assert_eq!(first.head.to_ascii_lowercase().matches("\nhost:").count(), 1, "{}", first.head);
    // Nobody knows what the third is for.
    for name in ["authorization", "x-api-key", "x-2fa-code", "cookie", "origin"] {
        assert!(first.header(name).is_some() && second.header(name).is_none(), "{name}");
    }
    assert_eq!((second.header("accept"), second.header("idempotency-key")), (Some("text/plain"), Some("order-7")));
}

#[test]
fn what_says_where_a_message_ends_is_refused() {
    for header in ["Content-Length: 2", "Transfer-Encoding: chunked", "Connection: close"] {
        assert_eq!(http(&["-d", "hello", "-H", header, "localhost"]).code, Some(125), "{header}");
    }
}

/// What a request to a server with this answer says, with a second for everything.
fn answered(reply: Reply, args: &[&str]) -> Outcome {
    let server = Server::new(vec![reply]);
    let url = server.url("/");
    http(&[args, &["--max-attempts=2", "--timeout=2s", &url]].concat())
}

#[test]
fn answers_that_are_no_answers() {
    let chunked = |rest: &str| Reply::raw(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{rest}"));
    for (reply, exit, words) in [
        (chunked("ffffffffffffffffff\r\nabc"), 3, "the body is not HTTP"),
        (chunked("-5\r\nabc"), 3, "the body is not HTTP"),
        (chunked("5\r\nhelloX"), 3, "the body is not HTTP"),
        (chunked("5\r\nhel"), 1, "the body ended early"),
        (Reply::raw("HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw"), 3, "the answer is 101"),
        (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello"), 3, "not HTTP"),
        (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello"), 3, "not HTTP"),
        (Reply::raw(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20))), 3, "too large"),
        // More than that would take long to be looked through.
        (Reply::raw(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(96 << 10))), 3, "too large"),
        (Reply::raw("ICY 200 OK\r\n\r\n"), 3, "not HTTP"),
    ] {
        let outcome = answered(reply.clone(), &[]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(exit), ""), "{reply:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    let long = Reply::raw(format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 2\r\n\r\nok", "x".repeat(64 << 10)));
    expect(&answered(long, &[]), 0, "ok", "");
    let outcome = answered(Reply::ok("hello").hang(), &["--http2"]);
    // The server answers the greeting, and the connection may be gone before the request is sent.
    let is_known = match outcome.code {
        Some(3) => outcome.stderr.contains("the answer is not HTTP/2"),
        _ => outcome.code == Some(1) && outcome.stderr.contains("the connection was closed before the answer"),
    };
    assert!(is_known && outcome.stderr.contains("hint: --http1.1 speaks the older version"), "{}", outcome.stderr);
}

#[test]
fn answers_that_never_begin() {
    let flood = "HTTP/1.1 103 X\r\nLink: x\r\n\r\n".repeat(50_000);
    let outcome = answered(Reply::raw(flood).hang(), &["--idle-timeout=200ms"]);
    assert!(matches!(outcome.code, Some(1 | 124)), "{:?} {}", outcome.code, outcome.stderr);
    let outcome = answered(Reply::raw("HTTP/1.1 200 OK\r\nX: y\r\n").hang(), &["--idle-timeout=200ms"]);
    assert!(outcome.code == Some(1) && outcome.stderr.contains("no head of an answer came"), "{}", outcome.stderr);
}

#[test]
fn a_wait_of_ages_is_not_advised() {
    let outcome = answered(Reply::new(503, &["Retry-After: 99999999999999999999"], ""), &[]);
    assert!(outcome.code == Some(5) && !outcome.stderr.contains("hint:"), "{}", outcome.stderr);
}

#[test]
fn redirects_with_a_user_or_nonsense_in_them() {
    for location in
        ["javascript:alert(1)", "http:///", "//[::1%25eth0]/", "http://a:99999/", "data:,hunter2", "http://xn--/"]
    {
        let outcome = answered(Reply::new(302, &[&format!("Location: {location}")], ""), &["-L"]);
        assert_eq!(outcome.code, Some(3), "{location}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("hunter2"), "{}", outcome.stderr);
    }
    let to = Reply::new(302, &["Location: http://ann:hunter2@127.0.0.1:1/?token=hunter2"], "");
    for args in [&["-L"][..], &[], &["-v"], &["-L", "-v"], &["-v", "--json"]] {
        let outcome = answered(to.clone(), args);
        assert!(!outcome.stderr.contains("hunter2"), "{args:?}: {}", outcome.stderr);
    }
}

/// The parser takes signs for a part of a host that no name has.
#[test]
fn a_redirect_to_no_name_is_not_followed() {
    for host in ["h.invalid;jsessionid=hunter2", "h.invalid&token=hunter2"] {
        for flags in [&["-L"][..], &["-L", "-v"], &["-L", "-v", "--json"], &[], &["-v"]] {
            let outcome = answered(Reply::new(302, &[&format!("Location: http://{host}/")], ""), flags);
            let is_asked = outcome.stderr.contains("> host: h.") || outcome.stderr.contains("cannot find");
            assert_eq!(outcome.code, Some(if flags.contains(&"-L") { 3 } else { 0 }), "{host}: {}", outcome.stderr);
            assert!(!is_asked && !outcome.stderr.contains("hunter2"), "{host} {flags:?}: {}", outcome.stderr);
            assert!(!outcome.stderr.contains("-L follows it"), "{}", outcome.stderr);
        }
    }
}

/// A name that looks like another one is shown as what it is.
#[test]
fn a_redirect_to_a_name_that_looks_like_another() {
    for (location, shown) in [
        ("https://\u{430}pple.example/in?token=hunter2", "to https://xn--pple-43d.example/in?token=***;"),
        ("//\u{440}\u{430}ypal.example/", "to http://xn--ypal-43d9g.example/;"),
        ("/\u{430}", "to /\u{430};"),
    ] {
        let outcome = answered(Reply::new(302, &[&format!("Location: {location}")], ""), &[]);
        assert!(outcome.code == Some(0) && outcome.stderr.contains(shown), "{location}: {}", outcome.stderr);
    }
    // Nor where all is told that goes over the wire; whoever follows it tells whom it asks.
    let location = "Location: http://\u{430}pple.localhost:1/x\u{430}";
    for (flags, shown) in [
        (&["-v"][..], "\n< location: http://%D0%B0pple.LOCALHOST/x%D0%B0\n"),
        (&["-v", "-L", "--max-attempts=1"], "\n> GET /x%D0%B0\n> host: xn--pple-43d.LOCALHOST\n"),
    ] {
        let outcome = answered(Reply::new(302, &[location], ""), flags);
        assert!(outcome.stderr.contains(shown), "{flags:?}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains('\u{430}'), "{}", outcome.stderr);
    }
}

#[test]
fn names_of_all_nations_and_addresses_with_zones() {
    let server = Server::new(vec![Reply::ok("here\n")]);
    let port = server.address().port();
    let place = format!("xn--bcher-kva.example:{port}:127.0.0.1");
    for name in ["b\u{fc}cher.example", "B\u{dc}CHER.example", "xn--bcher-kva.example"] {
        expect(&http(&["--resolve", &place, &format!("http://{name}:{port}/")]), 0, "here\n", "");
    }
    let host = format!("xn--bcher-kva.example:{port}");
    assert!(server.requests().iter().all(|request| request.header("host") == Some(&host)));
    for (bad, words) in [
        ("http://[fe80::1%25eth0]/", "has a zone in its address"),
        ("http://[fe80::1%eth0]/", "has a zone in its address"),
        ("http://xn--a.invalid/", "invalid international domain name"),
        ("http://\u{202e}evil.invalid/", "\"http://***\" is no URL"),
    ] {
        let outcome = http(&[bad]);
        assert!(outcome.code == Some(125) && outcome.stderr.contains(words), "{bad}: {}", outcome.stderr);
    }
}

/// What a server says at length is not told at length.
#[test]
fn long_words_of_a_server_are_told_in_short() {
    let long = "a".repeat(200_000);
    for (head, flags) in [
        (format!("302 Found\r\nLocation: http://{}/", "a.".repeat(100_000)), &["-L"][..]),
        (format!("302 Found\r\nLocation: gopher://h/{long}"), &["-L"]),
        (format!("302 Found\r\nLocation: http://h/{long}"), &[]),
        (format!("200 OK\r\nContent-Encoding: {long}"), &["--compressed"]),
        (format!("200 OK\r\nTransfer-Encoding: {long}, chunked"), &[]),
        (format!("503 {long}"), &[]),
        (format!("503 Busy\r\nRetry-After: {long}"), &[]),
    ] {
        let answer = format!("HTTP/1.1 {head}\r\n\r\n");
        let outcome = answered(Reply::raw(answer), &[&["--max-attempts=1", "--timeout=9s"], flags].concat());
        assert!(outcome.stderr.len() < 5_000, "{}: {} bytes", &head[..30], outcome.stderr.len());
    }
}

/// In a folder like `/tmp` anybody can listen in the place of a server that is not up.
#[test]
fn a_socket_of_another_user_is_told_nothing() {
    let folder = Folder::new();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    let path = folder.path().join("sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    chown(&path, Some(NOBODY), None).unwrap();
    let flags = ["--max-attempts=2", "--base=1ms", "-u", "ann:hunter2", "--unix-socket", "sock", "http://localhost/"];
    let outcome = http_in(&folder, &flags);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome.stderr.contains("it belongs to somebody else, in a folder that others may write to"),
        "{outcome:?}"
    );
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came");
    // One that is not there is waited for.
    fs::remove_file(&path).unwrap();
    let outcome = http_in(&folder, &flags);
    assert!(outcome.code == Some(1) && outcome.stderr.contains("No such file"), "{outcome:?}");
}
