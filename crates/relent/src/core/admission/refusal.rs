//! What becomes of an attempt that is not taken, and by which rule.

use super::Admit;

/// A refusal: what the client is told, and which rule said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) answer: Admit,
    pub(crate) rule: Rule,
}

/// Why an attempt is refused: the counts of an [`AdmissionSnapshot`](super::AdmissionSnapshot).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Hopeless,
    Full,
    Low,
    Retries,
    Turns,
}

#[cfg(all(feature = "metrics", feature = "tower"))]
impl Rule {
    pub(crate) const ALL: [Rule; 5] = [Rule::Hopeless, Rule::Full, Rule::Low, Rule::Retries, Rule::Turns];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Rule::Hopeless => "hopeless",
            Rule::Full => "full",
            Rule::Low => "low",
            Rule::Retries => "retries",
            Rule::Turns => "turns",
        }
    }
}
