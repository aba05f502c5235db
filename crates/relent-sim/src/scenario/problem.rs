//! Why a scenario cannot be simulated.

use std::{error::Error, fmt, ops::Range};

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key that is wrong, as scenario files write it: `server.capacity`.
    pub key: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub hint: String,
    /// Where it stands in the scenario file, in bytes.
    pub span: Option<Range<usize>>,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, problem: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem { key: key.into(), problem: problem.into(), hint: hint.into(), span: None }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl Error for Problem {}
