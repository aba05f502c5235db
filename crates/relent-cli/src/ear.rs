//! Whether this process was told to end, for whoever waits where signals are not looked at: for a store.

use crate::ignored::Ignored;
use nix::sys::signal::Signal;
use signal_hook::flag;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

/// The signals that end a call: all that end a program by default, but those of a crash, and those that are a command's business.
pub(crate) const ENDING: &[Signal] = &[
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGXCPU,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
    #[cfg(target_os = "linux")]
    Signal::SIGIO,
];

/// Those that end a call as well where there is no command.
const ENDING_ALONE: [Signal; 3] = [Signal::SIGALRM, Signal::SIGUSR1, Signal::SIGUSR2];

/// How long a store is waited for after such a signal: one that is near and well has answered by then.
pub(crate) const HEARD_OUT: Duration = Duration::from_millis(50);

/// How often who waits listens.
const OFTEN: Duration = Duration::from_millis(10);

/// Hears them, and remembers the last; deaf until it is told to which it listens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ear(Arc<AtomicUsize>);

impl Ear {
    /// Listens to all that are not ignored, for who has no command. From then on they do not end the process by themselves.
    ///
    /// # Errors
    ///
    /// The system does not let them be caught.
    pub(crate) fn open() -> io::Result<Ear> {
        let ear = Ear::default();
        Ear::heeded().try_for_each(|signal| ear.listen(signal))?;
        Ok(ear)
    }

    /// To which it listens then.
    pub(crate) fn heeded() -> impl Iterator<Item = Signal> {
        let ignored = Ignored::now();
        ENDING.iter().chain(&ENDING_ALONE).copied().filter(move |signal| !ignored.has(*signal))
    }

    /// Listens to this one.
    pub(crate) fn listen(&self, signal: Signal) -> io::Result<()> {
        flag::register_usize(signal as i32, Arc::clone(&self.0), signal as usize).map(|_| ())
    }

    /// The last that came, if one did.
    pub(crate) fn heard(&self) -> Option<Signal> {
        let number = i32::try_from(self.0.load(Ordering::SeqCst)).ok()?;
        Signal::try_from(number).ok()
    }

    /// Listens for the next: what was heard has not ended the call.
    pub(crate) fn forget(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    /// Takes note of a signal that was heard elsewhere.
    pub(crate) fn hear(&self, signal: Signal) {
        self.0.store(signal as usize, Ordering::SeqCst);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(60);

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
