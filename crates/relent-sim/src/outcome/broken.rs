//! Broken promises: the assertions of a scenario that its outcome does not keep, and the numbers that broke them.

use super::{Outcome, Record};
use crate::scenario::{Assertion, Figure, Subject};
use std::fmt;

impl Subject {
    fn of(self, record: &Record) -> Option<f64> {
        match self {
            Subject::Figure(figure) => record.get(figure),
            Subject::Recovered => record.recovered.map(|share| share.share()),
        }
    }
}

impl Assertion {
    /// Whether it promises that a herd is done by some time.
    const fn promises_drain(&self) -> bool {
        matches!(self.subject, Subject::Figure(Figure::DrainS | Figure::DrainOverIdeal)) && self.max.is_some()
    }

    fn is_about(&self, record: &Record) -> bool {
        self.policy.as_ref().is_none_or(|policy| *policy == record.policy)
    }

    fn check(&self, record: &Record, may_lose: bool) -> Option<Broken> {
        let value = self.subject.of(record);
        let holds = value.is_some_and(|value| {
            self.min.is_none_or(|least| value >= least) && self.max.is_none_or(|most| value <= most)
        });
        // What was cut off might have grown beyond any bound.
        let stopped = record.stopped.clone().filter(|_| self.max.is_some());
        let lost = record.get(Figure::GaveUp).filter(|lost| *lost > 0.0 && self.promises_drain() && !may_lose);
        (!holds || stopped.is_some() || lost.is_some()).then(|| Broken {
            policy: record.policy.clone(),
            assertion: self.clone(),
            value,
            stopped,
            lost,
        })
    }
}

/// An assertion that does not hold, and the number that broke it.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The policy.
    pub policy: String,
    /// What was promised.
    pub assertion: Assertion,
    /// What it is; `None` if the figure has no meaning (nobody was connected, nothing recovered).
    pub value: Option<f64>,
    /// Why a run was stopped before it was over, if one was: then no upper bound is known to hold.
    pub stopped: Option<String>,
    /// Clients that gave up where the drain was promised and nothing was said about `gave_up`: who loses clients is
    /// done early.
    pub lost: Option<f64>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (policy, name) = (&self.policy, self.assertion.subject.name());
        if let Some(stopped) = &self.stopped {
            return write!(f, "{policy}: {name} is not known: {stopped}; promised was {}", self.assertion);
        }
        if let (Some(value), Some(lost)) = (self.value, self.lost) {
            let (value, lost) = (rounded(value), rounded(lost));
            return write!(
                f,
                "{policy}: {name} is {value}, but {lost} clients gave up; promise gave_up too if they may"
            );
        }
        match self.value {
            Some(value) => write!(f, "{policy}: {name} is {}, promised was {}", rounded(value), self.assertion),
            None => write!(f, "{policy}: there is no {name}, promised was {}", self.assertion),
        }
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl Outcome {
    /// The assertions that do not hold, of those given, in order. One that names no policy is about all of them, and not
    /// about their populations.
    pub fn broken(&self, asserts: &[Assertion]) -> Vec<Broken> {
        let mut broken = Vec::new();
        for assertion in asserts {
            let totals = self.records.iter().filter(|_| assertion.policy.is_none());
            let named = self.records.iter().flat_map(Record::with_populations).filter(|_| assertion.policy.is_some());
            for record in totals.chain(named).filter(|record| assertion.is_about(record)) {
                let losses = |other: &&Assertion| other.subject == Subject::Figure(Figure::GaveUp);
                let may_lose = asserts.iter().filter(losses).any(|other| other.is_about(record));
                broken.extend(assertion.check(record, may_lose));
            }
        }
        broken
    }

    /// For tests: panics with the numbers that broke the assertions.
    ///
    /// # Panics
    ///
    /// If one does not hold.
    #[track_caller]
    pub fn must(&self, asserts: &[Assertion]) {
        let broken: Vec<String> = self.broken(asserts).iter().map(Broken::to_string).collect();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }
}
