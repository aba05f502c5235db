//! The flags of `relent run`.

use super::exit_set::ExitSet;
use crate::{policy_args::CallArgs, talk::TalkArgs};
use clap::ValueEnum;
use regex_lite::Regex;
use relent::{config::BadSetting, duration::parse_duration};
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// The flags of `relent run`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true, override_usage = "relent run [FLAGS] -- COMMAND [ARG]...", after_help = AFTER_HELP)]
pub struct Args {
    /// The command, and what it is given.
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(super) command: Vec<OsString>,

    #[command(flatten)]
    pub(super) policy: CallArgs,

    #[command(flatten)]
    pub(super) failure: FailureArgs,

    #[command(flatten)]
    pub(super) streams: StreamArgs,

    #[command(flatten)]
    pub(super) time: TimeArgs,

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
            failure: FailureArgs {
                retry_on_exit: None,
                stop_on_exit: None,
                sysexits: false,
                retry_on_output: None,
                until_output: None,
                consecutive: 1,
            },
            streams: StreamArgs { stdin: StdinMode::Replay, stream: false },
            time: TimeArgs { grace: GRACE, reset_after: None, heartbeat: None },
            talk: TalkArgs::default(),
            report: None,
        }
    }
}

/// What counts as failure, and as one that may pass.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What is retried (by default every exit but 0, 126 and 127)")]
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
    pub(super) retry_on_output: Option<Regex>,

    /// Retry until a line of the output matches and the exit code is 0.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub(super) until_output: Option<Regex>,

    /// Retry until it succeeds this many times in a row.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, hide_default_value = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) consecutive: u32,
}

/// What the command reads, and where its output goes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Input and output of the command")]
pub(super) struct StreamArgs {
    /// The same input in each attempt (replay, the default),
    /// what the last one has left, or none
    #[arg(long, verbatim_doc_comment, value_name = "replay|inherit|null", value_enum, default_value_t = StdinMode::Replay,
          hide_default_value = true, hide_possible_values = true)]
    pub(super) stdin: StdinMode,

    /// Pass the output of every attempt on, not only the last one's.
    #[arg(long)]
    pub(super) stream: bool,
}

/// Limits of time that are no part of the policy.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Time")]
pub(super) struct TimeArgs {
    /// From telling a command to end (TERM) to killing it [default: 10s].
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s", hide_default_value = true)]
    pub(super) grace: Duration,

    /// Forget earlier failures when an attempt has run this long.
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

fn duration(text: &str) -> Result<Duration, BadSetting> {
    Ok(parse_duration(text)?)
}

fn positive(text: &str) -> Result<Duration, BadSetting> {
    match duration(text)? {
        Duration::ZERO => Err(bad("the duration is zero", "leave the flag out, or give it something like 30s")),
        duration => Ok(duration),
    }
}

fn regex(text: &str) -> Result<Regex, BadSetting> {
    Regex::new(text).map_err(|error| bad(error, "it is matched against each line, and knows no look-around"))
}

/// A value that is none, with what to write instead.
pub(super) fn bad(problem: impl ToString, hint: impl Into<String>) -> BadSetting {
    BadSetting { key: None, problem: problem.to_string(), hint: hint.into() }
}

const AFTER_HELP: &str = "\
Standard output is that of the last attempt only, so that a pipe gets no part of a failed one; on a
terminal, and with --stream, all of it is shown as it comes. Standard error always is.

Environment of the command:
  RELENT_ATTEMPT       this attempt, from 1
  RELENT_MAX_ATTEMPTS  how many there may be, or unlimited
  RELENT_LAST_EXIT     the exit code of the attempt before
  RELENT_ELAPSED_MS    milliseconds since the beginning
  RELENT_KEY           an idempotency key, one for all attempts (kept if it is set already)
  RELENT_VERDICT       a file to write transient, permanent, overloaded or \"after 30s\" to: what this
                       attempt means, which is believed more than its exit code

Exit codes:
  the command's own    it succeeded, or this failure was the last
  1                    it exited with 0, but not with the output or as often in a row as asked for
  124                  out of time: the last attempt took too long, or the next would be too late
  125                  relent itself failed: wrong flags, an unreadable policy file, a full disk
  126, 127             the command cannot be executed, is not found; not retried
  128+N                the command died by signal N, or relent was told to end by it

Examples:
  relent run -- curl -fsS https://example.com/api
  relent run --max-attempts 5 --base 100ms --cap 5s -- ./flaky.sh
  relent run --attempt-timeout 30s --max-elapsed 5m -- rsync -a src/ host:dst/
  relent run --until-output ready --curve constant --base 2s -- curl -s localhost:8080/health
  mysqldump shop | relent run --policy relent.toml#upload -- ssh backup 'cat > shop.sql'";
