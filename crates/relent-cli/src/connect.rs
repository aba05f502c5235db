//! `relent connect`: waits until something accepts connections, then runs a command in its place.
//!
//! One thread a target, each with a call of its own; the main thread waits for their news. When enough targets accept,
//! the process becomes the command (`exec`), so nothing of relent stays behind and signals reach the command
//! directly. An attempt opens a new socket and resolves the name anew; it says nothing on the socket it opens.
//!
//! With `--json`, on stderr, after each attempt that failed: `{"event":"attempt","target":"db:5432","attempt":1,
//! "error":"Connection refused","verdict":"transient","elapsed_ms":0,"delay_ms":812,"reason":null}`; per target
//! `{"event":"accepts","target":"db:5432","attempts":3,"elapsed_ms":2411}`; and in the end
//! `{"event":"end","outcome":"success","exit":0,"elapsed_ms":2411,"reason":null}` or `gave_up`.

mod target;
mod tls;

use self::{target::Target, tls::Tls};
use crate::{
    escape::escape,
    json::Object,
    outer,
    policy_args::CallArgs,
    program::{self, CannotRun},
    talk::{Fault, TalkArgs},
};
use relent::{
    Decision, Policy, Reason, Timestamp, Verdict,
    config::{BadSetting, Limit},
    duration::Human,
};
use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitCode},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Wait until something accepts connections, then run a command.
#[derive(Debug, clap::Args)]
#[command(
    args_override_self = true,
    override_usage = "relent connect [FLAGS] TARGET... [-- COMMAND [ARG]...]",
    after_help = AFTER_HELP
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
    talk: TalkArgs,
}

const WAITED: &str = "What is retried (by default every failure but a missing permission)";

const AFTER_HELP: &str = "\
An attempt without --attempt-timeout has 5s. Of tls:// and https:// the handshake must succeed, too.

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
    if args.targets.len() > MOST_TARGETS {
        return Err(Fault::new(format!("{} targets are too many", args.targets.len()))
            .hint(format!("up to {MOST_TARGETS} are waited for at once")));
    }
    let policy = policy(args)?;
    let tls = match args.targets.iter().any(Target::is_tls) && !args.invert {
        true => Tls::new(args.cacert.as_deref(), args.insecure)?,
        false => Tls::none(),
    };
    let tls = Arc::new(tls);
    let started = Instant::now();
    let limit = policy.settings().timeout.into_iter().chain(args.policy.time_limit()).min();
    let (send, news) = channel();
    let seed = args.policy.seed();
    for (nth, target) in args.targets.iter().enumerate() {
        let (target, send) = (target.clone(), send.clone());
        let seed = relent::rng::mix(seed ^ relent::rng::mix(nth as u64));
        let (tls, invert) = (Arc::clone(&tls), args.invert);
        let attempt = move |limit| if invert { target.is_gone(limit) } else { target.connect(limit, &tls) };
        let clock = Clock { started, limit };
        let waiting = move || wait(&policy, &attempt, nth, clock, seed, &send);
        thread::Builder::new()
            .spawn(waiting)
            .map_err(|error| Fault::new(format!("cannot start a thread for each target: {error}")))?;
    }
    drop(send);
    let teller = Teller { args, policy: &policy, started, limit };
    teller.begins(seed);
    match teller.listen(&news) {
        Ok(last) => {
            teller.end(None, 0);
            execute(args, &args.targets[last])
        }
        Err(reason) => {
            let exit = if reason == Reason::Elapsed { OUT_OF_TIME } else { GAVE_UP };
            outer::gave_up(reason, None, exit);
            teller.end(Some(reason), exit);
            Ok(ExitCode::from(exit))
        }
    }
}

/// The policy of the flags, in which an attempt has an end unless it was said to have none.
fn policy(args: &Args) -> Result<Policy, Fault> {
    let policy = args.policy.policy_said(args.talk)?;
    let whole = args.policy.whole();
    let said = whole.flags()?.over(whole.file()?).attempt_timeout;
    let unlimited = matches!(said, Some(Limit::Unlimited));
    match policy.settings().attempt_timeout {
        None if !unlimited => Ok(policy.attempt_timeout(ATTEMPT_TIMEOUT)),
        _ => Ok(policy),
    }
}

/// What a target's thread has to tell.
struct News {
    target: usize,
    attempt: u32,
    outcome: Result<(), Failure>,
}

/// An attempt that failed.
struct Failure {
    error: String,
    verdict: Verdict,
    decision: Decision,
}

/// When it began, and how long all of it may take.
#[derive(Clone, Copy)]
struct Clock {
    started: Instant,
    limit: Option<Duration>,
}

/// Tries one target until it accepts or the policy gives up.
fn wait(
    policy: &Policy,
    once: &dyn Fn(Option<Duration>) -> io::Result<()>,
    nth: usize,
    clock: Clock,
    seed: u64,
    news: &Sender<News>,
) {
    let now = || Timestamp::ZERO + clock.started.elapsed();
    let mut call = policy.call(Timestamp::ZERO, seed);
    if let Some(limit) = clock.limit {
        call = call.deadline_at(Timestamp::ZERO + limit);
    }
    thread::sleep(call.spread());
    if !call.may_start(now()) {
        return;
    }
    loop {
        let attempt = call.attempt();
        let (outcome, delay) = match once(call.attempt_limit(now())) {
            Ok(()) => (Ok(()), None),
            Err(error) => {
                let verdict = relent::net::verdict(&error);
                let decision = call.on_failure(now(), verdict);
                let delay = match decision {
                    Decision::Retry(delay) => Some(delay),
                    Decision::GiveUp(_) => None,
                };
                (Err(Failure { error: plain(&error), verdict, decision }), delay)
            }
        };
        // When nobody listens any more, the process is about to end.
        let told = news.send(News { target: nth, attempt, outcome });
        match delay {
            Some(delay) if told.is_ok() => thread::sleep(delay),
            _ => return,
        }
    }
}

