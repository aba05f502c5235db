//! What a library brings along: crates in its tree, and the processor time of a clean build.

use crate::harness::Settings;
use serde_json::json;
use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// The folder of this crate.
const HERE: &str = env!("CARGO_MANIFEST_DIR");

const LIBRARIES: [&str; 9] = [
    "relent",
    "backon",
    "backoff",
    "tokio-retry",
    "tokio-retry2",
    "exponential-backoff",
    "retry-policies",
    "retry",
    "tower",
];

pub(crate) fn report(settings: Settings) {
    let cpu = relent_build();
    if settings.json {
        for library in LIBRARIES {
            println!("{}", json!({"name": format!("build/{library}"), "dependencies": dependencies(library)}));
        }
        println!("{}", json!({"name": "build/relent without features", "cpu_seconds": cpu}));
        return;
    }
    println!("## Dependencies, with the features used here\n\n| library | crates besides itself |\n|---|---:|");
    for library in LIBRARIES {
        println!("| {library} | {} |", dependencies(library).map_or("?".into(), |count| count.to_string()));
    }
    match cpu {
        Some(cpu) => println!("\nA clean debug build of relent without features takes {cpu:.2} s of CPU.\n"),
        None => println!("\nrelent could not be built.\n"),
    }
}

/// The crates of a library's tree, but itself.
fn dependencies(library: &str) -> Option<usize> {
    let tree = ["tree", "-p", library, "-e", "normal", "--prefix", "none", "--format", "{p}"];
    let output = Command::new("cargo").args(tree).current_dir(HERE).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let names: BTreeSet<&str> =
        text.lines().filter_map(|line| line.split(' ').next()).filter(|n| !n.is_empty()).collect();
    names.len().checked_sub(1)
}

/// Builds a project that depends on relent and nothing else, as a user's debug build does.
fn relent_build() -> Option<f64> {
    let project = std::env::temp_dir().join(format!("relent-bench-{}", std::process::id()));
    let relent = fs::canonicalize(Path::new(HERE).join("../relent")).ok()?;
    let manifest = format!(
        "[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         relent = {{ path = {relent:?}, default-features = false }}\n"
    );
    fs::create_dir_all(project.join("src")).ok()?;
    fs::write(project.join("Cargo.toml"), manifest).ok()?;
    fs::write(project.join("src/lib.rs"), "").ok()?;
    let cargo = |arguments: &[&str]| {
        let status = Command::new("cargo").args(arguments).current_dir(&project).status();
        status.is_ok_and(|status| status.success()).then_some(())
    };
    let built = cargo(&["fetch", "-q"]).and_then(|()| {
        let before = children_cpu()?;
        cargo(&["build", "-q"])?;
        Some(children_cpu()? - before)
    });
    // Ours, and made a moment ago.
    let _ = fs::remove_dir_all(&project);
    built
}

/// Seconds of CPU of the children that have ended, from `/proc/self/stat` (in hundredths, as Linux has it everywhere).
fn children_cpu() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(13)? + ticks(14)?) / 100.0)
}
