//! `relent connect`: waits until something accepts connections, then runs a command in its place.
//!
//! One thread a target, each with a call of its own; the main thread waits for their news. When enough targets accept,
//! the process becomes the command (`exec`), so nothing of relent stays behind and signals reach the command
//! directly. An attempt opens a new socket and resolves the name anew; it says nothing on the socket it opens.
//!
//! With `--json`, on stderr, after each attempt that failed: `{"event":"attempt","target":"db:5432","attempt":1,
//! "error":"Connection refused","verdict":"transient","elapsed_ms":0,"delay_ms":812,"reason":null}`; per target
//! `{"event":"accepts","target":"db:5432","attempts":3,"elapsed_ms":2411}`; if an upstream lets nothing through,
//! `{"event":"remark","target":"db:5432","remark":"bank: breaker open; ask again in 29s"}`; what that counted,
//! `{"event":"upstream","target":"db:5432","upstream":"bank","attempts":3,"retries":2}` and more; and in the end
//! `{"event":"end","outcome":"success","exit":0,"elapsed_ms":2411,"reason":null}` or `gave_up`.

#[doc(hidden)]
pub mod fuzzed;
mod target;
mod teller;
mod tls;
mod wait;

use self::{
    target::Target,
    teller::Teller,
    tls::Tls,
    wait::{Clock, wait},
};
use crate::{
    dumps, ear,
    found_limits::Attempt,
    guard::{self, Guard},
    outer,
    policy_args::CallArgs,
    program::{self, CannotRun},
    retried, slack, stderr,
    talk::{Fault, TalkArgs, plain},
    upstream_args::UpstreamArgs,
};
use relent::{Reason, config::BadSetting};
use std::{
    cell::RefCell,
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitCode},
    sync::{Arc, mpsc::sync_channel},
    thread,
    time::{Duration, Instant},
};

/// Wait until something accepts connections, then run a command.
#[derive(Debug, clap::Args)]
#[command(
    args_override_self = true,
    override_usage = "relent connect [FLAGS] TARGET... [-- COMMAND [ARG]...]",
    after_help = retried::and(AFTER_HELP)
)]
pub struct Args {
    /// What to wait for: host:port, a URL (its host and port) or unix:path.
    #[arg(value_name = "TARGET", required = true, value_parser = target)]
    targets: Vec<Target>,

    /// The command that takes the place of relent then.
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,

    /// Be content when one of the targets accepts.
    #[arg(long, help_heading = WAITED)]
    any: bool,

    /// Wait until nobody accepts there any more.
    #[arg(long, help_heading = WAITED)]
    invert: bool,

    /// Trust the certificate authorities in FILE (PEM) instead of the system's.
    #[arg(long, value_name = "FILE", help_heading = WAITED)]
    cacert: Option<PathBuf>,

    /// Trust any certificate of a tls:// or https:// target.
    #[arg(short = 'k', long, help_heading = WAITED)]
    insecure: bool,

    #[command(flatten)]
    policy: CallArgs,

    #[command(flatten)]
    upstream: UpstreamArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

const WAITED: &str = "Target";

const AFTER_HELP: &str = "\
An attempt has 5s, or --attempt-timeout. Of tls:// and https:// the handshake must succeed, too.

Environment of the command:
  RELENT_TARGET  the target that accepted, the last of them if all had to

Exit codes:
  the command's own    all targets (with --any, one) accept, and the command took relent's place
  0                    they accept, and there is no command
  1                    gave up: out of attempts, or a failure that will not pass
  124                  out of time: --timeout, or the next attempt would pass --max-elapsed
  125                  relent itself failed: wrong flags, an unreadable policy file
  126, 127             the command cannot be executed, is not found

Examples:
  relent connect db:5432 -- ./server
  relent connect --max-attempts unlimited --timeout 1m --cap 2s db:5432 redis:6379 -- ./server
  relent connect --any replica-1:5432 replica-2:5432 -- sh -c 'psql -h ${RELENT_TARGET%:*}'
  relent connect -q unix:/run/docker.sock && docker ps
  relent connect --invert --timeout 30s localhost:8080 -- ./start-again";

fn target(text: &str) -> Result<Target, BadSetting> {
    text.parse()
}

/// Every target has a thread.
const MOST_TARGETS: usize = 256;

/// The longest an attempt takes if the policy does not say.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

const GAVE_UP: u8 = 1;
const OUT_OF_TIME: u8 = 124;
const CANNOT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Waits, and becomes the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    wait_and_execute(args).unwrap_or_else(|fault| fault.tell_as(args.talk.json))
}

