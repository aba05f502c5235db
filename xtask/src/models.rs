//! The models of what threads share, through every order in which they could act: loom.

use crate::shell::{Outcome, cargo_with};

/// How often a thread may be interrupted in the bounded run. Most bugs of this kind need two.
const PREEMPTIONS: &str = "3";

/// `loom [--long] [MODEL...]`.
pub(crate) fn loom(args: &[&str]) -> Outcome {
    let is_long = args.contains(&"--long");
    let filter: Vec<&str> = args.iter().filter(|arg| **arg != "--long").copied().collect();
    let mut env = vec![("RUSTFLAGS", "--cfg loom")];
    if !is_long {
        env.push(("LOOM_MAX_PREEMPTIONS", PREEMPTIONS));
    }
    // A folder of its own, because other flags would build everything anew, twice.
    let test = ["test", "--locked", "--target-dir", "target/loom", "-p", "relent", "--lib", "--"];
    let filter = if filter.is_empty() { vec!["models::"] } else { filter };
    cargo_with(&env, &[&test[..], &filter].concat())
}
