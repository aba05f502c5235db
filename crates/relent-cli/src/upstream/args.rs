//! The flags of `relent upstream`.

use crate::{
    policy_args::duration,
    store::{args::StoreArgs, place},
    typed::typed,
};
use relent::config::BadSetting;
use relent_store::Key;
use std::time::Duration;

/// The flags of `relent upstream`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    pub(super) what: Option<What>,

    #[command(flatten)]
    pub(super) list: ListArgs,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(super) enum What {
    /// List what all processes know (that is what relent upstream alone does).
    List(ListArgs),
    /// List it again and again: live on a terminal, a line for each in a pipe.
    Watch(WatchArgs),
    /// Hold its breaker open, for all processes: no attempt is let through.
    Open(Hand),
    /// Hold its breaker closed, for all processes: every attempt is let through.
    Close(Hand),
    /// Let its breaker decide for itself again.
    Release(Hand),
}

#[derive(Clone, Debug, clap::Args)]
pub(super) struct ListArgs {
    /// The policy file that names the store.
    #[arg(long, value_name = "FILE")]
    pub(super) policy: Option<String>,

    #[command(flatten)]
    pub(super) to: StoreArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub(super) struct WatchArgs {
    /// How long to wait before it is listed again [default: 1s].
    #[arg(long, value_name = "DURATION", value_parser = every, default_value = "1s", hide_default_value = true)]
    pub(super) every: Duration,

    /// How often it is listed [default: until Ctrl-C].
    #[arg(long, value_name = "NUMBER")]
    pub(super) times: Option<u64>,

    #[command(flatten)]
    pub(super) list: ListArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct Hand {
    /// The upstream.
    #[arg(value_name = "NAME", value_parser = name)]
    pub(super) name: Key,

    /// The policy file that names the store.
    #[arg(long, value_name = "FILE")]
    pub(super) policy: Option<String>,

    #[command(flatten)]
    pub(super) to: StoreArgs,
}

impl Hand {
    /// The flag by which another command finds the same store, if one was given.
    pub(super) fn where_to(&self) -> String {
        match (&self.to.store, &self.policy) {
            (Some(url), _) => format!(" --store {}", typed(&place::shown(url))),
            (None, Some(file)) => format!(" --policy {}", typed(file)),
            (None, None) => String::new(),
        }
    }
}

fn name(text: &str) -> Result<Key, BadSetting> {
    let bad = |problem: String| BadSetting { key: None, problem, hint: "as in [upstream.NAME]".to_owned() };
    Key::new(text).map_err(|error| bad(error.to_string()))
}

fn every(text: &str) -> Result<Duration, BadSetting> {
    // A store is not asked more often than that by somebody who looks on.
    Ok(duration(text)?.max(Duration::from_millis(100)))
}

const AFTER_HELP: &str = "\
Processes share an upstream by a store that the policy file names:

  [upstream.bank]
  budget = { ratio = 0.1, min_per_second = 1 }
  breaker = { consecutive = 5, open_for = \"30s\" }
  store = \"sqlite:/var/lib/jobs/state.db\"

Then every relent run on it (--upstream bank, or by its policy) counts with all others, once
relent store migrate --store sqlite:/var/lib/jobs/state.db has made it: the file alone makes none.

Examples:
  relent upstream --policy jobs.toml
  relent upstream watch --store sqlite:/var/lib/jobs/state.db
  RELENT_CONFIG=/etc/relent.toml relent upstream open bank";
