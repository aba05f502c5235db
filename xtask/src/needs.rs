//! What the tests need beyond Rust: found, or installed and said so.

use crate::shell::{Outcome, has, run};

/// A program that tests start, and the Debian package it is in.
struct Need {
    name: &'static str,
    programs: &'static [&'static str],
    package: &'static str,
    what_for: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        name: "nginx",
        programs: &["nginx", "/usr/sbin/nginx"],
        package: "nginx-light",
        what_for: "the tests of `relent http` against a real server",
    },
    Need {
        name: "chromium",
        programs: &["chromium", "chromium-browser", "google-chrome"],
        package: "chromium",
        what_for: "the tests of the simulator's report in a real browser",
    },
];

/// Splits the arguments into what is to be left out (`--without NAME`) and the rest.
pub(crate) fn without<'a>(args: &[&'a str]) -> Result<(Vec<&'a str>, Vec<&'a str>), String> {
    let (mut without, mut rest) = (vec![], vec![]);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if *arg != "--without" {
            rest.push(*arg);
            continue;
        }
        let name = args.next().copied().unwrap_or_default();
        if !NEEDS.iter().any(|need| need.name == name) {
            let names: Vec<&str> = NEEDS.iter().map(|need| need.name).collect();
            return Err(format!("--without takes one of: {}", names.join(", ")));
        }
        without.push(name);
    }
    Ok((without, rest))
}

/// Installs what is missing, but for what is to be left out.
pub(crate) fn install(without: &str) -> Outcome {
    for need in NEEDS {
        if without.split(',').any(|name| name == need.name) {
            eprintln!("note: without {}: {} will not run", need.name, need.what_for);
        } else if !need.programs.iter().any(|program| has(program)) {
            need.install()?;
        }
    }
    Ok(())
}

impl Need {
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
