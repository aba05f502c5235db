//! A profile: another system's defaults under a name.

use crate::Policy;

/// What another system does by default, as a policy.
///
/// ```
/// use relent::{Jitter, compat};
///
/// let profile = compat::find("celery").unwrap();
/// println!("{} {}: {}", profile.system, profile.version, profile.warning);
/// let policy = profile.policy();
/// assert_eq!(policy.settings().max_attempts, Some(4));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The name, as in `--compat NAME` and `compat = "NAME"`.
    pub name: &'static str,
    /// The system, and the part of it.
    pub system: &'static str,
    /// The version that was run or read.
    pub version: &'static str,
    /// Where the rule is written down.
    pub source: &'static str,
    /// What proves it.
    pub evidence: Evidence,
    /// Parameters that the system leaves to its user, with the values this profile gives them; empty if all that it
    /// has are the system's defaults.
    pub picks: &'static str,
    /// What goes wrong with it, in a line.
    pub warning: &'static str,
    pub(super) policy: Policy,
}

/// What a profile was compared with.
///
/// ```
/// use relent::compat::{self, Evidence};
///
/// assert_eq!(compat::find("celery").unwrap().evidence, Evidence::Run);
/// assert_eq!(Evidence::Run.as_str(), "run");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Evidence {
    /// Numbers that the system's own code produced: it was run, with nothing replaced but its random source and clock.
    Run,
    /// Numbers recomputed from the published formula, specification or source; the system itself was not run.
    Port,
    /// The published schedule or formula alone. There are no numbers to compare with.
    Published,
}

impl Evidence {
    /// The evidence as one word, as COMPARE.md writes it: `"run"`, `"port"`, `"published"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Evidence::Run => "run",
            Evidence::Port => "port",
            Evidence::Published => "published",
        }
    }
}

impl Profile {
    /// The policy. Its other settings, such as `max_attempts`, can be changed as those of any policy.
    ///
    /// ```
    /// # use relent::compat;
    /// let policy = compat::find("cenkalti-v4")?.policy().max_attempts(5);
    /// assert_eq!(policy.settings().max_attempts, Some(5));
    /// # Ok::<(), compat::Unknown>(())
    /// ```
    pub const fn policy(&self) -> Policy {
        self.policy
    }
}
