//! The upstreams of a file as objects that calls act on: each one once, shared by all policies that name it.

use super::{
    bad_setting::BadSetting,
    file::Config,
    upstream::{UpstreamDraft, settle},
};
use crate::{SystemTimer, Timer, Timestamp, Upstream};
use std::{collections::BTreeMap, string::String, sync::Arc};

/// The upstreams of a policy file by name, with their state. Every policy that names one acts on the same.
///
/// ```
/// use relent::config::{Config, Upstreams};
///
/// let config = Config::parse("
///     [policy.read]
///     upstream = 'bank'
///     [policy.write]
///     upstream = 'bank'
///     max_attempts = 2
///     [upstream.bank]
///     budget = { ratio = 0.1, min_per_second = 1 }
///     breaker = { consecutive = 5, open_for = '30s' }
/// ")?;
/// let upstreams = Upstreams::of(&config);
/// let bank = upstreams.of_policy(Some("read")).unwrap();
/// assert_eq!(bank.name(), "bank");
/// assert!(std::sync::Arc::ptr_eq(bank, upstreams.of_policy(Some("write")).unwrap()));
/// # Ok::<(), relent::config::ConfigError>(())
/// ```
#[derive(Debug, Default)]
pub struct Upstreams {
    named: BTreeMap<String, (UpstreamDraft, Arc<Upstream>)>,
    of_policies: BTreeMap<Option<String>, String>,
}

impl Upstreams {
    /// The upstreams of a file, with nothing counted yet.
    ///
    /// ```
    /// # use relent::config::{Config, Upstreams};
    /// let upstreams = Upstreams::of(&Config::parse("[upstream.bank]\nbudget = 'sre'")?);
    /// assert_eq!(upstreams.iter().count(), 1);
    /// # Ok::<(), relent::config::ConfigError>(())
    /// ```
    pub fn of(config: &Config) -> Upstreams {
        Upstreams::default().reloaded_at(config, Timestamp::ZERO)
    }

