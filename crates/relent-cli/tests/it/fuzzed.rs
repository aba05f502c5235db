//! The inputs that fuzzing kept, read again without libFuzzer: as they are, and with bytes of them changed.

#![expect(clippy::print_stderr, clippy::unwrap_used, reason = "a test that cannot go on fails, and says what it read")]

use relent::rng::mix;
use relent_cli::fuzzed;
use relent_sim::Scenario;
use std::{fs, path::Path};

/// How often each kept input is changed.
const CHANGES: u64 = 60;

fn kept(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let inputs: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(!inputs.is_empty(), "nothing is kept in {}", folder.display());
    inputs
}

/// An input with some bytes replaced, put in, taken out or repeated.
fn changed(input: &[u8], mut seed: u64) -> Vec<u8> {
    const TELLING: &[u8] = b"\0\n\r\t %:/@?#[]\\;,=-\"'.0129azA\x1b\x7f\x80\xc2\x9b\xff";
    let mut bytes = input.to_owned();
    let mut next = |below: usize| {
        seed = mix(seed);
        (seed >> 32) as usize % below.max(1)
    };
    for _ in 0..=next(6) {
        let at = next(bytes.len() + 1);
        match next(4) {
            0 => bytes.insert(at, TELLING[next(TELLING.len())]),
            1 if at < bytes.len() => bytes[at] = TELLING[next(TELLING.len())],
            2 if at < bytes.len() => drop(bytes.remove(at)),
            _ => {
                let piece = bytes[at..(at + next(12)).min(bytes.len())].to_owned();
                let to = next(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
        }
    }
    bytes
}

/// What is said if the test fails from here on.
struct Said(String);

impl Drop for Said {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

fn read_again(target: &str, read: impl Fn(&[u8])) {
    let seed = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let _said = Said(format!("RELENT_SEED={seed}"));
    for (number, input) in (0..).zip(kept(target)) {
        read(&input);
        for change in 0..CHANGES {
            let input = changed(&input, mix(seed ^ mix(number << 32 | change)));
            let _said = Said(format!("{:?}", String::from_utf8_lossy(&input)));
            read(&input);
        }
    }
}

#[test]
fn what_the_command_line_reads() {
    read_again("command_line", fuzzed::command_line);
}

#[test]
fn what_servers_answer() {
    read_again("http_answer", fuzzed::http_answer);
}

#[test]
fn scenarios() {
    read_again("scenario", |input| match Scenario::parse(&String::from_utf8_lossy(input)) {
        Ok(scenario) => assert!(scenario.check().is_ok()),
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
    });
}
