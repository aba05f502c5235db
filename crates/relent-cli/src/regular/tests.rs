use super::*;
use std::{
    fs::Permissions,
    io::Write,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

#[test]
fn devices_without_an_end_are_no_input() {
    for (path, answer) in [("/dev/null", true), ("/dev/zero", false), ("/dev/urandom", false)] {
        assert_eq!(as_it_comes(File::open(path).unwrap()).is_ok(), answer, "{path}");
    }
    assert!(as_it_comes(tempfile::tempfile().unwrap()).is_ok());
}

#[test]
fn what_is_read_whole_has_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "12345").unwrap();
    assert_eq!(bytes(&path, 5).unwrap(), b"12345");
    assert_eq!(bytes(&path, 4).unwrap_err().to_string(), "it is longer than 4B");
    fs::write(&path, b"\xff").unwrap();
    assert_eq!(text(path.to_str().unwrap(), 4).unwrap_err().to_string(), "it is no text in UTF-8");
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(bytes(&pipe, 9).unwrap_err().to_string(), "it is a pipe that nobody writes to");
    assert_eq!(text("/dev/zero", 9).unwrap_err().to_string(), "it is a device, and no file");
}

#[test]
fn special_files_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(read(&pipe).unwrap_err().to_string(), "it is a named pipe, and no file");
    assert_eq!(read(folder.path()).unwrap_err().to_string(), "it is a folder, and no file");
    assert_eq!(read(Path::new("/dev/null")).unwrap_err().to_string(), "it is a device, and no file");
}

/// Does something while somebody holds a lease of a file, as Samba and the system's server for NFS do, of all who read or write (1), or of
/// who writes (0): it is given back as soon as it is asked for. `None`: there are no leases.
#[cfg(target_os = "linux")]
pub(crate) fn while_lent<T>(path: &Path, kind: &str, work: impl FnOnce() -> T) -> Option<T> {
    const HOLDS: &str = "$| = 1; open F, '<', $ARGV[0]; $SIG{IO} = sub { fcntl F, 1024, 2; exit };
        fcntl F, 1024, $ARGV[1] + 0 or exit 1; print \"held\\n\"; sleep 60";
    let mut holder = Command::new("perl");
    let mut holder = holder.args(["-e", HOLDS]).arg(path).arg(kind).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 5];
    let is_held = holder.stdout.take().unwrap().read_exact(&mut said).is_ok();
    let done = work();
    let _ = holder.kill();
    holder.wait().unwrap();
    is_held.then_some(done)
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_somebody_holds_a_lease_of_is_opened_when_they_have_given_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "text").unwrap();
    let place = || links::to_write(&path).unwrap().unwrap();
    let opened: [(&str, &dyn Fn() -> bool); 5] = [
        ("1", &|| read(&path).is_ok()),
        ("1", &|| read_unless(&path, &|_| None).is_ok()),
        ("1", &|| bytes(&path, 4).is_ok_and(|bytes| bytes == b"text")),
        ("0", &|| to_write(&path).is_ok()),
        ("0", &|| to_write_in(&place()).is_ok()),
    ];
    for (nth, (kind, is_opened)) in opened.iter().enumerate() {
        let Some(is_opened) = while_lent(&path, kind, is_opened) else {
            eprintln!(
                "SKIPPED a_file_that_somebody_holds_a_lease_of_is_opened_when_they_have_given_it_back: there are no leases"
            );
            return;
        };
        assert!(is_opened, "{nth}");
    }
}

/// While it is waited for, nothing is heard: neither a signal nor a limit of time.
#[test]
#[cfg(target_os = "linux")]
fn who_keeps_the_leases_of_many_files_is_waited_for_once() {
    // Held until the end: the system takes it away after 45 seconds.
    const KEEPS: &str =
        "$| = 1; $SIG{IO} = 'IGNORE'; for (@ARGV) { open my $f, '<', $_; push @f, $f; fcntl $f, 1024, 1 or exit 1 };
        print \"held\\n\"; sleep 60";
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<_> = (0..6).map(|nth| folder.path().join(nth.to_string())).collect();
    files.iter().for_each(|file| fs::write(file, "text").unwrap());
    let mut holder = Command::new("perl").args(["-e", KEEPS]).args(&files).stdout(Stdio::piped()).spawn().unwrap();
    let is_held = holder.stdout.take().unwrap().read_exact(&mut [0; 5]).is_ok();
    let began = Instant::now();
    let opened = files.iter().filter(|file| open(OpenOptions::new().write(true), 0, file).is_ok()).count();
    let took = began.elapsed();
    let _ = holder.kill();
    holder.wait().unwrap();
    match is_held {
        true => assert!(opened == 0 && took < 2 * GIVEN_BACK, "{opened} of 6 in {took:?}"),
        false => eprintln!("SKIPPED who_keeps_the_leases_of_many_files_is_waited_for_once: there are no leases"),
    }
}

