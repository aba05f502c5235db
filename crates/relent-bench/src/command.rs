//! `relent run -- true` against `true` alone.

use crate::harness::Settings;
use serde_json::json;
use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

pub(crate) fn report(settings: Settings) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let relent = root.join("target/release/relent");
    if !settings.quick || !relent.exists() {
        let build =
            Command::new("cargo").args(["build", "-q", "--release", "-p", "relent-cli"]).current_dir(&root).status();
        if !build.is_ok_and(|status| status.success()) {
            eprintln!("error: the command could not be built");
            return;
        }
    }
    let rounds = if settings.quick { 100 } else { 1000 };
    let (mut alone, mut under) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        alone.push(time(Command::new("true")));
        let mut command = Command::new(&relent);
        command.args(["run", "--", "true"]);
        under.push(time(command));
    }
    let (alone, under) = (median(alone), median(under));
    let over = under.saturating_sub(alone);
    if settings.json {
        for (name, took) in [("true", alone), ("relent run -- true", under), ("over true", over)] {
            println!("{}", json!({"name": format!("command/{name}"), "nanoseconds": took.as_nanos() as u64}));
        }
        return;
    }
    println!("## `relent run -- true` over `true`\n\n| command | ms |\n|---|---:|");
    for (name, took) in [("true", alone), ("relent run -- true", under), ("the difference", over)] {
        println!("| {name} | {:.3} |", took.as_secs_f64() * 1000.0);
    }
    println!();
}

fn time(mut command: Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status();
    let took = start.elapsed();
    assert!(status.is_ok_and(|status| status.success()), "the command failed");
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
