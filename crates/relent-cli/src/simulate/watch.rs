//! What happens beside a simulation: progress on a terminal after a second, and Ctrl-C, which ends it early.

use crate::{
    ear::ends_once,
    screen, stderr,
    talk::{Fault, HushArgs},
};
use nix::sys::signal::Signal;
use relent_sim::Control;
use signal_hook::flag;
use std::{
    hint,
    io::{self, IsTerminal, Write},
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// A thread that looks after a simulation.
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
    watched: Option<JoinHandle<()>>,
}

const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(1);

impl Watch {
    pub(super) fn start(control: Arc<Control>, hush: HushArgs) -> Result<Watch, Fault> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let over = Arc::new(AtomicBool::new(false));
        let (told, caught) = (Arc::clone(&over), Arc::clone(&interrupted));
        // What a thread takes in advance is taken before it is reckoned what is left.
        let begun = Arc::new(Barrier::new(2));
        let begins = Arc::clone(&begun);
        let watch = move || {
            drop(hint::black_box(Box::new(0_u8)));
            begins.wait();
            drop(begins);
            let (started, mut shown) = (Instant::now(), false);
            while !told.load(Ordering::Relaxed) {
                if caught.load(Ordering::Relaxed) {
                    control.stop();
                }
                if !hush.quiet && started.elapsed() > PATIENCE && io::stderr().is_terminal() && !screen::is_dumb() {
                    show(&control);
                    shown = true;
                }
                thread::park_timeout(LOOK);
            }
            if shown {
                let _ = write!(stderr::open(), "\r\x1b[K");
            }
        };
        // Where the system has no thread to give, Ctrl-C ends the process.
        let Ok(thread) = thread::Builder::new().spawn(watch) else {
            return Ok(Watch { over, interrupted, watched: None });
        };
        begun.wait();
        // When it is over, Ctrl-C ends the process again, and a second one does before.
        ends_once(Signal::SIGINT, over.clone())
            .and_then(|()| ends_once(Signal::SIGINT, interrupted.clone()))
            .and_then(|()| flag::register(Signal::SIGINT as i32, interrupted.clone()))
            .map_err(|error| Fault::new(format!("cannot watch for Ctrl-C: {error}")))?;
        Ok(Watch { over, interrupted, watched: Some(thread) })
    }

    /// Whether there was a Ctrl-C until now; from now on one ends the process.
    pub(super) fn end(self) -> bool {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.watched {
            thread.thread().unpark();
            // The thread only prints; if it has died of that, there is nobody to tell.
            let _ = thread.join();
        }
        self.interrupted.load(Ordering::SeqCst)
    }
}

fn show(control: &Control) {
    let (done, all, attempts) = control.progress();
    let millions = attempts as f64 / 1e6;
    let what = match control.is_advising() {
        true => "looking for advice".to_owned(),
        false => format!("run {} of {all}", (done + 1).min(all)),
    };
    // What is longer than a line could not be erased.
    let line = format!("{what}, {millions:.0} million attempts");
    let _ = write!(stderr::open(), "\r\x1b[K{}", screen::cut(&line));
}
