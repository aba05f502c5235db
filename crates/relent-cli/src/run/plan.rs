//! What an attempt needs to know.

use super::{
    args::FailureArgs, lease::Leased, mark::Mark, patterns::Patterns, report::Outcome, starting::Starting,
    verdict_file::VerdictFile, ways::Ways,
};
use std::{ffi::OsString, time::Duration};

/// What an attempt needs to know.
pub(super) struct Plan<'a> {
    pub(super) command: &'a [OsString],
    /// What sees to it that it starts in time, or not at all.
    pub(super) starting: &'a Starting,
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// What its processes are known by.
    pub(super) mark: &'a Mark,
    /// The longest it may take.
    pub(super) limit: Option<Duration>,
    /// How it is ended.
    pub(super) ways: Ways<'a>,
    /// Whether its standard output goes out as it comes.
    pub(super) stream: bool,
    /// How much of it is kept else.
    pub(super) most: u64,
    pub(super) patterns: &'a Patterns,
    /// What counts as a failure.
    pub(super) rules: &'a FailureArgs,
    /// Whether one success more is all that is wanted.
    pub(super) is_enough: bool,
    /// Where it says what its failure means.
    pub(super) verdicts: &'a VerdictFile,
    /// Whether relent had children when it began, whose own come to it as the attempt's do.
    pub(super) had_children: bool,
    /// Whether it stays in our group, which has the terminal or not.
    pub(super) shares_group: bool,
    /// What the command may only run under.
    pub(super) lease: Option<&'a Leased>,
    /// Why it may not begin any more, if it may not.
    pub(super) stops: &'a dyn Fn() -> Option<Outcome>,
}
