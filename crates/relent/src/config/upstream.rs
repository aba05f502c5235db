//! Upstreams as text: `[upstream.NAME]`, what all policies that act on it share.

use super::{
    bad_setting::BadSetting,
    breaker, budget, hedge, limit,
    part::{self, Part, Read},
};
use crate::{BreakerSettings, BudgetSettings, HedgeSettings, LimitSettings, Upstream, UpstreamSettings};
use std::{fmt, string::String, vec::Vec};
use toml::de::{DeTable, DeValue};

/// The keys of an upstream, in the order files are written.
pub const UPSTREAM_KEYS: [&str; 4] = ["budget", "breaker", "limit", "hedge"];

/// What text says about an upstream: parts that are not said can come from elsewhere.
///
/// ```
/// use relent::config::UpstreamDraft;
///
/// let mut file = UpstreamDraft::default();
/// file.set("budget", "aws-2.1")?;
/// file.set("breaker", "consecutive=5,open_for=30s")?;
/// let mut flags = UpstreamDraft::default();
/// flags.set("budget", "ratio=0.1,min_per_second=1")?;
///
/// let both = flags.over(file);
/// assert!(both.to_string().starts_with("budget = { ratio = 0.1, min_per_second = 1, window = \"10s\" }\nbreaker = {"));
/// # Ok::<(), relent::config::BadSetting>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UpstreamDraft {
    /// How many retries are allowed.
    pub budget: Part<BudgetSettings>,
    /// What stops attempts while it fails.
    pub breaker: Part<BreakerSettings>,
    /// How many attempts, or how many at a time.
    pub limit: Part<LimitSettings>,
    /// When a second attempt starts before the first has failed.
    pub hedge: Part<HedgeSettings>,
}

impl UpstreamDraft {
    /// Sets a part to the value that a flag would give it: `set("budget", "ratio=0.1")`.
    ///
    /// # Errors
    ///
    /// The key is not one of [`UPSTREAM_KEYS`], or the value is none for it.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), BadSetting> {
        match key {
            "budget" => self.budget = part::of_text(value)?,
            "breaker" => self.breaker = part::of_text(value)?,
            "limit" => self.limit = part::of_text(value)?,
            "hedge" => self.hedge = part::of_text(value)?,
            _ => return Err(BadSetting::unknown("key of an upstream", key, &UPSTREAM_KEYS)),
        }
        Ok(())
    }

    /// This draft laid over another: a part that is said here takes the place of the other's whole.
    #[must_use]
    pub fn over(self, under: UpstreamDraft) -> UpstreamDraft {
        UpstreamDraft {
            budget: self.budget.or(under.budget),
            breaker: self.breaker.or(under.breaker),
            limit: self.limit.or(under.limit),
            hedge: self.hedge.or(under.hedge),
        }
    }

    /// The upstream of this draft, with nothing counted yet.
    ///
    /// # Errors
    ///
    /// A part makes no sense, which those that were read from text do not.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let config = Config::parse("[upstream.bank]\nbudget = 'aws-2.1'")?;
    /// let bank = config.upstream("bank")?.upstream("bank")?;
    /// assert_eq!(bank.its_budget().unwrap().name(), "aws_quota");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn upstream(&self, name: &str) -> Result<Upstream, BadSetting> {
        let (settings, mut upstream) = (self.settings(), Upstream::named(name));
        if let Some(budget) = settings.budget {
            upstream = upstream.budget(budget.budget()?);
        }
        if let Some(breaker) = settings.breaker {
            upstream = upstream.breaker(breaker.breaker()?);
        }
        if let Some(limit) = settings.limit {
            upstream = upstream.limit(limit.limit()?);
        }
        if let Some(hedge) = settings.hedge {
            upstream = upstream.hedge(hedge.hedge()?);
        }
        Ok(upstream)
    }

    /// What it says as settings; parts that are not said are not there.
    ///
    /// ```
    /// # use relent::config::Config;
    /// let config = Config::parse("[upstream.bank]\nhedge = { after = '50ms' }")?;
    /// let settings = config.upstream("bank")?.settings();
    /// assert!(settings.hedge.is_some() && settings.budget.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settings(&self) -> UpstreamSettings {
        UpstreamSettings {
            budget: self.budget.into_option(),
            breaker: self.breaker.into_option(),
            limit: self.limit.into_option(),
            hedge: self.hedge.into_option(),
        }
    }
}

pub(super) fn read(table: &DeTable<'_>) -> Read<UpstreamDraft> {
    let mut upstream = UpstreamDraft::default();
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "budget" => upstream.budget = part::of_file(value)?,
            "breaker" => upstream.breaker = part::of_file(value)?,
            "limit" => upstream.limit = part::of_file(value)?,
            "hedge" => upstream.hedge = part::of_file(value)?,
            STORE => {}
            other => {
                let known: Vec<&str> = UPSTREAM_KEYS.into_iter().chain([STORE]).collect();
                return Err((key.span(), BadSetting::unknown("key of an upstream", other, &known)));
            }
        }
    }
    Ok(upstream)
}

/// The key of a file by which an upstream names its store; no flag of a part is called so.
const STORE: &str = "store";

/// No path is longer, nor is any server's URL: messages have it, without its password.
const LONGEST: usize = 4096;

/// The URL of the store that an upstream names.
pub(super) fn store(table: &DeTable<'_>) -> Read<Option<String>> {
    let Some(value) = table.get(STORE) else { return Ok(None) };
    match value.get_ref() {
        DeValue::String(url) if url.len() > LONGEST => Err((
            value.span(),
            BadSetting::new("a store's URL is longer than 4096 bytes", "store = \"sqlite:state.db\""),
        )),
        DeValue::String(url) if !url.is_empty() => Ok(Some(url.clone().into_owned())),
        _ => Err((value.span(), BadSetting::new("store is the URL of one", "store = \"sqlite:state.db\""))),
    }
}

/// The upstream of a draft that was read from text, and so was checked.
pub(super) fn settle(draft: &UpstreamDraft, name: &str) -> Upstream {
    draft.upstream(name).unwrap_or_else(|_| Upstream::named(name))
}

/// The parts that are said, as lines of a policy file, without a header.
impl fmt::Display for UpstreamDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "budget", &self.budget, budget::write)?;
        line(f, "breaker", &self.breaker, breaker::write)?;
        line(f, "limit", &self.limit, limit::write)?;
        line(f, "hedge", &self.hedge, hedge::write)
    }
}

pub(super) fn line<T>(
    f: &mut fmt::Formatter<'_>,
    key: &str,
    part: &Part<T>,
    write: impl Fn(&T) -> String,
) -> fmt::Result {
    match part {
        Part::Unsaid => Ok(()),
        Part::Without => writeln!(f, "{key} = \"none\""),
        Part::With(settings) => writeln!(f, "{key} = {}", write(settings)),
    }
}
