//! What users get: the packages, away from this repository.

use crate::shell::{self, Outcome, cargo};

const CRATES: [&str; 5] = ["relent", "relent-sim", "relent-tls", "relent-store", "relent-cli"];

/// Files without which a package is of no use.
const NEEDED: [&str; 3] = ["Cargo.toml", "README.md", "src/lib.rs"];

/// In a package the dependency of the tests on the crate itself, which turns these on, is gone.
const FEATURES: &str = "http,metrics,net,stream,toml,tracing";

/// Quick: all can be packed, each has what it needs, and the library builds from its package.
pub(crate) fn check() -> Outcome {
    for name in CRATES {
        let list = shell::output("cargo", &["package", "--locked", "--allow-dirty", "--list", "-p", name])?;
        if let Some(missing) = NEEDED.iter().find(|needed| !list.lines().any(|line| line == **needed)) {
            return Err(format!("the package of {name} has no {missing}"));
        }
    }
    cargo(&[&["package", "--locked", "--allow-dirty", "--quiet", "--no-verify"][..], &selected()].concat())?;
    cargo(&["package", "--locked", "--allow-dirty", "--quiet", "-p", "relent"])
}

/// `package`: each crate builds from its package, and the library's tests pass there, its examples included.
pub(crate) fn package() -> Outcome {
    cargo(&[&["package", "--locked", "--allow-dirty", "--quiet"][..], &selected()].concat())?;
    let manifest = format!("target/package/relent-{}/Cargo.toml", shell::version_of("relent")?);
    let test = ["test", "--quiet", "--manifest-path", &manifest, "--target-dir", "target/from-package"];
    cargo(&[&test[..], &["--features", FEATURES]].concat())
}

fn selected() -> Vec<&'static str> {
    CRATES.iter().flat_map(|name| ["-p", *name]).collect()
}
