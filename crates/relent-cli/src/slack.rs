//! How late the system may be with what is waited for (timer slack), which whoever starts a process may have raised (`TimerSlackNSec=` of
//! systemd, prctl(2)): to seconds, so that no limit would hold.

#[cfg(target_os = "linux")]
mod linux {
    use crate::system_text;
    use nix::sys::prctl::{get_timerslack, set_timerslack};
    use std::sync::OnceLock;

    /// What Linux gives a process of whom nobody has said anything, in nanoseconds.
    const USUAL: u64 = 50_000;

    /// What was given to us, if that is more.
    static GIVEN: OnceLock<u64> = OnceLock::new();

    /// Waits as punctually as any other process from now on, in this thread and those that it starts.
    pub(crate) fn be_punctual() {
        if let Some(given) = given().filter(|given| *given > USUAL) {
            let _ = GIVEN.set(given);
            let _ = set_timerslack(USUAL);
        }
    }

    /// That of the first thread, from which all others have it; what prctl(2) says of it has 31 bits.
    fn given() -> Option<u64> {
        let shown = system_text::read("/proc/self/timerslack_ns").ok().and_then(|text| text.trim().parse().ok());
        shown.or_else(|| get_timerslack().ok().map(|given| u64::from(given.unsigned_abs())))
    }

    /// Starts something that has what was given to us.
    pub(crate) fn as_given<T>(start: impl FnOnce() -> T) -> T {
        let Some(given) = GIVEN.get() else { return start() };
        let _ = set_timerslack(*given);
        let started = start();
        let _ = set_timerslack(USUAL);
        started
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{as_given, be_punctual};

#[cfg(not(target_os = "linux"))]
pub(crate) fn be_punctual() {}

#[cfg(not(target_os = "linux"))]
pub(crate) fn as_given<T>(start: impl FnOnce() -> T) -> T {
    start()
}
