//! The flags of a lease.

use crate::{policy_args::duration, run::exit_set::bad, topic};
use clap::ValueEnum;
use relent::config::BadSetting;
use relent_store::Key;
use std::time::Duration;

/// How long a lease holds without a sign of life, unless `--lease-ttl` says otherwise.
const TTL: Duration = Duration::from_secs(30);

/// The shortest time a lease may hold: renewing it takes a moment.
const SHORTEST: Duration = Duration::from_millis(100);

/// The longest.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// The flags of a lease.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Time")]
pub(in crate::run) struct LeaseArgs {
    /// Only while holding this lease (relent help lease tells all of it).
    #[arg(long = "lease", value_name = "NAME", value_parser = name)]
    pub(in crate::run) name: Option<Key>,

    /// How long it holds without a sign of life [default: 30s].
    #[arg(long = "lease-ttl", value_name = "DURATION", value_parser = ttl, requires = "name", hide = true)]
    ttl: Option<Duration>,

    /// If somebody else holds it: wait (default), skip (exit 0, at
    /// once), or fail (exit 75, at once)
    #[arg(
        long = "lease-held",
        verbatim_doc_comment,
        value_name = "MODE",
        value_enum,
        requires = "name",
        hide_possible_values = true,
        hide = true
    )]
    held: Option<IfHeld>,

    /// The longest wait for it; then exit 75 [default: --timeout's].
    #[arg(long = "lease-wait", value_name = "DURATION", value_parser = duration, requires = "name", hide = true)]
    pub(in crate::run) wait: Option<Duration>,

    /// Keep it at least this long, even if the command ends earlier.
    #[arg(long = "lease-at-least", value_name = "DURATION", value_parser = ttl, requires = "name", hide = true)]
    pub(in crate::run) at_least: Option<Duration>,

    /// Where leases are kept: sqlite:FILE [default: RELENT_STORE, or
    /// a file of your own, ~/.local/state/relent/state.db]
    #[arg(long, verbatim_doc_comment, value_name = "URL", hide = true)]
    pub(in crate::run) store: Option<String>,
}

/// What to do when somebody else holds a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::run) enum IfHeld {
    #[default]
    Wait,
    Skip,
    Fail,
}

impl LeaseArgs {
    /// No lease.
    pub(in crate::run) fn none() -> LeaseArgs {
        LeaseArgs { name: None, ttl: None, held: None, wait: None, at_least: None, store: None }
    }

    pub(super) fn ttl(&self) -> Duration {
        self.ttl.unwrap_or(TTL)
    }

    pub(super) fn held(&self) -> IfHeld {
        self.held.unwrap_or_default()
    }
}

fn name(text: &str) -> Result<Key, BadSetting> {
    Key::new(text).map_err(|error| bad(error.to_string(), "a name like nightly, the same for all who share it"))
}

fn ttl(text: &str) -> Result<Duration, BadSetting> {
    match duration(text)? {
        given if given < SHORTEST => Err(bad("the duration is shorter than 100ms", "30s is a good one")),
        given if given > LONGEST => Err(bad("the duration is longer than a year", "30s is a good one")),
        given => Ok(given),
    }
}

/// The text of `relent help lease`.
pub(crate) fn help() -> String {
    topic::help::<LeaseArgs>(
        "lease",
        "The flags by which relent run runs a command on one machine of many, or once at a time.",
        ABOUT,
    )
}

const ABOUT: &str = "\
A lease is a lock in a store that ends by itself. relent takes it before the first attempt, renews
it three times in its time to live for as long as attempts and waits between them last, and releases
it at the end. While somebody else holds it, it is asked for again by the delays of the policy
flags, at least twice in its time to live and at most twenty times a second; --timeout and
--max-elapsed count that wait too.

The command gets RELENT_FENCE, a number that is greater for each holder than for all before. What
the command changes should refuse lower ones than it has seen: that is what makes a lease safe,
whatever sleeps or is slow.

When the lease cannot be renewed (the store is away), the command is told to end in good time, and
killed when nine tenths of the time to live are over, before anybody else can get it: exit code 75.
A second process sees to that when relent itself is stopped or killed. On a machine that slept (or
stood still) beyond its lease, it kills the command within a second after waking: in that second
somebody else may hold the lease, and only RELENT_FENCE tells the two apart.

With clocks that differ, hosts that start a job \"at the same time\" may come after the first one has
finished it. --lease-at-least 1m keeps it from them for a minute.

  relent run --lease nightly --lease-held skip --lease-at-least 1m -- ./backup.sh
";
