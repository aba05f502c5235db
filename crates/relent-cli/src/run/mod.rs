//! `relent run`: a command that fails is run again, politely.
//!
//! What decides is relent's own state machine ([`relent::Call`]); what is here is the command as a real process:
//! its input replayed ([`input`]), its output kept apart from that of failed attempts ([`spool`]), its time limited
//! and its processes ended as a whole ([`group`]), its end judged ([`judge`]). One thread and one poll, and
//! one that looks whether what is started starts ([`starting`]); nothing else is started, compiled or opened that the flags do not ask for.

mod answer;
mod args;
mod attempt;
mod before;
mod command_end;
mod copied;
mod driver;
mod ended;
mod environ;
mod exit_set;
#[doc(hidden)]
pub mod fuzzed;
mod group;
mod input;
mod judge;
mod kin;
mod late_output;
mod leader;
mod lease;
mod mark;
mod narrator;
mod orphans;
mod patterns;
mod pipes;
mod plan;
mod processes;
mod report;
mod running;
mod said;
mod setsid;
mod signals;
mod spool;
mod starting;
mod stream;
mod terminal;
mod unstopped;
mod verdict_file;
mod wait;
mod ways;

pub(crate) use args::Args;
pub(crate) use lease::{
    help as help_of_lease,
    watchman::{WORD as WATCHMAN, watch},
};

use crate::{
    dumps,
    ear::{self, is_process_1},
    guard::{self, Guard},
    outer, output,
    program::CannotRun,
    redact,
    stderr::{self, PIECE},
    talk::{self, Fault, plain},
    upstream,
};
use driver::{Driver, Finished};
use ended::{How, died_by};
use input::Input;
use mark::Mark;
use narrator::Narrator;
use nix::{
    poll::{PollFd, PollFlags, PollTimeout},
    sys::signal::Signal,
};
use patterns::Patterns;
use report::{Outcome, Report};
use signals::Signals;
use spool::Spool;
use starting::Starting;
use std::{
    ffi::OsString,
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, IsTerminal},
    os::fd::BorrowedFd,
    process::ExitCode,
    time::{Duration, Instant},
};
use verdict_file::VerdictFile;

pub(crate) fn run(args: &Args) -> ExitCode {
    supervise(args).unwrap_or_else(|fault| fault.tell_as(args.talk.json))
}

fn supervise(args: &Args) -> Result<ExitCode, Fault> {
    if args.command.is_empty() {
        return Err(Fault::new("no command given").hint("relent run [FLAGS] -- COMMAND [ARG]..."));
    }
    let started = Instant::now();
    if args.lease.name.is_some() {
        dumps::forbid();
    }
    let deaf = |error| Fault::new(format!("cannot catch signals: {}", plain(&error)));
    let ended = ear::be_ended().map_err(deaf)?;
    redact::get_ready();
    let policy = args.policy.policy_said(args.talk)?;
    let seed = args.policy.seed();
    let described = guard::unhedged(&args.upstream, &args.policy.whole(), args.talk, "a command runs once at a time")?;
    let upstream = guard::upstream(described.as_ref())?;
    let store = args.lease.store.as_deref().filter(|_| args.upstream.upstream.is_some());
    let limit = policy.settings().timeout.into_iter().chain(args.policy.time_limit()).min();
    let deadline = limit.and_then(|limit| started.checked_add(limit));
    stderr::is_limited(deadline);
    let sharing = upstream::sharing_of(described.as_ref(), store, deadline, args.talk)?;
    let sharing = sharing.map(|sharing| sharing.for_calls_of(policy.settings().max_elapsed));
    if sharing.is_some() {
        dumps::forbid();
    }
    let signals = Signals::catch().map_err(deaf)?;
    ended.no_more();
    orphans::adopt();
    // Those of a shell that became relent.
    let children = orphans::all();
    let had_children = !children.as_ref().is_ok_and(Vec::is_empty);
    let narrator = Narrator::new(args.talk, args.time.heartbeat, &policy, started);
    narrator.begins(&policy, seed);
    let leads_a_group = !terminal::is_by_our_group();
    setsid::remark(&args.command).filter(|_| leads_a_group).into_iter().for_each(|remark| narrator.remark(remark));
    let driver = Driver {
        args,
        policy: &policy,
        key: key(),
        mark: Mark::new(),
        limit,
        started,
        had_children,
        signals: &signals,
        starting: Starting::new(signals.asked_to_end()),
        input: Input::new(args.streams.stdin, args.streams.max_kept.0),
        patterns: Patterns { retry: args.failure.retry_on_output.clone(), until: args.failure.until_output.clone() },
        // A supervised service must be heard while it runs.
        stream: args.streams.stream || args.time.reset_after.is_some() || io::stdout().is_terminal(),
        verdicts: VerdictFile::create(children.unwrap_or_default()).map_err(|error| {
            let CannotRun { problem, hint, .. } = without_verdict_file(&error);
            Fault::new(problem).hint(hint)
        })?,
        is_unheard: false,
        narrator,
        report: Report::new(args.report.as_deref())?,
        guard: Guard::new(upstream, seed).sharing(sharing.map(|sharing| sharing.hearing(signals.ear()))),
        lease: None,
    };
    let finished = driver.run(seed)?;
    let (judged, has_run) = (finished.exit, finished.has_run);
    let ended = exit(finished, &signals, limit.and_then(|limit| started.checked_add(limit)));
    // Whatever became of its output and its report, it has run.
    let code = ended.as_ref().map_or_else(Fault::code, |code| *code);
    if code != judged {
        let _ = outer::say(relent::Verdict::Permanent, code);
    }
    // Whoever has cut it off while it wrote may be the limit of who is above.
    if has_run && (code == judged || signals.ending().is_none()) {
        outer::take_back();
    }
    ended.map(ExitCode::from)
}

