//! What the tests need beyond Rust: found, or installed and said so.

use crate::shell::{Outcome, has, run};

/// A program that tests start, and the Debian package it is in.
struct Need {
    name: &'static str,
    programs: &'static [&'static str],
    package: &'static str,
    what_for: &'static str,
    /// Its tests, in the test runner's language for filters.
    tests: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        name: "nginx",
        programs: &["nginx", "/usr/sbin/nginx"],
        package: "nginx-light",
        what_for: "the tests of `relent http` against a real server",
        tests: "test(/^http::real::/)",
    },
    Need {
        name: "chromium",
        programs: &["chromium", "chromium-browser", "google-chrome"],
        package: "chromium",
        what_for: "the tests of the simulator's report in a real browser",
        tests: "test(/in_a_browser$/)",
    },
];

/// The names that `--without` takes.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NEEDS.iter().map(|need| need.name)
}

/// A filter for the test runner that skips, and so counts, the tests of what is left out.
pub(crate) fn skip(without: &[&str]) -> Option<String> {
    let tests = |need: &&Need| without.contains(&need.name);
    let skipped: Vec<&str> = NEEDS.iter().filter(tests).map(|need| need.tests).collect();
    (!skipped.is_empty()).then(|| format!("not ({})", skipped.join(" or ")))
}

/// Installs what is missing, but for what is to be left out.
pub(crate) fn install(without: &str) -> Outcome {
    for need in NEEDS {
        if without.split(',').any(|name| name == need.name) {
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
        self.programs.iter().any(|program| has(program))
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

fn is_root() -> bool {
    std::process::Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
