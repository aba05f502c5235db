//! The report of a simulation: one page that works offline, and the same plots as files.
//!
//! The page ([`Report::html`]) holds the JSON that `relent simulate --json` prints, and shows its numbers; a script of
//! its own, without any library, draws the plots so that they can be hovered over and zoomed. The files
//! ([`Report::pictures`]) are drawn by [`crate::plot::svg`], with the same bytes each time. Both show what the outcome
//! has, and leave out what the scenario does not.

pub(crate) mod advice;
mod clients;
mod data;
mod findings;
mod numbers;
mod page;
mod pictures;
mod words;

pub(crate) use words::percent;

use relent_sim::{Outcome, Scenario};

/// What a report is made of.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What was simulated.
    pub scenario: &'a Scenario,
    /// What came of it.
    pub outcome: &'a Outcome,
    /// The command line that gives the same report.
    pub command: &'a str,
}

/// A plot in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The name of the file, without its ending.
    pub name: &'static str,
    /// The plot as SVG.
    pub svg: String,
}

impl Report<'_> {
    /// The page.
    pub fn html(&self) -> String {
        page::page(self)
    }

    /// The plots, those that the scenario has.
    pub fn pictures(&self) -> Vec<Picture> {
        pictures::pictures(self)
    }

    /// What was simulated, in a sentence; its name where there is none.
    fn title(&self) -> &str {
        if self.outcome.title.is_empty() { &self.outcome.scenario } else { &self.outcome.title }
    }
}