    /// The upstreams of the file as it reads now. One that did not change stays the same object; one that did takes over
    /// the state of the old one and rescales it ([`Upstream::adopt`]); one that is gone is forgotten. Calls that are
    /// under way end on the upstream they began on, so ask for it anew after this.
    ///
    /// ```
    /// use relent::config::{Config, Upstreams};
    /// use std::sync::Arc;
    ///
    /// let old = Upstreams::of(&Config::parse("[upstream.a]\nbudget = 'grpc-a6'\n[upstream.b]")?);
    /// let new = old.reloaded(&Config::parse("[upstream.a]\nbudget = 'grpc-a6'\n[upstream.b]\nbudget = 'sre'")?);
    /// assert!(Arc::ptr_eq(old.get("a").unwrap(), new.get("a").unwrap()));
    /// assert!(!Arc::ptr_eq(old.get("b").unwrap(), new.get("b").unwrap()));
    /// # Ok::<(), relent::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn reloaded(&self, config: &Config) -> Upstreams {
        self.reloaded_at(config, SystemTimer.now())
    }

    /// [`reloaded`](Upstreams::reloaded), told the time.
    ///
    /// ```
    /// # use relent::{Timestamp, config::{Config, Upstreams}};
    /// let config = Config::parse("[upstream.bank]")?;
    /// let (old, now) = (Upstreams::of(&config), Timestamp::ZERO);
    /// assert!(old.reloaded_at(&config, now).get("bank").is_ok());
    /// # Ok::<(), relent::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn reloaded_at(&self, config: &Config, now: Timestamp) -> Upstreams {
        let upstream = |name: &str, draft: &UpstreamDraft| match self.named.get(name) {
            Some((same, upstream)) if same == draft => upstream.clone(),
            Some((_, old)) => Arc::new(settle(draft, name).adopt(old, now)),
            None => Arc::new(settle(draft, name)),
        };
        let named = config.drafts_of_upstreams();
        Upstreams {
            named: named.map(|(name, draft)| (name.clone(), (*draft, upstream(name, draft)))).collect(),
            of_policies: config.policies_on_upstreams(),
        }
    }

    /// The upstream of a name.
    ///
    /// # Errors
    ///
    /// There is none of that name; the error names those there are.
    ///
    /// ```
    /// # use relent::config::{Config, Upstreams};
    /// let upstreams = Upstreams::of(&Config::parse("[upstream.bank]")?);
    /// assert_eq!(upstreams.get("bank")?.name(), "bank");
    /// assert_eq!(upstreams.get("bnak").unwrap_err().hint, "it has bank");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, name: &str) -> Result<&Arc<Upstream>, BadSetting> {
        let there = self.named.keys().map(String::as_str);
        self.named.get(name).map(|(_, upstream)| upstream).ok_or_else(|| super::file::no_upstream(name, there))
    }

    /// The upstream that a policy acts on, as [`Config::upstream_of`] finds it; `None` if it acts on none.
    pub fn of_policy(&self, policy: Option<&str>) -> Option<&Arc<Upstream>> {
        let name = self.of_policies.get(&policy.map(String::from))?;
        self.named.get(name).map(|(_, upstream)| upstream)
    }

    /// All of them, in the order of their names.
    ///
    /// ```
    /// # use relent::config::{Config, Upstreams};
    /// let upstreams = Upstreams::of(&Config::parse("[upstream.mail]\n[upstream.bank]")?);
    /// assert_eq!(upstreams.iter().map(|upstream| upstream.name()).collect::<Vec<_>>(), ["bank", "mail"]);
    /// # Ok::<(), relent::config::ConfigError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.named.values().map(|(_, upstream)| upstream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BreakerState, Outcome, Verdict};

    fn upstreams(text: &str) -> Upstreams {
        Upstreams::of(&Config::parse(text).unwrap())
    }

    #[test]
    fn what_did_not_change_stays_and_what_did_is_rescaled() {
        let before = "[upstream.a]\nbudget = { grpc = 10, token_ratio = 0.1 }\nbreaker = 'polly'\n[upstream.b]\n\
                      budget = { grpc = 10 }\n[upstream.gone]";
        let old = upstreams(before);
        let now = Timestamp::ZERO;
        for name in ["a", "b"] {
            let budget = old.get(name).unwrap().its_budget().unwrap();
            for _ in 0..4 {
                budget.outcome(now, Outcome::Failure(Verdict::Transient), None);
            }
            assert_eq!(budget.balance(now), 6.0);
        }
        old.get("a").unwrap().hold_open_at(now);
        let after = before.replace("{ grpc = 10 }", "{ grpc = 20 }").replace("'polly'", "'gobreaker'");
        let after = after.replace("[upstream.gone]", "[upstream.new]\nlimit = 'aimd'");
        let new = old.reloaded_at(&Config::parse(&after).unwrap(), now);
        let balance = |upstreams: &Upstreams, name| upstreams.get(name).unwrap().its_budget().unwrap().balance(now);
        assert_eq!(balance(&new, "a"), 6.0, "another part changed, not this one");
        assert_eq!(balance(&new, "b"), 12.0, "gRPC's rule: the share is kept");
        let breaker = new.get("a").unwrap().snapshot_at(now).breaker.unwrap();
        assert_eq!(breaker.state, BreakerState::HeldOpen);
        assert_eq!(new.get("gone").unwrap_err().problem, "the file has no upstream \"gone\"");
        assert_eq!(new.iter().map(|upstream| upstream.name().to_owned()).collect::<Vec<_>>(), ["a", "b", "new"]);
    }

    #[test]
    fn a_part_that_is_said_to_be_none_is_none() {
        let none = upstreams("[upstream.a]\nbudget = 'none'\nbreaker = 'polly'");
        let a = none.get("a").unwrap();
        assert!(a.its_budget().is_none() && a.its_breaker().is_some() && a.its_limit().is_none());
        assert!(a.its_hedge().is_none());
    }

    #[test]
    fn the_only_policy_is_meant_without_a_name() {
        let one = upstreams("[policy.pay]\nupstream = 'bank'\n[upstream.bank]");
        assert_eq!(one.of_policy(None).unwrap().name(), "bank");
        let two = upstreams("[policy.pay]\nupstream = 'bank'\n[policy.x]\n[upstream.bank]");
        assert!(two.of_policy(None).is_none() && two.of_policy(Some("x")).is_none());
    }
}
