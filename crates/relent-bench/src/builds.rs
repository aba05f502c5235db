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
        Some(cpu) => println!("\nA clean build of relent without features takes {cpu:.2} s of CPU (debug).\n"),
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

fn relent_build() -> Option<f64> {
    let target = std::env::temp_dir().join(format!("relent-bench-{}", std::process::id()));
    let build = ["build", "-q", "-p", "relent", "--no-default-features", "--target-dir"];
    let before = children_cpu()?;
    let ok = Command::new("cargo").args(build).arg(&target).current_dir(Path::new(HERE).join("../..")).status().ok()?;
    let took = children_cpu()? - before;
    // Ours, and made a moment ago.
    let _ = fs::remove_dir_all(&target);
    ok.success().then_some(took)
}

/// Seconds of CPU of the children that have ended, from `/proc/self/stat` (in hundredths, as Linux has it everywhere).
fn children_cpu() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(13)? + ticks(14)?) / 100.0)
}
