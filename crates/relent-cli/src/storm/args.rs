//! The flags of `relent storm`.

use crate::{policy_args::PolicyArgs, protection_args::ProtectionArgs, simulate::numbers::time_limit, talk::HushArgs};
use clap::{ArgAction, ArgMatches, Command, FromArgMatches, error::Error};
use std::{path::PathBuf, time::Duration};

/// The flags of `relent storm`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true, override_usage = "relent storm [FLAGS]", after_help = AFTER_HELP)]
pub struct Args {
    /// How many clients lose their connection at one moment, up to
    /// 20000 [default: 2000]
    #[arg(long, verbatim_doc_comment, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CLIENTS)),
          default_value_t = 2000, hide_default_value = true, help_heading = HERD)]
    pub(super) clients: u32,

    /// What the server completes in a second, up to 100000 [default: 200].
    #[arg(long, value_name = "PER_SECOND", value_parser = capacity, help_heading = HERD)]
    pub(super) capacity: Option<f64>,

    /// The most requests inside it, waiting or served [default: 50].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), help_heading = HERD)]
    pub(super) queue: Option<u32>,

    /// Storm a server of yours instead: http://localhost:8080/health; on
    /// loopback only. --capacity and --queue say what to compare it with
    #[arg(long, verbatim_doc_comment, value_name = "URL", help_heading = HERD)]
    pub(super) target: Option<String>,

    /// Watch each policy for so long at most, up to 5m
    /// [default: twice the ideal, and 5s at least]
    #[arg(long, verbatim_doc_comment, value_name = "DURATION", value_parser = limit, help_heading = HERD)]
    pub(super) limit: Option<Duration>,

    /// One more policy: FILE#NAME, a profile, or keys and values such as
    /// base=1s,jitter=none. May be given several times
    #[arg(long, verbatim_doc_comment, value_name = "POLICY", help_heading = HERD)]
    pub(super) compare: Vec<String>,

    #[command(flatten)]
    pub(super) protection: ProtectionArgs,

    #[command(flatten)]
    pub(super) policies: Policies,

    /// Write an array with one JSON object a policy, each with its
    /// simulated twin, instead of the table
    #[arg(long, verbatim_doc_comment, help_heading = OUTPUT)]
    pub(super) json: bool,

    /// Write a report to this file: one page with all plots and figures.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) html: Option<PathBuf>,

    /// Write the plots to this folder as SVG.
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub(super) svg: Option<PathBuf>,

    /// Exit with 1 if measured and simulated differ by more than this
    /// share, such as 0.1, in the time to drain or in attempts
    #[arg(long, verbatim_doc_comment, value_name = "SHARE", value_parser = share, help_heading = OUTPUT)]
    pub(super) agree: Option<f64>,

    #[command(flatten)]
    pub(super) hush: HushArgs,
}

const HERD: &str = "Herd";
const OUTPUT: &str = "Output";

/// Real sockets of real clients: more than this is another tool's work.
pub(super) const MOST_CLIENTS: u32 = 20_000;

/// Policies side by side.
pub(super) const MOST_POLICIES: usize = 12;

const LONGEST: Duration = Duration::from_secs(300);

const AFTER_HELP: &str = "\
Real clients reconnect over real sockets to a server on loopback, and the same herd is simulated
beside them. Without a policy, no jitter, full jitter and the pacer are compared. --compat may be
repeated. Every policy has a server and a herd of its own; they start 1.5s apart.

Limits: 20000 clients, 12 policies, 5m for each. A client needs two open files while it is
connected; the soft limit (ulimit -n) is raised as far as the hard one allows. No root is
needed, and no address but loopback is called.

Exit codes:
    0  stormed, and with --agree measured and simulated agree
    1  --agree: they do not
  125  relent itself failed: wrong flags, not enough open files
  130  interrupted; what was done is shown

Examples:
  relent storm
  relent storm --compat tenacity --compat aws-2.1 --pacer
  relent storm --clients 500 --base 50ms --budget ratio=0.1 --html storm.html
  relent storm --target http://localhost:8080/ --clients 200 --limit 10s";

/// The flags of a policy, of which `--compat` may be there several times.
#[derive(Clone, Debug, Default)]
pub(super) struct Policies {
    pub(super) policy: PolicyArgs,
    /// The systems named by `--compat`, each a policy.
    pub(super) compat: Vec<String>,
}

impl clap::Args for Policies {
    fn augment_args(command: Command) -> Command {
        let several = |arg: clap::Arg| arg.action(ArgAction::Append).hide(false);
        PolicyArgs::augment_args(command).mut_arg("compat", several)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Policies::augment_args(command)
    }
}

impl FromArgMatches for Policies {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Policies, Error> {
        let compat = matches.get_many::<String>("compat").into_iter().flatten().cloned().collect();
        Ok(Policies { policy: PolicyArgs::from_arg_matches(matches)?, compat })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Policies::from_arg_matches(matches)?;
        Ok(())
    }
}

fn capacity(text: &str) -> Result<f64, String> {
    match text.replace('_', "").parse::<f64>() {
        Ok(rate) if (0.1..=100_000.0).contains(&rate) => Ok(rate),
        _ => Err("a number a second from 0.1 to 100000 is expected".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("a share above 0 and up to 1 is expected, such as 0.1".to_owned()),
    }
}

fn limit(text: &str) -> Result<Duration, String> {
    match time_limit(text)? {
        limit if limit > LONGEST => Err("a storm lasts 5m at most".to_owned()),
        limit if limit < Duration::from_millis(100) => Err("a storm lasts 100ms at least".to_owned()),
        limit => Ok(limit),
    }
}