fn wait_and_execute(args: &Args) -> Result<ExitCode, Fault> {
    ear::be_ended().map_err(|error| Fault::new(format!("cannot catch signals: {}", plain(&error))))?;
    if args.targets.len() > MOST_TARGETS {
        return Err(Fault::new(format!("{} targets are too many", args.targets.len()))
            .hint(format!("up to {MOST_TARGETS} are waited for at once")));
    }
    let own = Attempt { most: ATTEMPT_TIMEOUT, is_proof: args.invert };
    let policy = args.policy.policy_said_within(own, args.talk)?;
    let whole = args.policy.whole();
    let described = guard::unhedged(&args.upstream, &whole, args.talk, "a target is called once at a time")?;
    let config = &whole.whole_file()?.config;
    if config.upstreams().any(|upstream| config.store_of(upstream).is_some()) {
        // Of the file, which others share: `connect` asks no store, and becomes what may be dumped.
        dumps::forbid();
    }
    let tls = match args.targets.iter().any(Target::is_tls) && !args.invert {
        true => Tls::new(args.cacert.as_deref(), args.insecure)?,
        false => Tls::none(),
    };
    let tls = Arc::new(tls);
    let started = Instant::now();
    let limit = policy.settings().timeout.into_iter().chain(args.policy.time_limit()).min();
    stderr::is_limited(limit.and_then(|limit| started.checked_add(limit)));
    // Who reads slowly what is said slows down who waits, and fills no memory.
    let (send, news) = sync_channel(1000);
    let seed = args.policy.seed();
    for (nth, target) in args.targets.iter().enumerate() {
        let (target, send) = (target.clone(), send.clone());
        let seed = relent::rng::mix(seed ^ relent::rng::mix(nth as u64));
        let (tls, invert, whole) = (Arc::clone(&tls), args.invert, policy.settings().attempt_timeout);
        let attempt = move |limit| match invert {
            true => target.is_gone(limit, whole),
            false => target.connect(limit, &tls),
        };
        let clock = Clock { started, limit };
        // Targets are far sides apart: one that is down opens no breaker of another.
        let guard = Guard::new(guard::upstream(described.as_ref())?, seed);
        let waiting = move || wait(&policy, &attempt, nth, clock, (seed, guard), &send);
        thread::Builder::new()
            .spawn(waiting)
            .map_err(|error| Fault::new(format!("cannot start a thread for each target: {}", plain(&error))))?;
    }
    drop(send);
    let teller = Teller { args, policy: &policy, started, limit, told: RefCell::default() };
    teller.begins(seed);
    match teller.listen(&news) {
        Ok(last) => {
            teller.end(None, 0);
            execute(args, &args.targets[last])
        }
        Err(reason) => {
            let exit = if reason == Reason::Elapsed { OUT_OF_TIME } else { GAVE_UP };
            let _ = outer::gave_up(reason, None, exit);
            teller.end(Some(reason), exit);
            Ok(ExitCode::from(exit))
        }
    }
}

/// Becomes the command, if there is one.
fn execute(args: &Args, target: &Target) -> Result<ExitCode, Fault> {
    let Some((program, rest)) = args.command.split_first() else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut direct = Command::new(program);
    direct.args(rest);
    let mut error = becomes(&mut direct, target);
    if program::has_no_form(&error)
        && let Some(mut script) = program::by_the_shell(program, rest)
    {
        error = becomes(&mut script, target);
    }
    let why = CannotRun::of(program, &error);
    Err(Fault::new(why.problem).hint(why.hint).exit(if why.not_found { NOT_FOUND } else { CANNOT_EXECUTE }))
}

/// Becomes a program, or says why not.
fn becomes(command: &mut Command, target: &Target) -> io::Error {
    if let Some(left) = outer::time_left() {
        command.env(outer::DEADLINE_MS, outer::millis(left));
    }
    command.env("RELENT_TARGET", target.to_string());
    slack::as_given(|| command.exec())
}
