//! What the tests need beyond Rust: found, or installed and said so.

use crate::shell::{Outcome, has, run};
use std::{fs, path::Path};

/// A program that tests start, and the Debian package it is in.
struct Need {
    name: &'static str,
    /// Names on the path, or whole paths, in which `*` stands for any folder.
    programs: &'static [&'static str],
    package: &'static str,
    what_for: &'static str,
    /// What is in the names of its tests, and of no others.
    tests: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        name: "nginx",
        programs: &["nginx", "/usr/sbin/nginx"],
        package: "nginx-light",
        what_for: "the tests of `relent http` against a real server",
        tests: "http::real::",
    },
    Need {
        name: "nginx",
        programs: &["nginx", "/usr/sbin/nginx"],
        package: "nginx-light",
        what_for: "the tests of layers on both sides of a real proxy",
        tests: "proxies::",
    },
    Need {
        name: "openssl",
        programs: &["openssl"],
        package: "openssl",
        what_for: "the tests of `relent http` with the certificates that people make",
        tests: "http::real::own_certificates::",
    },
    Need {
        name: "curl",
        programs: &["curl"],
        package: "curl",
        what_for: "the tests of `relent http` beside curl",
        tests: "http::beside_curl::",
    },
    Need {
        name: "curl",
        programs: &["curl"],
        package: "curl",
        what_for: "the tests of what curl makes of a refusal",
        tests: "curl_may_",
    },
    Need {
        name: "chromium",
        programs: &["chromium", "chromium-browser", "google-chrome"],
        package: "chromium",
        what_for: "the tests of the simulator's report in a real browser",
        tests: "in_a_browser",
    },
    Need {
        name: "redis",
        programs: &["redis-server"],
        package: "redis-server",
        what_for: "the tests of the store on a real Redis",
        tests: "redis",
    },
    Need {
        name: "postgres",
        programs: &["postgres", "/usr/lib/postgresql/*/bin/postgres"],
        package: "postgresql",
        what_for: "the tests of the store on a real Postgres",
        tests: "postgres",
    },
    Need {
        name: "strace",
        programs: &["strace"],
        package: "strace",
        what_for: "the tests that see what a store writes, and make its disk fail",
        tests: "under_strace",
    },
];

/// What a machine has or has not, and nobody installs.
struct Condition {
    name: &'static str,
    holds: fn() -> bool,
    /// What is the matter where it does not hold.
    why: &'static str,
    /// What is in the names of its tests, and of no others.
    tests: &'static str,
}

const CONDITIONS: &[Condition] = &[
    Condition {
        name: "root",
        holds: is_root,
        why: "only root can be another user, too; what others can do to a run is not tried",
        tests: "another_user",
    },
    Condition {
        name: "mounts",
        holds: can_mount,
        why: "this user cannot mount a file system of its own; full and read-only disks are not tried",
        tests: "store_on_a_",
    },
];

/// The names that `--without` takes.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NEEDS.iter().map(|need| need.name).chain(CONDITIONS.iter().map(|condition| condition.name))
}

/// What is in the names of the tests of what is left out, or cannot be here.
fn left_out<'a>(without: &'a [&str]) -> impl Iterator<Item = &'static str> + use<'a> {
    let needs = NEEDS.iter().filter(|need| without.contains(&need.name)).map(|need| need.tests);
    let are_missing = |condition: &&Condition| without.contains(&condition.name) || !(condition.holds)();
    needs.chain(CONDITIONS.iter().filter(are_missing).map(|condition| condition.tests))
}

/// What tells the runner of tests to skip those of what is left out, and so to count them: tests themselves know of no
/// way to be without, they fail.
pub(crate) fn skip(without: &[&str], has_nextest: bool) -> Vec<String> {
    let tests: Vec<&str> = left_out(without).collect();
    match tests.as_slice() {
        [] => vec![],
        tests if has_nextest => {
            let names: Vec<String> = tests.iter().map(|name| format!("test({name})")).collect();
            vec!["-E".into(), format!("not ({})", names.join(" or "))]
        }
        tests => {
            ["--".into()].into_iter().chain(tests.iter().flat_map(|name| ["--skip".into(), (*name).into()])).collect()
        }
    }
}

/// Installs what is missing, but for what is to be left out.
pub(crate) fn install(without: &[&str]) -> Outcome {
    for condition in CONDITIONS {
        if without.contains(&condition.name) {
            eprintln!("SKIPPED {}: left out by --without", condition.name);
        } else if !(condition.holds)() {
            eprintln!("SKIPPED {}: {}", condition.name, condition.why);
        }
    }
    for need in NEEDS {
        if without.contains(&need.name) {
            eprintln!("SKIPPED {}: {} will not run, as --without says", need.name, need.what_for);
        } else if !need.is_here() {
            need.install()?;
            if !need.is_here() {
                return Err(format!("{} was installed and is still not to be found", need.name));
            }
        }
    }
    Ok(())
}

impl Need {
    fn is_here(&self) -> bool {
        self.programs.iter().any(|program| match program.split_once("/*/") {
            Some((folder, rest)) => has_in_any(Path::new(folder), rest),
            None => has(program),
        })
    }

    fn install(&self) -> Outcome {
        eprintln!("note: installing {} (Debian package {}) for {}", self.name, self.package, self.what_for);
        let install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", self.package];
        let installed = self.as_root(&["apt-get", "update", "-q"]).and_then(|()| self.as_root(&install));
        installed.map_err(|err| {
            let Need { name, package, what_for, .. } = self;
            format!(
                "{name} is missing and could not be installed ({err})\nhint: install the package {package}, or leave out \
                 {what_for}: cargo xtask test --without {name}"
            )
        })
    }

    /// As root, or through a `sudo` that asks for nothing.
    fn as_root(&self, command: &[&str]) -> Outcome {
        let quiet = ["DEBIAN_FRONTEND=noninteractive"];
        if is_root() {
            run("env", &[&quiet, command].concat())
        } else {
            run("sudo", &[&["-n", "env"], &quiet[..], command].concat())
        }
    }
}

/// Whether a folder in this one has this file.
fn has_in_any(folder: &Path, file: &str) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| entry.path().join(file).is_file())
}

fn is_root() -> bool {
    std::process::Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

fn can_mount() -> bool {
    let unshare = ["unshare", if is_root() { "-m" } else { "-rm" }];
    let mut command = std::process::Command::new(unshare[0]);
    command.args([unshare[1], "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]);
    command.output().is_ok_and(|out| out.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_skipped_by_name() {
        // With all conditions left out, it is the same on every machine.
        let without = ["nginx", "redis", "root", "mounts"];
        let not = "not (test(http::real::) or test(proxies::) or test(redis) or test(another_user) or \
                   test(store_on_a_))";
        assert_eq!(skip(&without, true), ["-E", not]);
        let skip = skip(&without, false);
        assert_eq!(skip[..3], ["--", "--skip", "http::real::"]);
        assert_eq!(skip[7..], ["--skip", "another_user", "--skip", "store_on_a_"]);
    }

    #[test]
    fn a_folder_of_any_name_is_looked_into() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(has_in_any(source, "needs.rs"), "src/needs.rs");
        assert!(!has_in_any(source, "no.rs") && !has_in_any(&source.join("none"), "needs.rs"));
    }
}
