//! The signals that were ignored when relent started (`nohup`, a background job of a plain shell), which stay ignored; those that
//! were blocked, which do not; and one that says in silence what is an error.

use nix::sys::signal::{SigSet, Signal};
use std::{fs::File, io::Read, sync::Arc};

/// More than a status has: 65,536 groups are the most there can be, of up to ten digits.
const LARGEST: u64 = 1 << 20;

/// A set of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ignored(u64);

impl Ignored {
    /// Those that this process ignores now, where the system tells it (Linux); none elsewhere.
    pub(crate) fn now() -> Ignored {
        // To its end: who is in many groups has all of them before it.
        let mut status = Vec::with_capacity(1 << 13);
        let read = File::open("/proc/self/status").and_then(|file| file.take(LARGEST).read_to_end(&mut status));
        read.map_or_else(|_| Ignored::default(), |_| Ignored::read(&String::from_utf8_lossy(&status)))
    }

    fn read(status: &str) -> Ignored {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        Ignored(mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0))
    }

    /// Whether a signal is one of them.
    pub(crate) fn has(self, signal: Signal) -> bool {
        self.0 >> (signal as i32 - 1) & 1 == 1
    }
}

/// What started relent may have blocked signals and left them so. Then nothing would say that a command has ended, and nothing
/// but `kill -9` would end relent.
pub(crate) fn hear_all() {
    let _ = SigSet::empty().thread_set_mask();
}

/// A file that may not grow any more (`ulimit -f`) is an error, like a disk that is full, and not the end. A command is told by the
/// signal as ever: what is caught here is not caught there.
pub(crate) fn outlive_limits_of_files() {
    let _ = signal_hook::flag::register(Signal::SIGXFSZ as i32, Arc::default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_for_each_signal_the_first_being_one() {
        let ignored =
            Ignored::read("SigBlk:\t0000000000010000\nSigIgn:\t0000000000000003\nSigCgt:\tffffffffffffffff\n");
        assert!(ignored.has(Signal::SIGHUP) && ignored.has(Signal::SIGINT));
        assert!(!ignored.has(Signal::SIGQUIT) && !ignored.has(Signal::SIGTERM));
        for nothing in ["", "SigIgn:", "SigIgn: x", "SigIgn: 1ffffffffffffffff"] {
            assert_eq!(Ignored::read(nothing), Ignored::default(), "{nothing:?}");
        }
    }
}
