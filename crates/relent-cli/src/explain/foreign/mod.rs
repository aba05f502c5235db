//! What people already have, read as policies: systemd units, Kubernetes' restarts, curl's flags, Envoy's routes.
//!
//! Each file reads one of them, says which setting came from where, and cites what it knows the behaviour from.
//! Where the other system does something that no policy says (a limit that is checked elsewhere, a pushback treated
//! differently), a note says so.

mod curl;
mod envoy;
mod kubernetes;
mod systemd;

pub use self::{curl::curl, envoy::envoy, kubernetes::kubernetes, systemd::systemd};

use super::setting::Setting;
use relent::{Backoff, Curve, Invalid, Jitter, Policy, Settings};
use std::{fmt, time::Duration};

/// What somebody already has, as a policy.
#[derive(Debug)]
pub struct Reading {
    /// What it is, in a few words: `curl --retry 5`.
    pub name: String,
    /// The policy that does the same.
    pub policy: Policy,
    /// What it was read from, the defaults of the other system included.
    pub settings: Vec<Setting>,
    /// What the policy does not say.
    pub notes: Vec<String>,
    /// Where the behaviour is written down.
    pub source: &'static str,
}

/// Why something cannot be read, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

impl Unreadable {
    fn new(problem: impl Into<String>, hint: impl Into<String>) -> Unreadable {
        Unreadable { problem: problem.into(), hint: hint.into() }
    }
}

impl From<Invalid> for Unreadable {
    fn from(invalid: Invalid) -> Unreadable {
        Unreadable::new(invalid.problem, invalid.hint)
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Unreadable {}

/// A policy without cap and jitter: other systems' rules bring their own.
fn policy(curve: Curve, max_attempts: Option<u32>) -> Result<Policy, Unreadable> {
    let none = Settings { cap: None, jitter: Jitter::None, ..Settings::default() };
    Ok(Settings { curve, max_attempts, ..none }.policy()?)
}

/// Delays that are known only now, for a policy that wants them for ever. One explanation reads a handful of them.
fn list(delays: Vec<Duration>) -> Curve {
    match delays[..] {
        [.., Duration::ZERO] | [] => Curve::Immediate,
        _ => Curve::List { delays: delays.leak(), repeat: true },
    }
}

/// A rule that is known only now, for a policy that wants it for ever.
fn rule(rule: impl Backoff + 'static) -> Curve {
    Curve::Custom(Box::leak(Box::new(rule)))
}
