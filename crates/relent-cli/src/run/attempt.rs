//! One attempt: the command started, and what came of it.

use super::{
    group::{Group, Ways, orphans},
    input::Input,
    patterns::{Found, Patterns},
    running::Running,
    signals::Signals,
    spool::Spool,
    stream::is_pipe,
    terminal::Lent,
};
use crate::{
    program::{self, CannotRun},
    talk::Fault,
};
use nix::sys::signal::Signal;
use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// What an attempt needs to know.
pub(super) struct Plan<'a> {
    pub(super) command: &'a [OsString],
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// The longest it may take.
    pub(super) limit: Option<Duration>,
    /// How it is ended.
    pub(super) ways: Ways<'a>,
    /// Whether its standard output goes out as it comes.
    pub(super) stream: bool,
    /// How much of it is kept else.
    pub(super) most: u64,
    pub(super) patterns: &'a Patterns,
}

/// How an attempt went.
pub(super) struct Ended {
    pub(super) how: How,
    /// How long it ran, until it ended or was told to.
    pub(super) ran: Duration,
    /// Its standard output, unless that was passed on.
    pub(super) output: Spool,
    pub(super) found: Found,
    /// Whether nobody reads what it writes.
    pub(super) nobody_reads: bool,
    /// Whether there can be no other attempt, since its output is out already.
    pub(super) went_out: bool,
    /// The signal that came to relent, and was passed on.
    pub(super) interrupted: Option<Signal>,
    /// Its processes, to end what is left of them; none if it could not be started.
    pub(super) group: Option<Group>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    Exited(u8),
    /// By this signal.
    Died(i32),
    TimedOut,
    CannotRun(CannotRun),
}

impl How {
    /// The exit code that says so.
    pub(super) fn code(&self) -> u8 {
        match self {
            How::Exited(code) => *code,
            How::Died(signal) => died_by(*signal),
            How::TimedOut => 124,
            How::CannotRun(CannotRun { not_found: false, .. }) => 126,
            How::CannotRun(CannotRun { not_found: true, .. }) => 127,
        }
    }

    pub(super) fn of(status: ExitStatus) -> How {
        match (status.code(), status.signal()) {
            (Some(code), _) => How::Exited(code as u8),
            (None, signal) => How::Died(signal.unwrap_or(0)),
        }
    }
}

/// The exit code of a death by signal.
pub(super) fn died_by(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Runs an attempt to its end.
pub(super) fn run(plan: &Plan<'_>, input: &mut Input, signals: &Signals) -> Result<Ended, Fault> {
    let terminal = input.is_terminal();
    let others = orphans::all();
    let started = Instant::now();
    let mut child = match start(plan, input)? {
        Ok(child) => child,
        Err(how) => return Ok(Ended::without_start(how)),
    };
    let group = Group::of(child.id(), others);
    let lent = if terminal && io::stdout().is_terminal() { Lent::to(&group) } else { None };
    let mut running = Running::new(plan, &mut child, input, group, lent, started);
    match running.follow(&mut child, signals) {
        Ok(status) => running.ended(status),
        Err(fault) => {
            // It may be nobody's to kill; then it is not waited for either.
            if running.group.kill().is_ok() {
                let _ = child.wait();
            }
            Err(fault)
        }
    }
}

impl Ended {
    fn without_start(how: How) -> Ended {
        Ended {
            how,
            ran: Duration::ZERO,
            output: Spool::default(),
            found: Found::default(),
            nobody_reads: false,
            went_out: false,
            interrupted: None,
            group: None,
        }
    }
}

fn start(plan: &Plan<'_>, input: &mut Input) -> Result<Result<Child, How>, Fault> {
    let Some((program, arguments)) = plan.command.split_first() else {
        return Err(Fault::new("no command given"));
    };
    let mut direct = Command::new(program);
    direct.args(arguments);
    let started = match spawn(&mut direct, plan, input)? {
        Err(error) if program::has_no_form(&error) => match program::by_the_shell(program, arguments) {
            Some(mut script) => spawn(&mut script, plan, input)?,
            None => Err(error),
        },
        started => started,
    };
    Ok(started.map_err(|error| How::CannotRun(CannotRun::of(program, &error))))
}

fn spawn(command: &mut Command, plan: &Plan<'_>, input: &mut Input) -> Result<io::Result<Child>, Fault> {
    let (out, err) = outputs(plan);
    let environment = plan.environment.iter().map(|(name, value)| (name, value));
    command.envs(environment).stdin(input.stdio()?).stdout(out).stderr(err).process_group(0);
    Ok(command.spawn())
}

/// Its standard output and standard error.
///
/// What is neither kept nor searched the command gets as it is, but for a standard error that is a pipe: what it leaves
/// running would hold that open, and whoever reads it would wait for more after relent has ended.
fn outputs(plan: &Plan<'_>) -> (Stdio, Stdio) {
    let searched = !plan.patterns.is_empty();
    let piped = |yes: bool| if yes { Stdio::piped() } else { Stdio::inherit() };
    (piped(searched || !plan.stream), piped(searched || (!plan.stream && is_pipe(io::stderr()))))
}