/// What is wrong, without the number that only the system knows.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None if error.kind() == io::ErrorKind::TimedOut => "timed out".to_owned(),
        None => text.to_owned(),
    }
}

/// Listens to the threads, and says what they tell.
struct Teller<'a> {
    args: &'a Args,
    policy: &'a Policy,
    started: Instant,
    limit: Option<Duration>,
}

impl Teller<'_> {
    /// The last target that was needed, or why there are not enough.
    fn listen(&self, news: &Receiver<News>) -> Result<usize, Reason> {
        let mut missing = if self.args.any { 1 } else { self.args.targets.len() };
        let mut hopeful = self.args.targets.len();
        loop {
            let News { target, attempt, outcome } = self.next(news)?;
            match outcome {
                Ok(()) => {
                    self.accepts(target, attempt);
                    missing -= 1;
                    if missing == 0 {
                        return Ok(target);
                    }
                }
                Err(failure) => {
                    self.failed(target, attempt, &failure);
                    if let Decision::GiveUp(reason) = failure.decision {
                        hopeful -= 1;
                        if !self.args.any || hopeful == 0 {
                            return Err(reason);
                        }
                    }
                }
            }
        }
    }

    /// The next news. Resolvers have no timeout: when the last moment at which an attempt can end has passed, they are
    /// not waited for.
    fn next(&self, news: &Receiver<News>) -> Result<News, Reason> {
        let settings = self.policy.settings();
        let last = settings.max_elapsed.zip(settings.attempt_timeout);
        let last = last.map(|(most, attempt)| most.saturating_add(attempt).saturating_add(Duration::from_millis(100)));
        let received = match last.into_iter().chain(self.limit).min() {
            None => news.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(last) => news.recv_timeout(last.saturating_sub(self.started.elapsed())),
        };
        received.map_err(|_| {
            if !self.args.talk.json {
                self.say(&format!("gave up in {:.1}: {}", Human(self.started.elapsed()), Reason::Elapsed));
            }
            Reason::Elapsed
        })
    }

    /// With `--verbose`: the policy.
    fn begins(&self, seed: u64) {
        if self.args.talk.verbose && !self.args.talk.json {
            let keys = relent::config::Draft::from(*self.policy).to_string();
            let keys: Vec<String> = keys.lines().map(|line| line.replace(" = ", "=")).collect();
            self.say(&format!("policy {} seed={seed}", keys.join(" ")));
        }
    }

    fn accepts(&self, target: usize, attempts: u32) {
        let target = self.args.targets[target].to_string();
        if self.args.talk.json {
            let mut event = Object::new();
            event
                .text("event", if self.args.invert { "gone" } else { "accepts" })
                .text("target", &target)
                .number("attempts", attempts.into());
            return self.event(event.number("elapsed_ms", self.elapsed_ms()));
        }
        if attempts > 1 || self.args.talk.verbose {
            let plural = if attempts == 1 { "" } else { "s" };
            let elapsed = Human(self.started.elapsed());
            let is = if self.args.invert { "is gone" } else { "accepts" };
            self.say(&format!("{target}: {is} after {attempts} attempt{plural} in {elapsed:.1}"));
        }
    }

    fn failed(&self, target: usize, attempt: u32, failure: &Failure) {
        let target = self.args.targets[target].to_string();
        let error = &failure.error;
        let (delay, reason) = match failure.decision {
            Decision::Retry(delay) => (Some(delay), None),
            Decision::GiveUp(reason) => (None, Some(reason)),
        };
        if self.args.talk.json {
            let verdict = if failure.verdict == Verdict::Permanent { "permanent" } else { "transient" };
            let mut event = Object::new();
            event.text("event", "attempt").text("target", &target).number("attempt", attempt.into());
            event.text("error", error).text("verdict", verdict).number("elapsed_ms", self.elapsed_ms());
            event.raw("delay_ms", &delay.map_or("null".to_owned(), |delay| delay.as_millis().to_string()));
            return self.event(event.option("reason", reason.map(|reason| reason.as_str())));
        }
        let of_most = match self.policy.settings().max_attempts {
            Some(most) => format!("{attempt} of {most}"),
            None => attempt.to_string(),
        };
        match (delay, reason) {
            (Some(delay), _) => {
                self.say(&format!("{target}: attempt {of_most}: {error}; next in {:.1}", Human(delay)));
            }
            (None, reason) => {
                let reason = reason.map(|reason| reason.to_string()).unwrap_or_default();
                let (plural, elapsed) = (if attempt == 1 { "" } else { "s" }, Human(self.started.elapsed()));
                self.say(&format!(
                    "{target}: gave up after {attempt} attempt{plural} in {elapsed:.1}: {reason} ({error})"
                ));
            }
        }
    }

    fn end(&self, reason: Option<Reason>, exit: u8) {
        if self.args.talk.json {
            let outcome = if reason.is_none() { "success" } else { "gave_up" };
            let mut event = Object::new();
            event.text("event", "end").text("outcome", outcome).number("exit", exit.into());
            event.number("elapsed_ms", self.elapsed_ms());
            self.event(event.option("reason", reason.map(|reason| reason.as_str())));
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn event(&self, event: &Object) {
        if !self.args.talk.quiet {
            let _ = writeln!(io::stderr().lock(), "{}", event.finish());
        }
    }

    fn say(&self, text: &str) {
        if !self.args.talk.quiet {
            let _ = writeln!(io::stderr().lock(), "relent: {}", escape(text));
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
    command.env("RELENT_TARGET", target.to_string()).exec()
}
