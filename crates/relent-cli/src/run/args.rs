//! The flags of `relent run`.

use super::exit_set::ExitSet;
use crate::{policy_args::PolicyArgs, talk::TalkArgs};
use clap::ValueEnum;
use regex_lite::Regex;
use relent::{config::BadSetting, parse_duration};
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// The flags of `relent run`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "relent run [FLAGS] -- COMMAND [ARG]...", after_help = AFTER_HELP)]
pub struct Args {
    /// The command, and what it is given.
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(super) command: Vec<OsString>,

    #[command(flatten)]
    pub(super) policy: PolicyArgs,

    #[command(flatten)]
    pub(super) failure: FailureArgs,

    #[command(flatten)]
    pub(super) streams: StreamArgs,

    #[command(flatten)]
    pub(super) time: TimeArgs,

    #[command(flatten)]
    pub(super) talk: TalkArgs,

    /// Write every attempt, wait and the reason for the end to a file, as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) report: Option<PathBuf>,
}

/// What counts as failure, and as one that may pass.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What is retried (by default every exit but 0, 126 and 127)")]
pub(super) struct FailureArgs {
    /// Retry only on these exit codes, such as 1,3-5 (a death by signal N is 128+N).
    #[arg(long, value_name = "CODES")]
    pub(super) retry_on_exit: Option<ExitSet>,

    /// Never retry on these exit codes.
    #[arg(long, value_name = "CODES")]
    pub(super) stop_on_exit: Option<ExitSet>,

    /// Read exit codes as sysexits.h: 75 may pass; 64, 65, 77 and 78 will not.
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
    /// Its input: the same in each attempt (replay, the default), what is left, or none.
    #[arg(long, value_name = "replay|inherit|null", value_enum, default_value_t = StdinMode::Replay,
          hide_default_value = true, hide_possible_values = true)]
    pub(super) stdin: StdinMode,

    /// Pass the output of every attempt through, not only the last one's (on a terminal anyway).
    #[arg(long)]
    pub(super) stream: bool,
}

/// Limits of time that are no part of the policy.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Time")]
pub(super) struct TimeArgs {
    /// The time from telling a command to end (TERM) to killing it (KILL) [default: 10s].
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s", hide_default_value = true)]
    pub(super) grace: Duration,

    /// Forget earlier failures when an attempt ran this long: supervises a service.
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
Environment of the command:
  RELENT_ATTEMPT       this attempt, from 1       RELENT_MAX_ATTEMPTS  how many there may be, or unlimited
  RELENT_LAST_EXIT     the exit code before it    RELENT_ELAPSED_MS    milliseconds since the beginning
  RELENT_KEY           one key for all attempts: an idempotency key (kept if it is set already)
  RELENT_VERDICT       a file: transient, permanent, overloaded or \"after 30s\" written to it says what
                       this attempt's failure means, and is believed more than the exit code

Exit codes:
  the command's own    it succeeded, or retrying ended with this failure
  1                    it exited with 0, but not with the output or as often in a row as asked for
  124                  out of time: the last attempt was timed out, or the next would pass --max-elapsed
  125                  relent itself failed: wrong flags, an unreadable policy file, a full disk
  126, 127             the command cannot be executed, is not found (not retried)
  128+N                the command died by signal N, or relent was told to end by it

Examples:
  relent run -- curl -fsS https://example.com/api
  relent run --max-attempts 5 --base 100ms --cap 5s -- ./flaky.sh
  relent run --attempt-timeout 30s --max-elapsed 5m -- rsync -a src/ host:dst/
  relent run --until-output '\"ready\": *true' --curve constant --base 2s -- curl -s localhost:8080/health
  mysqldump shop | relent run --policy relent.toml#upload -- ssh backup 'cat > shop.sql'";
