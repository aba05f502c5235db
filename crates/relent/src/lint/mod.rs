//! What is wrong with a policy that makes sense to the machine: warnings with a number each.
//!
//! [`Settings::policy`](crate::Settings::policy) refuses what cannot be meant. Warnings are about what can be meant
//! and still hurts: clients that stay in step, calls that never end, attempts that never happen. Every warning carries
//! the number that says how bad it is. Rules that are black boxes (other systems' profiles, the user's own) are judged
//! by what they do: they are run for a herd of 512 clients with evenly spread draws.

mod attempt_can_hang;
mod attempts_do_not_fit;
mod behaviour;
mod ends_early;
mod herd;
mod in_step;
mod jitter_dies;
mod no_jitter;
mod no_limit;
#[cfg(all(test, feature = "std"))]
mod tests;
mod upstream;
mod words;
mod zero_delay;

use self::behaviour::Behaviour;
use crate::core::{policy::Policy, upstream_settings::UpstreamSettings};
use core::{fmt, time::Duration};

/// Something about a policy that its user should know, with the number that says how bad it is.
///
/// Its `Display` is one sentence for people, [`name`](Warning::name) one word for machines, [`hint`](Warning::hint)
/// what to do about it.
///
/// ```
/// use relent::{Jitter, Policy, Warning};
/// use std::time::Duration;
///
/// let policy = Policy::constant(Duration::from_secs(5)).jitter(Jitter::None);
/// let warning = policy.warnings().next().unwrap();
/// assert_eq!(warning.name(), "no_jitter");
/// assert!(warning.to_string().starts_with("no jitter: 100 % of the clients that fail together"));
/// assert_eq!(Policy::default().warnings().filter(|w| !w.is_note()).count(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Clients that failed together wait the identical time, attempt after attempt.
    NoJitter {
        /// The first delay above zero, the same for all.
        delay: Duration,
    },
    /// Delays are spread at first, but many clients end up waiting the identical time.
    JitterDies {
        /// The first attempt before which they do.
        attempt: u32,
        /// The share of clients that wait the identical time in the end, 0 to 1.
        share: f64,
        /// That time.
        delay: Duration,
    },
    /// Delays are spread in the end, but before one attempt many clients wait the identical time.
    InStep {
        /// The attempt before which most do.
        attempt: u32,
        /// The share of them that do, 0 to 1.
        share: f64,
        /// That time.
        delay: Duration,
    },
    /// Nothing ends a call that keeps failing: neither attempts nor time are limited.
    NoLimit {
        /// Attempts in the first day, if they take no time; `None` if there is no delay to slow them down.
        attempts_in_a_day: Option<u64>,
    },
    /// A delay can be zero, so that some clients retry at once.
    ZeroDelay {
        /// The attempt before which most clients do.
        attempt: u32,
        /// The share of them that do, 0 to 1.
        share: f64,
        /// What counts as at once: zero, or less than a millisecond where exactly zero is rare.
        within: Duration,
    },
    /// `max_elapsed` or `timeout` ends calls before `max_attempts` can.
    AttemptsDoNotFit {
        /// Attempts allowed.
        max_attempts: u32,
        /// The limit they do not fit in: `max_elapsed` or `timeout`, whichever is less.
        limit: Duration,
        /// Attempts that begin in time if every delay is the least possible and attempts take no time.
        at_most: u32,
        /// Attempts that begin in time if every delay is the mean and attempts take no time.
        typical: u32,
        /// The same if every attempt runs into the attempt timeout; equal to `typical` without one.
        timed_out: u32,
    },
    /// The delays end before `max_attempts` is reached.
    EndsEarly {
        /// Attempts allowed.
        max_attempts: u32,
        /// Attempts there are delays for.
        attempts: u32,
    },
    /// `max_elapsed` is set but an attempt that hangs is not ended by anything.
    AttemptCanHang {
        /// The limit that does not hold for an attempt under way.
        max_elapsed: Duration,
    },
    /// Unlimited retries, and the upstream has no budget.
    EndlessWithoutBudget {
        /// Attempts of one call in an hour of failing; `None` if they are more than a thousand.
        attempts_in_an_hour: Option<u32>,
    },
    /// The upstream has a hedge and no budget that pays for it.
    HedgeWithoutBudget {
        /// Attempts of a call that is slow.
        attempts: u32,
    },
    /// The breaker of the upstream is over before half of the retries come, or more.
    BreakerTooShort {
        /// How long it is open.
        open_for: Duration,
        /// Retries of a call, at most 100.
        retries: u32,
        /// How many of them wait for longer, on average.
        late: u32,
    },
    /// The budget of the upstream allows no retry while there are few calls.
    NoFloor {
        /// The least number of calls that allows one; `u64::MAX` if none does.
        calls: u64,
        /// In how long a time; `None` if it is attempts in flight that count.
        window: Option<Duration>,
    },
    /// Layers that retry each other's calls: [`Warning::of_chain`].
    Multiplies {
        /// How many layers.
        layers: u32,
        /// Attempts at the lowest for each call of the highest; infinite if nothing bounds them.
        amplification: f64,
    },
}

