//! The flags of `relent store`.

use crate::policy_args::duration;
use clap::ValueEnum;
use relent_store::Kind;
use std::time::Duration;

/// The flags of `relent store`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    pub(super) what: What,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(super) enum What {
    /// Say what the store promises with its present settings.
    Check(StoreArgs),
    /// List what is in it, without the values.
    Show(ShowArgs),
    /// Remove what has expired, in small batches.
    Purge(PurgeArgs),
    /// Make it, or bring its tables up to date.
    Migrate(StoreArgs),
}

/// Which store, and how it is told of.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StoreArgs {
    /// The store: sqlite:FILE [default: RELENT_STORE, or a file of your own]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// How long it may take to answer [default: 5s].
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s", hide_default_value = true)]
    pub(crate) timeout: Duration,

    /// One JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// What to list: leases, records, values, seen, upstreams [default: how many there are of each, and the leases]
    #[arg(value_name = "KIND", value_enum, hide_possible_values = true)]
    pub(super) kind: Option<KindName>,

    /// The most of a kind [default: 1000].
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, hide_default_value = true,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) limit: u32,

    #[command(flatten)]
    pub(super) to: StoreArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct PurgeArgs {
    /// How much is removed in one transaction [default: 500].
    #[arg(long, value_name = "NUMBER", default_value_t = 500, hide_default_value = true,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) batch: u32,

    #[command(flatten)]
    pub(super) to: StoreArgs,
}

/// What can be listed, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum KindName {
    Leases,
    Records,
    Values,
    Seen,
    Upstreams,
}

impl KindName {
    pub(super) const ALL: [KindName; 5] =
        [KindName::Leases, KindName::Records, KindName::Values, KindName::Seen, KindName::Upstreams];

    pub(super) fn kind(self) -> Kind {
        match self {
            KindName::Leases => Kind::Leases,
            KindName::Records => Kind::Records,
            KindName::Values => Kind::Values,
            KindName::Seen => Kind::Seen,
            KindName::Upstreams => Kind::Upstreams,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            KindName::Leases => "leases",
            KindName::Records => "records",
            KindName::Values => "values",
            KindName::Seen => "seen",
            KindName::Upstreams => "upstreams",
        }
    }
}

const AFTER_HELP: &str = "\
Values, results and credentials are never shown; keys and names are.

Exit codes:
  0    done; for check: the store can be read and written
  125  the store cannot be used: away, slow, read-only, of a newer relent, no store at all

Examples:
  relent store check
  relent store show leases --json
  relent store purge --store sqlite:/srv/state.db";
