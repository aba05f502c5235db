//! relent measured against other retry libraries: all of them in one process, in turns, with their allocations counted.
//!
//! A benchmark's own noise is larger than what is measured here, so nothing is measured alone: each round gives every
//! library its turn, and medians over the rounds are compared with a floor (the least that any library would have to
//! do) and with backon. `--quick` takes fewer rounds, `--json` writes a line for each result, and words pick groups.

mod admission;
mod breakers;
mod budgets;
mod builds;
mod calls;
mod command;
mod count;
mod delays;
mod harness;
mod layers;
mod machine;
mod rival;
mod sizes;
mod upstreams;

use harness::{Group, Settings};
use std::process::ExitCode;

const HELP: &str = "\
relent-bench [--quick] [--json] [GROUP...]

groups: delay start blocking async zero give-up breaker pacer budget upstream layer admission sizes build command (all unless some are named)
";

fn main() -> ExitCode {
    let mut settings = Settings::default();
    let mut wanted = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--quick" => settings.quick = true,
            "--json" => settings.json = true,
            "--help" | "-h" => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            flag if flag.starts_with('-') => {
                eprintln!("error: unknown flag {flag}\nhint: {HELP}");
                return ExitCode::from(2);
            }
            group => wanted.push(group.to_owned()),
        }
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|group| group == name);
    // Some peers make a timer of tokio even for a delay that nobody waits for.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime can be made");
    let _guard = runtime.enter();
    if !settings.json {
        println!("{}\n", machine::describe());
    }
    type Make = fn() -> Group;
    let groups: [(&str, Make); 16] = [
        ("delay", delays::next_delay),
        ("start", delays::start_and_take_eight),
        ("blocking", calls::first_success_blocking),
        ("async", calls::first_success_async),
        ("zero", calls::hundred_retries),
        ("give-up", calls::giving_up),
        ("breaker", breakers::alone),
        ("breaker", breakers::two_threads),
        ("pacer", breakers::pacer),
        ("pacer", breakers::pacer_two_threads),
        ("budget", budgets::alone),
        ("budget", budgets::two_threads),
        ("upstream", upstreams::successes),
        ("upstream", upstreams::two_threads),
        ("layer", layers::successes),
        ("admission", admission::costs),
    ];
    for (name, group) in groups {
        if is_wanted(name) {
            group().run(settings);
        }
    }
    for (name, report) in
        [("sizes", sizes::report as fn(Settings)), ("build", builds::report), ("command", command::report)]
    {
        if is_wanted(name) {
            report(settings);
        }
    }
    ExitCode::SUCCESS
}
