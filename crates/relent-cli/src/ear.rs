//! Whether this process was told to end, for whoever waits where signals are not looked at: for a store.

use crate::ignored::Ignored;
use nix::{
    sys::signal::{SigSet, SigmaskHow, Signal},
    unistd::getpid,
};
use signal_hook::flag;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

/// The signals that end a call: those by which people and limits end a program, but for those that are a command's business.
pub(crate) const ENDING: &[Signal] = &[
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGXCPU,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
    // By which watchdogs end what does not answer.
    Signal::SIGABRT,
    #[cfg(target_os = "linux")]
    Signal::SIGIO,
];

/// Those that end a call as well where there is no command.
pub(crate) const ENDING_ALONE: [Signal; 3] = [Signal::SIGALRM, Signal::SIGUSR1, Signal::SIGUSR2];

/// How long a store is waited for after such a signal: one that is near and well has answered by then.
pub(crate) const HEARD_OUT: Duration = Duration::from_millis(50);

/// How often who waits listens.
const OFTEN: Duration = Duration::from_millis(10);

/// Hears them, and remembers the last; deaf until it is told to which it listens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ear {
    last: Arc<AtomicUsize>,
    /// Whether signals end the process by themselves again.
    is_over: Arc<AtomicBool>,
}

impl Ear {
    /// Listens to all that are not ignored, for who has no command. From then on they do not end the process by themselves.
    ///
    /// # Errors
    ///
    /// The system does not let them be caught.
    pub(crate) fn open() -> io::Result<Ear> {
        let ear = Ear::default();
        Ear::heeded().try_for_each(|signal| {
            ends_once(signal, ear.is_over.clone())?;
            ear.listen(signal)
        })?;
        Ok(ear)
    }

    /// From now on signals end the process at once, as they do any program: nothing is left to be cleaned up.
    pub(crate) fn let_through(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// To which it listens then.
    pub(crate) fn heeded() -> impl Iterator<Item = Signal> {
        let ignored = Ignored::now();
        ENDING.iter().chain(&ENDING_ALONE).copied().filter(move |signal| !ignored.has(*signal))
    }

    /// Listens to this one.
    pub(crate) fn listen(&self, signal: Signal) -> io::Result<()> {
        flag::register_usize(signal as i32, Arc::clone(&self.last), signal as usize).map(|_| ())
    }

    /// The last that came, if one did.
    pub(crate) fn heard(&self) -> Option<Signal> {
        let number = i32::try_from(self.last.load(Ordering::SeqCst)).ok()?;
        Signal::try_from(number).ok()
    }

    /// Listens for the next: what was heard has not ended the call.
    pub(crate) fn forget(&self) {
        self.last.store(0, Ordering::SeqCst);
    }

    /// Takes note of a signal that was heard elsewhere.
    pub(crate) fn hear(&self, signal: Signal) {
        self.last.store(signal as usize, Ordering::SeqCst);
    }

    /// What comes until then, or until a moment after a signal.
    ///
    /// # Errors
    ///
    /// Nothing does: in time, or ever.
    pub(crate) fn wait<T>(&self, from: &Receiver<T>, mut until: Instant) -> Result<T, RecvTimeoutError> {
        let mut has_heard = false;
        loop {
            let now = Instant::now();
            if !has_heard && self.heard().is_some() {
                (has_heard, until) = (true, until.min(now + HEARD_OUT));
            }
            let left = until.saturating_duration_since(now);
            match from.recv_timeout(left.min(OFTEN)) {
                Err(RecvTimeoutError::Timeout) if left > OFTEN => {}
                ended => return ended,
            }
        }
    }
}

/// A signal ends this process as soon as that is so, as it does any program.
pub(crate) fn ends_once(signal: Signal, is_so: Arc<AtomicBool>) -> io::Result<()> {
    let number = signal as i32;
    // The default of SIGIO is taken for nothing there, and ends a program on Linux: it exits with the code that says so.
    let exits = is_process_1() || is_io(signal);
    let registered = match exits {
        true => flag::register_conditional_shutdown(number, 128 + number, is_so),
        false => flag::register_conditional_default(number, is_so),
    };
    registered.map(drop)
}

#[cfg(target_os = "linux")]
fn is_io(signal: Signal) -> bool {
    signal == Signal::SIGIO
}

#[cfg(not(target_os = "linux"))]
fn is_io(_signal: Signal) -> bool {
    false
}

/// Whether this is process 1 of a container, which no signal ends that is not caught: it exits with the code that says so.
pub(crate) fn is_process_1() -> bool {
    getpid().as_raw() == 1
}

/// Signals end this process, which catches none yet, also if it is process 1. What takes its place by `exec` is none of that.
///
/// # Errors
///
/// The system does not let them be caught.
pub(crate) fn be_ended() -> io::Result<Ended> {
    let ended = Ended(Arc::new(AtomicBool::new(true)));
    let heeded = is_process_1().then(Ear::heeded).into_iter().flatten();
    heeded.into_iter().try_for_each(|signal| ends_once(signal, ended.0.clone()))?;
    Ok(ended)
}

/// That signals end this process, until somebody else hears them.
pub(crate) struct Ended(Arc<AtomicBool>);

impl Ended {
    pub(crate) fn no_more(self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// As long as it is there, signals that end a program wait: what is made under another name first is not left behind.
pub(crate) struct Undisturbed(Option<SigSet>);

impl Undisturbed {
    pub(crate) fn begin() -> Undisturbed {
        let ending = ENDING.iter().chain(&ENDING_ALONE).copied().collect::<SigSet>();
        Undisturbed(ending.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok())
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        let _ = self.0.map(|before| before.thread_set_mask());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_signal_waits_until_what_was_begun_is_done() {
        let ear = Ear::open().unwrap();
        let undisturbed = Undisturbed::begin();
        nix::sys::signal::raise(Signal::SIGUSR1).unwrap();
        assert_eq!(ear.heard(), None);
        drop(undisturbed);
        assert_eq!(ear.heard(), Some(Signal::SIGUSR1));
    }

    fn deaf() -> (Ear, Instant) {
        (Ear::default(), Instant::now())
    }

    #[test]
    fn what_comes_is_had_at_once() {
        let ((ear, now), (tell, told)) = (deaf(), channel());
        std::thread::spawn(move || tell.send(7));
        assert_eq!(ear.wait(&told, now + LONG), Ok(7));
        assert_eq!(ear.wait(&told, now + LONG), Err(RecvTimeoutError::Disconnected), "nobody can tell any more");
        assert!(now.elapsed() < LONG);
    }

    #[test]
    fn after_a_signal_nothing_is_waited_for_longer_than_a_moment() {
        let ((ear, now), (tell, told)) = (deaf(), channel::<u8>());
        assert_eq!((ear.heard(), ear.wait(&told, now + OFTEN / 2)), (None, Err(RecvTimeoutError::Timeout)));
        let heard = ear.clone();
        std::thread::spawn(move || heard.hear(Signal::SIGTERM));
        assert_eq!(ear.wait(&told, now + LONG), Err(RecvTimeoutError::Timeout));
        assert!(now.elapsed() < LONG);
        assert_eq!(ear.heard(), Some(Signal::SIGTERM));
        tell.send(7).unwrap();
        assert_eq!(ear.wait(&told, now + LONG), Ok(7), "what is there is taken");
    }
}
