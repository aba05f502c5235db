//! `relent demo`: in ten seconds and offline, what relent does and why.
//!
//! Two acts. A service on loopback fails the way services fail, and the real client gets through ([`story`]). Then two
//! hundred clients lose their connection at once, and the load they make when they come back is counted by the
//! service's own `accept`, without jitter and with it ([`herd`]). Nothing is drawn that was not measured.

mod herd;
mod port;
mod service;
mod stage;
mod story;

use self::{
    herd::{CAPACITY, CLIENTS, Counted, SPAN},
    stage::Stage,
};
use crate::{descriptors, ear, loopback::OTHERS, talk::Fault};
use relent::{Jitter, Policy, duration::Human};
use std::{io, process::ExitCode, time::Duration};

/// Show what relent does, in ten seconds and without a network.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// The policy of the herd, but for the jitter.
const RECONNECT: Policy =
    Policy::exponential(Duration::from_millis(500)).cap(Duration::from_secs(1)).unlimited_attempts();

/// Why the demo ends before its end.
enum Stop {
    /// Nobody is watching any more (`| head`).
    Unwatched,
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stop::Unwatched,
            _ => Stop::Fault(
                Fault::new(format!("the demo cannot go on: {error}"))
                    .hint("it needs a port on 127.0.0.1, two hundred threads and a place to write to"),
            ),
        }
    }
}

/// Runs both acts.
pub(crate) fn run() -> Result<ExitCode, Fault> {
    match acts() {
        Ok(()) | Err(Stop::Unwatched) => Ok(ExitCode::SUCCESS),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}

fn acts() -> Result<(), Stop> {
    ear::be_ended()?;
    let mut stage = Stage::new();
    stage.heading("1. A service that is down, then busy, then slow, then healthy")?;
    stage.line("")?;
    let room = descriptors::make_room("demo", CLIENTS as u64, 2, |_| String::new());
    story::tell(&stage, *room.as_ref().unwrap_or(&OTHERS))?;

    stage.line("")?;
    let (clients, span) = (CLIENTS, Human(SPAN));
    stage.heading(&format!("2. {clients} clients lose their connection at one moment and come back"))?;
    stage.line("")?;
    stage.line(&format!(
        "The service takes {CAPACITY} connections every {span} and closes the others at once; they back off:\n\
         first 500ms, then 1s. Bars: connections in {span}, counted by the service."
    ))?;
    let files = room?;
    let without = act(&mut stage, "without jitter (--jitter none)", Jitter::None, files)?;
    let with = act(&mut stage, "with jitter (--jitter full, the default)", Jitter::Full, files)?;
    stage.line("")?;
    stage.line(&format!(
        "The same clients, the same policy, the same service: a peak of {} or of {}.",
        without.peak(),
        with.peak()
    ))?;
    stage.line("")?;
    stage.heading("The same on your own service")?;
    stage.line(COMMANDS)?;
    Ok(())
}

const COMMANDS: &str = "
  relent http https://your.service/health         ask until it answers
  relent connect your-db:5432 -- ./your-server    wait for it, then start
  relent run -- ./your-script                     run any command again until it succeeds
  relent explain --base 200ms --jitter none       see what a policy will do, before it does it";

fn act(stage: &mut Stage, name: &str, jitter: Jitter, files: u64) -> Result<Counted, Stop> {
    stage.line("")?;
    stage.line(name)?;
    let moving = stage.is_moving();
    let counted = herd::run(RECONNECT.jitter(jitter), files, |counted| match moving {
        true => stage.picture(&counted.drawn()),
        false => Ok(()),
    })?;
    stage.picture(&counted.drawn())?;
    stage.keep();
    Ok(counted)
}