/// Where links are not protected anybody gives one of ours another name.
#[test]
fn a_link_with_another_name_leads_to_nothing_that_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link, other] = ["file", "link", "other"].map(|name| folder.path().join(name));
    fs::write(&file, "text").unwrap();
    std::os::unix::fs::symlink("file", &link).unwrap();
    let is_read = |mode: u32| {
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        read_unless(&link, &|step| step.is_strange(&|_| true)).is_ok()
    };
    assert!(is_read(0o755) && is_read(0o1777));
    fs::hard_link(&link, &other).unwrap();
    assert!(fs::symlink_metadata(&other).unwrap().is_symlink());
    assert!(is_read(0o755) && !is_read(0o1777) && !is_read(0o777));
    fs::remove_file(&other).unwrap();
    assert!(is_read(0o1777));
    fs::hard_link(&file, &other).unwrap();
    assert!(is_read(0o755) && !is_read(0o1777) && !is_read(0o777), "nor does a file with another name");
}

#[test]
fn behind_what_a_file_holds_is_written_where_it_is_ones_own() {
    let folder = tempfile::tempdir_in(std::env::temp_dir().canonicalize().unwrap()).unwrap();
    let [path, link, other] = ["a", "link", "b"].map(|name| folder.path().join(name));
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(append(&path).unwrap_err().kind(), io::ErrorKind::NotFound, "none is made");
    fs::write(&path, "old ").unwrap();
    append(&path).unwrap().write_all(b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old new");
    for no_file in [Path::new("/dev/null"), folder.path()] {
        assert!(append(no_file).is_err());
    }
    fs::hard_link(&path, &other).unwrap();
    assert!(append(&path).is_err() && append(&other).is_err());
    fs::remove_file(&other).unwrap();
    std::os::unix::fs::symlink("a", &link).unwrap();
    std::os::unix::fs::symlink(".", folder.path().join("here")).unwrap();
    assert!(append(&link).is_err() && append(&folder.path().join("here/a")).is_err(), "nor by a link");
    for (mode, is_written) in [(0o755, false), (0o1777, false), (0o770, false), (0o700, true)] {
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        assert_eq!(append(&path).is_ok(), is_written, "{mode:o}");
    }
    if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
        eprintln!("SKIPPED behind_what_a_file_holds_is_written_where_it_is_ones_own in part: it takes root");
        return;
    }
    assert!(append(&path).is_err());
}

#[test]
fn what_is_in_a_pipe_is_read_though_nobody_writes_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _held = read_anything(&pipe).unwrap();
    fs::write(&pipe, "text").unwrap();
    let mut text = String::new();
    read_or_pipe(&pipe).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
}

/// A file of the system's that says nothing yet, as the kernel's log does, is an error and not waited for.
#[test]
fn only_pipes_are_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
    fs::write(&file, "").unwrap();
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let flags = fcntl(read_or_pipe(&file).unwrap().0, FcntlArg::F_GETFL).unwrap();
    assert!(OFlag::from_bits_truncate(flags).contains(OFlag::O_NONBLOCK));
    // Nobody has it open yet, and whoever does later writes later still.
    let writes = thread::spawn({
        let pipe = pipe.clone();
        move || {
            thread::sleep(Duration::from_millis(50));
            let mut writer = OpenOptions::new().write(true).open(pipe).unwrap();
            thread::sleep(Duration::from_millis(50));
            writer.write_all(b"text").unwrap();
        }
    });
    let mut text = String::new();
    read_or_pipe(&pipe).unwrap().read_to_string(&mut text).unwrap();
    writes.join().unwrap();
    assert_eq!(text, "text");
}

#[test]
fn a_pipe_that_somebody_holds_open_is_not_read_without_end() {
    const SHORT: Duration = Duration::from_millis(20);
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut held = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let refused = bytes_within(&pipe, 100, SHORT).unwrap_err();
    assert_eq!(refused.to_string(), "whoever writes to the pipe has not ended within 20ms");
    held.write_all(b"a: b").unwrap();
    assert_eq!(bytes_within(&pipe, 100, SHORT).unwrap_err().kind(), io::ErrorKind::TimedOut);
    held.write_all(b"a: b").unwrap();
    assert_eq!(bytes_within(&pipe, 3, SHORT).unwrap_err().to_string(), "it is longer than 3B");
}

/// Nor is standard input, which relent has not opened, so that reading it would wait.
#[test]
fn standard_input_that_somebody_holds_open_is_not_read_without_end() {
    const SHORT: Duration = Duration::from_millis(20);
    let (read, write) = io::pipe().unwrap();
    let input = || File::from(std::os::fd::OwnedFd::from(read.try_clone().unwrap()));
    let refused = of_standard_input(input(), 100, SHORT).unwrap_err();
    assert_eq!(refused.to_string(), "whoever writes to the pipe has not ended within 20ms");
    (&write).write_all(b"a: b").unwrap();
    assert_eq!(of_standard_input(input(), 100, SHORT).unwrap_err().kind(), io::ErrorKind::TimedOut);
    (&write).write_all(b"a: b").unwrap();
    drop(write);
    assert_eq!(of_standard_input(input(), 100, SHORT).unwrap(), b"a: b");
}
