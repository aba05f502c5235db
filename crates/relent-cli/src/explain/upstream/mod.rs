//! What an upstream allows: retries a second, attempts a call, when its breaker trips and how long it stays open.
//!
//! Nothing is run: these are the rules of the machines as figures of a steady state, in which every attempt is counted
//! and takes no time.

mod allowed;
mod opened;
mod plot;
mod report;
mod text;

pub(super) use self::{plot::chart, report::with, text::explain};

use crate::{
    policy_args::PolicyArgs,
    talk::Fault,
    upstream_args::{Described, UpstreamArgs},
};
use relent::{Policy, UpstreamSettings, Warning};

/// The flags of `relent explain` about an upstream.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct OnArgs {
    #[command(flatten)]
    flags: UpstreamArgs,

    /// Calls a second that the upstream is explained at.
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = load)]
    load: f64,

    /// Layers that retry one above the other, each like this one.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    layers: u8,
}

/// A policy on an upstream, at a load.
#[derive(Debug)]
pub(super) struct OnUpstream {
    pub(super) described: Described,
    pub(super) settings: UpstreamSettings,
    pub(super) policy: Policy,
    /// Calls a second.
    pub(super) load: f64,
    pub(super) layers: u8,
}

impl OnArgs {
    pub(super) fn is_given(&self) -> bool {
        self.flags.is_given()
    }

    /// The upstream that the flags or the file describe, if they do.
    pub(super) fn of(&self, policy: Policy, args: &PolicyArgs) -> Result<Option<OnUpstream>, Fault> {
        let described = match self.flags.draft(args)? {
            Some(described) => described,
            // Layers multiply whether or not anything protects what they call.
            None if self.layers > 1 => Described::nothing(),
            None => return Ok(None),
        };
        let settings = described.draft.settings();
        Ok(Some(OnUpstream { described, settings, policy, load: self.load, layers: self.layers }))
    }
}

impl OnUpstream {
    /// What is wrong with it, the worst first.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let layers = (0..self.layers).map(|_| (&self.policy, &self.settings));
        Warning::of_chain(layers).into_iter().chain(self.settings.warnings(&self.policy)).collect()
    }
}

fn load(text: &str) -> Result<f64, relent::config::BadSetting> {
    let hint = "write it like 100: calls a second, above 0 and up to 1000000000";
    let bad = |problem: String| relent::config::BadSetting { key: None, problem, hint: hint.to_owned() };
    match text.trim().parse::<f64>() {
        Ok(load) if load > 0.0 && load <= 1e9 => Ok(load),
        Ok(_) => Err(bad(format!("a load of {text} calls a second is not possible"))),
        Err(_) => Err(bad(format!("{text:?} is not a number"))),
    }
}

/// A number as people read it: three digits, no more than it has.
pub(super) fn figure(number: f64) -> String {
    let places = match number.abs() {
        n if n >= 100.0 => 0,
        n if n >= 10.0 => 1,
        n if n >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{number:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_loads() {
        assert_eq!([1.1, 1.331, 27.0, 11.0, 0.05, 1234.5].map(figure), ["1.1", "1.33", "27", "11", "0.05", "1234"]);
        assert_eq!(load("100").unwrap(), 100.0);
        for absurd in ["0", "-1", "nan", "inf", "1e300"] {
            assert_eq!(load(absurd).unwrap_err().problem, format!("a load of {absurd} calls a second is not possible"));
        }
        assert_eq!(load("many").unwrap_err().problem, "\"many\" is not a number");
    }
}
