//! Assertions: what a scenario promises, and the number that broke the promise.

use super::Figure;
use std::fmt;

/// A bound on a figure, for one policy or all: `drain_s <= 60`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// The policy it is about; `None` is every one.
    pub policy: Option<String>,
    /// What is bounded.
    pub subject: Subject,
    /// The least it may be.
    pub min: Option<f64>,
    /// The most it may be.
    pub max: Option<f64>,
}

/// What an assertion is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The mean of a figure over the runs.
    Figure(Figure),
    /// The share of runs that recovered, 0 to 1.
    Recovered,
}

impl Subject {
    /// The subject of this name: a figure's, or `recovered`.
    pub fn parse(name: &str) -> Option<Subject> {
        if name == "recovered" { Some(Subject::Recovered) } else { Figure::parse(name).map(Subject::Figure) }
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Subject::Figure(figure) => figure.name(),
            Subject::Recovered => "recovered",
        }
    }
}

impl Assertion {
    /// A figure is at most this.
    pub const fn at_most(figure: Figure, most: f64) -> Assertion {
        Assertion { policy: None, subject: Subject::Figure(figure), min: None, max: Some(most) }
    }

    /// A figure is at least this.
    pub const fn at_least(figure: Figure, least: f64) -> Assertion {
        Assertion { policy: None, subject: Subject::Figure(figure), min: Some(least), max: None }
    }

    /// Every run recovers.
    pub const fn recovers() -> Assertion {
        Assertion { policy: None, subject: Subject::Recovered, min: Some(1.0), max: None }
    }

    /// The same of one policy only.
    #[must_use]
    pub fn of(mut self, policy: impl Into<String>) -> Assertion {
        self.policy = Some(policy.into());
        self
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.subject.name();
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(f, "{min} <= {name} <= {max}"),
            (Some(min), None) => write!(f, "{name} >= {min}"),
            (None, Some(max)) => write!(f, "{name} <= {max}"),
            (None, None) => write!(f, "{name} exists"),
        }
    }
}
