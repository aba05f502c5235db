//! One attempt: the command started, and what came of it.

use super::{
    before::Before,
    ended::{Ended, How},
    group::Group,
    input::Input,
    judge::is_success,
    lease::Leased,
    orphans,
    plan::Plan,
    report::Outcome,
    running::Running,
    signals::Signals,
    terminal::Lent,
};
use crate::{
    ignored::Ignored,
    outer,
    output::is_pipe,
    program::{self, CannotRun},
    slack,
    stderr::can_be_written_to,
    talk::Fault,
};
use nix::sys::signal::Signal;
use relent::Verdict;
use std::{
    io::{self, IsTerminal},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, Command, Stdio},
    time::Instant,
};

/// Runs an attempt to its end; or what it was not begun for.
pub(super) fn run(plan: &Plan<'_>, input: &mut Input, signals: &Signals) -> Result<Result<Ended, Outcome>, Fault> {
    let terminal = input.is_terminal();
    let children = orphans::all().unwrap_or_default();
    let before = Before::of(&children);
    let started = Instant::now();
    if let Some(lease) = plan.lease {
        lease.starts(plan.ways.say);
    }
    // The attempt was told of, and whoever reads that may have taken their time.
    if let Some(outcome) = (plan.stops)() {
        plan.lease.inspect(|lease| lease.group(None));
        return Ok(Err(outcome));
    }
    let begun = plan.starting.begins(plan.limit.and_then(|limit| started.checked_add(limit)), &children);
    let child = start(plan, input);
    drop(begun);
    let mut child = match child {
        Ok(Ok(child)) => child,
        Ok(Err(how)) => return Ok(Ok(Ended::without_start(how))),
        Err(fault) => {
            plan.lease.inspect(|lease| lease.group(None));
            return Err(fault);
        }
    };
    let mark = plan.had_children.then(|| plan.mark.clone());
    let watchman = plan.lease.and_then(Leased::watchman);
    let group = Group::of(child.id(), before, mark, watchman);
    if let Some(lease) = plan.lease {
        lease.group(Some(group.leader()));
    }
    // Who ignores what stops those who ask (in `$(..)` of a shell that people type into) reads an error instead, and never asks.
    let is_lent = terminal && !plan.shares_group && (io::stdout().is_terminal() || Ignored::now().has(Signal::SIGTTIN));
    let lent = if is_lent { Lent::to(&group) } else { None };
    let pid = child.id();
    let mut running = Running::new(plan, &mut child, input, group, lent, started);
    match running.follow(&mut child, signals) {
        Ok(status) => {
            // Before anybody is waited for: what others write there from now on is not the command's.
            let said = plan.verdicts.take(pid);
            let how = How::of(status);
            let verdict = said.about(how.code()).and_then(Result::ok);
            // What it has left may take as long to end as the runs around have time. Of who was told to end another end is judged.
            let stands = match verdict.filter(|_| !running.was_told()) {
                // Some of them may have heard it.
                Some(Verdict::Permanent | Verdict::Overloaded) => {
                    outer::nothing_again().inspect_err(|_| outer::was_not_begun()).is_ok()
                }
                known => {
                    let _ = known.map(outer::heed);
                    false
                }
            };
            let succeeds = |found| plan.is_enough && is_success(&how, found, verdict, plan.rules);
            let ended = running.ended(status, &succeeds, signals);
            if ended.is_err() {
                // What we end with is another thing.
                outer::take_all_back(stands);
            }
            ended.map(|ended| Ok(Ended { said, stands, ..ended }))
        }
        Err(fault) => {
            running.fail(&mut child, signals);
            Err(fault)
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

/// The exit code of the attempt before, in the command's environment.
pub(super) const LAST_EXIT: &str = "RELENT_LAST_EXIT";

fn spawn(command: &mut Command, plan: &Plan<'_>, input: &mut Input) -> Result<io::Result<Child>, Fault> {
    let (out, err) = outputs(plan);
    let environment = plan.environment.iter().map(|(name, value)| (name, value));
    // That of a run around this one is not the command's: the first attempt has none before it.
    command
        .env_remove(LAST_EXIT)
        .env_remove(outer::ABOVE)
        .envs(environment)
        .stdin(input.stdio()?)
        .stdout(out)
        .stderr(err);
    if !plan.shares_group {
        command.process_group(0);
    }
    Ok(slack::as_given(|| command.spawn()))
}

/// Its standard output and standard error.
///
/// What is neither kept nor searched the command gets as it is, but for a standard error that is a pipe: what it leaves
/// running would hold that open, and whoever reads it would wait for more after relent has ended. One that nothing can be written to is
/// the command's to notice.
fn outputs(plan: &Plan<'_>) -> (Stdio, Stdio) {
    let searched = !plan.patterns.is_empty();
    let piped = |yes: bool| if yes { Stdio::piped() } else { Stdio::inherit() };
    let is_read = is_pipe(io::stderr()) && can_be_written_to(io::stderr().as_fd());
    (piped(searched || !plan.stream), piped(searched || (!plan.stream && is_read)))
}