impl Warning {
    /// The warning as one word, as JSON writes it: `"no_jitter"`.
    pub const fn name(&self) -> &'static str {
        self.rule().name
    }

    /// What to do about it.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// let policy = Policy::default().jitter(Jitter::None);
    /// let no_jitter = policy.warnings().find(|warning| warning.name() == "no_jitter").unwrap();
    /// assert!(no_jitter.hint().contains("jitter"));
    /// ```
    pub const fn hint(&self) -> &'static str {
        self.rule().hint
    }

    /// Whether it is worth knowing rather than worth changing: an expected price of something good.
    pub fn is_note(&self) -> bool {
        (self.rule().is_note)(self)
    }

    const fn rule(&self) -> &'static Rule {
        match self {
            Warning::NoJitter { .. } => &no_jitter::RULE,
            Warning::JitterDies { .. } => &jitter_dies::RULE,
            Warning::InStep { .. } => &in_step::RULE,
            Warning::NoLimit { .. } => &no_limit::RULE,
            Warning::ZeroDelay { .. } => &zero_delay::RULE,
            Warning::AttemptsDoNotFit { .. } => &attempts_do_not_fit::RULE,
            Warning::EndsEarly { .. } => &ends_early::RULE,
            Warning::AttemptCanHang { .. } => &attempt_can_hang::RULE,
            Warning::EndlessWithoutBudget { .. } => &upstream::ENDLESS_WITHOUT_BUDGET,
            Warning::HedgeWithoutBudget { .. } => &upstream::HEDGE_WITHOUT_BUDGET,
            Warning::BreakerTooShort { .. } => &upstream::BREAKER_TOO_SHORT,
            Warning::NoFloor { .. } => &upstream::NO_FLOOR,
            Warning::Multiplies { .. } => &upstream::MULTIPLIES,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.rule().tell)(self, f)
    }
}

/// One kind of warning. Its file says everything about it but its variant of [`Warning`].
struct Rule {
    name: &'static str,
    hint: &'static str,
    check: Check,
    tell: fn(&Warning, &mut fmt::Formatter<'_>) -> fmt::Result,
    is_note: fn(&Warning) -> bool,
}

/// What a rule looks at.
enum Check {
    /// A policy alone.
    Policy(fn(&Policy, &Behaviour) -> Option<Warning>),
    /// A policy on an upstream.
    Upstream(fn(&Policy, &UpstreamSettings) -> Option<Warning>),
    /// Several of them.
    Chain,
}

/// The worst first.
const RULES: [Rule; 8] = [
    no_limit::RULE,
    no_jitter::RULE,
    jitter_dies::RULE,
    in_step::RULE,
    zero_delay::RULE,
    attempts_do_not_fit::RULE,
    ends_early::RULE,
    attempt_can_hang::RULE,
];

impl Policy {
    /// What the user of this policy should know, the worst first; nothing for a policy without fault.
    ///
    /// Costs some hundred thousand steps and 32 KiB of stack, so it is for tools and tests rather than for every call.
    ///
    /// ```
    /// use relent::{Jitter, Policy, Warning};
    /// use std::time::Duration;
    ///
    /// let in_step = Policy::constant(Duration::from_secs(5)).jitter(Jitter::None);
    /// assert!(in_step.warnings().any(|warning| matches!(warning, Warning::NoJitter { .. })));
    /// ```
    pub fn warnings(&self) -> impl Iterator<Item = Warning> + use<> {
        let behaviour = Behaviour::of(self);
        let found = RULES.map(|rule| match rule.check {
            Check::Policy(check) => check(self, &behaviour),
            Check::Upstream(_) | Check::Chain => None,
        });
        let of_kind = move |note| found.into_iter().flatten().filter(move |warning| warning.is_note() == note);
        of_kind(false).chain(of_kind(true))
    }
}