/// Writes out what the last attempt wrote, and says what to exit with. A signal that has not ended the run, since the command has
/// succeeded or the run was over, ends the wait for a reader.
fn exit(finished: Finished, signals: &Signals, times_out: Option<Instant>) -> Result<u8, Fault> {
    // First: what comes from now on ends relent by itself, and what came before is asked for.
    signals.let_through();
    let (over, cut) = match (finished.outcome, signals.ending()) {
        (Outcome::Interrupted(signal), _) | (_, Some(signal)) => (Some(Instant::now()), died_by(signal as i32)),
        _ => (times_out, How::TimedOut.code()),
    };
    let written = write_out(&finished.output, signals, over)?.map(|end| match end {
        End::Unread => cut,
        End::NobodyReads => died_by(Signal::SIGPIPE as i32),
    });
    if let Some(fault) = finished.unreported {
        return Err(fault);
    }
    if let Outcome::Interrupted(signal @ Signal::SIGINT) = finished.outcome
        && io::stderr().is_terminal()
        && !is_process_1()
    {
        // A shell's loop around us is to end by Ctrl-C too, which it does when we die by the signal.
        let _ = signal_hook::low_level::emulate_default_handler(signal as i32);
    }
    let exit = written.unwrap_or(finished.exit);
    if exit == 0 {
        output::has_arrived().map_err(|error| talk::unwritten(&error))?;
    }
    Ok(exit)
}

/// Why not all of the output is out.
enum End {
    /// The reader went away.
    NobodyReads,
    /// The reader did not read, and the run is over.
    Unread,
}

/// Writes it all, unless the reader went away: then the exit code says so, as that of any program in a pipe. When the run
/// is over, a reader who lets the pipe be full for as long as is waited for one does not get the rest.
fn write_out(kept: &Spool, signals: &Signals, over: Option<Instant>) -> Result<Option<End>, Fault> {
    if kept.len() == 0 {
        return Ok(None);
    }
    // Ctrl-Z stops who waits for a reader, too.
    let has_room = |out: BorrowedFd<'_>, patience: PollTimeout| {
        let most = u64::try_from(i32::from(patience)).map_or(Duration::MAX, Duration::from_millis);
        signals.wait_beside(vec![PollFd::new(out, PollFlags::POLLOUT)], most);
        stderr::has_room(out, PollTimeout::ZERO).filter(|has_room| *has_room)
    };
    let (mut piece, mut at) = ([0; PIECE], 0);
    loop {
        let read = kept.read_at(at, &mut piece).map_err(|error| {
            Fault::new(format!("cannot read back what the command wrote: {}", plain(&error)))
                .hint("name another folder in TMPDIR, or use --stream")
        })?;
        let written = match read {
            0 => return output::has_arrived().map(|()| None).map_err(|error| talk::unwritten(&error)),
            count => output::write_as_it_has(&piece[..count], over, has_room),
        };
        match written {
            Ok(true) => at += read as u64,
            Ok(false) => return Ok(Some(End::Unread)),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Some(End::NobodyReads)),
            Err(error) => return Err(talk::unwritten(&error)),
        }
    }
}

/// The key of the call: the environment's, so that a caller can name the operation, or a new one.
fn key() -> OsString {
    outer::key().unwrap_or_else(|| {
        let random = || RandomState::new().build_hasher().finish();
        format!("{:016x}{:016x}", random(), relent::rng::mix(random())).into()
    })
}

/// Without the file what must not be done twice could not be told.
fn without_verdict_file(error: &io::Error) -> CannotRun {
    CannotRun {
        not_found: false,
        may_pass: true,
        problem: format!("cannot create a file in {}: {}", tempfile::env::temp_dir().display(), plain(error)),
        hint: talk::hint(error, "name a folder that can be written in TMPDIR").into(),
    }
}
