//! What happened, attempt by attempt: kept while the command runs, written as JSON at the end (`--report`).

use crate::{
    json::{Object, array, millis},
    outer,
    talk::{Fault, plain},
    whole_file::{READ_BY_OTHERS, WholeFile},
};
use nix::sys::signal::Signal;
use relent::{Reason, Verdict};
use std::{collections::VecDeque, ffi::OsString, io, path::Path, time::Duration};

/// How many attempts are kept; of a longer run, the last ones.
const MOST_ROWS: usize = 10_000;

/// One attempt that is over.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) attempt: u32,
    pub(super) exit: u8,
    pub(super) what: String,
    /// None for a success.
    pub(super) verdict: Option<Verdict>,
    pub(super) started: Duration,
    pub(super) ran: Duration,
    /// The wait for the next one, if there is one.
    pub(super) delay: Option<Duration>,
    /// Why there is none.
    pub(super) reason: Option<Reason>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    GaveUp(Reason),
    Interrupted(Signal),
    /// Somebody else holds the lease.
    Held,
    /// Somebody else holds the lease, and that is well.
    Skipped,
    /// The lease could not be kept.
    LeaseLost,
}

impl Outcome {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::GaveUp(_) => "gave_up",
            Outcome::Interrupted(_) => "interrupted",
            Outcome::Held => "lease_held",
            Outcome::Skipped => "skipped",
            Outcome::LeaseLost => "lease_lost",
        }
    }

    pub(super) fn reason(&self) -> Option<Reason> {
        match self {
            Outcome::Success | Outcome::Held | Outcome::Skipped | Outcome::LeaseLost => None,
            Outcome::GaveUp(reason) => Some(*reason),
            Outcome::Interrupted(_) => Some(Reason::Cancelled),
        }
    }
}

/// The report of a run, if one is wanted.
pub(super) struct Report {
    file: Option<WholeFile>,
    rows: VecDeque<Row>,
}

impl Report {
    /// Looks at the file at once, so that a wrong path is known before the command has run.
    pub(super) fn new(path: Option<&Path>) -> Result<Report, Fault> {
        let find = |path: &Path| {
            // The command line and the key are in it.
            WholeFile::private(path).map_err(|error| {
                let hint = match error.to_string().starts_with(READ_BY_OTHERS) {
                    true if error.kind() == io::ErrorKind::ResourceBusy => {
                        "it is mounted here: chmod 600 FILE, or mount its folder and name a file in that"
                    }
                    true => "chmod 600 FILE lets nobody else read it; then it is written to as it is",
                    false => "--report FILE needs a file of ours that can be written, in a folder that is there",
                };
                Fault::new(format!("cannot write the report {}: {}", path.display(), plain(&error))).hint(hint)
            })
        };
        Ok(Report { file: path.map(find).transpose()?, rows: VecDeque::new() })
    }

    pub(super) fn add(&mut self, row: Row) {
        if self.file.is_some() {
            if self.rows.len() == MOST_ROWS {
                self.rows.pop_front();
            }
            self.rows.push_back(row);
        }
    }

    /// Writes it.
    pub(super) fn write(mut self, end: &End<'_>) -> Result<(), Fault> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let text = end.to_json(&self.rows) + "\n";
        file.write(text.as_bytes()).map_err(|error| Fault::new(format!("cannot write the report: {}", plain(&error))))
    }
}

/// What there is to say about a run as a whole.
pub(super) struct End<'a> {
    pub(super) command: &'a [OsString],
    pub(super) key: &'a str,
    pub(super) outcome: Outcome,
    /// The fence of the lease, if there was one.
    pub(super) fence: Option<u64>,
    pub(super) attempts: u64,
    pub(super) exit: u8,
    pub(super) elapsed: Duration,
}

impl End<'_> {
    fn to_json(&self, rows: &VecDeque<Row>) -> String {
        let words = self.command.iter().map(|word| crate::json::quoted(&word.to_string_lossy()));
        let mut object = Object::new();
        object
            .raw("command", &array(words))
            .text("key", self.key)
            .text("outcome", self.outcome.name())
            .option("reason", self.outcome.reason().map(|reason| reason.as_str()))
            .number("exit", self.exit.into())
            .number("attempts", self.attempts)
            .number("elapsed_ms", millis(self.elapsed))
            .raw("history", &array(rows.iter().map(row)));
        if let Some(fence) = self.fence {
            object.number("fence", fence);
        }
        object.finish()
    }
}

fn row(row: &Row) -> String {
    Object::new()
        .number("attempt", row.attempt.into())
        .number("exit", row.exit.into())
        .text("what", &crate::redact::text(&row.what))
        .text("verdict", &verdict_name(row.verdict))
        .number("started_ms", millis(row.started))
        .number("ran_ms", millis(row.ran))
        .raw("delay_ms", &row.delay.map_or("null".to_owned(), |delay| millis(delay).to_string()))
        .option("reason", row.reason.map(|reason| reason.as_str()))
        .finish()
}

/// A verdict in the words of `RELENT_VERDICT`.
pub(super) fn verdict_name(verdict: Option<Verdict>) -> String {
    verdict.map_or_else(|| "success".to_owned(), outer::word)
}
