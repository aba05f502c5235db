//! The flags of `relent run`.

use super::{
    exit_set::{ExitSet, bad},
    lease::LeaseArgs,
    patterns::Pattern,
};
use crate::{
    policy_args::{CallArgs, duration},
    retried,
    size::Size,
    talk::TalkArgs,
    upstream_args::UpstreamArgs,
};
use clap::ValueEnum;
use nix::sys::signal::Signal;
use relent::config::BadSetting;
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// The flags of `relent run`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true, override_usage = "relent run [FLAGS] -- COMMAND [ARG]...", after_help = retried::and(AFTER_HELP))]
pub struct Args {
    /// The command, and what it is given.
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(super) command: Vec<OsString>,

    #[command(flatten)]
    pub(super) policy: CallArgs,

    #[command(flatten)]
    pub(super) upstream: UpstreamArgs,

    #[command(flatten)]
    pub(super) failure: FailureArgs,

    #[command(flatten)]
    pub(super) streams: StreamArgs,

    #[command(flatten)]
    pub(super) time: TimeArgs,

    #[command(flatten)]
    pub(super) lease: LeaseArgs,

    #[command(flatten)]
    pub(super) talk: TalkArgs,

    /// Write every attempt, wait and the reason for the end there, as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) report: Option<PathBuf>,
}

/// How long a command has to end, unless `--grace` says otherwise.
const GRACE: Duration = Duration::from_secs(10);

impl Args {
    /// A command without any flags.
    pub(crate) fn without_flags(command: &[OsString]) -> Args {
        Args {
            command: command.to_vec(),
            policy: CallArgs::default(),
            upstream: UpstreamArgs::default(),
            failure: FailureArgs {
                retry_on_exit: None,
                stop_on_exit: None,
                sysexits: false,
                retry_on_output: None,
                until_output: None,
                consecutive: 1,
            },
            streams: StreamArgs { stdin: StdinMode::Replay, stream: false, max_kept: MOST },
            time: TimeArgs { grace: GRACE, signal: Signal::SIGTERM, reset_after: None, heartbeat: None },
            lease: LeaseArgs::none(),
            talk: TalkArgs::default(),
            report: None,
        }
    }
}

/// What counts as failure, and as one that may pass.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What is retried")]
pub(super) struct FailureArgs {
    /// Retry only on these exit codes: 1,3-5 (death by signal N is 128+N).
    #[arg(long, value_name = "CODES")]
    pub(super) retry_on_exit: Option<ExitSet>,

    /// Never retry on these exit codes.
    #[arg(long, value_name = "CODES")]
    pub(super) stop_on_exit: Option<ExitSet>,

    /// Read them as sysexits.h: retry on 75, stop on 64, 65, 77 and 78.
    #[arg(long)]
    pub(super) sysexits: bool,

    /// Retry only if a line of the output matches, whatever the exit code.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub(super) retry_on_output: Option<Pattern>,

    /// Retry until a line of the output matches and the exit code is 0.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub(super) until_output: Option<Pattern>,

    /// Retry until it succeeds this many times in a row.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, hide_default_value = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) consecutive: u32,
}

/// What the command reads, and where its output goes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Input and output of the command")]
pub(super) struct StreamArgs {
    /// replay (default): the same input in each attempt; inherit: what
    /// the last one has left; null: none
    #[arg(long, verbatim_doc_comment, value_name = "MODE", value_enum, default_value_t = StdinMode::Replay,
          hide_default_value = true, hide_possible_values = true)]
    pub(super) stdin: StdinMode,

    /// Pass the output of every attempt on, not only the last one's.
    #[arg(long)]
    pub(super) stream: bool,

    /// Keep at most this much of input and output; beyond it there is
    /// no other attempt [default: 100MiB]
    #[arg(long, verbatim_doc_comment, value_name = "SIZE", value_parser = size, default_value_t = MOST,
          hide_default_value = true)]
    pub(super) max_kept: Size,
}

/// Limits of time that are no part of the policy.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Time")]
pub(super) struct TimeArgs {
    /// From telling a command to end to killing it [default: 10s].
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s", hide_default_value = true)]
    pub(super) grace: Duration,

    /// What it is told to end by [default: TERM].
    #[arg(long, value_name = "SIGNAL", value_parser = signal, default_value = "TERM", hide_default_value = true)]
    pub(super) signal: Signal,

    /// Forget earlier failures when an attempt has run this long (--stream).
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub(super) reset_after: Option<Duration>,

    /// Say a line this often during long waits.
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub(super) heartbeat: Option<Duration>,
}

/// What the command gets as standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StdinMode {
    Replay,
    Inherit,
    Null,
}

/// The most of input, and of output, that is kept, unless `--max-kept` says otherwise.
const MOST: Size = Size(100 << 20);

fn size(text: &str) -> Result<Size, BadSetting> {
    text.parse()
}

/// A signal by its name, with or without SIG, or its number.
fn signal(text: &str) -> Result<Signal, BadSetting> {
    let name = text.to_ascii_uppercase();
    let name = if name.starts_with("SIG") { name } else { format!("SIG{name}") };
    let by_number = text.parse::<i32>().ok().and_then(|number| Signal::try_from(number).ok());
    by_number.or_else(|| name.parse().ok()).ok_or_else(|| {
        bad(format!("{text:?} is no signal"), "write its name, like INT or SIGINT, or its number; kill -l lists them")
    })
}

fn positive(text: &str) -> Result<Duration, BadSetting> {
    match duration(text)? {
        Duration::ZERO => Err(bad("the duration is zero", "leave the flag out, or give it something like 30s")),
        duration => Ok(duration),
    }
}

fn regex(text: &str) -> Result<Pattern, BadSetting> {
    Pattern::new(text).map_err(|error| bad(error, "it is matched against each line, and knows no look-around"))
}

const AFTER_HELP: &str = "\
The first that applies decides: RELENT_VERDICT, --stop-on-exit, --retry-on-..., this list.

Standard output is the last attempt's only; on a terminal, and with --stream, all as it comes.

Environment of the command:
  RELENT_ATTEMPT       this attempt, from 1
  RELENT_MAX_ATTEMPTS  how many there may be, or unlimited
  RELENT_LAST_EXIT     the exit code of the attempt before
  RELENT_ELAPSED_MS    milliseconds since the beginning
  RELENT_KEY           an idempotency key, one for all attempts (kept if it is set already)
  RELENT_DEADLINE_MS   milliseconds this attempt has, if that is limited
  RELENT_VERDICT       a file for transient, permanent, overloaded or \"after 30s\": believed before
                       the exit code; relent inside of the command writes it when it gives up

Exit codes:
  the command's own    it succeeded, or this failure was the last
  1                    it exited with 0, but not with the output or as often in a row as asked for
  75                   somebody else holds the lease, or it was lost (--lease)
  124                  out of time: --timeout, an attempt that took too long, or the next too late
  125                  relent itself failed: wrong flags, an unreadable policy file, a full disk
  126, 127             the command cannot be executed, is not found; not retried unless it may pass
  128+N                the command died by signal N, or relent was ended by it (141: nobody reads)

Examples:
  relent run -- curl -fsS https://example.com/api
  relent run --until-output ready --curve constant --base 2s -- curl -s localhost:8080/health
  mysqldump shop | relent run --policy relent.toml#upload -- ssh backup 'cat > shop.sql'";
