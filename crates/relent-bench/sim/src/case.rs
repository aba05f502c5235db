//! One measurement: a process of its own, so that its peak memory is its own too.

use crate::{desque_peer, heap, herd::Done, machines, nexosim_peer, ours};
use relent_sim::Engine;
use std::{env, fs, process::Command, time::Instant};

/// What simulates how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) who: &'static str,
    pub(crate) clients: u64,
    pub(crate) seeds: u32,
    pub(crate) threads: usize,
}

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) done: Done,
    pub(crate) nanos: u64,
    /// The peak of its memory beyond what the process had before.
    pub(crate) bytes: u64,
}

impl Case {
    pub(crate) const fn new(who: &'static str, clients: u64) -> Case {
        Case { who, clients, seeds: 1, threads: 1 }
    }

    /// Runs it in a new process of this program.
    pub(crate) fn measure(self) -> Result<Taken, String> {
        let program = env::current_exe().map_err(|err| err.to_string())?;
        let numbers = [self.clients, u64::from(self.seeds), self.threads as u64].map(|number| number.to_string());
        let mut command = Command::new(program);
        command.args(["case", self.who]).args(numbers);
        read(command)
    }
}

/// Runs a command that prints a run as four numbers, or five.
pub(crate) fn read(mut command: Command) -> Result<Taken, String> {
    let output = command.output().map_err(|err| err.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [attempts, drained, nanos, bytes] => {
            Ok(Taken { done: Done { attempts, drained, questions: attempts }, nanos, bytes })
        }
        [attempts, drained, nanos, bytes, questions] => {
            Ok(Taken { done: Done { attempts, drained, questions }, nanos, bytes })
        }
        _ => Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The other side of [`Case::measure`]: `NAME CLIENTS SEEDS THREADS`.
pub(crate) fn run_here(arguments: &[String]) -> Option<()> {
    let [who, clients, seeds, threads] = arguments else { return None };
    let (clients, seeds) = (clients.parse::<u64>().ok()?, seeds.parse::<u32>().ok()?);
    let threads = threads.parse::<usize>().ok()?;
    let before = status("VmRSS:");
    let begun = Instant::now();
    let done = match who.as_str() {
        "heap" => heap::run(clients as u32, 1),
        "desque" => desque_peer::run(clients as u32, 1),
        "nexosim" => nexosim_peer::run(clients as u32, 1),
        "heat" => ours::heat(clients),
        other => match machines::run(other, clients) {
            Some(done) => done,
            None => ours::run(Engine::parse(other)?, clients, 1, seeds, threads),
        },
    };
    let nanos = begun.elapsed().as_nanos();
    let bytes = status("VmHWM:").saturating_sub(before);
    println!("{} {} {nanos} {bytes} {}", done.attempts, done.drained, done.questions);
    Some(())
}

/// A line of the system's account of this process, in bytes.
fn status(line: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = text.lines().find_map(|have| have.strip_prefix(line)?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
