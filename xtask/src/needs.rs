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
];

/// The names that `--without` takes.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NEEDS.iter().map(|need| need.name)
}

/// What is in the names of the tests of what is left out.
fn left_out<'a>(without: &'a [&str]) -> impl Iterator<Item = &'static str> + use<'a> {
    NEEDS.iter().filter(|need| without.contains(&need.name)).map(|need| need.tests)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_skipped_by_name() {
        assert_eq!(skip(&[], true), Vec::<String>::new());
        assert_eq!(skip(&["nginx", "redis"], true), ["-E", "not (test(http::real::) or test(redis))"]);
        assert_eq!(skip(&["nginx", "redis"], false), ["--", "--skip", "http::real::", "--skip", "redis"]);
    }

    #[test]
    fn a_folder_of_any_name_is_looked_into() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(has_in_any(source, "needs.rs"), "src/needs.rs");
        assert!(!has_in_any(source, "no.rs") && !has_in_any(&source.join("none"), "needs.rs"));
    }
}
