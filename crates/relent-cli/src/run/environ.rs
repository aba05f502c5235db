//! The environment that a process was started with, as far as the system shows it.

use super::processes;
use nix::{errno::Errno, unistd::Pid};
use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// What Linux gives a program at most, arguments and environment together. A process can make its own look larger, and
/// whoever looks at all of them must not read that.
const LARGEST: u64 = 6 << 20;

/// All of it; nothing for those that have ended, and for those of others.
pub(super) fn of(pid: Pid) -> Vec<u8> {
    let Some(folder) = processes::folder(pid) else { return Vec::new() };
    match read(&folder) {
        Ok(environment) if !environment.is_empty() => return environment,
        Err(error) if error.raw_os_error() != Some(Errno::ESRCH as i32) => return Vec::new(),
        _ => {}
    }
    // Where its first thread has ended, its others show it.
    let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    let mut shown = threads.filter_map(|thread| read(&thread.path()).ok());
    shown.find(|environment| !environment.is_empty()).unwrap_or_default()
}

/// The same, but `None` of one that is becoming another program: it shows neither that nor its command line for a moment.
pub(super) fn settled(pid: Pid) -> Option<Vec<u8>> {
    // Between two looks it may have become another.
    for _ in 0..3 {
        let environment = of(pid);
        if !environment.is_empty() {
            return Some(environment);
        }
        if has_no_line(pid) && !processes::has_ended(pid) {
            return None;
        }
    }
    Some(Vec::new())
}

/// A process may say that its own has no end.
fn has_no_line(pid: Pid) -> bool {
    let line = processes::folder(pid).map(|folder| File::open(folder.join("cmdline"))?.read(&mut [0]));
    matches!(line, Some(Ok(0)))
}

fn read(folder: &Path) -> io::Result<Vec<u8>> {
    let mut environment = Vec::new();
    File::open(folder.join("environ"))?.take(LARGEST).read_to_end(&mut environment)?;
    let first = environment.split(|byte| *byte == 0).next().unwrap_or_default();
    if first.starts_with(OURS) {
        let mut line = Vec::new();
        File::open(folder.join("cmdline"))?.take(LARGEST).read_to_end(&mut line)?;
        let title = end_of_title(first, &line).unwrap_or(0);
        environment.drain(..title);
    }
    Ok(environment)
}

/// How the variables begin that are looked for.
const OURS: &[u8] = b"RELENT_";

/// How much of what stands first is the end of a title, if it is. Servers write those over their arguments and what is behind them, with words
/// of who connects: by these nobody is to make one look like a process of a run. A title is one text, and stands in the command line as well.
fn end_of_title(first: &[u8], line: &[u8]) -> Option<usize> {
    // Of a long one the system shows a part there.
    let begins = &first[..first.len().min(64)];
    line.windows(begins.len()).any(|part| part == begins).then_some(first.len())
}

/// Whether anything in it is a variable.
pub(super) fn has_variables(environment: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    environment.split(|byte| *byte == 0).any(|entry| {
        let name = entry.iter().take_while(|byte| is_name(byte)).count();
        name > 0 && entry.get(name) == Some(&b'=')
    })
}

/// The values that a variable has in it.
pub(super) fn values<'a>(environment: &'a [u8], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let entries = environment.split(|byte| *byte == 0);
    entries.filter_map(move |entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that becomes one program after another shows the environment of one, or it is known that it shows none yet.
    #[test]
    fn who_becomes_another_program_is_known() {
        let script = "n=${n:-0}; [ $n = 300 ] || n=$((n+1)) exec sh -c \"$0\" \"$0\"; exec sleep 60";
        let mut child =
            std::process::Command::new("sh").args(["-c", script, script]).env("RELENT_TEST", "x").spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        for _ in 0..20_000 {
            assert!(settled(pid).is_none_or(|environment| has_variables(&environment)));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(settled(pid), Some(Vec::new()), "who has ended becomes nobody");
    }

    /// Whoever connects to a server has a say in its title.
    #[test]
    fn what_a_title_says_is_no_variable() {
        let title = b"postgres: aaaa RELENT_RUN_ID=0f: 127.0.0.1(1) authentication";
        assert_eq!(end_of_title(b"RELENT_RUN_ID=0f: 127.0.0.1(1) authentication", title), Some(45));
        assert_eq!(end_of_title(b"RELENT_RUN_ID=0f", b"sh\0-c\0true\0"), None);
        let long = [&b"RELENT_RUN_ID="[..], &[b'0'; 9000]].concat();
        assert_eq!(end_of_title(&long, &[b"postgres: ", &long[..4000]].concat()), Some(long.len()));
    }

    /// Linux shows as a command line whatever memory a process says that it is.
    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn a_command_line_without_end_takes_no_memory() {
        // Two GiB of it, and no environment: mmap(2), and PR_SET_MM_MAP of prctl(2).
        let script = "open S, '/proc/self/stat'; my @s = split ' ', <S>; my $n = 2 << 30;
            my $m = syscall(9, 0, $n, 3, 0x4022, -1, 0);
            my $map = pack 'Q12l2', @s[25, 26, 44, 45, 46, 46, 27], $m, $m + $n, @s[49, 49], 0, 0, -1;
            $| = 1; print syscall(157, 35, 14, $map, length $map, 0) == 0 ? 'up' : 'no'; sleep 60";
        let mut child = std::process::Command::new("perl")
            .args(["-e", script])
            .env_clear()
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 2];
        child.stdout.take().unwrap().read_exact(&mut said).unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        let most = || -> u64 {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        let before = most();
        let settled = settled(pid);
        let taken = most() - before;
        child.kill().unwrap();
        child.wait().unwrap();
        if &said == b"no" {
            eprintln!("SKIPPED a_command_line_without_end_takes_no_memory: the system does not let a process say so");
            return;
        }
        assert_eq!(settled, Some(Vec::new()));
        assert!(taken < 64 << 10, "{taken} KiB");
    }

    /// By a program that does as servers do.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_has_written_a_title_over_its_environment_is_none_of_a_run() {
        // What is behind the arguments is the environment.
        let script = "open S, '/proc/self/stat'; my @stat = split ' ', <S>;
            $0 = ('x' x ($stat[48] - $stat[47])) . 'RELENT_RUN_ID=0f: x'; $| = 1; print 'up'; sleep 60";
        let mut child = std::process::Command::new("perl")
            .args(["-e", script])
            .env_clear()
            .env("A", "0".repeat(5000))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0; 2]).unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        let raw = fs::read(format!("/proc/{pid}/environ")).unwrap();
        let shown = of(pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(raw.starts_with(b"RELENT_RUN_ID=0f: x"), "{}", raw.escape_ascii());
        assert_eq!(values(&shown, "RELENT_RUN_ID").count(), 0, "{}", shown.escape_ascii());
    }

    #[test]
    fn a_title_is_no_environment() {
        for text in ["", "\0\0", "nginx: master process nginx -c n.conf", "nginx: worker x=y\0\0", "=x\0"] {
            assert!(!has_variables(text.as_bytes()), "{text:?}");
        }
        assert!(has_variables(b"A=1\0") && has_variables(b"\0PATH=/bin\0"));
        assert_eq!(values(b"A=1\0AB=2\0", "A").collect::<Vec<_>>(), [b"1"]);
    }
}
